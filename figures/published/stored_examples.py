"""Figures of perceptrons that store examples: capacity, number of mistakes, and the proof of convergence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from figures.derived_data import select_last_recorded
from figures.labels import describe_size_and_runs
from figures.panels import (
    GUIDE_STYLE,
    GUIDE_TEXT_STYLE,
    add_panel_letters,
    add_title_and_legend,
    draw_legend_below,
    make_curve_handle,
    make_figure,
    make_line_handle,
    set_heading,
    set_log_axes,
)
from figures.published_figure import PublishedFigure
from figures.style import (
    CURVE_COLOURS,
    CURVE_DASHES,
    NO_LEGEND_GID,
    THEORY_COLOUR,
    draw_mean_points,
    draw_seed_means,
    get_curve_style,
    nested_marker_size,
)
from simulate.kinds.stored_examples import draw_data_set
from simulate.learners.perceptron_convergence import UpdateHistory, compute_update_history
from statmech.errors import ConfigError
from statmech.stores.dataset import scenario_from_dataset
from theory import separable_fraction
from theory.stored_examples import learning_curves_and_bounds

CAPACITY_NOTE = "lines: theory, (a) of Gardner and (b) of Cover at the same $N$; the points of (a) coincide"


def draw_capacity(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw the largest stability and the fraction of separable sets against alpha, one colour per N.

    Left: the largest stability of a perceptron that stores the random labels of P = alpha N examples, as the median
    over data sets. For infinite N this is the kappa with :math:`\alpha_c(\kappa)=\alpha`. Right: fraction of sets that
    can be stored at all, with Cover's exact counting function for the same N at integer numbers of examples. This
    fraction is one half at alpha = 2 for every N.
    """
    last, (figure, (stability, fraction)) = select_last_recorded(simulation), make_figure(2.8, 1, 2, sharex=True)
    kappa, marks = np.linspace(0, 10, 2001), [make_line_handle(r"Gardner, $N\to\infty$")]
    is_shown = learning_curves_and_bounds.capacity(kappa) >= float(last.alpha.min())
    stability.plot(learning_curves_and_bounds.capacity(kappa)[is_shown], kappa[is_shown], color=THEORY_COLOUR)
    for index, N in enumerate(last.N.values):
        cell = last.sel(N=N)
        style = get_curve_style(index) | nested_marker_size(index, last.sizes["N"])
        draw_mean_points(stability, cell.alpha, *_compute_median_and_error(cell.kappa.values), style)
        marks.append(make_curve_handle(index, f"$N$ = {N}", linestyle=CURVE_DASHES[index % len(CURVE_DASHES)]))
        draw_seed_means(fraction, cell.alpha, cell.converged.astype(float), index)
        _draw_cover_function(fraction, int(N), cell.alpha, index)
    stability.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel=r"median stability $\kappa$")
    fraction.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel="separable fraction")
    add_panel_letters(stability, fraction)
    add_title_and_legend(figure, simulation, marks, note=CAPACITY_NOTE)
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
    points_caption="Points: simulation; bars: standard errors.",
)


def _draw_cover_function(ax: Axes, N: int, alphas: Any, index: int) -> None:
    """Draw Cover's function at every integer number of examples."""
    P = np.arange(round(float(alphas.min()) * N), round(float(alphas.max()) * N) + 1)
    line_style = {"color": get_curve_style(index)["color"], "linestyle": CURVE_DASHES[index % len(CURVE_DASHES)]}
    ax.plot(P / N, separable_fraction(P, N), **line_style)


