"""Keys, variables, problems and cells shared by scenarios of convex losses, descent and inference.

`ConvexFit` learns P = alpha N stored examples. `TeacherFit` has a teacher of the examples, and `LossFit` a loss.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import InitVar, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from pydantic import Field, PlainValidator

from statmech.convex.losses import (
    DESCENT_ONLY_LOSSES,
    L1_FRACTIONS_BY_PENALTY,
    LOSSES,
    Loss,
    Penalty,
    convert_to_stability_loss,
    explain_label_mismatch,
)
from statmech.convex.teachers import TEACHERS, Teacher
from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS, WeightDistribution
from statmech.errors import Problem, quote_value
from statmech.inputs.input_distributions import CLUSTERS_HINT, InputPopulation
from statmech.keys.inputs_and_examples import AlphaAxis, compute_example_counts, find_example_count_problems
from statmech.keys.key_types import DimensionAxis, NonnegativeAxis, Number, config_key, one_of
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell, NameOrAxis, NumberOrAxis, axis_of, ensure_tuple
from statmech.keys.variables import Variable
from statmech.parameters.parameter_fields import ConfigKey

ClassT = TypeVar("ClassT")

BEST_PENALTY_KEYWORD = "best"
MAX_FLOAT = float(np.finfo(float).max)
TEACHER_PARAMETER_KEYS = ("flip", "noise", "gain")  # each teacher has some of these parameters
LOSSES_WITHOUT_MINIMUM = dict.fromkeys(
    DESCENT_ONLY_LOSSES, "its minimum is w = 0: it learns only by descent (`descent: gradient`)"
)
EXAMPLE_COUNT_COORDINATE = {"P": ConfigKey("P", "number of stored examples", int, symbol="$P$")}
# Seconds per operation on one core, for P N m + m^3 operations with m = min(N, P), and minimum seconds. Medians at
# N = 400 and 800, alpha = 0.5 to 8, lam = 0 to 1 (Intel Xeon, 23 November 2026). Single runs take half to twice as
# long, with an l1 norm up to five times. The minimum for kinks: AMD EPYC, 25 November 2026
SMOOTH_FIT_SECONDS, KINKED_FIT_SECONDS, L1_FIT_SECONDS, MIN_FIT_SECONDS = 2e-10, 5e-10, 7e-10, 3e-3
MIN_KINKED_FIT_SECONDS = 8e-3


def _validate_lam(lam: Any) -> float | str:
    """Validate the strength of a penalty on a convex loss, a nonnegative number or the keyword `best`."""
    if isinstance(lam, str) and lam == BEST_PENALTY_KEYWORD:
        return BEST_PENALTY_KEYWORD
    if isinstance(lam, bool | str) or not isinstance(lam, int | float | np.number):
        raise ValueError(f"must be a number or {BEST_PENALTY_KEYWORD}, not {quote_value(lam)}")
    if not 0 <= lam <= MAX_FLOAT:
        value = quote_value(lam) if isinstance(lam, int) else f"{lam:g}"
        raise ValueError(f"must be at least 0 and finite, not {value}")
    return float(lam)


# the schema excludes flips and gains that make labels random; the validator accepts them, as a later check explains why
TeacherFlipAxis = Annotated[
    NumberOrAxis,
    axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "exclusiveMaximum": 0.5}),
]
GainAxis = Annotated[NumberOrAxis, axis_of(Annotated[Number, Field(ge=0)], {"type": "number", "exclusiveMinimum": 0})]
FractionAxis = Annotated[
    NumberOrAxis, axis_of(Annotated[Number, Field(gt=0, le=1)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1})
]
LamOrBestAxis = Annotated[
    NumberOrAxis | NameOrAxis,
    axis_of(
        Annotated[Any, PlainValidator(_validate_lam)],
        {"anyOf": [{"type": "number", "minimum": 0}, {"const": BEST_PENALTY_KEYWORD}]},
    ),
]
MinimisedLossAxis = Annotated[NameOrAxis, one_of(LOSSES, "a loss", LOSSES_WITHOUT_MINIMUM)]
MINIMISED_LOSS_FIELD = Field(description="loss that is minimised")

FIT_VARIABLES = {
    "R": Variable((), "teacher-student cosine", "$R$"),
    "length": Variable((), "length of a student, |w|/sqrt(N)", "$l$", role="detail"),
    "V": Variable((), "response of a field to a force on it", "$V$", role="detail"),
    "eps_g": Variable((), "generalization error, on noiseless labels", r"$\epsilon_g$"),
    "eps_y": Variable((), "generalization error on fresh labels with noise", r"$\epsilon_y$", role="detail"),
    "mse": Variable((), "mean squared error, of the field without noise", "mean squared error"),
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
BAYES_ERROR_VARIABLES = {
    "eps_bayes": Variable((), "generalization error of the Bayes-optimal student", r"$\epsilon_\mathrm{Bayes}$"),
}
FIT_THEORY_VARIABLES = {
    "residual": Variable((), "residual of the equations", "residual", role="diagnostic"),
    "lam_best": Variable((), "penalty of the smallest generalization error", r"$\lambda^*$"),
    "alpha_c": Variable((), "threshold below which examples can be separated", r"$\alpha_c$"),
}


class ConvexFit(AbstractScenario):
    """Learners of P = alpha N stored examples in N dimensions."""

    NON_KEY_COORDINATES: ClassVar = EXAMPLE_COUNT_COORDINATE

    alpha: AlphaAxis = config_key(
        description="stored examples per input dimension, P / N", symbol=r"$\alpha$", unit="P / N"
    )
    N: DimensionAxis = config_key(500, description="input dimension", symbol="$N$")

    def _find_problems(self) -> Iterator[Problem]:
        yield from find_example_count_problems(self)

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        return {"N": 10**6}

    @property
    def derived_coordinates(self) -> dict[str, Any]:
        return {"P": compute_example_counts(self)}

    def estimate_run_seconds(self, cell: Any) -> float:
        """Estimate the seconds per run of a cell on one core."""
        raise NotImplementedError

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for all parameter combinations on one core."""
        return sum(map(self.estimate_run_seconds, self.cells()))

    def make_cell_values(self, values: dict[str, Any], index: tuple[int, ...]) -> dict[str, Any]:
        """Return the values that the cells of several kinds have, at a grid point."""
        N, alpha = values["N"], values["alpha"]
        return {"N": N, "P": round(alpha * N), "alpha": alpha, "index": index}


