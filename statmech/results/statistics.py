"""Statistics of the runs in a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import xarray as xr

from statmech.numerics import statistics

Values = TypeVar("Values", xr.DataArray, xr.Dataset)


def standard_error(values: Values, dim: str | Sequence[str] = "seed") -> Values:
    """The standard error of the mean along `dim`, of a variable or of every variable of a dataset.

    NaN marks missing runs, which are left out; the result is NaN where fewer than two remain
    (`statmech.numerics.statistics.standard_error`).

    >>> runs = xr.DataArray([[1.0, 3.0], [5.0, float("nan")]], dims=("t", "seed"))
    >>> standard_error(runs).values
    array([ 1., nan])
    """
    return values.reduce(statistics.standard_error, dim)
