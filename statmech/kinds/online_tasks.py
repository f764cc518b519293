r"""Scenarios of a perceptron that learns several tasks online: teachers, student, and protocol.

A config file with the keys `rule` and `tasks` becomes an `OnlineTasks`, the input of `simulate.run` and `theory.solve`.
Each task has one teacher, and any two teachers have the cosine r, the overlap of the tasks. As in a `Scenario` with one
student, each step learns a new example. The teacher of one task labels it: the protocol gives the probability of each
task at t = steps/N (`statmech.parameters.task_protocols`). With a `batch` of b, a step takes the mean over b such
examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from statmech.errors import Problem
from statmech.inputs.input_distributions import Gaussian
from statmech.keys.initial_states import Start
from statmech.keys.key_types import PARAMETERS, DimensionAxis, Number, config_key, make_keyword_or_section_type
from statmech.keys.sweep_grid import NumberOrAxis, axis_of, ensure_tuple
from statmech.keys.time_dependent_keys import OPTIMUM_COORDINATES
from statmech.keys.variables import Variable
from statmech.kinds.online_learning import (
    RATE_KEY_DEFAULTS,
    VECTORS_STEP_SECONDS,
    VECTORS_STEP_SECONDS_PER_DIMENSION,
    OnlineCell,
    OnlineStudent,
    SimulationDtype,
    SimulationEngine,
    make_start_field,
)
from statmech.kinds.online_perceptron import ONLINE_VARIABLES, FlipOverTime
from statmech.kinds.task_sequences import (
    PerceptronStart,
    TaskCell,
    TaskKeys,
    make_task_overlaps,
)
from statmech.parameters.parameter_fields import get_real_parameter_family
from statmech.parameters.task_protocols import ProtocolPieces
from statmech.students.student_geometry import factorise_gram

# on one core; the second for each further example in a batch
TASK_STEP_SECONDS = 1.5e-7
TASK_STEP_SECONDS_PER_EXAMPLE = 2e-8
TRUTH_ROUNDING_TOL = 1e-12  # relative to the largest squared cosine
TruthCosineAxis = Annotated[
    NumberOrAxis,
    axis_of(Annotated[Number, Field(gt=0, le=1)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
]
TRUTH_VARIABLES = {
    "eps_truth": Variable(("t",), "error on labels of the truth", r"$\epsilon_\mathrm{truth}$"),
    "R_truth": Variable(("t",), "cosine of student and truth", r"$R_\mathrm{truth}$"),
}
DRAWN_PERCEPTRON_START = PerceptronStart()  # large-N limit for weights drawn from N(0, 1)


@dataclass(frozen=True)
class OnlineTaskCell(TaskCell, OnlineCell):
    """One grid point: a rule with its parameters, the input dimension, the start, the tasks and their protocol."""

    start: PerceptronStart | None  # type: ignore[assignment]  # None: drawn
    truth_cosine: float | None = None  # None: there is no truth

    @property
    def teacher_overlaps(self) -> np.ndarray:
        """Cosines between all teachers, with the truth as a last teacher that labels no examples."""
        return self.task_overlaps if self.truth_cosine is None else add_truth(self.task_overlaps, self.truth_cosine)

    @property
    def teacher_pieces(self) -> ProtocolPieces:
        """Protocol as piecewise functions of time, for all teachers and the truth."""
        pieces = self.protocol_pieces
        unseen = len(self.teacher_overlaps) - self.tasks
        return pieces._replace(shares=np.pad(pieces.shares, ((0, 0), (0, unseen)))) if unseen else pieces

    @property
    def start_length_and_R(self) -> tuple[float, np.ndarray]:
        """Length and cosines R (teachers,) of the student at t = 0, in the limit of large N."""
        length, R = (self.start or DRAWN_PERCEPTRON_START).compute_start(self.tasks)
        if self.truth_cosine is None:
            return length, R
        return length, np.append(R, self.truth_cosine * R.sum() / self.task_overlaps[0].sum())

    @property
    def start_coordinates(self) -> np.ndarray | None:
        """Initial coordinates (1, teachers + 1) of the student in a basis with the teachers first, or None if drawn."""
        if self.start is None:
            return None
        length, R = self.start_length_and_R
        rows = factorise_gram(np.block([[self.teacher_overlaps, R[:, None]], [R, 1.0]]))
        parallel = length * rows[-1:, :-1]
        return np.append(parallel, np.sqrt(np.maximum(length**2 - np.sum(parallel**2, keepdims=True), 0.0)), axis=1)

    @property
    def message_description(self) -> str:
        """Description of the tasks, the rule and its parameters for messages."""
        prefix = f"{self.tasks} tasks of overlap {self.overlap:g}, {self.protocol}: " if self.tasks > 1 else ""
        return prefix + super().message_description

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this online student of several tasks.

        One task with one example per step has the random numbers of a `Scenario`.
        """
        values = super().identity
        if self.start:
            values["start"] = Start.model_validate(self.start.model_dump()).model_dump()
        if self.tasks > 1:
            values |= {"tasks": self.tasks, "overlap": self.overlap, **self.protocol_identity}
        if self.truth_cosine is not None:
            values["truth_cosine"] = self.truth_cosine
        return values | ({"batch": self.batch} if self.batch > 1 else {})


