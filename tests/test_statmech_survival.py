"""The same bits on any workers and devices; corruption is reported or repaired; full disks."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import FEW_OPTIMISATIONS, assert_same_bits, in_child, limit_files, statmech
from small import SMALL

import simulate
from simulate.execution.store_simulation import run_into
from statmech import Scenario, StoredExamples, StoreError, load
from statmech.errors import DamagedStoreError
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.stores import zarr_store
from statmech.stores.checksums import find_corrupted_files
from statmech.stores.sweep_chunks import DONE_STATE, SweepStore

SWEEP = {"learner": ["hebb", "minover"], "N": 10, "alpha": [1.0, 0.5, 2.0], "seeds": 3, "epochs": [1, 4]}


def digest(dataset):
    """The SHA-256 of a dataset's values, its axes in the order of their values."""
    digest = hashlib.sha256()
    for name in dataset.dims:
        if name in dataset.coords and name not in ("t", "epochs", "fold"):
            dataset = dataset.sortby(name)
    for name in sorted(dataset.data_vars):
        digest.update(f"{name} {dataset[name].dims}".encode() + np.ascontiguousarray(dataset[name].values).tobytes())
    return digest.hexdigest()


def backwards(scenario):
    """The same grid, in another order."""
    axes = {name: value[::-1] for along in scenario.dimensions.values() for name, value in along.items()}
    config = scenario.config()
    for group in config.get("zip", []):
        group.update({name: list(axes[name]) for name in group})
    return scenario_from(config | {name: list(value) for name, value in axes.items() if name in config})


FULLY_COMPILED = ("rule", "network")  # the order must not matter to what XLA optimises; other kinds are quick
KINDS = [
    pytest.param(it, id=name, marks=() if name in FULLY_COMPILED else pytest.mark.quick) for name, it in SMALL.items()
]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", KINDS)
def test_the_order_of_runs_chunks_and_workers_do_not_change_the_bits(scenario, tmp_path, monkeypatch):
    expected = digest(simulated := simulate.run(scenario))
    assert digest(simulate.run(backwards(scenario))) == expected
    for number, (seconds, workers) in enumerate([(1e-9, 1), (1e-3, 3)]):
        monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", seconds)
        path = tmp_path / f"{number}.zarr"
        outcome = run_into(path, backwards(scenario) if number == 1 else scenario, workers=workers)
        assert outcome.missing == outcome.failed == 0
        assert digest(zarr_store.load(path)) == expected
    assert_same_bits(tmp_path / "0.zarr", scenario, simulated)


@pytest.mark.slow
@pytest.mark.quick
def test_a_changed_number_changes_the_digest():
    """The control of the tests above and below."""
    dataset = simulate.run(StoredExamples(**SWEEP))
    before = digest(dataset)
    dataset.R.values[0, 0, 0, 0] = np.nextafter(dataset.R.values[0, 0, 0, 0], 2)
    assert digest(dataset) != before


CODE = """
import json, sys
from pathlib import Path
import jax
from simulate.execution.store_simulation import run_into
from statmech.kinds.selection_and_vocabulary import scenario_from
assert len(jax.devices()) == int(sys.argv[3])
for path, config in json.loads(sys.argv[1]):
    run_into(Path(path), scenario_from(config), shard=json.loads(sys.argv[2]))
"""


