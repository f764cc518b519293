r"""Plateaus of networks for inputs with the variances 1 - D and 1 + D: eps_g against t, and escape times.

A run escapes when :math:`|R_{11}+R_{22}-R_{12}-R_{21}|/2` reaches 1/4 (`figures.published.networks.escape_times`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.legends import make_line_handle
from figures.panels import (
    GUIDE_STYLE,
    add_title_and_legend,
    draw_guide,
    draw_panel,
    make_figure,
    modify_scenario,
    select_with_dense_theory,
)
from figures.published.networks.escape_times import find_escape_times
from figures.style import THEORY_COLOUR, draw_mean_points
from statmech.errors import ConfigError
from statmech.inputs.input_distributions import Spectrum
from statmech.stores.dataset import scenario_from_dataset
from theory import plateau, solve

AXES = ("inputs",)  # sweep axes that this figure shows
SUPPORTED_VALUES = {"network": ("erf",)}
PLATEAU_GUIDE_STYLE: dict[str, Any] = GUIDE_STYLE | {"color": "0.3"}
SPREAD_LINE_POINTS = 24
CAPTION = (
    r"Two erf units learn online from a two-unit teacher. Inputs have the variance $(1-\Delta)/N$ in half of the "
    r"directions and $(1+\Delta)/N$ in the other half. (a) $\epsilon_g$; dotted: the plateau for equal variances. (b) "
    r"Times at which runs leave the plateau, $|R_{11}+R_{22}-R_{12}-R_{21}|/2=1/4$."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against t with one colour per spread, and the escape times against the spread."""
    spreads = _get_variance_spreads(theory)
    results, (figure, (error, escape)) = select_with_dense_theory(simulation, theory, "t"), make_figure(3.0, 1, 2)
    keys = draw_panel(error, results, "t", "eps_g", "inputs", log="y")
    for key, spread in zip(keys, spreads, strict=True):
        key.set_label(rf"$\Delta={spread:.2g}$")
    draw_guide(error, y=plateau(2, 2, float(theory.eta)).eps_g, **PLATEAU_GUIDE_STYLE)
    _draw_escape_times(escape, simulation, spreads)
    _draw_predicted_escape_times(escape, theory, spreads)
    return add_title_and_legend(
        figure, results, [*keys, make_line_handle(r"plateau at $\Delta=0$", **PLATEAU_GUIDE_STYLE)], "eta"
    )


def _get_variance_spreads(theory: xr.Dataset) -> list[float]:
    """Return the spread D of the variances for all inputs of the sweep.

    Raises `ConfigError` unless the variances are 1 - D and 1 + D in equal numbers of directions.
    """
    inputs = scenario_from_dataset(theory).inputs
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
            'the figure "plateau_spread" requires K = 2 student units, M = 2 teacher units and several spectra '
            "[1 - D, 1 + D]"
        )
    return [(high - low) / 2 for low, high in pairs]


def _draw_escape_times(ax: Axes, simulation: xr.Dataset, spreads: list[float]) -> None:
    """Draw mean escape times in the colours of the first panel, if all runs have escaped."""
    for index, (spread, times) in enumerate(
        zip(spreads, find_escape_times(simulation.transpose("inputs", ...)), strict=True)
    ):
        error = np.std(times, ddof=1) / np.sqrt(times.size) if times.size > 1 else 0.0
        draw_mean_points(ax, [spread], [np.mean(times)], [error], index)
    ax.set(xlabel=r"spread of the variances $\Delta$", ylabel=r"$t_\mathrm{esc}$ (steps / $N$)")


def _draw_predicted_escape_times(ax: Axes, theory: xr.Dataset, spreads: list[float]) -> None:
    """Draw the escape times that the equations predict."""
    spread = np.linspace(min(spreads), max(spreads), SPREAD_LINE_POINTS)
    spectra = [{"spectrum": [1 - delta, 1 + delta]} for delta in spread]
    ax.plot(spread, find_escape_times(solve(modify_scenario(theory, inputs=spectra))), color=THEORY_COLOUR, zorder=1)
