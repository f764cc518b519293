r"""Simulation of attentive perceptrons that learn online, with the kernel of `simulate.classification.partial_sums`.

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

from simulate.classification.partial_sums import MIN_BLOCK_EXAMPLES, AttentionState, evaluate_margins_in_blocks
from simulate.execution.work_units import NUMBA_BYTES, PerSeedSimulator, SeedUnit, UnitResult
from statmech.classification.attentive_perceptron import Attention, AttentionCell
from statmech.keys.sweep_grid import hash_identity
from statmech.keys.time_dependent_keys import count_steps
from statmech.runtime.installed_packages import require_modules
from statmech.students.student_geometry import compute_student_order_parameters

EXAMPLES_PER_FEATURE_ORDER = 64  # examples drawn together share one order of the features


class EvaluationCounts(NamedTuple):
    """Numbers of evaluated features and of decision errors since the start."""

    evaluated_features: int = 0
    decision_errors: int = 0


class SignedInputs(NamedTuple):
    """Inputs z (m, N) multiplied by the teacher's labels, and a mask (m,) of the probes."""

    z: np.ndarray
    is_probe: np.ndarray


class AttentionSeedData:
    """Data of a seed: a teacher (N,) of length sqrt(N), an initial student, and an endless stream of examples."""

    def __init__(self, key: int, seed: int, N: int, probes: float):
        entropy = hash_identity({"data": "attentive", "N": N})
        self._start, self._inputs, self._probes, self._orders = (
            np.random.default_rng([key, seed, role, *entropy]) for role in range(4)
        )
        self.teacher, self.student = self._start.standard_normal((2, N))
        self.teacher *= np.sqrt(N) / np.linalg.norm(self.teacher)
        self._probe_fraction = probes

    def draw_feature_order(self) -> np.ndarray:
        """Draw a new order of the features, which the caller must also apply to its students."""
        order = self._orders.permutation(self.teacher.size)
        self.teacher = self.teacher[order]
        return order

    def draw_examples(self, m: int) -> SignedInputs:
        """Draw the next m examples."""
        x = self._inputs.standard_normal((m, self.teacher.size))
        x *= (np.where(x @ self.teacher < 0, -1.0, 1.0) / np.sqrt(self.teacher.size))[:, None]
        return SignedInputs(x, self._probes.random(m) < self._probe_fraction)


class Simulator(PerSeedSimulator):
    """Simulator of attentive perceptrons that learn online."""

    source = "attentive perceptrons on line"
    scenario: Attention

    def check_resources(self) -> None:
        """Raise an error if Numba, which compiles the loop over features, is not installed."""
        require_modules("an attentive perceptron", "estimators", "numba")

    def count_library_bytes(self) -> float:
        """Return the memory of Numba in bytes."""
        return NUMBA_BYTES

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest unit of attentive perceptrons: examples, products, and students."""
        return max(
            8.0 * unit.cells[0].N * (2 * EXAMPLES_PER_FEATURE_ORDER + len(unit.cells))
            for unit in self.units(list(self.scenario.cells()), range(1))
        )

    def run(self, unit: SeedUnit) -> list[UnitResult]:
        """Train an attentive perceptron online in each cell, and return the variables (1, T)."""
        seeds = slice(unit.seed, unit.seed + 1)
        return [
            UnitResult(cell.index, seeds, {name: value[None] for name, value in values.items()})
            for cell, values in zip(unit.cells, _learn_online(self.scenario, unit), strict=True)
        ]


def _learn_online(scenario: Attention, unit: SeedUnit) -> list[dict[str, np.ndarray]]:
    """Train each cell's attentive student online and return its variables (T,)."""
    N = unit.cells[0].N
    world = AttentionSeedData(scenario.key, unit.seed, N, scenario.probes)
    students = [make_initial_state(cell, world.student) for cell in unit.cells]
    counts = [EvaluationCounts() for _ in students]
    records: list[list[tuple[float, ...]]] = [[] for _ in students]
    learnt_steps, left = 0, SignedInputs(np.zeros((0, N)), np.zeros(0, bool))
    recorded = count_steps(scenario.t, N)
    for step in recorded:
        while learnt_steps < step:
            if not len(left.z):
                order = world.draw_feature_order()
                for student in students:
                    student.w = student.w[order]
                left = world.draw_examples(EXAMPLES_PER_FEATURE_ORDER)
            count = min(len(left.z), step - learnt_steps)
            part = SignedInputs(*(array[:count] for array in left))
            left = SignedInputs(*(array[count:] for array in left))
            counts = [learn_examples(*arguments, part) for arguments in zip(unit.cells, students, counts, strict=True)]
            learnt_steps += count
        for number, student in enumerate(students):
            records[number].append((*measure_student(world.teacher, student.w), *counts[number]))
    return [compute_run_variables(np.array(values).T, recorded, N) for values in records]


def make_initial_state(cell: AttentionCell, w: np.ndarray) -> AttentionState:
    """Make a student with these weights, margin mean 0, and the margin variance implied by its length."""
    student = AttentionState(w.copy(), cell.boundary, cell.error_rate, cell.memory)
    student.set_margin_moments(0.0, float(w @ w) / w.size)
    return student


def learn_examples(
    cell: AttentionCell, student: AttentionState, counts: EvaluationCounts, examples: SignedInputs
) -> EvaluationCounts:
    """Train an attentive student online on examples and return the updated counts."""
    features, errors = counts
    zeros = np.zeros(len(examples.z))
    for lesson in evaluate_margins_in_blocks(
        student, examples.z, zeros, examples.is_probe, cell.check_positions, MIN_BLOCK_EXAMPLES, learns=True
    ):
        features, errors = features + lesson.features, errors + lesson.num_wrongly_stopped
        student.update_margin_moments(lesson.probe_margins)
    return EvaluationCounts(features, errors)


def measure_student(teacher: np.ndarray, w: np.ndarray) -> tuple[float, float, float]:
    """Return R, length and eps_g of an attentive student."""
    N = w.size
    parallel = w @ teacher / N
    student = compute_student_order_parameters(parallel, np.linalg.norm(w - parallel * teacher) / np.sqrt(N))
    return float(student["R"]), float(student["length"]), float(student["eps_g"])


def compute_run_variables(values: np.ndarray, steps: np.ndarray, N: int) -> dict[str, np.ndarray]:
    """Compute an attentive student's variables from R, length, eps_g and cumulative features and errors (5, T)."""
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
