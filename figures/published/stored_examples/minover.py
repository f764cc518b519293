r"""Figures 2 and 3 of the MinOver assignment (experiments A and B): eps_g against alpha, for several tmax.

The line of maximum stability is not in the assignment. According to its text tmax counts epochs of P updates, but the
code in its appendix makes one update per step. Only in *updates* do its figures agree with our measurements (the figure
`minover_updates` compares the two). docs/gallery/minover.md measures each of its claims in updates and in epochs.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from figures.derived_data import (
    CONVERGENCE_FILL_NOTE,
    choose_log_axis_for_alphas,
    get_recorded_dimension,
    select_last_recorded,
)
from figures.panels import (
    add_panel_letters,
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    solve_dense_theory,
)
from figures.style import THEORY_COLOUR

AXES = ("N", "alpha")  # sweep axes that this figure shows
SUPPORTED_VALUES = {"learner": ("minover",)}
CAPTION = (
    r"MinOver on $P=\alpha N$ stored examples: (a) generalization error, (b) smallest stability and (c) generalization "
    r"error divided by the error of maximum stability for $N\to\infty$, against $\alpha$ for several numbers of "
    r"updates or of epochs of $P$ updates. Lines: replica theory of maximum stability, the limit of MinOver. At one "
    r"$\alpha$ all points use the same data sets; in (c) the markers of shorter runs are larger."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g, kappa and eps_g relative to theory against alpha, for each N and recorded time."""
    recorded_unit = get_recorded_dimension(simulation)
    line, lines = (select_last_recorded(part).isel(N=0) for part in (theory, solve_dense_theory(theory, "alpha")))
    top = float(simulation.kappa.mean("seed").max())  # kappa diverges at small alpha
    lines["kappa"] = lines.kappa.where(lines.kappa < 1.1 * top)
    results = combine_with_lines(simulation.assign(ratio=simulation.eps_g / line.eps_g), theory, lines)
    (figure, axes), axis = (
        make_figure(2.8, 1, 3, width_ratios=(1, 1, 1.6)),
        choose_log_axis_for_alphas(simulation.alpha),
    )
    colour = ("N", recorded_unit)
    keys = draw_panel(axes[0], results, "alpha", "eps_g", colour, log=f"{axis}y", fill_converged=True)
    if simulation.sizes["N"] == 1:  # N is in the heading
        for key in keys:
            key.set_label(str(key.get_label()).removeprefix(f"$N$ = {simulation.N.item()}, "))
    draw_panel(axes[1], results, "alpha", "kappa", colour, log=axis, fill_converged=True)
    draw_panel(
        axes[2],
        results,
        "alpha",
        "ratio",
        colour,
        label=r"$\epsilon_g$ / theory",
        log=axis,
        fill_converged=True,
        nested=True,
    )
    draw_guide(axes[2], y=1, color=THEORY_COLOUR, linestyle="-", linewidth=1.2)
    add_panel_letters(*axes)
    return add_title_and_legend(figure, results, keys, note=CONVERGENCE_FILL_NOTE)
