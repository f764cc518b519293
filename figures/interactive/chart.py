"""An interactive chart of a described panel: theory as lines, simulation as points, values under the pointer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from bokeh.core import properties
from bokeh.models import BasicTickFormatter, ColumnDataSource, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations import Span
from bokeh.models.annotations.html import HTMLLabelSet
from bokeh.models.glyph import Glyph
from bokeh.models.glyphs import MultiLine, Patches, Scatter, Segment
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure as bokeh_figure

from figures.description import DrawnCurve, PanelDescription
from figures.interactive import axes_and_theme
from figures.interactive.axes_and_theme import (
    AXIS_COLOUR,
    DEFAULT_THEME,
    GRID_COLOUR,
    PAGE_COLOUR,
    TEXT_COLOUR,
    AxisLimits,
    ChartTheme,
    compute_y_limits,
    extend_limits,
    get_curve_colour,
    get_text_colour,
    has_single_value,
    separate_positions,
    wrap_label,
)
from figures.interactive.chart_rows import ChartRows, collect_levels, get_dash
from figures.interactive.typeface import FONT_STACK
from figures.labels import plain_from_latex
from figures.style import BAND_EDGE_WIDTH_POINTS, BAND_OPACITY

HELD_CURVE_OPACITY = 0.45  # for earlier curves kept for comparison
MAX_LINEAR_TICKS, MAX_LOG_TICKS, LOW_CHART_TICKS = 12, 21, 3
MIN_LOG_TICK_GAP = 0.165  # difference of natural logarithms: the labels of closer ticks would touch
MIN_TICK_POWER = -4  # smaller ticks are powers of ten
LINE_GLYPH_COLUMNS: dict[str, Any] = {"xs": "x", "ys": "y", "line_color": "color"}
ERROR_BAR_GLYPH_COLUMNS: dict[str, Any] = {"x0": "x", "y0": "low", "x1": "x", "y1": "high", "line_color": "color"}
X_ERROR_BAR_GLYPH_COLUMNS: dict[str, Any] = {"x0": "left", "y0": "y", "x1": "right", "y1": "y", "line_color": "color"}
END_LABEL_COLUMNS = ("x", "y", "text", "color", "offset")
TICK_FONT_PIXELS, AXIS_NAME_FONT_PIXELS, END_LABEL_FONT_PIXELS = 13, 17, 14  # pixels
ASSUMED_FRAME_SIZE = 600.0, 420.0  # pixels, for the spacing of labels until the size is known
LETTER_ASPECT_RATIO = 0.62  # mean width of a letter over its height
MATH_ASPECT_RATIO = 0.54  # the same for the labels of axes
MAX_LABEL_WIDTH_FRACTION = 0.4  # wider labels belong in the legend
SINGLE_RUN_OPACITY = 0.65
MIN_FILLED_HEIGHT_FRACTION = 0.5  # curves that fill less are rescaled at the end of a drag


class Chart:
    """A chart of a described panel.

    `show` replaces the curves, not the chart, if the new panel has the same axes (`get_axes_key`). If x holds names,
    theory is a dash at each name.

    Parameters
    ----------
    panel
        The curves, guides, marks, labels and limits.
    height
        The height in pixels, or None to fill the space on the page.
    theme
        Sizes and colours.
    """

    def __init__(self, panel: PanelDescription, height: int | None = 300, theme: ChartTheme = DEFAULT_THEME):
        self.theme, self.wide, self.high = theme, ASSUMED_FRAME_SIZE[0], height or ASSUMED_FRAME_SIZE[1]
        self.panel, self.compared = panel, panel
        self.same_unit: Sequence[DrawnCurve] = ()  # curves of other charts, which the limits of y include
        self.rows = ChartRows(panel, theme)
        self.limits: AxisLimits | None = None
        self.has_end_labels = not theme.bare  # several lines are labelled at their ends
        self.labelled_lines: set[str] = set()  # labels of the lines that are labelled at their ends
        self.label_margin, self.room = 0, 0  # right margins in pixels: for own labels, and to align charts
        names, log_y = self.rows.names, self.rows.log_y
        y_name, x_name = plain_from_latex(panel.ylabel), plain_from_latex(panel.xlabel)
        factors: dict[str, Any] = {"x_range": names} if names else {}
        self.figure: Any = bokeh_figure(
            name=y_name,
            x_axis_label=None if theme.bare else _mathjax_from_latex(panel.xlabel),
            y_axis_label=None if theme.bare else _mathjax_from_latex(panel.ylabel),
            y_range=Range1d(start=0, end=1),
            x_axis_type="log" if self.rows.log_x else "auto",
            y_axis_type="log" if log_y else "auto",
            height=height,
            sizing_mode="stretch_width" if height else "stretch_both",
            tools="pan,box_zoom,wheel_zoom,reset,save",
            active_scroll=None,
            toolbar_location="above",
            toolbar_inner=True,  # it appears under the pointer, and needs no space
            output_backend="canvas",
            **factors,
        )
        if "x" in panel.limits and not names:
            ends = zip(("start", "end"), panel.limits["x"], strict=True)
            self.figure.x_range.update(**{side: value for side, value in ends if value is not None})
        self.figure.toolbar.autohide = True
        self.figure.toolbar.logo = None
        self.figure.xaxis.major_label_orientation = 0.7 if names else "horizontal"
        self._apply_theme()
        self.guides = ColumnDataSource(self.rows.make_guide_rows(panel.lines))
        if self.guides.data["x"]:
            guide_style: dict[str, Any] = {"line_width": "width", "line_dash": "dash", "line_alpha": "alpha"}
            self._add_glyph(self.guides, MultiLine(**LINE_GLYPH_COLUMNS, **guide_style))
        self._add_spans()
        self.runs = ColumnDataSource(self.rows.make_run_rows(()))
        self._add_glyph(
            self.runs, MultiLine(**LINE_GLYPH_COLUMNS, line_width=theme.size, line_alpha=SINGLE_RUN_OPACITY)
        )
        self.held = self._make_glyph_group("dotted" if panel.theory_is_bound else "dashed", HELD_CURVE_OPACITY)
        self.curves = self._make_glyph_group()
        self.marks = ColumnDataSource(self.rows.make_mark_rows(panel.marks))
        if panel.marks:
            style: dict[str, Any] = {"marker": "marker", "size": "size", "angle": "angle", "line_width": 1.4}
            self._add_glyph(self.marks, Scatter(**style, line_color="color", fill_color="color"))
        line = [("", "@label"), (x_name, "@x" if names else "$data_x"), (y_name, "@y" if names else "$data_y")]
        self._add_hover("theory", line)
        self._add_hover("simulation", [("", "@label"), (x_name, "@x"), (y_name, "@y @error")])
        self.ends = ColumnDataSource({name: [] for name in END_LABEL_COLUMNS})
        label_style: dict[str, Any] = {
            "x_offset": 9 * theme.size,
            "y_offset": "offset",
            "text_baseline": "middle",
            "text_color": "color",
            "background_fill_color": PAGE_COLOUR,  # covers grid lines
            "text_font": properties.value(FONT_STACK),
            "text_font_size": f"{END_LABEL_FONT_PIXELS * theme.size:.0f}px",
        }
        self.figure.add_layout(HTMLLabelSet(source=self.ends, **label_style))
        self.show(panel)

    def _apply_theme(self) -> None:
        """Set sizes and colours directly: Bokeh's page theme does not reach charts created later."""
        figure, theme = self.figure, self.theme
        figure.background_fill_color = figure.border_fill_color = figure.outline_line_color = None
        figure.grid.grid_line_color = GRID_COLOUR
        logarithmic = [self.rows.log_x] * len(figure.xaxis) + [self.rows.log_y] * len(figure.yaxis)
        for axis, log in zip([*figure.xaxis, *figure.yaxis], logarithmic, strict=True):
            axis.update(
                axis_label_text_font_style="normal",
                axis_label_text_font=FONT_STACK,
                major_label_text_font=FONT_STACK,
                axis_label_text_color=TEXT_COLOUR,
                axis_label_text_font_size=f"{AXIS_NAME_FONT_PIXELS * theme.size:.0f}px",
                major_label_text_color=TEXT_COLOUR,
                major_label_text_font_size=f"{TICK_FONT_PIXELS * theme.size:.0f}px",
                axis_line_color=AXIS_COLOUR,
                major_tick_line_color=AXIS_COLOUR,
                minor_tick_line_color=AXIS_COLOUR if log else None,
            )
            if isinstance(axis.formatter, BasicTickFormatter):
                axis.formatter.power_limit_low = MIN_TICK_POWER

    def _add_spans(self) -> None:
        """Draw the guides that are vertical or horizontal lines."""
        for line in self.panel.lines:
            if line.x is None or line.y is None:
                span = Span(
                    location=line.x if line.y is None else line.y,
                    dimension="height" if line.y is None else "width",
                    line_color=get_curve_colour(line.style["color"]),
                    line_dash=get_dash(line.style.get("linestyle", "-")),
                )
                self.figure.add_layout(span)

    def _make_glyph_group(self, dash: str = "", alpha: float = 1.0) -> dict[str, Any]:
        """Create shared glyphs for a group of curves, because every glyph slows each redraw."""
        rows, size = self.rows, self.theme.size
        theory, points = ColumnDataSource(rows.make_theory_rows(())), ColumnDataSource(rows.make_point_rows(()))
        bands, dots = ColumnDataSource(rows.make_band_rows(())), ColumnDataSource(rows.make_integer_theory_rows(()))
        band_alpha = alpha * BAND_OPACITY
        if rows.names:
            style: dict[str, Any] = {"marker": "dash", "size": 24 * size, "line_width": 2, "line_color": "color"}
            lines = self._add_glyph(theory, Scatter(**style, line_alpha=alpha))
            self._add_glyph(bands, Segment(**ERROR_BAR_GLYPH_COLUMNS, line_width=14, line_alpha=band_alpha))
        else:
            lines = self._add_glyph(
                theory, MultiLine(**LINE_GLYPH_COLUMNS, line_width="width", line_dash="dash", line_alpha=alpha)
            )
            edge: dict[str, Any] = {"line_width": BAND_EDGE_WIDTH_POINTS, "line_dash": "dash", "line_alpha": alpha}
            self._add_glyph(bands, Patches(**LINE_GLYPH_COLUMNS, fill_color="color", fill_alpha=band_alpha, **edge))
        if rows.has_integer_x:
            style = {"line_color": "color", "fill_color": "color", "line_alpha": alpha, "fill_alpha": alpha}
            self._add_glyph(dots, Scatter(size=3, **style))
        for columns in (ERROR_BAR_GLYPH_COLUMNS, *([X_ERROR_BAR_GLYPH_COLUMNS] if _has_x_errors(self.panel) else [])):
            self._add_glyph(points, Segment(**columns, line_width=1.2, line_alpha=alpha))
        style = {"marker": "marker", "angle": "angle", "size": 7 * size, "fill_color": "fill", "line_color": "color"}
        marks = self._add_glyph(points, Scatter(**style, line_width=1.4, line_alpha=alpha, fill_alpha=alpha), "points")
        return {
            "dash": dash,
            "theory": theory,
            "bands": bands,
            "dots": dots,
            "simulation": points,
            "renderers": {"theory": lines, "simulation": marks},
        }

    def _add_glyph(self, source: ColumnDataSource, glyph: Glyph, name: str | None = None) -> GlyphRenderer:
        """Add a glyph without Bokeh's extra glyphs for muted and unselected states."""
        renderer: GlyphRenderer = self.figure.add_glyph(source, glyph, name=name)
        return renderer

    def _add_hover(self, part: str, tooltips: list[tuple[str, str]]) -> None:
        renderers = [group["renderers"][part] for group in (self.held, self.curves)]
        self.figure.add_tools(HoverTool(renderers=renderers, tooltips=tooltips, line_policy="nearest", visible=False))

    @property
    def shown(self) -> tuple[DrawnCurve, ...]:
        """The curves, without earlier curves for comparison."""
        return self.panel.curves

    def show(self, panel: PanelDescription, compared: PanelDescription | None = None) -> None:
        """Show a panel with the same axes, and curves for comparison that are dashed and fainter.

        The limits of y change only if curves leave them, or if points appear, which may be far from bounds of theory.
        """
        self.panel, self.compared = panel, compared or replace(panel, curves=())
        curves, rows, needed = panel.curves, self.rows, self._get_needed_limits()
        fits_points = panel.theory_is_bound and _has_points(curves)
        self._set_y_limits(needed if fits_points else extend_limits(needed, self.limits, rows.log_y))
        replaced = {
            self.runs: rows.make_run_rows(curves),
            self.ends: self._make_end_labels(curves),
            self.guides: rows.make_guide_rows(panel.lines),
            self.marks: rows.make_mark_rows(panel.marks),
        }
        for group, group_curves in ((self.curves, curves), (self.held, self.compared.curves)):
            replaced |= {
                group["theory"]: rows.make_theory_rows(group_curves, group["dash"]),
                group["bands"]: rows.make_band_rows(group_curves),
                group["dots"]: rows.make_integer_theory_rows(group_curves),
                group["simulation"]: rows.make_point_rows(group_curves),
            }
        for source, data in replaced.items():
            if data["x"] or source.data["x"]:
                source.data = data
        if rows.has_integer_x:
            self._set_x_ticks([drawn_curve.curve.x for drawn_curve in curves])
        elif rows.log_x:
            x_values = np.concatenate([np.zeros(0), *(drawn_curve.curve.x for drawn_curve in curves)])
            positive = x_values[x_values > 0]
            axes_and_theme.set_log_axis_ticks(
                self.figure.xaxis[0], positive.min(initial=np.inf), positive.max(initial=0)
            )

    def fit_y_limits(self) -> None:
        """Fit the limits of y to the curves if they fill too little of the height."""
        needed = self._get_needed_limits()
        if (
            needed is not None
            and self.limits is not None
            and not needed.covers_fraction(self.limits, MIN_FILLED_HEIGHT_FRACTION, self.rows.log_y)
        ):
            self._set_y_limits(needed)
            self.ends.data = self._make_end_labels(self.panel.curves)

    def _get_needed_limits(self) -> AxisLimits | None:
        """Return the limits of the panel, or the limits that show all curves."""
        drawn_curves = (*self.panel.curves, *self.compared.curves, *self.same_unit)
        curves = [drawn_curve.curve for drawn_curve in drawn_curves]
        limits = compute_y_limits(curves, self.rows.log_x, self.rows.log_y, self.panel.theory_is_bound)
        panel_limits = self.panel.limits.get("y", (None, None))
        if limits is None:
            return None
        return AxisLimits(*(end if value is None else value for end, value in zip(limits, panel_limits, strict=True)))

    @property
    def has_points(self) -> bool:
        """True if points or single runs of a simulation are drawn."""
        return bool(self.curves["simulation"].data["x"] or self.runs.data["x"])

    @property
    def has_guides(self) -> bool:
        """True if thin lines join the points as guides to the eye."""
        return bool(self.runs.data["x"]) and all(drawn_curve.curve.runs is None for drawn_curve in self.shown)

    @property
    def is_bound_visible(self) -> bool | None:
        """True if a bound of theory is visible, False if it is outside the limits, None without a bound."""
        all_lines = [drawn_curve.curve.theory for drawn_curve in self.shown]
        lines = [
            line for line in all_lines if line is not None and not has_single_value(line) and np.isfinite(line).any()
        ]
        if not self.panel.theory_is_bound or self.limits is None or not lines:
            return None
        low, high = self.limits
        return any(bool(((line >= low) & (line <= high)).any()) for line in lines)

    def _set_y_limits(self, limits: AxisLimits | None) -> None:
        """Set the limits of y, unless the user has zoomed."""
        axis = self.figure.y_range
        zoomed = self.limits is not None and (axis.start, axis.end) != self.limits[:]
        if limits is None or limits == self.limits:
            return
        self.limits = limits
        if zoomed:
            axis.update(reset_start=limits.low, reset_end=limits.high)
        else:
            axis.update(start=limits.low, end=limits.high, reset_start=limits.low, reset_end=limits.high)
            if self.rows.log_y:
                axes_and_theme.set_log_axis_ticks(self.figure.yaxis[0], *limits)

    def _make_end_labels(self, curves: Sequence[DrawnCurve]) -> dict[str, list[Any]]:
        """Return rows of labels at the ends of lines, spaced to avoid overlaps, or no rows if the labels do not fit."""
        data: dict[str, list[Any]] = {name: [] for name in END_LABEL_COLUMNS}
        limits = self.limits or AxisLimits(0, 1)
        last = [(level, np.asarray(level.curve.theory)[-1]) for level in collect_levels(curves)]
        levels = [level for level, y in last if limits.low <= y <= limits.high]
        labelled = [curve for curve in (*curves, *levels) if curve.line_label and curve.style.line is not None]
        ends = [(curve, *end) for curve in labelled if (end := self._get_end_point(curve)) is not None]
        texts = [wrap_label(plain_from_latex(curve.line_label)) for curve, *_ in ends]
        letter_height = END_LABEL_FONT_PIXELS * self.theme.size
        lines = [line for text in texts for line in text.split("\n")]
        margin = round(13 + LETTER_ASPECT_RATIO * letter_height * max(map(len, lines), default=0))
        room = 1.15 * letter_height * max((text.count("\n") + 1 for text in texts), default=1)
        fits = room * len(texts) <= self.high and margin <= MAX_LABEL_WIDTH_FRACTION * self.wide
        if self.limits is None or not fits or len(labelled) < 2 or self.rows.names or not self.has_end_labels:
            ends, margin = [], 0
        self.labelled_lines, self.label_margin = {curve.line_label for curve, *_ in ends}, margin
        self.reserve_right_margin(self.room)
        heights = [self.high * limits.get_relative_position(y, self.rows.log_y) for *_, y in ends]
        positions = separate_positions(heights, room, self.high)
        for (curve, x, y), text, height, position in zip(ends, texts, heights, positions, strict=False):
            colour = get_text_colour(curve.style.points["color"])
            row = x, limits.clip_value(y), text, colour, position - height
            for name, value in zip(END_LABEL_COLUMNS, row, strict=True):
                data[name].append(value)
        return data

    def fit_frame(self, width: float, height: float) -> None:
        """Fit labels to the width and height of the chart in pixels."""
        self.wide, self.high = width, height
        letters = max(len(plain_from_latex(self.panel.ylabel)), 1)
        ratio = MATH_ASPECT_RATIO if "$" in self.panel.ylabel else LETTER_ASPECT_RATIO
        pixels = min(AXIS_NAME_FONT_PIXELS * self.theme.size, height / (ratio * letters))
        self.figure.yaxis.axis_label_text_font_size = f"{pixels:.0f}px"

    def simplify_low_chart(self, has_end_labels: bool) -> None:
        """Remove most ticks from a low chart below another chart, and end labels that the other chart has."""
        self.has_end_labels = has_end_labels
        self.figure.yaxis.ticker.desired_num_ticks = LOW_CHART_TICKS

    def reserve_right_margin(self, pixels: int) -> None:
        """Reserve a right margin for the line labels of this chart and of charts above and below."""
        self.room, border = pixels, max(pixels, self.label_margin)
        if (self.figure.min_border_right or 0) != border:
            self.figure.min_border_right = border

    def _get_end_point(self, drawn_curve: DrawnCurve) -> tuple[float, float] | None:
        """Return the last visible point of a curve, on its theory line unless that ends earlier, or None."""
        curve, ends = drawn_curve.curve, []
        for x, y in ((curve.theory_x, curve.theory), (curve.x, curve.mean)):
            if x is not None and y is not None:
                visible = self.rows.get_visible_mask(x, y)
                if visible.any() and not (y is curve.theory and has_single_value(y)):
                    ends.append((float(x[visible][-1]), float(y[visible][-1])))
        return max(ends, key=lambda end: end[0], default=None)

    def _set_x_ticks(self, x_values: Sequence[np.ndarray]) -> None:
        """Set ticks at those values of x whose labels have enough room."""
        values = np.unique(np.concatenate([np.zeros(0), *x_values]))
        positions, min_gap = values, values.max(initial=0) / MAX_LINEAR_TICKS
        if self.rows.log_x:
            values = values[values > 0]
            positions = np.log(values)
            min_gap = max(np.ptp([*positions, 0]) / MAX_LOG_TICKS, MIN_LOG_TICK_GAP)
        ticks, last = [], -np.inf
        for value, position in zip(values.tolist(), positions, strict=True):
            if position - last >= min_gap:
                ticks.append(value)
                last = position
        if isinstance(self.figure.xaxis[0].ticker, FixedTicker):  # a new ticker would make Bokeh collect all models
            self.figure.xaxis.ticker.ticks = ticks
        else:
            self.figure.xaxis.ticker = FixedTicker(ticks=ticks)
            self.figure.xaxis.formatter = BasicTickFormatter()  # on logarithmic axes Bokeh would round to powers of ten


