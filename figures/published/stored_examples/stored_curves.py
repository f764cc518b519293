"""Learning curves from stored examples: eps_g of every learner against alpha, with its theory curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.log_axes import logarithmic_alpha, logarithmic_error
from figures.published.panel_letters import letters
from figures.published.stored_examples.stored_runs import HOLLOW, at_end, runs, smooth, theory_handle
from figures.style import PAGE, label_of, look_of, styled

if TYPE_CHECKING:
    import xarray as xr

AXES = ("learner", "alpha")  # of the sweep, that this figure shows
CAPTION = (
    r"Learning curves from $P=\alpha N$ stored examples: (a) generalization error of each learner; lines, in the "
    r"colours of the points: theory for $N\to\infty$ (none is known for the perceptron; AdaTron tends to maximum "
    r"stability); (b) relative deviation from theory. All learners use the same data sets, so that their deviations "
    r"are correlated; points of (b) are moved sideways where error bars would overlap."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Both axes logarithmic; eps_g on the left, its relative deviation from theory on the right."""
    last, expected = at_end(simulation), at_end(theory)
    figure = Figure(figsize=(PAGE, 3.4))
    error, deviation = figure.subplots(1, 2)
    deviation.axhline(0, color="0.3", linewidth=0.8)
    for index, name in enumerate(map(str, last.learner.values)):
        cell, limit = last.sel(learner=name), smooth(name, last.alpha, last.flip.item())
        if limit is not None:
            error.plot(limit.alpha, limit.eps_g, color=look_of(index)["color"], zorder=1)
            relative = cell.assign(eps_g=cell.eps_g / expected.eps_g.sel(learner=name) - 1)
            runs(deviation, cell.alpha * 1.025 ** (index - 3), relative, "eps_g", index)
        runs(error, cell.alpha, cell, "eps_g", index, label=label_of(name))
    for ax in (error, deviation):
        logarithmic_alpha(ax)
    error.set_ylabel(r"$\epsilon_g$")
    logarithmic_error(error)
    deviation.yaxis.set_major_formatter("{x:.0%}")
    deviation.set_ylabel(r"$\epsilon_g$ / theory $-\,1$")
    letters(error, deviation)
    handles = [*error.get_legend_handles_labels()[0], theory_handle()]
    title = f"$N={last.N.item()}$; {HOLLOW}"
    figure.legend(handles=handles, loc="outside lower center", ncols=4, title=title, title_fontsize=7.5)
    return figure
