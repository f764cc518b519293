"""Solve a scenario of any kind."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from statmech.errors import ScenarioError
from statmech.results.dataset import Progress
from statmech.scenarios.base import Sweep

if TYPE_CHECKING:
    import xarray as xr

SOLVERS = {
    "rule": "scenarios.online",
    "learner": "scenarios.stored_examples",
    "boundary": "scenarios.stopping",
    "attention": "scenarios.attention",
    "booster": "boosting",
}  # modules, by the key that tells scenarios apart


def solve(scenario: Sweep, progress: Progress | None = None) -> xr.Dataset:
    """The theory of a scenario in the limit N -> infinity, as a Dataset on (sweep axes, recorded moments).

    Of a `Scenario`: R, q, length and eps_g follow eqs (3.5) and (3.6) of Miyoshi, Hara & Okada, the ensemble's errors
    their eq (3.2); see `theory.online` and `theory.ensemble`. For unequal students `eps_g_majority_vote_error` is the
    standard error of the vote's integration. Of `StoredExamples`: R, eps_g and kappa of each learner's limit
    (`theory.replica`), NaN where it does not exist; the same at all moments, for it is that of infinitely many updates.
    Of `Boosting`: bounds on stages, eps_g and advantage at this N and P (`theory.boosting`).
    Raises `ScenarioError` for inputs without equations, `SolverError` naming a cell that cannot be solved.

    >>> from statmech import Scenario, StoredExamples
    >>> sol = solve(Scenario(rule="hebb", K=2, t=[1, 10]))
    >>> sol.R.isel(student=0).values.round(6)
    array([0.491379, 0.923401])
    >>> round(solve(StoredExamples(learner="minover", alpha=2)).kappa.item(), 6)
    0.454578
    """
    if not isinstance(scenario, Sweep):
        raise TypeError(f"a scenario is solved, such as statmech.load({scenario!r}), not {type(scenario).__name__}")
    if scenario.unsolved:
        raise ScenarioError([((), scenario.unsolved)])
    made: xr.Dataset = import_module(f"theory.{SOLVERS[scenario.CHOICE]}").solve(scenario, progress)
    return made
