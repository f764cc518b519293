"""What a sweep will cost, before it runs: cells, bytes and, roughly, seconds."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from statmech.scenarios.attention import Attention
from statmech.scenarios.boosting import Boosting, BoostingCell
from statmech.scenarios.cross_validation import Study
from statmech.scenarios.online import Scenario
from statmech.scenarios.stopping import Stopping
from statmech.scenarios.stored_examples import StoredCell, StoredExamples

# seconds a step of all K students of one seed takes on one core, in float64; `python benchmarks/engines.py` measures it
GRAM_STEP = {1: 3.2e-8, 3: 5.4e-8, 10: 2.4e-7, 30: 1.3e-6, 100: 7.5e-6}
VECTORS_STEP = 1e-6  # and for each input dimension:
VECTORS_STEP_A_DIMENSION = 4.5e-9
CALL = 3e-3  # seconds to begin and to read a batch of seeds, however few its steps
VOTE, VOTE_A_STUDENT = 3.5e-4, 5.3e-5  # seconds to integrate one seed's majority vote at one time, from K = 3 on
ATTEND, ATTEND_A_FEATURE = 2e-5, 8e-9  # seconds an attentive student takes to look at an example, and a feature of it
WALK_A_FEATURE = 2.5e-8  # seconds that a feature of a walk takes
CORES = 2
LOOKED_AT = 1000  # cells whose cost is told apart


def _chain(cell: StoredCell) -> float:
    return getattr(cell.learner, "sweeps", 0) * cell.N * cell.P * 1.5e-9


# seconds a data set takes each learner on one core, as measured at N = 20 .. 400 and P = 10 .. 2,000
LEARNER: dict[str, Callable[[StoredCell], float]] = {
    "hebb": lambda cell: 0.0,
    "pseudo_inverse": lambda cell: 2e-9 * cell.P * cell.N * min(cell.P, cell.N),
    "max_stability": lambda cell: 1e-4 + 2.5e-10 * cell.N * cell.P**2,
    "minover": lambda cell: cell.until[-1] * (3e-8 + 6e-10 * cell.P),
    "gibbs": _chain,
    "bayes": _chain,
}


def machine_memory() -> float:
    """This machine's memory in bytes."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


class Cost(NamedTuple):
    """A sweep's grid points, its independent runs, the bytes of its dataset, and about how many seconds it takes."""

    cells: int
    runs: int
    bytes_: int
    seconds: float


def estimate(scenario: Any) -> Cost:
    """The cost of simulating a scenario.

    >>> estimate(Scenario(rule=["hebb", "adatron"], K=2, N=1000, t=[1.0], seeds=10)).runs
    20
    """
    cells = math.prod(scenario.shape.values())
    sizes = {name: len(values) for name, values in scenario.recorded.items()}
    values = sum(math.prod(sizes[dim] for dim in variable.dims) for variable in scenario.variables.values())
    runs = cells * scenario.seeds
    some = thinned(scenario)
    share = math.prod(some.shape.values()) / cells
    return Cost(cells, runs, 8 * values * runs, SECONDS[scenario.CHOICE](some) * scenario.seeds / CORES / share)


def thinned(scenario: Any) -> Any:
    """A scenario with no more than about `LOOKED_AT` cells: its axes' values evenly spread out, if there are more.

    >>> some = thinned(Scenario(rule="hebb", t=1, eta={"linspace": [0.1, 1, 1000]}, flip={"linspace": [0, 0.5, 1000]}))
    >>> some.shape
    {'eta': 31, 'flip': 32}
    """
    axes, shape = scenario.dimensions, scenario.shape
    stride = {name: 1 for name in shape}
    while math.prod(-(-n // stride[name]) for name, n in shape.items()) > LOOKED_AT:
        longest = max(shape, key=lambda name: shape[name] / stride[name])
        stride[longest] += 1
    kept = {name: value[:: stride[axis]] for axis, along in axes.items() for name, value in along.items()}
    parameters = {name: kept.pop(name, value) for name, value in scenario.parameters.items()}
    return scenario.model_copy(update={**kept, "parameters": parameters})


def _online(scenario: Scenario) -> float:
    """Seconds a seed takes in all cells."""
    cells = math.prod(scenario.shape.values())
    pairs = scenario.pairs("K", "N")
    steps, votes = scenario.t[-1] * cells / len(pairs), len(scenario.t) * cells / len(pairs)
    calls = CALL * cells / min(scenario.seeds, scenario.together)
    return calls + sum(steps * N * _step(scenario.engine, K, N) + votes * _vote(K) for K, N in pairs)


def _stored(scenario: StoredExamples) -> float:
    """Seconds a data set takes in all cells: to draw, to learn (at most, where a rule may stop it), to measure."""
    moments = len(scenario.moments[1])

    def seconds(cell: StoredCell) -> float:
        shared = 1e-4 + cell.P * cell.N * (1.5e-8 + 1e-9 * moments) + 5e-11 * cell.N * cell.P**2
        in_turn = cell.until[-1] * (5e-8 + 2e-9 * cell.P)
        return shared + (LEARNER[cell.name](cell) if cell.name in LEARNER else in_turn)

    return sum(map(seconds, scenario.cells()))


# seconds a fold takes, as measured on votes (390 examples of 30 indicators); in proportion to examples and inputs
CLASSIFIER = {"boosting": 0.2, "tree": 0.08, "mlp": 0.8, "pruned": 0.07, "second_order": 0.02}


def _study(scenario: Study) -> float:
    """Seconds a shuffle into folds takes in all cells, of a data set like votes; larger ones take longer."""
    return sum(CLASSIFIER.get(cell.name, 0.02) * scenario.folds for cell in scenario.cells())


def _boosting(scenario: Boosting) -> float:
    """Seconds a run takes in all cells: of the about 0.4 s^2 stages that it needs where there are examples enough."""

    def seconds(cell: BoostingCell) -> float:
        stages, blocks = min(1 + 0.4 * cell.s**2, cell.P, scenario.cap), cell.N**cell.k
        stage = 1e-4 + 3e-9 * blocks + cell.P * (2e-8 + 2e-9 * cell.N + 5e-11 * blocks) + 1e-8 * scenario.tests
        return 5e-3 + stages * stage + 1.5e-8 * cell.s * (cell.P + scenario.tests)

    return sum(map(seconds, scenario.cells()))


def _stopping(scenario: Stopping) -> float:
    """Seconds a seed's walks take in all cells."""
    return sum(scenario.walks * cell.N * WALK_A_FEATURE for cell in scenario.cells())


def _attention(scenario: Attention) -> float:
    """Seconds a seed's students take in all cells, on one core, whatever their number."""
    steps = (scenario.t[-1] * cell.N * (ATTEND + ATTEND_A_FEATURE * cell.N) for cell in scenario.cells())
    return CORES * sum(steps)


def _step(engine: str, K: int, N: int) -> float:
    if engine == "vectors":
        return VECTORS_STEP + VECTORS_STEP_A_DIMENSION * N
    largest = max(GRAM_STEP)
    measured = np.interp(np.log(K), np.log(list(GRAM_STEP)), np.log(list(GRAM_STEP.values())))
    return float(np.exp(measured)) * max(K / largest, 1.0) ** 2


def _vote(K: int) -> float:
    return VOTE + VOTE_A_STUDENT * K if K > 2 else 0.0


SECONDS: dict[str, Callable[[Any], float]] = {  # of one seed, all cells
    "rule": _online,
    "learner": _stored,
    "boundary": _stopping,
    "attention": _attention,
    "booster": _boosting,
    "classifier": _study,
}