def begun(sweeps, shard=(1, 1), devices=1):
    """A process that simulates scenarios, each into the store at its path, by programs of few optimisations."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    environment["XLA_FLAGS"] = " ".join([*FEW_OPTIMISATIONS, f"--xla_force_host_platform_device_count={devices}"])
    sweeps = [(str(path), scenario.config()) for path, scenario in sweeps.items()]
    given = [json.dumps(sweeps), json.dumps(shard), str(devices)]
    return subprocess.Popen([sys.executable, "-c", CODE, *given], env=environment)


ON_DEVICES = (  # lanes of many runs in eight units of work, and a network and weight vectors in a few
    Scenario(rule=["hebb", "adatron"], eta=[0.5, 1], K=2, N=30, t=[0, 1], seeds=70, gram=True),
    SMALL["network"].model_copy(update={"K": 2}),
    Scenario(rule="hebb", K=2, N=30, t=[0, 1], seeds=12, engine="vectors"),
)


def stores_in(folder, scenarios):
    return {folder / f"{number}.zarr": scenario for number, scenario in enumerate(scenarios)}


def digests(sweeps):
    return [digest(zarr_store.load(path)) for path in sweeps]


@pytest.fixture(scope="module")
def of_one(tmp_path_factory):
    """The digests of one process with one device, of the same compiler as the others."""
    sweeps = stores_in(tmp_path_factory.mktemp("one"), ON_DEVICES)
    assert begun(sweeps).wait(240) == 0
    return digests(sweeps)


@pytest.mark.slow
def test_eight_devices_give_the_bits_of_one(of_one, tmp_path):
    sweeps = stores_in(tmp_path, ON_DEVICES)
    assert begun(sweeps, devices=8).wait(240) == 0
    assert digests(sweeps) == of_one


@pytest.mark.slow
def test_two_simultaneous_processes_give_the_same_bits(of_one, tmp_path):
    sweeps = stores_in(tmp_path, ON_DEVICES[:2])
    shards = [begun(sweeps, (k, 2)) for k in (1, 2)]
    assert [shard.wait(240) for shard in shards] == [0, 0]
    assert digests(sweeps) == of_one[:2]


@pytest.fixture
def stored(path, monkeypatch):
    """A finished store of several chunks, and the digest of its values."""
    monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-9)
    run_into(path, StoredExamples(**SWEEP))
    monkeypatch.setattr(
        "statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1.0
    )  # another version may cut them differently
    return path, digest(zarr_store.load(path))


HARMS = {
    "flip": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 4]) + content[len(content) // 2 + 1 :]
    ),
    "truncate": lambda content: content[: len(content) // 3],
    "empty": lambda content: b"",
    "delete": None,
}


def harmed(file, harm):
    change = HARMS[harm]
    file.unlink() if change is None else file.write_bytes(change(file.read_bytes()))


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.quick
def test_damaged_metadata_and_coordinates_are_reported_to_readers_and_repaired_by_the_next_run(stored, harm):
    path, expected = stored
    once = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and file != path / "zarr.json"
        and (file.name == "zarr.json" or file.parts[-3] in ("alpha", "seed"))
    ]
    for file in once[list(HARMS).index(harm) :: len(HARMS)]:
        harmed(file, harm)
        with pytest.raises(DamagedStoreError, match=str(file.relative_to(path))):
            zarr_store.load(path)
        events = []
        run_into(path, StoredExamples(**SWEEP), tell=events.append)
        assert events[0]["event"] == "restored"
        assert digest(zarr_store.load(path)) == expected


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.quick
def test_a_store_that_does_not_know_its_config_is_refused(stored, harm):
    path, _ = stored
    harmed(path / "zarr.json", harm)
    with pytest.raises(StoreError, match=r"not a readable store \(corrupted or missing: zarr.json\). Use fresh=True"):
        run_into(path, StoredExamples(**SWEEP))
    with pytest.raises(DamagedStoreError):
        SweepStore(path)


@pytest.mark.quick
def test_a_changed_digit_in_readable_metadata_is_detected(stored):
    path, _ = stored
    file = path / "zarr.json"
    assert find_corrupted_files(path) == []
    file.write_text(file.read_text().replace('\\"epochs\\": [1.0', '\\"epochs\\": [2.0'))
    assert find_corrupted_files(path) == ["zarr.json"]


@pytest.mark.quick
def test_a_chunk_that_is_gone_is_reported_and_not_read_as_missing_values(stored):
    path, _ = stored
    file = next(file for file in (path / "updates_made" / "c").rglob("*") if file.is_file())
    file.unlink()
    with pytest.raises(DamagedStoreError, match="updates_made/c/"):
        zarr_store.load(path)


@pytest.mark.slow
@pytest.mark.quick
def test_a_corrupted_store_that_is_extended_keeps_intact_chunks_and_recomputes_the_rest(stored):
    path, _ = stored
    for file in sorted(file for file in (path / "R" / "c").rglob("*") if file.is_file())[:2]:
        harmed(file, "flip")
    grown = StoredExamples(**{**SWEEP, "seeds": 4})
    run_into(path, grown)
    assert digest(zarr_store.load(path)) == digest(simulate.run(grown))


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_theory_is_reported(path, harm):
    import theory

    zarr_store.save(theory.solve(StoredExamples(learner="hebb", alpha=[1, 2])), path)
    assert zarr_store.load(path).R.size == 2
    for file in [file for file in path.rglob("*") if file.is_file()]:
        content = file.read_bytes()
        harmed(file, harm)
        with pytest.raises(DamagedStoreError):
            zarr_store.load(path)
        file.write_bytes(content)


def limited(limit, given):
    """A command whose files may not grow beyond so many bytes."""
    limit_files(limit)
    os.environ["STATMECH_CACHE"] = "off"
    return statmech(*given)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 1000, 8000])
def test_files_that_may_not_grow_are_reported_in_a_line_and_the_sweep_is_resumed_later(limit, tmp_path):
    given = [
        "simulate",
        "capacity",
        "learner=hebb",
        "N=10",
        "alpha={linspace: [0.5, 4, 24]}",
        "seeds=64",
        "--out",
        str(tmp_path / "out"),
    ]
    code, errors = in_child(limited, limit, given)
    assert code == 2
    assert "cannot be written: File too large" in errors
    assert len(errors.splitlines()) == 1
    path = Path(tmp_path / "out" / "simulation.zarr")
    if path.exists():
        assert SweepStore(path).count_states()[DONE_STATE] < 24 * 64
    scenario = load("capacity", given[2:6])
    run_into(path, scenario)
    assert digest(zarr_store.load(path)) == digest(simulate.run(scenario))


def test_a_folder_that_cannot_be_made_is_reported_before_anything_is_computed(tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setattr("simulate.execution.store_simulation.simulate_chunks", None)
    with pytest.raises(StoreError, match="cannot be written"):
        run_into(tmp_path / "taken" / "simulation.zarr", StoredExamples(**SWEEP))
