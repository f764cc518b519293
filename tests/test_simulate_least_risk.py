"""Message passing minimises the empirical risk: against scikit-learn, and against the conditions of a minimum."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import brief
from scipy.optimize import lsq_linear
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge

from simulate.convex import message_passing
from simulate.convex import objective_and_certificates as problems
from simulate.convex.interior_point import minimise_by_interior_point
from simulate.convex.minimisation_and_separability import minimise
from simulate.convex.objective_and_certificates import (
    GAP_TOL,
    Problem,
    bound_relative_gap,
    make_loss_argument_map,
    split_loss_at_kinks,
)
from statmech.convex.losses import (
    Absolute,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    Penalty,
    Square,
    SquaredHinge,
    StabilityLoss,
)

L2, L1 = Penalty(0.0), Penalty(1.0)
N = 200


def data(alpha, linear=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((round(alpha * N), N))
    u = X @ rng.standard_normal(N) / np.sqrt(N)
    return X, u + 0.5 * rng.standard_normal(len(u)) if linear else np.sign(u) * np.where(
        rng.random(len(u)) < 0.1, -1, 1
    )


def problem(X, y, loss, penalty, lam):
    return Problem(*make_loss_argument_map(X, y, loss.of == "stability"), loss, *penalty.split_strength(lam))


def minimised(*of, **limits):
    return message_passing.minimise_by_message_passing(problem(*of), **limits)


def distance(w, exact):
    return np.linalg.norm(w - np.ravel(exact)) / np.linalg.norm(exact)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
@pytest.mark.parametrize("lam", [1.0, 0.01])
def test_logistic_regression_is_that_of_scikit_learn(alpha, lam):
    X, y = data(alpha)
    fit = LogisticRegression(C=1 / lam, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    found = minimised(X, y, Logistic(), L2, lam)
    assert found.converged
    assert distance(found.w, fit.fit(X / np.sqrt(N), y).coef_) < 1e-9


@pytest.mark.parametrize("alpha", [0.5, 2.0])
@pytest.mark.parametrize("lam", [1.0, 0.1])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_penalised_least_squares_are_those_of_scikit_learn(alpha, lam, share):
    X, y = data(alpha, linear=True)
    P, options = len(y), {"fit_intercept": False, "tol": 1e-13, "max_iter": 100_000}
    models = {
        0.0: Ridge(alpha=lam, fit_intercept=False),
        0.5: ElasticNet(alpha=lam / P, l1_ratio=0.5, **options),
        1.0: Lasso(alpha=lam / P, **options),
    }
    found = minimised(X, y, Square(), Penalty(share), lam)
    assert found.converged
    assert distance(found.w, models[share].fit(X / np.sqrt(N), y).coef_) < 1e-7
    assert np.any(found.w == 0) == (share > 0)


def departure(X, y, loss, penalty, lam, w):
    """The least subgradient of the risk, relative to that of its smooth part: 0 at a minimum."""
    Z, h = X / np.sqrt(N), X @ w / np.sqrt(N)
    sign, x = (y, y * h) if loss.of == "stability" else (-np.ones(len(y)), y - h)
    at_kink = np.any([np.abs(x - kink) < 1e-7 for kink in loss.kinks], axis=0) if loss.kinks else np.zeros(len(y), bool)
    l1, l2 = penalty.split_strength(lam)
    smooth = (np.where(at_kink, 0.0, loss.slope(x)) * sign) @ Z + l2 * w + l1 * np.sign(w)
    free = [(sign[at_kink, None] * Z[at_kink]).T, l1 * np.eye(N)[:, w == 0]]
    bounds = [loss.one_sided_slopes(np.array(loss.kinks[:1]))] if loss.kinks else []
    low = np.concatenate([np.full(at_kink.sum(), bounds[0][0] if bounds else 0.0), np.full((w == 0).sum(), -1.0)])
    high = np.concatenate([np.full(at_kink.sum(), bounds[0][1] if bounds else 0.0), np.full((w == 0).sum(), 1.0)])
    if not low.size:
        return np.linalg.norm(smooth) / np.linalg.norm(loss.slope(x) @ Z)
    return np.linalg.norm(lsq_linear(np.hstack(free), -smooth, (low, high), tol=1e-14).fun) / np.linalg.norm(smooth)


CASES = [
    (Hinge(), L2, 0.1, 2.0, False),
    (Hinge(), L2, 0.01, 2.0, False),
    (Hinge(), L2, 0.01, 0.5, False),
    (SquaredHinge(), L2, 0.1, 2.0, False),
    (Exponential(), L2, 0.1, 2.0, False),
    (StabilityLoss(Huber()), L2, 0.1, 2.0, False),
    (Huber(), L2, 0.1, 2.0, True),
    (Absolute(), L2, 0.3, 2.0, True),
    (Logistic(), L1, 0.3, 2.0, False),
]


@pytest.mark.parametrize(("loss", "penalty", "lam", "alpha", "linear"), brief(CASES, 2), ids=str)
def test_other_risks_have_a_subgradient_of_0(loss, penalty, lam, alpha, linear):
    X, y = data(alpha, linear)
    found = minimised(X, y, loss, penalty, lam)
    assert found.converged
    assert departure(X, y, loss, penalty, lam, found.w) < 1e-8
    assert departure(X, y, loss, penalty, lam, 0.999 * found.w) > 1e-5


def test_a_minimum_that_is_hardly_unique_is_reported():
    X, y = data(0.5, linear=True)
    assert not minimised(X, y, Square(), L1, 1e-4, max_steps=100).converged


LARGE_CASES = [(Square(), L1, True), (Square(), Penalty(0.5), True), (Hinge(), L2, False), (Logistic(), L1, False)]


def large(monkeypatch, loss, penalty, linear, lam=0.3, alpha=2.0):
    """A problem for which message passing is tried first, and what interior points make of it."""
    monkeypatch.setattr(problems, "LARGE_PROBLEM_DIMENSION", min(alpha, 1) * N)
    one = problem(*data(alpha, linear), loss, penalty, lam)
    return one, minimise_by_interior_point(one, split_loss_at_kinks(loss))


@pytest.mark.parametrize(("loss", "penalty", "linear"), brief(LARGE_CASES), ids=str)
def test_a_quick_minimum_is_that_of_interior_points_with_a_certificate(monkeypatch, loss, penalty, linear):
    monkeypatch.setattr(message_passing, "QUICK_STEPS_DIVISOR", 1)
    one, exact = large(monkeypatch, loss, penalty, linear)
    found = minimise(one)
    assert found.converged
    assert not np.array_equal(found.w, exact.w)
    assert distance(found.w, exact.w) < 1e-6
    np.testing.assert_array_equal(found.w == 0, exact.w == 0)
    assert bound_relative_gap(one, found.w) < 1e-7


@pytest.mark.parametrize(("loss", "penalty", "linear"), brief(LARGE_CASES), ids=str)
def test_a_wrong_quick_minimum_is_refused_and_found_by_interior_points(monkeypatch, loss, penalty, linear):
    one, exact = large(monkeypatch, loss, penalty, linear)
    wrong = message_passing.minimise_by_message_passing(one)
    wrong = wrong._replace(w=(1 + 1e-4) * wrong.w)
    monkeypatch.setattr(message_passing, "_iterate_messages", lambda _: iter([(wrong.w, -wrong.slopes, 0.0)]))
    assert message_passing.try_quick_message_passing(one).gap > 10 * GAP_TOL
    np.testing.assert_array_equal(minimise(one).w, exact.w)


@pytest.mark.parametrize(("loss", "penalty", "linear"), brief([case for case in LARGE_CASES if case[1] != L2]), ids=str)
def test_signs_that_stay_give_the_minimum_if_they_are_its_signs(monkeypatch, loss, penalty, linear):
    monkeypatch.setattr(message_passing, "MAX_SOLVE_COST_RATIO", np.inf)
    one, exact = large(monkeypatch, loss, penalty, linear)
    one, signs = message_passing._convert_to_residual_loss(one), np.sign(exact.w)
    assert distance(message_passing.try_quick_message_passing(one).w, exact.w) < 1e-6
    stays = [(signs, None, 1e-3)] * 10
    monkeypatch.setattr(message_passing, "_iterate_messages", lambda _: iter(stays))
    found = message_passing.try_quick_message_passing(one)
    assert found.gap < 1e-13
    np.testing.assert_array_equal(np.sign(found.w), signs)
    signs[exact.w == 0] = 1  # of the same array
    assert message_passing.try_quick_message_passing(one).gap == np.inf


def test_steps_end_early_where_they_will_not_converge_in_time(monkeypatch):
    one, exact = large(monkeypatch, Square(), L1, True, 1e-3, alpha=0.5)
    made, moves = [], message_passing._iterate_messages
    monkeypatch.setattr(
        message_passing,
        "_iterate_messages",
        lambda problem: map(lambda move: made.append(move) or move, moves(problem)),
    )
    assert message_passing.try_quick_message_passing(one).gap == np.inf
    assert 20 <= len(made) < 50
    np.testing.assert_array_equal(minimise(one).w, exact.w)
