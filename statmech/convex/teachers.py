r"""Teachers: distributions of an output given the teacher's field, their averages and a student's label error.

With :math:`|\mathbf w^*|^2 = N` and inputs :math:`\mathbf x\sim N(0, I)`, the teacher's field
:math:`u = \mathbf w^*\cdot\mathbf x/\sqrt N` is a standard normal. A teacher is the distribution of an output y given
u. A teacher of labels defines the probability of :math:`y = +1`. Theory and message passing need its average over a
normal u, `right(mean, variance)`, and the derivatives of this average and of its logarithm with respect to the mean.

**To add a teacher** of labels write one class and one line in `TEACHERS`.

**Information.** If the weights are known up to a mean squared error :math:`\Delta = 1 - q`, the field of a new input is
known up to a normal variable of variance :math:`\Delta`, around a mean :math:`\omega\sim N(0, q)`. Its output then
moves the estimate along the `score` :math:`g = \partial_\omega\ln P(y|\omega, \Delta)`, and contains the Fisher
information (`fisher_information`)

.. math:: I(\Delta) = \langle g^2\rangle = -\langle\partial_\omega g\rangle
          = 2\int Dt\;\frac{(\partial_\omega P_+)^2}{P_+}\Big|_{\omega=\sqrt q\,t}
          = -2\,\frac{d}{d\Delta}\langle\ln P(y|\omega, \Delta)\rangle,

the second form for labels, :math:`P_+` = `right`; for the linear teacher :math:`I = 1/(\Delta + \sigma^2)`
(Barbier, Krzakala, Macris, Miolane & Zdeborova 2019, eqs 5 to 8).

**Logit teacher.** The average of the logistic function over a normal field is computed to 1e-13 at every mean and
variance,

.. math:: F(M, V) = \int Dt\,\sigma(M + \sqrt V\,t), \qquad \sigma(u) = \frac1{1+e^{-u}} .

A logistic variable is a normal one of standard deviation 2k, where k has Kolmogorov's distribution of density f(k)
(Andrews & Mallows 1974). With :math:`s = V + 4k^2` its averages are positive sums over k, whatever V:

.. math:: F = \int dk\,f(k)\,\Phi(M/\sqrt s), \qquad
          F' = \int dk\,f(k)\,\frac{e^{-M^2/2s}}{\sqrt{2\pi s}}

(Monahan & Stefanski 1992). The density :math:`\mathrm{sech}(u/2)/2\pi` is also a mixture, of Gaussians of variance
:math:`\pi^2T`, where T is the exit time of Brownian motion from [-1, 1] (its Laplace transform is
:math:`\mathrm{sech}\sqrt{2\lambda}`). As :math:`\sigma(u) = e^{u/2}\,\mathrm{sech}(u/2)/2`, F has a form without
:math:`\Phi`. The range of T that this form needs grows with V:

.. math:: F = \int dT\,f(T)\,\sqrt{\frac\pi{2s}}\,\exp\frac{\pi^2T\,(V + 4M) - 4M^2}{8s}, \qquad s = V + \pi^2T.

In log k and log T the integrands are analytic in a strip, and the trapezoidal rule converges exponentially:
`LOG_K_NODE_SPACING` leaves an error of 2e-14. In the left tail, where large k would contribute, the reflection formula
that follows from :math:`\sigma(u) = e^u\sigma(-u)` maps the mean back to the centre:

.. math:: F(M, V) = e^{M+V/2}\,F(-M-V, V).

**Label error.** The probability that a student mispredicts a fresh noisy label follows from its cosine with the
teacher. Student and teacher have normal fields h, u of cosine R, and the label y is +1 with probability p(u), where
p(-u) = 1 - p(u). By Price's theorem the derivative of an average with respect to R averages the second derivative,
:math:`\partial_R\langle(2p(u)-1)\,\mathrm{sgn}\,h\rangle = \langle 2p'(u)\,2\delta(h)\rangle`, and at h = 0 the
teacher's field has mean 0 and variance :math:`1-R^2`. With the teacher's `response` :math:`\chi` and R = sin t

.. math:: P(yh<0) = \frac12 - \sqrt{\frac2\pi}\int_0^{\arcsin R}\chi(0, \cos^2 t)\,\cos t\,dt .
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np

from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    Array,
    make_composite_rule,
    make_panel_rules,
    normal_cdf,
    normal_density,
    reversed_hazard,
    reversed_hazard_excess,
)
from statmech.parameters.parameter_fields import parameter

LOG_K_NODE_SPACING = 0.12  # spacing of the nodes in log k, and half the spacing in log T
MIN_KOLMOGOROV_K, MAX_KOLMOGOROV_K = 0.19, 5.0  # outside this range, the density of k is below 1e-13
MIN_SQRT_T, MAX_SQRT_T = 0.12, 6.0  # range of sqrt(T) that suffices for variances V up to 60
MAX_EXIT_TIME_MIXTURE_VARIANCE = 60.0  # larger V would require larger T
MIN_FIELD_VARIANCE = 1e-280  # replaces variances of 0 in divisors
NODES_PER_TRANSITION_PANEL = 24
PANEL_EDGES_IN_WIDTHS = (1.5, 3.0, 4.5, 6.0, 8.0, 10.0, 16.0, 23.0, 32.0)  # in widths of the teacher's transition
PANEL_EDGES_IN_DEVIATIONS = (2.0, 4.0, 6.0, GAUSSIAN_CUTOFF)  # in standard deviations of the field
NODES_PER_ANGLE_PANEL = 16
# finer where the response of a steep teacher rises
ANGLE_PANEL_EDGES = np.pi / 2 - np.append(np.pi / 2 * 0.25 ** np.arange(14.0), 0.0)


class LogisticAverage(NamedTuple):
    """Logarithm of the average at -|M|, its derivative, and minus its second derivative with respect to M."""

    log: np.ndarray
    slope: np.ndarray
    minus_log_curvature: np.ndarray


def logistic_average(M: np.ndarray, V: np.ndarray) -> LogisticAverage:
    """Return the logarithm of a logit teacher's average at -|M| and its derivatives. The arrays broadcast.

    >>> average = logistic_average(np.array([0.0, -2.0, -1000.0]), np.array(1.0))
    >>> average.log[:2].round(6)
    array([-0.693147, -1.861351])
    >>> average.slope.round(6)
    array([0.413242, 0.744604, 1.      ])
    """
    M, V = -np.abs(np.asarray(M, float)), np.asarray(V, float)
    tail = 2 * M < -V
    x = np.where(tail, -M - V, M)
    log, slope, bend = _average_without_reflection(x, V)
    return LogisticAverage(np.where(tail, M + V / 2, 0.0) + log, np.where(tail, 1 - slope, slope), bend)


def _average_without_reflection(x: np.ndarray, V: np.ndarray) -> LogisticAverage:
    """Compute a logit teacher's average at x >= -V/2. At x > 0 the derivatives have an absolute error of 1e-16."""
    size, above = np.abs(x), x > 0
    log_scale, below, density, steepness = _sum_scale_mixture(size, V)
    scale = np.where(above, np.exp(log_scale), 1.0)  # at x <= 0 the factor exp(log_scale), which may underflow, cancels
    F = np.where(above, 1 - scale * below, below)
    slope = scale * density / F
    second = -np.sign(x) * scale * steepness / F
    return LogisticAverage(np.log(F) + np.where(above, 0.0, log_scale), slope, slope**2 - second)


