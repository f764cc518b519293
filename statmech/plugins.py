"""Files of a user's own, with rules that stand outside this package: `statmech --load my_rules.py run ...`.

A file is run before a config is read; what it adds to `statmech.RULES` is then known like any other rule. Processes and
workers that play blocks for a command run the same files. STATMECH_LOAD names files that every command loads.
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

FILES = "STATMECH_LOAD"  # several are separated as in PATH
_loaded: dict[str, ModuleType] = {}  # by absolute path


def load(file: str | Path) -> None:
    """Run a file, once a process. Raises `ConfigError`, with its line, for one that cannot be run."""
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
    """Try a rule at its default parameters, alone and traced. Raises `ConfigError` for what would fail later, or never.

    >>> check("adatron")
    """
    import jax

    try:
        rule = RULES[name]()
        parameters_of(rule)
        str(rule.label)
        rule.g(np.linspace(-8, 8, 9), 1.0)
        jax.eval_shape(rule.g, *[jax.ShapeDtypeStruct((2,), np.float32)] * 2)
        left_out = _jump(rule)
    except ScenarioError as problem:
        raise ConfigError(f'the rule "{name}": {problem}') from None
    except Exception as failure:
        told = str(failure).splitlines()[0]
        raise ConfigError(f'the rule "{name}": {type(failure).__name__}: {told}{_hint(failure)}') from None
    if left_out is not None:
        raise ConfigError(f'the rule "{name}": g jumps at stability {left_out:.3g}, which is not among its kinks')


def _hint(failure: Exception) -> str:
    arrays = "stabilities come as arrays, traced by JAX: write step(-kappa) for `if kappa < 0`"
    bad = "Tracer" in type(failure).__name__ or "truth value" in str(failure)
    return f"\n{arrays}, and namespace(kappa).tanh(kappa) for np.tanh(kappa)" if bad else ""


def _jump(rule: Rule) -> float | None:
    """A stability between -8 and 8 where g jumps and no kink is; quadrature across it would not converge."""
    edges = np.sort([-8.0, 8.0, *(kink for kink in map(float, rule.kinks) if -8 < kink < 8)])
    for low, high in itertools.pairwise(edges):
        margin, steps = 1e-6 * (high - low), np.zeros(1)
        while high - low > 1e-9:
            kappa = np.linspace(low + margin, high - margin, 1001)
            margin, steps = 0.0, abs(np.diff(np.broadcast_to(rule.g(kappa, 1.0), kappa.shape)))
            low, high = kappa[(at := int(np.argmax(steps)))], kappa[at + 1]
        if steps.max() > 1e-3:
            return float(low)
    return None


def load_named() -> None:
    """Run the files that the environment names."""
    for file in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
        load(file)


def loaded() -> list[str]:
    """The files that were run, for others to run them too."""
    return list(_loaded)


def for_children() -> dict[str, str]:
    """The environment of a process that must know what this one knows."""
    return os.environ | {FILES: os.pathsep.join(_loaded)}


def _line(path: Path, failure: Exception) -> str:
    """Where in the file it failed."""
    if isinstance(failure, SyntaxError):
        return f":{failure.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(failure.__traceback__) if frame.filename == str(path)]
    return f":{lines[-1]}" if lines else ""
