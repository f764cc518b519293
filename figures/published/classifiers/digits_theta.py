"""Margin-based learners under the stopping boundary: error and features against the threshold theta of the margin."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import finish, page, panel
from statmech.results.results import results_of

AXES = ("classifier", "theta", "budget")  # of the sweep, that this figure shows
CAPTION = (
    r"Learners that learn the examples whose margin is at most $\theta$, by the perceptron's update and by the "
    r"passive-aggressive one (PA-I), with all features (open markers, dashed) and with the stopping boundary (filled "
    r"markers, solid), against $\theta$. Left: error on held-out examples. Middle: features evaluated per prediction. "
    r"Right: features evaluated per example and pass in learning."
)
NAMES = {"attentive": "perceptron", "passive_aggressive": "passive-aggressive"}
WITH: dict[bool, tuple[str, dict[str, Any]]] = {  # a fixed number of features or not
    False: ("stopping boundary", {"linestyle": "-", "markerfacecolor": None}),
    True: ("all features", {"linestyle": "--"}),
}
PANELS = {
    "error": "held-out errors (%)",
    "features_evaluated": "features per prediction",
    "features_learning": "features in learning",
}


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the error, the features of a prediction, and those in learning."""
    runs = simulation.assign(error=100 * (1 - simulation.accuracy)).sortby("budget", ascending=False)
    (figure, axes), keys = page(2.7, 1, len(PANELS)), []
    for budget, cells in runs.groupby("budget"):
        which, own_look = WITH[bool(budget)]
        look = {"log": "x", "aside": True, "linewidth": 1.0, **own_look}
        results = results_of(cells.isel(budget=0))
        for ax, (name, label) in zip(axes, PANELS.items(), strict=True):
            own = panel(ax, results, "theta", name, "classifier", label=label, **look)
        for key, name in zip(own, map(str, runs.classifier.values), strict=True):
            key.set_label(f"{NAMES.get(name, key.get_label())}, {which}")
        keys += own
    for ax in axes:
        ax.set(xlabel=r"threshold $\theta$", ylim=(0, None))
    return finish(figure, simulation, keys, columns=2)
