r"""Descent on P stored examples with explicit weights and inputs, and the batches and records of both engines.

Engine: this engine makes no assumptions. Each step multiplies the inputs of its batch by the weights, and the slopes by
the inputs. The teacher is drawn from its prior. The component of the start perpendicular to the teacher is a normal
vector.

Shared parts: the engine without stored inputs (`simulate.convex.deferred_descent`) also uses the batches of examples
for the steps, and the record of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, repeat

import numpy as np

from statmech.convex.losses import Penalty
from statmech.convex.teachers import LabelTeacher, label_error
from statmech.kinds.gradient_descent import DescentCell
from statmech.students.order_parameters import compute_student_order_parameters


class DescentRecord:
    """The weights relative to the teacher, and the loss and errors on the examples, at each recorded step.

    A run that overflows is NaN from its first overflow onwards.
    """

    def __init__(self, cell: DescentCell):
        self.cell = cell
        self.places = {step: index for index, step in enumerate(cell.steps)}
        self.values = np.full((4, len(cell.steps)), np.nan)

    def write(self, step: int, parallel: float, perpendicular: float, stabilities_or_residuals: np.ndarray) -> None:
        """Record the components of w/sqrt(N) and the stabilities or residuals (P,) of all examples."""
        wrong = np.mean((1 - np.sign(stabilities_or_residuals)) / 2)
        self.values[:, self.places[step]] = (
            parallel,
            perpendicular,
            np.mean(self.cell.loss_for_teacher_outputs.value(stabilities_or_residuals)),
            wrong,
        )

    def variables(self) -> dict[str, np.ndarray]:
        """Return the variables of the run at the recorded steps."""
        overflowed = ~np.isfinite(self.values[:3]).all(axis=0)
        self.values[:, np.maximum.accumulate(overflowed)] = np.nan
        parallel, perpendicular, loss, wrong = self.values
        with np.errstate(invalid="ignore"):
            student = compute_student_order_parameters(parallel, perpendicular)
        at_zero = student["length"] == 0  # a student of length 0 guesses at random
        student["R"][at_zero], student["eps_g"][at_zero] = 0.0, 0.5
        if isinstance(self.cell.teacher, LabelTeacher):
            fresh = {"eps_y": label_error(self.cell.teacher, student["R"]), "eps_t": wrong}
        else:
            fresh = {"mse": (parallel - 1) ** 2 + perpendicular**2}
        return student | fresh | {"train_loss": loss}


ALL_EXAMPLES = slice(None)


def iterate_batches(cell: DescentCell, rng: np.random.Generator) -> Iterator[np.ndarray | slice]:
    """Yield the row indices of each step's examples, endlessly.

    With replacement, each batch is a random subset, a fraction b of the examples. Shuffled, the examples are divided
    into 1/b batches once an epoch, each of nearly the same size.

    >>> from statmech import Descent
    >>> cell = next(Descent(loss="square", descent="gradient", N=2, alpha=3, batch=0.5).cells())
    >>> steps = iterate_batches(cell, np.random.default_rng(0))
    >>> sorted(np.concatenate([next(steps), next(steps)]).tolist())
    [0, 1, 2, 3, 4, 5]
    """
    if cell.batch == 1:
        return repeat(ALL_EXAMPLES)
    return (
        _iterate_random_batches(cell, rng) if cell.sampling == "replacement" else _iterate_shuffled_batches(cell, rng)
    )


def _iterate_random_batches(cell: DescentCell, rng: np.random.Generator) -> Iterator[np.ndarray]:
    size = max(1, round(cell.batch * cell.P))
    while True:
        yield rng.choice(cell.P, size, replace=False, shuffle=False)


def _iterate_shuffled_batches(cell: DescentCell, rng: np.random.Generator) -> Iterator[np.ndarray]:
    edges = [cell.P * batch // cell.batches_per_epoch for batch in range(cell.batches_per_epoch + 1)]
    while True:
        order = rng.permutation(cell.P)
        yield from (order[first:last] for first, last in pairwise(edges))


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
