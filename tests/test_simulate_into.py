"""A store belongs to its config and to the data that it names; its results are read without the data."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import xarray as xr
from conftest import statmech

import simulate
from simulate.execution.chunk_simulation import simulate_stored_chunk
from simulate.execution.store_simulation import run_into
from statmech import Scenario, ScenarioError, StoreError, load
from statmech.stores import zarr_store
from statmech.stores.dataset import decode_attributes
from statmech.stores.store_creation import create_store
from statmech.stores.store_status import verify_results
from statmech.stores.sweep_chunks import SweepStore

pytestmark = pytest.mark.quick


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "simulation.zarr"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "x.csv", 0)
    return tmp_path


def table(file, seed):
    np.savetxt(file, np.random.default_rng(seed).normal(size=(20, 5)), delimiter=",")


def scenario(seeds=8):
    return Scenario(rule="hebb", N=5, t=[1, 4], seeds=seeds, inputs={"rows": {"path": "x.csv"}})


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [8, 128], ids=["again", "more seeds"])
def test_runs_on_changed_data_are_not_mixed_with_those_stored(seeds, here, path):
    run_into(path, scenario())
    before = zarr_store.load(path)
    table(here / "x.csv", 1)
    with pytest.raises(StoreError, match=r"from other data than x\.csv contains now, so its runs cannot be mixed"):
        run_into(path, scenario(seeds))
    assert zarr_store.load(path).identical(before)
    run_into(path, scenario(seeds), fresh=True)
    assert not np.array_equal(zarr_store.load(path).R[:8], before.R)


@pytest.mark.slow
def test_the_same_numbers_written_in_another_way_are_the_same_data(here, path):
    run_into(path, scenario())
    np.save(here / "x.npy", np.loadtxt(here / "x.csv", delimiter=","))
    np.savetxt(here / "x.csv", np.load(here / "x.npy"), delimiter=" , ", fmt="%.25e")
    assert run_into(path, scenario(16)) == (16, 0, 0)
    np.testing.assert_array_equal(zarr_store.load(path).R, simulate.run(scenario(16)).R)


@pytest.mark.slow
def test_a_file_that_changes_while_python_runs_is_read_again(here):
    before = simulate.run(scenario())
    table(here / "x.csv", 1)
    after = simulate.run(scenario())
    assert before.attrs["data"] != after.attrs["data"]
    assert not np.array_equal(before.R, after.R)


@pytest.mark.slow
def test_results_are_read_exported_and_verified_without_the_data_file(here, path, capsys):
    (here / "rows.yaml").write_text("rule: hebb\nN: 5\nt: [1, 4]\nseeds: 8\ninputs: {rows: {path: x.csv}}\n")
    assert statmech("run", "rows.yaml", "--out", path.parent) == 0
    expected = zarr_store.load(path)
    (here / "x.csv").unlink()
    assert zarr_store.load(path).identical(expected)
    assert verify_results(path).is_sound
    assert statmech("status", path.parent) == 0
    assert statmech("report", path.parent) == 0
    capsys.readouterr()
    assert statmech("simulate", "rows.yaml", "seeds=16", "--out", path.parent) == 2
    assert "rows.yaml:5: inputs: x.csv" in capsys.readouterr().err
    assert statmech("simulate", path.parent) == 2
    assert "inputs: x.csv" in capsys.readouterr().err


def test_a_missing_data_file_is_reported_before_anything_is_written(tmp_path, path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match=r"inputs: x\.csv: not a readable table"):
        run_into(path, scenario())
    with pytest.raises(ScenarioError, match=r"inputs: x\.csv: not a readable table"):
        simulate.run(scenario())
    assert not path.exists()


def test_a_worker_whose_host_has_a_different_file_of_that_name_computes_nothing(here, path):
    create_store(path, scenario(), {"data": scenario().data_digests()})
    table(here / "x.csv", 1)
    with pytest.raises(StoreError, match=r"from other data than x\.csv contains now"):
        simulate_stored_chunk(path, 0)
    assert SweepStore(path).count_states()[0] == 8


def test_a_store_that_does_not_know_its_data_is_read_but_not_added_to(here, path):
    made = create_store(path, scenario(), {"title": "statmech simulation"})
    for chunk in made.list_chunks():
        states = made.read_states(chunk)
        made.write(chunk, made.load_chunk_buffer(chunk, states), states)
    with pytest.raises(StoreError, match="was computed before digests of data were kept"):
        run_into(path, scenario())
    assert isinstance(zarr_store.load(path), xr.Dataset)


def test_a_study_of_another_data_set_of_the_same_name_is_refused(made_data, tmp_path, path, monkeypatch):
    study = load("votes", ["classifier=perceptron", "folds=2", "seeds=1"])
    folder = tmp_path / "data"
    shutil.copytree(made_data, folder)
    monkeypatch.setenv("STATMECH_DATA", str(made_data))
    run_into(path, study)
    monkeypatch.setenv("STATMECH_DATA", str(folder))
    assert run_into(path, study) == (1, 0, 0)  # the same examples from another folder
    file = next((folder / "votes").iterdir())
    file.write_text(file.read_text().replace("democrat", "republican", 1))
    simulate_again = load("votes", ["classifier=perceptron", "folds=2", "seeds=2"])
    with pytest.raises(StoreError, match="from other data than votes contains now"):
        run_into(path, simulate_again)


@pytest.mark.slow
def test_a_sweep_may_be_extended_by_another_file_or_data_set(here, path, made_data, monkeypatch):
    small = scenario()
    law = small.config()["inputs"]
    run_into(path, small)
    grown = Scenario(**{**small.config(), "inputs": [law, "gaussian"]})
    assert run_into(path, grown) == (16, 0, 0)
    np.save(here / "y.npy", np.random.default_rng(2).normal(size=(10, 5)))
    more = Scenario(**{**small.config(), "inputs": [law, "gaussian", {"rows": {"path": "y.npy"}}]})
    assert run_into(path, more) == (24, 0, 0)
    np.testing.assert_array_equal(zarr_store.load(path).R, simulate.run(more).R)
    assert verify_results(path).is_sound
    assert set(decode_attributes(zarr_store.load(path).attrs)["data"]) == {"x.csv", "y.npy"}
    monkeypatch.setenv("STATMECH_DATA", str(made_data))
    for data in ("votes", "votes,promoters"):
        study = load("votes", [f"data={data}", "classifier=perceptron", "folds=2", "seeds=1"])
        assert run_into(path.with_name("study.zarr"), study) == (1 + data.count(","), 0, 0)


def test_the_shape_of_data_is_part_of_their_digest(here):
    from statmech.inputs.input_distributions import Rows

    made = Rows("x.csv").file_digests()
    np.savetxt(here / "x.csv", np.loadtxt(here / "x.csv", delimiter=",").T, delimiter=",")
    assert Rows("x.csv").file_digests() != made
