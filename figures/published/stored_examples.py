"""Figures of perceptrons that store examples: capacity, number of mistakes, and the proof of convergence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from figures.derived_data import select_last_recorded
from figures.panels import (
    add_panel_letters,
    add_title_and_legend,
    draw_legend_below,
    make_figure,
    make_points_handle,
    set_log_axes,
)
from figures.published_figure import PublishedFigure
from figures.style import (
    CURVE_COLOURS,
    CURVE_DASHES,
    NO_LEGEND_GID,
    choose_drawn_steps,
    draw_mean_points,
    draw_seed_means,
    get_curve_style,
)
from simulate.kinds.stored_examples import draw_data_set
from simulate.learners.perceptron_convergence import UpdateHistory, compute_update_history
from statmech.errors import ConfigError
from statmech.stores.dataset import scenario_from_dataset
from theory import separable_fraction
from theory.stored_examples import learning_curves_and_bounds


def draw_capacity(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw the largest stability and the fraction of separable sets against alpha, one colour per N.

    Left: the largest stability of a perceptron that stores the random labels of P = alpha N examples, as the median
    over data sets. For infinite N this is the kappa with :math:`\alpha_c(\kappa)=\alpha`. Right: fraction of sets that
    can be stored at all, with Cover's exact counting function for the same N at integer numbers of examples. This
    fraction is one half at alpha = 2 for every N.
    """
    last, (figure, (stability, fraction)) = select_last_recorded(simulation), make_figure(2.8, 1, 2, sharex=True)
    kappa, marks = np.linspace(0, 10, 2001), []
    is_shown = learning_curves_and_bounds.capacity(kappa) >= float(last.alpha.min())
    stability.plot(
        learning_curves_and_bounds.capacity(kappa)[is_shown],
        kappa[is_shown],
        color="0.3",
        label=r"Gardner, $N\to\infty$",
    )
    for index, N in enumerate(last.N.values):
        cell = last.sel(N=N)
        draw_mean_points(stability, cell.alpha, *_compute_median_and_error(cell.kappa.values), index)
        marks.append(make_points_handle(f"simulation, $N={N}$", **get_curve_style(index)))
        draw_seed_means(fraction, cell.alpha, cell.converged.astype(float), index)
        _draw_cover_function(fraction, int(N), cell.alpha, index)
    stability.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel=r"largest stability $\kappa$ (median)")
    fraction.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel="fraction of separable sets")
    add_panel_letters(stability, fraction)
    keys = [key for ax in (stability, fraction) for key in ax.get_legend_handles_labels()[0]]
    add_title_and_legend(figure, simulation, [*keys, *marks], columns=3)
    figure.suptitle(f"random labels, {figure.get_suptitle()}")
    return figure


capacity = PublishedFigure(
    draw=draw_capacity,
    axes=("N", "alpha"),
    supported_values={"learner": ("max_stability",)},
    caption=(
        r"Random labels of $P=\alpha N$ examples. (a) Largest stability of a perceptron that stores the labels: median "
        r"over data sets if at least half of them can be stored, and Gardner's capacity $\alpha_c(\kappa)$, above "
        r"which almost no set can be stored with stability $\kappa$ for $N\to\infty$. (b) Fraction of the data sets "
        r"that can be stored at all, and Cover's exact function for the same $N$ at every integer number $P$ of "
        r"examples, which is one half at $P=2N$."
    ),
)


def _draw_cover_function(ax: Axes, N: int, alphas: Any, index: int) -> None:
    """Draw Cover's function at every integer number of examples."""
    P = np.arange(round(float(alphas.min()) * N), round(float(alphas.max()) * N) + 1)
    line_style = {"color": get_curve_style(index)["color"], "linestyle": CURVE_DASHES[index % len(CURVE_DASHES)]}
    ax.plot(P / N, separable_fraction(P, N), label=f"Cover, $N={N}$", **line_style)


