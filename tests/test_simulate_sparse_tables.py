"""Tables of own data for sparse perceptrons: missing values, numbers as text, and many columns."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score

from simulate.classification import conjunctions
from simulate.classification.estimators import sparse_perceptron
from simulate.learners import SparsePerceptron

MISSING = {"NaN": np.nan, "None": None, "NA": pd.NA, "NaT": pd.NaT, "word": "?"}
ROWS = np.arange(0, 120, 20)  # those of the missing values


def numbers(seed=0):
    """Numbers whose first column decides the class."""
    X = np.random.default_rng(seed).standard_normal((120, 3)).round(3)
    return X, (X[:, 0] > 0).astype(int)


def with_missing(X, value):
    table = X.astype(object)
    table[ROWS, 0] = value
    return table


@pytest.mark.parametrize("missing", MISSING.values(), ids=MISSING)
def test_a_column_of_numbers_with_missing_values_remains_one_of_numbers(missing):
    X, y = numbers()
    table = with_missing(X, missing)
    scores = cross_val_score(SparsePerceptron(stages=3, discount=1.0), table, y, cv=5, error_score="raise")
    assert scores.mean() > 0.9
    [found, *_] = SparsePerceptron(stages=3).fit(table, y).attributes_
    [expected, *_] = SparsePerceptron(stages=3).fit(np.delete(X, ROWS, axis=0), np.delete(y, ROWS)).attributes_
    np.testing.assert_array_equal(found.interval_upper_bounds, expected.interval_upper_bounds)
    assert not found.encode_column(table[:, 0], "?")[ROWS].any()
    assert found.encode_column(table[:, 0], "?").sum() == 120 - len(ROWS)


def test_all_codes_of_missing_values_give_the_same_decisions():
    X, y = numbers()
    holes = with_missing(X, np.nan).astype(float)
    frame = pd.DataFrame(holes, columns=["a", "b", "c"])
    tables = [*(with_missing(X, value) for value in MISSING.values()), holes, frame, frame.convert_dtypes()]
    decisions = [SparsePerceptron(stages=5).fit(table, y).decision_function(table) for table in tables]
    assert all(np.array_equal(one, decisions[0]) for one in decisions)


def test_a_table_of_all_types_with_missing_values_is_learnt_and_predicted():
    X, y = numbers()
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "number": X[:, 0],
            "category": pd.Categorical(rng.choice(["u", "v"], 120)),
            "integer": pd.array(rng.integers(0, 9, 120), dtype="Int64"),
            "text": pd.array(rng.choice(["u", "v"], 120), dtype="string"),
            "boolean": pd.array(rng.choice([True, False], 120), dtype="boolean"),
        }
    )
    for column in frame:
        frame.loc[rng.integers(0, 120, 9), column] = pd.NA
    frame["empty"] = None
    model = SparsePerceptron(stages=3).fit(frame, y)
    names = [attribute.category_names for attribute in model.attributes_]
    assert names == [None, ("u", "v"), None, ("u", "v"), None, ()]
    assert model.score(frame, y) > 0.9
    assert "number" in model.concept_
    for column in frame:  # also alone
        assert SparsePerceptron().fit(frame[[column]], y).predict(frame[[column]]).shape == (120,)


def test_lists_of_words_and_numbers_keep_their_types():
    model = SparsePerceptron(stages=2).fit([[1.5, "a"], [2.5, "?"], [3.5, "b"], ["?", "b"]], [0, 1, 0, 1])
    assert [attribute.category_names for attribute in model.attributes_] == [None, ("a", "b")]
    with pytest.raises(ValueError, match="x0 is a column of numbers, but 'low' is not a number"):
        model.predict([["low", "a"]])


def test_numbers_as_text_are_words_and_a_warning_says_so():
    X, y = numbers()
    table = with_missing(X, "?").astype(str)
    with pytest.warns(UserWarning, match="x0 contains numbers as text, which are treated as categories: convert them"):
        model = SparsePerceptron(stages=1, k=1).fit(table[:, :1], y)
    assert str(X[1, 0]) in model.attributes_[0].category_names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparsePerceptron(stages=1).fit(np.array([["0"], ["1"], ["?"]] * 9), y[:27])


def test_a_long_cross_validation_tells_once_how_much_of_it_is_done(monkeypatch):
    X, y = numbers()
    monkeypatch.setattr(sparse_perceptron, "CV_NOTICE_SECONDS", 0.0)
    with pytest.warns(UserWarning, match="Cross-validation") as told:
        SparsePerceptron(k=2, cv=3).fit(X, y[::-1])
    [message] = [str(one.message) for one in told]
    assert message.startswith(
        "Cross-validation has done 1 of at most 36 stages of boosting over 66 conjunctions in 0 s."
    )
    assert "Select columns (sklearn.feature_selection), or set k=1 or a number of stages" in message


def test_cross_validation_of_a_wide_table_makes_a_limited_number_of_stages(monkeypatch):
    X, y = numbers()
    monkeypatch.setattr(sparse_perceptron, "MAX_CV_STAGES", 5)
    asked = []
    boost = sparse_perceptron.boost_conjunctions
    monkeypatch.setattr(sparse_perceptron, "boost_conjunctions", lambda *given: asked.append(given[4]) or boost(*given))
    SparsePerceptron(cv=3).fit(X, y[::-1])
    assert asked[:3] == [5, 5, 5]


def test_too_many_conjunctions_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr(conjunctions, "MAX_SEARCHED_CONJUNCTIONS", 65)
    with pytest.raises(
        ValueError, match=r"conjunctions of 2 of 12 indicators .* Select columns first, or reduce k or bins"
    ):
        SparsePerceptron().fit(*numbers())


def test_the_splits_of_a_cross_validation_may_be_given():
    X, y = numbers()
    X = np.random.default_rng(0).permutation(X)
    splits = list(LeaveOneGroupOut().split(X, y, groups=np.arange(120) % 4))
    weights = (np.arange(120) % 5 > 0) * 1.0
    kept = np.flatnonzero(weights)
    among = [tuple(np.flatnonzero(np.isin(kept, part)) for part in split) for split in splits]
    left_out = SparsePerceptron(cv=splits).fit(X, y, sample_weight=weights)
    removed = SparsePerceptron(cv=among).fit(X[kept], y[kept])
    assert left_out.stages_ == removed.stages_
    with pytest.raises(ValueError, match="cv must be an integer of at least 2, not 1"):
        SparsePerceptron(cv=1).fit(X, y)
