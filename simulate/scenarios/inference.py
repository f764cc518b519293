"""Simulates Bayes-optimal inference: a teacher, its examples, and message passing from a start.

A seed has one teacher for each N and prior, and for each N one endless list of inputs and of the random numbers of
their outputs: every alpha of a sweep sees the first P, and a larger probability of flips flips the same labels and
more.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice

import numpy as np

from simulate.execution import units
from simulate.kernels.message_passing import messages
from statmech.convex.bayes import INFORMED
from statmech.scenarios.grid import words_of
from statmech.scenarios.inference import Inference, InferenceCell

SETTLED = 1e-8  # relative change in a step below which an estimate stays: a millionth of a standard error
MEASURED = ("m", "q", "mse", "eps_g")


class Simulator(units.RunByRun):
    """Message passing, step by step."""

    source = "approximate message passing"
    scenario: Inference

    def simulate(self, cell: InferenceCell, seed: int) -> dict[str, np.ndarray]:
        """The variables of one run, after each step; an estimate that is settled or exact stays."""
        of_teacher, of_start, of_inputs, of_outputs = _streams(cell, self.scenario.key, seed)
        teacher = cell.weights.draw(of_teacher, cell.N)
        X = of_inputs.standard_normal((cell.P, cell.N))
        y = cell.teacher.draw(of_outputs, X @ teacher / np.sqrt(cell.N))
        w, V = _started(of_start, cell, teacher)
        record = np.empty((self.scenario.steps + 1, len(MEASURED)))
        record[0], step = measured(w, teacher), 0
        steps = messages(X, lambda h, V: cell.teacher.score(y, h, V), cell.weights.posterior, w, V, SETTLED)
        for step, estimate in enumerate(islice(steps, self.scenario.steps), 1):
            record[step] = measured(estimate, teacher)
        record[step:] = record[step]
        return dict(zip(MEASURED, record.T, strict=True))

    def check(self) -> None:
        """Refuse examples that this machine cannot hold."""
        for cell in self.scenario.cells():
            units.check_memory("alpha", f"a run with {cell.P:,} examples of {cell.N:,} inputs", _bytes(cell))

    def memory(self) -> float:
        """Bytes that the largest run holds."""
        return max(map(_bytes, self.scenario.cells()))


def measured(w: np.ndarray, teacher: np.ndarray) -> tuple[float, ...]:
    """Overlap, mean square, mean squared error and generalization error of weights; 1/2 if they are 0.

    >>> measured(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    (0.5, 0.5, 0.5, 0.25)
    """
    N = len(w)
    m = float(w @ teacher) / N
    across = float(np.linalg.norm(w - m * teacher)) / np.sqrt(N)
    eps_g = float(np.arctan2(across, m) / np.pi) if np.any(w) else 0.5
    return m, float(w @ w) / N, float(np.mean((w - teacher) ** 2)), eps_g


def _streams(cell: InferenceCell, key: int, seed: int) -> list[np.random.Generator]:
    """Random numbers of the teacher, the start, the inputs and the outputs."""
    run = {"N": cell.N, "key": key, "seed": seed}
    of_prior = {**run, "prior": cell.name, **asdict(cell.weights)}
    identities = (of_prior, of_prior, run, run)
    return [np.random.default_rng([*words_of(identity), part]) for part, identity in enumerate(identities)]


def _started(rng: np.random.Generator, cell: InferenceCell, teacher: np.ndarray) -> tuple[np.ndarray, float]:
    """The first estimate and its variance; an informed one has m = q = 1 - INFORMED on average."""
    if cell.start == "informed":
        q = 1 - INFORMED
        return q * teacher + np.sqrt(q * INFORMED) * rng.standard_normal(cell.N), INFORMED
    mean, variance = cell.weights.posterior(np.zeros(cell.N), 0.0)
    return mean, float(np.mean(variance))


def _bytes(cell: InferenceCell) -> float:
    """Of the inputs, and of a logistic teacher's sums over 28 nodes."""
    return 8.0 * cell.P * (cell.N + 200)
