"""Charts for the browser: theory as lines, simulation as points with standard errors, values under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure as bokeh_figure

from figures.curves import MOST, Curve
from figures.style import COLOURS, MARKERS
from statmech.variables import Variable

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


class Chart:
    """One variable against x; `show` gives it other curves without making it anew.

    It has room for `most` curves and, if `holding`, as many held for comparison. Over names theory is a dash, no line.
    """

    def __init__(
        self,
        variable: Variable,
        xlabel: str,
        names: Sequence[str] = (),
        log_x: bool = False,
        log_y: bool = False,
        height: int = 300,
        most: int = MOST,
        holding: bool = True,
    ):
        self.named, self.log_x, self.log_y = bool(names), log_x and not names, log_y
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
        dashed = "dashed" if variable.bound else "solid"
        self.held = [self._pair(HELD, at, dashed, alpha=0.7) for at in range(most if holding else 0)]
        self.curves = [self._pair(COLOURS[at], at, dashed) for at in range(most)]
        pointed = [renderer for pair in self.curves for renderer in pair["renderers"]]
        shown = [("", "@label"), (xlabel, "@x"), (plain(variable.symbol), "@y @told")]
        self.figure.add_tools(HoverTool(renderers=pointed, tooltips=shown))

    def _pair(self, colour: str, at: int, dashed: str, alpha: float = 1.0) -> dict[str, Any]:
        line, points = (ColumnDataSource(_empty(part)) for part in ("line", "points"))
        look = {"color": colour, "alpha": alpha}
        if self.named:
            drawn = self.figure.scatter("x", "y", source=line, marker="dash", size=24, line_width=2, **look)
        else:
            drawn = self.figure.line("x", "y", source=line, line_width=2, line_dash=dashed, **look)
        self.figure.segment("x", "low", "x", "high", source=points, line_width=1.2, **look)
        marker = SHAPES[MARKERS[at % len(MARKERS)]]
        marks = self.figure.scatter(
            "x", "y", source=points, marker=marker, size=7, fill_color="white", line_color=colour, line_alpha=alpha
        )
        return {"line": line, "points": points, "renderers": [drawn, marks]}

    def show(self, curves: Sequence[Curve], held: Sequence[Curve] = ()) -> None:
        """Show these curves, and those held for comparison in grey."""
        for pairs, given in ((self.curves, curves), (self.held, held)):
            for pair, curve in zip(pairs, [*given, *[None] * MOST], strict=False):
                for part in ("line", "points"):
                    data = _empty(part) if curve is None else self._data(part, curve)
                    if data["x"] or pair[part].data["x"]:
                        pair[part].data = data

    def _data(self, part: str, curve: Curve) -> dict[str, list[Any]]:
        given = curve.theory if part == "line" else curve.mean
        if given is None:
            return _empty(part)
        y, x = np.asarray(given, float), np.asarray(curve.x)
        good = np.isfinite(y) & ((y > 0) | (not self.log_y))
        if self.log_x:
            good &= x > 0
        error = np.zeros_like(y) if part == "line" or curve.error is None else np.nan_to_num(curve.error)
        low = np.maximum(y - error, y * 1e-2) if self.log_y else y - error
        told = [f"± {e:.2g}" if e else "" for e in error[good]]
        data = {"x": x[good].tolist(), "y": y[good].tolist(), "told": told, "label": [curve.label] * len(told)}
        return data if part == "line" else {**data, "low": low[good].tolist(), "high": (y + error)[good].tolist()}


def _empty(part: str) -> dict[str, list[Any]]:
    names = ("x", "y", "told", "label", *(("low", "high") if part == "points" else ()))
    return {name: [] for name in names}


def plain(symbol: str) -> str:
    r"""A symbol without LaTeX, for titles in the browser.

    >>> plain(r"$\epsilon_g$ (vote)"), plain(r"$\min_i\gamma_i$")
    ('ε_g (vote)', 'min_i γ_i')
    """
    text = symbol.replace("$", "")
    for name, letter in (("epsilon", "ε"), ("kappa", "κ"), ("gamma", " γ"), ("min", "min"), ("alpha", "α")):
        text = text.replace(f"\\{name}", letter)
    return text
