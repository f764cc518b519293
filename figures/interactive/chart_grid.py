"""Interactive charts of results: a grid of variables with a common layout, and phase planes.

The grid (`ChartGrid`) serves the explorer and reports. A phase plane (`PhasePlane`) draws one variable against another
along a third axis, such as R against q during learning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from figures import curves as series
from figures.curves import Curve, Layout, Scales
from figures.interactive.chart import Chart
from figures.interactive.chart_style import LIGHT_THEME, ChartTheme
from figures.labels import axis_label, make_browser_labeller
from statmech.keys.variables import Variable

if TYPE_CHECKING:
    from statmech.results.results import Results


def get_axis_label(results: Results, axis: str) -> str:
    """Return the label of an axis of charts."""
    return axis_label(results.scenario, series.get_axis_coordinates(results.either, axis))


class ChartGrid:
    """A chart for each variable, where `show` replaces the curves but not the charts.

    Parameters
    ----------
    variables
        The variables of the charts.
    xlabel
        The label of x.
    scales
        Logarithmic axes, and the names along x if x is not numeric.
    height
        The height of a chart in pixels, or None to fill the space on the page.
    unit
        One of `figures.curves.NORMALISATION_LABELS`.
    is_integer
        True if x is an integer.
    theme
        Sizes and colours of the charts.
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        xlabel: str,
        scales: Scales,
        height: int | None,
        normalisation: str = "",
        is_integer: bool = False,
        theme: ChartTheme = LIGHT_THEME,
    ):
        self.names, self.unit = scales.names_along_x, normalisation
        self.charts = {
            name: Chart(
                variable,
                xlabel,
                scales.names_along_x,
                scales.log_x,
                name in scales.log_y,
                height,
                make_normalised_label(normalisation, name, variable),
                is_integer,
                theme,
            )
            for name, variable in variables.items()
        }
        self.shown: dict[str, list[Curve]] = {}
        figures = [chart.figure for chart in self.charts.values()]
        for figure in figures[1:]:  # charts pan and zoom along x together
            figure.x_range = figures[0].x_range

    def show(
        self,
        results: Results,
        layout: Layout,
        compared: Mapping[str, Sequence[Curve]] | None = None,
        runs: bool = False,
    ) -> None:
        """Show results that only have the axes of the layout, and curves for comparison."""
        for name, chart in self.charts.items():
            curves = self.make_curves(name, results, layout, runs)
            self.shown[name] = series.merge_equal_lines(curves) if chart.controlled else curves
            chart.show(self.shown[name], (compared or {}).get(name, ()))

    def fit_y_limits(self) -> None:
        """Fit the y axis of each chart to its curves."""
        for chart in self.charts.values():
            chart.fit_y_limits()

    def make_curves(self, name: str, results: Results, layout: Layout, runs: bool = False) -> list[Curve]:
        """Return the curves of a variable along x, or [] if the results do not contain it."""
        if not any(part is not None and name in part for part in (results.simulation, results.theory)):
            return []
        lines, levels = results.lines, series.get_chart_variables(results.scenario)[name].reference_variables
        label = make_browser_labeller(results.scenario)
        if results.simulation is None and lines is not None and name in lines:  # saves half the time during a drag
            return series.make_curves(name, None, lines, layout, self.unit, level_names=levels, label_value=label)
        parts = results.simulation, results.theory, layout, self.unit, lines, levels, label, runs
        curves = series.make_curves(name, *parts)
        names = np.asarray(self.names)
        return [replace(curve, x=names, theory_x=names) for curve in curves] if self.names else curves

    def list_nonempty_charts(self) -> list[str]:
        """Return the variables whose charts show at least one value."""
        return [name for name, curves in self.shown.items() if not all(curve.is_empty for curve in curves)]


def make_normalised_label(normalisation: str, name: str, variable: Variable) -> str:
    """Return the label of a variable in a unit of `figures.curves.NORMALISATION_LABELS`.

    >>> (
    ...     make_normalised_label("one student", "eps_g", Variable((), "", r"$\\epsilon_g$")),
    ...     make_normalised_label("", "R", Variable((), "", "$R$"))
    ... )
    ('$\\\\epsilon_g$ / $\\\\epsilon_g$ of one student', '$R$')
    """
    symbol = variable.symbol
    if normalisation == "theory":
        return f"{symbol} / theory"
    return (
        f"{symbol} / $\\epsilon_g$ of one student"
        if normalisation == "one student" and name.startswith("eps_g")
        else symbol
    )


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