class TeacherFit(ConvexFit):
    """Learners of examples from a teacher.

    Some keys apply only to certain teachers. A scenario without these teachers omits the keys and cannot set them.
    """

    teacher: Annotated[NameOrAxis, one_of(TEACHERS, "a teacher", {"clusters": CLUSTERS_HINT})] = Field(
        default="sign", description="teacher, by how its outputs depend on its field"
    )
    flip: TeacherFlipAxis = config_key(
        0.0, description="probability that a label is flipped, with `teacher: sign`", symbol="$p_f$"
    )
    noise: NonnegativeAxis = config_key(
        0.0, description="standard deviation of the noise, with `teacher: probit` or `linear`", symbol=r"$\sigma$"
    )
    gain: GainAxis = config_key(
        1.0, description="gain of the logistic function, with `teacher: logit`", symbol=r"$\beta$"
    )

    def _find_problems(self) -> Iterator[Problem]:
        yield from self._find_inapplicable_keys()
        yield from self._find_uninformative_teachers()
        yield from super()._find_problems()

    @classmethod
    def list_key_conditions(cls) -> dict[str, tuple[str, list[str]]]:
        return {key: ("teacher", list_kinds_with_parameter(TEACHERS, key)) for key in TEACHER_PARAMETER_KEYS}

    def _is_key_included(self, name: str) -> bool:
        """Return True unless this key is omitted or does not apply to the scenario."""
        deciding_key, values_with_key = self.list_key_conditions().get(name, ("", []))
        concerns = not deciding_key or bool({*values_with_key} & {*ensure_tuple(getattr(self, deciding_key))})
        return concerns and super()._is_key_included(name)

    def _find_inapplicable_keys(self) -> Iterator[Problem]:
        """Find keys that are set, but do not apply to the chosen loss, teacher or weights."""
        for key, (deciding_key, values_with_key) in self.list_key_conditions().items():
            if not self._is_key_included(key) and getattr(self, key) != type(self).model_fields[key].default:
                chosen_values = " and ".join(ensure_tuple(getattr(self, deciding_key)))
                yield (
                    (key,),
                    f"applies only to `{deciding_key}: {'` or `'.join(values_with_key)}`, not to {chosen_values}",
                )

    def _find_uninformative_teachers(self) -> Iterator[Problem]:
        """Find teachers of a convex loss whose labels are random."""
        for values in self.iterate_combinations("teacher", *TEACHER_PARAMETER_KEYS):
            if reason := make_teacher(values).uninformative_setting:
                yield (reason.split(" ")[0],), f"at {reason} labels are random: they say nothing about the teacher"
                return

    def make_cell_values(self, values: dict[str, Any], index: tuple[int, ...]) -> dict[str, Any]:
        return super().make_cell_values(values, index) | {"teacher": make_teacher(values)}


