"""User files that register additional rules or activations: `statmech --load my_rules.py run ...`.

A file is run before a config is read; what it adds to `statmech.RULES` and `statmech.ACTIVATIONS` is then known like
any other. The workers of a command run the same files. STATMECH_LOAD lists files that every command loads.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from statmech.activations import ACTIVATIONS, Activation
from statmech.errors import ConfigError, ScenarioError
from statmech.parameters import parameters_of
from statmech.rules import RULES

DIFFERENCE, SLOPE_ERROR = 1e-6, 1e-4  # of a derivative by differences
FILES = "STATMECH_LOAD"  # several files are separated as in PATH
_loaded: dict[str, ModuleType] = {}  # by absolute path


def load(file: str | Path) -> None:
    """Run a file, once per process. Raises `ConfigError` with the line of the failure."""
    path = Path(file).resolve()
    if not path.is_file():
        raise ConfigError(f"--load {file}: no such file")
    if str(path) in _loaded:
        return
    spec = importlib.util.spec_from_file_location(f"own_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"--load {file}: not a Python file (its name must end with .py)")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    before = [dict(registry) for registry, _ in CHECKED]
    try:
        spec.loader.exec_module(module)
    except Exception as failure:
        raise ConfigError(f"{file}{_line(path, failure)}: {type(failure).__name__}: {failure}") from None
    for (registry, checked), known in zip(CHECKED, before, strict=True):
        for name in registry:
            if registry[name] is not known.get(name):
                checked(name)
    _loaded[str(path)] = module


def check(name: str) -> None:
    """Test a rule at its default parameters, in NumPy and traced by JAX. Raises `ConfigError` if it cannot be used.

    >>> check("adatron")
    """
    import jax

    with _reported(f'the rule "{name}"', "stabilities", "kappa"):
        rule = RULES[name]()
        parameters_of(rule)
        str(rule.label)
        rule.g(np.linspace(-8, 8, 9), 1.0)
        jax.eval_shape(rule.g, *[jax.ShapeDtypeStruct((2,), np.float32)] * 2)
        jump = _jump(lambda kappa: rule.g(kappa, 1.0), rule.kinks)
    if jump is not None:
        raise ConfigError(f'the rule "{name}": g jumps at stability {jump:.3g}, which is not among its kinks')


def check_activation(name: str) -> None:
    """Test an activation at its default parameters, in NumPy and traced by JAX. Raises `ConfigError` if it is wrong.

    >>> check_activation("relu")
    """
    import jax

    with _reported(f'the activation "{name}"', "fields", "x"):
        activation = ACTIVATIONS[name]()
        parameters_of(activation)
        str(activation.label)
        traced = jax.eval_shape(activation.both, jax.ShapeDtypeStruct((2, 9), np.float32))
        results = (traced, activation.both(np.linspace(-8, 8, 18).reshape(2, 9)))
        problem = None
        if any([np.shape(array) for array in jax.tree.leaves(result)] != [(2, 9)] * 2 for result in results):
            problem = "both(x) must return two arrays of the shape of x, g and its derivative"
        problem = problem or _unsmooth(activation)
    if problem is not None:
        raise ConfigError(f'the activation "{name}": {problem}')


CHECKED: tuple[tuple[dict[str, Any], Callable[[str], None]], ...] = ((RULES, check), (ACTIVATIONS, check_activation))


@contextmanager
def _reported(what: str, arrays: str, variable: str) -> Iterator[None]:
    """Report a failure in a class of the user as a `ConfigError` with its name."""
    try:
        yield
    except ScenarioError as problem:
        raise ConfigError(f"{what}: {problem}") from None
    except Exception as failure:
        message = str(failure).splitlines()[0]
        hint = _hint(failure, arrays, variable)
        raise ConfigError(f"{what}: {type(failure).__name__}: {message}{hint}") from None


def _hint(failure: Exception, arrays: str, variable: str) -> str:
    traced = "Tracer" in type(failure).__name__ or "truth value" in str(failure)
    instead = f"write step(-{variable}) for `if {variable} < 0`"
    functions = f"namespace({variable}).tanh({variable}) for np.tanh({variable})"
    return f"\n{arrays} are arrays, traced by JAX: {instead},\nand {functions}" if traced else ""


def _unsmooth(activation: Activation) -> str | None:
    """Where g or g' jumps without a kink, or g' is not the derivative of g; None if nowhere."""
    for part, what in enumerate(("g jumps", "g bends")):
        jump = _jump(lambda x, part=part: activation.both(x)[part], activation.kinks)  # type: ignore[misc]
        if jump is not None:
            return f"{what} at field {jump:.3g}, which is not among its kinks"
    for low, high in _between(activation.kinks):
        margin = DIFFERENCE + 1e-6 * (high - low)
        x = np.linspace(low + margin, high - margin, 101)
        (ahead, _), (behind, _), (_, slope) = (activation.both(x + d) for d in (DIFFERENCE, -DIFFERENCE, 0.0))
        wrong = abs((ahead - behind) / (2 * DIFFERENCE) - slope) > SLOPE_ERROR * (1 + abs(slope))
        if wrong.any():
            return f"the second array that both returns is not the derivative of g at field {x[wrong][0]:.3g}"
    return None


def _between(kinks: Iterable[float]) -> Iterator[tuple[float, float]]:
    """The intervals of -8 to 8 between the kinks."""
    return itertools.pairwise(np.sort([-8.0, 8.0, *(kink for kink in map(float, kinks) if -8 < kink < 8)]))


def _jump(g: Callable[[np.ndarray], np.ndarray], kinks: Iterable[float]) -> float | None:
    """A place between -8 and 8 at which g jumps without a kink; quadrature across it would not converge."""
    for low, high in _between(kinks):
        margin, steps = 1e-6 * (high - low), np.zeros(1)
        while high - low > 1e-9:
            x = np.linspace(low + margin, high - margin, 1001)
            margin, steps = 0.0, abs(np.diff(np.broadcast_to(g(x), x.shape)))
            low, high = x[(index := int(np.argmax(steps)))], x[index + 1]
        if steps.max() > 1e-3:
            return float(low)
    return None


def load_named() -> None:
    """Run the files listed in the environment variable STATMECH_LOAD."""
    for file in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
        load(file)


def loaded() -> list[str]:
    """The files that were run in this process, for workers to run them too."""
    return list(_loaded)


def for_children() -> dict[str, str]:
    """The environment of a child process that loads the same files."""
    return os.environ | {FILES: os.pathsep.join(_loaded)}


def _line(path: Path, failure: Exception) -> str:
    """The line at which the file failed, as ":line"; empty if unknown."""
    if isinstance(failure, SyntaxError):
        return f":{failure.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(failure.__traceback__) if frame.filename == str(path)]
    return f":{lines[-1]}" if lines else ""
