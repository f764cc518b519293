"""Calls to the operating system with fallbacks, and detection of forks.

Operating systems: Linux has all these calls, macOS lacks `prctl` and `sched_getaffinity`, and Windows has hardly any.

Forks: a fork after JAX has started does not copy JAX's threads, and the child process would wait for these threads
forever.
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
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from statmech.errors import ForkAfterJaxError


def _import_if_available(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, resource = _import_if_available("fcntl"), _import_if_available("resource")
STATUS_FILE = "/proc/self/status"  # Linux
PARENT_DEATH_SIGNAL_OPTION = 1  # PR_SET_PDEATHSIG of Linux
PARENT_POLL_SECONDS = 0.5
NO_FOLLOW_FLAG = getattr(os, "O_NOFOLLOW", 0)
DEFAULT_OPEN_FLAGS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def count_cores() -> int:
    """Return the number of cores that this process may use.

    All cores are counted if the system cannot restrict a process to some cores.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def get_processor_name() -> str:
    """Return the name of the processor on Linux, or an empty string if it is unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return next((facts[name] for name in ("model name", "cpu", "CPU part") if name in facts), "")


def get_total_memory() -> float:
    """Return this machine's memory in bytes, or infinity if unknown, so that every scenario is accepted.

    >>> get_total_memory() > 2**20
    True
    """
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else math.inf


def get_peak_memory() -> float:
    """Return the peak memory of this process in bytes, or 0 if unknown.

    On Linux `ru_maxrss` also counts the memory of the parent process.
    """
    with suppress(OSError, LookupError, ValueError):
        return read_peak_memory(STATUS_FILE)
    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) if resource else 0.0


def read_peak_memory(status_file: str) -> float:
    """Return the peak memory of a Linux process in bytes, from its status file.

    Raises `OSError` or `LookupError` for a process that has ended.
    """
    status = Path(status_file).read_text(encoding="utf-8", errors="replace")
    return 1024.0 * int(status.partition("VmHWM:")[2].split()[0])


def is_writable_by_owner_only(path: Path | int) -> bool:
    """Return True if no other user may write to a file or folder.

    The result is also True for a missing path, and on systems where files have no owner.

    >>> is_writable_by_owner_only(Path("nowhere"))
    True
    """
    try:
        status = os.stat(path)
    except OSError:
        return True
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def is_replaceable_by_others(path: Path) -> bool:
    """Return True if another user could replace this path by renaming a parent folder.

    As in sshd, the search ends at a folder that only root may change, or that nobody else may enter.
    """
    writable = False
    for folder in path.parents if hasattr(os, "getuid") else ():
        try:
            status = folder.stat()
        except OSError:  # a missing folder will be created for this user alone
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


def open_descriptor(path: str | os.PathLike[str], flags: int, follow: bool = True) -> int:
    """Open a file without waiting for the other end of a pipe, and return its descriptor.

    Raises `OSError` for a symbolic link, unless it may `follow` it.
    """
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "a name cannot contain a null character", str(path))
    if not follow and not NO_FOLLOW_FLAG and os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags | DEFAULT_OPEN_FLAGS | (0 if follow else NO_FOLLOW_FLAG), 0o666)


def set_permissions(descriptor: int, mode: int) -> None:
    """Set the permissions of an open file, if the system supports this."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)


def make_blocking(descriptor: int) -> None:
    """Make writes to a pipe wait for its reader."""
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)


def try_lock(file: IO[str]) -> bool:
    """Lock a file without waiting, and return False if another process holds the lock.

    Returns True if files cannot be locked: this process must then be the only writer.
    """
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def register_after_fork(call: Callable[[], None]) -> None:
    """Register a function that every forked child process calls first."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def die_with_parent() -> None:
    """End this process when its parent ends, even if the parent is killed."""
    prctl = getattr(_load_c_library(), "prctl", None)
    if prctl is not None:
        prctl(PARENT_DEATH_SIGNAL_OPTION, signal.SIGKILL)
    else:
        threading.Thread(target=_exit_after_parent, args=(os.getppid(),), daemon=True).start()


def describe_exit_code(code: int) -> str:
    """Return the signal or Windows exception that ended a process, or an empty string.

    >>> describe_exit_code(-11), describe_exit_code(0xC0000005), describe_exit_code(1)
    ('SIGSEGV', 'exception 0xC0000005', '')
    """
    if code < 0:
        return signal.Signals(-code).name
    return f"exception 0x{code:08X}" if code > 255 else ""


def _load_c_library() -> Any:
    import ctypes

    try:
        return ctypes.CDLL(None)
    except TypeError:  # Windows
        return None


def _exit_after_parent(parent: int) -> None:
    while os.getppid() == parent:  # an orphaned process gets another parent
        time.sleep(PARENT_POLL_SECONDS)
    os._exit(1)


_jax_was_used = False  # True once this process has computed with JAX
_is_forked = False  # True in a fork of a process that had computed with JAX


def record_jax_use() -> None:
    """Record that this process computes with JAX.

    Raises `ForkAfterJaxError` in a fork of a process that had already computed with JAX.

    >>> record_jax_use()
    """
    global _jax_was_used
    if _is_forked:
        raise ForkAfterJaxError()
    _jax_was_used = True


def _mark_as_forked() -> None:
    global _is_forked
    _is_forked = _jax_was_used


register_after_fork(_mark_as_forked)
