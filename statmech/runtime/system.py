"""Calls that only some operating systems have, each in one place, with what happens on a system without it.

Linux has all of them, macOS no `prctl` and no `sched_getaffinity`, Windows hardly any.
"""

from __future__ import annotations

import errno
import math
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, resource = _module("fcntl"), _module("resource")
SHARED, EXCLUSIVE = 1, 2  # LOCK_SH and LOCK_EX
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
WATCH = 0.5  # seconds between two looks at the parent
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
ALWAYS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def cores() -> int:
    """The cores that this process may use; all of the machine where a process cannot be bound to some."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Return the name of the processor; empty where Linux does not state it, and on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return next((facts[name] for name in ("model name", "cpu", "CPU part") if name in facts), "")


def memory() -> float:
    """This machine's memory in bytes; infinite where it is unknown, so that nothing is refused.

    >>> memory() > 2**20
    True
    """
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else math.inf


def peak_memory() -> float:
    """The largest number of bytes that this process has held; 0 where it is unknown."""
    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) if resource else 0.0


def is_private(path: Path | int) -> bool:
    """True for what this user alone may write, for what does not exist, and where files have no owner.

    >>> is_private(Path("nowhere"))
    True
    """
    try:
        status = os.stat(path)
    except OSError:
        return True
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def is_exchangeable(path: Path) -> bool:
    """True if another user may rename a folder around this one, and so put another in its place.

    The search ends, as that of sshd, at a folder that root alone may change, or at one that nobody else may enter.
    """
    writable = False
    for folder in path.parents if hasattr(os, "getuid") else ():
        try:
            status = folder.stat()
        except OSError:  # it will be made for this user alone
            continue
        if status.st_uid not in (0, os.getuid()):
            return True
        if not status.st_mode & 0o011:
            return False
        if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            writable = True
        elif status.st_uid == 0:
            break
    return writable


def opened(path: str | os.PathLike[str], flags: int, follow: bool = True) -> int:
    """The descriptor of a file, opened without waiting for the other end of a pipe.

    Raises `OSError` for a symbolic link, unless it may `follow` it.
    """
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "a name cannot contain a null character", str(path))
    if not follow and not NOFOLLOW and os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags | ALWAYS | (0 if follow else NOFOLLOW), 0o666)


def set_permissions(descriptor: int, mode: int) -> None:
    """Give an open file these permissions; where that is impossible it keeps those of a new file."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)


def make_blocking(descriptor: int) -> None:
    """Let writes to a pipe wait for its reader."""
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)


def has_locks() -> bool:
    """True if files can be locked; else several processes must not write one store."""
    return fcntl is not None


def lock(file: IO[str], mode: int) -> bool:
    """Lock a file without waiting, `SHARED` or `EXCLUSIVE`; False if another process holds it.

    Always True where files cannot be locked: this process must then be the only writer.
    """
    try:
        if has_locks():
            fcntl.flock(file, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def after_fork(call: Callable[[], None]) -> None:
    """Call a function in every child process that is a fork of this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def die_with_parent() -> None:
    """End this process when its parent ends, even if the parent is killed."""
    prctl = getattr(_c_library(), "prctl", None)
    if prctl is not None:
        prctl(DIE_WITH_PARENT, signal.SIGKILL)
    else:
        threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()


def cause_of_death(code: int) -> str:
    """The signal, or the exception of Windows, that ended a process; empty if it ended by itself.

    >>> cause_of_death(-11), cause_of_death(0xC0000005), cause_of_death(1)
    ('SIGSEGV', 'exception 0xC0000005', '')
    """
    if code < 0:
        return signal.Signals(-code).name
    return f"exception 0x{code:08X}" if code > 255 else ""


def _c_library() -> Any:
    import ctypes

    try:
        return ctypes.CDLL(None)
    except TypeError:  # Windows
        return None


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:  # that of an orphan is another process
        time.sleep(WATCH)
    os._exit(1)
