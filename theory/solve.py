"""Solve every cell of a scenario: order parameters from the equations, errors of the ensemble from the integrals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statmech import order_parameters
from statmech.compiled import use_cache
from statmech.dataset import Progress, blank, describe, fill, gram_of, tracked
from statmech.errors import ScenarioError
from statmech.scenario import Cell, Scenario
from theory.ensemble import majority_vote, vote_of, weight_mean
from theory.online import Students, angle, pairs, solve_cells

if TYPE_CHECKING:
    import xarray as xr


def solve(scenario: Scenario, progress: Progress | None = None) -> xr.Dataset:
    """The theory of a scenario in the limit N -> infinity, as a Dataset on (sweep axes, t, student).

    R, q, length and eps_g follow eqs (3.5) and (3.6) of Miyoshi, Hara & Okada, the ensemble's errors their eq (3.2);
    see `theory.online` and `theory.ensemble`. For unequal students `eps_g_majority_vote_error` is the standard error
    of the vote's integration. Raises `theory.SolverError` naming a cell whose equations cannot be integrated.

    >>> from statmech import Scenario
    >>> sol = solve(Scenario(rule="hebb", K=2, t=[1, 10]))
    >>> sol.R.isel(student=0).values.round(6)
    array([0.491379, 0.923401])
    """
    use_cache()
    if not scenario.isotropic:
        raise ScenarioError([(("inputs",), "theory has equations for isotropic inputs only")])
    cells = list(scenario.cells())
    dataset = blank(scenario, seeds=None, title="statmech theory", source="order-parameter equations, N -> infinity")
    solved = solve_cells(cells, scenario.t)
    unequal = not all(cell.alike for cell in cells)
    if unequal:
        attrs = {"long_name": "standard error of the vote's integration", "units": "1"}
        dataset["eps_g_majority_vote_error"] = (dataset.eps_g_majority_vote * np.nan).assign_attrs(attrs)
    for cell, students in tracked(zip(cells, solved, strict=True), len(cells), progress):
        values = _alike(cell, students) if cell.alike else _unlike(cell, students)
        if not scenario.gram:
            values.pop("gram")
        fill(dataset, cell, values)
    return dataset


def _alike(cell: Cell, students: Students) -> dict[str, np.ndarray]:
    """One student stands for all K."""
    theta, length, c = angle(students)[:, 0], np.exp(students.log_length[:, 0]), students.c[:, 0]
    one = {
        "R": 1 - students.y[:, 0],
        "q": np.cos(order_parameters.angle_between(theta, theta, c)) if cell.K > 1 else np.full(theta.shape, np.nan),
        "length": length,
        "eps_g": theta / np.pi,
    }
    K = np.full(theta.shape, float(cell.K))
    everyone = np.full((theta.size, cell.K), 0)
    along, across = _vectors(
        theta[:, None] + everyone, length[:, None] + everyone, _full(c[:, None], cell.K, alike=True)
    )
    return {
        **{name: np.repeat(value[:, None], cell.K, axis=1) for name, value in one.items()},
        "eps_g_majority_vote": majority_vote(theta, c, K),
        "eps_g_weight_mean": weight_mean(theta, c, K),
        "gram": gram_of(along, across),
    }


def _unlike(cell: Cell, students: Students) -> dict[str, np.ndarray]:
    theta, length = angle(students), np.exp(students.log_length)
    along, across = _vectors(theta, length, _full(students.c, cell.K, alike=False))
    vote = vote_of(along, order_parameters.square_root(across))
    return {
        **describe(along, across),
        "eps_g_majority_vote": vote.value,
        "eps_g_majority_vote_error": vote.error,
        "gram": gram_of(along, across),
    }


def _vectors(theta: np.ndarray, length: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Students' parts along the teacher, and the Gram matrices of their parts across it."""
    across = length * np.sin(theta)
    return length * np.cos(theta), across[..., :, None] * c * across[..., None, :]


def _full(c: np.ndarray, K: int, alike: bool) -> np.ndarray:
    """The K x K matrices of transverse cosines from those of the pairs followed."""
    matrix = np.ones((c.shape[0], K, K))
    first, second = np.triu_indices(K, 1) if alike else pairs(K)
    matrix[:, first, second] = matrix[:, second, first] = c
    return matrix
