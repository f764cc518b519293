"""Tables of inputs: rows of numbers from a file, cached until the file changes."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np

from statmech.errors import ConfigError, ScenarioError
from statmech.runtime.files import get_file_signature, open_regular_file
from statmech.table_columns import DEFAULT_COLUMN_OPTIONS, encode_columns
from statmech.table_files import read_table_file

EIGENVALUE_ROUNDING_TOL = 1e-15  # relative to N times the largest eigenvalue; smaller eigenvalues are rounding errors
MAX_NPY_BYTES = 2**30  # conversion to float64 and centring need several times as much memory


def load_input_table(path: str) -> np.ndarray:
    """Load the rows of a .npy file or a table in float32, centred and with mean |x|^2 = 1.

    Raises `ScenarioError` if the file is not a table of finite real numbers whose rows differ.
    """
    return _load_cached_table(path, get_file_signature(path))


def get_input_table_digest(path: str) -> str:
    """Return the SHA-256 of a table's content, independent of the file format."""
    return _compute_input_table_digest(path, get_file_signature(path))


def get_covariance_eigenvalues(path: str) -> np.ndarray:
    """Return the eigenvalues (N,) of N times the covariance of a table, which sum to N."""
    return _compute_covariance_eigenvalues(path, get_file_signature(path))


@lru_cache(maxsize=4)
def _compute_covariance_eigenvalues(path: str, state: tuple[int, ...]) -> np.ndarray:
    rows = _load_cached_table(path, state).astype(float)
    count, N = rows.shape
    squares = rows.T @ rows if count >= N else rows @ rows.T
    values = np.linalg.eigvalsh(squares) * N / count
    return np.concatenate(
        [np.zeros(N - len(values)), np.where(values > N * EIGENVALUE_ROUNDING_TOL * values[-1], values, 0.0)]
    )


@lru_cache(maxsize=4)
def _compute_input_table_digest(path: str, state: tuple[int, ...]) -> str:
    rows = _load_cached_table(path, state)
    return hashlib.sha256(f"{rows.shape}".encode() + rows.tobytes()).hexdigest()


@lru_cache(maxsize=4)
def _load_cached_table(path: str, state: tuple[int, ...]) -> np.ndarray:
    try:
        rows = _read_table_numbers(path)
    except ConfigError as failure:
        raise ScenarioError([(("inputs",), str(failure))]) from None
    rows = rows - rows.mean(axis=0)
    scale = np.sqrt(np.mean(np.sum(rows**2, axis=1)))
    if rows.ndim != 2 or not np.isfinite(scale) or scale == 0:
        raise ScenarioError([(("inputs",), f"{path}: must be a table of finite numbers whose rows differ")])
    return (rows / scale).astype(np.float32)


def _read_table_numbers(path: str) -> np.ndarray:
    """Read the numbers of a .npy file or a table, encoding text columns as indicators."""
    if Path(path).suffix != ".npy":
        table_file = read_table_file(path)
        try:
            return encode_columns(table_file.frame, None, DEFAULT_COLUMN_OPTIONS, table_file.first_data_row).X
        except ConfigError as failure:
            raise ConfigError(f"{path}: {failure}") from None
    try:
        with open_regular_file(Path(path), MAX_NPY_BYTES) as descriptor, open(descriptor, "rb", closefd=False) as file:
            rows = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as failure:
        reason = getattr(failure, "strerror", None) or "its content is not an array"
        raise ConfigError(f"{path}: not a readable table: {reason}") from None
    if rows.dtype.kind not in "buif" or not rows.size:
        problem = f"real numbers are needed, not {rows.dtype.name}" if rows.size else "it is empty"
        raise ConfigError(f"{path}: not a readable table: {problem}")
    return np.atleast_2d(rows.astype(float))
