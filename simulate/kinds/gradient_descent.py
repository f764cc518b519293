"""Simulation of descent on a convex loss: choice of the engine and of the best epoch of each run.

Runs of the same N, engine and seed start with the same random numbers. With explicit data, runs of the same alpha have
the same examples. Deferred runs have different examples, because they are drawn along the directions of learning.
"""

from __future__ import annotations

import numpy as np

from simulate.convex.descent_engines import (
    estimate_deferred_descent_bytes,
    estimate_explicit_descent_bytes,
    run_deferred_descent,
    run_explicit_descent,
)
from simulate.convex.training_data import make_random_stream
from simulate.execution.work_units import ConvexFitSimulator
from statmech.convex.descent_methods import compute_max_stable_eta
from statmech.kinds.gradient_descent import Descent, DescentCell, choose_descent_engine

RUN_FUNCTIONS_BY_ENGINE = {"deferred": run_deferred_descent, "explicit": run_explicit_descent}
BYTE_ESTIMATES_BY_ENGINE = {"deferred": estimate_deferred_descent_bytes, "explicit": estimate_explicit_descent_bytes}
DESCENT_RANDOM_STREAM = 0


class Simulator(ConvexFitSimulator[DescentCell]):
    """Simulator of descent on a convex loss, one run after the other."""

    source = "descent on stored examples"
    scenario: Descent

    def simulate(self, cell: DescentCell, seed: int) -> dict[str, np.ndarray]:
        """Simulate one descent on a convex loss, and return its variables and best epoch."""
        engine = choose_descent_engine(cell)
        rng = make_random_stream(DESCENT_RANDOM_STREAM, descent=engine, N=cell.N, key=self.scenario.key, seed=seed)
        values = RUN_FUNCTIONS_BY_ENGINE[engine](cell, rng)
        return values | find_best_epoch_and_divergence(np.asarray(self.scenario.epochs), values)

    def count_run_bytes(self, cell: DescentCell) -> float:
        """Return the bytes of a run."""
        return BYTE_ESTIMATES_BY_ENGINE[choose_descent_engine(cell)](cell)

    def get_memory_key(self, cell: DescentCell) -> str:
        return "epochs" if choose_descent_engine(cell) == "deferred" else "alpha"

    def describe_run(self, cell: DescentCell) -> str:
        sizes = f"{cell.P:,} examples in {cell.N:,} dimensions ({choose_descent_engine(cell)})"
        return f"a run of {cell.steps[-1]:,} steps with {sizes}"

    def get_remarks_before_run(self) -> list[str]:
        """Return the first remark on a learning rate above the stable range of descent."""
        return list(dict.fromkeys(filter(None, map(describe_large_eta, self.scenario.cells()))))[:1]


def describe_large_eta(cell: DescentCell) -> str:
    """Describe a learning rate above the stable range of descent, or return an empty string."""
    curvature = cell.loss.largest_curvature
    if not np.isfinite(curvature):
        return ""
    bound = compute_max_stable_eta(cell.descent, cell.alpha * cell.batch, cell.strengths[1] * cell.batch, curvature)
    if cell.eta <= bound:
        return ""
    where = f"the {cell.name} loss at alpha = {cell.alpha:g}{f', batch {cell.batch:g}' if cell.batch < 1 else ''}"
    return f"eta = {cell.eta:g} exceeds {bound:.3g}: descent of {where} may oscillate or diverge"


def find_best_epoch_and_divergence(epochs: np.ndarray, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the recorded epoch of the smallest generalization error, and whether a number overflowed.

    >>> best = find_best_epoch_and_divergence(np.array([0, 5]), {"eps_g": np.array([0.5, np.nan])})
    >>> {name: value.item() for name, value in best.items()}
    {'best_epoch': 0, 'diverged': True}
    """
    is_finite = np.isfinite(values["eps_g"])
    best = epochs[np.nanargmin(values["eps_g"])] if is_finite.any() else np.nan
    return {"best_epoch": np.asarray(best), "diverged": np.asarray(not is_finite.all())}
