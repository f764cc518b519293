"""Draws. One published figure is one file here, one pure `draw(simulation, theory) -> Figure`, and one config."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from statmech.errors import ConfigError, not_known

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

FIGURES = {
    "ensemble": "Figures 1 to 4 of Miyoshi, Hara & Okada on one page",
    "hebb_ensemble": "Figure 1: effect of the ensemble in Hebbian learning",
    "perceptron_ensemble": "Figure 2: effect of the ensemble in perceptron learning",
    "adatron_ensemble": "Figure 3: effect of the ensemble in AdaTron learning",
    "variety": "Figure 4: the relation of R and q",
    "learning_curves": "eps_g(t) of one student, vote and weight mean, for every rule",
    "overlay": "any scenario: every order parameter against t",
}


def named(figure: str | None, config: str) -> str:
    """The figure that a config asks for, or that has its name, or the overlay; raises `ConfigError` if unknown."""
    if figure is not None and figure not in FIGURES:
        raise ConfigError(f"figure: {not_known(figure, 'a figure', FIGURES)}")
    return figure or (config if config in FIGURES else "overlay")


def fitting(name: str, theory: xr.Dataset) -> str:
    """The figure of this name if the sweep has no axis that it cannot show, else the overlay, which shows any."""
    shown = _axes(name)
    return name if shown is None or set(theory.R.dims) <= {*shown, "t", "student"} else "overlay"


def draw(name: str, simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a figure by name; axes it shows that the sweep does not have become axes of one value."""
    missing = [axis for axis in _axes(name) or () if axis not in theory.dims]
    simulation, theory = (part.expand_dims(missing) for part in (simulation, theory))
    figure: Figure = import_module(f"figures.{name}").draw(simulation, theory)
    return figure


def _axes(name: str) -> tuple[str, ...] | None:
    """The sweep axes that a figure shows; None: any."""
    axes: tuple[str, ...] | None = import_module(f"figures.{name}").AXES
    return axes
