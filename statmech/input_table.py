"""Tables of inputs: rows of numbers from a file, cached until the file changes."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np

from statmech.errors import ConfigError, ScenarioError
from statmech.runtime.files import opened, version
from statmech.table_columns import RECOGNISED, columns_of
from statmech.table_files import read_frame

NONE = 1e-15  # relative to N times the largest eigenvalue; smaller eigenvalues are rounding errors
MAX_BYTES = 2**30  # conversion to float64 and centring take several times this memory


def table(path: str) -> np.ndarray:
    """Load the rows (rows, columns) of a .npy file or a table, centred, with mean |x|^2 = 1, in float32.

    Raises `ScenarioError` if the file is not a table of finite real numbers whose rows differ.
    """
    return _table(path, version(path))


def digest(path: str) -> str:
    """Return the SHA-256 of a table, whatever its file format."""
    return _digest(path, version(path))


def eigenvalues(path: str) -> np.ndarray:
    """Return the eigenvalues (N,) of N times the covariance of a table's N columns. Their sum is N."""
    return _eigenvalues(path, version(path))


@lru_cache(maxsize=4)
def _eigenvalues(path: str, state: tuple[int, ...]) -> np.ndarray:
    rows = _table(path, state).astype(float)
    count, N = rows.shape
    squares = rows.T @ rows if count >= N else rows @ rows.T
    values = np.linalg.eigvalsh(squares) * N / count
    return np.concatenate([np.zeros(N - len(values)), np.where(values > N * NONE * values[-1], values, 0.0)])


@lru_cache(maxsize=4)
def _digest(path: str, state: tuple[int, ...]) -> str:
    rows = _table(path, state)
    return hashlib.sha256(f"{rows.shape}".encode() + rows.tobytes()).hexdigest()


@lru_cache(maxsize=4)
def _table(path: str, state: tuple[int, ...]) -> np.ndarray:
    try:
        rows = _numbers(path)
    except ConfigError as failure:
        raise ScenarioError([(("inputs",), str(failure))]) from None
    rows = rows - rows.mean(axis=0)
    scale = np.sqrt(np.mean(np.sum(rows**2, axis=1)))
    if rows.ndim != 2 or not np.isfinite(scale) or scale == 0:
        raise ScenarioError([(("inputs",), f"{path}: must be a table of finite numbers whose rows differ")])
    return (rows / scale).astype(np.float32)


def _numbers(path: str) -> np.ndarray:
    """Read the numbers of a .npy file or a table. Text columns of a table become indicators."""
    if Path(path).suffix != ".npy":
        table_file = read_frame(path)
        try:
            return columns_of(table_file.frame, None, RECOGNISED, table_file.first_row).X
        except ConfigError as failure:
            raise ConfigError(f"{path}: {failure}") from None
    try:
        with opened(Path(path), MAX_BYTES) as descriptor, open(descriptor, "rb", closefd=False) as file:
            rows = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as failure:
        reason = getattr(failure, "strerror", None) or "its content is not an array"
        raise ConfigError(f"{path}: not a readable table: {reason}") from None
    if rows.dtype.kind not in "buif" or not rows.size:
        problem = f"real numbers are needed, not {rows.dtype.name}" if rows.size else "it is empty"
        raise ConfigError(f"{path}: not a readable table: {problem}")
    return np.atleast_2d(rows.astype(float))
