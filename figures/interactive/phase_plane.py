"""One variable against another along a third axis, such as R against q during learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from figures import series
from figures.interactive.chart import Chart
from figures.interactive.look import LIGHT, Look
from figures.labels import browser_label
from figures.series import Curve, Layout

if TYPE_CHECKING:
    from statmech.results.results import Results

GUIDES = {("R", "q"): lambda R: R**2}  # students at this boundary only share their overlap with the teacher


class Plane:
    """A chart of one variable against another, where `show` replaces the curves but not the chart."""

    def __init__(self, results: Results, pair: tuple[str, str], height: int | None, look: Look = LIGHT):
        self.pair = pair
        x, y = (results.scenario.variables[name] for name in pair)
        self.chart = Chart(y, x.symbol, height=height, look=look)
        self.chart.bent = False  # theory was not solved along either variable
        if pair in GUIDES:
            x_values = np.linspace(0, 1, 101)
            self.chart.guide(x_values.tolist(), GUIDES[pair](x_values).tolist())

    def show(self, results: Results, layout: Layout, held: Sequence[Curve] = ()) -> list[Curve]:
        """Show results that only have the axes of the layout, and curves for comparison."""
        curves = self.curves(results, layout)
        self.chart.show(curves, held)
        return curves

    def curves(self, results: Results, layout: Layout) -> list[Curve]:
        """Return curves of theory as lines and of simulation means as points with the standard errors of y."""
        parts = results.simulation, results.theory
        label = browser_label(results.scenario)
        curve_pairs = [series.curves(name, *parts, layout, lines=results.lines, label=label) for name in self.pair]
        plane_curves = []
        for x, y in zip(*curve_pairs, strict=True):
            x_values = x.mean if x.mean is not None else x.theory
            if x_values is not None:
                plane_curves.append(replace(y, x=x_values, theory_x=x.theory, band=None))
        return plane_curves
