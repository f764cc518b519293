"""MinOver's patient stop rules: when they stop, and the effect on eps_g.

`field-patience`, the code of the assignment's appendix, watches the least field min w.xi S. From w = 0 it must reach a
positive one within P updates; a run that does not is stopped at update P + 1 whatever it has learnt (at alpha = 10 nine
in ten), and in one that does the field grows with |w| without limit, until the last epoch.
`stability-patience` watches kappa, and stops every run after about 5 epochs, far from the largest stability, but not
from the eps_g of all epochs.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from figures.published.panel_letters import letters
from figures.published.stored_examples.stored_runs import at_end, beside
from figures.style import PAGE, points, styled
from statmech.learners import STOPPED_BY

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("stop", "alpha")  # of the sweep, that this figure shows
CAPTION = (
    r"Stop rules of MinOver on $P=\alpha N$ stored examples: (a) fractions of runs that field-patience, the code of "
    r"the assignment's appendix, stops at update $P+1$, later, and never; (b) updates made, in epochs of $P$ updates, "
    r"when a run ends; (c) generalization error over that of maximum stability for $N\to\infty$. At one $\alpha$ the "
    r"points are of the same data sets, moved sideways where error bars would overlap."
)
GREYS = {"field-patience stops at $P+1$": "0.35", "later": "0.65", "never": "0.9"}


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Ends of the runs of field-patience; epochs until a run ends; eps_g over theory."""
    last, line = at_end(simulation), at_end(theory).isel(stop=0)
    figure = Figure(figsize=(PAGE, 2.8))
    ends, lasts, errs = figure.subplots(1, 3)
    rules = [str(rule) for rule in last.stop.values]
    if "field-patience" in rules:
        _ends(ends, last.sel(stop="field-patience"))
    else:
        ends.set_axis_off()
    for index, rule in enumerate(rules):
        cell = last.sel(stop=rule)
        points(lasts, cell.alpha, cell.updates_made / cell.P, index, label=rule)
        points(errs, beside(cell.alpha, index, len(rules)), cell.eps_g / line.eps_g, index)
    lasts.set(yscale="log", ylabel="updates made / $P$")
    lasts.yaxis.set_major_formatter("{x:g}")
    errs.axhline(1, color="0.3")
    errs.set_ylabel(r"$\epsilon_g$ / theory")
    for ax in (ends, lasts, errs):
        ax.set_xlabel(r"$\alpha=P/N$")
    letters(ends, lasts, errs)
    figure.legend(handles=_in_rows(lasts, ends), loc="outside lower center", ncols=3)
    return figure


def _in_rows(*panels: Axes) -> list[Any]:
    """The entries of a legend of three columns, a row per panel."""
    rows = [ax.get_legend_handles_labels()[0] for ax in panels]
    return [handle for column in zip_longest(*rows) for handle in column if handle is not None]


def _ends(ax: Axes, cell: xr.Dataset) -> None:
    """Fractions of runs stopped at update P + 1, stopped later, and never."""
    stopped = cell.stopped_by == STOPPED_BY.index("field-patience")
    at_once = stopped & (cell.updates_made == cell.P + 1)
    below = 0.0 * cell.P
    width = float(cell.alpha.diff("alpha").min()) if cell.alpha.size > 1 else 1.0
    for (label, grey), which in zip(GREYS.items(), (at_once, stopped & ~at_once, ~stopped), strict=True):
        fraction = which.mean("seed")
        look: dict[str, Any] = {"color": grey, "edgecolor": "0.2", "linewidth": 0.3, "label": f"(a) {label}"}
        ax.bar(cell.alpha, fraction, width, bottom=below, **look)
        below = below + fraction
    ax.set(ylabel="fraction of runs", ylim=(0, 1))
    ax.margins(x=0)
