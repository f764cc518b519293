"""Stores open in xarray as they are, remember their figure, and are read in the form of earlier versions."""

from __future__ import annotations

import json
import warnings

import pytest
import xarray as xr

import simulate
import theory
from simulate.execution.store_simulation import run_into
from statmech import Scenario, StoredExamples, load_results
from statmech.stores import checksums, store_creation, zarr_store
from statmech.stores.dataset import add_figure
from statmech.stores.sweep_chunks import SweepStore

pytestmark = pytest.mark.quick

SCENARIOS = [
    Scenario(rule=["hebb", "perceptron"], N=20, t=[0, 1], seeds=3, K=2),
    StoredExamples(learner=["minover", "gibbs"], N=5, alpha=[0.5, 1], seeds=3),
]


def strictly_opened(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xr.open_zarr(path) as dataset:
            return dataset.load()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS[:2])
def test_xarray_opens_a_simulation_and_a_theory_without_a_warning(scenario, path):
    run_into(path, scenario)
    zarr_store.save(theory.solve(scenario), path.with_name("theory.zarr"))
    loaded = zarr_store.load(path)
    assert strictly_opened(path)[[*loaded.data_vars]].equals(loaded)
    assert strictly_opened(path.with_name("theory.zarr")).equals(zarr_store.load(path.with_name("theory.zarr")))


def test_xarray_opens_an_extended_sweep_without_a_warning(path):
    run_into(path, SCENARIOS[0])
    extended = SCENARIOS[0].model_copy(update={"seeds": 5})
    run_into(path, extended)
    assert strictly_opened(path).sizes["seed"] == 5
    assert zarr_store.load(path).equals(simulate.run(extended))


def test_xarray_opens_an_unfinished_simulation_without_a_warning(path):
    store_creation.create_store(path, SCENARIOS[0], {"title": "statmech simulation"})
    assert (strictly_opened(path).state == 0).all()


@pytest.mark.slow
def test_stores_without_consolidated_metadata_are_read_resumed_and_extended(path, monkeypatch):
    """Earlier versions wrote none."""
    with monkeypatch.context() as earlier:
        earlier.setattr(store_creation, "consolidate_store", lambda path: None)
        store_creation.create_store(path, SCENARIOS[0], {"title": "statmech simulation"})
    assert "consolidated_metadata" not in json.loads((path / "zarr.json").read_text())
    assert checksums.find_corrupted_files(path) == []
    assert run_into(path, SCENARIOS[0]).done == 6
    assert zarr_store.load(path).equals(simulate.run(SCENARIOS[0]))
    extended = SCENARIOS[0].model_copy(update={"seeds": 5})
    assert run_into(path, extended).done == 10
    assert zarr_store.load(path).equals(simulate.run(extended))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_figure_that_a_folder_remembers_is_stored_as_in_a_config(scenario, path):
    asked = scenario.model_copy(update={"figure": "overlay"}).config()
    assert json.dumps(add_figure(scenario.config(), "overlay")) == json.dumps(asked)
    run_into(path, scenario, figure="overlay")
    zarr_store.save(theory.solve(scenario), path.with_name("theory.zarr"), figure="overlay")
    for part in (path, path.with_name("theory.zarr")):
        assert json.loads((part / "zarr.json").read_text())["attributes"]["config"] == json.dumps(asked)
    assert load_results(path.parent).figure == "overlay"


@pytest.mark.slow
def test_another_figure_is_not_another_config(path):
    run_into(path, SCENARIOS[0], figure="overlay")
    stored = SweepStore(path).fingerprint[:]
    run_into(path, SCENARIOS[0])
    assert load_results(path.parent).figure == "overlay"
    run_into(path, SCENARIOS[0], figure="learning_curves")
    assert load_results(path.parent).figure == "learning_curves"
    assert (SweepStore(path).fingerprint[:] == stored).all()
    extended = SCENARIOS[0].model_copy(update={"seeds": 5})
    assert run_into(path, extended).done == 10
    assert load_results(path.parent).figure == "learning_curves"
    extended = SCENARIOS[0].model_copy(update={"seeds": 6})
    assert run_into(path, extended, figure="learning_curves").done == 12
    assert load_results(path.parent).figure == "learning_curves"
