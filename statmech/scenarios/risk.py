"""Learners that minimise a convex loss: the loss, its penalty, the teacher and the number of examples.

A `Risk` is what a config file with the key `loss` holds and what `simulate.run` and `theory.solve` take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from statmech.convex.losses import LOSSES, Loss, on_labels
from statmech.convex.penalties import PENALTIES, Penalty
from statmech.convex.teachers import Teacher
from statmech.convex.weights import WEIGHTS, Weights
from statmech.errors import Problem
from statmech.parameters import Key
from statmech.scenarios.axes import axis_of
from statmech.scenarios.base import Sweep
from statmech.scenarios.convex_keys import (
    AlphaAxis,
    GainAxis,
    ShareAxis,
    TeacherAxis,
    examples_problems,
    teacher_of,
    teacher_problems,
)
from statmech.scenarios.keys import PARAMETERS, DimensionAxis, FlipAxis, Number, RateAxis, config_key, one_of
from statmech.scenarios.variables import Variable

LamAxis = axis_of(
    Annotated[Number, Field(ge=0)] | Literal["best"], {"anyOf": [{"type": "number", "minimum": 0}, {"const": "best"}]}
)

RISK = {
    "R": Variable((), "teacher-student cosine", "$R$"),
    "Q": Variable((), "length of the student, |w|/sqrt(N)", "$Q$"),
    "V": Variable((), "response of a field to a force on it", "$V$"),
    "eps_g": Variable((), "generalization error on noiseless labels", r"$\epsilon_g$"),
    "eps_y": Variable((), "generalization error on fresh labels with noise", r"$\epsilon_y$"),
    "mse": Variable((), "mean squared error of the field, without noise", "mse"),
    "train_loss": Variable((), "mean loss of the examples", r"$\langle\ell\rangle$"),
    "eps_t": Variable((), "training error", r"$\epsilon_t$"),
    "gap": Variable((), "certified relative distance from the minimum", "gap", in_theory=False),
    "converged": Variable((), "whether the minimum was reached", "converged", False, False),
    "separable": Variable((), "whether some student is right on all examples", "separable", in_theory=False),
}
RISK_THEORY = {
    "residual": Variable((), "residual of the equations", "residual"),
    "lam_best": Variable((), "penalty of the smallest generalization error", r"$\lambda^*$"),
    "R_bayes": Variable((), "cosine of the Bayes-optimal student", r"$R_\mathrm{Bayes}$"),
    "alpha_c": Variable((), "alpha below which examples can be separated", r"$\alpha_c$"),
}


class Risk(Sweep):
    """Learners that minimise a convex loss of P = alpha N examples; any list is an axis of a sweep.

    Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Risk(loss=["square", "hinge"], N=20, alpha=[1, 2], lam=0.1, seeds=10)
    >>> [(cell.name, cell.P) for cell in scenario.cells()]
    [('square', 20), ('square', 40), ('hinge', 20), ('hinge', 40)]
    """

    CHOICE: ClassVar = "loss"
    KINDS: ClassVar = LOSSES
    AXES: ClassVar = (
        "loss",
        "penalty",
        "l1_ratio",
        "teacher",
        "flip",
        "noise",
        "gain",
        "weights",
        "rho",
        PARAMETERS,
        "N",
        "lam",
        "alpha",
    )
    TITLE: ClassVar = "convex losses"
    COORDINATES: ClassVar = {"P": Key("P", "number of examples", int, symbol="$P$")}

    loss: one_of(LOSSES, "a loss") = Field(description="loss that is minimised")  # type: ignore[valid-type]
    penalty: one_of(PENALTIES, "a penalty") = Field("l2", description="penalty on the weights")  # type: ignore[valid-type]
    l1_ratio: ShareAxis = Field(0.5, description="share of the l1 norm in penalty elastic_net")
    lam: LamAxis = config_key(  # type: ignore[valid-type]
        0.1,
        description="strength of the penalty; 0: the limit of a vanishing one, best: that of the smallest error",
        symbol=r"$\lambda$",
    )
    teacher: TeacherAxis = Field("sign", description="how labels depend on the teacher's field")
    flip: FlipAxis = config_key(0.0, description="probability that a label is flipped (teacher sign)", symbol="$f$")
    noise: RateAxis = config_key(
        0.0, description="standard deviation of the noise (teachers probit and linear)", symbol=r"$\sigma$"
    )
    gain: GainAxis = config_key(1.0, description="gain of the logistic function (teacher logit)", symbol="$g$")
    weights: one_of(WEIGHTS, "a distribution of weights") = Field(  # type: ignore[valid-type]
        "gauss", description="distribution of the teacher's weights"
    )
    rho: ShareAxis = config_key(0.2, description="share of weights that are not 0 (weights sparse)", symbol=r"$\rho$")
    alpha: AlphaAxis = config_key(description="examples per input dimension, P / N", symbol=r"$\alpha$", unit="P / N")
    N: DimensionAxis = config_key(500, description="input dimension", symbol="$N$")
    bayes: bool = Field(False, description="also compute the Bayes-optimal student, by message passing at finite N")
    solver: Literal["minimise", "amp"] = Field(
        "minimise", description="how the minimum is found at finite N: descent, or approximate message passing"
    )

    def _problems(self) -> Iterator[Problem]:
        yield from teacher_problems(self)
        yield from examples_problems(self)

    @property
    def variables(self) -> dict[str, Variable]:
        return RISK

    @property
    def theory_only(self) -> dict[str, Variable]:
        return RISK_THEORY

    @property
    def theory_ignores(self) -> dict[str, Any]:
        return {"N": 10**6}

    def cells(self) -> Iterator[RiskCell]:
        """Every point of the grid, the last dimension fastest."""
        for values, index in self.grid():
            share = PENALTIES[values["penalty"]]
            yield RiskCell(
                name=values["loss"],
                loss=self.kind_at(values),
                penalty=Penalty(values["l1_ratio"] if share is None else share),
                lam=values["lam"],
                teacher=teacher_of(values),
                weights=WEIGHTS[values["weights"]](**({"rho": values["rho"]} if values["weights"] == "sparse" else {})),
                N=values["N"],
                P=round(values["alpha"] * values["N"]),
                alpha=values["alpha"],
                index=index,
            )


@dataclass(frozen=True)
class RiskCell:
    """One point of the grid: a loss with its penalty, a teacher, numbers of inputs and of examples."""

    name: str
    loss: Loss
    penalty: Penalty
    lam: float | str
    teacher: Teacher
    weights: Weights
    N: int
    P: int
    alpha: float
    index: tuple[int, ...]

    @property
    def on(self) -> Loss:
        """The loss as a function of stabilities (of labels) or of residuals (of real outputs)."""
        return on_labels(self.loss) if self.teacher.labels else self.loss
