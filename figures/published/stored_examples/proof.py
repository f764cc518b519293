r"""The perceptron convergence proof in measured runs: effect of every update on activation, projection and length.

Daume's (3.3) to (3.6): an update on a misclassified example raises its activation by the squared length of the example
(by 1 more with a bias), but the example may still be misclassified afterwards. Block's and Novikoff's bounds: the
projection on the direction u of largest margin grows by at least :math:`\gamma`, the squared length by at
most :math:`R^2`, so that there are at most :math:`(R/\gamma)^2` updates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from figures.panels import add_panel_letters, draw_legend_below, make_figure, set_log_axes
from figures.style import CURVE_COLOURS, NO_LEGEND_GID, choose_drawn_steps
from simulate.kinds.stored_examples import draw_data_set
from simulate.learners.perceptron_convergence import UpdateHistory, compute_update_history
from statmech.errors import ConfigError
from statmech.stores.dataset import scenario_from_dataset

AXES = ("learner",)  # sweep axes that this figure shows
SUPPORTED_VALUES = {"learner": ("perceptron", "max_stability")}
PROJECTION_COLOUR, LENGTH_COLOUR = CURVE_COLOURS[:2]
CAPTION = (
    r"Updates $k$ of the perceptron on separable data, without bias. (a) One data set: activation $a$ of the example "
    r"times its label before and after the update, in units of $|\mathbf{x}|^2$; the difference is 1, and an example "
    r"below the line $a=0$ is still misclassified. (b) All data sets: projection of $\mathbf{w}$ on the direction "
    r"$\mathbf{u}$ of largest margin $\gamma$, in units of $\gamma$, and squared length of $\mathbf{w}$, in units of "
    r"$R^2=\max|\mathbf{x}|^2$; the proof allows neither projections below $k$ nor squared lengths above $k$. (c) The "
    r"data set of (a): the bounds $k\gamma$ and $Rk^{1/2}$ on $|\mathbf{w}|$ meet at the largest possible number of "
    r"updates, $(R/\gamma)^2$."
)
POINTS_CAPTION = ""
LINES_CAPTION = ""


class PerceptronRun(NamedTuple):
    """Perceptron updates on one data set, with the largest margin and the length of the longest example."""

    update_history: UpdateHistory
    activation_growth: np.ndarray  # increase of the activation by each update
    margin: float
    radius: float

    @property
    def update_numbers(self) -> np.ndarray:
        return np.arange(1, len(self.activation_growth) + 1)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw activations and bounds of the first data set, and projections and lengths of all data sets."""
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
