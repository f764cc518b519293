"""The charts of the explorer: one per chosen variable, with switches that apply to all of them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui

from figures import series
from figures.interactive.chart import HELD
from figures.interactive.grid import ChartGrid, label_of
from figures.series import Curve, Layout, Scales
from figures.style import COLOURS
from statmech.results.results import Results
from statmech.scenarios.variables import Variable

OPEN = 2  # charts that a page begins with
HEIGHT = 320
PANE: dict[str, Any] = {"sizing_mode": "stretch_width", "styles": {"flex": "1 1 280px"}, "min_width": 280}


@dataclass(frozen=True)
class Axes:
    """All that needs new charts if it changes: which charts there are, and their axes."""

    variables: tuple[str, ...]
    x: str
    scales: Scales


class Charts:
    """Charts of the results that are shown, and of others that are held for comparison."""

    def __init__(self) -> None:
        self.results: Results | None = None
        self.layout: Layout | None = None
        self.drawn: dict[str, Variable] = {}
        self.held: dict[str, list[Curve]] = {}
        self.axes: Axes | None = None
        self.grid: ChartGrid | None = None
        self.variables = pmui.MultiChoice(label="charts", options=[], sizing_mode="stretch_width")
        self.log_x = pmui.Switch(label="log x", value=True)
        self.log_y = pmui.Switch(label="log y", value=False)
        self.unit = pmui.Select(label="normalise", options={v: k for k, v in series.NORMALISED.items()}, width=230)
        self.hold = pmui.Button(label="Hold to compare", variant="outlined")
        self.release = pmui.Button(label="Release", variant="text", disabled=True)
        self.legend = pn.pane.HTML("", sizing_mode="stretch_width")
        # Panel's own layout: Material UI's measures charts before they are laid out (panel-material-ui issue 548)
        self.area = pn.FlexBox(sizing_mode="stretch_width")
        for widget in (self.variables, self.log_x, self.log_y, self.unit):
            widget.param.watch(lambda event: self.draw(), "value")
        self.hold.on_click(lambda event: self._hold())
        self.release.on_click(lambda event: self._release())
        bar = pmui.FlexBox(self.log_x, self.log_y, self.unit, self.hold, self.release, align_items="center", gap="12px")
        self.view = pn.Column(self.variables, bar, self.legend, self.area, sizing_mode="stretch_width")

    def show(self, results: Results, layout: Layout) -> None:
        """Show results with no other axes than those of the layout."""
        self.results, self.layout = results, layout
        self.drawn = series.drawn(results.scenario)
        names = list(self.drawn)
        if list(self.variables.options) != names:
            shown = series.shown_first(names, results.theory)
            first = sorted(shown, key=lambda name: not name.startswith("eps"))
            with pn.param.param.discard_events(self.variables):
                self.variables.options = names
                self.variables.value = first[:OPEN]
            self.variables.param.trigger("options", "value")
        self.draw()

    def draw(self) -> None:
        """Draw the results; new charts are made only if their axes have changed."""
        if self.results is None or self.layout is None:
            return
        axes = self._axes(self.results, self.layout)
        changed, self.axes = axes != self.axes, axes
        if changed or self.grid is None:
            variables = {name: self.drawn[name] for name in axes.variables}
            self.grid = ChartGrid(variables, label_of(self.results, axes.x), axes.scales, HEIGHT)
        self.grid.show(self.results, self.layout, self.unit.value, self.held)
        if changed:  # only now: a chart that is drawn without data cannot find its ranges
            self.area.objects = [pn.pane.Bokeh(chart.figure, **PANE) for chart in self.grid.charts.values()]
        self.legend.object = self._legend(next(reversed(self.grid.shown.values()), []))

    def _axes(self, results: Results, layout: Layout) -> Axes:
        numeric = series.values(results.either, layout.x).dtype.kind in "if"
        names = () if numeric else tuple(series.labels(results.either, layout.x))
        chosen = tuple(name for name in self.variables.value or () if name in self.drawn)
        return Axes(chosen, layout.x, Scales(names, self.log_x.value, frozenset(chosen if self.log_y.value else ())))

    def _legend(self, shown: Sequence[Curve]) -> str:
        colours = [(COLOURS[index], curve.label) for index, curve in enumerate(shown) if curve.label]
        held = [(HELD, "held")] if self.held else []
        chips = [
            f'<span style="color:{colour}" aria-hidden="true">⬤</span> {html.escape(label)}'
            for colour, label in colours + held
        ]
        return " &emsp; ".join(
            [*chips, "<small>points: simulation ± standard error; lines: theory (dashed: bounds)</small>"]
        )

    def _hold(self) -> None:
        """Keep all that is shown, in grey, below what is shown next."""
        if self.results is not None and self.layout is not None and self.grid is not None:
            shown = self.results, self.layout, self.unit.value
            self.held = {name: self.grid.curves(name, *shown) for name in self.variables.options}
            self.release.disabled = False
            self.draw()

    def _release(self) -> None:
        self.held = {}
        self.release.disabled = True
        self.draw()
