r"""Learning curves of a real table with their shape from theory, anchored at measured errors.

Real classes are not Gaussian clusters, so that the error of theory alone is wrong on every third table. Its dependence
on the number of examples is nevertheless right. The measurements are the errors of fits at two sizes, and the errors on
all n rows, each by a learner that has not seen the row.

**Anchored.** The stabilities of all rows in class y have the mean :math:`M_y`, in units of their standard deviation,
and the standardised values :math:`\zeta`. In theory they are normal with the mean :math:`t_y = \mu_y/Q`. With the sums
:math:`D = t_+ + t_-` and differences :math:`O = t_+ - t_-` of both classes, and the same for :math:`M_y` at n,

.. math:: D_P = D^\mathrm{th}_P\,\frac{D_n}{D^\mathrm{th}_n}, \qquad
          O_P = O^\mathrm{th}_P + O_n - O^\mathrm{th}_n, \qquad
          \epsilon_P = \sum_y\pi_y\,P\bigl(t_y + \sqrt r\,\zeta + \sqrt{1-r}\,\xi < 0\bigr) .

Fewer examples add Gaussian noise :math:`\xi` to the stabilities:
:math:`r = \min(1, (D^\mathrm{th}_P/D^\mathrm{th}_n)^2)`.
On discrete columns r = 1 is better, and the curve is the geometric mean of both.

**Moved.** For P up to n the curve is shifted in :math:`\Phi^{-1}(\epsilon)` so that it goes through the measured
errors, with shifts linear in ln P between them. For P > n

.. math:: \Phi^{-1}(\epsilon_P) = \Phi^{-1}(\epsilon^\mathrm{th}_P)\,
          \frac{\Phi^{-1}(\epsilon_n)}{\Phi^{-1}(\epsilon^\mathrm{th}_n)} .

A squared error is moved in the same way, by logarithms instead of :math:`\Phi^{-1}`. `docs/howto/own_data.md` lists the
tables of the tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

MAX_PLAUSIBLE_LABEL_ERROR = 0.6  # larger label errors are noise of short tables
SINGLE_ROW_KERNEL_WIDTH = 0.25  # for a class of one row, in standard deviations of its stabilities
BAND_NORMAL_QUANTILE = 1.645  # half width of a 90 % interval, in standard deviations
MOVED_CURVE_RELATIVE_ERROR = 0.05  # relative error of moved curves, in addition to the noise of the table
THEORY_LOG_RATIO_TOL = 0.14  # theory alone is wrong if |ln(measured / theory)| is larger
SHAPE_LOG_RATIO_TOL = 0.5  # the shape of the curve is wrong if |ln(measured / anchored)| is larger
MAX_DEVIATION_STANDARD_ERRORS = 1.5  # deviations up to this number of standard errors agree
MIN_MISCLASSIFIED_ROWS = 10  # fewer misclassified rows do not determine an error


class MeasuredStabilities(NamedTuple):
    """Stabilities of the unseen rows of each class.

    `positions` (2,) are the means in units of the standard deviation, and `standardised` the standardised values.
    """

    positions: np.ndarray
    standardised: tuple[np.ndarray, np.ndarray]


def standardise_stabilities(stabilities: np.ndarray, y: np.ndarray) -> MeasuredStabilities:
    """Standardise the measured stabilities of each class, the anchor of a learning curve.

    Parameters
    ----------
    stabilities
        Stabilities of rows unseen by their learner (n,).
    y
        Labels +1 and -1 (n,).
    """
    classes = [stabilities[y > 0], stabilities[y < 0]]
    means, deviations = (np.array([function(part) for part in classes]) for function in (np.mean, np.std))
    deviations = np.maximum(deviations, np.finfo(float).tiny)
    plus, minus = ((part - mean) / width for part, mean, width in zip(classes, means, deviations, strict=True))
    return MeasuredStabilities(means / deviations, (plus, minus))


def compute_anchored_errors(
    theory: np.ndarray, theory_of_full_table: np.ndarray, measured: MeasuredStabilities, fractions: np.ndarray
) -> np.ndarray:
    """Return the errors (2, P) of both classes on the anchored curve.

    Parameters
    ----------
    theory
        Means of theory's stabilities over their standard deviation, in each class at each number of examples (2, P).
    theory_of_full_table
        The same for all rows as examples (2, 1).
    measured
        The measured stabilities of all rows.
    fractions
        Fractions of the rows in both classes (2,).
    """
    position = measured.positions[:, None]
    D, O = theory[0] + theory[1], theory[0] - theory[1]
    D_n, O_n = theory_of_full_table[0] + theory_of_full_table[1], theory_of_full_table[0] - theory_of_full_table[1]
    D_P = D * (position[0] + position[1]) / D_n
    O_P = O + (position[0] - position[1]) - O_n
    means = np.array([D_P + O_P, D_P - O_P]) / 2
    mixed = np.minimum(1, (D / D_n) ** 2)
    errors = [_compute_class_errors(means, ratio, measured.standardised) for ratio in (mixed, np.ones_like(D))]
    totals = [fractions @ part for part in errors]
    with np.errstate(all="ignore"):
        return np.where(totals[0] > 0, errors[0] * np.sqrt(totals[1] / totals[0]), errors[0])


def _compute_class_errors(
    means: np.ndarray, ratio: np.ndarray, standardised: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the errors (2, P) of both classes on an anchored curve, from their mean stabilities (2, P).

    A fraction `ratio` (P,) of the variance of the stabilities has the measured distribution, the rest is Gaussian.
    """
    errors = []
    for mean, values in zip(means, standardised, strict=True):
        width = SINGLE_ROW_KERNEL_WIDTH * len(values) ** -0.2
        deviation = np.sqrt(1 - ratio + ratio * width**2)
        errors.append(np.mean(ndtr((-mean - np.sqrt(ratio) * values[:, None]) / deviation), axis=0))
    return np.array(errors)


