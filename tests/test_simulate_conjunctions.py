"""Boosting over conjunctions follows Figure 1, agrees with a slow search, and satisfies the bounds of theory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import brief

from simulate.classification.conjunctions import (
    Conjunction,
    ConjunctionSearch,
    boost_conjunctions,
    compute_weighted_vote,
)
from theory.classification import boosting


def examples(seed, m=40, n=7):
    rng = np.random.default_rng(seed)
    return (rng.random((m, n)) < 0.5).astype(float), rng.choice([-1, 1], m)


def slow_best(X, signed, attributes, k, discount):
    """Every conjunction with both signs, one by one."""
    scores = {}
    for order in range(k + 1):
        for indicators in itertools.combinations(range(X.shape[1]), order):
            if len({attributes[i] for i in indicators}) == order:
                true = X[:, list(indicators)].all(axis=1)
                for sense in (1, -1):
                    h = np.where(true, sense, -sense)
                    scores[indicators, sense] = (discount if order > 1 else 1.0) * float(signed @ h)
    largest = max(scores.values())
    return next(key for key, score in scores.items() if score >= largest - 1e-12)


@pytest.mark.parametrize("k", brief([1, 2, 3], 2))
@pytest.mark.parametrize("discount", [1.0, 0.5])
def test_the_search_agrees_with_a_loop_over_all_conjunctions(k, discount):
    for seed in range(8):
        X, y = examples(seed)
        attributes = np.array([0, 0, 1, 1, 2, 3, 3])
        weights = np.random.default_rng(seed).random(len(y))
        signed = weights / weights.sum() * y
        assert ConjunctionSearch(X, signed, attributes, k, discount).best() == slow_best(
            X, signed, attributes, k, discount
        )


def slow_boost(X, y, attributes, k, stages, discount):
    """Figure 1 with that search, all sums recomputed at each stage."""
    w = np.ones(len(y))
    for _ in range(stages):
        D = w / w.sum()
        indicators, sense = slow_best(X, D * y, attributes, k, discount)
        right = np.where(X[:, list(indicators)].all(axis=1), sense, -sense) == y
        eps = D[~right].sum()
        yield indicators, sense, eps
        w = np.where(right, w * eps / (1 - eps), w)


@pytest.mark.parametrize("k", brief([1, 2, 3], 2))
@pytest.mark.parametrize("discount", [1.0, 0.5])
def test_every_stage_of_boosting_agrees_with_a_loop_over_all_conjunctions(k, discount):
    for seed in range(3):
        X, y = examples(seed, m=50)
        attributes = np.array([0, 1, 0, 1, 2, 3, 3])  # indicators of one attribute are not adjacent
        fast = list(boost_conjunctions(X, y, attributes, k, 25, discount))
        slow = list(slow_boost(X, y, attributes, k, 25, discount))
        assert [(s.hypothesis.indicators, s.hypothesis.sense) for s in fast] == [one[:2] for one in slow]
        np.testing.assert_allclose([s.error for s in fast], [one[2] for one in slow], rtol=1e-10)


def test_sums_kept_over_hundreds_of_stages_equal_recomputed_ones():
    X, y = examples(1, m=600, n=12)
    attributes = np.arange(12)
    D = np.full(600, 1 / 600)
    kept = ConjunctionSearch(X, D * y, attributes, 3, 1.0)
    for _ in range(400):
        wrong = kept.best()(X) != y
        eps = D[wrong].sum()
        kept.update_distribution(wrong, eps)
        D = np.where(wrong, D, D * eps / (1 - eps))
        D /= D.sum()
    recomputed = ConjunctionSearch(X, D * y, attributes, 3, 1.0)
    assert abs(kept.total - recomputed.total) < 1e-14
    pairs = zip(kept.update_pair_sums(), recomputed.update_pair_sums(), strict=True)
    for one, other in (*pairs, (kept.masses, recomputed.masses), (kept.signed, D * y)):
        np.testing.assert_allclose(one, other, atol=1e-14)


def nominal(seed, attributes, values, m, k=3):
    """Indicators of nominal attributes, labels of a vote of conjunctions with flips, and the attributes."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, values, (m, attributes))
    X = (drawn[:, :, None] == np.arange(values)).reshape(m, -1).astype(float)
    votes = np.zeros(m)
    for _ in range(5):
        chosen = rng.choice(attributes, rng.integers(1, k + 1), replace=False) * values + rng.integers(values)
        votes += rng.choice([-1, 1]) * np.where(X[:, chosen].all(axis=1), 1, -1)
    return (
        X,
        (np.sign(votes) * np.where(rng.random(m) < 0.1, -1, 1)).astype(int),
        np.repeat(np.arange(attributes), values),
    )


