r"""Scenarios of online learning of two clusters: every example is new, and its label is its cluster.

A config file with the keys `clusters` and `rule` becomes an `OnlineClusters`, the input of `simulate.run` and
`theory.solve`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from statmech.convex.clusters import CLUSTERS, GaussianClusters, TwoClusters
from statmech.errors import Problem
from statmech.inputs import Inputs, inputs_to_config
from statmech.modes import condense_modes
from statmech.parameters import format_parameter_value, get_real_parameter_family
from statmech.rules import RULES, Bayes
from statmech.scenarios.axes import NameOrAxis, NumberOrAxis, ensure_tuple
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.cells import hash_identity
from statmech.scenarios.gaussian_clusters import (
    CLUSTER_THEORY_VARIABLES,
    CLUSTER_VARIABLES,
    UNSUPPORTED_CLUSTER_KEY_REASON,
    UNSUPPORTED_TEACHER_KEYS,
    find_cluster_input_problems,
)
from statmech.scenarios.initial_conditions import Start
from statmech.scenarios.inputs_key import InputsAxis, find_unsuited_online_inputs, make_inputs_field
from statmech.scenarios.keys import (
    PARAMETERS,
    DimensionAxis,
    NonnegativeAxis,
    Times,
    config_key,
    make_keyword_or_section_type,
    one_of,
)
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
    OnlineCell,
    Scenario,
    find_start_problems,
)
from statmech.scenarios.schedules import OptionalSchedule
from statmech.scenarios.step_sizes import find_annealing_problems, find_excessive_rates, find_step_count_problems
from statmech.scenarios.variables import Variable
from statmech.schedules import LEARNING_RATE_SCHEDULES

STEP_SECONDS_PER_VARIANCE_GROUP = 1.3e-7  # per step and group of equal variance, on one core
CLUSTER_TIME_DEPENDENCE_DEFAULTS = {
    name: default for name, default in TIME_DEPENDENCE_DEFAULTS.items() if name != "drift"
}
MEASURED_CLUSTER_VARIABLES = {**CLUSTER_VARIABLES, "length": ONLINE_VARIABLES["length"]}
ONLINE_CLUSTER_VARIABLES = {
    name: replace(MEASURED_CLUSTER_VARIABLES[name], dims=("t",))
    for name in ("m_field", "length_field", "length", "eps_g")
}
CLUSTER_REFERENCE_VARIABLES = {
    "eps_bayes": replace(CLUSTER_THEORY_VARIABLES["eps_bayes"], dims=("t",)),
    "eps_known": CLUSTER_THEORY_VARIABLES["eps_known"],
}


class OnlineClusters(AbstractScenario):
    """A student that learns to separate two clusters online by a rule.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = OnlineClusters(clusters="gaussian", rule=["hebb", "adatron"], N=100, t=[1, 5], positives=[0.5, 0.2])
    >>> scenario.shape
    {'rule': 2, 'positives': 2}
    """

    CHOICE: ClassVar = "rule"
    KINDS: ClassVar = RULES
    FURTHER_CLASS_CHOICES: ClassVar = {"clusters": CLUSTERS}
    AXES: ClassVar = (
        "rule",
        "clusters",
        "inputs",
        "distance",
        "positives",
        PARAMETERS,
        "N",
        *CLUSTER_TIME_DEPENDENCE_DEFAULTS,
    )
    OMITTED_DEFAULTS: ClassVar = CLUSTER_TIME_DEPENDENCE_DEFAULTS
    UNSUPPORTED_KEYS: ClassVar = {
        "loss": "clusters are learnt by a rule or by a loss: remove one of the two keys",
        "K": "clusters are learnt online by one student: remove {}",
        **dict.fromkeys((*UNSUPPORTED_TEACHER_KEYS, "drift"), UNSUPPORTED_CLUSTER_KEY_REASON),
    }
    TITLE: ClassVar = "online learning of two clusters"
    CITES: ClassVar = ("miyoshi2005", "mignacco2020")
    SIMULATION_ONLY_KEYS: ClassVar = ("engine",)
    seeds_per_batch: ClassVar = Scenario.seeds_per_batch
    dtype: ClassVar = "float64"
    equations: ClassVar = (
        r"\mathbf J \leftarrow \mathbf J + \eta\,y\,g(\kappa, l)\,\mathbf x",
        r"\kappa = y\,\mathbf J\cdot\mathbf x/l",
        r"\epsilon_g = \sum_y\pi_y\,\Phi\left(-s_ym_h/l_h\right)",
    )

    clusters: Annotated[NameOrAxis, one_of(CLUSTERS, "a kind of clusters")] = Field(
        description="clusters of inputs, which are their labels"
    )
    rule: Annotated[NameOrAxis, one_of(RULES, "a learning rule")] = Field(description="learning rule")
    N: DimensionAxis = config_key(1000, description="input dimension", symbol="$N$")
    inputs: InputsAxis = make_inputs_field(
        "distribution of the inputs, around the centre of their cluster; the `teacher` of a spectrum is the difference "
        "of the centres"
    )
    decay: NonnegativeAxis = DECAY_FIELD
    schedule: OptionalSchedule = SCHEDULE_FIELD
    annealing: Annotated[NameOrAxis, one_of(LEARNING_RATE_SCHEDULES, "a schedule of the learning rate")] = (
        ANNEALING_FIELD
    )
    t: Times = RECORDED_TIMES_FIELD
    start: Annotated[Any, make_keyword_or_section_type(["drawn"], Start, "a start")] = Field(
        default="drawn",
        description="start, at t = 0: drawn (entries from N(0,1)) or {length, R}, R with the centres' difference",
    )
    engine: Literal["gram", "vectors"] = ENGINE_FIELD
    figure: str | None = Field(default="clusters_online", description="published figure, to draw")

    if TYPE_CHECKING:  # show editors and type checkers the parameters of clusters and rules
        distance: InitVar[NumberOrAxis] = 2.0
        positives: InitVar[NumberOrAxis] = 0.5
        eta: InitVar[NumberOrAxis] = 1.0
        assumed_flip: InitVar[NumberOrAxis] = 0.0
        margin: InitVar[NumberOrAxis] = 0.0

    def _find_problems(self) -> Iterator[Problem]:
        yield from find_step_count_problems(self.t[-1], max(ensure_tuple(self.N)))
        if any(issubclass(RULES[name], Bayes) for name in ensure_tuple(self.rule)):
            yield ("rule",), 'the rule "bayes" is the posterior mean of a teacher, and clusters have no teacher'
        else:
            yield from find_start_problems(self.start, ensure_tuple(self.rule), [1], self.dtype)
        yield from list(find_cluster_input_problems(self)) or list(find_unsuited_online_inputs(self))
        for decay, N in self.list_value_pairs("decay", "N") if "decay" in self.axis_values() else ():
            if problem := next(find_excessive_rates("decay", decay, N), None):
                yield problem
                return
        yield from find_annealing_problems(self.schedule, self.annealing)

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        return {"N": None}

    @property
    def variables(self) -> dict[str, Variable]:
        return ONLINE_CLUSTER_VARIABLES

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        return CLUSTER_REFERENCE_VARIABLES

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the recorded times."""
        return {"t": np.asarray(self.t)}

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for all parameter combinations on one core."""
        cells = math.prod(self.shape.values())
        pairs = (
            self.list_value_pairs("inputs", "N")
            if "inputs" in self.axis_values()
            else [(self.inputs, N) for N in ensure_tuple(self.N)]
        )
        return self.t[-1] * cells / len(pairs) * sum(N * self._estimate_step_seconds(inputs, N) for inputs, N in pairs)

    def _estimate_step_seconds(self, inputs: Inputs, N: int) -> float:
        """Estimate the seconds per step."""
        cell = OnlineCell("", RULES["hebb"](), 1, N, inputs.cluster_spectrum or inputs, 0.0, None, ())
        if self.engine == "gram" and cell.num_gram_variance_groups:
            return STEP_SECONDS_PER_VARIANCE_GROUP * cell.num_gram_variance_groups
        return VECTORS_STEP_SECONDS + VECTORS_STEP_SECONDS_PER_DIMENSION * N

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of the engine.

        Programs differ by rule, and by the size of the weight vectors or the number of groups.
        """
        return {
            (
                get_real_parameter_family(cell.rule),
                bool(cell.nondefault_time_dependence),
                cell.num_gram_variance_groups or cell.N,
            )
            for cell in self.cells()
        }

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> OnlineClusterCell:
        return OnlineClusterCell(
            name=values["rule"],
            rule=self.make_component(values),
            K=1,
            N=values["N"],
            inputs=values["inputs"].cluster_spectrum,
            flip=0.0,
            start=self.start if isinstance(self.start, Start) else None,
            index=index,
            **{name: values[name] for name in CLUSTER_TIME_DEPENDENCE_DEFAULTS if name in values},
            clusters=self.make_component(values, "clusters"),
        )


