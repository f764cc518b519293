"""Every registered kind of scenario survives what a sweep goes through: growth, shards, and a kill.

Stores in chunks, shuffled axes, fingerprints, pictures and reports of every kind: test_statmech_growing, _survival,
_verify, test_conformance_pictures.
"""

from __future__ import annotations

import os
import signal

import pytest
from conftest import assert_same_bits, few_optimisations, in_child
from small import EVERY, MOST, SMALL

from figures.explorer import settings
from figures.explorer.pages import PAGES
from simulate.execution.store_simulation import run_into
from statmech import ScenarioError
from statmech.keys.config_keys import COMMON_COORDINATES
from statmech.keys.scenario import get_kinds
from statmech.kinds.selection_and_vocabulary import get_kind_name, scenario_from
from statmech.stores import sweep_chunks
from statmech.stores.checksums import FINGERPRINT_VARIABLE
from statmech.stores.store_creation import create_store
from statmech.stores.store_status import read_status
from statmech.stores.zarr_store import RUN_STATE_VARIABLE

most_kinds = pytest.mark.parametrize("scenario", MOST)
every_kind = pytest.mark.parametrize("scenario", EVERY, ids=SMALL)
WITHOUT_SLIDERS = ("rule_clusters", "rule_population")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-9)


@every_kind
def test_names_in_a_store_differ_by_more_than_case(scenario, path):
    """On the default disks of macOS and Windows two folders cannot differ by case only."""
    create_store(path, scenario, {})
    stored = {file.name for file in path.iterdir() if file.is_dir()}
    possible = {*stored, *scenario.axis_names(), *scenario.NON_KEY_COORDINATES, *scenario.theory_only_variables}
    assert {
        *scenario.variables,
        *scenario.recorded_coordinates,
        *scenario.derived_coordinates,
        *COMMON_COORDINATES,
        RUN_STATE_VARIABLE,
        FINGERPRINT_VARIABLE,
    } <= stored
    assert len({name.lower() for name in possible}) == len(possible)


def smaller(scenario):
    """The sweep without the last value of each axis and the last seed, where there is more than one."""
    config = scenario.config()
    for along in scenario.dimensions.values():
        for name, values in along.items():
            config[name] = config[name][: max(1, len(values) - 1)]
    config["seeds"] = max(1, scenario.seeds - 1)
    return scenario_from(config)


@every_kind
def test_a_kind_states_all_that_others_ask_of_it(scenario):
    kind = type(scenario)
    name = get_kind_name(scenario.config())
    assert get_kinds()[name] is kind
    assert kind.TITLE
    assert scenario.estimate_seconds_per_seed() > 0
    for key in (*scenario.recorded_coordinates, *scenario.axis_values(), *scenario.derived_coordinates, "seed"):
        assert len(kind.describe(key).meaning) > 3, key
    assert all(it.long_name and it.symbol for it in (scenario.variables | scenario.theory_only_variables).values())
    assert (name not in PAGES) == (bool(scenario.unsolved) or name in WITHOUT_SLIDERS)
    assert name not in PAGES or kind.USUAL_X_KEY in settings.list_slider_keys(name)


def killed(path, config):
    """A sweep whose process dies when it has written its first chunk."""
    sweep_chunks.TARGET_CHUNK_SECONDS = 1e-9

    def tell(event):
        if event["event"] == "written":
            os.kill(os.getpid(), signal.SIGKILL)

    with few_optimisations():
        run_into(path, scenario_from(config), tell=tell)


@pytest.mark.slow
@pytest.mark.quick  # `test_statmech_survival` compares bits of chunks with the full compiler
@most_kinds
def test_a_sweep_that_grows_is_killed_and_ends_in_shards_has_the_bits_of_one_run(scenario, path):
    assert smaller(scenario).config() != scenario.config()
    run_into(path, smaller(scenario))
    before = read_status(path)["done"]
    assert in_child(killed, path, scenario.config())[0] == -signal.SIGKILL
    status = read_status(path)
    assert before < status["done"] < status["runs"]
    for k in (3, 1, 2):
        outcome = run_into(path, scenario, shard=(k, 3))
    assert outcome.missing == outcome.failed == 0
    assert_same_bits(path, scenario)


def refusal_of(scenario, key, given):
    """The message that refuses a value; empty if it is taken."""
    try:
        type(scenario)(**{**scenario.config(), key: given})
    except ScenarioError as refusal:
        return str(refusal)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("choice", SMALL)
def test_enormous_values_of_every_key_are_refused_in_a_few_words(choice):
    scenario, lengthy = SMALL[choice], "a" * 10**5
    every = (10**400, [10**400], lengthy, [lengthy], {lengthy: 1}, range(10**30), iter(int, 1), {"linspace": lengthy})
    messages = [refusal_of(scenario, key, given) for key in scenario.list_keys() for given in every]
    assert max(map(len, messages)) < 3000
    assert messages.count("") < 0.05 * len(messages)  # a figure has any name, and more examples than there are are all
