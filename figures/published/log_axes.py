"""Logarithmic axes of alpha and of eps_g with ticks that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def logarithmic_alpha(ax: Axes) -> None:
    """A logarithmic axis of alpha."""
    ax.set(xscale="log", xlabel=r"$\alpha=P/N$")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())


def logarithmic_error(ax: Axes) -> None:
    """A logarithmic axis of eps_g."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(FixedLocator([0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5]))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
