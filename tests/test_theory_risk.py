"""Learners that minimise a convex loss: closed forms, known thresholds, and a second route with the proximal point."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from conftest import disagreements
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import simulate
import theory
from statmech.convex.losses import (
    LOSSES,
    Absolute,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    Penalty,
    Square,
    SquaredHinge,
    convert_to_stability_loss,
)
from statmech.convex.separability_thresholds import compute_minimum_existence_threshold
from statmech.convex.teachers import LinearTeacher, LogitTeacher, ProbitTeacher, SignTeacher
from statmech.convex.weight_distributions import Binary, Gauss, Sparse
from statmech.errors import ScenarioError
from statmech.kinds.empirical_risk import Risk
from theory.convex import example_averages, thresholds
from theory.convex.best_lambda import find_best_lambda, search_best_lambda
from theory.convex.empirical_risk import solve_loss_minimum
from theory.solutions import solve_line
from theory.stored_examples import learning_curves_and_bounds

L1, L2 = Penalty(1.0), Penalty(0.0)
ALPHAS = np.array([0.2, 0.5, 0.9, 1.1, 1.5, 2.5, 2.9, 6.0])


def solved(loss, teacher, alpha, lam, penalty=L2, weights=None):
    alpha, lam = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(lam, float))
    return solve_loss_minimum(loss, teacher, penalty, weights or Gauss(), alpha, lam)


def best(loss, teacher, alpha, by=find_best_lambda):
    return by(loss, teacher, L2, Gauss(), np.atleast_1d(np.asarray(alpha, float)))


# ridge: closed forms


def marchenko_pastur(alpha, lam):
    """V = tr (X^T X/N + lam)^-1/N of an alpha N x N matrix X, the root without cancellation, and its slope by lam."""
    a = lam + alpha - 1
    root = np.sqrt(a * a + 4 * lam)
    V = np.where(a > 0, 2 / (root + np.abs(a)), (root + np.abs(a)) / (2 * lam))
    return V, -V * (1 + V) / root


@pytest.mark.parametrize("lam", [2.0, 0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_ridge_on_a_linear_teacher_is_the_closed_form_of_marchenko_and_pastur(lam, noise):
    alpha = np.array([0.1, 0.5, 2.0, 10.0])
    state = solved(Square(), LinearTeacher(noise), alpha, lam)
    V, slope = marchenko_pastur(alpha, lam)
    mse = -(lam**2) * slope + noise**2 * (V + lam * slope)  # bias and variance
    assert np.allclose(state.V, V, rtol=1e-12, atol=0)
    assert np.allclose(state.R * state.length, 1 - lam * V, rtol=1e-12, atol=0)
    if lam > 1e-6 or noise:
        assert np.allclose(state.mse, mse, rtol=1e-8 if lam < 1e-2 else 1e-12, atol=0)  # the closed form cancels
    assert np.all(state.residual <= 1e-12)


def test_the_ridgeless_limit_descends_twice():
    alpha = np.array([0.1, 0.5, 0.95, 1.05, 2.0, 10.0])
    variance = 0.25
    expected = np.where(alpha < 1, 1 - alpha + variance * alpha / (1 - alpha), variance / (alpha - 1))
    state = solved(Square(), LinearTeacher(0.5), alpha, 0.0)
    assert np.allclose(state.mse, expected, rtol=1e-12, atol=0)
    assert np.isinf(state.V[alpha < 1]).all()
    assert np.allclose(state.V[alpha > 1], 1 / (alpha[alpha > 1] - 1), rtol=1e-12)
    nearly = solved(Square(), LinearTeacher(0.5), alpha, 1e-8)
    assert np.allclose(nearly.mse, expected, rtol=1e-4)
    diverging = solved(Square(), LinearTeacher(0.5), [1.0], 0.0)
    assert np.isinf(diverging.mse[0])
    assert diverging.R[0] == 0


def test_the_best_ridge_on_a_linear_teacher_is_the_variance_of_the_noise_and_bayes():
    alpha = np.array([0.3, 1.0, 3.0])
    for noise in (0.1, 0.5, 3.0):
        assert np.array_equal(best(Square(), LinearTeacher(noise), alpha), 3 * [noise**2])
        assert np.allclose(best(Square(), LinearTeacher(noise), alpha, search_best_lambda), noise**2, rtol=1e-9)
        state = solved(Square(), LinearTeacher(noise), alpha, noise**2)
        assert np.allclose(state.mse, 1 - state.R**2, rtol=1e-12)  # of the posterior mean m = Q^2, and so mse = 1 - R^2
        assert np.allclose(state.R, state.length, rtol=1e-12)
        assert np.allclose(state.mse, noise**2 * state.V, rtol=1e-12)  # and the variance of the posterior


# limits of a vanishing penalty


@pytest.mark.parametrize("flip", [0.0, 0.1])
def test_square_loss_without_a_penalty_is_the_pseudo_inverse(flip):
    state, curve = (
        solved(Square(), SignTeacher(flip), ALPHAS, 0.0),
        learning_curves_and_bounds.solve_pseudo_inverse(ALPHAS, flip),
    )
    assert np.allclose(state.eps_g, curve.theta / np.pi, rtol=0, atol=1e-12)
    nearly = solved(Square(), SignTeacher(flip), ALPHAS, 1e-9)
    assert np.allclose(nearly.eps_g, curve.theta / np.pi, rtol=0, atol=1e-7)


@pytest.mark.parametrize("flip", [0.0, 0.1])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()])
def test_the_hinge_without_a_penalty_is_the_perceptron_of_maximum_stability(loss, flip):
    state, curve = (
        solved(loss, SignTeacher(flip), ALPHAS, 0.0),
        learning_curves_and_bounds.solve_max_stability(ALPHAS, flip),
    )
    separable = np.isfinite(curve.theta)
    assert np.all(separable == (theory.noisy_capacity(flip) > ALPHAS))
    assert np.allclose(state.eps_g[separable], curve.theta[separable] / np.pi, rtol=0, atol=1e-12)
    assert np.allclose(state.length[separable] * curve.kappa[separable], 1, rtol=1e-11)  # the least stability is 1
    assert np.all(state.residual <= 1e-12)  # above it there is a minimum, too
    assert np.all(np.isfinite(state.R))


def test_the_hinge_is_maximum_stability_at_a_small_penalty():
    curve = learning_curves_and_bounds.solve_max_stability(np.array([1.5]), 0.0)
    assert solved(Hinge(), SignTeacher(), [1.5], 1e-3).eps_g[0] == pytest.approx(curve.theta[0] / np.pi, abs=1e-13)


@pytest.mark.parametrize("loss", [Logistic(), Exponential()])
def test_unpenalised_logistic_regression_has_a_minimum_beyond_separability_only(loss):
    edge = theory.separability(flip=0.1)
    assert compute_minimum_existence_threshold(loss, SignTeacher(0.1)) == edge
    assert (
        compute_minimum_existence_threshold(Hinge(), SignTeacher(0.1))
        == compute_minimum_existence_threshold(Square(), SignTeacher(0.1))
        == 0
    )
    state = solved(loss, SignTeacher(0.1), [0.99 * edge, 1.01 * edge, 5.0], 0.0)
    assert np.isnan(state.R[0])
    assert np.all(state.residual[1:] <= 1e-12)
    assert state.length[1] > 5 * state.length[2]


def test_the_length_of_logistic_regression_is_bounded_by_the_penalty_below_the_threshold_only():
    """alpha_c of gain 2 is 2.899138; lengths of the study."""
    edge = float(theory.separability("logit", gain=2))
    state = solved(Logistic(), LogitTeacher(2.0), [0.98 * edge, 1.02 * edge], 1e-6)
    assert np.allclose(state.length, [307.8, 18.87], rtol=2e-4)


# thresholds


def test_separability_of_labels():
    gains = theory.separability("logit", gain=[0, 1, 2, 5, 10])
    assert np.allclose(gains, [2, 2.278221, 2.899138, 5.403891, 10.105216], rtol=0, atol=5e-7)
    flips = np.array([1e-6, 0.01, 0.1, 0.3, 0.5])
    assert np.allclose(theory.separability(flip=flips), theory.noisy_capacity(flips), rtol=1e-12)
    assert theory.separability() == theory.separability("probit") == np.inf
    assert theory.separability("probit", noise=[[0.5, 1.0]]).shape == (1, 2)
    assert np.all(np.diff(theory.separability("probit", noise=[0.1, 1, 10, 1e3])) < 0)


def test_at_the_threshold_of_separability_the_stability_vanishes():
    """Independent of the formula: the limit of the replica equations of the hinge, with probit and logit labels."""
    for teacher, edge in ((LogitTeacher(2.0), theory.separability("logit", gain=2)), (ProbitTeacher(0.5), 4.0)):
        edge = float(theory.separability("probit", noise=0.5)) if isinstance(teacher, ProbitTeacher) else float(edge)
        lengths = solved(Hinge(), teacher, edge * np.array([1 - 2e-3, 1 - 1e-3]), 0.0).length
        assert lengths[1] / lengths[0] == pytest.approx(2, rel=0.02)  # kappa = 1/Q is linear in alpha_c - alpha


def test_l1_recovery_is_the_threshold_of_donoho_and_tanner():
    rho = np.array([0.1, 0.2, 0.4])
    edge = theory.l1_recovery(rho)
    assert np.allclose(edge, [0.328794, 0.511130, 0.749739], rtol=0, atol=5e-7)
    for share, alpha in zip(rho, edge, strict=True):
        state = solved(Square(), LinearTeacher(), alpha * np.array([0.97, 0.99, 1.01]), 0.0, L1, Sparse(share))
        assert state.mse[0] > state.mse[1] > 0 == state.mse[2]
        assert state.mse[1] < 0.02


@pytest.mark.parametrize("penalty", [L1, Penalty(0.7)])
def test_the_response_of_a_recovered_teacher_is_the_limit_of_a_small_penalty(penalty):
    """Also at alpha = 1, where the unpenalised fit would diverge."""
    alpha, weights = np.array([0.8, 1.0, 1.5]), Sparse(0.1)
    limit, near, far = (solved(Square(), LinearTeacher(), alpha, lam, penalty, weights) for lam in (0.0, 1e-6, 1e-2))
    assert np.all(limit.mse == 0)
    np.testing.assert_allclose(limit.V, near.V, rtol=1e-4)
    assert not np.allclose(limit.V, far.V, rtol=1e-4)
    edge = theory.l1_recovery(0.1)
    rise = solved(Square(), LinearTeacher(), edge + np.array([4e-6, 1e-6]), 0.0, L1, weights).V
    assert rise[1] / rise[0] == pytest.approx(2, rel=0.01)  # as the distance to the power -1/2


def test_absolute_deviations_recover_a_teacher_without_noise_at_a_finite_penalty():
    """The error vanishes continuously where the criterion of recovery begins to hold."""
    alpha = np.linspace(1.9, 2.2, 31)
    exact = thresholds.recovers_teacher(Absolute(), LinearTeacher(), L2, Gauss(), alpha, 0 * alpha + 1)
    state = solved(Absolute(), LinearTeacher(), alpha, 1.0)
    assert 0 < exact.sum() < 31
    assert np.all(state.mse[exact] == 0)
    assert np.all(np.diff(state.mse[~exact]) < 0)
    assert 0 < state.mse[~exact][-1] < 1e-4


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: theory.separability("linear"), "teacher: must be one of sign, probit, logit, not linear"),
        (lambda: theory.separability("sign", gain=2), "teacher sign takes flip, not gain"),
        (lambda: theory.separability("sign", flip=[0.1, 0.6]), "flip: must be at most 0.5, not 0.6"),
        (lambda: theory.l1_recovery([0.1, 0]), "rho: must be greater than 0 and at most 1, not 0"),
    ],
)
def test_bad_input_of_a_threshold_is_a_sentence(call, problem):
    with pytest.raises(ScenarioError, match=problem):
        call()


# the best penalty


@pytest.mark.parametrize("teacher", [SignTeacher(), SignTeacher(0.1), ProbitTeacher(0.5), LogitTeacher(2.0)], ids=str)
def test_the_best_penalty_of_the_square_loss_on_labels_does_not_depend_on_alpha(teacher):
    alpha = [0.2, 1.0, 3.0, 20.0]
    assert np.allclose(best(Square(), teacher, alpha, search_best_lambda), best(Square(), teacher, alpha), rtol=1e-9)
    if isinstance(teacher, SignTeacher):
        a2 = (1 - 2 * teacher.flip) ** 2 * 2 / np.pi
        assert np.allclose(best(Square(), teacher, alpha), (1 - a2) / a2, rtol=1e-14)


TABLE = {  # of the study, section 5: eps_g at the best penalty
    (0.0, 1.0): {"square": 0.257075, "logistic": 0.254404, "hinge": 0.262413, "squared_hinge": 0.255282},
    (0.0, 3.0): {"square": 0.149796, "logistic": 0.129910, "hinge": 0.139774, "squared_hinge": 0.131365},
    (0.1, 1.0): {"square": 0.308975, "logistic": 0.309285, "hinge": 0.312102, "squared_hinge": 0.308959},
    (0.1, 3.0): {"square": 0.211217, "logistic": 0.211724, "hinge": 0.209709, "squared_hinge": 0.210801},
}
EXPONENTIAL = {(0.0, 1.0): 0.254381, (0.0, 3.0): 0.129869, (0.1, 1.0): 0.309836, (0.1, 3.0): 0.216167}


@pytest.mark.parametrize("name", ["square", "logistic", "hinge", "squared_hinge", "exponential"])
def test_the_errors_at_the_best_penalty_are_those_of_the_study(name):
    scenario = Risk(loss=name, alpha=[1, 3], flip=[0, 0.1], lam="best", N=100, seeds=2)
    sol = theory.solve(scenario)
    for (flip, alpha), values in TABLE.items():
        expected = EXPONENTIAL[flip, alpha] if name == "exponential" else values[name]
        assert float(sol.eps_g.sel(flip=flip, alpha=alpha)) == pytest.approx(expected, abs=1.01e-6)
    assert np.array_equal(theory.best_lambda(scenario), sol.lam_best.squeeze())


def test_the_best_penalty_is_where_an_independent_search_finds_it():
    for loss, flip in ((Logistic(), 0.1), (Hinge(), 0.0)):

        def error(log_lam, loss=loss, flip=flip):
            return solved(loss, SignTeacher(flip), [3.0], [np.exp(log_lam)]).eps_g[0]

        lam = best(loss, SignTeacher(flip), 3.0)[0]
        found = minimize_scalar(error, bounds=(np.log(lam) - 1, np.log(lam) + 1), method="bounded")
        assert np.exp(found.x) == pytest.approx(lam, rel=1e-4)


def test_edges_of_the_best_penalty_are_reported():
    for by in (find_best_lambda, search_best_lambda):
        assert best(Square(), LinearTeacher(), [0.5, 2.0], by).tolist() == [0, 0]  # without noise: interpolate
        assert best(Square(), SignTeacher(0.4999), [2.0], by)[0] == np.inf  # hardly any signal: Hebb's rule
    few, nearly = best(Hinge(), SignTeacher(0.1), 1e-3)[0], solved(Hinge(), SignTeacher(0.1), [1e-3], [1e6])
    assert 1 < few < 1.05  # few labels: what Hebb's rule adds brings an example to a margin of 1/lambda
    assert -1e-6 < solved(Hinge(), SignTeacher(0.1), [1e-3], [few]).eps_g[0] - nearly.eps_g[0] < -1e-7
    assert np.tan(np.pi * nearly.eps_g[0]) == pytest.approx(
        1 / learning_curves_and_bounds.label_field_correlation(0.1) / np.sqrt(1e-3), rel=1e-6
    )


# the equations by a second route


def nested(loss, teacher, alpha, lam, state):
    """B and C of the fixed point by SciPy's quadrature over h, with the proximal point found inside the integral."""
    R, Q, V = state.R[0], state.length[0], state.V[0]
    sin2 = 1 - R * R

    def p(h):
        ends = sorted((h - 60 * (1 + V), h + 60 * (1 + V)))
        return minimize_scalar(
            lambda x: (x - h) ** 2 / 2 / V + float(loss.value(np.array(x))),
            bounds=ends,
            method="bounded",
            options={"xatol": 1e-12},
        ).x

    def integral(of):
        knots = [c + V * s for c in loss.kinks for s in loss.one_sided_slopes(c)]
        knots += [c + V * float(loss.slope(np.array(c))) for c in loss.bends] + [0.0]
        edges = sorted({-8 * Q, 8 * Q, *(k for k in knots if abs(k) < 8 * Q)})
        return sum(quad(of, a, b, epsabs=1e-9, epsrel=1e-9, limit=200)[0] for a, b in pairwise(edges))

    def weight(h):
        return 2 * norm.pdf(h, scale=Q)

    def seen(h):
        return np.array(h * R / Q), np.array(sin2)

    B = integral(lambda h: weight(h) * float(teacher.right(*seen(h))) * (p(h) - h) ** 2)
    C = integral(lambda h: weight(h) * float(teacher.mean_probability_slope(*seen(h))) * (p(h) - h))
    return B, C