class LossFit(TeacherFit):
    """Learners that minimise a convex loss with a penalty on examples from a teacher."""

    LABELLED_CLASSES: ClassVar = {"weights": WEIGHT_DISTRIBUTIONS}

    penalty: Annotated[NameOrAxis, one_of(L1_FRACTIONS_BY_PENALTY, "a penalty")] = Field(
        default="l2", description="penalty on the weights"
    )
    l1_ratio: FractionAxis = Field(default=0.5, description="weight of the l1 norm in the elastic net")
    weights: Annotated[NameOrAxis, one_of(WEIGHT_DISTRIBUTIONS, "a distribution of weights")] = Field(
        default="gauss", description="distribution of the teacher's weights"
    )
    rho: FractionAxis = config_key(
        0.2, description="fraction of nonzero weights, with `weights: sparse`", symbol=r"$\rho$"
    )

    if TYPE_CHECKING:  # show editors and type checkers the parameters of losses
        width: InitVar[NumberOrAxis] = 1.0

    def _find_problems(self) -> Iterator[Problem]:
        yield from super()._find_problems()
        yield from self._find_loss_teacher_conflicts()

    @classmethod
    def list_key_conditions(cls) -> dict[str, tuple[str, list[str]]]:
        mixed_penalties = [name for name, l1_ratio in L1_FRACTIONS_BY_PENALTY.items() if l1_ratio is None]
        return {
            **super().list_key_conditions(),
            "l1_ratio": ("penalty", mixed_penalties),
            "rho": ("weights", list_kinds_with_parameter(WEIGHT_DISTRIBUTIONS, "rho")),
        }

    def _find_loss_teacher_conflicts(self) -> Iterator[Problem]:
        """Find convex losses that are undefined for the outputs of a teacher.

        A loss of stabilities requires labels, and an asymmetric loss of residuals requires real outputs.
        """
        losses: Mapping[str, type[Loss]] = self.choices()["loss"]
        for loss, teacher in self.list_value_pairs("loss", "teacher"):
            if losses[loss].of == "stability" and not TEACHERS[teacher].labels:
                residual_losses = ", ".join(name for name, kind in losses.items() if kind.of == "residual")
                reason = f"which teacher {teacher} does not give; losses that do not: {residual_losses}"
                yield ("loss",), f"{loss} needs labels, {reason}"
                return
        for values in self.iterate_combinations("loss", "teacher", *self.parameters):
            if TEACHERS[values["teacher"]].labels and (
                reason := explain_label_mismatch(self.make_component(values, "loss"))
            ):
                yield ("loss",), reason
                return

    def make_cell_values(self, values: dict[str, Any], index: tuple[int, ...]) -> dict[str, Any]:
        return super().make_cell_values(values, index) | {
            "name": values["loss"],
            "loss": self.make_component(values, "loss"),
            "penalty": make_penalty(values),
            "lam": values["lam"],
            "weights": instantiate_with_values(WEIGHT_DISTRIBUTIONS[values["weights"]], values),
        }


