"""Config keys of scenarios with several tasks: number, overlap, protocol and batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from statmech.errors import Problem
from statmech.optima import OPTIMAL_KEYWORD, OptimalControlOptions
from statmech.parameters import ConfigKey
from statmech.protocols import (
    PARAMETERLESS_PROTOCOLS,
    BlockedProtocol,
    OptimalProtocol,
    ProtocolPieces,
    ReplayProtocol,
    TaskProtocol,
    protocol_from_config,
    protocol_to_config,
)
from statmech.scenarios.axes import IntegerOrAxis, NumberOrAxis, axis_of, ensure_tuple
from statmech.scenarios.controlled_cells import ControlledCell
from statmech.scenarios.controlled_keys import FIRST_TASK_FRACTION_CONTROL
from statmech.scenarios.keys import Nonnegative, Number, Whole, config_key
from statmech.scenarios.online_learning import OnlineLearning
from statmech.scenarios.page import View
from statmech.scenarios.variables import Variable

MAX_TASKS, MAX_BATCH = 16, 10**6
SINGLE_KEY_SCHEMA = {"type": "object", "minProperties": 1, "maxProperties": 1}
TASK_FRACTION_VARIABLE = Variable(
    ("t", "task"), "share of a task in the examples at time t", "task share", role="control"
)
TASK_ERRORS_VIEW = View(x="t", show=("eps_g", "task_share"), log=("y",))
TASK_PAGE_OPTIONS: dict[str, Any] = {  # shared by the pages of perceptrons and networks
    "num_points": 41,
    "evenly_spaced": True,
    "protocols": ("blocked", "replay", "interleaved", OPTIMAL_KEYWORD),
    "time_keys": ("switch",),
    "curves": ("task",),
    "view": TASK_ERRORS_VIEW,
}

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
        """Options for each key to be optimised."""
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
        """Options for each key to be optimised."""
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
