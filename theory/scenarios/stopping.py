"""Theory of walks with early stopping: decision errors, and fractions of evaluated features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.scenarios.stopping import Stopping, StoppingCell
from theory.stopping.walks import Decision, approximate_decision, error, exact_decision, mean_evaluated_fraction

MAX_EXACT_CHECKS = 400  # exact densities then take at most a second
MIN_LEVEL_IN_STEP_STDS = 2.0  # standard deviations of a step: below, the overshoot approximation fails

SOURCE = "Gaussian walks, exact densities"
LINE_POINTS = 60  # each point takes milliseconds  # style: ok


def solve(scenario: Stopping, cells: Sequence[StoppingCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell.

    `decision_error` and `features` hold for the scenario's own boundary checks: exactly for up to 400 checks, and to
    1e-4 by the overshoot approximation for more checks. They are NaN where this approximation fails, for levels below
    two standard deviations of a step. `decision_error_brownian` and `features_brownian` are the limit of infinitely
    many checks.
    """
    return (compute_variables(cell) for cell in cells)


def compute_variables(cell: StoppingCell) -> dict[str, np.ndarray]:
    """Return the variables of a cell, for sums of variance 1."""
    tau, drift, theta = (
        cell.tau,
        cell.mean - cell.boundary_rise,
        cell.theta - cell.boundary_rise,
    )  # relative to the level
    decided = _compute_decision(cell)
    return {
        "decision_error": np.asarray(decided.error),
        "features": np.asarray(decided.features / cell.N),
        "decision_error_brownian": error(tau, drift, 1.0, theta),
        "features_brownian": mean_evaluated_fraction(tau, drift, 1.0),
    }


def _compute_decision(cell: StoppingCell) -> Decision:
    spacing = cell.chunk / cell.N
    if cell.check_positions.size <= MAX_EXACT_CHECKS:
        return exact_decision(cell.tau, cell.check_positions, cell.mean, 1.0, cell.theta, cell.boundary_rise)
    if cell.tau < MIN_LEVEL_IN_STEP_STDS * np.sqrt(spacing):
        return Decision(np.nan, np.nan)
    limit = approximate_decision(cell.tau, spacing, cell.mean, 1.0, cell.theta, cell.boundary_rise)
    return Decision(float(limit[0]), cell.N * float(limit[1]))
