"""Simulates learners that go down a convex loss: chooses the engine of each run, and finds its best epoch.

Runs of one N, engine and seed begin with the same random numbers. On explicit data those of one alpha have the same
examples; deferred ones have different examples, for they draw along the directions in which each learns.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from simulate.execution import units
from simulate.kernels import deferred, explicit_data
from simulate.kernels.random_streams import stream
from statmech.convex.descents import stable_eta
from statmech.scenarios.descent import Descent, DescentCell, engine_of

ENGINES: dict[str, ModuleType] = {"deferred": deferred, "explicit": explicit_data}
DRAWS = 0  # part of a run's random numbers


class Simulator(units.RunByRun[DescentCell]):
    """Learners that go down a convex loss, one run after the other."""

    source = "descent on stored examples"
    scenario: Descent

    def simulate(self, cell: DescentCell, seed: int) -> dict[str, np.ndarray]:
        """The variables of one run."""
        engine = engine_of(cell)
        rng = stream(DRAWS, descent=engine, N=cell.N, key=self.scenario.key, seed=seed)
        values = ENGINES[engine].run(cell, rng)
        return values | ended(np.asarray(self.scenario.epochs), values)

    def check(self) -> None:
        """Refuse examples and steps that this machine cannot hold."""
        for cell in self.scenario.cells():
            engine = engine_of(cell)
            run = f"a run of {cell.steps[-1]:,} steps with {cell.P:,} examples in {cell.N:,} dimensions ({engine})"
            units.check_memory("epochs" if engine == "deferred" else "alpha", run, memory(cell))

    def memory(self) -> float:
        """Bytes that the largest run holds."""
        return max(map(memory, self.scenario.cells()))

    def remarks(self) -> list[str]:
        """A learning rate at which a loss of bounded curvature may oscillate."""
        return list(dict.fromkeys(filter(None, map(remark, self.scenario.cells()))))[:1]


def memory(cell: DescentCell) -> float:
    """Bytes of a run."""
    needed: float = ENGINES[engine_of(cell)].bytes_of(cell)
    return needed


def remark(cell: DescentCell) -> str:
    """A sentence about a learning rate beyond that at which descent surely does not diverge; empty below."""
    curvature = cell.loss.largest_curvature
    bound = stable_eta(cell.descent, cell.alpha * cell.batch, cell.strengths[1] * cell.batch, curvature)
    if not np.isfinite(curvature) or cell.eta <= bound:
        return ""
    where = f"the {cell.name} loss at alpha = {cell.alpha:g}{f', batch {cell.batch:g}' if cell.batch < 1 else ''}"
    return f"eta = {cell.eta:g} is beyond {bound:.3g}, from which on descent of {where} may oscillate or diverge"


def ended(epochs: np.ndarray, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The recorded epoch of the smallest generalization error, and whether a number overflowed.

    >>> {name: it.item() for name, it in ended(np.array([0, 5]), {"eps_g": np.array([0.5, np.nan])}).items()}
    {'best_epoch': 0, 'diverged': True}
    """
    known = np.isfinite(values["eps_g"])
    best = epochs[np.nanargmin(values["eps_g"])] if known.any() else np.nan
    return {"best_epoch": np.asarray(best), "diverged": np.asarray(not known.all())}
