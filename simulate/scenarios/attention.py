r"""Simulates attentive perceptrons that learn online, by the kernel of `simulate.kernels.partial_sums`.

Every example is fresh, :math:`x\sim N(0, I/N)`, its label the teacher's. A seed's teacher, first student, examples and
probes depend on the experiment's key, N and the seed's number alone, so that boundaries and deltas can be compared
example by example.

**Features come in a random order, drawn again for each block of 64 examples.** The order is drawn for teacher and
students instead of the inputs, whose features are equivalent. One fixed order would not do, although inputs are
isotropic: examples that stop early are not learnt, so those that are learnt owe more to the late features, and the
weights of the first ones would drift away from the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulate.execution.units import NUMBA, SeedBySeed, SeedUnit, UnitResult
from simulate.kernels.partial_sums import FEWEST, Attentive, lessons
from statmech.results.dataset import describe_student
from statmech.runtime.extras import require
from statmech.scenarios.attention import Attention, AttentionCell
from statmech.scenarios.cells import words_of
from statmech.scenarios.step_sizes import steps

BLOCK = 64  # examples drawn together, in one order of their features


class Counts(NamedTuple):
    """Features evaluated and decision errors since the start."""

    features: int = 0
    errors: int = 0


class SignedInputs(NamedTuple):
    """Inputs times the teacher's labels, z (m, N), and which of them are probes (m,)."""

    z: np.ndarray
    probes: np.ndarray


class World:
    """A seed's teacher (N,), of length sqrt(N), first student and endless stream of examples."""

    def __init__(self, key: int, seed: int, N: int, probes: float):
        words = words_of({"data": "attentive", "N": N})
        self._start, self._inputs, self._probes, self._orders = (
            np.random.default_rng([key, seed, role, *words]) for role in range(4)
        )
        self.teacher, self.student = self._start.standard_normal((2, N))
        self.teacher *= np.sqrt(N) / np.linalg.norm(self.teacher)
        self._share = probes

    def turn(self) -> np.ndarray:
        """Draw another order of the features, which the caller applies to its students, too."""
        order = self._orders.permutation(self.teacher.size)
        self.teacher = self.teacher[order]
        return order

    def examples(self, m: int) -> SignedInputs:
        x = self._inputs.standard_normal((m, self.teacher.size))
        x *= (np.where(x @ self.teacher < 0, -1.0, 1.0) / np.sqrt(self.teacher.size))[:, None]
        return SignedInputs(x, self._probes.random(m) < self._share)


class Simulator(SeedBySeed):
    """Attentive perceptrons that learn online."""

    source = "attentive perceptrons on line"
    scenario: Attention

    def check(self) -> None:
        """Refuse to run without Numba, which compiles the loop over features."""
        require("an attentive perceptron", "estimators", "numba")

    def libraries(self) -> float:
        """Bytes of Numba."""
        return NUMBA

    def memory(self) -> float:
        """Bytes that the largest unit holds: a block of examples, its products, and the students."""
        return max(
            8.0 * unit.cells[0].N * (2 * BLOCK + len(unit.cells))
            for unit in self.units(list(self.scenario.cells()), range(1))
        )

    def run(self, unit: SeedUnit) -> list[UnitResult]:
        """The variables (1, T) of each cell."""
        seeds = slice(unit.seed, unit.seed + 1)
        return [
            UnitResult(cell.index, seeds, {name: value[None] for name, value in values.items()})
            for cell, values in zip(unit.cells, _learn(self.scenario, unit), strict=True)
        ]


def _learn(scenario: Attention, unit: SeedUnit) -> list[dict[str, np.ndarray]]:
    """The variables (T,) of each cell's student."""
    N = unit.cells[0].N
    world = World(scenario.key, unit.seed, N, scenario.probes)
    students = [begin(cell, world.student) for cell in unit.cells]
    counts = [Counts() for _ in students]
    records: list[list[tuple[float, ...]]] = [[] for _ in students]
    done, left = 0, SignedInputs(np.zeros((0, N)), np.zeros(0, bool))
    recorded = steps(scenario.t, N)
    for step in recorded:
        while done < step:
            if not len(left.z):
                order = world.turn()
                for student in students:
                    student.w = student.w[order]
                left = world.examples(BLOCK)
            now = min(len(left.z), step - done)
            part, left = SignedInputs(*(of[:now] for of in left)), SignedInputs(*(of[now:] for of in left))
            counts = [attend(*of, part) for of in zip(unit.cells, students, counts, strict=True)]
            done += now
        for number, student in enumerate(students):
            records[number].append((*describe(world.teacher, student.w), *counts[number]))
    return [views(np.array(values).T, recorded, N) for values in records]


def begin(cell: AttentionCell, w: np.ndarray) -> Attentive:
    """A drawn student, whose margins have mean 0 and the variance that its length implies."""
    student = Attentive(w.copy(), cell.boundary, cell.error_rate, cell.memory)
    student.know(0.0, float(w @ w) / w.size)
    return student


def attend(cell: AttentionCell, student: Attentive, counts: Counts, examples: SignedInputs) -> Counts:
    """Let a student learn from examples; returns the counts by then."""
    features, errors = counts
    none = np.zeros(len(examples.z))
    for lesson in lessons(student, examples.z, none, examples.probes, cell.looks, FEWEST, learns=True):
        features, errors = features + lesson.features, errors + lesson.lost
        student.take(lesson.margins)
    return Counts(features, errors)


def describe(teacher: np.ndarray, w: np.ndarray) -> tuple[float, float, float]:
    """R, length and eps_g of a student."""
    N = w.size
    along = w @ teacher / N
    student = describe_student(along, np.linalg.norm(w - along * teacher) / np.sqrt(N))
    return float(student["R"]), float(student["length"]), float(student["eps_g"])


def views(values: np.ndarray, steps: np.ndarray, N: int) -> dict[str, np.ndarray]:
    """The variables of a run from R, length, eps_g, features and errors so far, values (5, T)."""
    R, length, eps_g, features, errors = values
    span = np.diff(steps, prepend=0)
    span = np.where(span > 0, span, np.nan)
    return {
        "R": R,
        "length": length,
        "eps_g": eps_g,
        "features": np.diff(features, prepend=0) / span / N,
        "decision_error": np.diff(errors, prepend=0) / span,
        "work": features / N**2,
    }
