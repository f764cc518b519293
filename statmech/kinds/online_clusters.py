r"""Scenarios of online learning of two clusters: every example is new, and its label is its cluster.

A config file with the keys `clusters` and `rule` becomes an `OnlineClusters`, the input of `simulate.run` and
`theory.solve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from statmech.convex.gaussian_clusters import CLUSTERS, GaussianClusters, TwoClusters
from statmech.errors import Problem
from statmech.inputs.covariance_modes import condense_modes
from statmech.inputs.input_distributions import inputs_to_config
from statmech.keys.inputs_and_examples import InputsAxis, find_unsuited_online_inputs, make_inputs_field
from statmech.keys.key_types import PARAMETERS, DimensionAxis, config_key, one_of
from statmech.keys.sweep_grid import NameOrAxis, NumberOrAxis
from statmech.kinds.online_learning import (
    RATE_KEY_DEFAULTS,
    OnlineCell,
    OnlineStudent,
    SimulationEngine,
    StudentStart,
    make_start_field,
)
from statmech.kinds.online_perceptron import ONLINE_VARIABLES
from statmech.kinds.risk_clusters import (
    CLUSTER_THEORY_VARIABLES,
    CLUSTER_VARIABLES,
    UNSUPPORTED_CLUSTER_KEY_REASON,
    UNSUPPORTED_TEACHER_KEYS,
    find_cluster_input_problems,
)

STEP_SECONDS_PER_VARIANCE_GROUP = 1.3e-7  # per step and group of equal variance, on one core
MEASURED_CLUSTER_VARIABLES = {**CLUSTER_VARIABLES, "length": ONLINE_VARIABLES["length"]}
ONLINE_CLUSTER_VARIABLES = {
    name: replace(MEASURED_CLUSTER_VARIABLES[name], dims=("t",))
    for name in ("m_field", "length_field", "length", "eps_g")
}
CLUSTER_REFERENCE_VARIABLES = {
    "eps_bayes": replace(CLUSTER_THEORY_VARIABLES["eps_bayes"], dims=("t",)),
    "eps_known": CLUSTER_THEORY_VARIABLES["eps_known"],
}


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
    def example_parameters(self) -> dict[str, Any]:
        return vars(self.clusters)

    @property
    def example_identity(self) -> dict[str, Any]:
        return {"clusters": vars(self.clusters), "N": self.N, "inputs": inputs_to_config(self.inputs)}


class OnlineClusters(OnlineStudent):
    """A student that learns to separate two clusters online by a rule.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = OnlineClusters(clusters="gaussian", rule=["hebb", "adatron"], N=100, t=[1, 5], positives=[0.5, 0.2])
    >>> scenario.shape
    {'rule': 2, 'positives': 2}
    """

    FURTHER_CLASS_CHOICES: ClassVar = {"clusters": CLUSTERS}
    AXES: ClassVar = ("rule", "clusters", "inputs", "distance", "positives", PARAMETERS, "N", *RATE_KEY_DEFAULTS)
    CELL_CLASS: ClassVar = OnlineClusterCell
    EXAMPLES_WITHOUT_TEACHER: ClassVar = "clusters"
    UNSUPPORTED_KEYS: ClassVar = {
        "loss": "clusters are learnt by a rule or by a loss: remove one of the two keys",
        "K": "clusters are learnt online by one student: remove {}",
        **dict.fromkeys((*UNSUPPORTED_TEACHER_KEYS, "drift"), UNSUPPORTED_CLUSTER_KEY_REASON),
    }
    TITLE: ClassVar = "online learning of two clusters"
    CITES: ClassVar = ("miyoshi2005", "mignacco2020")
    dtype: ClassVar = "float64"
    equations: ClassVar = (
        r"\mathbf J \leftarrow \mathbf J + \eta\,y\,g(\kappa, l)\,\mathbf x",
        r"\kappa = y\,\mathbf J\cdot\mathbf x/l",
        r"\epsilon_g = \sum_y\pi_y\,\Phi\left(-s_ym_h/l_h\right)",
    )
    keys_ignored_by_theory: ClassVar = {"N": None}
    variables: ClassVar = ONLINE_CLUSTER_VARIABLES
    theory_only_variables: ClassVar = CLUSTER_REFERENCE_VARIABLES

    clusters: Annotated[NameOrAxis, one_of(CLUSTERS, "a kind of clusters")] = Field(
        description="clusters of inputs, which are their labels"
    )
    N: DimensionAxis = config_key(1000, description="input dimension", symbol="$N$")
    inputs: InputsAxis = make_inputs_field(
        "distribution of the inputs, around the centre of their cluster; the `teacher` of a spectrum is the difference "
        "of the centres"
    )
    start: StudentStart = make_start_field("{length, R}, R with the centres' difference")
    engine: SimulationEngine = "gram"

    if TYPE_CHECKING:  # show editors and type checkers the parameters of clusters
        distance: InitVar[NumberOrAxis] = 2.0
        positives: InitVar[NumberOrAxis] = 0.5

    def _find_problems(self) -> Iterator[Problem]:
        yield from super()._find_problems()
        yield from list(find_cluster_input_problems(self)) or list(find_unsuited_online_inputs(self))

    def _estimate_step_seconds(self, cell: OnlineCell) -> float:
        if self.engine == "gram" and cell.num_gram_variance_groups:
            return STEP_SECONDS_PER_VARIANCE_GROUP * cell.num_gram_variance_groups
        return super()._estimate_step_seconds(cell)

    def make_specific_values(self, values: dict[str, Any]) -> dict[str, Any]:
        return {"inputs": values["inputs"].cluster_spectrum, "clusters": self.make_component(values, "clusters")}
