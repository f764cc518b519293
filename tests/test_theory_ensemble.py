"""Errors of an ensemble are exact: known limits, two independent integrals, and sampling of the definition."""

from __future__ import annotations

import numpy as np
import pytest

import theory
from statmech import Scenario, ScenarioError
from statmech.students.ensemble_vote import _integrate_opposed_vote_error

GRID = [(0.9, 0.85, 3), (0.5, 0.3, 101), (0.99, 0.985, 5), (0.5, 0.3, 11), (0.1, 0.02, 7), (-0.6, 0.5, 3)]


def drawn_votes(R: float, q: float, K: int, n: int = 400_000) -> tuple[np.ndarray, np.ndarray]:
    """True where vote and mean are wrong, ties broken at random, for n fields of eqs (3.2) to (3.4)."""
    rng = np.random.default_rng(0)
    covariance = np.full((K + 1, K + 1), q)
    covariance[0], covariance[:, 0] = R, R
    np.fill_diagonal(covariance, 1.0)
    v, *u = rng.multivariate_normal(np.zeros(K + 1), covariance, n, method="eigh").T
    votes = np.sum(np.sign(u), axis=0) + rng.choice([-0.5, 0.5], n)
    return np.sign(v) * votes < 0, np.sign(v) * np.sum(u, axis=0) < 0


@pytest.mark.parametrize(("R", "q", "K"), [(0.9, 0.85, 3), (0.6, 0.5, 4), (0.7, 0.3, 3), (0.3, 0.6, 7), (0.4, 0.15, 9)])
def test_errors_are_those_of_sampled_fields(R, q, K):
    for wrong, output in zip(drawn_votes(R, q, K), ("majority_vote", "weight_mean"), strict=True):
        exact = theory.ensemble_error(R, q, K, output=output)
        assert abs(wrong.mean() - exact) < 4 * np.sqrt(exact * (1 - exact) / wrong.size)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["majority_vote", "weight_mean"])
@pytest.mark.parametrize("K", [2, 3, 11])
def test_the_metropolis_walk_of_the_paper_agrees_with_the_exact_integral(K, output):
    walk = theory.metropolis_error(0.9, 0.85, K, output, steps=10_000)
    assert walk.error < 0.0015
    assert abs(walk.value - theory.ensemble_error(0.9, 0.85, K, output=output)) < 4 * walk.error
    assert abs(walk.value - theory.ensemble_error(0.9, 0.8, K, output=output)) > 3 * walk.error or (
        K == 2 and output == "majority_vote"  # which does not depend on q
    )


@pytest.mark.parametrize(("R", "q", "K"), GRID)
def test_two_independent_integrals_agree_to_1e_12(R, q, K):
    """The common field's integral, and Price's theorem in R."""
    c = (q - R**2) / (1 - R**2)
    assert theory.ensemble_error(R, q, K) == pytest.approx(_integrate_opposed_vote_error(np.arccos(R), c, K), abs=1e-12)


@pytest.mark.slow
def test_students_with_q_below_R_squared_are_exact_too():
    """q < R^2: the integral is continued analytically and agrees with sampling within its standard errors."""
    for R, q, K in [(0.7, 0.3, 3), (0.7, 0.4, 5), (0.3, -0.05, 3), (-0.7, 0.3, 3)]:
        matrix = np.full((K, K), q)
        np.fill_diagonal(matrix, 1.0)
        sampled = theory.ensemble_error_unequal([R] * K, matrix)
        assert abs(theory.ensemble_error(R, q, K) - sampled.value) < 4 * sampled.error + 1e-12  # K = 3 is exact


def test_an_even_ensemble_errs_like_the_next_smaller_odd_one():
    for K in (3, 5, 21):
        assert theory.ensemble_error(0.8, 0.7, K + 1) == theory.ensemble_error(0.8, 0.7, K)
    assert theory.ensemble_error(0.8, 0.7, 2) == pytest.approx(np.arccos(0.8) / np.pi, rel=1e-14)


def test_many_students_reach_the_limit():
    limit = np.arccos(0.8 / np.sqrt(0.7)) / np.pi
    for output in ("majority_vote", "weight_mean"):
        assert theory.ensemble_error(0.8, 0.7, np.inf, output=output) == pytest.approx(limit, rel=1e-12)
        off = [theory.ensemble_error(0.8, 0.7, K, output=output) - limit for K in (10**3 + 1, 10**4 + 1)]
        assert off[0] / off[1] == pytest.approx(10, rel=0.02)  # from above, as 1/K


def test_the_edges_of_the_domain_have_their_limits():
    error = theory.ensemble_error
    np.testing.assert_allclose(error(0.0, 0.0, [1, 3, np.inf]), 0.5, rtol=1e-15)
    np.testing.assert_array_equal(error(1.0, 1.0, [1, 3, np.inf]), 0.0)
    np.testing.assert_allclose(error(0.5, 1.0, [1, 3, np.inf]), 1 / 3)
    np.testing.assert_allclose(error(-0.6, 0.5, 3), 1 - error(0.6, 0.5, 3))
    assert error(0.5, 0.25, np.inf) < 1e-7
    assert error(0.7, 0.5, 3, output="weight_mean") == pytest.approx(np.arccos(0.7 / np.sqrt(2 / 3)) / np.pi)


