r"""Scenarios of one unit on the sphere that learns online from one teacher unit: the time until it finds the teacher.

A config file with the keys `network` and `length` becomes a `FixedLengthNetwork`. A step changes the weights by one
example, and restores their length :math:`|\mathbf J| = \sqrt N`:

.. math:: \mathbf J \leftarrow \sqrt N\,\frac{\mathbf J + \eta f\mathbf x}{|\mathbf J + \eta f\mathbf x|}, \qquad
          f = v\,g'(h)\,y \quad\text{or}\quad v\,g'(h)\,(y - v\,g(h))

for the correlation :math:`v\,y\,g(h)` or the squared error. The teacher gives labels, signs that change at the fields
`edges`, or the outputs of a unit like the student. A run ends when the cosine R passes the threshold `until`.

With a trial step, the example is used twice: f belongs to the field after a trial step of the rate `trial_eta`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

import numpy as np
from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, model_validator

from statmech.errors import Problem, ScenarioError, quote_value
from statmech.keys.initial_states import ConfigSection
from statmech.keys.key_types import (
    PARAMETERS,
    DimensionAxis,
    FlipAxis,
    NonnegativeAxis,
    Number,
    PydanticTypeOverride,
    Times,
    Whole,
    config_key,
    make_increasing_validator,
    make_keyword_or_section_type,
    one_of,
)
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import (
    Cell,
    IntegerOrAxis,
    NameOrAxis,
    NumberOrAxis,
    axis_of,
    ensure_tuple,
    rename_keys_for_seeds,
)
from statmech.keys.time_dependent_keys import find_step_count_problems, format_cell_description
from statmech.keys.variables import Variable
from statmech.kinds.online_learning import SimulationEngine
from statmech.parameters.parameter_fields import get_parameters, get_real_parameter_family
from statmech.students.label_teachers import FIXED_LENGTH_TEACHERS, SIGNAL_FREE_WEDGE_WIDTH, EdgeLabels
from statmech.students.sphere_units import SIGNAL_TOL, SPHERE_UNITS, LearningTask

BEST_RATE_KEYWORD = "best"
UNIT_ERRORS = {"correlation": "minus the product of label and output", "square": "the squared error over 2"}
MIN_CLEAR_SIGNAL = 1e-3  # a smaller first coefficient is a rounded width
MAX_ESTIMATED_TIME = 1e200  # instead of infinity, for estimates
CHAIN_STEP_SECONDS, VECTOR_STEP_SECONDS_PER_DIMENSION = 1.5e-7, 1e-8  # per step and run, on one core
FIRST_PASSAGE_ATTRIBUTES = {"units": "steps / N"}

THRESHOLD_VARIABLES = {
    "t_until": Variable(
        (),
        "time at which the cosine first passes the threshold",
        r"$t_\mathrm{until}$",
        attrs=FIRST_PASSAGE_ATTRIBUTES,
    )
}
RECORDED_VARIABLES = {
    "R": Variable(("t",), "teacher-student cosine", "$R$", in_theory=False),
    "eps_g": Variable(
        ("t",),
        "generalization error: mean squared error over 2, without noise and flips",
        r"$\epsilon_g$",
        in_theory=False,
    ),
}
SEARCH_THEORY_VARIABLES = {
    "t_until_std": Variable(
        (),
        "standard deviation of one run: time at which the cosine first passes the threshold",
        r"$t_\mathrm{until}$, std",
        attrs=FIRST_PASSAGE_ATTRIBUTES,
    ),
    "t_until_limit": Variable(
        (),
        "time of passage for large N, proportional to N^(k-2) for the exponent k >= 3, and growing as ln N for k = 2",
        r"$t_\infty$",
        attrs=FIRST_PASSAGE_ATTRIBUTES,
        role="detail",
    ),
    "exponent": Variable((), "information exponent", r"$k^*$", role="detail"),
    "eta_best": Variable((), "learning rate of the fastest search", r"$\eta_\mathrm{best}$", role="detail"),
}


@dataclass(frozen=True)
class ScaledRate:
    """A learning rate at_1 N^power.

    >>> str(ScaledRate(-0.5, 1.93)), ScaledRate(-0.5, 2.0).evaluate(100)
    ('1.93 N^-0.5', 0.2)
    """

    power: float
    at_1: float

    def evaluate(self, N: float) -> float:
        """Return the learning rate at an input dimension."""
        return float(self.at_1 * N**self.power)

    def __str__(self) -> str:
        return f"{self.at_1:g} N^{self.power:g}"


def _read_rate(rate: Any) -> float | str | ScaledRate:
    """Validate a learning rate: a number above 0, `best` or {power, at_1}."""
    if isinstance(rate, ScaledRate) or rate == BEST_RATE_KEYWORD:
        return rate
    if isinstance(rate, Mapping) and {*rate} == {"power", "at_1"} and all(map(_is_finite_number, rate.values())):
        if rate["at_1"] > 0:
            return ScaledRate(float(rate["power"]), float(rate["at_1"]))
        raise ValueError(f"at_1 must be above 0, not {rate['at_1']:g}")
    if not isinstance(rate, int | float | np.number) or not _is_finite_number(rate):
        raise ValueError(f"must be a number, best or {{power: -0.5, at_1: 2}}, not {quote_value(rate)}")
    if rate <= 0:
        raise ValueError(f"must be above 0, not {rate:g}")
    return float(rate)


def _is_finite_number(value: Any) -> bool:
    """Return True for finite numbers except booleans."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max


