"""Learning curves of real tables: a figure of the predicted curve, theory lines, titles and labels.

The predicted curve of a table is drawn with optional fits.
"""

from __future__ import annotations

import json
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import combine_with_lines, make_figure, modify_scenario
from figures.style import BAND_OPACITY, CURVE_COLOURS, SMALL_FONT_SIZE, STYLE_SETTINGS, THEORY_COLOUR, set_log_ticks
from statmech.inputs.data_sets import find_data_source
from statmech.inputs.real_tables import is_data_set_name
from statmech.results.results import Results
from theory.solutions import solve_line

EXAMPLE_COUNT_LINE_POINTS = 150  # dense: the line bends sharply where P equals the number of columns
EXAMPLE_COUNT_AXIS_LABEL = "number of examples $P$"
TABLE_ERROR_LABELS = {"eps_y": r"label error $\epsilon_y$", "mse_y": "mean squared error"}
TABLE_THEORY_NOTE = "points: learners, mean and standard error; lines: theory, computed from the table alone"


def add_dense_theory_lines(simulation: xr.Dataset, theory: xr.Dataset) -> Results:
    """Combine results with theory on a dense grid of numbers of examples.

    Parameters
    ----------
    simulation, theory
        Results of learners of real tables, with the axis P.
    """
    P = np.geomspace(theory.P.values.min(), theory.P.values.max(), EXAMPLE_COUNT_LINE_POINTS)
    lines = solve_line(modify_scenario(theory, P=np.unique(P.round().astype(int)).tolist()))
    return combine_with_lines(
        simulation, theory, lines.expand_dims([dim for dim in theory.dims if dim not in lines.dims])
    )


def get_table_diagnoses(theory: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Return the diagnosis of each table by the name of its inputs."""
    tables: dict[str, dict[str, Any]] = json.loads(theory.attrs["tables"])
    return tables


def get_table_title(inputs: str) -> str:
    """Return the title of a table from the name of its inputs.

    >>> get_table_title("rows digits-3-8"), get_table_title("rows mine.csv")
    ('digits 3 and 8', 'mine.csv')
    """
    rows = inputs.removeprefix("rows ")
    return find_data_source(rows).title if is_data_set_name(rows) else rows


ERROR_LABELS = {"eps_y": "error on fresh rows", "mse": "mean squared error on fresh rows"}


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
        if "rarer_fraction" in attributes:
            label = "always the more frequent label"
            ax.axhline(attributes["rarer_fraction"], color="0.5", linestyle="-.", linewidth=0.8, label=label)
        ax.axvline(attributes["rows"], color="0.5", linestyle=":", linewidth=0.8, label="rows of the table")
        ax.set(xscale="log", yscale="log")
        set_log_ticks(ax.xaxis)
        set_log_ticks(ax.yaxis)
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
