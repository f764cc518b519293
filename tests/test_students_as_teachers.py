"""Online students of several teachers with a common truth, and of a teacher that is itself learning."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import disagreements

import simulate
import theory
from statmech import MovingTeacher, OnlineTasks, Scenario, ScenarioError
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.students.rules import RULES, Hebb, Perceptron
from theory.online import moving_teacher
from theory.online.moving_teacher import average_common_step, average_rule
from theory.online.order_parameter_equations import compute_rule_averages

pytestmark = pytest.mark.quick
TEACHERS = {"tasks": 3, "overlap": 0.5, "truth_cosine": 0.7, "protocol": "interleaved"}
MOVING = {"rule": "hebb", "moving_teacher": "adatron_textbook", "flip": 0.1, "eta": 0.3}


@pytest.mark.parametrize("protocol", ["interleaved", {"blocks": [0, 2, 5]}])
@pytest.mark.parametrize(("tasks", "overlap"), [(1, 0.5), (3, 0.5), (3, 0.2)])
def test_the_cosine_to_the_truth_is_that_to_the_mean_teacher_times_its_own(protocol, tasks, overlap):
    given = {"tasks": tasks, "overlap": overlap, "truth_cosine": 0.6, "t": [0, 1, 3, 20]}
    protocol = protocol if tasks > 1 else "interleaved"
    solved = theory.solve(OnlineTasks(rule=["hebb", "perceptron"], protocol=protocol, start={"R": 0.2}, **given))
    mean_length = np.sqrt(overlap + (1 - overlap) / tasks)
    expected = solved.R.mean("task") / mean_length * 0.6 / mean_length
    np.testing.assert_allclose(solved.R_truth, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(solved.eps_truth, np.arccos(solved.R_truth) / np.pi, rtol=0, atol=1e-12)


def test_several_teachers_in_turn_are_beaten_and_a_fixed_one_is_not():
    given = {"rule": ["hebb", "perceptron"], "eta": 0.1, "t": [20, 100], "truth_cosine": 0.7}
    several = theory.solve(OnlineTasks(tasks=5, overlap=0.5, protocol="interleaved", **given)).R_truth
    single = theory.solve(OnlineTasks(tasks=1, **given)).R_truth
    equal = theory.solve(OnlineTasks(tasks=5, overlap=1, protocol="interleaved", **given)).R_truth
    assert np.all(several.sel(t=100) > 0.7)
    assert np.all(single < 0.7)
    np.testing.assert_allclose(equal, single, rtol=1e-8)


def test_a_truth_changes_nothing_else():
    given = {key: value for key, value in TEACHERS.items() if key != "truth_cosine"}
    with_truth, without = (theory.solve(OnlineTasks(rule="perceptron", t=[1, 5], **case)) for case in (TEACHERS, given))
    np.testing.assert_allclose(with_truth.R, without.R, rtol=1e-11)
    assert set(with_truth.variables) - set(without.variables) == {"truth_cosine", "R_truth", "eps_truth"}


def teacher_runs(**changes):
    given = {"rule": ["hebb", "perceptron"], "flip": 0.1, "t": [1, 5, 20], "N": 400, "seeds": 64, **TEACHERS}
    scenario = OnlineTasks(**given | changes)
    return simulate.run(scenario), theory.solve(scenario)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{}, {"tasks": 1, "batch": 3}, {"engine": "vectors", "N": 100, "overlap": 0.8}], ids=str
)
def test_runs_with_a_truth_agree_with_theory(changes):
    assert not disagreements(*teacher_runs(**changes))


@pytest.mark.slow
def test_a_mean_teacher_taken_for_the_truth_is_noticed():
    simulation, solved = teacher_runs()
    solved["R_truth"] = solved.R_truth / 0.7
    assert disagreements(simulation, solved)


def test_a_cosine_that_teachers_cannot_have_is_refused():
    limit = np.sqrt(0.2 + 0.8 / 3)
    assert OnlineTasks(rule="hebb", t=1, **TEACHERS | {"overlap": 0.2, "truth_cosine": limit}).truth_cosine == limit
    for changes, words in (
        ({"overlap": 0.2}, r"at most 0\.68313 = sqrt\(overlap \+ \(1 - overlap\)/tasks\)"),
        ({"truth_cosine": 1.1}, "at most 1"),
        ({"truth_cosine": 0}, "greater than 0"),
        ({"eta": {"optimal": {}}}, "optimised"),
    ):
        with pytest.raises(ScenarioError, match=words):
            scenario_from({"rule": "hebb", "t": 1, **TEACHERS, **changes})


@pytest.mark.parametrize("rule", ["hebb", "perceptron", "adatron", "adatron_textbook"])
@pytest.mark.parametrize("y", [1.3, 0.4, 1e-4])
def test_averages_of_a_learner_are_those_of_one_teacher(rule, y):
    rule = RULES[rule](eta=0.7)
    with use_cpu_double_precision():
        expected = compute_rule_averages(rule, False, np.arccos(1 - y), np.float64(0.8), np.float64(0.1))
    np.testing.assert_allclose(average_rule(rule, 0.8, y, 0.1), np.array(expected, float), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("R1", "R2", "q"), [(0.6, 0.5, 0.8), (0.9, -0.2, 0.1), (0.99, 0.995, 0.98), (0.0, 0.0, 0.0)])
def test_products_of_both_steps_are_orthant_probabilities(R1, R2, q):
    """Labels of both learners and the student's mistakes are signs of three fields."""
    versines, lengths = 1 - np.array([R1, R2, q]), np.ones(2)
    hebb = average_common_step((Hebb(), Hebb(eta=0.5)), lengths, versines, 0.1)
    assert hebb == pytest.approx(0.5 * 0.8 * 2 / np.pi * np.arcsin(R1), abs=1e-11)
    mistakes = average_common_step((Hebb(), Perceptron()), lengths, versines, 0.1)
    assert mistakes == pytest.approx(0.8 / np.pi * (np.arcsin(R1) - np.arcsin(R2)), abs=1e-11)


