"""Bad scenarios get one clear sentence each; good ones keep their meaning when written down and read again."""

from __future__ import annotations

import json
from inspect import signature

import numpy as np
import pytest
from ruamel.yaml import YAML

from statmech import Boosting, Risk, Scenario, ScenarioError, StoredExamples, learning_curve
from statmech.config.config_files import find_config, list_shipped_configs, load
from statmech.inputs.input_distributions import INPUTS
from statmech.keys.scenario import get_kinds
from statmech.kinds.selection_and_vocabulary import make_config_schema, scenario_from
from statmech.results import export_and_citations

GOOD = {"rule": "perceptron", "t": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rule": "adtron"}, '"adtron" is not a learning rule. Did you mean "adatron"? Known: hebb, '),
        ({"rule": ["hebb", "adtron"]}, r'rule[1]: "adtron" is not a learning rule'),
        ({"rule": 3}, "rule: must be a string, not 3"),
        ({"Kk": 3}, '"Kk" is not a key of a config. Did you mean "K"?'),
        ({"K": 0}, "K: must be at least 1, not 0"),
        ({"K": [1, 0]}, "K[1]: must be at least 1, not 0"),
        ({"K": 2.5}, "K: must be a whole number, not 2.5"),
        ({"K": True}, "K: must be a number, not true"),
        ({"K": []}, "K: a list needs at least one value"),
        ({"K": [3, 3]}, "K: the axis has duplicate values"),
        ({"N": -5}, "N: must be at least 2, not -5"),
        ({"N": 3, "K": 3}, "N = 3 is too small for a teacher and K = 3 students: N must be at least K + 1"),
        ({"N": "many"}, 'N: must be a number, not "many"'),
        ({"flip": 0.6}, "flip: must be at most 0.5, not 0.6"),
        ({"flip": -0.1}, "flip: must be at least 0, not -0.1"),
        ({"drift": -1}, "drift: must be at least 0, not -1"),
        ({"decay": [0, -1]}, "decay[1]: must be at least 0, not -1"),
        ({"drift": [0, 30], "N": 20}, "drift = 30 is too large for N = 20: 1 - drift/N would be negative"),
        ({"decay": 30, "N": [100, 20]}, "decay = 30 is too large for N = 20: 1 - decay/N would be negative"),
        ({"schedule": {"t0": 0}}, "schedule: must be greater than 0, not 0"),
        ({"schedule": {"t0": [1, -1]}}, "schedule[1]: must be greater than 0, not -1"),
        (
            {"schedule": {"tau": 1}},
            "schedule: must be written schedule: {t0: 5}, for a learning rate of eta / (1 + t/t0)",
        ),
        ({"schedule": "fast"}, 'eta / (1 + t/t0), not "fast"'),
        ({"eta": 0}, "eta: must be greater than 0, not 0"),
        ({"eta": float("nan")}, "eta: must be a finite number"),
        ({"rule": ["hebb", "perceptron"], "margin": [0, 0.5]}, 'the rule "hebb" has no margin'),
        ({"rule": "hebb", "margin": 0.5}, 'the rule "hebb" has no margin. It is a parameter of: perceptron.'),
        ({"t": []}, "t: a list needs at least one value"),
        ({"t": [2, 1]}, "t: times must increase"),
        ({"t": [1, 1]}, "t: times must increase"),
        ({"t": [-1, 1]}, "t[0]: must be at least 0, not -1"),
        ({"seeds": 0}, "seeds: must be at least 1, not 0"),
        ({"start": "somewhere"}, 'start: "somewhere" is not a start. Known: drawn.'),
        ({"start": {"r": 0.5}}, '"r" is not a key of start. Did you mean "R"?'),
        ({"start": {"R": 1.5}}, "start.R: must be at most 1, not 1.5"),
        ({"start": {"length": 0}}, "start.length: must be greater than 0, not 0"),
        ({"start": {"R": [0.1, 0.2]}, "K": 3}, "R lists 2 students, but K = 3"),
        ({"start": {"q": [[1, 0.1], [0.2, 1]]}, "K": 2}, "q must be symmetric"),
        ({"start": {"q": [[1, 0.1]]}, "K": 2}, "q is 1 x 2, but K = 2 students need 2 x 2"),
        ({"start": {"R": 0.9, "q": 0.0}, "K": 3}, "no 3 students have R = 0.9 and q = 0.0"),
        ({"dtype": "float16"}, "dtype: must be 'float64' or 'float32'"),
        ({"engine": "magic"}, "engine: must be 'gram' or 'vectors'"),
        ({"eta": {"linspace": [0, 1]}}, "linspace requires [start, stop, number], not [0, 1]"),
        ({"eta": {"lin": [0, 1, 5]}}, "an axis must be a list or one of linspace, logspace, geomspace"),
        ({"eta": {"geomspace": [0, 1, 5]}}, "geomspace requires [start, stop, number]"),
        ({"zip": {"eta": [1, 2], "flip": [0]}}, "zipped axes must have equal lengths, but eta has 2, flip has 1"),
        ({"zip": {"eta": [1, 2], "seeds": [1, 2]}}, '"seeds" is not an axis'),
        ({"zip": {"eta": [1, 2]}}, "a zip group must contain two or more axes"),
        ({"eta": 1, "zip": {"eta": [1, 2], "flip": [0, 0.1]}}, "`eta` is given both inside and outside `zip`"),
    ],
)
def test_a_bad_scenario_is_refused_with_the_possible_values(given, message):
    with pytest.raises(ScenarioError) as refused:
        Scenario(**{**GOOD, **given})
    assert message in str(refused.value)


