"""Write locks on a store, exclusive or shared among shards.

The operating system releases the locks of a process that dies. There are two lock files next to the store. `.NAME.lock`
is locked during a run: exclusively by one process, or jointly by the shards of one sweep. `.NAME.writing` is locked
briefly: shared, while a chunk is compared with the store and written; exclusively, while a store is created, extended
or replaced. So a chunk reaches only the store that its writer opened, even if the writer is a worker of a run that has
died.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from statmech.errors import StoreError, make_unwritable_file_error
from statmech.runtime import system
from statmech.runtime.system import EXCLUSIVE_LOCK, SHARED_LOCK

T = TypeVar("T")
LOCK_RETRIES, LOCK_RETRY_SECONDS = 5, 0.05  # reading a lock's owner briefly takes the lock
LOCK_WAIT_NOTICE_SECONDS = 2.0  # report only longer waits
SWEEP_EXTENSION_HINT = (
    "A sweep is extended or replaced only while no other process writes it: wait until that process has ended, or "
    "choose another folder"
)
NO_FILE_LOCKS_MESSAGE = "several processes cannot share one sweep on a system without file locks. Run it in one shard"


class Lock:
    """A lock file, reopened if another process removes it."""

    def __init__(self, path: Path):
        self.path = path
        self._file = open_regular_text_file(path, os.O_RDWR | os.O_CREAT)

    def try_acquire(self, mode: int) -> bool:
        """Try to take the lock, `SHARED_LOCK` or `EXCLUSIVE_LOCK`, and return False if another process holds it."""
        while self._try_lock(mode):
            if _is_open_file_at(self._file, self.path):
                return True
            self._file.close()
            self._file = open_regular_text_file(self.path, os.O_RDWR | os.O_CREAT)
        return False

    def _try_lock(self, mode: int) -> bool:
        try:
            return system.try_lock(self._file, mode)
        except OSError as failure:  # ENOLCK, EOPNOTSUPP, ...: a network disk without locks
            reason = failure.strerror or failure
            raise StoreError(f"{self.path}: cannot be locked: {reason}. Store results on a local disk") from None

    def release(self, remove: bool = True) -> None:
        """Release the lock, and remove its file if no other process holds the lock."""
        with contextlib.suppress(OSError):
            if remove and self._try_lock(EXCLUSIVE_LOCK) and _is_open_file_at(self._file, self.path):
                self.path.unlink()
        self._file.close()

    def sign(self) -> None:
        """Record this process as the owner of the lock. On a full disk the file remains empty."""
        signature = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%F %T")}
        with contextlib.suppress(OSError):
            os.ftruncate(self._file.fileno(), 0)
            os.lseek(self._file.fileno(), 0, os.SEEK_SET)
            os.write(self._file.fileno(), json.dumps(signature).encode())

    def owner(self) -> str:
        """Return a description of the process that signed the lock file."""
        return _read_owner(self._file)


class StoreClaim:
    """The right of a process to write the store at `path`, exclusively or as one of several shards."""

    def __init__(self, path: Path, lock: Lock, exclusive: bool):
        self.path, self.lock, self.exclusive = path, lock, exclusive

    def open(self, find: Callable[[], T | None], create: Callable[[], T], wait: Callable[[str], None]) -> T:
        """Return the store from `find`, or else from `create`, while no other process writes.

        Both functions are called while no process writes a chunk. A shard shares the lock with the other shards. An
        exclusive run calls `create` at once. `wait` is called with the owner's name if another process is creating the
        store. Raises `StoreError` with the name of the process that holds the store.
        """
        if not self.exclusive:
            with lock_for_writing(self.path):
                store = find()
                if store is not None:
                    self._take_lock(SHARED_LOCK)
                    return store
        with lock_for_writing(self.path, exclusive=True, wait=wait):
            store = None if self.exclusive else find()  # meanwhile another shard may have created the store
            if store is None:
                self._take_lock(EXCLUSIVE_LOCK)
                store = create()
            self._take_lock(EXCLUSIVE_LOCK if self.exclusive else SHARED_LOCK)
        return store

    def _take_lock(self, mode: int) -> None:
        hint = f". {SWEEP_EXTENSION_HINT}" if mode == EXCLUSIVE_LOCK and not self.exclusive else ""
        _acquire_lock(self.lock, mode, f"{self.path}: is being written by", hint)


@contextlib.contextmanager
def claim_store(path: Path, shard: tuple[int, int] = (1, 1)) -> Iterator[StoreClaim]:
    """Open a context that holds a claim to write the store at `path`.

    Raises `StoreError` if the folder cannot be written, if another process computes the same shard, or for any shard
    on a system without locks.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise make_unwritable_file_error(path, failure) from None
    k, n = shard
    with contextlib.ExitStack() as closing:
        if n > 1:
            if not system.has_file_locks():
                raise StoreError(f"{path}: {NO_FILE_LOCKS_MESSAGE}")
            shard_lock = Lock(path.with_name(f".{path.name}.lock-{k}-of-{n}"))
            closing.callback(shard_lock.release)
            _acquire_lock(shard_lock, EXCLUSIVE_LOCK, f"{path}: shard {k} of {n} is being written by")
        lock = Lock(_get_lock_path(path))
        closing.callback(lock.release)
        closing.callback(lambda: Lock(_get_writing_lock_path(path)).release())  # left by writers of chunks
        yield StoreClaim(path, lock, n == 1)


