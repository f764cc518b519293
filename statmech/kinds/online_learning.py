"""Base classes of perceptrons and networks that learn online, in steps of 1/N, and the cells of online students.

`OnlineLearning` has the keys and checks of perceptrons and networks. `OnlineStudent` adds the keys of students that
learn by a rule. A kind adds the source of their examples: a teacher (`online_perceptron`), several teachers
(`online_tasks`), two clusters (`online_clusters`), or the rows of a table (`online_table`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from statmech.errors import Problem
from statmech.inputs.input_distributions import Gaussian, Inputs, inputs_to_config
from statmech.keys.initial_states import DRAWN_START_LARGE_N_LIMIT, OrderParameters, Start
from statmech.keys.key_types import NonnegativeAxis, Times, config_key, make_keyword_or_section_type, one_of
from statmech.keys.resampling import Resampling, resampling_to_config
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import NameOrAxis, NumberOrAxis, NumbersOverTime, ensure_tuple, rename_keys_for_seeds
from statmech.keys.time_dependent_keys import (
    DEFAULT_ANNEALING,
    OPTIMUM_VARIABLES,
    ControlledCell,
    OptionalSchedule,
    find_controls,
    find_late_control_changes,
    find_objective_problems,
    find_optimal_keys,
    find_schedule_conflicts,
    find_step_count_problems,
    format_cell_description,
    make_optimum_coordinates,
)
from statmech.keys.variables import Variable
from statmech.parameters.parameter_fields import get_parameters, get_real_parameter_family
from statmech.parameters.schedules_and_controls import (
    LEARNING_RATE_SCHEDULES,
    OptimalControlOptions,
    TimeDependence,
    control_to_config,
    get_initial_value,
    is_time_dependent,
)
from statmech.students.rules import RULES, Bayes, Rule
from statmech.students.student_geometry import student_coordinates

BATCH_OVERHEAD_SECONDS = 3e-3  # overhead of one batch of seeds
MAX_GRAM_VECTORS = 16  # weight vectors are faster for more students and teachers
MIN_DIRECTIONS_PER_ORDER_PARAMETER = 10  # weight vectors are faster for fewer directions
MIN_SCHEDULE_T0 = 1e-300  # smaller values are subnormal, and may be rounded to 0
RATE_KEY_DEFAULTS: dict[str, Any] = {"decay": 0.0, "schedule": None, "annealing": DEFAULT_ANNEALING}
TIME_DEPENDENCE_DEFAULTS: dict[str, Any] = {"drift": 0.0, **RATE_KEY_DEFAULTS}
# seconds per step of weight vectors, on one core in float64 (benchmarks/engines.py)
VECTORS_STEP_SECONDS = 1e-6  # constant part, plus a part for each input dimension
VECTORS_STEP_SECONDS_PER_DIMENSION = 4.5e-9

RecordedTimes = Annotated[
    Times,
    config_key(description="times at which order parameters are recorded, increasing", symbol="$t$", unit="steps / N"),
]
SimulationDtype = Annotated[Literal["float64", "float32"], Field(description="precision of the simulation")]
SimulationEngine = Annotated[
    Literal["gram", "vectors"],
    Field(description="engine of the simulation: gram (the order parameters, in their exact distribution) or vectors"),
]
StudentStart = Annotated[Any, make_keyword_or_section_type(["drawn"], Start, "a start")]


class OnlineLearning(AbstractScenario):
    """Base class of perceptrons and networks that learn online.

    Subclasses add the learning algorithm, the source of its examples, and the times t.
    """

    seeds_per_batch: ClassVar = 64  # a multiple of the batch size of every engine
    SIMULATION_ONLY_KEYS: ClassVar = ("dtype", "engine")

    if TYPE_CHECKING:
        t: Any  # subclasses define this key

    @property
    def optimal_keys(self) -> dict[str, list[OptimalControlOptions]]:
        """Options for each key to be optimised."""
        return find_optimal_keys(self)

    @property
    def time_dependent_keys(self) -> list[str]:
        """Names of the keys that are functions of time."""
        return [name for name, value in self.axis_values().items() if any(map(is_time_dependent, ensure_tuple(value)))]

    def _find_step_problems(self) -> Iterator[Problem]:
        """Find too many steps of online learning, and the first rate of drift or decay that exceeds N."""
        yield from find_step_count_problems(self.t[-1], max(ensure_tuple(self.N)))
        for name in ("drift", "decay"):
            for rate, N in self.list_value_pairs(name, "N") if name in self.axis_values() else ():
                if problem := next(find_excessive_rates(name, rate, N), None):
                    yield problem
                    return

    def _find_time_function_problems(self) -> Iterator[Problem]:
        """Find functions of time that online learners do not support, and unsupported objectives of optimal keys."""
        yield from find_late_control_changes(self.axis_values(), self.t[-1])
        yield from find_objective_problems(self.optimal_keys, getattr(self, "tasks", 1))
        distributions = ensure_tuple(self.axis_values().get("inputs", Gaussian()))
        if self.time_dependent_keys and not all(inputs.has_isotropic_normal_fields for inputs in distributions):
            yield (self.time_dependent_keys[0],), "changes with time for gaussian inputs of equal variance only"

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        return OPTIMUM_VARIABLES if self.optimal_keys else {}

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of times and, for optimal keys, of controls and searches."""
        return {"t": np.asarray(self.t)} | make_optimum_coordinates(self.optimal_keys)

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for the steps of all cells on one core."""
        return self.t[-1] * sum(cell.N * self._estimate_step_seconds(cell) for cell in self.cells())

    def _estimate_step_seconds(self, cell: Any) -> float:
        """Estimate the seconds per step and seed."""
        raise NotImplementedError

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of the engine."""
        return {self._make_program_key(cell) for cell in self.cells()}

    def _make_program_key(self, cell: Any) -> tuple[Any, ...]:
        """Return the values that determine the compiled program of a cell."""
        raise NotImplementedError


