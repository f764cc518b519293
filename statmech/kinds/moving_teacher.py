"""Scenarios of online learning from a moving teacher: a student whose labels come from a student of the truth.

A config file with the keys `rule` and `moving_teacher` becomes a `MovingTeacher`, the input of `simulate.run` and
`theory.solve`. In every step the moving teacher learns a fresh input from the truth, by the rule `moving_teacher`, and
the student learns the label that the moving teacher gives to the same input, by the rule `rule`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from pydantic import Field

from statmech.errors import Problem
from statmech.inputs.input_distributions import Gaussian
from statmech.keys.key_types import PARAMETERS, DimensionAxis, FlipAxis, Number, config_key, one_of
from statmech.keys.sweep_grid import NameOrAxis, NumberOrAxis, axis_of, ensure_tuple
from statmech.keys.variables import Variable
from statmech.kinds.online_learning import (
    VECTORS_STEP_SECONDS,
    VECTORS_STEP_SECONDS_PER_DIMENSION,
    OnlineCell,
    OnlineStudent,
    SimulationDtype,
    SimulationEngine,
    StudentStart,
    make_start_field,
)
from statmech.kinds.online_perceptron import GRAM_STEP_SECONDS_BY_K, ONLINE_VARIABLES
from statmech.parameters.parameter_fields import get_real_parameter_family
from statmech.students.rules import RULES, Bayes, Perceptron, Rule

CONSTANT_RATE_REASON = "the rates of a moving teacher and its student are constant: remove {}"
TEACHER_DIM = ("t",)
MOVING_TEACHER_VARIABLES = {
    **{name: replace(ONLINE_VARIABLES[name], dims=TEACHER_DIM) for name in ("eps_g", "R", "length")},
    "eps_teacher": Variable(TEACHER_DIM, "error of the moving teacher", r"$\epsilon_\mathrm{teacher}$"),
    "R_teacher": Variable(TEACHER_DIM, "cosine of moving teacher and truth", r"$R_\mathrm{teacher}$"),
    "length_teacher": Variable(TEACHER_DIM, "length of the moving teacher", r"$l_\mathrm{teacher}$", role="detail"),
    "q": Variable(TEACHER_DIM, "student-student cosine, of student and moving teacher", "$q$"),
}
TeacherRateAxis = Annotated[
    NumberOrAxis, axis_of(Annotated[Number, Field(gt=0)], {"type": "number", "exclusiveMinimum": 0})
]


@dataclass(frozen=True)
class MovingTeacherCell(OnlineCell):
    """One grid point: the rules of the student and of its moving teacher, the input dimension, and a start."""

    moving_teacher: Rule = field(default_factory=Perceptron)

    @property
    def example_parameters(self) -> dict[str, Any]:
        return {"teacher_eta": self.moving_teacher.eta, "flip": self.flip}

    @property
    def example_identity(self) -> dict[str, Any]:
        teacher = {"moving_teacher": type(self.moving_teacher).__name__, "teacher_eta": self.moving_teacher.eta}
        return {"K": self.K, "N": self.N, "flip": self.flip, **teacher}


class MovingTeacher(OnlineStudent):
    """A student that learns online from a moving teacher, which itself learns from the truth.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = MovingTeacher(rule="hebb", moving_teacher=["perceptron", "adatron_textbook"], eta=[0.1, 1], t=[1, 5])
    >>> scenario.shape
    {'moving_teacher': 2, 'eta': 2}
    """

    AXES: ClassVar = ("rule", "moving_teacher", "N", PARAMETERS, "teacher_eta", "flip")
    CELL_CLASS: ClassVar = MovingTeacherCell
    LABELLED_CLASSES: ClassVar = {"moving_teacher": RULES}
    UNSUPPORTED_KEYS: ClassVar = {
        **dict.fromkeys(("decay", "schedule", "annealing", "drift"), CONSTANT_RATE_REASON),
        **dict.fromkeys(("K", "tasks"), "a moving teacher has one student: remove {}"),
        "inputs": "a moving teacher and its student learn gaussian inputs of equal variance only: remove {}",
    }
    TITLE: ClassVar = "online learning from a moving teacher"
    CITES: ClassVar = ("miyoshi2006moving",)
    USUAL_X_KEY: ClassVar = "t"
    equations: ClassVar = (
        r"\mathbf J_k \leftarrow \mathbf J_k + \eta_k\,\sigma_k\,g_k(\kappa_k, l_k)\,\mathbf x",
        r"\sigma_1 = \pm\mathrm{sgn}(\mathbf B\cdot\mathbf x)",
        r"\sigma_2 = \mathrm{sgn}(\mathbf J_1\cdot\mathbf x)",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )
    keys_ignored_by_theory: ClassVar = {"N": None}
    variables: ClassVar = MOVING_TEACHER_VARIABLES

    moving_teacher: Annotated[NameOrAxis, one_of(RULES, "a learning rule")] = Field(
        description="rule by which the moving teacher learns from the truth, with default parameters"
    )
    teacher_eta: TeacherRateAxis = config_key(
        1.0, description="learning rate of the moving teacher", symbol=r"$\eta_\mathrm{teacher}$"
    )
    N: DimensionAxis = config_key(10_000, description="input dimension", symbol="$N$")
    flip: FlipAxis = config_key(
        0.0, description="probability that a label is flipped, of the truth's labels", symbol="$p_f$"
    )
    start: StudentStart = make_start_field("{length, R, q}, of the moving teacher and the student")
    dtype: SimulationDtype = "float64"
    engine: SimulationEngine = "gram"

    def _find_problems(self) -> Iterator[Problem]:
        for key in ("rule", "moving_teacher"):
            if any(issubclass(RULES[name], Bayes) for name in ensure_tuple(getattr(self, key))):
                yield (key,), 'the rule "bayes" assumes a teacher that does not move, and labels of the truth'
                return
        if min(ensure_tuple(self.N)) < 3:
            yield ("N",), "N must be at least 3, for the truth, the moving teacher and the student"
        yield from super()._find_problems()

    def _find_start_problems(self) -> Iterator[Problem]:
        for sentence in () if self.start == "drawn" else self.start.problems(2, self.dtype):
            yield ("start",), sentence
            return

    def _estimate_step_seconds(self, cell: OnlineCell) -> float:
        if self.engine == "gram":
            return GRAM_STEP_SECONDS_BY_K[3]
        return VECTORS_STEP_SECONDS + 2 * VECTORS_STEP_SECONDS_PER_DIMENSION * cell.N

    def _make_program_key(self, cell: Any) -> tuple[Any, ...]:
        """Return both families of rules, and the size of the weight vectors."""
        families = get_real_parameter_family(cell.rule), get_real_parameter_family(cell.moving_teacher)
        return *families, self.engine == "vectors" and cell.N

    def make_specific_values(self, values: dict[str, Any]) -> dict[str, Any]:
        teacher = RULES[values["moving_teacher"]](eta=float(values["teacher_eta"]))
        return {"K": 2, "inputs": Gaussian(), "moving_teacher": teacher}
