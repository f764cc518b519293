"""Learners as scikit-learn estimators: its own checks, real data where available, and readable concepts."""

from __future__ import annotations

import copy
import csv
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import SkipTest

import jax
import joblib
import numba
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import brief
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import simulate
from simulate import margin
from simulate.classification.conjunctions import LATEX_ESCAPES, LATEX_RELATIONS
from simulate.classification.estimators import minover_adatron
from simulate.classification.estimators.classifier_models import PrunedPerceptron
from simulate.classification.estimators.linear_classifiers import passive_aggressive_strength
from simulate.classification.partial_sums import AttentionState, evaluate_margins_in_blocks, sum_rows_until_level
from simulate.kinds.stored_examples import DataSet, make_data_set_batch, round_up_to_padded_size
from simulate.learners import (
    AdaTron,
    AttentivePerceptron,
    MinOver,
    Perceptron,
    SparsePerceptron,
    adatron,
    max_stability,
    minover,
)
from simulate.learners.learner_interface import LearnerTask
from simulate.learners.perceptron_convergence import compute_update_history, find_broken_inequalities
from simulate.learners.perceptron_convergence import iterate_mistakes as walk
from statmech.classification.stopping_boundaries import compute_stopping_level
from statmech.runtime.compiled_programs import compile_loop
from statmech.students import learners
from theory import mistake_bound

DATA = Path(os.environ.get("STATMECH_DATA", Path(__file__).parents[2] / "shared" / "data"))


ESTIMATORS = [
    Perceptron(),
    Perceptron(output="averaged", order="once", max_iter=20),
    Perceptron(output="voted", order="constant", max_iter=20),
    MinOver(max_epochs=100),
    AdaTron(max_epochs=100),
    AttentivePerceptron(),
    AttentivePerceptron(chunk=1, error_rate=0.01, boundary="centred", order="weight"),
    AttentivePerceptron(update="passive_aggressive", max_iter=20),
    SparsePerceptron(),
    SparsePerceptron(negated=True, stages=8, k=3),
    SparsePerceptron(stages=8, class_weight="balanced"),
]


def order_dependent(estimator):
    """The checks that no learner passes whose result depends on the order of its visits, nor scikit-learn's own."""
    why = "examples are drawn in proportion to their weights, as test_simulate_example_weights.py tests"
    kinds = ("dense", "sparse") if isinstance(estimator, Perceptron | AttentivePerceptron) else ()
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in kinds}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=order_dependent)
def test_scikit_learn_s_own_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest as skipped:
        if "SCIPY_ARRAY_API" not in str(skipped):  # that check runs in the next test
            pytest.fail(f"skipped: {skipped}")


