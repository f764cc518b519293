r"""Simulation of learning from stored examples, with data sets of many seeds and alphas side by side.

Data sets of similar size, from any cell, are padded to one size and learnt in one vectorised call. The calls are
distributed over all cores. The result of a data set does not depend on the others in its call.

P inputs :math:`\xi\sim N(0, I)` have a teacher's labels S, some flipped. A data set depends only on the experiment's
key, N and the seed's number: all learners, noise levels and alphas see the same teacher and the same inputs, the first
P of one infinite sequence, and the examples that are flipped at one noise level are also flipped at larger ones.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from simulate.execution import work_units
from simulate.learners import learn
from simulate.learners.learner_interface import DataSetBatch, LearnerTask, LearntStudents, bound_stability_gap
from statmech.keys.sweep_grid import ensure_tuple, hash_identity
from statmech.kinds.stored_examples import StoredExamples, StoredExamplesCell
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.stores.sweep_chunks import MAX_SEEDS_PER_CHUNK
from statmech.students.ensemble_vote import NUM_TEST_CIRCLES, draw_random_circles, measure_vote_error
from statmech.students.student_geometry import compute_student_order_parameters

LEARNERS_WITHOUT_COMPILER = ("hebb", "pseudo_inverse", "max_stability")
MAX_DATA_SETS_PER_CALL, MAX_ELEMENTS_PER_CALL = 64, 2**21  # elements in total over the matrices of a call
PADDED_SIZES = [8, 16, 24, *(n << k for k in range(3, 40) for n in (4, 5, 6, 7))]  # multiples of 8


class DataSet(NamedTuple):
    """A teacher (N,) of length sqrt(N), and its examples times their labels, z (P, N)."""

    teacher: np.ndarray
    z: np.ndarray


@dataclass(frozen=True)
class DataSetUnit:
    """Work unit of data sets, which are pairs of cell and seed.

    It is padded to `padded_size` examples and `data_sets_per_call` data sets.
    """

    data_set_runs: tuple[tuple[StoredExamplesCell, int], ...]
    padded_size: int
    data_sets_per_call: int


class Simulator(work_units.Simulator):
    """Simulator of learning from stored examples."""

    source = "learners of stored examples"
    scenario: StoredExamples

    def units(self, cells: Sequence[StoredExamplesCell], seeds: range) -> Iterator[DataSetUnit]:
        """Yield groups of data sets of similar size, each for one call of a compiled program."""
        groups: dict[tuple[Any, ...], list[tuple[StoredExamplesCell, int]]] = {}
        for cell in cells:
            program = (round_up_to_padded_size(cell.P), cell.name, cell.learner, cell.N)
            groups.setdefault(program, []).extend((cell, seed) for seed in seeds)
        for (size, *_), runs in groups.items():
            calls = -(-len(runs) // choose_data_sets_per_call(size, len(runs[0][0].recorded_updates)))
            width = -(-len(runs) // calls)  # calls of equal width leave few batch elements idle
            runs.sort(key=lambda run: run[0].P)
            for first in range(0, len(runs), width):
                yield DataSetUnit(tuple(runs[first : first + width]), size, width)

    def run(self, unit: DataSetUnit) -> list[work_units.UnitResult]:
        """Simulate a learner of stored data sets, and return the variables (1, T) of each data set."""
        cell = unit.data_set_runs[0][0]
        data = _make_data_sets(self.scenario.key, unit.data_set_runs)
        idle = unit.data_sets_per_call - len(data)  # the last batch is padded with data sets of one example
        data_sets = [*data, *[DataSet(data[0].teacher, data[0].z[:1])] * idle]
        until = np.array(
            [run_cell.recorded_updates for run_cell, _ in unit.data_set_runs]
            + [(0,) * len(cell.recorded_updates)] * idle
        )
        entropy = np.array(
            [_make_rng_entropy(self.scenario, *run) for run in (*unit.data_set_runs, *[unit.data_set_runs[0]] * idle)],
            np.uint32,
        )
        task = LearnerTask(cell.name, cell.learner, until, entropy)
        with use_cpu_double_precision():
            learnt = learn(make_data_set_batch(data_sets, unit.padded_size), task)
        results = []
        for index, data_set in enumerate(data):
            values = measure_data_set(data_set, learnt, index, entropy[index])
            if self.scenario.strengths and learnt.strengths is not None:
                values["strengths"] = learnt.strengths[index, :, : len(data_set.z)]
            (cell, seed), values = unit.data_set_runs[index], {name: value[None] for name, value in values.items()}
            results.append(work_units.UnitResult(cell.index, slice(seed, seed + 1), values))
        return results

    def count_library_bytes(self) -> float:
        """Return the memory in bytes of JAX, and of its compiler for iterative learners."""
        return work_units.JAX_BYTES + (
            work_units.XLA_BYTES if {*ensure_tuple(self.scenario.learner)} - {*LEARNERS_WITHOUT_COMPILER} else 0
        )

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest group of data sets learnt together."""
        return max(
            map(
                _count_unit_bytes,
                self.units(list(self.scenario.cells()), range(min(self.scenario.seeds, MAX_SEEDS_PER_CHUNK))),
            )
        )

    def check_resources(self) -> None:
        """Raise `ScenarioError` if a stored data set and its Gram matrix do not fit into memory."""
        for cell in self.scenario.cells():
            size = round_up_to_padded_size(cell.P)
            data = f"a run with {cell.P:,} examples in {cell.N:,} dimensions"
            work_units.check_run_memory("alpha", data, 8 * size * (2 * size + 3 * cell.N))
            chains = 8 * count_chain_array_elements(cell, choose_data_sets_per_call(size, len(cell.recorded_updates)))
            work_units.check_run_memory("sweeps", f"a batch of chains of {cell.name}", chains)


