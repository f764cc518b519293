r"""Two engines of descent on P stored examples at finite N, and the batches and records that both use.

**Explicit inputs.** This engine makes no assumptions. Each step multiplies the inputs of its batch by the weights, and
the slopes by the inputs. The teacher is drawn from its prior. The component of the start perpendicular to the teacher
is a normal vector.

**Deferred inputs.** This engine stores no inputs: only the needed products are drawn. The inputs X (P, N) are
independent normals. A run needs the fields :math:`X\mathbf w/\sqrt N` of weights and the forces
:math:`X^T\mathbf G/\sqrt N` of slopes. Let :math:`\mathbf w = \sqrt N\sum_k w_k\mathbf e_k` in orthonormal directions
with known images :math:`\mathbf A_k = X\mathbf e_k`, the teacher's direction first. The fields of w are
:math:`\sum_k w_k\mathbf A_k`. Let past slopes be combinations of orthonormal vectors :math:`\mathbf f_j`. Given all
products drawn so far, X is known on the span of the :math:`\mathbf e_k` and its transpose on the span of the
:math:`\mathbf f_j`. On the complements of both spans X is normal as before. A new :math:`\mathbf f` is the component of
the slopes orthogonal to the old f, divided by its length :math:`\gamma`. It has the product :math:`X^T\mathbf f =
\sum_k(\mathbf A_k\cdot\mathbf f)\,\mathbf e_k - \chi\,\mathbf e`. Here :math:`\chi^2` is the sum of N - n squared
normals if n directions are known, and :math:`\mathbf e` is a new direction, with the sign of the descent.

The force has the components :math:`\mathbf A_k\cdot\mathbf G/N` and, along :math:`\mathbf e`, :math:`-\gamma\chi/N`.
The image of :math:`\mathbf e` is 0 along the old f, whose products lie in the span of the old directions, and
:math:`-\chi` along the new f: :math:`X\mathbf e = \mathbf z - \chi\mathbf f`, with :math:`\mathbf z` normal in the
complement of all f. Thus a step multiplies some vectors of length P instead of X, and runs are distributed as with
explicit inputs, at any N ("Householder dice", Lu 2021, arXiv:2101.07464). Once N directions are known, X is determined
and nothing more is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, repeat

import numpy as np

from statmech.convex.losses import Penalty
from statmech.convex.teachers import LabelTeacher, label_error
from statmech.kinds.gradient_descent import DescentCell
from statmech.students.student_geometry import compute_student_order_parameters

ALL_EXAMPLES = slice(None)
UNIT_LASSO_PENALTY = Penalty(1.0)
NUM_EXPLICIT_WORK_VECTORS = 8  # once with length P, and once with length N
MIN_NEW_DIRECTION_LENGTH = 1e-9  # relative to the length of the slopes: a smaller new component is rounding error
NUM_DEFERRED_WORK_VECTORS = (
    8  # length P each, in addition to A and f: outputs, slopes, products, work arrays of the loss
)


class DescentRecord:
    """The weights relative to the teacher, and the loss and errors on the examples, at each recorded step.

    A run that overflows is NaN from its first overflow onwards.
    """

    def __init__(self, cell: DescentCell):
        self.cell = cell
        self.places = {step: index for index, step in enumerate(cell.steps)}
        self.values = np.full((4, len(cell.steps)), np.nan)

    def write(self, step: int, parallel: float, perpendicular: float, stabilities_or_residuals: np.ndarray) -> None:
        """Record a step of descent: components of w/sqrt(N), and stabilities or residuals (P,) of all examples."""
        wrong = np.mean((1 - np.sign(stabilities_or_residuals)) / 2)
        self.values[:, self.places[step]] = (
            parallel,
            perpendicular,
            np.mean(self.cell.loss_for_teacher_outputs.value(stabilities_or_residuals)),
            wrong,
        )

    def variables(self) -> dict[str, np.ndarray]:
        """Return the variables of a descent at its recorded steps."""
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


def iterate_batches(cell: DescentCell, rng: np.random.Generator) -> Iterator[np.ndarray | slice]:
    """Yield the row indices of the examples in each batch of a descent, endlessly.

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


