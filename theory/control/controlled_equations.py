r"""Controlled equations of a perceptron or a network that learns one or several tasks.

Controls are the learning rate, the dropout of networks and, for two tasks, the fraction of the first. Other functions
of time are constant on each segment of the controls. The state of a perceptron is :math:`(\log l, \log\theta)`, or
:math:`(\log l, 1-R_s)` for several tasks. The state of a network is R, Q and v
(`theory.networks.order_parameter_equations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.keys.time_dependent_keys import FIRST_TASK_FRACTION_CONTROL
from statmech.kinds.network import NetworkCell
from statmech.kinds.network_tasks import NetworkTaskCell
from statmech.kinds.online_learning import OnlineCell
from statmech.kinds.online_tasks import OnlineTaskCell
from statmech.numerics.gaussian import Array
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.parameters.schedules_and_controls import CONSTANT_SCHEDULE, Objective, TimeDependence, TimeSegments
from statmech.students.rules import RuleAverages
from statmech.students.student_geometry import angle_from_versine
from theory.control.control_gradients import ControlProblem
from theory.networks import several_tasks as network_tasks
from theory.networks.order_parameter_equations import (
    NetworkSetting,
    NetworkSolverOptions,
    UnitFields,
    average_outputs_times_error,
    compute_row_rates,
    make_network_fields,
    make_network_setting,
    make_network_solver_options,
    pack_units,
    unpack_units,
)
from theory.online import several_tasks as online_tasks
from theory.online.order_parameter_equations import compute_logarithmic_rates, compute_rule_averages
from theory.online.student_states import make_initial_students

DEFAULT_CONTROLS = ("eta",)  # for a perceptron with one task, and for cells without an `optimal` key
NETWORK_SEGMENT_VALUE_NAMES = ("eta", "noise", "dropout")
MIN_ANGLE_VERSINE = 1e-18  # keeps the derivative of the angle finite at 1 - R = 0


class StudentRuntimeArguments(NamedTuple):
    """Run-time arguments of one student: parameters of the rule, drift and decay."""

    parameters: dict[str, Array]
    changes: TimeDependence


@dataclass(frozen=True)
class StudentSystem:
    """Equations of a perceptron controlled by its learning rate, with the flip rate as input."""

    rule: RealParameterFamily
    uses_closed_form: bool

    def compute_rates(self, setting: StudentRuntimeArguments, flip: Array, state: Array, controls: Array) -> Array:
        """Return the time derivative of (log l, log theta) of a controlled perceptron."""
        rule: Any = replace(self.rule(**setting.parameters), eta=controls[0])
        return jnp.stack(
            compute_logarithmic_rates(rule, self.uses_closed_form, (state[0], state[1]), flip, setting.changes)
        )

    def compute_error(self, setting: StudentRuntimeArguments, state: Array) -> Array:
        r"""Return the generalization error :math:`\epsilon_g = \theta/\pi`."""
        return jnp.exp(state[1]) / np.pi


@dataclass(frozen=True)
class NetworkSystem:
    """Equations of a network that learns one task, with the given controls."""

    equations: NetworkSolverOptions
    controls: tuple[str, ...]

    def compute_rates(
        self, setting: NetworkSetting, segment_values: SegmentValues, state: Array, controls: Array
    ) -> Array:
        """Return the time derivative of R, Q and v of a controlled network as one vector."""
        current_setting = segment_values.replace_controls(
            dict(zip(self.controls, controls, strict=True))
        ).to_network_setting(setting)
        return compute_row_rates(self.equations, current_setting, state[:, None])[:, 0]

    def compute_error(self, setting: NetworkSetting, state: Array) -> Array:
        r"""Return the generalization error :math:`\epsilon_g`."""
        return _compute_network_error(
            make_network_fields(self.equations, setting, unpack_units(self.equations, state[:, None]))
        )


class SegmentValues(NamedTuple):
    """Values on a segment: learning rate, noise, the probabilities of several tasks, and the dropout of networks."""

    eta: Array
    noise: Array
    task_probabilities: Array | None = None
    dropout: Array | None = None

    def replace_controls(self, controls: Mapping[str, Array]) -> SegmentValues:
        """Return a copy of the values on a segment with the values of the controls inserted."""
        fraction = controls.get(FIRST_TASK_FRACTION_CONTROL)
        replaced = {name: value for name, value in controls.items() if name != FIRST_TASK_FRACTION_CONTROL}
        probabilities = self.task_probabilities if fraction is None else jnp.stack([fraction, 1 - fraction])
        return self._replace(task_probabilities=probabilities, **replaced)

    def to_network_setting(self, setting: NetworkSetting) -> NetworkSetting:
        """Return the run-time arguments of a network with these values, as a batch of one."""
        values = {name: getattr(self, name) for name in NETWORK_SEGMENT_VALUE_NAMES}
        return setting._replace(**{name: array[None] for name, array in values.items()})


@dataclass(frozen=True)
class TaskPerceptronSystem:
    """Equations of a perceptron that learns several tasks, with controls and the tasks' weights in the error."""

    rule: RealParameterFamily
    uses_closed_form: bool
    controls: tuple[str, ...]
    weights: tuple[float, ...]

    def compute_rates(
        self, setting: online_tasks.TaskStudentSetting, segment_values: SegmentValues, state: Array, controls: Array
    ) -> Array:
        """Return the time derivative of log l and y of a controlled perceptron with several tasks."""
        values = segment_values.replace_controls(dict(zip(self.controls, controls, strict=True)))
        rule: Any = replace(self.rule(**setting.parameters), eta=values.eta)
        length, y = jnp.exp(state[0]), jnp.clip(state[1:], MIN_ANGLE_VERSINE, 2.0)
        theta = angle_from_versine(y)
        task_averages = RuleAverages(
            *(
                part + 0.0 * theta
                for part in compute_rule_averages(rule, self.uses_closed_form, theta, length, values.noise)
            )
        )
        growth, y_rate = online_tasks.compute_task_rates(task_averages, length, y, setting, values.task_probabilities)
        return jnp.append(growth, y_rate)

    def compute_error(self, setting: online_tasks.TaskStudentSetting, state: Array) -> Array:
        r"""Return the mean :math:`\epsilon_g = \theta/\pi` of all tasks."""
        return np.asarray(self.weights) @ angle_from_versine(jnp.clip(state[1:], MIN_ANGLE_VERSINE, 2.0)) / np.pi


