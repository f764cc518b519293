"""Who may write a store: locks of the operating system, which forgets a process that has died.

Two files beside the store. `.NAME.lock` is held from the beginning to the end of a run: by one process alone, or by the
shards of one sweep together. `.NAME.writing` is held for moments: shared, while a block is compared with the store and
written; alone, while a store is made, grown or replaced. So no block reaches a store other than the one its writer
opened, not even from the worker of a run that has died.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from statmech.errors import StoreError, unwritable

T = TypeVar("T")
RETRIES, PAUSE = 5, 0.05  # a process that asks who owns a lock holds it for an instant
QUIET = 2.0  # seconds of waiting of which nobody needs to hear
ALONE_TO_GROW = (
    "A sweep grows, or is replaced, only while no other process writes it: wait until it has ended, or give "
    "another folder with --out DIR"
)


class Lock:
    """A lock's file, opened; another process may have removed it since, and then it is opened again."""

    def __init__(self, place: Path):
        self.place = place
        self._file = opened(place, os.O_RDWR | os.O_CREAT)

    def take(self, how: int) -> bool:
        """Whether the lock could be had now, shared (`LOCK_SH`) or alone (`LOCK_EX`)."""
        while _flock(self._file, how):
            if _is_at(self._file, self.place):
                return True
            self._file.close()
            self._file = opened(self.place, os.O_RDWR | os.O_CREAT)
        return False

    def release(self, remove: bool = True) -> None:
        """Let go, and `remove` the file if nobody else holds it."""
        if remove and _flock(self._file, fcntl.LOCK_EX) and _is_at(self._file, self.place):
            with contextlib.suppress(OSError):
                self.place.unlink()
        self._file.close()

    def sign(self) -> None:
        """Write who holds the lock; on a full disk it is held without a name."""
        named = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%F %T")}
        with contextlib.suppress(OSError):
            os.ftruncate(self._file.fileno(), 0)
            os.pwrite(self._file.fileno(), json.dumps(named).encode(), 0)

    def owner(self) -> str:
        """Who has signed it."""
        return _owner(self._file)


class Claim:
    """A process's claim on the store at `path`: alone, or as a shard beside the others."""

    def __init__(self, path: Path, lock: Lock, alone: bool):
        self.path, self.lock, self.alone = path, lock, alone

    def open(self, ready: Callable[[], T | None], make: Callable[[], T], wait: Callable[[str], None]) -> T:
        """What `ready` finds of the store, or else what `make` makes of it while no other process writes it.

        Both are called while no block is written by anyone. A shard takes its place beside the others; a run that is
        alone calls `make` at once. `wait` is called with the owner's name where another process makes the store.
        Raises `StoreError` with the name of the process that holds the store.
        """
        if not self.alone:
            with writing(self.path):
                found = ready()
                if found is not None:
                    self._take(fcntl.LOCK_SH)
                    return found
        with writing(self.path, alone=True, wait=wait):
            found = None if self.alone else ready()  # another shard may have made it meanwhile
            if found is None:
                self._take(fcntl.LOCK_EX)
                found = make()
            self._take(fcntl.LOCK_EX if self.alone else fcntl.LOCK_SH)
        return found

    def _take(self, how: int) -> None:
        hint = f". {ALONE_TO_GROW}" if how == fcntl.LOCK_EX and not self.alone else ""
        _taken(self.lock, how, f"{self.path}: is being written by", hint)


@contextlib.contextmanager
def claimed(path: Path, shard: tuple[int, int] = (1, 1)) -> Iterator[Claim]:
    """A claim on the store at `path` for as long as the context lasts.

    Raises `StoreError` where the folder cannot be written, or another process computes the same shard.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise unwritable(path, failure) from None
    k, n = shard
    with contextlib.ExitStack() as closing:
        if n > 1:
            own = Lock(path.with_name(f".{path.name}.lock-{k}-of-{n}"))
            closing.callback(own.release)
            _taken(own, fcntl.LOCK_EX, f"{path}: shard {k} of {n} is being written by")
        lock = Lock(_lock_of(path))
        closing.callback(lock.release)
        closing.callback(lambda: Lock(_writing_of(path)).release())  # which blocks leave behind
        yield Claim(path, lock, n == 1)


def owner(path: Path) -> str:
    """The process that writes the store at `path` now, and its host; empty if there is none."""
    with contextlib.suppress(OSError, StoreError), opened(_lock_of(path), os.O_RDWR) as file:
        if not _flock(file, fcntl.LOCK_EX):
            return _owner(file)
    return ""


@contextlib.contextmanager
def writing(path: Path, alone: bool = False, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the store at `path` while a block is written to it, or `alone` while it is made, grown or replaced.

    Waits as long as it takes; after two seconds `wait` is called with the name of the process that holds the store.
    """
    lock, since = Lock(_writing_of(path)), time.monotonic()
    try:
        while not lock.take(fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
            if wait and time.monotonic() - since > QUIET:
                wait(owner(path) or "another process")
                wait = None
            time.sleep(PAUSE)
        yield
    finally:
        lock.release(remove=alone)


def opened(path: Path, flags: int) -> IO[str]:
    """A file for a lock or a log, never what a link of its name points to. Raises `StoreError` for such a link."""
    try:
        number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as failure:
        if path.is_symlink():
            problem = "is a symbolic link, and whatever it points to would be overwritten. Remove the link"
            raise StoreError(f"{path}: {problem}") from None
        raise unwritable(path, failure) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise StoreError(f"{path}: is not an ordinary file. Remove it")
    form = {os.O_RDONLY: "r", os.O_WRONLY: "a"}.get(flags & os.O_ACCMODE, "r+")
    return os.fdopen(number, form, encoding="utf-8", errors="replace")


def _taken(lock: Lock, how: int, sentence: str, hint: str = "") -> None:
    """Take a lock and sign it, or raise `StoreError` with the name of its owner."""
    for _ in range(RETRIES):
        if lock.take(how):
            lock.sign()
            return
        time.sleep(PAUSE)
    raise StoreError(f"{sentence} {lock.owner()}{hint}")


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _writing_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.writing")


def _flock(file: IO[str], how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: IO[str], place: Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), place.stat(follow_symlinks=False))
    except OSError:
        return False


def _owner(file: IO[str]) -> str:
    try:
        file.seek(0)
        named: dict[str, Any] = json.load(file)
        return f"process {named['process']} on {named['host']}, since {named['since']}"
    except (ValueError, LookupError, TypeError):
        return "another process"
