"""Keys that change with time: what a config may say, and that runs and theory follow it."""

from __future__ import annotations

import numpy as np
import pytest

import simulate
import theory
from statmech import Network, NetworkTasks, OnlineTasks, Scenario, ScenarioError
from statmech.parameters.schedules_and_controls import ControlFunction, TimeSegments
from theory.control import optimal_controls
from theory.control.controlled_equations import make_control_problem
from theory.control.optimal_controls import compute_best_rates

STEPS = {"at": [0, 2, 3], "is": [1.0, 0.25, 2.0]}
FLIPS = {"at": [0, 1], "is": [0.3, 0.0]}
BEST = {  # eps_g at t = 1, 5, 20, from R = 0.1
    "perceptron": (0.312878385, 0.156014910, 0.054948480),
    "adatron_textbook": (0.334599585, 0.170902537, 0.058954654),
}
SMALL = {"along": [[0.02, 0.01], [-0.01, 0.02]], "Q": [[0.01, 0.001], [0.001, 0.01]], "v": [[0.05, 0.02], [0.03, 0.04]]}
TASKS = {"network": "erf", "tasks": 2, "overlap": 0.5, "M": 1, "K": 2, "eta_v": 1, "switch": 50, "start": SMALL}


def hebb(**given):
    start = {"R": 0.2, "length": 1.0}
    return Scenario(**{"rule": "hebb", "t": [0.5, 2, 4], "start": start, "eta": STEPS, "flip": FLIPS} | given)


def parts_of_hebb(t, steps=STEPS, flips=FLIPS):
    """The parts along and across the teacher, which Hebb's rule sums: integrals of (1 - 2p) eta and of eta^2."""
    edges = np.unique([*steps["at"], *flips["at"], t])
    edges = edges[edges <= t]
    eta, flip = (np.array(of["is"])[np.searchsorted(of["at"], edges[:-1], "right") - 1] for of in (steps, flips))
    along = 0.2 + np.sqrt(2 / np.pi) * np.sum(np.diff(edges) * (1 - 2 * flip) * eta)
    return along, np.sqrt(1 - 0.2**2 + np.sum(np.diff(edges) * eta**2))


