"""Theory of boosted sparse perceptrons: bounds that hold for each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.scenarios.boosting import Boosting, BoostingCell
from theory.boosting.bounds import BOUND_FAILURE_PROBABILITY, compute_boosting_bounds

SOURCE = (
    "Bounds of Jackson & Craven, Lemmas 1 and 2; "
    f"the bound on eps_g holds in at least {1 - BOUND_FAILURE_PROBABILITY:.0%} of runs"
)


def solve(scenario: Boosting, cells: Sequence[BoostingCell]) -> Iterator[dict[str, np.ndarray]]:
    """Compute the bounds that hold for the runs of each cell."""
    return ({name: np.asarray(bound) for name, bound in compute_boosting_bounds(cell).items()} for cell in cells)
