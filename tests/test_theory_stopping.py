"""Early stopping: which boundaries meet their target error, by reflection, propagated densities and simulated walks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from statmech import ScenarioError
from statmech.classification import stopping_boundaries
from statmech.classification.stopping_boundaries import BOUNDARIES, brownian_decision_error, compute_stopping_level
from theory.classification.random_walks import exact_decision, mean_evaluated_fraction

MEANS = np.array([-0.5, 0.0, 0.3, 1.0, 3.0])
OVERSHOOT = (
    0.5826  # -zeta(1/2)/sqrt(2 pi): mean overshoot of a Gaussian walk, in standard deviations of a step (Siegmund 1985)
)


def kept(boundary, error_rate, mean, variance, theta):
    """The decision-error rate of a boundary for Brownian motion."""
    tau = compute_stopping_level(boundary, error_rate, mean, variance, theta)
    return (
        brownian_decision_error(tau, 0.0, variance, theta - mean)
        if boundary == "centred"
        else brownian_decision_error(tau, mean, variance, theta)
    )


@pytest.mark.parametrize("error_rate", [1e-6, 0.01, 0.2])
@pytest.mark.parametrize("theta", [-0.5, 0.0, 0.7])
def test_constant_and_centred_boundaries_meet_their_target(error_rate, theta):
    for variance in (0.25, 4.0):
        for boundary in ("constant", "centred"):
            found = kept(boundary, error_rate, MEANS, variance, theta)
            tau = compute_stopping_level(boundary, error_rate, MEANS, variance, theta)
            exact = tau > (np.maximum(theta, 0) if boundary == "constant" else np.maximum(theta - MEANS, 0)) + 1e-12
            np.testing.assert_allclose(found[exact], error_rate, rtol=1e-9)
            assert np.all(found[tau == 0] <= error_rate * (1 + 1e-9) if boundary == "constant" else True)


def test_a_bridge_is_conservative_and_eq_4_on_raw_sums_is_not():
    assert np.all(kept("brownian-bridge", 0.01, MEANS, 1.0, 0.0) <= 0.01)
    assert kept("as-printed", 0.01, 1.0, 1.0, 0.0) == pytest.approx(0.038, abs=5e-4)
    assert kept("as-printed", 0.01, 0.0, 1.0, 0.0) == pytest.approx(0.01, rel=1e-9)
    without_drift = compute_stopping_level("constant", 0.01, 0.0, 1.0)
    assert brownian_decision_error(without_drift, 1.0, 1.0) == pytest.approx(0.0045, abs=5e-5)


@pytest.mark.parametrize(
    ("mean", "theta", "tau"), [(1.0, 0.0, 0.8), (0.0, 0.0, 1.2), (-0.5, 0.3, 0.9), (0.4, 0.5, 0.2)]
)
def test_discrete_steps_are_brownian_motion_with_its_level_raised_by_the_overshoot(mean, theta, tau):
    """An independent form: densities propagated from look to look agree with reflection at the raised level."""
    for n in (100, 400):
        found = exact_decision(tau, np.arange(1, n + 1), mean, 1.0, theta)
        raised = tau + OVERSHOOT / np.sqrt(n)
        assert found.error == pytest.approx(
            float(brownian_decision_error(raised, mean, 1.0, theta)), rel=0.6 / np.sqrt(n)
        )
        assert found.error < float(brownian_decision_error(tau, mean, 1.0, theta))


@pytest.mark.parametrize("looks", [np.arange(1, 61), np.arange(5, 61, 5), np.array([3, 20, 45, 60]), np.array([60])])
def test_simulated_walks_err_and_stop_as_often(looks):
    """Within the standard errors of the walks; a theory without the drift must disagree."""
    rng, walks, n = np.random.default_rng(1), 100_000, 60
    sums = np.cumsum(rng.standard_normal((walks, n)) / np.sqrt(n) + 0.7 / n, axis=1)
    seen = sums[:, looks - 1]
    crossed = seen >= 0.75
    crossed[:, -1] = True
    first = crossed.argmax(axis=1)
    wrong = (first < len(looks) - 1) & (sums[:, -1] < 0)
    found = exact_decision(0.75, looks, 0.7, 1.0)
    features = looks[first]
    assert abs(wrong.mean() - found.error) <= 4 * wrong.std() / np.sqrt(walks)
    assert abs(features.mean() - found.features) <= 4 * features.std() / np.sqrt(walks) + 1e-9
    if len(looks) > 1:
        assert abs(features.mean() - exact_decision(0.75, looks, 0.0, 1.0).features) > 4 * features.std() / np.sqrt(
            walks
        )


def test_centred_looks_equal_a_walk_without_drift():
    found = exact_decision(0.8, np.arange(1, 101), 1.0, 1.0, theta=0.0, slope=1.0)
    same = exact_decision(0.8, np.arange(1, 101), 0.0, 1.0, theta=-1.0)
    assert found == pytest.approx(same, rel=1e-12)


@pytest.mark.parametrize(("tau", "mean"), [(0.3, 0.0), (0.8, 1.0), (0.5, -2.0), (2.0, 5.0)])
def test_the_mean_fraction_satisfies_wald_s_identity(tau, mean):
    """m E[T] = E[W_T]: tau for the walks that cross, the final value for those that do not."""

    def survivors(w):
        return norm.pdf(w, mean) * -np.expm1(-2 * tau * (tau - w))

    end = quad(lambda w: w * survivors(w), mean - 12, tau)[0]
    crossing = 1 - quad(survivors, mean - 12, tau)[0]
    if mean:
        assert mean * mean_evaluated_fraction(tau, mean, 1.0) == pytest.approx(tau * crossing + end, rel=1e-8)
    else:
        second = quad(lambda w: w**2 * survivors(w), mean - 12, tau)[0]  # and without drift E[T] = E[W_T^2]
        assert mean_evaluated_fraction(tau, mean, 1.0) == pytest.approx(tau**2 * crossing + second, rel=1e-8)


def test_uninformative_examples_cost_the_square_root_of_n_with_a_bridge():
    """With n features that each add to the margin, tau grows as sqrt(n), and so does the number of features."""
    n = np.array([1e3, 1e4, 1e5, 1e6])
    features = n * mean_evaluated_fraction(compute_stopping_level("brownian-bridge", 0.05, 0.3 * n, n), 0.3 * n, n)
    slopes = np.diff(np.log(features)) / np.diff(np.log(n))
    np.testing.assert_allclose(slopes, 0.5, atol=0.03)
    # where margins are as large as their standard deviation, as for teacher and student, it is a fraction of n
    fraction = mean_evaluated_fraction(compute_stopping_level("brownian-bridge", 0.05, np.sqrt(n), n), np.sqrt(n), n)
    np.testing.assert_allclose(fraction, fraction[0], rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compute_stopping_level("konstant", 0.1, 0.0, 1.0), 'not a boundary. Did you mean "constant"'),
        (
            lambda: compute_stopping_level("constant", 0.6, 0.0, 1.0),
            "error_rate: must lie between 1e-300 and 0.5, not 0.6",
        ),
        (lambda: compute_stopping_level("constant", 0.0, 0.0, 1.0), "error_rate: must lie between"),
        (lambda: compute_stopping_level("constant", 0.1, 0.0, 0.0), "variance: must be greater than 0"),
        (lambda: exact_decision(1.0, [3, 2], 0.0, 1.0), "looks: must be increasing numbers of features"),
    ],
)
def test_impossible_parameters_are_refused(call, message):
    with pytest.raises(ScenarioError, match=message):
        call()


def test_every_boundary_is_documented():
    assert all(f"`{name}`" in stopping_boundaries.__doc__ for name in BOUNDARIES)
