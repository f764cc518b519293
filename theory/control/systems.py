r"""The equations that have a control: one perceptron, a network, or a network that learns several tasks.

The control is the learning rate or, of several tasks, the fraction of the first; other functions of time are constant
on each segment of the control. The state of a perceptron is :math:`(\log l, \log\theta)`, that of networks R, Q and v
(`theory.networks.equations`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from statmech.controls import Segments
from statmech.numerics.gaussian import Array
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_tasks import NetworkTaskCell
from statmech.scenarios.online import OnlineCell
from statmech.schedules import CONSTANT, Changes
from theory.control.gradients import Problem
from theory.networks import tasks
from theory.networks.averages import Fields, errors
from theory.networks.equations import Equations, Setting, equations_of, field, fields_of, packed, setting_of, unpacked
from theory.networks.tasks import TaskEquations, TaskSetting
from theory.online.equations import logarithmic_rates
from theory.online.students import initial


class StudentSetting(NamedTuple):
    """Run-time arguments of one student: the parameters of its rule, drift and decay."""

    parameters: dict[str, Array]
    changes: Changes


@dataclass(frozen=True)
class StudentRate:
    """One perceptron whose learning rate is the control; given is the flip rate."""

    rule: Family
    closed: bool

    def rates(self, setting: StudentSetting, given: Array, state: Array, control: Array) -> Array:
        """The time derivative of (log l, log theta)."""
        rule: Any = replace(self.rule(**setting.parameters), eta=control)
        return jnp.stack(logarithmic_rates(rule, self.closed, (state[0], state[1]), given, setting.changes))

    def cost(self, setting: StudentSetting, state: Array) -> Array:
        r""":math:`\log\epsilon_g = \log(\theta/\pi)`."""
        return state[1] - np.log(np.pi)


@dataclass(frozen=True)
class NetworkRate:
    """A network whose learning rate of the first layer is the control; given is the noise."""

    equations: Equations

    def rates(self, setting: Setting, given: Array, state: Array, control: Array) -> Array:
        """The time derivative of R, Q and v, one after the other."""
        now = setting._replace(eta=control[None], noise=given[None])
        return field(self.equations, now, state[:, None])[:, 0]

    def cost(self, setting: Setting, state: Array) -> Array:
        r""":math:`\log\epsilon_g`."""
        return jnp.log(_error(fields_of(self.equations, setting, unpacked(self.equations, state[:, None]))))


class OfSegment(NamedTuple):
    """Values on a segment for a network of several tasks: learning rate, noise, and the probabilities of tasks."""

    eta: Array
    noise: Array
    shares: Array


@dataclass(frozen=True)
class TasksControl:
    """A network of several tasks; the control is the fraction of the first of two, or the learning rate."""

    equations: TaskEquations
    of_share: bool

    def rates(self, setting: TaskSetting, given: OfSegment, state: Array, control: Array) -> Array:
        """The time derivative of R, Q and the heads, one after the other."""
        shares = jnp.stack([control, 1 - control]) if self.of_share else given.shares
        eta = given.eta if self.of_share else control
        network = setting.network._replace(eta=eta[None], noise=given.noise[None])
        now = setting._replace(network=network)
        return tasks.field(self.equations, now, shares[:, None], state[:, None])[:, 0]

    def cost(self, setting: TaskSetting, state: Array) -> Array:
        r""":math:`\log` of the mean :math:`\epsilon_g` of all tasks."""
        units, of_network = tasks.unpacked(self.equations, state[:, None]), self.equations.network
        heads = jnp.broadcast_to(units.v, (len(setting.network.w), *units.v.shape[1:]))
        every = [
            _error(fields_of(of_network, setting.network._replace(w=w), units._replace(v=v)))
            for w, v in zip(setting.network.w, heads, strict=True)
        ]
        return jnp.log(sum(every) / len(every))


def _error(fields: Fields) -> Array:
    r"""The error of one lane, :math:`2\epsilon_g = \sum_a c_a\langle g(x_a)e\rangle`."""
    return jnp.sum(jnp.asarray(fields.weights) * errors(fields, np.arange(len(fields.weights)))) / 2


@singledispatch
def problem_of(cell: Any, segments: Segments) -> Problem:
    """The problem of the best control of a cell's learning rate, or of the fraction of its first task.

    Parameters
    ----------
    cell
        A cell with one distinct student, of a network, or of a network of several tasks.
    segments
        Those of the control; other functions of time jump at edges only.
    """
    raise TypeError(f"{cell!r} has no control")


@problem_of.register
def _of_student(cell: OnlineCell, segments: Segments) -> Problem:
    start, family = initial(cell), family_of(cell.rule)
    parameters = {name: np.float64(getattr(cell.rule, name)) for name in family.reals}
    angle = float(np.squeeze(angle_from_versine(start.y[:1])))
    state = np.array([float(start.log_length[0]), np.log(angle)])
    changes = Changes(np.float64(cell.drift), np.float64(cell.decay), CONSTANT)
    return Problem(
        StudentRate(family, cell.rule.has_closed_form),
        StudentSetting(parameters, changes),
        state,
        segments,
        np.array([now.flip for now in _at_edges(cell, segments)]),
    )


@problem_of.register
def _of_network(cell: NetworkCell, segments: Segments) -> Problem:
    noise = np.array([now.noise for now in _at_edges(cell, segments)])
    return Problem(NetworkRate(equations_of(cell)), setting_of([cell]), packed(cell.units), segments, noise)


@problem_of.register
def _of_tasks(cell: NetworkTaskCell, segments: Segments) -> Problem:
    of_share, begin = cell.wants_share, segments.edges[0]
    now = _at_edges(cell, segments)
    shares = np.array([cell.pieces.at(np.float64(t)) for t in segments.edges[:-1]])
    given = OfSegment(np.array([at.eta for at in now]), np.array([at.noise for at in now]), shares)
    [units] = tasks.solve_cells([cell], [begin]) if begin > 0 else [cell.units]
    start = tasks.packed(type(units)(*(part[0] for part in units)) if begin > 0 else units)
    system = TasksControl(tasks.equations_of(cell), of_share)
    return Problem(system, tasks.setting_of([cell]), start, segments, given)


def _at_edges(cell: Any, segments: Segments) -> list[Any]:
    """The cell on each segment."""
    return [cell.after(t) for t in segments.edges[:-1]]
