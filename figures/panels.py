"""Building blocks of figures: grids of panels, curves, residual strips, titles and legends.

Order of use: `solve_dense_theory` solves theory on a dense grid, `make_figure` or `make_panel_grid` creates a figure,
`draw_panel` draws points over lines, `draw_guide` marks a value, and `add_title_and_legend` and `finish_figure`
complete the figure.

Panels: a panel shows one variable along one axis. Theory is drawn as lines, with bands that contain one run, and means
of the simulation as points with their standard errors. Each position on another axis has a colour and a marker. In a
grid of panels without gaps, rows with fewer panels have wider panels.

Residual strips: a strip below a panel shows the deviations of means from theory, in standard errors.

All figures have panel letters, the size and number of runs, and a note on points and lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.path import Path as MarkerPath
from matplotlib.ticker import AutoLocator, MaxNLocator

from figures import curves as series
from figures import labels, theory_lines
from figures.curves import Curve, widen_equal_limits
from figures.description import CurveStyle
from figures.style import (
    COLUMN_WIDTH,
    CURVE_COLOURS,
    CURVE_DASHES,
    DRAWING_OPTIONS,
    JOINING_LINE_STYLE,
    MAX_DRAWN_MARKERS,
    NO_LEGEND_GID,
    PAGE_WIDTH,
    SMALL_FONT_SIZE,
    STYLE_SETTINGS,
    THEORY_COLOUR,
    draw_mean_points,
    draw_run_band,
    draw_theory_line,
    get_curve_style,
    get_medium,
    set_log_ticks,
)
from statmech.results.results import Results, as_results
from statmech.stores.dataset import scenario_from_dataset

STRIP_LABEL_TEMPLATE = "residuals of panel {}"  # identifies the axes of a strip
STRIP_HEIGHT_RATIOS = (3, 1)  # relative heights of panel and strip
STRIP_FIGURE_HEIGHT_FACTOR = 1.35  # height of a figure with strips, relative to a figure without strips
MAX_SHADED_Z = 2.0  # standard errors
MIN_Z_AXIS_LIMIT = 3.5  # standard errors that the z axis shows at least


def draw_residual_strip(ax: Axes, curve: Curve, style: dict[str, Any]) -> None:
    """Draw the residuals z = (mean - theory) / standard error of a curve in the strip below a panel."""
    if curve.mean is None or curve.theory_at_x is None or curve.error is None:
        return
    strip = get_residual_strip(ax) or _add_strip(ax)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (curve.mean - curve.theory_at_x) / curve.error
    is_finite = np.isfinite(z)
    strip.plot(
        curve.x[is_finite],
        z[is_finite],
        **{"markerfacecolor": "white", **style, "linestyle": "none", "gid": NO_LEGEND_GID},
    )
    limit = 1.1 * max(MIN_Z_AXIS_LIMIT, strip.get_ylim()[1] / 1.1, float(np.abs(z[is_finite]).max(initial=0)))
    strip.set_ylim(-limit, limit)


def get_residual_strip(ax: Axes) -> Any:
    """Return the strip below a panel, or None without a strip."""
    label = STRIP_LABEL_TEMPLATE.format(ax.figure.axes.index(ax))
    return next((candidate for candidate in ax.figure.axes if candidate.get_label() == label), None)


def is_residual_strip(ax: Axes) -> bool:
    """Return True if axes are a strip of residuals."""
    return str(ax.get_label()).startswith(STRIP_LABEL_TEMPLATE.format(""))


def move_x_labels_below_strips(figure: Figure) -> None:
    """Move the labels of horizontal axes below the strips."""
    for ax in figure.axes:
        if strip := get_residual_strip(ax):
            strip.set_xlabel(ax.get_xlabel())
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False)
            strip.tick_params(labelbottom=True)


def _add_strip(ax: Axes) -> Axes:
    """Split the space of a panel, and create a strip in its lower part."""
    spec = ax.get_subplotspec()
    assert spec is not None
    parts = spec.subgridspec(2, 1, height_ratios=STRIP_HEIGHT_RATIOS)
    number = ax.figure.axes.index(ax)
    strip: Axes = ax.figure.add_subplot(parts[1], sharex=ax, label=STRIP_LABEL_TEMPLATE.format(number))
    ax.set_subplotspec(parts[0])
    strip.axhspan(-MAX_SHADED_Z, MAX_SHADED_Z, color="0.92", linewidth=0, zorder=0)
    strip.axhline(0, color="0.5", linewidth=0.6, zorder=0)
    strip.set(ylabel="$z$", ylim=(-MIN_Z_AXIS_LIMIT, MIN_Z_AXIS_LIMIT))
    strip.yaxis.set_major_locator(MaxNLocator(2, steps=(1, 2, 5, 10)))
    strip.tick_params(axis="y", labelsize=SMALL_FONT_SIZE)
    return strip


MAX_LEGEND_COLUMNS, MAX_LEGEND_LETTERS = 5, 110  # for a legend as wide as a page
ZERO_ARROW = MarkerPath([(0, 1), (0, -1), (-0.5, -0.2), (0, -1), (0.5, -0.2)], [1, 2, 1, 2, 2])
ZERO_STYLE: dict[str, Any] = {"marker": ZERO_ARROW, "markersize": 6, "markerfacecolor": "none", "gid": NO_LEGEND_GID}
ZERO_MARKER_HEIGHT_FRACTION = 0.07  # fraction of the axis
ZERO_BAR_END_TOL = 1e-6  # relative to the mean: lower ends of error bars that count as 0
LEGEND_ROW_HEIGHT, DEFINITION_LINE_HEIGHT = 0.16, 0.12  # inches
MAX_HEADING_LINE_LETTERS, MAX_NOTE_LINE_LETTERS = 100, 118  # per line, for a figure as wide as a page
PANEL_LETTER_WIDTH, MIN_TITLE_ROOM = 6, 16  # letters: width of "(a)", and room for "(a)" and a title
MAX_STACKED_PANELS, COLUMN_PANEL_HEIGHT = 3, 1.9  # limits a row that becomes a column: panels, inches each
GUIDE_STYLE: dict[str, Any] = {"color": "0.5", "linestyle": ":", "linewidth": 0.8, "zorder": 0, "gid": NO_LEGEND_GID}
GUIDE_TEXT_STYLE: dict[str, Any] = {"fontsize": SMALL_FONT_SIZE, "color": "0.4", "textcoords": "offset points"}


def select_with_dense_theory(simulation: xr.Dataset, theory: xr.Dataset, x: str, **chosen: Any) -> Results:
    """Select values on some axes of results, and add theory on a dense grid along x."""
    return combine_with_lines(simulation.sel(chosen), theory.sel(chosen), solve_dense_theory(theory, x, **chosen))


def combine_with_lines(simulation: xr.Dataset, theory: xr.Dataset, lines: xr.Dataset) -> Results:
    """Combine simulation, theory and dense lines of theory into results."""
    return replace(as_results(simulation, theory), lines=lines)


def solve_dense_theory(theory: xr.Dataset, x: str, **chosen: Any) -> xr.Dataset:
    """Solve theory on a dense grid along x, for all positions on its other axes.

    Theory that cannot be solved on a dense grid is returned unchanged. `chosen` selects values of other axes: a list
    of values keeps the axis.
    """
    from theory import smooth  # lazy import: live charts do not need it

    theory = theory.sel(chosen)
    if theory.sizes.get(x, 1) < 2:
        return theory
    lines = smooth(modify_scenario(theory, **chosen), x, own_theory=theory)
    if lines is None:
        return theory
    thinned_axes = [
        axis for axis in series.get_chart_axes(lines) if axis != x and lines.sizes[axis] != theory.sizes.get(axis, 1)
    ]
    lines = lines.sel({axis: theory[axis].values for axis in thinned_axes})  # the dataset may hold only part of a sweep
    return lines.expand_dims([dim for dim in theory.dims if dim not in lines.dims])


def modify_scenario(theory: xr.Dataset, **keys: Any) -> Any:
    """Return the scenario of a dataset with some keys changed, or removed if the value is None."""
    scenario = scenario_from_dataset(theory)
    config = {**scenario.config(), **keys}
    return type(scenario)(**{name: value for name, value in config.items() if value is not None})


def make_figure(
    height: float, rows: int = 1, columns: int = 1, width: float = PAGE_WIDTH, **grid: Any
) -> tuple[Figure, Any]:
    """Create a figure of this size (in inches) with a grid of panels, and return both.

    In a one-column style (`pre`) a row of few panels becomes a column of panels.
    """
    if rows == 1 and is_drawn_as_column(columns) and grid.get("squeeze") is not False:
        grid.pop("width_ratios", None)
        rows, columns, width, height = columns, 1, COLUMN_WIDTH, 0.8 + COLUMN_PANEL_HEIGHT * columns
    figure = make_blank_figure(width, height)
    return figure, figure.subplots(rows, columns, **grid)


def is_drawn_as_column(num_panels: int) -> bool:
    """Return True if this number of panels is drawn as one column in the current style."""
    return get_medium().is_one_column and num_panels <= MAX_STACKED_PANELS


def make_blank_figure(width: float, height: float) -> Figure:
    """Create an empty figure of this size (in inches), enlarged for slides."""
    taller = STRIP_FIGURE_HEIGHT_FACTOR if DRAWING_OPTIONS.get().has_residual_strips else 1.0
    return Figure(figsize=(get_medium().size_factor * width, get_medium().size_factor * taller * height))


def draw_panel(
    ax: Axes,
    results: Results,
    x: str,
    y: str | Mapping[str, str],
    colour: str = "",
    *,
    label: str = "",
    log: str = "",
    dashes: bool = False,
    palette: Sequence[Any] = CURVE_COLOURS,
) -> list[Line2D]:
    """Draw a variable against x: theory as lines, simulation as points, and axis labels.

    Parameters
    ----------
    ax, results
        A panel, and results with these axes. Their `lines` are theory on a dense grid (`solve_dense_theory`).
    x, y
        An axis, and a variable or several variables with their labels.
    colour
        The axis that is distinguished by colour. Several variables are always distinguished by colour.
    label
        The label of the vertical axis, by default the symbol of the variable.
    log
        The logarithmic axes: "x", "y" or "xy". Values that are not positive are omitted.
    dashes
        True to distinguish the lines by dashes as well.
    palette
        The colours.

    Returns
    -------
    list of Line2D
        A legend handle for each colour.

    Examples
    --------
    >>> import statmech
    >>> swept = statmech.run(statmech.Scenario(rule=["hebb", "adatron"], N=50, t=[1, 2], seeds=4))
    >>> ax = Figure().subplots()
    >>> [key.get_label() for key in draw_panel(ax, swept, "t", "eps_g", "rule")], ax.get_ylabel()
    (['Hebbian', 'AdaTron'], '$\\\\epsilon_g$')
    """
    variables, keys = results.scenario.variables, []
    curves = [_make_single_curve(part, name, text, x) for text, name, part in _iterate_curves(results, y, colour)]
    for index, curve in enumerate(theory_lines.round_line(curve, log, x) for curve in curves):
        color, dash = palette[index % len(palette)], CURVE_DASHES[index % len(CURVE_DASHES)]
        points = get_curve_style(index) | {"color": color}
        line = {"color": color, "linestyle": dash if dashes else "-"}
        draw_curve(ax, curve, CurveStyle(points, line, {"colour": color, "dashes": dash}), log)
        has_theory = curve.theory is not None and bool(np.isfinite(curve.theory).any())
        key_style = {"markerfacecolor": "white", "linestyle": "none"} | points | (line if has_theory else {})
        keys.append(Line2D([], [], label=curve.label, **key_style))
    ax.set_xlabel(labels.axis_label(results.scenario, [x]))
    ax.set_ylabel(label or (variables[y].symbol if isinstance(y, str) and y in variables else ""))
    set_log_axes(ax, log)
    return keys


def make_points_handle(label: str = "", **style: Any) -> ErrorbarContainer:
    """Return a legend handle of points with error bars."""
    style = {"color": THEORY_COLOUR, "marker": "o", "linestyle": "none", "markerfacecolor": "white", **style}
    bars = LineCollection([], colors=style["color"], linewidths=1.2)
    return ErrorbarContainer((Line2D([], [], **style), (), (bars,)), has_yerr=True, label=label)


def make_line_handle(label: str, **style: Any) -> Line2D:
    """Return a legend handle of a line or a marker, in grey unless it has a colour."""
    return Line2D([], [], **{"color": THEORY_COLOUR, "label": label, **style})


def make_curve_handle(index: int, text: str, **style: Any) -> Line2D:
    """Return a legend handle of the index-th curve: its line, and the marker of its points."""
    return Line2D([], [], **{**get_curve_style(index), "markerfacecolor": "white", "label": text, **style})


def _iterate_curves(results: Results, y: str | Mapping[str, str], colour: str) -> Iterator[tuple[str, str, Results]]:
    """Yield the label, the variable name and the results of each curve."""
    labels_by_name = {y: ""} if isinstance(y, str) else y
    axes = (colour,) if colour else ()
    label = labels.make_value_labeller(results.scenario)
    for name, own_label in labels_by_name.items():
        for text, position in series.iterate_positions(results.either, axes, label):
            yield own_label or text, name, series.select_position(results, position)


def _make_single_curve(results: Results, name: str, label: str, x: str) -> series.Curve:
    """Return the curve of one variable along x, if every other axis has length 1."""
    parts = (results.simulation, results.theory, results.lines)
    single = {dim for part in parts if part is not None for dim, size in part.sizes.items() if size == 1}
    results = series.select_position(results, {str(dim): 0 for dim in single - {x, "seed"}})
    return series.make_curve(results, name, x, label)


def draw_curve(
    ax: Axes,
    curve: series.Curve,
    style: CurveStyle,
    log: str,
    filled_mask: np.ndarray | None = None,
) -> None:
    """Draw a curve: theory as a line, the band of one run, and the simulation as points.

    `log` names the logarithmic axes, and `filled_mask` is a mask of filled points. A curve with many points is thinned
    to points that are equally spaced on the axis.
    """
    all_x, is_joined = curve.x, style.points.get("linestyle", "none") != "none"
    if "y" in log and curve.mean is not None:
        _mark_zeros_at_foot(ax, curve, style.points["color"], is_joined)
    full_curve = _drop_nonpositive(curve, log)
    curve = series.thin_curve(full_curve, "x" in log, *([MAX_DRAWN_MARKERS] if is_joined else []))
    if filled_mask is not None and curve.x.size < all_x.size:
        filled_mask = np.asarray(filled_mask)[np.isin(all_x, curve.x)]
    if curve.theory is not None and style.line is not None:
        theory_x = all_x if curve.theory_x is None else curve.theory_x
        draw_theory_line(ax, theory_x, curve.theory, **style.line)
    if curve.band is not None and curve.theory is not None:
        low, high = curve.band
        draw_run_band(
            ax, curve.theory_x, series.clip_band_for_log(low, curve.theory) if "y" in log else low, high, **style.band
        )
    if curve.mean is not None:
        error = extend_bars_ending_at_zero(curve) if "y" in log else curve.error
        if is_joined and full_curve.mean is not None:  # through all points, also those without a marker
            ax.plot(full_curve.x, full_curve.mean, **JOINING_LINE_STYLE)
        draw_mean_points(ax, curve.x, curve.mean, error, style.points, filled_mask)
        if DRAWING_OPTIONS.get().has_residual_strips:
            draw_residual_strip(ax, curve, style.points)


def extend_bars_ending_at_zero(curve: series.Curve) -> np.ndarray | None:
    """Return the standard errors with bars that reach the foot of a logarithmic axis if they end at 0.

    The end of such a bar is a rounding error, which would extend the axis by many decades.
    """
    if curve.error is None or curve.mean is None:
        return curve.error
    ends_at_zero = np.abs(curve.error - curve.mean) < ZERO_BAR_END_TOL * curve.mean
    return np.where(ends_at_zero, curve.mean * (1 + ZERO_BAR_END_TOL), curve.error)


def _drop_nonpositive(curve: series.Curve, log: str) -> series.Curve:
    """Replace values that logarithmic axes cannot show by NaN."""

    def positive(values: np.ndarray | None, axis: str) -> np.ndarray | None:
        return values if values is None or axis not in log else np.where(values > 0, values, np.nan)

    x = positive(curve.x, "x")
    assert x is not None
    theory_x, theory, mean = positive(curve.theory_x, "x"), positive(curve.theory, "y"), positive(curve.mean, "y")
    return replace(curve, x=x, theory_x=theory_x, theory=theory, mean=mean)


def set_log_axes(ax: Axes, log: str) -> None:
    """Make axes logarithmic, with legible ticks between the current limits."""
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if name in log:
            ax.set(**{f"{name}scale": "log"})
            if (
                axis.get_view_interval()[0] <= 0
            ):  # no value is positive, for example if no run classified all examples correctly
                ax.set(**{f"{name}lim": (1, 10)})
            set_log_ticks(axis)


def draw_guide(*panels: Axes, x: float | None = None, y: float | None = None, text: str = "", **style: Any) -> None:
    """Draw a dotted line at a value of x or y in each panel, and label it in the first panel."""
    for ax in panels:
        _ = ax.axvline(x, **GUIDE_STYLE | style) if x is not None else ax.axhline(y or 0.0, **GUIDE_STYLE | style)
    ax = panels[0]
    if x is not None:
        ax.annotate(text, (x, 0), (3, 3), xycoords=ax.get_xaxis_transform(), **GUIDE_TEXT_STYLE)
    else:
        ax.annotate(text, (1, y or 0.0), (2, 0), xycoords=ax.get_yaxis_transform(), va="center", **GUIDE_TEXT_STYLE)


def annotate_line_end(ax: Axes, x: float, y: float, text: str) -> None:
    """Write the text of a guide to the right of its end."""
    ax.annotate(text, (x, y), (2, 0), va="center", **GUIDE_TEXT_STYLE)


def _mark_zeros_at_foot(ax: Axes, curve: Curve, colour: Any, is_joined: bool) -> None:
    """Mark means that are 0 by arrows above a logarithmic axis, and join the last point to the first arrow.

    If points are joined, neighbouring zeros share one arrow, at the first zero.
    """
    zeros, height, foot = np.flatnonzero(curve.mean == 0), ZERO_MARKER_HEIGHT_FRACTION, ax.get_xaxis_transform()
    zeros = zeros[np.diff(zeros, prepend=-2) > 1] if is_joined else zeros
    for x in curve.x[zeros]:
        ax.plot(x, height, transform=foot, color=colour, **ZERO_STYLE)[0].set_in_layout(False)
    if is_joined and curve.mean is not None and zeros.size and zeros[0]:
        ends = (curve.x[zeros[0]], height), (curve.x[zeros[0] - 1], curve.mean[zeros[0] - 1])
        line = JOINING_LINE_STYLE | {"arrowstyle": "-", "shrinkA": 0, "shrinkB": 3}
        ax.annotate("", *ends, foot, "data", line, zorder=1).set_in_layout(False)


def keep_outer_labels(panels: Sequence[Axes], axes: str = "y") -> None:
    """Keep the y label of the first panel in a row, and the x label of the last panel in a column.

    Panels with other labels keep them. All x labels are kept if `axes` does not contain "x".

    All panels must have a cell of a grid.
    """
    # also of panels with strips
    specs = [spec.get_topmost_subplotspec() for ax in panels if (spec := ax.get_subplotspec())]
    original_labels = [(ax.get_xlabel(), ax.get_ylabel()) for ax in panels]
    for (first, first_spec, first_labels), (second, second_spec, second_labels) in combinations(
        zip(panels, specs, original_labels, strict=True), 2
    ):
        in_one_row = first_spec.rowspan == second_spec.rowspan
        in_one_column = first_spec.colspan == second_spec.colspan
        if in_one_row and first_labels[1] == second_labels[1]:
            second.set_ylabel("")
        if "x" in axes and in_one_column and first_labels[0] == second_labels[0]:
            first.set_xlabel("")


def add_panel_letters(*panels: Axes) -> None:
    """Write (a), (b), ... above each panel on the left, joined to its title if space is short."""
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", panels, strict=False):
        left, title = ax.get_title(loc="left"), ax.get_title()
        room = _get_width_in_letters(ax) - max(map(len, title.replace("$", "").split("\n")))
        if title and room < MIN_TITLE_ROOM:
            ax.set_title("")
            left = title if room > PANEL_LETTER_WIDTH else ",\n".join(title.rsplit(", ", 1))
        ax.set_title(f"({letter}) {left}".strip(), loc="left")


def _get_width_in_letters(ax: Axes) -> float:
    """Return the width of a panel, in letters."""
    spec = ax.get_subplotspec()
    figure: Any = ax.get_figure(root=True)
    return MAX_HEADING_LINE_LETTERS * figure.get_figwidth() / PAGE_WIDTH / (spec.get_gridspec().ncols if spec else 1)


def add_title_and_legend(
    figure: Figure,
    results: Results | xr.Dataset,
    legend_handles: list[Any],
    *title_keys: str,
    columns: int = 0,
    note: str = "",
) -> Figure:
    """Write the common title of all panels above them, and the legend below.

    Parameters
    ----------
    figure, results
        A figure, and the results that it shows. Their size and number of runs are part of the title.
    legend_handles
        Handles of the legend.
    title_keys
        Keys of a single value that begin the title, or texts of several words. Missing keys are skipped.
    columns
        The number of columns of the legend, by default as many as fit.
    note
        The title of the legend.

    Returns
    -------
    Figure
        The figure.
    """
    dataset = results.either if isinstance(results, Results) else results
    texts = [_describe_key_value(results, dataset[name]) if name in dataset.coords else name for name in title_keys]
    texts = [text for text in texts if text not in title_keys or " " in text]
    texts.append(labels.describe_size_and_runs(dataset))
    set_heading(figure, texts)
    texts += [str(key.get_label()) for key in legend_handles]
    draw_legend_below(figure, legend_handles, columns, note, _define_symbols(figure, results, texts, note))
    return figure


def _define_symbols(figure: Figure, results: Results | xr.Dataset, texts: Sequence[str], note: str) -> list[str]:
    """Define the symbols in the texts and panels of a figure, except those that its note defines."""
    panels = get_panels(figure)
    texts = [*texts, note, *(_get_panel_title(ax) for ax in panels)]
    axis_labels = [label for ax in panels for label in (ax.get_xlabel(), ax.get_ylabel())]
    definitions = labels.define_drawn_symbols(as_results(results).scenario, texts, axis_labels)
    return [text for text in definitions if text.partition(":")[0] + ":" not in note]


def get_relative_letters_per_line(figure: Figure) -> float:
    """Return the ratio of letters per line in a figure to letters per line on a page."""
    size = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points()
    return float(figure.get_size_inches()[0] / PAGE_WIDTH * STYLE_SETTINGS["legend.fontsize"] / size)


def set_heading(figure: Figure, texts: list[str]) -> None:
    """Write texts above all panels, separated by commas and wrapped to the width of the figure."""
    figure.suptitle(wrap_texts(figure, texts, ", "))


def wrap_texts(
    figure: Figure, texts: Sequence[str], separator: str, max_letters: int = MAX_HEADING_LINE_LETTERS
) -> str:
    """Join texts with a separator, wrapped to lines of nearly equal length in a figure.

    A line as wide as a page has `max_letters`.
    """
    given_texts, width = [*filter(None, texts)], max_letters * get_relative_letters_per_line(figure)
    lines = _distribute_texts(given_texts, separator, width)
    shortest = len(labels.plain_from_latex(separator.join(given_texts))) // max(len(lines), 1)
    widths = (narrower for narrower in range(shortest, int(width)))
    balanced = (_distribute_texts(given_texts, separator, narrower) for narrower in widths)
    lines = next((part for part in balanced if len(part) == len(lines)), lines)
    # a text may be wider than the figure
    parts_by_line = [re.findall(r"(?:\$[^$]*\$|[^ $])+", line) for line in lines]
    return (separator.rstrip() + "\n").join("\n".join(_distribute_texts(line, " ", width)) for line in parts_by_line)


def _distribute_texts(texts: Sequence[str], separator: str, width: float) -> list[str]:
    """Join texts to lines of fewer letters than a width, if each text is shorter."""
    lines: list[str] = []
    for text in texts:
        joined = lines[-1] + separator + text if lines else text
        if lines and len(labels.plain_from_latex(joined)) < width:
            lines[-1] = joined
        else:
            lines.append(text)
    return lines


def reserve_definition_lines(figure: Figure, definitions: Sequence[str], note: str = "") -> str:
    """Return a note with definitions of symbols, wrapped to the width of a figure.

    The figure is enlarged by the height of these lines, except for the first line of a note.
    """
    text = wrap_texts(figure, [*filter(None, note.split("; ")), *definitions], "; ", MAX_NOTE_LINE_LETTERS)
    num_lines = len(text.splitlines()) - bool(note)
    figure.set_figheight(figure.get_figheight() + get_medium().size_factor * DEFINITION_LINE_HEIGHT * num_lines)
    return text


def draw_legend_below(
    figure: Figure, legend_handles: Sequence[Any], columns: int = 0, note: str = "", definitions: Sequence[str] = ()
) -> None:
    """Draw the legend below all panels, in at most `columns` columns (0: as many as fit).

    The note and the definitions of symbols are written above its entries.
    """
    title = reserve_definition_lines(figure, definitions, note)
    max_letters = max((len(labels.plain_from_latex(str(key.get_label()))) for key in legend_handles), default=0)
    max_columns = max(
        1, min(MAX_LEGEND_COLUMNS, int(MAX_LEGEND_LETTERS * get_relative_letters_per_line(figure)) // (max_letters + 6))
    )
    column_count = (
        min(columns or max_columns, len(legend_handles) or 1)
        if get_relative_letters_per_line(figure) >= 1
        else max_columns
    )
    rows = _arrange_in_rows(legend_handles, column_count)
    if get_medium().is_one_column:
        figure.set_figheight(figure.get_figheight() + LEGEND_ROW_HEIGHT * len(rows))
    legend = figure.legend(
        handles=[key for column in zip(*rows, strict=True) for key in column],  # a legend is filled by columns
        loc="outside lower center",
        ncols=max(len(rows[0]), 1),
        title=title or None,
    )
    legend.get_title().set(color=NOTE_COLOUR, multialignment="center")


def _arrange_in_rows(legend_handles: Sequence[Any], max_columns: int) -> list[list[Any]]:
    """Arrange the entries of a legend in rows of one length, lines without points after the others.

    These lines begin a row of their own if this needs no longer rows. Short rows end with empty entries.
    """
    groups = [[key for key in legend_handles if _is_grey_line(key) is is_grey] for is_grey in (False, True)]
    num_rows = -(-len(legend_handles) // max_columns) or 1
    columns = -(-len(legend_handles) // num_rows) or 1
    if num_rows == 1 or sum(-(-len(group) // columns) for group in groups) > num_rows:
        groups = [[*groups[0], *groups[1]]]
    rows = [group[first : first + columns] for group in groups for first in range(0, len(group), columns)] or [[]]
    return [row + [_make_empty_handle() for _ in range(columns - len(row))] if len(rows) > 1 else row for row in rows]


def _is_grey_line(legend_handle: Any) -> bool:
    """Return True for a legend handle of a line in black or grey without a marker, such as a guide."""
    if not isinstance(legend_handle, Line2D):
        return False
    return legend_handle.get_marker() in ("", "None", None) and len(set(to_rgb(legend_handle.get_color()))) == 1


def _make_empty_handle() -> Line2D:
    """Return a legend handle that shows nothing."""
    return Line2D([], [], linestyle="none", label=" ")


def _describe_key_value(results: Results | xr.Dataset, value: xr.DataArray) -> str:
    """Return a key with its single value, such as "$K$ = 3" or "logistic loss"."""
    return labels.format_key_and_value(as_results(results).scenario, str(value.name), value.item())


POINTS_NOTE, BARS_NOTE = "points: simulation", " (mean, standard error)"
LINES_NOTE = "lines: theory"
ERROR_BARS_NOTE, FOLD_BARS_NOTE = "bars: standard errors", "bars: standard errors over folds"
NOTE_COLOUR = "0.35"
INTEGER_AXIS_LABELS = ("step $", "epochs", "updates", "units", "students")  # label fragments that identify integer axes
POINT_KEYWORDS, LINE_KEYWORDS = ("simulation", "measured", "learners"), ("theory", "equations")  # legend needs no note


def finish_figure(
    figure: Figure, results: Results, points: str | None = None, lines: str | None = None, *, with_heading: bool = True
) -> Figure:
    """Complete a figure with panel letters, N and the number of seeds, and a note on points and lines.

    Parameters
    ----------
    figure, results
        A figure, and the results that it shows.
    points, lines
        Sentences of the caption on points and lines, "" if they are not means over runs and theory.
    with_heading
        False for results of several sizes, which are part of the legend.

    Returns
    -------
    Figure
        The figure.
    """
    figure.set_gid(DRAWING_OPTIONS.get().medium)
    panels = get_panels(figure)
    if len(panels) > 1 and not any(_get_panel_title(ax).startswith("(") for ax in panels):
        add_panel_letters(*panels)
    if with_heading and not (figure.get_suptitle() or any("seed" in ax.get_title() for ax in panels)):
        set_heading(figure, [labels.describe_size_and_runs(results.either)])
    if results.simulation is not None and (points, lines) != ("", ""):
        _write_legend_note(figure, results, points, lines)
    move_x_labels_below_strips(figure)
    for ax in panels:
        limits = ax.get_ylim()
        if ax.get_yscale() == "linear" and (wider := widen_equal_limits(min(limits), max(limits))) != (
            min(limits),
            max(limits),
        ):
            ax.set_ylim(*wider)
        _set_round_ticks(ax)
    return figure


def _set_round_ticks(ax: Axes) -> None:
    """Set ticks of linear axes at multiples of 1, 2 or 5, and at integers for steps, epochs and units."""
    for axis in (ax.xaxis, ax.yaxis):
        if isinstance(axis.get_major_locator(), AutoLocator):
            is_integer = any(label in axis.get_label_text() for label in INTEGER_AXIS_LABELS)
            axis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 5, 10), integer=is_integer, min_n_ticks=3))


def get_panels(figure: Figure) -> list[Axes]:
    """Return the panels of a figure, without colour bars, residual strips and hidden axes."""
    return [ax for ax in figure.axes if ax.axison and ax.get_label() != "<colorbar>" and not is_residual_strip(ax)]


def _explain_marks(results: Results, points: str | None, lines: str | None, legend_text: str) -> list[str]:
    """Explain points, bars and lines in short notes, unless the legend (`legend_text`) already does.

    For a study on data only the error bars are explained.
    """
    if results.theory is None:
        return (
            [FOLD_BARS_NOTE] if points is None and "fold" in results.either.dims and "error" not in legend_text else []
        )
    barred = points is None or "standard error" in points
    bars = barred and results.scenario.seeds > 1 and "standard error" not in legend_text
    means = points is None or "means" in points
    if any(keyword in legend_text for keyword in POINT_KEYWORDS):
        texts = [ERROR_BARS_NOTE] * bars
    else:
        texts = [POINTS_NOTE + BARS_NOTE] if bars and means else [POINTS_NOTE, *[ERROR_BARS_NOTE] * bars]
    return texts + [LINES_NOTE] * (lines != "" and not any(keyword in legend_text for keyword in LINE_KEYWORDS))


def _get_panel_title(ax: Axes) -> str:
    return ax.get_title(loc="left") + ax.get_title()


def _write_legend_note(figure: Figure, results: Results, points: str | None, lines: str | None) -> None:
    """Write notes on points, bars and lines as the title of the lower legend."""
    legends = [legend for legend in (*figure.legends, *(ax.get_legend() for ax in figure.axes)) if legend is not None]
    legend_text = " ".join(text.get_text() for legend in legends for text in legend.get_texts())
    lower_legend: Any = figure.legends[-1] if figure.legends else figure.legend(handles=[], loc="outside lower center")
    existing_note = lower_legend.get_title().get_text()
    texts = _explain_marks(results, points, lines, legend_text + existing_note)
    texts += re.split(r"; |;\n", re.sub(r"(?<!;)\n", " ", existing_note))  # a long text has several lines
    lower_legend.set_title(wrap_texts(figure, texts, "; ", MAX_NOTE_LINE_LETTERS))
    lower_legend.get_title().set(color=NOTE_COLOUR, multialignment="center")


def distribute_panels(panel_count: int, max_columns: int) -> list[int]:
    """Distribute panels over rows of nearly equal length, with at most `max_columns` columns.

    >>> distribute_panels(4, 3), distribute_panels(5, 3), distribute_panels(7, 3)
    ([2, 2], [3, 2], [3, 2, 2])
    """
    rows = -(-panel_count // max_columns)
    return [panel_count // rows + (row < panel_count % rows) for row in range(rows)]


def make_panel_grid(
    panel_count: int, max_columns: int, height: float, width: float, title_height: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """Create a figure with a grid of panels, and return the figure and its panels row by row.

    All lengths are in inches. `title_height` is the height of title and legend.
    """
    rows = distribute_panels(panel_count, max_columns)
    figure = make_blank_figure(width, title_height + height * len(rows))
    columns = math.lcm(*rows)
    grid = figure.add_gridspec(len(rows), columns)
    cells = [
        (row, column * (columns // count), columns // count)
        for row, count in enumerate(rows)
        for column in range(count)
    ]
    return figure, [figure.add_subplot(grid[row, first : first + span]) for row, first, span in cells]
