"""Minimisers agree with scikit-learn and linear programs, certificates hold, a run depends on nothing but itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog, minimize
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, QuantileRegressor, Ridge
from sklearn.svm import LinearSVC, LinearSVR

import simulate
import theory
from simulate.convex import interior_point, minimisation_and_separability, newton
from simulate.convex import objective_and_certificates as problems
from simulate.convex.minimisation_and_separability import (
    find_separation,
    minimise,
    minimise_risk,
    minimise_vanishing_penalty,
)
from simulate.convex.newton import compute_susceptibility
from simulate.convex.objective_and_certificates import Problem, bound_relative_gap, make_loss_argument_map
from simulate.convex.training_data import draw_teacher_data
from simulate.kinds import empirical_risk as simulation
from simulate.learners import max_stability, pseudo_inverse
from statmech import ScenarioError
from statmech.convex.losses import LOSSES, Hinge, Loss, Penalty, convert_to_stability_loss
from statmech.convex.teachers import LogitTeacher, ProbitTeacher, SignTeacher, label_error
from statmech.kinds.empirical_risk import Risk

N, LAM = 20, 0.3
RESIDUALS = [name for name, loss in LOSSES.items() if loss.of == "residual"]
SHARES = {"l2": 0.0, "l1": 1.0, "elastic_net": 0.5}


def examples(P, labels, seed=0):
    """Inputs and noisy outputs."""
    rng = np.random.default_rng(seed)
    X, teacher = rng.standard_normal((P, N)), rng.standard_normal(N)
    u = X @ teacher / np.sqrt(N)
    return X, np.sign(u + rng.standard_normal(P)) if labels else u + 0.3 * rng.standard_normal(P)


def problem(loss, penalty, P, lam=LAM, labels=None, seed=0):
    """A problem, its inputs divided by sqrt(N), and its outputs."""
    loss = LOSSES[loss]() if isinstance(loss, str) else loss
    labels = loss.of == "stability" if labels is None else labels
    X, y = examples(P, labels, seed)
    l1, l2 = Penalty(SHARES[penalty]).split_strength(lam)
    return (
        Problem(*make_loss_argument_map(X, y, labels), convert_to_stability_loss(loss) if labels else loss, l1, l2),
        X / np.sqrt(N),
        y,
    )


def value(of, w):
    return of.value(w, of.x(w))


ORACLES = {  # the constants are scikit-learn's for what is minimised here
    ("square", "l2"): lambda P: Ridge(alpha=LAM, fit_intercept=False, tol=1e-12),
    ("square", "l1"): lambda P: Lasso(alpha=LAM / P, fit_intercept=False, tol=1e-14, max_iter=10**6),
    ("square", "elastic_net"): lambda P: ElasticNet(LAM / P, fit_intercept=False, tol=1e-14, max_iter=10**6),
    ("logistic", "l2"): lambda P: LogisticRegression(C=1 / LAM, fit_intercept=False, tol=1e-10, max_iter=10**4),
    ("logistic", "l1"): lambda P: LogisticRegression(
        C=1 / LAM, l1_ratio=1, fit_intercept=False, solver="saga", tol=1e-10, max_iter=10**5
    ),
    ("logistic", "elastic_net"): lambda P: LogisticRegression(
        C=1 / LAM, l1_ratio=0.5, fit_intercept=False, solver="saga", tol=1e-10, max_iter=10**5
    ),
    ("hinge", "l2"): lambda P: LinearSVC(C=1 / LAM, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6),
    ("squared_hinge", "l2"): lambda P: LinearSVC(C=0.5 / LAM, fit_intercept=False, tol=1e-10, max_iter=10**6),
    ("squared_hinge", "l1"): lambda P: LinearSVC(
        C=0.5 / LAM, penalty="l1", dual=False, fit_intercept=False, tol=1e-10, max_iter=10**6
    ),
    ("absolute", "l2"): lambda P: LinearSVR(C=1 / LAM, epsilon=0, fit_intercept=False, tol=1e-10, max_iter=10**6),
    ("absolute", "l1"): lambda P: QuantileRegressor(alpha=LAM / (2 * P), fit_intercept=False),
}


@pytest.mark.parametrize("P", [12, 60])
@pytest.mark.parametrize(("loss", "penalty"), ORACLES)
def test_scikit_learn_finds_the_same_minimum(loss, penalty, P):
    one, X, y = problem(loss, penalty, P)
    found, other = minimise(one), ORACLES[loss, penalty](P).fit(X, y).coef_.reshape(-1)
    assert found.converged
    assert -1e-9 < value(one, other) / value(one, found.w) - 1 < 1e-5
    np.testing.assert_allclose(found.w, other, atol=0.01)


@pytest.mark.parametrize("P", [12, 60])
@pytest.mark.parametrize("loss", ["exponential", "huber"])
def test_descent_by_gradients_finds_the_same_minimum(loss, P):
    one, _, _ = problem(loss, "l2", P)
    found = minimise(one)
    other = minimize(
        lambda w: value(one, w),
        np.zeros(N),
        jac=lambda w: one.l2 * w + one.loss.slope(one.x(w)) @ one.B,
        options={"gtol": 1e-9, "maxiter": 10**4},
    )
    np.testing.assert_allclose(found.w, other.x, atol=1e-6)


def descended(monkeypatch, loss, **changed):
    """The minimum for 60 examples where conjugate gradients are tried first, and that of exact steps alone."""
    one, _, _ = problem(loss, "l2", 60)
    exact = minimise(one)
    monkeypatch.setattr(problems, "LARGE_PROBLEM_DIMENSION", N)
    for name, value in ({"MAX_CG_STEPS_DIVISOR": 1} | changed).items():
        monkeypatch.setattr(newton, name, value)
    return one, minimise(one), exact


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared_hinge", "huber"])
def test_conjugate_gradients_reach_the_minimum_of_exact_steps_with_a_certificate(monkeypatch, loss):
    one, found, exact = descended(monkeypatch, loss)
    assert not np.array_equal(found.w, exact.w)
    np.testing.assert_allclose(found.w, exact.w, rtol=0, atol=1e-6)
    assert found.gap <= newton.NEWTON_GAP_TOL
    assert bound_relative_gap(one, found.w) <= 2 * newton.NEWTON_GAP_TOL


@pytest.mark.parametrize(
    "wrong", [{"MAX_CG_STEPS_DIVISOR": N}, {"_conjugate": lambda problem, x, gradient: 1e-3 * x @ problem.B}]
)
def test_exact_steps_are_taken_where_conjugate_gradients_are_slow_or_wrong(monkeypatch, wrong):
    _, found, exact = descended(monkeypatch, "logistic", **wrong)
    np.testing.assert_array_equal(found.w, exact.w)


@dataclass(frozen=True)
class TwoKinks(Loss):
    """Two hinges, and a parabola."""

    label: ClassVar = "two kinks"
    curved: float = 0.0

    @property
    def kinks(self):
        return (0.0, 1.0)

    def value(self, x):
        return np.maximum(0, 1 - x) + np.maximum(0, -x) + self.curved * x * x / 2

    def slope(self, x):
        return -1.0 * (x < 1) - 1.0 * (x < 0) + self.curved * x

    def curvature(self, x):
        return np.full_like(x, self.curved)


def linear_program(one, hinges):
    """The least sum of hinges (k - x)_+ and of l1 |w|_1."""
    P = len(one.B)
    slack = np.eye(P)
    cost = np.concatenate([np.full(2 * N, one.l1), np.ones(P * len(hinges))])
    rows = [np.hstack([-one.B, one.B] + [-slack * (i == j) for j in range(len(hinges))]) for i in range(len(hinges))]
    bounds = np.concatenate([np.full(P, -k) for k in hinges])
    return linprog(cost, np.vstack(rows), bounds, method="highs").fun


@pytest.mark.parametrize("P", [12, 60])
@pytest.mark.parametrize(("loss", "hinges"), [(Hinge(), [1.0]), (TwoKinks(), [1.0, 0.0])])
def test_a_linear_program_finds_the_same_minimum(loss, hinges, P):
    one, _, _ = problem(loss, "l1", P)
    found = minimise(one)
    assert found.converged
    np.testing.assert_allclose(value(one, found.w), linear_program(one, hinges), rtol=1e-8)


def test_a_kink_in_the_wrong_place_misses_the_minimum(monkeypatch):
    right = minimisation_and_separability.split_loss_at_kinks
    monkeypatch.setattr(
        minimisation_and_separability,
        "split_loss_at_kinks",
        lambda loss: right(loss)._replace(positions=np.array([[0.99]])),
    )
    with pytest.raises(AssertionError):
        test_scikit_learn_finds_the_same_minimum("hinge", "l2", 60)


EVERY = [(loss, penalty) for loss in LOSSES for penalty in SHARES]


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("P", [12, 60])
def test_every_loss_and_penalty_is_minimised_with_a_certificate(P, labels):
    for loss, penalty in EVERY:
        if labels or loss in RESIDUALS:
            for lam in (1e-4, LAM, 30.0):
                one, _, _ = problem(loss, penalty, P, lam, labels)
                assert minimise(one).gap < 1e-9, (loss, penalty, lam)


@pytest.mark.parametrize("curved", [0.0, 0.5])
@pytest.mark.parametrize("penalty", SHARES)
def test_a_loss_of_several_kinks_is_minimised_with_a_certificate(penalty, curved):
    for P in (12, 60):
        one, _, _ = problem(TwoKinks(curved), penalty, P)
        found = minimise(one)
        assert found.converged
        assert bound_relative_gap(one, found.w) < 1e-6


@pytest.mark.parametrize("P", [12, 60])
@pytest.mark.parametrize(("loss", "penalty"), EVERY)
def test_a_certificate_bounds_the_distance_from_the_minimum(loss, penalty, P):
    one, _, _ = problem(loss, penalty, P)
    least = minimise(one)
    rng = np.random.default_rng(1)
    for size in (1e-8, 1e-4, 1.0):
        w = least.w + size * rng.standard_normal(N)
        assert value(one, w) - value(one, least.w) <= (bound_relative_gap(one, w) + 1e-9) * value(one, w)
    assert bound_relative_gap(one, least.w) < 1e-6


@pytest.mark.parametrize("P", [12, 60])
def test_the_susceptibility_is_the_trace_of_the_inverse_hessian(P):
    for loss in ("square", "logistic", "squared_hinge", "huber"):
        one, _, _ = problem(loss, "l2", P)
        w = minimise(one).w
        curvature = one.loss.curvature(one.x(w))
        hessian = LAM * np.eye(N) + one.B.T @ (curvature[:, None] * one.B)
        np.testing.assert_allclose(compute_susceptibility(one, w), np.trace(np.linalg.inv(hessian)) / N, rtol=1e-10)


def limit(loss, P, penalty="l2", labels=True):
    """The limit of a vanishing penalty, and the rows y x / sqrt(N), or the problem of outputs."""
    one, X, y = problem(loss, penalty, P, 1.0, labels)
    return minimise_vanishing_penalty(one), one, X, y


def test_hinges_without_a_penalty_have_maximum_stability():
    for loss in ("hinge", "squared_hinge"):
        for P in (12, 30):
            found, _, X, y = limit(loss, P)
            z = y[:, None] * X * np.sqrt(N)
            strengths = max_stability.compute_max_stability_strengths(z)
            assert strengths is not None
            other = strengths @ z / N
            kappa = np.min(z @ other) / np.linalg.norm(other)
            np.testing.assert_allclose(found.w, other / np.linalg.norm(other) * np.sqrt(N) / kappa, atol=1e-6)
            assert found.converged


def test_the_square_without_a_penalty_is_the_pseudo_inverse():
    for P in (12, 20, 60):
        found, _, X, y = limit("square", P)
        z = y[:, None] * X * np.sqrt(N)
        np.testing.assert_allclose(
            found.w, pseudo_inverse.compute_pseudo_inverse_strengths(z) @ z / np.sqrt(N), atol=1e-8
        )
        assert found.converged


@pytest.mark.parametrize("labels", [True, False])
def test_losses_of_residuals_interpolate_few_examples_at_minimum_norm(labels):
    for loss in RESIDUALS:
        found, _, X, y = limit(loss, 12, labels=labels)
        np.testing.assert_allclose(found.w, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-9)
        pursued, _, X, y = limit(loss, 12, "l1", labels)
        least = linprog(np.ones(2 * N), A_eq=np.hstack([X, -X]), b_eq=y, method="highs").fun
        np.testing.assert_allclose(np.abs(pursued.w).sum(), least, rtol=1e-8)
        np.testing.assert_allclose(X @ pursued.w, y, atol=1e-8)
        assert found.converged
        assert pursued.converged


def recovery(N, lam, **given):
    """Minima for a sparse linear teacher without noise, each with its problem, teacher and outputs."""
    given = {"rho": [0.1, 0.4], "alpha": [0.3, 0.5, 0.8, 1.5], "teacher": "linear", "weights": "sparse"} | given
    for cell in Risk(loss="square", penalty="l1", N=N, lam=lam, **given).cells():
        for seed in range(2):
            data = draw_teacher_data(cell, 0, seed)
            one = simulation.make_risk_problem(cell, data, cell.lam)
            yield minimise_risk(one, None, cell.lam), one, data


@pytest.mark.parametrize("N", [20, 100])
def test_a_linear_program_finds_the_same_basis_pursuit_of_a_sparse_teacher(N):
    recovered = 0
    for found, _, data in recovery(N, 0, alpha=[0.3, 0.5, 0.8]):
        X = data.X / np.sqrt(N)
        least = linprog(np.ones(2 * N), A_eq=np.hstack([X, -X]), b_eq=data.y, method="highs")
        assert found.converged
        np.testing.assert_allclose(np.abs(found.w).sum(), least.fun, rtol=1e-9)
        np.testing.assert_allclose(X @ found.w, data.y, atol=1e-9)
        np.testing.assert_allclose(found.w, least.x[:N] - least.x[N:], atol=1e-5)
        recovered += np.allclose(found.w, data.teacher, atol=1e-9)
    assert 0 < recovered < 12


@pytest.mark.parametrize("lam", [1e-6, 1e-4, 1e-2])
def test_the_lasso_of_a_sparse_teacher_without_noise_is_certified(lam):
    for found, one, _ in recovery(100, lam):
        assert found.converged
        pull = -one.loss.slope(one.x(found.w)) @ one.B
        error = np.linalg.norm(one.B, 2) * np.sqrt(2 * found.gap * value(one, found.w)) + 1e-13  # F curves as x^2 / 2
        np.testing.assert_allclose(pull[found.w != 0], lam * np.sign(found.w[found.w != 0]), rtol=0, atol=error)
        assert np.abs(pull).max() <= lam + error
        assert error < 0.1 * lam


def test_without_its_active_set_the_interior_method_misses_some_minima(monkeypatch):
    monkeypatch.setattr(interior_point, "solve_active_set", lambda problem, parts, near: (near.w, near.rows.a))
    assert not all(found.converged for found, _, _ in recovery(100, 0))


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber", "absolute"])
@pytest.mark.parametrize("penalty", SHARES)
def test_a_small_penalty_approaches_the_limit(loss, penalty):
    for P in (12, 60):
        found, one, _, _ = limit(loss, P, penalty)
        near = minimise(one._replace(l1=1e-6 * one.l1, l2=1e-6 * one.l2))
        np.testing.assert_allclose(found.w, near.w, atol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_losses_that_always_fall_have_a_minimum_only_on_labels_that_cannot_be_separated(loss):
    found, one, _, _ = limit(loss, 30)
    assert find_separation(one.B).exists
    assert np.isnan(found.w).all()
    assert not found.converged
    found, one, _, _ = limit(loss, 120)
    assert not find_separation(one.B).exists
    assert found.converged
    np.testing.assert_allclose(one.loss.slope(one.x(found.w)) @ one.B, 0, atol=1e-9)


def test_a_linear_program_agrees_on_what_can_be_separated():
    answers = []
    for seed in range(40):
        rows = problem("hinge", "l2", 40 + seed, seed=seed)[0].B
        feasible = linprog(np.zeros(N), -rows, -np.ones(len(rows)), bounds=(None, None), method="highs").status == 0
        found = find_separation(rows)
        assert found.exists == feasible
        assert not found.exists or np.all(rows @ found.w > 0)
        answers.append(feasible)
    assert 5 < sum(answers) < 35


def scenario(**given):
    return Risk(**{"loss": "logistic", "alpha": 2.0, "lam": 0.1, "N": 30, "flip": 0.1, "seeds": 3, **given})


@pytest.mark.slow
def test_a_run_depends_on_nothing_else_that_is_simulated():
    many = scenario(loss=["square", "hinge", "squared_hinge"], lam=[0, 0.1], alpha=[0.5, 2.0, 1.0], seeds=4)
    few = scenario(loss="hinge", lam=[0, 0.1], alpha=2.0, seeds=2)
    chosen = simulate.run(many).sel(loss="hinge", alpha=2.0).isel(seed=slice(2))
    alone = simulate.run(few)
    for name in alone.data_vars:
        np.testing.assert_array_equal(chosen[name].values, alone[name].values, err_msg=name)


def test_a_larger_sample_begins_with_a_smaller_one_and_more_flips_include_fewer():
    cell = next(iter(scenario(alpha=4.0).cells()))
    large, small = (draw_teacher_data(it, 0, 3) for it in (cell, replace(cell, P=40)))
    np.testing.assert_array_equal(large.X[:40], small.X)
    np.testing.assert_array_equal(large.y[:40], small.y)
    clean, some, more = (draw_teacher_data(replace(cell, teacher=SignTeacher(flip)), 0, 3).y for flip in (0, 0.1, 0.3))
    assert np.all((more != clean)[some != clean])
    assert 0 < np.sum(some != clean) < np.sum(more != clean)


def fresh_errors(run, eps, teacher):
    """Deviation in standard errors of a run's error from that on many fresh labels."""
    cell = next(iter(scenario(**teacher).cells()))
    data = draw_teacher_data(cell, 0, 0)
    w = minimise(simulation.make_risk_problem(cell, data, 0.1)).w
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40000, cell.N))
    errs = cell.teacher.draw(rng, X @ data.teacher / np.sqrt(cell.N)) * (X @ w) < 0
    return (errs.mean() - float(run[eps].values[0])) / (errs.std() / np.sqrt(len(errs)))


