"""Fluctuations of order 1/N of pairs and ensembles of equal students: against Gaussian matrices and simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import simulate
import theory
from statmech import RULES, Rule, Scenario, ScenarioError
from theory.online import ensemble_fluctuations, order_parameter_equations
from theory.online.ensemble_fluctuations import compute_vote_gradient

pytestmark = pytest.mark.quick

T = [0.2, 1.0, 5.0]


@pytest.mark.slow
def test_pairs_that_learn_by_hebb_are_correlations_of_gaussian_vectors():
    """Their parts across the teacher are Gaussian: c is the sample correlation of normals of correlation t/(1 + t)."""
    times = np.array([0.0, *T])
    [cell] = Scenario(rule="hebb", K=4, t=times).cells()
    found, c = ensemble_fluctuations.solve_pair_fluctuations(cell, times), times / (1 + times)
    close = {"rtol": 1e-6, "atol": 1e-12}
    np.testing.assert_allclose(found.S0, (1 - c**2) ** 2, **close)
    np.testing.assert_allclose(found.S1, c * (1 - c) ** 2 * (2 + 3 * c) / 2, **close)
    np.testing.assert_allclose(found.S2, 2 * c**2 * (1 - c) ** 2, **close)
    np.testing.assert_allclose(found.bias_c, -c * (1 - c**2) / 2, **close)


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 5])
def test_ensembles_drawn_at_the_start_are_random_vectors(K):
    """Cosines of random vectors are uncorrelated, of variance 1/N; the mean of K random vectors is a random vector."""
    at = theory.solve(Scenario(rule="hebb", K=K, N=50, t=[0], corrections=True)).isel(t=0)
    assert at.q_std.values == pytest.approx(np.full((1, K), (50 * (K - 1)) ** -0.5).reshape(at.q_std.shape))
    assert at.eps_g_weight_mean_std.item() == pytest.approx(50**-0.5 / np.pi)
    assert abs(at.q_bias.values).max() < 1e-12
    assert abs(at.eps_g_weight_mean_bias.item()) < 1e-12


STARTS = {"perceptron": "drawn", "adatron": "drawn", "opposed": {"R": 0.2, "q": -0.2}}


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_ensembles_of_three_vary_and_deviate_as_predicted(name):
    rule = "perceptron" if name == "opposed" else name
    scenario = Scenario(rule=rule, K=3, N=100, t=T, seeds=2000, start=STARTS[name], corrections=True)
    runs, solution = simulate.run(scenario), theory.solve(scenario)
    assert largest_bias(runs, solution) < 4
    assert largest_ratio(runs, solution) < 5


@pytest.mark.slow
def test_without_a_covariance_between_students_or_the_bias_the_prediction_is_wrong(monkeypatch):
    scenario = Scenario(rule="perceptron", K=3, N=100, t=T, seeds=4000, corrections=True)
    runs, right = simulate.run(scenario), theory.solve(scenario)
    for left_out, error, bound in (("V2", largest_ratio, 5), ("S1", largest_ratio, 5), ("bias", largest_bias, 4)):
        assert error(runs, right) < bound
        monkeypatch.setattr(ensemble_fluctuations, "solve_pair_fluctuations", without(left_out))
        assert error(runs, theory.solve(scenario)) > bound, left_out


def without(name):
    """The solver of pairs with one of its results set to 0."""
    solve = ensemble_fluctuations.solve_pair_fluctuations

    def solved(cell, times):
        found = solve(cell, times)
        return found._replace(**{name: 0 * getattr(found, name)})

    return solved


CHANGING = {"drift": 0.5, "decay": 0.5, "schedule": {"t0": 5}}


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["hebb", "perceptron"])
def test_drift_decay_and_a_schedule_enter_the_fluctuations_of_pairs(rule, monkeypatch):
    start = {"R": 0.3, "q": 0.3}
    scenario = Scenario(rule=rule, K=3, N=50, t=T, seeds=2000, start=start, corrections=True, **CHANGING)
    runs, solution = simulate.run(scenario), theory.solve(scenario)
    assert largest_bias(runs, solution) < 4
    assert largest_ratio(runs, solution) < 5
    covariances = ensemble_fluctuations._compute_step_covariances
    with monkeypatch.context() as planted:
        planted.setattr(ensemble_fluctuations, "_compute_step_covariances", lambda *at: covariances(*at[:-1], 0.0))
        assert largest_ratio(runs, theory.solve(scenario)) > 5
    if rule == "hebb":  # the perceptron's bias gains too little by these to be seen with 2,000 seeds
        monkeypatch.setattr(ensemble_fluctuations, "_compute_drift_second_order", lambda mean, theta, c, drift: 0 * c)
        assert largest_bias(runs, theory.solve(scenario)) > 4


def largest_bias(runs, solution) -> float:
    """The largest deviation of a mean from theory, in standard errors."""
    found = []
    for name in ("q", "eps_g_weight_mean"):
        values, expected = runs[name] - solution[name], solution[f"{name}_bias"]
        if name == "q":
            values, expected = values.mean("student"), expected.mean("student")
        error = values.std("seed", ddof=1) / values.sizes["seed"] ** 0.5
        found.append(float(abs((values.mean("seed") - expected) / error).max()))
    return max(found)


def largest_ratio(runs, solution) -> float:
    """The largest deviation of a variance over the predicted from 1, in standard errors of normal values."""
    names = ("q", "eps_g_weight_mean", "eps_g_majority_vote")
    ratios = [runs[name].var("seed", ddof=1) / solution[f"{name}_std"] ** 2 - 1 for name in names]
    return max(float(abs(ratio).max()) for ratio in ratios) / (2 / runs.sizes["seed"]) ** 0.5


@pytest.mark.slow
def test_one_student_of_a_pair_fluctuates_like_one_student():
    """Two solvers, and two quadratures of the noise."""
    for rule, changes in (("adatron", {}), ("hebb", CHANGING), ("perceptron", CHANGING)):
        [cell] = Scenario(rule=rule, K=2, t=T, flip=0.05, **changes).cells()
        [(_, one)], found = (
            order_parameter_equations.solve_with_fluctuations([cell], T),
            ensemble_fluctuations.solve_pair_fluctuations(cell, T),
        )
        V1 = found.V1.reshape(-1, 4)[:, [0, 1, 3]]
        np.testing.assert_allclose(V1, one.covariance[..., 0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.bias, one.bias[..., 0], rtol=1e-6, atol=1e-8)


def plackett(C: np.ndarray, i: int, j: int) -> float:
    """The derivative by C[i, j] of the probability that three or four normals of correlation C are positive."""
    rest = [k for k in range(len(C)) if k not in (i, j)]
    block, cross = C[np.ix_([i, j], [i, j])], C[np.ix_(rest, [i, j])]
    left = C[np.ix_(rest, rest)] - cross @ np.linalg.inv(block) @ cross.T
    both = 0.5 if len(rest) == 1 else 0.25 + np.arcsin(left[0, 1] / np.sqrt(left[0, 0] * left[1, 1])) / (2 * np.pi)
    return both / (2 * np.pi * np.sqrt(1 - C[i, j] ** 2))


@pytest.mark.parametrize("c", [-0.49, -0.4, -0.2, 0.0, 0.5, 0.99])
@pytest.mark.parametrize("theta", [0.1, 0.7, 2.0])
def test_the_vote_s_gradient_is_that_of_orthant_probabilities(theta, c):
    """An error of three: 6 P(two given students err) - 4 P(all three do), with the teacher's field positive."""
    sin, cos = np.sin(theta), np.cos(theta)
    q = cos**2 + c * sin**2
    C = np.full((4, 4), q)
    C[0], C[:, 0] = -cos, -cos
    np.fill_diagonal(C, 1)
    of_R = 6 * 2 * plackett(C[:3, :3], 0, 1) - 4 * 3 * plackett(C, 0, 1)
    of_q = 6 * plackett(C[:3, :3], 1, 2) - 4 * 3 * plackett(C, 1, 2)
    of_turn = theta * sin * of_R - 2 * theta * sin * cos * (1 - c) * of_q
    found = compute_vote_gradient(np.array([theta]), np.array([c]), 3)
    np.testing.assert_allclose(np.ravel(found), [of_turn, sin**2 * of_q], rtol=1e-6)


def test_students_as_opposed_as_they_can_be_are_refused():
    [cell] = Scenario(rule="hebb", K=3, t=T, start={"R": 0.2, "q": -0.43}).cells()
    with pytest.raises(ScenarioError, match="almost as opposed as they can be"):
        ensemble_fluctuations.solve_pair_fluctuations(cell, T)


@dataclass(frozen=True)
class OwnAdaTron(Rule):
    """The AdaTron as a user writes it: g and its kink alone."""

    label = "own"
    kinks = (0.0,)

    def g(self, kappa, length):
        return -kappa * (kappa < 0)


@pytest.mark.slow
def test_a_rule_of_a_user_without_closed_forms_has_the_fluctuations_of_its_pairs(monkeypatch):
    monkeypatch.setitem(RULES, "own", OwnAdaTron)
    own, shipped = (next(Scenario(rule=rule, K=2, t=[1]).cells()) for rule in ("own", "adatron"))
    for found, expected in zip(
        ensemble_fluctuations.solve_pair_fluctuations(own, [1]),
        ensemble_fluctuations.solve_pair_fluctuations(shipped, [1]),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
