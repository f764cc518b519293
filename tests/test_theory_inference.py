"""State evolution, free entropy and transitions: known values, identities, limits, lanes that are independent."""

from __future__ import annotations

import numpy as np
import pytest

import theory
from statmech import Inference, ScenarioError
from statmech.convex.teachers import LinearTeacher, LogitTeacher, ProbitTeacher, SignTeacher
from statmech.convex.weight_distributions import Binary, Gauss, Sparse
from theory.convex import bayes_optimal
from theory.convex.bayes_optimal import find_message_passing_state, iterate_state_evolution

ALPHAS = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
PAIRS = [
    (SignTeacher(), Binary()),
    (SignTeacher(flip=0.1), Gauss()),
    (ProbitTeacher(noise=0.5), Sparse(rho=0.3)),
    (LogitTeacher(gain=3.0), Binary()),
    (LinearTeacher(noise=0.1), Sparse(rho=0.3)),
]


def angle(q):
    return np.arccos(np.sqrt(q)) / np.pi


def test_bayes_errors_of_a_gaussian_teacher_are_the_known_ones():
    known = [0.322395, 0.254373, 0.174534, 0.129855, 0.102280, 0.083935]
    np.testing.assert_allclose(angle(theory.bayes_overlap("gauss", ALPHAS)), known, rtol=0, atol=5e-7)
    np.testing.assert_allclose(
        angle(theory.bayes_overlap("gauss", [1, 3], flip=0.1)), [0.308058, 0.200685], rtol=0, atol=5e-7
    )


def test_without_noise_they_are_those_of_the_version_space():
    alpha = np.array([1e-3, 0.1, 1.0, 10.0, 1e3])
    curve = theory.learning_curves(alpha).eps_g.sel(learner="bayes").values
    np.testing.assert_allclose(angle(theory.bayes_overlap("gauss", alpha)), curve, rtol=1e-10)


def test_gaussian_weights_and_normal_noise_are_optimal_ridge_regression():
    r"""Delta (1 + alpha/(Delta + sigma^2)) = 1 is a quadratic equation."""
    noise2 = 0.3**2
    b = ALPHAS + noise2 - 1
    error = (-b + np.sqrt(b * b + 4 * noise2)) / 2
    np.testing.assert_allclose(1 - theory.bayes_overlap("gauss", ALPHAS, "linear", noise=0.3), error, rtol=1e-13)


def test_transitions_of_the_binary_perceptron_are_the_known_ones():
    assert theory.transitions("binary") == pytest.approx((1.244683990, 1.492631818), abs=5e-10)


@pytest.mark.parametrize(("rho", "spinodal"), [(0.4, 0.589246), (0.2, 0.355411), (0.1, 0.207559)])
def test_transitions_of_compressed_sensing_are_the_known_ones(rho, spinodal):
    assert theory.transitions("sparse", "linear", rho=rho) == pytest.approx((rho, spinodal), abs=5e-7)


def test_transitions_tend_to_those_without_noise():
    at = [theory.transitions("sparse", "linear", rho=0.4, noise=noise) for noise in (1e-2, 1e-4, 1e-6, 0)]
    assert at[0].alpha_it > at[1].alpha_it > at[2].alpha_it > at[3].alpha_it  # like 1/ln(1/noise)
    assert at[2].alpha_alg == pytest.approx(at[3].alpha_alg, rel=1e-9)


@pytest.mark.parametrize(
    ("prior", "teacher", "parameters"),
    [
        ("gauss", "sign", {}),
        ("gauss", "logit", {"gain": 2.0}),
        ("sparse", "sign", {}),
        ("binary", "linear", {"noise": 1}),
    ],
)
def test_where_the_overlap_is_continuous_there_is_no_transition(prior, teacher, parameters):
    assert np.all(np.isnan(theory.transitions(prior, teacher, **parameters)))


def test_gaussian_weights_are_recovered_continuously_from_as_many_exact_outputs():
    assert theory.transitions("gauss", "linear") == (1, 1)
    np.testing.assert_allclose(theory.bayes_overlap("gauss", [0.3, 0.999, 1.0, 2.0], "linear"), [0.3, 0.999, 1, 1])


def test_the_first_steps_are_the_known_ones():
    known = [0, 0.5601, 0.6737, 0.7085, 0.7208]
    np.testing.assert_allclose(theory.state_evolution("gauss", 2.0, steps=4), known, atol=5e-5)


def test_message_passing_recovers_binary_weights_from_the_spinodal_on():
    below, above = theory.state_evolution("binary", [1.492, 1.494], steps=2000)[:, -1]
    assert below < 0.9
    assert above == pytest.approx(1, abs=1e-12)


def test_the_uninformed_and_the_informed_state_have_equal_free_entropy_at_alpha_it_only():
    alpha_it, alpha_alg = theory.transitions("sparse", "linear", rho=0.4, noise=0.01)
    alpha = np.repeat([alpha_it - 1e-4, alpha_it, alpha_it + 1e-4], 2)
    states = find_message_passing_state(
        LinearTeacher(noise=0.01), Sparse(rho=0.4), alpha, ["uninformed", "informed"] * 3
    )
    gain = np.diff(states.free_entropy.reshape(3, 2))[:, 0]
    assert gain[0] < -1e-6
    assert gain[1] == pytest.approx(0, abs=1e-12)
    assert gain[2] > 1e-6
    assert alpha_it < alpha_alg


