"""Play out a scenario of any kind."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from statmech.compiled import use_cache
from statmech.dataset import Progress
from statmech.sweep import Sweep

if TYPE_CHECKING:
    import xarray as xr

PLAYERS = {
    "rule": "online",
    "learner": "stored",
    "boundary": "walks",
    "attention": "attentive",
    "booster": "boosting",
    "classifier": "study",
}  # modules, by the key that tells scenarios apart


def run(scenario: Sweep, progress: Progress | None = None) -> xr.Dataset:
    """Simulate a scenario: a Dataset on (sweep axes, seed, recorded moments).

    Of a `Scenario`: R, q, length, eps_g, ... on t and student; of `StoredExamples`: R, eps_g, kappa, ... on epochs;
    of `Boosting`: stages, eps_g, advantage, weights.
    The same scenario gives the same bits, and more seeds or values on an axis change none of the old numbers.
    Raises `ScenarioError` for what does not fit into this machine's memory.

    >>> from statmech import Scenario, StoredExamples
    >>> sim = run(Scenario(rule="hebb", K=2, N=100, t=[0, 1], seeds=4))
    >>> dict(sim.R.sizes)
    {'seed': 4, 't': 2, 'student': 2}
    >>> sim = run(StoredExamples(learner=["minover", "max_stability"], N=20, alpha=2, seeds=4))
    >>> bool((sim.kappa[0] <= sim.kappa[1]).all())
    True
    """
    use_cache()
    made: xr.Dataset = _player(scenario).run(scenario, progress)
    return made


def remarks(scenario: Sweep) -> list[str]:
    """What a user should know of how a scenario will be played."""
    told: list[str] = getattr(_player(scenario), "remarks", lambda scenario: [])(scenario)
    return told


def _player(scenario: Sweep) -> ModuleType:
    return import_module(f"simulate.{PLAYERS[scenario.CHOICE]}")
