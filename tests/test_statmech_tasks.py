"""Several tasks of perceptrons and of networks: what a config may say, what is refused, and the student at t = 0."""

from __future__ import annotations

import numpy as np
import pytest

from statmech import Scenario, ScenarioError
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.parameters.task_protocols import CyclicBlocksProtocol, ReplayProtocol

COMMON = {"tasks": 2, "N": 100, "t": [0, 5, 10], "switch": 5}
LEARNING = {"perceptron": {"rule": "perceptron"}, "network": {"network": "erf", "K": 2}}
MATRICES = {"R": [[0.8, 0.0], [0.0, 0.8]], "Q": 1.0}

each_kind = pytest.mark.parametrize("learning", LEARNING)


def scenario(learning, **given):
    return scenario_from(COMMON | LEARNING[learning] | given)


def cell_of(learning, **given):
    return next(iter(scenario(learning, **given).cells()))


OF_BOTH = [
    ({"switch": None}, "protocol: blocked needs the key `switch`, the time at which the second task begins"),
    ({"switch": 10}, "switch: switch = 10 must lie between 0 and the last time, t = 10"),
    ({"protocol": "interleaved"}, "switch: is the time of the protocols blocked, replay and optimal: remove it"),
    ({"protocol": {"replay": 1.5}}, "protocol: the fraction of replay must lie between 0 and 1, not be 1.5"),
    ({"tasks": 3}, "protocol: blocked requires two tasks, not 3: use blocks or interleaved"),
    (
        {"protocol": {"blocks": [0, 10]}, "switch": None},
        "protocol: the last block begins at 10, not before the last time, t = 10",
    ),
    (
        {"protocol": {"blocks": [0, 5]}, "switch": None, "tasks": 3},
        "protocol: blocks names the start of 2 blocks, but there are 3 tasks",
    ),
    (
        {"protocol": {"blocks": [1, 5]}, "switch": None},
        "protocol: blocks is a list of the times at which blocks begin: 0 and later ones in increasing order",
    ),
    ({"protocol": "block"}, 'protocol: "block" is not a protocol. Did you mean "blocks"? Known: '),
    (
        {"protocol": {"replay": [0.1]}},
        "protocol: a protocol must be blocked, interleaved, {replay: fraction}, {blocks: [0, ...]} or optimal",
    ),
    ({"overlap": 1.5}, "overlap: must be at most 1, not 1.5"),
    (
        {"overlap": [0, -0.8], "tasks": 3, "protocol": "interleaved", "switch": None},
        "overlap: 3 tasks cannot have the overlap -0.8: it must be at least -1/2",
    ),
    ({"tasks": {"number": 2}}, "tasks: must be the number of tasks: write overlap and heads at the top level"),
    ({"tasks": 17}, "tasks: must be at most 16, not 17"),
    ({"batch": 0}, "batch: must be at least 1, not 0"),
]
OF_PERCEPTRONS = [
    ({"heads": "own"}, "heads: perceptrons have no second layer, and therefore no heads: remove heads"),
    ({"K": 3}, "K: K is not supported with several tasks, which one student learns: remove K"),
    ({"inputs": "sphere"}, "inputs: several tasks are learnt from gaussian inputs of equal variance only"),
    ({"drift": 0.1}, "drift: the teachers of several tasks do not drift: remove drift"),
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
]
OF_NETWORKS = [
    ({"overlap": [0, 0.9], "start": MATRICES}, "start: no 2 student units have these Q and R with the teacher's T"),
    ({"start": MATRICES | {"v": [[1, 1]]}}, "start: v is 1 x 2, but heads = 2, K = 2 needs 2 x 2"),
    ({"start": {"along": [[1, 0]]}}, "start: along is 1 x 2, but K = 2, number of all teacher units = 2 needs 2 x 2"),
    ({"start": {"along": [[1, 0], [0, 1]], "R": 0}}, "start: along determines R at every overlap"),
    ({"N": 5, "M": 2}, "N: N = 5 is too small for 2 tasks of M = 2 teacher units and K = 2 student units"),
    ({"teacher": {"output": "sign"}}, "teacher: networks of several tasks learn outputs, not labels"),
    ({"inputs": {"spectrum": [0.5, 1.5]}}, "inputs: networks of several tasks learn from gaussian inputs of equal"),
]


@pytest.mark.parametrize(
    ("learning", "given", "sentence"),
    [
        *((learning, *one) for learning in LEARNING for one in OF_BOTH),
        *(("perceptron", *one) for one in OF_PERCEPTRONS),
        *(("network", *one) for one in OF_NETWORKS),
    ],
)
def test_what_cannot_be_is_refused_by_one_sentence(learning, given, sentence):
    with pytest.raises(ScenarioError) as refused:
        scenario(learning, **given)
    assert len(refused.value.lines()) == 1
    assert refused.value.lines()[0].startswith(sentence)


