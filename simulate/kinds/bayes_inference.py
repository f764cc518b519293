"""Simulation of Bayes-optimal inference: a teacher, its examples, and message passing.

`simulate.convex.training_data` draws teachers and examples: all alphas of a sweep see the same examples.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from simulate.convex import message_passing, training_data
from simulate.execution.work_units import ConvexFitSimulator
from statmech.kinds.bayes_inference import INFORMED_START_MSE, Inference, InferenceCell

ESTIMATE_VARIABLES = ("m", "q", "mse", "eps_g")


class Simulator(ConvexFitSimulator[InferenceCell]):
    """Simulator of message passing, recorded after every step."""

    source = "approximate message passing"
    scenario: Inference

    def simulate(self, cell: InferenceCell, seed: int) -> dict[str, np.ndarray]:
        """Simulate one run of Bayes-optimal message passing, and return the variables after each step.

        A converged or exact estimate no longer changes.
        """
        data = training_data.draw_teacher_data(cell, self.scenario.key, seed)
        w, V = _make_first_estimate(cell, data.teacher, self.scenario.key, seed)
        record = np.empty((self.scenario.steps + 1, len(ESTIMATE_VARIABLES)))
        record[0], step = measure_estimate(w, data.teacher), 0
        steps = message_passing.iterate_posterior_means(w, V, data, cell)
        for step, estimate in enumerate(islice(steps, self.scenario.steps), 1):
            record[step] = measure_estimate(estimate, data.teacher)
        record[step:] = record[step]
        return dict(zip(ESTIMATE_VARIABLES, record.T, strict=True))

    def count_run_bytes(self, cell: InferenceCell) -> float:
        """Return the bytes of a run: its inputs, and sums over 28 nodes for a logistic teacher."""
        return 8.0 * cell.P * (cell.N + 200)


def measure_estimate(w: np.ndarray, teacher: np.ndarray) -> tuple[float, ...]:
    """Return overlap, mean square, mean squared error and generalization error of inferred weights.

    The generalization error of zero weights is 1/2.

    >>> measure_estimate(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    (0.5, 0.5, 0.5, 0.25)
    """
    N = len(w)
    m = float(w @ teacher) / N
    perpendicular = float(np.linalg.norm(w - m * teacher)) / np.sqrt(N)
    eps_g = float(np.arctan2(perpendicular, m) / np.pi) if np.any(w) else 0.5
    return m, float(w @ w) / N, float(np.mean((w - teacher) ** 2)), eps_g


def _make_first_estimate(cell: InferenceCell, teacher: np.ndarray, key: int, seed: int) -> tuple[np.ndarray, float]:
    """Return the first estimate for message passing and its variance.

    An informed estimate has m = q = 1 - `INFORMED_START_MSE` on average.
    """
    if cell.start != "informed":
        return message_passing.compute_prior_moments(cell.weights, cell.N)
    identity = {"N": cell.N, "key": key, "seed": seed, **training_data.describe_weight_prior(cell.weights)}
    q, rng = 1 - INFORMED_START_MSE, training_data.make_random_stream(training_data.START_STREAM, **identity)
    return q * teacher + np.sqrt(q * INFORMED_START_MSE) * rng.standard_normal(cell.N), INFORMED_START_MSE
