r"""Controlled equations of a perceptron or a network that learns one or several tasks.

Controls are the learning rate, the dropout of networks and, for two tasks, the fraction of the first. Other functions
of time are constant on each segment of the controls. The state of a perceptron is :math:`(\log l, \log\theta)`, or
:math:`(\log l, 1-R_s)` for several tasks. The state of a network is R, Q and v (`theory.networks.equations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.controls import Segments
from statmech.numerics.gaussian import Array
from statmech.optima import Objective
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.rules import Averages
from statmech.scenarios.controlled_keys import SHARE
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_tasks import NetworkTaskCell
from statmech.scenarios.online import OnlineCell
from statmech.scenarios.online_tasks import OnlineTaskCell
from statmech.schedules import CONSTANT, Changes
from theory.control.gradients import Problem
from theory.networks import tasks as network_tasks
from theory.networks.averages import Fields, errors
from theory.networks.equations import Equations, Setting, equations_of, field, fields_of, packed, setting_of, unpacked
from theory.networks.tasks import TaskEquations, TaskSetting
from theory.online import tasks as online_tasks
from theory.online.averages import averages
from theory.online.equations import logarithmic_rates
from theory.online.students import initial

ETA = ("eta",)  # for a perceptron with one task, and for cells without an `optimal` key
OF_NETWORK = ("eta", "noise", "dropout")
SMALLEST = 1e-18  # at 1 - R = 0 the angle has no derivative


class StudentSetting(NamedTuple):
    """Run-time arguments of one student: parameters of the rule, drift and decay."""

    parameters: dict[str, Array]
    changes: Changes


@dataclass(frozen=True)
class StudentRate:
    """Perceptron whose control is the learning rate. The given value is the flip rate."""

    rule: Family
    closed: bool

    def rates(self, setting: StudentSetting, given: Array, state: Array, controls: Array) -> Array:
        """Return the time derivative of (log l, log theta)."""
        rule: Any = replace(self.rule(**setting.parameters), eta=controls[0])
        return jnp.stack(logarithmic_rates(rule, self.closed, (state[0], state[1]), given, setting.changes))

    def error(self, setting: StudentSetting, state: Array) -> Array:
        r"""Return :math:`\epsilon_g = \theta/\pi`."""
        return jnp.exp(state[1]) / np.pi


@dataclass(frozen=True)
class NetworkOfOneTask:
    """Network that learns one task, with these controls."""

    equations: Equations
    controls: tuple[str, ...]

    def rates(self, setting: Setting, given: OfSegment, state: Array, controls: Array) -> Array:
        """Return the time derivative of R, Q and v as one vector."""
        current_setting = given.replace_controls(dict(zip(self.controls, controls, strict=True))).of_network(setting)
        return field(self.equations, current_setting, state[:, None])[:, 0]

    def error(self, setting: Setting, state: Array) -> Array:
        r"""Return :math:`\epsilon_g`."""
        return _error(fields_of(self.equations, setting, unpacked(self.equations, state[:, None])))


class OfSegment(NamedTuple):
    """Values on a segment: learning rate, noise, the probabilities of several tasks, and the dropout of networks."""

    eta: Array
    noise: Array
    probabilities: Array | None = None
    dropout: Array | None = None

    def replace_controls(self, controls: Mapping[str, Array]) -> OfSegment:
        """Replace the values that are controlled."""
        fraction, replaced = controls.get(SHARE), {name: value for name, value in controls.items() if name != SHARE}
        probabilities = self.probabilities if fraction is None else jnp.stack([fraction, 1 - fraction])
        return self._replace(probabilities=probabilities, **replaced)

    def of_network(self, setting: Setting) -> Setting:
        """Return the run-time arguments of a network with these values, as a batch of one."""
        values = {name: getattr(self, name) for name in OF_NETWORK}
        return setting._replace(**{name: array[None] for name, array in values.items()})


@dataclass(frozen=True)
class StudentOfTasks:
    """Perceptron that learns several tasks, with these controls and the tasks' weights in the error."""

    rule: Family
    closed: bool
    controls: tuple[str, ...]
    weights: tuple[float, ...]

    def rates(self, setting: online_tasks.Setting, given: OfSegment, state: Array, controls: Array) -> Array:
        """Return the time derivative of log l and y."""
        values = given.replace_controls(dict(zip(self.controls, controls, strict=True)))
        rule: Any = replace(self.rule(**setting.parameters), eta=values.eta)
        length, y = jnp.exp(state[0]), jnp.clip(state[1:], SMALLEST, 2.0)
        theta = angle_from_versine(y)
        task_averages = Averages(
            *(part + 0.0 * theta for part in averages(rule, self.closed, theta, length, values.noise))
        )
        growth, y_rate = online_tasks.task_rates(task_averages, length, y, setting, values.probabilities)
        return jnp.append(growth, y_rate)

    def error(self, setting: online_tasks.Setting, state: Array) -> Array:
        r"""Return the mean :math:`\epsilon_g = \theta/\pi` of all tasks."""
        return np.asarray(self.weights) @ angle_from_versine(jnp.clip(state[1:], SMALLEST, 2.0)) / np.pi


