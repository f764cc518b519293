"""No process writes into a store other than the one it opened, or extends a store that others write."""

from __future__ import annotations

import errno
import os
import random
import threading
import time

import numpy as np
import pytest
from conftest import assert_same_bits, forkserver

import simulate
import statmech.results.chunks
from simulate.execution.chunks import simulate_stored_chunk
from simulate.execution.to_store import run_into
from statmech import Scenario, StoredExamples, StoreError
from statmech.results.locks import claim_store, find_writing_process, lock_for_writing
from statmech.results.log import StoreLog
from statmech.results.store_creation import create_store
from statmech.results.sweep_store import DONE_STATE, MISSING_STATE, SweepStore

pytestmark = pytest.mark.usefixtures("small_chunks")
OLD = {"learner": ["hebb", "max_stability"], "N": 60, "alpha": [2.0, 2.4, 2.8, 3.2], "seeds": 16}
GROWN = {**OLD, "alpha": [1.0, *OLD["alpha"]]}


def compute(requests):
    """Compute shards on request, and answer "done" or why not."""
    statmech.results.chunks.TARGET_CHUNK_SECONDS = 1e-3
    while True:
        path, config, shard = requests.recv()
        try:
            run_into(path, StoredExamples(**config), shard=shard)
            requests.send("done")
        except StoreError as problem:
            requests.send(" ".join(str(problem).split()))


class Writer:
    """A process that computes shards on request."""

    def __init__(self):
        self.requests, other = forkserver().Pipe()
        self.process = forkserver().Process(target=compute, args=(other,))
        self.process.start()

    def begin(self, *request):
        self.requests.send(request)

    def ended(self):
        assert self.requests.poll(60)
        return self.requests.recv()


@pytest.fixture(scope="module")
def writers():
    both = Writer(), Writer()
    yield both
    for one in both:
        one.process.kill()
        one.process.join(30)


@pytest.mark.slow
@pytest.mark.parametrize("first", [OLD, GROWN], ids=["old first", "grown first"])
def test_a_shard_of_a_sweep_and_one_of_its_extension_never_write_into_each_other(first, writers, tmp_path):
    """In separate processes, until they have met three times; the numbers are always those of the larger sweep."""
    one, other = writers
    second, refused, rng = (GROWN if first is OLD else OLD), [], random.Random(1)
    grown = StoredExamples(**GROWN)
    simulated = simulate.run(grown)
    for turn in range(100):  # how often they meet depends on the machine
        path = tmp_path / f"{turn}" / "simulation.zarr"
        one.begin(path, first, [1, 2])
        time.sleep(0.15 * rng.random())
        other.begin(path, second, [2, 2])
        refused += [answer for answer in (one.ended(), other.ended()) if answer != "done"]
        run_into(path, grown)
        assert_same_bits(path, grown, simulated)
        if len(refused) >= 3:
            break
    assert all("is being written by process" in answer or "holds the result of another" in answer for answer in refused)
    assert len(refused) >= 3  # they did meet


@pytest.mark.slow
def test_two_shards_of_a_grown_sweep_that_begin_at_once_both_compute(writers, path):
    """One extends the store, the other waits and finds it extended."""
    run_into(path, StoredExamples(**OLD))
    for shard, writer in enumerate(writers, 1):
        writer.begin(path, GROWN, [shard, 2])
    assert [writer.ended() for writer in writers] == ["done", "done"]
    assert_same_bits(path, StoredExamples(**GROWN))


@pytest.mark.slow
def test_a_store_that_shards_write_is_neither_extended_nor_replaced_and_the_message_names_them(writers, path):
    scenario = StoredExamples(**OLD)
    with claim_store(path, (1, 2)) as claim:
        claim.open(find=lambda: None, create=lambda: create_store(path, scenario, {}), wait=print)
        for given, how in ((GROWN, {"shard": (2, 2)}), (GROWN, {}), (OLD, {"fresh": True})):
            with pytest.raises(StoreError, match=f"is being written by process {os.getpid()} on "):
                run_into(path, StoredExamples(**given), **how)
        run_into(path, scenario, shard=(2, 2))  # beside it, another shard of the same sweep may compute
    run_into(path, StoredExamples(**GROWN))
    assert_same_bits(path, StoredExamples(**GROWN))


