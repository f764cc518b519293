r"""Plateaus of networks for inputs with the variances 1 - D and 1 + D: eps_g against t, and escape times.

A run escapes when :math:`|R_{11}+R_{22}-R_{12}-R_{21}|/2` reaches 1/4 (`figures.published.networks.escapes`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.legends import entry
from figures.panels import GUIDE, along, finish, guide, page, panel, scenario_with
from figures.published.networks.escapes import escape_times
from figures.style import THEORY, mean_points
from statmech.errors import ConfigError
from statmech.inputs import Spectrum
from statmech.results.dataset import scenario_of
from theory import plateau, solve

AXES = ("inputs",)  # sweep axes that this figure shows
VALUES = {"network": ("erf",)}
PLATEAU: dict[str, Any] = GUIDE | {"color": "0.3"}
PLACES = 24
CAPTION = (
    r"Two erf units learn online from a two-unit teacher. Inputs have the variance $(1-\Delta)/N$ in half of "
    r"the directions and $(1+\Delta)/N$ in the others. (a) $\epsilon_g$; dotted: the plateau of equal "
    r"variances. (b) The times at which runs leave the plateau, $|R_{11}+R_{22}-R_{12}-R_{21}|/2=1/4$."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against t with a colour per spread, and the escape times against the spread."""
    spreads = _spreads(theory)
    results, (figure, (error, escape)) = along(simulation, theory, "t"), page(3.0, 1, 2)
    keys = panel(error, results, "t", "eps_g", "inputs", log="y")
    for key, spread in zip(keys, spreads, strict=True):
        key.set_label(rf"$\Delta={spread:.2g}$")
    guide(error, y=plateau(2, 2, float(theory.eta)).eps_g, **PLATEAU)
    _times(escape, simulation, spreads)
    _line(escape, theory, spreads)
    return finish(figure, results, [*keys, entry(r"plateau at $\Delta=0$", **PLATEAU)], "eta")


def _spreads(theory: xr.Dataset) -> list[float]:
    """Return D for all inputs of the sweep.

    Raises `ConfigError` unless the variances are 1 - D and 1 + D in equal numbers of directions.
    """
    inputs = scenario_of(theory).inputs
    spectra = (
        [spectrum for spectrum in inputs if isinstance(spectrum, Spectrum)] if isinstance(inputs, tuple | list) else []
    )
    pairs = [
        spectrum.eigenvalues
        for spectrum in spectra
        if len(spectrum.eigenvalues) == 2 and spectrum == Spectrum(spectrum.eigenvalues)
    ]
    sizes = theory.sizes["student"], theory.sizes["teacher_unit"]
    if len(pairs) < 2 or len(pairs) < len(inputs) or not np.allclose(np.sum(pairs, axis=1), 2) or sizes != (2, 2):
        raise ConfigError(
            "the figure plateau_spread shows K = 2 student units and M = 2 teacher units for several spectra "
            "[1 - D, 1 + D]"
        )
    return [(high - low) / 2 for low, high in pairs]


def _times(ax: Axes, simulation: xr.Dataset, spreads: list[float]) -> None:
    """Draw mean escape times if all runs have escaped, in the colours of the first panel."""
    for index, (spread, times) in enumerate(
        zip(spreads, escape_times(simulation.transpose("inputs", ...)), strict=True)
    ):
        error = np.std(times, ddof=1) / np.sqrt(times.size) if times.size > 1 else 0.0
        mean_points(ax, [spread], [np.mean(times)], [error], index)
    ax.set(xlabel=r"spread of the variances $\Delta$", ylabel=r"$t_\mathrm{esc}$ (steps / $N$)")


def _line(ax: Axes, theory: xr.Dataset, spreads: list[float]) -> None:
    """Draw the escape times that the equations predict."""
    spread = np.linspace(min(spreads), max(spreads), PLACES)
    spectra = [{"spectrum": [1 - delta, 1 + delta]} for delta in spread]
    ax.plot(spread, escape_times(solve(scenario_with(theory, inputs=spectra))), color=THEORY, zorder=1)
