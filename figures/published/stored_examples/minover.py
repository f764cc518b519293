r"""Figures 2 and 3 of the MinOver assignment (experiments A and B): eps_g against alpha, for several tmax.

Over the line of maximum stability, which the assignment does not draw. Its text says that tmax counts epochs of P
updates; the code in its appendix makes one update per step, and only in *updates* are its figures those measured here
(the figure `minover_updates` compares the two). Its claims at N = 20, in updates (`statmech run minover_b`, and
200 data sets) and in epochs (`statmech run minover`, 100 data sets):

- "eps_g first decreases and then gets stabilized": right in updates. After 100 updates it is 0.257, 0.179, 0.140,
  0.103, 0.089, 0.086 at alpha = 1, 2, 3, 5, 7.5, 10, and still 0.085 at alpha = 80: the student is a sum of 100
  examples, however many there are to choose from. In epochs it never stabilises, it falls as 0.50/alpha.
- "The real learning starts where the storage ends" (alpha = 2): no, in either reading it starts with the first example;
  at alpha = 2 eps_g has fallen from 0.5 to 0.18.
- "With tmax = 20 eps_g never drops below 20 %": nearly right in updates, it levels off at 19 %. In epochs it is 4.6 %
  at alpha = 10.
- "With tmax = 5000 it levels out at 5 %": 4.6 % at alpha = 10 in updates, 4.7 % in epochs, theory 4.9 %. It does not
  level out there in either reading: alpha ends at 10.
- "tmax = 100 looks like an optimal trade-off": in updates, this depends on alpha. Up to alpha = 3.7 eps_g is within 4 %
  of that after 5000 updates; at alpha = 10 it is 0.086, between 0.186 after 20 and 0.046 after 5000. In epochs 20 are
  enough at every alpha.
- "tmax has to be large for stabilities close to optimal": true. After 100 updates kappa is 0.27 at alpha = 2, where
  0.46 is possible, and negative from alpha = 3.6 on: students misclassify stored examples. In epochs, at alpha = 10, no
  run is certified to be within 1 % of the largest stability after 100, and all are after 5000; eps_g hardly depends on
  it.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.panels import dense, finish, letters, panel, with_lines
from figures.published.stored_examples.stored_runs import HOLLOW, at_end, recorded_dimension, scale_of
from figures.style import PAGE, THEORY

AXES = ("N", "alpha")  # of the sweep, that this figure shows
CAPTION = (
    r"MinOver on $P=\alpha N$ stored examples: (a) generalization error, (b) least stability and (c) generalization "
    r"error over that of maximum stability for $N\to\infty$, as functions of $\alpha$ for several numbers of updates "
    r"or of epochs of $P$ updates. Lines: replica theory of maximum stability, to which MinOver tends. At one "
    r"$\alpha$ the points are of the same data sets; where error bars would overlap they are moved sideways."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g, kappa, and eps_g over theory, against alpha; one colour and marker per N and recorded time."""
    moment = recorded_dimension(simulation)
    line, lines = (at_end(part).isel(N=0) for part in (theory, dense(theory, "alpha")))
    top = float(simulation.kappa.mean("seed").max())  # kappa diverges at small alpha
    lines["kappa"] = lines.kappa.where(lines.kappa < 1.1 * top)
    results = with_lines(simulation.assign(ratio=simulation.eps_g / line.eps_g), theory, lines)
    figure, axis = Figure(figsize=(PAGE, 2.8)), scale_of(simulation.alpha)
    axes, colour = figure.subplots(1, 3), ("N", moment)
    keys = panel(axes[0], results, "alpha", "eps_g", colour, log=f"{axis}y", filled=True)
    panel(axes[1], results, "alpha", "kappa", colour, log=axis, filled=True)
    panel(axes[2], results, "alpha", "ratio", colour, log=axis, filled=True, aside=True)
    axes[2].axhline(1, color=THEORY)
    axes[2].set_ylabel(r"$\epsilon_g$ / theory")
    letters(*axes)
    return finish(figure, results, keys, note=HOLLOW)
