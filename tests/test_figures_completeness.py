"""Every published figure shows every value of its axes, or says that it cannot; the overlay shows them instead."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from test_figures import FEWER, NAMES, computed, tiny

import figures
from figures import style
from figures.inspection import find_figure_faults
from statmech import ConfigError, Results, Scenario, StoredExamples, load, run
from statmech.students.rules import RULES, Hebb
from theory.solutions import cache_theory_lines

pytestmark = pytest.mark.quick

FURTHER = {  # values beyond those of the small config of a figure, by the axis
    "rule": ["hebb", "perceptron", "adatron"],
    "network": ["relu", "linear"],
    "loss": ["hinge", "huber"],
    "learner": ["hebb", "adatron"],
    "boundary": ["constant", "centred"],
    "attention": ["constant", "brownian-bridge"],
    "prior": ["binary", "gauss"],
    "descent": ["nesterov", "gradient"],
    "sampling": ["shuffle", "replacement"],
    "stop": ["stability-patience", "field-patience"],
    "population": ["table", "held_out"],
    "classifier": ["ordinary", "averaged"],
    "order": ["constant", "once"],
    "chosen": ["fixed", "random"],
    "data": ["clouds", "moons"],
    "N": [44, 52],
    "K": [4, 5],
    "M": [2, 3],
    "s": [5, 7],
    "P": [60, 80],
    "cap": [50, 70],
    "passes": [4, 5],
    "alpha": [4.5, 5],
    "lam": [2, 20],
    "flip": [0.3, 0.4],
    "gain": [4, 5],
    "eta": [0.5, 0.7],
    "mean": [2.5, 4],
    "error_rate": [0.15, 0.25],
    "overlap": [0.7, 0.9],
    "positives": [0.3, 0.4],
    "momentum": [0.3, 0.6],
    "batch": [0.25, 0.2],
    "theta": [300, 1000],
    "budget": [100, 200],
    "discount": [0.3, 0.6],
    "wedge_width": [1.05, 1.13],
    "protocol": [{"replay": 0.2}, {"replay": 0.7}],
    "start": ["informed", "uninformed"],
    "inputs": [],
    "resample": [{"share": 0.4}, {"share": 0.8}],
    "real": [0.4, 0.7],
}
OTHER_VALUES = {  # of figures whose axes take others
    "activations": {"network": ["relu"]},
    "digits": {"data": ["digits-4-9"]},
    "digits_attention": {"data": ["digits-4-9"]},
    "forgetting": {"start": []},
    "plateau_spread": {"inputs": [{"spectrum": [0.5, 1.5]}, {"spectrum": [0.3, 1.7]}]},
    "sgd_power_law": {"inputs": [{"power_law": {"decay": 1.2, "teacher_decay": one}} for one in (1.5, 2)]},
    "aligned": {"inputs": [{"spectrum": [0.2, 3.4], "shares": [0.75, 0.25], "teacher": [0.5, 0.5]}]},
    "stopping_law": {"N": [60, 90]},
    "escape": {"N": [80, 90]},
    "minover_c": {"flip": [0.15, 0.45]},
    "mistakes": {"learner": []},
    "proof": {"learner": []},
    "version_space": {"learner": [], "alpha": [3, 4]},
    "early_stopping": {"loss": ["perceptron"]},
    "digits_theta": {"classifier": [], "budget": []},
    "momentum": {"descent": []},
    "mnist_curves": {"P": [30, 50]},
    "where_it_fails": {"P": [15, 27]},
    "passes": {"classifier": []},
}
FURTHER_ROWS = {  # of parallel axes
    "drift": {"rule": ["adatron"] * 2, "drift": [0.1, 1], "decay": [0, 0]},
    "noise_floor": {"M": [3, 3], "K": [3, 4]},
    "stopping_law": {"mean": [2, 0], "feature_mean": [0, 0.2]},
    "mnist_curves": {"loss": ["hinge", "huber"], "lam": [1, 0.5]},
    "where_it_fails": {"inputs": [{"rows": "clouds-60"}], "loss": ["square"], "lam": [0.1]},
    "digits": {"error_rate": [0.3, 0.1], "budget": [0, 300]},
    "random_features": {"N": [30], "alpha": [6], "inputs": [{"features": {"latent": 2}}]},
}


def axes_of(name):
    """The axes of a figure: those that its code states, or, for a section, those that its config sweeps."""
    if published := figures.get_published_figure(name):
        return published.axes
    scenario = load(name)
    return tuple(key for dim, keys in scenario.dimensions.items() for key in keys if scenario.shape[dim] > 1)


WITH_AXES = [name for name in NAMES if name != figures.OVERLAY and axes_of(name)]


def with_further_values(name):
    """The small scenario of a figure, with further values along each of its axes."""
    scenario = tiny(name)
    config, axes = scenario.config(), axes_of(name)
    for axis in axes:
        if axis in config:
            given = config[axis] if isinstance(config[axis], list) else [config[axis]]
            more = OTHER_VALUES.get(name, {}).get(axis, FURTHER[axis])
            config[axis] = [*given, *(value for value in more if value not in given)]
    for group in config.get("zip", []):
        for key, values in FURTHER_ROWS.get(name, {}).items():
            group[key] += values if key in group else []
    return type(scenario)(**config)


def content(figure):
    """What is drawn: the numbers of all artists, and the texts."""
    texts = [text.get_text() for text in figure.findobj(Text)]
    artists = [artist for ax in figure.findobj(lambda it: hasattr(it, "get_xlim")) for artist in ax.get_children()]
    numbers = [
        np.asarray(getattr(artist, get)(), float).tobytes()
        for artist in artists
        for get in ("get_xydata", "get_array", "get_offsets", "get_bbox")
        if hasattr(artist, get) and getattr(artist, get)() is not None
    ]
    paths = [path.vertices.tobytes() for it in artists if hasattr(it, "get_paths") for path in it.get_paths()]
    return texts, numbers, paths


def left_out(name, results):
    """The first and last values of axes of which the simulation can change without changing the figure."""
    drawn = content(figures.draw(name, results))
    found = []
    for axis, size in results.scenario.shape.items():
        for index in (0, -1) if size > 1 else ():
            changed = results.simulation.copy(deep=True)
            for variable in changed.data_vars.values():
                if axis in variable.dims and variable.dtype.kind in "fb":
                    variable[{axis: index}] = (
                        ~part if (part := variable[{axis: index}]).dtype == bool else 0.97 * part + 0.02
                    )
            again = figures.draw(name, Results(results.scenario, changed, results.theory))
            found += [(axis, index)] if content(again) == drawn else []
    return found


WITHOUT_EFFECT = {  # what a figure shows otherwise than by a mean of the simulation
    ("proof", "learner", 0): "the updates of the perceptron, whose strengths are whole numbers",
    **{
        (name, "K", 0): "the error of one student over itself"
        for name in ("ensemble", "hebb_ensemble", "perceptron_ensemble", "adatron_ensemble")
    },
    ("table2", "classifier", 0): "a tree, which has no weights",
    (
        "batch_perceptron",
        "alpha",
        0,
    ): "examples that are separated before the second recorded epoch, as the caption says",
    ("minover_c", "flip", -1): "two of six fractions of flipped labels, as the caption says",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_AXES)
def test_a_figure_shows_every_value_of_its_axes_or_says_that_it_cannot(name, data_folder, monkeypatch):
    for constant, value in FEWER.get(name, {}).items():
        monkeypatch.setitem(figures.get_published_figure(name).draw.__globals__, constant, value)
    monkeypatch.setattr("theory.solutions.MAX_SWEEP_GRID_POINTS", 0)  # lines between solved values are not tested here
    results = computed(with_further_values(name))
    assert min(results.scenario.shape.values()) > 1, "the test needs several values of each axis"
    with cache_theory_lines(), contextlib.suppress(ConfigError):
        assert {(name, *place) for place in left_out(name, results)} <= WITHOUT_EFFECT.keys()


class Mine(Hebb):
    label = "mine"


@pytest.mark.slow
def test_figures_of_one_rule_have_a_panel_for_each_rule_of_a_sweep_and_for_those_of_the_user(monkeypatch):
    monkeypatch.setitem(RULES, "mine", Mine)
    results = run(Scenario(rule=["adatron", "mine"], K=[1, 2], N=20, t=[1, 2], seeds=2))
    for name in ("hebb_ensemble", "perceptron_ensemble", "adatron_ensemble"):
        titles = [ax.get_title() for ax in figures.draw(name, results).axes]
        assert titles == ["AdaTron", "mine"]
    labels = [text.get_text() for text in figures.draw("ensemble", results).legends[0].get_texts()]
    assert [label for label in labels if label in titles] == titles


REFUSED = {  # figures with results of which they would leave something out, and what they say
    "mistakes": (
        StoredExamples(learner=["perceptron", "hebb"], N=10, alpha=[1, 2], strengths=True, seeds=2),
        "the figure mistakes cannot show these results (figure.derive.bound.formula: learner has no value "
        "max_stability. Possible: first, last, perceptron, hebb)",
    ),
    "drift": (
        Scenario(zip={"rule": ["hebb"] * 2, "drift": [0.1, 0.1], "decay": [0, 0.37057]}, N=20, t=1, seeds=2),
        'the figure "drift" requires the rule hebb with the weight decay that suits it',
    ),
    "votes_concept": (
        load("votes", ["folds=2", "seeds=1", "classifier=boosting,tree", "stages=2"]),
        "the figure votes_concept cannot show the axis classifier",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_figure_that_would_leave_values_out_says_so_and_the_overlay_shows_them(name, data_folder):
    scenario, sentence = REFUSED[name]
    drawn = figures.draw_with_fallback(name, computed(scenario))
    assert (drawn.name, drawn.reason) == (figures.OVERLAY, sentence)


def test_more_curves_than_colours_have_different_looks():
    looks = [tuple(style.get_curve_style(index).values()) for index in range(40)]
    assert len({*looks}) == len(looks)


@pytest.mark.slow
def test_points_stand_at_the_values_of_the_results_and_an_inspection_finds_those_that_do_not():
    results = run(Scenario(rule="hebb", K=[1, 3], N=20, t=[1, 2], seeds=2))
    figure = figures.draw("hebb_ensemble", results)
    assert not any("no value along" in fault for fault in find_figure_faults(figure, results))
    figure.axes[0].plot([1.1], [1.0], "o", color="0.5", linestyle="none")
    assert "axes 1: a point at 1.1, which is no value along number of students $K$" in find_figure_faults(
        figure, results
    )


def test_an_inspection_finds_labels_of_ticks_that_touch_and_titles_that_name_nothing():
    figure = Figure(figsize=(style.COLUMN_WIDTH, 2), layout="constrained")
    ax = figure.subplots()
    ax.plot([1, 2], [1, 2], color="0.5")
    assert find_figure_faults(figure) == []
    ax.set_xticks([1, 1.05, 2], ["500", "1000", "2000"])
    assert "axes 1: labels of x ticks touch" in find_figure_faults(figure)
    for title in ("20 seeds", "10 folds, 3 shuffles"):
        figure.suptitle(title)
        assert f"a title that names nothing: {title}" in find_figure_faults(figure)
    ax.set_title("(a) held-out rows")
    assert not any("title" in fault for fault in find_figure_faults(figure))
    ax.set_title("")
    ax.set_yticks([1, 2], ["perceptron", "tree"])
    assert not any("title" in fault for fault in find_figure_faults(figure))