def _sum_scale_mixture(size: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return log_scale, and a logit teacher's average F, F' and |F''| at -size divided by exp(log_scale)."""
    wide = MAX_EXIT_TIME_MIXTURE_VARIANCE < V
    if np.all(wide) or not np.any(wide):
        log_scale = -0.5 * size**2 / (V + (4 * MAX_KOLMOGOROV_K**2 if np.all(wide) else (np.pi * MAX_SQRT_T) ** 2))
        below = (
            _sum_kolmogorov_mixture(size, V, log_scale) if np.all(wide) else _sum_exit_time_mixture(size, V, log_scale)
        )
        return log_scale, below, *_sum_mixture_derivatives(size, V, log_scale)
    size, V = np.broadcast_arrays(size, V)
    sums = np.empty((4, *size.shape))
    for mask in (MAX_EXIT_TIME_MIXTURE_VARIANCE < V, V <= MAX_EXIT_TIME_MIXTURE_VARIANCE):
        sums[:, mask] = _sum_scale_mixture(size[mask], V[mask])
    return tuple(sums)


def _sum_kolmogorov_mixture(size: np.ndarray, V: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
    """Compute a logit teacher's F / exp(log_scale) as a sum of Gaussian tail probabilities, for any V."""
    from scipy.special import erfcx

    k, weight = _make_kolmogorov_quadrature()
    scaled = size[..., None] / np.sqrt(V[..., None] + 4 * k * k)
    parts = weight * np.exp(-0.5 * scaled * scaled - log_scale[..., None])
    return np.sum(0.5 * parts * erfcx(scaled / np.sqrt(2)), axis=-1)


def _sum_exit_time_mixture(size: np.ndarray, V: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
    """Compute a logit teacher's F / exp(log_scale) from exponentials, in half the time of `_sum_kolmogorov_mixture`."""
    T, weight = _make_exit_time_quadrature()
    spread = V[..., None] + np.pi**2 * T
    square, linear = -0.5 / spread, -0.5 * np.pi**2 * T / spread
    height = np.log(weight / np.sqrt(spread)) - 0.25 * linear * V[..., None]
    exponent = (size[..., None] * square + linear) * size[..., None] + height - log_scale[..., None]
    return np.sum(np.exp(exponent), axis=-1)


def _sum_mixture_derivatives(size: np.ndarray, V: np.ndarray, log_scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute a logit teacher's F' and |F''| at -size, divided by exp(log_scale)."""
    k, weight = _make_kolmogorov_quadrature()
    spread = V[..., None] + 4 * k * k
    exponent = (size**2)[..., None] * (-0.5 / spread) - log_scale[..., None]
    parts = np.exp(exponent) * (weight / np.sqrt(2 * np.pi * spread))
    return np.sum(parts, axis=-1), size * np.sum(parts / spread, axis=-1)


@cache
def _make_kolmogorov_quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes k and weights proportional to k f(k) for the average of a logit teacher.

    Depending on k, one of two series for the density f converges rapidly.
    """
    k = np.exp(np.arange(np.log(MIN_KOLMOGOROV_K), np.log(MAX_KOLMOGOROV_K), LOG_K_NODE_SPACING))
    n = np.arange(1, 12)[:, None]
    odd = ((2 * n - 1) * np.pi / k) ** 2 / 8
    small = np.sqrt(2 * np.pi) / k * np.sum((2 * odd - 1) * np.exp(-odd), axis=0)
    square = (n * k) ** 2
    large = 8 * np.sum(-((-1.0) ** n) * square * np.exp(-2 * square), axis=0)
    density = np.where(k < 1, small, large)
    return k, density / np.sum(density)


@cache
def _make_exit_time_quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes T and weights proportional to T f(T) for a logit teacher, which give sech(u/2)/2 at V = 0."""
    T = np.exp(np.arange(2 * np.log(MIN_SQRT_T), 2 * np.log(MAX_SQRT_T), 2 * LOG_K_NODE_SPACING))
    n = np.arange(12)[:, None]
    odd, sign = 2 * n + 1, (-1.0) ** n
    small = np.sqrt(2 / (np.pi * T)) * np.sum(sign * odd * np.exp(-(odd**2) / (2 * T)), axis=0)
    large = 0.5 * np.pi * T * np.sum(sign * odd * np.exp(-((odd * np.pi) ** 2) * T / 8), axis=0)
    density = np.where(T < 1, small, large)
    return T, np.sqrt(np.pi / 2) * density / np.sum(density)


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
        """Return positive means (L, n) and variances (L, 1) of a teacher's field, and weights (L, n) for both signs."""
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

        return expit(self.gain * u)

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


def label_error(teacher: LabelTeacher, R: np.ndarray | float) -> np.ndarray:
    r"""Return the probability that a student with cosine R mispredicts a fresh label of a teacher.

    .. math:: \epsilon_y = P(y h < 0)

    Parameters
    ----------
    teacher : LabelTeacher
        The dependence of labels on the teacher's field.
    R : array (...)
        Cosines of student and teacher, from -1 to 1.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> from statmech.convex.teachers import SignTeacher
    >>> round(float(label_error(SignTeacher(flip=0.1), 0.5)), 12)        # 0.1 + 0.8 arccos(0.5) / pi
    0.366666666667
    """
    angle = np.arcsin(np.clip(R, -1, 1))
    size = np.abs(angle)
    t, weight = make_panel_rules(
        np.minimum(ANGLE_PANEL_EDGES.reshape((-1,) + (1,) * size.ndim), size), NODES_PER_ANGLE_PANEL
    )
    cosine = np.cos(t)
    slope = teacher.mean_probability_slope(np.zeros_like(t), cosine**2) * cosine
    return 0.5 - np.sign(angle) * np.sqrt(2 / np.pi) * np.sum(weight * slope, axis=(0, -1))
