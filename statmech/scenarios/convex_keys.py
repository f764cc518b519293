"""Config keys shared by scenarios of convex losses and inference: teacher, noise, weights and penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Annotated, Any, TypeVar

from pydantic import Field

from statmech.convex.losses import Loss, convert_to_stability_loss, explain_label_mismatch
from statmech.convex.penalties import L1_FRACTIONS_BY_PENALTY, Penalty
from statmech.convex.teachers import TEACHERS, Teacher
from statmech.convex.weights import WEIGHT_DISTRIBUTIONS, WeightDistribution
from statmech.errors import Problem
from statmech.scenarios.axes import NameOrAxis, NumberOrAxis, axis_of, ensure_tuple
from statmech.scenarios.cells import Cell
from statmech.scenarios.convex_setting import LossSetting
from statmech.scenarios.grid import Grid
from statmech.scenarios.keys import Number, config_key, one_of

ClassT = TypeVar("ClassT")

# the schema excludes flips and gains that make labels random; the validator accepts them, as a later check explains why
TeacherFlipAxis = Annotated[
    NumberOrAxis,
    axis_of(Annotated[Number, Field(ge=0, le=0.5)], {"type": "number", "minimum": 0, "exclusiveMaximum": 0.5}),
]
GainAxis = Annotated[NumberOrAxis, axis_of(Annotated[Number, Field(ge=0)], {"type": "number", "exclusiveMinimum": 0})]
FractionAxis = Annotated[
    NumberOrAxis, axis_of(Annotated[Number, Field(gt=0, le=1)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1})
]
TEACHER_PARAMETER_KEYS = ("flip", "noise", "gain")  # each teacher has some of these parameters
TeacherAxis = Annotated[NameOrAxis, one_of(TEACHERS, "a teacher")]
PenaltyAxis = Annotated[NameOrAxis, one_of(L1_FRACTIONS_BY_PENALTY, "a penalty")]
WeightDistributionAxis = Annotated[NameOrAxis, one_of(WEIGHT_DISTRIBUTIONS, "a distribution of weights")]

ALPHA_FIELD = config_key(description="stored examples per input dimension, P / N", symbol=r"$\alpha$", unit="P / N")
FLIP_FIELD = config_key(0.0, description="probability that a label is flipped, with `teacher: sign`", symbol="$p_f$")
NOISE_FIELD = config_key(
    0.0, description="standard deviation of the noise, with `teacher: probit` or `linear`", symbol=r"$\sigma$"
)
GAIN_FIELD = config_key(1.0, description="gain of the logistic function, with `teacher: logit`", symbol=r"$\beta$")
PENALTY_FIELD = Field(default="l2", description="penalty on the weights")
L1_RATIO_FIELD = Field(default=0.5, description="weight of the l1 norm in the elastic net")
TEACHER_WEIGHTS_FIELD = Field(default="gauss", description="distribution of the teacher's weights")
RHO_FIELD = config_key(0.2, description="fraction of nonzero weights, with `weights: sparse`", symbol=r"$\rho$")


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


def make_teacher_weights(values: dict[str, Any]) -> WeightDistribution:
    """Return the distribution of the teacher's weights at a grid point."""
    return instantiate_with_values(WEIGHT_DISTRIBUTIONS[values["weights"]], values)


class LossCell(Cell):
    """A grid point whose learners minimise a loss on examples from a teacher."""

    loss: Loss
    teacher: Teacher
    penalty: Penalty
    weights: WeightDistribution

    @property
    def loss_setting(self) -> LossSetting:
        """Loss, teacher, penalty and weights, which fix the minimum for N -> infinity at given alpha and lambda."""
        return LossSetting(self.loss, self.teacher, self.penalty, self.weights)

    @property
    def loss_for_teacher_outputs(self) -> Loss:
        """The loss, as a function of stabilities for labels and of residuals for real outputs."""
        return convert_to_stability_loss(self.loss) if self.teacher.labels else self.loss


class ConditionalKeys:
    """Mix-in for keys that apply only to certain teachers, penalties or weight distributions.

    A scenario without these teachers, penalties or distributions omits the keys and cannot set them.
    """

    def _list_key_conditions(self) -> dict[str, tuple[str, list[str]]]:
        """Return, for each conditional key, the key it depends on and the values that allow it."""
        return {key: ("teacher", list_kinds_with_parameter(TEACHERS, key)) for key in TEACHER_PARAMETER_KEYS}

    def _is_key_included(self, name: str) -> bool:
        """Return True unless this key is omitted or does not apply to the scenario."""
        deciding_key, values_with_key = self._list_key_conditions().get(name, ("", []))
        concerns = not deciding_key or bool({*values_with_key} & {*ensure_tuple(getattr(self, deciding_key))})
        return concerns and super()._is_key_included(name)  # type: ignore[misc]

    def _find_inapplicable_keys(self) -> Iterator[Problem]:
        """Find keys that are set, but do not apply to this scenario."""
        for key, (deciding_key, values_with_key) in self._list_key_conditions().items():
            if not self._is_key_included(key) and getattr(self, key) != type(self).model_fields[key].default:  # type: ignore[attr-defined]
                chosen_values = " and ".join(ensure_tuple(getattr(self, deciding_key)))
                yield (
                    (key,),
                    f"applies only to `{deciding_key}: {'` or `'.join(values_with_key)}`, not to {chosen_values}",
                )


class ConditionalLossKeys(ConditionalKeys):
    """Mix-in for scenarios of convex losses, which have conditional keys of teacher, penalty and weights."""

    def _list_key_conditions(self) -> dict[str, tuple[str, list[str]]]:
        """Return the conditions for the teacher's keys, `l1_ratio` and `rho`."""
        mixed_penalties = [name for name, l1_ratio in L1_FRACTIONS_BY_PENALTY.items() if l1_ratio is None]
        return {
            **super()._list_key_conditions(),
            "l1_ratio": ("penalty", mixed_penalties),
            "rho": ("weights", list_kinds_with_parameter(WEIGHT_DISTRIBUTIONS, "rho")),
        }


def find_loss_teacher_conflicts(scenario: Grid, losses: Mapping[str, type[Loss]]) -> Iterator[Problem]:
    """Find losses that are undefined for the outputs of a teacher.

    A loss of stabilities requires labels, and an asymmetric loss of residuals requires real outputs.
    """
    for loss, teacher in scenario.list_value_pairs("loss", "teacher"):
        if losses[loss].of == "stability" and not TEACHERS[teacher].labels:
            residual_losses = ", ".join(name for name, kind in losses.items() if kind.of == "residual")
            yield (
                ("loss",),
                f"{loss} needs labels, which teacher {teacher} does not give; losses that do not: {residual_losses}",
            )
            return
    for values in scenario.iterate_combinations("loss", "teacher", *scenario.parameters):
        if TEACHERS[values["teacher"]].labels and (
            reason := explain_label_mismatch(scenario.make_component(values, "loss"))
        ):
            yield ("loss",), reason
            return


def find_uninformative_teachers(scenario: Grid) -> Iterator[Problem]:
    """Find teachers whose labels are random."""
    for values in scenario.iterate_combinations("teacher", *TEACHER_PARAMETER_KEYS):
        if reason := make_teacher(values).uninformative_setting:
            yield (reason.split(" ")[0],), f"at {reason} labels are random: they say nothing about the teacher"
            return
