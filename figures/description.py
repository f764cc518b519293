"""Descriptions of figures: panels with curves, colours, labels, limits and a legend.

A description is a value. Matplotlib draws it for files (`figures.matplotlib_drawing`), and Bokeh draws its panels for
reports and for the explorer (`figures.interactive.chart`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from figures.curves import Curve


@dataclass(frozen=True)
class CurveStyle:
    """Styles of a curve's points, of its line (None: drawn with another curve) and of its band."""

    points: dict[str, Any]
    line: dict[str, Any] | None
    band: dict[str, Any]


@dataclass(frozen=True)
class DrawnCurve:
    """One curve of a panel: its numbers, its style and its label.

    `line_label` names the line, which several curves share if theory does not depend on an axis.
    `filled_mask` is True at the points where all runs converged, or None if this is not shown.
    `has_single_theory_values` is True if theory exists at a few integers or names only. `x_error` is the standard error
    along x, and `marker_scale` enlarges markers that others overlap.
    """

    curve: Curve
    style: CurveStyle
    label: str = ""
    line_label: str = ""
    filled_mask: np.ndarray | None = None
    has_single_theory_values: bool = False
    x_error: np.ndarray | None = None
    marker_scale: float = 1.0


@dataclass(frozen=True)
class DrawnLine:
    """A line that is not a curve: a guide or a fitted power law.

    Without `y` the line is vertical at x, and without `x` it is horizontal at y.
    """

    style: dict[str, Any]
    x: Any = None
    y: Any = None
    text: str = ""


@dataclass(frozen=True)
class DrawnMark:
    """A marked point of a curve."""

    x: float
    y: float
    style: dict[str, Any]


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend: points with error bars, a line with or without a marker, or a band."""

    label: str
    style: dict[str, Any]
    kind: Literal["points", "line", "band"] = "line"


@dataclass(frozen=True)
class PanelDescription:
    """One panel: its labels, its logarithmic axes, its limits, its curves, guides and marks.

    `x_ticks` are positions and labels of ticks along x, for names or a single value. `theory_is_bound` is True if
    theory bounds the variable and may be far from the points.
    """

    name: str
    xlabel: str
    ylabel: str
    title: str = ""
    log: str = ""
    curves: tuple[DrawnCurve, ...] = ()
    lines: tuple[DrawnLine, ...] = ()
    marks: tuple[DrawnMark, ...] = ()
    limits: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    x_ticks: tuple[np.ndarray, list[str] | None] | None = None
    theory_is_bound: bool = False

    @property
    def x_names(self) -> tuple[str, ...]:
        """The names along x, or () if x is numeric."""
        return tuple((self.x_ticks and self.x_ticks[1]) or ())

    @property
    def has_single_theory_values(self) -> bool:
        """True if x takes a few integers, and theory exists only there."""
        return not self.x_names and any(curve.has_single_theory_values for curve in self.curves)

    @property
    def hides_zeros(self) -> bool:
        """True if a mean is 0, which a logarithmic axis cannot show."""
        means = [curve.curve.mean for curve in self.curves if curve.curve.mean is not None]
        return "y" in self.log and any((mean == 0).any() for mean in means)


@dataclass(frozen=True)
class FigureDescription:
    """A figure: its panels, its title, its legend and its notes.

    `num_columns` is the number of columns if the panels form a table of rows (variables) and columns (values of an
    axis), and 0 for panels that fill the width. `curve_entries` of the legend name curves, guides and marks, and
    `mark_entries` explain points, lines and bands. `shared_axes` names the axes with common
    limits. `width` and `max_columns` are None for the usual size. `definitions` explain the symbols in the figure.
    """

    panels: tuple[PanelDescription, ...]
    title_texts: tuple[str, ...] = ()
    curve_entries: tuple[LegendEntry, ...] = ()
    mark_entries: tuple[LegendEntry, ...] = ()
    notes: tuple[str, ...] = ()
    num_columns: int = 0
    shared_axes: str = ""
    width: str | None = None
    max_columns: int | None = None
    definitions: tuple[str, ...] = ()
