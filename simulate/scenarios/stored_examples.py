"""Simulates learning from stored examples: data sets of many seeds and many alphas side by side.

Data sets of about the same size, of whichever cell, are padded to one size and learnt in one vectorised call; calls go
to all cores. The result of a data set does not depend on those beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulate.execution import units
from simulate.execution.units import UnitResult
from simulate.learners import learn
from simulate.learners.examples import DataSet, batch, inputs_of, padded
from simulate.learners.interface import LearnerTask, Learnt, gap
from statmech.results.chunks import SEEDS
from statmech.results.dataset import describe_student
from statmech.runtime.devices import double_precision
from statmech.scenarios.axes import points
from statmech.scenarios.cells import words_of
from statmech.scenarios.stored_examples import StoredCell, StoredExamples
from statmech.votes.majority_vote import TEST_CIRCLES, circles, vote_error

EXACT = ("hebb", "pseudo_inverse", "max_stability")  # learners that compile nothing
WIDEST, ELEMENTS = 64, 2**21  # data sets in a call: the most, and the elements of all their matrices


@dataclass(frozen=True)
class DataSetUnit:
    """Data sets (a cell and a seed's number each), padded to `size` examples, `width` of them in a call."""

    lanes: tuple[tuple[StoredCell, int], ...]
    size: int
    width: int


class Simulator(units.Simulator):
    """Learners of stored examples."""

    source = "learners of stored examples"
    scenario: StoredExamples

    def units(self, cells: Sequence[StoredCell], seeds: range) -> Iterator[DataSetUnit]:
        """Data sets that one compiled program serves, those of about as many updates together."""
        groups: dict[tuple[Any, ...], list[tuple[StoredCell, int]]] = {}
        for cell in cells:
            program = (padded(cell.P), cell.name, cell.learner, cell.N)
            groups.setdefault(program, []).extend((cell, seed) for seed in seeds)
        for (size, *_), lanes in groups.items():
            calls = -(-len(lanes) // widest(size, len(lanes[0][0].until)))
            width = -(-len(lanes) // calls)  # calls of equal width: few lanes run idle
            lanes.sort(key=lambda lane: lane[0].P)
            for first in range(0, len(lanes), width):
                yield DataSetUnit(tuple(lanes[first : first + width]), size, width)

    def run(self, unit: DataSetUnit) -> list[UnitResult]:
        """The variables (1, T) of each data set of a unit."""
        cell = unit.lanes[0][0]
        data = _data_sets(self.scenario.key, unit.lanes)
        idle = unit.width - len(data)  # a last batch is padded, too, with data sets of one example
        every = [*data, *[DataSet(data[0].teacher, data[0].z[:1])] * idle]
        until = np.array([of.until for of, _ in unit.lanes] + [(0,) * len(cell.until)] * idle)
        words = np.array([_words(self.scenario, *lane) for lane in (*unit.lanes, *[unit.lanes[0]] * idle)], np.uint32)
        task = LearnerTask(cell.name, cell.learner, until, words)
        with double_precision():
            learnt = learn(batch(every, unit.size), task)
        results = []
        for lane, one in enumerate(data):
            values = measure(one, learnt, lane, words[lane])
            if self.scenario.strengths and learnt.strengths is not None:
                values["strengths"] = learnt.strengths[lane, :, : len(one.z)]
            (cell, seed), values = unit.lanes[lane], {name: value[None] for name, value in values.items()}
            results.append(UnitResult(cell.index, slice(seed, seed + 1), values))
        return results

    def libraries(self) -> float:
        """Bytes of JAX, and of the compiler of learners that repeat steps."""
        return units.JAX + (units.XLA if {*points(self.scenario.learner)} - {*EXACT} else 0)

    def memory(self) -> float:
        """Bytes that the largest unit of work holds."""
        return max(map(_memory, self.units(list(self.scenario.cells()), range(min(self.scenario.seeds, SEEDS)))))

    def check(self) -> None:
        """Refuse examples that this machine cannot hold."""
        for cell in self.scenario.cells():
            size = padded(cell.P)
            data = f"a run with {cell.P:,} examples in {cell.N:,} dimensions"
            units.check_memory("alpha", data, 8 * size * (2 * size + 3 * cell.N))
            chains = 8 * chain(cell, widest(size, len(cell.until)))
            units.check_memory("sweeps", f"a batch of chains of {cell.name}", chains)


def _data_sets(key: int, lanes: Sequence[tuple[StoredCell, int]]) -> list[DataSet]:
    """The data set of each lane; those of a seed consist of the same inputs, which are drawn once."""
    N = lanes[0][0].N
    longest = {seed: P for P, seed in sorted((cell.P, seed) for cell, seed in lanes)}
    inputs = {seed: inputs_of(key, seed, N, P) for seed, P in longest.items()}
    return [inputs[seed].examples(cell.P, cell.flip) for cell, seed in lanes]


def _memory(unit: DataSetUnit) -> float:
    """Bytes of a unit: of each data set copies of the examples, Gram matrices, and strengths."""
    cell = unit.lanes[0][0]
    examples = 4 if cell.name in EXACT else 3  # one more in SciPy's solvers
    numbers = unit.size * (2 * unit.size + examples * cell.N + 3 * len(cell.until))
    return 8.0 * (unit.width * numbers + chain(cell, unit.width))


def widest(size: int, times: int) -> int:
    """Data sets in a call: as many as keep their Gram matrices, and their strengths at all recorded times, small."""
    return max(1, min(WIDEST, ELEMENTS // (size * max(size, times))))


def measure(data: DataSet, learnt: Learnt, lane: int, words: np.ndarray) -> dict[str, np.ndarray]:
    """The variables of one data set's students at each recorded time."""
    values = {
        "updates_made": learnt.updates[lane],
        "stopped_by": learnt.stopped_by[lane],
        "converged": learnt.converged[lane],
    }
    if learnt.strengths is not None:
        x = learnt.strengths[lane, :, : len(data.z)]
        w = x @ data.z / data.z.shape[1]
        fields = w @ data.z.T
        certified = (x >= 0).all(axis=-1) & (x > 0).any(axis=-1)
        return values | describe(data, w, fields) | {"gap": np.where(certified, gap(fields, x), np.nan)}
    assert learnt.students is not None
    students = learnt.students[lane, 0]  # the same at all recorded times
    students = students / np.linalg.norm(students, axis=-1, keepdims=True)
    centre = students.mean(axis=0, keepdims=True)
    values |= describe(data, centre, centre @ data.z.T)
    if len(students) > 1:
        inputs = circles(np.random.default_rng(words), TEST_CIRCLES, students.shape[1])
        values["eps_g"] = np.atleast_1d(vote_error(*_split(data, students), inputs))
    return {name: np.broadcast_to(value, learnt.updates[lane].shape) for name, value in values.items()}


def describe(data: DataSet, w: np.ndarray, fields: np.ndarray) -> dict[str, np.ndarray]:
    """R, eps_g, kappa and eps_t of students w (T, N) of these fields (T, P). A student w = 0 answers by a fair coin."""
    along, across = _split(data, w)
    length = np.linalg.norm(w, axis=-1)
    blank = length == 0
    with np.errstate(invalid="ignore"):
        student = describe_student(along, np.linalg.norm(across, axis=-1), length)
        return {
            "R": np.where(blank, 0.0, student["R"]),
            "eps_g": np.where(blank, 0.5, student["eps_g"]),
            "kappa": fields.min(axis=-1) / length,
            "eps_t": np.where(np.isnan(length), np.nan, np.mean((1 - np.sign(fields)) / 2, axis=-1)),
        }


def _split(data: DataSet, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Students (n, N) along the teacher (n,) and across it (n, N)."""
    teacher = data.teacher / np.linalg.norm(data.teacher)
    along = w @ teacher
    return along, w - along[:, None] * teacher


def _words(scenario: StoredExamples, cell: StoredCell, seed: int) -> tuple[int, ...]:
    """The words that name a run's random numbers."""
    own = {"learner": cell.name, "N": cell.N, "P": cell.P, "flip": cell.flip, **cell.learner.identity}
    return words_of({**own, "key": scenario.key, "seed": seed})


def chain(cell: StoredCell, width: int) -> int:
    """Numbers that chains through version spaces leave: cosines, students, and fields of those of one data set."""
    students: int = getattr(cell.learner, "votes", 1)
    sweeps: int = getattr(cell.learner, "sweeps", 0)
    return width * (sweeps + students * cell.N) + (students * 8 * TEST_CIRCLES if students > 1 else 0)