@pytest.mark.parametrize(
    ("loss", "teacher", "alpha", "lam"),
    [
        (Logistic(), SignTeacher(), 2.0, 0.1),
        (Hinge(), SignTeacher(0.1), 2.0, 0.5),
        (SquaredHinge(), ProbitTeacher(0.5), 1.0, 0.1),
    ],
)
def test_the_averages_are_those_with_the_proximal_point_inside_the_integral(loss, teacher, alpha, lam):
    state = solved(loss, teacher, [alpha], [lam])
    B, C = nested(loss, teacher, alpha, lam, state)
    assert state.R[0] * state.length[0] == pytest.approx(alpha * C, rel=1e-6)
    assert state.length[0] ** 2 * (1 - state.R[0] ** 2) == pytest.approx(alpha * B, rel=1e-6)


def test_gcm_agrees_on_logistic_regression():
    """Generalization errors of GCMProject, logistic loss, lam = 0.1, to its tolerance."""
    state = solved(Logistic(), SignTeacher(), [0.5, 1, 2, 4], 0.1)
    assert np.allclose(state.eps_g, [0.322751, 0.255864, 0.179662, 0.112978], rtol=0, atol=6e-7)


@pytest.mark.parametrize("loss", [convert_to_stability_loss(kind()) for kind in LOSSES.values()], ids=list(LOSSES))
@pytest.mark.parametrize("teacher", [SignTeacher(), SignTeacher(0.1), ProbitTeacher(0.5), LogitTeacher(2.0)], ids=str)
def test_the_slopes_of_the_averages_are_their_differences(loss, teacher):
    rng = np.random.default_rng(1)
    x = np.array([rng.uniform(-2, 1, 5), rng.uniform(-1, 2, 5), rng.uniform(-1, 3, 5)])
    at = example_averages.average_labelled_examples(loss, teacher, x)
    for k, unit in enumerate(np.eye(3)):

        def moved(step, unit=unit):
            return example_averages.average_labelled_examples(loss, teacher, x + step * unit[:, None]).values

        differences = (8 * (moved(1e-3) - moved(-1e-3)) - moved(2e-3) + moved(-2e-3)) / 12e-3
        assert np.allclose(
            at.slopes[:, k], differences, rtol=0, atol=(2e-6 if k == 0 else 1e-10) * np.abs(at.values).max()
        )


