"""Margin-based learners with a stopping boundary: error and features against the margin threshold theta."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.legends import entry
from figures.panels import finish, guide, page, panel
from statmech.data_sets import source
from statmech.errors import ConfigError
from statmech.results.results import results_of

AXES = ("classifier", "theta", "budget")  # sweep axes that this figure shows
VALUES = {"classifier": ("attentive", "passive_aggressive")}
CAPTION = (
    r"Learners that learn the examples whose margin is at most $\theta$, by the perceptron's update and by the "
    r"passive-aggressive one (PA-I). (a) Error on held-out examples, with the stopping boundary (full points) and with "
    r"all features (hollow points). (b) Features evaluated with the stopping boundary, in prediction (full points) and "
    r"in learning, per example and pass (hollow points); dotted: all features. Thin lines join points."
)
NAMES = {"attentive": "perceptron", "passive_aggressive": "passive-aggressive"}
FULL: dict[str, Any] = {"linestyle": "-", "markerfacecolor": None}
HOLLOW: dict[str, Any] = {"linestyle": "--", "markersize": 6}  # larger, as full points may cover hollow ones


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the error with and without a boundary, and the features with a boundary."""
    runs = simulation.assign(error=100 * (1 - simulation.accuracy))
    stopped, full = (results_of(runs.isel(budget=budget_index)) for budget_index in _budgets(runs))
    figure, (error, features) = page(3.0, 1, 2)
    panel(error, full, "theta", "error", "classifier", log="x", **HOLLOW)
    keys = panel(error, stopped, "theta", "error", "classifier", label="held-out errors (%)", log="x", **FULL)
    panel(features, stopped, "theta", "features_learning", "classifier", log="x", **HOLLOW)
    panel(features, stopped, "theta", "features_evaluated", "classifier", label="features evaluated", log="x", **FULL)
    num_features = float(full.either.features_evaluated.max())
    guide(features, y=num_features)
    for ax in (error, features):
        ax.set(xlabel=r"threshold $\theta$")
    features.set_ylim(0, None)
    for key, name in zip(keys, map(str, runs.classifier.values), strict=True):
        key.set_label(NAMES.get(name, key.get_label()))
    marks = [
        entry("(a) stopping boundary, (b) in prediction", marker="o", linestyle="none"),
        entry("(a) all features, (b) in learning", marker="o", linestyle="none", markerfacecolor="white"),
        entry("all features", linestyle=":"),
    ]
    return finish(
        figure, simulation, [*keys, *marks], f"{source(str(runs.data.item())).title}: $N$ = {num_features:g}", columns=3
    )


def _budgets(runs: xr.Dataset) -> tuple[int, int]:
    """Return the indices of the budgets without and with a fixed number of features.

    Raises `ConfigError` unless both exist.
    """
    fixed = [bool(budget) for budget in runs.budget.values]
    if sorted(fixed) != [False, True]:
        raise ConfigError("the figure digits_theta needs two values of budget: 0, and a number of features")
    return fixed.index(False), fixed.index(True)
