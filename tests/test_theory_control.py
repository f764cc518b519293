"""The best learning rate at every time, in closed form and by gradient; values of protocols.md computed elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import theory
from statmech import Network, NetworkTasks, OnlineTasks, Scenario
from statmech.parameters.schedules_and_controls import ControlFunction, OptimalControlOptions, TimeSegments
from theory.control import optimal_controls
from theory.control.control_gradients import (
    ControlBounds,
    compute_cost_and_gradient,
    compute_trajectory,
    minimise_control_cost,
)
from theory.control.controlled_equations import make_control_problem
from theory.control.optimal_controls import add_best_controls, compute_best_rates, compute_task_errors

# eps_g at t = 1, 5, 20, 100, integrated in R^2 by DOP853 at rtol 1e-12
BEST = {
    ("perceptron", 0.0, 0.0): (0.315459803, 0.156600366, 0.055020627, 0.012344580),
    ("perceptron", 0.1, 0.0): (0.312878385, 0.156014910, 0.054948480, 0.012340944),
    ("hebb", 0.0, 0.0): (0.285634300, 0.162614400, 0.086975027, 0.039687289),
    ("adatron", 0.0, 0.0): (0.338363349, 0.171879245, 0.059073842, 0.013009371),
    ("adatron_textbook", 0.0, 0.0): (0.338363349, 0.171879245, 0.059073842, 0.013009371),
    ("perceptron", 0.0, 0.1): (0.354353993, 0.215798269, 0.103783324, 0.039374823),
}


def student(rule="perceptron", R=0.1, flip=0.0, **given):
    [cell] = Scenario(rule=rule, K=1, t=[1.0], start={"R": R, "length": 1.0}, flip=flip, **given).cells()
    return cell


def network(**given):
    start = {"Q": 0.25, "R": {"diagonal": 0.01}}
    [cell] = Network(**{"network": "erf", "M": 2, "K": 2, "N": 1000, "t": [1.0], "start": start} | given).cells()
    return cell


def equal_segments(last, number):
    return TimeSegments(tuple(np.linspace(0.0, last, number + 1)))


def searched(problem, constant, low=1e-3, high=30.0):
    size = problem.segments.num_values * problem.controls
    return minimise_control_cost(
        problem, ControlBounds(np.full(size, low), np.full(size, high)), np.atleast_1d(constant)
    )


@pytest.mark.parametrize(("rule", "R", "flip"), BEST)
def test_best_rates_of_a_perceptron_give_the_errors_integrated_elsewhere(rule, R, flip):
    found = compute_best_rates(student(rule, R, flip), np.array([1.0, 5.0, 20.0, 100.0])).theta / np.pi
    np.testing.assert_allclose(found, BEST[rule, R, flip], atol=6e-10, rtol=0)


def test_at_its_best_rate_the_perceptron_rule_errs_by_4_over_pi_t_up_to_the_fourth_order():
    t = np.array([1e2, 1e3, 1e4])
    rest = (t + np.pi) * compute_best_rates(student(R=0.0), t).theta / np.pi - 4 / np.pi
    assert np.all(np.abs(rest) < 8 / t**4 + 1e-15)
    without_pi = t * compute_best_rates(student(R=0.0), t).theta / np.pi - 4 / np.pi
    assert np.all(np.abs(without_pi) > 3 / t)  # the term that the shift by pi removes


@pytest.mark.slow
def test_no_rate_of_a_rule_beats_the_bayes_rule_at_any_time():
    t = np.geomspace(0.1, 100, 13)
    optimal = theory.solve(Scenario(rule="bayes", K=1, t=t.tolist(), start={"R": 0.1, "length": 0.1}))
    for rule in ("hebb", "perceptron", "adatron"):
        assert np.all(compute_best_rates(student(rule), t).theta / np.pi > optimal["eps_g"].values.squeeze())


@pytest.mark.quick
@pytest.mark.slow
def test_the_gradient_finds_the_best_staircase_of_rates_of_a_perceptron():
    problem = make_control_problem(student(), equal_segments(20.0, 20))._replace(step=0.05)
    [(_, best)] = add_best_controls([student(eta="optimal")], 20.0)
    found = searched(problem, best.constants["eta"])
    exact = compute_best_rates(student(), np.array([20.0])).theta[0] / np.pi
    assert np.exp(found.cost) == pytest.approx(0.05508181, abs=2e-8)
    assert best.constants["eta"] == pytest.approx(0.319, abs=5e-4)
    assert best.gain * best.objective == pytest.approx(0.07247007, abs=1e-7)
    assert exact < np.exp(found.cost) < 1.003 * exact
    assert found.minima[0].projected_gradient < 1e-6


def tasks(**given):
    start = {"along": [[0.2, 0.1]], "Q": [[0.25]], "v": 0.5}
    of_two = {"network": "erf", "tasks": 2, "overlap": 0.5, "M": 1, "K": 1, "N": 1000, "t": [4.0], "switch": 1.0}
    [cell] = NetworkTasks(**of_two | {"start": start, "eta_v": 0.5} | given).cells()
    return cell


def perceptron(**given):
    of_two = {"rule": "perceptron", "tasks": 2, "overlap": 0.5, "t": [4.0], "switch": 1.0, "flip": 0.1}
    [cell] = OnlineTasks(**of_two | {"start": {"R": [0.2, 0.1], "length": 1.0}} | given).cells()
    return cell


DROPOUT = dict.fromkeys(["eta", "dropout"], "optimal")
BOTH = {key: {"optimal": {"objective": {"last": [1, 3]}}} for key in ["eta", "protocol"]}
NOISE = {"at": [0, 1], "is": [0.1, 0.3]}
TWO = {"along": [[0.2, 0.1], [0.0, 0.3]], "Q": 0.25, "v": [[0.5, 0.3], [0.2, 0.6]]}
ALL = {**BOTH, "dropout": BOTH["eta"], "noise": 0.1, "K": 2, "start": TWO}
PROBLEMS = {  # each control of each system, as few programs as have them
    "rate of a perceptron": lambda: make_control_problem(student(flip=0.05), TimeSegments((0.0, 1.0, 4.0), points=2)),
    "rate and dropout": lambda: make_control_problem(
        network(noise=NOISE, **DROPOUT, t=[4.0]), TimeSegments((0.0, 1.0, 4.0))
    ),
    "all of two tasks, mean over time": lambda: (
        make_control_problem(tasks(**ALL), TimeSegments((0.0, 2.0, 4.0))).time_average_problem
    ),
    "rate and share of a perceptron, weighed tasks": lambda: make_control_problem(
        perceptron(**BOTH), TimeSegments((0.0, 2.0, 4.0))
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in PROBLEMS])
def test_gradients_agree_with_central_differences(name):
    problem = PROBLEMS[name]()
    values = np.linspace(0.5, 0.8, problem.segments.num_values * problem.controls)
    gradient = compute_cost_and_gradient(problem, values)[1]
    differences = [
        _difference(lambda at: compute_cost_and_gradient(problem, at)[0], values, i) for i in range(values.size)
    ]
    assert np.linalg.norm(gradient - differences) < 1e-7 * np.linalg.norm(gradient)


def _difference(cost, values, i, h=1e-3):
    """The derivative by five points, with an error of order h^4."""
    at = [values + k * h * np.eye(values.size)[i] for k in (-2, -1, 1, 2)]
    return (cost(at[0]) - 8 * cost(at[1]) + 8 * cost(at[2]) - cost(at[3])) / (12 * h)


@pytest.mark.quick
@pytest.mark.slow
def test_the_derivative_by_a_switching_time_is_the_jump_of_the_hamiltonian():
    def along(switch):
        problem = make_control_problem(student(), TimeSegments((0.0, switch, 6.0)))
        return compute_trajectory(
            problem._replace(step=max(switch, 6 - switch) / 60), np.array([0.8, 1.6])
        )  # one program for all

    at = along(3.0)
    before, after = at.hamiltonian[at.t < 3.0], at.hamiltonian[at.t >= 3.0]
    assert np.ptp(before) < 1e-6 * np.abs(before).max()
    assert np.ptp(after) < 1e-6 * np.abs(after).max()
    h = 0.3
    difference = (along(3 - h).cost - 8 * along(3 - h / 2).cost + 8 * along(3 + h / 2).cost - along(3 + h).cost) / (
        6 * h
    )
    assert before[0] - after[0] == pytest.approx(difference, rel=1e-4)


@pytest.mark.slow
def test_the_best_rate_of_two_erf_units_is_the_optimum_found_elsewhere_from_every_start():
    """Errors are those of the exact equations, and at the constant that of SciPy's DOP853 at rtol 1e-13."""
    segments = equal_segments(100.0, 20)
    problem = make_control_problem(network(), segments)._replace(step=0.5)  # the same optimum in a fifth of the time
    found = searched(problem, 1.717, high=10.0)
    assert len(found.minima) == 1
    staircases = [
        network(eta={"at": [*segments.edges[:-1]], "is": it.tolist()}, t=[100.0])
        for it in (found.values, np.full(20, 1.7170563))
    ]
    error, of_constant = np.ravel(compute_task_errors(staircases, np.array([100.0])))
    assert np.log(error) == pytest.approx(-10.1091976, abs=1e-7)
    assert of_constant / error == pytest.approx(9.7924568e-5 / 4.0703456e-5, rel=1e-6)
    assert found.values[[0, 9, 19]] == pytest.approx([1.1052, 1.8134, 0.9017], abs=2e-4)