def count_gram_variance_groups(inputs: Inputs, num_vectors: int, N: int) -> int:
    """Return the number of variance groups for online learning in the Gram engine, or 0 if weight vectors are faster.

    >>> from statmech.inputs.input_distributions import Spectrum
    >>> [count_gram_variance_groups(Spectrum((0.5, 1.5)), num_vectors=4, N=N) for N in (60, 100)]
    [0, 2]
    """
    number = inputs.num_variance_groups
    return (
        number
        if num_vectors <= MAX_GRAM_VECTORS and MIN_DIRECTIONS_PER_ORDER_PARAMETER * number * num_vectors <= N
        else 0
    )


def find_excessive_rates(name: str, rate: float, N: float) -> Iterator[Problem]:
    """Find a rate of drift or decay that exceeds N, so that 1 - rate/N is negative.

    >>> list(find_excessive_rates("decay", 5, 4))
    [(('decay',), 'decay = 5 is too large for N = 4: 1 - decay/N would be negative')]
    """
    if rate > N:
        yield (name,), f"{name} = {rate:g} is too large for N = {N}: 1 - {name}/N would be negative"


def find_annealing_problems(schedule: object, annealing: object) -> Iterator[Problem]:
    """Find an `annealing` that has no effect, because there is no schedule.

    >>> list(find_annealing_problems(None, "exponential"))
    [(('annealing',), 'a learning rate without `schedule: {t0: time}` does not fall')]
    """
    if schedule is None and annealing != DEFAULT_ANNEALING:
        yield ("annealing",), "a learning rate without `schedule: {t0: time}` does not fall"


def make_start_field(section: str) -> Any:
    """Return the pydantic field of the key `start`, with a section of these keys."""
    return Field(default="drawn", description=f"start, at t = 0: drawn (entries from N(0,1)) or {section}")


