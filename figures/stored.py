"""What the figures of stored examples share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from figures.style import look_of, points
from statmech.dataset import scenario_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOLLOW = "hollow points: not all runs converged"


def moment_of(dataset: Any) -> str:
    """The dimension along which students are recorded: `epochs` or `updates`."""
    moment: str = scenario_of(dataset).moments[0]
    return moment


def runs(ax: Axes, x: Any, dataset: Any, name: str, index: int, **kwargs: Any) -> None:
    """Runs of stored examples: filled where all of a cell's runs converged, hollow where some have not."""
    values, look = dataset[name], look_of(index)
    everywhere = dataset.converged.all("seed").values
    label = kwargs.pop("label", None)
    points(ax, x, values, index, label=label, zorder=3, **kwargs)
    ax.plot(
        np.asarray(x)[everywhere],
        values.mean("seed").values[everywhere],
        linestyle="none",
        marker=look["marker"],
        color=look["color"],
        zorder=4,
    )


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
