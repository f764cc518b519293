"""Atomic writes, and reads of regular files of limited size, including CSV files.

CSV files are plain or compressed by gzip.
"""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from statmech.errors import StoreError, make_unwritable_file_error
from statmech.runtime import operating_system

MAX_COLUMNS, MAX_ENTRY_CHARACTERS = 10_000, 256  # in a NumPy array every string takes the memory of the longest


def write_atomically(path: Path, content: bytes, named_by_user: bool = False) -> None:
    """Write a file atomically, and create its folders.

    An existing file is replaced at the end, and its permissions are kept. If the user has `named_by_user` the file, the
    target of a symbolic link is replaced, not the link, and a terminal, pipe or device is written directly. Otherwise
    the file may be a link in an untrusted folder, so that only regular files are replaced. Raises `StoreError` if the
    file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "new/a.txt", b"whole")
    ...     (Path(folder) / "new/a.txt").read_text()
    'whole'
    """
    if not named_by_user:
        check_replaceable(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        if not named_by_user:
            _replace_file(path, content)
        elif path.exists() and not (path.is_file() and target.exists() and path.samefile(target)):
            _write_to_device(path, content)
        else:
            _replace_file(target, content)
    except OSError as failure:
        raise make_unwritable_file_error(path, failure) from None


def add_suffix(stem: Path, suffix: str) -> Path:
    """Return a path with a suffix added to its stem, which may contain dots."""
    return stem.with_name(f"{stem.name}.{suffix}")


def write_with_suffixes(stem: Path, contents: dict[str, bytes]) -> list[Path]:
    """Write files with a common stem atomically, from their contents by suffix, and return their paths."""
    contents_by_file = {add_suffix(stem, suffix): content for suffix, content in contents.items()}
    for file, content in contents_by_file.items():
        write_atomically(file, content)
    return list(contents_by_file)


def read_bounded_file(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises `OSError` for a pipe or a device, and for more than `max_bytes` bytes.
    """
    with open_regular_file(path, max_bytes) as descriptor, open(descriptor, "rb", closefd=False) as file:
        reported_size = min(os.fstat(descriptor).st_size, max_bytes)
        content = file.read(reported_size + 1)  # Python allocates memory for all requested bytes
        if len(content) > reported_size:
            content += file.read(max_bytes + 1 - len(content))
    if len(content) > max_bytes:  # the file has grown since it was opened, or reports size 0, as in /proc
        raise make_too_large_error(path, max_bytes)
    return content


@contextmanager
def open_regular_file(path: Path, max_bytes: int) -> Iterator[int]:
    """Open a regular file and yield its descriptor. Raises the same errors as `read_bounded_file`."""
    descriptor = operating_system.open_descriptor(path, os.O_RDONLY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
            raise OSError(errno.EINVAL, f"is {kind}, not an ordinary file", str(path))
        if status.st_size > max_bytes:
            raise make_too_large_error(path, max_bytes)
        yield descriptor
    finally:
        os.close(descriptor)


def open_regular_text_file(path: Path, flags: int) -> IO[str]:
    """Open a lock file or log.

    Raises `StoreError` for a symbolic link, whose target would be overwritten, and for a pipe or a device.
    """
    check_replaceable(path)
    try:
        descriptor = operating_system.open_descriptor(path, flags, follow=False)
    except OSError as failure:
        raise make_unwritable_file_error(path, failure) from None
    mode = {os.O_RDONLY: "r", os.O_WRONLY: "a"}.get(flags & (os.O_WRONLY | os.O_RDWR), "r+")
    return os.fdopen(descriptor, mode, encoding="utf-8", errors="replace")


def check_replaceable(path: Path) -> None:
    """Raise `StoreError` if writing a file would replace a link, pipe or device."""
    if path.is_symlink():
        raise StoreError(f"{path}: is a symbolic link, whose target would be overwritten. Remove the link")
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: is not a regular file: remove it")


def find_special_files(folder: Path) -> Iterator[Path]:
    """Yield all links, pipes and devices in a folder and its subfolders, without following links."""
    folders = [str(folder)]  # without recursion, since untrusted folders may be nested deeply
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)


def get_file_signature(path: str | Path) -> tuple[int, ...]:
    """Return numbers that change with a regular file: its device, inode, size and modification time.

    Returns an empty tuple if the file does not exist.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # a null character in the name raises ValueError
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def make_too_large_error(path: Path, max_bytes: int) -> OSError:
    """Return the error for a file of more than `max_bytes` bytes."""
    return OSError(errno.EFBIG, f"is larger than {max_bytes:,} bytes", str(path))


def _replace_file(target: Path, content: bytes) -> None:
    mode = _get_permissions(target)
    scratch = target.with_name(f".{os.getpid()}-{secrets.token_hex(6)}.partial")
    # exclusive, so that no existing link is followed
    descriptor = operating_system.open_descriptor(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, follow=False)
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                operating_system.set_permissions(descriptor, mode)
            file.write(content)
        os.replace(scratch, target)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise


def _get_permissions(target: Path) -> int | None:
    """Return the permissions of a file to be replaced, or None if it does not exist.

    Raises `PermissionError` if the file is read-only.
    """
    if not target.exists():
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return stat.S_IMODE(target.stat().st_mode)


def _write_to_device(path: Path, content: bytes) -> None:
    descriptor = operating_system.open_descriptor(path, os.O_WRONLY)  # fails for a pipe without a reader
    operating_system.make_blocking(descriptor)
    with open(descriptor, "wb") as file:
        file.write(content)


def read_csv_rows(path: Path, max_bytes: int) -> Iterator[list[str]]:
    """Yield the rows of a CSV file, without its empty lines.

    Parameters
    ----------
    path
        The file, unpacked first if its name ends with .gz.
    max_bytes
        The maximum size of the file, packed and unpacked.

    Raises
    ------
    OSError
        For a pipe, a device, a file that is too large, damaged or not text, and for too many columns or letters.
    """
    lines: Any = None
    try:
        with open_regular_file(path, max_bytes) as descriptor, open(descriptor, "rb", closefd=False) as file:
            content = io.BytesIO(_decompress(path, max_bytes, file)) if path.suffix == ".gz" else file
            lines = csv.reader(io.TextIOWrapper(content, "utf-8-sig", newline=""))
            for row in filter(None, lines):
                if len(row) > MAX_COLUMNS:
                    raise _make_invalid_file_error(
                        path, f"line {lines.line_num} has {len(row):,} columns, more than {MAX_COLUMNS:,}"
                    )
                if max(map(len, row)) > MAX_ENTRY_CHARACTERS:
                    raise csv.Error
                yield row
    except UnicodeDecodeError:
        raise _make_invalid_file_error(path, "is not text in UTF-8") from None
    except csv.Error:  # also raised by a field of more than 131,072 characters
        problem = f"line {lines.line_num} has an entry of more than {MAX_ENTRY_CHARACTERS:,} letters"
        raise _make_invalid_file_error(path, problem) from None


def _decompress(path: Path, max_bytes: int, file: io.BufferedReader) -> bytes:
    try:
        with gzip.GzipFile(fileobj=file) as packed:
            content = packed.read(max_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise _make_invalid_file_error(path, "is cut or damaged: gzip cannot unpack it") from None
    if len(content) > max_bytes:
        raise make_too_large_error(path, max_bytes)
    return content


def _make_invalid_file_error(path: Path, problem: str) -> OSError:
    return OSError(errno.EINVAL, problem, str(path))
