"""Figures 1 to 4 of Miyoshi, Hara & Okada on one page: the gain of an ensemble for each rule, and its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.helpers.ensemble_panels import effect_panel, variety_panel
from figures.style import PAGE, label_of, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("rule", "K")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """A panel per rule of the sweep, and R against q for all."""
    rules = [str(rule) for rule in theory.rule.values]
    figure = Figure(figsize=(PAGE, 5.2))
    axes = figure.subplots(2, (len(rules) + 2) // 2).ravel()
    for ax, rule, letter in zip(axes, rules, "abcdefgh", strict=False):
        effect_panel(ax, simulation.sel(rule=rule), theory.sel(rule=rule))
        ax.set_title(f"({letter}) {label_of(rule)}, $t={simulation.t.values[-1]:g}$")
    lowest = min(ax.get_ylim()[0] for ax in axes[: len(rules)])
    for ax in axes[: len(rules)]:  # one scale, so that the rules can be compared by eye
        ax.set_ylim(lowest, 1.03)
    axes[0].legend(loc="lower left")
    largest = {"K": -1}
    variety_panel(axes[len(rules)], simulation.isel(largest), theory.isel(largest))
    axes[len(rules)].set_title(f"({'abcdefgh'[len(rules)]}) variety among the students")
    axes[len(rules)].legend(loc="upper left")
    for ax in axes[len(rules) + 1 :]:
        ax.set_axis_off()
    return figure
