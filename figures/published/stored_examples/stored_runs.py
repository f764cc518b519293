"""Helpers for figures of stored examples: last recorded students, and scale of the alpha axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

CONVERGENCE_FILL_NOTE = "full points: all runs have converged; hollow: not all"


def get_recorded_dimension(dataset: Any) -> str:
    """Return the name of the recorded dimension: `epochs` or `updates`."""
    return next(name for name in ("epochs", "updates") if name in dataset.dims)


def select_last_recorded(dataset: Any) -> Any:
    """Select the students that were recorded last."""
    return dataset.isel({get_recorded_dimension(dataset): -1})


def choose_log_axis_for_alphas(alphas: xr.DataArray) -> str:
    """Return "x" for a logarithmic alpha axis, or "" if the values are equally spaced."""
    steps = np.diff(alphas.values)
    return "" if steps.size and np.allclose(steps, steps[0]) else "x"
