"""Play out every cell of a scenario of stored examples: data sets of many seeds and many alphas side by side.

Data sets of about the same size, whatever cell they are of, are filled up to one size and learnt in one vectorised
call; calls go to all cores. A data set's result depends on nothing that happens to lie beside it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from simulate.execution.threads import memory_a_core
from simulate.execution.units import Found
from simulate.learners import learn
from simulate.learners.examples import DataSet, batch, draw
from simulate.learners.interface import Learnt, Task, gap
from statmech.errors import ScenarioError
from statmech.majority_vote import TEST_CIRCLES, circles, vote_error
from statmech.results.dataset import describe_student
from statmech.scenarios.base import words_of
from statmech.scenarios.stored_examples import StoredCell, StoredExamples

SIZES = [8, 16, 24, *(n << k for k in range(3, 40) for n in (4, 5, 6, 7))]  # what P is filled up to, multiples of 8
WIDEST, ELEMENTS = 64, 2**21  # data sets in a call: the most, and the elements of all their matrices


@dataclass(frozen=True)
class Unit:
    """Data sets (a cell and a seed's number each) to be filled up to `size` examples, `width` of them in a call."""

    lanes: tuple[tuple[StoredCell, int], ...]
    size: int
    width: int


SOURCE = "learners of stored examples"


def units(scenario: StoredExamples, cells: Sequence[StoredCell], seeds: range) -> Iterator[Unit]:
    """The units of work: data sets that one compiled program serves, those of about as many updates together."""
    groups: dict[tuple[Any, ...], list[tuple[StoredCell, int]]] = {}
    for cell in cells:
        program = (filled(cell.P), cell.name, cell.learner, cell.stop, cell.N)
        groups.setdefault(program, []).extend((cell, seed) for seed in seeds)
    for (size, *_), lanes in groups.items():
        calls = -(-len(lanes) // widest(size, len(lanes[0][0].until)))
        width = -(-len(lanes) // calls)  # calls of equal width: few lanes run idle
        lanes.sort(key=lambda lane: lane[0].P)
        for first in range(0, len(lanes), width):
            yield Unit(tuple(lanes[first : first + width]), size, width)


def widest(size: int, moments: int) -> int:
    """Data sets in a call: as many as keep their Gram matrices, and their strengths at each moment, small."""
    return max(1, min(WIDEST, ELEMENTS // (size * max(size, moments))))


def filled(P: int) -> int:
    """The size that P examples are filled up to: few sizes, few programs to compile."""
    return SIZES[bisect.bisect_left(SIZES, P)]


def play(scenario: StoredExamples, unit: Unit) -> list[Found]:
    """The variables (1, T) of each data set of a unit."""
    cell = unit.lanes[0][0]
    data = [draw(scenario.key, seed, cell.N, of.P, of.flip) for of, seed in unit.lanes]
    idle = unit.width - len(data)  # a last batch is filled up, too, by data sets of one example
    every = [*data, *[DataSet(data[0].teacher, data[0].z[:1])] * idle]
    until = np.array([of.until for of, _ in unit.lanes] + [(0,) * len(cell.until)] * idle)
    words = np.array([_words(scenario, *lane) for lane in (*unit.lanes, *[unit.lanes[0]] * idle)], np.uint32)
    task = Task(cell.name, cell.learner, cell.stop, until, words)
    with jax.enable_x64(True):
        learnt = learn(batch(every, unit.size), task)
    found = []
    for lane, one in enumerate(data):
        values = measure(one, learnt, lane, words[lane])
        if scenario.strengths and learnt.strengths is not None:
            values["strengths"] = learnt.strengths[lane, :, : len(one.z)]
        (cell, seed) = unit.lanes[lane]
        found.append(Found(cell.index, slice(seed, seed + 1), {name: value[None] for name, value in values.items()}))
    return found


def measure(data: DataSet, learnt: Learnt, lane: int, words: np.ndarray) -> dict[str, np.ndarray]:
    """What a run reports of its students at each moment."""
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
    students = learnt.students[lane, 0]  # the same at every moment
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
    """The words of a run's own random numbers."""
    own = {"learner": cell.name, "N": cell.N, "P": cell.P, "flip": cell.flip, **vars(cell.learner)}
    return words_of({**own, "key": scenario.key, "seed": seed})


def memory(scenario: StoredExamples) -> float:
    """Bytes that the largest unit of work holds."""

    def held(cell: StoredCell) -> float:
        size = filled(cell.P)
        moments = len(cell.until)
        return 8.0 * widest(size, moments) * (size * (2 * size + 3 * cell.N + 3 * moments) + chain(cell))

    return max(map(held, scenario.cells()))


def chain(cell: StoredCell) -> int:
    """Numbers that a walk through the version space leaves: a cosine of each sweep, and students with their fields."""
    students = int(getattr(cell.learner, "votes", 1))
    return int(getattr(cell.learner, "sweeps", 0)) + (students * (cell.N + 8 * TEST_CIRCLES) if students > 1 else 0)


def check(scenario: StoredExamples) -> None:
    """Refuse examples that this machine cannot hold, before anything runs."""
    held = memory_a_core()
    for cell in scenario.cells():
        size = filled(cell.P)
        needed = 8 * size * (2 * size + 3 * cell.N)
        if needed > held:
            told = f"{cell.P:,} examples in {cell.N:,} dimensions take {needed / 2**30:.3g} GiB"
            raise ScenarioError([(("alpha",), f"{told}, and {held / 2**30:.3g} GiB are here for each core")])
        walked = 8 * widest(size, len(cell.until)) * chain(cell)
        if walked > held:
            told = f"chains of {cell.name} take {walked / 2**30:.3g} GiB"
            raise ScenarioError([(("sweeps",), f"{told}, and {held / 2**30:.3g} GiB are here for each core")])