@pytest.mark.parametrize(("teacher", "weights"), PAIRS, ids=str)
def test_the_free_entropy_of_a_state_grows_with_alpha_by_the_log_evidence_alone(teacher, weights):
    alpha, h = np.array([0.3, 0.9, 2.0]), 1e-5
    middle, low, high = (
        bayes_optimal.find_stable_states(teacher, weights, a)[0] for a in (alpha, alpha - h, alpha + h)
    )
    rate = (high.free_entropy - low.free_entropy) / (2 * h)
    has = np.isfinite(middle.mse) & np.isfinite(rate)
    assert has[0]
    np.testing.assert_allclose(rate[has], teacher.mean_log_evidence(middle.mse[has]), rtol=1e-7)


@pytest.mark.parametrize(("teacher", "weights"), PAIRS, ids=str)
def test_state_evolution_tends_to_the_state_of_the_line(teacher, weights):
    alpha, starts = np.array([0.4, 0.4, 1.9, 1.9]), ["uninformed", "informed"] * 2
    last = iterate_state_evolution(teacher, weights, alpha, starts, 1000)[:, -1]
    np.testing.assert_allclose(
        last, find_message_passing_state(teacher, weights, alpha, starts).mse, rtol=1e-9, atol=1e-15
    )


def test_an_informed_start_leaves_the_teacher_where_it_does_not_attract():
    q = theory.state_evolution("gauss", [0.5, 1.5], "linear", start="informed", steps=200)
    assert q[0, -1] == pytest.approx(0.5, abs=1e-12)
    assert q[1, -1] == 1


def test_the_overlap_is_that_of_the_state_of_largest_free_entropy():
    alpha = np.array([1.2, 1.24, 1.25, 1.4])
    q = theory.bayes_overlap("binary", alpha)
    lower = theory.state_evolution("binary", alpha, steps=2000)[:, -1]
    np.testing.assert_allclose(q[:2], lower[:2], rtol=1e-10)
    np.testing.assert_array_equal(q[2:], 1)
    assert np.all(lower[2:] < 0.9)


@pytest.mark.parametrize(("teacher", "weights"), PAIRS, ids=str)
def test_no_alpha_changes_another_in_any_bit(teacher, weights):
    alpha = np.array([0.2, 0.7, 1.3, 1.31, 5.0])
    starts = ["uninformed", "informed", "informed", "uninformed", "informed"]
    q, steps = (
        bayes_optimal.solve_bayes_overlap(teacher, weights, alpha),
        iterate_state_evolution(teacher, weights, alpha, starts, 60),
    )
    for lane in range(5):
        one = slice(lane, lane + 1)
        np.testing.assert_array_equal(bayes_optimal.solve_bayes_overlap(teacher, weights, alpha[one]), q[one])
        np.testing.assert_array_equal(
            iterate_state_evolution(teacher, weights, alpha[one], starts[one], 60), steps[one]
        )


def test_a_dataset_has_the_steps_and_the_states_of_each_parameter_combination():
    starts = ["informed", "uninformed"]
    scenario = Inference(prior=["gauss", "binary"], alpha=[1.4, 0.8], start=starts, N=1000, steps=400)
    solved = theory.solve(scenario)
    assert solved.q.dims == ("prior", "start", "alpha", "step")
    np.testing.assert_array_equal(solved.m, solved.q)
    binary = solved.sel(prior="binary")
    steps = [theory.state_evolution("binary", scenario.alpha, start=start, steps=400) for start in starts]
    np.testing.assert_array_equal(binary.q, steps)
    np.testing.assert_allclose(angle(binary.q), binary.eps_g, atol=1e-7)
    assert binary.free_entropy.sel(start="informed").values == pytest.approx(-np.log(2))
    np.testing.assert_array_equal(binary.q_bayes, np.tile(theory.bayes_overlap("binary", scenario.alpha), (2, 1)))
    assert np.all(binary.alpha_alg == theory.transitions("binary").alpha_alg)
    assert np.all(np.isnan(solved.alpha_it.sel(prior="gauss")))


@pytest.mark.slow
def test_a_dataset_is_that_of_whole_numbers_of_examples_and_a_line_that_of_alpha():
    scenario = Inference(prior="binary", alpha=[0.96, 1.24], N=[10, 50], steps=20)
    expected = theory.state_evolution("binary", [[1.0, 1.2], [0.96, 1.24]], steps=20)
    np.testing.assert_array_equal(theory.solve(scenario).q, expected)
    np.testing.assert_array_equal(theory.smooth(scenario, "alpha").q[[0, -1]], expected[1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.transitions("binry"), 'Did you mean "binary"'),
        (lambda: theory.transitions("sparse", rho=1.5), "rho"),
        (lambda: theory.transitions("sparse", rho=[0.1, 0.2]), "one prior and one teacher"),
        (lambda: theory.bayes_overlap("gauss", [1.0, -1.0]), "greater than 0"),
        (lambda: theory.bayes_overlap("gauss", 1.0, "sign", flip=0.5), "flip = 0.5"),
        (lambda: theory.state_evolution("gauss", 1.0, start="warm"), "start"),
    ],
)
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises(ScenarioError, match=message):
        call()
