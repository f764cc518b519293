"""Scenarios of online learning: rule, students, inputs and initial conditions.

A config file with the key `rule` becomes a `Scenario`, the input of `simulate.run` and `theory.solve`. The
parameters of all rules in `statmech.students.rules`, including a user's rules, are keys (`eta`, `margin`, ...).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, StrictBool

from statmech.errors import Problem
from statmech.inputs.input_distributions import format_inputs_label
from statmech.keys.initial_states import DRAWN_START_LARGE_N_LIMIT, Start
from statmech.keys.inputs_and_examples import (
    InputsAxis,
    compute_input_table_digests,
    find_input_dimension_problems,
    find_input_table_problems,
    find_unsuited_online_inputs,
    make_inputs_field,
)
from statmech.keys.key_types import PARAMETERS, DimensionAxis, NonnegativeAxis, Number, Whole, config_key
from statmech.keys.resampling import ResampleAxis
from statmech.keys.sweep_grid import IntegerOrAxis, NumbersOverTime, axis_of, ensure_tuple
from statmech.keys.time_dependent_keys import OPTIMUM_COORDINATES, make_time_function_type
from statmech.keys.variables import (
    LOCAL_FIELD_DESCRIPTIONS,
    Variable,
    make_bias_variable,
    make_local_field_variables,
    make_std_variable,
)
from statmech.kinds.online_learning import (
    BATCH_OVERHEAD_SECONDS,
    TIME_DEPENDENCE_DEFAULTS,
    VECTORS_STEP_SECONDS,
    VECTORS_STEP_SECONDS_PER_DIMENSION,
    OnlineCell,
    OnlineStudent,
    SimulationDtype,
    SimulationEngine,
)
from statmech.parameters.parameter_fields import ConfigKey, get_real_parameter_family
from statmech.students.ensemble_vote import MAX_EXACT_STUDENTS

MAX_STUDENTS_PER_ENSEMBLE = 100_000  # larger values must be typos

StudentCountAxis = Annotated[
    IntegerOrAxis,
    axis_of(
        Annotated[Whole, Field(ge=1, le=MAX_STUDENTS_PER_ENSEMBLE)],
        {"type": "integer", "minimum": 1, "maximum": MAX_STUDENTS_PER_ENSEMBLE},
    ),
]
FlipOverTime = Annotated[
    NumbersOverTime,
    make_time_function_type(
        Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "maximum": 0.5}, is_optimisable=False
    ),
]
ONLINE_VARIABLES = {
    "R": Variable(("t", "student"), "teacher-student cosine", "$R$"),
    "q": Variable(("t", "student"), "student-student cosine, mean over the other students", "$q$"),
    "length": Variable(("t", "student"), "length of a student, |J|/sqrt(N)", "$l$", role="detail"),
    "eps_g": Variable(("t", "student"), "generalization error, of one student", r"$\epsilon_g$"),
    "eps_g_majority_vote": Variable(
        ("t",), "generalization error of the majority vote", r"$\epsilon_g$ (vote)", single_student_variable="eps_g"
    ),
    "eps_g_weight_mean": Variable(
        ("t",), "generalization error of the weight mean", r"$\epsilon_g$ (mean)", single_student_variable="eps_g"
    ),
}
AVERAGED_VARIABLES = {
    "R_averaged": Variable(("t", "student"), "cosine of teacher and averaged weights, of one student", r"$\bar R$"),
    "length_averaged": Variable(
        ("t", "student"), "length of the averaged weights, over sqrt(N)", r"$\bar l$", role="detail"
    ),
    "eps_g_averaged": Variable(("t", "student"), "error of the averaged weights, of one student", r"$\bar\epsilon_g$"),
}
ONLINE_LOCAL_FIELD_VARIABLES = make_local_field_variables(("t", "student"), *LOCAL_FIELD_DESCRIPTIONS)
VOTE_INTEGRATION_ERROR_VARIABLE = Variable(
    ("t",), "standard error of the vote's integration", r"$\epsilon_g$ (vote), error"
)
GRAM_VARIABLE = Variable(("t", "row", "column"), "Gram matrix of (B, J_1 .. J_K) / N", "$G$")
CORRECTED_STUDENT_VARIABLES = ("R", "length", "eps_g")  # std and bias at finite N need one student only
PAIR_CORRECTION_VARIABLES: dict[str, Variable] = {  # std and bias for equal students; no equation for the bias of votes
    **make_std_variable("q", ONLINE_VARIABLES["q"]),
    **make_bias_variable("q", ONLINE_VARIABLES["q"]),
    **make_std_variable("eps_g_weight_mean", ONLINE_VARIABLES["eps_g_weight_mean"]),
    **make_bias_variable("eps_g_weight_mean", ONLINE_VARIABLES["eps_g_weight_mean"]),
    **make_std_variable("eps_g_majority_vote", ONLINE_VARIABLES["eps_g_majority_vote"]),
}


UNEQUAL_VARIANCE_EQUATIONS = (  # replace the last two equations if inputs have unequal variances
    r"\dot G^a_{ij} = \langle f_ih^a_j\rangle + \langle f_jh^a_i\rangle + \omega_a\nu_a\langle f_if_j\rangle",
    r"\epsilon_g = \tfrac1\pi\arccos R_h",
)


# seconds per step of all K students of a seed, on one core in float64 (benchmarks/engines.py)
GRAM_STEP_SECONDS_BY_K = {1: 3.2e-8, 3: 5.4e-8, 10: 2.4e-7, 30: 1.3e-6, 100: 7.5e-6}
GROUPS_SLOWDOWN, GROUPS_BATCH = 1.25, 32  # factor per group of equal variance; seeds per batch
DRIFT_SLOWDOWN, DECAY_SLOWDOWN = 2.5, 1.3  # measured: 1.9 to 3.1 with drift, 1.0 to 1.3 with decay or a schedule alone
# overhead per parameter combination when many share one call; more students than the maximum are not batched
COMBINATION_SECONDS, MAX_BATCHED_STUDENTS = 4e-5, 3
# one majority vote: in total if exact, otherwise per test circle and student
EXACT_VOTE_SECONDS = 1e-5
VOTE_SECONDS_PER_CIRCLE = 1e-7


class Scenario(OnlineStudent):
    """An ensemble of students that learn online from one teacher by the same rule.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Scenario(rule=["hebb", "adatron"], K=3, N=100, t=[0.5, 1.0], eta=[0.5, 1.0], seeds=4)
    >>> scenario.shape
    {'rule': 2, 'eta': 2}
    >>> [cell.rule.eta for cell in scenario.cells()]
    [0.5, 1.0, 0.5, 1.0]
    """

    OPTIMISABLE_KEYS: ClassVar = ("eta",)
    STEPWISE_TIME_FUNCTION_KEYS: ClassVar = ("flip",)
    AXES: ClassVar = (
        *("rule", "K", "N", "inputs", PARAMETERS, "flip"),
        *TIME_DEPENDENCE_DEFAULTS,
        *("resample", "burn_in"),
    )
    OMITTED_DEFAULTS: ClassVar = {
        **TIME_DEPENDENCE_DEFAULTS,
        "resample": None,
        "average": False,
        "burn_in": 0.0,
        "corrections": False,
    }
    TITLE: ClassVar = "online ensemble"
    CITES: ClassVar = ("miyoshi2005",)
    UNEQUAL_VARIANCE_CITES: ClassVar = ("yoshida2019", "bordelon2022")
    NON_KEY_COORDINATES: ClassVar = {
        "student": ConfigKey("student", "student, one of the ensemble", int),
        "row": ConfigKey("row", "vector of the Gram matrix, 0 the teacher and k the k-th student", int),
        "column": ConfigKey("column", "other vector of the Gram matrix, 0 the teacher and k the k-th student", int),
        **OPTIMUM_COORDINATES,
    }
    USUAL_X_KEY: ClassVar = "t"
    equations: ClassVar = (
        r"\mathbf J_k \leftarrow \mathbf J_k + \eta\,\sigma\,g(\kappa_k, l_k)\,\mathbf x",
        r"\kappa_k = \sigma\,\mathbf J_k\cdot\mathbf x/l_k",
        r"\dot G_{ij} = \langle f_ih_j\rangle + \langle f_jh_i\rangle + \langle f_if_j\rangle",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )

    K: StudentCountAxis = config_key(1, description="number of students, in the ensemble", symbol="$K$")
    N: DimensionAxis = config_key(10_000, description="input dimension", symbol="$N$")
    inputs: InputsAxis = make_inputs_field()
    flip: FlipOverTime = config_key(0.0, description="probability that a label is flipped", symbol="$p_f$")
    drift: NonnegativeAxis = config_key(
        0.0,
        description="rate of the teacher's random walk: a step turns it by an angle of cosine 1 - drift/N",
        symbol=r"$\delta$",
    )
    resample: ResampleAxis | None = config_key(
        None,
        description="part of the examples that each student of an ensemble learns: {share: fraction}; all by default",
        symbol="fraction of examples",
    )
    average: StrictBool = Field(
        default=False, description="also record R, length and error of each student's weights averaged over time"
    )
    burn_in: NonnegativeAxis = config_key(
        0.0, description="time at which the averages of `average: true` begin", symbol=r"$t_b$", unit="steps / N"
    )
    dtype: SimulationDtype = "float64"
    engine: SimulationEngine = "gram"
    gram: StrictBool = Field(default=False, description="also record the Gram matrix of teacher and students")
    corrections: StrictBool = Field(
        default=False, description="theory adds the standard deviation of one run and the bias at this N, to order 1/N"
    )

    def _find_problems(self) -> Iterator[Problem]:
        yield from self._find_size_problems()
        yield from super()._find_problems()
        if self.corrections:
            yield from self._find_correction_problems()
        if self.resample is not None:
            yield from self._find_resampling_problems()
        if self.average or self.burn_in != 0:
            yield from self._find_averaging_problems()

    def _find_resampling_problems(self) -> Iterator[Problem]:
        """Find reasons why students cannot learn their own examples."""
        if any(resampling.bootstrap for resampling in ensure_tuple(self.resample)):
            yield (
                ("resample",),
                "bootstrap draws from stored examples, but online students see each example once: "
                "write `resample: {share: s}`",
            )
        elif max(ensure_tuple(self.K)) == 1:
            yield (
                ("K",),
                "students with their own examples need an ensemble: choose K of at least 2, or remove resample",
            )
        elif self.corrections or self.optimal_keys:
            key = "corrections" if self.corrections else next(iter(self.optimal_keys))
            yield (key,), "is computed for students that learn every example: remove it or resample"

    def _find_averaging_problems(self) -> Iterator[Problem]:
        """Find reasons why the weights cannot be averaged over time."""
        unsuited = next(
            (inputs for inputs in ensure_tuple(self.inputs) if not inputs.has_isotropic_normal_fields), None
        )
        if not self.average:
            yield ("burn_in",), "is the start of the averages: write `average: true`, or remove burn_in"
        elif max(ensure_tuple(self.burn_in)) >= self.t[-1]:
            yield ("burn_in",), f"must be less than the last time t = {self.t[-1]:g}, where the averages are recorded"
        elif unsuited is not None:
            label = format_inputs_label(unsuited)
            yield ("average",), f"averages of the weights need gaussian inputs of equal variance, not {label}"
        elif self.dtype == "float32":
            yield ("dtype",), "averages of the weights need float64: a float32 sum over many steps loses its last terms"
        elif self.corrections:
            yield ("corrections",), "are derived for the last weights only: remove average or corrections"

    def _find_time_function_problems(self) -> Iterator[Problem]:
        if not self.time_dependent_keys:
            return
        yield from super()._find_time_function_problems()
        if self.corrections and (self.optimal_keys or max(ensure_tuple(self.K)) > 1):
            yield ("corrections",), f"need one student, K = 1, if {self.time_dependent_keys[0]} is a function of time"
        if self.optimal_keys and not self.has_equal_starts:
            yield ("start",), "an optimal learning rate needs students with equal starts"

    def _find_size_problems(self) -> Iterator[Problem]:
        """Find the first combination of N, K and inputs that online perceptrons cannot have."""
        for K, N in self.list_value_pairs("K", "N"):
            if N < K + 1:
                yield (
                    ("N",),
                    f"N = {N} is too small for a teacher and K = {K} students: N must be at least K + 1",
                )
                return
        if problem := next(chain(find_input_dimension_problems(self), find_unsuited_online_inputs(self)), None):
            yield problem

    def find_input_file_problems(self) -> Iterator[Problem]:
        return find_input_table_problems(self)

    def data_digests(self) -> dict[str, str]:
        return compute_input_table_digests(self)

    def _find_correction_problems(self) -> Iterator[Problem]:
        """Find inputs and starts of online perceptrons without corrections of order 1/N."""
        for inputs in ensure_tuple(self.inputs):
            if not inputs.has_isotropic_normal_fields:
                yield (
                    ("corrections",),
                    f"corrections of order 1/N need gaussian inputs, not {format_inputs_label(inputs)}",
                )
                return
        R_start = self.start.R if isinstance(self.start, Start) else 0.0
        if any(abs(R) == 1 for R in (R_start if isinstance(R_start, tuple) else (R_start,))):
            yield (
                ("start",),
                "a student that starts on the teacher's axis, at R = 1 or -1, has no corrections of order 1/N: "
                "choose |R| < 1, or set `corrections: false`",
            )

    @property
    def unsolved(self) -> str:
        has_equations = all(inputs.isotropic or inputs.has_unequal_variances for inputs in ensure_tuple(self.inputs))
        return "" if has_equations else "theory has equations for isotropic inputs, and for inputs with known modes"

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        return (
            {}
            if self.corrections or any(inputs.modes_depend_on_N for inputs in ensure_tuple(self.inputs))
            else {"N": None}
        )

    @property
    def displayed_equations(self) -> tuple[str, ...]:
        structured = any(inputs.has_unequal_variances for inputs in ensure_tuple(self.inputs))
        return (*self.equations[:-2], *UNEQUAL_VARIANCE_EQUATIONS) if structured else self.equations

    @property
    def variables(self) -> dict[str, Variable]:
        structured = any(inputs.has_field_variables for inputs in ensure_tuple(self.inputs))
        return (
            ONLINE_VARIABLES
            | (AVERAGED_VARIABLES if self.average else {})
            | (ONLINE_LOCAL_FIELD_VARIABLES if structured else {})
            | ({"gram": GRAM_VARIABLE} if self.gram else {})
        )

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        variables = (self.correction_variables if self.corrections else {}) | super().theory_only_variables
        if any(inputs.has_unequal_variances for inputs in ensure_tuple(self.inputs)):
            variables = variables | {
                name: variable for name, variable in ONLINE_LOCAL_FIELD_VARIABLES.items() if name not in self.variables
            }
        return (
            variables
            if self.has_equal_starts
            else {**variables, "eps_g_majority_vote_error": VOTE_INTEGRATION_ERROR_VARIABLE}
        )

    @property
    def correction_variables(self) -> dict[str, Variable]:
        """Standard deviations and biases of online perceptrons to order 1/N, for single students and equal pairs."""
        variables: dict[str, Variable] = {}
        for name in CORRECTED_STUDENT_VARIABLES:
            variables |= make_std_variable(name, ONLINE_VARIABLES[name]) | make_bias_variable(
                name, ONLINE_VARIABLES[name]
            )
        single_student = max(ensure_tuple(self.K)) == 1
        ensemble = {
            name: variable
            for name, variable in PAIR_CORRECTION_VARIABLES.items()
            if not (single_student and name.startswith("q"))
        }
        return variables | (ensemble if self.has_equal_starts else {})

    def estimate_seconds_per_seed(self) -> float:
        cells = math.prod(self.shape.values())
        pairs = self.list_value_pairs("K", "N")
        votes = len(self.t) * cells / len(pairs)
        batched_fraction = self._compute_batched_fraction() if cells * self.seeds >= 2 * self.seeds_per_batch else 0.0
        call_seconds = cells * (
            batched_fraction * COMBINATION_SECONDS / self.seeds
            + (1 - batched_fraction) * BATCH_OVERHEAD_SECONDS / min(self.seeds, self.seeds_per_batch)
        )
        vote_seconds = votes * sum(_estimate_vote_seconds(K, N, self.has_equal_starts) for K, N in pairs)
        return call_seconds + vote_seconds + self._compute_step_slowdown() * super().estimate_seconds_per_seed()

    def _estimate_step_seconds(self, cell: OnlineCell) -> float:
        """Estimate the seconds per step and seed of an ensemble of online perceptrons."""
        if cell.inputs.has_isotropic_normal_fields or self.engine == "vectors":
            return _estimate_student_step_seconds(self.engine, cell.K * (2 if cell.average else 1), cell.N)
        if not cell.num_gram_variance_groups:
            return _estimate_student_step_seconds("vectors", cell.K, cell.N)
        padding = math.ceil(self.seeds / GROUPS_BATCH) * GROUPS_BATCH / self.seeds
        return (
            padding
            * GROUPS_SLOWDOWN
            * cell.num_gram_variance_groups
            * _estimate_student_step_seconds("gram", cell.K, cell.N)
        )

    def _compute_batched_fraction(self) -> float:
        """Return the fraction of a sweep of online perceptrons that can be batched in one call."""
        gram = [self.engine == "gram" and inputs.has_isotropic_normal_fields for inputs in ensure_tuple(self.inputs)]
        few_students = [K <= MAX_BATCHED_STUDENTS for K in ensure_tuple(self.K)]
        constant = [t0 is None for t0 in ensure_tuple(self.schedule)]
        return float(np.mean(gram) * np.mean(few_students) * np.mean(constant))

    def _compute_step_slowdown(self) -> float:
        """Return the mean slowdown factor of an online step due to drift, decay and schedules."""
        drifting = float(np.mean([rate > 0 for rate in ensure_tuple(self.drift)]))
        changing = any(
            value != TIME_DEPENDENCE_DEFAULTS[name]
            for name in ("decay", "schedule")
            for value in ensure_tuple(getattr(self, name))
        )
        return drifting * DRIFT_SLOWDOWN + (1 - drifting) * (DECAY_SLOWDOWN if changing else 1.0)

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of the engine and the equations of online perceptrons.

        Programs differ by rule and K, and by N if the engine uses weight vectors.

        A drifting teacher, and other changes with time, need separate programs.
        """
        program_keys: set[Any] = set()
        for cell in self.cells():
            direct = self.engine == "vectors" or not (
                cell.inputs.has_isotropic_normal_fields or cell.num_gram_variance_groups
            )
            changing = cell.has_time_dependence and (cell.annealing, *dict(cell.controls))
            vector_size = (cell.N, cell.inputs) if direct else (cell.num_gram_variance_groups,)
            variant = cell.K, changing, cell.drift > 0, cell.resample is not None, cell.average
            program_keys.add((get_real_parameter_family(cell.rule), *variant, *vector_size))
            if not self.unsolved and cell.inputs.isotropic:
                program_keys.add((1 if cell.has_equal_starts else cell.K, changing, cell.resample is not None))
        return program_keys

    def make_specific_values(self, values: dict[str, Any]) -> dict[str, Any]:
        return {"average": self.average}

    @property
    def has_equal_starts(self) -> bool:
        """True if all students of an ensemble start with the same order parameters."""
        return (self.start if isinstance(self.start, Start) else DRAWN_START_LARGE_N_LIMIT).has_equal_starts

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the dataset dimensions other than the sweep axes."""
        students = max(ensure_tuple(self.K))
        coordinates = super().recorded_coordinates | {"student": np.arange(1, students + 1)}
        return coordinates | ({name: np.arange(students + 1) for name in ("row", "column")} if self.gram else {})


def _estimate_student_step_seconds(engine: str, K: int, N: int) -> float:
    """Estimate the seconds per online step of K perceptrons."""
    if engine == "vectors":
        return VECTORS_STEP_SECONDS + VECTORS_STEP_SECONDS_PER_DIMENSION * N
    largest = max(GRAM_STEP_SECONDS_BY_K)
    measured = np.interp(np.log(K), np.log(list(GRAM_STEP_SECONDS_BY_K)), np.log(list(GRAM_STEP_SECONDS_BY_K.values())))
    return float(np.exp(measured)) * max(K / largest, 1.0) ** 2


def _estimate_vote_seconds(K: int, N: int, equal_starts: bool) -> float:
    """Estimate the seconds per majority vote of K online perceptrons, for one seed at one time."""
    if K <= MAX_EXACT_STUDENTS:
        return EXACT_VOTE_SECONDS if K > 2 else 0.0
    from statmech.students.ensemble_vote import (  # imported late, because it loads SciPy
        NUM_TEST_CIRCLES,
        choose_test_circle_count,
    )

    return VOTE_SECONDS_PER_CIRCLE * K * (choose_test_circle_count(K, N) if equal_starts else NUM_TEST_CIRCLES)
