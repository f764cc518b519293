"""Solve a scenario of attentive perceptrons: order parameters, features evaluated and decision errors at its times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statmech.order_parameters import angle_from_versine
from statmech.results.dataset import Progress, arrays_of, blank, fill, tracked
from statmech.scenarios.attention import Attention
from theory.attention import State, solve_cell

if TYPE_CHECKING:
    import xarray as xr


def solve(scenario: Attention, progress: Progress | None = None) -> xr.Dataset:
    """The theory of a scenario: see `theory.solve`; equations stand in `theory.attention`."""
    source = "order-parameter equations, N -> infinity at given chunk / N and memory / N"
    dataset = blank(scenario, seeds=None, title="statmech theory", source=source)
    arrays, cells = arrays_of(dataset), list(scenario.cells())
    for cell in tracked(cells, len(cells), progress):
        fill(arrays, cell.index, views(solve_cell(cell, scenario.t), np.asarray(scenario.t)))
    return dataset


def views(state: State, t: np.ndarray) -> dict[str, np.ndarray]:
    """The variables at each time; means since the time before, and since the start at the first. None at t = 0."""
    span = np.diff(t, prepend=0.0)
    lasting = np.where(span > 0, span, np.nan)
    return {
        "R": 1 - state.y,
        "length": np.exp(state.log_length),
        "eps_g": angle_from_versine(state.y) / np.pi,
        "features": np.diff(state.work, prepend=0.0) / lasting,
        "decision_error": np.diff(state.errors, prepend=0.0) / lasting,
        "work": state.work,
    }