@pytest.mark.slow
def test_no_check_is_skipped_where_scipy_may_see_other_arrays():
    """One check needs an environment variable that SciPy reads when it is imported."""
    code = (
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "from simulate.learners import AdaTron, AttentivePerceptron, MinOver, Perceptron, SparsePerceptron\n"
        "short, sparse = {'max_epochs': 20}, [SparsePerceptron(), SparsePerceptron(negated=True, stages=8)]\n"
        "for model in Perceptron(), AttentivePerceptron(), MinOver(**short), AdaTron(**short), *sparse:\n"
        "    [check] = [one for _, one in estimator_checks_generator(model) if 'check_array_api_input' in str(one)]\n"
        "    check(model)"  # a skip would end it
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def separable(seed=0, m=60, features=5):
    """Examples of a teacher with a bias, and its labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, features))
    return X, np.where(X @ rng.standard_normal(features) + 0.3 > 0, "up", "down")


def slow_perceptron(X, signs, orders):
    """Algorithm 5 line by line: w, b, the mistakes of each pass, and w and b at every visit."""
    w, b, mistakes, visited = np.zeros(X.shape[1]), 0.0, [], []
    for order in orders:
        mistakes.append(0)
        for i in order:
            if signs[i] * (w @ X[i] + b) <= 0:
                w, b, mistakes[-1] = w + signs[i] * X[i], b + signs[i], mistakes[-1] + 1
            visited.append(np.append(w, b))
        if not mistakes[-1]:
            break
    return w, b, mistakes, np.array(visited)


@pytest.mark.parametrize("sparse", [False, True])
def test_perceptron_train_is_algorithm_5(sparse):
    X, y = separable()
    signs = np.where(y == "up", 1, -1)
    given = sp.csr_array(X) if sparse else X
    w, b, mistakes, visited = slow_perceptron(X, signs, [range(60)] * 200)
    model = Perceptron(max_iter=200, order="constant").fit(given, y)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-12)
    assert model.intercept_[0] == pytest.approx(b)
    assert model.mistakes_ == mistakes
    assert mistakes[-1] == 0
    averaged = Perceptron(max_iter=200, order="constant", output="averaged").fit(given, y)
    np.testing.assert_allclose([*averaged.coef_[0], averaged.intercept_[0]], visited.mean(axis=0), atol=1e-12)
    voted = Perceptron(max_iter=200, order="constant", output="voted").fit(given, y)
    votes = np.sign(np.column_stack([X, np.ones(60)]) @ visited.T).mean(axis=1)
    np.testing.assert_allclose(voted.decision_function(given), votes, atol=1e-12)


def test_an_example_on_the_boundary_is_learnt_or_none_would_be():
    """ya <= 0 and not ya < 0: the first example meets w = 0."""
    model = Perceptron(max_iter=1, order="constant", fit_intercept=False).fit([[1.0], [-2.0]], [1, 0])
    assert model.coef_.tolist() == [[1.0]]
    assert model.mistakes_ == [1]


@pytest.mark.parametrize("order", ["once", "every"])
def test_a_permuted_order_follows_the_random_state(order):
    X, y = separable()
    signs = np.where(y == "up", 1, -1)
    random = np.random.RandomState(3)
    once = random.permutation(60)
    orders = [once] * 99 if order == "once" else [once, *(random.permutation(60) for _ in range(98))]
    w, _, mistakes, _ = slow_perceptron(X, signs, orders)
    model = Perceptron(order=order, random_state=3).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-12)
    assert model.mistakes_ == mistakes


def test_one_pass_at_a_time_is_a_partial_fit():
    X, y = separable()
    model = Perceptron(max_iter=3, order="constant").fit(X, y)
    steps = Perceptron(order="constant")
    for _ in range(3):
        steps.partial_fit(X, y, classes=["down", "up"])
    np.testing.assert_array_equal(steps.coef_, model.coef_)
    assert steps.mistakes_ == model.mistakes_
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        Perceptron().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y has classes \['sideways'\]"):
        steps.partial_fit(X[:1], ["sideways"])


def test_an_attentive_perceptron_learns_on_line_too():
    """If all examples are probes it equals the perceptron; otherwise it evaluates fewer features, and still learns."""
    X, y = separable()
    steps, plain = AttentivePerceptron(probes=1.0, order="fixed"), Perceptron()
    for part in (slice(0, 20), slice(20, 60), slice(0, 60)):
        steps.partial_fit(X[part], y[part], classes=["down", "up"])
        plain.partial_fit(X[part], y[part], classes=["down", "up"])
    np.testing.assert_allclose(steps.coef_, plain.coef_)
    assert steps.mistakes_ == plain.mistakes_
    rng = np.random.default_rng(0)
    w, model = rng.standard_normal(200), AttentivePerceptron(error_rate=0.2)
    for _ in range(30):
        Z = rng.standard_normal((200, 200))
        model.partial_fit(Z, Z @ w > 0, classes=[False, True])
    assert model.features_[-1] < 0.9 * 200
    assert model.score(Z, Z @ w > 0) > 0.8
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        AttentivePerceptron().partial_fit(X, y)


def test_mistakes_stay_below_novikoff_s_bound():
    """(radius / margin)^2, the constant feature of the bias included."""
    for seed in range(5):
        X, y = separable(seed)
        best = AdaTron(max_epochs=20_000, tolerance=1e-3).fit(X, y)
        z = np.column_stack([X, np.ones(60)])
        w = np.append(best.coef_[0], best.intercept_[0])
        gamma = np.min(np.where(y == "up", 1, -1) * (z @ w)) / np.linalg.norm(w)
        radius = np.linalg.norm(z, axis=1).max()
        for order in ("constant", "every"):
            mistakes = sum(Perceptron(max_iter=10_000, order=order).fit(X, y).mistakes_)
            assert mistakes <= mistake_bound(radius, gamma)
            assert mistakes > mistake_bound(radius, 20 * gamma)  # no student has such a large margin


def updates_of(z):
    """The updates (M, N) of a perceptron on examples times labels, pass by pass until it makes no mistake."""
    w, made = np.zeros(z.shape[1]), []
    while True:
        found = list(walk(w, z))
        if not found:
            return z[made]
        made += [index for index, _ in found]
        w = found[-1][1]


@pytest.mark.parametrize("seed", range(5))
def test_every_update_satisfies_the_inequalities_of_the_convergence_proof(seed):
    """Daume's (3.3) to (3.6), where the bias makes a grow by at least 1, and Novikoff's two."""
    X, y = separable(seed)
    z = np.where(y == "up", 1.0, -1.0)[:, None] * np.column_stack([X, np.ones(60)])
    best, updates = max_stability.compute_max_stability_strengths(z) @ z, updates_of(z)
    run = compute_update_history(updates, best)
    assert find_broken_inequalities(run, z, best) == []
    np.testing.assert_allclose(run.activation_after - run.activation_before, 1 + (updates[:, :-1] ** 2).sum(axis=1))
    model = Perceptron(max_iter=10_000, order="constant").fit(X, y)
    np.testing.assert_allclose(updates.sum(axis=0), np.append(model.coef_[0], model.intercept_[0]), atol=1e-10)
    assert run.weight_projection[-1] == pytest.approx(updates.sum(axis=0) @ best / np.linalg.norm(best))


@pytest.mark.parametrize(
    ("plant", "violated"),
    [
        (lambda updates, z: np.tile(z, (20, 1)), ["a <= 0", "|w|^2 <= k R^2"]),  # learns what is right, too
        (lambda updates, z: updates / 2, ["a' - a >= min |z|^2", "u.w >= k gamma"]),  # too small a step
        (lambda updates, z: -updates, ["u.w >= k gamma"]),  # the wrong direction
    ],
)
def test_the_inequalities_of_the_proof_find_a_wrong_update(plant, violated):
    X, y = separable()
    z = np.where(y == "up", 1.0, -1.0)[:, None] * np.column_stack([X, np.ones(60)])
    best = max_stability.compute_max_stability_strengths(z) @ z
    found = find_broken_inequalities(compute_update_history(plant(updates_of(z), z), best), z, best)
    assert set(violated) <= set(found)


def test_the_margin_is_the_smallest_signed_distance_of_an_example_from_the_boundary():
    X, y = np.array([[2.0, 0.0], [-1.0, 1.0], [-3.0, -2.0]]), np.array(["b", "a", "a"])
    model = AdaTron().fit(X, y)
    signs = np.where(y == "b", 1, -1)
    distances = signs * (X @ model.coef_[0] + model.intercept_[0]) / np.linalg.norm(model.coef_[0])
    assert margin(model, X, y) == distances.min() > 0
    assert margin(model, X, y[::-1]) == -np.abs(distances)[[0, 2]].max()
    assert margin is simulate.classification.estimators.linear_classifiers.margin is simulate.learners.margin


@pytest.mark.parametrize(
    "model",
    [
        Perceptron(output="voted"),
        AttentivePerceptron(error_rate=0.3, chunk=1),
        PrunedPerceptron(),
        LogisticRegression(),
    ],
)
def test_the_margin_is_that_of_the_weights_for_every_decision_function(model):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 8))
    y = X[:, 0] > 0
    model.fit(X, y)
    activations = X @ model.coef_[0] + model.intercept_[0]
    assert margin(model, X, y) == pytest.approx(np.min(np.where(y, 1, -1) * activations) / np.linalg.norm(model.coef_))


def test_an_estimator_without_a_margin_is_refused():
    X, y = np.array([[1.0], [-1.0], [3.0]]), np.array([1, 0, 2])
    with pytest.raises(ValueError, match="requires two classes, but this classifier has 3"):
        margin(Perceptron().fit(X, y), X, y)
    model = Perceptron().fit(X[:2], y[:2])
    with pytest.raises(ValueError, match=r"classes \[2\] that are not among \[0, 1\]"):
        margin(model, X, y)
    model.coef_ = np.zeros((1, 1))
    with pytest.raises(ValueError, match="all weights of this classifier are 0"):
        margin(model, X[:2], y[:2])


@pytest.mark.slow
def test_importing_simulate_does_not_import_scikit_learn():
    code = "import simulate, sys; assert 'sklearn' not in sys.modules; simulate.margin; assert 'sklearn' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_minover_and_adatron_tend_to_the_largest_margin():
    X, y = separable()
    z = np.where(y == "up", 1.0, -1.0)[:, None] * np.column_stack([X, np.ones(60)])
    x = max_stability.compute_max_stability_strengths(z)
    largest = np.linalg.norm(x @ z) / x.sum()
    for model, gap in (
        (AdaTron(max_epochs=20_000, tolerance=1e-6), 1e-6),
        (MinOver(max_epochs=2000, within=0.02), 0.02),
    ):
        model.fit(X, y)
        w = np.append(model.coef_[0], model.intercept_[0])
        assert largest * (1 - gap) <= np.min(z @ w) / np.linalg.norm(w) <= largest * (1 + 1e-12)
        assert margin(model, X, y) > 0
        np.testing.assert_allclose(model.strengths_[0] @ z / 6, w)


def test_data_that_are_not_separable_give_a_warning_and_the_best_student():
    X, y = separable(m=80)
    y[:8] = y[8:16]
    for model in (MinOver(max_epochs=200), AdaTron(max_epochs=200)):
        with pytest.warns(ConvergenceWarning, match="did not converge in 200 epochs"):
            model.fit(X, y)
        assert model.score(X, y) > 0.7


def simulated(learner, z, until):
    """What the teacher-student simulation learns from one data set: strengths (T, P), updates (T,), converged."""
    module = {learners.MinOverLearner: minover, learners.AdaTronLearner: adatron}[type(learner)]
    data = make_data_set_batch([DataSet(np.zeros(z.shape[1]), z)], round_up_to_padded_size(len(z)))
    with jax.enable_x64(True):
        learnt = module.learn(data, LearnerTask("", learner, until[None], np.zeros((1, 8), np.uint32)))
    return learnt.strengths[0, :, : len(z)], learnt.updates[0], bool(learnt.converged[0, -1])


def signed(seed, m, features, whole, right=True):
    """Examples times a teacher's labels, or random ones; whole numbers have equal fields and equal rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (m, features)).astype(float) if whole else rng.standard_normal((m, features))
    return np.where(X @ rng.standard_normal(features) < 0, -1, 1)[:, None] * X if right else X


SHAPES = [  # powers of 2: (z.z)/N without rounding
    (300, 4),
    (2, 8),
    *(pytest.param(*shape, marks=pytest.mark.slow) for shape in ((300, 16), (70, 64), (20, 128), (1, 4))),
]


@pytest.mark.quick
@pytest.mark.parametrize(("m", "features"), SHAPES)
@pytest.mark.parametrize("right", [True, False])
def test_minover_adds_the_examples_that_the_simulation_adds(m, features, right):
    """One by one in effect: whole numbers, of whose equal fields the first is added, are exact in any order of sums."""
    z = signed(m + features, m, features, True, right)
    until = np.unique(np.geomspace(1, 40 * m, 12).astype(int))
    run = minover_adatron.run_minover(z, until)
    strengths, updates, _ = simulated(learners.MinOverLearner(), z, until)
    np.testing.assert_array_equal(run.strengths, strengths)
    np.testing.assert_array_equal(run.updates, updates)
    np.testing.assert_array_equal(run.fields, z @ (strengths[-1] @ z))


@pytest.mark.quick
@pytest.mark.parametrize("stop", ["stability-patience", "field-patience"])
@pytest.mark.parametrize("right", [True, False])
def test_minover_stops_where_the_simulation_stops(stop, right):
    ended = 0
    for seed in range(4):
        z = signed(seed, 60, 8, False, right)
        until = np.array([30, 100, 60 * 300])
        run = minover_adatron.run_minover(z, until, stop)
        strengths, updates, _ = simulated(learners.MinOverLearner(stop=stop), z, until)
        np.testing.assert_array_equal(run.strengths, strengths)
        np.testing.assert_array_equal(run.updates, updates)
        ended += updates[-1] < until[-1]
    assert ended or (stop == "field-patience" and right)


def test_minover_looks_at_few_examples_and_a_block_that_misses_one_is_found(monkeypatch):
    z = signed(0, 600, 8, True)
    until = np.array([40 * 600])
    expected, looked, made = minover_adatron.run_minover(z, until).strengths, [], minover_adatron.run_minover_updates

    def counting(slots, rows, fields, *rest):
        looked.append(len(fields))
        return made(slots, rows, fields, *rest)

    monkeypatch.setattr(minover_adatron, "run_minover_updates", counting)
    course = minover_adatron.MinOverRun(z, "epochs")
    course.candidates = minover_adatron.MinOverCandidates(course.examples, np.arange(4), 16)  # the first four: too few
    for _ in course.iterate_blocks(until[0]):
        pass
    np.testing.assert_array_equal(course.strengths, expected[0])
    assert min(looked) < 60
    monkeypatch.setattr(
        minover_adatron, "bound_block_deviation", lambda *_: (0.0, -1e9, 0.0)
    )  # as if nothing could be missed
    assert not np.array_equal(minover_adatron.run_minover(z, until).strengths, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "features"), [(300, 4), (300, 16), (70, 65), (20, 128), (1, 4), (2, 8)])