def get_axes_key(panel: PanelDescription) -> tuple[Any, ...]:
    """Return the properties of a panel that a chart cannot change."""
    kind_of_axes = panel.x_names, panel.has_single_theory_values, panel.theory_is_bound, _has_x_errors(panel)
    return panel.name, panel.xlabel, panel.ylabel, panel.log, *kind_of_axes


def _has_x_errors(panel: PanelDescription) -> bool:
    return any(drawn_curve.x_error is not None for drawn_curve in panel.curves)


def _has_points(curves: Sequence[DrawnCurve]) -> bool:
    means = [drawn_curve.curve.mean for drawn_curve in curves]
    return any(mean is not None and bool(np.isfinite(mean).any()) for mean in means)


def _mathjax_from_latex(latex: str) -> str:
    r"""Return a label for MathJax, whose words have a sans-serif face.

    >>> _mathjax_from_latex("$t$ (steps / $N$)"), _mathjax_from_latex("specialisation")
    ('$$t\\textsf{ (steps / }N\\textsf{)}$$', 'specialisation')
    """
    plain_parts, symbols = latex.split("$")[::2], [*latex.split("$")[1::2], ""]
    escaped = (re.sub("([%&#])", r"\\\1", part) for part in plain_parts)
    texts = [rf"\textsf{{{text}}}" if text else "" for text in escaped]
    joined = "".join(text + symbol for text, symbol in zip(texts, symbols, strict=True))
    return f"$${joined}$$" if "$" in latex else latex
