"""Theory of one unit on the sphere: the time until it finds its teacher, at finite N and in the limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.kinds.fixed_length_network import FixedLengthCell, FixedLengthNetwork
from theory.networks.hitting_times import get_cell_hitting_time

SOURCE = "first passage of R, at finite N"


def solve(scenario: FixedLengthNetwork, cells: Sequence[FixedLengthCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell in order, empty for cells with trial steps."""
    return ({} if cell.task.trial is not None or cell.target is None else _compute_variables(cell) for cell in cells)


def _compute_variables(cell: FixedLengthCell) -> dict[str, np.ndarray]:
    """Return the time of passage, its standard deviation and its law for large N, the exponent and the best rate."""
    time = get_cell_hitting_time(cell)
    values = {
        "t_until": time.mean,
        "t_until_std": time.std,
        "t_until_limit": time.asymptote,
        "exponent": time.exponent,
        "eta_best": time.best_eta,
    }
    return {name: np.asarray(value, float) for name, value in values.items()}