@pytest.mark.parametrize("teacher", [{"flip": 0.1}, {"teacher": "logit", "gain": 2.0, "flip": 0.0}])
def test_eps_y_is_the_error_on_fresh_labels_and_eps_g_is_not(teacher):
    run = simulate.run(scenario(**teacher, seeds=1))
    assert abs(fresh_errors(run, "eps_y", teacher)) < 4
    assert abs(fresh_errors(run, "eps_g", teacher)) > 10


def test_the_error_on_fresh_labels_has_its_closed_forms():
    R = np.array([-0.9, 0.0, 0.5, 0.999, 1.0])
    np.testing.assert_allclose(label_error(SignTeacher(0.2), R), 0.2 + 0.6 * np.arccos(R) / np.pi, atol=1e-14)
    for noise in (1e-3, 0.5, 10.0):
        exact = np.arccos(R / np.hypot(1, noise)) / np.pi
        np.testing.assert_allclose(label_error(ProbitTeacher(noise), R), exact, atol=1e-14)
    teacher = LogitTeacher(3.0)
    assert abs(label_error(teacher, 1.0) - 2 * _average(lambda u: 1 - teacher.probability(np.array(u)))) < 1e-12


def _average(f):
    """Of f(u) over a standard normal u > 0, that is, half of the mean."""
    return quad(lambda u: f(u) * np.exp(-u * u / 2) / np.sqrt(2 * np.pi), 0, 12, epsabs=1e-14)[0]


