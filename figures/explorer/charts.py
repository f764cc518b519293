"""The charts of a page: a variable each, with what is toggled about all of them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import panel as pn
import panel_material_ui as pmui

from figures import series
from figures.interactive.page import HELD, Chart
from figures.series import Curve, Layout
from figures.style import COLOURS
from statmech.scenarios.variables import Variable

if TYPE_CHECKING:
    import xarray as xr

OPEN = 2  # charts that a page begins with
HEIGHT = 320
PANE: dict[str, Any] = {"sizing_mode": "stretch_width", "styles": {"flex": "1 1 280px"}, "min_width": 280}
XLABELS = {"t": "t = steps / N", "alpha": "α = P / N"}


class Charts:
    """Charts of one simulation and its theory, and of another pair that is held for comparison."""

    def __init__(self) -> None:
        self.simulation: xr.Dataset | None = None
        self.theory: xr.Dataset | None = None
        self.layout: Layout | None = None
        self.drawn: dict[str, Variable] = {}
        self.held: dict[str, list[Curve]] = {}
        self.made: tuple[Any, ...] = ()
        self.charts: dict[str, Chart] = {}
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

    def show(self, simulation: xr.Dataset | None, theory: xr.Dataset | None, layout: Layout, scenario: Any) -> None:
        """Show these datasets of a scenario, of no more axes than the layout has."""
        self.simulation, self.theory, self.layout = simulation, theory, layout
        self.drawn = series.drawn(scenario)
        names = list(self.drawn)
        if list(self.variables.options) != names:
            opened = series.shown_first(names, theory)
            first = [name for name in opened if name.startswith("eps")] + [n for n in opened if not n.startswith("eps")]
            with pn.param.param.discard_events(self.variables):
                self.variables.options = names
                self.variables.value = first[:OPEN]
            self.variables.param.trigger("options", "value")
        self.draw()

    def draw(self) -> None:
        """Draw what is shown; charts are made anew only if their axes are others."""
        if self.layout is None:
            return
        places = series.values(self._either(), self.layout.x)
        named = tuple(map(str, places)) if places.dtype.kind not in "if" else ()
        made = (tuple(self.variables.value or ()), self.log_x.value, self.log_y.value, self.layout.x, named)
        new, self.made = made != self.made, made
        if new:
            self.charts = self._charts(*made)
        for name, chart in self.charts.items():
            shown = series.curves(name, self.simulation, self.theory, self.layout, self.unit.value)
            chart.show(shown, self.held.get(name, ()))
        if new:  # only now: a chart that is drawn without data cannot tell its ranges
            self.area.objects = [pn.pane.Bokeh(chart.figure, **PANE) for chart in self.charts.values()]
        self.legend.object = self._legend(shown if self.charts else ())

    def _charts(self, names: Sequence[str], log_x: bool, log_y: bool, x: str, named: Sequence[str]) -> dict[str, Chart]:
        known = [name for name in names if name in self.drawn]
        return {name: Chart(self.drawn[name], XLABELS.get(x, x), named, log_x, log_y, HEIGHT) for name in known}

    def _either(self) -> Any:
        return self.simulation if self.simulation is not None else self.theory

    def _legend(self, shown: Sequence[Curve]) -> str:
        colours = [(COLOURS[at], curve.label) for at, curve in enumerate(shown) if curve.label]
        held = [(HELD, "held")] if self.held else []
        chips = [
            f'<span style="color:{colour}" aria-hidden="true">⬤</span> {html.escape(told)}'
            for colour, told in colours + held
        ]
        return " &emsp; ".join(
            [*chips, "<small>points: simulation ± standard error; lines: theory (dashed: bounds)</small>"]
        )

    def _hold(self) -> None:
        """Keep all that is shown, in grey, under what comes."""
        if self.layout is not None:
            every = self.variables.options
            both = self.simulation, self.theory
            self.held = {name: series.curves(name, *both, self.layout, self.unit.value) for name in every}
            self.release.disabled = False
            self.draw()

    def _release(self) -> None:
        self.held = {}
        self.release.disabled = True
        self.draw()