@dataclass(frozen=True)
class TaskNetworkSystem:
    """Equations of a network that learns several tasks, with controls and the tasks' weights in the error."""

    equations: network_tasks.TaskEquations
    controls: tuple[str, ...]
    weights: tuple[float, ...]

    def compute_rates(
        self, setting: network_tasks.TaskSetting, segment_values: SegmentValues, state: Array, controls: Array
    ) -> Array:
        """Return the time derivative of R, Q and the heads of a controlled network as one vector."""
        values = segment_values.replace_controls(dict(zip(self.controls, controls, strict=True)))
        assert values.task_probabilities is not None
        current_setting = setting._replace(network=values.to_network_setting(setting.network))
        return network_tasks.compute_task_row_rates(
            self.equations, current_setting, values.task_probabilities[:, None], state[:, None]
        )[:, 0]

    def compute_error(self, setting: network_tasks.TaskSetting, state: Array) -> Array:
        r"""Return the mean :math:`\epsilon_g` of all tasks of a controlled network."""
        units, network = network_tasks.unpack_task_units(self.equations, state[:, None]), self.equations.network
        heads: Array = jnp.broadcast_to(units.v, (len(setting.network.w), *units.v.shape[1:]))
        errors = [
            _compute_network_error(make_network_fields(network, setting.network._replace(w=w), units._replace(v=v)))
            for w, v in zip(setting.network.w, heads, strict=True)
        ]
        return np.asarray(self.weights) @ jnp.stack(errors)


def _compute_network_error(fields: UnitFields) -> Array:
    r"""Compute the error of one controlled network, :math:`2\epsilon_g = \sum_a c_a\langle g(x_a)e\rangle`."""
    fields = fields._replace(dropout_masks=None)  # no dropout at test time
    return (
        jnp.sum(jnp.asarray(fields.weights) * average_outputs_times_error(fields, np.arange(len(fields.weights)))) / 2
    )


@singledispatch
def make_control_problem(cell: Any, segments: TimeSegments) -> ControlProblem:
    """Make the control problem of a cell, for its `optimal` keys or for its learning rate.

    Parameters
    ----------
    cell
        A cell of one distinct perceptron or of a network, with one or several tasks.
    segments
        Segments of the controls. Other functions of time jump only at edges.
    """
    raise TypeError(f"{cell!r} has no control")


