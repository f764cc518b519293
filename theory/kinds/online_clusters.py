"""Theory of a student that learns two clusters online, for each parameter combination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from statmech.kinds.online_clusters import OnlineClusterCell, OnlineClusters
from theory.convex.gaussian_clusters import compute_best_plane_error, compute_learnt_separation
from theory.online.gaussian_clusters import ClusterTrajectory, solve_cells

SOURCE = "order-parameter equations, N -> infinity"


def solve(scenario: OnlineClusters, cells: Sequence[OnlineClusterCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell with clusters learnt online, in order.

    Cells that differ only in N share their equations.
    """
    first: dict[Any, OnlineClusterCell] = {}
    for cell in cells:
        first.setdefault(_make_equation_key(cell), cell)
    trajectories = dict(
        zip(first, solve_cells(((cell, cell.clusters_with_modes) for cell in first.values()), scenario.t), strict=True)
    )
    return (_compute_variables(cell, trajectories[_make_equation_key(cell)], scenario.t) for cell in cells)


def _make_equation_key(cell: OnlineClusterCell) -> tuple[Any, ...]:
    """Return a key of everything that determines a cell's equations.

    All cells share the same start.
    """
    return cell.rule, cell.clusters, cell.inputs, *cell.nondefault_time_dependence.items()


def _compute_variables(
    cell: OnlineClusterCell, trajectory: ClusterTrajectory, times: Sequence[float]
) -> dict[str, np.ndarray]:
    """Return the trajectory of a student of clusters learnt online, and Bayes-optimal errors for its examples."""
    clusters = cell.clusters_with_modes
    bayes = [compute_best_plane_error(compute_learnt_separation(clusters, t), clusters.positives) for t in times]
    known_error = compute_best_plane_error(clusters.separation, clusters.positives)
    return {**trajectory._asdict(), "eps_bayes": np.array(bayes), "eps_known": np.asarray(known_error)}
