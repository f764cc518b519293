"""Perceptrons of several tasks: what a config may say, what is refused, and the student at t = 0."""

from __future__ import annotations

import numpy as np
import pytest

from statmech import OnlineTasks, Scenario, ScenarioError
from statmech.scenarios.registry import scenario_from, schema

COMMON = {"rule": "perceptron", "tasks": 2, "N": 100, "t": [0, 5, 10], "switch": 5}


def scenario(**given):
    return OnlineTasks(**COMMON | given)


def cell_of(**given):
    return next(iter(scenario(**given).cells()))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"heads": "own"}, "heads: perceptrons have no second layer, and so no heads: leave them out"),
        ({"K": 3}, "K: several tasks are learnt by one student: leave out K"),
        ({"inputs": "sphere"}, "inputs: several tasks are learnt from gaussian inputs of equal variance only"),
        ({"drift": 0.1}, "drift: the teachers of several tasks do not drift: leave out drift"),
        ({"switch": 10}, "switch: switch = 10 must lie between 0 and the last time, t = 10"),
        ({"switch": None}, "protocol: blocked needs the key `switch`, the time at which the second task begins"),
        ({"overlap": -1.5}, "overlap: must be at least -1, not -1.5"),
        (
            {"overlap": [0, -0.8], "tasks": 3, "protocol": "interleaved", "switch": None},
            "overlap: 3 tasks cannot have the overlap -0.8 with each other: it is at least -1/2",
        ),
        ({"N": 2}, "N: N = 2 is too small for 2 teachers and a student: N must be at least tasks + 1"),
        (
            {"start": {"R": [0.8, 0.0]}, "overlap": [0, 0.9]},
            "start: no student has R = [0.8, 0.0] with teachers of overlap 0.9: the matrix of their cosines would not",
        ),
        ({"start": {"R": [0.1, 0.2, 0.3]}}, "start: R lists 3 tasks, but tasks = 2"),
        ({"start": {"length": 1e200}}, "start: length must lie between 1e-100 and 1e+100"),
        ({"rule": "bayes"}, 'start: the rule "bayes" starts from students shorter than 1, drawn students have length'),
        ({"rule": "bayes", "start": {"length": 2}}, 'start: the rule "bayes" starts from students shorter than 1, not'),
        ({"decay": 101}, "decay: decay = 101 is too large for N = 100"),
        ({"batch": 0}, "batch: must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_is_refused_by_one_sentence(given, sentence):
    with pytest.raises(ScenarioError) as refused:
        scenario(**given)
    assert len(refused.value.lines()) == 1
    assert refused.value.lines()[0].startswith(sentence)


def test_a_config_of_several_tasks_is_read_and_written():
    protocols = ["blocked", "interleaved", {"replay": 0.1}, {"blocks": [0, 4, 7]}]
    rules = {"rule": ["hebb", "bayes"], "assumed_flip": 0.1, "eta": [0.5, 1.0], "start": {"length": 0.5, "R": 0.1}}
    made = scenario_from(COMMON | rules | {"overlap": [0, 0.5], "protocol": protocols, "batch": [1, 4]})
    assert isinstance(made, OnlineTasks)
    assert scenario_from(made.config()) == made
    assert made.shape == {"rule": 2, "overlap": 2, "protocol": 4, "batch": 2, "eta": 2}
    assert "OnlineTasks" in str(schema())


@pytest.mark.parametrize("overlap", [-1.0, -0.3, 0.0, 0.7, 1.0])
def test_a_student_starts_with_its_length_and_its_overlaps(overlap):
    """Also beside teachers that are equal or opposite, whose cosines have no inverse."""
    R = [0.3, 0.3 * overlap]
    cell = cell_of(overlap=overlap, start={"length": 2.0, "R": R})
    [student] = cell.coordinates
    second = [overlap, np.sqrt(1 - overlap**2)]
    np.testing.assert_allclose(student @ student, 4.0)
    np.testing.assert_allclose([student[0], student[:2] @ second], np.multiply(2.0, R), atol=1e-15)


def test_one_task_has_the_random_numbers_of_one_teacher():
    """And no others: a second task, an overlap of two, a batch, a protocol and a switch have their own."""
    alone = {"rule": "perceptron", "N": 100, "t": [0, 5, 10]}
    for more in ({}, {"start": {"length": 0.5, "R": 0.2}}, {"eta": 0.5, "flip": 0.1, "decay": 0.2}):
        [teacher] = Scenario(**alone | more).cells()
        assert cell_of(tasks=1, **more).words() == teacher.words()
    others = [{}, {"overlap": 0.5}, {"protocol": {"replay": 0.1}}, {"switch": 4}, {"tasks": 1, "batch": 2}]
    assert len({cell_of(tasks=1).words(), *(cell_of(**given).words() for given in others)}) == 6