@pytest.mark.parametrize(("omega", "right"), [(1.0, True), (0.4, True), (1.6, True), (1.0, False)])
def test_adatron_makes_the_steps_that_the_simulation_makes(m, features, omega, right):
    z = signed(m + features, m, features, False, right)
    until = np.array([1, 2, 7, 40, 300])
    run = minover_adatron.run_adatron(z, until, omega, 1e-6)
    strengths, updates, converged = simulated(learners.AdaTronLearner(omega=omega, tolerance=1e-6), z, until * m)
    np.testing.assert_array_equal(run.epochs * m, updates)
    np.testing.assert_allclose(run.strengths, strengths, rtol=1e-6, atol=1e-9 * max(1, np.abs(strengths).max()))
    assert run.converged == converged
    assert converged or m == 300 or omega < 1


def test_adatron_visits_few_examples_and_would_err_without_its_radius(monkeypatch):
    z = signed(0, 600, 8, False)
    expected, looked, made = (
        minover_adatron.run_adatron(z, np.array([300]), 1.0, 1e-9).strengths,
        [],
        minover_adatron.run_epochs_in_ball,
    )

    def counting(some, *rest):
        looked.append(len(some))
        return made(some, *rest)

    monkeypatch.setattr(minover_adatron, "run_epochs_in_ball", counting)
    np.testing.assert_array_equal(minover_adatron.run_adatron(z, np.array([300]), 1.0, 1e-9).strengths, expected)
    assert min(looked) < 60
    monkeypatch.setattr(minover_adatron, "MIN_BLOCK_RADIUS_RATIO", 0.0)  # only those that would change now
    monkeypatch.setattr(minover_adatron, "run_epochs_in_ball", lambda *given: made(*given[:6], 1e300, *given[7:]))
    assert not np.allclose(minover_adatron.run_adatron(z, np.array([300]), 1.0, 1e-9).strengths, expected, rtol=1e-6)