def test_more_nodes_change_no_average(monkeypatch):
    rng = np.random.default_rng(2)
    x = np.array([rng.uniform(-6, 2, 20), rng.uniform(-2, 6, 20), rng.uniform(-3, 10, 20)])
    for loss in (Logistic(), Exponential(), Hinge(), SquaredHinge(), convert_to_stability_loss(Huber())):
        monkeypatch.undo()
        few = example_averages.average_labelled_examples(loss, SignTeacher(0.01), x).values
        monkeypatch.setattr(example_averages, "NODES_PER_FIELD_PANEL", 48)
        many = example_averages.average_labelled_examples(loss, SignTeacher(0.01), x).values
        assert np.allclose(few, many, rtol=1e-12, atol=0)
        monkeypatch.setattr(example_averages, "NODES_PER_FIELD_PANEL", 20)
        monkeypatch.setattr(
            example_averages, "SIGMOID_EDGES", np.zeros(1)
        )  # the planted error: panels as wide for narrow sigmoids
        assert not np.allclose(
            example_averages.average_labelled_examples(loss, SignTeacher(0.01), x).values, many, rtol=1e-12, atol=0
        )


def test_leaving_out_the_atom_of_a_kink_fails_the_hinge(monkeypatch):
    """The planted error: without the atom the equations have another solution or none."""
    right = solved(Hinge(), SignTeacher(0.1), [2.0], [0.5])
    assert right.eps_t[0] == pytest.approx(0.0946, abs=5e-5)

    def without(loss, Q, V, edges, *flags, **options):
        return example_averages._make_smooth_nodes(loss, V, Q[:, None] * edges, *flags, *options.values())

    monkeypatch.setattr(example_averages, "make_field_nodes", without)
    wrong = solved(Hinge(), SignTeacher(0.1), [2.0], [0.5])
    assert not abs(wrong.eps_g[0] - right.eps_g[0]) < 1e-3


