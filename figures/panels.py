"""The grammar of figures, from dense theory lines to the legend.

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
from figures.residuals import TALLER, residual_strip
from figures.style import (
    AID,
    COLOURS,
    COLUMN,
    DASHES,
    PAGE,
    SMALL,
    STYLE,
    THEORY,
    WISH,
    log_ticks,
    look_of,
    mean_points,
    medium,
    nested_size,
    run_band,
    theory_line,
)
from statmech.results.dataset import scenario_of
from statmech.results.results import Results, results_of

CONVERGED = "converged"  # only some kinds of scenarios have this variable
ALONE: dict[str, Any] = {"color": THEORY}  # one line of theory for points of all colours
MOST_COLUMNS, MOST_LETTERS = 5, 110  # for a legend as wide as a page
FOOT: dict[str, Any] = {"marker": "v", "markersize": 3, "linestyle": "none", "clip_on": False, "gid": AID}
FOOT_HEIGHT = 0.015  # fraction of the axis
ROW = 0.16  # inches
MOST_HEADING = 100  # per line, for a figure as wide as a page
LETTER, BESIDE = 6, 16  # letters that "(a)" needs on one side and on both sides of a centred title
MOST_STACKED, STACKED = 3, 1.9  # panels per column and inches per panel, where a row becomes a column
GUIDE: dict[str, Any] = {"color": "0.5", "linestyle": ":", "linewidth": 0.8, "zorder": 0, "gid": AID}


class Look(NamedTuple):
    """Styles of a curve's points, of its line (None: drawn with another curve) and of its band."""

    points: dict[str, Any]
    line: dict[str, Any] | None
    band: dict[str, Any]


def along(simulation: xr.Dataset, theory: xr.Dataset, x: str, **chosen: Any) -> Results:
    """Select values of some axes, and add theory on a dense grid along x."""
    return with_lines(simulation.sel(chosen), theory.sel(chosen), dense(theory, x, **chosen))


def with_lines(simulation: xr.Dataset, theory: xr.Dataset, lines: xr.Dataset) -> Results:
    """Combine simulation, theory and dense lines of theory into results."""
    return replace(results_of(simulation, theory), lines=lines)


def dense(theory: xr.Dataset, x: str, **chosen: Any) -> xr.Dataset:
    """Solve theory on a dense grid along x, for all positions on its other axes.

    Theory that cannot be solved on a dense grid is returned unchanged. `chosen` selects values of other axes: a list
    of values keeps the axis.
    """
    from theory import smooth  # lazy import: live charts do not need it

    theory = theory.sel(chosen)
    if theory.sizes.get(x, 1) < 2:
        return theory
    if "control" in theory:
        from theory.control.stored_controls import recall  # lazy import: it needs JAX

        recall(theory)
    lines = smooth(scenario_with(theory, **chosen), x)
    if lines is None:
        return theory
    thinned_axes = [axis for axis in series.axes(lines) if axis != x and lines.sizes[axis] != theory.sizes.get(axis, 1)]
    lines = lines.sel({axis: theory[axis].values for axis in thinned_axes})  # the dataset may be part of a sweep
    return lines.expand_dims([dim for dim in theory.dims if dim not in lines.dims])


def scenario_with(theory: xr.Dataset, **keys: Any) -> Any:
    """Return the scenario of a dataset with some keys changed, or removed if the value is None."""
    scenario = scenario_of(theory)
    config = {**scenario.config(), **keys}
    return type(scenario)(**{name: value for name, value in config.items() if value is not None})


def page(height: float, rows: int = 1, columns: int = 1, width: float = PAGE, **grid: Any) -> tuple[Figure, Any]:
    """Create a figure with panels, its size in inches, and return both.

    In a one-column style (`pre`) a row of few panels becomes a column of panels.
    """
    if rows == 1 and stacks(columns) and grid.get("squeeze") is not False:
        grid.pop("width_ratios", None)
        rows, columns, width, height = columns, 1, COLUMN, 0.8 + STACKED * columns
    figure = blank(width, height)
    return figure, figure.subplots(rows, columns, **grid)


