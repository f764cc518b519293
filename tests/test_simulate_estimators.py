"""Learners as scikit-learn estimators: its own checks, real data where they are at hand, and readable concepts."""

from __future__ import annotations

import csv
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from simulate.learners import SparsePerceptron

DATA = Path(os.environ.get("STATMECH_DATA", Path(__file__).parents[2] / "shared" / "data"))


@parametrize_with_checks([SparsePerceptron()])
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


def nominal(seed=0, m=120):
    """Words of three attributes, and the class of (colour = red and size = big) or shape = round."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.choice(["red", "blue", "?"], m), rng.choice(["big", "small"], m), rng.choice(["round", "flat", "long"], m)]
    ).astype(object)
    y = np.where(((X[:, 0] == "red") & (X[:, 1] == "big")) | (X[:, 2] == "round"), "yes", "no")
    return X, y


def test_a_concept_of_words_is_found_and_told_in_words():
    import pandas as pd

    X, y = nominal()
    table = pd.DataFrame(X, columns=["colour", "size", "shape"])
    model = SparsePerceptron(stages=6, discount=1.0).fit(table, y)
    assert model.score(table, y) == 1.0
    assert "yes:  " in model.concept_
    assert "if  shape = round" in model.concept_
    assert "colour = red and size = big" in model.concept_
    assert model.n_weights_ == len(model.concept_.splitlines())


def test_a_missing_value_has_no_indicator_and_an_unknown_word_is_refused():
    X, y = nominal()
    model = SparsePerceptron(stages=4).fit(X, y)
    assert model.attributes_[0].words == ("blue", "red")
    with pytest.raises(ValueError, match=r"unknown categories \['green'\] in x0. Known: blue, red"):
        model.predict(np.array([["green", "big", "flat"]], dtype=object))
    model.predict(np.array([["?", "?", "?"]], dtype=object))


def test_it_works_where_scikit_learn_s_estimators_do():
    X, y = nominal()
    model = SparsePerceptron(stages=6)
    assert cross_val_score(model, X, y, cv=4).mean() > 0.9
    best = GridSearchCV(model, {"k": [1, 2], "discount": [0.5, 1.0]}, cv=3).fit(X, y)
    assert best.best_params_["k"] == 2
    again = pickle.loads(pickle.dumps(make_pipeline(model).fit(X, y)))
    assert np.array_equal(again.predict(X), model.fit(X, y).predict(X))


def test_cross_validation_chooses_no_more_stages_than_an_ordinary_perceptron_has_weights():
    X, y = nominal(m=60)
    noisy = np.where(np.random.default_rng(0).random(60) < 0.3, y[::-1], y)
    model = SparsePerceptron().fit(X, noisy)
    assert 1 <= model.n_stages_[0] <= 7


def test_numbers_are_cut_where_their_values_are():
    X = np.array([[0.0], [1.0], [5.0]] * 4)
    model = SparsePerceptron(stages=2, k=1).fit(X, [0, 1, 0] * 4)
    assert model.attributes_[0].names() == ["x0 <= 0.5", "0.5 < x0 <= 3", "x0 > 3"]
    assert model.predict([[0.9], [4.0], [-3.0]]).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k must be a whole number from 1 on, not 0"),
        ({"stages": "many"}, 'stages must be "cv" or a whole number'),
        ({"stages": 0}, "stages must be"),
        ({"discount": 2}, "discount must lie between 0 and 1"),
        ({"bins": 1}, "bins must be a whole number from 2 on"),
    ],
)
def test_impossible_parameters_are_refused(given, message):
    X, y = nominal(m=20)
    with pytest.raises(ValueError, match=message):
        SparsePerceptron(**given).fit(X, y)


@pytest.mark.skipif(not (DATA / "votes").is_dir(), reason="set STATMECH_DATA to the folder of the real data")
def test_the_votes_are_learnt_as_well_as_in_the_paper():
    """Jackson & Craven: 91.5 % and 12 weights, without physician-fee-freeze; four standard errors of ten folds."""
    with (DATA / "votes" / "house-votes-84.data").open() as file:
        rows = [row for row in csv.reader(file) if row]
    y = np.array([row[0] for row in rows])
    X = np.delete(np.array([row[1:] for row in rows], dtype=object), 3, axis=1)
    scores, weights = [], []
    for inside, outside in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        model = SparsePerceptron().fit(X[inside], y[inside])
        scores.append(model.score(X[outside], y[outside]))
        weights.append(model.n_weights_)
    error = np.std(scores, ddof=1) / np.sqrt(10)
    assert abs(np.mean(scores) - 0.915) < 4 * error
    assert error < 0.02
    assert 6 <= np.mean(weights) <= 20