def _compute_median_and_error(kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the median over data sets (..., seed) and its standard error.

    Sets that cannot be stored count as lowest values. The median is NaN if fewer than half can be stored. The standard
    error is half the distance between the order statistics one binomial standard deviation below and above the median.
    """
    ordered = np.sort(np.where(np.isnan(kappa), -np.inf, kappa), axis=-1)
    n = kappa.shape[-1]
    rank_offset = max(1, round(np.sqrt(n) / 2))
    middle = ordered[..., n // 2]
    low = ordered[..., max(n // 2 - rank_offset, 0)]
    high = ordered[..., min(n // 2 + rank_offset, n - 1)]
    with np.errstate(invalid="ignore"):
        stored = np.isfinite(low)
        return np.where(stored, middle, np.nan), np.where(stored, (high - low) / 2, np.nan)


PROJECTION_COLOUR, LENGTH_COLOUR = CURVE_COLOURS[:2]
BOUND_STYLE: dict[str, Any] = {"linestyle": "--", "linewidth": 0.9, "gid": NO_LEGEND_GID}
PROOF_SYMBOLS_NOTE = (
    r"$\mathbf{u}$: unit vector of the largest margin $\gamma$; $R$: length of the longest example; "
    r"$\mathbf{x}$, $y$: example and its label; $N$: input dimension"
)


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
    figure, (activations, growth, bounds) = make_figure(3.2, 1, 3)
    _draw_activations(activations, runs[0])
    for run in runs:
        _draw_growth(growth, run, run.update_history.weight_projection / run.margin, PROJECTION_COLOUR)
        _draw_growth(growth, run, run.update_history.squared_weight_length / run.radius**2, LENGTH_COLOUR)
    ends = np.array([1, max(run.update_numbers.size for run in runs)])
    growth.plot(ends, ends, color="0.1", **BOUND_STYLE)
    growth.set_ylabel(r"$\mathbf{u}\cdot\mathbf{w}\,/\,\gamma$ and $|\mathbf{w}|^2/R^2$")
    _draw_length_bounds(bounds, runs[0])
    titles = ("one data set", f"{len(runs)} data sets", "data set of (a)")
    for ax, title in zip((activations, growth, bounds), titles, strict=True):
        ax.set(xlabel="updates $k$", title=title)
    for ax in (growth, bounds):
        set_log_axes(ax, "xy")
    add_panel_letters(activations, growth, bounds)
    keys = [
        *activations.get_legend_handles_labels()[0],
        make_line_handle(r"projection $\mathbf{u}\cdot\mathbf{w}$", color=PROJECTION_COLOUR),
        make_line_handle(r"length $|\mathbf{w}|$, squared in (b)", color=LENGTH_COLOUR),
        make_line_handle("bounds of the proof", color="0.1", **BOUND_STYLE),
    ]
    set_heading(figure, [f"$P$ = {simulation.sizes['example']} examples", describe_size_and_runs(simulation)])
    draw_legend_below(figure, keys, columns=3, note=PROOF_SYMBOLS_NOTE)
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
        r"above $k$ (dashed). (c) The data set of (a): the bounds (dashed) $k\gamma$ on the projection and $Rk^{1/2}$ "
        r"on the length meet at the largest possible number of updates, $(R/\gamma)^2$ (dotted)."
    ),
    points_caption="",
    lines_caption="",
)


def _draw_activations(ax: Axes, run: PerceptronRun) -> None:
    before = run.update_history.activation_before / run.activation_growth
    after = run.update_history.activation_after / run.activation_growth
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


def _draw_growth(ax: Axes, run: PerceptronRun, values: Any, colour: str, linewidth: float = 0.6) -> None:
    ax.plot(run.update_numbers, values, color=colour, linewidth=linewidth, gid=NO_LEGEND_GID)


def _draw_length_bounds(ax: Axes, run: PerceptronRun) -> None:
    """Draw projection and length with their bounds, which meet at the largest number of updates."""
    max_updates, history = (run.radius / run.margin) ** 2, run.update_history
    dense_k = np.geomspace(1, 1.6 * max_updates, 200)
    ax.plot(dense_k, np.sqrt(dense_k) * run.radius, color=LENGTH_COLOUR, **BOUND_STYLE)
    ax.plot(dense_k, dense_k * run.margin, color=PROJECTION_COLOUR, **BOUND_STYLE)
    _draw_growth(ax, run, np.sqrt(history.squared_weight_length), LENGTH_COLOUR, linewidth=1.2)
    _draw_growth(ax, run, history.weight_projection, PROJECTION_COLOUR, linewidth=1.2)
    ax.axvline(max_updates, **GUIDE_STYLE)
    text_style = GUIDE_TEXT_STYLE | {"ha": "right", "xycoords": ax.get_xaxis_transform()}
    ax.annotate(rf"$(R/\gamma)^2={max_updates:.0f}$", (max_updates, 0), (-3, 3), **text_style)
    ax.set_ylabel(r"$\mathbf{u}\cdot\mathbf{w}$ and $|\mathbf{w}|$")


def _make_separable_runs(simulation: xr.Dataset) -> list[PerceptronRun]:
    """Return the perceptron run of every separable data set, with examples in the order of the updates."""
    names = [str(name) for name in simulation.learner.values]
    if "strengths" not in simulation or not {"perceptron", "max_stability"} <= set(names):
        raise ConfigError('the figure "proof" requires `strengths: true` and the learners perceptron and max_stability')
    if "updates" not in simulation.dims or np.any(np.diff(simulation.updates, prepend=-1) != 1):
        raise ConfigError('the figure "proof" requires consecutive `updates`: 0, 1, 2, ...')
    x = simulation.strengths.transpose("learner", "seed", "updates", "example")
    visits_by_seed = x.sel(learner="perceptron").values
    best_strengths = x.sel(learner="max_stability").isel(updates=-1).values
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
