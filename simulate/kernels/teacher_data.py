"""Examples of a teacher whose weights are drawn: the data of learners that minimise a loss, and of inference.

A seed has one teacher for each N and distribution of weights, and for each N one endless list of inputs and of the
random numbers of their outputs: every alpha of a sweep sees the first P, and a larger probability of flips flips the
same labels and more. So runs can be compared example by example, also those of different kinds of scenario.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from statmech.convex.weights import Weights
from statmech.scenarios.cells import words_of
from statmech.scenarios.inference import InferenceCell
from statmech.scenarios.risk import RiskCell

Cell = RiskCell | InferenceCell
TEACHER, START, INPUTS, OUTPUTS = range(4)  # what random numbers are for


class TeacherData(NamedTuple):
    """A teacher's weights (N,), inputs X (P, N) and outputs y (P,)."""

    teacher: np.ndarray
    X: np.ndarray
    y: np.ndarray


def stream(part: int, **identity: Any) -> np.random.Generator:
    """The random numbers of one part of the data."""
    return np.random.default_rng([*words_of(identity), part])


def drawn(cell: Cell, key: int, seed: int) -> TeacherData:
    """Draw the first P examples of a seed.

    >>> from statmech import Inference
    >>> few, more = (drawn(it, key=0, seed=0) for it in Inference(prior="binary", N=4, alpha=[0.5, 1]).cells())
    >>> bool((more.X[:2] == few.X).all()), bool((more.y[:2] == few.y).all()), abs(few.teacher).tolist()
    (True, True, [1.0, 1.0, 1.0, 1.0])
    """
    N, own = cell.N, {"N": cell.N, "key": key, "seed": seed}
    w = cell.weights.draw(stream(TEACHER, **own, **named(cell.weights)), N)
    X = stream(INPUTS, **own).standard_normal((cell.P, N))
    u = np.einsum("pi,i->p", X, w) / np.sqrt(N)  # row by row: the bits of one depend on no other
    return TeacherData(w, X, cell.teacher.draw(stream(OUTPUTS, **own), u))


def named(weights: Weights) -> dict[str, Any]:
    """The distribution and its parameters, as part of what names random numbers."""
    return {"weights": type(weights).__name__, **asdict(weights)}
