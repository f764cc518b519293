"""A number that is read from the store of a sweep is right, or an error names the fault, whatever happened to it.

A state machine of Hypothesis mixes runs, kills before any write, extensions, harmed files and verifications, and reads
the store after every step. `pytest -m slow --hypothesis-profile=deep FILE` tries many random histories, not fixed ones.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import FIXED_EXAMPLES, ForkServer, assert_same_bits, get_deep_settings
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import simulate
import statmech.stores.sweep_chunks
from simulate.execution.store_simulation import run_into
from statmech import StoreError
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.stores import zarr_store as store
from statmech.stores.store_creation import recover_interrupted_replacement
from statmech.stores.store_status import read_logged_runs, verify_results
from statmech.stores.sweep_chunks import SweepStore

BASE = {"boundary": "constant", "N": 8, "walks": 10}
GRIDS = [  # error rates and seeds: each grid extends the last
    ([0.1, 0.3], 2),
    ([0.1, 0.2, 0.3], 2),
    ([0.1, 0.2, 0.3, 0.4], 3),
    (np.linspace(0.1, 0.4, 31).round(2).tolist(), 3),
]
MAX_LEVEL = 2  # the last grid is only read while it is computed
SWEEPS = [scenario_from({**BASE, "error_rate": rates, "seeds": seeds}) for rates, seeds in GRIDS]
CONFIGS = [json.loads(json.dumps(sweep.config())) for sweep in SWEEPS]
TWIN = scenario_from({**SWEEPS[MAX_LEVEL].config(), "key": 1})
MAX_WRITES = 200  # a sweep that extends another writes fewer files
WRITE_EVENTS = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")


@pytest.fixture(autouse=True)
def _chunk_per_combination(monkeypatch):
    monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-9)
    monkeypatch.setattr("os.fsync", lambda _: None)  # no power failure: half of the time of a run


@cache
def simulate_sweep(level):
    """Return the numbers of a sweep that nothing disturbed."""
    return simulate.run(SWEEPS[level])


@cache
def make_twin_chunks():
    """Return the chunk files of the same sweep with another key, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "twin.zarr"
        run_into(path, TWIN)
        return {str(file.relative_to(path)): file.read_bytes() for file in list_files(path) if "/c/" in str(file)}