# l1 norms, outputs and lanes


def test_lasso_is_soft_thresholding_of_one_weight():
    """The hats of a square loss are V^ = alpha/(1+V), q^ = alpha s^2/(1+V)^2: the error by SciPy's quadrature."""
    rho, alpha, lam, noise = 0.2, 0.8, 0.3, 0.5
    state = solved(Square(), LinearTeacher(noise), [alpha], [lam], L1, Sparse(rho))
    V, s2 = state.V[0], noise**2 + state.mse[0]
    hat, width = alpha / (1 + V), np.sqrt(alpha * s2) / (1 + V)

    def soft(b):
        return np.sign(b) * max(abs(b) - lam, 0.0) / hat

    def average(of, scale):
        ends = [-9 * scale, -lam, lam, 9 * scale]
        return sum(quad(lambda b: of(b) * norm.pdf(b, scale=scale), *pair)[0] for pair in pairwise(ends))

    wide = np.sqrt(hat**2 / rho + width**2)
    square = (1 - rho) * average(lambda b: soft(b) ** 2, width) + rho * average(lambda b: soft(b) ** 2, wide)
    overlap = rho * average(lambda b: soft(b) * b * hat / rho / wide**2, wide)
    assert state.length[0] ** 2 == pytest.approx(square, rel=1e-8)
    assert state.mse[0] == pytest.approx(square - 2 * overlap + 1, rel=1e-8)
    assert state.R[0] == pytest.approx(0.8773, abs=5e-5)  # the study, with scikit-learn's 0.8719 +- 0.0043