@make_control_problem.register
def _make_student_problem(cell: OnlineCell, segments: TimeSegments) -> ControlProblem:
    start = make_initial_students(cell)
    angle = float(np.squeeze(angle_from_versine(start.y[:1])))
    return ControlProblem(
        StudentSystem(get_real_parameter_family(cell.rule), cell.rule.has_closed_form),
        StudentRuntimeArguments(
            _get_rule_parameters(cell),
            TimeDependence(np.float64(cell.drift), np.float64(cell.decay), CONSTANT_SCHEDULE),
        ),
        np.array([float(start.log_length[0]), np.log(angle)]),
        segments,
        np.array([segment_cell.flip for segment_cell in _get_cells_on_segments(cell, segments)]),
    )


@make_control_problem.register
def _make_network_problem(cell: NetworkCell, segments: TimeSegments) -> ControlProblem:
    system = NetworkSystem(make_network_solver_options(cell), tuple(cell.optimal_keys) or DEFAULT_CONTROLS)
    values = SegmentValues(**_get_network_segment_values(cell, segments))
    return ControlProblem(
        system, make_network_setting([cell]), pack_units(cell.units), segments, values, len(system.controls)
    )


@make_control_problem.register
def _make_task_student_problem(cell: OnlineTaskCell, segments: TimeSegments) -> ControlProblem:
    begin, family = segments.edges[0], get_real_parameter_family(cell.rule)
    start = online_tasks.make_initial_state_rows(cell)[:-1]
    if begin > 0:
        [student] = online_tasks.solve_cells([cell], [begin])
        start = np.append(student.log_length[0], student.y[0])
    batch_setting = online_tasks.make_task_setting([replace(cell, controls=())], (family,))
    system = TaskPerceptronSystem(family, cell.rule.has_closed_form, *_get_controls_and_task_weights(cell))
    eta, flip = np.array(
        [(segment_cell.rule.eta, segment_cell.flip) for segment_cell in _get_cells_on_segments(cell, segments)], float
    ).T
    values = SegmentValues(eta, flip, _get_task_probabilities(cell, segments))
    return ControlProblem(
        system, jax.tree.map(lambda array: array[..., 0], batch_setting), start, segments, values, len(system.controls)
    )


@make_control_problem.register
def _make_task_network_problem(cell: NetworkTaskCell, segments: TimeSegments) -> ControlProblem:
    begin, units = segments.edges[0], cell.units
    if begin > 0:
        [solution] = network_tasks.solve_cells([cell], [begin])
        units = type(units)(*(part[0] for part in solution))
    system = TaskNetworkSystem(network_tasks.make_task_equations(cell), *_get_controls_and_task_weights(cell))
    values = SegmentValues(
        **_get_network_segment_values(cell, segments), task_probabilities=_get_task_probabilities(cell, segments)
    )
    setting, start = network_tasks.make_task_setting([cell]), network_tasks.pack_task_units(units)
    return ControlProblem(system, setting, start, segments, values, len(system.controls))


def _get_rule_parameters(cell: OnlineCell) -> dict[str, Array]:
    return {
        name: np.float64(getattr(cell.rule, name)) for name in get_real_parameter_family(cell.rule).real_parameter_names
    }


def _get_controls_and_task_weights(cell: Any) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the controls of a cell with several tasks, and the weights of the tasks in the controlled error."""
    names = tuple(cell.optimal_keys) or DEFAULT_CONTROLS
    objectives = [options.objective for options in cell.optimal_keys.values()]
    return names, tuple((objectives or [Objective()])[0].shares(cell.tasks).tolist())


def _get_network_segment_values(cell: NetworkCell, segments: TimeSegments) -> dict[str, np.ndarray]:
    """Return the learning rate, noise and dropout of a network on each segment of its controls."""
    cells = _get_cells_on_segments(cell, segments)
    return {
        name: np.array([getattr(segment_cell, name) for segment_cell in cells], float)
        for name in NETWORK_SEGMENT_VALUE_NAMES
    }


def _get_task_probabilities(cell: Any, segments: TimeSegments) -> np.ndarray:
    """Return the task probabilities (segments, tasks) on each segment."""
    return np.array([cell.protocol_pieces.at(np.float64(t)) for t in segments.edges[:-1]])


def _get_cells_on_segments(cell: Any, segments: TimeSegments) -> list[Any]:
    """Return the cell with its parameters on each segment."""
    return [cell.after(t) for t in segments.edges[:-1]]
