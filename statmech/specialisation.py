r"""Specialisation of the units of a network: how well each student unit represents one unit of the teacher."""

from __future__ import annotations

import numpy as np


def specialisation(R: np.ndarray, Q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """The mean cosine of min(K, M) pairs of a student and a teacher unit, in the best assignment."""
    from scipy.optimize import linear_sum_assignment

    lengths = np.sqrt(np.diagonal(Q, axis1=-2, axis2=-1)[..., :, None] * np.diagonal(T, axis1=-2, axis2=-1))
    cosines = np.where(lengths > 0, R, 0.0) / np.where(lengths > 0, lengths, 1.0)
    flat = cosines.reshape(-1, *cosines.shape[-2:])
    best = [one[linear_sum_assignment(one, maximize=True)].mean() for one in flat]
    return np.asarray(best).reshape(cosines.shape[:-2])
