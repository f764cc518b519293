"""Walks that may stop: which boundary, for which sums, after how many features, and what it promises.

A `Stopping` is what a config file with the key `boundary` holds and what `simulate.run` and `theory.solve` take. Sums
:math:`S_i` of N independent Gaussian features stand for margins; see `statmech.boundaries`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, Field

from statmech.boundaries import BOUNDARIES, LEAST, Boundary, looks, rise, threshold
from statmech.errors import Problem
from statmech.scenarios.axes import axis_of
from statmech.scenarios.base import PARAMETERS, DimensionAxis, Number, Sweep, Whole, name_among
from statmech.scenarios.variables import Variable

MAX_WALKS = 10**9  # beyond lie typing errors
FURTHEST = 1000.0  # of the last sum's deviations: 38 make certain, and more only cost the exact density its time

BoundaryName = Annotated[str, AfterValidator(name_among(BOUNDARIES, "a boundary"))]
BoundaryAxis = axis_of(BoundaryName, {"enum": list(BOUNDARIES)}, spaced=False)
DeltaAxis = axis_of(
    Annotated[Number, Field(ge=LEAST, lt=0.5)], {"type": "number", "minimum": LEAST, "exclusiveMaximum": 0.5}
)
ChunkAxis = axis_of(Annotated[Whole, Field(ge=1)], {"type": "integer", "minimum": 1})
NumberAxis = axis_of(Number, {"type": "number"})
DeviationAxis = axis_of(
    Annotated[Number, Field(ge=-FURTHEST, le=FURTHEST)], {"type": "number", "minimum": -FURTHEST, "maximum": FURTHEST}
)

STOPPED = {
    "decision_error": Variable(
        (), "decision errors: share of all walks that stop early and yet end below theta", "decision error"
    ),
    "features": Variable((), "share of the features that are evaluated", "features"),
}


class Stopping(Sweep):
    """Gaussian walks of N features under boundaries that promise at most delta decision errors; any list is an axis.

    Sums are measured in standard deviations of the last of them: their mean there is ``mean + drift sqrt(N)``, where
    drift is the mean of one feature in its standard deviations. Raises `ScenarioError` with one sentence a problem.

    >>> scenario = Stopping(boundary="constant", delta=0.01, zip={"mean": [1, 0], "drift": [0, 0.1]}, N=[100, 400])
    >>> [(cell.N, cell.mean) for cell in scenario.cells()]
    [(100, 1.0), (400, 1.0), (100, 1.0), (400, 2.0)]
    """

    CHOICE: ClassVar = "boundary"
    KINDS: ClassVar = BOUNDARIES
    AXES: ClassVar = ("boundary", "mean", "drift", "theta", "N", "chunk", PARAMETERS, "delta")
    equations: ClassVar = (r"S_i = X_1 + \dots + X_i", r"\text{stop at the first } S_i \ge \tau")

    boundary: BoundaryAxis = Field(description="where walks stop")  # type: ignore[valid-type]
    delta: DeltaAxis = Field(description="share of decision errors that is promised")  # type: ignore[valid-type]
    mean: DeviationAxis = Field(1.0, description="mean of the last sum, in its standard deviations")  # type: ignore[valid-type]
    drift: NumberAxis = Field(0.0, description="mean of each feature, in its standard deviations")  # type: ignore[valid-type]
    theta: DeviationAxis = Field(0.0, description="what the last sum is to be told from")  # type: ignore[valid-type]
    N: DimensionAxis = Field(784, description="number of features")
    chunk: ChunkAxis = Field(1, description="features between looks")  # type: ignore[valid-type]
    walks: Annotated[Whole, Field(ge=1, le=MAX_WALKS)] = Field(1000, description="walks of each seed")

    def _problems(self) -> Iterator[Problem]:
        yield from chunk_problems(self)
        for drift, N in self.pairs("drift", "N"):
            if abs(drift) > FURTHEST / np.sqrt(N):
                told = f"a drift of {drift:g} moves the last of N = {N} features by more than {FURTHEST:g} deviations"
                yield ("drift",), told
                break

    @property
    def variables(self) -> dict[str, Variable]:
        return STOPPED

    def cells(self) -> Iterator[StoppingCell]:
        """Every point of the grid, the last dimension fastest."""
        for values, index in self.grid():
            mean = values["mean"] + values["drift"] * np.sqrt(values["N"])
            given = {name: values[name] for name in ("theta", "N", "chunk", "delta")}
            yield StoppingCell(self.kind_at(values), **given, mean=float(mean), index=index)


@dataclass(frozen=True)
class StoppingCell:
    """One point of the grid: one boundary, one law of the sums, one number of features."""

    boundary: Boundary
    mean: float
    theta: float
    N: int
    chunk: int
    delta: float
    index: tuple[int, ...]

    @property
    def tau(self) -> float:
        """The level, of sums of variance 1."""
        return float(threshold(self.boundary, self.delta, self.mean, 1.0, self.theta))

    @property
    def slope(self) -> float:
        """What the level has risen by at the end."""
        return float(rise(self.boundary, self.mean))

    @property
    def looks(self) -> np.ndarray:
        """The numbers of features after which sums are looked at."""
        return looks(self.N, self.chunk)


def chunk_problems(scenario: Any) -> Iterator[Problem]:
    """A chunk of more features than there are."""
    for chunk, N in scenario.pairs("chunk", "N"):
        if chunk > N:
            yield ("chunk",), f"a chunk of {chunk} features is more than N = {N}"
            return
