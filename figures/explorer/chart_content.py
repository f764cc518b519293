"""The content of the explorer's charts at one time, and the caption that states it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figures import series
from figures.labels import plain
from figures.legends import UNRESOLVED
from figures.series import Layout
from statmech.results.results import Results
from statmech.scenarios.axes import is_axis

BAND = "band: theory + bias ± std of a run"


@dataclass(frozen=True)
class Picture:
    """Results with no other axes than those of the layout, the two variables of a plane if they are drawn against each
    other, and a caption."""

    results: Results
    layout: Layout
    plane: tuple[str, str] | None = None
    caption: str = ""


def caption(results: Results, shown: Sequence[str], at: str = "") -> str:
    """Return the parameters that curves have in common, and what points and lines are.

    >>> from statmech import Scenario
    >>> print(caption(Results(Scenario(rule=["hebb"], K=3, N=100, t=[1, 2]), None, None), ("t", "rule")))
    K = 3, N = 100, p_f = 0
    """
    scenario = results.scenario
    fixed = [
        f"{plain(scenario.describe(name).label)} = {value if isinstance(value, str) else format(value, 'g')}"
        for name, value in scenario.axis_values().items()
        if name not in shown and not is_axis(value) and scenario.describe(name).numeric
    ]
    seeds = "" if results.simulation is None else f"; points: mean of {results.simulation.sizes['seed']} seeds"
    bars = " ± standard error" if seeds else ""
    lines = "" if results.theory is None else "; lines: theory"
    band = f"; {BAND}" if lines and series.has_bands(scenario) else ""
    band += f", {UNRESOLVED}" if band and series.lacks_bands(results) else ""
    known = scenario.variables | scenario.theory_only
    levels = [plain(known[level].symbol) for name in series.drawn(scenario) for level in known[name].levels]
    band += f"; dotted: {', '.join(levels)}" if lines and levels else ""
    return ", ".join([*([at] if at else []), *fixed]) + seeds + bars + lines + band