def find_writing_process(path: Path) -> str:
    """Return the process that is writing the store at `path`, and its host, or an empty string."""
    with contextlib.suppress(OSError, StoreError), open_regular_text_file(_get_lock_path(path), os.O_RDWR) as file:
        if not system.try_lock(file, EXCLUSIVE_LOCK):
            return _read_owner(file)
    return ""


@contextlib.contextmanager
def lock_for_writing(path: Path, exclusive: bool = False, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Lock a store while a chunk is written, or exclusively while the store is created, extended or replaced.

    Waits without limit; after two seconds `wait` is called with the name of the process that holds the store.
    """
    lock, start = Lock(_get_writing_lock_path(path)), time.monotonic()
    try:
        while not lock.try_acquire(EXCLUSIVE_LOCK if exclusive else SHARED_LOCK):
            if wait and time.monotonic() - start > LOCK_WAIT_NOTICE_SECONDS:
                wait(find_writing_process(path) or "another process")
                wait = None
            time.sleep(LOCK_RETRY_SECONDS)
        yield
    finally:
        lock.release(remove=exclusive)


def open_regular_text_file(path: Path, flags: int) -> IO[str]:
    """Open a lock file or log.

    Raises `StoreError` for a symbolic link, whose target would be overwritten.
    """
    try:
        number = system.open_descriptor(path, flags, follow=False)
    except OSError as failure:
        if path.is_symlink():
            problem = "is a symbolic link, whose target would be overwritten. Remove the link"
            raise StoreError(f"{path}: {problem}") from None
        raise make_unwritable_file_error(path, failure) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise StoreError(f"{path}: is not a regular file: remove it")
    form = {os.O_RDONLY: "r", os.O_WRONLY: "a"}.get(flags & (os.O_WRONLY | os.O_RDWR), "r+")
    return os.fdopen(number, form, encoding="utf-8", errors="replace")


def _acquire_lock(lock: Lock, mode: int, sentence: str, hint: str = "") -> None:
    """Take a lock and sign it, or raise `StoreError` with the name of its owner."""
    for _ in range(LOCK_RETRIES):
        if lock.try_acquire(mode):
            lock.sign()
            return
        time.sleep(LOCK_RETRY_SECONDS)
    raise StoreError(f"{sentence} {lock.owner()}{hint}")


def _get_lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _get_writing_lock_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.writing")


def _is_open_file_at(file: IO[str], path: Path) -> bool:
    """Return True if an open file is still the file at this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat(follow_symlinks=False))
    except OSError:
        return False


def _read_owner(file: IO[str]) -> str:
    try:
        file.seek(0)
        signature: dict[str, Any] = json.load(file)
        return f"process {signature['process']} on {signature['host']}, since {signature['since']}"
    except (ValueError, LookupError, TypeError):
        return "another process"
