r"""Scenarios of two-layer networks that learn online: activation, units, rates, noise, teacher and start.

A config file with the key `network` becomes a `Network`. Inputs are :math:`\mathbf x\sim N(0, I/N)`, or normal with
unequal variances (`inputs`). The fields are :math:`y_m = \mathbf B_m\cdot\mathbf x` and
:math:`h_k = \mathbf J_k\cdot\mathbf x`. One step is gradient descent on the squared error of one new example,

.. math:: e = \sum_m w_m g(y_m) + \sigma\xi - \sum_k v_k g(h_k), \qquad \delta_k = v_k\,g'(h_k)\,e,

.. math:: \mathbf J_k \leftarrow \mathbf J_k + \eta\,\delta_k\,\mathbf x - \frac{\nu}{N}\mathbf J_k, \qquad
          v_k \leftarrow v_k + \frac{\eta_v}{N}\,g(h_k)\,e,

with :math:`\xi\sim N(0,1)` and the weight decay :math:`\nu`. Time is t = steps/N, and :math:`\epsilon_g = \langle
e^2\rangle/2` without the noise. The outputs are not divided by K.

With dropout each example silences every student unit with probability p, independently: :math:`r_kg` replaces g in e,
and :math:`r_kg` and :math:`r_kg'` replace g and g' in the gradients, with :math:`r_k = 1/(1-p)` for active units and 0
for silent units. :math:`\epsilon_g` is computed with all units, without these factors. Silent units decay as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, field_validator

from statmech.errors import Problem
from statmech.inputs.input_distributions import (
    Gaussian,
    Inputs,
    format_inputs_label,
    inputs_to_config,
)
from statmech.keys.initial_states import (
    NetworkStart,
    StudentUnits,
    TeacherSection,
    is_permutation_symmetric,
    make_learnt_start,
)
from statmech.keys.inputs_and_examples import (
    InputsAxis,
    find_input_dimension_problems,
    find_unsuited_online_inputs,
    list_inputs_and_dimensions,
    make_inputs_field,
)
from statmech.keys.key_types import (
    PARAMETERS,
    DimensionAxis,
    Nonnegative,
    NonnegativeAxis,
    Number,
    Whole,
    config_key,
    make_keyword_or_section_type,
    one_of,
)
from statmech.keys.sweep_grid import (
    IntegerOrAxis,
    NameOrAxis,
    NumbersOverTime,
    axis_of,
    ensure_tuple,
    rename_keys_for_seeds,
)
from statmech.keys.time_dependent_keys import (
    CONFIG_KEYS_BY_CONTROL,
    OPTIMUM_COORDINATES,
    ControlledCell,
    find_controls,
    format_cell_description,
    make_time_function_type,
)
from statmech.keys.variables import Variable
from statmech.kinds.online_learning import (
    BATCH_OVERHEAD_SECONDS,
    OnlineLearning,
    RecordedTimes,
    SimulationDtype,
    SimulationEngine,
    count_gram_variance_groups,
)
from statmech.parameters.parameter_fields import ConfigKey, get_parameters, get_real_parameter_family
from statmech.parameters.schedules_and_controls import (
    CONSTANT_SCHEDULE,
    TimeDependence,
    control_to_config,
    get_initial_value,
)
from statmech.students.activations import ACTIVATIONS, Activation, Linear

MAX_UNITS_PER_NETWORK = 64
TEACHER_KEYWORD_HINTS = {
    name: f"the activation of the teacher is written teacher: {{network: {name}}}" for name in ACTIVATIONS
}
NUMERIC_NETWORK_KEYS = ("M", "K", "N", "eta", "eta_v", "noise", "decay")  # single numbers at a grid point
MAX_DIRECTION_VARIANCE_FRACTION = 0.1  # fraction of variance; theory is not tested for more
MAX_QUADRATURE_UNITS = 4  # units K + M, if averages have no closed forms

UnitCountAxis = Annotated[
    IntegerOrAxis,
    axis_of(
        Annotated[Whole, Field(ge=1, le=MAX_UNITS_PER_NETWORK)],
        {"type": "integer", "minimum": 1, "maximum": MAX_UNITS_PER_NETWORK},
    ),
]
DropoutOverTime = Annotated[
    NumbersOverTime,
    make_time_function_type(
        Annotated[Nonnegative, Field(lt=1)],
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
        is_optimisable=True,
    ),
]
EtaOverTime = Annotated[
    NumbersOverTime,
    make_time_function_type(
        Annotated[Number, Field(gt=0)], {"type": "number", "exclusiveMinimum": 0}, is_optimisable=True
    ),
]
NoiseOverTime = Annotated[
    NumbersOverTime, make_time_function_type(Nonnegative, {"type": "number", "minimum": 0}, is_optimisable=False)
]

SYMMETRIC_START_NOTE = (
    "the start is symmetric: in a run fluctuations of order 1/sqrt(N) end the plateau, and units specialise; the "
    "equations stay on the plateau"
)
IDENTICAL_START_NOTE = "the student units start identical, and remain so: they learn no more than one unit"
DRAWN_NETWORK_START = NetworkStart.model_validate({"drawn": 1.0})

NETWORK_VARIABLES = {
    "eps_g": Variable(("t",), "generalization error: mean squared error over 2, without noise", r"$\epsilon_g$"),
    "R": Variable(("t", "student", "teacher_unit"), "overlap of student and teacher units, J_k.B_m/N", "$R$"),
    "Q": Variable(("t", "student", "other"), "overlap of two student units, J_k.J_l/N", "$Q$"),
    "v": Variable(("t", "student"), "weight of a student unit in the output", "$v$"),
    "specialisation": Variable(
        ("t",), "mean cosine of student and teacher units, each with its best partner", "specialisation"
    ),
}
# both signs, to find the sign of an activation
ACTIVATION_SIGN_TEST_FIELDS = np.array([-4.0, -1.0, -1e-3, 1e-3, 1.0, 4.0])
LABEL_ERROR_VARIABLE = Variable(
    ("t",),
    "fraction of new inputs on which the sign of the output is not the label; where either is 0, half",
    "label error",
    in_theory=False,
)
# seconds per step of a seed, on one core in float64; a unit is one of the K + M student and teacher units
NETWORK_STEP_SECONDS, NETWORK_STEP_SECONDS_PER_UNIT, NETWORK_STEP_SECONDS_PER_PAIR = 2e-8, 8e-9, 1.3e-9
NETWORK_STEP_SECONDS_PER_WEIGHT = 6.5e-9


@dataclass(frozen=True)
class NetworkCell(ControlledCell):
    """One grid point: activation, numbers of units, rates, noise, teacher and start."""

    name: str
    activation: Activation
    teacher_activation: Activation
    M: int
    K: int
    N: int
    eta: float
    eta_v: float
    noise: float
    decay: float
    dropout: float
    inputs: Inputs
    teacher: TeacherSection
    start: NetworkStart
    index: tuple[int, ...]

    def replace_values(self, **numbers: Any) -> Self:
        return replace(self, **numbers)

    @property
    def time_dependence(self) -> TimeDependence:
        """Decay, learning rate, noise and dropout as functions of time."""
        time_functions = self.control_polynomials
        rate, noise, dropout = (time_functions.get(name) for name in ("eta", "noise", "dropout"))
        return TimeDependence(0.0, self.decay, rate or CONSTANT_SCHEDULE, noise=noise, dropout=dropout)

    @property
    def program_flags(self) -> tuple[bool, bool, bool]:
        """Flags that select the compiled program: noise, decay and dropout."""
        return self.noise > 0, self.decay > 0, self.has_dropout

    @property
    def has_dropout(self) -> bool:
        """True if dropout silences units for some examples."""
        return self.dropout > 0 or "dropout" in dict(self.controls)

    @property
    def T(self) -> np.ndarray:
        """Overlaps T of the teacher units, shape (M, M)."""
        return self.teacher.compute_matrices(self.M)[0]

    @property
    def w(self) -> np.ndarray:
        """Second-layer weights of the teacher, shape (M,)."""
        return self.teacher.compute_matrices(self.M)[1]

    @property
    def sign(self) -> bool:
        """True if the teacher's output is a label, the sign of the weighted sum."""
        return self.teacher.output == "sign"

    @property
    def drawn(self) -> bool:
        """True if the first-layer weights of the student are drawn at random."""
        return self.start.drawn is not None or (self.start.Q is None and self.start.R is None)

    @property
    def units(self) -> StudentUnits:
        """Student units at t = 0, in the limit of large N if weights are drawn."""
        return self.start.compute_start(self.K, self.M)

    @property
    def averaging_method(self) -> str:
        """Method to average the activation of a network in theory, or an empty string without a method."""
        if self.activation.has_closed_forms:
            return "line integral" if self.activation.kinks else "closed form"
        smooth = not self.activation.kinks and self.K + self.M <= MAX_QUADRATURE_UNITS
        return "quadrature" if smooth else ""

    @property
    def unsolved(self) -> str:
        """Reason why theory has no equations for this network, or an empty string."""
        if self.sign and self.M > 1:
            return f"theory has no equations for labels of a teacher of several units, here M = {self.M}"
        if self.sign and not self.teacher_preserves_sign:
            return "theory has equations for labels of teacher units whose g(x) has the sign of x only"
        if self.sign and type(self.activation).S2 is Activation.S2:
            return f"theory has no equations for students of {self.name} units that learn labels"
        if not self.sign and self.teacher_activation != self.activation:
            return "theory has equations for teacher units with the students' activation only"
        if not (self.inputs.isotropic or self.activation.has_closed_forms) and self.sign:
            return "theory has no equations for labels by quadrature where inputs are of unequal variance"
        if not self.averaging_method:
            reason = "has kinks" if self.activation.kinks else f"needs quadrature, here over {self.K + self.M} fields"
            return f"theory has no equations for {self.name} units: the activation has no closed forms, and {reason}"
        return ""

    @property
    def teacher_preserves_sign(self) -> bool:
        """True if the activation g(x) of the teacher network has the sign of x.

        Then the label of a single unit is the sign of its field.
        """
        return bool(
            np.array_equal(
                np.sign(self.teacher_activation.both(ACTIVATION_SIGN_TEST_FIELDS)[0]),
                np.sign(ACTIVATION_SIGN_TEST_FIELDS),
            )
        )

    @property
    def has_identical_start(self) -> bool:
        """True if all student units are identical at the start, and there is no dropout.

        The units then get the same updates and stay identical.
        """
        equal_starts = self.K > 1 and not self.drawn and all(np.ptp(part, axis=0).max() == 0 for part in self.units)
        return equal_starts and not self.has_dropout

    @property
    def has_symmetric_start(self) -> bool:
        """True if the units of the network differ at the start, but can be exchanged without any effect.

        Equations of order parameters then cannot distinguish these units. Linear units have no plateau, because only
        their sum matters.
        """
        if self.K == 1 or isinstance(self.activation, Linear) or self.has_identical_start:
            return False
        R, Q, v = self.units
        return all(map(is_permutation_symmetric, (Q, self.T))) and all(np.ptp(values) == 0 for values in (R, v, self.w))

    @property
    def num_gram_variance_groups(self) -> int:
        """Number of equal-variance groups in the Gram engine, or 0 if weight vectors are simulated."""
        return count_gram_variance_groups(self.inputs, self.K + self.M, self.N)

    @property
    def activation_parameters(self) -> dict[str, Any]:
        """Parameters of the activation, by name."""
        return {name: getattr(self.activation, name) for name in get_parameters(self.activation)}

    @property
    def message_description(self) -> str:
        """Description of the activation and the numeric keys for messages."""
        numbers = {name: getattr(self, name) for name in NUMERIC_NETWORK_KEYS} | self._used_dropout
        return format_cell_description(self.name, numbers | self.activation_parameters | dict(self.controls))

    @property
    def _used_dropout(self) -> dict[str, float]:
        """The key and value of dropout, if used.

        Cells without dropout omit it, to keep the identity and random numbers of earlier versions.
        """
        return {"dropout": self.dropout} if self.has_dropout else {}

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this network, keyed by the names used in random seeds."""
        matrices = {
            "T": self.T.tolist(),
            "w": self.w.tolist(),
            **{k: m.tolist() for k, m in self.units._asdict().items()},
        }
        identity = {
            "network": self.name,
            **self.activation_parameters,
            **rename_keys_for_seeds({name: getattr(self, name) for name in NUMERIC_NETWORK_KEYS}, {"noise": "sigma"}),
            **matrices,
            "drawn": self.drawn,
            "output": self.teacher.output,
        }
        identity |= self._used_dropout | {name: control_to_config(control) for name, control in self.controls}
        if self.teacher.network:
            identity["teacher"] = self.teacher.network
        if self.inputs != Gaussian():
            identity["inputs"] = inputs_to_config(self.inputs)
        return identity


class Network(OnlineLearning):
    """Two-layer networks that learn online from a teacher network.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> network = Network(network="erf", M=2, K=[2, 3], N=1000, eta=1.5, t=[0, 10], seeds=4)
    >>> network.shape, [cell.K for cell in network.cells()]
    ({'K': 2}, [2, 3])
    """

    CHOICE: ClassVar = "network"
    CELL_CLASS: ClassVar[type[NetworkCell]] = NetworkCell
    KINDS: ClassVar = ACTIVATIONS
    OPTIMISABLE_KEYS: ClassVar = ("eta", "dropout")
    STEPWISE_TIME_FUNCTION_KEYS: ClassVar = ("noise",)
    AXES: ClassVar[tuple[str, ...]] = (
        *("network", "M", "K", "N", "inputs", "eta", "eta_v", "noise", "decay", "dropout", PARAMETERS),
    )
    OMITTED_DEFAULTS: ClassVar = {"inputs": Gaussian(), "dropout": 0.0}
    TITLE: ClassVar = "networks"
    CITES: ClassVar[tuple[str, ...]] = ("saad1995", "biehl1995", "goldt2019")
    UNEQUAL_VARIANCE_CITES: ClassVar = ("yoshida2019",)
    NON_KEY_COORDINATES: ClassVar = {
        "student": ConfigKey("student", "student, a unit of the network", int),
        "other": ConfigKey("other", "another student, or the same", int),
        "teacher_unit": ConfigKey("teacher_unit", "teacher unit", int),
        "other_teacher_unit": ConfigKey("other_teacher_unit", "another teacher unit, or the same", int),
        "teacher_T": ConfigKey("teacher_T", "overlap of two teacher units, B_m.B_n/N", symbol="$T$"),
        "w": ConfigKey("w", "weight of a teacher unit in the output", symbol="$w$"),
        **OPTIMUM_COORDINATES,
    }
    USUAL_X_KEY: ClassVar = "t"
    SHOWS_SINGLE_RUNS: ClassVar = True  # they leave the plateau at different times
    equations: ClassVar = (
        r"e = \sum_m w_m g(y_m) + \sigma\xi - \sum_k v_k g(h_k)",
        r"\mathbf J_k \leftarrow \mathbf J_k + \eta\,v_k\,g'(h_k)\,e\,\mathbf x",
        r"v_k \leftarrow v_k + \tfrac{\eta_v}{N}\,g(h_k)\,e",
        r"\epsilon_g = \tfrac12\langle e^2\rangle",
    )

    network: Annotated[NameOrAxis, one_of(ACTIVATIONS, "an activation")] = Field(description="activation of the units")
    M: UnitCountAxis = config_key(2, description="number of teacher units", symbol="$M$")
    K: UnitCountAxis = config_key(2, description="number of student units, the hidden units", symbol="$K$")
    N: DimensionAxis = config_key(10_000, description="input dimension", symbol="$N$")
    inputs: InputsAxis = make_inputs_field()
    eta: EtaOverTime = config_key(1.0, description="learning rate, of the first layer of a network", symbol=r"$\eta$")
    eta_v: NonnegativeAxis = config_key(
        0.0, description="learning rate of the second layer; 0 keeps it fixed", symbol=r"$\eta_v$"
    )
    noise: NoiseOverTime = config_key(
        0.0, description="standard deviation of the noise, on the teacher's output", symbol=r"$\sigma$"
    )
    decay: NonnegativeAxis = config_key(
        0.0,
        description="weight decay, of the first layer: a step subtracts decay/N times the weights",
        symbol=r"$\nu$",
    )
    dropout: DropoutOverTime = config_key(
        0.0,
        description="dropout: probability that a unit is silent, for each example; active ones count 1/(1 - p) times",
        symbol="$p$",
    )
    teacher: Annotated[
        Any, make_keyword_or_section_type(["orthonormal"], TeacherSection, "a teacher", TEACHER_KEYWORD_HINTS)
    ] = Field(
        default=TeacherSection.model_validate({}),
        description="teacher, orthonormal or {T, w, output}: products, output weights, linear or sign",
    )
    start: Annotated[Any, make_keyword_or_section_type(["drawn", "learnt"], NetworkStart, "a start")] = Field(
        default="drawn",
        description="start, at t = 0: drawn (entries from N(0,1)), learnt (the teacher's units; others vanish), "
        "{drawn: variance, v} or {Q, R, v}",
    )
    t: RecordedTimes
    dtype: SimulationDtype = "float64"
    engine: SimulationEngine = "gram"

    @field_validator("teacher")
    @classmethod
    def _convert_to_section(cls, teacher: str | TeacherSection) -> TeacherSection:
        """Convert a teacher given as a keyword to a section."""
        return TeacherSection.model_validate({"T": teacher}) if isinstance(teacher, str) else teacher

    def _find_problems(self) -> Iterator[Problem]:
        yield from self._find_size_problems()
        yield from self._find_step_problems()
        yield from self._find_input_problems()
        yield from (matrix_problems := list(self._find_matrix_problems()))
        if self.teacher.output == "sign" and not matrix_problems:
            yield from self._find_constant_labels()
        yield from self._find_control_problems(matrix_problems)

    def _find_control_problems(self, matrix_problems: list[Problem]) -> Iterator[Problem]:
        """Find functions of time that are not supported for networks."""
        yield from self._find_time_function_problems()
        if any(options.points > 1 for options in self.optimal_keys.get("dropout", ())):
            yield ("dropout",), "an optimal dropout is constant on segments: between points it would leave its bounds"
        if not matrix_problems and self.optimal_keys:
            if self.unsolved:
                first = next(iter(self.optimal_keys))
                yield (CONFIG_KEYS_BY_CONTROL.get(first, first),), f"has no optimum without equations: {self.unsolved}"
            elif self.has_symmetric_start or self.has_identical_start:
                yield (
                    ("start",),
                    "an optimum needs students that start unequal, because others stay on the plateau: "
                    "give their overlaps, as in start: {Q: 0.25, R: {diagonal: 0.05}}",
                )

    def _find_size_problems(self) -> Iterator[Problem]:
        """Find the first network with too many units K or M for its N."""
        for values in self.iterate_combinations("K", "M", "N"):
            K, M, N = (values[name] for name in ("K", "M", "N"))
            if N < K + M:
                units = f"M = {M} teacher units and K = {K} student units"
                yield ("N",), f"N = {N} is too small for {units}: N must be at least K + M"
                return

    def _find_input_problems(self) -> Iterator[Problem]:
        """Find the first distribution of inputs that networks do not support."""
        not_normal = (
            (("inputs",), _explain_nonnormal_fields(inputs))
            for inputs in ensure_tuple(self.inputs)
            if not inputs.normal_fields
        )
        combinations = self.iterate_combinations("inputs", "N", "K", "M", "network")
        direction_problems = (problem for values in combinations if (problem := _find_teacher_unit_problem(**values)))
        if problem := next(
            chain(
                find_input_dimension_problems(self), find_unsuited_online_inputs(self), not_normal, direction_problems
            ),
            None,
        ):
            yield problem

    def _find_matrix_problems(self) -> Iterator[Problem]:
        """Find the first problem in the matrices of the teacher network or the student network."""
        for K, M in self.list_value_pairs("K", "M"):
            for sentence in self.teacher.problems(M, self.dtype):
                yield ("teacher",), sentence
                return
            if self.start == "learnt" and K < M:
                yield (
                    ("start",),
                    f"learnt needs a student unit for each unit of the teacher: K = {K} is less than M = {M}",
                )
                return
            for sentence in self.make_start(K, M).problems(K, self.teacher.compute_matrices(M)[0], self.dtype):
                yield ("start",), sentence
                return

    def _find_constant_labels(self) -> Iterator[Problem]:
        """Find teacher networks with `output: sign` that give all examples the same label."""
        for cell in self.cells():
            g = cell.teacher_activation.both(ACTIVATION_SIGN_TEST_FIELDS)[0]
            terms = np.outer(cell.w, [g.min(), g.max()])
            if terms.min() >= 0 or terms.max() <= 0:
                sign = "negative" if terms.min() >= 0 else "positive"
                units = f"a weighted sum of {cell.teacher_activation.label} units is never {sign} with these w"
                reason = f"output sign gives all examples the same label, as {units}"
                yield ("teacher",), f"{reason}; use weights of both signs, or erf units"
                return

    def make_start(self, K: int, M: int) -> NetworkStart:
        """Return the student units at t = 0, also if the start is a keyword."""
        if isinstance(self.start, NetworkStart):
            return self.start
        return DRAWN_NETWORK_START if self.start == "drawn" else make_learnt_start(K, *self.teacher.compute_matrices(M))

    @property
    def variables(self) -> dict[str, Variable]:
        return NETWORK_VARIABLES | ({"label_error": LABEL_ERROR_VARIABLE} if self.teacher.output == "sign" else {})

    @property
    def unsolved(self) -> str:
        """Reason why theory can solve no network of the sweep, or an empty string."""
        reason = ""
        for cell in self.cells():
            if not (cell_reason := cell.unsolved):
                return ""
            reason = reason or cell_reason
        return reason

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        return {} if any(inputs.modes_depend_on_N for inputs in ensure_tuple(self.inputs)) else {"N": None}

    @property
    def has_equal_starts(self) -> bool:
        """False, because student units with equal starts specialise to different teacher units."""
        return False

    @property
    def has_fast_theory(self) -> bool:
        """True unless theory averages over four or more fields by quadrature."""
        return all(
            cell.averaging_method != "quadrature" or cell.K + cell.M < MAX_QUADRATURE_UNITS for cell in self.cells()
        )

    @property
    def has_identical_start(self) -> bool:
        """True if some network has identical student units at the start."""
        return any(cell.has_identical_start for cell in self.cells())

    @property
    def has_symmetric_start(self) -> bool:
        """True if some network starts in a symmetric state, so that theory stays on the plateau."""
        return any(cell.has_symmetric_start for cell in self.cells())

    @property
    def expected_deviation_reason(self) -> str:
        return SYMMETRIC_START_NOTE if self.has_symmetric_start else self._explain_dominant_direction()

    def _explain_dominant_direction(self) -> str:
        """Explain why theory of networks is inexact if one direction dominates the variance of the inputs."""
        for inputs, N in list_inputs_and_dimensions(self):
            modes = inputs.modes(N)
            if modes is not None and (fraction := float(modes.variances.max()) / N) > MAX_DIRECTION_VARIANCE_FRACTION:
                variance = f"{fraction:.0%} of the variance of {format_inputs_label(inputs)}"
                return f"one direction has {variance}, but theory assumes many comparable directions"
        return ""

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the dataset dimensions other than the sweep axes."""
        students, teachers = (np.arange(1, max(ensure_tuple(number)) + 1) for number in (self.K, self.M))
        units = {"student": students, "other": students, "teacher_unit": teachers, "other_teacher_unit": teachers}
        return super().recorded_coordinates | units

    @property
    def derived_coordinates(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Coordinates T and w of the teacher network, along the sweep dimension of M if M is an axis."""
        dims = tuple(dim for dim, group in self.dimensions.items() if "M" in group)
        numbers, largest = ensure_tuple(self.M), max(ensure_tuple(self.M))
        T, w = np.full((len(numbers), largest, largest), np.nan), np.full((len(numbers), largest), np.nan)
        for index, M in enumerate(numbers):
            T[index, :M, :M], w[index, :M] = self.teacher.compute_matrices(M)
        if not dims:
            T, w = T[0], w[0]
        return {"teacher_T": ((*dims, "teacher_unit", "other_teacher_unit"), T), "w": ((*dims, "teacher_unit"), w)}

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for all parameter combinations on one core."""
        cells = math.prod(self.shape.values())
        call_seconds = cells * BATCH_OVERHEAD_SECONDS / min(self.seeds, self.seeds_per_batch)
        return call_seconds + super().estimate_seconds_per_seed()

    def _estimate_step_seconds(self, cell: NetworkCell) -> float:
        """Estimate the seconds per step and seed of a network."""
        if self.uses_weight_vectors(cell):
            return NETWORK_STEP_SECONDS + NETWORK_STEP_SECONDS_PER_WEIGHT * cell.N
        units = cell.K + cell.M
        return (
            NETWORK_STEP_SECONDS + (NETWORK_STEP_SECONDS_PER_UNIT + NETWORK_STEP_SECONDS_PER_PAIR * units) * units
        ) * max(cell.num_gram_variance_groups, 1)

    def _make_program_key(self, cell: NetworkCell) -> tuple[Any, ...]:
        """Return the activation's family, the numbers of units, and N if the engine uses weight vectors."""
        family, flags = get_real_parameter_family(cell.activation), (cell.sign, *cell.program_flags)
        sizes = (cell.N, cell.inputs) if self.uses_weight_vectors(cell) else (cell.num_gram_variance_groups,)
        return family, cell.K, cell.M, *flags, *dict(cell.controls), *sizes

    def uses_weight_vectors(self, cell: NetworkCell) -> bool:
        """Return True if a cell is simulated with weight vectors instead of the Gram matrix."""
        return self.engine == "vectors" or not (cell.inputs.isotropic or cell.num_gram_variance_groups)

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> NetworkCell:
        activation = self.make_component(values)
        numbers = {name: get_initial_value(values[name]) for name in NUMERIC_NETWORK_KEYS}
        return self.CELL_CLASS(
            name=values["network"],
            activation=activation,
            teacher_activation=ACTIVATIONS[self.teacher.network]() if self.teacher.network else activation,
            dropout=get_initial_value(values.get("dropout", 0.0)),
            controls=find_controls(values),
            inputs=values.get("inputs", Gaussian()),
            teacher=self.teacher,
            index=index,
            **numbers | self.make_specific_values(values),
        )

    def make_specific_values(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values of a cell that are specific to this kind."""
        return {"start": self.make_start(values["K"], values["M"])}


def _explain_nonnormal_fields(inputs: Inputs) -> str:
    """Explain why networks do not support these inputs."""
    reason = "errors of networks are averages over normal fields"
    if inputs.cluster_spectrum:
        spectrum = list(inputs.cluster_spectrum.eigenvalues)
        return f"{reason}, of gaussian inputs, a spectrum or a power_law: write {{spectrum: {spectrum}}}"
    return f"{reason}, of gaussian inputs, a spectrum or a power_law, not of {format_inputs_label(inputs)}"


def _find_teacher_unit_problem(M: int, N: int, inputs: Inputs | None = None, **others: Any) -> Problem | None:
    """Explain why inputs do not allow a teacher network of M perpendicular units, or return None."""
    directions = inputs.count_teacher_axes(N) if inputs else N
    if directions >= M:
        return None
    return ("inputs",), f"M = {M} teacher units cannot have all their power in {directions} of N = {N} directions"