def round_up_to_padded_size(P: int) -> int:
    """Return the size that P examples are padded to.

    Few different sizes mean few programs to compile.
    """
    return PADDED_SIZES[bisect.bisect_left(PADDED_SIZES, P)]


class SeedInputs(NamedTuple):
    """A seed's teacher (N,), inputs (P, N), and a uniform number for each input (P,).

    The uniform number decides whether the label is flipped.

    Examples
    --------
    >>> few = draw_seed_inputs(0, 7, 20, 5).examples(5, flip=0.0)
    >>> many = draw_seed_inputs(0, 7, 20, 50).examples(50, flip=0.0)
    >>> bool(np.all(many.z[:5] == few.z) and np.all(few.z @ few.teacher > 0))
    True
    """

    teacher: np.ndarray
    inputs: np.ndarray
    flip_uniforms: np.ndarray

    def examples(self, P: int, flip: float) -> DataSet:
        """Return the first P examples, with labels flipped with this probability."""
        xi = self.inputs[:P]
        labels = np.where(xi @ self.teacher < 0, -1.0, 1.0) * np.where(self.flip_uniforms[:P] < flip, -1.0, 1.0)
        return DataSet(self.teacher, labels[:, None] * xi)


def draw_seed_inputs(key: int, seed: int, N: int, P: int) -> SeedInputs:
    """Draw the first P inputs that learners store, and their teacher, for one seed.

    The parameters are explained in `draw_data_set`.
    """
    entropy = hash_identity({"data": "stored examples", "N": N})
    teachers, inputs, noise = (np.random.default_rng([key, seed, role, *entropy]) for role in range(3))
    teacher = teachers.standard_normal(N)
    teacher *= np.sqrt(N) / np.linalg.norm(teacher)
    return SeedInputs(teacher, inputs.standard_normal((P, N)), noise.random(P))


def draw_data_set(key: int, seed: int, N: int, P: int, flip: float) -> DataSet:
    """Draw the first P examples of a seed's data set.

    Parameters
    ----------
    key
        Key of the experiment.
    seed
        Number of the seed.
    N, P
        Input dimension, and number of examples.
    flip
        Probability that a label is flipped.
    """
    return draw_seed_inputs(key, seed, N, P).examples(P, flip)


def make_data_set_batch(data: list[DataSet], P: int) -> DataSetBatch:
    """Combine stored data sets into a batch, each padded to P examples."""
    N = data[0].z.shape[1]
    z = np.zeros((len(data), P, N))
    gram = np.zeros((len(data), P, P))
    for index, data_set in enumerate(data):
        size = len(data_set.z)
        z[index, :size] = data_set.z
        gram[index, :size, :size] = data_set.z @ data_set.z.T / N
    return DataSetBatch(z, gram, np.array([len(data_set.z) for data_set in data]))


def _make_data_sets(key: int, runs: Sequence[tuple[StoredExamplesCell, int]]) -> list[DataSet]:
    """Return the data set of each run. Data sets with the same seed share their inputs."""
    N = runs[0][0].N
    longest = {seed: P for P, seed in sorted((cell.P, seed) for cell, seed in runs)}
    inputs = {seed: draw_seed_inputs(key, seed, N, P) for seed, P in longest.items()}
    return [inputs[seed].examples(cell.P, cell.flip) for cell, seed in runs]