def stacks(panels: int) -> bool:
    """Return True if this number of panels is drawn as one column in the current style."""
    return medium().column and panels <= MOST_STACKED


def blank(width: float, height: float) -> Figure:
    """Create an empty figure, its size in inches, which is enlarged for a talk."""
    taller = TALLER if WISH.get().residuals else 1.0
    return Figure(figsize=(medium().scale * width, medium().scale * taller * height))


def panel(
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
    filled: bool = False,
    nested: bool = False,
    palette: Sequence[str] = COLOURS,
    **look: Any,
) -> list[Line2D]:
    """Draw a variable along x and label the axes, with theory as lines and simulation as points.

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
    filled
        True to fill points if all their runs converged.
    nested
        True to draw each curve with smaller markers than the previous one, because points overlap.
    palette
        The colours.
    look
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
    >>> [key.get_label() for key in panel(ax, swept, "t", "eps_g", "rule")], ax.get_ylabel()
    (['Hebbian', 'AdaTron'], '$\\\\epsilon_g$')
    """
    panels, variables = list(np.ravel(axes)), results.scenario.variables
    titles = list(series.positions(results.either, [split] if split else [], labels.mathtext_label(results.scenario)))
    ignores_colour = bool(colour) and series.ignored_by_theory(results, [colour] if isinstance(colour, str) else colour)
    bound = isinstance(y, str) and y in variables and variables[y].bound
    for ax, (title, position) in zip(panels, titles, strict=True):
        labelled_parts = list(_curves(series.sliced(results, position), y, colour))
        curves = [shown(part, name, text, x) for text, name, part in labelled_parts]
        sizes = [nested_size(index, len(curves)) if nested else {} for index in range(len(curves))]
        styles = [
            look_at(index, dashes, bool(bound), ignores_colour, palette, **look | size)
            for index, size in enumerate(sizes)
        ]
        for index, (curve, (_, _, part)) in enumerate(zip(curves, labelled_parts, strict=True)):
            draw(ax, curve, styles[index], log, converged(part.simulation) if filled else None)
        ax.set_xlabel(labels.axis_label(results.scenario, [x]))
        ax.set_ylabel(label or (variables[y].symbol if isinstance(y, str) and y in variables else ""))
        logarithmic(ax, log)
        if split:
            ax.set_title(title)
    outer(panels)
    keys = [key_of(curve, style) for curve, style in zip(curves, styles, strict=True)]
    ignores_colour &= any(curve.theory is not None for curve in curves)
    return [*keys, Line2D([], [], **ALONE, label=r"theory, $N\to\infty$")] if ignores_colour else keys


def look_at(
    index: int, dashes: bool, bound: bool = False, alone: bool = False, palette: Sequence[str] = COLOURS, **points: Any
) -> Look:
    """Return the style of the index-th curve of a panel, with a grey line if all curves share one line (`alone`)."""
    colour_and_marker, dash = {**look_of(index), "color": palette[index % len(palette)]}, DASHES[index % len(DASHES)]
    line = {"color": colour_and_marker["color"], "linestyle": "--" if bound else dash if dashes else "-"}
    shared = ALONE if index == 0 else None
    return Look(
        {**colour_and_marker, **points},
        shared if alone else line,
        {"colour": colour_and_marker["color"], "dashes": dash},
    )


def key_of(curve: series.Curve, look: Look) -> Line2D:
    """Return the legend handle of a curve: the marker of its points and the line of its theory."""
    marker_style = {"markerfacecolor": "white", **look.points, "linestyle": "none", "label": curve.label}
    has_theory = curve.theory is not None and bool(np.isfinite(curve.theory).any())
    return Line2D([], [], **marker_style | (look.line if has_theory and look.line and look.line != ALONE else {}))


def _curves(
    results: Results, y: str | Mapping[str, str], colour: str | tuple[str, ...]
) -> Iterator[tuple[str, str, Results]]:
    """Yield the label, the variable name and the results of each curve."""
    labels_by_name = {y: ""} if isinstance(y, str) else y
    axes = (colour,) if isinstance(colour, str) else colour
    label = labels.mathtext_label(results.scenario)
    for name, own_label in labels_by_name.items():
        for text, position in series.positions(results.either, axes, label):
            yield own_label or text, name, series.sliced(results, position)


