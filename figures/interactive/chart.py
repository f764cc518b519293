"""An interactive chart: theory as lines, simulation as points with standard errors, values under the pointer.

Between solved values a line is interpolated smoothly, in the linear or logarithmic coordinates of the chart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations.html import HTMLLabelSet
from bokeh.models.glyph import Glyph
from bokeh.models.glyphs import MultiLine, Patches, Scatter, Segment
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure as bokeh_figure
from matplotlib.colors import to_hex
from scipy.interpolate import Akima1DInterpolator

from figures import curves as series
from figures.curves import Curve
from figures.derived_data import is_step_function
from figures.description import CurveStyle
from figures.interactive import axes_and_theme
from figures.interactive.axes_and_theme import (
    LIGHT_THEME,
    AxisLimits,
    ChartTheme,
    compute_y_limits,
    extend_limits,
    has_single_value,
    separate_positions,
    wrap_label,
)
from figures.labels import plain_from_latex
from figures.style import BAND_OPACITY, CURVE_MARKERS, replace_infinities
from statmech.keys.variables import Variable

MIN_SPLINE_POINTS, MAX_SPLINE_POINTS = 5, 100  # fewer points do not fix a smooth line, more do not need one
SPLINE_STEPS_PER_INTERVAL = 4  # per interval between solved values


def interpolate_smoothly(x: np.ndarray, y: np.ndarray, log_x: bool, log_y: bool) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate a line smoothly through these values.

    The interpolant is a modified Akima spline in the coordinates of the chart. It does not overshoot next to a flat
    part, such as an error that has reached 0.

    >>> x, y = interpolate_smoothly(np.arange(6.0), np.array([0.3, 0.2, 0.1, 0.0, 0.0, 0.0]), False, False)
    >>> x[:5], y[::4], y.min()
    (array([0.  , 0.25, 0.5 , 0.75, 1.  ]), array([0.3, 0.2, 0.1, 0. , 0. , 0. ]), np.float64(0.0))
    """
    if not MIN_SPLINE_POINTS <= x.size < MAX_SPLINE_POINTS or (np.diff(x) <= 0).any():
        return x, y
    u, v = np.log(x) if log_x else x, np.log(y) if log_y else y
    steps = np.arange(SPLINE_STEPS_PER_INTERVAL * (x.size - 1) + 1) / SPLINE_STEPS_PER_INTERVAL
    u_fine = np.interp(steps, np.arange(x.size), u)
    v_fine = Akima1DInterpolator(u, v, method="makima")(u_fine)
    fine_x, fine_y = np.exp(u_fine) if log_x else u_fine, np.exp(v_fine) if log_y else v_fine
    fine_x[::SPLINE_STEPS_PER_INTERVAL], fine_y[::SPLINE_STEPS_PER_INTERVAL] = x, y  # solved values must stay exact
    return fine_x, fine_y


BOKEH_MARKERS = {
    "o": "circle",
    "s": "square",
    "^": "triangle",
    "D": "diamond",
    "v": "inverted_triangle",
    "P": "plus",
    "X": "x",
    "x": "x",
}
BOKEH_DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "none": "solid"}
LEVEL_LINE_DASH = "dotted"  # line style of reference levels
HELD_CURVE_OPACITY = 0.45  # for earlier curves kept for comparison
MAX_INTEGER_MARKS_PER_LINE = 30  # more marks would hide the line
MAX_LINEAR_TICKS, LOW_CHART_TICKS = 12, 3
LINE_GLYPH_COLUMNS: dict[str, Any] = {"xs": "x", "ys": "y", "line_color": "color"}
ERROR_BAR_GLYPH_COLUMNS: dict[str, Any] = {"x0": "x", "y0": "low", "x1": "x", "y1": "high", "line_color": "color"}
POINT_COLUMNS = ("x", "y", "low", "high", "error", "color", "marker", "label")
END_LABEL_COLUMNS = ("x", "y", "text", "color", "offset")
TICK_FONT_PIXELS, AXIS_NAME_FONT_PIXELS, END_LABEL_FONT_PIXELS = 13, 17, 14  # pixels
ASSUMED_CHART_HEIGHT = 420  # pixels, for the spacing of labels if the height is not fixed
LETTER_ASPECT_RATIO = 0.58  # mean width of a letter over its height
SINGLE_RUN_OPACITY = 0.5
MIN_FILLED_HEIGHT_FRACTION = 0.5  # curves that fill less are rescaled at the end of a drag


