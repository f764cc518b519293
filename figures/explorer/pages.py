"""The pages of the explorer: initial config, sliders and views of every kind of scenario.

`PAGES` is keyed by the name of the kind (`statmech.keys.scenario.get_kinds`). A kind outside the package gets a
page by one more entry (docs/howto/own_scenario.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from statmech.keys.scenario import AbstractScenario
from statmech.kinds.selection_and_vocabulary import get_kind_name
from statmech.parameters.schedules_and_controls import OPTIMAL_KEYWORD

NORMALISATION_LABELS = {"": "as they are", "theory": "over theory", "one student": "errors over that of one student"}


@dataclass(frozen=True)
class View:
    """A view in the explorer, defined by a config and the layout of its curves.

    Parameters
    ----------
    config : the keys that differ from the initial config of the page; a number for the x axis means its largest value
    x : the key of the x axis, or two variables of a plane, such as "R-q"; by default the page's own key
    show : the variables that have charts; by default the page's own
    over : the unit of the curves, a key of `NORMALISATION_LABELS`
    log : the logarithmic axes, "x" and "y"
    at : the recorded time shown if time is not the x axis; by default the last
    runs : whether single runs are drawn, instead of their mean
    figures : the published figures that the view resembles; a config of such a figure opens with this view
    """

    config: dict[str, Any] = field(default_factory=dict)
    x: str = ""
    show: tuple[str, ...] = ()
    over: str = ""
    log: tuple[str, ...] = ()
    at: float | None = None
    runs: bool = False
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """The explorer page of a kind of scenario: its initial config, sliders and views.

    Every kind with a page sets `USUAL_X_KEY`, the default key of its x axis, here called the key.

    Parameters
    ----------
    start : the initial config, with the largest value of the key; only the learning algorithm can have several values
    min_x : the smallest value of the key
    num_points : the number of values of the key on a line
    has_integer_x_values : whether these values are integers
    evenly_spaced : whether these values are spaced uniformly from 0, instead of logarithmically
    further_slider_keys : further keys with sliders, in addition to the numeric axes
    inputs : distributions of inputs of unequal variance that have sliders, by their names in a config
    protocols : orders of tasks that can be chosen, by their names in a config
    time_keys : keys with sliders that are times before the end of the time axis
    curves : further recorded dimensions whose values are drawn as curves, such as tasks
    keys_without_slider : numeric axes without a slider, which need other keys
    view : the initial view, with the config `start`
    variable_planes : pairs of variables that can be drawn against each other, along the key
    preset_views : further views, by their titles
    note : the reason if points lie off their lines, or the meaning of words on the page
    """

    start: dict[str, Any] = field(default_factory=dict)
    min_x: float = 0.1
    num_points: int = 20
    has_integer_x_values: bool = False
    evenly_spaced: bool = False
    further_slider_keys: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    time_keys: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    keys_without_slider: tuple[str, ...] = ()
    view: View = View(log=("x",))
    variable_planes: tuple[tuple[str, str], ...] = ()
    preset_views: Mapping[str, View] = field(default_factory=dict)
    note: str = ""


def explain_missing_page(scenario: AbstractScenario) -> str:
    """Explain why the explorer has no page for a scenario, or return an empty string.

    >>> from statmech import Scenario
    >>> explain_missing_page(Scenario(rule="hebb", t=1))
    ''
    """
    if get_kind_name(scenario.config()) in PAGES:
        return ""
    subject = "a study of data sets has" if scenario.on_data else f"{scenario.TITLE or scenario.CHOICE} has"
    return f"{subject} no sliders. Run it, and explore its results"


def _make_ensemble_view(rule: str) -> View:
    """Return the view of a rule's ensemble error over K, relative to one student (Figures 1 to 3 of the paper)."""
    return replace(ENSEMBLE_VIEW, config={"rule": [rule], "K": 101, "t": 50}, figures=(f"{rule}_ensemble",))


