"""Theory of convex losses on two Gaussian clusters, for each parameter combination at its P/N.

`lam: best` has the same meaning in runs and theory: the best penalty at alpha.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from statmech.convex.separability_thresholds import compute_cluster_separability_threshold
from statmech.kinds.risk_clusters import ClusterCell, Clusters
from theory.convex.gaussian_clusters import (
    compute_best_plane_error,
    compute_learnt_separation,
    find_best_cluster_penalties,
    solve_cluster_minimum,
)
from theory.kinds.cell_groups import (
    CellVariables,
    get_example_ratio,
    get_sample_size,
    omit_unused_penalties,
    solve_penalised_cells,
)
from theory.kinds.cell_groups import searched_penalties as searched_penalties

SOURCE = "replica-symmetric, N -> infinity"


def solve(scenario: Clusters, cells: Sequence[ClusterCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell, evaluated at P/N.

    Values are NaN where the loss has no minimum.
    """
    return solve_penalised_cells(scenario, cells, get_example_ratio, find_best_cluster_penalties, _solve_points)


def solve_line(scenario: Clusters, cells: Sequence[ClusterCell]) -> Iterator[CellVariables]:
    """Solve theory for a dense line, at alpha instead of P/N.

    The best penalty is omitted if no cell needs it.
    """
    find_best_penalties = omit_unused_penalties(cells, find_best_cluster_penalties)
    return solve_penalised_cells(scenario, cells, get_sample_size, find_best_penalties, _solve_points)


def _solve_points(cell: ClusterCell, alpha: np.ndarray, lam: np.ndarray) -> Mapping[str, np.ndarray | float]:
    """Return the theoretical variables of a risk cell with two clusters at each alpha and lambda (batch,)."""
    loss, clusters, intercept = cell.setting
    separations = (compute_learnt_separation(clusters, value) for value in alpha.tolist())
    return {
        **solve_cluster_minimum(loss, clusters, alpha, lam, intercept)._asdict(),
        "alpha_c": compute_cluster_separability_threshold(clusters, intercept),
        "eps_bayes": np.array([compute_best_plane_error(value, clusters.positives) for value in separations]),
        "eps_known": compute_best_plane_error(clusters.separation, clusters.positives),
    }
