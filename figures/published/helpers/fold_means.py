"""Means over the folds of a cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from figures.series import mean_and_error
from figures.style import look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def curve(ax: Axes, x: Any, values: Any, index: int, **kwargs: Any) -> None:
    """Means over shuffles and folds with standard errors over folds, joined by a line."""
    mean, error = mean_and_error(values)
    ax.errorbar(x, mean, yerr=error, **{**look_of(index), "markersize": 3, "linewidth": 1.0, **kwargs})