@dataclass(frozen=True)
class NetworkOfTasks:
    """Network that learns several tasks, with these controls and the tasks' weights in the error."""

    equations: TaskEquations
    controls: tuple[str, ...]
    weights: tuple[float, ...]

    def rates(self, setting: TaskSetting, given: OfSegment, state: Array, controls: Array) -> Array:
        """Return the time derivative of R, Q and the heads as one vector."""
        values = given.replace_controls(dict(zip(self.controls, controls, strict=True)))
        assert values.probabilities is not None
        current_setting = setting._replace(network=values.of_network(setting.network))
        return network_tasks.field(self.equations, current_setting, values.probabilities[:, None], state[:, None])[:, 0]

    def error(self, setting: TaskSetting, state: Array) -> Array:
        r"""Return the mean :math:`\epsilon_g` of all tasks."""
        units, network = network_tasks.unpacked(self.equations, state[:, None]), self.equations.network
        heads: Array = jnp.broadcast_to(units.v, (len(setting.network.w), *units.v.shape[1:]))
        errors = [
            _error(fields_of(network, setting.network._replace(w=w), units._replace(v=v)))
            for w, v in zip(setting.network.w, heads, strict=True)
        ]
        return np.asarray(self.weights) @ jnp.stack(errors)


def _error(fields: Fields) -> Array:
    r"""Compute the error of a batch of one, :math:`2\epsilon_g = \sum_a c_a\langle g(x_a)e\rangle`."""
    fields = fields._replace(masks=None)  # no dropout at test time
    return jnp.sum(jnp.asarray(fields.weights) * errors(fields, np.arange(len(fields.weights)))) / 2


@singledispatch
def problem_of(cell: Any, segments: Segments) -> Problem:
    """Make the control problem of a cell, for its `optimal` keys or for its learning rate.

    Parameters
    ----------
    cell
        A cell of one distinct perceptron or of a network, with one or several tasks.
    segments
        Segments of the controls. Other functions of time jump only at edges.
    """
    raise TypeError(f"{cell!r} has no control")


@problem_of.register
def _of_student(cell: OnlineCell, segments: Segments) -> Problem:
    start = initial(cell)
    angle = float(np.squeeze(angle_from_versine(start.y[:1])))
    return Problem(
        StudentRate(family_of(cell.rule), cell.rule.has_closed_form),
        StudentSetting(_parameters(cell), Changes(np.float64(cell.drift), np.float64(cell.decay), CONSTANT)),
        np.array([float(start.log_length[0]), np.log(angle)]),
        segments,
        np.array([segment_cell.flip for segment_cell in _at_edges(cell, segments)]),
    )


@problem_of.register
def _of_network(cell: NetworkCell, segments: Segments) -> Problem:
    system = NetworkOfOneTask(equations_of(cell), tuple(cell.wishes) or ETA)
    values = OfSegment(**_of_network_at(cell, segments))
    return Problem(system, setting_of([cell]), packed(cell.units), segments, values, len(system.controls))


@problem_of.register
def _of_student_of_tasks(cell: OnlineTaskCell, segments: Segments) -> Problem:
    begin, family = segments.edges[0], family_of(cell.rule)
    start = online_tasks.start_of(cell)[:-1]
    if begin > 0:
        [student] = online_tasks.solve_cells([cell], [begin])
        start = np.append(student.log_length[0], student.y[0])
    batch_setting = online_tasks.setting_of([replace(cell, controls=())], (family,))
    system = StudentOfTasks(family, cell.rule.has_closed_form, *_wanted(cell))
    eta, flip = np.array(
        [(segment_cell.rule.eta, segment_cell.flip) for segment_cell in _at_edges(cell, segments)], float
    ).T
    values = OfSegment(eta, flip, _shares(cell, segments))
    return Problem(
        system, jax.tree.map(lambda array: array[..., 0], batch_setting), start, segments, values, len(system.controls)
    )


@problem_of.register
def _of_network_of_tasks(cell: NetworkTaskCell, segments: Segments) -> Problem:
    begin, units = segments.edges[0], cell.units
    if begin > 0:
        [solution] = network_tasks.solve_cells([cell], [begin])
        units = type(units)(*(part[0] for part in solution))
    system = NetworkOfTasks(network_tasks.equations_of(cell), *_wanted(cell))
    values = OfSegment(**_of_network_at(cell, segments), probabilities=_shares(cell, segments))
    setting, start = network_tasks.setting_of([cell]), network_tasks.packed(units)
    return Problem(system, setting, start, segments, values, len(system.controls))


def _parameters(cell: OnlineCell) -> dict[str, Array]:
    return {name: np.float64(getattr(cell.rule, name)) for name in family_of(cell.rule).reals}


def _wanted(cell: Any) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the controls of a cell with several tasks, and the tasks' weights in the error."""
    names, objectives = tuple(cell.wishes) or ETA, [options.objective for options in cell.wishes.values()]
    return names, tuple((objectives or [Objective()])[0].shares(cell.tasks).tolist())


def _of_network_at(cell: NetworkCell, segments: Segments) -> dict[str, np.ndarray]:
    """Return the learning rate, noise and dropout on each segment."""
    cells = _at_edges(cell, segments)
    return {name: np.array([getattr(segment_cell, name) for segment_cell in cells], float) for name in OF_NETWORK}


def _shares(cell: Any, segments: Segments) -> np.ndarray:
    """Return the probabilities of tasks (segments, tasks)."""
    return np.array([cell.pieces.at(np.float64(t)) for t in segments.edges[:-1]])


def _at_edges(cell: Any, segments: Segments) -> list[Any]:
    """Return the cell as it is on each segment."""
    return [cell.after(t) for t in segments.edges[:-1]]