def listed(attributes, k):
    """All conjunctions of at most k indicators of different attributes, by size, then in order."""
    return [
        c
        for order in range(k + 1)
        for c in itertools.combinations(range(len(attributes)), order)
        if len(set(attributes[list(c)])) == order
    ]


def exhaustive(X, signed, conjunctions, truth, discount):
    """The best of all listed conjunctions, of which `truth` (m, conjunctions) holds the values."""
    score = 2 * signed @ truth - signed.sum()
    size = np.abs(score) * np.where([len(c) > 1 for c in conjunctions], discount, 1.0)
    at = np.argmax(size >= size.max() - 1e-12)
    return Conjunction(conjunctions[at], 1 if score[at] >= 0 else -1)


SETS = [(12, 2, 60, 3), (8, 3, 200, 3), (6, 4, 40, 3), (9, 2, 80, 4), (14, 2, 50, 3)]


@pytest.mark.parametrize(("attributes", "values", "m", "k"), SETS)
@pytest.mark.parametrize("discount", [1.0, 0.6])
def test_branch_and_bound_finds_the_best_of_all_conjunctions_at_every_stage(attributes, values, m, k, discount):
    """And the first of equal ones: examples of equal weights have many."""
    X, y, of = nominal(attributes + m, attributes, values, m)
    conjunctions = listed(of, k)
    truth = np.stack([X[:, list(c)].all(axis=1) for c in conjunctions], axis=1).astype(float)
    D, sizes = np.full(m, 1 / m), []
    for stage in boost_conjunctions(X, y, of, k, 40, discount):
        assert stage.hypothesis == exhaustive(X, D * y, conjunctions, truth, discount)
        wrong = stage.hypothesis(X) != y
        D = np.where(wrong, D / stage.error, D / (1 - stage.error)) / 2 if stage.error else D
        sizes.append(len(stage.hypothesis.indicators))
    assert max(sizes) == k or discount < 1


def wide(rows=14):
    """A table of 60 columns of three values, of few examples."""
    rng = np.random.default_rng(5)
    drawn, y = rng.integers(0, 3, (rows, 60)), np.where(np.arange(rows) % 2, 1, -1)
    X = (drawn[:, :, None] == np.arange(3)).reshape(rows, -1).astype(float)
    return X, y, np.repeat(np.arange(60), 3)


@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_few_pairs_of_a_wide_table_are_summed_and_the_best_of_all_is_found(discount, monkeypatch):
    X, y, of = wide()
    below, sizes = ConjunctionSearch._search_extensions, []

    def noted(self, first, others, found):
        sizes.append(len(others))
        below(self, first, others, found)

    monkeypatch.setattr(ConjunctionSearch, "_search_extensions", noted)
    conjunctions = listed(of, 2)
    truth = np.stack([X[:, list(c)].all(axis=1) for c in conjunctions], axis=1).astype(float)
    D, used = np.full(len(y), 1 / len(y)), set()
    for stage in boost_conjunctions(X, y, of, 2, 60, discount):
        assert stage.hypothesis == exhaustive(X, D * y, conjunctions, truth, discount)
        wrong = stage.hypothesis(X) != y
        D = np.where(wrong, D / stage.error, D / (1 - stage.error)) / 2 if stage.error else D
        used.add(len(stage.hypothesis.indicators))
    assert 2 in used or discount < 1
    assert np.mean(sizes or [0]) < 30  # of 180


def test_a_bound_of_single_indicators_that_is_too_low_would_miss_pairs(monkeypatch):
    X, y, of = wide()
    right, reweigh = list(boost_conjunctions(X, y, of, 2, 60, 1.0)), ConjunctionSearch.update_distribution

    def lowered(self, *given):
        reweigh(self, *given)
        self.masses = self.masses / 2

    monkeypatch.setattr(ConjunctionSearch, "update_distribution", lowered)
    assert list(boost_conjunctions(X, y, of, 2, 60, 1.0)) != right


def test_a_weight_counts_as_copies_of_an_example():
    X, y, of = nominal(3, 6, 3, 40, k=2)
    copies = np.random.default_rng(0).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), copies)
    weighted, repeated = (
        boost_conjunctions(X, y, of, 2, 12, weights=copies),
        boost_conjunctions(X[rows], y[rows], of, 2, 12),
    )
    for one, other in zip(weighted, repeated, strict=True):
        assert one.hypothesis == other.hypothesis
        assert one.error == pytest.approx(other.error, rel=1e-10)