def test_an_elastic_net_joins_ridge_and_lasso():
    for loss, teacher in ((Square(), LinearTeacher(0.5)), (Logistic(), SignTeacher(0.1))):
        ridge, lasso = (solved(loss, teacher, [1.5], 0.3, penalty, Sparse(0.2)) for penalty in (L2, L1))
        near = [solved(loss, teacher, [1.5], 0.3, Penalty(share), Sparse(0.2)) for share in (1e-7, 1 - 1e-7)]
        for exact, close in ((ridge, near[0]), (lasso, near[1])):
            assert close.R[0] == pytest.approx(exact.R[0], abs=1e-6)
            assert close.length[0] == pytest.approx(exact.length[0], abs=1e-6)


def test_a_strong_l1_norm_leaves_no_weights():
    state = solved(Square(), LinearTeacher(0.5), [1.0], 1e3, L1, Binary())
    assert (state.length[0], state.mse[0], state.R[0], state.eps_g[0]) == (0, 1, 0, 0.5)
    assert state.train_loss[0] == pytest.approx(0.5 * 1.25, rel=1e-9)


def test_fresh_labels_are_wrong_as_often_as_flips_say():
    state = solved(Hinge(), SignTeacher(0.1), ALPHAS, 0.5)
    assert np.allclose(state.eps_y, 0.1 + 0.8 * state.eps_g, rtol=1e-12)
    same = solved(Hinge(), ProbitTeacher(0.0), ALPHAS, 0.5)
    assert np.allclose(same.eps_y, same.eps_g, rtol=1e-12)


