"""Scenarios of convex losses for two Gaussian clusters, which define the labels.

A config file with the key `clusters` becomes a `Clusters`, the input of `simulate.run` and `theory.solve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, StrictBool

from statmech.convex.gaussian_clusters import (
    CLUSTERS,
    GaussianClusters,
    TwoClusters,
)
from statmech.convex.losses import (
    LOSSES,
    Loss,
    convert_to_stability_loss,
    explain_label_mismatch,
    find_minimiser_interval,
)
from statmech.convex.separability_thresholds import compute_cluster_interpolation_threshold
from statmech.errors import Problem
from statmech.inputs.input_distributions import Inputs
from statmech.keys.inputs_and_examples import InputsAxis, make_inputs_field
from statmech.keys.key_types import PARAMETERS, config_key, one_of
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import NameOrAxis, NumberOrAxis
from statmech.keys.variables import Variable, make_local_field_variables
from statmech.kinds.convex_fit import (
    BAYES_ERROR_VARIABLES,
    FIT_THEORY_VARIABLES,
    FIT_VARIABLES,
    MINIMISED_LOSS_FIELD,
    TEACHER_PARAMETER_KEYS,
    ConvexFit,
    LamOrBestAxis,
    MinimisedLossAxis,
    PenalisedCell,
    estimate_fit_seconds,
    make_missing_minimum_problem,
)

UNSUPPORTED_TEACHER_KEYS = ("teacher", *TEACHER_PARAMETER_KEYS, "weights", "rho")  # clusters have no teacher
UNSUPPORTED_CLUSTER_KEY_REASON = "clusters have labels of their own: remove {}"

CLUSTER_VARIABLES = {
    "m_field": Variable((), "half the distance between the mean fields of two clusters", "$m_h$"),
    **make_local_field_variables((), "length_field"),
    "length": FIT_VARIABLES["length"],
    "V": FIT_VARIABLES["V"],
    "eps_g": Variable(
        (), "generalization error, on fresh examples", r"$\epsilon_g$", reference_variables=("eps_bayes", "eps_known")
    ),
    **{name: FIT_VARIABLES[name] for name in ("train_loss", "eps_t", "gap", "converged", "separable")},
}
INTERCEPT_VARIABLES = {"intercept": Variable((), "intercept of a student's field", "$w_0$")}
CLUSTER_THEORY_VARIABLES = {
    **FIT_THEORY_VARIABLES,
    **BAYES_ERROR_VARIABLES,
    "eps_known": Variable((), "error of the best plane between clusters that are known", r"$\epsilon_\mathrm{known}$"),
}


class Clusters(ConvexFit):
    """Learners that minimise a convex loss of P = alpha N examples from two clusters.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Clusters(clusters="gaussian", loss=["square", "hinge"], distance=2, N=20, alpha=[1, 2], seeds=10)
    >>> [(cell.name, cell.P) for cell in scenario.cells()]
    [('square', 20), ('square', 40), ('hinge', 20), ('hinge', 40)]
    """

    CHOICE: ClassVar = "clusters"
    KINDS: ClassVar = CLUSTERS
    FURTHER_CLASS_CHOICES: ClassVar = {"loss": LOSSES}
    AXES: ClassVar = ("clusters", "loss", "inputs", "distance", "positives", PARAMETERS, "N", "lam", "alpha")
    UNSUPPORTED_KEYS: ClassVar = dict.fromkeys(UNSUPPORTED_TEACHER_KEYS, UNSUPPORTED_CLUSTER_KEY_REASON)
    TITLE: ClassVar = "two clusters"
    CITES: ClassVar = ("mignacco2020", "loureiro2021mixtures")
    USUAL_X_KEY: ClassVar = "alpha"
    equations: ClassVar = (
        r"\mathbf w = \arg\min\sum_\mu\ell(x^\mu) + \lambda\,|\mathbf w|^2/2",
        r"x = yh \text{ or } y-h, \quad h = \mathbf w\cdot\mathbf x/\sqrt{N} + w_0",
        r"\epsilon_g = \sum_y\pi_y\,\Phi\left(-(s_ym_h + yw_0)/l_h\right)",
    )
    theory_only_variables: ClassVar = CLUSTER_THEORY_VARIABLES

    clusters: Annotated[NameOrAxis, one_of(CLUSTERS, "a kind of clusters")] = Field(
        description="clusters of inputs, which are their labels"
    )
    loss: MinimisedLossAxis = MINIMISED_LOSS_FIELD
    lam: LamOrBestAxis = config_key(
        0.1,
        description="strength of the penalty, which is l2; 0: the limit of a vanishing one, best: that of the smallest "
        "error",
        symbol=r"$\lambda$",
    )
    inputs: InputsAxis = make_inputs_field(
        "distribution of the inputs, around the centre of their cluster; the `teacher` of a spectrum is the difference "
        "of the centres"
    )
    intercept: StrictBool = Field(default=False, description="students with an intercept, which has no penalty")

    if TYPE_CHECKING:  # show editors and type checkers the parameters of losses and clusters
        width: InitVar[NumberOrAxis] = 1.0
        distance: InitVar[NumberOrAxis] = 2.0
        positives: InitVar[NumberOrAxis] = 0.5

    def _find_problems(self) -> Iterator[Problem]:
        reasons = (
            explain_label_mismatch(self.make_component(values, "loss"))
            for values in self.iterate_combinations("loss", *self.parameters)
        )
        if reason := next(filter(None, reasons), ""):
            yield ("loss",), reason
        yield from super()._find_problems()
        input_problems = list(find_cluster_input_problems(self))
        yield from input_problems
        yield from () if input_problems else self._find_zero_penalty_problems()

    def _find_zero_penalty_problems(self) -> Iterator[Problem]:
        """Find the first vanishing penalty without a minimum or without equations for two clusters."""
        for values in self.iterate_combinations("clusters", "loss", "inputs", "N", *self.parameters, "lam", "alpha"):
            if values["lam"] != 0:
                continue
            if self.intercept:
                yield ("lam",), "a vanishing penalty has its limit without an intercept only: lam must be above 0"
                return
            setting = self.setting(values)
            if find_minimiser_interval(setting.loss) is None:
                min_alpha = compute_cluster_interpolation_threshold(setting.loss, setting.clusters, False)
                if values["alpha"] < min_alpha:
                    yield make_missing_minimum_problem(values["loss"], min_alpha)
                    return

    @property
    def variables(self) -> dict[str, Variable]:
        return CLUSTER_VARIABLES | (INTERCEPT_VARIABLES if self.intercept else {})

    def estimate_run_seconds(self, cell: ClusterCell) -> float:
        return estimate_fit_seconds(cell.loss, cell.P, cell.N)

    def setting(self, values: dict[str, Any]) -> ClusterSetting:
        """Return everything that determines the minimum for two clusters, except alpha and lambda."""
        kind = self.make_component(values)
        modes = None if values["inputs"].isotropic else values["inputs"].modes(values["N"])
        return ClusterSetting(
            convert_to_stability_loss(self.make_component(values, "loss")),
            kind.combine_with_modes(modes).drop_empty_modes,
            self.intercept,
        )

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> ClusterCell:
        return ClusterCell(
            name=values["loss"],
            kind=self.make_component(values),
            loss=self.make_component(values, "loss"),
            setting=self.setting(values),
            lam=values["lam"],
            inputs=values["inputs"],
            **self.make_cell_values(values, index),
        )


class ClusterSetting(NamedTuple):
    """Everything that determines the minimum for N -> infinity, except alpha and lambda."""

    loss: Loss
    clusters: TwoClusters
    intercept: bool


@dataclass(frozen=True)
class ClusterCell(PenalisedCell):
    """One grid point: the loss, the clusters, the penalty, the input dimension and number of examples."""

    name: str
    kind: GaussianClusters
    loss: Loss
    setting: ClusterSetting
    lam: float | str
    inputs: Inputs
    N: int
    P: int
    alpha: float
    index: tuple[int, ...]

    @property
    def shared_setting(self) -> tuple[Any, ...]:
        return self.loss, self.kind, self.inputs, self.setting.intercept

    @property
    def sample_size(self) -> float:
        return self.alpha


def find_cluster_input_problems(scenario: AbstractScenario) -> Iterator[Problem]:
    """Find the first distribution of inputs that is not supported around a cluster's centre."""
    for inputs, N in scenario.list_value_pairs("inputs", "N"):
        if problem := inputs.find_cluster_problem(N):
            yield problem
            return
