r"""Attention: margins evaluated a few features at a time, and no further than needed (Pelossof & Ying).

The features of an example are summed between looks, :math:`S_i = \sum_{j\le i} w_jz_j`. Where :math:`S_i` reaches a
level :math:`\tau` (`statmech.boundaries`) the example is assumed to be right, and its other features are not evaluated.
Many examples are evaluated side by side, and those that have stopped are left out of the next product. If there are few
products between looks, several looks are computed together; the features *counted* are those up to the stopping look.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from simulate.learners.perceptron import wrong
from statmech.boundaries import Boundary, rise, threshold

ENOUGH = 10  # margins before the first stop
MEMORY = 200  # averaging window, in margins, of the running mean and variance, which grow with w
FEWEST = 8  # examples evaluated together, at least
FEW = 2**12  # products that cost less than a look: looks are then joined
MANY = 2**16  # products of joined looks, at most
LONG = 2**13  # number of features from which one row at a time costs less than a copy of the rows


class Walks(NamedTuple):
    """The sums where each walk ended and the numbers of features evaluated, both (m,)."""

    sums: np.ndarray
    features: np.ndarray


def walks(
    z: np.ndarray,
    w: np.ndarray,
    looks: np.ndarray,
    tau: np.ndarray | float,
    start: np.ndarray | float = 0.0,
    slope: float = 0.0,
    two_sided: bool = False,
) -> Walks:
    """Sum rows z times w from left to right, and stop each at the first look where it reaches the level.

    Parameters
    ----------
    z
        Rows to sum (m, n).
    w
        Weights (n,).
    looks
        Numbers of features after which sums are compared with the level, increasing to n.
    tau
        The level.
    start
        Initial sum, a bias.
    slope
        Rise of the level by the end.
    two_sided
        True to compare the absolute value of the sum.

    Examples
    --------
    >>> walks(np.array([[2.0, -9.0], [0.5, -1.0]]), np.ones(2), np.array([1, 2]), tau=1.0)
    Walks(sums=array([ 2. , -0.5]), features=array([1, 2]))
    """
    m, n = z.shape
    sums, tau, features = np.zeros(m) + start, np.zeros(m) + tau, np.zeros(m, int)
    active, index, first = np.arange(m), 0, 0
    while active.size and index < len(looks):
        end = _together(looks, index, first, active.size)
        here, last = np.asarray(looks[index:end]), int(looks[end - 1])
        partial = _partial_sums(z[:, first:last], w[first:last], here - first, active)
        partial += sums[active, None]
        level = tau[active, None] + slope / n * here if slope else tau[active, None]
        reached = (np.abs(partial) if two_sided else partial) >= level
        stop, rows = reached.argmax(axis=1), np.arange(active.size)  # 0 where no level is reached
        stops = reached[rows, stop]
        stop[~stops] = here.size - 1
        sums[active], features[active] = partial[rows, stop], here[stop]
        active, index, first = active[~stops], end, last
    return Walks(sums, features)


def sums_at(z: np.ndarray, w: np.ndarray, looks: np.ndarray) -> np.ndarray:
    """The sums of rows z (m, n) times w after each of `looks`, the last of which is n, wherever evaluation stops.

    >>> sums_at(np.array([[2.0, -9.0, 1.0]]), np.ones(3), np.array([2, 3]))
    array([[-7., -6.]])
    """
    return _partial_sums(z, w, looks, np.arange(len(z)))


def _together(looks: np.ndarray, index: int, first: int, rows: int) -> int:
    """The end of the looks from `index` on that are computed together."""
    if rows * (looks[index] - first) >= FEW:
        return index + 1
    return max(index + 1, int(looks.searchsorted(first + MANY // rows, side="right")))


def _partial_sums(z: np.ndarray, w: np.ndarray, looks: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Sums of the active rows of z (m, n) after each of `looks`, the last of which is n: (active, looks)."""
    m = len(z)
    if looks.size == 1 and w.size >= LONG and active.size < m:
        return np.array([[z[row] @ w] for row in active])
    if 2 * active.size > m > active.size:
        return _partial_sums(z, w, looks, np.arange(m))[active]
    rows = z if active.size == m else z[active]
    if looks.size == 1:
        return (rows @ w)[:, None]
    products = rows * w
    if looks.size < w.size:
        products = np.add.reduceat(products, np.append(0, looks[:-1]), axis=1)
    return np.cumsum(products, axis=1, out=products)


class Level(NamedTuple):
    """The level at which walks stop: tau, which rises by slope until the end."""

    tau: float
    slope: float


class Lesson(NamedTuple):
    """The result of successive examples up to a mistake, or to the end of a block."""

    last: int  # index of the last example
    features: int  # evaluated in total
    stopped: np.ndarray  # True for examples that were not evaluated to the end
    margins: np.ndarray  # of the probes
    mistaken: bool  # the last example's margin does not exceed theta
    margin: float  # of the last example, up to where its evaluation ended


