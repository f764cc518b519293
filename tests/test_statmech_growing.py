"""A sweep that was killed, extended, corrupted or locked ends with the bits of an undisturbed one."""

from __future__ import annotations

import os
import random
import signal
import threading
from dataclasses import dataclass

import jax
import numpy as np
import pytest
import xarray as xr
from conftest import assert_same_bits, in_child

import simulate
from simulate.execution.chunk_simulation import simulate_stored_chunk
from simulate.execution.store_simulation import run_into
from statmech import RULES, Rule, Scenario, StoredExamples, StoreError
from statmech.stores import sweep_chunks, zarr_store
from statmech.stores.checksums import FINGERPRINT_VARIABLE
from statmech.stores.locks import lock_store
from statmech.stores.store_creation import create_store
from statmech.stores.store_status import StoreLog, read_status
from statmech.stores.sweep_chunks import DONE_STATE, FAILED_STATE, SweepStore, compute_chunk_lengths, iterate_chunks

pytestmark = pytest.mark.usefixtures("small_chunks")
SWEEP = {"rule": ["hebb", "perceptron"], "eta": [0.5, 1.0], "N": 50, "t": [0, 1], "seeds": 6}


def test_chunks_cover_the_grid_once():
    scenario = Scenario(**{**SWEEP, "seeds": 150})
    shape = (*scenario.shape.values(), 150)
    covered = np.zeros(shape, int)
    for chunk in iterate_chunks(shape, compute_chunk_lengths(scenario)):
        covered[chunk.slices] += 1
        assert chunk.seeds.start % 64 == 0
    assert np.all(covered == 1)


def test_a_sweep_that_grows_keeps_its_numbers_and_simulates_only_new_runs(path):
    small, large = Scenario(**SWEEP), Scenario(**{**SWEEP, "rule": ["adatron", "hebb", "perceptron"], "seeds": 8})
    run_into(path, small)
    before, events = zarr_store.load(path), []
    run_into(path, large, tell=events.append)
    assert [event["event"] for event in events][:2] == ["grown", "begun"]
    after = zarr_store.load(path).sel(rule=["hebb", "perceptron"]).isel(seed=slice(6))
    np.testing.assert_array_equal(after.R, before.R)
    assert_same_bits(path, large)


@pytest.mark.slow
def test_a_single_value_may_become_an_axis(path):
    run_into(path, Scenario(rule="hebb", K=2, N=50, t=[1], seeds=3))
    grown = Scenario(rule=["adatron", "hebb"], K=[2, 3], N=50, t=[1], seeds=3)
    run_into(path, grown)
    assert_same_bits(path, grown)


@pytest.mark.parametrize("change", [{"t": [0, 2]}, {"seeds": 3}, {"key": 1}, {"rule": "hebb"}, {"N": 51}])
def test_a_change_that_would_lose_or_change_a_number_is_refused_with_a_line_per_difference(path, change):
    run_into(path, Scenario(**SWEEP))
    with pytest.raises(StoreError, match=f"{next(iter(change))}: stored"):
        run_into(path, Scenario(**{**SWEEP, **change}))
    assert_same_bits(path, Scenario(**SWEEP))


HARMS = ["flip", "truncate", "delete"]


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
def test_every_damaged_chunk_is_found_and_recomputed(path, harm):
    scenario = Scenario(**SWEEP)
    simulated = simulate.run(scenario)
    run_into(path, scenario)
    names = [*SweepStore(path).arrays, FINGERPRINT_VARIABLE, zarr_store.RUN_STATE_VARIABLE]
    chunks = [file for name in names for file in (path / name / "c").rglob("*") if file.is_file()]
    for file in sorted(chunks)[HARMS.index(harm) :: len(HARMS)]:
        _harm(file, harm)
        events = []
        run_into(path, scenario, tell=events.append)
        assert any(event["event"] == "written" for event in events), file
        assert_same_bits(path, scenario, simulated)


