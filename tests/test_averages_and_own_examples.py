"""Averaged weights and own examples of online students: values, exact identities at finite N, planted errors."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import disagreements

import simulate
import theory
from statmech import Scenario, ScenarioError
from theory.online import anisotropic_inputs, averaged_students

START = {"length": 1, "R": 0, "q": 0}
MEAN_OF_INFINITELY_MANY = {  # perceptrons, by share, at t = 5, 20, 50
    1.0: [0.127777, 0.072291, 0.053672],
    0.3: [0.140509, 0.055594, 0.035825],
}
engines = pytest.mark.parametrize(
    ("engine", "K"), [("gram", 1), ("gram", 9), pytest.param("vectors", 2, marks=pytest.mark.slow)]
)


def solve_averages(rule, t, **keys):
    return theory.solve(Scenario(rule=rule, average=True, t=t, **{"start": START, **keys})).isel(student=0)


def solve_infinite_ensemble(rule, t, shares, **keys):
    """Errors (share, t) of the mean of infinitely many students."""
    scenario = Scenario(rule=rule, K=2, resample={"share": shares}, t=t, **{"start": START, **keys})
    errors = theory.advantage(scenario) * theory.solve(scenario).eps_g.isel(student=0)
    return errors.transpose("resample", "t").values


def compute_recorded_averages(rates, first, offset):
    """Means (t) of recorded parallel components, from step `first`, shifted by `offset` steps."""
    return np.stack([rates[:, first + offset : step + offset].mean(axis=1) for step in range(first + 1, 12)], axis=1)


def test_errors_of_averaged_perceptrons_have_their_known_values():
    solution = solve_averages("perceptron", [5, 20, 50])
    np.testing.assert_allclose(solution.eps_g_averaged, [0.255964448, 0.082609461, 0.039157175], atol=6e-10)
    np.testing.assert_allclose(solution.eps_g, [0.17675, 0.09929, 0.07467], atol=6e-6)
    burnt_in = solve_averages("perceptron", [2, 5, 20], burn_in=5)
    np.testing.assert_allclose(burnt_in.eps_g_averaged[-1], 0.0699, atol=6e-5)
    np.testing.assert_allclose(burnt_in.eps_g_averaged[:2], burnt_in.eps_g[:2], rtol=1e-8)  # the student itself


def test_averaging_doubles_the_exponent_of_the_perceptron_and_costs_hebb_a_constant():
    t = np.array([1e4, 1e5, 1e6, 1e7])
    perceptron, hebb = solve_averages("perceptron", t.tolist()), solve_averages("hebb", t.tolist())
    scaled = perceptron.eps_g_averaged.values * t ** (2 / 3)
    np.testing.assert_allclose(scaled[-1], 4 / 3 * 1.5 ** (1 / 3) / np.pi, rtol=2e-5)
    np.testing.assert_allclose(np.diff(np.log10(perceptron.eps_g_averaged))[0], -0.6670, atol=6e-5)
    np.testing.assert_allclose(perceptron.eps_g.values[-1] * t[-1] ** (1 / 3), 0.27807, atol=6e-6)
    np.testing.assert_allclose(hebb.eps_g_averaged.values[-1] / hebb.eps_g.values[-1], 2 / 3**0.5, rtol=1e-6)


def test_averages_obey_their_equations_with_drift_decay_schedules_and_noise():
    """Compare with Euler steps of the Gram matrix of B, A and J, in which no variable is scaled."""
    keys = {"drift": 0.2, "decay": 0.5, "flip": 0.1, "schedule": {"t0": 2}, "burn_in": 0.5}
    [cell] = Scenario(rule="perceptron", average=True, t=[1], start={"length": 1.3, "R": 0.4}, **keys).cells()

    def integrate(steps):
        length, R, r, s, Q, h = 1.3, 0.4, 0.0, 0.0, 0.0, 1 / steps
        for step in range(steps):
            rule, theta = cell.get_rule_at(step * h), np.arccos(R)
            fu, D, ff = (float(part) for part in rule.closed_form(theta, length, cell.flip))
            fu, D, ff = rule.eta * fu, rule.eta * D, rule.eta**2 * ff
            fv = D * (1 - R**2) + R * fu
            a_v, a_u = np.linalg.solve([[1, R], [R, 1]], [r, s / length])
            length_rate = fu + ff / (2 * length) - cell.decay * length
            on = step * h >= cell.burn_in - 1e-12
            rates = on * (length * R - cell.drift * r), on * (length**2 + a_v * fv + a_u * fu - cell.decay * s)
            Q_rate = on * 2 * s
            R += h * ((fv - R * fu) / length - R * ff / (2 * length**2) - cell.drift * R)
            length, r, s, Q = length + h * length_rate, r + h * rates[0], s + h * rates[1], Q + h * Q_rate
        return np.array([r / Q**0.5, Q**0.5 / 0.5])

    coarse, fine = integrate(1000), integrate(2000)
    [solution] = averaged_students.solve_averaged_students([cell], [1.0])
    found = [solution["R_averaged"].item(), solution["length_averaged"].item()]
    np.testing.assert_allclose(found, 2 * fine - coarse, rtol=3e-6)


@engines
@pytest.mark.parametrize("keys", [{}, {"burn_in": 0.1, "decay": 1.5, "schedule": {"t0": 0.3}}])
def test_averages_contain_the_start_and_are_updated_before_the_step(engine, K, keys):
    """The parallel component of an average is the mean of the recorded components, at every N."""
    N, first = 40, int(keys.get("burn_in", 0) * 40)
    steps = np.arange(12)
    scenario = Scenario(
        rule="perceptron", K=K, N=N, average=True, t=(steps / N).tolist(), seeds=4, engine=engine, **keys
    )
    runs = simulate.run(scenario).transpose("seed", "t", "student")
    components = (runs.R * runs.length).values
    averaged = (runs.R_averaged * runs.length_averaged).values[:, first + 1 :]
    np.testing.assert_allclose(averaged, compute_recorded_averages(components, first, 0), rtol=1e-10)
    np.testing.assert_array_equal(runs.eps_g_averaged[:, : first + 1], runs.eps_g[:, : first + 1])
    # planted: updated after the step
    later = components[:, 1:]
    assert not np.allclose(
        averaged[:, :-1], np.stack([later[:, first:step].mean(1) for step in range(first + 1, 11)], 1), rtol=1e-4
    )
    # planted: without the start
    assert not np.allclose(
        averaged[:, 1:],
        np.stack([components[:, first + 1 : step].mean(1) for step in range(first + 2, 12)], 1),
        rtol=1e-4,
    )


SETTINGS = {  # of averages and of shares, at N = 400
    "perceptron": {"rule": "perceptron", "K": 3},
    "hebb": {"rule": "hebb", "K": 3, "flip": 0.1},
    "adatron": {"rule": "adatron", "K": 2, "eta": 0.7},
    "drift and decay": {"rule": "perceptron", "K": 2, "drift": 0.05, "decay": 0.3},
    "schedule": {"rule": "perceptron", "K": 2, "schedule": {"t0": 3}},
    "functions of time": {
        **{"rule": "hebb", "K": 2},
        **{"eta": {"at": [0, 2], "is": [1, 0.5]}, "flip": {"at": [0, 1], "is": [0.2, 0]}},
    },
    "many students": {"rule": "perceptron", "K": 12, "decay": 0.2},
    "vectors": {"rule": "perceptron", "K": 2, "decay": 0.3, "drift": 0.1, "engine": "vectors"},
}
SLOW_SETTINGS = [
    pytest.param(name, id=name, marks=[] if name == "perceptron" else pytest.mark.slow) for name in SETTINGS
]


@pytest.mark.parametrize("name", SLOW_SETTINGS)
def test_averages_and_shares_agree_with_theory_together(name):
    keys = {"average": True, "burn_in": 0.5, "resample": {"share": 0.5}, "N": 400, "t": [1, 4], "seeds": 48}
    scenario = Scenario(**keys, **SETTINGS[name])
    runs, solution = simulate.run(scenario), theory.solve(scenario)
    assert disagreements(runs, solution) == []
    planted = solution.assign(eps_g_averaged=solution.eps_g)
    assert disagreements(runs, planted) != []
    common = theory.solve(Scenario(**{**keys, "resample": {"share": 1}}, **SETTINGS[name]))
    assert disagreements(runs, common) != []


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [{"spectrum": [0.5, 1.5]}, "rademacher"], ids=["groups", "rademacher"])
def test_shares_agree_with_theory_for_other_inputs(inputs):
    scenario = Scenario(rule="perceptron", K=3, inputs=inputs, resample={"share": 0.4}, N=400, t=[1, 4], seeds=32)
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


def test_own_examples_beat_the_limit_of_common_examples():
    errors = solve_infinite_ensemble("perceptron", [5, 20, 50], [1, 0.3])
    np.testing.assert_allclose(errors, [MEAN_OF_INFINITELY_MANY[s] for s in (1.0, 0.3)], atol=6e-7)
    one = theory.solve(Scenario(rule="perceptron", t=[50], start=START)).eps_g.item()
    assert errors[0, -1] / one > 2**-0.5 > 0.5 > errors[1, -1] / one


def test_two_students_learn_the_same_example_with_the_probability_s_squared(monkeypatch):
    """A factor s instead of s^2 changes the mean; theory in modes, which are not compiled, shows this."""
    keys = {"inputs": {"spectrum": [1.0, 1.0 + 1e-9]}}  # solved in modes, although the variances are equal
    errors = solve_infinite_ensemble_in_modes(keys)
    np.testing.assert_allclose(errors, MEAN_OF_INFINITELY_MANY[0.3][1], atol=6e-7)
    average = anisotropic_inputs.compute_pair_field_average
    monkeypatch.setattr(anisotropic_inputs, "compute_pair_field_average", lambda *values: average(*values) / 0.3)
    assert abs(solve_infinite_ensemble_in_modes(keys) - MEAN_OF_INFINITELY_MANY[0.3][1]) > 0.01


def solve_infinite_ensemble_in_modes(keys):
    scenario = Scenario(rule="perceptron", K=2, resample={"share": 0.3}, t=[20], start=START, **keys)
    solution = theory.solve(scenario)
    return theory.ensemble_error(solution.R.values.flat[0], solution.q.values.flat[0], np.inf, output="weight_mean")


def test_the_mean_of_infinitely_many_hebbian_students_does_not_depend_on_the_share():
    errors = solve_infinite_ensemble("hebb", [5, 50], [0.1, 0.5, 1])
    np.testing.assert_allclose(errors, np.broadcast_to(errors[-1], errors.shape), rtol=1e-7)


def test_one_student_of_a_share_is_the_student_of_all_examples_at_an_earlier_time():
    share = theory.solve(Scenario(rule="adatron", K=2, resample={"share": 0.25}, average=True, t=[4, 40]))
    every = theory.solve(Scenario(rule="adatron", average=True, t=[1, 10]))
    for name in ("R", "length", "eps_g", "R_averaged", "length_averaged", "eps_g_averaged"):
        np.testing.assert_allclose(share[name][:, 0], every[name][:, 0], rtol=1e-8)


def test_a_share_of_all_examples_changes_no_theory_and_copies_stay_copies():
    keys = {"rule": "perceptron", "K": 3, "t": [1, 20]}
    common, share = theory.solve(Scenario(**keys)), theory.solve(Scenario(**keys, resample={"share": 1}))
    for name in ("R", "q", "length", "eps_g_majority_vote"):
        np.testing.assert_allclose(share[name], common[name], rtol=1e-9)
    copies = {**keys, "start": {"length": 1, "R": 0.1, "q": 1}}
    assert (theory.solve(Scenario(**copies, resample={"share": 1})).q == 1).all()
    assert (theory.solve(Scenario(**copies, resample={"share": 0.9})).q < 0.99).all()


def test_stationary_states_include_the_share():
    keys = {"rule": "perceptron", "decay": 0.3, "drift": 0.05, "K": 2, "resample": {"share": [0.3, 1]}}
    state, late = theory.stationary(Scenario(**keys, t=[1])), theory.solve(Scenario(**keys, t=[1000]))
    np.testing.assert_allclose(state.eps_g, late.eps_g.isel(t=0, student=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"K": 2, "resample": {"share": 0}}, "resample: share must be a number greater than 0 and at most 1, not 0"),
        ({"resample": {"share": 0.5}}, "K: students with their own examples need an ensemble: choose K of at least 2"),
        ({"K": 2, "resample": "bootstrap"}, "online students see each example once: write `resample: {share: s}`"),
        ({"K": 2, "resample": {"share": 0.5}, "corrections": True}, "corrections: is computed for students that learn"),
        ({"K": 2, "resample": {"share": 0.5}, "eta": "optimal"}, "eta: is computed for students that learn every"),
        ({"burn_in": 1}, "burn_in: is the start of the averages: write `average: true`"),
        ({"average": True, "burn_in": 5}, "burn_in: must be less than the last time t = 5"),
        ({"average": True, "inputs": "rademacher"}, "gaussian inputs of equal variance, not rademacher"),
        ({"average": True, "inputs": {"spectrum": [0.5, 1.5]}}, "gaussian inputs of equal variance, not spectrum"),
        ({"average": True, "dtype": "float32"}, "dtype: averages of the weights need float64"),
        ({"average": True, "corrections": True}, "corrections: are derived for the last weights only"),
    ],
)
def test_unsupported_combinations_are_answered_in_one_sentence(keys, sentence):
    with pytest.raises(ScenarioError) as error:
        Scenario(rule="hebb", t=[5], **keys)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
