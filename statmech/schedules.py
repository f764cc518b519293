r"""Schedules of the learning rate, and other quantities that may change during learning.

With a schedule the learning rate decays within a time :math:`t_0`, which is infinite for a constant rate.

**To add a schedule** write one class with `rate` and add one line to `LEARNING_RATE_SCHEDULES`: its name in a config,
both engines, the equations and their corrections of order 1/N follow. Times are traced by JAX, so `rate` uses operators
and the functions of `get_array_module(t)`, and must stay above 0, where the logarithm of the rate has a slope.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array, get_array_module

MAX_DECAY_EXPONENT = 700.0  # t/t0; the exponential rate would underflow at larger values


class HyperbolicSchedule(NamedTuple):
    r"""The schedule :math:`\eta/(1 + t/t_0)`, which averages out label noise at late times."""

    t0: Array

    def rate(self, eta: Array, t: Array) -> Array:
        """Return the learning rate at time t for the initial rate eta."""
        return eta / (1 + t / self.t0)


class ExponentialSchedule(NamedTuple):
    r"""The schedule :math:`\eta\,e^{-t/t_0}`, which ends learning after a few :math:`t_0`."""

    t0: Array

    def rate(self, eta: Array, t: Array) -> Array:
        """Return the learning rate at time t for the initial rate eta."""
        xp = get_array_module(t)
        return eta * xp.exp(-xp.minimum(t / self.t0, MAX_DECAY_EXPONENT))


CONSTANT_SCHEDULE = HyperbolicSchedule(
    np.float64(np.inf)
)  # also used if only other quantities change, to share the compiled program
LEARNING_RATE_SCHEDULES: dict[str, type[Any]] = {
    "hyperbolic": HyperbolicSchedule,
    "exponential": ExponentialSchedule,
}


class TimeDependence(NamedTuple):
    """Quantities that change during learning, with numbers that JAX can trace.

    They are the teacher's drift, the weight decay, the schedule of the learning rate, for several tasks their
    probabilities (`statmech.protocols.ProtocolPieces`), and the noise and the dropout of networks
    (`statmech.controls.PiecewisePolynomial`) if they change. Noise is a flip rate for perceptrons and a standard
    deviation for networks.
    """

    drift: Array
    decay: Array
    schedule: Any
    tasks: Any = None
    noise: Any = None
    dropout: Any = None