def test_training_errors_are_those_of_the_study():
    assert (
        solved(SquaredHinge(), SignTeacher(0.1), [2.0], 0.5).eps_t[0]
        < solved(Hinge(), SignTeacher(0.1), [2.0], 0.5).eps_t[0]
    )
    assert solved(Square(), LinearTeacher(0.5), [2.0], 0.0).train_loss[0] == pytest.approx(0.125 * 0.5, rel=1e-12)


@pytest.mark.parametrize(("penalty", "weights"), [(L2, Gauss()), (L1, Sparse(0.2))])
def test_no_point_depends_in_any_bit_on_those_solved_with_it(penalty, weights):
    alpha, lam = np.array([0.3, 1.0, 2.0, 3.5, 8.0]), np.array([0.1, 1e-3, 0.0, 1.0, 1e-6])
    together = solve_loss_minimum(Hinge(), SignTeacher(0.1), penalty, weights, alpha, lam)
    for k in range(len(alpha)):
        alone = solve_loss_minimum(Hinge(), SignTeacher(0.1), penalty, weights, alpha[k : k + 1], lam[k : k + 1])
        for all_of, one in zip(together, alone, strict=True):
            assert np.array_equal(all_of[k : k + 1], one, equal_nan=True)
    for loss in (Logistic(), Hinge()):
        assert np.array_equal(best(loss, SignTeacher(0.1), ALPHAS)[2:3], best(loss, SignTeacher(0.1), ALPHAS[2:3]))


