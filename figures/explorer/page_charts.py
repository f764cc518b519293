"""The charts of an explorer page, with their switches and their legend.

There is one chart per chosen variable. A plane has a single chart of one variable against another along a third axis,
such as q against R during learning. New results replace the curves but not the charts.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from figures import curves as series
from figures.curves import Curve, Layout, Scales
from figures.explorer.chart_content import ChartContent
from figures.explorer.pages import View
from figures.interactive.axes_and_theme import ChartTheme
from figures.interactive.chart import HELD_CURVE_OPACITY, Chart
from figures.labels import (
    axis_label,
    format_key_name,
    make_browser_labeller,
    variable_label,
)
from figures.style import CURVE_MARKERS
from statmech.keys.variables import Variable
from statmech.results.results import Results


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


def make_variable_curves(
    name: str, results: Results, layout: Layout, names: Sequence[str], normalisation: str, single_runs: bool
) -> list[Curve]:
    """Return the curves of a variable along x, or [] if the results do not contain it.

    `names` are the names along x, if x is not numeric.
    """
    if not any(part is not None and name in part for part in (results.simulation, results.theory)):
        return []
    lines, levels = results.lines, series.get_chart_variables(results.scenario)[name].reference_variables
    label = make_browser_labeller(results.scenario)
    if results.simulation is None and lines is not None and name in lines:  # saves half the time during a drag
        return series.make_curves(name, None, lines, layout, normalisation, level_names=levels, label_value=label)
    parts = results.simulation, results.theory, layout, normalisation, lines, levels, label, single_runs
    curves = series.make_curves(name, *parts)
    x = np.asarray(names)
    return [replace(curve, x=x, theory_x=x) for curve in curves] if names else curves


PLANE_GUIDE_CURVES = {("R", "q"): lambda R: R**2}  # at q = R^2, only the teacher correlates the students


def make_plane_chart(results: Results, variable_names: tuple[str, str], theme: ChartTheme) -> Chart:
    """Return an empty chart of one variable against another, such as q against R during learning."""
    x, y = (results.scenario.variables[name] for name in variable_names)
    chart = Chart(y, x.symbol, height=None, theme=theme)
    chart.is_smooth = False  # the curve need not be a function of x
    if variable_names in PLANE_GUIDE_CURVES:
        x_values = np.linspace(0, 1, 101)
        chart.draw_guide(x_values.tolist(), PLANE_GUIDE_CURVES[variable_names](x_values).tolist())
    return chart


def make_plane_curves(results: Results, layout: Layout, variable_names: tuple[str, str]) -> list[Curve]:
    """Return curves in a plane: lines of theory, and simulation means with standard errors of y."""
    parts = results.simulation, results.theory
    label = make_browser_labeller(results.scenario)
    curve_pairs = [
        series.make_curves(name, *parts, layout, lines=results.lines, label_value=label) for name in variable_names
    ]
    plane_curves = []
    for x, y in zip(*curve_pairs, strict=True):
        x_values = x.mean if x.mean is not None else x.theory
        if x_values is not None:
            plane_curves.append(replace(y, x=x_values, theory_x=x.theory, band=None))
    return plane_curves


NUM_INITIAL_CHARTS = 2  # charts shown when a page opens
LEFT_BORDER_PIXELS = 80  # aligns the y axes of stacked charts
LECTURE_SCALE = 1.6  # enlarges letters, lines and points in lecture mode
CONTROL_CHART_HEIGHT_PIXELS = 100  # height that a control chart takes from the charts above it
CONTROL_CHART_CSS_CLASS = "below"  # CSS class of the low charts that show controls
CHART_AREA_CSS = """
:host { flex: 1 1 0; min-height: 0 }
div[id^="flexbox"] {
  display: grid !important; height: 100%; gap: 8px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, max(330px, 32%)), 1fr)); grid-auto-rows: minmax(260px, 1fr);
}
@media (min-width: 700px) {
  div[id^="flexbox"]:has(> :nth-child(4):last-child) { grid-template-columns: repeat(2, minmax(0, 1fr)) }
}
div[id^="flexbox"]:has(.below) { grid-template-rows: minmax(260px, 9fr); grid-auto-rows: minmax(130px, 5fr) }
div[id^="flexbox"]:has(> :nth-child(3) > .below) { grid-template-columns: repeat(2, minmax(0, 1fr)) }
div[id^="flexbox"]:has(> :nth-child(2) > .below) { grid-template-columns: minmax(0, 1fr) }
.below { grid-column: 1 / -1 }
"""
CHART_CELL_CSS = ":host { width: 100% !important; height: 100% !important; min-height: 0; min-width: 0 }"
MARKER_GLYPHS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "P": "✚", "X": "✖"}
OPEN_MARKER_GLYPHS = {"o": "○", "s": "□", "^": "△", "D": "◇", "v": "▽", "P": "✚", "X": "✖"}
NORMALISATIONS_BY_LABEL = {label: unit for unit, label in series.NORMALISATION_LABELS.items()}


@dataclass(frozen=True)
class ChartAxes:
    """The variables and axes of the charts. A change makes new charts necessary."""

    variables: tuple[str, ...]
    x: str
    scales: Scales
    unit: str
    plane: tuple[str, str] | None
    theme: ChartTheme


class ExplorerCharts:
    """Charts of the current results, with earlier curves for comparison.

    `on_change()` is called when a switch has been moved. The charts have the given `height`. By default they fill the
    window.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None, height: int = 0):
        self.chart_content: ChartContent | None = None
        self.drawn: dict[str, Variable] = {}
        self.held: dict[str, list[Curve]] = {}
        self.axes: ChartAxes | None = None
        self.charts: dict[str, Chart] = {}
        self.panes: list[Any] = []
        self.requested: tuple[str, ...] = ()
        self.has_control_charts = False  # True if charts of controls lie below the others
        self.fresh = True  # True until a newly opened page has shown its first results
        self.dark = False  # True on a dark page
        self.lecture, self.chart_offset = False, 0  # lecture mode shows one enlarged chart with this index
        self.variables = pmui.MultiChoice(label="charts", options={}, sizing_mode="stretch_width")
        self.log_x = pmui.Switch(label="log x", value=True, margin=(4, 8))
        self.log_y = pmui.Switch(label="log y", value=False, margin=(4, 8))
        self.unit = pmui.Select(
            label="normalise", options=NORMALISATIONS_BY_LABEL, value="", sizing_mode="stretch_width"
        )
        self.runs = pmui.Switch(label="single runs", value=False, margin=(4, 8))
        self.hold = pmui.Button(label="Hold to compare", variant="outlined", size="small", margin=(2, 4))
        self.release = pmui.Button(label="Release", variant="text", size="small", margin=(2, 4), visible=False)
        even = ["sub, sup { line-height: 0 }"]  # subscripts must not change the line spacing
        self.legend = pn.pane.HTML("", styles={"flex": "1 1 160px", "min-width": "0"}, stylesheets=even, margin=(2, 8))
        # a layout of Panel: Material UI measures charts before it places them (panel-material-ui issue 548)
        size: dict[str, Any] = (
            {"sizing_mode": "stretch_width", "height": height} if height else {"sizing_mode": "stretch_both"}
        )
        self.area = pn.FlexBox(stylesheets=[CHART_AREA_CSS], margin=0, **size)
        for widget in (self.variables, self.log_x, self.log_y, self.runs, self.unit):
            widget.param.watch(lambda event: self._handle_switch(on_change), "value")
        self.hold.on_click(lambda event: self._hold_curves())
        self.release.on_click(lambda event: self._release_curves())
        self.switches = [self.variables, self.unit]
        self.bar = [self.log_x, self.log_y, self.runs, self.hold, self.release]

    def apply_view(self, view: View) -> None:
        """Set the switches to the settings of a view, without drawing."""
        self.requested, self.fresh = view.show, True
        self._release_curves(draw=False)
        for widget, value in (
            (self.log_x, "x" in view.log),
            (self.log_y, "y" in view.log),
            (self.unit, view.over),
            (self.runs, view.runs),
        ):
            with pn.param.param.discard_events(widget):
                widget.value = value
            widget.param.trigger("value")

    @property
    def view(self) -> dict[str, Any]:
        """The settings of the switches as keyword arguments of `View`."""
        log = (*(["x"] if self.log_x.value else []), *(["y"] if self.log_y.value else []))
        variable_names = tuple(self.variables.value or ())
        return {"show": variable_names, "over": self.unit.value, "log": log, "runs": self.runs.value}

    def set_lecture_mode(self, enabled: bool) -> None:
        """Start or stop lecture mode, which shows one chart in large letters."""
        self.lecture = enabled
        self.draw()

    def set_dark_theme(self, enabled: bool) -> None:
        """Draw in the colours of a dark or a light page."""
        self.dark = enabled
        self.draw()

    def turn_chart(self, step: int) -> None:
        """Show the next or the previous chart in lecture mode."""
        self.chart_offset += step
        self.draw()

    def fit_y_limits(self) -> None:
        """Fit the y axes to the curves at the end of a drag."""
        for chart in self.charts.values():
            chart.fit_y_limits()

    def show(self, content: ChartContent) -> None:
        """Show new results, and offer charts of their variables."""
        self.chart_content = content
        previous_variables, self.drawn = self.drawn, series.get_chart_variables(content.results.scenario)
        options: dict[str, str] = {}
        for name, variable in series.distinguish_symbols(self.drawn).items():
            label = variable_label(variable)
            options[format_key_name(name) if label in options else label] = name
        if self.variables.options != options or self.requested:
            interesting = series.select_main_variables(content.results) or self.drawn
            errors = [name for name in series.get_variables_with_values(content.results) if name.startswith("eps")]
            defaults = dict.fromkeys([*errors[:1], *interesting])  # an error is shown even if it is constant
            ordered_defaults = sorted(defaults, key=lambda name: not name.startswith("eps"))
            selected = [name for name in self.requested if name in self.drawn] or self._keep_selected_variables(
                previous_variables
            )
            self.requested, self.fresh = (), False
            with pn.param.param.discard_events(self.variables):
                self.variables.options = options
                self.variables.value = selected or ordered_defaults[:NUM_INITIAL_CHARTS]
            self.variables.param.trigger("options", "value")
        self.draw()

    def _keep_selected_variables(self, previous_variables: dict[str, Variable]) -> list[str]:
        """Return the shown variables that are still available, and any new controls.

        The list is empty for a page that opens.
        """
        names = [] if self.fresh else [name for name in self.variables.value or () if name in self.drawn]
        controls = [
            name
            for name, variable in self.drawn.items()
            if variable.role == "control" and name not in previous_variables
        ]
        return [*dict.fromkeys([*names, *controls])] if names else []

    def draw(self) -> None:
        """Draw the results, with new charts if their axes have changed."""
        if self.chart_content is None:
            return
        axes = self._choose_axes(self.chart_content)
        changed = axes != self.axes
        if changed:
            if self.axes is not None and (axes.x, axes.unit, axes.plane) != (
                self.axes.x,
                self.axes.unit,
                self.axes.plane,
            ):
                self._release_curves(draw=False)  # the curves for comparison belong to other axes
            self.axes = axes
            self._make_charts(self.chart_content.results, axes)
        self._show_results_in_charts(self.chart_content, axes)
        if changed:  # a chart needs data to compute its ranges
            self._insert_charts()
        self.legend.object = self._make_legend()
        if self.panes and pn.state.curdoc is None:  # in a notebook, new data must be pushed
            pn.io.push_notebook(*self.panes)

    def _show_results_in_charts(self, content: ChartContent, axes: ChartAxes) -> None:
        colours = 0 if axes.plane else _count_colours_per_marker(content.results, content.layout)
        for name, chart in self.charts.items():
            chart.colours = colours
            curves = self._make_curves(name, content, axes)
            chart.show(series.merge_equal_lines(curves) if chart.controlled else curves, self.held.get(name, ()))
        if self.has_control_charts:
            self._align_right_borders()

    def _make_curves(self, name: str, content: ChartContent, axes: ChartAxes) -> list[Curve]:
        results, layout = content.results, content.layout
        if axes.plane:
            return make_plane_curves(results, layout, axes.plane)
        return make_variable_curves(name, results, layout, axes.scales.names_along_x, axes.unit, self.runs.value)

    def _make_charts(self, results: Results, axes: ChartAxes) -> None:
        """Make empty charts, which pan and zoom along x together."""
        names, log_x = axes.scales.names_along_x, axes.scales.log_x
        xlabel = axis_label(results.scenario, series.get_axis_coordinates(results.either, axes.x))
        is_integer = not names and results.scenario.describe(axes.x).whole
        self.charts = {"-".join(axes.plane): make_plane_chart(results, axes.plane, axes.theme)} if axes.plane else {}
        for name in () if axes.plane else axes.variables:
            ylabel = make_normalised_label(axes.unit, name, self.drawn[name])
            log = log_x, name in axes.scales.log_y
            self.charts[name] = Chart(self.drawn[name], xlabel, names, *log, None, ylabel, is_integer, axes.theme)
        figures = [chart.figure for chart in self.charts.values()]
        for figure in figures[1:]:
            figure.x_range = figures[0].x_range
        above, below = self._split_control_charts()
        self.has_control_charts = bool(above and below)
        for chart in above:
            chart.high -= len(below) * CONTROL_CHART_HEIGHT_PIXELS
        for chart in below if above else ():
            chart.simplify_low_chart()

    def _insert_charts(self) -> None:
        charts = [*self.charts.values()]
        if self.has_control_charts:
            self._link_control_charts()
        for chart in charts if self.lecture else ():
            chart.figure.min_border_left = round(LECTURE_SCALE * LEFT_BORDER_PIXELS)
        for chart in charts:  # a figure replaces its pane and the pane's style sheet
            chart.figure.stylesheets = [CHART_CELL_CSS]
        self.panes = [pn.pane.Bokeh(chart.figure, sizing_mode="stretch_both", margin=0) for chart in charts]
        self.area.objects = self.panes

    def _split_control_charts(self) -> tuple[list[Chart], list[Chart]]:
        """Separate the main charts from the charts of controls, which lie below."""
        charts = self.charts.values()
        return [chart for chart in charts if not chart.controlled], [chart for chart in charts if chart.controlled]

    def _link_control_charts(self) -> None:
        """Link the x axes of control charts to the chart above, and align all y axes."""
        main_charts, controls = self._split_control_charts()
        above, below = ([chart.figure for chart in charts] for charts in (main_charts, controls))
        for figure in (*above, *below):
            figure.min_border_left = LEFT_BORDER_PIXELS
        for chart in controls:
            chart.figure.css_classes = [CONTROL_CHART_CSS_CLASS]
            chart.figure.x_range = above[0].x_range
        for figure in [*(above if len(above) == 1 else []), *below[:-1]]:
            figure.xaxis.axis_label = None  # the lowest chart labels the common axis

    def _align_right_borders(self) -> None:
        """Reserve equal margins for line labels in all charts to align their right ends."""
        room = max((chart.figure.min_border_right or 0 for chart in self.charts.values()), default=0)
        for chart in self.charts.values():
            chart.reserve_right_margin(room)

    def _choose_axes(self, content: ChartContent) -> ChartAxes:
        results, x = content.results, content.layout.x
        numeric = series.get_axis_values(results.either, x).dtype.kind in "if"
        names = () if numeric else tuple(series.label_positions(results.either, x))
        names_shown = () if content.plane else tuple(name for name in self.variables.value or () if name in self.drawn)
        names_shown = tuple(
            sorted(names_shown, key=lambda name: self.drawn[name].role == "control")
        )  # control charts come last
        if self.lecture and names_shown:
            names_shown = (names_shown[self.chart_offset % len(names_shown)],)
        log_y = frozenset(name for name in names_shown if self.log_y.value and self.drawn[name].role != "control")
        scales = Scales(names, self.log_x.value and not content.plane, log_y)
        chart_theme = ChartTheme(LECTURE_SCALE if self.lecture else 1.0, self.dark)
        return ChartAxes(names_shown, x, scales, "" if content.plane else self.unit.value, content.plane, chart_theme)

    def _make_legend(self) -> str:
        """Return the legend in HTML: entries of curves without end labels, then the caption."""
        first = next(iter(self.charts.values()), None)
        shown_curves = first.shown if first else []
        labelled = [(index, curve.label) for index, curve in enumerate(shown_curves) if curve.label]
        legend_theme = ChartTheme(dark=self.dark)
        chips = [
            '<span style="white-space:nowrap">'
            f'<span style="color:{legend_theme.get_curve_colour(index)}" aria-hidden="true">'
            f"{MARKER_GLYPHS[CURVE_MARKERS[index % len(CURVE_MARKERS)]]}</span> {html.escape(label)}</span>"
            for index, label in (
                labelled if len(labelled) < 2 or (self.axes and self.axes.scales.names_along_x) else ()
            )
        ]
        chips += [
            f'<span style="white-space:nowrap">{OPEN_MARKER_GLYPHS[CURVE_MARKERS[index % len(CURVE_MARKERS)]]} '
            f"{html.escape(marker_text)}</span>"
            for index, marker_text in enumerate(first.get_marker_labels(shown_curves) if first else ())
        ]
        comparison_text = [f'<span style="opacity:{HELD_CURVE_OPACITY + 0.2}">╌╌ held</span>'] if self.held else []
        bounds = {chart.is_bound_visible for chart in self.charts.values()} - {None}
        notes = [
            self.chart_content.caption if self.chart_content else "",
            *(["dashed: bounds"] if True in bounds else []),
        ]
        notes += ["bounds of theory lie beyond the charts"] if bounds == {False} else []
        notes += ["thin: guides to the eye"] if any(chart.has_guides for chart in self.charts.values()) else []
        notes += ["dotted: <i>q</i> = <i>R</i>²"] if self.axes and self.axes.plane == ("R", "q") else []
        notes_html = f'<span style="font-size:{20 if self.lecture else 14}px">{"; ".join(notes)}</span>'
        return " &ensp; ".join([*chips, *comparison_text, notes_html])

    def _handle_switch(self, on_change: Callable[[], None]) -> None:
        self.draw()
        on_change()

    def _hold_curves(self) -> None:
        """Keep the current curves for comparison with later results."""
        content, axes = self.chart_content, self.axes
        if content is None or axes is None:
            return
        names = self.charts if axes.plane else self.drawn
        self.held = {name: self._make_curves(name, content, axes) for name in names}
        self.release.visible = True
        self.draw()

    def _release_curves(self, draw: bool = True) -> None:
        self.held = {}
        self.release.visible = False
        if draw:
            self.draw()


def _count_colours_per_marker(results: Results, layout: Layout) -> int:
    """Return the number of colours before they repeat with the next marker.

    Colours repeat where theory does not depend on an axis such as N. The number is 0 if every curve has its own colour.
    """
    ignored = series.get_axes_ignored_by_theory(results.scenario)
    sizes = [results.either.sizes[axis] for axis in layout.colour_axes if axis not in ignored]
    number = math.prod(sizes)
    return number if len(sizes) < len(layout.colour_axes) and number > 1 else 0