@dataclass(frozen=True)
class OnlineClusterCell(OnlineCell):
    """One grid point: a rule with its parameters, the clusters, the input dimension, and a start."""

    clusters: GaussianClusters = field(default_factory=GaussianClusters)

    @property
    def clusters_with_modes(self) -> TwoClusters:
        """Both clusters, with the modes of the inputs around their centres."""
        modes = self.inputs.modes(self.N)
        assert modes is not None  # true for every spectrum
        return self.clusters.combine_with_modes(condense_modes(modes))

    @property
    def message_description(self) -> str:
        """Description of the rule, the clusters and their parameters for messages."""
        parameters = {**self.rule_parameters, **vars(self.clusters), **self.nondefault_time_dependence}
        listed = ", ".join(f"{name} = {format_parameter_value(value)}" for name, value in parameters.items())
        return f"{self.name} ({listed})"

    def identity_hash(self) -> tuple[int, ...]:
        """Return eight integers that hash the cell's identity (`statmech.scenarios.cells.hash_identity`)."""
        identity = {
            "rule": self.name,
            **self.rule_parameters,
            "clusters": vars(self.clusters),
            "N": self.N,
            "start": self.start.model_dump() if self.start else "drawn",
            "inputs": inputs_to_config(self.inputs),
            **self.nondefault_time_dependence,
        }
        return hash_identity(identity)
