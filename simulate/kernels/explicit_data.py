r"""Descent on P stored examples with explicit weights and inputs, an engine without assumptions.

Each step multiplies the inputs of its batch by the weights, and the slopes by the inputs. The teacher is drawn from its
prior. The component of the start perpendicular to the teacher is a normal vector.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulate.kernels.descent_record import DescentRecord
from simulate.kernels.example_batches import iterate_batches
from statmech.convex.penalties import Penalty
from statmech.scenarios.descent import DescentCell

NUM_EXPLICIT_WORK_VECTORS = 8  # once with length P, and once with length N
UNIT_LASSO_PENALTY = Penalty(1.0)


def run(cell: DescentCell, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Simulate one run and return its variables at the recorded steps.

    >>> from statmech import Descent
    >>> cell = next(Descent(loss="square", descent="gradient", N=1000, alpha=1, epochs=[0, 1], eta=0.1).cells())
    >>> run(cell, np.random.default_rng(0))["R"].round(1)
    array([0. , 0.6])
    """
    record, root = DescentRecord(cell), np.sqrt(cell.N)
    teacher = cell.weights.draw(rng, cell.N)
    initial_weights = draw_initial_weights(cell, teacher, rng)
    X = rng.standard_normal((cell.P, cell.N))
    X /= root
    y = cell.teacher.draw(rng, X @ teacher)
    with np.errstate(all="ignore"):  # a run may diverge
        for step, w in zip(range(cell.steps[-1] + 1), _iterate_weights(cell, initial_weights, X, y, rng), strict=False):
            if step in record.places:
                parallel = w @ teacher / cell.N
                perpendicular = float(np.linalg.norm(w - parallel * teacher)) / root
                record.write(step, parallel, perpendicular, compute_stability_or_residual(cell, X @ w, y))
    return record.variables()


def _iterate_weights(
    cell: DescentCell, initial_weights: np.ndarray, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the weights (N,) before each step."""
    state, (l1, l2) = cell.descent.start(initial_weights), cell.strengths
    for step, rows in enumerate(iterate_batches(cell, rng)):
        yield state[0]
        z, rate = cell.descent.query(state), cell.rate(step)
        state = cell.descent.next(
            state, compute_batch_force(cell, X[rows], y[rows], z) + cell.batch * l2 * z, rate, step
        )
        if l1:
            state = UNIT_LASSO_PENALTY.prox(state[0], l1, rate * cell.batch), *state[1:]


def draw_initial_weights(cell: DescentCell, teacher: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw initial weights (N,) with a given length and cosine with the teacher."""
    normal = rng.standard_normal(cell.N)
    normal -= (normal @ teacher / cell.N) * teacher
    perpendicular = normal * (np.sqrt(cell.N) / np.linalg.norm(normal))
    return cell.length * (cell.R * teacher + np.sqrt(1 - cell.R**2) * perpendicular)


def compute_stability_or_residual(cell: DescentCell, h: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the stabilities of labels or the residuals of real outputs from fields h."""
    return y * h if cell.teacher.labels else y - h


def compute_batch_force(cell: DescentCell, X: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Compute the force (N,) of a batch at weights z.

    The force is the sum of the inputs / sqrt(N) times the derivatives of the losses with respect to the fields.
    """
    slope = cell.loss_for_teacher_outputs.slope(compute_stability_or_residual(cell, X @ z, y))
    return (y * slope if cell.teacher.labels else -slope) @ X


def estimate_run_bytes(cell: DescentCell) -> float:
    """Return the memory in bytes of a run: all inputs, the inputs of a batch, and vectors."""
    copied = cell.batch if cell.batch < 1 else 0.0
    return 8.0 * (cell.P * cell.N * (1 + copied) + NUM_EXPLICIT_WORK_VECTORS * (cell.P + cell.N))