class Chart:
    """A chart of one variable against x.

    `show` replaces the curves, not the chart. If x holds names, theory is a dash at each name.

    Parameters
    ----------
    variable
        The variable to draw.
    xlabel
        The label of x.
    names
        The names along x, if x is not numeric.
    log_x, log_y
        Whether x and y are logarithmic.
    height
        The height in pixels, or None to fill the space on the page.
    ylabel
        The label of y, by default the variable's symbol.
    is_integer
        True if x is an integer, so that theory has a mark at each value.
    theme
        Sizes and colours.
    """

    def __init__(
        self,
        variable: Variable,
        xlabel: str,
        names: Sequence[str] = (),
        log_x: bool = False,
        log_y: bool = False,
        height: int | None = 300,
        ylabel: str = "",
        is_integer: bool = False,
        theme: ChartTheme = LIGHT_THEME,
    ):
        self.drawn, self.size, self.high = theme, theme.size, height or ASSUMED_CHART_HEIGHT
        self.limits: AxisLimits | None = None
        self.shown: list[Curve] = []
        self.bounded = bool(variable.bound)
        self.controlled = variable.role == "control"
        self.has_end_labels = not theme.bare  # several lines are labelled at their ends
        self.room = 0  # right margin in pixels that aligns this chart with others
        self.beside: list[Curve] = []  # curves for comparison
        self.is_smooth = not is_integer  # interpolate smoothly between solved values
        self.named, self.log_x, self.log_y, self.whole = bool(names), log_x and not names, log_y, is_integer
        self.curve_styles: Sequence[CurveStyle] = ()  # styles that a description states; by default by position
        self.colours = 0  # number of colours before the marker changes; 0: both change with each curve
        ylabel = ylabel or variable.symbol
        y_name, x_name = plain_from_latex(ylabel), plain_from_latex(xlabel)
        factors: dict[str, Any] = {"x_range": list(names)} if names else {}
        self.figure: Any = bokeh_figure(
            name=y_name,
            x_axis_label=None if theme.bare else _mathjax_from_latex(xlabel),
            y_axis_label=None if theme.bare else _mathjax_from_latex(ylabel),
            y_range=Range1d(start=0, end=1),
            x_axis_type="log" if self.log_x else "auto",
            y_axis_type="log" if log_y else "auto",
            height=height,
            sizing_mode="stretch_width" if height else "stretch_both",
            tools="pan,box_zoom,wheel_zoom,reset,save",
            active_scroll=None,
            toolbar_location="above",
            output_backend="canvas",
            **factors,
        )
        self.figure.toolbar.autohide = True
        self.figure.toolbar.logo = None
        self.figure.xaxis.major_label_orientation = 0.7 if names else "horizontal"
        self._apply_theme()
        self.runs = ColumnDataSource({name: [] for name in ("x", "y", "color")})
        self._add_glyph(
            self.runs, MultiLine(**LINE_GLYPH_COLUMNS, line_width=theme.size, line_alpha=SINGLE_RUN_OPACITY)
        )
        self.held = self._make_glyph_group("dotted" if variable.bound else "dashed", HELD_CURVE_OPACITY)
        self.curves = self._make_glyph_group("dashed" if variable.bound else "solid")
        line = [("", "@label"), (x_name, "@x" if names else "$data_x"), (y_name, "@y" if names else "$data_y")]
        self._add_hover("theory", line)
        self._add_hover("simulation", [("", "@label"), (x_name, "@x"), (y_name, "@y @error")])
        self.ends = ColumnDataSource({name: [] for name in END_LABEL_COLUMNS})
        label_style: dict[str, Any] = {
            "x_offset": 6 * theme.size,
            "y_offset": "offset",
            "text_baseline": "middle",
            "text_color": "color",
        }
        label_style |= {"text_font_size": f"{END_LABEL_FONT_PIXELS * theme.size:.0f}px"}
        self.figure.add_layout(HTMLLabelSet(source=self.ends, **label_style))

    def _apply_theme(self) -> None:
        """Set sizes and colours directly: Bokeh's page theme does not reach charts created later."""
        figure, theme = self.figure, self.drawn
        figure.background_fill_color = figure.border_fill_color = figure.outline_line_color = None
        figure.grid.grid_line_color = theme.grid_colour
        logarithmic = [self.log_x] * len(figure.xaxis) + [self.log_y] * len(figure.yaxis)
        for axis, log in zip([*figure.xaxis, *figure.yaxis], logarithmic, strict=True):
            axis.update(
                axis_label_text_font_style="normal",
                axis_label_text_color=theme.text_colour,
                axis_label_text_font_size=f"{AXIS_NAME_FONT_PIXELS * theme.size:.0f}px",
                major_label_text_color=theme.text_colour,
                major_label_text_font_size=f"{TICK_FONT_PIXELS * theme.size:.0f}px",
                axis_line_color=theme.axis_colour,
                major_tick_line_color=theme.axis_colour,
                minor_tick_line_color=theme.axis_colour if log else None,
            )

    def _make_glyph_group(self, dash: str, alpha: float = 1.0) -> dict[str, Any]:
        """Create shared glyphs for a group of curves, because every glyph slows each redraw."""
        theory, points = ColumnDataSource(self._make_theory_rows((), dash)), ColumnDataSource(self._make_point_rows(()))
        if self.named:
            style: dict[str, Any] = {"marker": "dash", "size": 24 * self.size, "line_width": 2, "line_color": "color"}
            lines = self._add_glyph(theory, Scatter(**style, line_alpha=alpha))
        else:
            lines = self._add_glyph(
                theory, MultiLine(**LINE_GLYPH_COLUMNS, line_width="width", line_dash="dash", line_alpha=alpha)
            )
        bands = ColumnDataSource(self._make_band_rows(()))
        if self.named:
            self._add_glyph(bands, Segment(**ERROR_BAR_GLYPH_COLUMNS, line_width=14, line_alpha=alpha * BAND_OPACITY))
        else:
            self._add_glyph(
                bands, Patches(**LINE_GLYPH_COLUMNS, fill_color="color", fill_alpha=alpha * BAND_OPACITY, line_width=0)
            )
        dots = ColumnDataSource(self._make_integer_theory_rows(()))
        if self.whole and not self.named:
            style = {"line_color": "color", "fill_color": "color", "line_alpha": alpha, "fill_alpha": alpha}
            self._add_glyph(dots, Scatter(size=3, **style))
        self._add_glyph(points, Segment(**ERROR_BAR_GLYPH_COLUMNS, line_width=1.2, line_alpha=alpha))
        style = {
            "marker": "marker",
            "size": 7 * self.size,
            "fill_color": self.drawn.background_colour,
            "line_color": "color",
        }
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

    def show(self, curves: Sequence[Curve], compared: Sequence[Curve] = ()) -> None:
        """Show these curves, and curves for comparison that are dashed and fainter.

        The limits of y change only if curves leave them, or if points appear, which may be far from bounds of theory.
        """
        fits_points = self.bounded and _has_points(curves)
        self.shown, self.beside = [*curves], [*compared]
        self._set_y_limits(
            self._get_needed_limits()
            if fits_points
            else extend_limits(self._get_needed_limits(), self.limits, self.log_y)
        )
        for source, data in ((self.runs, self._make_run_rows(curves)), (self.ends, self._make_end_labels(curves))):
            if data["x"] or source.data["x"]:
                source.data = data
        for group, group_curves in ((self.curves, curves), (self.held, compared)):
            new = {
                "theory": self._make_theory_rows(group_curves, group["dash"]),
                "bands": self._make_band_rows(group_curves),
                "dots": self._make_integer_theory_rows(group_curves),
                "simulation": self._make_point_rows(group_curves),
            }
            for part, data in new.items():
                if data["x"] or group[part].data["x"]:
                    group[part].data = data
        if self.whole and not self.named:
            self._set_x_ticks([curve.x for curve in curves])
        elif self.log_x:
            x_values = np.concatenate([np.zeros(0), *(curve.x for curve in curves)])
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
            and not needed.covers_fraction(self.limits, MIN_FILLED_HEIGHT_FRACTION, self.log_y)
        ):
            self._set_y_limits(needed)
            self.ends.data = self._make_end_labels(self.shown)

    def _get_needed_limits(self) -> AxisLimits | None:
        return compute_y_limits([*self.shown, *self.beside], self.log_x, self.log_y, self.bounded)

    @property
    def has_guides(self) -> bool:
        """True if thin lines join the points as guides to the eye."""
        return bool(self.runs.data["x"]) and all(curve.runs is None for curve in self.shown)

    @property
    def is_bound_visible(self) -> bool | None:
        """True if a bound of theory is visible, False if it is outside the limits, None without a bound."""
        lines = [
            curve.theory for curve in self.shown if curve.theory is not None and not has_single_value(curve.theory)
        ]
        lines = [line for line in lines if np.isfinite(line).any()]
        if not self.bounded or self.limits is None or not lines:
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
            if self.log_y:
                axes_and_theme.set_log_axis_ticks(self.figure.yaxis[0], *limits)

    def _make_run_rows(self, curves: Sequence[Curve]) -> dict[str, list[Any]]:
        """Return one row per single run, or a guide through the points of a curve without theory."""
        data: dict[str, list[Any]] = {name: [] for name in ("x", "y", "color")}
        for index, curve in enumerate(curves):
            runs = curve.runs if curve.runs is not None else self._get_guides(curve, len(curves))
            for run in () if self.named else runs:
                x, y = self._get_visible_points(curve.x, run)
                data["x"].append(x)
                data["y"].append(y)
                data["color"].append(self.get_colour_and_marker(index)[0])
        return data

    def _get_guides(self, curve: Curve, num_curves: int) -> Sequence[np.ndarray]:
        """Return a guide through the means of a curve without theory, if there are several curves."""
        lacks_line = curve.theory is None or np.isfinite(curve.theory).sum() < 2
        return [curve.mean] if lacks_line and curve.mean is not None and num_curves > 1 and not self.drawn.bare else []

    def _make_end_labels(self, curves: Sequence[Curve]) -> dict[str, list[Any]]:
        """Return rows of labels at the ends of lines, spaced to avoid overlaps."""
        data: dict[str, list[Any]] = {name: [] for name in END_LABEL_COLUMNS}
        indices = [index for index, curve in enumerate(curves) if curve.label]
        if len(indices) < 2 or self.named or not self.has_end_labels or self.limits is None:
            return data
        colour_labels = self.get_colour_labels(curves)
        line_ends = [
            (index, *end)
            for index in indices
            if colour_labels[index] and (end := self._get_end_point(curves[index])) is not None
        ]
        heights = [self.high * self.limits.get_relative_position(y, self.log_y) for _, _, y in line_ends]
        texts = [wrap_label(colour_labels[index]) for index, _, _ in line_ends]
        room = 1.15 * END_LABEL_FONT_PIXELS * self.size * max((text.count("\n") + 1 for text in texts), default=1)
        for (index, x, y), text, low, high in zip(
            line_ends, texts, heights, separate_positions(heights, room, self.high), strict=True
        ):
            row = (
                x,
                self.limits.clip_value(y),
                text,
                self.drawn.get_text_colour(self.get_colour_and_marker(index)[0]),
                high - low,
            )
            for name, value in zip(END_LABEL_COLUMNS, row, strict=True):
                data[name].append(value)
        longest = max((len(line) for text in data["text"] for line in text.split("\n")), default=0)
        self.reserve_right_margin(
            round(10 + LETTER_ASPECT_RATIO * END_LABEL_FONT_PIXELS * self.size * longest), for_own_labels=True
        )
        return data

    def get_colour_labels(self, curves: Sequence[Curve]) -> list[str]:
        """Return the label at the end of each curve.

        If colours repeat with other markers, each colour has one label: the common part of the labels of its curves.
        """
        labels = [curve.label for curve in curves]
        if not self.colours:
            return labels
        return [
            series.get_common_label(labels[index :: self.colours]) if index < self.colours else ""
            for index in range(len(labels))
        ]

    def get_marker_labels(self, curves: Sequence[Curve]) -> list[str]:
        """Return the common label of the curves of each marker, or [] if every colour has its own marker."""
        labels, count = [curve.label for curve in curves], self.colours
        return (
            [series.get_common_label(labels[start : start + count]) for start in range(0, len(labels), count)]
            if count
            else []
        )

    def simplify_low_chart(self) -> None:
        """Remove end labels and most ticks from a low chart below another chart."""
        self.has_end_labels = False
        self.figure.yaxis.ticker.desired_num_ticks = LOW_CHART_TICKS

    def reserve_right_margin(self, pixels: int, for_own_labels: bool = False) -> None:
        """Reserve a right margin for line labels of this chart or of charts above and below."""
        self.room = self.room if for_own_labels else pixels
        border = max(pixels, self.room)
        if (self.figure.min_border_right or 0) != border:
            self.figure.min_border_right = border

    def _get_end_point(self, curve: Curve) -> tuple[float, float] | None:
        """Return the last visible point of a curve, preferably on its theory line, or None."""
        for x, y in ((curve.theory_x, curve.theory), (curve.x, curve.mean)):
            if x is not None and y is not None:
                visible = self._get_visible_mask(x, y)
                if visible.any() and not (y is curve.theory and has_single_value(y)):
                    return float(x[visible][-1]), float(y[visible][-1])
        return None

    def _set_x_ticks(self, x_values: Sequence[np.ndarray]) -> None:
        """Set ticks at those values of x whose labels have enough room."""
        values = np.unique(np.concatenate(x_values)) if x_values else np.zeros(0)
        min_gap = values[-1] / MAX_LINEAR_TICKS if values.size else 0.0
        ticks: list[float] = []
        for value in values.tolist():
            is_close = (value < 1.25 * ticks[-1] if self.log_x else value - ticks[-1] < min_gap) if ticks else False
            ticks += [] if is_close else [value]
        if isinstance(self.figure.xaxis[0].ticker, FixedTicker):  # a new ticker would make Bokeh collect all models
            self.figure.xaxis.ticker.ticks = ticks
        else:
            self.figure.xaxis.ticker = FixedTicker(ticks=ticks)

    def draw_guide(self, x: Sequence[float], y: Sequence[float]) -> None:
        """Draw a thin dotted line that does not change with the data."""
        self.figure.line(list(x), list(y), line_color="#8a8a8a", line_dash="dotted", line_width=1.2)

    def get_colour_and_marker(self, index: int) -> tuple[str, str]:
        """Return the colour and the marker of a curve.

        A control that is common to several curves has the colour of text.
        """
        if self.curve_styles:
            points = self.curve_styles[index].points
            return to_hex(points["color"]), str(points["marker"])
        if self.controlled and sum(not curve.is_empty for curve in self.shown) < 2:
            return self.drawn.text_colour, CURVE_MARKERS[0]
        colour, marker = (index % self.colours, index // self.colours) if self.colours else (index, index)
        return self.drawn.get_curve_colour(colour), CURVE_MARKERS[marker % len(CURVE_MARKERS)]

    def _make_theory_rows(self, curves: Sequence[Curve], dash: str) -> dict[str, list[Any]]:
        """Return rows of theory: one per line and reference level, or one per name along x."""
        data: dict[str, list[Any]] = {name: [] for name in ("x", "y", "color", "label", "dash", "width")}
        for index, curve in enumerate(curves):
            if curve.theory is None or curve.theory_x is None:
                continue
            colour = self.get_colour_and_marker(index)[0]
            if self.curve_styles:
                if (line_style := self.curve_styles[index].line) is None:
                    continue  # drawn with another curve
                colour = to_hex(line_style["color"])
                dash = BOKEH_DASHES.get(str(line_style.get("linestyle", "-")), "dashed")
            levels = (
                [] if self.named else [(name, values, LEVEL_LINE_DASH, 1.3) for name, values in curve.reference_levels]
            )
            for name, values, line_dash, width in [(curve.label, curve.theory, dash, 2.0), *levels]:
                lines = (
                    [self._get_visible_points(curve.theory_x, values)]
                    if self.named
                    else self._make_drawn_line_pieces(curve.theory_x, values)
                )
                for x, y in lines:
                    rows = len(x) if self.named else 1
                    data["x"] += x if self.named else [x]
                    data["y"] += y if self.named else [y]
                    row = colour, name, line_dash, width * self.size
                    for column, value in zip(("color", "label", "dash", "width"), row, strict=True):
                        data[column] += [value] * rows
        return data

    def _make_band_rows(self, curves: Sequence[Curve]) -> dict[str, list[Any]]:
        """Return rows of bands: one closed outline per piece without gaps, or one row per name along x."""
        data: dict[str, list[Any]] = {name: [] for name in ("x", *(("low", "high") if self.named else "y"), "color")}
        for index, curve in enumerate(curves):
            if curve.band is None or curve.theory is None or curve.theory_x is None:
                continue
            low, high = curve.band
            low = series.clip_band_for_log(low, curve.theory) if self.log_y else low
            good = self._get_visible_mask(curve.theory_x, high) & np.isfinite(low)
            for piece in _find_true_slices(good):
                x, below, above = (part[piece].tolist() for part in (curve.theory_x, low, high))
                data["x"] += x if self.named else [x + x[::-1]]
                if self.named:
                    data["low"] += below
                    data["high"] += above
                else:
                    data["y"] += [below + above[::-1]]
                data["color"] += [self.get_colour_and_marker(index)[0]] * (len(x) if self.named else 1)
        return data

    def _make_integer_theory_rows(self, curves: Sequence[Curve]) -> dict[str, list[Any]]:
        """Return rows of theory points for an integer x, where theory has no values between integers."""
        data: dict[str, list[Any]] = {name: [] for name in ("x", "y", "color")}
        for index, curve in enumerate(curves):
            if self.whole and not self.named and curve.theory is not None and curve.theory_x is not None:
                x, y = self._get_visible_points(curve.theory_x, curve.theory)
                if len(x) > MAX_INTEGER_MARKS_PER_LINE:
                    continue
                data["x"] += x
                data["y"] += y
                data["color"] += [self.get_colour_and_marker(index)[0]] * len(x)
        return data

    def _make_drawn_line_pieces(self, x: np.ndarray, y: np.ndarray) -> list[tuple[list[Any], list[Any]]]:
        """Split a theory curve at jumps and missing values.

        The line rises far above the chart where theory diverges.
        """
        y = replace_infinities(y)
        is_stepped = self.controlled and is_step_function(y)
        x, y = _make_steps(x, y) if is_stepped else (x, y)
        pieces = [(x[piece], y[piece]) for piece in _find_true_slices(self._get_visible_mask(x, y))]
        if self.is_smooth and not is_stepped:
            pieces = [interpolate_smoothly(*piece, self.log_x, self.log_y) for piece in pieces]
        return [(piece_x.tolist(), piece_y.tolist()) for piece_x, piece_y in pieces] or [([], [])]

    def _get_visible_points(self, x: np.ndarray, y: np.ndarray) -> tuple[list[Any], list[Any]]:
        good = self._get_visible_mask(x, y)
        return x[good].tolist(), y[good].tolist()

    def _make_point_rows(self, curves: Sequence[Curve]) -> dict[str, list[Any]]:
        data: dict[str, list[Any]] = {name: [] for name in POINT_COLUMNS}
        for index, curve in enumerate(curves):
            if curve.mean is not None and curve.runs is None:
                good = self._get_visible_mask(curve.x, curve.mean)
                x, y = curve.x[good], curve.mean[good]
                error = np.zeros_like(y) if curve.error is None else np.nan_to_num(curve.error[good])
                low = series.clip_band_for_log(y - error, y) if self.log_y else y - error
                errors = [f"± {e:.2g}" if e else "" for e in error]
                colour, marker = self.get_colour_and_marker(index)
                style = colour, BOKEH_MARKERS[marker], curve.label
                columns = (
                    x.tolist(),
                    y.tolist(),
                    low.tolist(),
                    (y + error).tolist(),
                    errors,
                    *([item] * x.size for item in style),
                )
                for name, column in zip(POINT_COLUMNS, columns, strict=True):
                    data[name] += column
        return data

    def _get_visible_mask(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return a mask of the values that the axes can show."""
        good = np.isfinite(y)
        if self.log_y:
            good &= y > 0
        if self.log_x:
            good &= x > 0
        return good


def _has_points(curves: Sequence[Curve]) -> bool:
    return any(curve.mean is not None and bool(np.isfinite(curve.mean).any()) for curve in curves)


def _mathjax_from_latex(latex: str) -> str:
    return latex.replace("$", "$$")


def _make_steps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert points to a step function that keeps each value up to the next x.

    >>> [part.tolist() for part in _make_steps(np.array([0, 1, 2]), np.array([5, 5, 6]))]
    [[0, 1, 1, 2, 2], [5, 5, 5, 5, 6]]
    """
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _find_true_slices(mask: np.ndarray) -> Iterator[slice]:
    """Return slices of consecutive True values in a mask.

    >>> [*_find_true_slices(np.array([True, True, False, True]))]
    [slice(0, 2, None), slice(3, 4, None)]
    """
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).tolist()
    return (slice(first, last) for first, last in zip(edges[::2], edges[1::2], strict=True))
