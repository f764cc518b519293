"""Shards of a sweep, each in a store of its own, are read as one simulation with the bits of a single run."""

from __future__ import annotations

import json
import os
import shutil
import signal

import numpy as np
import pytest
from conftest import assert_same_bits, in_child, statmech

import simulate
from simulate.execution.store_simulation import recompute, run_into
from statmech import StoredExamples, StoreError, load_results
from statmech.config import config_files
from statmech.errors import DamagedStoreError
from statmech.runtime import user_code_and_provenance
from statmech.stores import store_creation, sweep_chunks, zarr_store
from statmech.stores.locks import find_writing_process, lock_store
from statmech.stores.store_status import format_status, read_status, verify_results
from statmech.stores.sweep_chunks import DONE_STATE, SweepStore
from statmech.stores.zarr_store import get_shard_path, list_stores

SWEEP = {"learner": ["hebb", "max_stability"], "N": 12, "alpha": [0.5, 1.0, 2.0, 3.0], "seeds": 4}
GROWN = {**SWEEP, "alpha": [0.25, *SWEEP["alpha"]], "seeds": 6}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of one parameter combination."""
    monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-9)


@pytest.fixture(scope="module")
def simulated():
    return simulate.run(StoredExamples(**SWEEP))


def run_shards(path, numbers, count, keys=SWEEP):
    return [run_into(path, StoredExamples(**keys), shard=(k, count)) for k in numbers]


def test_shards_together_simulate_everything_and_nothing_twice(path, simulated):
    outcomes = run_shards(path, (3, 1, 2), 3)
    assert [sum(numbers) for numbers in zip(*outcomes, strict=True)] == [32, 0, 0]
    names = [f"simulation.{k}-of-3.zarr" for k in (1, 2, 3)]
    assert [stored.name for stored in list_stores(path)] == names
    assert sum(SweepStore(stored).count_states()[DONE_STATE] for stored in list_stores(path)) == 32
    assert_same_bits(path, StoredExamples(**SWEEP), simulated)
    assert verify_results(path.parent).is_sound
    assert verify_results(path.parent).done == 32
    np.testing.assert_array_equal(load_results(path.parent).simulation.R, simulated.R)


def test_a_single_shard_is_the_store_itself(path, simulated):
    run_shards(path, [1], 1)
    assert list_stores(path) == [path]
    assert_same_bits(path, StoredExamples(**SWEEP), simulated)


def test_runs_of_an_absent_shard_are_missing_and_status_names_it(path, simulated):
    run_shards(path, (1, 3), 3)
    loaded = zarr_store.load(path)
    done = loaded.done.values
    assert 0 < done.sum() < 32
    np.testing.assert_array_equal(loaded.R.values[done], simulated.R.values[done])
    assert np.isnan(loaded.R.values[~done]).all()
    status = read_status(path.parent)
    assert (status["done"], status["missing"]) == (done.sum(), 32 - done.sum())
    assert status["absent"] == ["2 of 3"]
    assert "absent   shards 2 of 3" in format_status(status)
    assert read_status(get_shard_path(path, (1, 3)))["done"] < done.sum()  # of this shard alone
    run_shards(path, [2], 3)
    assert read_status(path.parent)["absent"] == []


def kill_after_first_chunk(path, shard):
    sweep_chunks.TARGET_CHUNK_SECONDS = 1e-9

    def tell(event):
        if event["event"] == "written":
            os.kill(os.getpid(), signal.SIGKILL)

    run_into(path, StoredExamples(**SWEEP), shard=shard, tell=tell)


@pytest.mark.slow
def test_a_shard_that_is_killed_is_resumed_by_the_same_command(path, simulated):
    run_shards(path, [1], 2)
    assert in_child(kill_after_first_chunk, path, (2, 2))[0] == -signal.SIGKILL
    assert 0 < read_status(path)["missing"] < 16
    events = []
    run_into(path, StoredExamples(**SWEEP), shard=(2, 2), tell=events.append)
    assert next(event["done"] for event in events if event["event"] == "begun") > 0
    assert_same_bits(path, StoredExamples(**SWEEP), simulated)


def test_no_chunk_that_another_store_has_is_simulated_again(path, simulated):
    """Shards of another division, and a run without shards, add only the rest."""
    run_shards(path, [1], 2)
    run_shards(path, [2], 3)
    events = []
    assert run_into(path, StoredExamples(**SWEEP), tell=events.append) == (32, 0, 0)
    stored = [SweepStore(one).count_states()[DONE_STATE] for one in list_stores(path)]
    assert sum(stored) == 32
    assert stored[0] == 32 - next(event["done"] for event in events if event["event"] == "begun") > 0
    assert run_shards(path, [2], 2) == [(16, 0, 0)]
    assert SweepStore(get_shard_path(path, (2, 2))).count_states()[DONE_STATE] == 0
    assert_same_bits(path, StoredExamples(**SWEEP), simulated)


@pytest.mark.slow
def test_a_chunk_that_another_store_has_with_a_corrupted_number_is_simulated_again(path):
    run_shards(path, [1], 2)
    shard = get_shard_path(path, (1, 2))
    sorted(file for file in (shard / "R" / "c").rglob("*") if file.is_file())[0].write_bytes(b"")
    run_into(path, StoredExamples(**SWEEP))
    done = SweepStore(path).count_states()[DONE_STATE]
    assert done > 16
    with pytest.raises(DamagedStoreError, match=r"simulation\.1-of-2\.zarr"):
        zarr_store.load(path)
    assert not verify_results(path.parent).is_sound
    run_shards(path, [1], 2)  # its writer repairs it
    assert_same_bits(path, StoredExamples(**SWEEP))


@pytest.mark.slow
def test_a_shard_grows_by_its_own_command_and_stores_of_different_sweeps_are_not_read_together(path):
    run_shards(path, (1, 2), 2)
    run_shards(path, [1], 2, GROWN)
    for read in (zarr_store.load, read_status):
        with pytest.raises(StoreError, match=r"2-of-2\.zarr: holds the result of another config") as refusal:
            read(path)
        assert "seeds: simulation.2-of-2.zarr 4, simulation.1-of-2.zarr 6" in str(refusal.value)
        assert "Delete simulation.2-of-2.zarr, or compute it again." in str(refusal.value)
    with pytest.raises(
        StoreError, match=r"2-of-2\.zarr: holds the result of another config.*\n.*stored 4, asked for 6"
    ):
        run_into(path, StoredExamples(**GROWN))
    events = []
    run_into(path, StoredExamples(**GROWN), shard=(2, 2), tell=events.append)
    assert "grown" in [event["event"] for event in events]
    assert_same_bits(path, StoredExamples(**GROWN))


@pytest.mark.parametrize("shard", [(1, 1), (2, 2)])
def test_a_shard_of_another_config_is_refused_with_a_line_per_difference(path, shard):
    run_shards(path, [1], 2)
    with pytest.raises(
        StoreError, match=r"1-of-2\.zarr: holds the result of another config(.|\n)*  N: stored 12, asked for 13"
    ):
        run_into(path, StoredExamples(**{**SWEEP, "N": 13}), shard=shard)
    assert [stored.name for stored in list_stores(path)] == ["simulation.1-of-2.zarr"]


@pytest.mark.parametrize("name", ["data", "code"])
def test_shards_of_other_data_or_code_are_not_read_together(path, name, monkeypatch):
    run_shards(path, [1], 2)
    monkeypatch.setattr(
        StoredExamples, f"{'user_code' if name == 'code' else name}_digests", lambda self: {"x.py": "0"}
    )
    with pytest.raises(StoreError, match=r"1-of-2\.zarr: was computed "):
        run_shards(path, [2], 2)
    run_shards(path.parent / "other" / "simulation.zarr", [2], 2)
    shutil.move(path.parent / "other" / "simulation.2-of-2.zarr", path.parent)
    with pytest.raises(
        StoreError, match=rf"2-of-2\.zarr: was computed from other {name} than simulation\.1-of-2\.zarr\. Delete"
    ):
        zarr_store.load(path)


@pytest.mark.slow
def test_fresh_replaces_one_shard_or_without_shard_all_stores(path, simulated):
    run_shards(path, (1, 2), 2, {**SWEEP, "N": 10})
    run_into(path, StoredExamples(**SWEEP), shard=(1, 2), fresh=True)
    assert SweepStore(get_shard_path(path, (2, 2))).config["N"] == 10
    with (
        lock_store(get_shard_path(path, (2, 2))),
        pytest.raises(StoreError, match=r"2-of-2\.zarr: is being written by"),
    ):
        run_into(path, StoredExamples(**SWEEP), fresh=True)
    run_into(path, StoredExamples(**SWEEP), fresh=True)
    assert list_stores(path) == [path]
    assert_same_bits(path, StoredExamples(**SWEEP), simulated)


def test_a_run_without_shard_is_refused_while_a_shard_is_written(path):
    run_shards(path, (1, 2), 2)
    shard = get_shard_path(path, (2, 2))
    with lock_store(shard):
        for other in [(1, 1), (2, 2)]:
            with pytest.raises(StoreError, match=rf"2-of-2\.zarr: is being written by process {os.getpid()} on "):
                run_into(path, StoredExamples(**SWEEP), shard=other)
        run_shards(path, [1], 2)  # another shard may be computed at the same time
        assert str(os.getpid()) in read_status(path)["writer"]
    assert find_writing_process(shard) == ""


def test_versions_of_all_shards_are_recorded_in_the_dataset(path, monkeypatch):
    run_shards(path, [2], 2)
    here = user_code_and_provenance.provenance()
    for module in (user_code_and_provenance, zarr_store, store_creation):
        monkeypatch.setattr(module, "provenance", lambda: {**here, "commit": "0123abc"})
    run_shards(path, [1], 2)
    monkeypatch.undo()
    loaded = zarr_store.load(path)
    assert loaded.attrs["commit"] == "0123abc"
    assert [version["commit"] for version in json.loads(loaded.attrs["earlier"])] == [here["commit"]]
    assert recompute(get_shard_path(path, (1, 2)), 1).difference_descriptions == []


@pytest.mark.slow
def test_commands_take_a_folder_of_shards(path, capsys):
    run_shards(path, (1, 2), 2)
    folder = path.parent
    assert config_files.find_config(folder) == config_files.find_config(get_shard_path(path, (1, 2))) == folder
    assert statmech("theory", folder) == 0
    for command in (["compare"], ["figure", "--formats", "png"], ["export", "--to", folder / "all.csv"], ["report"]):
        assert statmech(command[0], folder, *command[1:]) == 0, capsys.readouterr().err
    assert "is missing" not in capsys.readouterr().out
    assert statmech("verify", folder) == 0
    assert "32 runs read" in capsys.readouterr().out
    report = (folder / "report.html").read_text()
    assert "according to its log" in report


def test_names_that_no_shard_has_are_ignored(path):
    run_shards(path, [1], 2)
    for name in (
        "simulation.0-of-2.zarr",
        "simulation.1-of-123456.zarr",
        "simulation.a-of-2.zarr",
        "other.2-of-2.zarr",
    ):
        (path.parent / name).mkdir()
    assert [stored.name for stored in list_stores(path)] == ["simulation.1-of-2.zarr"]


def test_a_shard_that_is_a_link_is_not_followed(path):
    run_shards(path, [1], 2)
    shutil.move(get_shard_path(path, (1, 2)), path.parent / "elsewhere")
    get_shard_path(path, (1, 2)).symlink_to(path.parent / "elsewhere")
    for use in (zarr_store.load, read_status, lambda at: run_into(at, StoredExamples(**SWEEP))):
        with pytest.raises(StoreError, match="is a symbolic link"):
            use(path)


def test_a_shard_with_other_coordinates_is_unreadable(path, monkeypatch):
    """A control of the check by coordinates: the second store claims the config of the first."""
    run_shards(path, [1], 2)
    run_shards(path.parent / "other" / "simulation.zarr", [2], 2, {**SWEEP, "alpha": [2.0, 2.4, 2.8, 3.3]})
    shutil.move(path.parent / "other" / "simulation.2-of-2.zarr", path.parent)
    monkeypatch.setattr(zarr_store, "list_config_differences", lambda *_: [])
    with pytest.raises(DamagedStoreError, match=r"2-of-2\.zarr"):
        zarr_store.load(path)