@pytest.mark.parametrize("loss", [convert_to_stability_loss(kind()) for kind in LOSSES.values()], ids=list(LOSSES))
def test_residuals_are_small_for_all_penalties_and_alphas(loss):
    for lam in (1e4, 1.0, 1e-3, 1e-8):
        state = solved(loss, SignTeacher(0.1), [1e-3, 0.5, 2.9, 3.1, 100.0], lam)
        assert np.all(state.residual <= 1e-12)


def test_a_scenario_has_every_variable_that_theory_knows():
    sol = theory.solve(Risk(loss=["square", "logistic"], alpha=[3, 4], flip=0.1, lam=[0, 0.1, "best"], N=100, seeds=2))
    assert np.all(sol.alpha_c == theory.separability(flip=0.1))
    here = sol.sel(alpha=4).squeeze()
    for name in ("R", "length", "V", "eps_g", "eps_y", "train_loss", "eps_t", "residual", "lam_best"):
        assert np.isfinite(here[name]).all(), name
    assert np.isnan(here.mse).all()
    at = here.sel(loss="logistic")
    assert float(at.eps_g.isel(lam=2)) < float(at.eps_g.isel(lam=1))


def test_the_best_penalty_of_the_hinge_is_found_beside_the_plateau_of_maximum_stability():
    """Below lam = 0.1 the error is flat, above 5 that of Hebb's rule."""
    alphas = np.array([0.45, 0.5, 0.52, 0.6])
    best = theory.solve(Risk(loss="hinge", alpha=alphas, lam="best"))
    for factor in (0.8, 1.25):
        for alpha, lam, least in zip(alphas, best.lam_best.values, best.eps_g.values, strict=True):
            assert theory.solve(Risk(loss="hinge", alpha=alpha, lam=factor * lam)).eps_g.item() > least