def add_truth(task_overlaps: np.ndarray, truth_cosine: float) -> np.ndarray:
    """Return the cosines of teachers and of a truth that has the same cosine with every teacher.

    >>> add_truth(np.eye(1), 0.6)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """
    truth = np.full(len(task_overlaps), truth_cosine)
    return np.block([[task_overlaps, truth[:, None]], [truth, 1.0]])


class OnlineTasks(TaskKeys, OnlineStudent):
    """A perceptron that learns several tasks online by a rule.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = OnlineTasks(rule=["hebb", "adatron"], tasks=2, overlap=[0, 0.5], N=100, switch=5, t=[0, 5, 10])
    >>> scenario.shape
    {'rule': 2, 'overlap': 2}
    """

    OPTIMISABLE_KEYS: ClassVar = ("eta",)
    STEPWISE_TIME_FUNCTION_KEYS: ClassVar = ("flip",)
    AXES: ClassVar = (
        "rule",
        "overlap",
        "protocol",
        "N",
        "batch",
        PARAMETERS,
        "flip",
        *RATE_KEY_DEFAULTS,
        "truth_cosine",
    )
    OMITTED_DEFAULTS: ClassVar = {**RATE_KEY_DEFAULTS, "truth_cosine": None}
    CELL_CLASS: ClassVar = OnlineTaskCell
    UNSUPPORTED_KEYS: ClassVar = {
        "heads": "perceptrons have no second layer, and therefore no heads: remove {}",
        "K": "K is not supported with several tasks, which one student learns: remove {}",
        "inputs": "several tasks are learnt from gaussian inputs of equal variance only: remove {}",
        "drift": "the teachers of several tasks do not drift: remove {}",
        "corrections": "several tasks have no equations for corrections of order 1/N: remove {}",
        "gram": "several tasks record R and the length instead of the Gram matrix: remove {}",
    }
    TITLE: ClassVar = "online learning of several tasks"
    CITES: ClassVar = ("miyoshi2005", "lee2021", "miyoshi2006ensemble", "utsumi2007")
    NON_KEY_COORDINATES: ClassVar = TaskKeys.TASK_COORDINATES | OPTIMUM_COORDINATES
    USUAL_X_KEY: ClassVar = "t"
    equations: ClassVar = (
        r"\mathbf J \leftarrow \mathbf J + \frac\eta b\sum_{\mu=1}^b\sigma^\mu g(\kappa^\mu, l)\,\mathbf x^\mu",
        r"\kappa^\mu = \sigma^\mu\,\mathbf J\cdot\mathbf x^\mu/l",
        r"\dot R_s = \sum_a p_a\left[(T_{sa} - R_sR_a)\frac{D_a}l - R_s\frac{\langle f^2\rangle_a}{2bl^2}\right]",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )
    keys_ignored_by_theory: ClassVar = {"N": None}

    N: DimensionAxis = config_key(10_000, description="input dimension", symbol="$N$")
    flip: FlipOverTime = config_key(0.0, description="probability that a label is flipped", symbol="$p_f$")
    start: Annotated[Any, make_keyword_or_section_type(["drawn"], PerceptronStart, "a start")] = make_start_field(
        "{length, R}, R one for each task"
    )
    truth_cosine: TruthCosineAxis | None = config_key(
        None,
        description="cosine of every teacher and the truth, which labels no examples: the student's R and error with "
        "it are recorded",
        symbol=r"$R_\mathrm{B}$",
    )
    dtype: SimulationDtype = "float64"
    engine: SimulationEngine = "gram"

    def _find_problems(self) -> Iterator[Problem]:
        min_dimension = min(ensure_tuple(self.N))
        if min_dimension < self.tasks + 1:
            yield (
                ("N",),
                f"N = {min_dimension} is too small for {self.tasks} teachers and a student: "
                "N must be at least tasks + 1",
            )
        yield from self.find_task_problems()
        yield from self._find_truth_problems()
        yield from super()._find_problems()

    def _find_truth_problems(self) -> Iterator[Problem]:
        """Find the first cosine of the teachers and the truth that no vectors have, and optima without a truth."""
        if self.truth_cosine is None:
            return
        if self.optimal_keys:
            yield ("truth_cosine",), "is not supported with functions of time that are optimised"
        for overlap, cosine in self.list_value_pairs("overlap", "truth_cosine"):
            bound = make_task_overlaps(self.tasks, overlap)[0].mean()
            if cosine**2 > bound * (1 + TRUTH_ROUNDING_TOL) and overlap >= self.min_possible_overlap:
                sizes = f"{self.tasks} teachers of overlap {overlap:g}" if self.tasks > 1 else "a teacher"
                limit = f"at most {np.sqrt(max(bound, 0.0)):.6g} = sqrt(overlap + (1 - overlap)/tasks)"
                yield ("truth_cosine",), f"{sizes} cannot have the cosine {cosine:g} with the truth: it must be {limit}"
                return

    def _find_start_problems(self) -> Iterator[Problem]:
        """Find starts that a rule does not support, or that contradict the overlaps of the teachers."""
        rule_problems = list(super()._find_start_problems())
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
    def variables(self) -> dict[str, Variable]:
        return {
            "eps_g": Variable(("t", "task"), "generalization error, of a task", r"$\epsilon_g$"),
            "R": replace(ONLINE_VARIABLES["R"], dims=("t", "task")),
            "length": replace(ONLINE_VARIABLES["length"], dims=("t",)),
        } | (TRUTH_VARIABLES if self.truth_cosine is not None else {})

    def _estimate_step_seconds(self, cell: Any) -> float:
        if self.engine == "gram":
            return TASK_STEP_SECONDS + TASK_STEP_SECONDS_PER_EXAMPLE * (cell.batch - 1)
        return VECTORS_STEP_SECONDS + VECTORS_STEP_SECONDS_PER_DIMENSION * cell.N * cell.batch

    def _make_program_key(self, cell: Any) -> tuple[Any, ...]:
        """Return the rule's family, the examples per step, and the size of the weight vectors."""
        varying = cell.annealing, cell.control_segment_layout[1]
        return get_real_parameter_family(cell.rule), cell.batch, *varying, self.engine == "vectors" and cell.N

    def make_specific_values(self, values: dict[str, Any]) -> dict[str, Any]:
        task_values = {name: values[name] for name in ("overlap", "protocol", "batch")}
        return {"inputs": Gaussian(), "tasks": self.tasks, "switch": self.switch, **task_values}


def separate_truth(values: dict[str, np.ndarray], tasks: int) -> dict[str, np.ndarray]:
    """Return variables of a student, with R and errors (..., teachers) split into tasks and the truth.

    >>> separate_truth({"R": np.array([0.5, 0.4]), "eps_g": np.array([0.3, 0.4]), "length": np.ones(())}, 1)["R_truth"]
    array(0.4)
    """
    R, error = values["R"], values["eps_g"]
    separated = values | {"R": R[..., :tasks], "eps_g": error[..., :tasks]}
    if R.shape[-1] == tasks:
        return separated
    return separated | {"R_truth": np.asarray(R[..., tasks]), "eps_truth": np.asarray(error[..., tasks])}
