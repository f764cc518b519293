"""Learners that minimise a convex loss: the loss, its penalty, the teacher and the number of examples.

A config file with the key `loss` becomes a `Risk`, the input of `simulate.run` and `theory.solve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PlainValidator, StrictBool

from statmech.convex.limits import minimum_from
from statmech.convex.losses import LOSSES, OF_DESCENT, Loss
from statmech.convex.penalties import PENALTIES, Penalty
from statmech.convex.teachers import Teacher
from statmech.convex.weights import Weights
from statmech.errors import Problem, quoted
from statmech.inputs import Features, Gaussian, Inputs, Rows, Spectrum, label_of
from statmech.parameters import Key
from statmech.population import population_of
from statmech.scenarios.axes import Names, Numbers, axis_of, points
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.convex_keys import (
    ALPHA,
    FLIP,
    GAIN,
    L1_RATIO,
    NOISE,
    OF_TEACHERS,
    OF_WEIGHTS,
    PENALTY,
    RHO,
    FlipAxis,
    GainAxis,
    LossCell,
    OfLosses,
    PenaltyAxis,
    ShareAxis,
    TeacherAxis,
    WeightsAxis,
    output_problems,
    penalty_at,
    teacher_at,
    teacher_problems,
    weights_at,
)
from statmech.scenarios.convex_setting import Setting
from statmech.scenarios.example_numbers import AlphaAxis, number_problems, numbers
from statmech.scenarios.inputs_key import LawAxis, inputs_key, law_problems, table_digests, table_problems
from statmech.scenarios.keys import PARAMETERS, DimensionAxis, NonnegativeAxis, config_key, one_of
from statmech.scenarios.page import Page, View
from statmech.scenarios.variables import Variable, field_variables

BEST = "best"
MOST = float(np.finfo(float).max)


def _strength(given: Any) -> float | str:
    """Convert a penalty strength: a number of 0 or more, or the keyword `best`."""
    if isinstance(given, str) and given == BEST:
        return BEST
    if isinstance(given, bool | str) or not isinstance(given, int | float | np.number):
        raise ValueError(f"must be a number or {BEST}, not {quoted(given)}")
    if not 0 <= given <= MOST:
        value = quoted(given) if isinstance(given, int) else f"{given:g}"
        raise ValueError(f"must be at least 0 and finite, not {value}")
    return float(given)


WITHOUT_MINIMUM = dict.fromkeys(OF_DESCENT, "its minimum is w = 0: it learns only by descent (`descent: gradient`)")
LamAxis = Annotated[
    Numbers | Names,
    axis_of(Annotated[Any, PlainValidator(_strength)], {"anyOf": [{"type": "number", "minimum": 0}, {"const": BEST}]}),
]

RISK = {
    "R": Variable((), "teacher-student cosine", "$R$"),
    "length": Variable((), "length of a student, |w|/sqrt(N)", "$l$", role="detail"),
    "V": Variable((), "response of a field to a force on it", "$V$", role="detail"),
    "eps_g": Variable((), "generalization error, on noiseless labels", r"$\epsilon_g$"),
    "eps_y": Variable((), "generalization error on fresh labels with noise", r"$\epsilon_y$", role="detail"),
    "mse": Variable((), "mean squared error, of the field without noise", "mse"),
    "train_loss": Variable((), "mean loss of the examples", r"$\langle\ell\rangle$", role="detail"),
    "eps_t": Variable((), "training error", r"$\epsilon_t$"),
    "gap": Variable(
        (), "certified relative gap to the optimum, the minimum", "gap", in_theory=False, role="diagnostic"
    ),
    "converged": Variable((), "whether the run converged: the minimum was reached", "converged", False, False),
    "separable": Variable(
        (), "whether some student is right on all examples", "separable", in_theory=False, role="diagnostic"
    ),
}
OF_FIELDS = field_variables((), "R_field", "length_field")
OF_UNEQUAL = r"\epsilon_g = \tfrac1\pi\arccos R_h"  # the last equation, for inputs of unequal variance
BAYES = {"R_bayes": Variable((), "cosine of the Bayes-optimal student", r"$R_\mathrm{Bayes}$")}
RISK_THEORY = {
    "residual": Variable((), "residual of the equations", "residual", role="diagnostic"),
    "lam_best": Variable((), "penalty of the smallest generalization error", r"$\lambda^*$"),
    "alpha_c": Variable((), "alpha below which examples can be separated", r"$\alpha_c$"),
}
LEAST_SQUARES = {"loss": ["square"], "teacher": "linear", "flip": 0}
GROUPS = {"spectrum": {"eigenvalues": [1e4, 1, 1e-4], "shares": [0.1, 0.3, 0.6], "teacher": [1e-8, 1e-4, 0.99989999]}}
PEAKS = [round(0.03 * 100 ** (step / 40), 4) for step in range(41)]  # alpha from 0.03 to 3
ALIGNED = {"spectrum": {"eigenvalues": [0.2, 1.8], "teacher": [0.5, 0.5]}}


class Risk(OfLosses, AbstractScenario):
    """Learners that minimise a convex loss of P = alpha N examples.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Risk(loss=["square", "hinge"], N=20, alpha=[1, 2], lam=0.1, seeds=10)
    >>> [(cell.name, cell.P) for cell in scenario.cells()]
    [('square', 20), ('square', 40), ('hinge', 20), ('hinge', 40)]
    """

    CHOICE: ClassVar = "loss"
    KINDS: ClassVar = LOSSES
    AXES: ClassVar = (
        *("loss", "penalty", "l1_ratio", "teacher", "flip", "noise", "gain", "weights", "rho", PARAMETERS),
        *("N", "inputs", "lam", "alpha"),
    )
    OMITTED: ClassVar = {"inputs": Gaussian()}
    TITLE: ClassVar = "convex losses"
    CITES: ClassVar = ("aubin2020", "loureiro2021", "candes2020")
    SIMULATION_KEYS: ClassVar = ("solver",)
    COORDINATES: ClassVar = {
        "P": Key("P", "number of stored examples", int, symbol="$P$"),
        "latent": Key("latent", "latent variables per feature", float, symbol="$D/N$"),
    }
    PAGE: ClassVar = Page(
        along="alpha",
        start={"loss": ["square", "logistic", "hinge"], "lam": 0.1, "alpha": 5, "N": 100, "seeds": 8},
        first=0.2,
        places=12,
        without=("l1_ratio", "noise", "gain", "rho"),
        inputs=("spectrum", "power_law"),
        presets={
            "double descent": View(
                {**LEAST_SQUARES, "noise": 0.5, "lam": 1e-3, "alpha": 10},
                show=("mse", "train_loss"),
                log=("x", "y"),
                figures=("double_descent",),
            ),
            "multiple descent": View(
                {**LEAST_SQUARES, "noise": 0.3, "lam": 1e-7, "alpha": PEAKS, "N": 400, "inputs": GROUPS},
                show=("mse", "R_field"),
                log=("x", "y"),
                figures=("multiple_descent", "random_features"),
            ),
            "aligned teachers": View(
                {**LEAST_SQUARES, "noise": 0.2, "lam": 10, "alpha": 0.3, "N": 400, "inputs": ALIGNED},
                x="lam",
                show=("mse", "R_field"),
                log=("x",),
                figures=("aligned",),
            ),
            "which loss, at which noise": View({"flip": 0.1, "lam": 1}, show=("eps_g",), figures=("bayes_gap",)),
        },
    )
    equations: ClassVar = (
        r"\mathbf w = \arg\min\sum_\mu\ell(x^\mu) + \lambda\,r(\mathbf w)",
        r"x = yh \text{ or } y-h, \quad h = \mathbf w\cdot\mathbf x/\sqrt{N}",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )

    loss: Annotated[Names, one_of(LOSSES, "a loss", WITHOUT_MINIMUM)] = Field(description="loss that is minimised")
    penalty: PenaltyAxis = PENALTY
    l1_ratio: ShareAxis = L1_RATIO
    lam: LamAxis = config_key(
        0.1,
        description="strength of the penalty; 0: the limit of a vanishing one, best: that of the smallest error",
        symbol=r"$\lambda$",
    )
    teacher: TeacherAxis = Field(default="sign", description="teacher, by how its outputs depend on its field")
    flip: FlipAxis = FLIP
    noise: NonnegativeAxis = NOISE
    gain: GainAxis = GAIN
    weights: WeightsAxis = OF_WEIGHTS
    rho: ShareAxis = RHO
    alpha: AlphaAxis = ALPHA
    N: DimensionAxis = config_key(500, description="input dimension", symbol="$N$")
    inputs: LawAxis = inputs_key()
    bayes: StrictBool = Field(
        default=False, description="also the Bayes-optimal student, at finite N by message passing"
    )
    solver: Literal["minimise", "amp"] = Field(
        default="minimise",
        description="solver of the simulation: `minimise` (to a certified minimum) or `amp` (message passing)",
    )

    if TYPE_CHECKING:  # the parameters of losses, for editors and type checkers
        width: InitVar[Numbers] = 1.0

    def _problems(self) -> Iterator[Problem]:
        yield from self._unused_problems()
        yield from output_problems(self, LOSSES)
        yield from teacher_problems(self)
        yield from number_problems(self)
        input_problems = [*law_problems(self)]
        yield from input_problems or self._structure_problems()
        if not input_problems:
            yield from self._unbounded_problems()

    def data_problems(self) -> Iterator[Problem]:
        return table_problems(self)

    def data_digests(self) -> dict[str, str]:
        return table_digests(self)

    def _structure_problems(self) -> Iterator[Problem]:
        """Find settings that need inputs of equal variance."""
        if not (anisotropic := [inputs for inputs in points(self.inputs) if not inputs.isotropic]):
            return
        for penalty in points(self.penalty):
            if PENALTIES[penalty] != 0:
                reason = "needs inputs whose covariance is a multiple of 1: a rotation of the inputs changes it"
                yield ("penalty",), f"penalty {penalty} {reason}"
                break
        if self.bayes:
            yield (
                ("bayes",),
                f"the Bayes-optimal student needs inputs of equal variance, not {label_of(anisotropic[0])}",
            )
        if self.solver == "amp":
            yield ("solver",), f"message passing needs inputs of equal variance, not {label_of(anisotropic[0])}"
        for inputs in anisotropic:
            if isinstance(inputs, Spectrum) and 0 in inputs.ridge:
                yield ("inputs",), "ridge of a spectrum must be greater than 0 in all groups of a loss with a penalty"
                break

    def _unbounded_problems(self) -> Iterator[Problem]:
        """Find losses without a minimum: without a penalty, separable examples need a loss with a smallest value."""
        for values in self._without_penalty():
            inputs = values.get("inputs", Gaussian())
            modes = (
                None
                if inputs.isotropic or isinstance(inputs, Rows)
                else inputs.modes(values.get("N", points(self.N)[0]))
            )
            mode_arguments = (modes.signal, modes.rank) if modes else ()
            min_alpha = minimum_from(self.kind_at(values), teacher_at(values), *mode_arguments)
            if values["alpha"] < min_alpha:
                range_text = f"below alpha = {min_alpha:.6g}" if np.isfinite(min_alpha) else "at any alpha"
                reason = "examples can be separated, and the student's length diverges"
                yield ("lam",), f"with lam = 0 the loss {values['loss']} has no minimum {range_text}: {reason}"
                return

    def _without_penalty(self) -> Iterator[dict[str, Any]]:
        """Yield the values of each loss and teacher with lam = 0 and the smallest alpha."""
        values_at_min_alpha: dict[Any, dict[str, Any]] = {}
        names = ("loss", "teacher", *OF_TEACHERS, *self.parameters, "lam", "alpha", "inputs")
        for values in self.combinations(*names) if 0 in points(self.lam) else ():
            kinds = self.kind_at(values), teacher_at(values), values.get("inputs")
            if values["lam"] == 0 and values["alpha"] <= values_at_min_alpha.get(kinds, values)["alpha"]:
                values_at_min_alpha[kinds] = values
        yield from values_at_min_alpha.values()

    @property
    def stated_equations(self) -> tuple[str, ...]:
        return (*self.equations[:-1], OF_UNEQUAL) if self.structured else self.equations

    @property
    def variables(self) -> dict[str, Variable]:
        return RISK | (OF_FIELDS if self.structured else {}) | (BAYES if self.bayes else {})

    @property
    def structured(self) -> bool:
        """True if some inputs have directions of unequal variance."""
        return not all(inputs.isotropic for inputs in points(self.inputs))

    @property
    def sized(self) -> bool:
        """True if the variances of some inputs depend on N."""
        return any(inputs.sized for inputs in points(self.inputs))

    @property
    def theory_only(self) -> dict[str, Variable]:
        return RISK_THEORY | ({} if self.bayes else BAYES)

    @property
    def theory_ignores(self) -> dict[str, Any]:
        return {} if self.sized else {"N": 10**6}

    @property
    def derived(self) -> dict[str, Any]:
        return {"P": numbers(self), **self._widths()}

    def _widths(self) -> dict[str, Any]:
        """Return the coordinate of latent variables per feature along an axis of random features."""
        axis_inputs = points(self.inputs)
        if len(axis_inputs) == 1 or not all(isinstance(inputs, Features) for inputs in axis_inputs):
            return {}
        return {"latent": (("_".join(self._along("inputs")),), np.array([inputs.latent for inputs in axis_inputs]))}

    def _along(self, name: str) -> tuple[str, ...]:
        """Return the zip group of a key, or the key alone."""
        return next((group for group in self.zipped if name in group), (name,))

    def seconds(self) -> float:
        """Estimate the seconds that one seed of all parameter combinations takes on one core."""
        return sum(map(_seconds, self.cells()))

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> RiskCell:
        return RiskCell(
            name=values["loss"],
            loss=self.kind_at(values),
            penalty=penalty_at(values),
            lam=values["lam"],
            teacher=teacher_at(values),
            weights=weights_at(values),
            N=values["N"],
            P=round(values["alpha"] * values["N"]),
            alpha=values["alpha"],
            index=index,
            inputs=values.get("inputs", Gaussian()),
        )


@dataclass(frozen=True)
class RiskCell(LossCell):
    """One grid point: a loss with its penalty, a teacher, the input dimension and number of examples."""

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
    inputs: Inputs = field(default_factory=Gaussian)

    @property
    def setting(self) -> Setting:
        return super().setting._replace(inputs=population_of(self.inputs, self.N))


# seconds of a run on one core per P N m + m^3 operations, m = min(N, P): medians at N = 400 and 800, alpha 0.5 to 8,
# lam 0 to 1, on an Intel Xeon, 23 November 2026; single runs take half to twice as long, with an l1 norm up to five
# times. Minimum with kinks, and random features: on an AMD EPYC, 25 November 2026
SMOOTH, KINKED, WITH_L1, LEAST_SECONDS = 2e-10, 5e-10, 7e-10, 3e-3
LEAST_WITH_KINKS = 8e-3
FRESH, FRESH_PER_LATENT = 2e-4, 1e-6  # errors of random features are measured on fresh inputs


def _seconds(cell: RiskCell) -> float:
    """Estimate the seconds of a run."""
    inputs = cell.inputs
    measured = cell.N * (FRESH + FRESH_PER_LATENT * inputs.width(cell.N)) if isinstance(inputs, Features) else 0.0
    return measured + seconds_of_fit(cell.loss, cell.P, cell.N, bool(cell.penalty.share))


def seconds_of_fit(loss: Loss, P: int, N: int, l1: bool = False) -> float:
    """Estimate the seconds of a fit, including the draw of the inputs and a test of separability."""
    smaller = min(N, P)
    rate, min_seconds = (KINKED, LEAST_WITH_KINKS) if loss.kinks else (SMOOTH, LEAST_SECONDS)
    return min_seconds + 1.5 * (WITH_L1 if l1 else rate) * (P * N * smaller + smaller**3) + 1.5e-8 * P * N