def test_no_fit_compiles_for_its_shape():
    """Every loop was compiled once, for arrays of any shape."""
    for shape in ((30, 4), (31, 5), (7, 40)):
        X, y = separable(m=shape[0], features=shape[1])
        AdaTron(tolerance=0.1).fit(X, y)
        MinOver(within=0.5).fit(X, y)
    for loop in (
        minover_adatron.run_minover_updates,
        minover_adatron.bound_block_deviation,
        minover_adatron.run_epochs_in_ball,
        minover_adatron.compute_field,
        minover_adatron.compute_distance,
    ):
        assert len(loop.dispatcher().signatures) == 1


def test_a_loop_is_compiled_by_its_first_call_alone_also_of_many_threads(monkeypatch):
    made, njit = [], numba.njit
    monkeypatch.setattr(numba, "njit", lambda *types, **options: made.append(types) or njit(*types, **options))
    inner = compile_loop("f8(f8)")(lambda x: x + 1)
    outer = compile_loop("f8(f8)")(lambda x: 2 * inner(x))
    assert made == []
    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(outer, [1.0] * 8)] == [4.0] * 8
    assert made == [("f8(f8)",)] * 2


@pytest.mark.parametrize("order", ["fixed", "random", "weight"])
def test_an_attentive_perceptron_that_looks_at_everything_is_a_perceptron(order):
    X, y = separable(m=80, features=12)
    signs = np.where(y == "up", 1, -1)
    model = AttentivePerceptron(probes=1.0, order=order, chunk=3, random_state=5).fit(X, y)
    random, orders = np.random.RandomState(5), []
    for _ in range(len(model.mistakes_)):  # its random numbers: an order of features, an order of rows, and the probes
        if order == "random":
            random.permutation(12)
        orders.append(random.permutation(80))
        random.random_sample(80)
    w, b, mistakes, _ = slow_perceptron(X, signs, orders)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-12)
    assert model.intercept_[0] == b
    assert model.mistakes_ == mistakes
    assert model.features_ == [12.0] * len(mistakes)


@pytest.mark.parametrize("boundary", ["constant", "brownian-bridge", "centred"])
def test_decision_errors_stay_below_the_target(boundary):
    """For a fixed student and exchangeable features; as-printed exceeds its target on the same walks."""
    rng, n, m = np.random.default_rng(2), 256, 20_000
    w = rng.standard_normal(n)
    z = rng.standard_normal((m, n)) + 0.9 * w / np.linalg.norm(w) ** 2 * np.linalg.norm(w)
    full = z @ w
    level, slope = (
        float(compute_stopping_level(boundary, 0.02, full.mean(), full.var())),
        full.mean() if boundary == "centred" else 0.0,
    )
    looks = np.arange(16, n + 1, 16)

    def errs(tau, slope):
        found = sum_rows_until_level(z, w, looks, tau, level_rise=slope)
        return (found.features < n) & (full < 0), found.features

    wrong, features = errs(level, slope)
    error = np.sqrt(0.02 * 0.98 / m)
    assert wrong.mean() < 0.02 + 4 * error
    assert features.mean() < 0.95 * n
    printed, _ = errs(float(compute_stopping_level("as-printed", 0.02, full.mean(), full.var())), 0.0)
    assert printed.mean() > 0.02 + 4 * error


def test_walks_are_partial_sums_until_they_reach_the_level():
    rng = np.random.default_rng(0)
    z, w, looks = rng.standard_normal((50, 20)), rng.standard_normal(20), np.array([3, 4, 11, 20])
    found = sum_rows_until_level(z, w, looks, tau=1.5, initial_sums=0.25, level_rise=0.5)
    for row, total, features in zip(z, found.sums, found.features, strict=True):
        sums = [0.25 + row[:look] @ w[:look] for look in looks]
        stop = next((i for i, s in enumerate(sums) if s >= 1.5 + 0.5 * looks[i] / 20), 3)
        assert features == looks[stop]
        assert total == pytest.approx(sums[stop])
    assert np.all(sum_rows_until_level(z, w, looks, tau=np.inf).features == 20)


