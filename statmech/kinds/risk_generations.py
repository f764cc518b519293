"""Scenarios of generations of learners that label the examples of their successors.

A config file with the keys `loss` and `generations` becomes a `Generations`, the input of `simulate.run` and
`theory.solve`. Generation 0 learns P = alpha N examples from the teacher. Every later generation learns P fresh
examples. The teacher labels the fraction `real`, and the previous student labels the other examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from statmech.convex.losses import L1_FRACTIONS_BY_PENALTY, LOSSES, find_minimiser_interval
from statmech.convex.separability_thresholds import compute_minimum_existence_threshold
from statmech.convex.teachers import TEACHERS
from statmech.errors import Problem
from statmech.keys.key_types import (
    PARAMETERS,
    NonnegativeAxis,
    Number,
    Whole,
    config_key,
    make_recorded_axis_type,
)
from statmech.keys.sweep_grid import NumberOrAxis, axis_of, ensure_tuple
from statmech.keys.variables import Variable
from statmech.kinds.convex_fit import (
    FIT_THEORY_VARIABLES,
    FIT_VARIABLES,
    MINIMISED_LOSS_FIELD,
    TEACHER_PARAMETER_KEYS,
    LossFit,
    MinimisedLossAxis,
    estimate_fit_seconds,
    make_missing_minimum_problem,
    make_teacher,
)
from statmech.kinds.empirical_risk import RiskCell

MAX_GENERATION = 10_000  # larger values must be typos
FRESH_INPUTS_REASON = (
    "every generation learns fresh gaussian inputs of equal variance: new labels of the same inputs, and other "
    "inputs, are not supported: remove {}"
)
SINGLE_STUDENT_REASON = "a generation is one student that minimises its loss: remove {}"

RecordedGenerations = Annotated[
    Any, make_recorded_axis_type("generations", value_type=Annotated[Whole, Field(ge=0, le=MAX_GENERATION)])
]
RealFractionAxis = Annotated[
    NumberOrAxis, axis_of(Annotated[Number, Field(ge=0, le=1)], {"type": "number", "minimum": 0, "maximum": 1})
]
GENERATION_VARIABLES = {
    name: replace(variable, dims=("generations",)) for name, variable in FIT_VARIABLES.items() if name != "mse"
}
GENERATION_THEORY_VARIABLES = {
    "residual": replace(FIT_THEORY_VARIABLES["residual"], dims=("generations",)),
    "R_fixed_point": Variable((), "teacher-student cosine, after many generations", "$R^*$"),
    "eps_fixed_point": Variable((), "error at the fixed point of many generations", r"$\epsilon^*$"),
}


class Generations(LossFit):
    """Generations of learners that minimise a convex loss, and label the examples of their successors.

    Any list except `generations` is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Generations(loss="logistic", generations=[0, 1, 5], real=[0, 0.5], N=20, alpha=3)
    >>> [(cell.real, cell.P, cell.num_real) for cell in scenario.cells()]
    [(0.0, 60, 0), (0.5, 60, 30)]
    """

    CHOICE: ClassVar = "loss"
    KINDS: ClassVar = LOSSES
    AXES: ClassVar = (
        *("loss", "penalty", "l1_ratio", "teacher", "flip", "noise", "gain", "weights", "rho", PARAMETERS),
        *("N", "real", "lam", "alpha"),
    )
    UNSUPPORTED_KEYS: ClassVar = {
        "inputs": FRESH_INPUTS_REASON,
        **dict.fromkeys(("K", "resample", "bayes", "solver"), SINGLE_STUDENT_REASON),
    }
    TITLE: ClassVar = "generations of learners"
    CITES: ClassVar = ("aubin2020", "shumailov2024", "dohmatob2024")
    USUAL_X_KEY: ClassVar = "generations"
    equations: ClassVar = (
        r"\mathbf w_g = \arg\min\sum_\mu\ell(x^\mu) + \lambda\,|\mathbf w|^2/2",
        r"x = yh, \quad y = \mathrm{sgn}\,h_{g-1} \text{ or a true label}",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )
    variables: ClassVar = GENERATION_VARIABLES
    theory_only_variables: ClassVar = GENERATION_THEORY_VARIABLES

    loss: MinimisedLossAxis = MINIMISED_LOSS_FIELD
    generations: RecordedGenerations = config_key(
        description="generations that are recorded, increasing; generation 0 learns labels of the teacher",
        symbol="generation $g$",
    )
    real: RealFractionAxis = config_key(
        0.0, description="fraction of true labels in every generation after the first", symbol=r"$r_\mathrm{true}$"
    )
    lam: NonnegativeAxis = config_key(
        0.1, description="strength of the penalty; 0: the limit of a vanishing one", symbol=r"$\lambda$"
    )

    def _find_problems(self) -> Iterator[Problem]:
        yield from super()._find_problems()
        for teacher in ensure_tuple(self.teacher):
            if not TEACHERS[teacher].labels:
                yield ("teacher",), f"generations learn labels: teacher {teacher} is not supported"
                return
        for penalty in ensure_tuple(self.penalty):
            if L1_FRACTIONS_BY_PENALTY[penalty] != 0:
                yield (
                    ("penalty",),
                    f"generations of learners have equations with an l2 penalty only, not with {penalty}",
                )
                return
        yield from self._find_unbounded_losses()

    def _find_unbounded_losses(self) -> Iterator[Problem]:
        """Find losses without a minimum at lam = 0, for labels of the teacher or of a student."""
        names = ("loss", "teacher", *TEACHER_PARAMETER_KEYS, *self.parameters, "real", "lam", "alpha")
        for values in self.iterate_combinations(*names) if 0 in ensure_tuple(self.lam) else ():
            loss = self.make_component(values)
            if values["lam"] != 0 or find_minimiser_interval(loss) is not None:
                continue
            min_alpha = compute_minimum_existence_threshold(loss, make_teacher(values))
            if values["real"] == 0 and self.generations[-1] > 0:
                min_alpha = np.inf  # labels of a student have no noise
            if values["alpha"] < min_alpha:
                yield make_missing_minimum_problem(values["loss"], min_alpha, "labels")
                return

    @classmethod
    def has_integer_values(cls, name: str) -> bool:
        """Return True for keys with integer values, and for `generations`."""
        return name == "generations" or super().has_integer_values(name)

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        return {"generations": np.asarray(self.generations)}

    def estimate_run_seconds(self, cell: Any) -> float:
        return (1 + self.generations[-1]) * estimate_fit_seconds(cell.loss, cell.P, cell.N)

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> GenerationsCell:
        return GenerationsCell(**self.make_cell_values(values, index), real=values["real"])


@dataclass(frozen=True)
class GenerationsCell(RiskCell):
    """One grid point: the loss, the penalty, the teacher, the number of examples and the fraction of true labels."""

    real: float = 0.0

    @property
    def num_real(self) -> int:
        """Number of examples with true labels in every generation after the first."""
        return round(self.real * self.P)
