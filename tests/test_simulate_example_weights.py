"""Weights of examples and classes: what they mean for each of the estimators."""

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier
from sklearn.utils.validation import has_fit_parameter

from simulate.classification.estimators.linear_classifiers import resample_by_weight
from simulate.learners import AdaTron, AttentivePerceptron, MinOver, Perceptron, SparsePerceptron

ONLINE = [
    Perceptron(),
    Perceptron(order="once", output="averaged", max_iter=10),
    Perceptron(order="constant", output="voted", max_iter=10),
    AttentivePerceptron(max_iter=10),
]
WEIGHTED = [*ONLINE, SparsePerceptron(stages=6)]
STABILITY = [MinOver(max_epochs=20), AdaTron(max_epochs=20)]


def noisy(m=80, features=4, seed=0):
    """Examples of two classes that no perceptron separates."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, features))
    return X, (X[:, 0] + 0.8 * rng.standard_normal(m) > 0).astype(int)


@pytest.mark.parametrize("model", WEIGHTED, ids=str)
def test_examples_of_weight_0_are_left_out_and_equal_weights_change_nothing(model):
    X, y = noisy()
    kept = np.arange(len(y)) % 3 > 0
    some = model.fit(X[kept], y[kept]).decision_function(X)
    np.testing.assert_array_equal(model.fit(X, y, sample_weight=2.5 * kept).decision_function(X), some)


@pytest.mark.parametrize("model", WEIGHTED, ids=str)
@pytest.mark.parametrize("scale", [1e-300, 2.0**-7, 1e300])
def test_only_ratios_of_weights_count(model, scale):
    X, y = noisy()
    weights = np.random.default_rng(1).integers(1, 5, len(y)) * 1.0
    expected = model.fit(X, y, sample_weight=weights).decision_function(X)
    found = model.fit(X, y, sample_weight=weights * scale).decision_function(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", WEIGHTED, ids=str)
def test_class_weights_are_weights_of_the_examples_of_a_class(model):
    X, y = noisy()
    by_class = type(model)(**{**model.get_params(), "class_weight": {1: 3.0}}).fit(X, y).decision_function(X)
    by_example = model.fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0)).decision_function(X)
    np.testing.assert_array_equal(by_class, by_example)


@pytest.mark.parametrize("model", WEIGHTED, ids=str)
def test_a_heavy_class_is_predicted_more_often(model):
    X, y = noisy(m=400)
    fractions = [
        type(model)(**{**model.get_params(), "class_weight": weight}).fit(X, y).predict(X).mean()
        for weight in ({0: 20.0}, {1: 20.0})
    ]
    assert fractions[1] - fractions[0] > 0.2


def test_visits_are_drawn_in_proportion_to_weights():
    """Each number is the weight, rounded up or down; their mean is the weight within 5 of its standard errors."""
    rng = np.random.default_rng(0)
    weights, random = rng.exponential(size=50), np.random.RandomState(1)
    draws = [resample_by_weight(np.arange(50), weights, random) for _ in range(2000)]
    visits = np.array([np.bincount(rows, minlength=50) for rows in draws])
    assert np.all((visits == np.floor(weights)) | (visits == np.ceil(weights)))
    error = visits.std(axis=0, ddof=1) / np.sqrt(len(visits))
    assert np.all(np.abs(visits.mean(axis=0) - weights) < 5 * error)
    assert np.any(np.abs(visits.mean(axis=0) - weights[::-1]) > 5 * error)


def test_a_perceptron_with_weights_stops_once_all_examples_are_visited_without_a_mistake():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -0.2], [-3.0, 1.0]])
    y = np.array([1, 1, 0, 0])
    weights = [1.0, 1.0, 1.0, 1e-2]  # the last is in few passes
    model = Perceptron(max_iter=2000).fit(X, y, sample_weight=weights)
    assert model.score(X, y) == 1
    assert model.n_iter_ < 2000


def test_in_partial_fit_the_weight_is_the_mean_number_of_visits():
    X, y = noisy()
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    for model in (Perceptron(), AttentivePerceptron(order="fixed", probes=1.0)):
        one = model.partial_fit(X, y, classes=[0, 1], sample_weight=weights)
        mistakes, coef = one.mistakes_, one.coef_
        other = type(model)(**model.get_params()).partial_fit(X[rows], y[rows], classes=[0, 1])
        assert mistakes == other.mistakes_
        if isinstance(model, Perceptron):  # the other draws its probes among more rows
            np.testing.assert_array_equal(coef, other.coef_)
    halves = Perceptron()
    counts = []
    for _ in range(200):
        halves.partial_fit([[1.0]], [1], classes=[0, 1], sample_weight=[0.5])
        counts.append(halves._progress[0].visits)
    assert abs(counts[-1] - 100) < 5 * np.sqrt(200 * 0.25)
    assert 0 < counts[-1] < 200


@pytest.mark.parametrize("model", STABILITY, ids=str)
def test_weights_that_have_no_meaning_are_refused_under_the_public_name(model):
    X, y = noisy(m=20)
    name = type(model).__name__
    with pytest.raises(TypeError, match=f"^{name} does not support sample_weight: the largest stability depends on"):
        model.fit(X, y, sample_weight=np.ones(20))
    with pytest.raises(TypeError, match=f"^{name} does not support class_weight: "):
        type(model)(class_weight="balanced")
    with pytest.raises(TypeError, match=rf"^{name}.fit\(\) got an unexpected keyword argument 'weight'"):
        model.fit(X, y, weight=1)
    assert not has_fit_parameter(model, "sample_weight")
    with pytest.raises(ValueError, match=f"{name} doesn't support sample_weight"):
        AdaBoostClassifier(model).fit(X, y)


@pytest.mark.parametrize("model", [Perceptron(), AttentivePerceptron(max_iter=10), SparsePerceptron(stages=3)], ids=str)
@pytest.mark.parametrize(
    ("options", "weights", "message"),
    [
        ({}, [-1.0, 1.0], "Negative values in data passed to `sample_weight`"),
        ({"class_weight": "balance"}, None, 'class_weight must be a dictionary of classes, "balanced", or None'),
        ({"class_weight": {"a": 1.0}}, None, "class_weight"),
        ({"class_weight": {0: -1.0}}, None, "class_weight must not be negative, nor 0 for all examples"),
        ({"class_weight": {0: 0.0, 1: 0.0}}, None, "class_weight must not be negative, nor 0 for all examples"),
        ({"class_weight": {0: 0.0}}, None, "needs examples of at least two classes, not of 1 class: 1"),
    ],
)
def test_weights_that_are_not_possible_are_refused_in_one_sentence(model, options, weights, message):
    X, y = noisy(m=20)
    weights = None if weights is None else np.resize(weights, 20)
    with pytest.raises(ValueError, match=message):
        type(model)(**{**model.get_params(), **options}).fit(X, y, sample_weight=weights)


def test_balanced_weights_in_partial_fit_are_refused_and_so_are_too_many_visits():
    X, y = noisy(m=20)
    with pytest.raises(ValueError, match='class_weight="balanced" needs all examples: call fit'):
        Perceptron(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"the weights add up to 2e\+10 visits, more than 100,000,000: divide them"):
        Perceptron().partial_fit(X, y, classes=[0, 1], sample_weight=np.full(20, 1e9))


class WeightRecorder(Perceptron):
    """A perceptron that keeps the weights of the examples with which it was fitted."""

    def fit(self, X, y, sample_weight=None):
        self.fitted_weights_ = np.array(sample_weight)
        return super().fit(X, y, sample_weight=sample_weight)


def test_boosting_raises_the_weights_of_the_examples_that_the_perceptron_before_misclassified():
    X, y = noisy(m=200)
    model = AdaBoostClassifier(WeightRecorder(max_iter=5), n_estimators=5, random_state=0).fit(X, y)
    assert len(model.estimators_) == 5
    for perceptron, following in zip(model.estimators_[:-1], model.estimators_[1:], strict=True):
        ratios = following.fitted_weights_ / perceptron.fitted_weights_
        wrong = perceptron.predict(X) != y
        assert ratios[wrong].min() > 1.1 * ratios[~wrong].max()