def test_a_gram_matrix_is_refused_at_the_overlap_where_no_units_have_it():
    """T is positive there, and only R makes it impossible."""
    with pytest.raises(ScenarioError, match=r"at the overlap 0\.9 of the tasks"):
        scenario("network", overlap=[0, 0.9], start=MATRICES)
    assert scenario("network", overlap=[0, 0.5], start={**MATRICES, "R": 0.4}).shape == {"overlap": 2}


STARTS = {
    "perceptron": {"length": 0.5, "R": 0.1},
    "network": [{"name": "one", "along": [[0.3, 0], [0, 0]], "v": [[0.5, 0], [0.5, 0.5]]}, "drawn"],
}


@each_kind
def test_every_form_of_a_protocol_and_a_start_is_read_and_written(learning):
    protocols = ["blocked", "interleaved", {"replay": 0.1}, {"blocks": [0, 4, 7]}]
    made = scenario(learning, overlap=[0, 0.5], protocol=protocols, start=STARTS[learning], batch=[1, 4])
    assert scenario_from(made.config()) == made
    starts = {"start": 2} if learning == "network" else {}
    assert made.shape == {"overlap": 2, "protocol": 4, **starts, "batch": 2}


def test_blocks_present_one_task_after_the_other_and_begin_again():
    pieces = CyclicBlocksProtocol((0.0, 4.0, 7.0)).pieces(2, None)
    assert pieces.at(np.array([0.0, 3.9, 4.0, 7.0])).tolist() == [[1, 0], [1, 0], [0, 1], [1, 0]]
    assert ReplayProtocol(0.1).pieces(2, 4.0).at(np.array([3.9, 4.0])).tolist() == [[1, 0], [0.1, 0.9]]


@each_kind
def test_random_numbers_are_named_by_the_pieces_of_a_protocol(learning):
    """Blocks that begin at the switch are the blocked protocol; an overlap, a batch and a share are not."""
    words = cell_of(learning).identity_hash()
    assert cell_of(learning, protocol={"blocks": [0, 5]}, switch=None).identity_hash() == words
    others = [{"overlap": 0.1}, {"batch": 2}, {"protocol": {"replay": 0.1}}, {"switch": 4}, {"tasks": 1}]
    others += [{"heads": "shared"}] if learning == "network" else []
    assert len({words, *(cell_of(learning, **given).identity_hash() for given in others)}) == 1 + len(others)


def test_one_task_has_the_random_numbers_of_one_teacher():
    alone = {"rule": "perceptron", "N": 100, "t": [0, 5, 10]}
    for more in ({}, {"start": {"length": 0.5, "R": 0.2}}, {"eta": 0.5, "flip": 0.1, "decay": 0.2}):
        [teacher] = Scenario(**alone | more).cells()
        assert cell_of("perceptron", tasks=1, **more).identity_hash() == teacher.identity_hash()


@pytest.mark.parametrize("overlap", [-1.0, -0.3, 0.0, 0.7, 1.0])
def test_a_student_starts_with_its_length_and_its_overlaps(overlap):
    """Also beside teachers that are equal or opposite, whose cosines have no inverse."""
    R = [0.3, 0.3 * overlap]
    cell = cell_of("perceptron", overlap=overlap, start={"length": 2.0, "R": R})
    [student] = cell.start_coordinates
    second = [overlap, np.sqrt(1 - overlap**2)]
    np.testing.assert_allclose(student @ student, 4.0)
    np.testing.assert_allclose([student[0], student[:2] @ second], np.multiply(2.0, R), atol=1e-15)


def test_units_of_one_student_start_at_every_overlap():
    """Their products with the second task's units are those of the same vectors."""
    along = np.array([[0.3, 0.1], [0.05, 0.2]])
    for overlap in (0.0, 0.6):
        R = cell_of("network", overlap=overlap, start={"along": along.tolist(), "Q": 0.25}).units.R
        np.testing.assert_allclose(R[:, 0], along[:, 0])
        np.testing.assert_allclose(R[:, 1], overlap * along[:, 0] + np.sqrt(1 - overlap**2) * along[:, 1])


def test_units_of_the_same_number_overlap_and_a_task_has_weights_on_its_own():
    cell = cell_of("network", M=2, overlap=0.5, teacher={"w": [1, 2]})
    np.testing.assert_array_equal(cell.T, [[1, 0, 0.5, 0], [0, 1, 0, 0.5], [0.5, 0, 1, 0], [0, 0.5, 0, 1]])
    np.testing.assert_array_equal(cell.w, [[1, 2, 0, 0], [0, 0, 1, 2]])