def test_variables_that_a_run_does_not_have_are_nan():
    linear = simulate.run(Risk(loss=["square", "absolute"], teacher="linear", alpha=2.0, N=20, seeds=2))
    assert np.isnan(linear[["eps_y", "eps_t", "separable"]].to_array()).all()
    assert np.isfinite(linear.mse).all()
    np.testing.assert_allclose(linear.mse, 1 - 2 * linear.R * linear.length + linear.length**2, atol=1e-12)
    assert np.isnan(linear.V.sel(loss="absolute")).all()
    assert np.isfinite(linear.V.sel(loss="square")).all()
    some = simulate.run(scenario(lam=0, alpha=3.0, flip=0.1, seeds=12))  # near the threshold
    assert 0 < some.separable.sum() < 12
    np.testing.assert_array_equal(np.isnan(some.R), some.separable)
    np.testing.assert_array_equal(some.converged, some.separable == 0)


def test_a_student_without_weights_answers_by_a_fair_coin():
    blank = scenario(penalty="l1", lam=1e3)
    run, solved = simulate.run(blank), theory.solve(blank)
    assert run.converged.all()
    for name, expected in {"R": 0, "length": 0, "eps_g": 0.5, "eps_y": 0.5, "eps_t": 0.5}.items():
        np.testing.assert_array_equal(run[name], expected)
        np.testing.assert_array_equal(solved[name], expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 3e6}, "alpha: a run with 90,000,000 examples in 30 dimensions takes"),
        ({"loss": "hinge", "lam": [0.1, 0], "solver": "amp"}, "lam: message passing needs a penalty"),
    ],
)
def test_what_cannot_be_simulated_is_refused_before_it_begins(given, message):
    with pytest.raises(ScenarioError, match=message):
        simulate.run(scenario(**given))
