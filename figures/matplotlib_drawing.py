"""Drawing with Matplotlib, for files and notebooks: described figures, rows of parameter combinations, and films.

Films: a GIF is saved with a published figure if its module defines `film`.

Rows: results without an axis of numbers have one row per parameter combination and one column per variable.
"""

from __future__ import annotations

import io
import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from PIL import Image

from figures import arrangement, curves, labels, legends, panels
from figures.arrangement import ArrangedResults
from figures.curves import Layout
from figures.description import DrawnCurve, DrawnLine, FigureDescription, LegendEntry, PanelDescription
from figures.panels import get_relative_letters_per_line, make_blank_figure, make_panel_grid, make_points_handle
from figures.published_figure import FilmFrames
from figures.style import (
    BAND_OPACITY,
    COLUMN_WIDTH,
    CURVE_COLOURS,
    NO_LEGEND_GID,
    PAGE_WIDTH,
    THEORY_COLOUR,
    apply_style,
)
from statmech.keys.figure_key import Composition
from statmech.results.comparison import find_unresolved_std_mask, predict_mean_and_std
from statmech.runtime import files

if TYPE_CHECKING:
    from statmech.results.results import Results

MAX_PANEL_COLUMNS, PANEL_HEIGHT, STACKED_PANEL_HEIGHT = 3, 2.0, 1.7  # heights in inches
MAX_COLUMNS_BY_PANEL_COUNT = {4: 2}  # four panels form a square
SINGLE_PANEL_HEIGHT, SINGLE_PANEL_WIDTH = 2.7, 5.6  # inches
TITLE_AND_LEGEND_HEIGHT = 0.9  # inches for title and legend
WIDTHS_BY_NAME = {"page": PAGE_WIDTH, "column": COLUMN_WIDTH, "wide column": 1.4 * COLUMN_WIDTH}
MAX_RIGHT_ENTRY_LETTERS = 32  # longer entries would leave too little width for the panel
MAX_TEXT_LINE_LETTERS = 125  # per line, for a figure as wide as a page
MAX_DASHED_LINES = 5  # dashes of more lines would hide each other
HIDDEN_LINE_TOL, MIN_HIDDEN_FRACTION = 0.006, 0.2  # fraction of the axis, half the width of a line; of the points
BAR_SHIFT, MAX_SHIFTED_CURVES = 0.012, 4  # shift of two curves, relative to the range of x
ZEROS_NOTE, ZEROS_ROOM = "arrows at the foot: 0", 0.12  # fraction of the axis
SINGLE_RUN_STYLE: dict[str, Any] = {"linewidth": 0.4, "alpha": 0.5, "gid": NO_LEGEND_GID}
NOUNS_BY_ENTRY_KIND = {"points": "points", "line": "lines"}  # bands have a note of their own


@apply_style
def draw_description(description: FigureDescription) -> Figure:
    """Draw a described figure, without panel letters.

    Parameters
    ----------
    description
        The panels, titles and legend.
    """
    figure, axes = _make_axes(description)
    for ax, panel in zip(axes, description.panels, strict=True):
        _draw_panel(ax, panel)
    is_single = len(axes) == 1
    stacked = panels.is_drawn_as_column(len(axes))
    _unify_limits(axes, description)
    if description.num_columns:
        _keep_outer_table_labels(axes, description.num_columns)
    elif stacked or description.shared_axes:
        panels.keep_outer_labels(axes, "xy" if stacked or "x" in description.shared_axes else "y")
    longest = max((len(entry.label) for entry in description.curve_entries), default=0)
    has_right_legend = is_single and not stacked and description.width is None and longest <= MAX_RIGHT_ENTRY_LETTERS
    draw_title(figure, description.title_texts, has_right_legend)
    draw_legend = draw_right_legend if has_right_legend else draw_lower_legend
    notes = (*description.notes, *([ZEROS_NOTE] if any(panel.hides_zeros for panel in description.panels) else []))
    curve_entries = [_enlarge_marker(entry, description.panels) for entry in description.curve_entries]
    draw_legend(figure, curve_entries, description.mark_entries, notes, description.definitions)
    return figure


