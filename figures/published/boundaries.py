"""Decision boundaries in the plane: perceptron, decision tree and nearest neighbours on the same points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from figures.style import COLOURS, PAGE, styled
from simulate.scenarios.cross_validation import plane_of
from statmech.classifiers import CLASSIFIERS
from statmech.data_sets import load, source
from statmech.errors import ConfigError

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("data", "classifier")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """One row per data set, one column per classifier; shaded where it chooses the second class."""
    if "decision" not in simulation:
        raise ConfigError("the figure boundaries needs `plane: true`, which records decisions on a plane")
    sets, names = ([str(value) for value in simulation[axis].values] for axis in AXES)
    figure = Figure(figsize=(PAGE, 0.4 + 2.1 * len(sets)))
    axes = figure.subplots(len(sets), len(names), squeeze=False)
    for row, data in zip(axes, sets, strict=True):
        for ax, name in zip(row, names, strict=True):
            cell = simulation.sel(data=data, classifier=name)
            _plane(ax, load(data), cell.decision.isel(seed=0).values)
            ax.set_title(f"{CLASSIFIERS[name].label}: {float(cell.accuracy.mean()):.0%}", fontsize=8)
        row[0].set_ylabel(source(data).title)
    figure.suptitle("learnt from all points; accuracy on held-out folds", fontsize=8)
    return figure


def _plane(ax: Axes, data: Any, decision: np.ndarray) -> None:
    low, high = plane_of(data.X)
    extent = (low[0], high[0], low[1], high[1])
    ax.contourf(decision, levels=[-0.5, 0.5, 1.5], extent=extent, colors=COLOURS[:2], alpha=0.18)
    ax.contour(decision, levels=[0.5], extent=extent, colors="0.2", linewidths=0.8)
    for value, colour, marker in zip(np.unique(data.y), COLOURS, "os", strict=False):
        points = data.X[data.y == value]
        ax.plot(points[:, 0], points[:, 1], marker, color=colour, markersize=2.2, linestyle="none")
    ax.set(xticks=[], yticks=[])
