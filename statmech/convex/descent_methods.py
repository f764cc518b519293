r"""Gradient-type descent on a convex loss, summed over stored examples.

The force on the weights w is evaluated at a point z, over a batch that contains a fraction b of the P examples:

.. math::

    \mathbf f = \frac1{\sqrt N}\sum_{\mu \in \mathrm{batch}} \mathbf x^\mu G(h^\mu), \quad
    h^\mu = \mathbf z\cdot\mathbf x^\mu/\sqrt N, \qquad
    \mathbf w_{t+1} = \mathbf z + \beta(\mathbf w_t - \mathbf w_{t-1}) - \eta\,(\mathbf f + b\lambda\mathbf z)

with G the derivative of the loss with respect to the field h. The loss is summed over the examples of a batch, not
averaged: an epoch, 1/b steps, moves the weights as far at every b, and :math:`\eta` is the learning rate of the online
rules. An l1 norm adds nothing to the force: a proximal step of it follows each step of the descent.

**To add a descent** write one class here, and one line in the registry `DESCENTS` of this module. Theory, simulation,
config names and tests follow. A descent must be linear in its arrays, because it is applied to the weights themselves
and to their components along any set of directions. A descent that acts on each weight separately sets
`coordinatewise`, and need not be linear.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from statmech.parameters.parameter_fields import parameter

MIN_SMALL_FORCE_WEIGHT_FRACTION = 1e-4  # at this fraction, theory's 2^16 sampled weights still include several

DescentState = tuple[np.ndarray, ...]  # the weights, followed by arrays of the same shape that remember earlier steps


@dataclass(frozen=True)
class Descent(ABC):
    """An update rule for the weights. Subclasses define `label`, `equation`, `next` and `largest_curvature`."""

    label: ClassVar[str]  # name shown in tables and legends
    equation: ClassVar[str] = ""  # in LaTeX
    cites: ClassVar[tuple[str, ...]] = ()  # keys of papers in the bibliography
    coordinatewise: ClassVar[bool] = False  # True if each weight moves independently: `next` need not be linear

    def start(self, w: np.ndarray) -> DescentState:
        """Return the state before the first step: the weights and an empty memory.

        Parameters
        ----------
        w : array
            The weights.

        Returns
        -------
        tuple of arrays
            Arrays shaped like the weights, which come first.

        Examples
        --------
        >>> HeavyBall().start(np.ones(1))
        (array([1.]), array([1.]))
        """
        return (w,)

    def query(self, state: DescentState) -> np.ndarray:
        """Return the point where the force is evaluated: by default the weights themselves.

        Parameters
        ----------
        state : tuple of arrays
            The weights, and the memory of the descent.

        Returns
        -------
        array
            Point of the same shape.

        Examples
        --------
        >>> Nesterov(momentum=0.5).query((np.ones(1), np.zeros(1)))
        array([1.5])
        """
        return state[0]

    @property
    def problem(self) -> str:
        """The reason why theory does not support these parameters, or an empty string."""
        return ""

    @abstractmethod
    def next(self, state: DescentState, force: np.ndarray, rate: float, step: int) -> DescentState:
        r"""Return the state after a step.

        Parameters
        ----------
        state : tuple of arrays
            The weights, and the memory of the descent.
        force : array
            The force plus the penalty's, :math:`\mathbf f + b\lambda\mathbf z`, of the shape of the weights.
        rate : float
            The learning rate :math:`\eta` of this step.
        step : int
            The number of steps before this one.

        Returns
        -------
        tuple of arrays
            Arrays of the same shapes.

        Examples
        --------
        >>> HeavyBall(momentum=0.5).next((np.ones(1), np.zeros(1)), np.array([2.5]), rate=0.1, step=0)
        (array([1.25]), array([1.]))
        """

    @property
    @abstractmethod
    def largest_curvature(self) -> float:
        r"""The largest stable product of :math:`\eta` and the curvature of a quadratic loss.

        It applies to full batches at constant :math:`\eta`. `compute_max_stable_eta` inserts the curvature of the
        examples.

        >>> Gradient().largest_curvature, HeavyBall(momentum=0.5).largest_curvature
        (2.0, 3.0)
        """


@dataclass(frozen=True)
class Gradient(Descent):
    """Gradient descent."""

    label: ClassVar = "gradient descent"
    equation: ClassVar = r"\mathbf w_{t+1} = \mathbf w_t - \eta\nabla(\mathbf w_t)"
    largest_curvature: ClassVar = 2.0

    def next(self, state: DescentState, force: np.ndarray, rate: float, step: int) -> DescentState:
        return (state[0] - rate * force,)


@dataclass(frozen=True)
class HeavyBall(Descent):
    """Gradient descent with momentum: each step adds a fraction of the previous step (Polyak's heavy ball)."""

    label: ClassVar = "momentum"
    cites: ClassVar = ("polyak1964",)
    equation: ClassVar = (
        r"\mathbf w_{t+1} = \mathbf w_t + \beta(\mathbf w_t - \mathbf w_{t-1}) - \eta\nabla(\mathbf w_t)"
    )
    momentum: float = parameter(0.9, "fraction of the last step that is added to the next", at_least=0, below=1)

    def start(self, w: np.ndarray) -> DescentState:
        return w, w

    def next(self, state: DescentState, force: np.ndarray, rate: float, step: int) -> DescentState:
        w, previous = state
        return w + self.momentum * (w - previous) - rate * force, w

    @property
    def largest_curvature(self) -> float:
        return 2 * (1 + self.momentum)


@dataclass(frozen=True)
class Nesterov(Descent):
    """Gradient descent with Nesterov momentum: the force is evaluated ahead of the weights, after the momentum step."""

    label: ClassVar = "Nesterov"
    cites: ClassVar = ("nesterov1983",)
    equation: ClassVar = (
        r"\mathbf w_{t+1} = \mathbf z - \eta\nabla(\mathbf z), \quad "
        r"\mathbf z = \mathbf w_t + \beta(\mathbf w_t - \mathbf w_{t-1})"
    )
    momentum: float = parameter(0.9, "fraction of the last step that is added to the next", at_least=0, below=1)

    def start(self, w: np.ndarray) -> DescentState:
        return w, w

    def query(self, state: DescentState) -> np.ndarray:
        w, previous = state
        return w + self.momentum * (w - previous)

    def next(self, state: DescentState, force: np.ndarray, rate: float, step: int) -> DescentState:
        return self.query(state) - rate * force, state[0]

    @property
    def largest_curvature(self) -> float:
        return 2 * (1 + self.momentum) / (1 + 2 * self.momentum)


@dataclass(frozen=True)
class SignDescent(Descent):
    """Sign descent: every weight moves by the same amount, against the sign of its gradient."""

    label: ClassVar = "sign descent"
    equation: ClassVar = r"\mathbf w_{t+1} = \mathbf w_t - \eta\,\mathrm{sgn}\,\nabla(\mathbf w_t)"
    coordinatewise: ClassVar = True
    largest_curvature: ClassVar = np.inf  # always stable: the step length does not grow with the force

    def next(self, state: DescentState, force: np.ndarray, rate: float, step: int) -> DescentState:
        return (state[0] - rate * np.sign(force),)


@dataclass(frozen=True)
class Adam(Descent):
    """Adam: each weight's mean force divided by its root mean square force."""

    label: ClassVar = "Adam"
    equation: ClassVar = (
        r"\mathbf w_{t+1} = \mathbf w_t - \eta\,\hat{\mathbf m}/(\sqrt{\hat{\mathbf v}} + \epsilon), \quad "
        r"\mathbf m \leftarrow \beta_1\mathbf m + (1-\beta_1)\nabla, \quad "
        r"\mathbf v \leftarrow \beta_2\mathbf v + (1-\beta_2)\nabla^2, \quad "
        r"\hat{\mathbf m} = \mathbf m/(1-\beta_1^{t+1}), \; \hat{\mathbf v} = \mathbf v/(1-\beta_2^{t+1})"
    )
    cites: ClassVar = ("kingma2015",)
    coordinatewise: ClassVar = True
    largest_curvature: ClassVar = np.inf  # always stable: the step length does not grow with the force
    beta1: float = parameter(0.9, "memory of the mean force of Adam", symbol=r"$\beta_1$", at_least=0, below=1)
    beta2: float = parameter(0.999, "memory of the mean square force of Adam", symbol=r"$\beta_2$", at_least=0, below=1)
    epsilon: float = parameter(1e-8, "force that counts as none in Adam", symbol=r"$\epsilon$", above=0)

    @property
    def problem(self) -> str:
        """The reason why sampled theory would miss the longest steps of Adam, or an empty string.

        A fraction of about sqrt(beta2) + epsilon of the weights has a force so close to 0 that the mean of earlier
        forces makes the step longer by the inverse of this fraction. The mean square step grows with this inverse: it
        diverges as the fraction vanishes, and a sample too small for the fraction underestimates it.
        """
        if self.beta1 == 0 or max(self.beta2**0.5, self.epsilon) >= MIN_SMALL_FORCE_WEIGHT_FRACTION:
            return ""
        return (
            f"beta2 = {self.beta2:g} with beta1 = {self.beta1:g} lets a few weights with a force close to 0 dominate "
            f"the mean square step: beta2 must be at least {MIN_SMALL_FORCE_WEIGHT_FRACTION**2:g}, or epsilon at least "
            f"{MIN_SMALL_FORCE_WEIGHT_FRACTION:g}, or beta1 0"
        )

    def start(self, w: np.ndarray) -> DescentState:
        return w, np.zeros_like(w), np.zeros_like(w)

    def next(self, state: DescentState, force: np.ndarray, rate: float, step: int) -> DescentState:
        w, mean, square = state
        mean = self.beta1 * mean + (1 - self.beta1) * force
        square = self.beta2 * square + (1 - self.beta2) * force * force
        unbiased, deviation = mean / (1 - self.beta1 ** (step + 1)), np.sqrt(square / (1 - self.beta2 ** (step + 1)))
        return w - rate * unbiased / (deviation + self.epsilon), mean, square


def compute_max_stable_eta(descent: Descent, alpha: float, lam: float, curvature: float) -> float:
    r"""Return the largest learning rate for convergent descent on a quadratic loss.

    .. math:: \eta\,\bigl(c\,(1 + \sqrt\alpha)^2 + \lambda\bigr) < \text{`largest\_curvature`}

    with :math:`c(1 + \sqrt\alpha)^2` the largest curvature of the summed loss in any direction as :math:`N \to \infty`
    (the upper edge of the Marchenko-Pastur distribution).

    Parameters
    ----------
    descent : Descent
        The descent.
    alpha : float
        Stored examples per input dimension.
    lam : float
        Strength of the penalty :math:`\lambda|\mathbf w|^2/2`.
    curvature : float
        The largest second derivative of the loss.

    Returns
    -------
    float

    Examples
    --------
    >>> round(compute_max_stable_eta(Gradient(), 3, 0, 1), 3)
    0.268
    """
    return float(descent.largest_curvature / (curvature * (1 + np.sqrt(alpha)) ** 2 + lam))


DESCENTS: dict[str, type[Descent]] = {
    "gradient": Gradient,
    "momentum": HeavyBall,
    "nesterov": Nesterov,
    "sign": SignDescent,
    "adam": Adam,
}
