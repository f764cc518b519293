"""The Attentive Perceptron on line: which boundary, how careful, how many features, and when order parameters are told.

An `Attention` is what a config file with the key `attention` holds and what `simulate.run` and `theory.solve` take.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from statmech.boundaries import BOUNDARIES, Boundary, looks
from statmech.errors import Problem
from statmech.scenarios.axes import points
from statmech.scenarios.base import PARAMETERS, DimensionAxis, Number, Sweep, Whole
from statmech.scenarios.online import MAX_STEPS, Times
from statmech.scenarios.stopping import BoundaryAxis, ChunkAxis, DeltaAxis, chunk_problems
from statmech.scenarios.variables import Variable

MAX_MEMORY = 10**9

ATTENTIVE = {
    "R": Variable(("t",), "teacher-student cosine", "$R$"),
    "length": Variable(("t",), "length |J|/sqrt(N)", "$l$"),
    "eps_g": Variable(("t",), "generalization error", r"$\epsilon_g$"),
    "features": Variable(
        ("t",), "share of the features that are evaluated, mean since the last recorded time", "features"
    ),
    "decision_error": Variable(
        ("t",),
        "decision errors: share of the examples since the last recorded time stopped though kappa <= 0",
        "decision error",
    ),
    "work": Variable(("t",), "features evaluated so far, over N^2 (t if all are)", "work"),
}


class Attention(Sweep):
    """Perceptrons that learn on line from margins evaluated no further than needed; any list is an axis of a sweep.

    Raises `ScenarioError` with one sentence a problem.

    >>> scenario = Attention(attention=["brownian-bridge", "centred"], delta=[0.01, 0.1], N=400, chunk=4, t=[1, 2])
    >>> scenario.shape
    {'attention': 2, 'delta': 2}
    """

    CHOICE: ClassVar = "attention"
    KINDS: ClassVar = BOUNDARIES
    AXES: ClassVar = ("attention", "N", "chunk", PARAMETERS, "delta")
    equations: ClassVar = (
        r"S_i = \sigma\sum_{j\le i} J_jx_j",
        r"\text{stop at the first } S_i \ge \tau",
        r"\mathbf J \leftarrow \mathbf J + \sigma\,\mathbf x \;\text{ if none, and } S_N \le 0",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )

    attention: BoundaryAxis = Field(description="where the evaluation of a margin stops")
    delta: DeltaAxis = Field(description="share of decision errors that is promised")
    t: Times = Field(description="times (steps / N) at which order parameters are recorded, increasing")
    N: DimensionAxis = Field(1000, description="input dimension, the number of features")
    chunk: ChunkAxis = Field(1, description="features between looks")
    probes: Annotated[Number, Field(gt=0, le=1)] = Field(0.05, description="share of examples evaluated fully anyhow")
    memory: Annotated[Whole, Field(ge=2, le=MAX_MEMORY)] = Field(
        200, description="probes that the running mean and variance of margins look back on"
    )

    def _problems(self) -> Iterator[Problem]:
        yield from chunk_problems(self)
        if any(later <= earlier for earlier, later in itertools.pairwise(self.t)):
            yield ("t",), "times must increase"
        if self.t[-1] * max(points(self.N)) >= MAX_STEPS:
            yield ("t",), f"{self.t[-1]:g} N steps are more than can be counted in 63 bits"

    @property
    def variables(self) -> dict[str, Variable]:
        return ATTENTIVE

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """The coordinates of the dataset's dimensions that are no axes of the sweep."""
        return {"t": np.asarray(self.t)}

    def cells(self) -> Iterator[AttentionCell]:
        """Every point of the grid, the last dimension fastest."""
        for values, index in self.grid():
            given: dict[str, Any] = {name: values[name] for name in ("N", "chunk", "delta")}
            own: dict[str, Any] = {"probes": self.probes, "memory": self.memory, "index": index}
            yield AttentionCell(values["attention"], self.kind_at(values), **given, **own)


@dataclass(frozen=True)
class AttentionCell:
    """One point of the grid: one student."""

    name: str
    boundary: Boundary
    N: int
    chunk: int
    delta: float
    probes: float
    memory: int
    index: tuple[int, ...]

    @property
    def looks(self) -> np.ndarray:
        """The numbers of features after which a margin is looked at."""
        return looks(self.N, self.chunk)
