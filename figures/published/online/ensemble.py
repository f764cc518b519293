"""Figures 1 to 4 of Miyoshi, Hara & Okada in one figure: the gain of an ensemble for each rule, and its origin."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, make_panel_grid, solve_dense_theory
from figures.published.online import ensemble_panels
from figures.style import PAGE_WIDTH, get_curve_style, get_kind_label

AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = (
    r"Generalization error of $K$ students divided by the error of one student at the last recorded time, one panel "
    r"per rule: majority vote and weight mean; theory has a step at each $K$. The votes of $2n$ and of $2n-1$ students "
    r"are equally good. Dotted: infinite ensemble. Last panel: order parameters during learning. The lower $q$ at a "
    r"given $R$, the larger the gain of an ensemble. Dotted: $q=R^2$."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the gain of an ensemble in one panel per rule, and q against R for all rules."""
    rules = [str(rule) for rule in theory.rule.values]
    parts = ensemble_panels.EnsembleResults(simulation, theory, solve_dense_theory(theory, "K"))
    figure, (*axes, last) = make_panel_grid(
        len(rules) + 1, (len(rules) + 2) // 2, 2.35, PAGE_WIDTH, ensemble_panels.HEADER_HEIGHT_INCHES
    )
    colours = [str(get_curve_style(index)["color"]) for index in range(len(rules))]
    for ax, rule, colour in zip(axes, rules, colours, strict=True):
        ensemble_panels.draw_gain_panel(ax, parts.select_rule(rule), colour)
        ensemble_panels.label_gain_axes(ax, theory.K.values)
        ensemble_panels.label_infinite_ensemble(ax, theory.sel(rule=rule))
        ax.set_title(f"{get_kind_label(rule)}, $t={simulation.t.values[-1]:g}$")
    ensemble_panels.set_common_y_limits(axes)
    for ax, rule, colour in zip(axes, rules, colours, strict=True):
        ensemble_panels.add_inset_for_small_gain(ax, parts.select_rule(rule), colour)
    ensemble_panels.draw_q_against_R(last, simulation.isel(K=-1), solve_dense_theory(theory, "t").isel(K=-1))
    last.set_title("variety among the students")
    last.legend(loc="upper left")
    return add_title_and_legend(figure, simulation, ensemble_panels.make_output_handles(), columns=4)
