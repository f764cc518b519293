"""Scenarios of the Attentive Perceptron online: boundary, nominal error rate, features and recorded times.

A config file with the key `attention` becomes an `Attention`, the input of `simulate.run` and `theory.solve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from statmech.classification.random_walks import BoundaryAxis, ErrorRateAxis, FeatureChunkAxis, find_chunk_problems
from statmech.classification.stopping_boundaries import BOUNDARIES, Boundary, get_check_positions
from statmech.errors import Problem
from statmech.keys.key_types import PARAMETERS, DimensionAxis, Number, Times, Whole, config_key
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell, ensure_tuple
from statmech.keys.time_dependent_keys import find_step_count_problems
from statmech.keys.variables import Variable

MAX_AVERAGING_WINDOW_PROBES = 10**9
SAMPLING_SECONDS_PER_FEATURE = 1.2e-8  # all students of equal dimension share their examples
ATTENTION_SECONDS_PER_EXAMPLE, ATTENTION_SECONDS_PER_FEATURE = 2e-6, 2.2e-9  # per student and example

ATTENTION_VARIABLES = {
    "R": Variable(("t",), "teacher-student cosine", "$R$"),
    "length": Variable(("t",), "length of a student, |J|/sqrt(N)", "$l$", role="detail"),
    "eps_g": Variable(("t",), "generalization error", r"$\epsilon_g$"),
    "features": Variable(
        ("t",),
        "fraction of the features that are evaluated, mean since the last recorded time",
        "features",
        is_interval_mean=True,
    ),
    "decision_error": Variable(
        ("t",),
        "decision errors: fraction of examples since the last recorded time that were stopped although kappa <= 0",
        "decision error",
        is_interval_mean=True,
    ),
    "work": Variable(("t",), "features evaluated so far, divided by N^2 (equals t if all are)", "work", role="detail"),
}


class Attention(AbstractScenario):
    """Perceptrons that learn online and evaluate only as many features of a margin as they need.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Attention(attention=["brownian-bridge", "centred"], error_rate=[0.01, 0.1], N=400, chunk=4, t=[1, 2])
    >>> scenario.shape
    {'attention': 2, 'error_rate': 2}
    """

    CHOICE: ClassVar = "attention"
    KINDS: ClassVar = BOUNDARIES
    AXES: ClassVar = ("attention", "N", "chunk", PARAMETERS, "error_rate")
    TITLE: ClassVar = "attentive perceptron"
    CITES: ClassVar = ("pelossof2010",)
    workers: ClassVar = 1  # Python code dominates, so a second thread only adds overhead
    USUAL_X_KEY: ClassVar = "t"
    equations: ClassVar = (
        r"S_i = \sigma\sum_{j\le i} J_jx_j",
        r"\text{stop at the first } S_i \ge \tau",
        r"\mathbf J \leftarrow \mathbf J + \sigma\,\mathbf x \;\text{ if none, and } S_N \le 0",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )
    variables: ClassVar = ATTENTION_VARIABLES

    attention: BoundaryAxis = Field(description="boundary at which the evaluation of a margin stops")
    error_rate: ErrorRateAxis = config_key(description="target decision-error rate", symbol=r"$\epsilon_d$")
    t: Times = config_key(
        description="times at which order parameters are recorded, increasing",
        symbol="$t$",
        unit="steps / N",
    )
    N: DimensionAxis = config_key(1000, description="input dimension, the number of features", symbol="$N$")
    chunk: FeatureChunkAxis = Field(default=1, description="features between two looks at the sum")
    probes: Annotated[Number, Field(gt=0, le=1)] = Field(
        default=0.05, description="fraction of examples that are always evaluated in full"
    )
    memory: Annotated[Whole, Field(ge=2, le=MAX_AVERAGING_WINDOW_PROBES)] = Field(
        default=200, description="averaging window, in probes, of the running mean and variance of the margins"
    )

    def _find_problems(self) -> Iterator[Problem]:
        yield from find_chunk_problems(self)
        yield from find_step_count_problems(self.t[-1], max(ensure_tuple(self.N)))

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the dataset dimensions other than the sweep axes."""
        return {"t": np.asarray(self.t)}

    def estimate_seconds_per_seed(self) -> float:
        dimensions = [cell.N for cell in self.cells()]
        drawn_seconds = sum(SAMPLING_SECONDS_PER_FEATURE * N * N for N in set(dimensions))
        return self.t[-1] * (
            drawn_seconds
            + sum(N * (ATTENTION_SECONDS_PER_EXAMPLE + ATTENTION_SECONDS_PER_FEATURE * N) for N in dimensions)
        )

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> AttentionCell:
        cell_values: dict[str, Any] = {name: values[name] for name in ("N", "chunk", "error_rate")}
        shared_values: dict[str, Any] = {"probes": self.probes, "memory": self.memory, "index": index}
        return AttentionCell(values["attention"], self.make_component(values), **cell_values, **shared_values)


@dataclass(frozen=True)
class AttentionCell(Cell):
    """One grid point: a boundary with its parameters, an input dimension and a nominal error rate."""

    name: str
    boundary: Boundary
    N: int
    chunk: int
    error_rate: float
    probes: float
    memory: int
    index: tuple[int, ...]

    @property
    def check_positions(self) -> np.ndarray:  # style: ok
        """Numbers of features evaluated at each comparison of the partial sum with the boundary."""
        return get_check_positions(self.N, self.chunk)
