"""Scenarios of Bayes-optimal inference: a teacher's weights with known prior, by approximate message passing.

A config file with the key `prior` becomes an `Inference`, the input of `simulate.run` and `theory.solve`.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS
from statmech.keys.key_types import PARAMETERS, DimensionAxis, Whole, config_key, one_of
from statmech.keys.sweep_grid import NameOrAxis, NumberOrAxis
from statmech.keys.variables import Variable
from statmech.kinds.convex_fit import TeacherCell, TeacherFit
from statmech.parameters.parameter_fields import ConfigKey

INFORMED_START_MSE = 1e-4  # mean squared error of the start "informed"
MESSAGE_PASSING_STARTS = {"uninformed": "at the mean of the prior", "informed": "near the teacher (planted)"}
MAX_STEPS = 10**6
# seconds per step and entry of the input matrix, on one core, and a number of steps within which most runs converge
# (N = 2000, alpha = 0.8 to 1.8, Intel Xeon, 23 November 2026)
AMP_SECONDS_PER_ENTRY, TYPICAL_AMP_STEPS = 1.1e-9, 40

INFERENCE_STEP_VARIABLES = {
    "m": Variable(("step",), "overlap with the teacher, w.w*/N", "$m$"),
    "q": Variable(("step",), "mean square of the estimate, |w|^2/N", "$q$", role="detail"),
    "mse": Variable(("step",), "mean squared error, of the weights", "mean squared error"),
    "eps_g": Variable(("step",), "generalization error, on noiseless labels", r"$\epsilon_g$"),
}
INFERENCE_THEORY_VARIABLES = {
    "free_entropy": Variable((), "free entropy per weight of the state that is reached", r"$\phi$"),
    "q_bayes": Variable((), "overlap of the state of the largest free entropy", r"$q_\mathrm{Bayes}$"),
    "alpha_it": Variable((), "threshold for Bayes-optimal recovery of the teacher", r"$\alpha_\mathrm{IT}$"),
    "alpha_alg": Variable((), "threshold for recovery by message passing", r"$\alpha_\mathrm{alg}$"),
}


class Inference(TeacherFit):
    """Inference of a teacher's weights from P = alpha N examples by message passing.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Inference(prior="binary", N=20, alpha=[1, 2], start=["uninformed", "informed"], seeds=10)
    >>> [(cell.start, cell.P) for cell in scenario.cells()]
    [('uninformed', 20), ('uninformed', 40), ('informed', 20), ('informed', 40)]
    """

    CHOICE: ClassVar = "prior"
    KINDS: ClassVar = WEIGHT_DISTRIBUTIONS
    AXES: ClassVar = ("prior", PARAMETERS, "teacher", "flip", "noise", "gain", "N", "start", "alpha")
    TITLE: ClassVar = "inference"
    CITES: ClassVar = ("barbier2019", "donoho2009", "gyorgyi1990")
    NON_KEY_COORDINATES: ClassVar = {
        **TeacherFit.NON_KEY_COORDINATES,
        "step": ConfigKey("step", "step of message passing", int),
    }
    USUAL_X_KEY: ClassVar = "alpha"
    equations: ClassVar = (
        r"\hat{\mathbf w} = \langle\mathbf w\rangle_{P(\mathbf w\,|\,\mathbf x^\mu, y^\mu)}",
        r"m = \mathbf w^*\cdot\hat{\mathbf w}/N",
    )
    variables: ClassVar = INFERENCE_STEP_VARIABLES
    theory_only_variables: ClassVar = INFERENCE_THEORY_VARIABLES

    prior: Annotated[NameOrAxis, one_of(WEIGHT_DISTRIBUTIONS, "a prior")] = Field(
        description="prior of the weights, which is their true distribution"
    )
    N: DimensionAxis = config_key(2000, description="input dimension", symbol="$N$")
    start: Annotated[NameOrAxis, one_of(MESSAGE_PASSING_STARTS, "a start")] = Field(
        default="uninformed", description="start, of message passing"
    )
    steps: Annotated[Whole, Field(ge=1, le=MAX_STEPS)] = Field(default=100, description="steps of message passing")

    if TYPE_CHECKING:  # show editors and type checkers the parameter of priors
        rho: InitVar[NumberOrAxis] = 0.2

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the steps of message passing, where 0 is the start."""
        return {"step": np.arange(self.steps + 1)}

    def estimate_run_seconds(self, cell: InferenceCell) -> float:
        return AMP_SECONDS_PER_ENTRY * cell.P * cell.N * min(self.steps, TYPICAL_AMP_STEPS)

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> InferenceCell:
        return InferenceCell(
            name=values["prior"],
            weights=self.make_component(values),
            start=values["start"],
            **self.make_cell_values(values, index),
        )


@dataclass(frozen=True)
class InferenceCell(TeacherCell):
    """One grid point: the prior, the teacher, the start, the input dimension and number of examples."""

    start: str
