"""Students of erf and ReLU units that learn the labels of a committee: errors against t.

Theory has equations for a committee of one unit. For more units the figure shows only the simulation, which is exact.
"""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from figures.legends import entry
from figures.panels import along, finish, page, panel
from figures.style import MARKERS

AXES = ("network", "M")  # sweep axes that this figure shows
NEEDS = ("label_error",)
CAPTION = (
    r"Students that learn by gradient descent from a committee of $M$ units, whose output is a label: the smallest $M$ "
    r"as hollow points, larger ones as full points. (a) $\epsilon_g$, half the mean squared error of the output; (b) "
    r"the fraction of new inputs on which the sign of the student's output is not the label."
)
LINES = r"Lines: theory, $N\to\infty$, of $\epsilon_g$ for $M=1$; the other errors have no equations yet."
LABELS = {"eps_g": "", "label_error": "label error"}


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw both errors against t, a colour per activation and a marker per M."""
    results, (figure, axes) = along(simulation, theory, "t"), page(3.2, 1, 2, sharex=True)
    for index, M in enumerate(theory.M.values.tolist()):
        at_M = along(simulation, theory, "t", M=M)
        for ax, (name, label) in zip(axes, LABELS.items(), strict=True):
            keys = panel(ax, at_M, "t", name, "network", label=label, log="y", **_look(index))
    colours = [entry(str(key.get_label()), color=key.get_color()) for key in keys]
    marks = [entry(f"$M$ = {M}", linestyle="none", **_look(index)) for index, M in enumerate(theory.M.values.tolist())]
    note = "points: simulation (mean, standard error); lines: theory of $M=1$; other errors have no equations"
    return finish(figure, results, [*colours, *marks], "K", "eta", note=note)


def _look(index: int) -> dict[str, Any]:
    return {"marker": MARKERS[index % len(MARKERS)], "markerfacecolor": "white" if index == 0 else None}
