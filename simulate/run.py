"""Play out a scenario of any kind."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from simulate.execution.units import attrs, check, played
from statmech.jax_cache import use_cache
from statmech.results.dataset import Progress, arrays_of, blank, fill, tracked
from statmech.scenarios.base import Sweep

if TYPE_CHECKING:
    import xarray as xr

PLAYERS = {
    "rule": "online",
    "learner": "stored_examples",
    "boundary": "stopping",
    "attention": "attention",
    "booster": "boosting",
    "classifier": "cross_validation",
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
    player, cells = player_of(scenario), list(scenario.cells())
    check(player, scenario)
    dataset = blank(scenario, seeds=scenario.seeds, title="statmech simulation", **attrs(player, scenario))
    arrays, units = arrays_of(dataset), list(player.units(scenario, cells, range(scenario.seeds)))
    for _, found in tracked(played(player, scenario, units), len(units), progress):
        if isinstance(found, Exception):
            raise found
        for one in found:
            fill(arrays, one.where, one.values, one.seeds)
    return dataset


def remarks(scenario: Sweep) -> list[str]:
    """What a user should know of how a scenario will be played."""
    told: list[str] = getattr(player_of(scenario), "remarks", lambda scenario: [])(scenario)
    return told


def player_of(scenario: Sweep) -> ModuleType:
    """The module that plays a scenario's kind."""
    if not isinstance(scenario, Sweep):
        raise TypeError(f"a scenario is played, such as statmech.load({scenario!r}), not {type(scenario).__name__}")
    return import_module(f"simulate.scenarios.{PLAYERS[scenario.CHOICE]}")
