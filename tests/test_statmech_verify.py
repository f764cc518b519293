"""Every number that is read is the one computed for its place, or there is an error."""

from __future__ import annotations

import itertools
import json
import shutil

import numpy as np
import pytest
from conftest import statmech
from small import MOST

import simulate
import theory
from simulate.execution.store_simulation import run_into
from statmech import Scenario, StoredExamples, StoreError
from statmech.errors import DamagedStoreError
from statmech.stores import store_creation, store_status, zarr_store
from statmech.stores.checksums import compute_fingerprint_salt, compute_fingerprints
from statmech.stores.store_status import verify_results
from statmech.stores.sweep_chunks import SweepStore

pytestmark = pytest.mark.quick

SWEEP = {"learner": ["hebb", "minover"], "N": 10, "alpha": [1.0, 0.5, 2.0], "seeds": 3, "epochs": [1, 4]}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-9)


def chunks(path, name):
    return sorted(file for file in (path / name / "c").rglob("*") if file.is_file())


def exchanged(one, other):
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def two_chunks(path):
    """Two chunks of a variable, exchanged."""
    exchanged(*chunks(path, "R")[:2])


def two_variables(path):
    """A chunk of one variable in the place of another."""
    exchanged(chunks(path, "R")[0], chunks(path, "eps_g")[0])


def two_blocks(path):
    """Two chunks of all variables, with their fingerprints and states."""
    for name in [*SweepStore(path).arrays, "fingerprint", "state"]:
        exchanged(*chunks(path, name)[:2])


def another_key(path):
    """All chunks of a variable of the same sweep with another key."""
    other = path.with_name("other.zarr")
    run_into(other, StoredExamples(**SWEEP, key=1))
    shutil.rmtree(path / "R" / "c")
    shutil.copytree(other / "R" / "c", path / "R" / "c")


def another_store(path):
    """A chunk of all variables of the same sweep with another key, with its fingerprints and states."""
    other = path.with_name("other.zarr")
    run_into(other, StoredExamples(**SWEEP, key=1))
    for name in [*SweepStore(path).arrays, "fingerprint", "state"]:
        chunks(path, name)[0].write_bytes(chunks(other, name)[0].read_bytes())


def its_fingerprints(path):
    """The fingerprints of two chunks."""
    exchanged(*chunks(path, "fingerprint")[:2])


HARMS = [two_chunks, two_variables, two_blocks, another_key, another_store, its_fingerprints]


@pytest.mark.parametrize(
    "harm",
    [pytest.param(it, id=it.__name__, marks=() if it is HARMS[0] else pytest.mark.slow) for it in HARMS],
)
def test_chunks_in_a_wrong_place_are_found_by_every_reader_and_recomputed(harm, path, capsys):
    scenario = StoredExamples(**SWEEP)
    run_into(path, scenario)
    assert verify_results(path).is_sound
    harm(path)
    with pytest.raises(DamagedStoreError, match=r"runs whose numbers were not computed for their place"):
        zarr_store.load(path)
    assert statmech("verify", path.parent) == 1
    assert "not the numbers that were computed for this place" in capsys.readouterr().out
    events = []
    run_into(path, scenario, tell=events.append)
    assert any(event["event"] == "damaged" for event in events)
    np.testing.assert_array_equal(zarr_store.load(path).R, simulate.run(scenario).R)
    assert verify_results(path).is_sound


