r"""Descent on P stored examples at finite N without storing inputs: only the needed products are drawn.

The inputs X (P, N) are independent normals. A run needs the fields :math:`X\mathbf w/\sqrt N` of weights and the forces
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

import numpy as np

from simulate.convex.explicit_descent import DescentRecord, iterate_batches
from statmech.kinds.gradient_descent import DescentCell

MIN_NEW_DIRECTION_LENGTH = 1e-9  # relative to the length of the slopes: a smaller new component is rounding error
NUM_DEFERRED_WORK_VECTORS = (
    8  # length P each, in addition to A and f: outputs, slopes, products, work arrays of the loss
)


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
        """Compute the force of some examples, as components along the known directions and a new direction."""
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
        """Append to f the normalised component of the slopes orthogonal to all f, and return its length."""
        r = self.f[self.k]
        r[:] = G
        self.subtract_projection(self.f[: self.k], r)
        self.subtract_projection(self.f[: self.k], r)  # repeated because slopes of successive steps are nearly parallel
        size = float(np.linalg.norm(r))
        r /= size
        return size

    def new_image(self, chi: float) -> None:
        """Draw the image X e of the new direction e."""
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


def run(cell: DescentCell, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Simulate one run and return its variables at the recorded steps.

    >>> from statmech import Descent
    >>> cell = next(Descent(loss="square", descent="gradient", N=10**4, alpha=1, epochs=[0, 1], eta=0.1).cells())
    >>> run(cell, np.random.default_rng(0))["R"].round(1)
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
    """Yield the components of the weights before each step."""
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


def estimate_run_bytes(cell: DescentCell) -> float:
    """Return the memory in bytes of a run that learns in a new direction at every step."""
    return 8.0 * cell.P * (2 * _count_max_directions(cell) + NUM_DEFERRED_WORK_VECTORS)


def _count_max_directions(cell: DescentCell) -> int:
    """Return the number of known directions after the last step."""
    first = _count_initial_directions(cell)
    return first + min(cell.steps[-1], cell.P, cell.N - first)


def _count_initial_directions(cell: DescentCell) -> int:
    """Return the number of initial directions: the teacher, and the student unless parallel to it."""
    return 2 if cell.length > 0 and abs(cell.R) < 1 else 1