class Attentive:
    """The state of a student: weights w (n,), a bias b, and mean and variance of its margins, estimated from probes.

    Its level is that of margins which are compared with theta.
    """

    def __init__(
        self, w: np.ndarray, boundary: str | Boundary, error_rate: float, memory: int = MEMORY, theta: float = 0.0
    ):
        self.w, self.b = w, 0.0
        self.boundary, self.error_rate, self.memory, self.theta = boundary, error_rate, memory, theta
        self.probes, self.mean, self.variance = 0, 0.0, 0.0
        self.level = Level(np.inf, 0.0)

    def take(self, margins: np.ndarray) -> None:
        """Update the exponentially weighted mean and variance, and the level that they imply."""
        if not margins.size:
            return
        for margin in margins:
            self.probes += 1
            weight = max(1 / self.probes, 1 / self.memory)
            deviation = margin - self.mean
            self.mean += weight * deviation
            self.variance = (1 - weight) * (self.variance + weight * deviation**2)
        if self.probes >= ENOUGH and self.variance > 0:
            self._watch()

    def know(self, mean: float, variance: float) -> None:
        """Set mean and variance that are known without probes."""
        self.probes, self.mean, self.variance = max(self.memory, ENOUGH), mean, variance
        self._watch()

    def blind(self) -> float:
        """The level for examples of unknown label: that of a walk without drift, compared with 0."""
        if not np.isfinite(self.level.tau):
            return np.inf
        return float(threshold(self.boundary, self.error_rate, 0.0, self.variance))

    def _watch(self) -> None:
        tau = float(threshold(self.boundary, self.error_rate, self.mean, self.variance, self.theta))
        self.level = Level(tau, float(rise(self.boundary, self.mean)))


class Student(Protocol):
    """Weights w (n,), a bias b and a level, which change during learning, and the threshold theta of its margins."""

    w: np.ndarray
    b: float
    level: Level
    theta: float


def lessons(
    student: Student, z: np.ndarray, start: np.ndarray, probes: np.ndarray, looks: np.ndarray, block: int = 64
) -> Iterator[Lesson]:
    """Make one pass over the examples; the caller updates the student after each lesson.

    Parameters
    ----------
    student
        Weights, bias and level; read at each lesson.
    z
        Examples times their labels (m, n).
    start
        Labels (m,), with which the bias enters; 0 for none.
    probes
        True for examples that are evaluated fully (m,): their margins are an unbiased sample.
    looks
        Numbers of features after which sums are compared with the level.
    block
        Number of examples evaluated together at first.
    """
    first = 0
    while first < len(z):
        rows = slice(first, first + block)
        tau = np.where(probes[rows], np.inf, student.level.tau)
        (sums, features), mistaken = _up_to_mistake(student, z[rows], tau, student.b * start[rows], looks)
        count = sums.size
        margins = sums[probes[first : first + count]]
        last = first + count - 1, int(features.sum()), features < z.shape[1]
        yield Lesson(*last, margins, mistaken, float(sums[-1]))
        first += count
        block = max(block // 2, FEWEST) if mistaken else min(2 * block, 8192)


def _up_to_mistake(
    student: Student, z: np.ndarray, tau: np.ndarray, start: np.ndarray, looks: np.ndarray
) -> tuple[Walks, bool]:
    """The walks of examples z (m, n) at levels tau (m,) up to the first mistake, and whether there is one.

    Those after the first likely mistake are not evaluated unless its walk stops.
    """
    likely, theta = _likely(student, z, start, looks), student.theta
    found = walks(z[:likely], student.w, looks, tau[:likely], start[:likely], student.level.slope)
    errors = ((found.features == z.shape[1]) & wrong(found.sums - theta)).nonzero()[0]
    if not errors.size and likely < len(z):
        more = walks(z[likely:], student.w, looks, tau[likely:], start[likely:], student.level.slope)
        found = Walks(*map(np.append, found, more))
        errors = ((found.features == z.shape[1]) & wrong(found.sums - theta)).nonzero()[0]
    if not errors.size:
        return found, False
    count = int(errors[0]) + 1
    return Walks(found.sums[:count], found.features[:count]), True


def _likely(student: Student, z: np.ndarray, start: np.ndarray, looks: np.ndarray) -> int:
    """Count the examples z (m, n) up to the first likely mistake; all of them if looks are not joined.

    Full margins, by one product, take less time than partial sums, and equal them up to rounding.
    """
    if looks.size == 1 or _together(looks, 0, 0, len(z)) < looks.size:
        return len(z)
    right = z @ student.w + start > student.theta
    first = int(right.argmin())
    return len(z) if right[first] else first + 1
