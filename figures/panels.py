"""Building blocks of figures, from dense theory lines to the legend.

`along` solves theory on a dense grid, `page` creates a figure, `panel` draws points over lines, `guide` marks a value,
and `finish` adds title and legend. A panel shows one variable along one axis. Theory is drawn as lines, with bands that
contain one run, and means of the simulation as points with their standard errors. Each position on another axis has a
colour and a marker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D

from figures import labels, series, stated_keys
from figures.residuals import STRIP_FIGURE_HEIGHT_FACTOR, draw_residual_strip
from figures.style import (
    COLUMN_WIDTH,
    CURVE_COLOURS,
    CURVE_DASHES,
    DRAWING_OPTIONS,
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
    nested_marker_size,
    set_log_ticks,
)
from statmech.results.dataset import scenario_from_dataset
from statmech.results.results import Results, as_results

RUN_CONVERGED_VARIABLE = "converged"  # variable that only some kinds of scenarios have
SHARED_THEORY_LINE_STYLE: dict[str, Any] = {"color": THEORY_COLOUR}  # one line of theory for points of all colours
MAX_LEGEND_COLUMNS, MAX_LEGEND_LETTERS = 5, 110  # for a legend as wide as a page
ZERO_MARKER_STYLE: dict[str, Any] = {
    "marker": "v",
    "markersize": 3,
    "linestyle": "none",
    "clip_on": False,
    "gid": NO_LEGEND_GID,
}
ZERO_MARKER_HEIGHT_FRACTION = 0.015  # fraction of the axis
LEGEND_ROW_HEIGHT = 0.16  # inches
MAX_HEADING_LINE_LETTERS = 100  # per line, for a figure as wide as a page
PANEL_LETTER_WIDTH, MIN_TITLE_ROOM = 6, 16  # letters: width of "(a)", and room for "(a)" and a title
MAX_STACKED_PANELS, COLUMN_PANEL_HEIGHT = 3, 1.9  # limits a row that becomes a column: panels, inches each
GUIDE_STYLE: dict[str, Any] = {"color": "0.5", "linestyle": ":", "linewidth": 0.8, "zorder": 0, "gid": NO_LEGEND_GID}


class CurveStyle(NamedTuple):
    """Styles of a curve's points, of its line (None: drawn with another curve) and of its band."""

    points: dict[str, Any]
    line: dict[str, Any] | None
    band: dict[str, Any]


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
    if "control" in theory:
        from theory.control.stored_controls import restore_best_controls  # lazy import: it needs JAX

        restore_best_controls(theory)
    lines = smooth(modify_scenario(theory, **chosen), x)
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
    axes: Any,
    results: Results,
    x: str,
    y: str | Mapping[str, str],
    colour: str | tuple[str, ...] = (),
    *,
    split: str = "",
    label: str = "",
    log: str = "",
    dashes: bool = False,
    fill_converged: bool = False,
    nested: bool = False,
    palette: Sequence[str] = CURVE_COLOURS,
    **point_style: Any,
) -> list[Line2D]:
    """Draw a variable against x: theory as lines, simulation as points, and axis labels.

    Parameters
    ----------
    axes
        One panel, or with `split` one panel per position on that axis, titled by the position.
    results
        Results with these axes. Their `lines` are theory on a dense grid (`along`).
    x, y
        An axis, and a variable or several variables with their labels.
    colour
        The axes that are distinguished by colour. Several variables are always distinguished by colour.
    split
        The axis whose positions have a panel each.
    label
        The label of the vertical axis, by default the symbol of the variable.
    log
        The logarithmic axes: "x", "y" or "xy". Values that are not positive are omitted.
    dashes
        True to distinguish the lines by dashes as well.
    fill_converged
        True to fill points if all their runs converged.
    nested
        True to draw each curve with smaller markers than the previous one, because points overlap.
    palette
        The colours.
    point_style
        Additional properties of the points.

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
    panels, variables = list(np.ravel(axes)), results.scenario.variables
    titles = list(
        series.iterate_positions(
            results.either, [split] if split else [], labels.make_mathtext_labeller(results.scenario)
        )
    )
    ignores_colour = bool(colour) and series.is_ignored_by_theory(
        results, [colour] if isinstance(colour, str) else colour
    )
    bound = isinstance(y, str) and y in variables and variables[y].bound
    for ax, (title, position) in zip(panels, titles, strict=True):
        labelled_parts = list(_iterate_curves(series.select_position(results, position), y, colour))
        curves = [make_single_curve(part, name, text, x) for text, name, part in labelled_parts]
        sizes = [nested_marker_size(index, len(curves)) if nested else {} for index in range(len(curves))]
        styles = [
            make_curve_style(index, dashes, bool(bound), ignores_colour, palette, **point_style | size)
            for index, size in enumerate(sizes)
        ]
        for index, (curve, (_, _, part)) in enumerate(zip(curves, labelled_parts, strict=True)):
            draw_curve(ax, curve, styles[index], log, get_converged_mask(part.simulation) if fill_converged else None)
        ax.set_xlabel(labels.axis_label(results.scenario, [x]))
        ax.set_ylabel(label or (variables[y].symbol if isinstance(y, str) and y in variables else ""))
        set_log_axes(ax, log)
        if split:
            ax.set_title(title)
    keep_outer_labels(panels)
    keys = [make_legend_handle(curve, style) for curve, style in zip(curves, styles, strict=True)]
    ignores_colour &= any(curve.theory is not None for curve in curves)
    return (
        [*keys, Line2D([], [], **SHARED_THEORY_LINE_STYLE, label=r"theory, $N\to\infty$")] if ignores_colour else keys
    )


def make_curve_style(
    index: int,
    dashes: bool,
    bound: bool = False,
    has_shared_line: bool = False,
    palette: Sequence[str] = CURVE_COLOURS,
    **points: Any,
) -> CurveStyle:
    """Return the style of the index-th curve of a panel.

    Its line is grey if all curves share one line (`has_shared_line`).
    """
    colour_and_marker, dash = (
        {**get_curve_style(index), "color": palette[index % len(palette)]},
        CURVE_DASHES[index % len(CURVE_DASHES)],
    )
    line = {"color": colour_and_marker["color"], "linestyle": "--" if bound else dash if dashes else "-"}
    shared = SHARED_THEORY_LINE_STYLE if index == 0 else None
    return CurveStyle(
        {**colour_and_marker, **points},
        shared if has_shared_line else line,
        {"colour": colour_and_marker["color"], "dashes": dash},
    )


def make_legend_handle(curve: series.Curve, style: CurveStyle) -> Line2D:
    """Return the legend handle of a curve: the marker of its points and the line of its theory."""
    marker_style = {"markerfacecolor": "white", **style.points, "linestyle": "none", "label": curve.label}
    has_theory = curve.theory is not None and bool(np.isfinite(curve.theory).any())
    return Line2D(
        [],
        [],
        **marker_style | (style.line if has_theory and style.line and style.line != SHARED_THEORY_LINE_STYLE else {}),
    )


def _iterate_curves(
    results: Results, y: str | Mapping[str, str], colour: str | tuple[str, ...]
) -> Iterator[tuple[str, str, Results]]:
    """Yield the label, the variable name and the results of each curve."""
    labels_by_name = {y: ""} if isinstance(y, str) else y
    axes = (colour,) if isinstance(colour, str) else colour
    label = labels.make_mathtext_labeller(results.scenario)
    for name, own_label in labels_by_name.items():
        for text, position in series.iterate_positions(results.either, axes, label):
            yield own_label or text, name, series.select_position(results, position)


def make_single_curve(results: Results, name: str, label: str, x: str) -> series.Curve:
    """Return the curve of one variable along x, if every other axis has length 1."""
    parts = (results.simulation, results.theory, results.lines)
    single = {dim for part in parts if part is not None for dim, size in part.sizes.items() if size == 1}
    results = series.select_position(results, {str(dim): 0 for dim in single - {x, "seed"}})
    return series.make_curve(name, label, results.simulation, results.theory, results.lines, x=x)


def draw_curve(
    ax: Axes,
    curve: series.Curve,
    style: CurveStyle,
    log: str,
    filled_mask: np.ndarray | None = None,
    discrete: bool = False,
) -> None:
    """Draw a curve: theory as a line, the band of one run, and the simulation as points.

    `log` names the logarithmic axes, `filled_mask` is a mask of filled points, and `discrete` is True if x is a few
    integers. A curve with many points is thinned to points that are equally spaced on the axis.
    """
    all_x, curve = curve.x, series.thin_curve(_drop_nonpositive(curve, log), "x" in log)
    if filled_mask is not None and curve.x.size < all_x.size:
        filled_mask = np.asarray(filled_mask)[np.isin(all_x, curve.x)]
    if curve.theory is not None and style.line is not None:
        draw_theory_line(ax, curve.theory_x, curve.theory, discrete, **style.line)
    if curve.band is not None and curve.theory is not None:
        low, high = curve.band
        draw_run_band(
            ax, curve.theory_x, series.clip_band_for_log(low, curve.theory) if "y" in log else low, high, **style.band
        )
    if curve.mean is not None:
        draw_mean_points(ax, curve.x, curve.mean, curve.error, style.points, filled_mask)
        if DRAWING_OPTIONS.get().has_residual_strips:
            draw_residual_strip(ax, curve, style.points)


def _drop_nonpositive(curve: series.Curve, log: str) -> series.Curve:
    """Replace values that logarithmic axes cannot show by NaN."""

    def positive(values: np.ndarray | None, axis: str) -> np.ndarray | None:
        return values if values is None or axis not in log else np.where(values > 0, values, np.nan)

    x = positive(curve.x, "x")
    assert x is not None
    theory_x, theory, mean = positive(curve.theory_x, "x"), positive(curve.theory, "y"), positive(curve.mean, "y")
    return replace(curve, x=x, theory_x=theory_x, theory=theory, mean=mean)


def get_converged_mask(simulation: xr.Dataset | None) -> np.ndarray | None:
    """Return a mask along x that is True where all runs converged, or None if not recorded."""
    if simulation is None or RUN_CONVERGED_VARIABLE not in simulation:
        return None
    flags = simulation[RUN_CONVERGED_VARIABLE]
    return np.atleast_1d(
        flags.all([dim for dim in ("seed", *series.DIMS_AVERAGED_IN_FIGURES) if dim in flags.dims]).values
    )


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
    small: dict[str, Any] = {"fontsize": SMALL_FONT_SIZE, "color": "0.4", "textcoords": "offset points"}
    if x is not None:
        ax.annotate(text, (x, 0), (3, 3), xycoords=ax.get_xaxis_transform(), **small)
    else:
        ax.annotate(text, (1, y or 0.0), (2, 0), xycoords=ax.get_yaxis_transform(), va="center", **small)


def mark_zeros_at_foot(ax: Axes, x: Any, colour: Any, **style: Any) -> None:
    """Mark the positions of values that are 0 at the foot of a logarithmic axis."""
    for position in x:
        foot = ax.plot(
            position,
            ZERO_MARKER_HEIGHT_FRACTION,
            transform=ax.get_xaxis_transform(),
            **ZERO_MARKER_STYLE | {"color": colour} | style,
        )
        foot[0].set_in_layout(False)


def keep_outer_labels(panels: list[Axes]) -> None:
    """Keep the y label of the first panel in a row, or the x label of the last panel in a column."""
    specs = [
        spec.get_topmost_subplotspec() for ax in panels if (spec := ax.get_subplotspec())
    ]  # residual strips split the cell of a panel
    rows = {subplot.rowspan.start for subplot in specs}
    for first, second in pairwise(panels):
        if len(rows) > 1:
            first.set_xlabel("")
        else:
            second.set_ylabel("")


def add_panel_letters(*panels: Axes) -> None:
    """Write (a), (b), ... above each panel on the left, joined to its title if space is short."""
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", panels, strict=False):
        left, title = ax.get_title(loc="left"), ax.get_title()
        room = _get_width_in_letters(ax) - len(title.replace("$", ""))
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
        Keys of a single value that begin the title, or texts with an equals sign. Missing keys are skipped.
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
    texts = [text for text in texts if text not in title_keys or "=" in text]
    set_heading(figure, [*texts, labels.describe_size_and_runs(dataset)])
    draw_legend_below(figure, legend_handles, columns, note)
    return figure


def get_relative_letters_per_line(figure: Figure) -> float:
    """Return the ratio of letters per line in a figure to letters per line on a page."""
    size = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points()
    return float(figure.get_size_inches()[0] / PAGE_WIDTH * STYLE_SETTINGS["legend.fontsize"] / size)


def set_heading(figure: Figure, texts: list[str]) -> None:
    """Write texts above all panels, separated by commas and wrapped to the width of the figure."""
    figure.suptitle(wrap_texts(figure, texts, ", "))


def wrap_texts(figure: Figure, texts: Sequence[str], separator: str) -> str:
    """Join texts with a separator, wrapped to the width of a figure."""
    lines: list[str] = []
    for text in filter(None, texts):
        if lines and len(lines[-1]) + len(text) < MAX_HEADING_LINE_LETTERS * get_relative_letters_per_line(figure):
            lines[-1] += separator + text
        else:
            lines.append(text)
    return (separator.rstrip() + "\n").join(lines)


def draw_legend_below(figure: Figure, legend_handles: Sequence[Any], columns: int = 0, note: str = "") -> None:
    """Draw the legend below all panels, in at most `columns` columns (0: as many as fit)."""
    max_letters = max((len(labels.plain_from_latex(str(key.get_label()))) for key in legend_handles), default=0)
    max_columns = max(
        1, min(MAX_LEGEND_COLUMNS, int(MAX_LEGEND_LETTERS * get_relative_letters_per_line(figure)) // (max_letters + 6))
    )
    column_count = (
        min(columns or max_columns, len(legend_handles) or 1)
        if get_relative_letters_per_line(figure) >= 1
        else max_columns
    )
    if get_medium().is_one_column:
        figure.set_figheight(figure.get_figheight() + LEGEND_ROW_HEIGHT * -(-len(legend_handles) // column_count))
    figure.legend(
        handles=legend_handles,
        loc="outside lower center",
        ncols=column_count,
        title=note or None,
    )


def _describe_key_value(results: Results | xr.Dataset, value: xr.DataArray) -> str:
    """Return a key with its single value, such as "$K$ = 3" or "logistic loss"."""
    return stated_keys.format_key_and_value(as_results(results).scenario, str(value.name), value.item())