def test_all_problems_are_reported_at_once():
    with pytest.raises(ScenarioError) as refused:
        Scenario(rule="hebbb", K=0, flip=2, t=[1])
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize(
    "given",
    [
        {"K": [1, 3], "eta": {"linspace": [0.5, 1, 3]}, "N": np.array([100, 200])},
        {"zip": [{"eta": [1, 2], "flip": [0, 0.1]}], "K": [1, 2]},
        {"start": {"R": [0.1, 0.2], "length": 2.0}, "K": 2, "gram": True, "engine": "vectors"},
        {"rule": ["hebb", "perceptron"], "t": {"logspace": [-1, 2, 4]}},
        {"schedule": {"t0": 5}, "drift": 0.1, "decay": [0, 0.1]},
        {"schedule": {"t0": {"linspace": [1, 2, 3]}}, "corrections": True},
        {"zip": {"schedule": [{"t0": 1}, {"t0": 2}], "eta": [1, 2]}},
    ],
)
def test_a_scenario_survives_a_round_trip_through_yaml(given):
    scenario = Scenario(**{**GOOD, **given})
    assert Scenario(**scenario.config()) == scenario


def test_combinations_run_over_the_product_and_along_zipped_axes():
    scenario = Scenario(**GOOD, K=[1, 2], zip={"eta": [1, 2, 3], "flip": [0, 0.1, 0.2]})
    assert scenario.shape == {"K": 2, "eta_flip": 3}
    cells = [(cell.K, cell.rule.eta, cell.flip, cell.index) for cell in scenario.cells()]
    assert cells[4] == (2, 2.0, 0.1, (1, 1))
    assert len(cells) == 6


def test_the_random_numbers_of_a_combination_depend_on_its_parameters_and_not_its_place():
    [alone] = Scenario(**GOOD, eta=0.5).cells()
    swept = list(Scenario(**GOOD, eta=[0.1, 0.5], K=[1]).cells())
    assert alone.identity_hash() == swept[1].identity_hash() != swept[0].identity_hash()
    with_time = next(Scenario(rule="perceptron", t=[3.0], eta=0.5).cells())
    assert with_time.identity_hash() == alone.identity_hash()


def test_no_key_that_changes_nothing_is_stated_or_named_by_random_numbers():
    unchanged = Scenario(**GOOD, drift=0, decay=0.0)
    assert unchanged.config() == Scenario(**GOOD).config()
    assert {"drift", "decay", "schedule"}.isdisjoint(unchanged.axis_values())
    swept, drifting = Scenario(**GOOD, drift=[0, 0.1]).cells()
    assert swept.identity_hash() == next(Scenario(**GOOD).cells()).identity_hash() != drifting.identity_hash()


def test_a_parameter_given_once_applies_to_all_rules_that_have_it():
    cells = list(Scenario(rule=["hebb", "perceptron"], t=[1], margin=0.5).cells())
    assert cells[0].rule_parameters == {"eta": 1.0}
    assert cells[1].rule_parameters == {"eta": 1.0, "margin": 0.5}


@pytest.mark.parametrize("kind", [kind for kind in get_kinds().values() if kind.CHOICE == "rule"])
def test_keys_of_online_learning_are_listed_in_the_order_of_the_axes(kind):
    fields = kind.list_fields()
    assert [name for name in fields if name in kind.AXES] == [name for name in kind.AXES if name in fields]


def test_a_config_has_the_keys_in_the_order_in_which_they_are_listed():
    config = Scenario(**GOOD, decay=0.1, drift=0.1, seeds=3).config()
    assert [*config] == [name for name in Scenario.list_keys() if name in config]
    assert [*config][:8] == ["seeds", "key", "rule", "K", "N", "inputs", "flip", "drift"]


def test_the_schema_contains_every_key_rule_and_learner():
    for made, kind in zip(make_config_schema()["anyOf"], get_kinds().values(), strict=True):
        assert set(kind.list_keys()) == set(made["properties"])
        assert made["properties"][kind.CHOICE]["anyOf"][0]["enum"] == list(kind.KINDS)


@pytest.fixture(scope="module")
def accepted():
    """Whether an editor with the JSON Schema accepts a config."""
    return pytest.importorskip("jsonschema").Draft202012Validator(json.loads(json.dumps(make_config_schema()))).is_valid