@pytest.mark.quick
@pytest.mark.slow
def test_along_a_smooth_optimum_the_hamiltonian_is_constant_and_the_error_that_of_the_closed_form():
    """13 Chebyshev points from R = 0.5 to t = 4; a control that is tilted by a hundredth has no constant."""
    problem = make_control_problem(student(R=0.5), TimeSegments((0.0, 4.0), points=13))._replace(step=0.02)
    found = searched(problem, 1.0)
    assert np.exp(found.cost) == pytest.approx(
        compute_best_rates(student(R=0.5), np.array([4.0])).theta[0] / np.pi, rel=1e-8
    )
    along = compute_trajectory(problem, found.values).hamiltonian
    tilted = compute_trajectory(problem, found.values * np.linspace(1.0, 0.99, 13)).hamiltonian
    assert np.ptp(along) < 1e-7
    assert np.ptp(tilted) > 1e-4


@pytest.mark.slow
@pytest.mark.quick
def test_the_mean_error_over_time_of_a_perceptron_is_least_at_the_same_rate():
    """What lowers the error fastest now is best for all later times, and so for their mean."""
    given = {"rule": "perceptron", "start": {"R": 0.1, "length": 1.0}, "t": [1.0, 5.0]}
    last, mean = (
        theory.solve(Scenario(**given, eta={"optimal": {"objective": over}})) for over in ("last", "integral")
    )
    np.testing.assert_allclose(mean.control, last.control, rtol=1e-12)
    x, weight = np.polynomial.legendre.leggauss(200)
    error = compute_best_rates(student(), 5 * ((x + 1) / 2) ** 2).theta / np.pi  # nodes lie close at t = 0
    assert mean.objective.item() == pytest.approx(np.sum(weight * (x + 1) / 2 * error), rel=1e-6)
    assert last.objective.item() == pytest.approx(last.eps_g.values[-1, 0], rel=1e-9)
    assert mean.gain.item() > 1


