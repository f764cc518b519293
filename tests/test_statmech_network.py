"""The config of a network: what it says, and what is refused with where, what and what is possible."""

from __future__ import annotations

import numpy as np
import pytest

import simulate
import theory
from statmech import Network, ScenarioError, load
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results import comparison
from statmech.results.tables import make_comparison_tables
from statmech.students.student_geometry import factorise_gram

pytestmark = pytest.mark.quick

GIVEN = {"network": "erf", "M": 2, "K": 2, "t": 1}
REFUSED = {
    "teacher that is not positive": ({"teacher": {"T": [[1, 2], [2, 1]]}}, "teacher: T is not positive semidefinite"),
    "teacher that is not symmetric": ({"teacher": {"T": [[1, 2], [1, 2]]}}, "teacher: T must be symmetric"),
    "teacher of another size": ({"teacher": {"T": np.eye(3)}}, "teacher: T is 3 x 3, but M = 2 needs 2 x 2"),
    "teacher of unequal rows": (
        {"teacher": {"T": [[1, 0], [0]]}},
        "rows of different lengths, 2, 1, but must be 2 x 2",
    ),
    "weights of another number": ({"teacher": {"w": [1, 2, 3]}}, "teacher: w has 3 values, but M = 2 units need 2"),
    "misspelt word": ({"teacher": {"T": "orthonorml"}}, 'teacher.T: must be "orthonormal", a number or a matrix'),
    "misspelt teacher": (
        {"teacher": "orthonorml"},
        'teacher: "orthonorml" is not a teacher. Did you mean "orthonormal"? Known: orthonormal.',
    ),
    "key in the wrong place": (
        {"teacher": {"M": 3}},
        "Known: T, w, output, network. Write M at the top level, not inside teacher.",
    ),
    "misspelt key": ({"teacher": {"t": 1}}, 'teacher.t: "t" is not a key of teacher. Did you mean "T"?'),
    "unknown output": ({"teacher": {"output": "sgn"}}, "teacher.output: must be 'linear' or 'sign'"),
    "unknown units of the teacher": ({"teacher": {"network": "tan"}}, 'teacher.network: "tan" is not an activation'),
    "impossible start": ({"start": {"R": 1, "Q": 1}}, "no 2 student units have these Q and R"),
    "start of another size": ({"start": {"R": [[1, 0]]}}, "start: R is 1 x 2, but K = 2, M = 2 needs 2 x 2"),
    "start of another word": (
        {"start": "drwan"},
        'start: "drwan" is not a start. Did you mean "drawn"? Known: drawn, learnt.',
    ),
    "start drawn and given": ({"start": {"drawn": 1, "Q": 1}}, "give either drawn, or Q and R"),
    "start beyond floats": ({"start": {"Q": 1e300}}, "Q must lie between -1e+100 and 1e+100, where float64"),
    "start of float32": ({"start": {"Q": 1e20}, "dtype": "float32"}, "Q must lie between -1e+10 and 1e+10"),
    "learnt by too few": ({"start": "learnt", "K": 1}, "K = 1 is less than M = 2"),
    "section that is a number": ({"teacher": 3}, "teacher: must be a section with keys among T, w, output, network"),
    "too small N": ({"N": 3}, "N: N = 3 is too small for M = 2 teacher units and K = 2 student units"),
    "no rate": ({"eta": 0}, "eta: must be greater than 0, not 0"),
    "negative noise": ({"noise": -1}, "noise: must be at least 0, not -1"),
    "decay beyond N": ({"decay": 5, "N": 4}, "decay: decay = 5 is too large for N = 4"),
    "unknown activation": ({"network": "tanh"}, 'network: "tanh" is not an activation. Known: erf, relu, linear.'),
    "too many units": ({"K": 65}, "K: must be at most 64, not 65"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_network_can_be_is_refused_with_a_sentence(name):
    given, sentence = REFUSED[name]
    with pytest.raises(ScenarioError) as refused:
        Network(**(GIVEN | given))
    assert sentence in str(refused.value)
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize("start", ["drawn", "learnt", {"drawn": 0.1, "v": 2}, {"Q": 1, "R": {"diagonal": 0.5}}])
def test_a_config_is_read_back_as_it_was_written(start):
    network = Network(**GIVEN, start=start, teacher={"T": [[1, 0.5], [0.5, 1]], "w": [1, -1], "output": "sign"})
    assert scenario_from(network.config()) == network
    assert None not in network.config()["teacher"].values()


def test_a_teacher_given_by_a_word_is_the_section_that_it_stands_for():
    word, section = (Network(**GIVEN, teacher=teacher) for teacher in ("orthonormal", {"T": "orthonormal", "w": 1}))
    assert word.config() == section.config()
    assert [cell.identity_hash() for cell in word.cells()] == [cell.identity_hash() for cell in section.cells()]


def test_numbers_stand_for_multiples_of_the_identity_and_of_one():
    """The config of the plateau in the shorthand and in matrices has the same cells, also by their random numbers."""
    short = load("plateau")
    matrices = {"Q": 0.25 * np.eye(2), "R": np.zeros((2, 2)), "v": np.ones(2)}
    written = Network(**(short.config() | {"start": matrices, "teacher": {"T": np.eye(2), "w": np.ones(2)}}))
    assert [cell.identity_hash() for cell in short.cells()] == [cell.identity_hash() for cell in written.cells()]


def test_overlaps_on_the_diagonal_fit_any_numbers_of_units():
    network = Network(network="erf", M=[1, 3], K=[1, 2, 4], t=1, start={"Q": 1, "R": {"diagonal": 0.5}})
    for cell in network.cells():
        assert np.array_equal(cell.units.R, 0.5 * np.eye(cell.K, cell.M))


@pytest.mark.slow
def test_learnt_students_have_no_error_and_further_units_vanish():
    network = Network(
        network="relu", M=2, K=[2, 3], t=0, start="learnt", teacher={"T": [[1, 0.9], [0.9, 2]], "w": [1, 3]}
    )
    assert abs(theory.solve(network).eps_g.values).max() < 1e-14


@pytest.mark.slow
def test_the_weights_of_the_teacher_are_coordinates_beside_its_number_of_units():
    network = Network(network="erf", t=0, K=1, zip={"M": [1, 2], "eta": [1, 2]}, teacher={"T": 2, "w": 3})
    solved = theory.solve(network)
    assert solved["teacher_T"].dims == ("M_eta", "teacher_unit", "other_teacher_unit")
    assert np.array_equal(solved["teacher_T"].isel(M_eta=1), 2 * np.eye(2))
    assert np.array_equal(np.isnan(solved["teacher_T"].isel(M_eta=0)), [[False, True], [True, True]])
    assert solved["w"].isel(M_eta=1).values.tolist() == [3, 3]


@pytest.mark.parametrize("w", [1, -1, [0.5, 2]])
def test_a_teacher_whose_label_never_changes_is_refused(w):
    labels = {"network": "relu", "M": 2, "K": 2, "t": 1}
    with pytest.raises(
        ScenarioError, match="gives all examples the same label, as a weighted sum of ReLU units is never"
    ):
        Network(**labels, teacher={"w": w, "output": "sign"})
    Network(**labels, teacher={"w": w})
    Network(**labels, teacher={"w": w, "output": "sign", "network": "erf"})
    Network(**labels, teacher={"w": [1, -1], "output": "sign"})


@pytest.mark.slow
def test_theory_leaves_out_what_has_no_equations_and_refuses_where_there_are_none():
    committee = {"teacher": {"output": "sign"}, "network": "erf", "t": 1, "K": 2}
    solved = theory.solve(Network(**committee, M=[1, 2]))
    assert np.isfinite(solved.eps_g.sel(M=1)).all()
    assert np.isnan(solved.eps_g.sel(M=2)).all()
    with pytest.raises(ScenarioError, match="labels of a teacher of several units, here M = 2"):
        theory.solve(Network(**committee, M=2))
    with pytest.raises(ScenarioError, match="teacher units with the students' activation only"):
        theory.solve(Network(network="relu", teacher={"network": "erf"}, t=1))


def test_only_a_start_that_distinguishes_the_units_is_judged():
    assert load("plateau").expected_deviation_reason
    assert not load("activations").expected_deviation_reason
    assert Network(**GIVEN).has_symmetric_start  # drawn units have equal overlaps
    assert not Network(**(GIVEN | {"K": 1})).has_symmetric_start
    same = Network(**GIVEN, start={"Q": [[1, 1], [1, 1]]})
    assert same.has_identical_start
    assert not same.expected_deviation_reason


@pytest.mark.slow
def test_what_is_not_judged_has_no_deviations():
    """From the symmetric plateau runs escape at random times, and the equations do not: z of 500,000 mean nothing."""
    plateau = load("plateau", ["N=40", "t=2", "seeds=4"])
    runs, solution = simulate.run(plateau), theory.solve(plateau)
    [table] = make_comparison_tables(runs, solution)
    assert (table.rows, table.notes) == ((), ())
    assert table.verdict.startswith("not judged: ")
    assert np.isnan(comparison.distances(runs, solution).to_dataarray()).all()
    judged = load("plateau", ["N=40", "t=2", "seeds=4", "start={Q: 0.25, R: {diagonal: 0.1}}"])
    [table] = make_comparison_tables(simulate.run(judged), theory.solve(judged))
    assert table.rows


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_root_of_a_singular_gram_matrix_is_one(rank):
    factors = np.random.default_rng(rank).normal(size=(4, rank))
    gram = factors @ factors.T
    rows = factorise_gram(gram)
    assert np.abs(rows @ rows.T - gram).max() < 1e-12 * np.abs(gram).max()
    assert np.array_equal(rows, np.tril(rows))
