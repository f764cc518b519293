"""A smooth line through solved values, in the linear or logarithmic coordinates of a chart."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import Akima1DInterpolator

MIN_SPLINE_POINTS, MAX_SPLINE_POINTS = 5, 100  # fewer points do not fix a smooth line, more do not need one
SPLINE_STEPS_PER_INTERVAL = 4  # per interval between solved values


def interpolate_smoothly(x: np.ndarray, y: np.ndarray, log_x: bool, log_y: bool) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate a line smoothly through these values.

    The interpolant is a modified Akima spline in the coordinates of the chart. It does not overshoot next to a flat
    part, such as an error that has reached 0.

    >>> x, y = interpolate_smoothly(np.arange(6.0), np.array([0.3, 0.2, 0.1, 0.0, 0.0, 0.0]), False, False)
    >>> x[:5], y[::4], y.min()
    (array([0.  , 0.25, 0.5 , 0.75, 1.  ]), array([0.3, 0.2, 0.1, 0. , 0. , 0. ]), np.float64(0.0))
    """
    if not MIN_SPLINE_POINTS <= x.size < MAX_SPLINE_POINTS or (np.diff(x) <= 0).any():
        return x, y
    u, v = np.log(x) if log_x else x, np.log(y) if log_y else y
    steps = np.arange(SPLINE_STEPS_PER_INTERVAL * (x.size - 1) + 1) / SPLINE_STEPS_PER_INTERVAL
    u_fine = np.interp(steps, np.arange(x.size), u)
    v_fine = Akima1DInterpolator(u, v, method="makima")(u_fine)
    fine_x, fine_y = np.exp(u_fine) if log_x else u_fine, np.exp(v_fine) if log_y else v_fine
    fine_x[::SPLINE_STEPS_PER_INTERVAL], fine_y[::SPLINE_STEPS_PER_INTERVAL] = x, y  # solved values must stay exact
    return fine_x, fine_y