@pytest.mark.quick
def test_theory_follows_steps_of_the_learning_rate_and_of_the_labels_noise():
    solution = theory.solve(hebb()).isel(student=0)
    for t in (0.5, 2, 4):
        along, across = parts_of_hebb(t)
        assert solution.eps_g.sel(t=t).item() == pytest.approx(np.arctan2(across, along) / np.pi, rel=1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("engine", ["gram", pytest.param("vectors", marks=pytest.mark.slow)])
def test_runs_follow_them_at_any_size(engine):
    """The mean part along the teacher is exact at N = 20; with a switch half a unit later it would not be met."""
    runs = simulate.run(hebb(N=20, seeds=4000, engine=engine)).isel(student=0)
    along = (runs.R * runs.length).sel(t=4)
    error = along.std("seed", ddof=1).item() / np.sqrt(runs.sizes["seed"])
    later = parts_of_hebb(4, STEPS | {"at": [0, 2.5, 3.5]})[0]
    assert abs(along.mean().item() - parts_of_hebb(4)[0]) < 4 * error < abs(later - parts_of_hebb(4)[0]) / 2


def hebb_of_two(**given):
    """Two tasks of overlap 0.5, the second from t = 2 on with a rehearsal of 0.3, then of 0.5."""
    rest = {"tasks": 2, "overlap": 0.5, "switch": 2, "protocol": {"replay": {"at": [0, 3], "is": [0.3, 0.5]}}}
    start = {"length": 1.0, "R": [0.2, 0.1]}
    return OnlineTasks(**{"rule": "hebb", "t": [4], "start": start, "eta": STEPS, "flip": FLIPS} | rest | given)


def parts_of_two(steps=STEPS, flips=FLIPS):
    """The parts along both teachers at t = 4, and the squared length, of Hebb's sum."""
    edges = np.array([0.0, 1, 2, 3, 4])
    eta, flip, share = (
        np.array(of["is"])[np.searchsorted(of["at"], edges[:-1], "right") - 1]
        for of in (steps, flips, {"at": [0, 2, 3], "is": [1, 0.3, 0.5]})
    )
    drive = np.sqrt(2 / np.pi) * eta * (1 - 2 * flip)
    grown = np.array([np.sum(drive * share), np.sum(drive * (1 - share))])
    T, R = np.array([[1, 0.5], [0.5, 1]]), np.array([0.2, 0.1])
    return R + T @ grown, 1 + 2 * R @ grown + grown @ T @ grown + np.sum(eta**2)


@pytest.mark.quick
def test_theory_of_two_tasks_follows_the_rate_the_labels_noise_and_the_rehearsal():
    along, squared = parts_of_two()
    solution = theory.solve(hebb_of_two())
    np.testing.assert_allclose(solution.eps_g.values[-1], np.arccos(along / np.sqrt(squared)) / np.pi, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.parametrize("engine", ["gram", "vectors"])
def test_runs_of_two_tasks_follow_them_at_any_size(engine):
    """The mean parts along the teachers are exact at N = 20; labels wrong for one unit of time more are found."""
    runs = simulate.run(hebb_of_two(N=20, seeds=4000, engine=engine))
    along = (runs.R * runs.length).sel(t=4)
    error = along.std("seed", ddof=1).values / np.sqrt(runs.sizes["seed"])
    later = parts_of_two(flips={"at": [0, 2], "is": [0.3, 0.0]})[0]
    assert np.all(np.abs(along.mean("seed").values - parts_of_two()[0]) < 4 * error)
    assert np.all(np.abs(along.mean("seed").values - later) > 8 * error)


@pytest.mark.slow
@pytest.mark.quick
def test_a_network_whose_noise_and_rate_change_has_the_errors_of_its_runs():
    start = {"Q": 0.25, "R": {"diagonal": 0.2}}
    given = {"network": "erf", "t": [4, 8], "start": start, "N": 400, "seeds": 128}
    scenario = Network(**given, noise={"at": [0, 4], "is": [0, 0.5]}, eta={"at": [0, 4], "is": [1, 2.0]})
    runs, solution = simulate.run(scenario).eps_g, theory.solve(scenario).eps_g
    z = (runs.mean("seed") - solution) / (runs.std("seed", ddof=1) / np.sqrt(128))
    assert np.all(np.abs(z) < 4.5)  # with a bias of order 1/N, below one standard error
    constant = theory.solve(Network(**given, noise=0.5, eta=2)).eps_g
    assert np.all(np.abs(runs.mean("seed") - constant) > 20 * runs.std("seed", ddof=1) / np.sqrt(128))


def test_a_function_of_time_stands_in_a_config_as_it_was_given():
    scenario = hebb(eta=[1, STEPS, "optimal", {"optimal": {"segments": 5, "at_most": 3}}])
    written = scenario.config()["eta"]
    assert written[1] == STEPS
    assert written[2:] == ["optimal", {"optimal": {"segments": 5, "at_most": 3.0}}]
    assert Scenario(**scenario.config()) == scenario
    protocols = ["optimal", {"replay": {"at": [0, 60], "is": [0, 0.5]}}]
    tasks = NetworkTasks(**TASKS, t=[100], protocol=protocols)
    assert tasks.config()["protocol"] == protocols
    assert NetworkTasks(**tasks.config()) == tasks


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"eta": {"at": [0, 9], "is": [1, 2]}}, "eta: changes at 9, not before the last time, t = 4"),
        ({"eta": {"at": [1, 2], "is": [1, 2]}}, "eta: `at` must be a list of increasing times that begins with 0"),
        ({"eta": {"at": [0, 2], "is": [1]}}, "eta: `at` and `is` must be two lists of equal length"),
        ({"flip": {"at": [0, 2], "is": [0.1, 0.7]}}, "flip: must be at most 0.5, not 0.7"),
        ({"decay": {"at": [0, 2], "is": [0, 1]}}, "decay: cannot change with time here"),
        ({"flip": "optimal"}, "flip: cannot be optimised"),
        ({"schedule": {"t0": 5}}, "schedule: the learning rate eta is already a function of time"),
        ({"inputs": {"spectrum": [1, 2]}}, "changes with time for gaussian inputs of equal variance only"),
        ({"K": 2, "corrections": True}, "corrections: need one student"),
        ({"K": 2, "eta": "optimal", "flip": 0, "start": {"R": [0.1, 0.2], "q": 0}}, "students with equal starts"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(given, sentence):
    with pytest.raises(ScenarioError, match=sentence.replace("(", r"\(").replace("[", r"\[")):
        hebb(**given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"protocol": "optimal", "tasks": 3, "switch": None}, "optimal requires two tasks, not 3"),
        ({"protocol": "optimal", "switch": 120}, "switch = 120 must lie between 0 and the last time"),
        (
            {"protocol": "optimal", "eta": {"optimal": {"segments": 5}}},
            "eta and protocol are optimal together for one objective and on the same segments only",
        ),
        ({"protocol": {"optimal": {"points": 3}}}, "the fraction of a task is constant on each segment"),
        ({"eta": {"optimal": {"objective": {"last": [1, 2, 3]}}}}, "the objective has 3 weights for 2 tasks"),
        ({"eta": {"optimal": {"objective": "first"}}}, "an objective must be last or integral"),
        ({"protocol": {"replay": {"at": [0, 60], "is": [0, 1.5]}}}, "fraction of replay must lie between 0 and 1"),
        ({"protocol": {"replay": {"at": [0, 160], "is": [0, 0.5]}}}, "replay changes at 160, not before"),
        ({"noise": "optimal"}, "noise: cannot be optimised"),
    ],
)
def test_what_cannot_be_of_several_tasks_is_refused_with_a_sentence(given, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        NetworkTasks(**TASKS | {"t": [50, 100]} | given)


def test_students_that_start_equal_have_no_best_learning_rate():
    with pytest.raises(ScenarioError, match="needs students that start unequal"):
        Network(network="erf", eta="optimal", start={"Q": 0.25, "R": 0.1}, t=[10])


def test_the_best_learning_rate_of_a_perceptron_is_that_of_an_integration_in_its_cosine():
    """eta* at t = 0, 1, 5, 20, 100 from R = 0.1, l = 1 by DOP853; its scale is l/R."""
    [cell] = Scenario(rule="perceptron", t=[1], start={"R": 0.1, "length": 1.0}).cells()
    found = compute_best_rates(cell, np.array([0.0, 1, 5, 20, 100])).eta / 0.1
    np.testing.assert_allclose(found, [8.437077, 4.420534, 1.935253, 0.657736, 0.147025], atol=6e-7)


def test_polynomials_of_a_segment_are_exact_for_jax_as_for_numpy():
    import jax

    t = np.linspace(0.0, 6.0, 25)
    segments = TimeSegments((0.0, 2.0, 6.0), points=4)
    control = ControlFunction(segments, tuple(segments.value_times**3))
    with jax.enable_x64(True):
        traced = np.asarray(jax.jit(lambda polynomials, t: polynomials.value_at(t))(control.polynomials, t))
    np.testing.assert_allclose(control.value_at(t), t**3, atol=1e-12)
    np.testing.assert_allclose(traced, t**3, atol=1e-12)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("rule", ["perceptron", "adatron_textbook"])
def test_runs_at_the_best_learning_rate_err_as_theory_says_and_less_than_at_the_best_constant(rule):
    start = {"R": 0.1, "length": 0.5}
    scenario = Scenario(rule=rule, eta="optimal", start=start, t=[1, 5, 20], N=4000, seeds=64)
    solution = theory.solve(scenario)
    np.testing.assert_allclose(solution.eps_g.values[:, 0], BEST[rule], rtol=2e-8)
    runs = simulate.run(scenario).eps_g.isel(student=0)
    z = (runs.mean("seed") - solution.eps_g.isel(student=0)) / (runs.std("seed", ddof=1) / 8)
    assert np.all(np.abs(z) < 4.5)
    constant = theory.solve(Scenario(rule=rule, eta=solution.best_constant.item(), start=start, t=[20]))
    assert constant.eps_g.item() / solution.eps_g.values[-1, 0] == pytest.approx(solution.gain.item(), rel=1e-5)
    assert solution.gain > 1.01
    assert solution.projected_gradient < 1e-5


@pytest.mark.quick
@pytest.mark.slow
def test_runs_of_a_perceptron_of_two_tasks_follow_its_best_rate_and_rehearsal():
    wish = {"optimal": {"segments": 4}}
    start = {"R": [0.1, 0.05], "length": 1.0}
    scenario = OnlineTasks(
        rule="perceptron",
        tasks=2,
        overlap=0.3,
        switch=5,
        protocol=wish,
        eta=wish,
        start=start,
        t=[5, 10],
        N=2000,
        seeds=64,
    )
    solution, runs = theory.solve(scenario), simulate.run(scenario).eps_g
    z = (runs.mean("seed") - solution.eps_g) / (runs.std("seed", ddof=1) / 8)
    assert np.all(np.abs(z) < 4.5)
    assert solution.gain > 1.02
    assert solution.objective.item() == pytest.approx(solution.eps_g.values[-1].mean(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.quick
def test_replay_at_its_best_share_rehearses_late_and_gains_over_the_best_constant(monkeypatch):
    """The best constant and the error of five searches; the share is 0 at first, and what other integrators found."""
    # steps of 2/3 in place of 1/10 err by 2e-6
    monkeypatch.setattr(
        optimal_controls, "make_control_problem", lambda *given: make_control_problem(*given)._replace(step=0.7)
    )
    scenario = NetworkTasks(**TASKS, t=[50, 100], protocol={"optimal": {"segments": 5}})
    solution = theory.solve(scenario)
    assert solution.best_constant.item() == pytest.approx(0.5521097, abs=2e-6)
    error = solution.eps_g.sel(t=100).mean().item()
    assert solution.gain.item() * error == pytest.approx(1.6274710e-3, rel=1e-6)
    assert 1.3441512e-3 < error < 1.6e-3  # of 20 segments, and of a constant
    np.testing.assert_allclose(solution.objective_of_search, error, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.quick
def test_the_best_constant_and_the_gain_are_those_of_the_exact_equations():
    """Steps of a fixed size would state 15.6 for the constant under drift, and an optimum that diverges."""
    given = {"rule": "perceptron", "drift": 0.05, "start": {"R": 0.1, "length": 1.0}, "t": [5]}
    solution = theory.solve(Scenario(**given, eta={"optimal": {"segments": 4}}))
    best = solution.best_constant.item()
    constants = theory.solve(Scenario(**given, eta=[0.9 * best, best, 1.1 * best])).eps_g.values.ravel()
    assert constants[1] < min(constants[0], constants[2])
    assert solution.gain.item() == pytest.approx(constants[1] / solution.eps_g.item(), rel=1e-6)
    lost = theory.solve(Scenario(rule="adatron_textbook", t=[5], eta={"optimal": {"segments": 3}}))
    assert 1.01 < lost.gain.item() < 1.1  # a search that began at 15.6 had lost it
    assert lost.eps_g.item() < 0.2
