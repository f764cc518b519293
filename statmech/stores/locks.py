"""The lock of a store, which only one process may write.

The operating system releases the lock of a process that dies. The lock file `.NAME.lock` lies next to the store.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from statmech.errors import StoreError, make_unwritable_file_error
from statmech.runtime import files, operating_system

LOCK_RETRIES, LOCK_RETRY_SECONDS = 5, 0.05  # reading a lock's owner briefly takes the lock
MAX_OWNER_LENGTH = 200


@contextlib.contextmanager
def lock_store(path: Path) -> Iterator[None]:
    """Open a context that keeps other processes from writing the store at `path`.

    Raises `StoreError` with the name of the process that is writing the store, or if the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise make_unwritable_file_error(path, failure) from None
    lock_path = _get_lock_path(path)
    with contextlib.ExitStack() as closing:
        for _ in range(LOCK_RETRIES):
            file = closing.enter_context(files.open_regular_text_file(lock_path, os.O_RDWR | os.O_CREAT))
            if _try_lock(file, lock_path) and _is_open_file_at(file, lock_path):
                break
            time.sleep(LOCK_RETRY_SECONDS)
        else:
            raise StoreError(f"{path}: is being written by {_read_owner(file)}")
        closing.callback(lock_path.unlink, missing_ok=True)  # runs first, while the file is still locked
        _write_owner(file)
        yield


def find_writing_process(path: Path) -> str:
    """Return the process that is writing the store at `path`, and its host, or an empty string."""
    lock_path = _get_lock_path(path)
    with contextlib.suppress(OSError), files.open_regular_text_file(lock_path, os.O_RDWR) as file:
        if not _try_lock(file, lock_path):
            return _read_owner(file)
    return ""


def _try_lock(file: IO[str], lock_path: Path) -> bool:
    try:
        return operating_system.try_lock(file)
    except OSError as failure:  # ENOLCK, EOPNOTSUPP, ...: a network disk without locks
        reason = failure.strerror or failure
        raise StoreError(f"{lock_path}: cannot be locked: {reason}. Store results on a local disk") from None


def _is_open_file_at(file: IO[str], path: Path) -> bool:
    """Return False if the previous owner of the lock has removed its file since it was opened."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat(follow_symlinks=False))
    except OSError:
        return False


def _write_owner(file: IO[str]) -> None:
    """Record this process as the owner of the lock. On a full disk the file remains empty."""
    owner = f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%F %T')}"
    with contextlib.suppress(OSError):
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), owner.encode())


def _read_owner(file: IO[str]) -> str:
    return file.read(MAX_OWNER_LENGTH) or "another process"


def _get_lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")
