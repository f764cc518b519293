"""The equations of perceptrons of several tasks have the values of an independent integration."""

from __future__ import annotations

import numpy as np
import pytest

import theory
from statmech import OnlineTasks, Scenario

pytestmark = pytest.mark.quick

START = {"length": 1.0, "R": [0.1, 0.05]}
# errors on both tasks by DOP853 with a tolerance of 1e-12: perceptron, overlap 0.5, eta 1, a switch at t = 5
KNOWN = {
    1: {
        2: (0.2828474103, 0.3979106186),
        5: (0.1719855464, 0.3589453104),
        6: (0.2297223190, 0.2834357958),
        10: (0.3245566195, 0.1544377277),
    },
    5: {5: (0.0675936712, 0.3374460988), 10: (0.3284154300, 0.0554600800)},
}


def solved(**given):
    common = {"rule": "perceptron", "tasks": 2, "overlap": 0.5, "switch": 5, "t": [2, 5, 6, 10], "start": START}
    return theory.solve(OnlineTasks(**common | given))


@pytest.fixture(scope="module")
def blocked():
    return solved(batch=[*KNOWN], protocol=["blocked", {"replay": 0.3}]).eps_g


@pytest.mark.parametrize("batch", KNOWN)
def test_errors_on_both_tasks_around_the_switch_are_those_of_another_integrator(blocked, batch):
    known = KNOWN[batch]
    found = blocked.sel(batch=batch, protocol="blocked", t=[*known])
    np.testing.assert_allclose(found, [*known.values()], atol=0.51e-10)


def test_nothing_that_follows_a_switch_changes_what_was_before(blocked):
    before = blocked.sel(t=slice(0, 4))
    np.testing.assert_array_equal(before.sel(protocol="blocked"), before.sel(protocol="replay 0.3"))


RULES = {"hebb": {}, "perceptron": {"margin": 0.0}, "adatron": {}, "adatron_textbook": {}}


@pytest.mark.parametrize(
    "given", [{"rule": [*RULES]}, pytest.param({"rule": "bayes", "assumed_flip": 0.1}, marks=pytest.mark.slow)]
)
def test_one_task_has_the_equations_of_one_teacher(given):
    """To the tolerance of these."""
    common = {**given, "flip": [0, 0.1], "t": [0.5, 10, 1e3], "start": {"length": 0.5, "R": 0.1}}
    common |= {"t": [0.5, 10]} if given["rule"] == "bayes" else {}
    tasks, one = theory.solve(OnlineTasks(**common, tasks=1)), theory.solve(Scenario(**common))
    for name, other in (("eps_g", one.eps_g), ("length", one.length)):
        np.testing.assert_allclose(tasks[name].values.ravel(), other.values.ravel(), rtol=5e-9, err_msg=name)


@pytest.mark.slow
def test_equal_teachers_are_one_and_opposite_ones_have_the_other_answer():
    """However small the error: 1 - R is integrated for each task."""
    given = {"t": [5, 1e6], "switch": 50, "start": {"R": 0.0}, "rule": ["perceptron", "adatron_textbook"]}
    error = solved(**given, overlap=[1, -1]).eps_g
    same, opposite = error.sel(overlap=1), error.sel(overlap=-1)
    assert float(same.sel(t=1e6).min()) < 1e-5
    np.testing.assert_allclose(same.sel(task=2), same.sel(task=1), rtol=1e-12)
    np.testing.assert_allclose(opposite.sel(task=2, t=5), 1 - opposite.sel(task=1, t=5), rtol=1e-12)


def test_batches_are_single_examples_of_smaller_rates():
    """b examples at once move as far as b steps with eta/b and decay/b, to 1e-12."""
    common = {"rule": ["perceptron", "hebb"], "flip": 0.1, "protocol": "blocked"}
    batch = solved(**common, eta=2.0, decay=0.2, batch=8)
    single = solved(**common, eta=0.25, decay=0.025, t=[16, 40, 48, 80], switch=40)
    for name in ("eps_g", "R", "length"):
        np.testing.assert_allclose(batch[name].values, single[name].values, rtol=1e-12, atol=1e-12)


def test_interleaved_tasks_of_equal_starts_are_learnt_alike():
    """With three teachers that have the same overlap, errors are equal, and blocks end on the last task."""
    three = {"tasks": 3, "overlap": -0.4, "switch": None, "start": {"R": 0.0}, "rule": "hebb"}
    error = solved(**three, protocol=["interleaved", {"blocks": [0, 3, 6]}]).eps_g.sel(t=10)
    equal = error.sel(protocol="interleaved")
    np.testing.assert_allclose(equal, equal[0], rtol=1e-12)
    assert int(error.sel(protocol="blocks 0 3 6").argmin("task")) == 2


def test_hebbian_students_know_the_sum_of_all_examples():
    r"""Closed form: J grows by sqrt(2/pi) times the time spent on each teacher, and its noise by t/b."""
    time, length = np.array([5.0, 5.0]), 1.3
    found = solved(rule="hebb", batch=[1, 4], start={"length": length, "R": START["R"]}).sel(t=10)
    T, overlap = np.array([[1, 0.5], [0.5, 1]]), length * np.array(START["R"])
    gain = np.sqrt(2 / np.pi) * time
    for b in (1, 4):
        squared = length**2 + 2 * gain @ overlap + gain @ T @ gain + 10 / b
        np.testing.assert_allclose(found.sel(batch=b).length, np.sqrt(squared), rtol=1e-11)
        np.testing.assert_allclose(found.sel(batch=b).R, (overlap + T @ gain) / np.sqrt(squared), rtol=1e-11)
