"""Who writes a store: one run, or the shards of one. The system forgets a holder that has died."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from statmech.errors import StoreError, unwritable


@contextlib.contextmanager
def held(path: Path, shard: tuple[int, int] = (1, 1)) -> Iterator[None]:
    """Hold the store at `path`, alone, or as one of n shards beside the others.

    Waits for nothing: raises `StoreError` that names the process and host of the holder.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise unwritable(path, failure) from None
    alone = shard[1] == 1
    with contextlib.ExitStack() as stack:
        stack.enter_context(_locked(path.with_name(f".{path.name}.lock"), path, alone))
        if not alone:
            own = path.with_name(f".{path.name}.lock-{shard[0]}-of-{shard[1]}")
            stack.enter_context(_locked(own, path, True))
        yield


def holder(path: Path) -> str:
    """Who holds the store at `path` now; empty if nobody does."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        with lock.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return _holder(file)
    except OSError:
        pass
    return ""


@contextlib.contextmanager
def making(path: Path) -> Iterator[None]:
    """Make or grow the store at `path` one shard after the other; that is a matter of moments, and is waited for."""
    lock = path.with_name(f".{path.name}.making")
    try:
        file = lock.open("a+")
    except OSError as failure:
        raise unwritable(path, failure) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                lock.unlink()


@contextlib.contextmanager
def _locked(lock: Path, path: Path, alone: bool) -> Iterator[None]:
    file = _opened(lock, path, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    try:
        told = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%F %T")}
        with contextlib.suppress(OSError):  # a full disk: held is held, if not by name
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), json.dumps(told).encode())
        yield
    finally:
        with contextlib.suppress(OSError):  # shards share a lock: the last one's name is gone already
            if alone:
                lock.unlink()
        file.close()


def _opened(lock: Path, path: Path, how: int) -> IO[str]:
    """The lock's file, held; opened again if its last holder removed it meanwhile."""
    while True:
        try:
            file = lock.open("a+")
        except OSError as failure:
            raise unwritable(path, failure) from None
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except OSError:
            with file:
                raise StoreError(f"{path}: is being written by {_holder(file)}") from None
        if lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat()):
            return file
        file.close()


def _holder(file: IO[str]) -> str:
    file.seek(0)
    try:
        told: dict[str, Any] = json.load(file)
    except ValueError:
        return "another process"
    return f"process {told['process']} on {told['host']}, since {told['since']}"
