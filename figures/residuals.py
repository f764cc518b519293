"""Residual strips below panels: deviations of means from theory, in standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures.series import Curve
from figures.style import NO_LEGEND_GID, SMALL_FONT_SIZE

STRIP_LABEL_TEMPLATE = "residuals of panel {}"  # identifies the axes of a strip
STRIP_HEIGHT_RATIOS = (3, 1)  # relative heights of panel and strip
STRIP_FIGURE_HEIGHT_FACTOR = 1.35  # height of a figure with strips, relative to a figure without strips
MAX_SHADED_Z = 2.0  # standard errors
MIN_Z_AXIS_LIMIT = 3.5  # standard errors that the z axis shows at least


def draw_residual_strip(ax: Axes, curve: Curve, style: dict[str, Any]) -> None:
    """Draw the residuals z = (mean - theory) / standard error of a curve in the strip below a panel."""
    if curve.mean is None or curve.theory_at_x is None or curve.error is None:
        return
    strip = get_residual_strip(ax) or _add_strip(ax)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (curve.mean - curve.theory_at_x) / curve.error
    is_finite = np.isfinite(z)
    strip.plot(
        curve.x[is_finite],
        z[is_finite],
        **{"markerfacecolor": "white", **style, "linestyle": "none", "gid": NO_LEGEND_GID},
    )
    limit = 1.1 * max(MIN_Z_AXIS_LIMIT, strip.get_ylim()[1] / 1.1, float(np.abs(z[is_finite]).max(initial=0)))
    strip.set_ylim(-limit, limit)


def get_residual_strip(ax: Axes) -> Any:
    """Return the strip below a panel, or None without a strip."""
    all_axes = ax.figure.axes
    return next(
        (
            candidate
            for candidate in all_axes
            if candidate.get_label() == STRIP_LABEL_TEMPLATE.format(all_axes.index(ax))
        ),
        None,
    )


def is_residual_strip(ax: Axes) -> bool:
    """Return True if axes are a strip of residuals."""
    return str(ax.get_label()).startswith(STRIP_LABEL_TEMPLATE.format(""))


def move_x_labels_below_strips(figure: Figure) -> None:
    """Move the labels of horizontal axes below the strips."""
    for ax in figure.axes:
        if strip := get_residual_strip(ax):
            strip.set_xlabel(ax.get_xlabel())
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False)
            strip.tick_params(labelbottom=True)


def _add_strip(ax: Axes) -> Axes:
    """Split the space of a panel, and create a strip in its lower part."""
    spec = ax.get_subplotspec()
    assert spec is not None
    parts = spec.subgridspec(2, 1, height_ratios=STRIP_HEIGHT_RATIOS)
    number = ax.figure.axes.index(ax)
    strip: Axes = ax.figure.add_subplot(parts[1], sharex=ax, label=STRIP_LABEL_TEMPLATE.format(number))
    ax.set_subplotspec(parts[0])
    strip.axhspan(-MAX_SHADED_Z, MAX_SHADED_Z, color="0.92", linewidth=0, zorder=0)
    strip.axhline(0, color="0.5", linewidth=0.6, zorder=0)
    strip.set(ylabel="$z$", ylim=(-MIN_Z_AXIS_LIMIT, MIN_Z_AXIS_LIMIT))
    strip.yaxis.set_major_locator(MaxNLocator(2, steps=(1, 2, 5, 10)))
    strip.tick_params(axis="y", labelsize=SMALL_FONT_SIZE)
    return strip