@dataclass(frozen=True)
class OnlineCell(ControlledCell):
    """One grid point: a rule with its parameters, numbers K and N, inputs, and a start."""

    name: str
    rule: Rule
    K: int
    N: int
    inputs: Inputs
    flip: float
    start: Start | None  # None if weights are drawn
    index: tuple[int, ...]
    drift: float = 0.0
    decay: float = 0.0
    schedule: float | None = None  # t0 of the schedule; None for a constant learning rate
    annealing: str = "hyperbolic"
    resample: Resampling | None = None  # None if all students learn every example
    average: bool = False  # whether the time averages of the weights are also computed
    burn_in: float = 0.0  # start time of the averages

    @property
    def learning_probability(self) -> float:
        """Probability that a student learns an example."""
        return 1.0 if self.resample is None else self.resample.share

    @property
    def rule_parameters(self) -> dict[str, Any]:
        """Parameters of the rule, by name."""
        return {name: getattr(self.rule, name) for name in get_parameters(self.rule)}

    @property
    def example_parameters(self) -> dict[str, Any]:
        """Parameters of the examples for messages, by name."""
        return {"flip": self.flip}

    @property
    def message_description(self) -> str:
        """Description of the rule, the examples and their parameters for messages."""
        parameters = self.rule_parameters | self.example_parameters | self.nondefault_time_dependence
        parameters |= {} if self.resample is None else {"share": self.learning_probability}
        return format_cell_description(self.name, parameters | dict(self.controls))

    @property
    def num_gram_variance_groups(self) -> int:
        """Number of equal-variance groups in the Gram engine, or 0 if weight vectors are simulated."""
        return count_gram_variance_groups(self.inputs, self.K + 1, self.N)

    @property
    def nondefault_time_dependence(self) -> dict[str, float]:
        """Values of drift, decay, schedule and annealing of an online student that differ from their defaults."""
        return {
            name: getattr(self, name)
            for name, default in TIME_DEPENDENCE_DEFAULTS.items()
            if getattr(self, name) != default
        }

    @property
    def has_time_dependence(self) -> bool:
        """True if there is drift, decay, a schedule, or another function of time."""
        return bool(self.nondefault_time_dependence or self.controls)

    @property
    def time_dependence(self) -> TimeDependence:
        """Drift, decay, learning rate and noise of an online student as functions of time."""
        t0 = np.float64(np.inf if self.schedule is None else max(self.schedule, MIN_SCHEDULE_T0))
        time_functions = self.control_polynomials
        schedule = time_functions.get("eta", LEARNING_RATE_SCHEDULES[self.annealing](t0))
        return TimeDependence(
            np.float64(self.drift), np.float64(self.decay), schedule, noise=time_functions.get("flip")
        )

    def replace_values(self, **numbers: Any) -> Self:
        rule = replace(self.rule, eta=numbers.pop("eta", self.rule.eta))
        return replace(self, rule=rule, **numbers)

    def get_rule_at(self, t: float) -> Rule:
        """Return the rule with the learning rate that it has at time t."""
        return replace(self.rule, eta=self.time_dependence.schedule.rate(self.rule.eta, t))

    @property
    def start_order_parameters(self) -> OrderParameters:
        """Order parameters at t = 0, in the limit of large N."""
        return (self.start or DRAWN_START_LARGE_N_LIMIT).compute_start(self.K)

    @property
    def start_coordinates(self) -> np.ndarray | None:
        """Initial coordinates (K, K+1) of the students in a basis with the teacher first, or None if drawn."""
        return student_coordinates(*self.start_order_parameters) if self.start else None

    @property
    def has_equal_starts(self) -> bool:
        """True if all students start with the same order parameters."""
        return (self.start or DRAWN_START_LARGE_N_LIMIT).has_equal_starts

    @property
    def example_identity(self) -> dict[str, Any]:
        """Values that identify the students and the distribution of their examples."""
        inputs = {} if self.inputs == Gaussian() else {"inputs": inputs_to_config(self.inputs)}
        return {"K": self.K, "N": self.N, "flip": self.flip, **inputs}

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this online student, keyed by the names used in random seeds."""
        return {
            "rule": self.name,
            **rename_keys_for_seeds(self.rule_parameters, {"assumed_flip": "noise"}),
            **self.example_identity,
            "start": self.start.model_dump() if self.start else "drawn",
            # defaults are omitted, so that runs keep the random numbers of earlier versions
            **self.nondefault_time_dependence,
            **({} if self.resample is None else {"resample": resampling_to_config(self.resample)}),
            **({"average": True, "burn_in": self.burn_in} if self.average else {}),
            **{name: control_to_config(control) for name, control in self.controls},
        }


class OnlineStudent(OnlineLearning):
    """Base class of students that learn online by a rule.

    Subclasses add the source of the examples.
    """

    CHOICE: ClassVar = "rule"
    KINDS: ClassVar = RULES
    AXES: ClassVar[tuple[str, ...]] = ()
    OMITTED_DEFAULTS: ClassVar[dict[str, Any]] = RATE_KEY_DEFAULTS
    CELL_CLASS: ClassVar[type[OnlineCell]] = OnlineCell
    EXAMPLES_WITHOUT_TEACHER: ClassVar[str] = ""  # plural noun for messages, if examples have no teacher

    rule: Annotated[NameOrAxis, one_of(RULES, "a learning rule")] = Field(description="learning rule")
    decay: NonnegativeAxis = config_key(
        0.0,
        description="weight decay: a step multiplies the weights by 1 - decay/N, then adds the example",
        symbol=r"$\nu$",
    )
    schedule: OptionalSchedule = config_key(
        None,
        description="schedule of the learning rate, {t0: time}: it falls as eta / (1 + t/t0); constant by default",
        symbol="$t_0$",
        unit="steps / N",
    )
    annealing: Annotated[NameOrAxis, one_of(LEARNING_RATE_SCHEDULES, "a schedule of the learning rate")] = config_key(
        DEFAULT_ANNEALING, description="how the learning rate falls with a `schedule`"
    )
    t: RecordedTimes
    start: StudentStart = make_start_field("{length, R, q}")

    if TYPE_CHECKING:  # show editors and type checkers the parameters of rules
        eta: InitVar[NumbersOverTime] = 1.0
        assumed_flip: InitVar[NumberOrAxis] = 0.0
        margin: InitVar[NumberOrAxis] = 0.0

    def _find_problems(self) -> Iterator[Problem]:
        if "N" in self.AXES:  # otherwise N follows from a table
            yield from self._find_step_problems()
        yield from self._find_start_problems()
        yield from find_annealing_problems(self.schedule, self.annealing)
        yield from self._find_time_function_problems()

    def _find_start_problems(self) -> Iterator[Problem]:
        """Find the first reason why the rules or the numbers of online students do not allow the start."""
        rules = [RULES[name] for name in ensure_tuple(self.rule)]
        if self.EXAMPLES_WITHOUT_TEACHER and any(issubclass(rule, Bayes) for rule in rules):
            examples = self.EXAMPLES_WITHOUT_TEACHER
            yield ("rule",), f'the rule "bayes" is the posterior mean of a teacher, and {examples} have no teacher'
            return
        start = DRAWN_START_LARGE_N_LIMIT if self.start == "drawn" else self.start
        max_length = float(np.max(start.length))
        for name, rule in zip(ensure_tuple(self.rule), rules, strict=True):
            if max_length >= (bound := rule.longest_start):
                actual = "drawn students have length 1" if self.start == "drawn" else f"not {max_length:g}"
                example = ", ".join(f"{key}: {value:g}" for key, value in rule.default_start().items())
                limit = f'the rule "{name}" starts from students shorter than {bound:g}'
                yield ("start",), f"{limit}, {actual}: write start: {{{example}}}"
                return
        for K in ensure_tuple(self.axis_values().get("K", 1)) if isinstance(self.start, Start) else ():
            for sentence in self.start.problems(K, self.dtype):
                yield ("start",), sentence
                return

    def _find_time_function_problems(self) -> Iterator[Problem]:
        """Find functions of time that are not supported for these keys."""
        yield from super()._find_time_function_problems()
        yield from find_schedule_conflicts(self.time_dependent_keys, self.schedule)

    def _estimate_step_seconds(self, cell: OnlineCell) -> float:
        """Estimate the seconds per step and seed of an online student, with weight vectors."""
        return VECTORS_STEP_SECONDS + VECTORS_STEP_SECONDS_PER_DIMENSION * cell.N

    def _make_program_key(self, cell: OnlineCell) -> tuple[Any, ...]:
        """Return the rule's family, and the number of groups or the size of the weight vectors."""
        sizes = cell.num_gram_variance_groups or cell.N
        return get_real_parameter_family(cell.rule), bool(cell.nondefault_time_dependence), sizes

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> OnlineCell:
        common_values = {
            "K": values.get("K", 1),
            "N": values.get("N"),
            "inputs": values.get("inputs"),
            "flip": get_initial_value(values.get("flip", 0.0)),
        }
        return self.CELL_CLASS(
            name=values["rule"],
            rule=self.make_component(values),
            start=None if self.start == "drawn" else self.start,
            controls=find_controls(values),
            index=index,
            **{name: values[name] for name in self.OMITTED_DEFAULTS if name in values},
            **common_values | self.make_specific_values(values),
        )

    def make_specific_values(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values of a cell that are specific to this kind, and replace its common values."""
        return {}
