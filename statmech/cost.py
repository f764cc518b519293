"""What a sweep will cost, before it runs: cells, bytes and, roughly, seconds."""

from __future__ import annotations

import math
from typing import NamedTuple

from statmech.axes import points
from statmech.dataset import variables
from statmech.scenario import Scenario

# seconds a student-ensemble step of one seed on one core, measured by benchmarks/engines.py (float64)
GRAM_STEP = {1: 4.2e-8, 3: 7.5e-8, 10: 3.0e-7, 30: 5e-6, 100: 1e-4}
VECTORS_STEP_A_DIMENSION = 6e-9
CORES = 2


class Cost(NamedTuple):
    """A sweep's grid points, its independent runs, the bytes of its dataset, and about how many seconds it takes."""

    cells: int
    runs: int
    bytes_: int
    seconds: float


def estimate(scenario: Scenario) -> Cost:
    """The cost of simulating a scenario.

    >>> estimate(Scenario(rule=["hebb", "adatron"], K=2, N=1000, t=[1.0], seeds=10)).runs
    20
    """
    cells = math.prod(scenario.shape.values())
    students = max(points(scenario.K))
    sizes = {"t": len(scenario.t), "student": students, "row": students + 1, "column": students + 1}
    values = sum(math.prod(sizes[dim] for dim in variable.dims) for variable in variables(scenario).values())
    runs = cells * scenario.seeds
    pairs = scenario.pairs("K", "N")
    steps = scenario.t[-1] * scenario.seeds * cells / len(pairs)
    seconds = sum(steps * N * _step(scenario.engine, K, N) for K, N in pairs) / CORES
    return Cost(cells, runs, 8 * values * runs, seconds)


def _step(engine: str, K: int, N: int) -> float:
    if engine == "vectors":
        return 1e-6 + VECTORS_STEP_A_DIMENSION * N
    larger = next((k for k in GRAM_STEP if k >= K), max(GRAM_STEP))
    return GRAM_STEP[larger] * (K / larger) ** 2 if larger > 10 else GRAM_STEP[larger]
