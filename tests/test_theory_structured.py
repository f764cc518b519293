"""Online learning from inputs of unequal variance: known values, limits, exponents, and agreement with simulation."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr
from conftest import brief, disagreements

import simulate
import theory
from statmech import RULES, Scenario, ScenarioError
from statmech.errors import DivergedStudentError
from statmech.inputs.covariance_modes import condense_modes, make_modes
from statmech.inputs.input_distributions import inputs_from_config
from statmech.students.rules import RuleAverages
from theory.online import anisotropic_inputs, order_parameter_equations
from theory.online.anisotropic_inputs import (
    ModeEquations,
    StudentFields,
    compute_field_averages,
    compute_jacobian,
    compute_pair_field_average,
)

pytestmark = pytest.mark.quick

TWO = {"spectrum": [0.2, 1.8]}
UNLIKE = {"spectrum": [0.2, 1.8], "teacher": [0.9, 0.1]}
LENGTHS = "0.793800923 0.345746084 0.003146971"
PERCEPTRON, ADATRON, NOISY, DECAYING, T100 = "perceptron", "adatron", {"flip": 0.1}, {"decay": 0.05}, [1, 10, 100]
VALUES = [  # two routes of another program agree on them to 2e-12: eps_g, and lengths
    (TWO, {"rule": PERCEPTRON, "t": T100}, ".332737734 .136369029 .0601712003", "0.932342487 1.10865058 2.10655611"),
    (TWO, {"rule": PERCEPTRON, "margin": 0.5, "t": T100[:2]}, ".301134203 .119885478", "1.07099756 2.11541080"),
    (UNLIKE, {"rule": ADATRON, "t": T100, **NOISY}, ".430178672 .315537332 .292740817", "0.827351383 0.526784865 .5"),
    (UNLIKE, {"rule": "adatron_textbook", "t": T100, **DECAYING}, ".417566914 .235149315 .048557866", LENGTHS),
    (UNLIKE, {"rule": PERCEPTRON, "drift": 0.05, "t": [1, 10, 50]}, ".390763803 .199088345 .168316853", ""),
    (TWO, {"rule": PERCEPTRON, "K": 3, "t": [1, 5, 20], **NOISY}, ".364346832 .240326360 .211868989", ""),
    (TWO, {"rule": "hebb", "t": T100, **NOISY}, ".320340894 .146158020 .0978199421", ""),
]  # fmt: skip


def solved(inputs, **given):
    return theory.solve(Scenario(inputs=inputs, **given)).isel(student=0)


@pytest.mark.parametrize(("inputs", "given", "eps_g", "length"), VALUES)
def test_errors_and_lengths_take_their_known_values(inputs, given, eps_g, length):
    found = solved(inputs, **given)
    for name, text in (("eps_g", eps_g), ("length", length)):
        for value, digits in zip(found[name].values, text.split(), strict=bool(text)):
            assert value == pytest.approx(float(digits), abs=0.51 * 10.0 ** -len(digits.partition(".")[2]))


def test_cosines_of_students_take_their_known_values_in_weights_and_in_fields():
    found = solved(TWO, rule="perceptron", K=3, flip=0.1, t=[1, 5, 20])
    np.testing.assert_allclose(found.q, [0.239166123, 0.596246838, 0.865375288], atol=6e-10)
    np.testing.assert_allclose(found.q_field, [0.422789043, 0.808424580, 0.890549027], atol=6e-10)


def test_hebb_agrees_with_its_solution():
    t, omega, r = np.array([0.5, 20.0]), np.array([0.2, 1.8]), 0.8 * np.sqrt(2 / np.pi)
    found = solved(TWO, rule="hebb", flip=0.1, t=t.tolist())
    rho, across = np.outer(t, omega) * r, 0.5 * (1 + np.outer(t, omega))  # S = 1
    deviation = np.sqrt((across + 0.5 * rho**2) @ omega)
    np.testing.assert_allclose(found.length_field, deviation, rtol=1e-9)
    np.testing.assert_allclose(found.R_field, 0.5 * rho @ omega / deviation, rtol=1e-9)
    np.testing.assert_allclose(found.length, np.sqrt((across + 0.5 * rho**2).sum(axis=1)), rtol=1e-9)


SETTINGS = [
    {"rule": "adatron_textbook", "K": 2, "decay": 0.3},
    {"rule": "perceptron", "K": 2, "flip": 0.1, "drift": 0.05},
    {"rule": "perceptron", "margin": 0.3, "schedule": {"t0": 5}},
    {"rule": "bayes", "start": {"length": 0.3, "R": 0.3}},
    {"rule": "adatron", "K": 2, "start": {"length": [1, 2], "R": [0.1, 0.4], "q": [[1, 0.2], [0.2, 1]]}},
]


@pytest.mark.slow
@pytest.mark.parametrize("given", brief(SETTINGS))
def test_one_mode_has_the_rates_of_isotropic_inputs(given):
    """Rates of log l, y and c by the chain rule, at a state that is not special."""
    [cell] = Scenario(t=1, **given).cells()
    at, step = 0.7, 1e-5
    own = ModeEquations(cell, make_modes([1.0]))
    with jax.enable_x64(True):
        start = own.pack_state(own.start)
        values = start + 0.1 * np.sin(1 + np.arange(start.size)) * (np.abs(start) + 0.1)
        state = own.unpack_state(values)
        size = np.sqrt(state.m**2 + state.perpendicular[:, 0])[:, None]  # in units of the lengths
        state = state._replace(
            m=state.m / size[:, 0],
            delta=0 * size,
            perpendicular=state.perpendicular / size**2,
            pair_products=state.pair_products / size[0],
        )
        values = own.pack_state(state)
        here = own.describe_by_weights_and_fields(at, values)[0]
        rates = own.compute_rates(at, values)
        sides = [own.describe_by_weights_and_fields(at, values + side * step * rates)[0] for side in (1, -1)]
        changes = cell.time_dependence if cell.nondefault_time_dependence else None
        rule, closed = cell.get_rule_at(at), cell.rule.has_closed_form
        expected = order_parameter_equations.compute_rates(rule, closed, here, cell.flip, changes, has_pairs=cell.K > 1)
    for after, before, rate in zip(*sides, expected, strict=True):
        np.testing.assert_allclose((after - before) / (2 * step), rate, rtol=1e-8, atol=1e-9)


@pytest.mark.slow
def test_equal_variances_have_the_errors_of_isotropic_inputs():
    given = {"rule": ["hebb", "perceptron", "adatron"], "K": 3, "flip": [0, 0.1], "t": [0, 1, 30]}
    one, many = (theory.solve(Scenario(inputs=it, **given)) for it in ("gaussian", {"spectrum": [1, 1, 1]}))
    for name in one.data_vars:
        np.testing.assert_allclose(many[name], one[name], rtol=2e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("rule", brief(["perceptron", "hebb", "adatron", "adatron_textbook"]))
def test_closed_forms_of_scaled_rules_equal_the_quadrature(rule, monkeypatch):
    one, other = StudentFields(*np.array([[0.8], [0.7], [1.6]])), StudentFields(*np.array([[1.1], [0.4], [0.5]]))
    kind, c = RULES[rule](eta=0.7), np.array([0.3])
    with jax.enable_x64(True):
        closed = *compute_field_averages(kind, one, 0.1), compute_pair_field_average(kind, one, other, c, 0.1)
        monkeypatch.setattr(RULES[rule], "has_closed_form", False)
        numeric = *compute_field_averages(kind, one, 0.1), compute_pair_field_average(kind, one, other, c, 0.1)
    np.testing.assert_allclose(np.concatenate(closed), np.concatenate(numeric), rtol=1e-11)


def test_the_degree_of_a_rule_is_that_of_its_modulation():
    kappa = np.array([-1.3, -0.2, 0.4])
    for kind in (make() for make in RULES.values()):
        if kind.degree is not None:
            np.testing.assert_allclose(kind.g(3 * kappa, 0.8), 3**kind.degree * kind.g(kappa, 0.8), rtol=1e-14)
    assert RULES["perceptron"](margin=0.1).degree is None


def test_the_jacobian_is_that_of_the_rates():
    [cell] = Scenario(rule="perceptron", K=3, flip=0.1, drift=0.05, decay=0.02, t=1).cells()
    own = ModeEquations(cell, make_modes([0.2, 1, 1.8], teacher=[0.5, 0.3, 0.2]))
    values = own.pack_state(own.start)
    for _ in range(50):
        values = values + 0.02 * own.compute_rates(0.5, values)
    shifts = 1e-6 * np.eye(values.size)
    numeric = [
        (own.compute_rates(0.5, values + shift) - own.compute_rates(0.5, values - shift)) / 2e-6 for shift in shifts
    ]
    np.testing.assert_allclose(compute_jacobian(own, 0.5, values), np.transpose(numeric), atol=2e-6)


def test_a_table_is_solved_from_few_modes():
    every = make_modes(np.geomspace(1e-3, 1, 300) / np.mean(np.geomspace(1e-3, 1, 300)))
    few = condense_modes(every)
    assert len(few.variances) < 90
    for time in (0.1, 10, 1000):
        assert few.shares @ np.exp(-few.variances * time) == pytest.approx(
            every.shares @ np.exp(-every.variances * time), rel=1e-10
        )


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(1.5, 1.75), (2.0, 2.0)])
def test_errors_of_power_laws_fall_as_powers_of_time(a, b):
    """A student of its own errors learns at a rate that is the error itself: see docs/theory/online.md."""
    q = (b - 1) / a
    law = {"power_law": {"decay": a, "teacher_decay": b}}
    found = solved(law, rule="adatron_textbook", N=10**7, t=[0.1, 1, 10])
    np.testing.assert_allclose(np.diff(np.log10(found.eps_g)), -q / (2 + q), rtol=0.006)


SIMULATED = [
    ({"spectrum": [0.3, 1, 2.4], "shares": [0.4, 0.35, 0.25], "teacher": [0.6, 0.3, 0.1]}, 3),
    ({"spectrum": [0.3, 1, 2.4], "shares": [0.4, 0.35, 0.25], "teacher": "aligned"}, 1),
]


@pytest.fixture(scope="module")
def runs():
    """Runs of two rules with K = 3, and their scenario."""
    scenario = Scenario(
        rule=["perceptron", "adatron"], K=3, flip=0.1, N=500, t=[1, 4], seeds=32, inputs=SIMULATED[0][0]
    )
    return scenario, simulate.run(scenario)


@pytest.mark.slow
def test_theory_agrees_with_simulation(runs):
    scenario, simulation = runs
    assert {"R_field", "q_field", "length_field"} <= {*simulation.data_vars}
    np.testing.assert_allclose(simulation.eps_g, np.arccos(simulation.R_field) / np.pi, atol=1e-12)
    assert disagreements(simulation, theory.solve(scenario)) == []


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["length", "powers", "angle"])
def test_a_planted_error_of_theory_is_found(runs, mistake, monkeypatch):
    """A rule that sees the deviation of the field, a teacher of other powers, and the angle of weights."""
    scenario, simulation = runs
    if mistake == "length":
        honest = anisotropic_inputs.compute_field_averages

        def without_deviation(rule, fields, flip):
            return honest(
                rule, fields._replace(field_std_to_length_ratio=np.ones_like(fields.field_std_to_length_ratio)), flip
            )

        monkeypatch.setattr(anisotropic_inputs, "compute_field_averages", without_deviation)
    if mistake == "powers":
        monkeypatch.setattr(anisotropic_inputs, "condense_modes", lambda modes: replace(modes, teacher=modes.shares))
    found = theory.solve(scenario)
    if mistake == "angle":
        found["eps_g"] = np.arccos(found.R) / np.pi
    assert disagreements(simulation, found)


@pytest.mark.slow
def test_theory_agrees_with_simulation_of_a_power_law_and_of_changes():
    law = {"power_law": {"decay": 0.8, "teacher_decay": 1.0}}
    given = {"rule": ["hebb", "adatron_textbook"], "N": 500, "t": [1, 4], "seeds": 32, "decay": 0.05, "inputs": law}
    scenario = Scenario(**given)
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


@pytest.mark.slow
def test_axes_of_stated_powers_have_them_exactly():
    """At t = 0 with R = 1 the students are the teacher, so that the length of their fields is S."""
    for law in (UNLIKE, {"power_law": {"decay": 1.2, "teacher_decay": 2.0}}):
        run = simulate.run(Scenario(rule="hebb", N=20, t=[0], seeds=2, inputs=law, start={"R": 1.0}))
        modes = inputs_from_config(law).modes(20)
        np.testing.assert_allclose(run.length_field**2, modes.variances @ modes.teacher, rtol=1e-6)
        np.testing.assert_allclose(run.eps_g, 0, atol=1e-6)


@pytest.mark.slow
def test_theory_of_axis_by_axis_inputs_that_are_measured_has_more_variables_than_a_run():
    inputs = {"anisotropic": {"spectrum": [0.2, 1.8]}}
    scenario = Scenario(rule="hebb", N=20, t=[1], seeds=2, inputs=inputs)
    assert "R_field" not in simulate.run(scenario)
    found = theory.solve(scenario).isel(student=0)
    for name in ("eps_g", "R_field", "length"):
        np.testing.assert_array_equal(found[name], solved(TWO, rule="hebb", t=[1])[name])


def test_an_axis_of_inputs_has_the_fields_of_all():
    found = theory.solve(Scenario(rule="hebb", K=2, t=[1], inputs=["gaussian", TWO]))
    np.testing.assert_array_equal(found.R_field[0], found.R[0])
    assert np.all(found.R_field[1] != found.R[1])


@pytest.mark.slow
@pytest.mark.parametrize("noise", [{"flip": 0.3, "eta": 0.5}, {"flip": 0.1}], ids=str)
def test_a_student_that_shrinks_without_bound_keeps_its_angle(noise):
    """Rounding of its length, or of the mean of delta, in units of its length, would grow as that shrinks."""
    given = {"rule": "adatron_textbook", "t": [20, 2000], **noise}
    one, two = theory.solve(Scenario(**given)), solved({"spectrum": [1.0, 1.0]}, **given)
    assert two.length[-1] < 1e-50
    np.testing.assert_allclose(two.eps_g, one.eps_g.isel(student=0), rtol=1e-8)


ALL_CLOSED = {"rule": ["hebb", "perceptron", "adatron", "adatron_textbook"], "t": [0.1, 1, 10, 1000]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [{"K": 3}, {"K": 3, "flip": 0.1}, {"drift": 0.01, "decay": 0.02}, {"K": 2, "schedule": {"t0": 5}}],
    ids=lambda given: " ".join(given),
)
def test_isotropic_inputs_are_solved_without_jax_as_a_single_mode(given, monkeypatch):
    scenario = Scenario(**ALL_CLOSED, **given)
    expected = theory.solve(scenario)
    monkeypatch.setattr("theory.kinds.online_perceptron.has_jax", lambda: False)
    monkeypatch.delattr("theory.online.order_parameter_equations.solve_cells")
    xr.testing.assert_allclose(theory.solve(scenario), expected, rtol=1e-8)


def test_a_student_that_grows_without_bound_is_a_failure_with_its_name():
    with pytest.raises(DivergedStudentError, match=r"adatron_textbook .* has diverged"):
        solved(TWO, rule="adatron_textbook", eta=9, t=[1000])


def test_corrections_and_stationary_states_are_those_of_isotropic_inputs():
    with pytest.raises(ScenarioError, match="corrections of order 1/N need gaussian inputs, not spectrum"):
        Scenario(rule="hebb", t=1, N=10, inputs=TWO, corrections=True)
    with pytest.raises(ScenarioError, match="stationary states are supported for isotropic inputs only"):
        theory.stationary(Scenario(rule="perceptron", drift=0.01, t=1, inputs=TWO))


def test_averages_of_a_rule_without_closed_forms_have_its_learning_rate():
    fields = StudentFields(*np.array([[0.8], [0.7], [1.6]]))
    with jax.enable_x64(True):
        one, half = (compute_field_averages(RULES["bayes"](eta=eta), fields, 0.0) for eta in (1.0, 0.5))
    np.testing.assert_allclose(RuleAverages(*half), [0.5 * one.fu, 0.5 * one.response, 0.25 * one.ff], rtol=1e-12)
