"""Tests of the config keys of networks of fixed length, and of the reasons why a unit cannot find its teacher."""

from __future__ import annotations

import pytest

from statmech import FixedLengthNetwork, ScenarioError
from statmech.kinds.fixed_length_network import ScaledRate
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.students.label_teachers import DoorEdges, EdgeLabels, make_wedge
from statmech.students.sphere_units import CubicUnit, HermiteUnit

CONFIG = {
    "network": {"hermite": 3},
    "M": 1,
    "K": 1,
    "length": "fixed",
    "teacher": {"edges": [-1.1774100226, 0, 1.1774100226]},
    "error": "correlation",
    "eta": {"power": -0.5, "at_1": 1.93},
    "flip": [0, 0.1],
    "start": "drawn",
    "N": [100, 300, 1000],
    "until": {"R": 0.5},
    "seeds": 256,
}


def read(**keys):
    """The scenario of the config with other keys; None removes a key."""
    config = {name: value for name, value in {**CONFIG, **keys}.items() if value is not None}
    return scenario_from(config)


def read_task(**keys):
    """The task of the first cell."""
    return next(iter(read(**keys).cells())).task


def test_a_config_with_network_and_length_has_its_own_kind_and_survives_a_round_trip():
    scenario = read()
    assert type(scenario) is FixedLengthNetwork
    assert scenario.shape == {"flip": 2, "N": 3}
    assert scenario_from(scenario.config()) == scenario
    assert [cell.rate for cell in scenario.cells()][:3] == pytest.approx([0.193, 0.1114286, 0.0610319], rel=1e-6)
    assert read(eta=[0.1, {"power": -1, "at_1": 2}, "best"]).eta == (0.1, ScaledRate(-1, 2), "best")


def test_teachers_and_units_have_names_and_sections():
    assert read_task().unit == HermiteUnit(3)
    assert read_task(network="cubic").unit == CubicUnit()
    assert read_task(teacher="wedge").teacher == make_wedge()
    assert read_task(teacher={"wedge": 1.3}).teacher == EdgeLabels((-1.3, 0.0, 1.3))
    assert read_task(teacher="door", w=-1, network={"hermite": 2}).teacher == EdgeLabels(DoorEdges().edges, -1.0)
    assert read_task(teacher="unit", flip=0, noise=0.5).teacher is None
    assert read_task(teacher="door", network={"hermite": 2}, start={"v": -1}).v == -1
    assert read_task(trial_eta=0.1).trial == 0.1


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"network": {"hermite": 2}}, "have no Hermite coefficient in common: R stays near 0"),
        ({"network": {"hermite": 2}, "teacher": "door"}, "product of coefficients of order 2 below 0: reverse the"),
        ({"teacher": "wedge", "w": -1}, "have opposite signs, so that R becomes negative: reverse the labels by w: -1"),
        ({"teacher": {"wedge": 1.1774}, "network": "cubic"}, "almost no signal of order 1, 9.4e-06, which decides"),
        ({"teacher": "unit"}, "only labels are flipped"),
        ({"noise": 0.1}, "only outputs of the teacher `unit` have noise"),
        ({"teacher": "unit", "flip": 0, "start": {"v": -1}}, "moves away from a teacher unit with the same g"),
        ({"trial_eta": 0.1, "eta": "best"}, "best is not known with a trial step"),
        ({"until": None}, "give `until: {R: 0.5}` for the time of passage"),
        ({"until": {"R": 1}}, "must be less than 1, not 1"),
        ({"eta": "fast"}, "must be a number, best or {power: -0.5, at_1: 2}"),
        ({"eta": {"power": 1, "at_1": 0}}, "at_1 must be above 0, not 0"),
        ({"K": 2}, "must be at most 1, not 2"),
        ({"teacher": "edges"}, "belong together: teacher: {edges: [-1, 0, 1]}"),
        ({"teacher": {"wege": 2}}, "must be a name, {edges: [...]} or {wedge: width}"),
        ({"network": {"he": 2}}, "must be a name or {hermite: degree}"),
        ({"degree": 4}, "degree: is given twice: keep this or the one in network"),
        ({"until": {"R": 0.5, "t": 2}}, '"t" is not a key of until. Known: R. Write t at the top level'),
        ({"start": {"v": 2}}, "must be 1 or -1, not 2"),
        ({"dtype": "float32"}, "needs float64, because R changes by eta/N a step"),
        ({"dropout": 0.1}, "a network of fixed length has no dropout: remove it"),
    ],
)
def test_what_cannot_be_learnt_is_refused_in_one_sentence(keys, sentence):
    with pytest.raises(ScenarioError) as refusal:
        read(**keys)
    assert len(refusal.value.problems) == 1
    assert sentence in str(refusal.value)


def test_an_edge_with_ten_digits_counts_as_exact_and_a_wider_wedge_is_a_trap_that_may_be_tried():
    assert read(network="cubic", eta=0.09)
    assert read(network="cubic", eta=0.09, teacher={"wedge": 1.19})


def test_even_exponents_pass_by_the_size_of_the_cosine():
    assert read_task(teacher="door", network={"hermite": 2}, w=-1).is_even
    assert not read_task().is_even
    assert read_task(teacher="unit", network={"hermite": 2}, flip=0).is_even