def test_gains_that_did_not_fade_would_miss_triples(monkeypatch):
    X, y, of = nominal(74, 12, 2, 60)
    right, reweigh = list(boost_conjunctions(X, y, of, 3, 40, 1.0)), ConjunctionSearch.update_distribution

    def unfaded(self, *given):
        gains = 2 * self.gains
        reweigh(self, *given)
        self.gains = gains

    monkeypatch.setattr(ConjunctionSearch, "update_distribution", unfaded)
    assert list(boost_conjunctions(X, y, of, 3, 40, 1.0)) != right


def test_few_pairs_are_searched_for_triples():
    """At the size of the promoters: 57 attributes of four values, 106 examples."""
    X, y, of = nominal(0, 57, 4, 106)
    search = ConjunctionSearch(X, y / 106, of, 3, 1.0)
    search.best()
    assert np.count_nonzero(search.gains[0]) < 0.05 * np.count_nonzero(search.allowed_pairs)


def test_too_many_conjunctions_are_refused():
    with pytest.raises(ValueError, match="conjunctions of 4 of 300 indicators are too many to search"):
        next(boost_conjunctions(np.zeros((2, 300)), np.array([1, -1]), np.arange(300), 4, 1))
    next(
        boost_conjunctions(np.eye(2, 300), np.array([1, -1]), np.repeat([0, 1], 150), 4, 1)
    )  # two attributes: at most pairs


def test_a_tiny_case_by_hand():
    """Four examples of f = +, +, +, - whose single indicator is wrong on the second: D, eps and beta by hand."""
    X, y = np.array([[1.0], [0.0], [1.0], [0.0]]), np.array([1, 1, 1, -1])
    stages = list(boost_conjunctions(X, y, np.array([0]), max_indicators=1, max_stages=3))
    # stage 1: always true and the indicator are both wrong once (1/4); the simpler one is chosen, beta = 1/3
    assert stages[0].hypothesis == Conjunction((), 1)
    assert stages[0].error == pytest.approx(1 / 4)
    assert stages[0].weight == pytest.approx(np.log(3))
    # stage 2: weights 1, 1, 1 (times 1/3) and 1: D = 1/6, 1/6, 1/6, 1/2; the indicator is wrong on the second, 1/6
    assert stages[1].hypothesis == Conjunction((0,), 1)
    assert stages[1].error == pytest.approx(1 / 6)
    assert stages[1].weight == pytest.approx(np.log(5))
    # stage 3: D = 1/10, 1/2, 1/10, 3/10; true is wrong on 3/10, the indicator on 1/2
    assert stages[2].hypothesis == Conjunction((), 1)
    assert stages[2].error == pytest.approx(3 / 10)
    expected = np.log(3) + np.log(7 / 3) + np.log(5) * np.array([1, -1, 1, -1])
    np.testing.assert_allclose(compute_weighted_vote(stages, X), expected)


def test_a_hypothesis_that_is_always_right_is_the_only_stage():
    X, _ = examples(0)
    y = np.where(X[:, 2] * X[:, 5] > 0, -1, 1)
    stages = list(boost_conjunctions(X, y, np.arange(7), max_indicators=2, max_stages=50, discount=1.0))
    assert [stage.error for stage in stages] == [0.0]
    assert np.array_equal(np.sign(compute_weighted_vote(stages, X)), y)


def test_a_discount_prefers_simple_features_and_changes_nothing_else():
    X, _ = examples(1, m=200)
    y = np.where(X[:, 0] + X[:, 1] + X[:, 2] > 1.5, 1, -1)
    orders = {
        discount: [len(s.hypothesis.indicators) for s in boost_conjunctions(X, y, np.arange(7), 2, 6, discount)]
        for discount in (1.0, 0.5, 0.0)
    }
    assert max(orders[0.0]) == 1
    assert sum(orders[0.5]) <= sum(orders[1.0])
    alone = list(boost_conjunctions(X, y, np.arange(7), 1, 6, 1.0))
    assert alone == list(boost_conjunctions(X, y, np.arange(7), 2, 6, 0.0))


