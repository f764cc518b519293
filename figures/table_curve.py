"""The predicted learning curve of a table of data, with fits beside it where there are some."""

from __future__ import annotations

import matplotlib as mpl
import xarray as xr
from matplotlib.figure import Figure

from figures.panels import page
from figures.style import COLOURS, STYLE, THEORY, log_ticks

LABELS = {"eps_y": "error on fresh rows", "mse": "mean squared error on fresh rows"}


def draw(curve: xr.Dataset, line: xr.Dataset) -> Figure:
    """Draw the error on fresh rows against the number of examples, and where the rows of the table end.

    Parameters
    ----------
    curve
        What `statmech.predict_learning_curve` returns, whose fits are drawn if it has some.
    line
        The same at many numbers of examples.
    """
    name = "eps_y" if "eps_y" in curve else "mse"
    with mpl.rc_context(STYLE):
        figure, ax = page(3.2, width=4.5)
        ax.plot(line.P, line[name], color=THEORY, label="predicted")
        if f"{name}_fit" in curve:
            deviation = curve[f"{name}_fit_error"]
            points = {"fmt": "o", "markersize": 4, "capsize": 2, "color": COLOURS[0], "markerfacecolor": "white"}
            ax.errorbar(curve.P, curve[f"{name}_fit"], deviation, label="fits, with standard errors", **points)
        ax.axvline(curve.attrs["rows"], color="0.5", linestyle=":", linewidth=0.8, label="rows of the table")
        ax.set_xscale("log")
        log_ticks(ax.xaxis)
        if (line[name] > 0).any():  # else nothing is determined, or no error is left
            ax.set_yscale("log")
            log_ticks(ax.yaxis)
        ax.set_xlabel("examples $P$")
        ax.set_ylabel(LABELS[name])
        ax.legend(frameon=False)
    return figure