def shown(results: Results, name: str, label: str, x: str) -> series.Curve:
    """Return the curve of one variable along x, where every other axis has one position."""
    parts = (results.simulation, results.theory, results.lines)
    single = {dim for part in parts if part is not None for dim, size in part.sizes.items() if size == 1}
    results = series.sliced(results, {str(dim): 0 for dim in single - {x, "seed"}})
    return series.curve(name, label, results.simulation, results.theory, results.lines, x=x)


def draw(
    ax: Axes,
    curve: series.Curve,
    look: Look,
    log: str,
    filled: np.ndarray | None = None,
    discrete: bool = False,
) -> None:
    """Draw a curve: theory as a line, the band of one run, and the simulation as points.

    `log` names the logarithmic axes, `filled` is a mask of filled points, and `discrete` is True if x is a few
    integers. A curve with many points is thinned to points that are equally spaced on the axis.
    """
    all_x, curve = curve.x, series.thinned(_positive(curve, log), "x" in log)
    if filled is not None and curve.x.size < all_x.size:
        filled = np.asarray(filled)[np.isin(all_x, curve.x)]
    if curve.theory is not None and look.line is not None:
        theory_line(ax, curve.theory_x, curve.theory, discrete, **look.line)
    if curve.band is not None and curve.theory is not None:
        low, high = curve.band
        run_band(ax, curve.theory_x, series.above_zero(low, curve.theory) if "y" in log else low, high, **look.band)
    if curve.mean is not None:
        mean_points(ax, curve.x, curve.mean, curve.error, look.points, filled)
        if WISH.get().residuals:
            residual_strip(ax, curve, look.points)


def _positive(curve: series.Curve, log: str) -> series.Curve:
    """Replace values that logarithmic axes cannot show by NaN."""

    def positive(values: np.ndarray | None, axis: str) -> np.ndarray | None:
        return values if values is None or axis not in log else np.where(values > 0, values, np.nan)

    x = positive(curve.x, "x")
    assert x is not None
    theory_x, theory, mean = positive(curve.theory_x, "x"), positive(curve.theory, "y"), positive(curve.mean, "y")
    return replace(curve, x=x, theory_x=theory_x, theory=theory, mean=mean)


def converged(simulation: xr.Dataset | None) -> np.ndarray | None:
    """Return a mask along x that is True where all runs converged, or None without such a flag."""
    if simulation is None or CONVERGED not in simulation:
        return None
    flags = simulation[CONVERGED]
    return np.atleast_1d(flags.all([dim for dim in ("seed", *series.AVERAGED) if dim in flags.dims]).values)


def logarithmic(ax: Axes, log: str) -> None:
    """Make axes logarithmic, with legible ticks between the current limits."""
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if name in log:
            ax.set(**{f"{name}scale": "log"})
            if (
                axis.get_view_interval()[0] <= 0
            ):  # no point is positive, for example if no run was right on all examples
                ax.set(**{f"{name}lim": (1, 10)})
            log_ticks(axis)


def guide(*panels: Axes, x: float | None = None, y: float | None = None, text: str = "", **look: Any) -> None:
    """Draw a dotted line at a value of x or y, with a text at its lower or right end in the first panel."""
    for ax in panels:
        _ = ax.axvline(x, **GUIDE | look) if x is not None else ax.axhline(y or 0.0, **GUIDE | look)
    ax = panels[0]
    small: dict[str, Any] = {"fontsize": SMALL, "color": "0.4", "textcoords": "offset points"}
    if x is not None:
        ax.annotate(text, (x, 0), (3, 3), xycoords=ax.get_xaxis_transform(), **small)
    else:
        ax.annotate(text, (1, y or 0.0), (2, 0), xycoords=ax.get_yaxis_transform(), va="center", **small)


