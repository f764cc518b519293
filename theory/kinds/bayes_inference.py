"""Bayes-optimal inference: state evolution from each start, its limit, and the phase transitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from statmech.kinds.bayes_inference import Inference, InferenceCell
from theory.convex.bayes_optimal import find_message_passing_state, iterate_state_evolution, solve_bayes_overlap
from theory.convex.thresholds import find_transition_alphas
from theory.kinds.cell_groups import CellVariables, solve_in_groups

SOURCE = "state evolution and free entropy, N -> infinity"
TRANSITION_VARIABLES = {"alpha": "alpha_alg"}  # by axis: variable that locates the first-order transition


def solve(scenario: Inference, cells: Sequence[InferenceCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell, evaluated at P/N.

    All ratios and starts for a prior and a teacher are solved in parallel.
    """
    return solve_line(scenario, [replace(cell, alpha=cell.P / cell.N) for cell in cells])


def solve_line(scenario: Inference, cells: Sequence[InferenceCell]) -> Iterator[CellVariables]:
    """Solve theory for a dense line, at alpha instead of P/N."""
    return solve_in_groups(
        cells, lambda cell: (cell.teacher, cell.weights), lambda members: _solve_group(members, scenario.steps)
    )


def _solve_group(cells: list[InferenceCell], steps: int) -> Iterator[CellVariables]:
    """Return the theoretical variables of inference cells with one prior and one teacher."""
    teacher, weights = cells[0].teacher, cells[0].weights
    alpha, starts = np.array([cell.alpha for cell in cells]), [cell.start for cell in cells]
    mse = iterate_state_evolution(teacher, weights, alpha, starts, steps)
    step_arrays = {"m": 1 - mse, "q": 1 - mse, "mse": mse, "eps_g": np.arctan2(np.sqrt(mse), np.sqrt(1 - mse)) / np.pi}
    alpha_it, alpha_alg = find_transition_alphas(teacher, weights)
    limit_arrays = {
        "free_entropy": find_message_passing_state(teacher, weights, alpha, starts).free_entropy,
        "q_bayes": solve_bayes_overlap(teacher, weights, alpha),
        "alpha_it": np.full(alpha.shape, alpha_it),
        "alpha_alg": np.full(alpha.shape, alpha_alg),
    }
    arrays = {**step_arrays, **limit_arrays}
    return ({name: values[index] for name, values in arrays.items()} for index in range(len(cells)))
