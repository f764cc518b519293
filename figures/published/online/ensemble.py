"""Figures 1 to 4 of Miyoshi, Hara & Okada on one page: the gain of an ensemble for each rule, and its origin."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.grid_of_panels import panels_of
from figures.panels import dense, finish
from figures.published.online import ensemble_panels
from figures.style import PAGE, label_of, look_of

AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error of $K$ students over the error of one, a panel for each rule, at the last recorded time: "
    r"majority vote and weight mean; theory has a step at each $K$. A vote of $2n$ students is as good as one of "
    r"$2n-1$. Dotted: infinitely many students. Last panel: order parameters during learning. The lower $q$ at a "
    r"given $R$, the larger the gain of an ensemble. Dotted: $q=R^2$."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the gain of an ensemble in a panel per rule, and R against q for all rules."""
    rules = [str(rule) for rule in theory.rule.values]
    parts = ensemble_panels.Parts(simulation, theory, dense(theory, "K"))
    figure, (*axes, last) = panels_of(len(rules) + 1, (len(rules) + 2) // 2, 2.35, PAGE, ensemble_panels.HEAD)
    colours = [str(look_of(index)["color"]) for index in range(len(rules))]
    for ax, rule, colour in zip(axes, rules, colours, strict=True):
        ensemble_panels.effect_panel(ax, parts.of(rule), colour)
        ensemble_panels.students_axis(ax, theory.K.values)
        ensemble_panels.label_limit(ax, theory.sel(rule=rule))
        ax.set_title(f"{label_of(rule)}, $t={simulation.t.values[-1]:g}$")
    ensemble_panels.share_y_limits(axes)
    for ax, rule, colour in zip(axes, rules, colours, strict=True):
        ensemble_panels.enlarged(ax, parts.of(rule), colour)
    ensemble_panels.variety_panel(last, simulation.isel(K=-1), dense(theory, "t").isel(K=-1))
    last.set_title("variety among the students")
    last.legend(loc="upper left")
    return finish(figure, simulation, ensemble_panels.keys(), columns=4)
