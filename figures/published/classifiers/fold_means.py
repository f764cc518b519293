"""Means over the folds of a cross-validation."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from figures.series import mean_and_error
from figures.style import JOIN, look_of
from statmech.data_sets import MADE, cached_data
from statmech.numerics.statistics import standard_error_of_runs
from statmech.results.dataset import scenario_of

JOINED: dict[str, Any] = {"linestyle": "-", "markersize": 3.5}
FEW = 0.1  # samples of at most this fraction of a data set hardly overlap


def independent(simulation: xr.Dataset, data: str) -> bool:
    """Return True if every seed draws its own examples, a small fraction of a generated data set."""
    examples = scenario_of(simulation).examples
    return data in MADE and examples is not None and bool(examples <= FEW * cached_data(data).y.size)


def curve(ax: Axes, x: Any, values: Any, index: int, own_examples: bool = False, **kwargs: Any) -> None:
    """Draw means over shuffles and folds with standard errors, joined by a thin grey line.

    The errors are over folds, averaged over shuffles. They are over seeds if every seed has its own examples.
    """
    mean, error = mean_and_error(values)
    if own_examples and values.sizes["seed"] > 1:
        error = standard_error_of_runs(values.mean("fold"), "seed")
    style = {**look_of(index), **JOINED, **kwargs}
    ax.plot(x, mean, **{**JOIN, "linestyle": style["linestyle"]})
    ax.errorbar(x, mean, yerr=error, **style | {"linestyle": "none"})