def _write_rate(rate: Any) -> Any:
    """Return the config form of a learning rate."""
    return vars(rate) if isinstance(rate, ScaledRate) else rate


def _check_is_sign(value: float) -> float:
    """Raise `ValueError` unless an output weight is +1 or -1."""
    if abs(value) != 1:
        raise ValueError(f"must be 1 or -1, not {value:g}")
    return value


def _make_section_schema(**required: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a section with a required key, and the weight w of a teacher."""
    properties = {**required, "w": {"enum": [1, -1]}}
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


class PassageThreshold(ConfigSection):
    """The cosine R that ends a run."""

    R: Annotated[Number, Field(gt=0, lt=1)] = Field(description="teacher-student cosine, between 0 and 1")


class UnitStart(ConfigSection):
    """The output weight v of the unit, which starts in a random direction."""

    v: Annotated[Number, AfterValidator(_check_is_sign)] = Field(
        default=1.0, description="weight of a student unit in the output, 1 or -1"
    )


SignAxis = Annotated[
    NumberOrAxis, axis_of(Annotated[Number, AfterValidator(_check_is_sign)], {"enum": [1, -1]}, spaced=False)
]
RateAxis = Annotated[
    NumberOrAxis | NameOrAxis | Mapping[str, float] | Sequence[float | str | Mapping[str, float]],
    axis_of(
        Annotated[Any, PlainValidator(_read_rate), PlainSerializer(_write_rate)],
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"const": BEST_RATE_KEYWORD},
                {
                    "type": "object",
                    "properties": {"power": {"type": "number"}, "at_1": {"type": "number"}},
                    "required": ["power", "at_1"],
                    "additionalProperties": False,
                },
            ]
        },
        is_single_value=lambda value: isinstance(value, Mapping) and "power" in value,
    ),
]
SECTION_SCHEMAS: dict[str, list[dict[str, Any]]] = {
    "network": [_make_section_schema(hermite={"type": "integer"})],
    "teacher": [
        _make_section_schema(edges={"type": "array", "items": {"type": "number"}}),
        _make_section_schema(wedge={"type": "number"}),
    ],
}
EdgeList = Annotated[tuple[Number, ...], Field(min_length=1, max_length=64), make_increasing_validator("edges")]
OneUnit = Annotated[Whole, Field(ge=1, le=1)]


@dataclass(frozen=True)
class FixedLengthCell(Cell):
    """One grid point: unit, teacher, error and noise in a task, input dimension, learning rate and threshold."""

    name: str
    teacher_name: str
    task: LearningTask
    N: int
    eta: float | str | ScaledRate
    target: float | None
    index: tuple[int, ...]
    best_eta: float | None = None  # computed by theory for `eta: best`

    @property
    def rate(self) -> float:
        """Learning rate as a number."""
        if isinstance(self.eta, ScaledRate):
            return self.eta.evaluate(self.N)
        if self.eta == BEST_RATE_KEYWORD:
            assert self.best_eta is not None  # inserted before the rate is used
            return self.best_eta
        return float(self.eta)

    def replace_values(self, **numbers: Any) -> Self:
        """Return the cell with other numbers."""
        return replace(self, **numbers)

    @property
    def unit_description(self) -> str:
        """Name of the unit with its parameters."""
        parameters = {name: getattr(self.task.unit, name) for name in get_parameters(self.task.unit)}
        return format_cell_description(self.name, parameters) if parameters else self.name

    @property
    def message_description(self) -> str:
        """Description of the unit, its teacher and numbers for messages."""
        numbers = f"N = {self.N:g}, eta = {self.eta}"
        return f"the unit {self.unit_description} with the teacher {self.teacher_name}, {numbers}"

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this unit and its examples."""
        task = self.task
        values = {name: getattr(task, name) for name in ("v", "error", "flip", "noise", "trial")}
        return {
            "network": self.name,
            "length": "fixed",
            **{name: getattr(task.unit, name) for name in get_parameters(task.unit)},
            "teacher": [self.teacher_name, *(vars(task.teacher).items() if task.teacher else ())],
            **rename_keys_for_seeds(values, {"noise": "sigma"}),
            "N": self.N,
            "eta": _write_rate(self.eta),
        }


class FixedLengthNetwork(AbstractScenario):
    """One unit of fixed length that learns online from one teacher unit.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = FixedLengthNetwork(
    ...     network={"hermite": 3}, length="fixed", teacher="wedge", eta=0.1, N=[100, 300], until={"R": 0.5}
    ... )
    >>> [cell.task.unit.degree for cell in scenario.cells()]
    [3, 3]
    """

    CHOICE: ClassVar = "network"
    KINDS: ClassVar = cast(dict[str, type], SPHERE_UNITS)
    FURTHER_CLASS_CHOICES: ClassVar = {"teacher": FIXED_LENGTH_TEACHERS}
    AXES: ClassVar = ("network", "teacher", PARAMETERS, "w", "error", "flip", "noise", "trial_eta", "eta", "N")
    OMITTED_DEFAULTS: ClassVar = {
        "M": 1,
        "K": 1,
        "w": 1.0,
        "noise": 0.0,
        "trial_eta": 0.0,
        "edges": None,
        "t": None,
        "until": None,
    }
    TITLE: ClassVar = "networks of fixed length"
    CITES: ClassVar = ("benarous2021", "watkin1992", "arnaboldi2024")
    USUAL_X_KEY: ClassVar = "N"
    SIMULATION_ONLY_KEYS: ClassVar = ("engine",)
    UNSUPPORTED_KEYS: ClassVar = {
        **dict.fromkeys(("eta_v", "decay", "dropout", "inputs"), "a network of fixed length has no {}: remove it"),
        "dtype": "a network of fixed length needs float64, because R changes by eta/N a step: remove dtype",
    }
    seeds_per_batch: ClassVar = 256  # runs that follow each other in the batch elements of one program
    equations: ClassVar = (
        r"\mathbf J \leftarrow \sqrt N\,(\mathbf J + \eta f\mathbf x)/|\mathbf J + \eta f\mathbf x|",
        r"f = v\,g'(h)\,y \text{ or } v\,g'(h)\,(y - v\,g(h))",
        r"R = \mathbf B\cdot\mathbf J/N",
    )

    network: Annotated[NameOrAxis | Mapping[str, int], one_of(SPHERE_UNITS, "a unit")] = Field(
        description="activation of the units"
    )
    length: Literal["fixed"] = config_key(description="length of a student, restored after every step", symbol="$l$")
    M: OneUnit = config_key(1, description="number of teacher units", symbol="$M$")
    K: OneUnit = config_key(1, description="number of student units, the hidden units", symbol="$K$")
    N: DimensionAxis = config_key(1000, description="input dimension", symbol="$N$")
    teacher: Annotated[NameOrAxis | Mapping[str, Any], one_of(FIXED_LENGTH_TEACHERS, "a teacher")] = Field(
        default="wedge",
        description="teacher: labels by a sign, a reversed wedge, a door or edges, or the output of a unit",
    )
    edges: EdgeList | None = Field(
        default=None, description="fields where the label of the teacher `edges` changes its sign, -1 below the first"
    )
    w: SignAxis = config_key(
        1.0, description="weight of a teacher unit in the output; -1 reverses all labels", symbol="$w$"
    )
    error: Annotated[NameOrAxis, one_of(UNIT_ERRORS, "an error")] = Field(
        default="correlation", description="error that a step reduces: correlation (-y g) or square ((y - g)^2/2)"
    )
    eta: RateAxis = config_key(
        BEST_RATE_KEYWORD,
        description="learning rate: a number, {power: p, at_1: c} for c N^p, or best, that of the fastest search",
        symbol=r"$\eta$",
    )
    flip: FlipAxis = config_key(0.0, description="probability that a label is flipped", symbol="$p_f$")
    noise: NonnegativeAxis = config_key(
        0.0, description="standard deviation of the noise, on the teacher's output", symbol=r"$\sigma$"
    )
    trial_eta: NonnegativeAxis = config_key(
        0.0,
        description="learning rate of a trial step before each step, on the same example; 0: without",
        symbol=r"$\eta_\mathrm{trial}$",
    )
    start: Annotated[Any, make_keyword_or_section_type(["drawn"], UnitStart, "a start")] = Field(
        default="drawn", description="start, at t = 0: drawn (a random direction), or {v: -1} for the output weight"
    )
    until: Annotated[Any, PydanticTypeOverride(PassageThreshold | None)] = Field(
        default=None, description="threshold that ends a run, {R: cosine}: t_until is the time when R first passes it"
    )
    t: Times | None = config_key(
        None,
        description="times at which order parameters are recorded, increasing",
        symbol="$t$",
        unit="steps / N",
    )
    engine: SimulationEngine = "gram"

    if TYPE_CHECKING:  # show editors and type checkers the parameters of units and teachers
        degree: IntegerOrAxis = 3
        wedge_width: NumberOrAxis = SIGNAL_FREE_WEDGE_WIDTH

    @model_validator(mode="before")
    @classmethod
    def _convert_config_to_fields(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Expand sections of the unit and the teacher to keys, before the conversion of all keys."""
        return super()._convert_config_to_fields(expand_unit_sections(config))  # type: ignore[operator]

    @classmethod
    def make_schema(cls) -> dict[str, Any]:
        schema = super().make_schema()
        for name, section in SECTION_SCHEMAS.items():
            schema["properties"][name]["anyOf"] += section
        return schema

    def _find_problems(self) -> Iterator[Problem]:
        if self.until is None and self.t is None:
            yield ("until",), "give `until: {R: 0.5}` for the time of passage, the times `t` of records, or both"
        if self.t is not None:
            yield from find_step_count_problems(self.t[-1], max(self._list_values("N")))
        teachers = self._list_values("teacher")
        if ("edges" in teachers) != (self.edges is not None):
            yield ("edges",), "the teacher `edges` and the list `edges` belong together: teacher: {edges: [-1, 0, 1]}"
            return
        if "unit" in teachers and max(self._list_values("flip")) > 0:
            yield ("flip",), "only labels are flipped: the outputs of the teacher `unit` have `noise`"
        if {*teachers} - {"unit"} and max(self._list_values("noise")) > 0:
            yield ("noise",), "only outputs of the teacher `unit` have noise: labels have `flip`"
        if BEST_RATE_KEYWORD in self._list_values("eta") and max(self._list_values("trial_eta")) > 0:
            yield ("eta",), "best is not known with a trial step: give a number"
        if self.until is not None:
            yield from self._find_signal_problems()

    def _list_values(self, name: str) -> tuple[Any, ...]:
        """Return the values of a key, as a tuple."""
        return ensure_tuple(getattr(self, name))

    def _find_signal_problems(self) -> Iterator[Problem]:
        """Find the first unit and teacher whose steps do not lead to the threshold."""
        names = ("network", "teacher", *self.parameters, "w", "flip", "trial_eta")
        for cell in self.iterate_representative_cells(*names):
            if problem := find_signal_problem(cell):
                yield problem
                return

    @property
    def variables(self) -> dict[str, Variable]:
        return (THRESHOLD_VARIABLES if self.until else {}) | (RECORDED_VARIABLES if self.t else {})

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        return SEARCH_THEORY_VARIABLES if self.until else {}

    @property
    def unsolved(self) -> str:
        if self.until is None:
            return "theory has times of passage only: give until: {R: 0.5}"
        if min(self._list_values("trial_eta")) > 0:
            return "theory has no times for examples that are used twice"
        return ""

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the recorded times."""
        return {"t": np.asarray(self.t)} if self.t is not None else {}

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for the steps of all cells on one core."""
        return sum(self.estimate_run_seconds(cell) for cell in self.cells())

    def estimate_run_seconds(self, cell: FixedLengthCell) -> float:
        """Estimate the seconds of one run on one core."""
        theory = import_module("theory.networks.hitting_times")  # by name, as kinds lie below theory
        predicted = theory.get_predicted_time(cell)
        passage = min(predicted.mean, MAX_ESTIMATED_TIME) if predicted else 0.0
        t = max(passage, self.t[-1] if self.t is not None else 0.0)
        vector_seconds = VECTOR_STEP_SECONDS_PER_DIMENSION * cell.N if self.engine == "vectors" else 0.0
        return t * cell.N * (CHAIN_STEP_SECONDS + vector_seconds)

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of the engine."""
        return {
            (
                get_real_parameter_family(cell.task.unit),
                *(cell.task.error, cell.task.trial is None, cell.task.is_even),
                len(cell.task.teacher.edges) if cell.task.teacher else 0,
                cell.N if self.engine == "vectors" else 0,
            )
            for cell in self.cells()
        }

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> FixedLengthCell:
        teacher = self.make_component(values, "teacher")
        edges = self.edges if values["teacher"] == "edges" else getattr(teacher, "edges", None)
        trial = values.get("trial_eta", 0.0)
        return FixedLengthCell(
            name=values["network"],
            teacher_name=values["teacher"],
            task=LearningTask(
                unit=self.make_component(values),
                teacher=None if edges is None else EdgeLabels(edges, values.get("w", 1.0)),
                v=self.start.v if isinstance(self.start, UnitStart) else 1.0,
                error=values["error"],
                flip=values["flip"],
                noise=values.get("noise", 0.0),
                trial=trial if trial > 0 else None,
            ),
            N=values["N"],
            eta=values["eta"],
            target=self.until.R if self.until else None,
            index=index,
        )


def expand_unit_sections(config: Mapping[str, Any]) -> dict[str, Any]:
    """Expand the sections of the unit and the teacher in a config to separate keys.

    >>> expand_unit_sections({"network": {"hermite": 3}, "teacher": {"wedge": 1.1, "w": -1}})
    {'network': 'hermite', 'teacher': 'wedge', 'degree': 3, 'wedge_width': 1.1, 'w': -1}
    """
    expanded: dict[str, Any] = {}
    network, teacher = config.get("network"), config.get("teacher")
    if isinstance(network, Mapping):
        if {*network} != {"hermite"}:
            raise ScenarioError([(("network",), f"must be a name or {{hermite: degree}}, not {quote_value(network)}")])
        expanded = {"network": "hermite", "degree": network["hermite"]}
    if isinstance(teacher, Mapping):
        section = dict(teacher)
        further = {"w": section.pop("w")} if "w" in section else {}
        if {*section} not in ({"edges"}, {"wedge"}):
            forms = "a name, {edges: [...]} or {wedge: width}, with w: -1 for reversed labels"
            raise ScenarioError([(("teacher",), f"must be {forms}, not {quote_value(teacher)}")])
        [(name, value)] = section.items()
        expanded |= {"teacher": name, {"edges": "edges", "wedge": "wedge_width"}[name]: value, **further}
    for name in (expanded.keys() & config.keys()) - {"network", "teacher"}:
        owner = "network" if name == "degree" else "teacher"
        raise ScenarioError([((name,), f"is given twice: keep this or the one in {owner}")])
    return {**config, **expanded}


def find_signal_problem(cell: FixedLengthCell) -> Problem | None:
    """Return the reason why the unit of a cell cannot find its teacher, or None.

    A term of the drift is the product of the Hermite coefficients of the teacher and the unit (`signal_terms`).
    """
    task = replace(cell.task, flip=0.0)
    terms, exponent = task.signal_terms, task.exponent
    pair = f"the unit {cell.unit_description} and the teacher {cell.teacher_name}"
    remedy = "reverse the labels by w: -1, or the unit by start: {v: -1}"
    if task.teacher is None and task.v < 0:
        return ("start",), "a unit with v = -1 moves away from a teacher unit with the same g"
    if not exponent:
        return ("teacher",), f"{pair} have no Hermite coefficient in common: R stays near 0"
    first = float(terms[exponent - 1])
    if abs(first) < MIN_CLEAR_SIGNAL * np.abs(terms).max():
        rounded = f"almost no signal of order {exponent}, {first:.2g}, which decides at large N"
        return ("teacher",), f"{pair} have {rounded}: write the width sqrt(2 ln 2) by its name, teacher: wedge"
    if exponent % 2 == 0 and np.any(np.abs(terms[::2]) > SIGNAL_TOL):
        return ("teacher",), f"{pair} have the even exponent {exponent} and odd terms: half of the runs never find it"
    if exponent % 2 == 0 and first < 0:
        return ("teacher",), f"{pair} have a product of coefficients of order {exponent} below 0: {remedy}"
    R = np.linspace(0.0, cell.target or 0.0, 101)[1:]
    if np.all(np.polynomial.polynomial.polyval(R, terms) <= 0):
        return ("teacher",), f"{pair} have opposite signs, so that R becomes negative: {remedy}"
    return None
