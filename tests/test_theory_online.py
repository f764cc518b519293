"""The order-parameter equations agree with the form in the paper, closed solutions and power laws at large t."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import theory
from statmech import Scenario
from statmech.errors import SolverError
from statmech.students.rules import RULES
from statmech.students.student_geometry import angle_between_students
from theory.online import order_parameter_equations
from theory.online.student_states import Students, count_distinct_students, make_initial_students

pytestmark = pytest.mark.quick

ROOT = np.sqrt(2 * np.pi)


def last(scenario: Scenario, name: str) -> float:
    return theory.solve(scenario)[name].isel(t=-1, student=0, missing_dims="ignore").item()


@pytest.mark.parametrize(
    ("rule", "t", "length", "R", "q"),
    [
        ("hebb", 1, 1.623767, 0.491379, 0.620727),
        ("hebb", 10, 8.640716, 0.923401, 0.986606),
        ("perceptron", 1, 0.907970, 0.357193, 0.296972),
    ],
)
def test_order_parameters_take_their_known_values(rule, t, length, R, q):
    solution = theory.solve(Scenario(rule=rule, K=2, t=[t])).isel(t=0, student=0)
    assert [round(solution[name].item(), 6) for name in ("length", "R", "q")] == [length, R, q]


@pytest.mark.parametrize(
    ("rule", "one", "vote_of_three"),
    [
        ("hebb", 0.056383, 0.995),
        ("perceptron", 0.074674, 0.858),
        ("adatron", 0.025937, 0.838),
        ("adatron_textbook", 0.029252, 0.809),
    ],
)
def test_errors_at_t_50_take_their_known_values(rule, one, vote_of_three):
    solution = theory.solve(Scenario(rule=rule, K=3, t=[50])).isel(t=0)
    assert round(solution.eps_g[0].item(), 6) == one
    assert round((solution.eps_g_majority_vote / solution.eps_g[0]).item(), 3) == vote_of_three


@pytest.mark.slow
def test_hebbian_learning_is_solved_in_closed_form():
    """a = sqrt(2/pi) (1 - 2 flip) eta t along the teacher, 1 + eta^2 t across it, of which eta^2 t is in common."""
    t, eta, flip = np.array([0.1, 1, 10, 1e3, 1e6]), 0.7, 0.2
    solution = theory.solve(Scenario(rule="hebb", K=2, t=list(t), eta=eta, flip=flip)).isel(student=0)
    along, across = np.sqrt(2 / np.pi) * (1 - 2 * flip) * eta * t, 1 + eta**2 * t
    np.testing.assert_allclose(solution.length, np.sqrt(along**2 + across), rtol=1e-8)
    np.testing.assert_allclose(solution.eps_g, np.arctan2(np.sqrt(across), along) / np.pi, rtol=1e-8)
    np.testing.assert_allclose(solution.q, (along**2 + eta**2 * t) / (along**2 + across), rtol=1e-8)


def perceptron_as_printed(t, y):
    """Eqs (3.5) and (3.6) for two perceptrons, in l, R and q themselves."""
    l, R, q = y[:2], y[2:4], y[4]
    theta = np.arccos(R)
    fu, fv, ff = (R - 1) / ROOT, (1 - R) / ROOT, theta / np.pi
    f1u2, f2u1 = (R[1] - q) / ROOT, (R[0] - q) / ROOT
    f1f2 = (theta.sum() - np.arccos(q)) / (2 * np.pi)
    dl = fu + ff / (2 * l)
    dR = (fv - fu * R) / l - R * ff / (2 * l**2)
    dq = (f2u1 - q * fu[1]) / l[1] + (f1u2 - q * fu[0]) / l[0] + f1f2 / l.prod() - q / 2 * (ff / l**2).sum()
    return np.concatenate([dl, dR, [dq]])


@pytest.mark.slow
def test_unequal_students_obey_the_paper_s_own_equations():
    start = {"length": [0.5, 2.0], "R": [0.4, 0.1], "q": [[1, 0.2], [0.2, 1]]}
    t = [0.5, 2, 8]
    printed = solve_ivp(perceptron_as_printed, (0, 8), [0.5, 2.0, 0.4, 0.1, 0.2], "DOP853", t, rtol=1e-12, atol=1e-12).y
    solution = theory.solve(Scenario(rule="perceptron", K=2, t=t, start=start))
    np.testing.assert_allclose(solution.length.values.T, printed[:2], rtol=1e-9)
    np.testing.assert_allclose(solution.R.values.T, printed[2:4], rtol=1e-8)
    np.testing.assert_allclose(solution.q.values[:, 0], printed[4], rtol=1e-8)


@pytest.mark.slow
def test_the_symmetric_reduction_equals_the_full_equations():
    K, t = 4, [0.5, 5.0]
    one = theory.solve(Scenario(rule="adatron", K=K, t=t, flip=0.1, start={"R": 0.1, "length": 2.0}))
    full = theory.solve(Scenario(rule="adatron", K=K, t=t, flip=0.1, start={"R": [0.1] * K, "length": [2.0] * K}))
    for name in ("R", "q", "length", "eps_g", "eps_g_weight_mean", "eps_g_majority_vote"):
        np.testing.assert_allclose(full[name], one[name], rtol=1e-8)


def test_large_times_follow_the_known_power_laws():
    for rule, power, constant in [("hebb", 1 / 2, 1 / np.sqrt(2 * np.pi)), ("perceptron", 1 / 3, 0.27807)]:
        found = last(Scenario(rule=rule, t=[1e6]), "eps_g") * 1e6**power
        assert abs(found - constant) < 2e-5, rule
    assert abs(last(Scenario(rule="adatron_textbook", t=[1e6]), "eps_g") * 1e6 - 1.5) < 1e-5


def test_the_printed_adatron_reaches_half_its_rate_only_with_label_noise():
    """Errors drive its length to eta/2; they vanish as 1/t and their effect as 1/t^3: the initial length matters."""
    length, eta = last(Scenario(rule="adatron", t=[1e6]), "length"), 0.8
    assert abs(length - 0.62016) < 1e-5
    rate = 1 / length  # at small angles d theta/dt = -(rate - rate^2/3) theta^2/pi
    assert abs(last(Scenario(rule="adatron", t=[1e6]), "eps_g") * 1e6 * (rate - rate**2 / 3) - 1) < 1e-4
    assert abs(last(Scenario(rule="adatron", eta=eta, flip=0.1, t=[1e4]), "length") - eta / 2) < 1e-6


@pytest.mark.slow
def test_students_end_up_at_60_degrees_around_the_teacher():
    """The transverse cosine of perceptrons and AdaTrons tends to 1/2; the AdaTron's as t^(-rate/(6 - 2 rate))."""
    for rule, late, distance in [("perceptron", 1e4, 3e-4), ("adatron", 1e6, 2e-4)]:
        solution = theory.solve(Scenario(rule=rule, K=2, t=[late])).isel(student=0)
        c = 1 - (1 - solution.q.item()) / np.sin(np.pi * solution.eps_g.item()) ** 2
        assert abs(c - 0.5) < distance, rule
    solution = theory.solve(Scenario(rule="adatron_textbook", K=2, t=[1e4, 1e6])).isel(student=0)
    away = 0.5 - (1 - (1 - solution.q.values) / np.sin(np.pi * solution.eps_g.values) ** 2)
    assert abs(np.log(away[0] / away[1]) / np.log(100) - 0.25) < 0.01


