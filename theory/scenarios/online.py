"""Online learning: order parameters from the equations, errors of the ensemble from integrals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech import order_parameters
from statmech.equal_students import majority_vote, weight_mean
from statmech.results.dataset import describe, gram_of
from statmech.scenarios.online import Cell, Scenario
from theory.ensemble import vote_of
from theory.online import Students, solve_cells

SOURCE = "order-parameter equations, N -> infinity"


def solve(scenario: Scenario, cells: Sequence[Cell]) -> Iterator[dict[str, np.ndarray]]:
    """The variables of each cell, in their order."""
    return _views(cells, solve_cells(list(cells), scenario.t), scenario.gram)


def _views(cells: Sequence[Cell], solved: list[Students], gram: bool) -> Iterator[dict[str, np.ndarray]]:
    """Each cell's arrays; cells whose students are alike are computed in one call per K."""
    groups: dict[int, list[int]] = {}
    for at, cell in enumerate(cells):
        if cell.alike:
            groups.setdefault(cell.K, []).append(at)
    alike: dict[int, dict[str, np.ndarray]] = {}
    for K, members in groups.items():
        values = _alike(K, Students(*map(np.stack, zip(*(solved[at] for at in members), strict=True))), gram)
        alike |= {at: {name: array[i] for name, array in values.items()} for i, at in enumerate(members)}
    for at in range(len(cells)):
        yield alike[at] if at in alike else _unlike(solved[at], gram)


def _alike(K: int, students: Students, gram: bool) -> dict[str, np.ndarray]:
    """One student stands for all K; arrays may have any leading axes."""
    theta, length, c = (
        order_parameters.angle_from_versine(students.y)[..., 0],
        np.exp(students.log_length[..., 0]),
        students.c[..., 0],
    )
    q = np.cos(order_parameters.angle_between(theta, theta, c)) if K > 1 else np.full(theta.shape, np.nan)
    one = {"R": 1 - students.y[..., 0], "q": q, "length": length, "eps_g": theta / np.pi}
    values = {name: np.repeat(value[..., None], K, axis=-1) for name, value in one.items()}
    values["eps_g_majority_vote"] = majority_vote(theta, c, np.asarray(float(K)))
    values["eps_g_weight_mean"] = weight_mean(theta, c, np.asarray(float(K)))
    if gram:
        everyone = np.zeros((*theta.shape, K))
        cosines = _full(np.repeat(c[..., None], K * (K - 1) // 2, axis=-1), K)
        values["gram"] = gram_of(*_vectors(theta[..., None] + everyone, length[..., None] + everyone, cosines))
    return values


def _unlike(students: Students, gram: bool) -> dict[str, np.ndarray]:
    theta, length = order_parameters.angle_from_versine(students.y), np.exp(students.log_length)
    along, across = _vectors(theta, length, _full(students.c, theta.shape[-1]))
    vote = vote_of(along, across)
    return {
        **describe(along, across),
        "eps_g_majority_vote": vote.value,
        "eps_g_majority_vote_error": vote.error,
        **({"gram": gram_of(along, across)} if gram else {}),
    }


def _vectors(theta: np.ndarray, length: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Students' parts along the teacher, and the Gram matrices of their parts across it."""
    across = length * np.sin(theta)
    return length * np.cos(theta), across[..., :, None] * c * across[..., None, :]


def _full(c: np.ndarray, K: int) -> np.ndarray:
    """The K x K matrices of transverse cosines from those of the pairs, row by row of the upper triangle."""
    matrix = np.ones((*c.shape[:-1], K, K))
    first, second = np.triu_indices(K, 1)
    matrix[..., first, second] = matrix[..., second, first] = c
    return matrix
