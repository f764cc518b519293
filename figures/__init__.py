"""The figures of statmech: the overlay, which draws every scenario, and published figures.

A published figure is one file in a folder of `figures/published`, one line in `PUBLISHED_FIGURE_DESCRIPTIONS`, and one
config. The file defines `AXES`, the sweep axes that are shown completely, and a pure `draw(simulation, theory) ->
Figure`, which raises `ConfigError` for results that it cannot show. Two constants are optional: `REQUIRED_VARIABLES`,
variables and coordinates that only some results of its kind have, and `SUPPORTED_VALUES`, the only values of some keys
that the figure can show.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from statmech.errors import ConfigError, StatmechError, format_unknown_name
from statmech.keys.figure_key import Composition, FigureKeyValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr
    from matplotlib.figure import Figure

    from statmech.results.results import Results

PUBLISHED_FIGURE_DESCRIPTIONS = {  # descriptions by kind of scenario and name of the figure
    "rule": {
        "ensemble": "Figures 1 to 4 of Miyoshi, Hara & Okada on one page",
        "hebb_ensemble": "Figure 1: effect of the ensemble in Hebbian learning",
        "perceptron_ensemble": "Figure 2: effect of the ensemble in perceptron learning",
        "adatron_ensemble": "Figure 3: effect of the ensemble in AdaTron learning",
        "variety": "Figure 4: the relation of R and q",
        "learning_curves": "eps_g(t) of one student, vote and weight mean, for every rule",
        "advantage": "eps_g of infinitely many students over that of one, against t, for every rule",
        "fluctuations": "bias and variance of eps_g of runs at finite N, times N, and the distribution of single runs",
        "optimal": "eps_g t against t: the optimal rule and the others, with the constants of late times",
        "noise_optimal": "late eps_g against the fraction of flipped labels: the optimal rule, Hebb and the perceptron",
        "optimal_rate": "eps_g against t at constant learning rates and at the best rate at every time, and that rate",
        "drift": "stationary eps_g against the drift of the teacher, with the powers of small drifts",
        "sgd_power_law": "eps_g against t for inputs of power-law variances, with the powers of time that it follows",
        "clusters_online": "eps_g of two clusters learnt online against t, with the Bayes-optimal error",
    },
    "network": {
        "plateau": "two units learn from two: the symmetric plateau, and the escape from it, run by run",
        "plateau_spread": "the symmetric plateau for inputs of two variances: eps_g against t, and escape times",
        "escape": "the distribution of the times at which runs leave the symmetric plateau, at several N",
        "activations": "eps_g and specialisation of erf, ReLU and linear units, against t",
        "noise_floor": "the noise floor: stationary eps_g against the number of student units",
        "forgetting": "growth of a first task's error after the switch to a second one, against their overlap",
        "replay": "errors on two tasks against t, for several fractions of replay and the best, and that",
        "optimal_protocol": "errors on two tasks against t at the best learning rate and replay together, and these",
        "committee": "students of erf and ReLU units that learn the labels of a committee, against t",
    },
    "loss": {
        "double_descent": "mean squared error of least squares against alpha: without a penalty, a small one, the best",
        "best_lambda": "eps_g against the strength of the penalty, with its minimum and the Bayes-optimal error",
        "logistic_threshold": "where examples of a logit teacher can be separated, and the length of the student",
        "bayes_gap": "how much each loss errs more than the Bayes-optimal student, against alpha",
        "random_features": "mean squared error of least squares against the number of random features",
        "multiple_descent": "mean squared error of least squares on inputs of very different variances, against alpha",
        "aligned": "mean squared error against the penalty, and the best penalty against the teacher's alignment",
    },
    "clusters": {
        "clusters": "eps_g of two clusters against the strength of the penalty, with the Bayes-optimal error",
    },
    "population": {
        "mnist_curves": "errors on odd and even digits against the number of examples, with theory of the table alone",
        "where_it_fails": "tables on which theory fails: heavy tails, few directions, an exact linear target",
    },
    "descent": {
        "early_stopping": "eps_g of several losses along gradient descent, their best penalties, and the Bayes optimum",
        "batches": "eps_g along shuffled epochs, and along batches that are drawn independently",
        "momentum": "eps_g and training loss of heavy ball and Nesterov's method, against epochs",
        "implicit_bias": "logistic regression of separable examples, on its way to the maximum margin",
        "batch_perceptron": "Rosenblatt's rule on all examples at once: training error, and epochs to separate them",
    },
    "prior": {
        "binary_perceptron": "overlap of message passing with a binary teacher against alpha, and the free entropies",
        "amp_steps": "message passing step by step, and its state evolution",
    },
    "learner": {
        "minover": "MinOver assignment, experiments A and B: eps_g against alpha for several tmax",
        "minover_noise": "MinOver assignment, experiment C: eps_g against alpha for fractions of flipped labels",
        "minover_updates": "eps_g against the number of updates: what the assignment's tmax means",
        "version_space": "MinOver assignment, Figure 1: the version space of a few examples, and MinOver's walk in it",
        "minover_stops": "effect of MinOver's stop rules, against alpha",
        "stored_curves": "learning curves of all learners of stored examples, with all theory curves",
        "mistakes": "mistakes of the perceptron below the bound (R / gamma)^2, against alpha",
        "proof": "the convergence proof of the perceptron measured at every update: activation, projection, length",
        "capacity": "Gardner's alpha_c(kappa) and Cover's counting function, with the fraction of separable sets",
    },
    "boundary": {
        "stopping": "decision errors and features saved by the boundaries of the Attentive Perceptron",
        "stopping_law": "features evaluated against N: proportional to the square root of N, or to N",
    },
    "attention": {
        "attention": "the Attentive Perceptron, online: eps_g, features, work and decision errors",
    },
    "booster": {
        "boosting": "boosting sparse perceptrons: stages, eps_g and advantage, with the paper's bounds",
        "boosting_flip": "boosting from flipped labels: eps_g against the fraction of flips and the number of stages",
    },
    "classifier": {
        "votes": "Tables 1 and 2 of Jackson & Craven: accuracy and number of weights of six classifiers",
        "table1": "Table 1 of Jackson & Craven: accuracy of all classifiers on all three domains",
        "table2": "Table 2 of Jackson & Craven: number of weights of all classifiers on all three domains",
        "votes_concept": "the concept that boosting learns from all examples of a data set, one bar per conjunction",
        "codons": "positions of the conjunctions of two that a sparse perceptron learns: codons light up",
        "promoters_concept": "the concept that boosting learns from sequences, letter by letter along their positions",
        "discount": "effect of discounting conjunctions of two inputs in a sparse perceptron",
        "passes": "Daume's Figure 3.3: training and test error over passes, and the order of the examples",
        "boundaries": "decision boundaries of perceptron, tree and nearest neighbours in the plane",
        "digits": "the Attentive Perceptron on digits: error against features evaluated",
        "digits_attention": "partial sums of easy and hard digits, the pixels evaluated, features per example",
        "digits_theta": "margin-based learners under the boundary: error and features against the threshold theta",
    },
}
FIGURE_FOLDERS_BY_KIND = {  # folder of the published figures of each scenario kind
    "rule": "published.online",
    "network": "published.networks",
    "loss": "published.convex",
    "clusters": "published.convex",
    "population": "published.convex",
    "descent": "published.descent",
    "prior": "published.convex",
    "learner": "published.stored_examples",
    "boundary": "classification",
    "attention": "classification",
    "booster": "classification",
    "classifier": "classification",
}
DEFAULT_OVERLAY = "overlay"
SCENARIO_KINDS_BY_OVERLAY = {  # kind of scenario by name (None: any); all names draw the same overlay
    "overlay": None,
    "stored_overlay": "learner",
    "stopping_overlay": "boundary",
    "boosting_overlay": "booster",
    "study_overlay": "classifier",
}
OVERLAY_DESCRIPTION = "any scenario: errors and order parameters, or what the section `figure` of its config says"


def list_figures(kind_name: str) -> dict[str, str]:
    """Return the names and descriptions of the figures for a kind of scenario, such as "rule".

    The overlay is the last.

    >>> list(list_figures("boundary")), list(list_figures("key of a kind of scenario without published figures"))
    (['stopping', 'stopping_law', 'stopping_overlay', 'overlay'], ['overlay'])
    """
    overlays = [name for name, key in reversed(SCENARIO_KINDS_BY_OVERLAY.items()) if key in (kind_name, None)]
    return PUBLISHED_FIGURE_DESCRIPTIONS.get(kind_name, {}) | dict.fromkeys(overlays, OVERLAY_DESCRIPTION)


FIGURES_BY_KIND = {choice: list_figures(choice) for choice in PUBLISHED_FIGURE_DESCRIPTIONS}


def choose_figure(figure: FigureKeyValue, config_name: str, kind_name: str) -> str | Composition:
    """Choose the figure named in a config, the figure of a shipped config, or the overlay.

    Parameters
    ----------
    figure
        The name of a figure or a composition from a config, or None.
    config_name
        The name of a shipped config, or "" for any other config.
    kind_name
        The key of the kind of scenario, such as "rule".

    Returns
    -------
    str or Composition
        The name of a figure of this kind, or the composition.

    Raises
    ------
    ConfigError
        For a figure that does not exist, or belongs to another kind of scenario.

    Examples
    --------
    >>> choose_figure(None, "variety", "rule"), choose_figure(None, "", "rule")
    ('variety', 'overlay')
    """
    if isinstance(figure, Composition):
        return figure
    possible = list_figures(kind_name)
    if figure is not None and figure not in possible:
        exists = any(figure in names for names in FIGURES_BY_KIND.values())
        noun = f"a figure of a config with `{kind_name}`" if exists else "a figure"
        raise ConfigError(f"figure: {format_unknown_name(figure, noun, possible)}")
    return figure or (config_name if config_name in possible else get_overlay_name(kind_name))


def get_overlay_name(kind_name: str) -> str:
    """Return the name of the overlay for a kind of scenario."""
    return next((name for name, key in SCENARIO_KINDS_BY_OVERLAY.items() if key == kind_name), DEFAULT_OVERLAY)


class DrawnFigure(NamedTuple):
    """A drawn figure with its name, and the reason if it replaces the requested figure."""

    name: str
    figure: Figure
    reason: str = ""


def draw_with_fallback(name: str | Composition, results: Results) -> DrawnFigure:
    """Draw a figure by name, or the overlay if the figure cannot show these results.

    Parameters
    ----------
    name
        The name of a figure, or a composition.
    results
        Simulation and theory.

    Returns
    -------
    Drawn
        The figure, its name, and the reason if it is an overlay instead.

    Examples
    --------
    >>> import statmech
    >>> swept = statmech.run("variety", rule="hebb", K=2, N=50, t=[1, 2], eta=[0.5, 1], seeds=2)
    >>> name, figure, reason = draw_with_fallback("variety", swept)
    >>> name, reason
    ('overlay', 'the figure variety cannot show the axis eta')
    """
    if isinstance(name, Composition):
        return DrawnFigure(name.name, compose(results, name))
    try:
        return DrawnFigure(name, draw(name, results))
    except ConfigError as failure:
        reason = str(failure)
    except (LookupError, ValueError, StatmechError) as failure:  # a published figure may fail on unusual values
        reason = f"the figure {name} cannot show these results ({type(failure).__name__}: {failure})"
    overlay = get_overlay_name(results.scenario.CHOICE)
    return DrawnFigure(overlay, draw(overlay, results), reason)


def draw(name: str, simulation: xr.Dataset | Results | None, theory: xr.Dataset | None = None) -> Figure:
    """Draw simulation and theory as the figure with this name.

    Parameters
    ----------
    name
        The name of a published figure, or "overlay" (`statmech figure --list`).
    simulation, theory
        The results of `simulate.run` and `theory.solve`, or `Results`, which hold both. A study on data has no theory.
        Axes of the figure that are not swept become axes with one value.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigError
        For a figure that does not exist, belongs to another kind of scenario, or cannot show these results.

    Examples
    --------
    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule="hebb", N=50, t=[1, 2], seeds=4)
    >>> len(draw("overlay", simulate.run(scenario), theory.solve(scenario)).axes) > 0
    True
    """
    results = _as_results(simulation, theory)
    choice = results.scenario.CHOICE
    choose_figure(name, name, choice)
    if name in SCENARIO_KINDS_BY_OVERLAY:
        return compose(results, Composition())
    module, data = import_figure_module(name), results.either
    if not results.complete:
        raise ConfigError(f"the figure {name} requires both simulation and theory")
    shown_axes: tuple[str, ...] = module.AXES
    if extra_axes := [dim for dim in results.scenario.shape if dim in data.dims and dim not in shown_axes]:
        raise ConfigError(f"the figure {name} cannot show the axis {', '.join(extra_axes)}")
    keys = [axis for axis in shown_axes if axis in type(results.scenario).list_keys()]  # a parallel axis is not a key
    if missing_names := [need for need in (*keys, *getattr(module, "REQUIRED_VARIABLES", ())) if need not in data]:
        raise ConfigError(f"the figure {name} needs {', '.join(missing_names)}, which these results lack")
    for key, possible in getattr(module, "SUPPORTED_VALUES", {}).items():
        present_values = {*map(str, data[key].values.flat)} if key in data.coords else set()
        if unsupported := sorted(present_values - {*possible}):
            raise ConfigError(
                f"the figure {name} shows the {key} {' and '.join(possible)}, not {', '.join(unsupported)}"
            )
    missing = [axis for axis in shown_axes if axis not in data.dims]
    parts = [None if part is None else part.expand_dims(missing) for part in (results.simulation, results.theory)]
    from figures.panels import finish_figure  # lazy import: listing figures must stay fast
    from figures.style import apply_style

    mark_texts = [getattr(module, name, None) for name in ("POINTS_CAPTION", "LINES_CAPTION")]
    return apply_style(lambda: finish_figure(module.draw(*parts), results, *mark_texts))()


def _as_results(simulation: xr.Dataset | Results | None, theory: xr.Dataset | None = None) -> Results:
    from statmech.results.results import as_results  # lazy import: listing figures must stay fast

    return as_results(simulation, theory)


def compose(results: Results | Mapping[str, Results], composition: Composition) -> Figure:
    """Draw variables of results against an axis or another variable.

    Parameters
    ----------
    results
        Simulation and theory, or a mapping from labels to results of any kinds.
    composition
        The variables and axes to draw (`statmech.keys.figure_key.Composition`).

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigError
        For variables or axes that these results lack, and for points that cannot be read.

    Examples
    --------
    >>> import statmech
    >>> from statmech.keys.figure_key import Composition
    >>> rules = statmech.run(statmech.Scenario(rule=["hebb", "adatron"], N=50, t=[1, 2, 4], seeds=4))
    >>> [ax.get_xlabel() for ax in compose(rules, Composition(x="R", y="q")).axes]
    Traceback (most recent call last):
    statmech.errors.ConfigError: figure: q has no value in these results. Variables with values: R, length, eps_g, \
eps_g_majority_vote, eps_g_weight_mean.
    >>> [ax.get_ylabel().count("/") for ax in compose(rules, Composition(y="eps_g", over="R")).axes]
    [1]
    """
    from figures import overlay  # lazy import: listing figures must stay fast

    figure: Figure = overlay.draw(results, composition)
    return figure


def import_figure_module(name: str) -> Any:
    """Import the module of a published figure.

    Returns None for an overlay.

    >>> import_figure_module("variety").AXES, import_figure_module("overlay")
    (('rule',), None)
    """
    if name in SCENARIO_KINDS_BY_OVERLAY:
        return None
    choice = next(choice for choice, names in PUBLISHED_FIGURE_DESCRIPTIONS.items() if name in names)
    return import_module(f"figures.{FIGURE_FOLDERS_BY_KIND[choice]}.{name}")
