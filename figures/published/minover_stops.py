"""MinOver's patient stop rules: when they stop, and the effect on eps_g.

`field-patience`, the code of the assignment's appendix, watches the least field min w.xi S. From w = 0 it must reach a
positive one within P updates; a run that does not is stopped at update P + 1 whatever it has learnt (at alpha = 10 nine
in ten), and in one that does the field grows with |w| without limit, until the last epoch.
`stability-patience` watches kappa, and stops every run after about 5 epochs, far from the largest stability, but not
from the eps_g of all epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.helpers.stored_runs import at_end
from figures.style import PAGE, look_of, points, styled
from statmech.learners import STOPPED_BY

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AXES = ("stop", "alpha")  # of the sweep, that this figure shows


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Ends of the runs of field-patience; epochs until a run ends; eps_g over theory."""
    last, line = at_end(simulation), at_end(theory).isel(stop=0)
    figure = Figure(figsize=(PAGE, 2.7))
    ends, lasts, errs = figure.subplots(1, 3)
    rules = [str(rule) for rule in last.stop.values]
    if "field-patience" in rules:
        _ends(ends, last.sel(stop="field-patience"))
    else:
        ends.set_axis_off()
    for index, rule in enumerate(rules):
        cell = last.sel(stop=rule)
        points(lasts, cell.alpha, cell.updates_made / cell.P, index, label=rule)
        points(errs, cell.alpha, cell.eps_g / line.eps_g - 1, index)
    lasts.set(yscale="log", title="epochs until the end (mean)", xlabel=r"$\alpha=P/N$")
    errs.axhline(0, color="0.3")
    errs.yaxis.set_major_formatter("{x:.0%}")
    errs.set(title=r"$\epsilon_g$ over theory $-\,1$", xlabel=r"$\alpha=P/N$")
    figure.legend(*lasts.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _ends(ax: Axes, cell: xr.Dataset) -> None:
    """Fractions of runs stopped at update P + 1, stopped later, and never."""
    stopped = cell.stopped_by == STOPPED_BY.index("field-patience")
    at_once = stopped & (cell.updates_made == cell.P + 1)
    fractions = {"at update P + 1": at_once, "later": stopped & ~at_once, "never": ~stopped}
    below = 0.0 * cell.P
    width = float(cell.alpha.diff("alpha").min()) if cell.alpha.size > 1 else 1.0
    for (label, which), index in zip(fractions.items(), (1, 4, 0), strict=True):
        fraction = which.mean("seed")
        ax.bar(cell.alpha, fraction, width, bottom=below, color=look_of(index)["color"], label=label)
        below = below + fraction
    ax.set(title="field-patience stops", xlabel=r"$\alpha=P/N$", ylabel="fraction of runs", ylim=(0, 1))
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.98), labelcolor="white")
