"""Walks with early stopping: their decision errors, and the fraction of features that they evaluate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.scenarios.stopping import Stopping, StoppingCell
from theory.stopping.walks import Decision, decision, error, many_looks, mean_share

EXACT = 400  # looks that are counted one by one: a second at most
STEPS = 2.0  # a level this many steps' deviations up may be raised by the overshoot


SOURCE = "Gaussian walks, exact densities"
PLACES = 60  # of a line: each costs milliseconds


def solve(scenario: Stopping, cells: Sequence[StoppingCell]) -> Iterator[dict[str, np.ndarray]]:
    """The variables of each cell.

    `decision_error` and `features` hold for the scenario's own looks: exactly up to 400 of them; beyond, by the
    overshoot, to 1e-4 (NaN where the level is lower than two steps' deviations, and that approximation fails).
    `decision_error_brownian` and `features_brownian` are the limit of infinitely many looks.
    """
    return (values(cell) for cell in cells)


def values(cell: StoppingCell) -> dict[str, np.ndarray]:
    """The variables of a cell, for sums of variance 1."""
    tau, drift, theta = cell.tau, cell.mean - cell.slope, cell.theta - cell.slope  # seen from the level
    decided = _at_looks(cell)
    return {
        "decision_error": np.asarray(decided.error),
        "features": np.asarray(decided.features / cell.N),
        "decision_error_brownian": error(tau, drift, 1.0, theta),
        "features_brownian": mean_share(tau, drift, 1.0),
    }


def _at_looks(cell: StoppingCell) -> Decision:
    spacing = cell.chunk / cell.N
    if cell.looks.size <= EXACT:
        return decision(cell.tau, cell.looks, cell.mean, 1.0, cell.theta, cell.slope)
    if cell.tau < STEPS * np.sqrt(spacing):
        return Decision(np.nan, np.nan)
    limit = many_looks(cell.tau, spacing, cell.mean, 1.0, cell.theta, cell.slope)
    return Decision(float(limit[0]), cell.N * float(limit[1]))
