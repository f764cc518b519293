"""The record of a descent, shared by both engines."""

from __future__ import annotations

import numpy as np

from statmech.convex.label_error import label_error
from statmech.convex.teachers import LabelTeacher
from statmech.results.dataset import compute_student_order_parameters
from statmech.scenarios.descent import DescentCell


class DescentRecord:
    """The weights relative to the teacher, and the loss and errors on the examples, at each recorded step.

    A run that overflows is NaN from its first overflow onwards.
    """

    def __init__(self, cell: DescentCell):
        self.cell = cell
        self.places = {step: index for index, step in enumerate(cell.steps)}
        self.values = np.full((4, len(cell.steps)), np.nan)

    def write(self, step: int, parallel: float, perpendicular: float, stabilities_or_residuals: np.ndarray) -> None:
        """Record the components of w/sqrt(N) and the stabilities or residuals (P,) of all examples."""
        wrong = np.mean((1 - np.sign(stabilities_or_residuals)) / 2)
        self.values[:, self.places[step]] = (
            parallel,
            perpendicular,
            np.mean(self.cell.loss_for_teacher_outputs.value(stabilities_or_residuals)),
            wrong,
        )

    def variables(self) -> dict[str, np.ndarray]:
        """Return the variables of the run at the recorded steps."""
        overflowed = ~np.isfinite(self.values[:3]).all(axis=0)
        self.values[:, np.maximum.accumulate(overflowed)] = np.nan
        parallel, perpendicular, loss, wrong = self.values
        with np.errstate(invalid="ignore"):
            student = compute_student_order_parameters(parallel, perpendicular)
        at_zero = student["length"] == 0  # a student of length 0 guesses at random
        student["R"][at_zero], student["eps_g"][at_zero] = 0.0, 0.5
        if isinstance(self.cell.teacher, LabelTeacher):
            fresh = {"eps_y": label_error(self.cell.teacher, student["R"]), "eps_t": wrong}
        else:
            fresh = {"mse": (parallel - 1) ** 2 + perpendicular**2}
        return student | fresh | {"train_loss": loss}
