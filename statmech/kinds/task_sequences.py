"""Config keys of scenarios with several tasks, and initial conditions of their students.

The keys are the number, the overlap, the protocol and the batch of the tasks. The student is a perceptron, or a network
with units and heads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, PlainSerializer, Tag

from statmech.errors import Problem
from statmech.keys.initial_states import (
    MATRIX_SCHEMA,
    NUMBER_LIST_SCHEMA,
    NUMBER_SCHEMA,
    ConfigSection,
    CosineOrList,
    MatrixRows,
    NetworkStart,
    NonnegativeOrMatrix,
    Positive,
    PositiveNumber,
    StudentTeacherOverlaps,
    StudentUnits,
    find_length_problems,
    find_shape_problems,
)
from statmech.keys.key_types import Nonnegative, Number, Whole, config_key
from statmech.keys.sweep_grid import IntegerOrAxis, NumberOrAxis, PydanticTypeOverride, axis_of, ensure_tuple
from statmech.keys.time_dependent_keys import FIRST_TASK_FRACTION_CONTROL, ControlledCell
from statmech.keys.variables import Variable
from statmech.kinds.online_learning import OnlineLearning
from statmech.parameters.parameter_fields import ConfigKey
from statmech.parameters.schedules_and_controls import OptimalControlOptions
from statmech.parameters.task_protocols import (
    PARAMETERLESS_PROTOCOLS,
    BlockedProtocol,
    OptimalProtocol,
    ProtocolPieces,
    ReplayProtocol,
    TaskProtocol,
    protocol_from_config,
    protocol_to_config,
)
from statmech.students.student_geometry import EIGENVALUE_TOL, factorise_gram

MAX_TASKS, MAX_BATCH = 16, 10**6
SINGLE_KEY_SCHEMA = {"type": "object", "minProperties": 1, "maxProperties": 1}
TASK_FRACTION_VARIABLE = Variable(
    ("t", "task"), "share of a task in the examples at time t", "task share", role="control"
)

TaskOverlapAxis = Annotated[
    NumberOrAxis, axis_of(Annotated[Number, Field(ge=-1, le=1)], {"type": "number", "minimum": -1, "maximum": 1})
]
BatchSizeAxis = Annotated[
    IntegerOrAxis,
    axis_of(Annotated[Whole, Field(ge=1, le=MAX_BATCH)], {"type": "integer", "minimum": 1, "maximum": MAX_BATCH}),
]
ProtocolAxis = Annotated[
    Any,
    axis_of(
        Annotated[Any, AfterValidator(protocol_from_config), PlainSerializer(protocol_to_config)],
        {"anyOf": [{"enum": [*PARAMETERLESS_PROTOCOLS]}, SINGLE_KEY_SCHEMA]},
        spaced=False,
    ),
]


def _reject_tasks_section(value: Any) -> Any:
    """Reject a section under the key `tasks`, which must be a number."""
    if isinstance(value, dict):
        raise ValueError("must be the number of tasks: write overlap and heads at the top level of the config")
    return value


class TaskKeys(OnlineLearning):
    """Base class of scenarios with several tasks: their keys and checks.

    Subclasses add the learning algorithm and the times t.
    """

    TASK_COORDINATES: ClassVar[dict[str, ConfigKey]] = {
        "task": ConfigKey("task", "task", int),
        "examples_seen": ConfigKey("examples_seen", "examples seen per input dimension: batch t", symbol="$bt$"),
    }

    tasks: Annotated[Whole, BeforeValidator(_reject_tasks_section), Field(ge=1, le=MAX_TASKS)] = Field(
        description="number of tasks, each with a teacher of its own"
    )
    overlap: TaskOverlapAxis = config_key(0.0, description="overlap of the teachers of two tasks", symbol="$r$")
    protocol: ProtocolAxis = Field(
        default=BlockedProtocol(),
        description="order of the tasks: blocked (the first up to the switch, then the second), interleaved (equal "
        "shares), {replay: fraction of the first after the switch}, {blocks: [times at which tasks begin in turn]} or "
        "optimal (the best fraction of the first of two)",
        json_schema_extra={"default": "blocked"},
    )
    switch: Annotated[Nonnegative, Field(gt=0)] | None = Field(
        default=None, description="time at which the second task begins, of the protocols blocked and replay"
    )
    batch: BatchSizeAxis = config_key(
        1, description="batch of a step: the fresh examples that it averages over", symbol="$b$"
    )

    def find_task_problems(self) -> Iterator[Problem]:
        """Find invalid protocols, and overlaps that this number of teachers cannot have."""
        protocols = ensure_tuple(self.protocol)
        for protocol in protocols:
            if sentence := protocol.problem(self.tasks, self.switch, self.t[-1]):
                yield ("switch",) if sentence.startswith("switch") else ("protocol",), sentence
                break
        if self.switch is not None and not any(
            isinstance(protocol, ReplayProtocol | OptimalProtocol) for protocol in protocols
        ):
            yield ("switch",), "is the time of the protocols blocked, replay and optimal: remove it"
        if (lowest := min(ensure_tuple(self.overlap))) < self.min_possible_overlap:
            bound = f"at least -1/{self.tasks - 1}"
            yield ("overlap",), f"{self.tasks} tasks cannot have the overlap {lowest:g}: it must be {bound}"

    @property
    def optimal_keys(self) -> dict[str, list[OptimalControlOptions]]:
        """Options for each key to be optimised, including the protocol of the tasks."""
        fraction_options = [
            protocol.optimum_options
            for protocol in ensure_tuple(self.protocol)
            if isinstance(protocol, OptimalProtocol)
        ]
        return super().optimal_keys | ({FIRST_TASK_FRACTION_CONTROL: fraction_options} if fraction_options else {})

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        return {"task_share": TASK_FRACTION_VARIABLE} | super().theory_only_variables

    @property
    def min_possible_overlap(self) -> float:
        """Lowest overlap that all pairs of teachers can have."""
        return -1 / max(self.tasks - 1, 1)

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the dataset dimensions other than the sweep axes."""
        return super().recorded_coordinates | {"task": np.arange(1, self.tasks + 1)}

    @property
    def derived_coordinates(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Coordinate of the examples seen per input dimension, along `batch` if this is an axis."""
        dims = tuple(dim for dim, group in self.dimensions.items() if "batch" in group)
        examples = np.outer(ensure_tuple(self.batch), self.t)
        return {"examples_seen": ((*dims, "t"), examples if dims else examples[0])}


@dataclass(frozen=True, kw_only=True)
class TaskCell(ControlledCell):
    """A grid point with several tasks: their number, overlap, protocol and batch."""

    tasks: int
    overlap: float
    protocol: TaskProtocol
    switch: float | None
    batch: int

    @property
    def optimal_keys(self) -> dict[str, OptimalControlOptions]:
        """Options for each key of this cell to be optimised, including the protocol of the tasks."""
        protocol, optimal_keys = self.protocol, super().optimal_keys
        return (
            optimal_keys | {FIRST_TASK_FRACTION_CONTROL: protocol.optimum_options}
            if isinstance(protocol, OptimalProtocol) and protocol.share is None
            else optimal_keys
        )

    @property
    def edges(self) -> tuple[float, ...]:
        """Times of all jumps in the protocol and in functions of time."""
        return tuple(sorted({*map(float, self.protocol_pieces.starts), *super().edges}))

    @property
    def protocol_pieces(self) -> ProtocolPieces:
        """Protocol as piecewise functions of time."""
        return self.protocol.pieces(self.tasks, self.switch)

    def compute_task_fractions(self, t: Any) -> np.ndarray:
        """Return the fraction of examples from each task at times t, as an array (T, tasks)."""
        return np.asarray(self.protocol_pieces.at(np.asarray(t, float)))

    @property
    def protocol_identity(self) -> dict[str, Any]:
        """Values that identify the protocol, where an optimal protocol is identified by its options only."""
        protocol = replace(self.protocol, share=None) if isinstance(self.protocol, OptimalProtocol) else self.protocol
        pieces = {name: part.tolist() for name, part in protocol.pieces(self.tasks, self.switch)._asdict().items()}
        return pieces | ({"protocol": str(protocol)} if isinstance(protocol, OptimalProtocol) else {})

    @property
    def task_overlaps(self) -> np.ndarray:
        """Matrix (tasks, tasks) of the overlaps of the tasks, with diagonal 1."""
        return make_task_overlaps(self.tasks, self.overlap)


def make_task_overlaps(num_tasks: int, overlap: float) -> np.ndarray:
    """Return the matrix (tasks, tasks) of the overlaps of the tasks, with diagonal 1.

    >>> make_task_overlaps(2, 0.5)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    return np.where(np.eye(num_tasks, dtype=bool), 1.0, overlap)


def _get_heads_union_tag(value: Any) -> str:
    """Return the union tag of head weights: a number, one list, or a list per head."""
    if not isinstance(value, list | tuple):
        return "value"
    return "given" if any(isinstance(row, list | tuple) for row in value) else "axis"


HeadWeights = Annotated[
    Any,
    PydanticTypeOverride(
        Annotated[
            Annotated[Number, Tag("value")]
            | Annotated[tuple[Number, ...], Tag("axis")]
            | Annotated[MatrixRows, Tag("given")],
            Discriminator(_get_heads_union_tag),
            Field(json_schema_extra={"anyOf": [NUMBER_SCHEMA, NUMBER_LIST_SCHEMA, MATRIX_SCHEMA]}),
        ]
    ),
]


class TasksStart(ConfigSection):
    r"""Student units of a network at t = 0: Q, R or `along`, and head weights v (a value, K values, or a row per head).

    `along` (K, all teacher units) contains the coordinates of the student units on orthonormal axes. The first axes are
    the units of the first task, if these are orthonormal. The same student can thus start at every overlap: with
    :math:`T = LL^\mathsf{T}`, R is `along` times :math:`L^\mathsf{T}`.

    >>> TasksStart(Q=1, along=[[0.6, 0.5]], v=0.5).compute_start(1, np.array([[1.0, 0.8], [0.8, 1.0]]), heads=2).R
    array([[0.6 , 0.78]])
    """

    name: str | None = Field(default=None, description="name of this start on an axis of starts")
    Q: NonnegativeOrMatrix | None = Field(
        default=None, description="J_k.J_l/N: a multiple of the identity, or a K x K matrix"
    )
    R: StudentTeacherOverlaps | None = Field(
        default=None, description="J_k.B_m/N: one value, {diagonal: value}, or a row of all tasks' units per student"
    )
    along: MatrixRows | None = Field(
        default=None, description="coordinates of the students on axes that begin with the first task's units"
    )
    v: HeadWeights = Field(
        default=1.0, description="weights of the students in the output: one value, K, or a row per head"
    )
    drawn: PositiveNumber | None = Field(
        default=None, description="variance of drawn weights of the first layer, in place of Q, R and along"
    )

    def __str__(self) -> str:
        """Return the label of this start on an axis of a dataset."""
        return self.name or "given"

    @property
    def is_drawn(self) -> bool:
        """True if the first-layer weights are drawn at random."""
        return self.drawn is not None or (self.Q is None and self.R is None and self.along is None)

    def compute_start(self, K: int, T: np.ndarray, heads: int) -> StudentUnits:
        """Return the matrices R (K, M), Q (K, K) and v (heads, K) of the student units.

        Parameters
        ----------
        K
            Number of student units.
        T : array (M, M)
            Products of the teacher units of all tasks.
        heads
            Number of second layers.

        Returns
        -------
        StudentUnits
        """
        v = np.broadcast_to(np.asarray(self.v, float), (heads, K)).copy()
        return self._make_first_layer_start(T).compute_start(K, len(T))._replace(v=v)

    def problems(self, K: int, T: np.ndarray, heads: int, dtype: str = "float64") -> list[str]:
        """Explain why K units cannot have this start in a sequence of tasks with teacher units T (M, M).

        Returns one sentence per reason.

        Parameters
        ----------
        K, T, heads
            As in `compute_start`.
        dtype
            Floating-point type that must hold products of weight vectors.

        Returns
        -------
        list of str
            Empty if they can.
        """
        if self.along is not None and not (self.R is None and self.drawn is None):
            return ["along determines R at every overlap: give either along, or R, or drawn"]
        sentences = find_shape_problems("along", self.along, (K, len(T)), "K, number of all teacher units")
        if _get_heads_union_tag(self.v) == "given":
            sentences += find_shape_problems("v", self.v, (heads, K), "heads, K")
        elif isinstance(self.v, tuple):
            sentences += find_shape_problems("v", self.v, (K,), "K")
        return sentences or self._make_first_layer_start(T).problems(K, T, dtype)

    def _make_first_layer_start(self, T: np.ndarray) -> NetworkStart:
        """Return the start of the first layer, without the heads."""
        R = self.R if self.along is None else (np.asarray(self.along, float) @ factorise_gram(T).T).tolist()
        section = {"Q": self.Q, "R": R, "drawn": self.drawn}
        return NetworkStart.model_validate({name: value for name, value in section.items() if value is not None})


class PerceptronStart(ConfigSection):
    """Order parameters of a perceptron at t = 0: its length, and R with the teacher of each task.

    >>> PerceptronStart(R=[0.1, 0.05]).compute_start(2)
    (1.0, array([0.1 , 0.05]))
    """

    length: Positive = Field(default=1.0, description="|J|/sqrt(N)")
    R: CosineOrList = Field(default=0.0, description="teacher-student cosine, one value, or one per task")

    def compute_start(self, tasks: int) -> tuple[float, np.ndarray]:
        """Return the length and the overlaps R (tasks,) with the teachers."""
        return self.length, np.broadcast_to(np.asarray(self.R, float), tasks).copy()

    def problems(self, task_overlaps: np.ndarray, dtype: str = "float64") -> list[str]:
        """Explain why no perceptron can have this start, given the cosines (tasks, tasks) of the teachers of the tasks.

        Returns one sentence per reason.

        Parameters
        ----------
        task_overlaps
            Cosines of the teachers.
        dtype
            Floating-point type that must hold the squared length.

        Returns
        -------
        list of str
            Empty if a student can start like this.
        """
        tasks = len(task_overlaps)
        if sentences := find_length_problems(self.length, dtype):
            return sentences
        if isinstance(self.R, tuple) and len(self.R) != tasks:
            return [f"R lists {len(self.R)} tasks, but tasks = {tasks}"]
        R = self.compute_start(tasks)[1]
        if np.linalg.eigvalsh(np.block([[task_overlaps, R[:, None]], [R, 1.0]]))[0] > -EIGENVALUE_TOL:
            return []
        description = f"R = {R.tolist()} with teachers of overlap {task_overlaps[0, 1]:g}"
        return [f"no student has {description}: the matrix of their cosines would not be positive"]
