"""Figures of descents at a single epoch: lines of sampled theory are smooth, and no panel compares unlike epochs."""

from __future__ import annotations

import numpy as np
import pytest

import figures
import theory
from figures import captions, curves
from statmech import Descent, Scenario, run
from theory.stored_examples.descent_dynamics import TARGET_STANDARD_ERRORS

pytestmark = pytest.mark.quick
GIVEN = {"descent": "momentum", "loss": "logistic", "alpha": 2, "flip": 0.1, "N": 50, "seeds": 2}


@pytest.fixture(scope="module")
def at_one_epoch():
    return run(Descent(**GIVEN, momentum=[0, 0.5, 0.9], epochs=20))


@pytest.mark.slow
def test_lines_of_sampled_theory_are_smooth_and_within_a_few_standard_errors(at_one_epoch):
    line = theory.smooth(at_one_epoch.scenario, "momentum")
    grid, solved = np.linspace(0, 0.9, 60), at_one_epoch.theory
    for name in ("R", "eps_g", "eps_t"):
        bends = np.diff(np.interp(grid, line.momentum, line[name].values.ravel()), 2)
        seen = bends[np.abs(bends) > 1e-3 * np.ptp(line[name].values)]  # others are below the width of a line
        assert np.count_nonzero(np.diff(np.sign(seen))) <= 1, name
        at = line[name].interp(momentum=solved.momentum)
        error = np.hypot(solved[f"{name}_error"], 10 * TARGET_STANDARD_ERRORS[name])
        assert (np.abs(at - solved[name]) < 3 * error).all(), name


def count_errors_off(line, exact_values, name):
    deviations = line[name].interp(momentum=exact_values.momentum.values) - exact_values[name]
    return float((np.abs(deviations) / np.maximum(exact_values[f"{name}_error"], 1e-9)).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["R", "eps_g", "eps_t"])
def test_drawn_lines_of_sampled_theory_pass_within_two_standard_errors_of_stored_values(at_one_epoch, name):
    exact_values = at_one_epoch.theory
    line = curves.add_dense_lines(at_one_epoch, "momentum").lines
    assert count_errors_off(line, exact_values, name) <= 2.001
    shifted_line = line.assign({name: line[name] + 3 * float(exact_values[f"{name}_error"].max())})
    assert count_errors_off(shifted_line, exact_values, name) > 2.001


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["momentum", "epochs"])
def test_between_stored_values_lines_of_training_errors_are_nearly_as_accurate(axis):
    values = {"momentum": [0, 0.3, 0.6, 0.9], "epochs": [1, 5, 10, 15, 20, 30, 40, 50]}
    further = {"momentum": [0.15, 0.45, 0.7], "epochs": [7, 12, 25, 35, 45]}
    given = {"descent": "momentum", "loss": "logistic", "alpha": 2, "N": 50}
    own_theory = theory.solve(Descent(**given | values))
    line = theory.smooth(Descent(**given | values), axis, own_theory=own_theory)
    between = theory.solve(Descent(**given | values | {axis: further[axis]}))
    deviation = (line.interp({axis: further[axis]}) - between).eps_t
    assert float(np.abs(deviation).max()) < 4 * TARGET_STANDARD_ERRORS["eps_t"]


@pytest.mark.slow
def test_lines_follow_stored_values_rather_than_the_less_accurate_samples(at_one_epoch):
    shifted_line = at_one_epoch.theory.assign(eps_g=at_one_epoch.theory.eps_g + 0.01)
    line = theory.smooth(at_one_epoch.scenario, "momentum", own_theory=shifted_line)
    assert count_errors_off(line, shifted_line, "eps_g") <= 2.001
    assert count_errors_off(theory.smooth(at_one_epoch.scenario, "momentum"), shifted_line, "eps_g") > 2.001


@pytest.mark.slow
def test_the_best_epoch_of_a_run_is_not_drawn_as_it_is_that_of_all_steps_in_theory(at_one_epoch):
    assert "best_epoch" in at_one_epoch.simulation
    assert "best_epoch" not in curves.get_chart_variables(at_one_epoch.scenario)
    labels = [ax.get_ylabel() for ax in figures.draw("overlay", at_one_epoch).axes]
    assert labels == ["$R$", r"$\epsilon_g$", r"$\epsilon_t$"]


@pytest.mark.slow
def test_a_caption_says_that_lines_of_sampled_theory_are_splines(at_one_epoch):
    said = "Theory is sampled: its lines are splines within two standard errors of samples."
    assert said in captions.make_caption(at_one_epoch, "overlay")
    assert said not in captions.make_caption(run(Scenario(rule="hebb", N=50, seeds=2, t=[1, 2])), "overlay")
