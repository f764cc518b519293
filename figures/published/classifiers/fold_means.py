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
FEW = 0.1  # of a set: examples that are drawn again for each seed hardly overlap


def independent(simulation: xr.Dataset, data: str) -> bool:
    """True if every seed draws examples of its own: few of a generated set."""
    examples = scenario_of(simulation).examples
    return data in MADE and examples is not None and bool(examples <= FEW * cached_data(data).y.size)


def curve(ax: Axes, x: Any, values: Any, index: int, own_examples: bool = False, **kwargs: Any) -> None:
    """Draw means over shuffles and folds, joined by a thin grey line, with standard errors.

    Of one data set they are those over folds, averaged over shuffles; over seeds if each has its own examples.
    """
    mean, error = mean_and_error(values)
    if own_examples and values.sizes["seed"] > 1:
        error = standard_error_of_runs(values.mean("fold"), "seed")
    style = {**look_of(index), **JOINED, **kwargs}
    ax.plot(x, mean, **{**JOIN, "linestyle": style["linestyle"]})
    ax.errorbar(x, mean, yerr=error, **style | {"linestyle": "none"})
