"""The charts of an explorer page, with their switches and their legend.

There is one chart per chosen variable. A plane has a single chart of one variable against another along a third axis,
such as q against R during learning. New results replace the curves but not the charts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from figures import curves as series
from figures import legends
from figures.arrangement import ArrangedResults
from figures.derived_data import divide_by_theory
from figures.description import DrawnCurve, DrawnLine, LegendEntry, PanelDescription
from figures.explorer.chart_content import ChartContent
from figures.explorer.pages import NORMALISATION_LABELS, View
from figures.explorer.sliders import CELL_STYLE
from figures.interactive.axes_and_theme import DARK_PAGE_FILTER, ChartTheme
from figures.interactive.chart import HELD_CURVE_OPACITY, Chart, get_axes_key
from figures.interactive.chart_rows import collect_levels, get_common_label
from figures.interactive.swatches import make_swatch
from figures.labels import (
    SHORT_DEFINITION_END_PATTERN,
    axis_label,
    define_drawn_symbols,
    format_key_name,
    get_caption_keys,
    get_symbol,
    html_from_latex,
    unicode_from_latex,
    variable_label,
)
from figures.overlay import describe_panel
from figures.style import THEORY_COLOUR
from statmech.keys.figure_key import Composition
from statmech.keys.scenario import AbstractScenario
from statmech.keys.variables import Variable


def arrange_content(content: ChartContent) -> ArrangedResults:
    """Arrange the content of the charts as the part of a figure, with at most one curve per colour."""
    results, layout = content.results, content.layout
    hues = series.choose_colours(results.either, layout.colour_axes)[: series.MAX_CURVES_PER_CHART]
    x_variable = content.plane[0] if content.plane else ""
    return ArrangedResults(
        results,
        layout,
        x_variable,
        title_texts=content.title_texts,
        curve_colours=tuple(hues),
        fills_converged=series.has_unconverged_runs(results),
        in_browser=True,
    )


def describe_chart(
    part: ArrangedResults, name: str, variable: Variable, unit: str = "", log: str = "", single_runs: bool = False
) -> PanelDescription:
    """Describe the chart of one variable.

    Parameters
    ----------
    part
        The results and their layout.
    name, variable
        The variable.
    unit
        A key of `NORMALISATION_LABELS`: "theory" divides all values by theory, "one student" divides the errors of
        an ensemble by the error of one student in theory.
    log
        The logarithmic axes.
    single_runs
        Whether single runs are drawn instead of their mean.
    """
    names, label = (name, *variable.reference_variables), variable.symbol
    results = series.select_variable(part.results, name, (*names, part.x_variable, "eps_g"))
    if unit == "theory":
        results, label = divide_by_theory(results, name, names), f"{label} / theory"
    elif unit == "one student" and name.startswith("eps_g"):
        results, label = divide_by_theory(results, "eps_g", names), f"{label} / $\\epsilon_g$ of one student"
    content = Composition(y=name, label=label, single_runs=single_runs)
    panel, _ = describe_panel(
        [(replace(part, results=results), results)], {name: variable}, content, log, rounds_lines=False
    )
    if variable.role == "control":
        return merge_equal_lines(panel)
    panel = thin_points(panel)
    guide = PLANE_GUIDES.get((part.x_variable, name))
    return replace(panel, lines=(guide,)) if guide else panel


def thin_points(panel: PanelDescription) -> PanelDescription:
    """Thin the points of a panel as in figures, unless they are filled or x holds names."""
    if panel.x_names:
        return panel
    return replace(panel, curves=tuple(_thin_curve(drawn_curve, "x" in panel.log) for drawn_curve in panel.curves))


def _thin_curve(drawn_curve: DrawnCurve, log_x: bool) -> DrawnCurve:
    curve = drawn_curve.curve
    if drawn_curve.filled_mask is not None or curve.runs is not None:
        return drawn_curve
    x_error = series.thin_curve(replace(curve, error=drawn_curve.x_error), log_x).error
    return replace(drawn_curve, curve=series.thin_curve(curve, log_x), x_error=x_error)


def _format_text(scenario: AbstractScenario, latex: str) -> str:
    """Return a text in HTML, with names of keys instead of symbols that the labels of curves cannot show."""
    for name in get_caption_keys(scenario):
        if not unicode_from_latex(symbol := get_symbol(scenario, name)):
            latex = latex.replace(symbol, format_key_name(name))
    return html_from_latex(latex)


def merge_equal_lines(panel: PanelDescription) -> PanelDescription:
    """Merge curves with equal lines of theory.

    Merged lines are grey, with different dashes. A line that is common to all curves has no label.
    """
    curves_by_line: dict[tuple[float, ...], list[DrawnCurve]] = {}
    for drawn_curve in panel.curves:
        line = drawn_curve.curve.theory
        curves_by_line.setdefault(() if line is None else tuple(line.tolist()), []).append(drawn_curve)
    if 1 < len(curves_by_line) == len(panel.curves):
        return panel
    merged_curves = []
    for curves, linestyle in zip(curves_by_line.values(), cycle(MERGED_LINE_STYLES), strict=False):
        grey: dict[str, Any] = {"color": THEORY_COLOUR}
        style, label = curves[0].style, get_common_label(curves) if len(curves_by_line) > 1 else ""
        line_style = style.line and style.line | grey | {"linestyle": linestyle}
        style = replace(style, points=style.points | grey, line=line_style)
        merged_curves.append(replace(curves[0], style=style, label=label, line_label=label))
    return replace(panel, curves=tuple(merged_curves))


MERGED_LINE_STYLES = "-", "--", ":", "-."
PLANE_GUIDE_X = np.linspace(0, 1, 101)
PLANE_GUIDES = {  # at q = R^2, only the teacher correlates the students
    ("R", "q"): DrawnLine({"color": "0.54", "linestyle": ":", "linewidth": 1.2}, PLANE_GUIDE_X, PLANE_GUIDE_X**2)
}
NUM_INITIAL_CHARTS = 2  # charts shown when a page opens
LEFT_BORDER_PIXELS = 80  # aligns the y axes of stacked charts
LECTURE_SCALE = 1.6  # enlarges letters, lines and points in lecture mode
INITIAL_AREA_SIZE = 1300, 500  # pixels, until the browser reports the size of the area
FRAME_MARGIN_PIXELS, LOW_FRAME_MARGIN_PIXELS = 45, 60  # height of a chart outside its frame
MIN_ROW_PIXELS, MIN_COLUMN_PIXELS, GAP_PIXELS = 260, 338, 8  # as in CHART_AREA_CSS
NARROW_AREA_PIXELS = 700  # in narrower areas, CHART_AREA_CSS fixes the heights of charts
CONTROL_CHART_CSS_CLASS = "below"  # CSS class of the low charts that show controls
CHART_AREA_CSS = """
:host { flex: 1 0 0 }
div[id^="flexbox"] {
  display: grid !important; height: 100%; gap: 8px; padding: 4px 8px 0 8px; box-sizing: border-box;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, max(330px, 32%)), 1fr)); grid-auto-rows: minmax(260px, 1fr);
}
@media (min-width: 700px) {
  div[id^="flexbox"]:has(> :nth-child(4):last-child) { grid-template-columns: repeat(2, minmax(0, 1fr)) }
}
div[id^="flexbox"]:has(.below) { grid-template-rows: minmax(260px, 9fr); grid-auto-rows: minmax(130px, 5fr) }
div[id^="flexbox"]:has(> :nth-child(3) > .below) { grid-template-columns: repeat(2, minmax(0, 1fr)) }
div[id^="flexbox"]:has(> :nth-child(2) > .below) { grid-template-columns: minmax(0, 1fr) }
.below { grid-column: 1 / -1 }
@media (max-width: 699px) {
  :host { flex: none; height: auto !important }
  div[id^="flexbox"] { height: auto; grid-auto-rows: 270px !important }
  div[id^="flexbox"]:has(.below) { grid-template-rows: 270px !important; grid-auto-rows: 130px !important }
}
"""
NOTES_STYLE = {"flex": "none", "opacity": "0.85", "line-height": "1.35"}
LEGEND_STYLE = "display:flex;flex-wrap:wrap;gap:2px 14px;align-items:center;line-height:1.25"
CHIP_STYLE = "display:inline-flex;gap:4px;align-items:center"
CHART_CELL_CSS = f"""
:host {{
  width: 100% !important; height: 100% !important; min-height: 0; min-width: 0; filter: {DARK_PAGE_FILTER}
}}
"""
NORMALISATIONS_BY_LABEL = {label: unit for unit, label in NORMALISATION_LABELS.items()}


class ExplorerCharts:
    """Charts of the current results, with earlier curves for comparison.

    `on_change()` is called when a switch has been moved. The charts have the given `height`. By default they fill the
    window.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None, height: int = 0):
        self.chart_content: ChartContent | None = None
        self.page_note = ""  # a reason for points off their lines
        self.drawn: dict[str, Variable] = {}
        self.held: dict[str, PanelDescription] = {}
        self.common_axes: tuple[Any, ...] = ()  # x, unit and plane, which held curves need
        self.axes_keys: list[Any] = []  # theme and axes: a change makes new charts necessary
        self.charts: dict[str, Chart] = {}
        self.panes: list[Any] = []
        self.requested: tuple[str, ...] = ()
        self.has_control_charts = False  # True if charts of controls lie below the others
        self.fresh = True  # True until a newly opened page has shown its first results
        self.area_size = INITIAL_AREA_SIZE
        self.lecture, self.chart_offset = False, 0  # lecture mode shows one enlarged chart with this index
        self.variables = pmui.MultiChoice(label="charts", options={}, sizing_mode="stretch_width")
        self.log_x = pmui.Switch(label="log x", value=True, **CELL_STYLE)
        self.log_y = pmui.Switch(label="log y", value=False, **CELL_STYLE)
        self.unit = pmui.Select(
            label="normalise", options=NORMALISATIONS_BY_LABEL, value="", sizing_mode="stretch_width"
        )
        self.runs = pmui.Switch(label="single runs", value=False, **CELL_STYLE)
        self.hold = pmui.Button(label="Hold to compare", variant="outlined", **CELL_STYLE)
        self.release = pmui.Button(label="Release", variant="text", size="small", margin=(2, 4), visible=False)
        even = ["sub, sup { line-height: 0 }"]  # subscripts must not change the line spacing
        self.legend = pn.pane.HTML("", styles={"flex": "1 1 300px", "min-width": "0"}, stylesheets=even, margin=(2, 8))
        self.notes = pn.pane.HTML(
            "", styles=NOTES_STYLE, stylesheets=even, sizing_mode="stretch_width", margin=(0, 8, 4, 16)
        )
        # a layout of Panel: Material UI measures charts before it places them (panel-material-ui issue 548)
        size: dict[str, Any] = (
            {"sizing_mode": "stretch_width", "height": height} if height else {"sizing_mode": "stretch_both"}
        )
        self.area = pn.FlexBox(stylesheets=[CHART_AREA_CSS], css_classes=["charts"], margin=0, **size)
        for widget in (self.variables, self.log_x, self.log_y, self.runs, self.unit):
            widget.param.watch(lambda event: self._handle_switch(on_change), "value")
        self.hold.on_click(lambda event: self._hold_curves())
        self.release.on_click(lambda event: self._release_curves())
        self.switches = [self.variables, self.unit]
        self.bar = [self.log_x, self.log_y, self.runs, self.hold]

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

    def fit_area(self, width: int, height: int) -> None:
        """Fit the charts and their labels to an area of this size in pixels."""
        self.area_size = width, height
        for chart in self.charts.values():  # Bokeh measures a chart again only if one of its sizes changes
            chart.figure.min_border_top = 1 - (chart.figure.min_border_top or 0)
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
        content = self.chart_content
        if content is None:
            return
        common_axes = content.layout.x, self.unit.value, content.plane
        if self.common_axes and common_axes != self.common_axes:
            self._release_curves(draw=False)  # the curves for comparison belong to other axes
        panels = self._describe_panels(self._choose_names())
        theme = ChartTheme(LECTURE_SCALE if self.lecture else 1.0)
        axes_keys = [theme, common_axes, *map(get_axes_key, panels.values())]
        is_new, self.common_axes, self.axes_keys = axes_keys != self.axes_keys, common_axes, axes_keys
        if is_new:
            self.charts = {name: Chart(panel, None, theme) for name, panel in panels.items()}
            self._link_charts()
        width, height, control_height = self._estimate_frame_size()
        ratios = [name for name in panels if self.unit.value == "one student" and name.startswith("eps_g")]
        same_unit = [curve for name in ratios for curve in panels[name].curves]
        for name, panel in panels.items():
            self.charts[name].fit_frame(width, control_height if self._is_control(name) else height)
            self.charts[name].same_unit = same_unit if name in ratios else ()
            self.charts[name].show(panel, self.held.get(name))
        if self.has_control_charts:
            self._align_right_borders()
        if is_new:  # a chart needs data to compute its ranges
            self._insert_charts()
        self.legend.object, self.notes.object = self._make_legend(), self._make_notes(panels.values())
        if self.panes and pn.state.curdoc is None:  # in a notebook, new data must be pushed
            pn.io.push_notebook(*self.panes)

    def _describe_panels(self, names: Sequence[str]) -> dict[str, PanelDescription]:
        """Describe the charts of these variables."""
        assert self.chart_content is not None
        content, variables = self.chart_content, self.drawn
        part, unit = arrange_content(content), "" if content.plane else self.unit.value
        log_x = "x" * (self.log_x.value and not content.plane)
        log_y = "y" * (self.log_y.value and not content.plane)
        runs = self.runs.value and not content.plane
        return {
            name: describe_chart(part, name, variables[name], unit, log_x + log_y * (not self._is_control(name)), runs)
            for name in names
        }

    def _is_control(self, name: str) -> bool:
        return self.drawn[name].role == "control"

    def _choose_names(self) -> list[str]:
        """Return the variables of the charts: the vertical axis of a plane, or the selected variables.

        Controls come last.
        """
        assert self.chart_content is not None
        if self.chart_content.plane:
            return [self.chart_content.plane[1]]
        selected = [name for name in self.variables.value or () if name in self.drawn]
        names = sorted(selected, key=self._is_control)
        return [names[self.chart_offset % len(names)]] if self.lecture and names else names

    def _link_charts(self) -> None:
        """Let new charts pan and zoom along x together, with the charts of controls below the others."""
        figures = [chart.figure for chart in self.charts.values()]
        for figure in figures[1:]:
            figure.x_range = figures[0].x_range
        above, below = self._split_control_charts()
        self.has_control_charts = bool(above and below)
        upper_labels = {curve.line_label for chart in above for curve in chart.shown}
        for chart in below if above else ():
            chart.simplify_low_chart(has_end_labels=upper_labels.isdisjoint(curve.line_label for curve in chart.shown))

    def _estimate_frame_size(self) -> tuple[float, float, float]:
        """Estimate the width of a chart, and the heights of charts and controls, in the layout of `CHART_AREA_CSS`."""
        width, height = self.area_size
        above, below = self._split_control_charts()
        count = len(above or below)
        columns = min(2 if count == 4 else 3, max(count, 1), max(width // MIN_COLUMN_PIXELS, 1))
        rows = -(-count // columns) or 1
        num_low_rows = len(below) * bool(above)
        min_height = rows * (MIN_ROW_PIXELS + GAP_PIXELS) + num_low_rows * (MIN_ROW_PIXELS / 2 + GAP_PIXELS)
        self.area.styles = {"min-height": f"{min_height:.0f}px"}  # the notes lie below
        main_height = height * 9 / (9 + 5 * num_low_rows)
        low_height = 0.0 if width < NARROW_AREA_PIXELS else main_height * 5 / 9
        heights = max(main_height / rows, MIN_ROW_PIXELS), max(low_height, MIN_ROW_PIXELS / 2)
        frame_height, control_height = heights[0] - FRAME_MARGIN_PIXELS, heights[1] - LOW_FRAME_MARGIN_PIXELS
        return width / columns, frame_height, control_height if above else frame_height

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
        controls = [chart for name, chart in self.charts.items() if self._is_control(name)]
        return [chart for chart in self.charts.values() if chart not in controls], controls

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
        room = max((chart.label_margin for chart in self.charts.values()), default=0)
        for chart in self.charts.values():
            chart.reserve_right_margin(room)

    def _make_legend(self) -> str:
        """Return the legend in HTML: entries of curves without end labels, then the caption."""
        content, charts = self._drawn_content, [*self.charts.values()]
        part, results = arrange_content(content), content.results
        labelled = charts[0].labelled_lines if charts else set()
        entries = [entry for entry in legends.make_series_entries([part]) if entry.label not in labelled]
        has_runs = self.runs.value and results.simulation is not None
        if has_runs:  # single runs have no markers
            entries = [replace(entry, style={**entry.style, "marker": "none"}) for entry in entries]
        if all(map(self._is_control, self.charts)):  # charts without points, and maybe with merged lines
            drawn_labels = {curve.line_label for chart in charts for curve in chart.shown}
            entries = [entry for entry in entries if entry.label in drawn_labels]
        else:
            marks = legends.make_mark_entries([part])
            entries += [entry for entry in marks if not (has_runs and entry.kind == "points")]
        entries += self._make_level_entries()
        chips = [
            f'<span style="{CHIP_STYLE}">{make_swatch(entry)}<span>{html_from_latex(entry.label)}</span></span>'
            for entry in entries
        ]
        chips += [f'<span style="opacity:{HELD_CURVE_OPACITY + 0.2}">╌╌ held</span>'] if self.held else []
        bounds = {chart.is_bound_visible for chart in charts} - {None}
        title = _format_text(results.scenario, ", ".join(legends.make_title_texts([part])).replace("= -", "= −"))
        num_curves = int(np.prod([results.either.sizes[axis] for axis in part.layout.colour_axes]))
        notes = {
            title: True,
            f"{len(part.curve_colours)} of {num_curves} curves": len(part.curve_colours) < num_curves,
            "thin: single runs": has_runs,
            legends.HOLLOW_POINTS_NOTE: part.fills_converged,
            f"band: {legends.UNRESOLVED_BAND_NOTE}": series.has_unresolved_bands(results),
            "dashed: bounds": True in bounds,
            "bounds of theory lie beyond the charts": bounds == {False},
            "a logarithmic axis cannot show values of 0": any(chart.panel.hides_zeros for chart in charts),
            "thin: guides to the eye": any(chart.has_guides for chart in charts),
            "dotted: <i>q</i> = <i>R</i>²": content.plane == ("R", "q"),
        }
        texts = [note for note, holds in notes.items() if holds]
        parts = [*chips, f"<span>{'; '.join(texts)}</span>"]
        return f'<div style="{LEGEND_STYLE};font-size:{20 if self.lecture else 14}px">{"".join(parts)}</div>'

    @property
    def _drawn_content(self) -> ChartContent:
        """The content of the charts, without a simulation if they show only theory."""
        content = self.chart_content
        assert content is not None
        if content.results.theory is None or any(chart.has_points for chart in self.charts.values()):
            return content
        return replace(content, results=replace(content.results, simulation=None))

    def _make_level_entries(self) -> list[LegendEntry]:
        """Return the legend entries of the reference levels."""
        levels = [level for chart in self.charts.values() for level in collect_levels(chart.shown)]
        styles = {level.label: {"linestyle": (level.style.line or {})["linestyle"]} for level in levels}
        return [LegendEntry(symbol, {"color": THEORY_COLOUR, **style}) for symbol, style in styles.items()]

    def _make_notes(self, panels: Iterable[PanelDescription]) -> str:
        """Return the definitions of all symbols, and the reason if theory is not expected to agree."""
        results, part = self._drawn_content.results, arrange_content(self._drawn_content)
        axes, panels = (*part.layout.colour_axes, *part.layout.marker_axes), [*panels]
        texts = [*(get_symbol(results.scenario, axis) for axis in axes), *(panel.xlabel for panel in panels)]
        texts += [*legends.make_title_texts([part]), *(entry.label for entry in self._make_level_entries())]
        definitions = define_drawn_symbols(results.scenario, texts, [panel.ylabel for panel in panels])
        named_variables = [self.drawn[name] for name in self.charts if "$" not in self.drawn[name].symbol]
        definitions += [
            f"{variable.symbol}: {SHORT_DEFINITION_END_PATTERN.split(variable.long_name)[0]}"
            for variable in named_variables
            if variable.symbol not in variable.long_name
        ]
        if "$t$" in " ".join(texts) and not any("$t$" in panel.xlabel for panel in panels):
            definitions.append(axis_label(results.scenario, ["t"]).replace(" (", ": ").rstrip(")"))
        notes = _format_text(results.scenario, "; ".join(definitions))
        reason = (results.scenario.expected_deviation_reason or self.page_note) * (results.simulation is not None)
        reason = html_from_latex(reason.replace("sqrt(N)", "√$N$"))
        sentences = [*([reason[0].upper() + reason[1:]] if reason else []), *([notes] if notes else [])]
        return f'<div style="font-size:{18 if self.lecture else 13}px">{"<br>".join(sentences)}</div>'

    def _handle_switch(self, on_change: Callable[[], None]) -> None:
        self.draw()
        on_change()

    def _hold_curves(self) -> None:
        """Keep the current curves for comparison with later results."""
        if self.chart_content is not None:
            self.held = self._describe_panels(
                [self.chart_content.plane[1]] if self.chart_content.plane else [*self.drawn]
            )
            self.release.visible = True
            self.draw()

    def _release_curves(self, draw: bool = True) -> None:
        self.held = {}
        self.release.visible = False
        if draw:
            self.draw()