def at_foot(ax: Axes, x: Any, colour: Any, **look: Any) -> None:
    """Mark positions at the foot of a logarithmic axis, where values are 0."""
    for position in x:
        foot = ax.plot(position, FOOT_HEIGHT, transform=ax.get_xaxis_transform(), **FOOT | {"color": colour} | look)
        foot[0].set_in_layout(False)


def outer(panels: list[Axes]) -> None:
    """Keep the axis label of the first panel in a row, or of the last panel in a column."""
    specs = [
        spec.get_topmost_subplotspec() for ax in panels if (spec := ax.get_subplotspec())
    ]  # residual strips split the cell of a panel
    rows = {subplot.rowspan.start for subplot in specs}
    for first, second in pairwise(panels):
        if len(rows) > 1:
            first.set_xlabel("")
        else:
            second.set_ylabel("")


def letters(*panels: Axes) -> None:
    """Write (a), (b), ... above the left end of each panel, joined to its title if space is short."""
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", panels, strict=False):
        left, title = ax.get_title(loc="left"), ax.get_title()
        room = _letters_in(ax) - len(title.replace("$", ""))
        if title and room < BESIDE:
            ax.set_title("")
            left = title if room > LETTER else ",\n".join(title.rsplit(", ", 1))
        ax.set_title(f"({letter}) {left}".strip(), loc="left")


def _letters_in(ax: Axes) -> float:
    """Return the width of a panel, in letters."""
    spec = ax.get_subplotspec()
    figure: Any = ax.get_figure(root=True)
    return MOST_HEADING * figure.get_figwidth() / PAGE / (spec.get_gridspec().ncols if spec else 1)


def finish(
    figure: Figure, results: Results | xr.Dataset, keys: list[Any], *stated: str, columns: int = 0, note: str = ""
) -> Figure:
    """Write the common title of all panels above them, and the legend below.

    Parameters
    ----------
    figure, results
        A figure, and the results that it shows. Their size and number of runs are part of the title.
    keys
        Handles of the legend.
    stated
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
    texts = [_stated(results, dataset[name]) if name in dataset.coords else name for name in stated]
    texts = [text for text in texts if text not in stated or "=" in text]
    heading(figure, [*texts, labels.size_of(dataset)])
    legend_below(figure, keys, columns, note)
    return figure


def room(figure: Figure) -> float:
    """Return the number of letters that fit across a figure, relative to a page."""
    size = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points()
    return float(figure.get_size_inches()[0] / PAGE * STYLE["legend.fontsize"] / size)


def heading(figure: Figure, words: list[str]) -> None:
    """Write texts above all panels, separated by commas and wrapped to the width of the figure."""
    figure.suptitle(filled(figure, words, ", "))


def filled(figure: Figure, words: Sequence[str], between: str) -> str:
    """Join texts with a separator, wrapped to the width of a figure."""
    lines: list[str] = []
    for text in filter(None, words):
        if lines and len(lines[-1]) + len(text) < MOST_HEADING * room(figure):
            lines[-1] += between + text
        else:
            lines.append(text)
    return (between.rstrip() + "\n").join(lines)


def legend_below(figure: Figure, keys: Sequence[Any], columns: int = 0, note: str = "") -> None:
    """Draw the legend below all panels, in at most `columns` columns (0: as many as fit)."""
    max_letters = max((len(labels.plain(str(key.get_label()))) for key in keys), default=0)
    max_columns = max(1, min(MOST_COLUMNS, int(MOST_LETTERS * room(figure)) // (max_letters + 6)))
    column_count = min(columns or max_columns, len(keys) or 1) if room(figure) >= 1 else max_columns
    if medium().column:
        figure.set_figheight(figure.get_figheight() + ROW * -(-len(keys) // column_count))
    figure.legend(
        handles=keys,
        loc="outside lower center",
        ncols=column_count,
        title=note or None,
    )


def _stated(results: Results | xr.Dataset, value: xr.DataArray) -> str:
    """Return a key with its single value, such as "$K$ = 3" or "logistic loss"."""
    return stated_keys.with_symbol(results_of(results).scenario, str(value.name), value.item())
