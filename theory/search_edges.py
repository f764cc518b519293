"""Warnings about optima at an edge of the search range, where the true optimum may lie outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from statmech.optima import describe_edge_optimum
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.controlled_keys import FIRST_TASK_FRACTION_CONTROL


def describe_optima_at_edges(scenario: AbstractScenario, dataset: xr.Dataset, solver: Any) -> list[str]:
    """Return a warning for each distinct optimum that lies at an edge of its search range.

    Parameters
    ----------
    scenario, dataset
        A scenario and its theory.
    solver
        The solver of the scenario. Its `searched_penalties(cell)` returns the search range of `lam: best`.
    """
    cells = list(scenario.cells())
    remarks = [*_describe_penalties_at_edges(cells, dataset, solver), *_describe_controls_at_edges(cells, dataset)]
    return list(dict.fromkeys(filter(None, remarks)))


def _describe_penalties_at_edges(cells: list[Any], dataset: xr.Dataset, solver: Any) -> Iterator[str]:
    if "lam_best" not in dataset or not hasattr(solver, "searched_penalties"):
        return
    for cell in cells:
        if cell.lam == "best":
            low, high = solver.searched_penalties(cell)
            yield describe_edge_optimum("lam: best", min(float(dataset.lam_best.values[cell.index]), high), low, high)


def _describe_controls_at_edges(cells: list[Any], dataset: xr.Dataset) -> Iterator[str]:
    if "control" not in dataset:
        return
    from theory.control.best_controls import get_search_range  # imported late: needs JAX

    names = [str(name) for name in dataset.controlled.values]
    for cell in cells:
        for name, options in cell.optimal_keys.items():
            low, high = get_search_range(name, options)[:2]
            values = dataset.control.values[cell.index][names.index(name)]
            for extreme in (np.nanmin(values), np.nanmax(values)):
                if name != FIRST_TASK_FRACTION_CONTROL or extreme < 1:  # a fraction of 1 may be a true optimum
                    yield describe_edge_optimum(f"{name}: optimal, at some times,", float(extreme), low, high)