@pytest.mark.slow
def test_attention_saves_features_and_costs_little():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 200))
    y = X @ rng.standard_normal(200) > 0
    inside, outside = slice(2000), slice(2000, 3000)
    plain = Perceptron(max_iter=20).fit(X[inside], y[inside]).score(X[outside], y[outside])
    features, scores = [], []
    for error_rate in (0.001, 0.05, 0.3):
        model = AttentivePerceptron(error_rate=error_rate, order="weight", max_iter=20).fit(X[inside], y[inside])
        scores.append(model.score(X[outside], y[outside]))
        features.append(model.evaluate(X[outside])[0].features.mean())
    assert sorted(features, reverse=True) == features
    assert features[1] < 0.6 * 200
    assert scores[0] > plain - 4 * np.sqrt(plain * (1 - plain) / 1000)
    assert scores[2] < scores[0]


def test_theta_is_the_margin_up_to_which_examples_are_learnt():
    """Evaluated in full: a perceptron with a margin, line by line; and every example ends above theta."""
    X, y = separable(m=60, features=12)
    z = np.where(y == "up", 1, -1)[:, None] * np.column_stack([X, np.ones(60)])
    model = AttentivePerceptron(probes=1.0, order="fixed", theta=3.0)
    w = np.zeros(13)
    for _ in range(4):
        model.partial_fit(X, y, classes=["down", "up"])
        for row in z:
            w = w + row * (w @ row <= 3.0)
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), w)
    finished = AttentivePerceptron(probes=1.0, theta=3.0, max_iter=10_000).fit(X, y)
    assert np.min(z @ np.append(finished.coef_[0], finished.intercept_)) > 3.0
    assert np.min(z @ w) < 3.0


@pytest.mark.parametrize("boundary", ["constant", "centred"])
def test_decision_errors_about_theta_stay_below_the_target(boundary):
    """Stopped walks that end below theta; the level of theta = 0 exceeds the target on the same walks."""
    rng, n, m, error_rate, theta = np.random.default_rng(3), 128, 8000, 0.02, 1.0
    w = rng.standard_normal(n)
    z = rng.standard_normal((m, n)) + 0.9 * w / np.linalg.norm(w)
    w = w / np.linalg.norm(w)

    def errors(level):
        student = AttentionState(w, boundary, error_rate, theta=level)
        student.set_margin_moments((z @ w).mean(), (z @ w).var())
        student.theta = theta  # whatever its level is for
        stopped, margins = [], z @ w
        for lesson in evaluate_margins_in_blocks(student, z, np.zeros(m), np.zeros(m, bool), np.arange(16, n + 1, 16)):
            stopped.append(lesson.stopped)
            assert lesson.is_last_mistaken == (margins[lesson.last_index] <= theta and not lesson.stopped[-1])
        return np.concatenate(stopped) & (margins < theta)

    most = error_rate + 4 * np.sqrt(error_rate * (1 - error_rate) / m)
    assert errors(theta).mean() < most
    assert errors(0.0).mean() > most


@pytest.mark.parametrize("aggressiveness", [0.02, 10.0])
def test_a_passive_aggressive_update_changes_the_weights_least_for_its_loss(aggressiveness):
    """PA-I minimises F(v) = |v - w|^2 / 2 + C (theta - v.x)_+, so that F(v + d) >= F(v) + |d|^2 / 2 for every d."""
    rng = np.random.default_rng(4)
    steps = rng.standard_normal((1000, 5)) * 10 ** rng.uniform(-3, 1, (1000, 1))

    def excess(v, w, x, theta):
        def risk(v):
            return ((v - w) ** 2).sum(axis=-1) / 2 + aggressiveness * np.maximum(theta - v @ x, 0)

        return (risk(v + steps) - risk(v) - (steps**2).sum(axis=1) / 2).min()

    for theta in (1.0, 3.0):
        w, x = rng.standard_normal((2, 5))
        x *= -np.sign(w @ x)  # a mistake: the loss is positive
        strength = passive_aggressive_strength(theta - w @ x, x @ x, aggressiveness)
        assert excess(w + strength * x, w, x, theta) > -1e-12
        for planted in (0.99, 1.01):
            assert excess(w + planted * strength * x, w, x, theta) < -1e-6
        assert (strength == aggressiveness) == (theta - (w + strength * x) @ x > 1e-9)


def test_a_passive_aggressive_learner_that_looks_at_everything_learns_line_by_line():
    X, y = separable(m=40, features=12)
    z = np.where(y == "up", 1, -1)[:, None] * np.column_stack([X, np.ones(40)])
    model = AttentivePerceptron(probes=1.0, order="fixed", update="passive_aggressive", aggressiveness=0.05)
    w = np.zeros(13)
    for _ in range(3):
        model.partial_fit(X, y, classes=["down", "up"])
        for row in z:
            w = w + row * min(0.05, max(0.0, 1 - w @ row) / (row @ row))
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), w, atol=1e-12)


@pytest.mark.parametrize("update", ["perceptron", "passive_aggressive"])
def test_attention_costs_a_margin_based_learner_little_accuracy_and_a_budget_more(update):
    """By the standard error over data sets; the budget has as many features as attention evaluates."""
    gaps, losses, features = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1500, 200))
        y = X @ rng.standard_normal(200) > 0
        inside, outside = slice(500), slice(500, None)

        def score(model, X=X, y=y, inside=inside, outside=outside):
            return model.fit(X[inside], y[inside]).score(X[outside], y[outside])

        attentive = AttentivePerceptron(0.05, order="weight", update=update, max_iter=3)
        full = score(AttentivePerceptron(budget=200, update=update, max_iter=3))
        gaps.append(full - score(attentive))
        features.append(attentive.evaluate(X[outside])[0].features.mean())
        losses.append(full - score(AttentivePerceptron(budget=round(features[-1]), update=update, max_iter=3)))
    error = np.std(gaps, ddof=1) / np.sqrt(6)
    assert np.mean(features) < 0.6 * 200
    assert np.mean(gaps) < 0.01 + 4 * error
    assert np.mean(losses) > 0.01 + 4 * np.std(losses, ddof=1) / np.sqrt(6)


