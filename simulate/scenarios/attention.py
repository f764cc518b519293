r"""Simulation of attentive perceptrons that learn online, by the kernel of `simulate.kernels.partial_sums`.

Every example is fresh, :math:`x\sim N(0, I/N)`, with the teacher's label. A seed's teacher, first student, examples and
probes depend only on the experiment's key, N and the seed's number, so that boundaries and deltas can be compared
example by example.

**Features come in a random order, drawn again for each block of 64 examples.** The order is applied to teacher and
students instead of the inputs, whose features are equivalent. A fixed order would be wrong, although inputs are
isotropic: students do not learn examples that stop early, so that the other examples depend more on the late features,
and the weights of the first features would drift away from the rest.
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

BLOCK = 64  # drawn together, with the same order of features


class Counts(NamedTuple):
    """Numbers of evaluated features and of decision errors since the start."""

    features: int = 0
    errors: int = 0


class SignedInputs(NamedTuple):
    """Inputs times the teacher's labels, z (m, N), and a mask of probes (m,)."""

    z: np.ndarray
    probes: np.ndarray


class World:
    """The data of a seed: a teacher (N,) of length sqrt(N), a first student and an endless stream of examples."""

    def __init__(self, key: int, seed: int, N: int, probes: float):
        entropy = words_of({"data": "attentive", "N": N})
        self._start, self._inputs, self._probes, self._orders = (
            np.random.default_rng([key, seed, role, *entropy]) for role in range(4)
        )
        self.teacher, self.student = self._start.standard_normal((2, N))
        self.teacher *= np.sqrt(N) / np.linalg.norm(self.teacher)
        self._share = probes

    def turn(self) -> np.ndarray:
        """Draw another order of the features. The caller must also apply it to its students."""
        order = self._orders.permutation(self.teacher.size)
        self.teacher = self.teacher[order]
        return order

    def examples(self, m: int) -> SignedInputs:
        """Draw the next m examples."""
        x = self._inputs.standard_normal((m, self.teacher.size))
        x *= (np.where(x @ self.teacher < 0, -1.0, 1.0) / np.sqrt(self.teacher.size))[:, None]
        return SignedInputs(x, self._probes.random(m) < self._share)


class Simulator(SeedBySeed):
    """Attentive perceptrons that learn online."""

    source = "attentive perceptrons on line"
    scenario: Attention

    def check(self) -> None:
        """Raise an error if Numba is missing, which compiles the loop over features."""
        require("an attentive perceptron", "estimators", "numba")

    def libraries(self) -> float:
        """Return the bytes of Numba."""
        return NUMBA

    def memory(self) -> float:
        """Return the bytes of the largest unit: a block of examples, its products, and the students."""
        return max(
            8.0 * unit.cells[0].N * (2 * BLOCK + len(unit.cells))
            for unit in self.units(list(self.scenario.cells()), range(1))
        )

    def run(self, unit: SeedUnit) -> list[UnitResult]:
        """Simulate the variables (1, T) of each cell."""
        seeds = slice(unit.seed, unit.seed + 1)
        return [
            UnitResult(cell.index, seeds, {name: value[None] for name, value in values.items()})
            for cell, values in zip(unit.cells, _learn(self.scenario, unit), strict=True)
        ]


def _learn(scenario: Attention, unit: SeedUnit) -> list[dict[str, np.ndarray]]:
    """Let each cell's student learn online, and return its variables (T,)."""
    N = unit.cells[0].N
    world = World(scenario.key, unit.seed, N, scenario.probes)
    students = [begin(cell, world.student) for cell in unit.cells]
    counts = [Counts() for _ in students]
    records: list[list[tuple[float, ...]]] = [[] for _ in students]
    learnt_steps, left = 0, SignedInputs(np.zeros((0, N)), np.zeros(0, bool))
    recorded = steps(scenario.t, N)
    for step in recorded:
        while learnt_steps < step:
            if not len(left.z):
                order = world.turn()
                for student in students:
                    student.w = student.w[order]
                left = world.examples(BLOCK)
            count = min(len(left.z), step - learnt_steps)
            part, left = (
                SignedInputs(*(array[:count] for array in left)),
                SignedInputs(*(array[count:] for array in left)),
            )
            counts = [attend(*arguments, part) for arguments in zip(unit.cells, students, counts, strict=True)]
            learnt_steps += count
        for number, student in enumerate(students):
            records[number].append((*describe(world.teacher, student.w), *counts[number]))
    return [views(np.array(values).T, recorded, N) for values in records]


def begin(cell: AttentionCell, w: np.ndarray) -> Attentive:
    """Start a student with given weights: margins with mean 0 and the variance that the length implies."""
    student = Attentive(w.copy(), cell.boundary, cell.error_rate, cell.memory)
    student.know(0.0, float(w @ w) / w.size)
    return student


def attend(cell: AttentionCell, student: Attentive, counts: Counts, examples: SignedInputs) -> Counts:
    """Let a student learn from examples, and return the updated counts."""
    features, errors = counts
    zeros = np.zeros(len(examples.z))
    for lesson in lessons(student, examples.z, zeros, examples.probes, cell.looks, FEWEST, learns=True):
        features, errors = features + lesson.features, errors + lesson.lost
        student.take(lesson.margins)
    return Counts(features, errors)


def describe(teacher: np.ndarray, w: np.ndarray) -> tuple[float, float, float]:
    """Return R, length and eps_g of a student."""
    N = w.size
    parallel = w @ teacher / N
    student = describe_student(parallel, np.linalg.norm(w - parallel * teacher) / np.sqrt(N))
    return float(student["R"]), float(student["length"]), float(student["eps_g"])


def views(values: np.ndarray, steps: np.ndarray, N: int) -> dict[str, np.ndarray]:
    """Compute the variables of a run from values (5, T): R, length, eps_g, and cumulative features and errors."""
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
