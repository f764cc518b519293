r"""Scenarios of networks that learn several tasks online: teachers, heads of the student, and protocol.

A config file with the keys `network` and `tasks` becomes a `NetworkTasks`. Each task has M teacher units, with the
products T of the key `teacher`. Unit m of one task and unit n of another have the product :math:`rT_{mn}`, where r
is the overlap of the tasks.

As in a `Network`, each step learns a new example. It belongs to one task: the protocol gives the probability of each
task at t = steps/N (`statmech.parameters.task_protocols`). With a `batch` of b, a step takes the mean over b such
examples. With `heads: own` the student has a second layer for each task, and an example changes the layer of its own
task only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from statmech.errors import Problem
from statmech.inputs.input_distributions import Gaussian
from statmech.keys.initial_states import StudentUnits, is_permutation_symmetric
from statmech.keys.key_types import PARAMETERS, config_key, make_keyword_or_section_type
from statmech.keys.sweep_grid import axis_of, ensure_tuple
from statmech.keys.time_dependent_keys import OPTIMUM_COORDINATES
from statmech.keys.variables import Variable
from statmech.kinds.network import NETWORK_VARIABLES, Network, NetworkCell, UnitCountAxis
from statmech.kinds.task_sequences import (
    TaskCell,
    TaskKeys,
    TaskOverlapAxis,
    TasksStart,
)
from statmech.parameters.parameter_fields import format_parameter_value
from statmech.students.activations import Linear

TASKS_START_SECTION_SCHEMA = {"type": "object", "properties": {name: {} for name in TasksStart.model_fields}}
TASKS_START_SCHEMA = {"anyOf": [{"enum": ["drawn"]}, TASKS_START_SECTION_SCHEMA]}
DRAWN_TASKS_START = TasksStart.model_validate({"name": "drawn", "drawn": 1.0})

TasksStartAxis = Annotated[
    Any,
    axis_of(
        Annotated[Any, make_keyword_or_section_type(["drawn"], TasksStart, "a start")], TASKS_START_SCHEMA, spaced=False
    ),
]


@dataclass(frozen=True)
class NetworkTaskCell(TaskCell, NetworkCell):
    """One grid point: the network, the M teacher units of all tasks, the heads, and the protocol."""

    start: TasksStart  # type: ignore[assignment]
    heads: int

    @property
    def teacher_units_per_task(self) -> int:
        """Number of teacher units per task."""
        return self.M // self.tasks

    @property
    def T(self) -> np.ndarray:
        """Overlaps T of the teacher units of all tasks, shape (M, M)."""
        return np.kron(self.task_overlaps, self.teacher.compute_matrices(self.teacher_units_per_task)[0])

    @property
    def w(self) -> np.ndarray:
        """Second-layer weights of the teachers, shape (tasks, M), with 0 for units of other tasks."""
        return np.kron(np.eye(self.tasks), self.teacher.compute_matrices(self.teacher_units_per_task)[1])

    @property
    def drawn(self) -> bool:
        """True if the first-layer weights of the student are drawn at random."""
        return self.start.is_drawn

    @property
    def units(self) -> StudentUnits:
        """Student units at t = 0, with head weights v (heads, K)."""
        return self.start.compute_start(self.K, self.T, self.heads)

    @property
    def has_identical_start(self) -> bool:
        """True if all student units are identical at the start, and there is no dropout."""
        R, Q, v = self.units
        equal_starts = self.K > 1 and not self.drawn and all(np.ptp(part, axis=0).max() == 0 for part in (R, Q, v.T))
        return equal_starts and not self.has_dropout

    @property
    def has_symmetric_start(self) -> bool:
        """True if the network's units differ at the start of several tasks, but can be exchanged without effect."""
        if self.K == 1 or isinstance(self.activation, Linear) or self.has_identical_start:
            return False
        R, Q, v = self.units
        return is_permutation_symmetric(Q) and all(np.ptp(part, axis=0).max() == 0 for part in (R, v.T))

    @property
    def message_description(self) -> str:
        """Description of the tasks, the activation and the numeric keys for messages."""
        overlap = format_parameter_value(self.overlap)
        return f"{self.tasks} tasks of overlap {overlap}, {self.protocol}: {super().message_description}"

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this cell."""
        return super().identity | {"tasks": self.tasks, "batch": self.batch, **self.protocol_identity}


class NetworkTasks(TaskKeys, Network):
    """Two-layer networks that learn several tasks online.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = NetworkTasks(network="erf", tasks=2, overlap=[0, 0.5], M=1, K=2, N=100, switch=5, t=[0, 5, 10])
    >>> scenario.shape, next(iter(scenario.cells())).protocol
    ({'overlap': 2}, BlockedProtocol(share=0.0))
    """

    AXES: ClassVar = (
        *("network", "M", "K", "overlap", "protocol", "start", "N", "inputs"),
        *("eta", "eta_v", "batch", "noise", "decay", "dropout", PARAMETERS),
    )
    CELL_CLASS: ClassVar = NetworkTaskCell
    CITES: ClassVar = (*Network.CITES, "lee2021")
    TITLE: ClassVar = "networks of several tasks"
    NON_KEY_COORDINATES: ClassVar = {
        **{
            name: Network.NON_KEY_COORDINATES[name]
            for name in ("student", "other", "teacher_unit", *OPTIMUM_COORDINATES)
        },
        **TaskKeys.TASK_COORDINATES,
    }
    SHOWS_SINGLE_RUNS: ClassVar = False

    M: UnitCountAxis = config_key(1, description="number of teacher units, of each task", symbol="$M$")
    overlap: TaskOverlapAxis = config_key(
        0.0,
        description="overlap of the teachers of two tasks, for units of the same number, over that of T",
        symbol="$r$",
    )
    heads: Literal["own", "shared"] = Field(
        default="own", description="second layer: own (one for each task) or shared (one for all)"
    )
    start: TasksStartAxis = Field(
        default="drawn",
        description="start, at t = 0: drawn (entries from N(0,1)), {drawn: variance, v}, {Q, R, v}, or {Q, along, v} "
        "for one student at every overlap",
    )

    def _find_problems(self) -> Iterator[Problem]:
        yield from self._find_size_problems()
        yield from self._find_step_problems()
        yield from self.find_task_problems()
        yield from self._find_input_problems()
        yield from (matrix_problems := list(self._find_matrix_problems()))
        yield from self._find_control_problems(matrix_problems)

    def _find_size_problems(self) -> Iterator[Problem]:
        """Find the first invalid combination of N, K, M and tasks of a network."""
        yield from (size_problems := list(super()._find_size_problems()))
        for values in self.iterate_combinations("K", "M", "N") if not size_problems else ():
            K, N, min_dimension = values["K"], values["N"], values["K"] + self.tasks * values["M"]
            if min_dimension > N:
                units = f"{self.tasks} tasks of M = {values['M']} teacher units and K = {K} student units"
                yield ("N",), f"N = {N} is too small for {units}: N must be at least K + tasks * M = {min_dimension}"
                return

    def _find_input_problems(self) -> Iterator[Problem]:
        """Find inputs, outputs and activations that networks do not support for several tasks."""
        if any(inputs != Gaussian() for inputs in ensure_tuple(self.inputs)):
            yield ("inputs",), "networks of several tasks learn from gaussian inputs of equal variance only"
        if self.teacher.output == "sign":
            yield ("teacher",), "networks of several tasks learn outputs, not labels: remove `output: sign`"
        for cell in self.iterate_representative_cells("network"):
            if not cell.activation.has_closed_forms:
                reason = f"several tasks need an activation with closed forms of its averages, not {cell.name}"
                yield ("network",), reason
            elif cell.teacher_activation != cell.activation:
                yield ("teacher",), "the teachers of several tasks must have the activation of the student"

    def _find_matrix_problems(self) -> Iterator[Problem]:
        """Find the first problem in the matrices of the teachers of the tasks or the student network."""
        for M in ensure_tuple(self.M):
            for sentence in self.teacher.problems(M, self.dtype):
                yield ("teacher",), sentence
                return
        if min(ensure_tuple(self.overlap)) < self.min_possible_overlap:
            return
        for cell in self.iterate_representative_cells("K", "M", "overlap", "start"):
            for sentence in cell.start.problems(cell.K, cell.T, cell.heads, self.dtype):
                suffix = f", at the overlap {cell.overlap:g} of the tasks" if "semidefinite" in sentence else ""
                yield ("start",), sentence + suffix
                return

    @property
    def variables(self) -> dict[str, Variable]:
        task_dims = ("task",) if self.heads == "own" else ()
        return {
            "eps_g": Variable(
                ("t", "task"),
                "generalization error, of a task: mean squared error over 2, without noise",
                r"$\epsilon_g$",
            ),
            "R": NETWORK_VARIABLES["R"],
            "Q": NETWORK_VARIABLES["Q"],
            "v": replace(NETWORK_VARIABLES["v"], dims=("t", *task_dims, "student")),
            "specialisation": replace(NETWORK_VARIABLES["specialisation"], dims=("t", "task")),
        }

    def drop_shared_head_axis(self, v: np.ndarray) -> np.ndarray:
        """Remove the task axis of the head weights v (..., heads, K) if all tasks share one head."""
        return v if self.heads == "own" else v[..., 0, :]

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of times, tasks, and the units of the student network and of the teachers."""
        students = np.arange(1, max(ensure_tuple(self.K)) + 1)
        units = np.arange(1, self.tasks * max(ensure_tuple(self.M)) + 1)
        tasks = np.arange(1, self.tasks + 1)
        coordinates = {"task": tasks, "student": students, "other": students, "teacher_unit": units}
        return super(Network, self).recorded_coordinates | coordinates

    def _estimate_step_seconds(self, cell: Any) -> float:
        """Estimate the seconds per step and seed of a network that learns several tasks."""
        return super()._estimate_step_seconds(cell) * cell.batch

    def _make_program_key(self, cell: Any) -> tuple[Any, ...]:
        """Return the values of a network, the numbers of tasks and heads, and the examples per step."""
        return *super()._make_program_key(cell), cell.tasks, cell.heads, cell.batch

    def make_specific_values(self, values: dict[str, Any]) -> dict[str, Any]:
        task_values = {name: values[name] for name in ("overlap", "protocol", "batch")}
        return task_values | {
            "M": self.tasks * values["M"],
            "start": DRAWN_TASKS_START if values["start"] == "drawn" else values["start"],
            "tasks": self.tasks,
            "heads": self.tasks if self.heads == "own" else 1,
            "switch": self.switch,
        }
