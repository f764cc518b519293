r"""Attention: margins evaluated a few features at a time, and no further than needed (Pelossof & Ying).

The features of an example are added up in looks, :math:`S_i = \sum_{j\le i} w_jz_j`. Where :math:`S_i` reaches a level
:math:`\tau` (`statmech.boundaries`) the example is taken for right, and the rest of its features is not evaluated. Many
examples walk side by side, and those that have stopped are left out of the next product: work is saved, not only
counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from simulate.learners.perceptron import wrong


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
    m = len(z)
    sums, features = np.array(np.broadcast_to(start, m), float), np.zeros(m, int)
    tau, active = np.broadcast_to(tau, m), np.arange(m)
    for first, last in pairwise([0, *map(int, looks)]):
        rows = z[:, first:last] if active.size == m else z[active, first:last]
        sums[active] += rows @ w[first:last]
        features[active] = last
        reached = np.abs(sums[active]) if two_sided else sums[active]
        active = active[reached < tau[active] + slope * last / z.shape[1]]
        if not active.size:
            break
    return Walks(sums, features)


class Level(NamedTuple):
    """Where walks stop: at tau, which rises by slope until the end."""

    tau: float
    slope: float


class Lesson(NamedTuple):
    """What a run of examples up to a mistake, or to a look around, came to."""

    last: int  # the example it ends with
    features: int  # evaluated
    margins: np.ndarray  # of the probes
    mistaken: bool  # the last one


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
        yield Lesson(at + count - 1, int(found.features[:count].sum()), margins, mistaken)
        at += count
        block = max(block // 2, 16) if mistaken else min(2 * block, 8192)