def _harm(file, harm):
    content = bytearray(file.read_bytes())
    if harm == "delete":
        file.unlink()
    elif harm == "truncate":
        file.write_bytes(content[: len(content) // 2])
    else:
        content[random.Random(len(content)).randrange(len(content))] ^= 0x10
        file.write_bytes(content)


def test_a_state_that_cannot_be_trusted_shows_nothing(path):
    """The control: without its file of `state` a chunk counts as missing, whatever its variables contain."""
    run_into(path, Scenario(**SWEEP))
    made = SweepStore(path)
    chunk = made.list_chunks()[0]
    made.mark_missing(chunk)
    assert made.count_states()[DONE_STATE] == 24 - made.read_states(chunk).size


def test_a_second_run_on_a_store_is_refused_with_the_process_that_holds_the_lock(path):
    with lock_store(path), pytest.raises(StoreError, match=f"is being written by process {os.getpid()} on "):
        run_into(path, Scenario(**SWEEP))
    run_into(path, Scenario(**SWEEP))


@dataclass(frozen=True)
class Brittle(Rule):
    """Raises whenever it is traced, as a user's rule may."""

    label = "brittle"

    @property
    def kinks(self):
        return ()

    def g(self, kappa, length):
        raise RuntimeError("no such modulation")


@pytest.mark.slow
def test_a_rule_that_raises_is_recorded_and_stops_no_other(path, monkeypatch):
    monkeypatch.setitem(RULES, "brittle", Brittle)
    scenario, events = Scenario(rule=["hebb", "brittle", "perceptron"], N=50, t=[0, 1], seeds=3), []
    outcome = run_into(path, scenario, tell=events.append)
    assert outcome == (6, 3, 0)
    [*_, last] = [event for event in events if event["event"] == "failed"]
    assert last["attempt"] == 3
    assert "RuntimeError: no such modulation" in last["error"]
    found = zarr_store.load(path)
    assert np.isfinite(found.R.sel(rule=["hebb", "perceptron"])).all()
    assert np.isnan(found.R.sel(rule="brittle")).all()
    assert read_status(path)["failed"] == 3
    assert run_into(path, scenario) == (6, 3, 0)  # not tried again unless asked for
    monkeypatch.setattr(Brittle, "g", lambda self, kappa, length: 1.0 + 0 * kappa)
    assert run_into(path, scenario, rerun_failed=True) == (9, 0, 0)


@dataclass(frozen=True)
class Explosive(Brittle):
    """Grows beyond the largest float."""

    label = "explosive"

    def g(self, kappa, length):
        return 1e200 * length * kappa


@pytest.mark.slow
@pytest.mark.quick
def test_numbers_that_diverge_are_a_failure(path, monkeypatch):
    monkeypatch.setitem(RULES, "explosive", Explosive)
    with jax.debug_nans(False):
        assert run_into(path, Scenario(rule="explosive", N=50, t=[0, 1], seeds=2)) == (0, 2, 0)
    assert "diverged" in read_status(path)["failures"][-1]["error"]


def test_a_full_disk_is_reported_and_earlier_chunks_are_intact(path, monkeypatch):
    scenario, written = Scenario(**SWEEP), []
    plain = SweepStore.write

    def full(self, chunk, values, states):
        if len(written) == 2:
            monkeypatch.setattr("zarr.Array.__setitem__", no_space)
        written.append(chunk)
        plain(self, chunk, values, states)

    def no_space(self, *_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context():
        monkeypatch.setattr(SweepStore, "write", full)
        with pytest.raises(StoreError, match="cannot be written: No space left on device"):
            run_into(path, scenario)
    monkeypatch.undo()
    assert read_status(path)["done"] > 0
    run_into(path, scenario)
    assert_same_bits(path, scenario)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["new", "old"])
def test_a_kill_while_a_store_grows_loses_nothing(path, moment):
    """Between two renames the old store has its backup name, or the new one does not exist yet."""
    scenario = Scenario(**SWEEP)
    run_into(path, scenario)
    if moment == "old":
        path.rename(path.with_name(".simulation.zarr.old"))
    create_store(path.with_name("other.zarr"), scenario, {}).path.rename(path.with_name(".simulation.zarr.new"))
    events = []
    run_into(path, scenario, tell=events.append)
    assert not any(event["event"] == "written" for event in events)
    assert_same_bits(path, scenario)
    assert not [file for file in path.parent.iterdir() if file.name.endswith((".old", ".new"))]


def test_a_chunk_that_kills_its_process_is_isolated_and_the_deadly_run_recorded(path, monkeypatch):
    """Two runs have died while simulating chunk 1; the third simulates it in a child, and each point in another."""
    scenario = Scenario(**SWEEP)
    store_ = create_store(path, scenario, {"title": "statmech simulation", "source": "the Gram engine"})
    log = StoreLog(path)
    for _ in range(2):
        log(event="begun", runs=24, done=0, blocks=4)
        log(event="playing", block=1)
    assert log.find_repeated_crash_chunks() == {1}
    deadly = store_.list_chunks()[1]
    calls = []

    def run_child(path, chunk, again, index=()):
        calls.append((chunk.number, index))
        if not index or index == tuple(part.start for part in deadly.slices[:-1]):
            return "the process died of SIGSEGV"
        simulate_stored_chunk(path, chunk.number, cell_index=index)
        return ""

    monkeypatch.setattr("simulate.execution.chunk_simulation._run_child_and_get_death_cause", run_child)
    outcome = run_into(path, scenario)
    assert outcome.missing == 0
    assert outcome.failed == 6
    assert calls[0] == (1, ())
    assert "SIGSEGV" in read_status(path)["failures"][-1]["error"]
    assert log.find_repeated_crash_chunks() == set()


@pytest.mark.slow
def test_a_child_simulates_a_chunk_and_its_cause_of_death_is_known(path, monkeypatch):
    from simulate.execution import chunk_simulation as isolated

    store_ = create_store(path, Scenario(**SWEEP), {"title": "statmech simulation"})
    chunk = store_.list_chunks()[0]
    assert isolated._run_child_and_get_death_cause(path, chunk, False) == ""
    assert (store_.read_states(chunk) == DONE_STATE).all()
    monkeypatch.setattr(isolated, "CHILD_PROCESS_CODE", "import os; os.kill(os.getpid(), 11)")
    assert isolated._run_child_and_get_death_cause(path, chunk, False) == "the process died of SIGSEGV"
    monkeypatch.setattr(isolated, "CHILD_PROCESS_CODE", "raise ValueError")
    assert isolated._run_child_and_get_death_cause(path, chunk, False) is None


KILLED = {
    "learner": ["hebb", "perceptron", "adatron"],
    "alpha": [0.5, 1, 1.5, 2, 3, 4],
    "epochs": [20],
    "N": 12,
    "seeds": 4,
}


def killed(path, seconds):
    """A sweep whose process is killed after a time, if it has not ended."""
    sweep_chunks.TARGET_CHUNK_SECONDS = 1e-3
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()
    run_into(path, StoredExamples(**KILLED))
    timer.cancel()


@pytest.mark.slow
def test_a_sweep_killed_repeatedly_ends_with_the_same_bits(path):
    rng = random.Random(1)
    for _ in range(8):
        assert in_child(killed, path, 1.5 * rng.random())[0] in (0, -signal.SIGKILL)
    assert in_child(killed, path, 120.0) == (0, "")
    assert_same_bits(path, StoredExamples(**KILLED))


def test_the_status_of_a_store_counts_and_times(path):
    run_into(path, Scenario(**SWEEP))
    made = SweepStore(path)
    made.mark_missing(made.list_chunks()[0])
    status = read_status(path.parent)
    assert 0 < status["missing"] == 24 - status["done"]
    assert status["writer"] == ""
    with lock_store(path):
        assert str(os.getpid()) in read_status(path)["writer"]
    with pytest.raises(StoreError, match="no such result"):
        read_status(path.parent / "nothing")
    assert xr.open_zarr(path, consolidated=False).state.isin([0, DONE_STATE, FAILED_STATE]).all()
