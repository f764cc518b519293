"""The standard error of a mean, for plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def standard_error(values: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    r"""The standard error of the mean, :math:`s / \sqrt n` with :math:`s^2 = \sum_i (x_i - \bar x)^2 / (n - 1)`.

    Parameters
    ----------
    values
        Samples, an array of any shape. NaN marks missing samples, which are left out.
    axis
        The axis or axes of the samples; None for all.

    Returns
    -------
    The shape of `values` without these axes; NaN where there are fewer than two samples.

    >>> float(standard_error(np.array([1.0, 3.0, np.nan])))
    1.0
    """
    known = ~np.isnan(values)
    count = known.sum(axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, values, 0.0).sum(axis, keepdims=True) / count
        squares = np.where(known, values - mean, 0.0) ** 2
        count = np.squeeze(count, axis)
        return np.sqrt(squares.sum(axis) / (count - 1)) / np.sqrt(count)
