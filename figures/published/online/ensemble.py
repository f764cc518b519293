"""Figures 1 to 4 of Miyoshi, Hara & Okada on one page: the gain of an ensemble for each rule, and its origin."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import dense, finish, page
from figures.published.online import ensemble_panels as own
from figures.style import COLOURS, label_of

AXES = ("rule", "K")  # of the sweep, that this figure shows
CAPTION = (
    r"(a) to (c) Generalization error of $K$ students over that of one, for each rule at the last recorded time: "
    r"majority vote and weight mean; theory has a step at each $K$. A vote of $2n$ students is as good as one of "
    r"$2n-1$. "
    r"Dotted: infinitely many students. Where they would overlap, points are moved sideways. "
    r"(d) Order parameters during learning: the lower $q$ at a given $R$, the more an ensemble gains; "
    r"dotted: $q=R^2$."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a panel per rule of the sweep, and R against q for all."""
    rules = [str(rule) for rule in theory.rule.values]
    parts = own.Parts(simulation, theory, dense(theory, "K"))
    figure, grid = page(5.6, 2, (len(rules) + 2) // 2)
    axes = grid.ravel()
    panels = list(zip(axes, rules, strict=False))
    for index, (ax, rule) in enumerate(panels):
        own.effect_panel(ax, parts.of(rule), COLOURS[index])
        own.students_axis(ax, theory.K.values)
        own.label_limit(ax, theory.sel(rule=rule))
        ax.set_title(f"{label_of(rule)}, $t={simulation.t.values[-1]:g}$")
    bottom, top = min(ax.get_ylim()[0] for ax, _ in panels), max(ax.get_ylim()[1] for ax, _ in panels)
    for index, (ax, rule) in enumerate(panels):  # one scale, so that the rules can be compared by eye
        ax.set_ylim(bottom, top)
        own.enlarged(ax, parts.of(rule), COLOURS[index])
    last, along_t = axes[len(rules)], dense(theory, "t")
    own.variety_panel(last, simulation.isel(K=-1), along_t.isel(K=-1))
    last.set_title("variety among the students")
    last.legend(loc="upper left")
    for ax in axes[len(rules) + 1 :]:
        ax.set_axis_off()
    return finish(figure, simulation, own.keys(), columns=4)