@pytest.mark.parametrize("name", list_shipped_configs())
def test_an_editor_accepts_every_shipped_config(accepted, name):
    assert accepted(YAML(typ="safe").load(find_config(name).read_text()))


def test_an_editor_knows_the_population_of_rows_and_finds_what_is_wrong(accepted):
    rows = {"loss": "square", "inputs": {"rows": "digits.csv", "target": "odd"}, "P": 50}
    assert accepted(rows)
    assert accepted(rows | {"population": ["table", "held_out"]})
    for slip in ({"population": "heldout"}, {"populations": "table"}):
        assert not accepted(rows | slip)
    for given in ({"rule": "hebb"}, {"t": 1}, {"t": "1", "rule": "hebb"}, {"rule": "adtron", "t": 1}):
        assert not accepted(given)
    assert accepted({"t": {"linspace": [0, 1, 3]}, "zip": [{"rule": ["hebb", "perceptron"], "eta": [1, 2]}]})
    assert not accepted({"t": 1, "zip": {"eta": [1, 2]}})


def test_every_citation_is_in_the_bibliography_and_every_entry_is_cited():
    learning = [getattr(it, "cites", ()) for kind in get_kinds().values() for it in kind.KINDS.values()]
    theory = [kind.CITES + kind.UNEQUAL_VARIANCE_CITES for kind in get_kinds().values()]
    tables = [learning_curve.LEARNING_CURVE_CITATION_KEYS, learning_curve.CLASSIFICATION_CITATION_KEYS]
    named = {key for keys in (*learning, *theory, *tables, *(it.cites for it in INPUTS.values())) for key in keys}
    assert named == set(export_and_citations.BIBTEX_FIELDS_BY_KEY)
    for name in list_shipped_configs():
        entries = export_and_citations.format_bibtex(export_and_citations.get_citation_keys(load(name)))
        assert entries.count("@") >= 1
        assert entries.count("{") == entries.count("}")


def test_groups_of_variances_and_random_features_lengthen_the_estimate():
    online = {"rule": "perceptron", "N": 1000, "t": [5], "seeds": 64}
    two, ten = (
        Scenario(**online, inputs={"spectrum": np.linspace(1, 2, d).tolist()}).estimate_seconds_per_seed()
        for d in (2, 10)
    )
    assert 3 < ten / two < 6
    loss = {"loss": "square", "N": 400, "alpha": 0.5, "seeds": 8}
    assert (
        Risk(**loss, inputs={"features": {"latent": 0.5}}).estimate_seconds_per_seed()
        > 3 * Risk(**loss).estimate_seconds_per_seed()
    )


def test_inputs_of_unequal_variance_and_random_features_are_cited():
    assert "yoshida2019" in export_and_citations.get_citation_keys(load("plateau_spread"))
    assert "yoshida2019" not in export_and_citations.get_citation_keys(load("plateau"))
    assert "mei2022" in export_and_citations.get_citation_keys(load("random_features"))


def test_the_key_that_names_the_learner_determines_the_kind_of_a_config():
    assert isinstance(scenario_from({"rule": "hebb", "t": 1}), Scenario)
    assert isinstance(scenario_from({"zip": {"learner": ["hebb", "minover"], "alpha": [1, 2]}}), StoredExamples)
    assert isinstance(scenario_from({"booster": "adaboost", "s": 3, "P": 10}), Boosting)
    for given, message in (
        ({"rule": "hebb", "learner": "hebb", "t": 1}, "not rule and learner"),
        ({"alpha": 2}, "learner: is missing"),
        ({"K": 2, "t": 1}, "rule: is missing"),
        ({}, "rule: is missing"),
    ):
        with pytest.raises(ScenarioError, match=message):
            scenario_from(given)


def test_a_large_grid_is_described_and_not_enumerated():
    scenario = Scenario(rule="hebb", t=[1], eta={"linspace": [0.1, 1, 100_000]}, flip={"linspace": [0, 0.5, 10_000]})
    assert scenario.shape == {"eta": 100_000, "flip": 10_000}


@pytest.mark.parametrize("kind", get_kinds().values(), ids=get_kinds())
def test_the_help_of_a_kind_has_every_key_with_its_default_and_an_example(kind):
    text = kind.__doc__
    parameters = text[text.index("Parameters\n---") :]
    for name in {*kind.list_keys()} - {"zip"}:
        assert f"\n{name} : " in parameters, name
        default = kind.describe(name).default
        if isinstance(default, int | float | str):
            assert f"default {default!r}" in parameters, name
    assert ">>> " in text[text.index("Examples\n---") :]


@pytest.mark.parametrize("kind", get_kinds().values(), ids=get_kinds())
def test_the_signature_of_a_kind_has_its_keys_without_the_types_that_validate_them(kind):
    shown = signature(kind)
    assert {*shown.parameters} == {*kind.list_keys()} - {"zip"}
    assert len(str(shown)) < 600
