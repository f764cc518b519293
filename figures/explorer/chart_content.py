"""The content of the explorer's charts at one time, and its caption."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from figures import series
from figures.labels import format_control_with_arrows, html_from_latex
from figures.legends import UNRESOLVED_BAND_NOTE
from figures.series import Layout
from statmech.results.results import Results
from statmech.scenarios.axes import is_axis
from statmech.scenarios.base import AbstractScenario

BAND_CAPTION_TEXT = "band: theory + bias ± std of a run"


@dataclass(frozen=True)
class ChartContent:
    """Results to be drawn, their layout and their caption.

    The results have only the axes of the layout. `plane` names two variables that are drawn against each other. The
    caption is HTML.
    """

    results: Results
    layout: Layout
    plane: tuple[str, str] | None = None
    caption: str = ""


def format_chart_caption(
    results: Results, shown_axes: Sequence[str], time_text: str = "", single_runs: bool = False
) -> str:
    """Return a caption in HTML: common parameters of the curves, and the meaning of points and lines.

    >>> from statmech import Scenario
    >>> print(format_chart_caption(Results(Scenario(rule=["hebb"], K=3, N=100, t=[1, 2]), None, None), ("t", "rule")))
    <i>K</i> = 3, <i>N</i> = 100
    """
    scenario = results.scenario
    fixed_keys = [
        format_key_equation(scenario, name, value)
        for name, value in scenario.axis_values().items()
        if name not in shown_axes and not is_axis(value) and scenario.describe(name).numeric and not _is_zero(value)
    ]
    seeds = [] if results.simulation is None else [_describe_points(results.simulation.sizes["seed"], single_runs)]
    thick = single_runs and results.simulation is not None
    lines = ["thick: theory" if thick else "lines: theory"] if has_theory_lines(results) else []
    if lines and series.has_run_bands(scenario):
        lines += [BAND_CAPTION_TEXT + (f", {UNRESOLVED_BAND_NOTE}" if series.has_unresolved_bands(results) else "")]
    variables = scenario.variables | scenario.theory_only_variables
    levels = [
        html_from_latex(variables[level].symbol)
        for variable in series.get_chart_variables(scenario).values()
        for level in variable.reference_variables
    ]
    dotted = [f"dotted: {', '.join(dict.fromkeys(levels))}"] if results.theory is not None and levels else []
    return "; ".join([", ".join([*([time_text] if time_text else []), *fixed_keys]), *seeds, *lines, *dotted])


def format_key_equation(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Format `key = value` as HTML without line breaks."""
    text = f"{value:,g}" if isinstance(value, int | float) else html.escape(format_control_with_arrows(str(value)))
    return f"{html_from_latex(scenario.describe(name).label)}\u00a0=\u00a0{text}"


def _is_zero(value: Any) -> bool:
    """Return True for the number 0, which switches off an effect such as noise."""
    return not isinstance(value, str) and value == 0


def has_theory_lines(results: Results) -> bool:
    """Return True if theory has finite values of a variable that is not a bound."""
    theory, drawn_variables = results.theory, series.get_chart_variables(results.scenario)
    curves = (
        ()
        if theory is None
        else [theory[name] for name, variable in drawn_variables.items() if name in theory and not variable.bound]
    )
    return any(bool(np.isfinite(values).any()) for values in curves)


def _describe_points(num_seeds: int, single_runs: bool) -> str:
    if single_runs:
        return f"thin: {min(num_seeds, series.MAX_SINGLE_RUNS)} single run{'s' * (num_seeds > 1)}"
    return f"points: mean of {num_seeds} seeds ± standard error" if num_seeds > 1 else "points: one seed"
