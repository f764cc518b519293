"""User files that register additional rules, activations or losses: `statmech --load my_rules.py run ...`.

A file is run before a config is read. Its additions to `statmech.RULES`, `statmech.ACTIVATIONS`, `statmech.LOSSES` and
to the descents, teachers and weights of `statmech.convex` can then be used in the config. The workers of a command run
the same files. STATMECH_LOAD lists files that every command loads.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from statmech.config.user_class_checks import (
    find_descent_problem,
    find_jump,
    find_loss_problem,
    find_teacher_problem,
    find_weights_problem,
    find_wrong_slope,
)
from statmech.convex.descent_methods import DESCENTS
from statmech.convex.losses import LOSSES
from statmech.convex.teachers import TEACHERS
from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS
from statmech.errors import ConfigError, ScenarioError
from statmech.parameters.parameter_fields import get_parameters
from statmech.runtime import files, user_code_and_provenance
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.students.activations import ACTIVATIONS, Activation
from statmech.students.rules import RULES

MAX_PLUGIN_BYTES = 10_000_000
PLUGIN_FILES_ENV_VARIABLE = "STATMECH_LOAD"  # list of files, separated as in PATH
SAFE_PATH_ENV_VARIABLE = "PYTHONSAFEPATH"  # keeps `python -c` and `python -m` from importing from the current folder
ARRAY_BRANCH_HINT = "\nx is an array: write np.where(x < 0, a, b) for `a if x < 0 else b`"
_loaded_modules: dict[str, ModuleType] = {}  # keys: absolute paths


def load_plugin(file: str | Path) -> None:
    """Run a plugin file unless its current version has already run, or raise `ConfigError` with the failing line.

    The file can import modules from its own folder, unless a library has the same name.
    """
    path = Path(os.path.realpath(file))  # does not raise an error for circular links
    if not path.is_file():
        raise ConfigError(f"{file}: no such Python file")
    before = _loaded_modules.get(str(path))
    if before is not None and user_code_and_provenance.is_module_current(before):
        return
    name = f"own_{path.stem}" if before is None else before.__name__
    if before is None and name in sys.modules:  # another module has this name
        name += f"_{len(_loaded_modules)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{file}: is not a Python file: its name must end in .py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    registered = [dict(registry) for registry, _ in REGISTRY_CHECKS]
    try:
        # loader.exec_module would run stale bytecode after an edit within a second that keeps the file's size
        exec(compile(files.read_bounded_file(path, MAX_PLUGIN_BYTES), str(path), "exec"), vars(module))
    except Exception as failure:
        raise ConfigError(f"{file}{_format_failure_line(path, failure)}: {type(failure).__name__}: {failure}") from None
    for (registry, check_class), previous in zip(REGISTRY_CHECKS, registered, strict=True):
        for name in registry:
            if registry[name] is not previous.get(name):
                check_class(name)
    _loaded_modules[str(path)] = module
    user_code_and_provenance.is_module_current(
        module
    )  # store the digest now: the file may be edited while this process runs


def check_plugin_rule(name: str) -> None:
    """Check a rule at its default parameters in NumPy and JAX, or raise `ConfigError`.

    >>> check_plugin_rule("adatron")
    """
    import jax

    with (
        _convert_plugin_failures(f'the rule "{name}"', _make_tracing_hint("stabilities", "kappa")),
        use_cpu_double_precision(),
    ):
        rule = RULES[name]()
        get_parameters(rule)
        str(rule.label)
        rule.g(np.linspace(-8, 8, 9), 1.0)
        jax.eval_shape(rule.g, *[jax.ShapeDtypeStruct((2,), np.float32)] * 2)
        jump_position = find_jump(lambda kappa: rule.g(kappa, 1.0), rule.kinks)
    if jump_position is not None:
        raise ConfigError(f'the rule "{name}": g jumps at stability {jump_position:.3g}, which is not among its kinks')


def check_plugin_activation(name: str) -> None:
    """Check an activation at its default parameters in NumPy and JAX, or raise `ConfigError`.

    >>> check_plugin_activation("relu")
    """
    import jax

    with (
        _convert_plugin_failures(f'the activation "{name}"', _make_tracing_hint("fields", "x")),
        use_cpu_double_precision(),
    ):
        activation = ACTIVATIONS[name]()
        get_parameters(activation)
        str(activation.label)
        traced = jax.eval_shape(activation.both, jax.ShapeDtypeStruct((2, 9), np.float32))
        results = (traced, activation.both(np.linspace(-8, 8, 18).reshape(2, 9)))
        problem = None
        if any([np.shape(array) for array in jax.tree.leaves(result)] != [(2, 9)] * 2 for result in results):
            problem = "both(x) must return two arrays of the shape of x, g and its derivative"
        problem = problem or _describe_wrong_derivative(activation)
    if problem is not None:
        raise ConfigError(f'the activation "{name}": {problem}')


def check_plugin_loss(name: str) -> None:
    """Check that a loss is convex and has the properties it declares, or raise `ConfigError`.

    >>> check_plugin_loss("huber")
    """
    _check_convex_plugin("loss", LOSSES, name, find_loss_problem)


def check_plugin_descent(name: str) -> None:
    """Check that a descent is linear in the weights, or raise `ConfigError`.

    >>> check_plugin_descent("nesterov")
    """
    _check_convex_plugin("descent", DESCENTS, name, find_descent_problem)


def check_plugin_teacher(name: str) -> None:
    """Check that a teacher has the properties it declares, or raise `ConfigError`.

    >>> check_plugin_teacher("probit")
    """
    _check_convex_plugin("teacher", TEACHERS, name, find_teacher_problem)


def check_plugin_weight_distribution(name: str) -> None:
    """Check that a distribution of weights has mean square 1, or raise `ConfigError`.

    >>> check_plugin_weight_distribution("sparse")
    """
    _check_convex_plugin("distribution of weights", WEIGHT_DISTRIBUTIONS, name, find_weights_problem)


def _check_convex_plugin(
    noun: str, kinds: dict[str, Any], name: str, find_problem: Callable[[Any], str | None]
) -> None:
    """Check a registered class of `statmech.convex` at its default parameters with `find_problem`."""
    with _convert_plugin_failures(f'the {noun} "{name}"', ARRAY_BRANCH_HINT):
        thing = kinds[name]()
        get_parameters(thing)
        str(thing.label)
        problem = find_problem(thing)
    if problem is not None:
        raise ConfigError(f'the {noun} "{name}": {problem}')


REGISTRY_CHECKS: tuple[tuple[dict[str, Any], Callable[[str], None]], ...] = (
    (RULES, check_plugin_rule),
    (ACTIVATIONS, check_plugin_activation),
    (LOSSES, check_plugin_loss),
    (DESCENTS, check_plugin_descent),
    (TEACHERS, check_plugin_teacher),
    (WEIGHT_DISTRIBUTIONS, check_plugin_weight_distribution),
)


@contextmanager
def _convert_plugin_failures(subject: str, hint: str) -> Iterator[None]:
    """Convert a failure in a user's class to a `ConfigError` that names the class.

    The hint is appended if the failure is a branch on an array.
    """
    try:
        yield
    except ScenarioError as problem:
        raise ConfigError(f"{subject}: {problem}") from None
    except Exception as failure:
        message = str(failure).splitlines()[0]
        branches = "Tracer" in type(failure).__name__ or "truth value" in str(failure)
        raise ConfigError(f"{subject}: {type(failure).__name__}: {message}{hint if branches else ''}") from None


def _make_tracing_hint(arrays: str, variable: str) -> str:
    """Return a hint on how to write functions of arrays for tracing by JAX."""
    instead = f"write step(-{variable}) for `if {variable} < 0`"
    functions = f"get_array_module({variable}).tanh({variable}) for np.tanh({variable})"
    return f"\n{arrays} are arrays, traced by JAX: {instead},\nand {functions}"


def _describe_wrong_derivative(activation: Activation) -> str | None:
    """Describe a jump outside the kinks or a wrong derivative, or return None for a correct activation."""
    g, derivative = (lambda x, part=part: activation.both(x)[part] for part in (0, 1))
    for function, description in ((g, "g jumps"), (derivative, "g bends")):
        if (position := find_jump(function, activation.kinks)) is not None:
            return f"{description} at field {position:.3g}, which is not among its kinks"
    if (position := find_wrong_slope(g, derivative, activation.kinks)) is not None:
        return f"the second array that both returns is not the derivative of g at field {position:.3g}"
    return None


def load_plugins_from_environment() -> None:
    """Run the files listed in the environment variable STATMECH_LOAD."""
    for file in filter(None, os.environ.get(PLUGIN_FILES_ENV_VARIABLE, "").split(os.pathsep)):
        if not Path(file).is_absolute():
            raise ConfigError(
                f"{PLUGIN_FILES_ENV_VARIABLE}={file}: is relative to the current folder: write the absolute path"
            )
        load_plugin(file)


def list_loaded_plugin_files() -> list[str]:
    """Return the plugin files run in this process, for workers to run as well."""
    return list(_loaded_modules)


def make_child_environment() -> dict[str, str]:
    """Return the environment for a child process that loads the same plugin files.

    The child does not import from the current folder: it may hold results from an unknown source, with modules that
    have the names of libraries.
    """
    return os.environ | {PLUGIN_FILES_ENV_VARIABLE: os.pathsep.join(_loaded_modules), SAFE_PATH_ENV_VARIABLE: "1"}


def _format_failure_line(path: Path, failure: Exception) -> str:
    """Return the line of a failure in a plugin file as ":line", or an empty string if unknown."""
    if isinstance(failure, SyntaxError):
        return f":{failure.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(failure.__traceback__) if frame.filename == str(path)]
    return f":{lines[-1]}" if lines else ""
