"""Ensembles of convex students: parts of the examples, fits, overlaps and votes, agreement with theory, messages."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import disagreements
from sklearn.linear_model import LogisticRegression, Ridge

import simulate
import theory
from simulate.convex.training_data import draw_learnt_examples, draw_teacher_data
from simulate.kinds.empirical_risk import average_over_students, measure_ensemble
from statmech.errors import ScenarioError
from statmech.kinds.empirical_risk import Risk


def fit_with_sklearn(scenario, seed):
    """The weights (K, N) of the students of a seed, and the teacher."""
    [cell] = scenario.cells()
    data = draw_teacher_data(cell, scenario.key, seed)
    X, weights = data.X / np.sqrt(cell.N), []
    for student in range(cell.K):
        rows = draw_learnt_examples(cell, scenario.key, seed, student)
        counts = np.bincount(rows, minlength=cell.P).astype(float)
        model = (
            LogisticRegression(C=1 / cell.lam, fit_intercept=False, tol=1e-12, max_iter=10**4)
            if cell.name == "logistic"
            else Ridge(alpha=cell.lam, fit_intercept=False, tol=1e-14)
        )
        weights.append(np.ravel(model.fit(X, data.y, sample_weight=counts).coef_))
    return np.array(weights), data.teacher


def cosine_matrix(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.mark.parametrize("resample", [{"share": 0.6}, "bootstrap"])
@pytest.mark.parametrize("keys", [{"loss": "logistic"}, {"loss": "square", "teacher": "linear", "noise": 0.3}])
def test_students_minimise_the_loss_of_their_own_examples(keys, resample):
    scenario = Risk(**keys, K=4, resample=resample, alpha=2, lam=0.3, N=30, seeds=1)
    run = simulate.run(scenario).isel(seed=0)
    weights, teacher = fit_with_sklearn(scenario, 0)
    R, pairs = cosine_matrix(np.vstack([teacher, weights]))[0, 1:], cosine_matrix(weights)[np.triu_indices(4, 1)]
    mean = cosine_matrix(np.array([teacher, weights.sum(axis=0)]))[0, 1]
    found = [float(run[name]) for name in ("R", "length", "eps_g", "q", "eps_g_weight_mean")]
    lengths = np.linalg.norm(weights, axis=1) / np.sqrt(30)
    expected = [R.mean(), lengths.mean(), np.mean(np.arccos(R) / np.pi), pairs.mean(), np.arccos(mean) / np.pi]
    assert found == pytest.approx(expected, rel=1e-5)
    assert bool(run.converged)


def test_parts_are_independent_and_begin_with_the_same_examples():
    scenario = Risk(loss="square", K=2, resample={"share": [0.25, 0.5]}, N=200, alpha=5)
    few, more = scenario.cells()
    first, second = (draw_learnt_examples(more, 0, 0, student) for student in (0, 1))
    assert np.array_equal(draw_learnt_examples(few, 0, 0, 0), first[:250])
    assert len(set(first)) == 500
    shared = len({*first} & {*second})  # of mean P s^2 = 250 and variance P s^2 (1 - s)^2
    assert abs(shared - 250) < 5 * np.sqrt(62.5)
    [cell] = Risk(loss="square", K=2, resample="bootstrap", N=200, alpha=50).cells()
    counts = np.bincount(np.bincount(draw_learnt_examples(cell, 0, 0, 0), minlength=cell.P), minlength=4)[:4]
    poisson = np.exp(-1) * np.array([1, 1, 1 / 2, 1 / 6])
    assert np.all(abs(counts / cell.P - poisson) < 5 * np.sqrt(poisson / cell.P))


def test_a_larger_ensemble_adds_students():
    scenario = Risk(loss="logistic", K=[1, 2], resample={"share": 0.5}, alpha=2, lam=0.1, N=40, seeds=3)
    run, weights = simulate.run(scenario), []
    for seed in range(3):
        [cell] = Risk(**{**scenario.config(), "K": 2}).cells()
        assert cell.K == 2
        weights.append(fit_with_sklearn(Risk(**{**scenario.config(), "K": 2}), seed))
    first = [cosine_matrix(np.array([teacher, students[0]]))[0, 1] for students, teacher in weights]
    assert run.R.sel(K=1).values == pytest.approx(first, rel=1e-5)
    assert run.q.sel(K=1).isnull().all()


@pytest.mark.parametrize("K", [3, 4, 7])
def test_the_vote_is_the_error_of_most_signs_on_fresh_inputs(K):
    rng = np.random.default_rng(K)
    teacher = rng.standard_normal(20)
    weights = teacher + rng.standard_normal((K, 20)) + rng.standard_normal(20)
    measured = [measure_ensemble(teacher, weights, np.random.default_rng(seed)) for seed in range(40)]
    x = rng.standard_normal((400_000, 20))
    votes, right = np.sign(x @ weights.T).sum(axis=1), np.sign(x @ teacher)
    wrong = np.where(votes == 0, 0.5, votes * right < 0)
    error = np.hypot(wrong.std() / np.sqrt(wrong.size), np.std([v["eps_g_majority_vote"] for v in measured]) / 40**0.5)
    assert abs(np.mean([v["eps_g_majority_vote"] for v in measured]) - wrong.mean()) < 4 * error


def test_two_votes_are_the_mean_of_single_errors_and_q_omits_the_diagonal():
    rng = np.random.default_rng(1)
    teacher, weights = rng.standard_normal(9), rng.standard_normal((2, 9))
    values = measure_ensemble(teacher, weights, rng)
    cosines = cosine_matrix(np.vstack([teacher, weights]))
    assert values["eps_g_majority_vote"] == pytest.approx(np.mean(np.arccos(cosines[0, 1:]) / np.pi), rel=1e-12)
    assert values["q"] == pytest.approx(cosines[1, 2], rel=1e-12)


def test_an_unconverged_student_is_reported_and_a_missing_one_gives_no_mean():
    students = [{"gap": 0.0, "converged": True, "R": 0.5}, {"gap": np.nan, "converged": False}]
    values = average_over_students(students)
    assert np.isnan(values["R"]) and np.isnan(values["gap"]) and values["converged"] is False  # noqa: PT018


def test_students_of_all_examples_are_one_student():
    keys = {"loss": "hinge", "alpha": 1.5, "lam": 0.1, "flip": 0.1, "N": 40, "seeds": 2}
    bag, one = simulate.run(Risk(K=5, resample={"share": 1}, **keys)), simulate.run(Risk(**keys))
    for name in ("R", "length", "eps_g", "train_loss", "eps_t"):
        assert np.allclose(bag[name], one[name], rtol=1e-6), name
    assert np.allclose(bag.q, 1)
    assert np.allclose(bag.eps_g_majority_vote, one.eps_g, atol=1e-6)


def test_message_passing_finds_the_same_students():
    keys = {"loss": "logistic", "K": 2, "resample": {"share": 0.5}, "alpha": 3, "lam": 1.0, "N": 100, "seeds": 2}
    minimised, passed = (simulate.run(Risk(solver=solver, **keys)) for solver in ("minimise", "amp"))
    assert passed.converged.all()
    for name in ("R", "q", "eps_g_weight_mean"):
        assert np.allclose(minimised[name], passed[name], rtol=1e-5)


def test_the_bayes_optimal_student_of_a_run_learns_all_examples():
    keys = {"loss": "square", "alpha": 2, "lam": 0.1, "N": 40, "seeds": 2, "bayes": True}
    bag, one = simulate.run(Risk(K=2, resample={"share": 0.3}, **keys)), simulate.run(Risk(**keys))
    assert np.array_equal(bag.R_bayes, one.R_bayes)


SETTINGS = [
    {"loss": "logistic", "K": 4, "resample": {"share": 0.5}, "alpha": 2, "lam": 0.1, "flip": 0.1},
    {"loss": "square", "K": [1, 4], "resample": "bootstrap", "alpha": 2, "lam": 0.1, "teacher": "linear", "noise": 0.5},
    {"loss": "hinge", "K": 6, "resample": {"share": 0.7}, "alpha": 1, "lam": 0.1, "flip": 0.1},
    {"loss": "logistic", "K": 3, "resample": "bootstrap", "alpha": 2, "lam": 0.1, "flip": 0.1},
    {"loss": "huber", "K": 3, "resample": {"share": [0.3, 0.9]}, "alpha": 3, "lam": 0.5, "teacher": "logit", "gain": 3},
    {"loss": "squared_hinge", "K": 5, "resample": {"share": 0.4}, "alpha": 1.5, "lam": 0.0},
]


@pytest.mark.slow
@pytest.mark.parametrize("keys", SETTINGS)
def test_ensembles_agree_with_theory(keys):
    scenario = Risk(**keys, N=400, seeds=24)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    assert simulation.converged.all()
    assert disagreements(simulation, solution) == []
    planted = solution.assign(q=solution.q + 0.1 * (1 - solution.q))
    assert disagreements(simulation, planted) != []


BASE = {"loss": "logistic", "alpha": 2, "lam": 0.1, "N": 100}
SHARE = {"share": 0.5}
LONGER = "one student that learns a part of the examples is a student at a smaller alpha"
MESSAGES = [
    ({"K": 3}, "K: 3 students that learn the same examples are equal: add resample"),
    ({"resample": SHARE}, f"K: resample needs K of at least 2: {LONGER}"),
    ({"K": 1, "resample": "bootstrap"}, f"K: resample needs K of at least 2: {LONGER}"),
    ({"resample": {"share": 0}, "K": 2}, "resample: share must be a number greater than 0 and at most 1, not 0"),
    ({"resample": {"share": 1e-3}, "K": 2}, "resample: a fraction 0.001 of P = 200 examples leaves no example"),
    (
        {"resample": SHARE, "K": 2, "penalty": "l1"},
        "penalty: penalty l1 is not supported with resample: "
        "theory has no equation for the overlap of two students with an l1 norm",
    ),
    (
        {"resample": SHARE, "K": 2, "inputs": {"spectrum": [0.5, 1.5]}},
        "inputs: resample needs inputs of equal variance, not spectrum [0.5, 1.5]",
    ),
    (
        {"resample": SHARE, "K": 2, "lam": "best"},
        "lam: `best` minimises the error of one student, not of an ensemble: give numbers",
    ),
    (
        {"resample": "bootstrap", "K": 2, "loss": "hinge", "lam": 0},
        "lam: must be greater than 0 with resample: bootstrap",
    ),
    (
        {"resample": "bootstrap", "K": 2, "solver": "amp"},
        "solver: message passing needs independent examples, not those drawn by a bootstrap",
    ),
    (
        {"resample": SHARE, "K": 2, "lam": 0, "flip": 0.1, "alpha": 5},
        "lam: with lam = 0 the loss logistic has no minimum below alpha = 5.98457: "
        "examples can be separated, and the student's length diverges",
    ),
]


@pytest.mark.quick
@pytest.mark.parametrize(("keys", "sentence"), MESSAGES)
def test_unsupported_ensembles_are_explained_in_one_sentence(keys, sentence):
    with pytest.raises(ScenarioError) as failure:
        Risk(**{**BASE, **keys})
    assert str(failure.value) == sentence


@pytest.mark.quick
def test_separable_parts_of_examples_that_cannot_be_separated_have_no_minimum():
    assert Risk(**{**BASE, "lam": 0, "flip": 0.1, "alpha": 5}).lam == 0
    assert Risk(**{**BASE, "lam": 0, "flip": 0.1, "alpha": 5, "K": 2, "resample": {"share": 0.7}}).lam == 0