@pytest.mark.parametrize(
    ("loss", "flip", "alpha"),
    [(Hinge(), 0.0, 0.05), (Hinge(), 0.1, 0.1), (Absolute(), 0.3, 2.0), (Absolute(), 0.3, 5.0)],
)
def test_the_best_penalty_is_found_where_the_error_falls_from_the_plateau_of_hebbs_rule(loss, flip, alpha):
    """A scan in strides of 6 passes from the plateau, where the slope is below 1e-11, to places that may be higher."""
    lam = best(loss, SignTeacher(flip), alpha)[0]
    assert np.argmin(solved(loss, SignTeacher(flip), alpha, [1e-3, 0.9 * lam, lam, 1.1 * lam, 1e6]).eps_g) == 2


@pytest.mark.parametrize("last", [2.0, 30.0])
def test_the_best_penalty_of_a_line_is_interpolated_where_it_is_smooth(last):
    """Up to alpha = 30 that of the hinge falls to 0, where no polynomial follows it."""
    line = theory.smooth(Risk(loss="hinge", flip=0.1, alpha=[1.0, last], lam="best"), "alpha").isel(alpha=[9, 30, 58])
    each = theory.solve(Risk(loss="hinge", flip=0.1, alpha=line.alpha.values, lam="best", N=10**9))
    np.testing.assert_allclose(line.lam_best, each.lam_best, rtol=1e-7)
    np.testing.assert_allclose(line.eps_g, each.eps_g, rtol=1e-7)


def test_a_linear_scenario_has_the_threshold_of_l1_recovery():
    sparse = Risk(
        loss="square", penalty="l1", teacher="linear", weights="sparse", rho=0.4, alpha=0.8, lam=0, N=100, seeds=2
    )
    sol = theory.solve(sparse)
    assert float(sol.alpha_c.squeeze()) == theory.l1_recovery(0.4)
    assert float(sol.mse.squeeze()) == 0
    assert np.isnan(theory.solve(Risk(loss="square", teacher="linear", alpha=0.8, N=100, seeds=2)).alpha_c.item())


ROUNDED = {"loss": "square", "teacher": "linear", "noise": 0.5, "lam": [0.001, "best"], "alpha": [0.34862, 1.6]}


def test_runs_are_compared_with_the_theory_of_their_whole_number_of_examples():
    """At N = 400, alpha N = 139.45 becomes 139: 0.3 % of alpha, which V, that hardly fluctuates, resolves."""
    scenario = Risk(**ROUNDED, N=400, seeds=20)
    runs = simulate.run(scenario)
    assert disagreements(runs, theory.solve(scenario)) == []
    assert len(disagreements(runs, solve_line(scenario))) == 2  # V at the alpha that is rounded


def test_theory_is_that_of_the_examples_at_each_N_and_lines_are_those_of_alpha():
    scenario = Risk(**ROUNDED, N=[10, 30, 100_000])
    sol, line = theory.solve(scenario), theory.smooth(scenario, "alpha")
    for N, P in ((10, 3), (30, 10), (100_000, 34_862)):
        expected = solve_line(Risk(**{**ROUNDED, "lam": 0.001, "alpha": P / N}))
        for name in ("R", "V", "mse", "R_bayes"):
            assert sol[name].sel(lam="0.001", N=N, alpha=0.34862).item() == expected[name].item()
    alone = solve_line(Risk(**{**ROUNDED, "alpha": line.alpha.values[:3]}))
    np.testing.assert_array_equal(line.V[0, :3], alone.V[0])
    np.testing.assert_allclose(line.V[1, :3], alone.V[1], rtol=1e-9)  # the best lambda of a line is interpolated
    assert np.all(np.diff(line.R.sel(lam="best")) > 0)
