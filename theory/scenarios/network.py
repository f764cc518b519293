"""Networks of two layers: order parameters from their equations, and the error from these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.scenarios.network import Network, NetworkCell
from statmech.scenarios.network_matrices import Units
from theory.networks import solve_cells

SOURCE = "order-parameter equations of networks, N -> infinity"


def solve(scenario: Network, cells: Sequence[NetworkCell]) -> Iterator[dict[str, np.ndarray]]:
    """The variables of each cell, in their order."""
    return (described(cell, units) for cell, units in zip(cells, solve_cells(cells, scenario.t), strict=True))


def attributes(scenario: Network) -> dict[str, str]:
    """How the activations' averages are computed: by closed forms, line integrals or quadrature."""
    found = {cell.name: cell.averages for cell in scenario.cells()}
    return {"averages": ", ".join(f"{name}: {how}" for name, how in found.items())}


def described(cell: NetworkCell, units: Units) -> dict[str, np.ndarray]:
    """The variables of one cell from its units R (..., K, M), Q (..., K, K) and v (..., K)."""
    return {
        "eps_g": generalization_error(cell, units),
        **units._asdict(),
        "specialisation": specialisation(units.R, units.Q, cell.T),
    }


# TODO at the merge: replace by statmech.network_error and statmech.specialisation


def generalization_error(cell: NetworkCell, units: Units) -> np.ndarray:
    """<e^2>/2 without the noise, from R (..., K, M), Q (..., K, K) and v (..., K)."""
    R, Q, v = units
    T = np.broadcast_to(cell.T, (*R.shape[:-2], *cell.T.shape))
    gram = np.moveaxis(np.block([[Q, R], [np.swapaxes(R, -1, -2), T]]), (-2, -1), (0, 1))
    K, n, found = cell.K, cell.K + cell.M, 0.0
    weights = np.concatenate([-np.moveaxis(v, -1, 0), np.ones((cell.M, *R.shape[:-2])) * _outer(cell, R)])
    for a in range(n):
        for b in range(n):
            C = gram[np.ix_([a, b], [a, b])]
            under = cell.sign and (a >= K or b >= K)
            average = (cell.activation.S2(C) if a < b else cell.activation.S2(C[::-1, ::-1])) if under else None
            average = (1.0 if a == b else average) if under else cell.activation.I2(C)
            found = found + weights[a] * weights[b] * average
    return np.asarray(found / 2)


def _outer(cell: NetworkCell, R: np.ndarray) -> np.ndarray:
    return (np.sign(cell.w) if cell.sign else cell.w).reshape(-1, *[1] * (R.ndim - 2))


def specialisation(R: np.ndarray, Q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """The mean cosine of min(K, M) pairs of a student and a teacher unit, in the best assignment."""
    from scipy.optimize import linear_sum_assignment

    lengths = np.sqrt(np.diagonal(Q, axis1=-2, axis2=-1)[..., :, None] * np.diagonal(T, axis1=-2, axis2=-1))
    cosines = np.where(lengths > 0, R, 0.0) / np.where(lengths > 0, lengths, 1.0)
    flat = cosines.reshape(-1, *cosines.shape[-2:])
    best = [one[linear_sum_assignment(one, maximize=True)].mean() for one in flat]
    return np.asarray(best).reshape(cosines.shape[:-2])
