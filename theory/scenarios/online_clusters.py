"""Theory of a student that learns two clusters online, for each parameter combination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from statmech.convex.clusters import error_at
from statmech.scenarios.online_clusters import OnlineClusterCell, OnlineClusters
from theory.online.clusters import Course, solve_cells

SOURCE = "order-parameter equations, N -> infinity"


def solve(scenario: OnlineClusters, cells: Sequence[OnlineClusterCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the variables of each cell in order.

    Cells that differ only in N share their equations.
    """
    first: dict[Any, OnlineClusterCell] = {}
    for cell in cells:
        first.setdefault(_equations(cell), cell)
    trajectories = dict(zip(first, solve_cells(((cell, cell.two) for cell in first.values()), scenario.t), strict=True))
    return (_variables(cell, trajectories[_equations(cell)], scenario.t) for cell in cells)


def _equations(cell: OnlineClusterCell) -> tuple[Any, ...]:
    """Return a key with everything that determines the equations.

    All cells share the same start.
    """
    return cell.rule, cell.clusters, cell.inputs, *cell.changes.items()


def _variables(cell: OnlineClusterCell, course: Course, times: Sequence[float]) -> dict[str, np.ndarray]:
    """Return the student's trajectory with the errors of the Bayes-optimal learner for the same number of examples."""
    clusters = cell.two
    bayes = [error_at(clusters.learnt(t), clusters.positives) for t in times]
    known_error = error_at(clusters.separation, clusters.positives)
    return {**course._asdict(), "eps_bayes": np.array(bayes), "eps_known": np.asarray(known_error)}