class MeasuredErrors(NamedTuple):
    """Errors on unseen rows with standard errors at three numbers of examples, the last for the full table."""

    P: np.ndarray
    error: np.ndarray
    deviation: np.ndarray


class PredictedCurve(NamedTuple):
    """Errors predicted by theory and by the anchored curve, arrays (P,) over numbers of examples."""

    theory: np.ndarray
    anchored: np.ndarray

    def split(self, count: int) -> tuple[PredictedCurve, PredictedCurve]:
        """Split the curve after its first `count` points."""
        return PredictedCurve(*(part[:count] for part in self)), PredictedCurve(*(part[count:] for part in self))


@dataclass(frozen=True)
class ErrorScale(ABC):
    """Scale for shifting errors, with an error band. Subclasses describe label errors and squared errors.

    Parameters
    ----------
    noise
        For labels the number of rows, for squared errors the relative standard error of the error of all rows.
    """

    noise: float

    @property
    @abstractmethod
    def smallest_measurable_error(self) -> float:
        """Smallest error that differs measurably from 0."""

    @abstractmethod
    def transform_errors(self, errors: np.ndarray) -> np.ndarray:
        """Transform errors to this scale, where differences between curves are most uniform."""

    @abstractmethod
    def restore_errors(self, values: np.ndarray) -> np.ndarray:
        """Transform values on this scale back to errors."""

    @abstractmethod
    def extrapolate_errors(self, errors: np.ndarray, source: float, target: float) -> np.ndarray:
        """Rescale errors (P,) for more examples than rows, so that the theoretical error `source` becomes `target`."""

    @abstractmethod
    def compute_half_band(self, errors: np.ndarray) -> np.ndarray:
        """Return half the width of a 90 % band around errors (P,)."""