def _compute_median_and_error(kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the median over data sets (..., seed) and its standard error.

    Sets that cannot be stored count as lowest values. The median is NaN if fewer than half can be stored. The standard
    error is half the distance between the order statistics one binomial standard deviation below and above the median.
    """
    ordered = np.sort(np.where(np.isnan(kappa), -np.inf, kappa), axis=-1)
    n = kappa.shape[-1]
    rank_offset = max(1, round(np.sqrt(n) / 2))
    middle, low, high = (
        ordered[..., n // 2],
        ordered[..., max(n // 2 - rank_offset, 0)],
        ordered[..., min(n // 2 + rank_offset, n - 1)],
    )
    with np.errstate(invalid="ignore"):
        stored = np.isfinite(low)
        return np.where(stored, middle, np.nan), np.where(stored, (high - low) / 2, np.nan)


PROJECTION_COLOUR, LENGTH_COLOUR = CURVE_COLOURS[:2]


class PerceptronRun(NamedTuple):
    """Perceptron updates on one data set, with the largest margin and the length of the longest example."""

    update_history: UpdateHistory
    activation_growth: np.ndarray  # increase of the activation by each update
    margin: float
    radius: float

    @property
    def update_numbers(self) -> np.ndarray:
        return np.arange(1, len(self.activation_growth) + 1)


def draw_proof(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw activations and bounds of the first data set, and projections and lengths of all data sets.

    Daume's (3.3) to (3.6): an update on a misclassified example raises its activation by the squared length of the
    example (by 1 more with a bias), but the example may still be misclassified afterwards. Block's and Novikoff's
    bounds: the projection on the direction u of largest margin grows by at least :math:`\gamma`, the squared length by
    at most :math:`R^2`, so that there are at most :math:`(R/\gamma)^2` updates.
    """
    runs = _make_separable_runs(simulation)
    figure, (activations, growth, bounds) = make_figure(3.1, 1, 3)
    _draw_activations(activations, runs[0])
    _draw_projections_and_lengths(growth, runs)
    _draw_length_bounds(bounds, runs[0])
    titles = ("one data set", f"{len(runs)} data sets", "data set of (a)")
    for ax, title in zip((activations, growth, bounds), titles, strict=True):
        ax.set(xlabel="updates $k$", title=title)
    add_panel_letters(activations, growth, bounds)
    draw_legend_below(figure, _order_legend_handles(activations, growth, bounds), columns=4)
    return figure


proof = PublishedFigure(
    draw=draw_proof,
    axes=("learner",),
    supported_values={"learner": ("perceptron", "max_stability")},
    caption=(
        r"Updates $k$ of the perceptron on separable data, without bias. (a) One data set: activation $a$ of the "
        r"example times its label before and after the update, in units of $|\mathbf{x}|^2$; the difference is 1, and "
        r"an example below the line $a=0$ is still misclassified. (b) All data sets: projection of $\mathbf{w}$ on the "
        r"direction $\mathbf{u}$ of largest margin $\gamma$, in units of $\gamma$, and squared length of $\mathbf{w}$, "
        r"in units of $R^2=\max|\mathbf{x}|^2$; the proof allows neither projections below $k$ nor squared lengths "
        r"above $k$. (c) The data set of (a): the bounds $k\gamma$ and $Rk^{1/2}$ on $|\mathbf{w}|$ meet at the "
        r"largest possible number of updates, $(R/\gamma)^2$."
    ),
    points_caption="",
    lines_caption="",
)


def _order_legend_handles(*panels: Axes) -> list[Artist]:
    """Sort the legend handles into columns: one for (a) and the update bound, one for (b), two for (c)."""
    before, after, *of_b, longest, length, projection, stability_bound, max_updates = (
        key for ax in panels for key in ax.get_legend_handles_labels()[0]
    )
    return [before, after, max_updates, *of_b, longest, stability_bound, length, projection]


def _draw_activations(ax: Axes, run: PerceptronRun) -> None:
    before, after = (
        run.update_history.activation_before / run.activation_growth,
        run.update_history.activation_after / run.activation_growth,
    )
    ax.vlines(run.update_numbers, before, after, color="0.7", linewidth=0.8)
    ax.plot(
        run.update_numbers,
        before,
        "v",
        color="0.2",
        markerfacecolor="white",
        label="before the update",
        gid=NO_LEGEND_GID,
    )
    ax.plot(run.update_numbers, after, "^", color="0.2", label="after the update", gid=NO_LEGEND_GID)
    ax.axhline(0, color="0.3", linewidth=0.7)
    ax.yaxis.set_major_locator(MultipleLocator(0.5))
    ax.set_ylabel(r"activation $y\,\mathbf{w}\cdot\mathbf{x}\,/\,|\mathbf{x}|^2$")


def _draw_projections_and_lengths(ax: Axes, runs: list[PerceptronRun]) -> None:
    max_updates = max(run.update_numbers.size for run in runs)
    for index, run in enumerate(runs):
        labels = (r"$\mathbf{u}\cdot\mathbf{w}/\gamma$", r"$|\mathbf{w}|^2/R^2$") if index == 0 else ("", "")
        projection, squared = (
            run.update_history.weight_projection / run.margin,
            run.update_history.squared_weight_length / run.radius**2,
        )
        ax.plot(
            run.update_numbers, projection, linewidth=0.6, label=labels[0], color=PROJECTION_COLOUR, gid=NO_LEGEND_GID
        )
        ax.plot(
            run.update_numbers,
            squared,
            linewidth=0.6,
            linestyle="-.",
            label=labels[1],
            color=LENGTH_COLOUR,
            gid=NO_LEGEND_GID,
        )
    ax.plot([1, max_updates], [1, max_updates], "--", color="0.1", label="$k$, bound of both")
    ax.set_ylabel("projection, squared length")
    set_log_axes(ax, "xy")


def _draw_length_bounds(ax: Axes, run: PerceptronRun) -> None:
    max_updates = (run.radius / run.margin) ** 2
    dense_k, marker_step = np.geomspace(1, 1.4 * max_updates, 200), choose_drawn_steps(run.update_numbers.size)
    ax.plot(dense_k, np.sqrt(dense_k) * run.radius, "--", color="0.1", label=r"$\sqrt{k}\,R$")
    ax.plot(
        run.update_numbers,
        np.sqrt(run.update_history.squared_weight_length),
        "D",
        color=LENGTH_COLOUR,
        markersize=2.5,
        label=r"$|\mathbf{w}|$",
        markevery=marker_step,
    )
    marker_style: dict[str, Any] = {"markersize": 2.5, "markerfacecolor": "white", "markeredgewidth": 0.7}
    ax.plot(
        run.update_numbers,
        run.update_history.weight_projection,
        "o",
        color=PROJECTION_COLOUR,
        label=r"$\mathbf{u}\cdot\mathbf{w}$",
        **marker_style,
        markevery=marker_step,
    )
    ax.plot(dense_k, dense_k * run.margin, ":", color="0.1", label=r"$k\gamma$")
    ax.axvline(max_updates, color="0.5", linewidth=0.8, label=rf"$(R/\gamma)^2={max_updates:.0f}$")
    ax.set_ylabel(r"length $|\mathbf{w}|$, projection")
    set_log_axes(ax, "xy")


def _make_separable_runs(simulation: xr.Dataset) -> list[PerceptronRun]:
    """Return the perceptron run of every separable data set, with examples in the order of the updates."""
    names = [str(name) for name in simulation.learner.values]
    if "strengths" not in simulation or not {"perceptron", "max_stability"} <= set(names):
        raise ConfigError('the figure "proof" requires `strengths: true` and the learners perceptron and max_stability')
    if "updates" not in simulation.dims or np.any(np.diff(simulation.updates, prepend=-1) != 1):
        raise ConfigError('the figure "proof" requires consecutive `updates`: 0, 1, 2, ...')
    x = simulation.strengths.transpose("learner", "seed", "updates", "example")
    visits_by_seed, best_strengths = (
        x.sel(learner="perceptron").values,
        x.sel(learner="max_stability").isel(updates=-1).values,
    )
    key, P, flip = scenario_from_dataset(simulation).key, int(simulation.P), float(simulation.flip)
    runs = []
    for seed, visits, strengths in zip(simulation.seed.values, visits_by_seed, best_strengths, strict=True):
        z = draw_data_set(key, int(seed), int(simulation.N), P, flip).z
        if np.isfinite(strengths).all():
            runs.append(_make_perceptron_run(z, np.diff(visits[:, :P], axis=0), strengths[:P] @ z))
    if not runs:
        raise ConfigError('the figure "proof" requires separable data, but no data set has a student without errors')
    return runs


def _make_perceptron_run(z: np.ndarray, strength_changes: np.ndarray, direction: np.ndarray) -> PerceptronRun:
    """Return the perceptron run of one data set from the changes of its embedding strengths.

    `strength_changes` (visits, P) is 1 if a visit added an example to w.
    """
    _, added = np.nonzero(strength_changes > 0.5)
    margin, radius = (z @ direction).min() / np.linalg.norm(direction), np.linalg.norm(z, axis=1).max()
    history = compute_update_history(z[added], direction)
    return PerceptronRun(history, (z[added] ** 2).sum(axis=1), float(margin), float(radius))