def test_small_errors_keep_their_precision():
    """At angle theta to the teacher everything is proportional to theta."""
    ratio = [theory.ensemble_error(np.cos(a), 1 - 0.7 * a**2, 3) / a for a in (1e-3, 1e-4)]
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-5)


def test_arguments_broadcast():
    R, q, K = np.array([0.5, 0.8])[:, None], 0.7, np.array([1, 3, np.inf])
    errors = theory.ensemble_error(R, q, K)
    assert errors.shape == (2, 3)
    assert errors[1, 1] == theory.ensemble_error(0.8, 0.7, 3)


def test_the_mean_of_unequal_lengths_is_that_of_the_weights():
    value, error = theory.ensemble_error_unequal([0.9, 0.1], np.array([[1, 0.2], [0.2, 1]]), [1.0, 1e9], "weight_mean")
    assert error == 0
    assert value == pytest.approx(np.arccos(0.1) / np.pi, rel=1e-6)


@pytest.mark.slow
def test_the_sampling_error_is_correct():
    """In 40 ensembles the deviations, in units of the returned error, are compatible with a standard normal."""
    rng = np.random.default_rng(3)
    z = []
    for _ in range(40):
        R = rng.uniform(0.2, 0.9)
        q = R**2 + rng.uniform(0.1, 0.9) * (1 - R**2)
        matrix = np.full((5, 5), q)
        np.fill_diagonal(matrix, 1.0)
        value, error = theory.ensemble_error_unequal([R] * 5, matrix, tolerance=1.0)
        z.append((value - theory.ensemble_error(R, q, 5)) / error)
    assert 0.4 < np.std(z) < 1.7
    assert np.max(np.abs(z)) < 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.9, -0.5, 3), "q must be at least"),
        ((1.2, 0.5, 3), "R: a cosine must lie in"),
        ((0.5, 0.5, 0), "integer of at least 1"),
        ((0.5, 0.5, 2.5), "integer of at least 1"),
        ((0.9, 0.5, np.inf), "q must be at least"),
        ((np.nan, 0.5, 3), "R: a cosine must lie in"),
        ((0.5, 0.5, 3, "majority"), 'Did you mean "majority_vote"'),
    ],
)
def test_impossible_ensembles_are_refused(arguments, message):
    with pytest.raises(ScenarioError, match=message):
        theory.ensemble_error(*arguments)


FOUR = ["hebb", "perceptron", "adatron", "adatron_textbook"]
GAIN = {  # at t = 1, 50, 1e3 and 1e6, by an independent code: SciPy's integrator in (log l, theta, c)
    "hebb": [0.8488562875, 0.9903493984, 0.9995008973, 0.9999995000],
    "perceptron": [0.7100628274, 0.7187558720, 0.7086877910, 0.7071225213],
    "adatron": [0.6737400136, 0.6775940292, 0.7020872024, 0.7070172439],
    "adatron_textbook": [0.6620475254, 0.6112764652, 0.6669004547, 0.7005665041],
}


@pytest.mark.quick
@pytest.mark.slow
def test_the_gain_of_infinitely_many_students_is_greatest_early_and_ends_alike_for_all_rules_but_hebb():
    gain = theory.advantage(Scenario(rule=FOUR, t=[1, 3.66, 6.23, 50, 1e3, 1e6]))
    for rule, expected in GAIN.items():
        np.testing.assert_allclose(gain.sel(rule=rule, t=[1, 50, 1e3, 1e6]), expected, atol=2e-9)
    assert gain.sel(rule="adatron_textbook", t=6.23) == pytest.approx(0.558140, abs=1e-6)
    assert gain.sel(rule="adatron", t=3.66) == pytest.approx(0.618531, abs=1e-6)
    late, limit = gain.sel(t=1e6), 1 / np.sqrt(2)
    assert abs(late.sel(rule=["perceptron", "adatron"]) - limit).max() < 1e-4
    assert 0 < limit - late.sel(rule="adatron_textbook") < 0.01 * limit
    assert late.sel(rule="hebb") == pytest.approx(1, abs=1e-6)


@pytest.mark.quick
@pytest.mark.slow
def test_a_hundred_thousand_students_are_nearly_infinitely_many():
    """The error of the weight mean approaches its limit as 1/K: from 10^4 to 10^5 the distance falls by 10."""
    some = Scenario(rule=["hebb", "perceptron"], K=[10**4, 10**5], N=10**5 + 1, t=[0.5, 5])
    solved, limit = theory.solve(some), theory.advantage(some)
    off = solved.eps_g_weight_mean / solved.eps_g.isel(student=0) - limit
    assert np.all(off > 0)
    assert np.all(off.sel(K=10**5) < 3e-5)
    np.testing.assert_allclose(off.sel(K=10**4) / off.sel(K=10**5), 10, rtol=2e-3)


def test_infinitely_many_students_start_alike_and_not_opposed():
    with pytest.raises(ScenarioError, match="requires equal starts"):
        theory.advantage(Scenario(rule="hebb", K=2, t=1, start={"R": [0.1, 0.2]}))
    with pytest.raises(ScenarioError, match=r"requires q >= R\^2"):
        theory.advantage(Scenario(rule="hebb", K=2, t=1, start={"R": 0.6, "q": 0.3}))
    on_axis = theory.advantage(Scenario(rule="hebb", K=1, t=[0, 1], start={"R": 1, "q": 1}))
    assert np.isfinite(on_axis).all()
