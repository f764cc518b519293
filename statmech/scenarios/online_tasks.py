r"""Scenarios of a perceptron that learns several tasks online: teachers, student, and protocol.

A config file with the keys `rule` and `tasks` becomes an `OnlineTasks`, the input of `simulate.run` and `theory.solve`.
Each task has one teacher, and any two teachers have the cosine r, the overlap of the tasks. As in a `Scenario` with one
student, each step learns a new example. The teacher of one task labels it: the protocol gives the probability of each
task at t = steps/N (`statmech.protocols`). With a `batch` of b, a step takes the mean over b such examples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from statmech.controls import get_initial_value, is_time_dependent
from statmech.errors import Problem
from statmech.inputs import Gaussian
from statmech.parameters import get_real_parameter_family
from statmech.rules import RULES
from statmech.scenarios.axes import NameOrAxis, NumberOrAxis, NumbersOverTime, ensure_tuple
from statmech.scenarios.controlled_keys import (
    OPTIMUM_COORDINATES,
    find_controls,
    find_late_control_changes,
    find_schedule_conflicts,
    make_optimum_coordinates,
)
from statmech.scenarios.initial_conditions import Start
from statmech.scenarios.keys import (
    PARAMETERS,
    DimensionAxis,
    NonnegativeAxis,
    Times,
    config_key,
    make_keyword_or_section_type,
    one_of,
)
from statmech.scenarios.network_matrices import factorise_gram
from statmech.scenarios.online import (
    ANNEALING_FIELD,
    DECAY_FIELD,
    ENGINE_FIELD,
    ONLINE_VARIABLES,
    RECORDED_TIMES_FIELD,
    SCHEDULE_FIELD,
    TIME_DEPENDENCE_DEFAULTS,
    VECTORS_STEP_SECONDS,
    VECTORS_STEP_SECONDS_PER_DIMENSION,
    FlipOverTime,
    OnlineCell,
    Scenario,
    find_start_problems,
)
from statmech.scenarios.page import Page
from statmech.scenarios.schedules import OptionalSchedule
from statmech.scenarios.step_sizes import find_annealing_problems, find_excessive_rates, find_step_count_problems
from statmech.scenarios.task_keys import TASK_ERRORS_VIEW, TASK_PAGE_OPTIONS, TaskCell, TaskKeys, make_task_overlaps
from statmech.scenarios.tasks_start import PerceptronStart
from statmech.scenarios.variables import Variable
from statmech.schedules import LEARNING_RATE_SCHEDULES

TASK_STEP_SECONDS, TASK_STEP_SECONDS_PER_EXAMPLE = (
    1.5e-7,
    2e-8,
)  # on one core; the second for each further example in a batch
DRAWN_PERCEPTRON_START = PerceptronStart()  # large-N limit for weights drawn from N(0, 1)
TASK_TIME_DEPENDENCE_DEFAULTS = {name: default for name, default in TIME_DEPENDENCE_DEFAULTS.items() if name != "drift"}


class OnlineTasks(TaskKeys):
    """A perceptron that learns several tasks online by a rule.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = OnlineTasks(rule=["hebb", "adatron"], tasks=2, overlap=[0, 0.5], N=100, switch=5, t=[0, 5, 10])
    >>> scenario.shape
    {'rule': 2, 'overlap': 2}
    """

    CHOICE: ClassVar = "rule"
    KINDS: ClassVar = RULES
    OPTIMISABLE_KEYS: ClassVar = ("eta",)
    STEPWISE_TIME_FUNCTION_KEYS: ClassVar = ("flip",)
    AXES: ClassVar = ("rule", "overlap", "protocol", "N", "batch", PARAMETERS, "flip", *TASK_TIME_DEPENDENCE_DEFAULTS)
    OMITTED_DEFAULTS: ClassVar = TASK_TIME_DEPENDENCE_DEFAULTS
    UNSUPPORTED_KEYS: ClassVar = {
        "heads": "perceptrons have no second layer, and therefore no heads: remove {}",
        "K": "K is not supported with several tasks, which one student learns: remove {}",
        "inputs": "several tasks are learnt from gaussian inputs of equal variance only: remove {}",
        "drift": "the teachers of several tasks do not drift: remove {}",
        "corrections": "several tasks have no equations for corrections of order 1/N: remove {}",
        "gram": "several tasks record R and the length instead of the Gram matrix: remove {}",
    }
    TITLE: ClassVar = "online learning of several tasks"
    CITES: ClassVar = ("miyoshi2005", "lee2021")
    SIMULATION_ONLY_KEYS: ClassVar = ("dtype", "engine")
    NON_KEY_COORDINATES: ClassVar = TaskKeys.TASK_COORDINATES | OPTIMUM_COORDINATES
    seeds_per_batch: ClassVar = Scenario.seeds_per_batch
    PAGE: ClassVar = Page(
        x_key="t",
        start={
            **{"rule": ["perceptron"], "tasks": 2, "overlap": 0.5, "N": 1000, "protocol": "blocked", "switch": 10},
            **{"t": 20, "start": {"length": 1, "R": 0.1}, "seeds": 16},
        },
        **TASK_PAGE_OPTIONS,
        preset_views={"Perceptrons forget a first task": TASK_ERRORS_VIEW},
    )
    equations: ClassVar = (
        r"\mathbf J \leftarrow \mathbf J + \frac\eta b\sum_{\mu=1}^b\sigma^\mu g(\kappa^\mu, l)\,\mathbf x^\mu",
        r"\kappa^\mu = \sigma^\mu\,\mathbf J\cdot\mathbf x^\mu/l",
        r"\dot R_s = \sum_a p_a\left[(T_{sa} - R_sR_a)\frac{D_a}l - R_s\frac{\langle f^2\rangle_a}{2bl^2}\right]",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )

    rule: Annotated[NameOrAxis, one_of(RULES, "a learning rule")] = Field(description="learning rule")
    N: DimensionAxis = config_key(10_000, description="input dimension", symbol="$N$")
    flip: FlipOverTime = config_key(0.0, description="probability that a label is flipped", symbol="$p_f$")
    decay: NonnegativeAxis = DECAY_FIELD
    schedule: OptionalSchedule = SCHEDULE_FIELD
    annealing: Annotated[NameOrAxis, one_of(LEARNING_RATE_SCHEDULES, "a schedule of the learning rate")] = (
        ANNEALING_FIELD
    )
    t: Times = RECORDED_TIMES_FIELD
    start: Annotated[Any, make_keyword_or_section_type(["drawn"], PerceptronStart, "a start")] = Field(
        default="drawn", description="start, at t = 0: drawn (entries from N(0,1)) or {length, R}, R one for each task"
    )
    dtype: Literal["float64", "float32"] = Field(default="float64", description="precision of the simulation")
    engine: Literal["gram", "vectors"] = ENGINE_FIELD

    if TYPE_CHECKING:  # show editors and type checkers the parameters of rules
        eta: InitVar[NumbersOverTime] = 1.0
        assumed_flip: InitVar[NumberOrAxis] = 0.0
        margin: InitVar[NumberOrAxis] = 0.0

    def _find_problems(self) -> Iterator[Problem]:
        min_dimension = min(ensure_tuple(self.N))
        if min_dimension < self.tasks + 1:
            yield (
                ("N",),
                f"N = {min_dimension} is too small for {self.tasks} teachers and a student: "
                "N must be at least tasks + 1",
            )
        yield from find_step_count_problems(self.t[-1], max(ensure_tuple(self.N)))
        yield from self.find_task_problems()
        yield from find_late_control_changes(values := self.axis_values(), self.t[-1])
        yield from self._find_objective_problems()
        changing = [name for name, value in values.items() if any(map(is_time_dependent, ensure_tuple(value)))]
        yield from find_schedule_conflicts(changing, self.schedule)
        yield from self._find_start_problems()
        yield from find_annealing_problems(self.schedule, self.annealing)
        for decay, N in self.list_value_pairs("decay", "N") if "decay" in self.axis_values() else ():
            if problem := next(find_excessive_rates("decay", decay, N), None):
                yield problem
                return

    def _find_start_problems(self) -> Iterator[Problem]:
        """Find starts that a rule does not support, or that contradict the overlaps of the teachers."""
        rule_problems = list(find_start_problems(self.start, ensure_tuple(self.rule), [], self.dtype))
        yield from rule_problems
        if rule_problems or not isinstance(self.start, PerceptronStart):
            return
        for overlap in ensure_tuple(self.overlap):
            task_overlaps = make_task_overlaps(self.tasks, overlap)
            for sentence in (
                self.start.problems(task_overlaps, self.dtype) if overlap >= self.min_possible_overlap else ()
            ):
                yield ("start",), sentence
                return

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        return {"N": None}

    @property
    def variables(self) -> dict[str, Variable]:
        return {
            "eps_g": Variable(("t", "task"), "generalization error, of a task", r"$\epsilon_g$"),
            "R": replace(ONLINE_VARIABLES["R"], dims=("t", "task")),
            "length": replace(ONLINE_VARIABLES["length"], dims=("t",)),
        }

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of times and tasks and, for optimal keys, of controls and searches."""
        coordinates = {"t": np.asarray(self.t), "task": np.arange(1, self.tasks + 1)}
        return coordinates | make_optimum_coordinates(self.optimal_keys)

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for all parameter combinations on one core."""
        cells = math.prod(self.shape.values())
        pairs = self.list_value_pairs("batch", "N")
        return self.t[-1] * cells / len(pairs) * sum(N * self._estimate_step_seconds(batch, N) for batch, N in pairs)

    def _estimate_step_seconds(self, batch: int, N: int) -> float:
        """Estimate the seconds per step."""
        if self.engine == "gram":
            return TASK_STEP_SECONDS + TASK_STEP_SECONDS_PER_EXAMPLE * (batch - 1)
        return VECTORS_STEP_SECONDS + VECTORS_STEP_SECONDS_PER_DIMENSION * N * batch

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of the engine.

        Programs differ by rule and examples per step, and by the size of the weight vectors.
        """
        direct = self.engine == "vectors"
        return {
            (
                get_real_parameter_family(cell.rule),
                cell.batch,
                cell.annealing,
                cell.control_segment_layout[1],
                direct and cell.N,
            )
            for cell in self.cells()
        }

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> OnlineTaskCell:
        return OnlineTaskCell(
            name=values["rule"],
            rule=self.make_component(values),
            K=1,
            N=values["N"],
            inputs=Gaussian(),
            flip=get_initial_value(values["flip"]),
            controls=find_controls(values),
            **{name: values[name] for name in TASK_TIME_DEPENDENCE_DEFAULTS if name in values},
            start=self.start if isinstance(self.start, PerceptronStart) else None,
            index=index,
            tasks=self.tasks,
            **{name: values[name] for name in ("overlap", "protocol", "batch")},
            switch=self.switch,
        )


