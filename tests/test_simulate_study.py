"""Studies on data: all classifiers share the folds, counts are those of the model, and random labels give chance."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from scipy.stats import ttest_rel

import simulate
import theory
from simulate.classification.estimators import classifier_models
from simulate.classification.estimators.classifier_models import PrunedPerceptron
from statmech import ScenarioError, Study
from statmech.classification.classifiers import CLASSIFIERS
from statmech.classification.study_tables import iterate_paired_tests
from statmech.inputs import data_sets
from statmech.inputs.data_sets import GENERATED_DATA_SOURCES, find_data_source


def study(**given):
    return simulate.run(Study(**{"data": "votes", "folds": 4, "seeds": 2, **given}))


@cache
def alone(name):
    """One classifier; a network is chosen among two sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier_models, "HIDDEN_LAYER_SIZES", (5, 20))
        return study(classifier=name, seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_learns_a_rule_of_one_attribute(name, data_folder):
    found = alone(name)
    assert float(found.accuracy.mean()) > 0.5 + 4 * 0.5 / np.sqrt(160)  # beyond chance
    assert float(found.accuracy_training.mean()) >= float(found.accuracy.mean()) - 0.05


@pytest.mark.slow
def test_labels_without_a_rule_are_predicted_at_chance(tmp_path, monkeypatch):
    from conftest import write

    rng = np.random.default_rng(1)
    rows = [[party, *rng.choice(["y", "n"], 16)] for party in rng.permutation(["democrat", "republican"] * 60)]
    write(tmp_path / "votes/house-votes-84.data", rows)
    monkeypatch.setenv("STATMECH_DATA", str(tmp_path))
    found = study(classifier=["boosting", "ordinary"], seeds=4)
    assert np.all(abs(found.accuracy.mean(["seed", "fold"]) - 0.5) < 4 * 0.5 / np.sqrt(120))


@pytest.mark.slow
def test_classifiers_do_not_affect_each_other_and_more_shuffles_change_none(data_folder):
    among = study(classifier=["boosting", "tree"], data=["promoters", "votes"], seeds=2)
    there = among.sel(classifier="tree", data="votes").isel(seed=[0])
    np.testing.assert_array_equal(alone("tree").accuracy, there.accuracy)
    np.testing.assert_array_equal(alone("tree").nonzero_weights, there.nonzero_weights)


@pytest.mark.slow
def test_stating_a_default_changes_nothing(data_folder):
    left, given = study(classifier="boosting"), study(classifier="boosting", k=2, discount=0.5, stages=0)
    np.testing.assert_array_equal(left.accuracy, given.accuracy)
    np.testing.assert_array_equal(left.nonzero_weights, given.nonzero_weights)


def test_folds_hold_out_each_example_once(data_folder):
    from simulate.classification.cross_validation import make_folds

    made = Study(classifier="tree", data="votes", folds=5, seeds=2)
    for seed in range(2):
        parts = make_folds(made, next(made.cells()), seed)
        assert sorted(np.concatenate([part.test_rows for part in parts])) == list(range(160))
        assert all(not set(part.training_rows) & set(part.test_rows) for part in parts)


def test_a_data_set_keeps_its_own_folds(data_folder):
    found = study(classifier="ordinary", data=["coding", "votes"], folds=5)
    assert np.isnan(found.accuracy.sel(data="coding")[..., 4]).all()
    assert np.isfinite(found.accuracy.sel(data="votes")).all()
    assert study(classifier="ordinary", data="coding", folds=9).sizes["fold"] == 4


def test_fewer_examples_are_drawn_when_asked(data_folder):
    few = study(classifier="ordinary", examples=20)
    assert float(few.accuracy.mean()) < float(study(classifier="ordinary").accuracy.mean())


@pytest.mark.slow
def test_weights_counts_those_that_are_not_zero(data_folder):
    ordinary, second_order, mlp = (alone(name).nonzero_weights.values for name in ("ordinary", "second_order", "mlp"))
    assert np.all(ordinary == 30)
    assert np.all((second_order > 400) & (second_order <= 450))  # a conjunction that no example has keeps the weight 0
    assert np.all(mlp % 31 == 0)


def test_the_weights_of_hidden_units_are_counted_as_in_the_paper():
    """A unit has one weight per input and one more: the paper's 651, 2267 and 4270 are 21.0, 9.9 and 70.0 units."""
    assert [round(count / (inputs + 1), 1) for count, inputs in ((651, 30), (2267, 228), (4270, 60))] == [21, 9.9, 70]


def test_attention_evaluates_fewer_features_and_a_budget_exactly_its_number(data_folder):
    given = {"classifier": "attentive", "data": "digits-3-8", "folds": 2, "seeds": 1, "passes": 5}
    full = study(**given, budget=784)
    budget = study(**given, budget=50)
    assert np.all(full.features_evaluated == 784)
    assert np.all(budget.features_evaluated == 50)
    assert np.all(budget.features_learning == 50)


def test_values_of_theta_are_compared_on_the_same_orders_of_examples_and_features():
    cells = Study(
        classifier=["attentive", "passive_aggressive"], data="votes", theta=[1, 10], error_rate=[0.1, 0.2]
    ).cells()
    random = {(cell.name, cell.classifier.theta, cell.classifier.error_rate): cell.random(0, 0) for cell in cells}
    assert random["attentive", 1, 0.1] == random["attentive", 10, 0.1] != random["attentive", 1, 0.2]
    assert random["attentive", 1, 0.1] != random["passive_aggressive", 1, 0.1]


def test_pairs_within_a_codon_are_counted(data_folder):
    found = study(classifier="boosting", data="coding", discount=1, stages=8, seeds=1)
    assert np.all(found.codon_pairs <= found.pairs)
    assert np.any(found.pairs > 0)
    assert np.isnan(study(classifier="boosting", seeds=1).codon_pairs).all()


def test_weights_of_pairs_stand_at_their_positions(data_folder):
    found = study(classifier=["boosting", "tree"], data="coding", discount=1, stages=8, seeds=1, positions=True)
    weight = found.pair_weights.sel(classifier="boosting").isel(seed=0)
    assert weight.dims == ("fold", "position", "partner")
    np.testing.assert_array_less(0, weight.where(weight.position < weight.partner).sum(["position", "partner"]))
    assert not weight.where(weight.position >= weight.partner, 0).any()
    assert np.all((weight > 0).sum(["position", "partner"]) <= found.pairs.sel(classifier="boosting").isel(seed=0))
    assert np.isnan(found.pair_weights.sel(classifier="tree")).all()


@pytest.mark.slow
def test_the_pairs_chosen_on_coding_lie_within_one_codon(real_data):
    """The paper's claim, on our stand-in; with permuted positions only at random (1/7)."""
    found = simulate.run(Study(classifier="boosting", data="coding", stages=60, seeds=1))
    share = float(found.codon_pairs.sum() / found.pairs.sum())
    assert float(found.pairs.sum()) >= 20
    assert share > 0.95


def test_learning_in_order_of_class_is_worse(real_data):
    """Daume, section 3.2: learning one class after the other needs many passes where a mixed order needs one."""
    found = simulate.run(Study(classifier="perceptron", data="votes", order=["by-class", "every"], passes=3))
    by_class, every = found.accuracy.mean(["seed", "fold"]).values
    assert every - by_class > 0.2


@pytest.mark.slow
def test_the_test_error_of_the_perceptron_falls_and_then_rises_with_passes():
    """Daume's Figure 3.3, which the training error, that only falls, would not show."""
    passes = {"passes": [1, 5, 89], "examples": 500, "folds": 5, "seeds": 12}
    found = simulate.run(Study(classifier="perceptron", data="noisy", **passes)).mean("fold")
    early, late = turns(1 - found.accuracy)
    assert min(early, late) > 3
    early, late = turns(1 - found.accuracy_training)
    assert early > 3 > late


def turns(error):
    """The fall of an error from the first to the second number of passes and its rise to the third, in their errors."""
    from statmech.numerics.statistics import standard_error

    first, second, third = error.transpose("passes", "seed").values
    return tuple(float(np.mean(d) / standard_error(d)) for d in (first - second, third - second))


@pytest.mark.slow
def test_boosting_on_the_votes_is_as_accurate_and_as_sparse_as_in_the_paper(real_data):
    """91.5 % and 12 weights; other shuffles give 91.1 with a standard deviation of 1.0."""
    found = simulate.run(Study(classifier="boosting", data="votes", seeds=2))
    accuracy = 100 * found.accuracy.mean("fold")
    assert abs(float(accuracy.mean()) - 91.1) < 3 * 1.0
    assert 8 <= float(found.nonzero_weights.mean()) <= 16


def test_a_verdict_is_the_papers_t_test(data_folder):
    found = study(classifier=["boosting", "tree"], seeds=1, data="promoters", stages=2)
    mine, its = found.accuracy.values[1, 0], found.accuracy.values[0, 0]
    first, second = iterate_paired_tests(found)
    assert first.worse_shuffles is None
    assert first.cell == {"classifier": "boosting"}
    sure = ttest_rel(mine, its).pvalue <= 0.05 if np.ptp(mine - its) else False
    assert second.worse_shuffles == int(sure and mine.mean() < its.mean())
    assert second.better_shuffles == int(sure and mine.mean() > its.mean())
    assert second.error == pytest.approx(mine.std(ddof=1) / 2)


def test_a_significantly_worse_classifier_is_marked(data_folder):
    found = study(classifier=["boosting", "tree"], seeds=2)
    found.accuracy[1] = found.accuracy[0] - [0.1, 0.12, 0.11, 0.1]
    assert [verdict.worse_shuffles for verdict in iterate_paired_tests(found)] == [None, 2]
    found.accuracy[1] = found.accuracy[0] - [0.1, -0.12, 0.11, -0.1]
    assert [verdict.worse_shuffles for verdict in iterate_paired_tests(found)] == [None, 0]


def test_the_papers_stars_stand_behind_accuracies_below_that_of_boosting():
    from statmech.classification.study_tables import CLASSIFIERS_WORSE_THAN_BOOSTING, PUBLISHED_ACCURACY

    for data, starred in CLASSIFIERS_WORSE_THAN_BOOSTING.items():
        [boosting] = PUBLISHED_ACCURACY[data]["boosting"]
        assert all(max(PUBLISHED_ACCURACY[data][name]) < boosting for name in starred)
    assert sum(map(len, CLASSIFIERS_WORSE_THAN_BOOSTING.values())) == 12  # as many as the scan shows


def test_the_concept_of_all_examples_is_kept(data_folder):
    concept = json.loads(study(classifier="boosting").attrs["concepts"])["votes"]
    assert "handicapped-infants = " in concept["text"]
    assert concept["classes"] == ["democrat", "republican"]
    assert len(concept["terms"]) == concept["text"].count("\n") + 1


def test_pruning_keeps_the_relevant_weights():
    X = np.random.default_rng(0).standard_normal((300, 12))
    model = PrunedPerceptron().fit(X, X[:, 3] - X[:, 7] > 0)
    assert {3, 7} <= set(np.flatnonzero(model.coef_))
    assert np.count_nonzero(model.coef_) < 8
    with pytest.raises(ValueError, match="two classes"):
        PrunedPerceptron().fit(X, np.arange(300) % 3)


def test_pruning_among_all_pairs_keeps_the_pair_that_decides():
    from simulate.classification.estimators.classifier_models import (
        TrainingDataProperties,
        count_nonzero_weights,
        make_model,
    )
    from statmech.classification.classifiers import PrunedSecondOrderClassifier

    X = np.random.default_rng(0).integers(0, 2, (400, 20)).astype(float)
    y = X[:, 3] * X[:, 7] > 0
    model = make_model(PrunedSecondOrderClassifier(), TrainingDataProperties("auto", 400, 0)).fit(X, y)
    kept = model[1].powers_[model[-1].coef_[0] != 0]
    assert [3, 7] in [np.flatnonzero(powers).tolist() for powers in kept]
    assert model.score(X, y) == 1.0
    assert count_nonzero_weights(model) == len(kept) <= 3  # of 210


def test_a_plane_contains_the_decisions_of_its_corners():
    found = simulate.run(Study(classifier="perceptron", data="clouds", plane=True, folds=2))
    decision = found.decision.isel(seed=0).values
    assert decision[0, 0] != decision[-1, -1]
    assert set(np.unique(decision)) == {0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["perceptron", "averaged", "tree"])
def test_a_line_is_drawn_from_the_weights_that_were_learnt(name):
    """From any others, or if the recorded decisions were not made by a line, there is none."""
    from simulate.classification.cross_validation import get_plane_weights

    plane = Study(classifier=name, data="separable", plane=True, folds=2)
    [cell] = plane.cells()
    decision = simulate.run(plane).decision.isel(seed=0).values
    found = get_plane_weights(plane, cell, 0, decision)
    assert (found is None) == (name == "tree")
    assert get_plane_weights(plane, cell, 0, 1 - decision) is None
    assert get_plane_weights(plane, cell, 0, np.roll(decision, 1, axis=1)) is None


def test_the_margin_in_the_plane_is_that_of_the_classifier():
    from figures.classification.perceptrons import _compute_margin
    from simulate.classification.cross_validation import fit_plane_model
    from statmech.inputs.data_sets import load_data_set

    for data in ("separable", "clouds"):
        plane, points = Study(classifier="perceptron", data=data, plane=True, folds=2), load_data_set(data)
        model, scale = fit_plane_model(plane, next(plane.cells()), 0)
        expected = scale * simulate.margin(model, points.X / scale, points.y)
        drawn = _compute_margin(model.coef_[0] / scale, float(model.intercept_[0]), points)
        assert drawn == pytest.approx(expected) if expected > 0 else np.isnan(drawn)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"classifier": "bosting"}, 'Did you mean "boosting"'),
        ({"data": "vots"}, 'Did you mean "votes"'),
        ({"classifier": "tree", "order": ["once", "every"]}, 'the classifier "tree" has no order'),
        ({"classifier": "tree", "error_rate": [0.1, 0.2]}, 'the classifier "tree" has no error_rate'),
        ({"classifier": "attentive", "error_rate": 0.5}, "must be less than 0.5"),
        ({"classifier": "attentive", "level": "constnt"}, 'Did you mean "constant"'),
        ({"folds": 1}, "at least 2"),
        ({"plane": True}, "votes has 15 attributes, and a plane has 2"),
        ({"positions": True}, "positions: votes has no sequences"),
        ({"k": 0}, "k: must be at least 1, not 0"),
    ],
)
def test_an_impossible_study_is_refused(given, message):
    with pytest.raises(ScenarioError, match=message):
        Study(**{"classifier": "boosting", "data": "votes", **given})


