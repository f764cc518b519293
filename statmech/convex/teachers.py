r"""Teachers: how an output y depends on the teacher's field :math:`u = \mathbf w^*\cdot\mathbf x/\sqrt N`.

With :math:`|\mathbf w^*|^2 = N` and inputs :math:`\mathbf x\sim N(0, I)`, u is a standard normal. A teacher of labels
states the probability of :math:`y = +1`; what theory and message passing need is its average over a normal u,
`right(mean, variance)`, and the derivative of that with respect to the mean, `response`.

**To add a teacher** of labels write one class and one line in `TEACHERS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from statmech.gaussian import cumulative, density, legendre_per_panel
from statmech.parameters import parameter


@dataclass(frozen=True)
class Teacher(ABC):
    """How outputs depend on the teacher's field."""

    label: ClassVar[str]
    equation: ClassVar[str] = ""
    labels: ClassVar[bool] = True  # outputs are +1 or -1

    @abstractmethod
    def draw(self, rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
        """Outputs y of fields u, of the same shape."""

    @property
    def uninformative(self) -> str:
        """Why the outputs say nothing about the teacher, as a value of a key; empty if they do."""
        return ""


@dataclass(frozen=True)
class LabelTeacher(Teacher):
    """Labels +1 with a probability that grows with the field; p(-u) = 1 - p(u)."""

    @abstractmethod
    def probability(self, u: np.ndarray) -> np.ndarray:
        """The probability of y = +1 for each field."""

    @abstractmethod
    def right(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """The probability of y = +1 for a normal field of this mean and variance; arrays broadcast."""

    @abstractmethod
    def response(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """The derivative of `right` with respect to the mean."""

    @abstractmethod
    def width(self, variance: np.ndarray) -> np.ndarray:
        """The scale of the mean over which `right` rises from 0 to 1."""

    def draw(self, rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
        return np.where(rng.random(u.shape) < self.probability(u), 1.0, -1.0)


@dataclass(frozen=True)
class Sign(LabelTeacher):
    """The sign of the field, inverted with probability `flip`."""

    label: ClassVar = "sign"
    equation: ClassVar = r"y = \pm\mathrm{sgn}\,u"
    flip: float = parameter(0.0, "probability that a label is flipped", symbol=r"$\lambda_f$", at_least=0, at_most=0.5)

    def probability(self, u: np.ndarray) -> np.ndarray:
        return np.where(u > 0, 1 - self.flip, self.flip)

    def right(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self.flip + (1 - 2 * self.flip) * cumulative(mean / np.sqrt(variance))

    def response(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        scale = np.sqrt(variance)
        return (1 - 2 * self.flip) * density(mean / scale) / scale

    def width(self, variance: np.ndarray) -> np.ndarray:
        return np.sqrt(variance)

    @property
    def uninformative(self) -> str:
        return "flip = 0.5" if self.flip == 0.5 else ""


@dataclass(frozen=True)
class Probit(LabelTeacher):
    """The sign of the field plus normal noise."""

    label: ClassVar = "probit"
    equation: ClassVar = r"y = \mathrm{sgn}(u + \sigma\xi)"
    noise: float = parameter(0.0, "standard deviation of the noise on the field", symbol=r"$\sigma$", at_least=0)

    def probability(self, u: np.ndarray) -> np.ndarray:
        return Sign().probability(u) if self.noise == 0 else cumulative(u / self.noise)

    def right(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return Sign().right(mean, variance + self.noise**2)

    def response(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return Sign().response(mean, variance + self.noise**2)

    def width(self, variance: np.ndarray) -> np.ndarray:
        return np.sqrt(variance + self.noise**2)


@dataclass(frozen=True)
class Logit(LabelTeacher):
    """Labels of logistic regression."""

    label: ClassVar = "logit"
    equation: ClassVar = r"P(y = 1) = 1/(1+e^{-gu})"
    gain: float = parameter(1.0, "gain of the logistic function", symbol="$g$", at_least=0)

    def probability(self, u: np.ndarray) -> np.ndarray:
        from scipy.special import expit

        values: np.ndarray = expit(self.gain * u)
        return values

    def right(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self._average(mean, variance, lambda p: p)

    def response(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        return self.gain * self._average(mean, variance, lambda p: p * (1 - p))

    def width(self, variance: np.ndarray) -> np.ndarray:
        return np.sqrt(variance + (1.8 / max(self.gain, 1e-12)) ** 2)

    def _average(self, mean: np.ndarray, variance: np.ndarray, of: object) -> np.ndarray:
        edges = np.linspace(-9.5, 9.5, 9)
        t, weight = legendre_per_panel(edges)
        t, weight = t.reshape(-1), weight.reshape(-1)
        u = np.asarray(mean)[..., None] + np.sqrt(np.asarray(variance))[..., None] * t
        return np.sum(weight * density(t) * of(self.probability(u)), axis=-1)  # type: ignore[operator]

    @property
    def uninformative(self) -> str:
        return "gain = 0" if self.gain == 0 else ""


@dataclass(frozen=True)
class LinearTeacher(Teacher):
    """The field itself plus normal noise."""

    label: ClassVar = "linear"
    equation: ClassVar = r"y = u + \sigma\xi"
    labels: ClassVar = False
    noise: float = parameter(0.0, "standard deviation of the noise on the output", symbol=r"$\sigma$", at_least=0)

    def draw(self, rng: np.random.Generator, u: np.ndarray) -> np.ndarray:
        return u + self.noise * rng.standard_normal(u.shape)


TEACHERS: dict[str, type[Teacher]] = {"sign": Sign, "probit": Probit, "logit": Logit, "linear": LinearTeacher}