def run_explicit_descent(cell: DescentCell, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Simulate one descent with explicit inputs and return its variables at the recorded steps.

    >>> from statmech import Descent
    >>> cell = next(Descent(loss="square", descent="gradient", N=1000, alpha=1, epochs=[0, 1], eta=0.1).cells())
    >>> run_explicit_descent(cell, np.random.default_rng(0))["R"].round(1)
    array([0. , 0.6])
    """
    record, root = DescentRecord(cell), np.sqrt(cell.N)
    teacher = cell.weights.draw(rng, cell.N)
    initial_weights = draw_initial_weights(cell, teacher, rng)
    X = rng.standard_normal((cell.P, cell.N))
    X /= root
    y = cell.teacher.draw(rng, X @ teacher)
    with np.errstate(all="ignore"):  # a run may diverge
        for step, w in zip(
            range(cell.steps[-1] + 1), _iterate_explicit_weights(cell, initial_weights, X, y, rng), strict=False
        ):
            if step in record.places:
                parallel = w @ teacher / cell.N
                perpendicular = float(np.linalg.norm(w - parallel * teacher)) / root
                record.write(step, parallel, perpendicular, compute_stability_or_residual(cell, X @ w, y))
    return record.variables()


def _iterate_explicit_weights(
    cell: DescentCell, initial_weights: np.ndarray, X: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the weights (N,) before each step of a descent with explicit inputs."""
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
    """Draw the weights (N,) where descent starts, with a given length and cosine with the teacher."""
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


def estimate_explicit_descent_bytes(cell: DescentCell) -> float:
    """Return the memory in bytes of an explicit descent: all inputs, the inputs of a batch, and vectors."""
    copied = cell.batch if cell.batch < 1 else 0.0
    return 8.0 * (cell.P * cell.N * (1 + copied) + NUM_EXPLICIT_WORK_VECTORS * (cell.P + cell.N))


class DeferredInputs:
    """Random inputs that are known only through the products drawn so far.

    Stores the images A (n, P) of n directions, and k orthonormal combinations f (k, P) of slopes.
    """

    def __init__(self, cell: DescentCell, rng: np.random.Generator):
        max_directions, self.n, self.k = _count_max_directions(cell), _count_initial_directions(cell), 0
        self.cell, self.rng = cell, rng
        self.A, self.f = np.empty((max_directions, cell.P)), np.empty((max_directions - self.n, cell.P))
        self.G, self.product = np.zeros(cell.P), np.empty(cell.P)
        rng.standard_normal(out=self.A[: self.n])
        self.y = cell.teacher.draw(rng, self.A[0])
        if cell.teacher.labels:  # multiplying inputs by labels changes their distribution only along the teacher
            self.A[0] *= self.y

    def start(self) -> np.ndarray:
        """Return the initial components of the weights, with zeros for directions not yet drawn."""
        w, cosine = np.zeros(len(self.A)), self.cell.R
        w[: self.n] = self.cell.length * np.array([cosine, np.sqrt(1 - cosine**2)])[: self.n]
        return w

    def stabilities(self, z: np.ndarray) -> np.ndarray:
        """Compute the stabilities or residuals (P,) at weights z."""
        h = z[: self.n] @ self.A[: self.n]
        return h if self.cell.teacher.labels else np.subtract(self.y, h, out=h)

    def force(self, rows: np.ndarray | slice, slopes: np.ndarray) -> np.ndarray:
        """Compute the descent force of some examples, along the known directions of weights and a new direction."""
        G, n, v = self.G, self.n, np.zeros(len(self.A))
        G[:] = 0.0
        G[rows] = slopes
        v[:n] = self.A[:n] @ G / self.cell.N
        if n < len(self.A) and (size := self.new_f(G)) > MIN_NEW_DIRECTION_LENGTH * np.linalg.norm(G):
            chi = self.chi(self.cell.N - n)
            v[n] = -size * chi / self.cell.N
            self.new_image(chi)
        return v

    def new_f(self, G: np.ndarray) -> float:
        """Append to f the normalised component of the slopes of a batch orthogonal to all f, and return its length."""
        r = self.f[self.k]
        r[:] = G
        self.subtract_projection(self.f[: self.k], r)
        self.subtract_projection(self.f[: self.k], r)  # repeated because slopes of successive steps are nearly parallel
        size = float(np.linalg.norm(r))
        r /= size
        return size

    def new_image(self, chi: float) -> None:
        """Draw the image X e, under the deferred inputs X, of the new direction e of descent."""
        A, f = self.A[self.n], self.f[: self.k + 1]
        self.rng.standard_normal(out=A)
        self.subtract_projection(f, A)
        A -= np.multiply(chi, f[-1], out=self.product)
        self.n, self.k = self.n + 1, self.k + 1

    def subtract_projection(self, basis: np.ndarray, x: np.ndarray) -> None:
        """Subtract from x its projection onto the span of the orthonormal `basis`."""
        x -= np.matmul(basis @ x, basis, out=self.product)

    def chi(self, degrees_of_freedom: int) -> float:
        """Draw a chi variable with `degrees_of_freedom` degrees of freedom."""
        return float(np.sqrt(self.rng.chisquare(degrees_of_freedom)))


def run_deferred_descent(cell: DescentCell, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Simulate one descent without stored inputs and return its variables at the recorded steps.

    >>> from statmech import Descent
    >>> cell = next(Descent(loss="square", descent="gradient", N=10**4, alpha=1, epochs=[0, 1], eta=0.1).cells())
    >>> run_deferred_descent(cell, np.random.default_rng(0))["R"].round(1)
    array([0. , 0.6])
    """
    inputs, record = DeferredInputs(cell, rng), DescentRecord(cell)
    with np.errstate(all="ignore"):  # a run may diverge
        for step, w in zip(range(cell.steps[-1] + 1), _iterate_weight_components(cell, inputs, rng), strict=False):
            if step in record.places:
                record.write(step, w[0], float(np.linalg.norm(w[1:])), inputs.stabilities(w))
    return record.variables()


def _iterate_weight_components(
    cell: DescentCell, inputs: DeferredInputs, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the components of the weights before each step of a descent without stored inputs."""
    state = cell.descent.start(inputs.start())
    for step, rows in enumerate(iterate_batches(cell, rng)):
        yield state[0]
        z = cell.descent.query(state)
        slopes = cell.loss_for_teacher_outputs.slope(inputs.stabilities(z)[rows])
        force = inputs.force(rows, slopes if cell.teacher.labels else -slopes)
        state = cell.descent.next(state, add_penalty_force(cell, force, z), cell.rate(step), step)


def add_penalty_force(cell: DescentCell, force: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the force of a batch plus the force of the penalty."""
    return force + cell.batch * cell.lam * z


def estimate_deferred_descent_bytes(cell: DescentCell) -> float:
    """Return the memory in bytes of a deferred descent that learns in a new direction at every step."""
    return 8.0 * cell.P * (2 * _count_max_directions(cell) + NUM_DEFERRED_WORK_VECTORS)


def _count_max_directions(cell: DescentCell) -> int:
    """Return the number of known directions after the last step."""
    first = _count_initial_directions(cell)
    return first + min(cell.steps[-1], cell.P, cell.N - first)


def _count_initial_directions(cell: DescentCell) -> int:
    """Return the number of initial directions: the teacher, and the student unless parallel to it."""
    return 2 if cell.length > 0 and abs(cell.R) < 1 else 1
