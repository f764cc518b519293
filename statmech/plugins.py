"""User files that register additional rules: `statmech --load my_rules.py run ...`.

A file is run before a config is read; the rules that it adds to `statmech.RULES` are then known like any other. The
workers of a command run the same files. STATMECH_LOAD lists files that every command loads.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

import numpy as np

from statmech.errors import ConfigError, ScenarioError
from statmech.parameters import parameters_of
from statmech.rules import RULES, Rule

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
    before = dict(RULES)
    try:
        spec.loader.exec_module(module)
    except Exception as failure:
        raise ConfigError(f"{file}{_line(path, failure)}: {type(failure).__name__}: {failure}") from None
    for name in RULES:
        if RULES[name] is not before.get(name):
            check(name)
    _loaded[str(path)] = module


def check(name: str) -> None:
    """Test a rule at its default parameters, in NumPy and traced by JAX. Raises `ConfigError` if it cannot be used.

    >>> check("adatron")
    """
    import jax

    try:
        rule = RULES[name]()
        parameters_of(rule)
        str(rule.label)
        rule.g(np.linspace(-8, 8, 9), 1.0)
        jax.eval_shape(rule.g, *[jax.ShapeDtypeStruct((2,), np.float32)] * 2)
        jump = _jump(rule)
    except ScenarioError as problem:
        raise ConfigError(f'the rule "{name}": {problem}') from None
    except Exception as failure:
        message = str(failure).splitlines()[0]
        raise ConfigError(f'the rule "{name}": {type(failure).__name__}: {message}{_hint(failure)}') from None
    if jump is not None:
        raise ConfigError(f'the rule "{name}": g jumps at stability {jump:.3g}, which is not among its kinks')


def _hint(failure: Exception) -> str:
    arrays = "stabilities are arrays, traced by JAX: write step(-kappa) for `if kappa < 0`"
    traced = "Tracer" in type(failure).__name__ or "truth value" in str(failure)
    return f"\n{arrays}, and namespace(kappa).tanh(kappa) for np.tanh(kappa)" if traced else ""


def _jump(rule: Rule) -> float | None:
    """A stability between -8 and 8 at which g jumps without a kink; quadrature across it would not converge."""
    edges = np.sort([-8.0, 8.0, *(kink for kink in map(float, rule.kinks) if -8 < kink < 8)])
    for low, high in itertools.pairwise(edges):
        margin, steps = 1e-6 * (high - low), np.zeros(1)
        while high - low > 1e-9:
            kappa = np.linspace(low + margin, high - margin, 1001)
            margin, steps = 0.0, abs(np.diff(np.broadcast_to(rule.g(kappa, 1.0), kappa.shape)))
            low, high = kappa[(index := int(np.argmax(steps)))], kappa[index + 1]
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
