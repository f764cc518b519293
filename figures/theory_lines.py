"""Points of theory lines: more points where a line would look like a polygon, and ends at the limits of the axes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.interpolate import PchipInterpolator

from figures.curves import Curve
from figures.style import replace_infinities

MAX_POLYGON_POINTS = 180  # a line through fewer points looks like a polygon
INSERTED_POINTS = 5  # between two neighbouring points
SMOOTH_INTEGER_AXES = ("epochs", "P", "generations")  # unlike the votes of even and odd K


def round_line(curve: Curve, log: str, x_name: str = "") -> Curve:
    """Insert points into a coarse line of theory, on the monotone cubic interpolation between its points.

    Lines at integers stay as they are, unless the line is known to be smooth, as at epochs. So do lines with a band,
    and values that are not finite.

    Parameters
    ----------
    curve
        The curve.
    log
        The logarithmic axes. The line is interpolated in their logarithms.
    x_name
        The name of the horizontal axis.

    Examples
    --------
    >>> x = np.array([0.0, 0.5, 1.5, 2.0])
    >>> rounded = round_line(Curve("", x, theory_x=x, theory=x**2), "")
    >>> rounded.theory_x.size, bool((abs(rounded.theory - rounded.theory_x**2) < 0.05).all())
    (19, True)
    """
    x, y = curve.theory_x, curve.theory
    if x is None or y is None or curve.band is not None or x.size < 3 or not (np.diff(x) > 0).all():
        return curve
    is_integer, is_smooth = np.array_equal(x, np.round(x)), x_name in SMOOTH_INTEGER_AXES
    if (is_integer and not is_smooth) or (x.size > MAX_POLYGON_POINTS and not is_integer):
        return curve
    x_is_log, y_is_log = "x" in log and x[0] > 0, "y" in log and bool((y[np.isfinite(y)] > 0).all())
    u, v = np.log(x) if x_is_log else x, y
    if y_is_log:
        v = np.log(y)
    steps = np.arange(1, INSERTED_POINTS + 1) / (INSERTED_POINTS + 1)
    fine_x, fine_y = np.asarray(x, float), y
    runs = np.split(np.arange(x.size), np.flatnonzero(np.diff(np.isfinite(v))) + 1)
    for run in (run for run in runs[::-1] if run.size > 2 and np.isfinite(v[run]).all()):
        inserted = (u[run[:-1], None] + np.diff(u[run])[:, None] * steps).ravel()
        positions = np.repeat(run[1:], INSERTED_POINTS)
        values = PchipInterpolator(u[run], v[run])(inserted)
        fine_y = np.insert(fine_y, positions, np.exp(values) if y_is_log else values)
        fine_x = np.insert(fine_x, positions, np.exp(inserted) if x_is_log else inserted)
    return replace(curve, theory_x=fine_x, theory=fine_y)


def clip_curve(curve: Curve, low: float, high: float) -> Curve:
    """Omit the values of a curve outside the limits of the vertical axis, where the line of theory ends.

    A line with a band is left to the axes, which cut both.
    """
    if curve.mean is not None:
        is_inside = (curve.mean >= low) & (curve.mean <= high)
        curve = replace(curve, mean=np.where(is_inside, curve.mean, np.nan))
    if curve.theory is None or curve.theory_x is None or curve.band is not None:
        return curve
    x, y = clip_line(np.asarray(curve.theory_x, float), curve.theory, low, high)
    return replace(curve, theory_x=x, theory=y)


def clip_line(x: np.ndarray, y: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Cut a line at the heights `low` and `high`, with a point where it crosses them, and NaN outside.

    >>> x, y = clip_line(np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 6.0]), -np.inf, 4.0)
    >>> x.tolist(), y.tolist()
    ([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 4.0, nan])
    """
    y = replace_infinities(y)
    for end in (low, high):
        crossings = np.flatnonzero((y[:-1] - end) * (y[1:] - end) < 0) if np.isfinite(end) else np.array([], int)
        fractions = (end - y[crossings]) / (y[crossings + 1] - y[crossings])
        x = np.insert(x, crossings + 1, x[crossings] + fractions * (x[crossings + 1] - x[crossings]))
        y = np.insert(y, crossings + 1, end)
    return x, np.where((y >= low) & (y <= high), y, np.nan)
