"""What a sweep will cost, before it runs: cells, bytes and, roughly, seconds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from statmech.axes import points
from statmech.dataset import variables
from statmech.scenario import Scenario

# seconds a step of all K students of one seed takes on one core, in float64; `python benchmarks/engines.py` measures it
GRAM_STEP = {1: 3.2e-8, 3: 5.4e-8, 10: 2.4e-7, 30: 1.3e-6, 100: 7.5e-6}
VECTORS_STEP = 1e-6  # and for each input dimension:
VECTORS_STEP_A_DIMENSION = 4.5e-9
VOTE, VOTE_A_STUDENT = 3.5e-4, 5.3e-5  # seconds to integrate one seed's majority vote at one time, from K = 3 on
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
    votes = len(scenario.t) * runs / len(pairs)
    seconds = sum(steps * N * _step(scenario.engine, K, N) + votes * _vote(K) for K, N in pairs) / CORES
    return Cost(cells, runs, 8 * values * runs, seconds)


def _step(engine: str, K: int, N: int) -> float:
    if engine == "vectors":
        return VECTORS_STEP + VECTORS_STEP_A_DIMENSION * N
    largest = max(GRAM_STEP)
    measured = np.interp(np.log(K), np.log(list(GRAM_STEP)), np.log(list(GRAM_STEP.values())))
    return float(np.exp(measured)) * max(K / largest, 1.0) ** 2


def _vote(K: int) -> float:
    return VOTE + VOTE_A_STUDENT * K if K > 2 else 0.0
