"""One process writes a store, and others are refused."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time

import pytest
from conftest import in_child

from simulate.execution.store_simulation import run_into
from statmech import Scenario, StoredExamples, StoreError
from statmech.runtime import operating_system
from statmech.stores.locks import find_writing_process, lock_store
from statmech.stores.store_status import StoreLog

pytestmark = pytest.mark.usefixtures("small_chunks")
OLD = {"learner": ["hebb", "max_stability"], "N": 60, "alpha": [2.0, 2.4, 2.8, 3.2], "seeds": 16}


def killed(path):
    """A process that is killed while it holds the lock of a store."""
    with lock_store(path):
        os.kill(os.getpid(), signal.SIGKILL)


def test_the_lock_of_a_killed_process_is_taken_over(path):
    assert in_child(killed, path)[0] == -signal.SIGKILL
    assert (path.parent / ".simulation.zarr.lock").read_text()
    assert find_writing_process(path) == ""
    assert run_into(path, StoredExamples(**OLD)).missing == 0


def test_only_one_of_several_threads_has_the_lock_at_a_time(path):
    """Each removes the file of the lock at its end, which others may have opened."""
    held, overlaps, entries, messages = [], [], [], set()

    def enter():
        for _ in range(40):
            try:
                with lock_store(path):
                    overlaps.append(len(held))
                    held.append(1)
                    time.sleep(0.001)
                    held.pop()
                    entries.append(1)
            except StoreError as refused:
                messages.add(str(refused).partition(" on ")[0])

    threads = [threading.Thread(target=enter) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(entries) > 40
    assert not any(overlaps)
    assert messages <= {
        f"{path}: is being written by {owner}" for owner in (f"process {os.getpid()}", "another process")
    }


def test_a_lock_file_that_its_owner_removes_meanwhile_is_no_lock(path, monkeypatch):
    plain, tries = operating_system.try_lock, []

    def removed(file):
        tries.append(file)
        if len(tries) == 1:
            (path.parent / ".simulation.zarr.lock").unlink()
        return plain(file)

    monkeypatch.setattr("statmech.stores.locks.operating_system.try_lock", removed)
    with lock_store(path):
        assert len(tries) == 2
        assert f"process {os.getpid()} on " in find_writing_process(path)


@pytest.mark.slow
def test_locks_leave_no_file_behind(path):
    run_into(path, StoredExamples(**OLD))
    run_into(path, StoredExamples(**OLD), shard=(1, 2))
    stores = {"simulation.zarr", "simulation.1-of-2.zarr"}
    assert {file.name for file in path.parent.iterdir()} == stores | {"simulation.log", "simulation.1-of-2.log"}


@pytest.mark.parametrize("name", [".simulation.zarr.lock", "simulation.log"])
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

    monkeypatch.setattr("statmech.stores.locks.operating_system.try_lock", fail)
    with pytest.raises(
        StoreError, match=r"simulation\.zarr\.\w+: cannot be locked: No locks available\. Store results"
    ):
        run_into(path, Scenario(rule="hebb", N=20, t=[1], seeds=2))
