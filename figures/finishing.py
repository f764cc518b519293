"""Common parts of all figures: panel letters, the size and number of runs, and a note on points and lines."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, MaxNLocator

from figures import labels
from figures.panels import add_panel_letters, set_heading, wrap_texts
from figures.residuals import is_residual_strip, move_x_labels_below_strips
from figures.series import widen_equal_limits
from figures.style import DRAWING_OPTIONS
from statmech.results.results import Results

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
            axis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 5, 10), integer=is_integer))


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
    lower_legend.set_title(wrap_texts(figure, [*texts, *existing_note.split("; ")], "; "))
    lower_legend.get_title().set(color=NOTE_COLOUR, multialignment="center")
