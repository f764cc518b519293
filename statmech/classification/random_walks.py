"""Scenarios of random walks with early stopping: boundary, sums, features and nominal error rate.

A config file with the key `boundary` becomes a `Stopping`, the input of `simulate.run` and `theory.solve`. Sums
:math:`S_i` of independent Gaussian features model partial margins (`statmech.classification.stopping_boundaries`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from statmech.classification.stopping_boundaries import (
    BOUNDARIES,
    MIN_TARGET_ERROR_RATE,
    Boundary,
    compute_stopping_level,
    compute_total_level_rise,
    get_check_positions,
)
from statmech.errors import Problem
from statmech.keys.key_types import PARAMETERS, DimensionAxis, Number, Whole, config_key, one_of
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell, IntegerOrAxis, NameOrAxis, NumberOrAxis, axis_of
from statmech.keys.variables import Variable

MAX_WALKS_PER_SEED = 10**9  # larger values must be typos
MAX_SUM_STANDARD_DEVIATIONS = 1000.0  # standard deviations of the final sum; above 38, its sign is certain

BoundaryAxis = Annotated[NameOrAxis, one_of(BOUNDARIES, "a boundary")]
ErrorRateAxis = Annotated[
    NumberOrAxis,
    axis_of(
        Annotated[Number, Field(ge=MIN_TARGET_ERROR_RATE, lt=0.5)],
        {"type": "number", "minimum": MIN_TARGET_ERROR_RATE, "exclusiveMaximum": 0.5},
    ),
]
FeatureChunkAxis = Annotated[IntegerOrAxis, axis_of(Annotated[Whole, Field(ge=1)], {"type": "integer", "minimum": 1})]
NumberAxis = Annotated[NumberOrAxis, axis_of(Number, {"type": "number"})]
DeviationAxis = Annotated[
    NumberOrAxis,
    axis_of(
        Annotated[Number, Field(ge=-MAX_SUM_STANDARD_DEVIATIONS, le=MAX_SUM_STANDARD_DEVIATIONS)],
        {"type": "number", "minimum": -MAX_SUM_STANDARD_DEVIATIONS, "maximum": MAX_SUM_STANDARD_DEVIATIONS},
    ),
]

WALK_SECONDS_PER_FEATURE = 2.5e-8  # for one walk

STOPPING_VARIABLES = {
    "decision_error": Variable(
        (), "decision errors: fraction of all walks that stop early but end below theta", "decision error"
    ),
    "features": Variable((), "fraction of the features that are evaluated", "features"),
}


class Stopping(AbstractScenario):
    """Gaussian random walks over N features that stop at a boundary with a nominal decision-error rate.

    Any list is an axis of a sweep. Sums are measured in standard deviations of the final sum: its mean is
    ``mean + feature_mean sqrt(N)``, with `feature_mean` in standard deviations of one feature. Raises `ScenarioError`
    with one sentence per problem.

    >>> means = {"mean": [1, 0], "feature_mean": [0, 0.1]}
    >>> scenario = Stopping(boundary="constant", error_rate=0.01, zip=means, N=[100, 400])
    >>> [(cell.N, cell.mean) for cell in scenario.cells()]
    [(100, 1.0), (400, 1.0), (100, 1.0), (400, 2.0)]
    """

    CHOICE: ClassVar = "boundary"
    KINDS: ClassVar = BOUNDARIES
    AXES: ClassVar = ("boundary", "mean", "feature_mean", "theta", "N", "chunk", PARAMETERS, "error_rate")
    TITLE: ClassVar = "stopping"
    CITES: ClassVar = ("pelossof2010",)
    SIMULATION_ONLY_KEYS: ClassVar = ("walks",)
    USUAL_X_KEY: ClassVar = "error_rate"
    equations: ClassVar = (r"S_i = X_1 + \dots + X_i", r"\text{stop at the first } S_i \ge \tau")
    variables: ClassVar = STOPPING_VARIABLES

    boundary: BoundaryAxis = Field(description="boundary at which walks stop")
    error_rate: ErrorRateAxis = config_key(description="target decision-error rate", symbol=r"$\epsilon_d$")
    mean: DeviationAxis = config_key(1.0, description="mean of the full sum, in its standard deviations")
    feature_mean: NumberAxis = config_key(
        0.0, description="mean of each feature, in its standard deviations", symbol=r"$\mu$"
    )
    theta: DeviationAxis = config_key(
        0.0, description="threshold of the full sum; walks that end below it must not stop", symbol=r"$\theta$"
    )
    N: DimensionAxis = config_key(784, description="input dimension, the number of features", symbol="$N$")
    chunk: FeatureChunkAxis = Field(default=1, description="features between two looks at the sum")
    walks: Annotated[Whole, Field(ge=1, le=MAX_WALKS_PER_SEED)] = Field(default=1000, description="walks per seed")

    def _find_problems(self) -> Iterator[Problem]:
        yield from find_chunk_problems(self)
        for mean, N in self.list_value_pairs("feature_mean", "N"):
            if abs(mean) > MAX_SUM_STANDARD_DEVIATIONS / np.sqrt(N):
                excess = f"by more than {MAX_SUM_STANDARD_DEVIATIONS:g} standard deviations"
                yield ("feature_mean",), f"a mean of {mean:g} per feature moves the sum of N = {N} features {excess}"
                break

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        """Variables in the limit of continuous comparison of a walk with its boundary."""
        limits = {
            name: replace(variable, long_name=f"{variable.long_name}, with infinitely many looks")
            for name, variable in STOPPING_VARIABLES.items()
        }
        return {f"{name}_brownian": variable for name, variable in limits.items()}

    def estimate_seconds_per_seed(self) -> float:
        return sum(self.walks * cell.N * WALK_SECONDS_PER_FEATURE for cell in self.cells())

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> StoppingCell:
        mean = values["mean"] + values["feature_mean"] * np.sqrt(values["N"])
        cell_values = {name: values[name] for name in ("theta", "N", "chunk", "error_rate")}
        return StoppingCell(self.make_component(values), **cell_values, mean=float(mean), index=index)


@dataclass(frozen=True)
class StoppingCell(Cell):
    """One grid point: a boundary, a distribution of the sums, and a number of features."""

    boundary: Boundary
    mean: float
    theta: float
    N: int
    chunk: int
    error_rate: float
    index: tuple[int, ...]

    @cached_property  # every seed reuses it, and a constant boundary requires Newton's method
    def tau(self) -> float:
        """Height of the boundary for sums of variance 1."""
        return float(compute_stopping_level(self.boundary, self.error_rate, self.mean, 1.0, self.theta))

    @property
    def boundary_rise(self) -> float:
        """Change of the boundary from the first to the last feature."""
        return float(compute_total_level_rise(self.boundary, self.mean))

    @property
    def check_positions(self) -> np.ndarray:  # style: ok
        """Numbers of features added at each comparison of the sum with the boundary."""
        return get_check_positions(self.N, self.chunk)


def find_chunk_problems(scenario: AbstractScenario) -> Iterator[Problem]:
    """Find the first chunk of features, added between two checks of a random walk, that exceeds N."""
    for chunk, N in scenario.list_value_pairs("chunk", "N"):
        if chunk > N:
            yield ("chunk",), f"a chunk of {chunk} features is more than N = {N}"
            return
