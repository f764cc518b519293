"""Students of erf and ReLU units that learn the labels of a committee: errors against t.

Theory has equations for a committee of one unit. For more units the figure shows only the simulation, which is exact.
"""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import add_title_and_legend, draw_panel, make_figure, select_with_dense_theory
from figures.style import CURVE_MARKERS

AXES = ("network", "M")  # sweep axes that this figure shows
REQUIRED_VARIABLES = ("label_error",)
CAPTION = (
    r"Students that learn by gradient descent from a committee of $M$ units with a binary output (hollow points: "
    r"smallest $M$; full points: larger $M$). (a) $\epsilon_g$, half the mean squared error of the output; (b) "
    r"fraction of new inputs for which the sign of the student's output differs from the label."
)
LINES_CAPTION = r"Lines: theory for $\epsilon_g$ at $M=1$, $N\to\infty$; no equations exist yet for the other errors."
COMMITTEE_ERROR_AXIS_LABELS = {"eps_g": "", "label_error": "label error"}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw both errors against t, one colour per activation and one marker per M."""
    results, (figure, axes) = select_with_dense_theory(simulation, theory, "t"), make_figure(3.2, 1, 2, sharex=True)
    for index, M in enumerate(theory.M.values.tolist()):
        at_M = select_with_dense_theory(simulation, theory, "t", M=M)
        for ax, (name, label) in zip(axes, COMMITTEE_ERROR_AXIS_LABELS.items(), strict=True):
            keys = draw_panel(
                ax, at_M, "t", name, "network", label=label, log="y", **_get_unit_count_marker_style(index)
            )
    colours = [make_line_handle(str(key.get_label()), color=key.get_color()) for key in keys]
    marks = [
        make_line_handle(f"$M$ = {M}", linestyle="none", **_get_unit_count_marker_style(index))
        for index, M in enumerate(theory.M.values.tolist())
    ]
    note = "points: simulation (mean, standard error); lines: theory of $M=1$; other errors have no equations"
    return add_title_and_legend(figure, results, [*colours, *marks], "K", "eta", note=note)


def _get_unit_count_marker_style(index: int) -> dict[str, Any]:
    return {"marker": CURVE_MARKERS[index % len(CURVE_MARKERS)], "markerfacecolor": "white" if index == 0 else None}