class LossSetting(NamedTuple):
    """Everything that determines a minimum for N -> infinity, except alpha and lambda.

    `inputs` is None for isotropic inputs.
    """

    loss: Loss
    teacher: Teacher
    penalty: Penalty
    weights: WeightDistribution
    inputs: InputPopulation | None = None

    @property
    def learner(self) -> tuple[Loss, Teacher, Penalty, WeightDistribution]:
        """Loss, teacher, penalty and weights, without the inputs."""
        return self[:4]


class PenalisedCell(Cell):
    """A grid point whose learners minimise a loss, with a given or with the best strength of the penalty."""

    name: str
    loss: Loss
    lam: float | str
    P: int

    @property
    def shared_setting(self) -> Hashable:
        """Everything that determines the best penalty, except the number of examples."""
        raise NotImplementedError

    @property
    def sample_size(self) -> float:
        """Number of examples for a search of the best penalty, divided by N unless a table fixes N."""
        raise NotImplementedError


@dataclass(frozen=True)
class TeacherCell(Cell):
    """A grid point with P examples of a teacher."""

    name: str
    teacher: Teacher
    weights: WeightDistribution
    N: int
    P: int
    alpha: float
    index: tuple[int, ...]


@dataclass(frozen=True)
class LossCell(TeacherCell):
    """A grid point whose learners minimise a loss on examples from a teacher."""

    loss: Loss
    penalty: Penalty
    lam: float | str

    @property
    def loss_setting(self) -> LossSetting:
        """Loss, teacher, penalty and weights, which fix the minimum for N -> infinity at given alpha and lambda."""
        return LossSetting(self.loss, self.teacher, self.penalty, self.weights)

    @property
    def loss_for_teacher_outputs(self) -> Loss:
        """The loss, as a function of stabilities for labels and of residuals for real outputs."""
        return convert_to_stability_loss(self.loss) if self.teacher.labels else self.loss


def list_kinds_with_parameter(kinds: Mapping[str, type], key: str) -> list[str]:
    """Return the names of the classes with a certain parameter.

    >>> list_kinds_with_parameter(TEACHERS, "noise")
    ['probit', 'linear']
    """
    return [name for name, kind in kinds.items() if key in {field.name for field in fields(kind)}]


def instantiate_with_values(kind: type[ClassT], values: dict[str, Any]) -> ClassT:
    """Instantiate a teacher or weight distribution with its parameters from a grid point."""
    return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})  # type: ignore[arg-type]


def make_teacher(values: dict[str, Any]) -> Teacher:
    """Return the teacher at a grid point."""
    return instantiate_with_values(TEACHERS[values["teacher"]], values)


def make_penalty(values: dict[str, Any]) -> Penalty:
    """Return the penalty at a grid point."""
    l1_ratio = L1_FRACTIONS_BY_PENALTY[values["penalty"]]
    return Penalty(values["l1_ratio"] if l1_ratio is None else l1_ratio)


def make_missing_minimum_problem(loss: str, min_alpha: float, separable_items: str = "examples") -> Problem:
    """Explain that a loss has no minimum at lam = 0 below alpha = `min_alpha`, or at any alpha if it is infinite.

    >>> make_missing_minimum_problem("logistic", 2.0)[1]
    "with lam = 0 the loss logistic has no minimum below alpha = 2: examples can be separated, and the student's \
length diverges"
    """
    range_text = f"below alpha = {min_alpha:.6g}" if np.isfinite(min_alpha) else "at any alpha"
    reason = f"{separable_items} can be separated, and the student's length diverges"
    return ("lam",), f"with lam = 0 the loss {loss} has no minimum {range_text}: {reason}"


def estimate_fit_seconds(loss: Loss, P: int, N: int, has_l1: bool = False) -> float:
    """Estimate the seconds to draw inputs, test separability and fit a convex loss."""
    smaller = min(N, P)
    rate, min_seconds = (
        (KINKED_FIT_SECONDS, MIN_KINKED_FIT_SECONDS) if loss.kinks else (SMOOTH_FIT_SECONDS, MIN_FIT_SECONDS)
    )
    return min_seconds + 1.5 * (L1_FIT_SECONDS if has_l1 else rate) * (P * N * smaller + smaller**3) + 1.5e-8 * P * N