@pytest.mark.parametrize("scenario", MOST)
def test_a_last_bit_of_any_number_of_any_kind_of_scenario_changes_its_runs_fingerprint(scenario, path):
    run_into(path, scenario)
    found = SweepStore(path)
    assert verify_results(path).is_sound
    for name, array in found.arrays.items():
        block = found.list_chunks()[-1]
        values = np.asarray(array[block.slices])
        altered = values.copy()
        octets = altered.view(np.uint8).reshape(-1)
        octets[octets.size // 2] ^= 1
        array[block.slices] = altered  # with a correct checksum
        assert found.faults(block, found.read_states(block)), name
        array[block.slices] = values
    assert verify_results(path).is_sound


def test_each_fault_has_a_line_that_says_where_and_what(path, capsys):
    run_into(path, StoredExamples(**SWEEP))
    chunks(path, "R")[0].unlink()
    file = chunks(path, "kappa")[1]
    file.write_bytes(file.read_bytes()[:-1])
    file = chunks(path, "state")[2]
    file.write_bytes(b"\0" * 8)
    zarr_store.save(theory.solve(StoredExamples(**SWEEP)), path.with_name("theory.zarr"))
    (path.with_name("theory.zarr") / "R" / "zarr.json").write_text("{}")
    assert statmech("verify", path.parent) == 1
    *faults, last = capsys.readouterr().out.splitlines()
    assert [line.split("zarr: ")[1] for line in faults] == [
        "chunk 0 (learner hebb, alpha 1.0, seed 0 to 2): R/c/0/0/0/0: missing",
        "chunk 1 (learner hebb, alpha 0.5, seed 0 to 2): kappa/c/0/1/0/0: corrupted",
        "chunk 2 (learner hebb, alpha 2.0, seed 0 to 2): "
        "which of its runs are done cannot be read (state is corrupted)",
        "R/zarr.json: corrupted or missing",
    ]
    assert "6 chunks and 15 runs read, 4 faults" in last


@pytest.mark.slow
def test_every_chunk_of_results_is_read(path):
    """The control of the command: it reports every truncated chunk of any variable."""
    run_into(path, StoredExamples(**SWEEP))
    seen = 0
    for folder in sorted(path.glob("*/")):
        files = [file for file in folder.rglob("*") if file.is_file() and file.name != "zarr.json"]
        contents = {file: file.read_bytes() for file in files}
        for file, content in contents.items():
            file.write_bytes(content[: len(content) // 2])
        assert len(verify_results(path).faults) == len(contents), folder
        seen += len(contents)
        for file, content in contents.items():
            file.write_bytes(content)
    assert verify_results(path).is_sound
    assert seen >= 6 * 3  # of values, fingerprints and states


def test_status_states_that_it_has_not_read_the_numbers(path, capsys):
    run_into(path, StoredExamples(**SWEEP))
    assert statmech("status", path.parent) == 0
    assert (
        "checked  which runs are done, not their numbers: `statmech verify` reads every one" in capsys.readouterr().out
    )


def made_before(path, scenario):
    """A store as versions without fingerprints created it."""
    plain = store_creation._create_empty
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_creation, "_create_empty", lambda *given, **_: plain(*given, fingerprinted=False))
        store_creation.create_store(path, scenario, {"title": "statmech simulation"})
    run_into(path, scenario)


def test_a_store_without_fingerprints_is_read_and_reported_as_unverifiable(path, capsys):
    made_before(path, StoredExamples(**SWEEP))
    assert not (path / "fingerprint").exists()
    np.testing.assert_array_equal(zarr_store.load(path).R, simulate.run(StoredExamples(**SWEEP)).R)
    assert "checksums only" in "\n".join(store_status.format_status(store_status.read_status(path)))
    assert statmech("verify", path) == 1
    assert "was made before runs had fingerprints" in capsys.readouterr().out


@pytest.mark.slow
def test_a_store_without_fingerprints_stays_unverifiable_when_it_is_extended(path):
    made_before(path, StoredExamples(**SWEEP))
    run_into(path, StoredExamples(**{**SWEEP, "seeds": 5}))
    assert verify_results(path).unverified == [str(path)]
    np.testing.assert_array_equal(zarr_store.load(path).R, simulate.run(StoredExamples(**{**SWEEP, "seeds": 5})).R)


def test_exchanging_two_runs_variables_or_configs_changes_the_fingerprint():
    rng, runs = np.random.default_rng(0), np.arange(6).reshape(2, 3)
    values = {"a": rng.normal(size=(2, 3, 4)), "b": rng.normal(size=(2, 3, 4)), "done": rng.random((2, 3)) < 0.5}
    salt = compute_fingerprint_salt({"key": 0}, {})
    reference = compute_fingerprints(values, runs, salt)
    assert len(np.unique(reference)) == 6
    assert (compute_fingerprints({**values, "a": values["b"], "b": values["a"]}, runs, salt) != reference).all()
    assert (compute_fingerprints(values, runs, compute_fingerprint_salt({"key": 1}, {})) != reference).all()
    assert (
        compute_fingerprints(values, runs, compute_fingerprint_salt({"key": 0}, {"x.csv": "00"})) != reference
    ).all()
    assert (compute_fingerprints(values, runs + 1, salt) != reference).all()
    assert (compute_fingerprints({**values, "a": values["a"][..., ::-1]}, runs, salt) != reference).all()


def test_fingerprints_of_simple_numbers_differ_like_those_of_random_ones():
    """Zeros, ones and powers of two have nearly all of their bits equal."""
    simple = np.array(list(itertools.product([0.0, 1.0, 0.5, -1.0, 2.0, np.nan], repeat=5)))
    reference = compute_fingerprints({"a": simple}, np.zeros(len(simple), int), compute_fingerprint_salt({}, {}))
    assert len(np.unique(reference)) == len(simple)


def test_a_fingerprint_does_not_depend_on_how_many_runs_are_read_together(monkeypatch):
    values = {"a": np.random.default_rng(0).normal(size=(50, 7))}
    reference = compute_fingerprints(values, np.arange(50), compute_fingerprint_salt({}, {}))
    monkeypatch.setattr("statmech.stores.checksums.MAX_WORDS_PER_BLOCK", 10)
    np.testing.assert_array_equal(
        compute_fingerprints(values, np.arange(50), compute_fingerprint_salt({}, {})), reference
    )
    part = compute_fingerprints({"a": values["a"][10:20]}, np.arange(10, 20), compute_fingerprint_salt({}, {}))
    np.testing.assert_array_equal(part, reference[10:20])


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(StoreError, match="no such result"):
        verify_results(tmp_path)


@pytest.mark.slow
def test_the_json_has_the_same_parts(path, capsys):
    run_into(path, StoredExamples(**SWEEP))
    assert statmech("verify", path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    counts = {"blocks": 6, "done": 18, "recomputed": 1}
    assert found == {"stores": [str(path)], **counts, "faults": [], "unverified": [], "remarks": []}


def test_a_store_that_cannot_be_repaired_is_named_and_not_a_file_beside_it(path):
    run_into(path, Scenario(rule="hebb", N=20, t=[1], seeds=2))
    file = path / "R" / "zarr.json"
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreError) as refused:
        run_into(path, Scenario(rule="hebb", N=20, t=[1], seeds=2))
    assert str(refused.value).startswith(f"{path}: ")
    assert ".new" not in str(refused.value)
