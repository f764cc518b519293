"""Keys that scenarios of convex losses and of inference share: the teacher, its noise and weights, and the penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Annotated, Any, TypeVar

from pydantic import Field

from statmech.convex.losses import Loss, on_labels, uneven
from statmech.convex.penalties import PENALTIES, Penalty
from statmech.convex.teachers import TEACHERS, Teacher
from statmech.convex.weights import WEIGHTS, Weights
from statmech.errors import Problem
from statmech.scenarios.axes import Names, Numbers, axis_of, points
from statmech.scenarios.cells import Cell
from statmech.scenarios.convex_setting import Setting
from statmech.scenarios.grid import Grid
from statmech.scenarios.keys import Number, config_key, one_of

ClassT = TypeVar("ClassT")

# the schema excludes the flip and the gain of labels that say nothing about the teacher, for which there is a sentence
FlipAxis = Annotated[
    Numbers, axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "exclusiveMaximum": 0.5})
]
GainAxis = Annotated[Numbers, axis_of(Annotated[Number, Field(ge=0)], {"type": "number", "exclusiveMinimum": 0})]
ShareAxis = Annotated[
    Numbers, axis_of(Annotated[Number, Field(gt=0, le=1)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1})
]
OF_TEACHERS = ("flip", "noise", "gain")  # keys that some teachers have
TeacherAxis = Annotated[Names, one_of(TEACHERS, "a teacher")]
PenaltyAxis = Annotated[Names, one_of(PENALTIES, "a penalty")]
WeightsAxis = Annotated[Names, one_of(WEIGHTS, "a distribution of weights")]

ALPHA = config_key(description="stored examples per input dimension, P / N", symbol=r"$\alpha$", unit="P / N")
FLIP = config_key(0.0, description="probability that a label is flipped, with `teacher: sign`", symbol="$p_f$")
NOISE = config_key(
    0.0, description="standard deviation of the noise, with `teacher: probit` or `linear`", symbol=r"$\sigma$"
)
GAIN = config_key(1.0, description="gain of the logistic function, with `teacher: logit`", symbol=r"$\beta$")
PENALTY = Field(default="l2", description="penalty on the weights")
L1_RATIO = Field(default=0.5, description="weight of the l1 norm in the elastic net")
OF_WEIGHTS = Field(default="gauss", description="distribution of the teacher's weights")
RHO = config_key(0.2, description="fraction of nonzero weights, with `weights: sparse`", symbol=r"$\rho$")


def having(kinds: Mapping[str, type], key: str) -> list[str]:
    """The names of those that have a parameter.

    >>> having(TEACHERS, "noise")
    ['probit', 'linear']
    """
    return [name for name, kind in kinds.items() if key in {field.name for field in fields(kind)}]


def made(kind: type[ClassT], values: dict[str, Any]) -> ClassT:
    """A teacher, or a distribution of weights, with those parameters that a point of a grid has."""
    return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})  # type: ignore[arg-type]


def teacher_at(values: dict[str, Any]) -> Teacher:
    """The teacher at a point of a grid."""
    return made(TEACHERS[values["teacher"]], values)


def penalty_at(values: dict[str, Any]) -> Penalty:
    """The penalty at a point of a grid."""
    l1_ratio = PENALTIES[values["penalty"]]
    return Penalty(values["l1_ratio"] if l1_ratio is None else l1_ratio)


def weights_at(values: dict[str, Any]) -> Weights:
    """The distribution of the teacher's weights at a point of a grid."""
    return made(WEIGHTS[values["weights"]], values)


class LossCell(Cell):
    """A point of the grid of a kind whose learners go down a loss of a teacher's examples."""

    loss: Loss
    teacher: Teacher
    penalty: Penalty
    weights: Weights

    @property
    def setting(self) -> Setting:
        """All that the minimum depends on for N -> infinity but the numbers alpha and lambda."""
        return Setting(self.loss, self.teacher, self.penalty, self.weights)

    @property
    def on(self) -> Loss:
        """The loss as a function of stabilities (of labels) or of residuals (of real outputs)."""
        return on_labels(self.loss) if self.teacher.labels else self.loss


class Belonging:
    """Keys that concern some teachers (penalties, distributions) only: others neither state nor may change them."""

    def _choices(self) -> dict[str, tuple[str, list[str]]]:
        """Each such key, with the key that decides and its values that have it."""
        return {key: ("teacher", having(TEACHERS, key)) for key in OF_TEACHERS}

    def _stated(self, name: str) -> bool:
        """False for a key that concerns nothing here."""
        deciding_key, values_with_key = self._choices().get(name, ("", []))
        concerns = not deciding_key or bool({*values_with_key} & {*points(getattr(self, deciding_key))})
        return concerns and super()._stated(name)  # type: ignore[misc]

    def _unused_problems(self) -> Iterator[Problem]:
        for key, (deciding_key, values_with_key) in self._choices().items():
            if not self._stated(key) and getattr(self, key) != type(self).model_fields[key].default:  # type: ignore[attr-defined]
                chosen_values = " and ".join(points(getattr(self, deciding_key)))
                yield (
                    (key,),
                    f"applies only to `{deciding_key}: {'` or `'.join(values_with_key)}`, not to {chosen_values}",
                )


class OfLosses(Belonging):
    """Keys of teachers, penalties and distributions of weights, each of which concerns some of these only."""

    def _choices(self) -> dict[str, tuple[str, list[str]]]:
        mixed_penalties = [name for name, l1_ratio in PENALTIES.items() if l1_ratio is None]
        return {
            **super()._choices(),
            "l1_ratio": ("penalty", mixed_penalties),
            "rho": ("weights", having(WEIGHTS, "rho")),
        }


def output_problems(scenario: Grid, losses: Mapping[str, type[Loss]]) -> Iterator[Problem]:
    """A loss of stabilities needs labels, and one of residuals that is not even needs outputs."""
    for loss, teacher in scenario.pairs("loss", "teacher"):
        if losses[loss].of == "stability" and not TEACHERS[teacher].labels:
            residual_losses = ", ".join(name for name, kind in losses.items() if kind.of == "residual")
            yield (
                ("loss",),
                f"{loss} needs labels, which teacher {teacher} does not give; losses that do not: {residual_losses}",
            )
            return
    for values in scenario.combinations("loss", "teacher", *scenario.parameters):
        if TEACHERS[values["teacher"]].labels and (reason := uneven(scenario.kind_at(values, "loss"))):
            yield ("loss",), reason
            return


def teacher_problems(scenario: Grid) -> Iterator[Problem]:
    """Teachers whose outputs say nothing about them, from which nothing can be learnt."""
    for values in scenario.combinations("teacher", *OF_TEACHERS):
        if reason := teacher_at(values).uninformative:
            yield (reason.split(" ")[0],), f"at {reason} labels are random: they say nothing about the teacher"
            return