def _make_axes(description: FigureDescription) -> tuple[Figure, list[Axes]]:
    """Create the panels: a table of rows and columns, or panels that fill the width."""
    count, columns = len(description.panels), description.num_columns
    if columns:
        figure = make_blank_figure(PAGE_WIDTH, TITLE_AND_LEGEND_HEIGHT + PANEL_HEIGHT * (count // columns))
        return figure, [*figure.subplots(count // columns, columns, squeeze=False).flat]
    is_single, stacked = count == 1, panels.is_drawn_as_column(count)
    usual_columns = description.max_columns or MAX_COLUMNS_BY_PANEL_COUNT.get(count, MAX_PANEL_COLUMNS)
    max_columns = 1 if stacked else usual_columns
    width = WIDTHS_BY_NAME.get(description.width or "", SINGLE_PANEL_WIDTH if is_single else PAGE_WIDTH)
    height = STACKED_PANEL_HEIGHT if stacked and not is_single else PANEL_HEIGHT
    if is_single:
        height = SINGLE_PANEL_HEIGHT - TITLE_AND_LEGEND_HEIGHT * (description.width is None)
    title_height = TITLE_AND_LEGEND_HEIGHT
    return make_panel_grid(count, max_columns, height, COLUMN_WIDTH if stacked else width, title_height)


def _draw_panel(ax: Axes, panel: PanelDescription) -> None:
    """Draw the curves, lines and marks of one panel, and label its axes."""
    ax.set(**{f"{axis}scale": "log" for axis in panel.log})
    x_values = {x for curve in panel.curves for x in curve.curve.x} if "x" in panel.log else set()
    if len(x_values) == 1 and (x := x_values.pop()) > 0:  # Matplotlib would choose two equal limits
        ax.set_xlim(x / 2, 2 * x)
    for curve in _separate_overlapping_bars(panel):
        _draw_curve(ax, curve, panel.log)
    for line in panel.lines:
        _draw_line(ax, line)
    for mark in panel.marks:
        ax.plot(mark.x, mark.y, **mark.style)
    if panel.x_ticks is not None:
        ax.set_xticks(*(part for part in panel.x_ticks if part is not None))
    if panel.hides_zeros:  # room for their arrows below the points
        foot, top = ax.get_ylim()
        ax.set_ylim(foot * (foot / top) ** ZEROS_ROOM)
    for axis, (low, high) in panel.limits.items():
        ax.set(**{f"{axis}lim": (low, high)})
    panels.set_log_axes(ax, panel.log)
    _draw_hidden_lines(ax, panel)
    ax.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)


def _separate_overlapping_bars(panel: PanelDescription) -> Sequence[DrawnCurve]:
    """Shift the points of two curves without theory along x if half the pairs lie within an error bar.

    Without lines that join points, up to four curves are shifted.
    """
    parts: Any = [(curve.curve.x, curve.curve.mean, curve.curve.error) for curve in panel.curves]
    is_measured = [curve.curve.theory is None and curve.curve.error is not None for curve in panel.curves]
    is_joined = any(curve.style.points.get("linestyle", "none") != "none" for curve in panel.curves)
    if not (2 <= len(parts) <= (2 if is_joined else MAX_SHIFTED_CURVES) and all(is_measured)):
        return panel.curves
    (x, *_), count = parts[0], len(parts)
    is_drawable = np.isfinite(x).any() and ("x" not in panel.log or np.nanmin(x) > 0)
    if not (is_drawable and all(np.array_equal(part[0], x) for part in parts)):
        return panel.curves
    means, errors = (np.array([part[index] for part in parts]) for index in (1, 2))
    overlaps = [abs(means[i] - means[j]) < errors[[i, j]].max(0) for i, j in itertools.combinations(range(count), 2)]
    if np.mean(overlaps) < 1 / 2:
        return panel.curves
    u = np.log(x) if "x" in panel.log else x
    shifts = BAR_SHIFT * count / 2 * np.linspace(-1, 1, count) * (np.nanmax(u) - np.nanmin(u))
    positions = [np.exp(u + shift) if "x" in panel.log else u + shift for shift in shifts]
    pairs = zip(panel.curves, positions, strict=True)
    return [replace(curve, curve=replace(curve.curve, x=part)) for curve, part in pairs]


def _draw_curve(ax: Axes, drawn_curve: DrawnCurve, log: str) -> None:
    style = drawn_curve.style
    if drawn_curve.marker_scale != 1:
        size = mpl.rcParams["lines.markersize"] * drawn_curve.marker_scale
        style = panels.CurveStyle(style.points | {"markersize": size}, style.line, style.band)
    thinned = curves.thin_curve(replace(drawn_curve.curve, error=drawn_curve.x_error), "x" in log)
    if thinned.error is not None and thinned.mean is not None:
        bars: dict[str, Any] = {"color": style.points["color"], "linestyle": "none", "zorder": 3}
        ax.errorbar(thinned.x, thinned.mean, xerr=thinned.error, **bars)
    if drawn_curve.curve.runs is not None:
        for run in drawn_curve.curve.runs:
            ax.plot(drawn_curve.curve.x, run, color=style.points["color"], **SINGLE_RUN_STYLE)
        drawn_curve = replace(drawn_curve, curve=replace(drawn_curve.curve, mean=None))
    panels.draw_curve(ax, drawn_curve.curve, style, log, drawn_curve.filled_mask)


def _draw_hidden_lines(ax: Axes, panel: PanelDescription) -> None:
    """Draw a solid line of theory as dashes where a later one hides it, unless a panel has many lines."""
    solid = [curve for curve in panel.curves if (curve.style.line or {}).get("linestyle") == "-"]
    for pair in itertools.combinations(solid if len(solid) <= MAX_DASHED_LINES else (), 2):
        first, second = (np.array([curve.curve.theory_x, curve.curve.theory], float) for curve in pair)
        if first.ndim == 2 and first.shape == second.shape:
            to_axes = (ax.transScale + ax.transLimits).transform
            hidden = (np.abs(to_axes(first.T) - to_axes(second.T)) < HIDDEN_LINE_TOL).all(axis=1)
            if hidden.mean() >= MIN_HIDDEN_FRACTION:
                style = (pair[0].style.line or {}) | {"linestyle": (0, (4, 4)), "gid": NO_LEGEND_GID}
                ax.plot(*np.where(hidden, first, np.nan), **style)


def _draw_line(ax: Axes, line: DrawnLine) -> None:
    if line.x is not None and line.y is not None:
        ax.plot(line.x, line.y, **{"zorder": 1.5, **line.style})
        finite_indices = np.flatnonzero(np.isfinite(line.x) & np.isfinite(line.y))
        if line.text and finite_indices.size:
            last = finite_indices[-1]
            panels.annotate_line_end(ax, float(line.x[last]), float(line.y[last]), line.text)
    else:
        panels.draw_guide(ax, x=line.x, y=line.y, text=line.text, **line.style)


def _unify_limits(axes: Sequence[Axes], description: FigureDescription) -> None:
    """Give panels of the same variable common limits of y, and all panels common limits of x."""
    for axis in description.shared_axes:
        names = [panel.name if axis == "y" else "" for panel in description.panels]
        for name in dict.fromkeys(names):
            group = [ax for ax, own_name in zip(axes, names, strict=True) if own_name == name]
            limits = [getattr(ax, f"get_{axis}lim")() for ax in group]
            for ax in group:
                ax.set(**{f"{axis}lim": (min(low for low, _ in limits), max(high for _, high in limits))})
                panels.set_log_axes(ax, description.panels[axes.index(ax)].log)
            if axis == "y" and not description.num_columns:
                for first, second in pairwise(group):
                    if _are_in_one_row(first, second):
                        second.tick_params(labelleft=False)


def _are_in_one_row(first: Axes, second: Axes) -> bool:
    specs = first.get_subplotspec(), second.get_subplotspec()
    return None not in specs and specs[0].rowspan == specs[1].rowspan  # type: ignore[union-attr]


def _keep_outer_table_labels(axes: Sequence[Axes], num_columns: int) -> None:
    """Keep the y labels of the first column, the x labels of the last row, and the titles of the first row."""
    for index, ax in enumerate(axes):
        if index >= num_columns:
            ax.set_title("")
        if index % num_columns:
            ax.set_ylabel("")
        if index < len(axes) - num_columns:
            ax.set_xlabel("")


def _enlarge_marker(entry: LegendEntry, panels: Sequence[PanelDescription]) -> LegendEntry:
    """Return a legend entry whose marker is as large as the largest marker of this shape in the panels."""
    curves = [curve for panel in panels for curve in panel.curves]
    points = [curve for curve in curves if curve.style.points.get("marker") == entry.style.get("marker", "")]
    scale = max((curve.marker_scale for curve in points), default=1)
    size = {"markersize": mpl.rcParams["lines.markersize"] * scale} if scale > 1 else {}
    return replace(entry, style=entry.style | size)


def make_handle(entry: LegendEntry) -> Any:
    """Return the handle of a legend entry, with its label."""
    if entry.kind == "points":
        return make_points_handle(entry.label, **entry.style)
    handle: Any = Patch(**entry.style) if entry.kind == "band" else Line2D([], [], **entry.style)
    handle.set_label(entry.label)
    return handle


def draw_right_legend(
    figure: Figure,
    curve_entries: Sequence[LegendEntry],
    mark_entries: Sequence[LegendEntry],
    notes: Sequence[str],
    definitions: Sequence[str] = (),
) -> None:
    """Draw the legend of a single panel, to its right, and the notes and definitions of symbols below the panel."""
    labels = [*(entry.label for entry in curve_entries), *(entry.label.replace(" (", "\n(") for entry in mark_entries)]
    handles = [make_handle(entry) for entry in (*curve_entries, *mark_entries)]
    figure.legend(handles, labels, loc="outside right upper")
    if texts := [*notes, *definitions]:
        text = panels.reserve_definition_lines(figure, texts)
        figure.supxlabel(text, fontsize=mpl.rcParams["legend.fontsize"], color=panels.NOTE_COLOUR)


def draw_lower_legend(
    figure: Figure,
    curve_entries: Sequence[LegendEntry],
    mark_entries: Sequence[LegendEntry],
    notes: Sequence[str],
    definitions: Sequence[str] = (),
) -> None:
    """Draw the legend below several panels.

    Lines above the entries of curves explain points and lines, and define symbols.
    """
    named_kinds = [entry for entry in mark_entries if entry.kind in NOUNS_BY_ENTRY_KIND]
    explained = [f"{NOUNS_BY_ENTRY_KIND[entry.kind]}: {entry.label}" for entry in named_kinds]
    note = "; ".join([*explained, *notes] if curve_entries else notes)
    handles = [make_handle(entry) for entry in curve_entries or mark_entries]
    panels.draw_legend_below(figure, handles, note=note, definitions=definitions)


def draw_title(figure: Figure, texts: Sequence[str], has_right_legend: bool = False) -> None:
    """Write the properties common to all results above the panels."""
    if not texts:
        return
    max_letters = int(MAX_TEXT_LINE_LETTERS * get_relative_letters_per_line(figure))
    if len(figure.axes) == 1:
        figure.axes[0].set_title(_wrap_lines(texts, max_letters * 3 // 5 if has_right_legend else max_letters * 4 // 5))
    else:
        figure.suptitle(_wrap_lines(texts, max_letters))


def _wrap_lines(texts: Sequence[str], max_letters: int) -> str:
    """Join texts by commas, wrapped to lines of nearly equal, limited length without a break within a text."""
    joined = ", ".join(text.replace(" ", "\N{NO-BREAK SPACE}") for text in texts)
    num_lines = len(textwrap.wrap(joined, max_letters))
    widths = range(len(joined) // num_lines, max_letters)
    width = next((width for width in widths if len(textwrap.wrap(joined, width)) == num_lines), max_letters)
    return textwrap.fill(joined, width).replace("\N{NO-BREAK SPACE}", " ")


NUM_PALETTE_COLOURS = 32


def save_film(frames: FilmFrames, stem: Path) -> list[Path]:
    """Write a film to a GIF file that is never left incomplete.

    Returns the files. Raises `StoreError` if a file cannot be written.
    """
    return files.write_with_suffixes(stem, {"gif": encode_gif(frames)})


def encode_gif(frames: FilmFrames) -> bytes:
    """Encode frames as a GIF that repeats endlessly.

    The same frames give the same bytes.
    """
    pictures, durations = zip(*_render_frames(frames), strict=True)
    palette = pictures[-1].quantize(NUM_PALETTE_COLOURS, Image.Quantize.MAXCOVERAGE)  # the last frame has every colour
    small = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    file = io.BytesIO()
    small[0].save(file, "GIF", save_all=True, append_images=small[1:], duration=durations, loop=0, optimize=True)
    return file.getvalue()


def _render_frames(frames: FilmFrames) -> Iterator[tuple[Image.Image, int]]:
    for figure, milliseconds in frames:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"), milliseconds


MAX_COMBINATION_ROWS = 40
MAX_VARIABLE_COLUMNS = 4
ROW_HEIGHT, ROWS_HEAD_HEIGHT = 0.22, 0.9  # inches


@apply_style
def draw_combination_rows(results: Results, composition: Composition) -> Figure:
    """Draw means over runs with their standard errors as points, and theory as dashes."""
    axes = tuple(curves.get_chart_axes(results.either))
    all_combinations = curves.iterate_positions(results.either, axes, labels.make_value_labeller(results.scenario))
    combinations = list(itertools.islice(all_combinations, MAX_COMBINATION_ROWS))
    variables = arrangement.select_variables(results, composition)
    figure, panels = make_panel_grid(
        len(variables), MAX_VARIABLE_COLUMNS, ROWS_HEAD_HEIGHT + ROW_HEIGHT * len(combinations), PAGE_WIDTH
    )
    for ax, (name, variable) in zip(panels, variables.items(), strict=True):
        for row, (_, position) in enumerate(combinations):
            _draw_value(ax, curves.select_position(results, position), name, row)
        ax.set(xlabel=variable.symbol, ylim=(len(combinations) - 0.5, -0.5))
        ax.set_yticks(range(len(combinations)), [label for label, _ in combinations])
        ax.tick_params(axis="y", length=0, labelleft=(spec := ax.get_subplotspec()) is not None and spec.is_first_col())
        ax.grid(axis="y", color="0.9", linewidth=0.6)
    count = int(np.prod([results.either.sizes[axis] for axis in axes]))
    fewer = (
        f"the first {MAX_COMBINATION_ROWS} of {count} parameter combinations" if count > MAX_COMBINATION_ROWS else ""
    )
    part = ArrangedResults(results, Layout("", (), ()), title_texts=(fewer,) if fewer else ())
    draw_title(figure, legends.make_title_texts([part]))
    draw_lower_legend(figure, [], legends.make_mark_entries([part]), legends.collect_notes([part]))
    return figure


def _draw_value(ax: Axes, results: Results, name: str, row: int) -> None:
    """Draw one value: the mean as a point with its standard error, theory as a dash."""
    if results.simulation is not None and name in results.simulation:
        mean, error = curves.compute_mean_and_error(results.simulation[name])
        ax.errorbar(
            [mean], [row], xerr=[error], linestyle="none", color=CURVE_COLOURS[0], marker="o", markerfacecolor="white"
        )
    if results.theory is not None and name in results.theory:
        mean, std = predict_mean_and_std(results.theory, name)
        if std is not None and not find_unresolved_std_mask(results.theory, name).any():
            ends = [float((mean + side * std).mean()) for side in (-1, 1)]
            ax.plot(
                ends, [row, row], color=THEORY_COLOUR, alpha=BAND_OPACITY, linewidth=7, solid_capstyle="butt", zorder=0
            )
        ax.plot([results.theory[name].mean()], [row], "|", color=THEORY_COLOUR, markersize=9)
