r"""Teachers: the distribution of an output y given the teacher's field :math:`u = \mathbf w^*\cdot\mathbf x/\sqrt N`.

With :math:`|\mathbf w^*|^2 = N` and inputs :math:`\mathbf x\sim N(0, I)`, u is a standard normal. A teacher of labels
defines the probability of :math:`y = +1`. Theory and message passing need its average over a normal u,
`right(mean, variance)`, and the derivatives of this average and of its logarithm with respect to the mean.

If the weights are known up to a mean squared error :math:`\Delta = 1 - q`, the field of a new input is known up to a
normal variable of variance :math:`\Delta`, around a mean :math:`\omega\sim N(0, q)`. Its output then moves the
estimate along the `score` :math:`g = \partial_\omega\ln P(y|\omega, \Delta)`, and contains the Fisher information
(`fisher_information`)

.. math:: I(\Delta) = \langle g^2\rangle = -\langle\partial_\omega g\rangle
          = 2\int Dt\;\frac{(\partial_\omega P_+)^2}{P_+}\Big|_{\omega=\sqrt q\,t}
          = -2\,\frac{d}{d\Delta}\langle\ln P(y|\omega, \Delta)\rangle,

the second form for labels, :math:`P_+` = `right`; for the linear teacher :math:`I = 1/(\Delta + \sigma^2)`
(Barbier, Krzakala, Macris, Miolane & Zdeborova 2019, eqs 5 to 8).

**To add a teacher** of labels write one class and one line in `TEACHERS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from statmech.convex.logistic_average import LogisticAverage, logistic_average
from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    Array,
    make_composite_rule,
    normal_cdf,
    normal_density,
    reversed_hazard,
    reversed_hazard_excess,
)
from statmech.parameters import parameter

MIN_FIELD_VARIANCE = 1e-280  # replaces variances of 0 in divisors
NODES_PER_TRANSITION_PANEL = 24  # per panel
PANEL_EDGES_IN_WIDTHS = (1.5, 3.0, 4.5, 6.0, 8.0, 10.0, 16.0, 23.0, 32.0)  # in widths of the teacher's transition
PANEL_EDGES_IN_DEVIATIONS = (2.0, 4.0, 6.0, GAUSSIAN_CUTOFF)  # in standard deviations of the field


@dataclass(frozen=True)
class Teacher(ABC):
    """The distribution of outputs given the teacher's field."""

    label: ClassVar[str]
    equation: ClassVar[str] = ""
    labels: ClassVar[bool] = True  # True if outputs are +1 or -1

    @abstractmethod
    def draw(self, rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
        """Draw outputs y for fields u, of the same shape."""

    @abstractmethod
    def score(self, y: np.ndarray, mean: np.ndarray, variance: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivative g of ln P(y) with respect to the field's mean, and minus the second derivative."""

    @abstractmethod
    def fisher_information(self, mse: np.ndarray) -> np.ndarray:
        """Return the mean squared score at each mean squared error (L,) of the weights, from 0 to 1."""

    @abstractmethod
    def mean_log_evidence(self, mse: np.ndarray) -> np.ndarray:
        """Return the mean of ln P(y) at each mean squared error (L,) of the weights, from 0 to 1."""

    @property
    def uninformative_setting(self) -> str:
        """The setting that makes outputs independent of the teacher, such as "flip = 0.5", or an empty string."""
        return ""


@dataclass(frozen=True)
class LabelTeacher(Teacher):
    """A teacher of labels: the probability p(u) of label +1 grows with the field, and p(-u) = 1 - p(u)."""

    @abstractmethod
    def probability(self, u: np.ndarray) -> np.ndarray:
        """Return the probability of y = +1 for each field."""

    @abstractmethod
    def right(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the probability of y = +1, averaged over a normal field of this mean and variance."""

    @abstractmethod
    def mean_probability_slope(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the derivative of `right` with respect to the mean."""

    @abstractmethod
    def log_probability_slope(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the derivative of ln(right), which is response/right, even where both underflow."""

    @abstractmethod
    def log_probability_concavity(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return minus the second derivative of ln(right) with respect to the mean."""

    @abstractmethod
    def width(self, variance: np.ndarray) -> np.ndarray:
        """Return the width of the range of means where `right` rises from 0 to 1."""

    def probability_derivatives(
        self, mean: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `right` and its first two derivatives with respect to the mean."""
        right, slope = self.right(mean, variance), self.log_probability_slope(mean, variance)
        return right, right * slope, right * (slope**2 - self.log_probability_concavity(mean, variance))

    def draw(self, rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
        return np.where(rng.random(u.shape) < self.probability(u), 1.0, -1.0)

    def score(self, y: np.ndarray, mean: np.ndarray, variance: Array) -> tuple[np.ndarray, np.ndarray]:
        return y * self.log_probability_slope(y * mean, variance), self.log_probability_concavity(y * mean, variance)

    def fisher_information(self, mse: np.ndarray) -> np.ndarray:
        mean, variance, weight = self._make_half_line_quadrature(mse)
        return np.sum(weight * self.fisher_information_given_field(mean, variance), axis=-1)

    def fisher_information_given_field(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the mean squared score for a normal field of this mean and variance."""
        slopes = self.log_probability_slope(mean, variance) + self.log_probability_slope(-mean, variance)
        return self.mean_probability_slope(mean, variance) * slopes

    def mean_log_evidence(self, mse: np.ndarray) -> np.ndarray:
        from scipy.special import xlog1py, xlogy

        mean, variance, weight = self._make_half_line_quadrature(mse)
        wrong = self.right(-mean, variance)
        return np.sum(weight * (xlogy(wrong, wrong) + xlog1py(1 - wrong, -wrong)), axis=-1)

    def _make_half_line_quadrature(self, mse: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return positive field means (L, n), variances (L, 1), and weights (L, n) that count both signs."""
        mse = np.asarray(mse, float)
        deviation = np.sqrt(np.maximum(1 - mse, MIN_FIELD_VARIANCE))
        widths = np.multiply.outer(PANEL_EDGES_IN_WIDTHS, self.width(np.maximum(mse, MIN_FIELD_VARIANCE)) / deviation)
        edges = np.concatenate([widths, np.multiply.outer((0.0, *PANEL_EDGES_IN_DEVIATIONS), np.ones_like(mse))])
        t, weight = make_composite_rule(np.sort(np.minimum(edges, GAUSSIAN_CUTOFF), axis=0), NODES_PER_TRANSITION_PANEL)
        return deviation[..., None] * t, mse[..., None], 2 * weight * normal_density(t)


@dataclass(frozen=True)
class SignTeacher(LabelTeacher):
    """The sign of the field, flipped with probability `flip`."""

    label: ClassVar = "sign"
    equation: ClassVar = r"y = \pm\mathrm{sgn}\,u"
    flip: float = parameter(0.0, "probability that a label is flipped", symbol="$p_f$", at_least=0, at_most=0.5)

    def probability(self, u: np.ndarray) -> np.ndarray:
        return np.where(u > 0, 1 - self.flip, self.flip)

    def right(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self.flip + (1 - 2 * self.flip) * normal_cdf(mean / _positive_deviation(variance))

    def mean_probability_slope(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        scale = _positive_deviation(variance)
        return (1 - 2 * self.flip) * normal_density(mean / scale) / scale

    def probability_derivatives(
        self, mean: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        response = self.mean_probability_slope(mean, variance)
        return self.right(mean, variance), response, -mean / _positive_deviation(variance) ** 2 * response

    def log_probability_slope(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        if self.flip > 0:
            return self.mean_probability_slope(mean, variance) / self.right(mean, variance)
        scale = _positive_deviation(variance)
        return reversed_hazard(mean / scale) / scale

    def log_probability_concavity(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        slope, scale = self.log_probability_slope(mean, variance), _positive_deviation(variance)
        if self.flip > 0:
            return slope * (slope + mean / scale / scale)
        return slope * reversed_hazard_excess(mean / scale) / scale

    def width(self, variance: np.ndarray) -> np.ndarray:
        return np.sqrt(variance)

    @property
    def uninformative_setting(self) -> str:
        return "flip = 0.5" if self.flip == 0.5 else ""


@dataclass(frozen=True)
class ProbitTeacher(LabelTeacher):
    """The sign of the field plus normal noise."""

    label: ClassVar = "probit"
    equation: ClassVar = r"y = \mathrm{sgn}(u + \sigma\xi)"
    noise: float = parameter(0.0, "standard deviation of the noise, on the field", symbol=r"$\sigma$", at_least=0)

    def probability(self, u: np.ndarray) -> np.ndarray:
        return SignTeacher().probability(u) if self.noise == 0 else normal_cdf(u / self.noise)

    def right(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return SignTeacher().right(mean, variance + self.noise**2)

    def mean_probability_slope(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return SignTeacher().mean_probability_slope(mean, variance + self.noise**2)

    def probability_derivatives(
        self, mean: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return SignTeacher().probability_derivatives(mean, variance + self.noise**2)

    def log_probability_slope(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return SignTeacher().log_probability_slope(mean, variance + self.noise**2)

    def log_probability_concavity(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return SignTeacher().log_probability_concavity(mean, variance + self.noise**2)

    def width(self, variance: np.ndarray) -> np.ndarray:
        return np.sqrt(variance + self.noise**2)


@dataclass(frozen=True)
class LogitTeacher(LabelTeacher):
    """Labels of logistic regression."""

    label: ClassVar = "logit"
    equation: ClassVar = r"P(y = 1) = 1/(1+e^{-\beta u})"
    gain: float = parameter(1.0, "gain of the logistic function", symbol=r"$\beta$", at_least=0)

    def probability(self, u: np.ndarray) -> np.ndarray:
        from scipy.special import expit

        values: np.ndarray = expit(self.gain * u)
        return values

    def right(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        left = np.exp(self._average_logistic(mean, variance).log)
        return np.where(np.asarray(mean) > 0, 1 - left, left)

    def mean_probability_slope(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        average = self._average_logistic(mean, variance)
        return self.gain * np.exp(average.log) * average.slope

    def probability_derivatives(
        self, mean: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        left, above = self._average_logistic(mean, variance), np.asarray(mean) > 0
        F = np.exp(left.log)
        second = self.gain**2 * F * (left.slope**2 - left.minus_log_curvature)
        return np.where(above, 1 - F, F), self.gain * F * left.slope, np.where(above, -second, second)

    def log_probability_slope(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self.gain * self._log_slope_from_average(mean, self._average_logistic(mean, variance))

    def log_probability_concavity(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self.gain**2 * self._log_bend_from_average(mean, self._average_logistic(mean, variance))

    def fisher_information_given_field(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        left = self._average_logistic(mean, variance)
        return (self.gain * left.slope) ** 2 * _logistic_odds(left)

    def score(self, y: np.ndarray, mean: np.ndarray, variance: Array) -> tuple[np.ndarray, np.ndarray]:
        average, z = self._average_logistic(mean, variance), y * mean
        return y * self.gain * self._log_slope_from_average(z, average), self.gain**2 * self._log_bend_from_average(
            z, average
        )

    def width(self, variance: np.ndarray) -> np.ndarray:
        return np.sqrt(variance + (1.8 / max(self.gain, 1e-12)) ** 2)

    def _average_logistic(self, mean: np.ndarray, variance: np.ndarray) -> LogisticAverage:
        return logistic_average(self.gain * np.asarray(mean), self.gain**2 * np.asarray(variance))

    @staticmethod
    def _log_slope_from_average(mean: np.ndarray, left: LogisticAverage) -> np.ndarray:
        """Return the derivative of ln F at the mean, from the average at -|mean| and F(M) = 1 - F(-M)."""
        return np.where(np.asarray(mean) > 0, left.slope * _logistic_odds(left), left.slope)

    @staticmethod
    def _log_bend_from_average(mean: np.ndarray, left: LogisticAverage) -> np.ndarray:
        """Return minus the second derivative of ln F at the mean, from the average at -|mean|."""
        odds = _logistic_odds(left)
        reflected = odds * ((1 + odds) * left.slope**2 - left.minus_log_curvature)
        return np.where(np.asarray(mean) > 0, reflected, left.minus_log_curvature)

    @property
    def uninformative_setting(self) -> str:
        return "gain = 0" if self.gain == 0 else ""


@dataclass(frozen=True)
class LinearTeacher(Teacher):
    """The field itself plus normal noise."""

    label: ClassVar = "linear"
    equation: ClassVar = r"y = u + \sigma\xi"
    labels: ClassVar = False
    noise: float = parameter(0.0, "standard deviation of the noise, on the output", symbol=r"$\sigma$", at_least=0)

    def draw(self, rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
        return u + self.noise * rng.standard_normal(u.shape)

    def score(self, y: np.ndarray, mean: np.ndarray, variance: Array) -> tuple[np.ndarray, np.ndarray]:
        information = self.fisher_information(variance)
        return (y - mean) * information, np.broadcast_to(information, np.shape(mean))

    def fisher_information(self, mse: np.ndarray) -> np.ndarray:
        return 1 / np.maximum(mse + self.noise**2, MIN_FIELD_VARIANCE)

    def mean_log_evidence(self, mse: np.ndarray) -> np.ndarray:
        return -0.5 * (1 + np.log(2 * np.pi / self.fisher_information(mse)))


def _positive_deviation(variance: Array) -> np.ndarray:
    """Return the standard deviation, bounded from below so that it can be a divisor."""
    return np.sqrt(np.maximum(variance, MIN_FIELD_VARIANCE))


def _logistic_odds(left: LogisticAverage) -> np.ndarray:
    """Return the odds F/(1 - F)."""
    F = np.exp(left.log)
    return F / (1 - F)


TEACHERS: dict[str, type[Teacher]] = {
    "sign": SignTeacher,
    "probit": ProbitTeacher,
    "logit": LogitTeacher,
    "linear": LinearTeacher,
}
