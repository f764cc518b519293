r"""The error of a majority vote, given students' fields across the teacher.

On an input with teacher field v > 0 student k votes for the wrong side where :math:`a_kv + y_k < 0`, with
:math:`a_k` its component along the teacher and :math:`y_k` its field across it, which is independent of v. Given the
y, the wrong votes change only at :math:`v = -y_k/a_k`; between these points the vote is constant, so its error is a
sum of Gaussian masses and v is integrated exactly. What remains is an average over K normals of a continuous
function that shrinks with the students' angles: a small eps_g is found to a small *relative* error.

The K normals are a scrambled Sobol net with its mirror image: the average stays unbiased, and independent scrambles
tell its error.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erf, ndtri
from scipy.stats import qmc

MAX_SOBOL = 21_201  # dimensions that SciPy tabulates


def scrambled_normals(rng: np.random.Generator, points: int, n: int) -> np.ndarray:
    """Normals of shape (points, n), a scrambled Sobol net (`points` a power of 2) as far as its tables go."""
    if n > MAX_SOBOL:
        return rng.standard_normal((points, n))
    return ndtri(np.clip(qmc.Sobol(n, rng=rng).random(points), 1e-16, 1 - 1e-16))


def vote_error(along: np.ndarray, factor: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """eps_g of the majority vote, shape (...), averaged over the points and their mirror images.

    `along` (..., K) and `factor` (..., K, n) give the students' vectors, `normals` (..., points, n) the fields across
    the teacher. Even K: a tie is a fair coin.

    >>> normals = scrambled_normals(np.random.default_rng(0), 1024, 1)
    >>> error = vote_error(np.array([1.0]), np.array([[1.0]]), normals)     # one student at 45 degrees: 1/4
    >>> bool(abs(error - 0.25) < 1e-3)
    True
    """
    fields = np.einsum("...kn,...pn->...pk", factor, normals)
    return _given(along[..., None, :], np.concatenate([fields, -fields], axis=-2)).mean(axis=-1)


def _given(along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """The vote's error given the fields across the teacher: shapes (..., K) to (...)."""
    K = across.shape[-1]
    turning = across * along < 0
    turns = np.divide(-across, along, out=np.zeros_like(across), where=turning)
    # a student that agrees with the teacher errs below its turning point, one that opposes it above
    toggles = np.where(turning, np.where(along > 0, -1, 1), 0)
    wrong = np.sum(across < 0, axis=-1, keepdims=True)
    order = np.argsort(turns, axis=-1)
    turns, toggles = (np.take_along_axis(part, order, axis=-1) for part in (turns, toggles))
    count = np.concatenate([wrong, wrong + np.cumsum(toggles, axis=-1)], axis=-1)
    lost = np.where(2 * count > K, 1.0, np.where(2 * count == K, 0.5, 0.0))
    mass = erf(turns / np.sqrt(2))
    mass = np.concatenate([np.zeros_like(wrong, float), mass, np.ones_like(wrong, float)], axis=-1)
    return np.sum(lost * np.diff(mass, axis=-1), axis=-1)