def test_the_moving_teacher_is_a_student_of_the_truth():
    given = {"flip": 0.1, "t": [1, 10, 50]}
    pair = theory.solve(MovingTeacher(rule="perceptron", moving_teacher="adatron_textbook", teacher_eta=0.7, **given))
    single = theory.solve(Scenario(rule="adatron_textbook", eta=0.7, **given))
    np.testing.assert_allclose(pair.R_teacher, single.R.squeeze("student"), rtol=0, atol=1e-9)


def test_a_teacher_that_hardly_moves_is_not_beaten():
    start = {"R": [0.6, 0.0], "q": 0.0}
    solved = theory.solve(
        MovingTeacher(rule="hebb", moving_teacher="perceptron", teacher_eta=1e-9, start=start, t=[1, 10, 100])
    )
    np.testing.assert_allclose(solved.R, 0.6 * solved.q, atol=1e-7)


def test_a_moving_teacher_is_beaten():
    solved = theory.solve(MovingTeacher(**MOVING, t=[30, 100]))
    assert np.all(solved.eps_g < solved.eps_teacher)
    assert float(solved.R[0]) == pytest.approx(0.8846, abs=5e-5)


def moving_runs(**changes):
    given = {**MOVING, "rule": ["hebb", "perceptron"], "t": [1, 5, 20], "N": 400, "seeds": 64}
    scenario = MovingTeacher(**given | changes)
    return simulate.run(scenario), theory.solve(scenario)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"moving_teacher": "perceptron", "engine": "vectors", "N": 150}], ids=str)
def test_runs_with_a_moving_teacher_agree_with_theory(changes):
    assert not disagreements(*moving_runs(**changes))


@pytest.mark.slow
def test_inputs_that_both_learners_share_are_noticed(monkeypatch):
    """Without the common step, each would learn inputs of its own."""
    monkeypatch.setattr(moving_teacher, "average_common_step", lambda *given: 0.0)
    assert disagreements(*moving_runs())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"K": 2}, "remove K"),
        ({"decay": 0.1}, "remove decay"),
        ({"tasks": 2}, "moving_teacher"),
        ({"inputs": "rademacher"}, "remove inputs"),
        ({"rule": "bayes"}, "assumes a teacher that does not move"),
        ({"moving_teacher": "teacher"}, "learning rule"),
        ({"teacher_eta": 0}, "greater than 0"),
        ({"N": 2}, "at least 3"),
        ({"start": {"R": [0.9, 0.9], "q": -0.9}}, "start"),
    ],
)
def test_unsupported_moving_teachers_are_refused(changes, words):
    with pytest.raises(ScenarioError, match=words):
        scenario_from({**MOVING, "t": 1, **changes})
