"""Atomic writes, and reads that accept only ordinary files of bounded size."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from statmech.errors import StoreError, unwritable
from statmech.runtime import system


def write(path: Path, content: bytes, named: bool = False) -> None:
    """Write a file atomically, and create its folders: an existing file is replaced at the end.

    Its permissions are kept. If the user has `named` the file, the target of a symbolic link is replaced, not the link,
    and a terminal, pipe or device is written in place. Under any other name a folder from a stranger may have a link:
    only ordinary files are replaced. Raises `StoreError` if the file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "new/a.txt", b"whole")
    ...     (Path(folder) / "new/a.txt").read_text()
    'whole'
    """
    if not named:
        check_ordinary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        if not named:
            _replace(path, content)
        elif path.exists() and not (path.is_file() and target.exists() and path.samefile(target)):
            _write_in_place(path, content)
        else:
            _replace(target, content)
    except OSError as failure:
        raise unwritable(path, failure) from None


def beside(stem: Path, suffix: str) -> Path:
    """The file of a stem, which may contain dots, with a suffix."""
    return stem.with_name(f"{stem.name}.{suffix}")


def write_beside(stem: Path, contents: dict[str, bytes]) -> list[Path]:
    """Write contents by suffix to files of one stem, each complete or not at all; returns the files."""
    written = {beside(stem, suffix): content for suffix, content in contents.items()}
    for file, content in written.items():
        write(file, content)
    return list(written)


def read(path: Path, most: int) -> bytes:
    """The content of an ordinary file. Raises `OSError` for a pipe or a device, and for more than `most` bytes."""
    with opened(path, most) as descriptor, open(descriptor, "rb", closefd=False) as file:
        stated = min(os.fstat(descriptor).st_size, most)
        content = file.read(stated + 1)  # no more: Python allocates what it is asked to read
        if len(content) > stated:
            content += file.read(most + 1 - len(content))
    if len(content) > most:  # it has grown since it was opened, or its stated size is 0, as in /proc
        raise too_large(path, most)
    return content


@contextmanager
def opened(path: Path, most: int) -> Iterator[int]:
    """The descriptor of an ordinary file. Raises the errors of `read`."""
    descriptor = system.opened(path, os.O_RDONLY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
            raise OSError(errno.EINVAL, f"is {kind}, not an ordinary file", str(path))
        if status.st_size > most:
            raise too_large(path, most)
        yield descriptor
    finally:
        os.close(descriptor)


def check_ordinary(path: Path) -> None:
    """Raise `StoreError` for a link, pipe or device in the place of a file that is to be written."""
    if path.is_symlink():
        raise StoreError(f"{path}: is a symbolic link, whose target would be overwritten. Remove the link")
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: is not an ordinary file. Remove it")


def unusual(folder: Path) -> Iterator[Path]:
    """Everything in a folder that is neither a folder nor an ordinary file: links, pipes, devices; none is followed."""
    folders = [str(folder)]  # not by recursion: a stranger's may be nested as deep as names are long
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)


def version(path: str | Path) -> tuple[int, ...]:
    """The identity and state of a file: device, inode, size and time of change; empty if it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # a name with a null character is a ValueError
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def too_large(path: Path, most: int) -> OSError:
    """Return the error for a file of more than `most` bytes."""
    return OSError(errno.EFBIG, f"is larger than {most:,} bytes", str(path))


def _replace(target: Path, content: bytes) -> None:
    mode = _mode_of(target)
    scratch = target.with_name(f".{os.getpid()}-{secrets.token_hex(6)}.partial")
    # exclusive, so that no existing link is followed
    descriptor = system.opened(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, follow=False)
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                system.set_permissions(descriptor, mode)
            file.write(content)
        os.replace(scratch, target)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise


def _mode_of(target: Path) -> int | None:
    """The permissions of a file to be replaced, None if it does not exist. `PermissionError` if it is read-only."""
    if not target.exists():
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return stat.S_IMODE(target.stat().st_mode)


def _write_in_place(path: Path, content: bytes) -> None:
    descriptor = system.opened(path, os.O_WRONLY)  # a pipe without a reader is an error
    system.make_blocking(descriptor)
    with open(descriptor, "wb") as file:
        file.write(content)
