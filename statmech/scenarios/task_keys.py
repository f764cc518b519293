"""Keys of several tasks, learnt by perceptrons or networks: how many, their overlap, their order, and batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from statmech.errors import Problem
from statmech.optima import OPTIMAL, Optimal
from statmech.parameters import Key
from statmech.protocols import WORDS, BestShare, Blocked, Pieces, Protocol, Replay, protocol_from, written_protocol
from statmech.scenarios.axes import Numbers, Wholes, axis_of, points
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.controlled_cells import ControlledCell
from statmech.scenarios.controlled_keys import BEST, SHARE, objective_problems, wishes_of
from statmech.scenarios.keys import Nonnegative, Number, Whole, config_key
from statmech.scenarios.page import View
from statmech.scenarios.variables import Variable

MOST_TASKS, LARGEST_BATCH = 16, 10**6
OF_ONE_KEY = {"type": "object", "minProperties": 1, "maxProperties": 1}
SHARES = Variable(("t", "task"), "share of a task in the examples at time t", "task share", role="control")
ERRORS = View(x="t", show=("eps_g", "task_share"), log=("y",))
OF_TASKS: dict[str, Any] = {  # of the pages of all kinds
    "places": 41,
    "even": True,
    "protocols": ("blocked", "replay", "interleaved", OPTIMAL),
    "within": ("switch",),
    "curves": ("task",),
    "view": ERRORS,
}

OverlapAxis = Annotated[
    Numbers, axis_of(Annotated[Number, Field(ge=-1, le=1)], {"type": "number", "minimum": -1, "maximum": 1})
]
BatchAxis = Annotated[
    Wholes,
    axis_of(
        Annotated[Whole, Field(ge=1, le=LARGEST_BATCH)], {"type": "integer", "minimum": 1, "maximum": LARGEST_BATCH}
    ),
]
ProtocolAxis = Annotated[
    Any,
    axis_of(
        Annotated[Any, AfterValidator(protocol_from), PlainSerializer(written_protocol)],
        {"anyOf": [{"enum": [*WORDS]}, OF_ONE_KEY]},
        spaced=False,
    ),
]


def _without_section(given: Any) -> Any:
    """The number of tasks; its section in a sketch of a config has keys that stand beside it."""
    if isinstance(given, dict):
        raise ValueError("is the number of tasks; overlap and heads are keys of their own, beside it")
    return given


class TaskKeys(AbstractScenario):
    """The keys of several tasks, and what they cannot be; a kind adds what learns, and the times t."""

    TASK_COORDINATES: ClassVar[dict[str, Key]] = {
        "task": Key("task", "task", int),
        "examples_seen": Key("examples_seen", "examples seen per input dimension: batch t", symbol="$bt$"),
    }

    tasks: Annotated[Whole, BeforeValidator(_without_section), Field(ge=1, le=MOST_TASKS)] = Field(
        description="number of tasks, each with a teacher of its own"
    )
    overlap: OverlapAxis = config_key(0.0, description="overlap of the teachers of two tasks", symbol="$r$")
    protocol: ProtocolAxis = Field(
        default=Blocked(),
        description="order of the tasks: blocked (the first up to the switch, then the second), interleaved (equal "
        "shares), {replay: fraction of the first after the switch}, {blocks: [times at which tasks begin in turn]} or "
        "optimal (the best fraction of the first of two)",
        json_schema_extra={"default": "blocked"},
    )
    switch: Annotated[Nonnegative, Field(gt=0)] | None = Field(
        default=None, description="time at which the second task begins, of the protocols blocked and replay"
    )
    batch: BatchAxis = config_key(
        1, description="batch of a step: the fresh examples that it averages over", symbol="$b$"
    )

    if TYPE_CHECKING:
        t: Any  # a key of the kind

    def task_problems(self) -> Iterator[Problem]:
        """Protocols that there are not, and overlaps that no teachers can have."""
        protocols = points(self.protocol)
        for protocol in protocols:
            if sentence := protocol.problem(self.tasks, self.switch, self.t[-1]):
                yield ("switch",) if sentence.startswith("switch") else ("protocol",), sentence
                break
        if self.switch is not None and not any(isinstance(protocol, Replay | BestShare) for protocol in protocols):
            yield ("switch",), "is the time of the protocols blocked, replay and optimal: leave it out"
        if (lowest := min(points(self.overlap))) < self.lowest_overlap:
            bound = f"at least -1/{self.tasks - 1}"
            yield ("overlap",), f"{self.tasks} tasks cannot have the overlap {lowest:g} with each other: it is {bound}"

    @property
    def wishes(self) -> dict[str, list[Optimal]]:
        """The controls that are wanted at their optimum."""
        fraction_options = [protocol.wish for protocol in points(self.protocol) if isinstance(protocol, BestShare)]
        return wishes_of(self) | ({SHARE: fraction_options} if fraction_options else {})

    @property
    def theory_only(self) -> dict[str, Variable]:
        return {"task_share": SHARES} | (BEST if self.wishes else {})

    def _objective_problems(self) -> Iterator[Problem]:
        """Objectives that optima here cannot have."""
        return objective_problems(self.wishes, self.tasks)

    @property
    def lowest_overlap(self) -> float:
        """The lowest overlap that so many teachers can have with each other."""
        return -1 / max(self.tasks - 1, 1)

    @property
    def derived(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The examples seen per input dimension, along the sweep's dimension of `batch` if there is one."""
        dims = tuple(dim for dim, group in self.dimensions.items() if "batch" in group)
        examples = np.outer(points(self.batch), self.t)
        return {"examples_seen": ((*dims, "t"), examples if dims else examples[0])}


@dataclass(frozen=True, kw_only=True)
class TaskCell(ControlledCell):
    """One point of the grid of a kind with several tasks: their number, overlap, protocol and batch."""

    tasks: int
    overlap: float
    protocol: Protocol
    switch: float | None
    batch: int

    @property
    def wishes(self) -> dict[str, Optimal]:
        """The controls that are wanted at their optimum."""
        protocol, optimal_keys = self.protocol, super().wishes
        return (
            optimal_keys | {SHARE: protocol.wish}
            if isinstance(protocol, BestShare) and protocol.share is None
            else optimal_keys
        )

    @property
    def edges(self) -> tuple[float, ...]:
        """The times at which the protocol or a function of time jumps."""
        return tuple(sorted({*map(float, self.pieces.starts), *super().edges}))

    @property
    def pieces(self) -> Pieces:
        """The pieces of the protocol."""
        return self.protocol.pieces(self.tasks, self.switch)

    def share(self, t: Any) -> np.ndarray:
        """The tasks' shares (T, tasks) of the examples at times t (T,)."""
        return np.asarray(self.pieces.at(np.asarray(t, float)))

    @property
    def order(self) -> dict[str, Any]:
        """The values that name the protocol: an optimal one by its wish, also where its share is known."""
        protocol = replace(self.protocol, share=None) if isinstance(self.protocol, BestShare) else self.protocol
        pieces = {name: part.tolist() for name, part in protocol.pieces(self.tasks, self.switch)._asdict().items()}
        return pieces | ({"protocol": str(protocol)} if isinstance(protocol, BestShare) else {})

    @property
    def between(self) -> np.ndarray:
        """The overlaps of tasks (tasks, tasks), 1 of each with itself."""
        return between_tasks(self.tasks, self.overlap)


def between_tasks(tasks: int, overlap: float) -> np.ndarray:
    """The overlaps of tasks (tasks, tasks), 1 of each with itself.

    >>> between_tasks(2, 0.5)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    return np.where(np.eye(tasks, dtype=bool), 1.0, overlap)
