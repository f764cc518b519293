"""The figure of the predicted learning curve of a table, with optional fits."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import make_figure
from figures.style import BAND_OPACITY, CURVE_COLOURS, SMALL_FONT_SIZE, STYLE_SETTINGS, THEORY_COLOUR, set_log_ticks
from statmech.numerics.statistics import take_mean_square_roots

ERROR_LABELS = {"eps_y": "error on fresh rows", "mse": "root mean squared error on fresh rows"}
MIN_LOG_AXIS_RATIO = 5  # largest over smallest error: a linear axis has more ticks at smaller ratios


def draw(curve: xr.Dataset, line: xr.Dataset, table: str = "") -> Figure:
    """Draw the error on fresh rows against the number of examples: prediction, measurements and theory alone.

    Parameters
    ----------
    curve
        The result of `statmech.predict_learning_curve`.
    line
        The same prediction at many numbers of examples.
    table
        The name of the table, for the title.
    """
    name = "eps_y" if "eps_y" in curve else "mse"
    attributes = curve.attrs
    curve, line = (take_mean_square_roots(part, "mse") for part in (curve, line))
    with mpl.rc_context(STYLE_SETTINGS):
        figure, ax = make_figure(4.0, width=4.8)
        if f"{name}_low" in line:
            ax.fill_between(
                line.P,
                line[f"{name}_low"],
                line[f"{name}_high"],
                color=CURVE_COLOURS[0],
                alpha=BAND_OPACITY,
                linewidth=0,
            )
            ax.plot(line.P, line[name], color=CURVE_COLOURS[0], label="predicted, with a band of 90 %")
            ax.plot(line.P, line[f"{name}_theory"], color=THEORY_COLOUR, linestyle="--", label="theory alone")
            points = curve.size, curve[f"{name}_measured"], curve[f"{name}_measured_error"]
            _draw_points(ax, *points, "o", "measured, with standard errors")
        else:
            ax.plot(line.P, line[name], color=THEORY_COLOUR, label="theory alone")
        if f"{name}_fit" in curve:
            _draw_points(
                ax, curve.P, curve[f"{name}_fit"], curve[f"{name}_fit_error"], "s", "fits, with standard errors"
            )
        constant_error = attributes["rarer_fraction"] if name == "eps_y" else attributes["target_variance"] ** 0.5
        answer = "always the more frequent label" if name == "eps_y" else "always the mean of the target"
        ax.axhline(constant_error, color="0.5", linestyle="-.", linewidth=0.8, label=answer)
        ax.axvline(attributes["rows"], color="0.5", linestyle=":", linewidth=0.8, label="rows of the table")
        ax.set_xscale("log")
        set_log_ticks(ax.xaxis)
        if ax.get_ylim()[1] > MIN_LOG_AXIS_RATIO * line[name].min():
            ax.set_yscale("log")
            set_log_ticks(ax.yaxis)
        elif ax.get_ylim()[1] >= 1000:
            ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set_xlabel("examples $P$")
        ax.set_ylabel(ERROR_LABELS[name])
        penalty = r"best $\lambda$" if attributes["lam"] == "best" else rf"$\lambda$ = {attributes['lam']}"
        ax.set_title(f"{escape_dollars(table)}{': ' if table else ''}{attributes['loss']} loss, {penalty}")
        ax.legend(frameon=False, fontsize=SMALL_FONT_SIZE, loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=2)
    return figure


def escape_dollars(text: str) -> str:
    """Escape dollar signs, which would start mathematics."""
    return text.replace("$", r"\$")


def _draw_points(
    ax: Axes, P: xr.DataArray, error: xr.DataArray, standard_error: xr.DataArray, marker: str, label: str
) -> None:
    is_finite = error.notnull().values
    style: dict[str, Any] = {
        "markersize": 4,
        "capsize": 2,
        "color": CURVE_COLOURS[1],
        "markerfacecolor": "white",
        "linestyle": "none",
    }
    ax.errorbar(
        P.values[is_finite],
        error.values[is_finite],
        standard_error.values[is_finite],
        marker=marker,
        label=label,
        **style,
    )
