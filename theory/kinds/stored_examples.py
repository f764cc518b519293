"""Theory of learning from stored examples: the learning curve of each learner for N -> infinity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.kinds.stored_examples import StoredExamples, StoredExamplesCell
from theory.stored_examples.learning_curves_and_bounds import solve_learner_curve

SOURCE = "replica-symmetric, N -> infinity"


def find_singularities(scenario: StoredExamples) -> dict[str, tuple[float, ...]]:
    """Return alpha = 1, where the error of the pseudo-inverse has a cusp of height 1/2."""
    return {"alpha": (1.0,)}


def solve(scenario: StoredExamples, cells: Sequence[StoredExamplesCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each learner of stored examples, the same at all recorded times.

    A learner without a known limit has no variables.
    """
    groups: dict[tuple[str, float], list[StoredExamplesCell]] = {}
    for cell in cells:
        if cell.learner.limit is not None:
            groups.setdefault((cell.learner.limit, cell.flip), []).append(cell)
    variables: dict[tuple[int, ...], dict[str, np.ndarray]] = {}
    for (limit, flip), members in groups.items():
        curve = solve_learner_curve(limit, np.array([cell.P / cell.N for cell in members]), flip)
        for cell, theta, kappa in zip(members, curve.theta, curve.kappa, strict=True):
            variables[cell.index] = {"R": np.cos(theta), "eps_g": theta / np.pi, "kappa": kappa}
    return (variables.get(cell.index, {}) for cell in cells)
