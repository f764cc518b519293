"""The standard error of a mean, for plain arrays and for datasets of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

RunValues = TypeVar("RunValues", "xr.DataArray", "xr.Dataset")


def standard_error(values: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    r"""Return the standard error of the mean, :math:`s/\sqrt n` with :math:`s^2 = \sum_i (x_i - \bar x)^2 / (n - 1)`.

    Parameters
    ----------
    values
        Samples, an array of any shape. NaN marks missing samples, which do not count.
    axis
        The axis or axes of the samples, or None for all axes.

    Returns
    -------
    The standard errors in the shape of `values` without these axes, NaN where there are fewer than two samples.

    >>> float(standard_error(np.array([1.0, 3.0, np.nan])))
    1.0
    """
    is_present = ~np.isnan(values)
    count = is_present.sum(axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(is_present, values, 0.0).sum(axis, keepdims=True) / count
        squares = np.where(is_present, values - mean, 0.0) ** 2
        count = np.squeeze(count, axis)
        return np.sqrt(squares.sum(axis) / (count - 1)) / np.sqrt(count)


def compute_run_standard_error(values: RunValues, dim: str | Sequence[str] = "seed") -> RunValues:
    """Return the standard error of the mean over `dim`, for one variable or each variable of a dataset.

    >>> import xarray as xr
    >>> runs = xr.DataArray([[1.0, 3.0], [5.0, float("nan")]], dims=("t", "seed"))
    >>> compute_run_standard_error(runs).values
    array([ 1., nan])
    """
    return values.reduce(standard_error, dim)