def test_partial_sums_end_in_the_activation_and_stop_where_the_prediction_does():
    X, y = separable(m=200, features=40)
    model = AttentivePerceptron(error_rate=0.3, chunk=3, order="weight").fit(X, y)
    [found], [walked] = model.partial_sums(X), model.evaluate(X)
    assert found.check_positions.tolist() == [*range(3, 40, 3), 40]
    np.testing.assert_allclose(found.sums[:, -1], X @ model.coef_[0] + model.intercept_[0])
    for row, sums in enumerate(found.sums):
        reached = np.flatnonzero(abs(sums) >= found.level)
        stop = reached[0] if reached.size else -1
        assert found.features[row] == found.check_positions[stop]
        assert walked.sums[row] == pytest.approx(sums[stop])
        seen = found.order[: found.features[row]]
        assert sums[stop] == pytest.approx(X[row, seen] @ model.coef_[0, seen] + model.intercept_[0])
    assert len(set(found.features)) > 3
    assert len(AttentivePerceptron().fit(X, np.arange(200) % 3).partial_sums(X)) == 3


def test_a_hard_budget_uses_only_its_features():
    X, y = separable(m=100, features=10)
    for order in ("fixed", "random"):
        model = AttentivePerceptron(budget=4, order=order, max_iter=5, chunk=4).fit(X, y)
        assert np.count_nonzero(model.coef_) <= 4
        assert model.features_[0] == 4
        assert np.all(model.evaluate(X)[0].features == 4)


def nominal(seed=0, m=120):
    """Three nominal attributes, and the class of (colour = red and size = big) or shape = round."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.choice(["red", "blue", "?"], m), rng.choice(["big", "small"], m), rng.choice(["round", "flat", "long"], m)]
    ).astype(object)
    y = np.where(((X[:, 0] == "red") & (X[:, 1] == "big")) | (X[:, 2] == "round"), "yes", "no")
    return X, y


def test_a_concept_of_words_is_learnt_and_stated_in_words():
    import pandas as pd

    X, y = nominal()
    table = pd.DataFrame(X, columns=["colour", "size", "shape"])
    model = SparsePerceptron(stages=6, discount=1.0).fit(table, y)
    assert model.score(table, y) == 1.0
    assert "yes:  " in model.concept_
    assert "if  shape = round" in model.concept_
    assert "colour = red and size = big" in model.concept_
    assert model.n_weights_ == len(model.concept_.splitlines())


def test_a_missing_value_and_an_unknown_word_have_no_indicator():
    X, y = nominal()
    model = SparsePerceptron(stages=4).fit(X, y)
    assert model.attributes_[0].category_names == ("blue", "red")
    missing, unknown = (np.array([[word, "big", "flat"]], dtype=object) for word in ("?", "green"))
    assert model.decision_function(missing) == model.decision_function(unknown)
    assert model.decision_function(missing) != model.decision_function([["red", "big", "flat"]])


def test_a_word_that_is_not_among_the_listed_categories_is_refused_in_learning():
    X, y = nominal()
    with pytest.raises(ValueError, match=r"unknown categories \['red'\] in x0. Known: blue, green"):
        SparsePerceptron(stages=4, categories=[["blue", "green"], None, None]).fit(X, y)


def test_it_works_in_pipelines_grids_and_cross_validation():
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


def test_numbers_are_cut_between_their_values():
    X = np.array([[0.0], [1.0], [5.0]] * 4)
    model = SparsePerceptron(stages=2, k=1).fit(X, [0, 1, 0] * 4)
    assert model.attributes_[0].get_conditions() == ["x0 <= 0.5", "0.5 < x0 <= 3", "x0 > 3"]
    assert model.predict([[0.9], [4.0], [-3.0]]).tolist() == [1, 0, 0]


def things(seed=0, m=300):
    """Three nominal attributes, some missing, and the class of size != big and colour != red."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.choice(["red", "blue", "pink", "?"], m), rng.choice(["big", "mid", "small"], m), rng.choice(["a", "b"], m)]
    ).astype(object)
    return X, np.where((X[:, 0] != "red") & (X[:, 1] != "big"), "yes", "no")


def test_one_negated_conjunction_replaces_several_others():
    X, y = things()
    model = SparsePerceptron(negated=True, discount=1.0, stages=20).fit(X, y)
    assert model.concept_ == "yes:  1.000  if  x0 != red and x1 != big"
    assert model.n_stages_ == [1]
    assert SparsePerceptron(discount=1.0, stages=1).fit(X, y).score(X, y) < 1
    rows = [["?", "mid", "a"], ["red", "mid", "a"], ["green", "mid", "a"]]
    assert model.predict(rows).tolist() == ["yes", "no", "yes"]  # missing and unknown: not red


def test_negation_adds_nothing_to_single_values():
    X, y = nominal(m=80)
    y = np.where(np.random.default_rng(0).random(80) < 0.2, y[::-1], y)
    plain, negated = (SparsePerceptron(k=1, stages=12, negated=some).fit(X, y) for some in (False, True))
    assert plain.stages_ == negated.stages_


@pytest.mark.parametrize("k", brief([2, 3]))
def test_no_conjunction_joins_two_indicators_of_one_attribute_negated_or_not(k):
    X, y = things()
    y = np.where(np.random.default_rng(1).random(300) < 0.3, y[::-1], y)
    model = SparsePerceptron(k=k, stages=40, discount=1.0, negated=True).fit(X, y)
    columns = [[name.split()[0] for name in term.names] for term in model.terms_]
    assert max(map(len, columns)) == k
    assert all(len(set(some)) == len(some) for some in columns)


