"""Runs of learners of stored examples: as last recorded, and as points that show whether they converged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from figures.style import MANY, band, look_of, points, points_or_band, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOLLOW = "hollow points: not all runs converged"


def recorded_dimension(dataset: Any) -> str:
    """The dimension along which students are recorded: `epochs` or `updates`."""
    return next(name for name in ("epochs", "updates") if name in dataset.dims)


def at_end(dataset: Any) -> Any:
    """Students as last recorded."""
    return dataset.isel({recorded_dimension(dataset): -1})


def means(ax: Axes, x: Any, values: Any, index: int) -> None:
    """Means over data sets with their standard errors: points with bars or, of many, a line in a band."""
    if len(x) <= MANY:
        points(ax, x, values, index)
    else:
        mean = values.mean("seed")
        ax.plot(x, mean, color=look_of(index)["color"], linewidth=0.8)
        band(ax, x, mean, spread(values), index)


def runs(ax: Axes, x: Any, dataset: Any, name: str, index: int, label: str | None = None) -> None:
    """Means of a variable as points: filled where all runs converged, hollow where some did not."""
    values = dataset[name]
    points_or_band(ax, x, values.mean("seed"), spread(values), index, dataset.converged.all("seed").values, label)