def test_the_precision_is_kept_to_t_1e6():
    """Textbook AdaTron at small angle is d theta/dt = -(1/pi - 1/(3 pi)) theta^2 = -2 theta^2/(3 pi) to relative
    theta^2, so that between t and 2t the inverse error grows by exactly 2t/3; errors of 1e-6 would show."""
    solution = theory.solve(Scenario(rule="adatron_textbook", K=2, t=[5e5, 1e6])).isel(student=0)
    inverse = 1 / solution.eps_g.values
    assert abs((inverse[1] - inverse[0]) / (2 * 5e5 / 3) - 1) < 1e-7
    assert np.all(np.diff(solution.eps_g_majority_vote) < 0)


def test_a_perfect_start_stays_where_the_rule_makes_no_errors():
    for rule in ("perceptron", "adatron"):
        assert last(Scenario(rule=rule, K=2, t=[10], start={"R": 1.0, "q": 1.0}), "eps_g") == 0.0
    hebb = last(Scenario(rule="hebb", t=[10], start={"R": 1.0}), "eps_g")
    expected = np.arctan2(np.sqrt(10), 1 + np.sqrt(2 / np.pi) * 10) / np.pi
    assert abs(hebb / expected - 1) < 1e-8


def test_pure_noise_teaches_nothing():
    for rule in ("hebb", "perceptron", "adatron"):
        assert abs(last(Scenario(rule=rule, t=[20], flip=0.5), "eps_g") - 0.5) < 1e-9


