"""Tables of inputs: rows of numbers in a file, cached until the file changes."""

from __future__ import annotations

import hashlib
import io
import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from statmech.errors import ScenarioError
from statmech.runtime.files import opened, version

NONE = 1e-15  # an eigenvalue, relative to the largest and over N, that is rounding
MOST_BYTES = 2**30  # of a file; converted to float64 and centred it takes several times this memory


def table(path: str) -> np.ndarray:
    """The rows (rows, columns) of a .npy or .csv file, centred, with mean |x|^2 = 1, in float32.

    Raises `ScenarioError` if the file is not a table of finite real numbers whose rows differ.
    """
    return _table(path, version(path))


def digest(path: str) -> str:
    """The SHA-256 of a table, independent of its file format."""
    return _digest(path, version(path))


def eigenvalues(path: str) -> np.ndarray:
    """The eigenvalues (N,) of N times the covariance of a table's N columns; they add up to N."""
    return _eigenvalues(path, version(path))


@lru_cache(maxsize=4)
def _eigenvalues(path: str, state: tuple[int, ...]) -> np.ndarray:
    rows = _table(path, state).astype(float)
    count, N = rows.shape
    squares = rows.T @ rows if count >= N else rows @ rows.T
    found = np.linalg.eigvalsh(squares) * N / count
    return np.concatenate([np.zeros(N - len(found)), np.where(found > N * NONE * found[-1], found, 0.0)])


@lru_cache(maxsize=4)
def _digest(path: str, state: tuple[int, ...]) -> str:
    rows = _table(path, state)
    return hashlib.sha256(f"{rows.shape}".encode() + rows.tobytes()).hexdigest()


@lru_cache(maxsize=4)
def _table(path: str, state: tuple[int, ...]) -> np.ndarray:
    try:
        rows = np.atleast_2d(_real(_numbers(Path(path))))
    except (OSError, ValueError, TypeError, EOFError, MemoryError) as failure:
        problem = f"{path or 'path'}: not a readable table of numbers: {_why(failure)}"
        raise ScenarioError([(("inputs",), problem)]) from None
    rows = rows - rows.mean(axis=0)
    scale = np.sqrt(np.mean(np.sum(rows**2, axis=1)))
    if rows.ndim != 2 or not np.isfinite(scale) or scale == 0:
        raise ScenarioError([(("inputs",), f"{path}: must be a table of finite numbers whose rows differ")])
    return (rows / scale).astype(np.float32)


def _numbers(path: Path) -> np.ndarray:
    """The numbers of an ordinary file of bounded size; reading a device or a pipe might never end."""
    with opened(path, MOST_BYTES) as descriptor, open(descriptor, "rb", closefd=False) as file:
        if path.suffix == ".npy":
            return np.lib.format.read_array(file, allow_pickle=False)
        return np.loadtxt(io.TextIOWrapper(file, "utf-8"), delimiter=",")


class _Unreal(ValueError):
    """A table without real numbers; the message does not quote the file, only the type of its entries."""


def _real(rows: np.ndarray) -> np.ndarray:
    """Numbers as floats; complex numbers are refused."""
    if rows.dtype.kind not in "buif" or not rows.size:
        raise _Unreal(f"real numbers are needed, not {rows.dtype.name}" if rows.size else "it is empty")
    return rows.astype(float)


def _why(failure: Exception) -> str:
    """The reason why a file is not a table, without quoting it: others than its owner may see the message.

    >>> _why(ValueError("could not convert string 'secret' to float64 at row 0, column 2."))
    'row 1, column 2 is not a number'
    """
    if isinstance(failure, _Unreal):
        return str(failure)
    if isinstance(failure, OSError):
        return failure.strerror or "no such file"  # NumPy's error for a missing file has no strerror
    if place := re.search(r" at row (\d+), column (\d+)\.$", str(failure)):  # NumPy counts rows from 0, columns from 1
        return f"row {int(place[1]) + 1}, column {place[2]} is not a number"
    if place := re.search(r"^the number of columns changed from \d+ to \d+ at row \d+", str(failure)):
        return place[0]
    return "its content is not a table"
