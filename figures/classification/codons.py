"""Pair conjunctions that a sparse perceptron learns from sequences: their positions reveal the codons."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from figures.labels import describe_size_and_runs
from figures.panels import draw_legend_below, make_figure, set_heading
from figures.style import CURVE_COLOURS, NO_LEGEND_GID
from statmech.errors import ConfigError
from statmech.inputs.data_sets import find_data_source

AXES = ("discount",)  # sweep axes that this figure shows
SUPPORTED_VALUES = {"classifier": ("boosting",)}
CODON_LENGTH = 3  # letters per codon
CODON_FRAME_COLOUR = CURVE_COLOURS[1]
CAPTION = (
    "Sum of the weights of conjunctions of two bases at each pair of positions, averaged over folds, for each discount "
    "d (Jackson & Craven, section 4). Examples are windows of five codons, outlined as squares. Percentages: fraction "
    "of the conjunctions within one codon, which is 14 % for all pairs of positions. The windows stand in for the "
    "paper's data."
)
POINTS_CAPTION = ""


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the mean weights of pairs in shades of grey, one panel per discount."""
    if "pair_weights" not in simulation:
        raise ConfigError('the figure "codons" requires `positions: true`, which records where conjunctions lie')
    figure, axes = make_figure(3.9, 1, simulation.sizes["discount"], sharey=True, squeeze=False)
    panels = list(axes.flat)
    mean = simulation.pair_weights.mean(["seed", "fold"])
    norm = PowerNorm(0.5, vmin=0, vmax=float(mean.max()) or 1.0)
    for ax, discount in zip(panels, simulation.discount.values, strict=True):
        image = _draw_pair_weights(ax, mean.sel(discount=discount), norm)
        _outline_codons(ax, simulation.sizes["position"])
        ax.set(xlabel="position of the first base", title=_format_discount_title(simulation.sel(discount=discount)))
    panels[0].set_ylabel("position of the second base")
    figure.colorbar(image, ax=panels, label=r"$\sum|w|$ of conjunctions (square-root scale)", shrink=0.9)
    set_heading(
        figure,
        [find_data_source(str(simulation.data.item())).title_with_stand_in_mark, describe_size_and_runs(simulation)],
    )
    draw_legend_below(figure, [Patch(fill=False, edgecolor=CODON_FRAME_COLOUR, label="within one codon")])
    return figure


def _draw_pair_weights(ax: Axes, mean_weights: Any, norm: PowerNorm) -> Any:
    """Draw the weights of all pairs of positions as an image.

    The first position is on the x axis, and the second, later position on the y axis.
    """
    edges = np.append(mean_weights.position.values - 0.5, mean_weights.position.values[-1] + 0.5)
    is_later = mean_weights.position.values[:, None] < mean_weights.partner.values
    image = ax.pcolormesh(
        edges, edges, np.where(is_later, mean_weights.values, np.nan).T, cmap="Greys", norm=norm, rasterized=True
    )
    ticks = mean_weights.position.values[:: 2 if len(edges) < 20 else 10]
    ax.set(aspect="equal", xticks=ticks, yticks=ticks)
    return image


def _outline_codons(ax: Axes, num_positions: int) -> None:
    """Draw a frame around the pairs within each codon."""
    for first in range(1, num_positions - CODON_LENGTH + 2, CODON_LENGTH):
        low, high = first - 0.5, first + CODON_LENGTH - 0.5
        ax.plot(
            [low, high, high, low, low],
            [low, low, high, high, low],
            color=CODON_FRAME_COLOUR,
            linewidth=1.0,
            clip_on=False,
            gid=NO_LEGEND_GID,
        )


def _format_discount_title(cell: xr.Dataset) -> str:
    pairs, codon_pairs = float(cell.pairs.sum()), float(cell.codon_pairs.sum())
    percent_text = f": {100 * codon_pairs / pairs:.0f} % in codons" if pairs and np.isfinite(codon_pairs) else ""
    return f"$d$ = {float(cell.discount):g}{percent_text}"
