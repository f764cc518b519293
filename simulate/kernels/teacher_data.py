"""Examples of a random teacher, for learners that minimise a loss and for Bayesian inference.

A seed has one teacher for each N and distribution of weights, and for each N one endless list of inputs with random
numbers for their outputs. Every alpha of a sweep uses the first P inputs, and a larger flip probability flips the same
labels and more. So runs can be compared example by example, also between different kinds of scenario.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulate.kernels.random_streams import (
    INPUT_STREAM,
    OUTPUT_STREAM,
    TEACHER_STREAM,
    describe_weight_prior,
    make_random_stream,
)
from simulate.kernels.structured_data import StudentMeasure, draw_teacher_inputs
from statmech.inputs import Gaussian
from statmech.scenarios.convex_fit import TeacherCell
from statmech.scenarios.risk import RiskCell


class TeacherData(NamedTuple):
    """A teacher's weights (N,), inputs X (P, N) and outputs y (P,).

    With unequal variances also the measure of students.
    """

    teacher: np.ndarray
    X: np.ndarray
    y: np.ndarray
    student_measure: StudentMeasure | None = None


def draw_teacher_data(cell: TeacherCell, key: int, seed: int) -> TeacherData:
    """Draw the first P examples of a seed.

    >>> from statmech import Inference
    >>> scenario = Inference(prior="binary", N=4, alpha=[0.5, 1])
    >>> few, more = (draw_teacher_data(cell, key=0, seed=0) for cell in scenario.cells())
    >>> bool((more.X[:2] == few.X).all()), bool((more.y[:2] == few.y).all()), abs(few.teacher).tolist()
    (True, True, [1.0, 1.0, 1.0, 1.0])
    """
    N, identity = cell.N, {"N": cell.N, "key": key, "seed": seed}
    inputs = cell.inputs if isinstance(cell, RiskCell) else Gaussian()
    if not inputs.isotropic:
        assert isinstance(cell, RiskCell)
        examples = draw_teacher_inputs(cell, identity)
        y = cell.teacher.draw(make_random_stream(OUTPUT_STREAM, **identity), examples.u)
        return TeacherData(examples.teacher, examples.X, y, examples.student_measure)
    w = cell.weights.draw(make_random_stream(TEACHER_STREAM, **identity, **describe_weight_prior(cell.weights)), N)
    X = inputs.draw_examples(make_random_stream(INPUT_STREAM, **identity), cell.P, N)
    u = np.einsum("pi,i->p", X, w) / np.sqrt(N)  # row by row: each field's bits are independent of other rows
    return TeacherData(w, X, cell.teacher.draw(make_random_stream(OUTPUT_STREAM, **identity), u))