@pytest.mark.slow
@pytest.mark.quick
def test_where_a_search_errs_the_best_constant_is_taken(monkeypatch):
    wish = OptimalControlOptions(segments=2)
    lost = optimal_controls.ControlSearchResult(
        {"eta": ControlFunction(TimeSegments((0.0, np.inf)), (20.0,), wish)}, 1.0, [0.4]
    )
    monkeypatch.setattr(optimal_controls, "_search_controls", lambda *_: lost)
    [(cell, best)] = add_best_controls([student(eta=wish, drift=0.01)], 3.0)
    assert best.gain == 1.0
    assert cell.time_dependence.schedule.value_at(1.0) == best.constants["eta"] < 20


@pytest.mark.quick
@pytest.mark.slow
def test_two_controls_together_find_less_error_than_each_alone():
    """The error is that of the exact equations."""
    wish = {"optimal": {"segments": 3}}
    alone = [perceptron(eta=wish, protocol={"replay": 0.5}), perceptron(protocol=wish)]
    both = perceptron(eta=wish, protocol=wish)
    found = [add_best_controls([cell], 4.0)[0] for cell in (*alone, both)]
    errors = [best.objective for _, best in found]
    assert errors[2] < 0.999 * min(errors[:2])
    cell, best = found[2]
    assert np.mean(compute_task_errors([cell], np.array([4.0]))[0]) == pytest.approx(best.objective, rel=1e-9)
    assert best.controls["task_share"].value_at(np.array([0.5])) == 1.0  # up to the switch
    assert np.nanmin(best.reached) == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.quick
