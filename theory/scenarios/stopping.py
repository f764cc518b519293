"""Solve a scenario of walks that may stop: its decision errors and the features it evaluates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statmech.results.dataset import Progress, arrays_of, blank, tracked
from statmech.scenarios.stopping import Stopping, StoppingCell
from theory.stopping import Decision, decision, error, many_looks, mean_share

if TYPE_CHECKING:
    import xarray as xr

EXACT = 400  # looks that are counted one by one: a second at most
STEPS = 2.0  # a level this many steps' deviations up may be raised by the overshoot


def solve(scenario: Stopping, progress: Progress | None = None) -> xr.Dataset:
    """The theory of a scenario: see `theory.solve`.

    `decision_error` and `features` at the scenario's own looks: exactly up to 400 of them, beyond by the overshoot,
    right to 1e-4 (NaN where the level is lower than two steps' deviations, and that does not hold).
    `decision_error_brownian` and `features_brownian` are the limit of many looks.
    """
    dataset = blank(scenario, seeds=None, title="statmech theory", source="Gaussian walks, exact densities")
    for name in scenario.variables:
        told = {"long_name": f"{dataset[name].long_name}, with infinitely many looks", "units": "1"}
        dataset[f"{name}_brownian"] = (dataset[name] * np.nan).assign_attrs(told)
    arrays, cells = arrays_of(dataset), list(scenario.cells())
    for cell in tracked(cells, len(cells), progress):
        for name, value in values(cell).items():
            arrays[name][cell.index] = value
    return dataset


def values(cell: StoppingCell) -> dict[str, float]:
    """A cell's variables, for sums of variance 1."""
    tau, drift, theta = cell.tau, cell.mean - cell.slope, cell.theta - cell.slope  # seen from the level
    told = _at_looks(cell)
    return {
        "decision_error": told.error,
        "features": told.features / cell.N,
        "decision_error_brownian": float(error(tau, drift, 1.0, theta)),
        "features_brownian": float(mean_share(tau, drift, 1.0)),
    }


def _at_looks(cell: StoppingCell) -> Decision:
    apart = cell.chunk / cell.N
    if cell.looks.size <= EXACT:
        return decision(cell.tau, cell.looks, cell.mean, 1.0, cell.theta, cell.slope)
    if cell.tau < STEPS * np.sqrt(apart):
        return Decision(np.nan, np.nan)
    found = many_looks(cell.tau, apart, cell.mean, 1.0, cell.theta, cell.slope)
    return Decision(float(found[0]), cell.N * float(found[1]))
