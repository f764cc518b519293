"""What the figures of stored examples share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from figures.style import look_of, points, spread
from statmech.results.dataset import scenario_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY = 30  # more points than these would hide each other
HOLLOW = "hollow points: not all runs converged"


def moment_of(dataset: Any) -> str:
    """The dimension along which students are recorded: `epochs` or `updates`."""
    moment: str = scenario_of(dataset).moments[0]
    return moment


def at_end(dataset: Any) -> Any:
    """Students as last recorded."""
    return dataset.isel({moment_of(dataset): -1})


def means(ax: Axes, x: Any, values: Any, index: int) -> None:
    """Means over data sets with their standard errors: points with bars, or, of many, a line in a band."""
    if len(x) <= MANY:
        points(ax, x, values, index)
    else:
        ax.plot(x, values.mean("seed"), color=look_of(index)["color"], linewidth=0.8)
        band(ax, x, values, index)


def runs(ax: Axes, x: Any, dataset: Any, name: str, index: int, label: str | None = None) -> None:
    """The same of a variable, as points: filled where all of a cell's runs converged, hollow where some have not."""
    values, everywhere = dataset[name], dataset.converged.all("seed").values
    look = {**look_of(index), "linestyle": "none"}
    if len(x) <= MANY:
        points(ax, x, values, index, label=label, zorder=3)
    else:
        look |= {"markersize": 2.2, "markeredgewidth": 0.5}
        ax.plot(x, values.mean("seed"), **look, markerfacecolor="white", label=label, zorder=3)
        band(ax, x, values, index)
    ax.plot(np.asarray(x)[everywhere], values.mean("seed").values[everywhere], **look, zorder=4)


def band(ax: Axes, x: Any, values: Any, index: int) -> None:
    """Standard errors about the means over data sets."""
    mean, error = values.mean("seed"), spread(values)
    if error is not None:
        ax.fill_between(x, mean - error, mean + error, color=look_of(index)["color"], alpha=0.2, linewidth=0)


def logarithmic_alpha(ax: Axes) -> None:
    """A logarithmic axis of alpha with ticks that can be read."""
    ax.set(xscale="log", xlabel=r"$\alpha=P/N$")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())


def logarithmic_error(ax: Axes) -> None:
    """A logarithmic axis of eps_g with ticks that can be read."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(FixedLocator([0.02, 0.05, 0.1, 0.2, 0.5]))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
