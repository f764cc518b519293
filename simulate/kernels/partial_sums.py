r"""Attention: margins evaluated a few features at a time, and no further than needed (Pelossof & Ying).

The features of an example are summed between looks, :math:`S_i = \sum_{j\le i} w_jz_j`. Where :math:`S_i` reaches a
level :math:`\tau` (`statmech.boundaries`) the example is assumed to be right, and its other features are not evaluated:
a loop over features, which is compiled when the first walk needs it (`simulate.kernels.first_passage`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

import numpy as np

from statmech.boundaries import Boundary, rise, threshold

ENOUGH = 10  # margins before the first stop
MEMORY = 200  # averaging window, in margins, of the running mean and variance, which grow with w
FEWEST, MOST = 8, 8192  # examples in a block, which is half as large after a mistake, else twice
ARRAY: Final = ("C", "A", "W")  # requirements of compiled loops: contiguous, aligned, writeable


class Walks(NamedTuple):
    """The sums where each walk ended and the numbers of features evaluated, both (m,)."""

    sums: np.ndarray
    features: np.ndarray


def walks(
    z: np.ndarray,
    w: np.ndarray,
    looks: np.ndarray,
    tau: float,
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
    from simulate.kernels.first_passage import walk  # needs Numba

    (m, n), sums, features = z.shape, np.empty(len(z)), np.empty(len(z), int)
    z, w, start = np.require(z, float, ARRAY), np.require(w, float, ARRAY), np.full(m, start, float)
    walk(z, w, 1.0, start, np.zeros(m, bool), looks, tau, slope / n, two_sided, -np.inf, 0, m, False, sums, features)
    return Walks(sums, features)


def sums_at(z: np.ndarray, w: np.ndarray, looks: np.ndarray) -> np.ndarray:
    """The sums of rows z (m, n) times w after each of `looks`, the last of which is n, wherever evaluation stops.

    >>> sums_at(np.array([[2.0, -9.0, 1.0]]), np.ones(3), np.array([2, 3]))
    array([[-7., -6.]])
    """
    return np.cumsum(np.add.reduceat(z * w, np.append(0, looks[:-1]), axis=1), axis=1)


class Level(NamedTuple):
    """The level at which walks stop: tau, which rises by slope until the end."""

    tau: float
    slope: float


class Lesson(NamedTuple):
    """The result of successive examples up to the end of a block with probes, or to a mistake of which to learn."""

    last: int  # index of the last example
    features: int  # evaluated in total
    stopped: np.ndarray  # True for examples that were not evaluated to the end
    margins: np.ndarray  # of the probes
    mistaken: bool  # the last example's margin does not exceed theta
    margin: float  # of the last example, up to where its evaluation ended
    lost: int  # examples that were stopped although their margins are not positive, counted if it `learns`


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
    student: Student,
    z: np.ndarray,
    start: np.ndarray,
    probes: np.ndarray,
    looks: np.ndarray,
    block: int = 64,
    learns: bool = False,
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
        Number of examples in the first block: at its end the level follows its probes.
    learns
        True to add each mistaken example to the student's w in place (no bias): the caller only updates the level.
    """
    from simulate.kernels.first_passage import walk  # needs Numba

    (m, n), row = z.shape, 0
    z, start = np.require(z, float, ARRAY), np.require(start, float, ARRAY)
    sums, features = np.empty(m), np.empty(m, int)
    while row < m:
        first, (tau, slope), theta = row, student.level, student.theta
        arguments = z, student.w, student.b, start, probes, looks, tau, slope / n, False, theta
        row, block, num_lost = walk(*arguments, row, block, learns, sums, features)
        ends, evaluated = sums[first:row], features[first:row]
        margin = float(ends[-1])
        mistaken = bool(evaluated[-1] == n and margin <= theta)
        yield Lesson(row - 1, int(evaluated.sum()), evaluated < n, ends[probes[first:row]], mistaken, margin, num_lost)
