"""Points and error bars for means over cross-validation folds."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from figures.series import compute_mean_and_error
from figures.style import JOINING_LINE_STYLE, get_curve_style
from statmech.data_sets import GENERATED_DATA_SOURCES, get_cached_data_set
from statmech.numerics.statistics import compute_run_standard_error
from statmech.results.dataset import scenario_from_dataset

FOLD_MEAN_STYLE: dict[str, Any] = {"linestyle": "-", "markersize": 3.5}
MAX_INDEPENDENT_SAMPLE_FRACTION = 0.1  # samples of at most this fraction of a data set hardly overlap


def has_independent_seed_samples(simulation: xr.Dataset, data: str) -> bool:
    """Return True if every seed draws a separate small sample of a generated data set."""
    examples = scenario_from_dataset(simulation).examples
    return (
        data in GENERATED_DATA_SOURCES
        and examples is not None
        and bool(examples <= MAX_INDEPENDENT_SAMPLE_FRACTION * get_cached_data_set(data).y.size)
    )


def draw_fold_means(
    ax: Axes, x: Any, values: Any, index: int, independent_examples: bool = False, **kwargs: Any
) -> None:
    """Draw means over shuffles and folds with standard errors, joined by a thin grey line.

    Standard errors are taken over folds and averaged over shuffles, or over seeds with independent examples.
    """
    mean, error = compute_mean_and_error(values)
    if independent_examples and values.sizes["seed"] > 1:
        error = compute_run_standard_error(values.mean("fold"), "seed")
    style = {**get_curve_style(index), **FOLD_MEAN_STYLE, **kwargs}
    ax.plot(x, mean, **{**JOINING_LINE_STYLE, "linestyle": style["linestyle"]})
    ax.errorbar(x, mean, yerr=error, **style | {"linestyle": "none"})
