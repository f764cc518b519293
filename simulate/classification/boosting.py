"""Simulation of boosting on random teachers and examples, until all examples are classified correctly.

A seed has one teacher for each N, k and s, one endless list of examples and another of tests: every discount and every
P of a sweep sees the same examples (the first P), so that runs can be compared example by example. A larger flip
probability flips the same labels and more.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from simulate.classification.conjunctions import (
    MAX_SEARCHED_CONJUNCTIONS,
    BoostingStage,
    Conjunction,
    boost_conjunctions,
    compute_weighted_vote,
    sum_conjunction_weights,
)
from simulate.execution import work_units
from statmech.classification.boosting import Boosting, BoostingCell
from statmech.errors import ScenarioError
from statmech.keys.sweep_grid import hash_identity
from statmech.runtime.installed_packages import require_modules

INPUT_ROWS_PER_DRAW = 4096  # independent of P, so that all P share their first examples
MIN_TEACHER_DECIDED_FRACTION = 0.1  # teachers that decide fewer inputs are redrawn


class TeacherVote(NamedTuple):
    """A teacher that decides by a vote of conjunctions."""

    conjunctions: tuple[Conjunction, ...]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the sums (m,) of the vote on rows of inputs, whose signs are the labels."""
        return np.sum([h(X) for h in self.conjunctions], axis=0)


class Simulator(work_units.PerRunSimulator[BoostingCell]):
    """Simulator of boosting until all examples are classified correctly."""

    source = "boosting over conjunctions"
    scenario: Boosting

    def simulate(self, cell: BoostingCell, seed: int) -> dict[str, float]:
        """Simulate the variables of one run of AdaBoost."""
        return _simulate_run(self.scenario, cell, seed)

    def check_resources(self) -> None:
        """Raise an error if AdaBoost has too many conjunctions to search, or its examples do not fit into memory."""
        for cell in self.scenario.cells():
            if cell.k > 2:
                require_modules("boosting over conjunctions of three", "estimators", "numba")
            if comb(cell.N, cell.k) > MAX_SEARCHED_CONJUNCTIONS:
                conjunctions = f"conjunctions of {cell.k} of {cell.N} inputs"
                message = f"{conjunctions} are too many to search: more than {MAX_SEARCHED_CONJUNCTIONS:,}"
                raise ScenarioError([(("k",), message)])
            needed = _count_run_bytes(cell, self.scenario.tests)
            work_units.check_run_memory("P", f"a run with {cell.P:,} examples of {cell.N:,} inputs", needed)

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest run."""
        return max(_count_run_bytes(cell, self.scenario.tests) for cell in self.scenario.cells())


def _count_run_bytes(cell: BoostingCell, num_tests: int) -> float:
    """Count the bytes of the inputs, of their copy when blocks are joined, and of the sums of all pairs."""
    return 8.0 * cell.N * (cell.P + max(cell.P, 2 * num_tests) + 3 * INPUT_ROWS_PER_DRAW + 5 * cell.N)


def _simulate_run(scenario: Boosting, cell: BoostingCell, seed: int) -> dict[str, float]:
    """Boost conjunctions on a run's random examples, and return the run's variables."""
    identity = {"N": cell.N, "k": cell.k, "s": cell.s, "key": scenario.key, "seed": seed}
    teacher_rng, example_rng, test_rng, flip_rng = (
        np.random.default_rng([*hash_identity(identity), part]) for part in range(4)
    )
    teacher = draw_teacher(teacher_rng, cell)
    X, y = draw_examples(example_rng, teacher, cell.N, cell.P)
    stages, converged = boost_until_correct(X, flip_labels(flip_rng, y, cell.flip), cell, cell.cap)
    tests, labels = draw_examples(test_rng, teacher, cell.N, scenario.tests)
    return {
        "stages": len(stages) if converged else np.nan,
        "eps_g": float(np.mean(1 - labels * np.sign(compute_weighted_vote(stages, tests)))) / 2,
        "advantage": compute_min_advantage(stages, has_ended=converged or len(stages) == cell.cap),
        "nonzero_weights": len(sum_conjunction_weights(stages)),
        "converged": converged,
    }


def boost_until_correct(
    X: np.ndarray, y: np.ndarray, cell: BoostingCell, max_stages: int
) -> tuple[list[BoostingStage], bool]:
    """Run boosting until all examples are correct or `max_stages` is reached, and return the stages and the success."""
    stages: list[BoostingStage] = []
    vote = np.zeros(len(y))
    for stage in boost_conjunctions(X, y, np.arange(cell.N), cell.k, max_stages, cell.booster.discount):
        stages.append(stage)
        vote = compute_weighted_vote([stage], X) + (vote if stage.error > 0 else 0.0)
        if np.array_equal(np.sign(vote), y):
            return stages, True
    return stages, False


def compute_min_advantage(stages: list[BoostingStage], has_ended: bool) -> float:
    """Return the smallest advantage 1/2 - error of all stages, or 0 if no further stage is better than chance."""
    return min(0.5 - stage.error for stage in stages) if has_ended else 0.0


def draw_teacher(rng: np.random.Generator, cell: BoostingCell) -> TeacherVote:
    """Draw a teacher of random conjunctions that decides enough inputs (see `statmech.classification.boosting`)."""
    while True:
        teacher = TeacherVote(tuple(_draw_conjunction(rng, cell.N, cell.k) for _ in range(cell.s)))
        if np.mean(teacher(_draw_inputs(rng, cell.N)) != 0) >= MIN_TEACHER_DECIDED_FRACTION:
            return teacher


def draw_examples(rng: np.random.Generator, teacher: TeacherVote, N: int, P: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the first P Boolean inputs (P, N) that the teacher's conjunctions decide, and its labels (P,) of +-1."""
    inputs, labels, count = [], [], 0
    while count < P:
        X = _draw_inputs(rng, N)
        sums = teacher(X)
        inputs.append(X[sums != 0])
        labels.append(np.sign(sums[sums != 0]))
        count += len(inputs[-1])
    return np.concatenate(inputs)[:P], np.concatenate(labels)[:P]


def flip_labels(rng: np.random.Generator, y: np.ndarray, flip: float) -> np.ndarray:
    """Flip each label (P,) with probability `flip`. A larger probability flips a superset of the labels."""
    return np.where(rng.random(y.size) < flip, -y, y)


def _draw_conjunction(rng: np.random.Generator, N: int, k: int) -> Conjunction:
    """Draw a conjunction of up to k inputs with a random sign."""
    indices = rng.choice(N, size=rng.integers(1, k + 1), replace=False)
    return Conjunction(tuple(sorted(map(int, indices))), 1 if rng.random() < 0.5 else -1)


def _draw_inputs(rng: np.random.Generator, N: int) -> np.ndarray:
    """Draw a block of binary inputs."""
    return rng.integers(0, 2, size=(INPUT_ROWS_PER_DRAW, N)).astype(float)
