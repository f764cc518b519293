r"""Mistakes of the perceptron until all examples are right, under the bound :math:`(R/\gamma)^2` (Block, Novikoff).

Strengths count mistakes: w is the sum of the misclassified examples, each as many times. With :math:`|\xi|^2=N` the
bound is :math:`N/\kappa^2`, of the largest stability :math:`\kappa` that any student has: in theory that of the replica
solution, in a simulation that of the learner `max_stability` on the same examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from figures.published.log_axes import logarithmic_alpha
from figures.published.stored_examples.stored_runs import at_end, line
from figures.style import COLUMN, points, styled
from statmech.errors import ConfigError
from theory import mistake_bound

if TYPE_CHECKING:
    import xarray as xr

AXES = ("learner", "alpha")  # of the sweep, that this figure shows
CAPTION = (
    r"Mistakes of Rosenblatt's perceptron on $P=\alpha N$ stored examples until it classifies all of them correctly, "
    r"over $N$, and the bound of Block and Novikoff on them, $1/\kappa^2$: from the largest stability $\kappa$ of each "
    r"data set (mean over data sets), and from replica theory for $N\to\infty$ (line)."
)


@styled
def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Mistakes over N against alpha: measured, bounded by each data set's own stability, and by theory's."""
    names = [str(name) for name in simulation.learner.values]
    if "strengths" not in simulation or "perceptron" not in names:
        raise ConfigError("the figure mistakes needs `strengths: true` and the learner perceptron")
    last, dimension = at_end(simulation), float(simulation.N)
    cell = last.sel(learner="perceptron")
    made = cell.strengths.sum("example").where(cell.converged)
    figure = Figure(figsize=(COLUMN, 2.9))
    ax = figure.subplots()
    limit = line("max_stability", last.alpha, last.flip.item())
    ax.plot(limit.alpha, mistake_bound(1, limit.kappa), color="0.3", label=r"bound $1/\kappa^2$, theory, $N\to\infty$")
    points(ax, cell.alpha, made / dimension, 0, label="mistakes / $N$")
    if "max_stability" in names:
        own = last.sel(learner="max_stability").kappa
        points(ax, cell.alpha, own.copy(data=mistake_bound(1, own)), 1, label=r"bound $1/\kappa^2$, simulation")
    logarithmic_alpha(ax)
    ax.set(yscale="log", ylabel=f"number / $N$, $N={dimension:g}$")
    ax.yaxis.set_major_formatter("{x:g}")
    figure.legend(loc="outside lower center", ncols=2)
    return figure
