r"""The equations that have a control: one perceptron, or a network, whose learning rate is a function of time.

The state of a perceptron is :math:`(\log l, \log\theta)`, that of a network R, Q and v (`theory.networks.equations`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import Array
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.online import OnlineCell
from theory.control.controls import Control
from theory.control.gradients import Problem
from theory.networks.averages import errors
from theory.networks.equations import Equations, Setting, equations_of, field, fields_of, packed, setting_of, unpacked
from theory.online.equations import logarithmic_rates
from theory.online.students import initial


class StudentSetting(NamedTuple):
    """Run-time arguments of one student: the parameters of its rule, and the flip rate."""

    parameters: dict[str, Array]
    flip: Array


@dataclass(frozen=True)
class StudentRate:
    """One perceptron whose learning rate is the control."""

    rule: Family
    closed: bool

    def rates(self, setting: StudentSetting, state: Array, control: Array) -> Array:
        """The time derivative of (log l, log theta)."""
        rule: Any = replace(self.rule(**setting.parameters), eta=control)
        return jnp.stack(logarithmic_rates(rule, self.closed, (state[0], state[1]), setting.flip, None))

    def cost(self, setting: StudentSetting, state: Array) -> Array:
        r""":math:`\log\epsilon_g = \log(\theta/\pi)`."""
        return state[1] - np.log(np.pi)


@dataclass(frozen=True)
class NetworkRate:
    """A network whose learning rate of the first layer is the control."""

    equations: Equations

    def rates(self, setting: Setting, state: Array, control: Array) -> Array:
        """The time derivative of R, Q and v, one after the other."""
        return field(self.equations, setting._replace(eta=control[None]), state[:, None])[:, 0]

    def cost(self, setting: Setting, state: Array) -> Array:
        r""":math:`\log\epsilon_g`, with :math:`2\epsilon_g = \sum_a c_a\langle g(x_a)e\rangle`."""
        fields = fields_of(self.equations, setting, unpacked(self.equations, state[:, None]))
        every = np.arange(self.equations.K + self.equations.M)
        return jnp.log(jnp.sum(jnp.asarray(fields.weights) * errors(fields, every)) / 2)


def of_student(cell: OnlineCell, control: Control) -> Problem:
    """The problem of the best learning rate of a cell with one student."""
    start, family = initial(cell), family_of(cell.rule)
    parameters = {name: np.float64(getattr(cell.rule, name)) for name in family.reals}
    angle = float(np.squeeze(angle_from_versine(start.y)))
    state = np.array([float(np.squeeze(start.log_length)), np.log(angle)])
    return Problem(
        StudentRate(family, cell.rule.has_closed_form),
        StudentSetting(parameters, np.float64(cell.flip)),
        state,
        control,
    )


def of_network(cell: NetworkCell, control: Control) -> Problem:
    """The problem of the best learning rate of the first layer of a network."""
    return Problem(NetworkRate(equations_of(cell)), setting_of([cell]), packed(cell.units), control)
