r"""The error of a majority vote of any students, by exact integration over great circles.

For two independent inputs x and x', every :math:`x\cos\phi + x'\sin\phi` has the distribution of an input, so eps_g is
the mean over circles of the fraction of :math:`\phi\in[0,\pi)` on which the vote is wrong (the other half turn repeats
it with all signs reversed). On a circle each of the K + 1 perceptrons changes sign once, at an angle known in closed
form; between these angles the vote is constant, so the fraction is a sum of arcs. It is continuous in the fields and
decreases with the students' angles to the teacher: its *relative* error does not grow near perfect learning.

The weight mean is a single perceptron, whose eps_g is known exactly: its deviation on the same circles corrects the
vote's (a control variate with coefficient 1). Circles are random or from a scrambled Sobol net; either way the average
is unbiased, and independent draws give its error.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

TEST_CIRCLES = 1024  # per run; the estimate is unbiased, so the spread of seeds includes its error
MAX_SOBOL = 21_201  # dimensions that SciPy tabulates


def circles(rng: np.random.Generator, points: int, n: int) -> np.ndarray:
    """Random pairs of inputs' coordinates along (1) and across (n) the teacher, shape (2, points, 1 + n)."""
    return rng.standard_normal((2, points, 1 + n))


def net_of_circles(rng: np.random.Generator, points: int, n: int) -> np.ndarray:
    """The same from a scrambled Sobol net of `points` (a power of 2).

    Random if SciPy tabulates no net of so many dimensions. A net pays above some thousand points: with 1,024 the vote's
    error varies as much as with random circles.
    """
    dimensions = 2 * (1 + n)
    if dimensions > MAX_SOBOL:
        return circles(rng, points, n)
    from scipy.stats import qmc  # here: it takes longer to import than the rest of this package

    net = qmc.Sobol(dimensions, rng=rng).random(points)
    return np.moveaxis(ndtri(np.clip(net, 1e-16, 1 - 1e-16)).reshape(points, 2, 1 + n), 1, 0)


def vote_error(along: np.ndarray, factor: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """eps_g of the majority vote of students with components along (..., K) and across (..., K, n) the teacher.

    `inputs` are `circles`, and may have axes between the first two that broadcast with the leading axes of the
    students. For even K a tie is decided by a fair coin.

    >>> inputs = circles(np.random.default_rng(0), 1024, 1)
    >>> error = vote_error(np.array([1.0]), np.array([[1.0]]), inputs)     # one student at 45 degrees: 1/4
    >>> bool(abs(error - 0.25) < 1e-12)
    True
    """
    teacher = inputs[..., :1]  # (2, ..., points, 1)
    across = np.swapaxes(factor, -1, -2)
    fields = [along[..., None, :] * x[..., :1] + x[..., 1:] @ across for x in inputs]
    mean = [field.sum(axis=-1, keepdims=True) for field in fields]
    excess = _wrong_fraction(teacher, fields) - _wrong_fraction(teacher, mean)
    sum_along, sum_across = along.sum(axis=-1), np.linalg.norm(factor.sum(axis=-2), axis=-1)
    return excess.mean(axis=-1) + np.arctan2(sum_across, sum_along) / np.pi


def _wrong_fraction(teacher: np.ndarray, fields: list[np.ndarray]) -> np.ndarray:
    """The fraction of each circle with a wrong vote; teacher (2, .., points, 1), students 2 x (.., points, K)."""
    turns = _turn(*fields)
    order = np.argsort(turns, axis=-1)
    start = np.sign(fields[0])
    change = np.take_along_axis(-2 * start, order, axis=-1)
    total = start.sum(axis=-1, keepdims=True)
    vote = np.sign(np.concatenate([total, total + np.cumsum(change, axis=-1)], axis=-1))
    ends = np.zeros_like(total)
    edges = np.concatenate([ends, np.take_along_axis(turns, order, axis=-1), ends + np.pi], axis=-1)
    arcs = np.diff(edges, axis=-1)
    before = np.clip(_turn(*teacher) - edges[..., :-1], 0.0, arcs)  # part of each arc before the teacher's turn
    agreement = np.sign(teacher[0, ..., 0]) * np.sum(vote * (2 * before - arcs), axis=-1)
    return (1 - agreement / np.pi) / 2


def _turn(field: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The angle in [0, pi) at which field cos(phi) + other sin(phi) changes sign."""
    return np.arctan2(-field, other) % np.pi
