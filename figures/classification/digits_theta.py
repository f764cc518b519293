"""Margin-based learners with a stopping boundary: error and features against the margin threshold theta."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import add_title_and_legend, draw_guide, draw_panel, make_figure
from statmech.errors import ConfigError
from statmech.inputs.data_sets import find_data_source
from statmech.results.results import as_results

AXES = ("classifier", "theta", "budget")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"classifier": ("attentive", "passive_aggressive")}
CAPTION = (
    r"Learners that update on examples with a margin of at most $\theta$, by the perceptron rule or the "
    r"passive-aggressive rule (PA-I). (a) Error on held-out examples, with the stopping boundary (full points) and "
    r"with all features (hollow points). (b) Features evaluated with the stopping boundary, in prediction (full "
    r"points) and in learning, per example and pass (hollow points); dotted: all features. Thin lines join points."
)
CLASSIFIER_LEGEND_LABELS = {"attentive": "perceptron", "passive_aggressive": "passive-aggressive"}
FULL_MARKER_STYLE: dict[str, Any] = {"linestyle": "-", "markerfacecolor": None}
HOLLOW_MARKER_STYLE: dict[str, Any] = {
    "linestyle": "--",
    "markersize": 6,
}  # larger, so that full points do not hide them


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw errors with and without the stopping boundary, and features evaluated with the boundary."""
    runs = simulation.assign(error=100 * (1 - simulation.accuracy))
    stopped, full = (as_results(runs.isel(budget=budget_index)) for budget_index in _find_zero_and_fixed_budgets(runs))
    figure, (error, features) = make_figure(3.0, 1, 2)
    draw_panel(error, full, "theta", "error", "classifier", log="x", **HOLLOW_MARKER_STYLE)
    keys = draw_panel(
        error, stopped, "theta", "error", "classifier", label="held-out errors (%)", log="x", **FULL_MARKER_STYLE
    )
    draw_panel(features, stopped, "theta", "features_learning", "classifier", log="x", **HOLLOW_MARKER_STYLE)
    draw_panel(
        features,
        stopped,
        "theta",
        "features_evaluated",
        "classifier",
        label="features evaluated",
        log="x",
        **FULL_MARKER_STYLE,
    )
    num_features = float(full.either.features_evaluated.max())
    draw_guide(features, y=num_features)
    for ax in (error, features):
        ax.set(xlabel=r"threshold $\theta$")
    features.set_ylim(0, None)
    for key, name in zip(keys, map(str, runs.classifier.values), strict=True):
        key.set_label(CLASSIFIER_LEGEND_LABELS.get(name, key.get_label()))
    marks = [
        make_line_handle("(a) stopping boundary, (b) in prediction", marker="o", linestyle="none"),
        make_line_handle("(a) all features, (b) in learning", marker="o", linestyle="none", markerfacecolor="white"),
        make_line_handle("all features", linestyle=":"),
    ]
    return add_title_and_legend(
        figure,
        simulation,
        [*keys, *marks],
        f"{find_data_source(str(runs.data.item())).title}: $N$ = {num_features:g}",
        columns=3,
    )


def _find_zero_and_fixed_budgets(runs: xr.Dataset) -> tuple[int, int]:
    """Return the index of the zero budget and the index of the fixed budget of features.

    Raises `ConfigError` unless there are exactly these two budgets.
    """
    fixed = [bool(budget) for budget in runs.budget.values]
    if sorted(fixed) != [False, True]:
        raise ConfigError('the figure "digits_theta" requires two values of budget: 0, and a number of features')
    return fixed.index(False), fixed.index(True)