@pytest.mark.slow
def test_a_smooth_rate_of_a_network_has_the_errors_of_its_fixed_steps_and_beats_a_staircase():
    given = {"M": 1, "K": 1, "start": {"Q": 0.25, "R": 0.1}}
    wanted = [network(**given, eta={"optimal": wish}) for wish in ({"points": 5}, {"segments": 5})]
    [(cell, smooth), (_, staircase)] = add_best_controls(wanted, 6.0)
    assert smooth.objective < staircase.objective
    problem = make_control_problem(cell, smooth.controls["eta"].segments)._replace(step=0.02)
    cost = compute_cost_and_gradient(problem, np.array(smooth.controls["eta"].values))[0]
    assert np.exp(cost) == pytest.approx(smooth.objective, rel=1e-7)


@pytest.mark.quick
@pytest.mark.slow
def test_an_optimal_dropout_has_the_errors_of_its_fixed_steps_and_beats_a_constant():
    """Three units that learn from one with noise gain from dropout at first."""
    given = {"M": 1, "K": 3, "noise": 0.3, "t": [2, 8], "start": {"Q": 0.25, "R": [[0.1], [0.2], [0.3]]}}
    wish = {"optimal": {"segments": 3}}
    solution = theory.solve(Network(network="erf", dropout=wish, **given))
    assert solution.gain > 1.05
    assert solution.control.values[0, 0] > solution.control.values[0, 1]
    [(cell, best)] = add_best_controls([network(**given, dropout=wish)], 8.0)
    problem = make_control_problem(network(**given, dropout=wish), equal_segments(8.0, 3))
    cost = compute_cost_and_gradient(problem, np.array(best.controls["dropout"].values))[0]
    assert np.exp(cost) == pytest.approx(solution.eps_g.values[-1], rel=1e-5)
    assert cell.has_dropout


@pytest.mark.slow
@pytest.mark.quick
def test_a_stored_optimum_is_drawn_without_another_search(monkeypatch):
    """By a process that knows of none; another optimum is searched."""
    from figures.panels import solve_dense_theory

    solution = theory.solve(Scenario(rule="perceptron", eta="optimal", start={"R": 0.1, "length": 1.0}, t=[1.0, 5.0]))
    monkeypatch.setattr(optimal_controls, "_control_cache", {})
    monkeypatch.setattr(optimal_controls, "_find_best_controls", lambda *_: pytest.fail("a search"))
    line = solve_dense_theory(solution, "t")
    assert line.sizes["t"] > 100
    np.testing.assert_array_equal(line.sel(t=[1.0, 5.0]).control, solution.control)
    np.testing.assert_allclose(line.sel(t=[1.0, 5.0]).eps_g, solution.eps_g, rtol=1e-9)
    with pytest.raises(pytest.fail.Exception, match="a search"):
        add_best_controls([student(eta="optimal", flip=0.1)], 5.0)


@pytest.mark.quick
@pytest.mark.slow
def test_a_fraction_of_a_task_stays_below_its_bound():
    bounded = perceptron(protocol={"optimal": {"segments": 2, "at_most": 0.2}})
    [(_, best)] = add_best_controls([bounded], 4.0)
    assert best.reached[0] == pytest.approx(best.objective, rel=1e-6)  # by steps from the switch on
    after = best.controls["task_share"].value_at(np.array([2.5, 3.5]))
    assert np.max(after) == pytest.approx(0.2)  # without a bound the optimum lies at larger fractions
    assert best.constants["task_share"] <= 0.2


@pytest.mark.quick
@pytest.mark.slow
def test_a_network_minimises_the_error_with_the_weights_of_its_tasks():
    """With weights of 3 and 1 the first task alone should be presented after the switch."""
    [(cell, best)] = add_best_controls(
        [tasks(protocol={"optimal": {"segments": 1, "objective": {"last": [3, 1]}}})], 4.0
    )
    errors = compute_task_errors([cell], np.array([4.0]))[0][0]
    assert best.objective == pytest.approx(errors @ [0.75, 0.25], rel=1e-9)
    assert best.objective != pytest.approx(errors @ [0.25, 0.75], rel=1e-2)
    assert best.constants["task_share"] == pytest.approx(1, abs=1e-5)  # 0.6 is best for equal weights
