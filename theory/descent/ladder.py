r"""Descent on stored examples for N -> infinity: the ladder of directions, on samples of the examples.

A step of descent asks twice for the matrix X of the examples' inputs, divided by :math:`\sqrt N`: for the fields of the
weights, and for the force :math:`X^T\mathbf G` of the slopes G of the loss. The weights then move along this force
only. They are stated by their components along orthonormal directions :math:`e_0 = \mathbf w^*/\sqrt N, e_1, \dots`,
whose images on the examples are :math:`A_k = Xe_k`, and the slopes along orthonormal :math:`f_1, f_2, \dots` on the
side of the examples, :math:`\langle f_jf_k\rangle = \delta_{jk}` with <> the mean over examples. With g the norm of
what G has outside the earlier f's,

.. math::

    h = \sum_k z_kA_k,\quad G = \ell'(h),\quad f = \frac{G - \sum_j\langle f_jG\rangle f_j}g,\quad
    v_k = \alpha\langle A_kG\rangle,\quad v_\mathrm{new} = -\sqrt\alpha\,g,\quad
    A_\mathrm{new} = \xi - f/\sqrt\alpha

with :math:`\xi` a standard normal of each example: the limit of Lu's Householder dice (2021).

*Why these lines.* Given all that has been asked, X is known on the directions e and f, and on the rest it is a fresh
Gaussian matrix. A new f is asked for :math:`X^Tf/N`. Its components along the known e's are
:math:`\alpha\langle A_kf\rangle`; the rest is a fresh normal vector of length :math:`\sqrt\alpha` across them. The
weights are combinations of the answers, so that this rest is their only new direction. It is called
:math:`-e_\mathrm{new}`, the sign that descent takes.

Now the new direction is asked for its image. Along the earlier f's it has none, since what X answered to them lies
within the earlier e's. Along the newest f it has what X has just answered, :math:`-1/\sqrt\alpha`, and outside all f's
it is fresh. This one term is the reaction of the examples on themselves, for which dynamical mean-field theory has
response functions; it holds for slopes that jump as for smooth ones. Nothing is iterated, and the state after a step is
all that the next one needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.convex.losses import Loss
from statmech.convex.penalties import Penalty
from statmech.scenarios.descent import DescentCell
from theory.descent.samples import NEW, Batches, Rows, Samples
from theory.descent.two_sided import TwoSided

LASSO = Penalty(1.0)


class Path(NamedTuple):
    """A descent as one replica sees it, NaN from the step on at which a number overflows.

    Components along the teacher, w.w*/N, and across it (steps + 1,) after all steps; mean loss and training error
    (times,) at the recorded ones; the number of directions in the end.
    """

    along: np.ndarray
    across: np.ndarray
    train_loss: np.ndarray
    eps_t: np.ndarray
    directions: int


class Ladder:
    """The directions on both sides, and their images.

    Parameters
    ----------
    alpha : float
        Stored examples per input dimension.
    samples : Samples
        Samples of the examples.
    """

    def __init__(self, alpha: float, samples: Samples) -> None:
        self.alpha, self.samples = alpha, samples
        self.least = NEW[samples.dtype.name]
        self.images, self.slopes = (Rows(samples.size, samples.dtype) for _ in range(2))  # A and f
        self.images.next()[:] = samples.field
        self.images.add()

    def start(self, length: float, R: float) -> np.ndarray:
        """The components of a start of this length and cosine with the teacher."""
        if length == 0:
            return np.zeros(1)
        self.samples.normal(self.images.next())
        self.images.add()
        return length * np.array([R, np.sqrt(1 - R * R)])

    def parts(self, w: np.ndarray) -> tuple[float, float]:
        """The components of weights along the teacher and across it."""
        return float(w[0]), float(np.sqrt(w[1:] @ w[1:]))

    def fields(self, w: np.ndarray) -> np.ndarray:
        """The fields (S,) of weights of these components."""
        return (w.astype(self.samples.dtype) @ self.images.filled[: len(w)]).astype(float, copy=False)

    def force(self, G: np.ndarray) -> np.ndarray:
        r"""The components of :math:`X^T\mathbf G` along all directions, which are one more if G has a new part."""
        size, G = self.samples.size, G.astype(self.samples.dtype, copy=False)
        v = self.alpha * (self.images.filled @ G).astype(float) / size
        f, least = self.slopes.next(), self.least * float(np.sqrt(G @ G / size))
        g = self.slopes.outside(G, f, least)
        if not g > least:
            return v
        f *= 1 / g
        self.slopes.add()
        self.samples.learn(f)
        image = self.samples.normal(self.images.next())
        image -= f / np.sqrt(self.alpha)
        self.images.add()
        return np.append(v, -np.sqrt(self.alpha) * g)


def descend(cell: DescentCell, replica: int, size: int) -> Path:
    """The descent of a cell on the samples of a replica.

    Parameters
    ----------
    cell : DescentCell
        The descent, its loss and teacher, the examples P/N, and the steps at which it is recorded.
    replica : int
        Number of the replica, which names its samples.
    size : int
        Number S of samples, a power of 2.

    Returns
    -------
    Path

    Examples
    --------
    >>> from statmech.scenarios.descent import Descent
    >>> cell = next(Descent(descent="gradient", loss="square", alpha=2, epochs=[1, 10]).cells())
    >>> path = descend(cell, replica=0, size=512)
    >>> R = path.along[1:] / np.hypot(path.along, path.across)[1:]
    >>> R[[0, 9]].round(6)                  # Hebb's rule after a step: 1/sqrt(1 + pi/(2 alpha))
    array([0.748398, 0.829896])
    """
    with np.errstate(all="ignore"):  # of what overflows
        return _descend(cell, replica, size)


def matches(cell: DescentCell) -> bool:
    """True if samples are matched and counted in double precision: of a smooth loss, all examples in each step."""
    return cell.batch == 1 and not (cell.on.kinks or cell.on.bends or cell.coordinatewise)


def _descend(cell: DescentCell, replica: int, size: int) -> Path:
    last, times = cell.steps[-1], {step: at for at, step in enumerate(cell.steps)}
    samples = Samples(cell.teacher, replica, size, matched=matches(cell))
    batches = None if cell.batch == 1 else Batches(samples, cell.batch, cell.sampling == "shuffle")
    ladder: Ladder | TwoSided = Ladder(cell.P / cell.N, samples)
    if cell.coordinatewise:
        ladder = TwoSided(cell.P / cell.N, samples, cell.weights)
    loss, y, (l1, l2) = cell.on, samples.outputs, cell.strengths
    along, across = np.full((2, last + 1), np.nan)
    train_loss, eps_t = np.full((2, len(times)), np.nan)
    state = cell.descent.start(ladder.start(cell.length, cell.R))
    for step in range(last + 1):
        w, z, rate = state[0], cell.descent.query(state), cell.rate(step)
        if not np.isfinite(w @ w):
            break
        along[step], across[step] = ladder.parts(w)
        h = ladder.fields(z)
        if step in times:
            of_w = h if z is w else ladder.fields(w)
            train_loss[times[step]], eps_t[times[step]] = _training(loss, y, of_w)
        if step == last:
            break
        G = _slopes(loss, y, h)
        v = ladder.force(G if batches is None else G * batches.at(step))
        z, state = _extended(z, len(v)), tuple(_extended(row, len(v)) for row in state)
        state = cell.descent.next(state, v + cell.batch * l2 * z, rate, step)
        if l1:
            state = LASSO.prox(state[0], l1, rate * cell.batch), *state[1:]
    return Path(along, across, train_loss, eps_t, len(ladder.images.filled))


def _extended(row: np.ndarray, count: int) -> np.ndarray:
    return row if len(row) == count else np.append(row, 0.0)


def _slopes(loss: Loss, y: np.ndarray | None, h: np.ndarray) -> np.ndarray:
    """The derivative of the loss with respect to the field; y = 1 of labels."""
    return loss.slope(h) if y is None else -loss.slope(y - h)


def _training(loss: Loss, y: np.ndarray | None, h: np.ndarray) -> tuple[float, float]:
    """Return the mean loss, and the fraction of wrong labels, if there are labels; a field of 0 is half an error."""
    value = float(np.mean(loss.value(h if y is None else y - h)))
    wrong = float(np.mean((1 - np.sign(h)) / 2)) if y is None else np.nan
    return (value if np.isfinite(value) else np.nan), wrong