def test_intervals_are_negated_as_their_complements():
    X = np.arange(60.0)[:, None]
    model = SparsePerceptron(stages=3, k=1, bins=3, negated=True).fit(X, X[:, 0] > 40)
    assert model.attributes_[0].get_negated_conditions() == ["x0 > 19", "not 19 < x0 <= 39", "x0 <= 39"]
    y = np.column_stack([X, X])[:, 0] % 20 < 10
    both = SparsePerceptron(stages=3, bins=3, negated=True).fit(np.column_stack([X, X % 20]), y)
    assert both.score(np.column_stack([X, X % 20]), y) > 0.8


def test_the_largest_number_of_stages_in_cross_validation_does_not_count_negations():
    X, y = things(m=60)
    noisy = np.where(np.random.default_rng(0).random(60) < 0.4, y[::-1], y)
    for negated in (False, True):
        asked = []
        model = SparsePerceptron(k=1, negated=negated)
        model._cross_validate_stages = lambda *given, asked=asked: asked.append(given[-1]) or 1
        model.fit(X, noisy)
        assert asked == [8]


def test_more_stages_than_weights_may_be_asked_for_and_boosting_may_need_fewer():
    X, y = nominal(m=60)
    noisy = np.where(np.random.default_rng(0).random(60) < 0.3, y[::-1], y)
    model = SparsePerceptron(stages=40).fit(X, noisy)
    assert model.n_stages_ == [40]
    assert model.n_weights_ < 40
    constant = SparsePerceptron(k=1, stages=40).fit([["a"], ["b"]] * 4, ["u", "u", "v", "v"] * 2)
    assert constant.n_stages_ == [0]
    assert constant.concept_ == ""
    once = SparsePerceptron(stages=10**6).fit([["a"], ["b"]] * 4, ["u", "v"] * 4)
    assert once.n_stages_ == [1]


def test_whole_weights_decide_every_training_example_as_the_real_ones_do():
    X, y = nominal(m=200)
    y = np.where(np.random.default_rng(2).random(200) < 0.2, y[::-1], y)
    model = SparsePerceptron(stages=12).fit(X, y)
    whole = model.integer_weights(X)
    assert np.array_equal(np.sign(whole.decision_function(X)), np.sign(model.decision_function(X)))
    weights = [term.weight for term in whole.terms_]
    assert all(isinstance(weight, int) and weight > 0 for weight in weights)
    assert max(weights) == whole.integer_scale_ > 1
    assert whole.n_weights_ == len(weights)
    assert "." not in "".join(line.split()[1] for line in whole.concept_.splitlines())
    with pytest.raises(ValueError, match=f"no integer weights up to {whole.integer_scale_ - 1} reproduce"):
        model.integer_weights(X, limit=whole.integer_scale_ - 1)
    assert isinstance(model.terms_[0].weight, float)  # the model is unchanged
    assert np.array_equal(pickle.loads(pickle.dumps(whole)).predict(X), model.predict(X))


def test_whole_weights_of_several_classes_share_one_scale():
    X, y = nominal(m=150)
    y = np.where(X[:, 2] == "long", "maybe", y)
    model = SparsePerceptron(stages=6).fit(X, y)
    whole = model.integer_weights(X)
    assert np.array_equal(whole.predict(X), model.predict(X))
    assert max(term.weight for term in whole.terms_) == whole.integer_scale_
    assert SparsePerceptron(k=1, stages=4).fit([["a"], ["b"]] * 4, ["u", "u", "v", "v"] * 2).integer_weights([["a"]])


def test_a_latex_table_contains_no_foreign_command():
    import pandas as pd

    X, y = nominal(m=60)
    names = ["50%_of $x^2$ & {more} #1~", "[a]\\b", "<c> | *"]
    model = SparsePerceptron(stages=8, negated=True).fit(pd.DataFrame(X, columns=names), np.where(y == "yes", "*", "["))
    lines = model.concept_latex_.splitlines()
    assert lines[0] == r"\begin{tabular}{lrll}"
    assert lines[-1] == r"\end{tabular}"
    bare = model.concept_latex_
    for ours in (
        *LATEX_ESCAPES.values(),
        *LATEX_RELATIONS.values(),
        r"\begin{tabular}{lrll}",
        r"\hline",
        r"\end{tabular}",
        r"\\",
    ):
        bare = bare.replace(ours, " ")
    assert not set(bare) & set("%$#_{}~^\\")
    assert all(len(re.findall(r"(?<!\\)&", line)) == 3 for line in (lines[1], *lines[3:-1]))
    assert all(line.endswith(r" \\") for line in (lines[1], *lines[3:-1]))
    # otherwise they would be options of the row before
    assert all(line.startswith(("{[}", "{*}")) for line in lines[3:-1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"negated": "yes"}, "negated must be True or False, not 'yes'"),
        ({"k": 0}, "k must be an integer of at least 1, not 0"),
        ({"stages": "many"}, 'stages must be "cv" or an integer'),
        ({"stages": 0}, "stages must be"),
        ({"discount": 2}, "discount must lie between 0 and 1"),
        ({"bins": 1}, "bins must be an integer of at least 2"),
    ],
)
def test_impossible_parameters_of_a_sparse_perceptron_are_refused(given, message):
    X, y = nominal(m=20)
    with pytest.raises(ValueError, match=message):
        SparsePerceptron(**given).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Perceptron(order="random"), "order must be one of constant, once, every, not 'random'"),
        (Perceptron(output="mean"), "output must be one of last, averaged, voted"),
        (Perceptron(max_iter=0), "max_iter must be an integer of at least 1, not 0"),
        (MinOver(stop="never"), '"never" is not a stop rule'),
        (MinOver(within=0), "within: must be greater than 0"),
        (AdaTron(omega=2), "omega: must be less than 2"),
        (AttentivePerceptron(error_rate=0.5), "error_rate must lie between 1e-300 and 0.5, not 0.5"),
        (AttentivePerceptron(boundary="brownian"), '"brownian" is not a boundary. Did you mean "brownian-bridge"'),
        (AttentivePerceptron(order="weights"), '"weights" is not an order. Did you mean "weight"'),
        (AttentivePerceptron(order="weight", budget=3), "a budget requires `order` to be fixed or random"),
        (AttentivePerceptron(probes=0), "probes must be greater than 0 and at most 1, not 0"),
        (AttentivePerceptron(chunk=0), "chunk must be an integer of at least 1, not 0"),
        (AttentivePerceptron(theta=-1.0), "theta must be at least 0, not -1.0"),
        (AttentivePerceptron(theta=np.nan), "theta must be at least 0, not nan"),
        (AttentivePerceptron(theta=0, update="passive_aggressive"), "theta must be greater than 0, not 0"),
        (AttentivePerceptron(update="passive"), '"passive" is not an update. Did you mean "passive_aggressive"'),
        (AttentivePerceptron(aggressiveness=0.0), "aggressiveness must be greater than 0, not 0.0"),
    ],
)
def test_impossible_parameters_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*separable(m=20))


