"""Simulated losses on inputs of unequal variance: agreement with theory, and what is drawn and measured."""

from __future__ import annotations

import numpy as np
import pytest

import simulate
import theory
from simulate.convex.minimisation_and_separability import minimise_risk
from simulate.convex.training_data import draw_teacher_data
from simulate.kinds.empirical_risk import make_risk_problem
from statmech.errors import ScenarioError
from statmech.kinds.empirical_risk import Risk
from statmech.kinds.selection_and_vocabulary import scenario_from

TWO = {"spectrum": [0.2, 3.4], "shares": [0.75, 0.25]}
NAMES = ("R", "length", "R_field", "length_field", "V", "eps_g", "eps_y", "mse", "train_loss", "eps_t")
BIAS = 0.01  # of order 1/N, relative
SETTINGS = {
    "ridge with misfit": {
        "loss": "square",
        "teacher": "linear",
        "noise": 0.3,
        "lam": 0.1,
        "alpha": 1.5,
        "inputs": {**TWO, "teacher": [0.6, 0.4], "misfit": 0.3},
    },
    "logistic, aligned, flips": {
        "loss": "logistic",
        "flip": 0.1,
        "lam": 0.1,
        "alpha": 2,
        "inputs": {**TWO, "teacher": "aligned"},
    },
    "maximum margin, own penalties": {
        "loss": "squared_hinge",
        "lam": 0,
        "alpha": 2,
        "inputs": {**TWO, "ridge": [0.5, 2]},
    },
    "power law, logit": {
        "loss": "logistic",
        "teacher": "logit",
        "gain": 3,
        "lam": 0.1,
        "alpha": 1,
        "inputs": {"power_law": {"decay": 1.2, "teacher_decay": 1.5}},
    },
    "random features": {
        "loss": "square",
        "teacher": "linear",
        "lam": 0.1,
        "alpha": 1.25,
        "inputs": {"features": {"latent": 0.5}},
    },
    "directions without variance": {
        "loss": "square",
        "teacher": "linear",
        "noise": 0.3,
        "lam": 0,
        "alpha": 0.8,
        "inputs": {"spectrum": [0, 2]},
    },
}


def deviations(simulation, solution):
    """Standard errors of each mean from theory, beyond what finite N explains."""
    found = {}
    for name in NAMES:
        if name in simulation and name in solution and np.isfinite(value := float(solution[name])):
            runs = simulation[name].values
            beyond = np.maximum(np.abs(runs.mean() - value) - BIAS * abs(value), 0)
            found[name] = beyond / max(runs.std(ddof=1) / np.sqrt(len(runs)), 1e-12)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SETTINGS))
def test_runs_are_as_theory_says(name):
    scenario = Risk(N=100 if "features" in name else 200, seeds=12, **SETTINGS[name])
    simulation = simulate.run(scenario)
    assert bool(simulation.converged.all())
    found = deviations(simulation, theory.solve(scenario))
    assert len(found) >= 5
    assert max(found.values()) < 4.5, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("ridge with misfit", {**TWO, "teacher": [0.6, 0.4], "misfit": 0.1}),
        ("ridge with misfit", {**TWO, "teacher": [0.9, 0.1], "misfit": 0.3}),
        ("logistic, aligned, flips", {**TWO, "teacher": [0.9, 0.1]}),
        ("maximum margin, own penalties", {**TWO, "ridge": [2, 0.5]}),
        ("random features", {"features": {"latent": 0.6}}),
    ],
)
def test_theory_of_other_inputs_does_not_describe_the_runs(name, planted):
    scenario = Risk(N=150, seeds=12, **SETTINGS[name])
    other = theory.solve(Risk(N=150, **{**SETTINGS[name], "inputs": planted}))
    assert max(deviations(simulate.run(scenario), other).values()) > 6


# what is drawn


def data_of(**given):
    scenario = Risk(**{"loss": "square", "teacher": "linear", "lam": 0.1, "alpha": 2, "N": 40, **given})
    [cell] = scenario.cells()
    return cell, draw_teacher_data(cell, scenario.key, seed=1)


def test_the_teacher_has_the_stated_powers_and_its_field_the_variance_1():
    cell, data = data_of(inputs={**TWO, "teacher": [0.9, 0.1], "misfit": 0.3})
    square = data.teacher**2
    assert square[:30].sum() / square.sum() == pytest.approx(0.9, rel=1e-12)
    assert cell.inputs.axes(40).variances @ square / 40 == pytest.approx(0.7, rel=1e-12)
    many = data_of(inputs={**TWO, "teacher": [0.9, 0.1], "misfit": 0.3}, alpha=500)[1]
    assert np.mean(many.y**2) == pytest.approx(1, abs=4 * np.sqrt(2 / 20_000))
    seen = np.corrcoef(many.X @ many.teacher, many.y)[0, 1]
    assert seen == pytest.approx(np.sqrt(0.7), abs=0.02)