def test_the_order_of_examples_and_indicators_does_not_matter():
    X, y = examples(3, m=60)
    attributes = np.array([0, 0, 1, 1, 2, 3, 3])
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(60), rng.permutation(7)
    stages = list(boost_conjunctions(X, y, attributes, 2, 8))
    shuffled = list(boost_conjunctions(X[rows][:, columns], y[rows], attributes[columns], 2, 8))
    values = [
        np.sort(np.round(compute_weighted_vote(some, data), 9))
        for some, data in ((stages, X), (shuffled, X[rows][:, columns]))
    ]
    np.testing.assert_allclose(values[0], values[1])


@pytest.mark.parametrize("k", brief([1, 2, 3], 2))
def test_the_same_conjunctions_are_found_in_any_order_of_examples_and_indicators(k):
    """With examples repeated unequally, which avoids ties: stage by stage and index by index."""
    X, y = examples(4, m=61)
    repeated = np.repeat(np.arange(61), 1 + np.arange(61) % 7)
    X, y, attributes = X[repeated], y[repeated], np.array([0, 0, 1, 1, 2, 3, 3])
    rng = np.random.default_rng(k)
    rows, columns = rng.permutation(len(y)), rng.permutation(7)
    stages = list(boost_conjunctions(X, y, attributes, k, 12))
    shuffled = list(boost_conjunctions(X[rows][:, columns], y[rows], attributes[columns], k, 12))
    back = [{int(columns[i]) for i in stage.hypothesis.indicators} for stage in shuffled]
    assert back == [set(stage.hypothesis.indicators) for stage in stages]
    np.testing.assert_allclose([s.weight for s in shuffled], [s.weight for s in stages], rtol=1e-9)


def teacher(rng, X, s):
    """A vote of s conjunctions of up to 2 inputs without ties."""
    while True:
        votes = np.zeros(len(X))
        for _ in range(s):
            indicators = rng.choice(X.shape[1], rng.integers(1, 3), replace=False)
            votes += Conjunction(tuple(indicators), int(rng.choice([-1, 1])))(X)
        if np.all(votes != 0) and len(set(np.sign(votes))) == 2:
            return np.sign(votes).astype(int)


@pytest.mark.parametrize("s", [3, 5])
def test_boosting_is_right_within_the_stages_and_by_the_advantage_of_theory(s):
    rng = np.random.default_rng(s)
    for _ in range(4):
        X = (rng.random((150, 8)) < 0.5).astype(float)
        y = teacher(rng, X, s)
        stages = list(boost_conjunctions(X, y, np.arange(8), 2, boosting.bound_stages(s, len(y)), discount=1.0))
        assert all(stage.error <= 0.5 - 1 / (2 * s) + 1e-12 for stage in stages)
        assert np.array_equal(np.sign(compute_weighted_vote(stages, X)), y)


def test_the_training_error_stays_below_its_bound():
    X, y = examples(5, m=120)
    stages = list(boost_conjunctions(X, y, np.arange(7), 2, 40))
    bound = boosting.bound_training_error([stage.error for stage in stages])
    for T in range(1, len(stages) + 1):
        assert np.mean(np.sign(compute_weighted_vote(stages[:T], X)) != y) <= bound[T - 1] + 1e-12
    assert bound[-1] < 1


def test_boosting_stops_when_no_hypothesis_beats_chance():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 2)
    parity = np.where(X.sum(axis=1) % 2 == 1, 1, -1)
    assert list(boost_conjunctions(X, parity, np.arange(2), max_indicators=1, max_stages=10)) == []
    assert np.all(compute_weighted_vote([], X) == 0)


def test_counts_equal_the_number_of_listed_conjunctions():
    sizes = [2, 3, 1, 4]
    attributes = np.repeat(np.arange(4), sizes)
    for k in (1, 2, 3):
        listed = [
            c
            for j in range(1, k + 1)
            for c in itertools.combinations(range(10), j)
            if len({attributes[i] for i in c}) == j
        ]
        assert boosting.count_conjunctions(sizes, k) == len(listed)
    assert boosting.count_conjunctions(10, 3) == 10 + 45 + 120


def test_the_sample_size_is_a_fixed_point():
    m = boosting.sufficient_examples(30, 2, s=2, eps=0.1, delta=0.05)
    size = boosting.bound_log_perceptrons(boosting.count_conjunctions(30, 2) + 1, boosting.bound_stages(2, m))
    assert boosting.bound_sample_size(0.1, 0.05, size) <= m
    smaller = boosting.bound_log_perceptrons(boosting.count_conjunctions(30, 2) + 1, boosting.bound_stages(2, m // 2))
    assert boosting.bound_sample_size(0.1, 0.05, smaller) > m // 2