def test_a_block_computed_for_a_store_that_was_replaced_is_not_written(path, monkeypatch):
    """A worker may outlive its run: a new store is another one, even if it has the same config."""
    scenario = StoredExamples(**OLD)
    create_store(path, scenario, {})
    plain = SweepStore.write

    def late(self, *rest):
        create_store(path, scenario, {})
        plain(self, *rest)

    monkeypatch.setattr(SweepStore, "write", late)
    with pytest.raises(StoreError, match="was replaced or removed after it was opened"):
        simulate_stored_chunk(path, 0)
    assert SweepStore(path).count_states()[DONE_STATE] == 0


def test_a_store_is_not_exchanged_between_the_check_and_the_write_of_a_chunk(path):
    """The lock covers both: a process that replaces the store waits until the chunk is written."""
    scenario = StoredExamples(**OLD)
    made, order = create_store(path, scenario, {}), []
    chunk = made.list_chunks()[0]
    values = made.load_chunk_buffer(chunk, made.read_states(chunk))
    plain = made._check_not_replaced

    def slow():
        plain()
        replacing.start()
        time.sleep(0.3)
        order.append("written")

    def replace():
        with lock_for_writing(path, exclusive=True):
            order.append("replaced")

    replacing = threading.Thread(target=replace)
    made._check_not_replaced = slow
    made.write(chunk, values, np.full(chunk.shape, MISSING_STATE, "int8"))
    replacing.join(10)
    assert order == ["written", "replaced"]


def test_a_process_that_waits_for_another_to_create_a_store_names_it(path, monkeypatch):
    monkeypatch.setattr("statmech.results.locks.LOCK_WAIT_NOTICE_SECONDS", 0.05)
    path.parent.mkdir(exist_ok=True)
    named, going = [], threading.Event()

    def make():
        with claim_store(path) as claim:
            claim.open(find=lambda: None, create=lambda: going.wait(10), wait=print)

    maker = threading.Thread(target=make)
    maker.start()
    until(lambda: find_writing_process(path))
    threading.Timer(0.5, going.set).start()
    with lock_for_writing(path, exclusive=True, wait=named.append):
        pass
    maker.join(10)
    assert len(named) == 1
    assert f"process {os.getpid()} on " in named[0]


def until(condition):
    for _ in range(200):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("did not happen in four seconds")


@pytest.mark.slow
def test_locks_leave_no_file_behind(path):
    run_into(path, StoredExamples(**OLD))
    run_into(path, StoredExamples(**OLD), shard=(1, 2))
    assert {file.name for file in path.parent.iterdir()} == {path.name, "simulation.log", "simulation-1-of-2.log"}


@pytest.mark.parametrize("name", [".simulation.zarr.lock", ".simulation.zarr.writing", "simulation.log"])
def test_a_planted_link_in_place_of_a_lock_or_a_log_is_refused_and_its_target_kept(name, path):
    precious = path.parent / "precious.txt"
    precious.write_text("years of work")
    (path.parent / name).symlink_to(precious)
    with pytest.raises(StoreError, match="is a symbolic link, whose target would be overwritten"):
        run_into(path, StoredExamples(**OLD))
    assert precious.read_text() == "years of work"
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", [".simulation.zarr.lock", "simulation.log"])
def test_a_pipe_in_place_of_a_lock_or_a_log_blocks_no_process(name, path):
    os.mkfifo(path.parent / name)
    if name == "simulation.log":
        StoreLog(path)(event="begun", done=0)
    else:
        with pytest.raises(StoreError, match="is not a regular file"):
            run_into(path, StoredExamples(**OLD))
    assert find_writing_process(path) == ""


def test_a_disk_without_locks_is_named_with_what_to_do(path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("statmech.results.locks.system.try_lock", fail)
    with pytest.raises(
        StoreError, match=r"simulation\.zarr\.\w+: cannot be locked: No locks available\. Store results"
    ):
        run_into(path, Scenario(rule="hebb", N=20, t=[1], seeds=2))
