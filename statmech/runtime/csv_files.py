"""Reader for CSV files of limited size, plain or compressed by gzip."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statmech.runtime.files import make_too_large_error, open_regular_file

MAX_COLUMNS, MAX_ENTRY_CHARACTERS = 10_000, 256  # in a NumPy array every string takes the memory of the longest


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
