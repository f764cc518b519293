r"""Attention: margins evaluated a few features at a time, and no further than needed (Pelossof & Ying).

The features of an example are added up in looks, :math:`S_i = \sum_{j\le i} w_jz_j`. Where :math:`S_i` reaches a level
:math:`\tau` (`statmech.boundaries`) the example is taken for right, and the rest of its features is not evaluated. Many
examples walk side by side, and those that have stopped are left out of the next product. Where few numbers stand
between looks many looks are taken at once: what is *counted* is what the looks say, though a little more is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from simulate.learners.perceptron import wrong
from statmech.boundaries import Boundary, rise, threshold

ENOUGH = 10  # margins before anything is stopped
MEMORY = 200  # margins that the running mean and variance look back on: they grow with w
FEWEST = 8  # examples looked at together
FEW, MANY = 2**12, 2**16  # products: fewer than the first cost less than a look does, and then at most so many are made
LONG = 2**13  # features from which on a row by itself costs less than a copy of it does


class Walks(NamedTuple):
    """The sums where each walk ended, and how many features it took, (m,) each."""

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
    """Evaluate rows z (m, n) from left to right, after each of `looks` (increasing, to n) only those below tau.

    `start` is what the sums begin with, a bias; `slope` what the level has risen by at the end. Two-sided: until the
    sum is as far from 0 on either side.

    >>> walks(np.array([[2.0, -9.0], [0.5, -1.0]]), np.ones(2), np.array([1, 2]), tau=1.0)
    Walks(sums=array([ 2. , -0.5]), features=array([1, 2]))
    """
    m, n = z.shape
    sums, tau, features = np.zeros(m) + start, np.zeros(m) + tau, np.zeros(m, int)
    active, at, first = np.arange(m), 0, 0
    while active.size and at < len(looks):
        upto = _together(looks, at, first, active.size)
        here, last = np.asarray(looks[at:upto]), int(looks[upto - 1])
        partial = _partial_sums(z[:, first:last], w[first:last], here - first, active) + sums[active, None]
        reached = (np.abs(partial) if two_sided else partial) >= tau[active, None] + slope / n * here
        ends, every = reached.argmax(axis=1), np.arange(active.size)  # 0 where none is reached
        stops = reached[every, ends]
        ends[~stops] = here.size - 1
        sums[active], features[active] = partial[every, ends], here[ends]
        active, at, first = active[~stops], upto, last
    return Walks(sums, features)


def _together(looks: np.ndarray, at: int, first: int, rows: int) -> int:
    """The end of the looks from `at` on that are taken at once."""
    if rows * (looks[at] - first) >= FEW:
        return at + 1
    return max(at + 1, int(np.searchsorted(looks, first + MANY // rows, side="right")))


def _partial_sums(z: np.ndarray, w: np.ndarray, looks: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Of the active rows of z (m, n) after each of `looks`, the last of them n: (active, looks)."""
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
    """Where walks stop: at tau, which rises by slope until the end."""

    tau: float
    slope: float


class Lesson(NamedTuple):
    """What a run of examples up to a mistake, or to a look around, came to."""

    last: int  # the example it ends with
    features: int  # evaluated
    stopped: np.ndarray  # which of them were not evaluated to the end
    margins: np.ndarray  # of the probes
    mistaken: bool  # the last one


class Attentive:
    """A student under way, weights w (n,) and a bias b, and the mean and variance of its margins, as probes tell."""

    def __init__(self, w: np.ndarray, boundary: str | Boundary, delta: float, memory: int = MEMORY):
        self.w, self.b = w, 0.0
        self.boundary, self.delta, self.memory = boundary, delta, memory
        self.probes, self.mean, self.variance = 0, 0.0, 0.0
        self.level = Level(np.inf, 0.0)

    def take(self, margins: np.ndarray) -> None:
        """Exponentially forgetting mean and variance, and the level that follows."""
        if not margins.size:
            return
        for margin in margins:
            self.probes += 1
            share = max(1 / self.probes, 1 / self.memory)
            apart = margin - self.mean
            self.mean += share * apart
            self.variance = (1 - share) * (self.variance + share * apart**2)
        if self.probes >= ENOUGH and self.variance > 0:
            self._watch()

    def know(self, mean: float, variance: float) -> None:
        """Mean and variance that need not be learnt from probes."""
        self.probes, self.mean, self.variance = max(self.memory, ENOUGH), mean, variance
        self._watch()

    def blind(self) -> float:
        """The level for examples whose label is not known: of a walk that drifts to neither side."""
        if not np.isfinite(self.level.tau):
            return np.inf
        return float(threshold(self.boundary, self.delta, 0.0, self.variance))

    def _watch(self) -> None:
        tau = float(threshold(self.boundary, self.delta, self.mean, self.variance))
        self.level = Level(tau, float(rise(self.boundary, self.mean)))


class Student(Protocol):
    """Weights w (n,), a bias b and a level, which change as it learns."""

    w: np.ndarray
    b: float
    level: Level


def lessons(
    student: Student, z: np.ndarray, start: np.ndarray, probes: np.ndarray, looks: np.ndarray, block: int = 64
) -> Iterator[Lesson]:
    """One pass over rows z (m, n), examples times labels, whose bias enters times `start` (m,), the labels.

    The receiver of a lesson lets the student learn from it before the next. Where `probes` (m,) an example is
    evaluated fully, whatever its sums: their margins are a fair sample.
    """
    at = 0
    while at < len(z):
        part = slice(at, at + block)
        tau = np.where(probes[part], np.inf, student.level.tau)
        found = walks(z[part], student.w, looks, tau, student.b * start[part], student.level.slope)
        errors = np.flatnonzero((found.features == z.shape[1]) & wrong(found.sums))
        mistaken = bool(errors.size)
        count = int(errors[0]) + 1 if mistaken else len(found.sums)
        margins = found.sums[:count][probes[at : at + count]]
        features = found.features[:count]
        yield Lesson(at + count - 1, int(features.sum()), features < z.shape[1], margins, mistaken)
        at += count
        block = max(block // 2, FEWEST) if mistaken else min(2 * block, 8192)