ENSEMBLE_ERROR_VARIABLES = ("eps_g_majority_vote", "eps_g_weight_mean")
LEARNING_CURVES_VIEW = View(x="t", show=("eps_g_majority_vote", "R"), log=("x", "y"), figures=("learning_curves",))
ENSEMBLE_VIEW = View(
    x="K", show=ENSEMBLE_ERROR_VARIABLES, over="one student", log=("x",), figures=("ensemble",)
)  # as in Figures 1 to 3 of the paper
POWER_LAW_VIEW = View(
    {"rule": ["adatron_textbook"], "K": 1, "t": 20, "inputs": {"power_law": {"decay": 1.5, "teacher_decay": 1.75}}},
    x="t",
    show=("eps_g", "R_field"),
    log=("x", "y"),
    figures=("sgd_power_law",),
)
SQUARE_LOSS_CONFIG = {"loss": ["square"], "teacher": "linear", "flip": 0}
THREE_GROUP_SPECTRUM = {
    "spectrum": {"eigenvalues": [1e4, 1, 1e-4], "shares": [0.1, 0.3, 0.6], "teacher": [1e-8, 1e-4, 0.99989999]}
}
MULTIPLE_DESCENT_ALPHAS = [round(0.03 * 100 ** (step / 40), 4) for step in range(41)]  # logarithmic from 0.03 to 3
ALIGNED_SPECTRUM = {"spectrum": {"eigenvalues": [0.2, 1.8], "teacher": [0.5, 0.5]}}
UNEQUAL_STUDENTS_START = {  # two student units; coordinate 0 is along the first task's unit
    "along": [[0.02, 0.01], [-0.01, 0.02]],
    "Q": [[0.01, 0.001], [0.001, 0.01]],
    "v": [[0.05, 0.02], [0.03, 0.04]],
}
TASK_ERRORS_VIEW = View(x="t", show=("eps_g", "task_share"), log=("y",))
TASK_PAGE_OPTIONS: dict[str, Any] = {  # shared by the pages of perceptrons and networks
    "num_points": 41,
    "evenly_spaced": True,
    "protocols": ("blocked", "replay", "interleaved", OPTIMAL_KEYWORD),
    "time_keys": ("switch",),
    "curves": ("task",),
    "view": TASK_ERRORS_VIEW,
}
PAGES: dict[str, Page] = {
    "rule": Page(
        start={"rule": ["hebb", "perceptron", "adatron"], "K": 3, "N": 1000, "t": 50, "seeds": 16},
        num_points=30,
        view=LEARNING_CURVES_VIEW,
        further_slider_keys=("schedule",),
        keys_without_slider=("burn_in",),  # needs averages
        inputs=("spectrum", "power_law"),
        variable_planes=(("R", "q"),),
        preset_views={
            "Miyoshi et al., Figure 1: Hebbian": _make_ensemble_view("hebb"),
            "Miyoshi et al., Figure 2: perceptron": _make_ensemble_view("perceptron"),
            "Miyoshi et al., Figure 3: AdaTron": _make_ensemble_view("adatron"),
            "Miyoshi et al., Figure 4: R and q": View({"K": 2, "t": 50}, x="R-q", figures=("variety",)),
            "Learning curves": replace(LEARNING_CURVES_VIEW, config={"K": 3, "t": 50}),
            "Errors against K": replace(ENSEMBLE_VIEW, config={"K": 11, "t": 50}),
            "Inputs of power-law variances": POWER_LAW_VIEW,
        },
    ),
    "learner": Page(
        start={"learner": ["minover", "hebb"], "alpha": 5, "N": 50, "epochs": 100, "seeds": 16},
        min_x=0.2,
        further_slider_keys=("epochs", "updates"),
        preset_views={
            "MinOver assignment: tmax": View(
                {"learner": ["minover"], "alpha": 10, "N": 20, "epochs": None, "updates": [20, 100, 5000]},
                show=("eps_g", "kappa"),
                figures=("minover",),
            ),
            "Daume: errors over passes": View(
                {"learner": ["perceptron"], "alpha": 3, "flip": 0.1, "epochs": 50, "seeds": 64},
                x="epochs",
                show=("eps_g", "eps_t"),
            ),
        },
    ),
    "boundary": Page(
        start={"boundary": ["constant", "brownian-bridge"], "error_rate": 0.4, "mean": 1, "N": 784, "seeds": 16},
        min_x=0.001,
        num_points=12,
        preset_views={
            "Attentive Perceptron: decision errors": View(
                {"boundary": ["constant", "brownian-bridge", "centred"], "mean": 1},
                show=("decision_error", "features"),
                log=("x", "y"),
                figures=("stopping",),
            )
        },
    ),
    "attention": Page(
        start={"attention": ["brownian-bridge"], "error_rate": 0.1, "t": 5, "N": 200, "seeds": 4},
        num_points=30,
        preset_views={
            "Attentive Perceptron: errors and features": View(
                {"attention": ["brownian-bridge", "constant"], "error_rate": 0.1, "t": 10},
                show=("eps_g", "features"),
                log=("x", "y"),
                figures=("attention",),
            )
        },
    ),
    "booster": Page(
        start={"booster": ["adaboost"], "s": 3, "P": 1000, "seeds": 8},
        min_x=10,
        num_points=8,
        has_integer_x_values=True,
        preset_views={
            "Jackson & Craven: stages of boosting": View(
                {"s": 5, "P": 3000}, show=("stages", "eps_g"), log=("x", "y"), figures=("boosting",)
            ),
            "flipped labels: when to stop": View(
                {"s": 5, "P": 1000, "flip": 0.3, "cap": [3, 10, 30, 100, 300, 1000]},
                x="flip",
                show=("eps_g",),
                figures=("boosting_flip",),
            ),
        },
    ),
    "network": Page(
        start={
            "network": ["erf"],
            "M": 2,
            "K": 2,
            "N": 1000,
            "eta": 1.5,
            "t": 100,
            "start": {"Q": 0.25, "R": {"diagonal": 0.05}},
            "seeds": 16,
        },
        num_points=30,
        inputs=("spectrum", "power_law"),
        view=View(x="t", show=("eps_g", "specialisation"), log=("y",), runs=True),
        preset_views={
            "Saad & Solla: plateau": View({"t": 150}, x="t", show=("eps_g", "specialisation"), log=("y",), runs=True),
            "Yoshida & Okada: inputs of two variances": View(
                {"eta": 0.3, "t": 240, "inputs": {"spectrum": {"eigenvalues": [0.4, 1.6]}}},
                x="t",
                show=("eps_g", "specialisation"),
                log=("y",),
                runs=True,
                figures=("plateau_spread",),
            ),
        },
    ),
    "network_length": Page(
        start={
            **{"network": ["hermite"], "degree": 3, "length": "fixed", "teacher": "wedge", "eta": "best", "N": 200},
            **{"until": {"R": 0.5}, "seeds": 64},
        },
        min_x=30,
        num_points=6,
        has_integer_x_values=True,
        keys_without_slider=("degree", "noise", "trial_eta", "wedge_width", "w"),  # without a signal for other keys
        note="the cosine to pass is 0.5 by default; a door labels by whether the size of the "
        "teacher's field is below its median, a wedge by the sign of the field, reversed near 0",
        view=View(log=("x", "y"), show=("t_until",), figures=("hitting_times",)),
        preset_views={
            "which learning rate": View(
                {"eta": 0.4, "N": 100, "flip": 0.1},
                x="eta",
                log=("x", "y"),
                show=("t_until",),
                figures=("best_search_rate",),
            )
        },
    ),
    "loss": Page(
        start={"loss": ["square", "logistic", "hinge"], "lam": 0.1, "alpha": 5, "N": 100, "seeds": 8},
        min_x=0.2,
        num_points=12,
        keys_without_slider=("K",),  # needs a key `resample`
        inputs=("spectrum", "power_law"),
        preset_views={
            "double descent": View(
                {**SQUARE_LOSS_CONFIG, "noise": 0.5, "lam": 1e-3, "alpha": 10},
                show=("mse", "train_loss"),
                log=("x", "y"),
                figures=("double_descent",),
            ),
            "multiple descent": View(
                {
                    **SQUARE_LOSS_CONFIG,
                    "noise": 0.3,
                    "lam": 1e-7,
                    "alpha": MULTIPLE_DESCENT_ALPHAS,
                    "N": 400,
                    "inputs": THREE_GROUP_SPECTRUM,
                },
                show=("mse", "R_field"),
                log=("x", "y"),
                figures=("multiple_descent", "random_features"),
            ),
            "aligned teachers": View(
                {**SQUARE_LOSS_CONFIG, "noise": 0.2, "lam": 10, "alpha": 0.3, "N": 400, "inputs": ALIGNED_SPECTRUM},
                x="lam",
                show=("mse", "R_field"),
                log=("x",),
                figures=("aligned",),
            ),
            "which loss, at which noise": View({"flip": 0.1, "lam": 1}, show=("eps_g",), figures=("bayes_gap",)),
            "bagging": View(
                {"loss": ["hinge"], "K": [1, 3, 11], "resample": {"share": 0.7}, "flip": 0.1, "lam": 0.4},
                show=("eps_g_weight_mean", "eps_g_majority_vote"),
                figures=("bagging", "bagged_stability"),
            ),
        },
    ),
    "descent": Page(
        start={
            **{"descent": ["gradient", "nesterov"], "loss": "logistic", "flip": 0.1, "alpha": 3, "lam": 0},
            **{"eta": 0.05, "epochs": 50, "N": 400, "seeds": 8},
        },
        min_x=1,
        num_points=13,
        has_integer_x_values=True,
        view=View(show=("eps_g", "train_loss"), log=("x",)),
        preset_views={
            "the stopped hinge": View({"descent": ["gradient"], "loss": "hinge"}, show=("eps_g", "eps_t"), log=("x",)),
            "batches drawn independently": View(
                {
                    "descent": ["gradient"],
                    "alpha": 2,
                    "eta": 0.8,
                    "epochs": 10,
                    "batch": 0.25,
                    "sampling": "replacement",
                },
                show=("eps_g", "train_loss"),
            ),
        },
    ),
    "clusters": Page(
        start={
            "clusters": "gaussian",
            "loss": ["square", "logistic", "hinge"],
            "lam": 0.1,
            "alpha": 5,
            "N": 100,
            "seeds": 8,
        },
        min_x=0.2,
        num_points=12,
        inputs=("spectrum",),
        preset_views={
            "which penalty": View({"alpha": 2, "lam": 100}, x="lam", show=("eps_g",), log=("x",), figures=("clusters",))
        },
    ),
    "population": Page(
        start={
            "population": ["table", "held_out"],
            "loss": "logistic",
            "inputs": {"rows": "clouds-60"},
            "lam": 0.1,
            "P": 1000,
            "seeds": 8,
        },
        min_x=20,
        num_points=10,
        has_integer_x_values=True,
        view=View(log=("x",), show=("eps_y",)),
    ),
    "loss_generations": Page(
        start={
            **{"loss": ["logistic"], "generations": 6, "real": 0.2, "alpha": 3, "lam": 0.1, "flip": 0.1},
            **{"N": 150, "seeds": 16},
        },
        min_x=0,
        num_points=7,
        has_integer_x_values=True,
        evenly_spaced=True,
        keys_without_slider=("l1_ratio",),  # needs another penalty
        view=View(show=("R", "eps_g"), figures=("generations",)),
    ),
    "prior": Page(
        start={"prior": ["gauss", "binary"], "alpha": 2, "N": 500, "steps": 50, "seeds": 4},
        min_x=0.2,
        num_points=12,
        view=View(show=("m", "eps_g")),
        note="finite $N$ smears out the transitions between fixed points",
        preset_views={
            "binary perceptron": View(
                {"prior": ["binary"]}, show=("m", "eps_g"), figures=("binary_perceptron", "amp_steps")
            )
        },
    ),
    "rule_tasks": Page(
        start={
            **{"rule": ["perceptron"], "tasks": 2, "overlap": 0.5, "N": 1000, "protocol": "blocked", "switch": 10},
            **{"t": 20, "start": {"length": 1, "R": 0.1}, "seeds": 16},
        },
        keys_without_slider=("truth_cosine",),  # has no default
        **TASK_PAGE_OPTIONS,
        preset_views={"Perceptrons forget a first task": TASK_ERRORS_VIEW},
    ),
    "rule_moving_teacher": Page(
        start={
            **{"rule": ["hebb", "perceptron"], "moving_teacher": "adatron_textbook", "flip": 0.1, "eta": 0.3},
            **{"N": 1000, "t": 100, "seeds": 16},
        },
        num_points=20,
        keys_without_slider=("assumed_flip",),
        view=View(x="t", show=("eps_g", "eps_teacher"), log=("x",), figures=("moving_teacher",)),
    ),
    "network_tasks": Page(
        start={
            **{"network": ["erf"], "tasks": 2, "overlap": 0.5, "M": 1, "K": 2, "N": 1000, "eta": 1, "eta_v": 1},
            **{"protocol": "blocked", "switch": 50, "t": 100, "start": UNEQUAL_STUDENTS_START, "seeds": 16},
        },
        **TASK_PAGE_OPTIONS,
        keys_without_slider=("M", "K"),  # the start fixes the numbers of units
        preset_views={
            "Networks forget a first task": replace(TASK_ERRORS_VIEW, figures=("forgetting",)),
            "Networks rehearse it": replace(
                TASK_ERRORS_VIEW, config={"protocol": {"replay": 0.1}}, figures=("replay",)
            ),
        },
    ),
}
