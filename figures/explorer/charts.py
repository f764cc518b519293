"""The charts of the explorer: one per chosen variable, with switches that apply to all of them."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import panel as pn
import panel_material_ui as pmui

from figures import series
from figures.explorer.chart_content import Picture
from figures.interactive.chart import FAINT
from figures.interactive.grid import ChartGrid, label_of
from figures.interactive.phase_plane import Plane
from figures.labels import plain
from figures.series import Curve, Scales
from figures.style import COLOURS, MARKERS
from statmech.scenarios.page import View
from statmech.scenarios.variables import Variable

OPEN = 2  # charts that a page begins with
GAP = 8  # pixels between charts
GLYPHS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "P": "✚", "X": "✖"}
NORMALISED = {said: unit for unit, said in series.NORMALISED.items()}


@dataclass(frozen=True)
class Axes:
    """All that needs new charts if it changes: which charts there are, and their axes."""

    variables: tuple[str, ...]
    x: str
    scales: Scales
    unit: str
    plane: tuple[str, str] | None


class Charts:
    """Charts of the results that are shown, and of others that are held for comparison.

    `changed()` is called when a switch has been moved. `above` is the height in pixels of all that stands above the
    charts, `height` that of the charts; by default they fill the window.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None, above: int = 0, height: str = ""):
        self.picture: Picture | None = None
        self.drawn: dict[str, Variable] = {}
        self.held: dict[str, list[Curve]] = {}
        self.axes: Axes | None = None
        self.grid: ChartGrid | None = None
        self.plane: Plane | None = None
        self.panes: list[Any] = []
        self.height = height or f"100vh - {above}px"
        self.wanted: tuple[str, ...] = ()
        self.variables = pmui.MultiChoice(label="charts", options={}, sizing_mode="stretch_width")
        self.log_x = pmui.Switch(label="log x", value=True, margin=(4, 8))
        self.log_y = pmui.Switch(label="log y", value=False, margin=(4, 8))
        self.unit = pmui.Select(label="normalise", options=NORMALISED, value="", sizing_mode="stretch_width")
        self.hold = pmui.Button(label="Hold to compare", variant="outlined", size="small", margin=(2, 4))
        self.release = pmui.Button(label="Release", variant="text", size="small", margin=(2, 4), visible=False)
        self.legend = pn.pane.HTML("", styles={"flex": "1 1 300px", "min-width": "0"}, margin=(2, 8))
        # Panel's own layout: Material UI's measures charts before they are laid out (panel-material-ui issue 548)
        self.area = pn.FlexBox(sizing_mode="stretch_width", gap=f"{GAP}px", margin=0)
        for widget in (self.variables, self.log_x, self.log_y, self.unit):
            widget.param.watch(lambda event: self._switched(changed), "value")
        self.hold.on_click(lambda event: self._hold())
        self.release.on_click(lambda event: self._release())
        self.switches = [self.variables, self.unit]
        self.bar = [self.log_x, self.log_y, self.hold, self.release]

    def use(self, view: View) -> None:
        """Set the switches as a view has them, without drawing."""
        self.wanted = view.show
        self._release(draw=False)
        for widget, value in (
            (self.log_x, "x" in view.log),
            (self.log_y, "y" in view.log),
            (self.unit, view.over),
        ):
            with pn.param.param.discard_events(widget):
                widget.value = value
            widget.param.trigger("value")

    @property
    def view(self) -> dict[str, Any]:
        """The settings of the switches, as a `View` has them."""
        log = (*(["x"] if self.log_x.value else []), *(["y"] if self.log_y.value else []))
        return {"show": tuple(self.variables.value or ()), "over": self.unit.value, "log": log}

    def show(self, picture: Picture) -> None:
        """Show results with no other axes than those of the layout."""
        self.picture = picture
        self.drawn = series.drawn(picture.results.scenario)
        options = {plain(variable.symbol): name for name, variable in series.distinct(self.drawn).items()}
        if self.variables.options != options or self.wanted:
            shown = series.shown_first(list(self.drawn), picture.results.theory)
            first = sorted(shown, key=lambda name: not name.startswith("eps"))
            wanted = [name for name in self.wanted if name in self.drawn]
            self.wanted = ()
            with pn.param.param.discard_events(self.variables):
                self.variables.options = options
                self.variables.value = wanted or first[:OPEN]
            self.variables.param.trigger("options", "value")
        self.draw()

    def draw(self) -> None:
        """Draw the results; new charts are made only if their axes have changed."""
        if self.picture is None:
            return
        results, layout = self.picture.results, self.picture.layout
        axes = self._axes(self.picture)
        changed = axes != self.axes
        if changed:
            if self.axes is not None and (axes.x, axes.unit, axes.plane) != (
                self.axes.x,
                self.axes.unit,
                self.axes.plane,
            ):
                self._release(draw=False)  # they are curves of other axes
            self.axes = axes
            self._make(axes)
        if self.plane is not None:
            shown = self.plane.show(results, layout, self.held.get(self._plane_name(), ()))
        else:
            assert self.grid is not None
            self.grid.show(results, layout, self.held)
            shown = next(reversed(self.grid.shown.values()), [])
        if changed:  # only now: a chart that is drawn without data cannot find its ranges
            self._place()
        self.legend.object = self._legend(shown)
        if self.panes and pn.state.curdoc is None:  # in a notebook, nobody else listens to the charts' data
            pn.io.push_notebook(*self.panes)

    def _make(self, axes: Axes) -> None:
        assert self.picture is not None
        results = self.picture.results
        self.plane = Plane(results, axes.plane, None) if axes.plane else None
        variables = {} if axes.plane else {name: self.drawn[name] for name in axes.variables}
        whole = not axes.scales.names and results.scenario.describe(axes.x).whole
        self.grid = ChartGrid(variables, label_of(results, axes.x), axes.scales, None, axes.unit, whole)

    def _place(self) -> None:
        assert self.grid is not None
        charts = [self.plane.chart] if self.plane else list(self.grid.charts.values())
        for chart in charts:  # its own style sheet, for the figure stands in the place of its pane
            chart.figure.stylesheets = [self._size(len(charts))]
        self.panes = [pn.pane.Bokeh(chart.figure, sizing_mode="stretch_both", margin=0) for chart in charts]
        self.area.objects = self.panes

    def _size(self, number: int) -> str:
        """Return the size of each of so many charts: as many columns as fit, and together the height of the window."""
        columns = {1: 1, 2: 2, 3: 3, 4: 2}.get(number, 3)
        rows = -(-number // columns)
        height = f"max(260px, min(({self.height}) / {rows} - {GAP}px, 92vw))"
        basis = f"calc({100 / columns:.4f}% - {GAP}px)"
        width = f"flex: 1 1 {basis} !important; width: {basis} !important; min-width: min(100%, 340px)"
        return f":host {{ {width}; height: {height} !important }}"

    def _axes(self, picture: Picture) -> Axes:
        results, x = picture.results, picture.layout.x
        numeric = series.values(results.either, x).dtype.kind in "if"
        names = () if numeric else tuple(series.labels(results.either, x))
        chosen = () if picture.plane else tuple(name for name in self.variables.value or () if name in self.drawn)
        log_y = frozenset(chosen if self.log_y.value else ())
        scales = Scales(names, self.log_x.value and not picture.plane, log_y)
        return Axes(chosen, x, scales, "" if picture.plane else self.unit.value, picture.plane)

    def _legend(self, shown: Sequence[Curve]) -> str:
        chips = [
            f'<span style="white-space:nowrap"><span style="color:{COLOURS[index % len(COLOURS)]}" aria-hidden="true">'
            f"{GLYPHS[MARKERS[index % len(MARKERS)]]}</span> {html.escape(curve.label)}</span>"
            for index, curve in enumerate(shown)
            if curve.label
        ]
        held = [f'<span style="opacity:{FAINT + 0.2}">╌╌ held</span>'] if self.held else []
        bounds = (
            "; dashed: bounds"
            if any(self.drawn[name].bound for name in (self.grid.charts if self.grid else ()))
            else ""
        )
        guide = "; dotted: q = R²" if self.plane is not None and self.plane.pair == ("R", "q") else ""
        said = html.escape(self.picture.caption if self.picture else "") + bounds + guide
        return " &ensp; ".join([*chips, *held, f'<small style="opacity:.8">{said}</small>'])

    def _switched(self, changed: Callable[[], None]) -> None:
        self.draw()
        changed()

    def _plane_name(self) -> str:
        return "-".join(self.plane.pair) if self.plane else ""

    def _hold(self) -> None:
        """Keep all that is shown, dashed and fainter, below what is shown next."""
        if self.picture is None or self.grid is None:
            return
        shown = self.picture.results, self.picture.layout
        if self.plane is not None:
            self.held = {self._plane_name(): self.plane.curves(*shown)}
        else:
            self.held = {name: self.grid.curves(name, *shown) for name in self.drawn}
        self.release.visible = True
        self.draw()

    def _release(self, draw: bool = True) -> None:
        self.held = {}
        self.release.visible = False
        if draw:
            self.draw()