def test_more_folds_than_examples_of_a_class_are_refused(data_folder):
    with pytest.raises(ScenarioError, match="folds are more than the"):
        study(classifier="tree", folds=120)


def test_real_data_have_no_theory():
    with pytest.raises(ScenarioError, match="no theory of real data"):
        theory.solve(Study(classifier="tree", data="votes"))


def test_the_time_of_a_study_grows_with_its_data_and_its_passes():
    def seconds(**given):
        return Study(**{"data": "votes", "folds": 5, "seeds": 1, **given}).estimate_seconds_per_seed()

    attentive = seconds(classifier="attentive", data="digits-3-8", passes=30)
    assert attentive > 2 * seconds(classifier="attentive", passes=30)
    assert attentive > 2 * seconds(classifier="attentive", data="digits-3-8", passes=10)
    assert seconds(classifier="tree", data="coding") > 10 * seconds(classifier="tree", data="coding", examples=1000)
    assert seconds(classifier="tree", data="coding") > 10 * seconds(classifier="tree")


def test_the_stated_numbers_of_examples_are_those_of_the_data():
    assert {name: len(data_sets.load_data_set(name).y) for name in GENERATED_DATA_SOURCES} == {
        name: find_data_source(name).examples for name in GENERATED_DATA_SOURCES
    }


@pytest.mark.slow
def test_the_stated_numbers_of_examples_are_those_of_real_data(real_data):
    names = [*data_sets.FILE_DATA_SOURCES, "digits-3-8"]
    assert {name: len(data_sets.load_data_set(name).y) for name in names} == {
        name: find_data_source(name).examples for name in names
    }