def test_examples_of_a_seed_are_the_first_of_a_longer_list():
    for inputs in (
        TWO,
        "rademacher",
        "sphere",
        {"power_law": {}},
        {"features": {"latent": 0.5}},
        {**TWO, "misfit": 0.3},
    ):
        few, more = (data_of(inputs=inputs, noise=0.2, alpha=alpha)[1] for alpha in (0.5, 2))
        assert np.array_equal(more.X[:20], few.X), inputs
        assert np.array_equal(more.y[:20], few.y), inputs


def test_gaussian_examples_scaled_axis_by_axis_are_those_of_a_spectrum():
    plain, scaled = data_of()[1], data_of(inputs=TWO)[1]
    assert np.allclose(scaled.X, plain.X * np.sqrt(np.repeat([0.2, 3.4], [30, 10])), rtol=1e-15)


def test_own_penalties_are_those_of_the_weights():
    cell, data = data_of(inputs={**TWO, "ridge": [0.5, 2]}, noise=0.2)
    w = minimise_risk(make_risk_problem(cell, data, 0.1), None, 0.1).w
    ridge = np.repeat([0.5, 2], [30, 10])
    X = data.X / np.sqrt(40)
    expected = np.linalg.solve(X.T @ X + 0.1 * np.diag(ridge), X.T @ data.y)
    assert np.allclose(w / np.sqrt(ridge), expected, rtol=1e-9, atol=1e-12)
    values = data.student_measure.measure_student(cell, expected)
    V = np.trace(np.diag(data.student_measure.variances) @ np.linalg.inv(X.T @ X + 0.1 * np.diag(ridge))) / 40
    assert simulate.run(
        Risk(
            **{
                "loss": "square",
                "teacher": "linear",
                "noise": 0.2,
                "lam": 0.1,
                "alpha": 2,
                "N": 40,
                "inputs": {**TWO, "ridge": [0.5, 2]},
                "seeds": 2,
            }
        )
    ).V[1] == pytest.approx(V, rel=1e-10)
    fresh = np.random.default_rng(0).standard_normal((100_000, 40)) * np.sqrt(data.student_measure.variances / 40)
    assert values["mse"] == pytest.approx(np.mean((fresh @ (expected - data.teacher)) ** 2), rel=0.03)


@pytest.fixture
def rows(tmp_path):
    table = np.random.default_rng(3).standard_normal((600, 12)) * np.linspace(0.3, 2, 12)
    table[:, 11] = table[:, 10]  # a direction without variance
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",")
    return str(tmp_path / "rows.csv")


def test_students_of_rows_are_measured_on_all_rows(rows):
    inputs = {"rows": rows}
    scenario = Risk(loss="logistic", lam=0.1, alpha=4, N=12, seeds=3, inputs=inputs)
    run, solution = simulate.run(scenario), theory.solve(scenario)
    assert bool(run.converged.all())
    assert np.all(np.abs(run.eps_g * 600 - np.rint(run.eps_g * 600)) < 1e-9)
    assert abs(float(run.R_field.mean() - solution.R_field)) < 0.05
    assert np.isfinite(solution.R)
    _, data = data_of(inputs=inputs, N=12)
    assert np.count_nonzero(data.student_measure.varying_axes) == 11
    assert np.mean(data.student_measure.u**2) == pytest.approx(1, rel=1e-12)
    with pytest.raises(ScenarioError, match="has 12 columns, so N must be 12, not 10"):
        simulate.run(Risk(loss="logistic", alpha=4, N=10, seeds=2, inputs=inputs))


def test_inputs_are_an_axis_and_gaussian_ones_are_left_out_of_configs():
    plain = Risk(loss="square", alpha=1)
    assert "inputs" not in plain.config()
    assert Risk(loss="square", alpha=1, inputs="gaussian").config() == plain.config()
    both = Risk(loss="square", alpha=1, lam=0.1, N=30, seeds=2, inputs=["gaussian", TWO])
    assert scenario_from(both.config()).config() == both.config()
    run, alone = simulate.run(both), simulate.run(Risk(loss="square", alpha=1, lam=0.1, N=30, seeds=2))
    assert np.array_equal(run.R.isel(inputs=0), alone.R)
    assert np.array_equal(run.R_field.isel(inputs=0), alone.R)
    solved = theory.solve(both)
    assert np.array_equal(solved.R.isel(inputs=0), theory.solve(Risk(loss="square", alpha=1, lam=0.1, N=30)).R)
    assert np.isfinite(solved.R_bayes[0])
    assert np.isnan(solved.R_bayes[1])


def test_widths_of_random_features_are_a_coordinate():
    laws = [{"features": {"latent": D}} for D in (2.0, 0.5)]
    scenario = Risk(loss="square", teacher="linear", lam=0.1, zip=[{"alpha": [6, 1.5], "inputs": laws}], N=20, seeds=2)
    assert np.array_equal(simulate.run(scenario).latent, [2.0, 0.5])
    assert theory.solve(scenario).latent.dims == theory.solve(scenario).mse.dims