@pytest.mark.slow
def test_many_combinations_in_one_call_equal_one_by_one():
    """Batches of different sizes round differently: equal to tolerance, not bit for bit."""
    scenario = Scenario(rule=["hebb", "perceptron"], K=2, t=[1, 20], eta={"linspace": [0.5, 2, 4]}, flip=[0, 0.1])
    together = theory.solve(scenario)
    for rule, eta, flip in [("hebb", 0.5, 0.0), ("perceptron", 2.0, 0.1), ("perceptron", 1.0, 0.0)]:
        alone = theory.solve(Scenario(rule=rule, K=2, t=[1, 20], eta=eta, flip=flip))
        for name in ("R", "q", "length", "eps_g_majority_vote"):
            np.testing.assert_allclose(alone[name], together[name].sel(rule=rule, eta=eta, flip=flip), rtol=1e-8)


def reference(cell, times):
    """log l, y and c of a cell's students at each time, by SciPy to a relative 1e-13."""
    S = count_distinct_students(cell)
    rates = jax.jit(
        lambda *state: order_parameter_equations.compute_rates(cell.rule, True, Students(*state), cell.flip)
    )

    def field(_, y):
        log_length, versine, c = np.split(y, [S, 2 * S])
        return np.concatenate(rates(log_length, np.clip(versine, 0, 2), np.clip(c, -1, 1)))

    start = np.concatenate(make_initial_students(cell))
    atol = np.concatenate([np.full(S, 1e-14), np.full(S, 1e-60), np.full(start.size - 2 * S, 1e-14)])
    with jax.enable_x64(True):
        return solve_ivp(field, (0, times[-1]), start, "DOP853", times, rtol=1e-13, atol=atol).y.T


@pytest.mark.slow
@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule().has_closed_form])
@pytest.mark.parametrize("flip", [0.0, 0.1])
def test_solutions_have_eight_digits_at_all_times(rule, flip):
    """Also where the step is bounded by stability (label noise, large t), and at times between the solver's steps."""
    times = np.concatenate([[0.0], np.geomspace(0.01, 300, 90)])
    scenario = Scenario(rule=rule, K=2, t=times, eta=[0.5, 1.5], flip=flip, start={"R": [0.1, 0.6], "length": 2.0})
    for cell, students in zip(
        scenario.cells(), order_parameter_equations.solve_cells(list(scenario.cells()), times), strict=True
    ):
        log_length, y, c = np.split(reference(cell, times), [2, 4], axis=1)
        np.testing.assert_allclose(students.y, y, rtol=4e-9)
        np.testing.assert_allclose(students.log_length, log_length, atol=4e-9)
        np.testing.assert_allclose(students.c, c, atol=4e-9)


def test_many_combinations_share_few_programs():
    """One serves 2 to 8 combinations, one 33 to 128; more are cut, and 1 to 8 recorded times are one size."""
    order_parameter_equations.solve_batch.clear_cache()
    for count, times in [(130, 5), (70, 8), (128, 3), (2, 8), (3, 2), (5, 1), (8, 8), (65, 7)]:
        scenario = Scenario(rule="hebb", t=np.linspace(0, 1, times), eta={"linspace": [0.5, 2, count]})
        assert len(order_parameter_equations.solve_cells(list(scenario.cells()), scenario.t)) == count
    assert len(order_parameter_equations.solve_batch.programs) == 2


@pytest.mark.slow
def test_students_that_cannot_be_integrated_are_named(monkeypatch):
    monkeypatch.setattr(order_parameter_equations, "MAX_STEPS", 3)
    with pytest.raises(SolverError, match=r"perceptron \(eta = 1.234"):
        theory.solve(Scenario(rule="perceptron", t=[0.123, 77.7], eta=1.234, K=5, start={"R": [0.1] * 5}))


def test_angles_between_students_keep_their_precision():
    assert angle_between_students(1e-9, 1e-9, 0.5) == pytest.approx(1e-9, rel=1e-12)
    assert angle_between_students(0.3, 0.3, 1.0) == 0.0
    assert angle_between_students(0.2, 0.7, 0.4) == pytest.approx(
        np.arccos(np.cos(0.2) * np.cos(0.7) + 0.4 * np.sin(0.2) * np.sin(0.7)), rel=1e-12
    )
