"""Examples of a teacher whose weights are drawn: the data of learners that minimise a loss, and of inference.

A seed has one teacher for each N and distribution of weights, and for each N one endless list of inputs with random
numbers for their outputs. Every alpha of a sweep uses the first P inputs, and a larger flip probability flips the same
labels and more. So runs can be compared example by example, also between different kinds of scenario.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulate.kernels.random_streams import INPUTS, OUTPUTS, TEACHER, named, stream
from simulate.kernels.structured_data import Measure, drawn_inputs
from statmech.inputs import Gaussian, Inputs, Rademacher, Sphere
from statmech.scenarios.inference import InferenceCell
from statmech.scenarios.risk import RiskCell

Cell = RiskCell | InferenceCell


class TeacherData(NamedTuple):
    """A teacher's weights (N,), inputs X (P, N) and outputs y (P,).

    With unequal variances also the measure of students.
    """

    teacher: np.ndarray
    X: np.ndarray
    y: np.ndarray
    measure: Measure | None = None


def drawn(cell: Cell, key: int, seed: int) -> TeacherData:
    """Draw the first P examples of a seed.

    >>> from statmech import Inference
    >>> few, more = (drawn(c, key=0, seed=0) for c in Inference(prior="binary", N=4, alpha=[0.5, 1]).cells())
    >>> bool((more.X[:2] == few.X).all()), bool((more.y[:2] == few.y).all()), abs(few.teacher).tolist()
    (True, True, [1.0, 1.0, 1.0, 1.0])
    """
    N, identity = cell.N, {"N": cell.N, "key": key, "seed": seed}
    inputs = cell.inputs if isinstance(cell, RiskCell) else Gaussian()
    if not inputs.isotropic:
        assert isinstance(cell, RiskCell)
        examples = drawn_inputs(cell, identity)
        y = cell.teacher.draw(stream(OUTPUTS, **identity), examples.u)
        return TeacherData(examples.teacher, examples.X, y, examples.measure)
    w = cell.weights.draw(stream(TEACHER, **identity, **named(cell.weights)), N)
    X = isotropic(inputs, stream(INPUTS, **identity), cell.P, N)
    u = np.einsum("pi,i->p", X, w) / np.sqrt(N)  # row by row: each field's bits are independent of other rows
    return TeacherData(w, X, cell.teacher.draw(stream(OUTPUTS, **identity), u))


def isotropic(inputs: Inputs, rng: np.random.Generator, P: int, N: int) -> np.ndarray:
    """Draw inputs of equal variance, times sqrt(N), (P, N) in float64."""
    if isinstance(inputs, Rademacher):
        return np.where(rng.random((P, N)) < 0.5, -1.0, 1.0)
    X = rng.standard_normal((P, N))
    if isinstance(inputs, Sphere):
        X *= np.sqrt(N) / np.linalg.norm(X, axis=1, keepdims=True)
    return X
