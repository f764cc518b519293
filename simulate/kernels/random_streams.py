"""Streams of random numbers, one for each part of a seed's data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from statmech.convex.weights import WeightDistribution
from statmech.scenarios.cells import hash_identity

TEACHER_STREAM, START_STREAM, INPUT_STREAM, OUTPUT_STREAM, MISFIT_STREAM, PROJECTION_STREAM, TEST_STREAM = range(
    7
)  # one stream for each kind of random number


def make_random_stream(part: int, **identity: Any) -> np.random.Generator:
    """Return the random number generator for one part of the data."""
    return np.random.default_rng([*hash_identity(identity), part])


def describe_weight_prior(weights: WeightDistribution) -> dict[str, Any]:
    """Return the name and parameters of a weight prior, which identify its random stream."""
    return {"weights": type(weights).__name__, **asdict(weights)}
