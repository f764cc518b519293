"""Errors that decay as powers of t, for inputs with power-law variances.

With variances i^-a and powers i^-b of the teacher's field, and an algorithm that learns only from errors, the errors
decay with the exponent q/(2 + q), q = (b - 1)/a. Guides next to the lines show this power.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.panels import add_title_and_legend, draw_panel, make_figure, select_with_dense_theory
from figures.style import NO_LEGEND_GID, SMALL_FONT_SIZE
from statmech.errors import ConfigError
from statmech.inputs.input_distributions import PowerLaw
from statmech.stores.dataset import scenario_from_dataset

AXES = ("inputs",)  # sweep axes that this figure shows
GUIDE_START_FACTOR, GUIDE_STOP_FACTOR, GUIDE_HEIGHT_FACTOR = (
    1.5,
    0.05,
    0.94,
)  # factors of the first time, the last time and the height of the line
GUIDE_LABEL_HEIGHT_FACTOR = 0.98  # the exponent is just below the end of the guide
CAPTION = (
    r"Generalization error of one student against the number of examples, for inputs with variances $\propto i^{-a}$ "
    r"and a teacher whose field has contributions $\propto i^{-b}$. Thin grey: the power laws $t^{-q/(2+q)}$, "
    r"$q=(b-1)/a$, for infinitely many directions."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error for each power law, with a guide that shows the predicted power of t."""
    power_laws = _get_power_laws(theory)
    figure, ax = make_figure(4.0)
    results = select_with_dense_theory(simulation, theory, "t")
    keys = draw_panel(ax, results, "t", "eps_g", "inputs", log="xy")
    for key, power_law, line in zip(
        keys, power_laws, theory.eps_g.isel(student=0).transpose("inputs", "t"), strict=True
    ):
        key.set_label(f"$a={power_law.decay:g}$, $b={power_law.teacher_decay:g}$")
        _draw_power_guide(ax, power_law, line.sel(t=line.t > 0))
    return add_title_and_legend(figure, results, keys, "rule")


def _get_power_laws(theory: xr.Dataset) -> list[PowerLaw]:
    """Return the power laws of all inputs of the sweep.

    Raises `ConfigError` unless there are several inputs, all with power laws.
    """
    inputs = scenario_from_dataset(theory).inputs
    power_laws = (
        [inputs_item for inputs_item in inputs if isinstance(inputs_item, PowerLaw)]
        if isinstance(inputs, tuple | list)
        else []
    )
    if len(power_laws) < 2 or len(power_laws) < len(inputs):
        raise ConfigError('the figure "sgd_power_law" requires several inputs, all with power laws')
    return power_laws


def _draw_power_guide(ax: Axes, power_law: PowerLaw, line: xr.DataArray) -> None:
    """Draw the predicted power of time below a line, labelled with its exponent."""
    q = (power_law.teacher_decay - 1) / power_law.decay
    exponent = q / (2 + q)
    t = line.t.values
    begin, end = ends = np.array([GUIDE_START_FACTOR * t[0], GUIDE_STOP_FACTOR * t[-1]])
    first = GUIDE_HEIGHT_FACTOR * np.exp(np.interp(np.log(begin), np.log(t), np.log(line)))
    ax.plot(ends, first * (ends / begin) ** -exponent, color="0.6", linewidth=0.6, zorder=0, gid=NO_LEGEND_GID)
    ax.text(
        end,
        GUIDE_LABEL_HEIGHT_FACTOR * first * (end / begin) ** -exponent,
        rf"$t^{{-{Fraction(exponent).limit_denominator(99)}}}$",
        color="0.4",
        fontsize=SMALL_FONT_SIZE,
        ha="right",
        va="top",
        gid=NO_LEGEND_GID,
    )