def list_files(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def check_numbers(result):
    """Assert that finished runs have the numbers of the sweep that a result names, and return the number of runs."""
    config = json.loads(result.attrs["config"])
    assert config in CONFIGS
    expected = simulate_sweep(CONFIGS.index(config))
    assert {*result.variables} - {"done"} == {*expected.variables}
    done = result.done.values if "done" in result.coords else np.ones(result[next(iter(expected))].shape[:2], bool)
    for name in expected.coords:
        np.testing.assert_array_equal(result[name], expected[name], err_msg=name)
    for name in expected.data_vars:
        np.testing.assert_array_equal(result[name].values[done], expected[name].values[done], err_msg=name)
    return int(done.sum())


def prepare_runs():
    """Import all that a run needs."""
    statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS = 1e-9
    make_twin_chunks()


def run_until_killed(path, level, write, is_exchange, plant):
    """Run a sweep into a store, and kill this process just before a write to the store's folder.

    With `is_exchange`, only renames next to the store count, by which an extended store replaces the old one.
    """
    numbers = itertools.count(1)

    def kill_before_write(event, arguments):
        if event == "open":
            is_write = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        else:
            is_write = event in WRITE_EVENTS
        if is_write and isinstance(arguments[0], (str, os.PathLike)):
            folder = Path(arguments[0]).parent
            inside = path.parent in (folder, *folder.parents)
            counts = event == "os.rename" and folder == path.parent if is_exchange else inside
            if counts and next(numbers) == write:
                os.kill(os.getpid(), signal.SIGKILL)

    plant()
    sys.addaudithook(kill_before_write)
    try:
        run_into(path, SWEEPS[level])
    except StoreError:
        return 2


@pytest.fixture(scope="module", autouse=True)
def _server():
    with ForkServer(prepare_runs) as StoreFaults.server:
        yield


def plant_nothing():
    """Leave the code as it is."""


class StoreFaults(RuleBasedStateMachine):
    """The history of one store."""

    plant = staticmethod(plant_nothing)  # the error that killed runs have

    def __init__(self):
        super().__init__()
        self.path = Path(tempfile.mkdtemp()) / "simulation.zarr"
        self.level, self.harmed, self.is_complete = 0, set(), False

    def teardown(self):
        shutil.rmtree(self.path.parent)

    @initialize(is_complete=st.booleans())
    def start(self, is_complete):
        if is_complete:
            self.run()

    @precondition(lambda self: self.harmed or not self.is_complete)
    @rule()
    def run(self):
        try:
            run_into(self.path, SWEEPS[self.level])
        except StoreError as refused:
            if "zarr.json" not in self.harmed or "Use fresh=True" not in str(refused):
                raise
            run_into(self.path, SWEEPS[self.level], fresh=True)
        self.harmed.clear()
        self.is_complete = True
        assert_same_bits(self.path, SWEEPS[self.level], simulate_sweep(self.level))

    @precondition(lambda self: self.harmed or not self.is_complete)
    @rule(write=st.integers(1, MAX_WRITES), is_exchange=st.booleans())
    def kill(self, write, is_exchange):
        write = write % 2 + 1 if is_exchange else write
        code = self.server.call(run_until_killed, self.path, self.level, write, is_exchange, self.plant)
        assert code in (0, 2 if "zarr.json" in self.harmed else 0, -signal.SIGKILL)
        recover_interrupted_replacement(self.path)
        runs = read_logged_runs(self.path.with_suffix(".log"))
        if reported := max((event.get("done", 0) for event in runs[-1:] and runs[-1]), default=0):
            assert self.harmed or check_numbers(store.load(self.path)) >= reported

    @precondition(lambda self: self.level < MAX_LEVEL)
    @rule()
    def grow(self):
        self.level += 1
        self.is_complete = False

    @precondition(lambda self: self.path.exists())
    @rule(
        file=st.integers(0, 10**4), harm=st.sampled_from(["flip", "truncate", "delete"]), position=st.integers(0, 10**6)
    )
    def damage(self, file, harm, position):
        files = list_files(self.path)
        file = files[file % len(files)]
        content = bytearray(file.read_bytes())
        if harm == "flip" and content:
            content[position // 8 % len(content)] ^= 1 << position % 8
        elif harm == "truncate":
            del content[position % (len(content) or 1) :]
        self._replace(file, None if harm == "delete" else bytes(content))

    @precondition(lambda self: self.path.exists())
    @rule(file=st.integers(0, 10**4), other=st.integers(0, 10**4), is_twin=st.booleans())
    def exchange(self, file, other, is_twin):
        """Replace a chunk by one of another position, or of the same sweep with another key."""
        chunks = [file for file in list_files(self.path) if len(file.relative_to(self.path).parts) == 4]  # of runs
        if chunks:
            file, other = chunks[file % len(chunks)], chunks[other % len(chunks)].read_bytes()
            name = str(file.relative_to(self.path))
            self._replace(file, make_twin_chunks().get(name, other) if is_twin else other)

    def _replace(self, file, content):
        if content == file.read_bytes():
            return
        file.unlink() if content is None else file.write_bytes(content)
        self.harmed.add(str(file.relative_to(self.path)))

    @precondition(lambda self: self.path.exists())
    @rule()
    def verify(self):
        try:
            verification = verify_results(self.path)
        except StoreError:
            if not self.harmed:
                raise
            return
        if verification.is_sound:  # so it can be read, and by the invariant every number is right
            assert verification.done == check_numbers(store.load(self.path))
        else:
            assert self.harmed

    @invariant()
    def read(self):
        try:
            check_numbers(store.load(self.path))
        except StoreError:
            if not self.harmed and self.path.exists():
                raise


QUICK = settings(FIXED_EXAMPLES, max_examples=8, stateful_step_count=10)


def test_every_number_read_from_a_store_is_right_or_an_error_is_raised():
    run_state_machine_as_test(StoreFaults, settings=QUICK)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_number_is_right_after_long_histories():
    run_state_machine_as_test(StoreFaults, settings=settings(get_deep_settings(50), stateful_step_count=25))


def test_a_sweep_that_is_read_while_it_is_computed_has_final_numbers(tmp_path):
    path, counts = tmp_path / "simulation.zarr", []
    writer = threading.Thread(target=run_into, args=(path, SWEEPS[-1]))
    writer.start()
    while writer.is_alive():
        if path.exists():
            counts.append(check_numbers(store.load(path)))
    writer.join()
    assert check_numbers(store.load(path)) == 93
    assert len({*counts} - {0, 93}) > 1


def write_states_first():
    """Mark the runs of a chunk as done before their numbers are written."""
    write = SweepStore.write_without_lock

    def write_states(self, chunk, values, states, made_by=None):
        self.state[chunk.slices] = states
        write(self, chunk, values, states, made_by)

    SweepStore.write_without_lock = write_states


PLANTED_ERRORS = {  # of a reader, and of the process that is killed
    "checksums are not compared": ("statmech.stores.checksums.find_corrupted_files", lambda path: []),
    "fingerprints are not compared": ("statmech.stores.zarr_store._describe_misplaced_runs", lambda dataset: ()),
    "an interrupted replacement is not undone": (f"{__name__}.recover_interrupted_replacement", lambda path: None),
    "states are written before numbers": None,
}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("error", PLANTED_ERRORS)
def test_a_planted_error_is_found(error, monkeypatch):
    class Planted(StoreFaults):
        plant = staticmethod(plant_nothing if PLANTED_ERRORS[error] else write_states_first)

    if PLANTED_ERRORS[error]:
        monkeypatch.setattr(*PLANTED_ERRORS[error])
    with pytest.raises((AssertionError, StoreError)):
        run_state_machine_as_test(Planted, settings=settings(QUICK, max_examples=600, phases=[Phase.generate]))
