r"""Descent on P stored examples at finite N without inputs: only the answers that a run needs are drawn.

The inputs X (P, N) are independent normals. A run asks for the fields :math:`X\mathbf w/\sqrt N` of weights, and for
the forces :math:`X^T\mathbf G/\sqrt N` of slopes. Let :math:`\mathbf w = \sqrt N\sum_k w_k\mathbf e_k`, in orthonormal
directions of which the images :math:`\mathbf A_k = X\mathbf e_k` are known, the teacher's first; its fields are
:math:`\sum_k w_k\mathbf A_k`. Let past slopes be combinations of orthonormal vectors :math:`\mathbf f_j`. Given all
answers, X is known on the span of the :math:`\mathbf e_k` and, transposed, on that of the :math:`\mathbf f_j`; on the
complements of both it is normal as before. So a new :math:`\mathbf f`, the slopes' part off the old ones over its
length :math:`\gamma`, has the answer :math:`X^T\mathbf f = \sum_k(\mathbf A_k\cdot\mathbf f)\,\mathbf e_k -
\chi\,\mathbf e`, with :math:`\chi^2` the sum of N - n squared normals if n directions are known, and a new direction
:math:`\mathbf e`, in the sign in which descent goes.

The force has the components :math:`\mathbf A_k\cdot\mathbf G/N` and, along :math:`\mathbf e`, :math:`-\gamma\chi/N`.
The image of :math:`\mathbf e` is 0 along the old f, whose answers lie in the span of the old directions, and
:math:`-\chi` along the new one: :math:`X\mathbf e = \mathbf z - \chi\mathbf f`, with :math:`\mathbf z` normal off
all f. Thus a step multiplies some vectors of length P in place of X, and runs are distributed as with explicit inputs,
at any N ("Householder dice", Lu 2021, arXiv:2101.07464). From N directions on, X is known and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulate.kernels.descent_record import Record
from simulate.kernels.example_batches import batches
from statmech.scenarios.descent import DescentCell

NEW = 1e-9  # of the slopes' length: a smaller part off the known f is rounding, and no new direction
VECTORS = 8  # of length P beside the known ones: outputs, slopes, products, and a loss's own


def run(cell: DescentCell, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The variables of one run at the recorded steps.

    >>> from statmech import Descent
    >>> cell = next(Descent(loss="square", descent="gradient", N=10**4, alpha=1, epochs=[0, 1], eta=0.1).cells())
    >>> run(cell, np.random.default_rng(0))["R"].round(1)
    array([0. , 0.6])
    """
    inputs, record = Known(cell, rng), Record(cell)
    with np.errstate(all="ignore"):  # where it diverges
        for step, w in zip(range(cell.steps[-1] + 1), _weights(cell, inputs, rng), strict=False):
            if step in record.places:
                record.write(step, w[0], float(np.linalg.norm(w[1:])), inputs.stabilities(w))
    return record.variables()


def _weights(cell: DescentCell, known: Known, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the components of the weights before each step."""
    state = cell.descent.start(known.start())
    for step, rows in enumerate(batches(cell, rng)):
        yield state[0]
        z = cell.descent.query(state)
        slopes = cell.on.slope(known.stabilities(z)[rows])
        force = known.force(rows, slopes if cell.teacher.labels else -slopes)
        state = cell.descent.next(state, penalised(cell, force, z), cell.rate(step), step)


def penalised(cell: DescentCell, force: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The force of a batch with that of the penalty."""
    return force + cell.batch * cell.lam * z


def bytes_of(cell: DescentCell) -> float:
    """Bytes of a run that learns in a new direction at every step."""
    return 8.0 * cell.P * (2 * _most(cell) + VECTORS)


def _most(cell: DescentCell) -> int:
    """The most directions that a run can know."""
    first = _first(cell)
    return first + min(cell.steps[-1], cell.P, cell.N - first)


def _first(cell: DescentCell) -> int:
    """The directions of the teacher and of a start across it."""
    return 2 if cell.length > 0 and abs(cell.R) < 1 else 1


class Known:
    """The answers so far: the images A (n, P) of n directions, and k orthonormal combinations f (k, P) of slopes."""

    def __init__(self, cell: DescentCell, rng: np.random.Generator):
        max_directions, self.n, self.k = _most(cell), _first(cell), 0
        self.cell, self.rng = cell, rng
        self.A, self.f = np.empty((max_directions, cell.P)), np.empty((max_directions - self.n, cell.P))
        self.G, self.product = np.zeros(cell.P), np.empty(cell.P)
        rng.standard_normal(out=self.A[: self.n])
        self.y = cell.teacher.draw(rng, self.A[0])
        if cell.teacher.labels:  # inputs times their labels: normal as before, but along the teacher
            self.A[0] *= self.y

    def start(self) -> np.ndarray:
        """The components of the weights before the first step, with room for those of all directions to come."""
        w, cosine = np.zeros(len(self.A)), self.cell.R
        w[: self.n] = self.cell.length * np.array([cosine, np.sqrt(1 - cosine**2)])[: self.n]
        return w

    def stabilities(self, z: np.ndarray) -> np.ndarray:
        """The stabilities or residuals (P,) of weights."""
        h = z[: self.n] @ self.A[: self.n]
        return h if self.cell.teacher.labels else np.subtract(self.y, h, out=h)

    def force(self, rows: np.ndarray | slice, slopes: np.ndarray) -> np.ndarray:
        """The components of the force that the slopes of some examples exert, along directions old and new."""
        G, n, v = self.G, self.n, np.zeros(len(self.A))
        G[:] = 0.0
        G[rows] = slopes
        v[:n] = self.A[:n] @ G / self.cell.N
        if n < len(self.A) and (size := self.new_f(G)) > NEW * np.linalg.norm(G):
            chi = self.chi(self.cell.N - n)
            v[n] = -size * chi / self.cell.N
            self.new_image(chi)
        return v

    def new_f(self, G: np.ndarray) -> float:
        """Write the direction of the slopes' part off the known f behind them; the length of that part."""
        r = self.f[self.k]
        r[:] = G
        self.project_off(self.f[: self.k], r)
        self.project_off(self.f[: self.k], r)  # again: slopes of successive steps are nearly parallel
        size = float(np.linalg.norm(r))
        r /= size
        return size

    def new_image(self, chi: float) -> None:
        """Draw the image of the new direction."""
        A, f = self.A[self.n], self.f[: self.k + 1]
        self.rng.standard_normal(out=A)
        self.project_off(f, A)
        A -= np.multiply(chi, f[-1], out=self.product)
        self.n, self.k = self.n + 1, self.k + 1

    def project_off(self, f: np.ndarray, x: np.ndarray) -> None:
        """Subtract from x its part in the span of the f."""
        x -= np.matmul(f @ x, f, out=self.product)

    def chi(self, freedom: int) -> float:
        """The length of so many normals."""
        return float(np.sqrt(self.rng.chisquare(freedom)))
