"""Configs of convex losses and of inference: what they mean, and what is refused with which sentence."""

from __future__ import annotations

import numpy as np
import pytest

from statmech import Inference, Risk, ScenarioError, load
from statmech.convex.teachers import TEACHERS, Teacher
from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS
from statmech.kinds.selection_and_vocabulary import scenario_from


@pytest.mark.parametrize(
    ("keys", "place", "sentence"),
    [
        ({"lam": -1}, ("lam",), "must be at least 0 and finite, not -1"),
        ({"lam": [0.1, "bst"]}, ("lam", 1), 'must be a number or best, not "bst"'),
        ({"lam": True}, ("lam",), "must be a number or best, not true"),
        ({"lam": float("inf")}, ("lam",), "must be at least 0 and finite, not inf"),
        ({"loss": "squar"}, ("loss",), 'Did you mean "square"?'),
        ({"loss": ["square", "logistic"], "teacher": "linear"}, ("loss",), "logistic needs labels"),
        ({"penalty": "lasso"}, ("penalty",), "Known: l2, l1, elastic_net."),
        ({"flip": 0.5}, ("flip",), "at flip = 0.5 labels are random"),
        ({"flip": 0.6}, ("flip",), "must be at most 0.5"),
        ({"teacher": "logit", "gain": [0, 1]}, ("gain",), "at gain = 0 labels are random"),
        ({"gain": 2.0}, ("gain",), "applies only to `teacher: logit`, not to sign"),
        ({"teacher": "logit", "noise": 2.0}, ("noise",), "applies only to `teacher: probit` or `linear`, not to logit"),
        ({"rho": 0.5}, ("rho",), "applies only to `weights: sparse`, not to gauss"),
        ({"l1_ratio": 0.9}, ("l1_ratio",), "applies only to `penalty: elastic_net`, not to l2"),
        ({"weights": "sparse", "rho": 0}, ("rho",), "must be greater than 0"),
        ({"weights": "sparse", "rho": 1.1}, ("rho",), "must be at most 1"),
        ({"alpha": 0.0005}, ("alpha",), "leaves no example"),
        ({"alpha": 0}, ("alpha",), "must be greater than 0"),
        ({"loss": "logistic", "lam": [0, 0.1]}, ("lam",), "the loss logistic has no minimum at any alpha"),
        ({"loss": "exponential", "lam": 0, "flip": 0.1}, ("lam",), "has no minimum below alpha = 2.99229"),
        ({"width": 2}, ("width",), ""),
        ({"loss": "huber", "width": -1}, ("width",), "must be greater than 0"),
    ],
)
def test_a_config_of_a_loss_is_refused_in_a_sentence(keys, place, sentence):
    with pytest.raises(ScenarioError) as refused:
        Risk(**{"loss": "square", "alpha": 2, **keys})
    [(where, why)] = refused.value.problems
    assert (where, sentence in why) == (place, True), why


@pytest.mark.parametrize(
    ("keys", "place", "sentence"),
    [
        ({"prior": "sparse", "rho": 0}, ("rho",), "must be greater than 0"),
        ({"prior": "sparse", "rho": [0.5, 1.2]}, ("rho",), "must be at most 1"),
        ({"prior": "ising"}, ("prior",), "Known: gauss, binary, sparse."),
        ({"start": "inform"}, ("start",), 'Did you mean "informed"?'),
        ({"steps": 0}, ("steps",), "must be at least 1"),
        ({"flip": 0.5}, ("flip",), "at flip = 0.5 labels are random"),
        ({"gain": 2.0}, ("gain",), "applies only to `teacher: logit`, not to sign"),
    ],
)
def test_a_config_of_a_prior_is_refused_in_a_sentence(keys, place, sentence):
    with pytest.raises(ScenarioError) as refused:
        Inference(**{"prior": "binary", "alpha": 2, **keys})
    [(where, why)] = refused.value.problems
    assert (where[:1], sentence in why) == (place, True), why


def test_a_loss_without_a_penalty_is_taken_where_it_has_a_minimum():
    assert Risk(loss="logistic", lam=0, flip=0.1, alpha=3).lam == 0
    assert Risk(loss="hinge", lam=0, alpha=0.5).lam == 0


def test_keys_that_concern_nothing_are_not_stated():
    assert {"gain", "noise", "rho", "l1_ratio"}.isdisjoint(Risk(loss="square", alpha=1).config())
    stated = Risk(loss="square", alpha=1, teacher=["probit", "logit"], weights="sparse", penalty="elastic_net").config()
    assert {"gain", "noise", "rho", "l1_ratio"} <= stated.keys()
    assert "flip" not in stated


def test_a_grid_gives_each_teacher_its_keys():
    scenario = Risk(loss="square", alpha=1, teacher=["sign", "logit"], flip=0.1, gain=3)
    assert [cell.teacher for cell in scenario.cells()] == [TEACHERS["sign"](0.1), TEACHERS["logit"](3.0)]


def test_a_config_is_made_again_from_what_it_states():
    for name in ("double_descent", "best_lambda", "logistic_threshold", "bayes_gap", "binary_perceptron", "amp_steps"):
        scenario = load(name)
        assert scenario_from(scenario.config()) == scenario


def test_a_word_among_numbers_makes_all_values_of_a_coordinate_words():
    import theory

    solved = theory.solve(Risk(loss="square", alpha=2, lam=[0.25, 1e-7, "best"]))
    assert solved.lam.values.tolist() == ["0.25", "1e-07", "best"]
    assert float(solved.R.sel(lam="best")) >= float(solved.R.max()) - 1e-15


@pytest.mark.parametrize("name", WEIGHT_DISTRIBUTIONS)
def test_weights_are_drawn_with_mean_square_one(name):
    for N in (1, 2, 1000):
        w = WEIGHT_DISTRIBUTIONS[name]().draw(np.random.default_rng(0), N)
        assert w @ w == pytest.approx(N, rel=1e-12)


def test_examples_are_counted_along_alpha_and_N():
    scenario = Risk(loss="square", alpha=[0.5, 2], N=[10, 20], lam=[0.1, 1])
    dims, P = scenario.derived_coordinates["P"]
    assert dims == ("N", "alpha")
    assert P.tolist() == [[5, 20], [10, 40]]


def test_teachers_of_labels_and_of_real_outputs_are_distinguished():
    assert {name for name, kind in TEACHERS.items() if not kind.labels} == {"linear"}
    assert all(issubclass(kind, Teacher) for kind in TEACHERS.values())
