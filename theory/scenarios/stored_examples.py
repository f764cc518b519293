"""Solve a scenario of stored examples: each learner's curve in the limit of large N, at its alphas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statmech.results.dataset import Progress, arrays_of, blank, tracked
from statmech.scenarios.stored_examples import StoredCell, StoredExamples
from theory.learning_curves import curve_of

if TYPE_CHECKING:
    import xarray as xr


def solve(scenario: StoredExamples, progress: Progress | None = None) -> xr.Dataset:
    """The theory of a scenario: see `theory.solve`."""
    dataset = blank(scenario, seeds=None, title="statmech theory", source="replica-symmetric, N -> infinity")
    groups: dict[tuple[str, float], list[StoredCell]] = {}
    for cell in scenario.cells():
        if cell.learner.limit is not None:
            groups.setdefault((cell.learner.limit, cell.flip), []).append(cell)
    arrays = arrays_of(dataset)
    for (limit, flip), cells in tracked(groups.items(), len(groups), progress):
        curve = curve_of(limit, np.array([cell.P / cell.N for cell in cells]), flip)
        for cell, theta, kappa in zip(cells, curve.theta, curve.kappa, strict=True):
            for name, value in (("R", np.cos(theta)), ("eps_g", theta / np.pi), ("kappa", kappa)):
                arrays[name][cell.index] = value
    return dataset