@pytest.mark.slow
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


LINEAR = [
    Perceptron(),
    Perceptron(output="averaged"),
    Perceptron(output="voted"),
    MinOver(max_epochs=60),
    AdaTron(max_epochs=60),
    AttentivePerceptron(),
    AttentivePerceptron(update="passive_aggressive"),
]
EVERY = [*LINEAR, SparsePerceptron(stages=5)]


def scaled(column=None, by=1.0):
    """Separable examples with one column, or all, multiplied by a factor."""
    X, y = separable()
    X[:, slice(None) if column is None else column] *= by
    return X, y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", LINEAR, ids=str)
@pytest.mark.parametrize("column", [None, 0])
@pytest.mark.parametrize("by", [1e-323, 1e-300, 1e-160, 1e-55, 1e55, 1e160, 1e300, 4e307])
def test_features_whose_squares_overflow_are_refused(model, column, by):
    told = "divide that feature by a constant" if by > 1 else "multiply it by a constant"
    with pytest.raises(ValueError, match=told):
        clone(model).fit(*scaled(column, by))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", LINEAR, ids=str)
@pytest.mark.parametrize("column", [None, 0])
@pytest.mark.parametrize("by", [1e-48, 1e-20, 1e20, 1e49])
def test_features_of_any_other_size_give_finite_decisions(model, column, by):
    X, y = scaled(column, by)
    fitted = clone(model).fit(X, y)
    assert np.isfinite(fitted.decision_function(X)).all()
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("power", [-150, 150])
def test_without_an_intercept_only_ratios_of_features_count(power):
    """Multiplication by a power of two changes only the exponent of a decision."""
    X, y = separable()
    for model in (Perceptron(fit_intercept=False), MinOver(max_epochs=60, fit_intercept=False)):
        one, other = (clone(model).fit(X * scale, y) for scale in (1.0, 2.0**power))
        np.testing.assert_array_equal(one.coef_ * 2.0**power, other.coef_)
        np.testing.assert_array_equal(one.predict(X), other.predict(X * 2.0**power))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", LINEAR, ids=str)
def test_a_single_huge_row_is_refused_in_prediction_and_in_passes(model):
    X, y = separable()
    fitted = clone(model).fit(X, y)
    row = np.full((1, X.shape[1]), 1e200)
    for predict in (fitted.predict, fitted.decision_function, getattr(fitted, "evaluate", fitted.predict)):
        with pytest.raises(ValueError, match=r"X has a value of size 1e\+200, larger than 1e\+50"):
            predict(row)
    if hasattr(fitted, "partial_fit"):
        with pytest.raises(ValueError, match="larger than"):
            fitted.partial_fit(row, y[:1])
    assert np.isfinite(fitted.decision_function(np.full((1, X.shape[1]), 5e-324))).all()


def test_sparse_rows_of_extreme_size_are_refused_too():
    X, y = separable()
    for by in (1e160, 1e-160):
        with pytest.raises(ValueError, match="by a constant"):
            Perceptron().fit(sp.csr_array(X * by), y)


@pytest.mark.parametrize("low", [1.0, 5e-324, 1e300, 1.7e308, -1.7e308])
def test_intervals_separate_neighbouring_numbers_of_any_size(low):
    values = np.array([low, np.nextafter(low, np.inf)] * 10)[:, None]
    y = np.arange(20) % 2
    assert SparsePerceptron(stages=1).fit(values, y).score(values, y) == 1
    far = np.array([-low, low] * 10)[:, None]
    assert SparsePerceptron(stages=1).fit(far, y).score(far, y) == 1


def decided(model, X):
    return model.decision_function(X).tobytes(), model.predict(X).tobytes()


def fitted_state(model, X, y):
    return decided(clone(model).fit(X, y), X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", EVERY, ids=str)
def test_copies_of_estimators_decide_and_continue_to_learn_identically(model, tmp_path):
    X, y = separable()
    y = np.where(X[:, 0] > 1, "side", y)
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
    fitted = clone(model).fit(X, y)
    joblib.dump(fitted, tmp_path / "model")
    copies = [pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), joblib.load(tmp_path / "model")]
    assert all(decided(one, X) == decided(fitted, X) for one in copies)
    if hasattr(model, "partial_fit"):
        steps = clone(model).partial_fit(X, y, classes=np.unique(y))
        other = pickle.loads(pickle.dumps(steps))
        assert decided(steps.partial_fit(X, y), X) == decided(other.partial_fit(X, y), X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_joblib_s_workers_learn_the_same_bits(backend):
    X, y = separable()
    expected = [fitted_state(model, X, y) for model in EVERY]
    tasks = (joblib.delayed(fitted_state)(model, X, y) for model in EVERY)
    assert joblib.Parallel(2, backend=backend)(tasks) == expected
