r"""Exponents of power laws, fitted to means over runs.

The exponent of :math:`y\propto x^a` is the slope of a straight line through :math:`\log\langle y\rangle` against
:math:`\log x`, fitted by least squares to the upper half of the logarithmic range of x, where power laws of large x
appear. The error is computed by a jackknife over runs, because points of the same runs at several times are correlated,
so that the scatter about the line underestimates the error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MIN_FIT_POINTS = 3


class FittedExponent(NamedTuple):
    """An exponent, its standard error (NaN for a single run), and the ends of the fitted line, (2,) each."""

    value: float
    error: float
    x: np.ndarray
    y: np.ndarray

    @property
    def text_with_error(self) -> str:
        """The exponent with its error in units of the last digit.

        >>> ends = np.ones(2)
        >>> exponents = FittedExponent(-0.9876, 0.0132, ends, ends), FittedExponent(0.5, float("nan"), ends, ends)
        >>> [exponent.text_with_error for exponent in exponents]
        ['-0.988(13)', '0.50']
        """
        if not self.error > 0:
            return f"{self.value:.2f}"
        digits = max(0, 1 - int(np.floor(np.log10(self.error))))
        return f"{self.value:.{digits}f}({round(self.error * 10**digits)})"


def fit_exponent(x: np.ndarray, run_values: np.ndarray, min_x: float = 0.0) -> FittedExponent | None:
    """Fit the exponent of a power law.

    Parameters
    ----------
    x
        Abscissae (n,).
    run_values
        Values (seeds, n) of each run at x, NaN where a value is missing.
    min_x
        The smallest x of the fit, by default the geometric mean of the ends.

    Returns
    -------
    Exponent
        None for fewer than three positive points in this range.

    Examples
    --------
    >>> x = np.geomspace(1, 100, 9)
    >>> fitted = fit_exponent(x, np.array([2 / x, 4 / x]))
    >>> round(fitted.value, 6), fitted.x.tolist(), round(float(fitted.y[-1]), 6)
    (-1.0, [10.0, 100.0], 0.03)
    """
    mean = _average_runs(run_values)
    positive = (x > 0) & (mean > 0)
    if not positive.any():
        return None
    min_x = min_x or float(np.sqrt(x[positive].min() * x[positive].max()))
    selected = positive & (x >= min_x * (1 - 1e-9))
    if selected.sum() < MIN_FIT_POINTS:
        return None
    x, run_values = x[selected], run_values[:, selected]
    slope, offset = _fit_log_log_line(x, mean[selected])
    ends = np.array([x.min(), x.max()])
    return FittedExponent(slope, _jackknife_error(x, run_values), ends, np.exp(offset) * ends**slope)


def _average_runs(run_values: np.ndarray) -> np.ndarray:
    is_finite = np.isfinite(run_values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(is_finite, run_values, 0).sum(axis=0) / is_finite.sum(axis=0))


def _fit_log_log_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    slope, offset = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope), float(offset)


def _jackknife_error(x: np.ndarray, run_values: np.ndarray) -> float:
    """Compute the jackknife error of the slope over runs, or NaN if a mean is not positive."""
    count = len(run_values)
    means = [_average_runs(np.delete(run_values, seed, axis=0)) for seed in range(count)] if count > 1 else []
    if not means or not np.all(np.array(means) > 0):
        return float("nan")
    slopes = np.array([_fit_log_log_line(x, mean)[0] for mean in means])
    return float(np.sqrt((count - 1) / count * ((slopes - slopes.mean()) ** 2).sum()))
