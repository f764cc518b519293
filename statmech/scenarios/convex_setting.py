"""The setting of a convex loss for N -> infinity: its learner, teacher and inputs."""

from __future__ import annotations

from typing import NamedTuple

from statmech.convex.losses import Loss
from statmech.convex.penalties import Penalty
from statmech.convex.teachers import Teacher
from statmech.convex.weights import WeightDistribution
from statmech.population import InputPopulation


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
