"""Runs of learners of stored examples as last recorded, and their axis of alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

HOLLOW = "full points: all runs have converged; hollow: not all"


def recorded_dimension(dataset: Any) -> str:
    """Return the dimension along which students are recorded: `epochs` or `updates`."""
    return next(name for name in ("epochs", "updates") if name in dataset.dims)


def at_end(dataset: Any) -> Any:
    """Students as last recorded."""
    return dataset.isel({recorded_dimension(dataset): -1})


def scale_of(alphas: xr.DataArray) -> str:
    """Which axis is logarithmic, that of alpha (x) unless its values are in equal steps, which a linear one suits."""
    steps = np.diff(alphas.values)
    return "" if steps.size and np.allclose(steps, steps[0]) else "x"
