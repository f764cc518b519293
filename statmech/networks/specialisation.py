r"""Specialisation of a network's students: how far each has turned to a teacher unit.

With the cosines :math:`\rho_{km} = R_{km}/\sqrt{Q_{kk}T_{mm}}`, and n = min(K, M),

.. math:: \rho = \max_\pi\frac1n\sum_{i=1}^n \rho_{k_i m_i}

over all assignments of n students to n teacher units. Runs specialise to different assignments, so that means of R
over runs vanish where the mean of this does not.
"""

from __future__ import annotations

import itertools
from math import perm

import numpy as np

ROUNDING = 1e-9  # of a cosine
MOST = 24  # assignments that are enumerated, for all leading axes together


def specialisation(T: np.ndarray, R: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """The mean cosine of min(K, M) pairs of students and teacher units in the best assignment.

    Parameters
    ----------
    T : array (M, M)
        Products of teacher units.
    R : array (..., K, M)
        Products of student and teacher units.
    Q : array (..., K, K)
        Products of student units; a unit of length 0 has cosine 0 with all others.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> R = np.array([[0.1, 0.9], [0.8, 0.0]])
    >>> round(float(specialisation(np.eye(2), R, np.eye(2))), 12)                    # each with the other's number
    0.85
    """
    squares = np.maximum(np.diagonal(Q, axis1=-2, axis2=-1), 0.0)  # rounding may leave less than 0 of a unit that fades
    lengths = np.sqrt(squares)[..., :, None] * np.sqrt(np.diagonal(T))
    cosines = np.divide(R, lengths, out=np.zeros(np.broadcast_shapes(R.shape, lengths.shape)), where=lengths > 0)
    if cosines.shape[-2] > cosines.shape[-1]:
        cosines = np.swapaxes(cosines, -1, -2)
    few, many = cosines.shape[-2:]
    return (_enumerated if perm(many, few) <= MOST else _assigned)(cosines)


def on_plateau(T: np.ndarray, R: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """True where students have not left the symmetric plateau: their specialisation lies closer to that of students who
    all point to the mean of the teacher's units than to 1.

    Parameters
    ----------
    T, R, Q
        Those of `specialisation`.

    Returns
    -------
    array (...) of bool
        False for a teacher of one unit, or of equal units.

    Examples
    --------
    >>> symmetric = np.full((2, 2), 0.5)
    >>> bool(on_plateau(np.eye(2), symmetric, symmetric)), bool(on_plateau(np.eye(2), np.eye(2), np.eye(2)))
    (True, False)
    """
    towards_mean = T.sum(-1) / np.sqrt(np.diagonal(T) * T.sum())
    return np.asarray(specialisation(T, R, Q) < (1 + towards_mean.mean()) / 2 - ROUNDING)


def _enumerated(cosines: np.ndarray) -> np.ndarray:
    """The best of all assignments, for cosines (..., n, more)."""
    few, many = cosines.shape[-2:]
    assignments = np.array(list(itertools.permutations(range(many), few)))
    return np.asarray(cosines[..., np.arange(few), assignments].mean(-1).max(-1))


def _assigned(cosines: np.ndarray) -> np.ndarray:
    """The best assignment of each matrix in turn; NaN where there is one."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    flat = cosines.reshape(-1, *cosines.shape[-2:])
    means = np.full(len(flat), np.nan)
    for at in np.flatnonzero(np.isfinite(flat).all((-2, -1))):
        means[at] = flat[at][linear_sum_assignment(flat[at], maximize=True)].mean()
    return means.reshape(cosines.shape[:-2])
