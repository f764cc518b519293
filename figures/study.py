"""What the figures of studies on data share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from figures.style import look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def over_folds(values: Any) -> tuple[Any, Any]:
    """The mean over shuffles and folds, and the standard error over folds (a mean over shuffles)."""
    error = (values.std("fold", ddof=1) / values.count("fold") ** 0.5).mean("seed")
    return values.mean(["seed", "fold"]), error


def curve(ax: Axes, x: Any, values: Any, index: int, **kwargs: Any) -> None:
    """Means with their standard errors over folds, joined by a line."""
    mean, error = over_folds(values)
    ax.errorbar(x, mean, yerr=error, **{**look_of(index), "markersize": 3, "linewidth": 1.0, **kwargs})
