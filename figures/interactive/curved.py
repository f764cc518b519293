"""A line between solved values, bent as smoothly on its axes as a chart shows it."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import Akima1DInterpolator

FEW, DENSE = 5, 100  # places: of fewer the bends are not known, and of more no chord can be seen
STEPS = 4  # between two solved values


def curved(x: np.ndarray, y: np.ndarray, log_x: bool, log_y: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return a line through these values with further places between them.

    They are those of a modified Akima spline in the coordinates of the chart, which does not overshoot beside a flat
    part, such as an error that has reached 0.

    >>> x, y = curved(np.arange(6.0), np.array([0.3, 0.2, 0.1, 0.0, 0.0, 0.0]), False, False)
    >>> x[:5], y[::4], y.min()
    (array([0.  , 0.25, 0.5 , 0.75, 1.  ]), array([0.3, 0.2, 0.1, 0. , 0. , 0. ]), np.float64(0.0))
    """
    if not FEW <= x.size < DENSE or (np.diff(x) <= 0).any():
        return x, y
    u, v = np.log(x) if log_x else x, np.log(y) if log_y else y
    steps = np.arange(STEPS * (x.size - 1) + 1) / STEPS
    u_fine = np.interp(steps, np.arange(x.size), u)
    v_fine = Akima1DInterpolator(u, v, method="makima")(u_fine)
    fine_x, fine_y = np.exp(u_fine) if log_x else u_fine, np.exp(v_fine) if log_y else v_fine
    fine_x[::STEPS], fine_y[::STEPS] = x, y  # every digit of what was solved
    return fine_x, fine_y
