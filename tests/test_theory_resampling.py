"""Two learners of random parts of the same examples: closed forms, published values, a second route, limits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import eval_hermitenorm, factorial

import theory
from statmech.convex.losses import LOSSES, Hinge, Logistic, Penalty, Square, convert_to_stability_loss, prox
from statmech.convex.teachers import LinearTeacher, LogitTeacher, ProbitTeacher, SignTeacher
from statmech.convex.weight_distributions import Gauss
from statmech.kinds.empirical_risk import Risk
from statmech.numerics.gaussian import make_composite_rule, normal_density
from theory import ensemble_error
from theory.convex.empirical_risk import make_convex_equations, solve_loss_minimum
from theory.convex.resampled_learners import (
    SINGLE_DRAW_WEIGHTS,
    LearnerPair,
    compute_transverse_cosines,
    solve_bootstrap_minimum,
)

LARGE_N = 10**6  # shares and alpha are rounded to multiples of 1/N
FLIP = SignTeacher(0.1)


def solve_pair(loss, teacher, alpha, lam, fraction=1.0, is_bootstrap=False):
    """The state of one learner, and the cosine q of two."""
    alpha, lam, fraction = (np.atleast_1d(np.asarray(value, float)) for value in (alpha, lam, fraction))
    equations = make_convex_equations(loss, teacher, Penalty(0.0), Gauss())
    state = (
        solve_bootstrap_minimum(equations, alpha, lam)
        if is_bootstrap
        else solve_loss_minimum(loss, teacher, Penalty(0.0), Gauss(), alpha * fraction, lam)
    )
    c = compute_transverse_cosines(equations, state, alpha, fraction, is_bootstrap)
    return state, state.R**2 + (1 - state.R**2) * c


STUDY = {  # R, length, q, eps of one, mean of 3, vote of 3 and infinitely many, from a prototype
    "logistic": (0.5573284502, 1.5095292859, 0.6183307597, 0.3118264285, 0.2766642326, 0.2841308793, 0.2492537480),
    "square": (0.4840320533, 0.9624669876, 0.4781582932, 0.3391718076, 0.2954067555, 0.3054542692, 0.2531903256),
    "hinge": (0.4915098398, 1.5044375313, 0.4899560410, 0.3364451813, 0.2931650161, 0.3030366063, 0.2522064146),
}


@pytest.mark.parametrize("loss", STUDY)
def test_order_parameters_and_errors_have_the_values_of_the_study(loss):
    # finds s^3 instead of s^2 (logistic q .4568), labels drawn separately (.3657), no factor s (1), alpha for s alpha
    solution = theory.solve(Risk(loss=loss, K=3, resample={"share": 0.5}, alpha=2, lam=0.1, flip=0.1, N=LARGE_N))
    names = ("R", "length", "q", "eps_g", "eps_g_weight_mean", "eps_g_majority_vote")
    values = [float(solution[name]) for name in names]
    values.append(float(ensemble_error(solution.R, solution.q, np.inf)))
    assert values == pytest.approx(STUDY[loss], abs=1.5e-10)


def test_the_bayes_optimal_error_is_that_of_all_examples_of_the_ensemble():
    keys = {"loss": "logistic", "alpha": [1, 3], "lam": 0.1, "flip": 0.1, "N": LARGE_N}
    ensemble = theory.solve(Risk(**keys, K=3, resample={"share": 0.5}))
    assert np.array_equal(ensemble.eps_bayes, theory.solve(Risk(**keys)).eps_bayes)
    assert np.all(ensemble.eps_bayes < ensemble.eps_g_weight_mean)


def solve_ridge(alpha, lam, share, noise):
    """R l, q and q_12 of ridge regression in closed form (q and q_12 are not divided by the squared length)."""
    a = share * alpha
    V = brentq(lambda V: lam * V + a * V / (1 + V) - 1, 1e-12, 1e12, xtol=1e-15, rtol=1e-15)
    m = V * a / (1 + V)
    k, v = V**2 * a / (1 + V) ** 2, 1 + noise**2 - 2 * m
    return m, (m**2 + k * v) / (1 - k), (m**2 + share * k * v) / (1 - share * k)


@pytest.mark.parametrize(
    ("alpha", "lam", "share", "noise"), [(2, 0.1, 0.5, 0.5), (0.5, 1e-4, 0.9, 0), (30, 10, 0.05, 3)]
)
def test_ridge_regression_has_its_closed_form(alpha, lam, share, noise):
    state, q = solve_pair(Square(), LinearTeacher(noise), alpha, lam, share)
    m, square, product = solve_ridge(alpha, lam, share, noise)
    found = state.R * state.length, state.length**2, q * state.length**2
    assert np.concatenate(found) == pytest.approx([m, square, product], rel=1e-11)


@pytest.mark.parametrize(("alpha", "noise", "best_share"), [(0.5, 0.5, 0.7192), (2, 0.5, 0.4123), (3, 1, 0.2324)])
def test_optimally_subsampled_interpolators_equal_optimal_ridge(alpha, noise, best_share):
    # Du, Patil & Kuchibhotla 2023: for infinitely many students, with lam = noise^2
    def bag_error(share):
        state, q = solve_pair(Square(), LinearTeacher(noise), alpha, 0.0, share)
        return float((1 - 2 * state.R * state.length + q * state.length**2)[0])

    best = minimize_scalar(
        bag_error, bounds=(0.01, min(1, 1 / alpha) - 1e-3), method="bounded", options={"xatol": 1e-9}
    )
    ridge = solve_loss_minimum(
        Square(), LinearTeacher(noise), Penalty(0.0), Gauss(), np.array([alpha]), np.array([noise**2])
    )
    assert best.x == pytest.approx(best_share, abs=1e-4)
    assert best.fun == pytest.approx(float(ridge.mse[0]), rel=1e-11)


def test_the_bootstrap_of_ridge_regression_has_the_published_overlaps():
    # README of BootstrapAsymptotics: 1.35642 and .799808, with its solver's tolerance of 1e-4
    # finds <p^2> instead of <p>^2, whose q_12 equals the square of the length
    state, q = solve_pair(Square(), LinearTeacher(1.0), 1, 0.1, is_bootstrap=True)
    assert float(state.length[0] ** 2) == pytest.approx(1.3562784, abs=1e-7)
    assert float(q[0] * state.length[0] ** 2) == pytest.approx(0.7998008, abs=1e-7)


TEACHERS = [SignTeacher(0.0), FLIP, LogitTeacher(5.0), ProbitTeacher(0.3)]


def sum_hermite_series(loss, teacher, state, c, orders=30):
    """The mean product of two displacements, as the power series in c of the components of the transverse fields."""
    R, length, V = (float(part[0]) for part in (state.R, state.length, state.V))
    edges = np.array([-8.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 8.0])
    u, u_weight = make_composite_rule(edges, 12)
    z, z_weight = make_composite_rule(np.linspace(-9, 9, 19), 12)
    h = length * (R * u[:, None] + np.sqrt(1 - R**2) * z)
    displacement = (prox(loss, h, np.full_like(h, V)) - h) * normal_density(z) * z_weight
    density = 2 * u_weight * normal_density(u) * teacher.probability(u)
    series = [density @ (displacement @ eval_hermitenorm(n, z)) ** 2 / factorial(n) for n in range(orders)]
    return np.polynomial.polynomial.polyval(c, series)


@pytest.mark.parametrize("teacher", TEACHERS)
@pytest.mark.parametrize("loss", [Logistic(), LOSSES["exponential"]()])
def test_products_of_displacements_equal_their_hermite_series(loss, teacher):
    state = solve_loss_minimum(loss, teacher, Penalty(0.0), Gauss(), np.array([1.5]), np.array([0.2]))
    pair = LearnerPair(convert_to_stability_loss(loss), teacher, SINGLE_DRAW_WEIGHTS, float(state.V[0]))
    theta, length = float(state.eps_g[0] * np.pi), float(state.length[0])
    for c in (0.0, 0.2, 0.4):
        found = pair.average_displacements(theta, length, 0.0, c)
        assert found == pytest.approx(sum_hermite_series(loss, teacher, state, c), rel=1e-8)


@pytest.mark.parametrize("teacher", [SignTeacher(0.0), FLIP, LogitTeacher(2.0), LinearTeacher(0.5), LinearTeacher(0.0)])
@pytest.mark.parametrize("name", LOSSES)
def test_equal_learners_have_the_mean_squared_displacement_of_one(name, teacher):
    loss = LOSSES[name]()
    if loss.of == "stability" and not teacher.labels:
        pytest.skip("the loss needs labels")
    loss = convert_to_stability_loss(loss) if teacher.labels else loss
    state = solve_loss_minimum(LOSSES[name](), teacher, Penalty(0.0), Gauss(), np.array([1.2]), np.array([0.3]))
    pair = LearnerPair(loss, teacher, SINGLE_DRAW_WEIGHTS, float(state.V[0]))
    theta, length = float(state.eps_g[0] * np.pi), float(state.length[0])
    noise = 0.0 if teacher.labels else teacher.noise
    near = pair.average_displacements(theta, length, float(state.mse[0]) + noise**2, 1 - 1e-12)
    assert near == pytest.approx(length**2 * np.sin(theta) ** 2 / 1.2, rel=1e-6)


def test_students_of_all_examples_are_equal():
    scenario = Risk(loss=["logistic", "hinge"], K=[1, 3], resample={"share": 1}, alpha=1.5, lam=0.1, flip=0.1)
    single = theory.solve(Risk(loss=["logistic", "hinge"], alpha=1.5, lam=0.1, flip=0.1))
    bag = theory.solve(scenario)
    for name in ("R", "length", "eps_g", "train_loss", "eps_t", "V"):
        assert np.array_equal(bag[name].isel(K=1), single[name])
    for name in ("eps_g_majority_vote", "eps_g_weight_mean"):
        assert np.allclose(bag[name], bag.eps_g, rtol=1e-13)
    assert np.allclose(bag.q.sel(K=3), 1)
    assert bag.q.sel(K=1).isnull().all()


def test_two_votes_are_one_vote_and_four_are_three():
    scenario = Risk(loss="hinge", K=[1, 2, 3, 4], resample=[{"share": 0.5}, "bootstrap"], alpha=2, lam=0.1, flip=0.1)
    vote = theory.solve(scenario).eps_g_majority_vote
    assert np.allclose(vote.sel(K=2), vote.sel(K=1))
    assert np.allclose(vote.sel(K=4), vote.sel(K=3))
    assert np.all(vote.sel(K=3) < vote.sel(K=2))


def test_shares_are_rounded_to_examples():
    scenario = Risk(loss="logistic", K=3, resample={"share": 0.5}, N=9, alpha=2.3, lam=0.1)
    [cell] = scenario.cells()
    assert (cell.P, cell.num_learnt_examples) == (21, 10)
    state, q = solve_pair(Logistic(), SignTeacher(0.0), 21 / 9, 0.1, 10 / 21)
    solution = theory.solve(scenario)
    assert [float(solution.R), float(solution.q)] == pytest.approx([state.R[0], q[0]], rel=1e-12)
    state, q = solve_pair(Logistic(), SignTeacher(0.0), 2.3, 0.1, 0.5)  # lines are not rounded
    line = theory.smooth(
        Risk(loss="logistic", K=3, resample={"share": [0.5, 0.9]}, N=9, alpha=2.3, lam=0.1), "resample", 5
    )
    assert line["resample"].values[0] == 0.5
    assert [float(line.R[0]), float(line.q[0])] == pytest.approx([state.R[0], q[0]], rel=1e-12)


def test_the_bayes_optimal_student_learns_all_examples():
    bag = theory.solve(Risk(loss="square", K=2, resample={"share": 0.3}, alpha=2, lam=0.1, bayes=True))
    single = theory.solve(Risk(loss="square", alpha=2, lam=0.1, bayes=True))
    assert float(bag.R_bayes) == float(single.R_bayes)


MAXIMUM_STABILITY = {  # alpha: share, error of the mean of 1, 3, 10, 30 and infinitely many, Bayes
    1: (0.657, 0.305984, 0.276063, 0.261660, 0.256985, 0.254538, 0.254373),
    2: (0.720, 0.226198, 0.195295, 0.181330, 0.176912, 0.174621, 0.174534),
    5: (0.780, 0.116072, 0.096192, 0.087844, 0.085274, 0.083954, 0.083935),
}


@pytest.mark.parametrize("alpha", MAXIMUM_STABILITY)
def test_bags_of_maximum_stability_are_nearly_bayes_optimal(alpha):
    share, *errors = MAXIMUM_STABILITY[alpha]
    bag = theory.solve(Risk(loss="hinge", K=[1, 3, 10, 30], resample={"share": share}, alpha=alpha, lam=0, N=LARGE_N))
    infinite = ensemble_error(bag.R[-1], bag.q[-1], np.inf)
    bayes = np.arccos(bag.R_bayes[-1]) / np.pi
    assert [*bag.eps_g_weight_mean.values, float(infinite), float(bayes)] == pytest.approx(errors, abs=1.1e-6)
    one = float(theory.solve(Risk(loss="hinge", alpha=alpha, lam=0, N=LARGE_N)).eps_g)
    assert one > 1.04 * float(bayes)
    assert 1 < infinite / bayes < 1.0007


def test_a_vanishing_penalty_is_the_limit_of_small_penalties():
    limit, near = (solve_pair(Hinge(), SignTeacher(0.0), 1.0, lam, 0.6) for lam in (0.0, 1e-5))
    for value, small in zip((limit[1], limit[0].R), (near[1], near[0].R), strict=True):
        assert value == pytest.approx(small, rel=1e-9)


FLIPPED = {  # alpha: lam, share, error of the bag, of the best penalty of one student with any of three losses, Bayes
    1: (0.6, 0.55, 0.308315, 0.308975, 0.308058),
    2: (0.4, 0.64, 0.244651, 0.247894, 0.243000),
    3: (0.4, 0.74, 0.204477, 0.209709, 0.200685),
    5: (0.2, 0.81, 0.155720, 0.160174, 0.147112),
}


@pytest.mark.parametrize("alpha", FLIPPED)
def test_bags_of_support_vector_machines_beat_every_penalty_of_one_student(alpha):
    lam, share, *errors = FLIPPED[alpha]
    bag = theory.solve(Risk(loss="hinge", K=2, resample={"share": share}, alpha=alpha, lam=lam, flip=0.1, N=LARGE_N))
    infinite, bayes = float(ensemble_error(bag.R, bag.q, np.inf)), float(np.arccos(bag.R_bayes) / np.pi)
    singles = theory.solve(Risk(loss=["square", "logistic", "hinge"], alpha=alpha, lam="best", flip=0.1, N=LARGE_N))
    single = float(singles.eps_g.min())
    assert float(bag.eps_g_best_lam) == pytest.approx(float(singles.eps_g.sel(loss="hinge")), rel=1e-6)
    assert [infinite, single, bayes] == pytest.approx(errors, abs=1.1e-6)
    assert infinite < single


def test_averages_over_draws_of_a_bootstrap_equal_sums_over_draws():
    state, _ = solve_pair(Square(), LinearTeacher(0.5), 1.5, 0.3, is_bootstrap=True)
    one, _ = solve_pair(Square(), LinearTeacher(0.5), 1.5, 0.3)
    s2, V = float(state.mse[0]) + 0.25, float(state.V[0])
    weights = np.exp(-1.0) / factorial(np.arange(30))
    draws = np.arange(30)
    # the residual of an example drawn n times is h/(1 + n V): half its square, weighted by the draws
    expected = np.sum(weights * draws * 0.5 * s2 / (1 + draws * V) ** 2)
    assert float(state.train_loss[0]) == pytest.approx(expected, rel=1e-10)
    assert float(state.train_loss[0]) < float(one.train_loss[0])


@pytest.mark.slow
def test_theory_of_ensembles_gives_no_warnings_in_extreme_settings():
    scenario = Risk(
        loss=["logistic", "hinge"],
        K=[2, 101],
        resample=[{"share": 0.999}, "bootstrap"],
        alpha=[0.1, 100],
        lam=[1e-6, 100],
        N=10**5,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = theory.solve(scenario)
    assert bool(((solution.q > 0) & (solution.q < 1)).all())
