"""Draws. One published figure is one file here, one pure `draw(simulation, theory) -> Figure`, and one config."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from statmech.errors import ConfigError, not_known

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

ONLINE = {
    "ensemble": "Figures 1 to 4 of Miyoshi, Hara & Okada on one page",
    "hebb_ensemble": "Figure 1: effect of the ensemble in Hebbian learning",
    "perceptron_ensemble": "Figure 2: effect of the ensemble in perceptron learning",
    "adatron_ensemble": "Figure 3: effect of the ensemble in AdaTron learning",
    "variety": "Figure 4: the relation of R and q",
    "learning_curves": "eps_g(t) of one student, vote and weight mean, for every rule",
    "overlay": "any scenario: every order parameter against t",
}
STORED = {
    "minover": "MinOver assignment, experiments A and B: eps_g against alpha for several numbers of epochs",
    "minover_noise": "MinOver assignment, experiment C: eps_g against alpha for several shares of flipped labels",
    "minover_updates": "eps_g against the number of updates: what the assignment's tmax means",
    "minover_stops": "what MinOver's stop rules do, against alpha",
    "stored_curves": "learning curves of all learners of stored examples over all lines of theory",
    "capacity": "Gardner's alpha_c(kappa) and Cover's counting function, with the share of separable sets",
    "stored_overlay": "any scenario of stored examples: eps_g, R and kappa against alpha",
}
STOPPING = {
    "stopping": "what boundaries of the Attentive Perceptron promise, keep and save",
    "stopping_law": "features evaluated against their number: the square root of N, or a share of N",
    "stopping_overlay": "any scenario of walks that may stop: decision errors and features",
}
ATTENTION = {
    "attention": "the Attentive Perceptron on line: eps_g, features, work and kept promises",
    "overlay": "any scenario: every order parameter against t",
}
FIGURES = {
    "rule": ONLINE,
    "learner": STORED,
    "boundary": STOPPING,
    "attention": ATTENTION,
}  # by the key that tells scenarios apart
OVERLAYS = {
    "rule": "overlay",
    "learner": "stored_overlay",
    "boundary": "stopping_overlay",
    "attention": "overlay",
}  # draw any scenario


def named(figure: str | None, config: str, choice: str) -> str:
    """The figure that a config asks for, or that has its name, or the overlay.

    `choice` is the key that tells what learns in the config, such as "rule" or "learner". Raises `ConfigError` for a
    figure that is unknown, or of another kind.
    """
    fitting = FIGURES[choice]
    if figure is not None and figure not in fitting:
        known = any(figure in figures for figures in FIGURES.values())
        raise ConfigError(
            f"figure: {not_known(figure, f'a figure of a config with `{choice}`' if known else 'a figure', fitting)}"
        )
    return figure or (config if config in fitting else OVERLAYS[choice])


def fitting(name: str, theory: xr.Dataset) -> str:
    """The figure of this name if the sweep has no axis that it cannot show, else the overlay, which shows any."""
    from statmech.dataset import scenario_of  # here: names and lists of figures need not wait for it

    shown, scenario = _axes(name), scenario_of(theory)
    return name if shown is None or set(scenario.shape) <= set(shown) else OVERLAYS[scenario.CHOICE]


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
