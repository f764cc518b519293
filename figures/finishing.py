"""Common parts of all figures: panel letters, the size and number of runs, and a note on points and lines."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, MaxNLocator

from figures import labels
from figures.panels import filled, heading, letters
from figures.residuals import is_strip, label_strips
from figures.series import resolved
from figures.style import WISH
from statmech.results.results import Results

POINTS, BARS = "points: simulation", " (mean, standard error)"
LINES = "lines: theory"
ERRORS, FOLDS = "bars: standard errors", "bars: standard errors over folds"
GREY = "0.35"
WHOLE = ("step $", "epochs", "updates", "units", "students")  # parts of the labels of integer axes
OF_POINTS, OF_LINES = ("simulation", "measured", "learners"), ("theory", "equations")  # make a note redundant


def finished(
    figure: Figure, results: Results, points: str | None = None, lines: str | None = None, *, headed: bool = True
) -> Figure:
    """Complete a figure with panel letters, N and the number of seeds, and a note on points and lines.

    Parameters
    ----------
    figure, results
        A figure, and the results that it shows.
    points, lines
        Sentences of the caption on points and lines, "" if they are not means over runs and theory.
    headed
        False for results of several sizes, which are part of the legend.

    Returns
    -------
    Figure
        The figure.
    """
    figure.set_gid(WISH.get().medium)
    panels = panels_of(figure)
    if len(panels) > 1 and not any(_titles(ax).startswith("(") for ax in panels):
        letters(*panels)
    if headed and not (figure.get_suptitle() or any("seed" in ax.get_title() for ax in panels)):
        heading(figure, [labels.size_of(results.either)])
    if results.simulation is not None and (points, lines) != ("", ""):
        _key(figure, results, points, lines)
    label_strips(figure)
    for ax in panels:
        limits = ax.get_ylim()
        if ax.get_yscale() == "linear" and (wider := resolved(min(limits), max(limits))) != (min(limits), max(limits)):
            ax.set_ylim(*wider)
        _round_ticks(ax)
    return figure


def _round_ticks(ax: Axes) -> None:
    """Set ticks of linear axes at multiples of 1, 2 or 5, and at integers for steps, epochs and units."""
    for axis in (ax.xaxis, ax.yaxis):
        if isinstance(axis.get_major_locator(), AutoLocator):
            is_integer = any(label in axis.get_label_text() for label in WHOLE)
            axis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 5, 10), integer=is_integer))


def panels_of(figure: Figure) -> list[Axes]:
    """Return the panels of a figure, without colour bars, strips of residuals and axes that are switched off."""
    return [ax for ax in figure.axes if ax.axison and ax.get_label() != "<colorbar>" and not is_strip(ax)]


def _words(results: Results, points: str | None, lines: str | None, said: str) -> list[str]:
    """Explain points, bars and lines in short notes, unless the legend (`said`) already does.

    For a study on data only the error bars are explained.
    """
    if results.theory is None:
        return [FOLDS] if points is None and "fold" in results.either.dims and "error" not in said else []
    barred = points is None or "standard error" in points
    bars = barred and results.scenario.seeds > 1 and "standard error" not in said
    means = points is None or "means" in points
    if any(keyword in said for keyword in OF_POINTS):
        texts = [ERRORS] * bars
    else:
        texts = [POINTS + BARS] if bars and means else [POINTS, *[ERRORS] * bars]
    return texts + [LINES] * (lines != "" and not any(keyword in said for keyword in OF_LINES))


def _titles(ax: Axes) -> str:
    return ax.get_title(loc="left") + ax.get_title()


def _key(figure: Figure, results: Results, points: str | None, lines: str | None) -> None:
    """Write notes on points, bars and lines as the title of the lower legend."""
    legends = [legend for legend in (*figure.legends, *(ax.get_legend() for ax in figure.axes)) if legend is not None]
    legend_text = " ".join(text.get_text() for legend in legends for text in legend.get_texts())
    lower_legend: Any = figure.legends[-1] if figure.legends else figure.legend(handles=[], loc="outside lower center")
    existing_note = lower_legend.get_title().get_text()
    texts = _words(results, points, lines, legend_text + existing_note)
    lower_legend.set_title(filled(figure, [*texts, *existing_note.split("; ")], "; "))
    lower_legend.get_title().set(color=GREY, multialignment="center")
