"""Streams of random numbers, one for each part of a seed's data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from statmech.convex.weights import Weights
from statmech.scenarios.cells import words_of

TEACHER, START, INPUTS, OUTPUTS, MISFIT, PROJECTION, TEST = range(7)  # purposes of random numbers


def stream(part: int, **identity: Any) -> np.random.Generator:
    """Return the random numbers of one part of the data."""
    return np.random.default_rng([*words_of(identity), part])


def named(weights: Weights) -> dict[str, Any]:
    """Return the distribution and its parameters, which identify its random numbers."""
    return {"weights": type(weights).__name__, **asdict(weights)}
