r"""Specialisation of a network's students: the alignment of each student with a teacher unit.

With the cosines :math:`\rho_{km} = R_{km}/\sqrt{Q_{kk}T_{mm}}`, and n = min(K, M),

.. math:: \rho = \max_\pi\frac1n\sum_{i=1}^n \rho_{k_i m_i}

over all assignments of n students to n teacher units. Runs specialise to different assignments, so that the mean of R
over runs may vanish where the mean of :math:`\rho` does not.
"""

from __future__ import annotations

import itertools
from math import perm

import numpy as np

PLATEAU_COSINE_TOL = 1e-9  # tolerance for mean cosines
MAX_ENUMERATED_ASSIGNMENTS = 24  # per matrix: larger problems use the assignment solver


def specialisation(T: np.ndarray, R: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the mean cosine between students and their teacher units in the best assignment.

    Parameters
    ----------
    T : array (M, M)
        Products of teacher units.
    R : array (..., K, M)
        Products of student and teacher units.
    Q : array (..., K, K)
        Products of student units. A unit of length 0 has cosine 0 with all others.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> R = np.array([[0.1, 0.9], [0.8, 0.0]])
    >>> round(float(specialisation(np.eye(2), R, np.eye(2))), 12)                    # each with the other's number
    0.85
    """
    squares = np.maximum(np.diagonal(Q, axis1=-2, axis2=-1), 0.0)  # rounding may make a vanishing square negative
    lengths = np.sqrt(squares)[..., :, None] * np.sqrt(np.diagonal(T))
    cosines = np.divide(R, lengths, out=np.zeros(np.broadcast_shapes(R.shape, lengths.shape)), where=lengths > 0)
    if cosines.shape[-2] > cosines.shape[-1]:
        cosines = np.swapaxes(cosines, -1, -2)
    num_rows, num_columns = cosines.shape[-2:]
    return (
        _maximise_cosine_by_enumeration
        if perm(num_columns, num_rows) <= MAX_ENUMERATED_ASSIGNMENTS
        else _maximise_cosine_by_solver
    )(cosines)


def is_on_plateau(T: np.ndarray, R: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return True where students have not left the symmetric plateau.

    Their specialisation is then closer to the specialisation of students parallel to the mean teacher unit than to 1.

    Parameters
    ----------
    T, R, Q
        As in `specialisation`.

    Returns
    -------
    array (...) of bool
        False for a teacher of one unit, or of equal units.

    Examples
    --------
    >>> symmetric = np.full((2, 2), 0.5)
    >>> bool(is_on_plateau(np.eye(2), symmetric, symmetric)), bool(is_on_plateau(np.eye(2), np.eye(2), np.eye(2)))
    (True, False)
    """
    towards_mean = T.sum(-1) / np.sqrt(np.diagonal(T) * T.sum())
    return np.asarray(specialisation(T, R, Q) < (1 + towards_mean.mean()) / 2 - PLATEAU_COSINE_TOL)


def _maximise_cosine_by_enumeration(cosines: np.ndarray) -> np.ndarray:
    """Return the best mean cosine over all assignments, for cosines (..., n, m) with n <= m."""
    num_rows, num_columns = cosines.shape[-2:]
    assignments = np.array(list(itertools.permutations(range(num_columns), num_rows)))
    return np.asarray(cosines[..., np.arange(num_rows), assignments].mean(-1).max(-1))


def _maximise_cosine_by_solver(cosines: np.ndarray) -> np.ndarray:
    """Solve the assignment problem of each matrix in turn. A matrix with NaN yields NaN."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    flat = cosines.reshape(-1, *cosines.shape[-2:])
    means = np.full(len(flat), np.nan)
    for index in np.flatnonzero(np.isfinite(flat).all((-2, -1))):
        means[index] = flat[index][linear_sum_assignment(flat[index], maximize=True)].mean()
    return means.reshape(cosines.shape[:-2])
