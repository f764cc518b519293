r"""Schedules of the learning rate, and all that may change while students learn.

A schedule lets the learning rate fall within a time :math:`t_0`, which is infinite for a constant one.

**To add a schedule** write one class with `rate` and add one line to `SCHEDULES`: its name in a config, both engines,
the equations and their corrections of order 1/N follow. Times are traced by JAX, so `rate` uses operators and the
functions of `namespace(t)`, and must stay above 0, where the logarithm of the rate has a slope.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array, namespace

LAST = 700.0  # t/t0 at which an exponential schedule ends, before its rate underflows


class Hyperbolic(NamedTuple):
    r""":math:`\eta/(1 + t/t_0)`, under which label noise is averaged out at late times."""

    t0: Array

    def rate(self, eta: Array, t: Array) -> Array:
        """The learning rate at time t, where it begins at eta."""
        return eta / (1 + t / self.t0)


class Exponential(NamedTuple):
    r""":math:`\eta\,e^{-t/t_0}`, under which learning ends after some :math:`t_0`."""

    t0: Array

    def rate(self, eta: Array, t: Array) -> Array:
        """The learning rate at time t, where it begins at eta."""
        xp = namespace(t)
        return eta * xp.exp(-xp.minimum(t / self.t0, LAST))


CONSTANT = Hyperbolic(np.float64(np.inf))  # also where other things change: values of schedules share a program
SCHEDULES: dict[str, type[Any]] = {
    "hyperbolic": Hyperbolic,
    "exponential": Exponential,
}


class Changes(NamedTuple):
    """The teacher's drift, the weights' decay, the schedule of the learning rate; the probabilities of tasks
    (`statmech.protocols.Pieces`) if there are several, and the noise and the dropout of networks
    (`statmech.controls.Polynomials`) if they change. Noise is the flip rate of perceptrons, the standard deviation of
    networks. JAX traces their numbers."""

    drift: Array
    decay: Array
    schedule: Any
    tasks: Any = None
    noise: Any = None
    dropout: Any = None
