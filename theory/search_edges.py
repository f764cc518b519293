"""Warnings about optima at an edge of the search range, where the true optimum may lie outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from statmech.optima import edge_remark
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.controlled_keys import SHARE


def edge_remarks(scenario: AbstractScenario, dataset: xr.Dataset, solver: Any) -> list[str]:
    """Return a sentence for each distinct optimum that lies at an edge of its search range.

    Parameters
    ----------
    scenario, dataset
        A scenario and its theory.
    solver
        The solver of the scenario. Its `searched_penalties(cell)` returns the search range of `lam: best`.
    """
    cells = list(scenario.cells())
    remarks = [*_of_penalties(cells, dataset, solver), *_of_controls(cells, dataset)]
    return list(dict.fromkeys(filter(None, remarks)))


def _of_penalties(cells: list[Any], dataset: xr.Dataset, solver: Any) -> Iterator[str]:
    if "lam_best" not in dataset or not hasattr(solver, "searched_penalties"):
        return
    for cell in cells:
        if cell.lam == "best":
            low, high = solver.searched_penalties(cell)
            yield edge_remark("lam: best", min(float(dataset.lam_best.values[cell.index]), high), low, high)


def _of_controls(cells: list[Any], dataset: xr.Dataset) -> Iterator[str]:
    if "control" not in dataset:
        return
    from theory.control.best_controls import range_of  # imported late: needs JAX

    names = [str(name) for name in dataset.controlled.values]
    for cell in cells:
        for name, options in cell.wishes.items():
            low, high = range_of(name, options)[:2]
            values = dataset.control.values[cell.index][names.index(name)]
            for extreme in (np.nanmin(values), np.nanmax(values)):
                if name != SHARE or extreme < 1:  # no fraction exceeds 1, so that 1 may be a true optimum
                    yield edge_remark(f"{name}: optimal, at some times,", float(extreme), low, high)