def _count_unit_bytes(unit: DataSetUnit) -> float:
    """Return the bytes of a unit: for each stored data set copies of examples, Gram matrices, and strengths."""
    cell = unit.data_set_runs[0][0]
    examples = 4 if cell.name in LEARNERS_WITHOUT_COMPILER else 3  # SciPy's solvers need one more copy
    numbers = unit.padded_size * (2 * unit.padded_size + examples * cell.N + 3 * len(cell.recorded_updates))
    return 8.0 * (unit.data_sets_per_call * numbers + count_chain_array_elements(cell, unit.data_sets_per_call))


def choose_data_sets_per_call(padded_size: int, num_times: int) -> int:
    """Choose the number of data sets per call that keeps Gram matrices and recorded strengths small."""
    return max(1, min(MAX_DATA_SETS_PER_CALL, MAX_ELEMENTS_PER_CALL // (padded_size * max(padded_size, num_times))))


def measure_data_set(data: DataSet, learnt: LearntStudents, index: int, entropy: np.ndarray) -> dict[str, np.ndarray]:
    """Measure the variables of the students of one stored data set at each recorded time."""
    values = {
        "updates_made": learnt.updates[index],
        "stopped_by": learnt.stopped_by[index],
        "converged": learnt.converged[index],
    }
    if learnt.strengths is not None:
        x = learnt.strengths[index, :, : len(data.z)]
        w = x @ data.z / data.z.shape[1]
        fields = w @ data.z.T
        certified = (x >= 0).all(axis=-1) & (x > 0).any(axis=-1)
        return (
            values
            | measure_students(data, w, fields)
            | {"gap": np.where(certified, bound_stability_gap(fields, x), np.nan)}
        )
    assert learnt.students is not None
    students = learnt.students[index, 0]  # identical at all recorded times
    students = students / np.linalg.norm(students, axis=-1, keepdims=True)
    centre = students.mean(axis=0, keepdims=True)
    values |= measure_students(data, centre, centre @ data.z.T)
    if len(students) > 1:
        inputs = draw_random_circles(np.random.default_rng(entropy), NUM_TEST_CIRCLES, students.shape[1])
        values["eps_g"] = np.atleast_1d(measure_vote_error(*_separate_teacher_component(data, students), inputs))
    return {name: np.broadcast_to(value, learnt.updates[index].shape) for name, value in values.items()}


def measure_students(data: DataSet, w: np.ndarray, fields: np.ndarray) -> dict[str, np.ndarray]:
    """Return R, eps_g, kappa and eps_t of students w (T, N) with fields (T, P). Zero weights guess at random."""
    parallel, perpendicular = _separate_teacher_component(data, w)
    length = np.linalg.norm(w, axis=-1)
    blank = length == 0
    with np.errstate(invalid="ignore"):
        student = compute_student_order_parameters(parallel, np.linalg.norm(perpendicular, axis=-1), length)
        return {
            "R": np.where(blank, 0.0, student["R"]),
            "eps_g": np.where(blank, 0.5, student["eps_g"]),
            "kappa": fields.min(axis=-1) / length,
            "eps_t": np.where(np.isnan(length), np.nan, np.mean((1 - np.sign(fields)) / 2, axis=-1)),
        }


def _separate_teacher_component(data: DataSet, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split students (n, N) into components (n,) parallel to the teacher and vectors (n, N) perpendicular to it."""
    teacher = data.teacher / np.linalg.norm(data.teacher)
    parallel = w @ teacher
    return parallel, w - parallel[:, None] * teacher


def _make_rng_entropy(scenario: StoredExamples, cell: StoredExamplesCell, seed: int) -> tuple[int, ...]:
    """Return the integers that seed a learner's random numbers on a stored data set."""
    identity = {
        "learner": cell.name,
        "N": cell.N,
        "P": cell.P,
        "flip": cell.flip,
        **cell.learner.random_seed_parameters,
    }
    return hash_identity({**identity, "key": scenario.key, "seed": seed})


def count_chain_array_elements(cell: StoredExamplesCell, width: int) -> int:
    """Count the array elements of chains through version spaces: cosines, students, and fields of one data set."""
    students: int = getattr(cell.learner, "votes", 1)
    sweeps: int = getattr(cell.learner, "sweeps", 0)
    return width * (sweeps + students * cell.N) + (students * 8 * NUM_TEST_CIRCLES if students > 1 else 0)