@dataclass(frozen=True)
class LabelErrorScale(ErrorScale):
    """Scale of label errors, which are shifted as normal quantiles."""

    @property
    def smallest_measurable_error(self) -> float:
        return 0.3 / self.noise

    def transform_errors(self, errors: np.ndarray) -> np.ndarray:
        return np.asarray(ndtri(np.clip(errors, self.smallest_measurable_error, MAX_PLAUSIBLE_LABEL_ERROR)))

    def restore_errors(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(ndtr(values))

    def extrapolate_errors(self, errors: np.ndarray, source: float, target: float) -> np.ndarray:
        ratio = self.transform_errors(np.array(target)) / self.transform_errors(np.array(source))
        return self.restore_errors(self.transform_errors(errors) * ratio)

    def compute_half_band(self, errors: np.ndarray) -> np.ndarray:
        variance = np.maximum(errors * (1 - errors), 0.5 / self.noise) / self.noise
        return BAND_NORMAL_QUANTILE * np.sqrt(variance + (MOVED_CURVE_RELATIVE_ERROR * errors) ** 2)


@dataclass(frozen=True)
class SquaredErrorScale(ErrorScale):
    """Scale of mean squared errors, which are multiplied by factors."""

    @property
    def smallest_measurable_error(self) -> float:
        return float(np.finfo(float).tiny)

    def transform_errors(self, errors: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(errors, self.smallest_measurable_error))

    def restore_errors(self, values: np.ndarray) -> np.ndarray:
        return np.exp(values)

    def extrapolate_errors(self, errors: np.ndarray, source: float, target: float) -> np.ndarray:
        return errors * max(target, self.smallest_measurable_error) / max(source, self.smallest_measurable_error)

    def compute_half_band(self, errors: np.ndarray) -> np.ndarray:
        return BAND_NORMAL_QUANTILE * errors * np.hypot(self.noise, MOVED_CURVE_RELATIVE_ERROR)


def move_curve_to_errors(
    P: np.ndarray, curve: PredictedCurve, measured: MeasuredErrors, curve_at_measured: PredictedCurve, scale: ErrorScale
) -> np.ndarray:
    """Shift an anchored learning curve so that it passes through the measured errors.

    Parameters
    ----------
    P
        Numbers of examples (P,).
    curve
        Theory and the anchored curve at P.
    measured
        The measured errors.
    curve_at_measured
        Theory and the anchored curve at the numbers of examples of the measured errors.
    scale
        The scale of the errors.
    """
    errors, log_P, log_at = _compute_anchor_errors(measured, curve_at_measured, scale), np.log(P), np.log(measured.P)
    inside = measured.P[-1] >= P
    with np.errstate(all="ignore"):
        line = np.exp(np.interp(log_P, log_at, np.log(np.maximum(errors, scale.smallest_measurable_error))))
        shifts = scale.transform_errors(errors) - scale.transform_errors(curve_at_measured.anchored)
        interpolated = scale.restore_errors(scale.transform_errors(curve.anchored) + np.interp(log_P, log_at, shifts))
        extrapolated = scale.extrapolate_errors(curve.theory, float(curve_at_measured.theory[-1]), float(errors[-1]))
    result = np.where(inside, interpolated, extrapolated)
    return np.where(np.isnan(result) & inside, line, result)


def _compute_anchor_errors(
    measured: MeasuredErrors, curve_at_measured: PredictedCurve, scale: ErrorScale
) -> np.ndarray:
    """Return the errors (3,) that the anchored curve must pass through.

    The error of all rows is averaged with an extrapolation of the preceding fit along the theoretical curve.
    """
    errors = measured.error.copy()
    if np.isfinite(curve_at_measured.theory).all():
        before = max(
            errors[-2] + curve_at_measured.theory[-1] - curve_at_measured.theory[-2], scale.smallest_measurable_error
        )
        errors[-1] = 0.5 * (errors[-1] + before)
    return errors


def compute_log_error_ratios(measured: MeasuredErrors, theory: np.ndarray, scale: ErrorScale) -> np.ndarray:
    """Return the logarithms of the ratios (3,) of measured to theoretical errors."""
    return np.log((measured.error + scale.smallest_measurable_error) / (theory + scale.smallest_measurable_error))


def judge_theory(
    measured: MeasuredErrors, curve_at_measured: PredictedCurve, scale: ErrorScale, num_wrong: float
) -> str:
    """Return the verdict on theory and its anchored curve: "good", "moved", "unsure", or "too few errors to measure".

    Parameters
    ----------
    measured, curve_at_measured, scale
        As in `move_curve_to_errors`.
    num_wrong
        The number of rows that learners without these rows classify wrongly, infinite for a numerical target.
    """
    if num_wrong < MIN_MISCLASSIFIED_ROWS:
        return "too few errors to measure"

    def agrees(theory: np.ndarray, tolerance: float) -> np.ndarray:
        near = np.abs(compute_log_error_ratios(measured, theory, scale)) <= tolerance
        return near | (np.abs(measured.error - theory) <= MAX_DEVIATION_STANDARD_ERRORS * measured.deviation)

    if np.all(agrees(curve_at_measured.theory, THEORY_LOG_RATIO_TOL)):
        return "good"
    return "moved" if np.all(agrees(curve_at_measured.anchored, SHAPE_LOG_RATIO_TOL)[:-1]) else "unsure"
