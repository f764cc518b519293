"""One interactive chart: theory as lines, simulation as points with standard errors, values under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure as bokeh_figure

from figures.labels import plain
from figures.series import Curve
from figures.style import COLOURS, MARKERS
from statmech.scenarios.variables import Variable

SHAPES = {
    "o": "circle",
    "s": "square",
    "^": "triangle",
    "D": "diamond",
    "v": "inverted_triangle",
    "P": "plus",
    "X": "x",
}
HELD = "#8a8a8a"
POINTS = ("x", "y", "low", "high", "error", "color", "marker", "label")


class Chart:
    """One variable against x; `show` replaces its curves, not the chart. Against names, theory is a dash."""

    def __init__(
        self,
        variable: Variable,
        xlabel: str,
        names: Sequence[str] = (),
        log_x: bool = False,
        log_y: bool = False,
        height: int = 300,
    ):
        self.named, self.log_x, self.log_y = bool(names), log_x and not names, log_y
        self.colours = 0  # curves until a colour returns with the next marker; 0: each has both to itself
        factors: dict[str, Any] = {"x_range": list(names)} if names else {}
        self.figure: Any = bokeh_figure(
            title=plain(variable.symbol),
            x_axis_label=xlabel,
            x_axis_type="log" if self.log_x else "auto",
            y_axis_type="log" if log_y else "auto",
            height=height,
            sizing_mode="stretch_width",
            tools="pan,box_zoom,wheel_zoom,reset,save",
            active_scroll=None,
            toolbar_location="above",
            output_backend="canvas",
            **factors,
        )
        self.figure.toolbar.autohide = True
        self.figure.toolbar.logo = None
        self.figure.xaxis.major_label_orientation = 0.7 if names else "horizontal"
        self.held = self._group("dashed" if variable.bound else "solid")
        self.curves = self._group("dashed" if variable.bound else "solid")
        value = plain(variable.symbol)
        line = [("", "@label"), (xlabel, "@x" if names else "$data_x"), (value, "@y" if names else "$data_y")]
        self._hover("theory", line)
        self._hover("simulation", [("", "@label"), (xlabel, "@x"), (value, "@y @error")])

    def _group(self, dash: str) -> dict[str, Any]:
        """The glyphs of a group of curves: few, because each costs the browser time at every redraw."""
        theory, points = ColumnDataSource(self._theory(())), ColumnDataSource(self._points(()))
        if self.named:
            look = {"marker": "dash", "size": 24, "line_width": 2, "color": "color"}
            lines = self.figure.scatter("x", "y", source=theory, **look)
        else:
            lines = self.figure.multi_line("x", "y", source=theory, line_width=2, line_dash=dash, color="color")
        self.figure.segment("x", "low", "x", "high", source=points, line_width=1.2, color="color")
        look = {"marker": "marker", "size": 6, "fill_color": "white", "line_color": "color", "name": "points"}
        marks = self.figure.scatter("x", "y", source=points, **look)
        return {"theory": theory, "simulation": points, "renderers": {"theory": lines, "simulation": marks}}

    def _hover(self, part: str, tooltips: list[tuple[str, str]]) -> None:
        renderers = [group["renderers"][part] for group in (self.held, self.curves)]
        self.figure.add_tools(HoverTool(renderers=renderers, tooltips=tooltips, line_policy="nearest", visible=False))

    def show(self, curves: Sequence[Curve], held: Sequence[Curve] = ()) -> None:
        """Show these curves, and in grey those held for comparison."""
        for group, shown, grey in ((self.curves, curves, None), (self.held, held, HELD)):
            for part, data in (("theory", self._theory(shown, grey)), ("simulation", self._points(shown, grey))):
                if data["x"] or group[part].data["x"]:
                    group[part].data = data

    def look(self, index: int) -> tuple[str, str]:
        """The colour and the marker of a curve."""
        colour, marker = (index % self.colours, index // self.colours) if self.colours else (index, index)
        return COLOURS[colour % len(COLOURS)], MARKERS[marker % len(MARKERS)]

    def _theory(self, curves: Sequence[Curve], grey: str | None = None) -> dict[str, list[Any]]:
        """One row per line; against names, one row per name."""
        data: dict[str, list[Any]] = {name: [] for name in ("x", "y", "color", "label")}
        for index, curve in enumerate(curves):
            if curve.theory is not None:
                good = self._good(curve.x, curve.theory)
                x, y = curve.x[good].tolist(), curve.theory[good].tolist()
                rows = len(x) if self.named else 1
                data["x"] += x if self.named else [x]
                data["y"] += y if self.named else [y]
                data["color"] += [grey or self.look(index)[0]] * rows
                data["label"] += [curve.label] * rows
        return data

    def _points(self, curves: Sequence[Curve], grey: str | None = None) -> dict[str, list[Any]]:
        data: dict[str, list[Any]] = {name: [] for name in POINTS}
        for index, curve in enumerate(curves):
            if curve.mean is not None:
                good = self._good(curve.x, curve.mean)
                x, y = curve.x[good], curve.mean[good]
                error = np.zeros_like(y) if curve.error is None else np.nan_to_num(curve.error[good])
                low = np.maximum(y - error, y * 1e-2) if self.log_y else y - error
                errors = [f"± {e:.2g}" if e else "" for e in error]
                colour, marker = self.look(index)
                look = grey or colour, SHAPES[marker], curve.label
                columns = (
                    x.tolist(),
                    y.tolist(),
                    low.tolist(),
                    (y + error).tolist(),
                    errors,
                    *([one] * x.size for one in look),
                )
                for name, column in zip(POINTS, columns, strict=True):
                    data[name] += column
        return data

    def _good(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """True where there is a value that the axes can show."""
        good = np.isfinite(y)
        if self.log_y:
            good &= y > 0
        if self.log_x:
            good &= x > 0
        return good
