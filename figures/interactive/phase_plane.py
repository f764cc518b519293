"""One variable against another along a third axis, such as R against q during learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from figures import series
from figures.interactive.chart import Chart
from figures.interactive.look import LIGHT_THEME, ChartTheme
from figures.labels import make_browser_labeller
from figures.series import Curve, Layout

if TYPE_CHECKING:
    from statmech.results.results import Results

PHASE_PLANE_GUIDE_CURVES = {("R", "q"): lambda R: R**2}  # at q = R^2, only the teacher correlates the students


class PhasePlane:
    """A chart of one variable against another, where `show` replaces the curves but not the chart."""

    def __init__(
        self, results: Results, variable_names: tuple[str, str], height: int | None, theme: ChartTheme = LIGHT_THEME
    ):
        self.pair = variable_names
        x, y = (results.scenario.variables[name] for name in variable_names)
        self.chart = Chart(y, x.symbol, height=height, theme=theme)
        self.chart.is_smooth = False  # the curve need not be a function of x
        if variable_names in PHASE_PLANE_GUIDE_CURVES:
            x_values = np.linspace(0, 1, 101)
            self.chart.draw_guide(x_values.tolist(), PHASE_PLANE_GUIDE_CURVES[variable_names](x_values).tolist())

    def show(self, results: Results, layout: Layout, compared: Sequence[Curve] = ()) -> list[Curve]:
        """Show results that only have the axes of the layout, and curves for comparison."""
        curves = self.make_curves(results, layout)
        self.chart.show(curves, compared)
        return curves

    def make_curves(self, results: Results, layout: Layout) -> list[Curve]:
        """Return curves in the plane: lines of theory, and simulation means with standard errors of y."""
        parts = results.simulation, results.theory
        label = make_browser_labeller(results.scenario)
        curve_pairs = [
            series.make_curves(name, *parts, layout, lines=results.lines, label_value=label) for name in self.pair
        ]
        plane_curves = []
        for x, y in zip(*curve_pairs, strict=True):
            x_values = x.mean if x.mean is not None else x.theory
            if x_values is not None:
                plane_curves.append(replace(y, x=x_values, theory_x=x.theory, band=None))
        return plane_curves