@dataclass(frozen=True)
class OnlineTaskCell(TaskCell, OnlineCell):
    """One grid point: a rule with its parameters, the input dimension, the start, the tasks and their protocol."""

    start: PerceptronStart | None  # type: ignore[assignment]  # None: drawn

    @property
    def start_length_and_R(self) -> tuple[float, np.ndarray]:
        """Length and overlaps R (tasks,) of the student at t = 0, in the limit of large N."""
        return (self.start or DRAWN_PERCEPTRON_START).compute_start(self.tasks)

    @property
    def start_coordinates(self) -> np.ndarray | None:
        """Initial coordinates (1, tasks + 1) of the student in a basis with the teachers first, or None if drawn."""
        if self.start is None:
            return None
        length, R = self.start_length_and_R
        rows = factorise_gram(np.block([[self.task_overlaps, R[:, None]], [R, 1.0]]))
        parallel = length * rows[-1:, :-1]
        return np.append(parallel, np.sqrt(np.maximum(length**2 - np.sum(parallel**2, keepdims=True), 0.0)), axis=1)

    @property
    def message_description(self) -> str:
        """Description of the tasks, the rule and its parameters for messages."""
        prefix = f"{self.tasks} tasks of overlap {self.overlap:g}, {self.protocol}: " if self.tasks > 1 else ""
        return prefix + super().message_description

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this cell.

        One task with one example per step has the random numbers of a `Scenario`.
        """
        values = super().identity
        if self.start:
            values["start"] = Start.model_validate(self.start.model_dump()).model_dump()
        if self.tasks > 1:
            values |= {"tasks": self.tasks, "overlap": self.overlap, **self.protocol_identity}
        return values | ({"batch": self.batch} if self.batch > 1 else {})
