"""Draws. One published figure is one file here, one pure `draw(simulation, theory) -> Figure`, and one config."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
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
    "mistakes": "mistakes of the perceptron under the bound (R / gamma)^2, against alpha",
    "capacity": "Gardner's alpha_c(kappa) and Cover's counting function, with the share of separable sets",
    "stored_overlay": "any scenario of stored examples: eps_g, R and kappa against alpha",
}
STUDIES = {
    "votes": "Tables 1 and 2 of Jackson & Craven: accuracy and number of weights of six classifiers",
    "votes_concept": "the concept that boosting makes of all examples of a data set, a bar a conjunction",
    "discount": "what discounting conjunctions of two does to a sparse perceptron",
    "passes": "Daume's Figure 3.3: training and test error over passes, and the order of the examples",
    "boundaries": "decision boundaries of perceptron, tree and nearest neighbours in the plane",
    "digits": "the Attentive Perceptron on digits: error against features evaluated",
    "study_overlay": "any study of classifiers on data: accuracy and weights, or features",
}
BOOSTED = {
    "boosting": "boosting sparse perceptrons: stages, eps_g and advantage, with the paper's bounds",
    "boosting_overlay": "any scenario of boosting: stages, eps_g, advantage and weights against P",
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
FIGURES = {  # by the key that tells scenarios apart
    "rule": ONLINE,
    "learner": STORED,
    "boundary": STOPPING,
    "attention": ATTENTION,
    "booster": BOOSTED,
    "classifier": STUDIES,
}
OVERLAYS = {  # draw any scenario
    "rule": "overlay",
    "learner": "stored_overlay",
    "boundary": "stopping_overlay",
    "attention": "overlay",
    "booster": "boosting_overlay",
    "classifier": "study_overlay",
}


def named(figure: str | None, config: str, choice: str) -> str:
    """The figure that a config asks for, or that has its name, or the overlay.

    `choice` is the key that tells what learns in the config, such as "rule". Raises `ConfigError` for a figure that is
    unknown, or of another kind.
    """
    fitting = FIGURES[choice]
    if figure is not None and figure not in fitting:
        known = any(figure in figures for figures in FIGURES.values())
        raise ConfigError(
            f"figure: {not_known(figure, f'a figure of a config with `{choice}`' if known else 'a figure', fitting)}"
        )
    return figure or (config if config in fitting else OVERLAYS[choice])


def fitting(name: str, simulation: xr.Dataset) -> str:
    """The figure of this name if the sweep has no axis that it cannot show, else the overlay, which shows any."""
    from statmech.results.dataset import scenario_of  # here: names and lists of figures need not wait for it

    shown, scenario = _axes(name), scenario_of(simulation)
    return name if shown is None or set(scenario.shape) <= set(shown) else OVERLAYS[scenario.CHOICE]


def draw(name: str, simulation: xr.Dataset, theory: xr.Dataset | None) -> Figure:
    """Draw a figure by name; axes it shows that the sweep does not have become axes of one value.

    `simulation` is what `simulate.run` returns and `theory` what `theory.solve` does, None for a study on data. Raises
    `ConfigError` for a figure that is unknown, of another kind of scenario, or has no place for an axis.
    """
    from statmech.results.dataset import scenario_of

    scenario = scenario_of(simulation)
    named(name, name, scenario.CHOICE)
    axes = _axes(name)
    beyond = [] if axes is None else [dim for dim in scenario.shape if dim in simulation.dims and dim not in axes]
    if beyond:
        told = f'"{name}" has no place for {", ".join(beyond)}; "{OVERLAYS[scenario.CHOICE]}" has'
        raise ConfigError(f"figure: {told}, or select one value")
    missing = [axis for axis in axes or () if axis not in simulation.dims]
    shown = [None if part is None else part.expand_dims(missing) for part in (simulation, theory)]
    figure: Figure = _module(name).draw(*shown)
    return figure


def _axes(name: str) -> tuple[str, ...] | None:
    """The sweep axes that a figure shows; None: any."""
    axes: tuple[str, ...] | None = _module(name).AXES
    return axes


def _module(name: str) -> ModuleType:
    """The module of a figure: an overlay stands here, a published figure in its own folder."""
    return import_module(f"figures.{name}" if name in OVERLAYS.values() else f"figures.published.{name}")
