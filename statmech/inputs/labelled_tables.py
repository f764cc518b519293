"""Tables of numbers from files: inputs, and tables with a target column of labels or numbers to predict.

Tables of inputs are cached until their file changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from statmech.errors import ConfigError, ScenarioError, format_option, quote_value
from statmech.inputs import table_columns, table_files
from statmech.inputs.table_columns import (
    ARRAY_COLUMN_OPTIONS,
    DEFAULT_COLUMN_OPTIONS,
    MAX_LISTED_MESSAGE_ENTRIES,
    ColumnOptions,
    encode_columns,
)
from statmech.inputs.table_files import TableFileFormat, read_table_file
from statmech.runtime.files import get_file_signature, open_regular_file

if TYPE_CHECKING:
    import pandas as pd


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


MIN_TABLE_ROWS = 20


class LabelledTable(NamedTuple):
    """A numerical table: inputs X (n, N), target y (n,), names of the labels, and notes on the conversion.

    `labels` are the names of the labels +1 and -1, or None for a numerical target. `notes` is empty for an X that was
    an array of numbers.
    """

    X: np.ndarray
    y: np.ndarray
    labels: tuple[str, str] | None
    notes: tuple[str, ...] = ()


def make_labelled_table(
    X: object,
    y: object,
    *,
    numbers: bool = False,
    positive: str | None = None,
    options: ColumnOptions = ARRAY_COLUMN_OPTIONS,
) -> LabelledTable:
    """Make a table with a target from arrays or a data frame.

    A target of two values becomes labels: the larger value, or `positive`, is +1.

    Parameters
    ----------
    X : array (n, N) or pandas.DataFrame
        Numbers; in a data frame also text, dates and missing cells.
    y : array (n,) or str
        Two different values of any kind, or numbers; or the name of a column of the data frame.
    numbers
        Whether a target of two values remains a number.
    positive
        The value of the target that becomes +1. All other values become -1.
    options
        Treatment of columns and missing cells.

    Raises
    ------
    ConfigError
        If rows are too few, no input varies, or columns, cells or the target cannot be used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = make_labelled_table(rng.standard_normal((30, 2)), ["yes", "no"] * 15)
    >>> table.labels, table.y[:2]
    (('yes', 'no'), array([ 1., -1.]))
    """
    import pandas as pd

    if isinstance(y, str):
        if not isinstance(X, pd.DataFrame):
            raise ConfigError(f"y is {quote_value(y)}: columns have names only if X is a data frame or a file")
        return _table_from_frame(X, y, options, numbers, positive)
    target, rows = np.asarray(y), X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if rows.ndim != 2 or target.shape != rows.shape[:1]:
        shapes = f"not of shapes {rows.shape} and {target.shape}"
        raise ConfigError(f"X must be a table (n, N) and y its target (n,), {shapes}")
    frame = pd.DataFrame(rows).rename(columns=str).reset_index(drop=True)
    name = next(name for name in ("target", *map(str, range(rows.shape[1] + 1))) if name not in frame.columns)
    return _table_from_frame(frame.assign(**{name: target}), name, options, numbers, positive)


def read_labelled_table(
    path: str,
    target: str,
    file: TableFileFormat = table_files.DEFAULT_FILE_FORMAT,
    options: ColumnOptions = table_columns.DEFAULT_COLUMN_OPTIONS,
    *,
    numbers: bool = False,
    positive: str | None = None,
) -> LabelledTable:
    """Read a table with a target from a file.

    Parameters
    ----------
    path
        The file.
    target
        The name of the column to predict, or its number from 0; -1 is the last column.
    file, options
        Format of the file, and treatment of columns and missing cells.
    numbers, positive
        As for `make_labelled_table`.

    Raises
    ------
    ConfigError
        If the file is not such a table. The message names the file.
    """
    table_file = read_table_file(path, file)
    try:
        table = _table_from_frame(table_file.frame, target, options, numbers, positive, table_file.first_data_row)
    except ConfigError as failure:
        raise ConfigError(f"{path}: {failure}") from None
    return table._replace(notes=(*table.notes, *table_file.notes))


def _table_from_frame(
    frame: pd.DataFrame,
    target: str,
    options: ColumnOptions,
    numbers: bool,
    positive: str | None,
    first_row: int = 1,
) -> LabelledTable:
    """Make a table with a target from a data frame and the name of its target column."""
    columns = encode_columns(frame, target, options, first_row)
    rows, y = columns.X, columns.target
    if len(rows) < MIN_TABLE_ROWS:
        raise ConfigError(f"a table of {len(rows)} rows is too short: at least {MIN_TABLE_ROWS} rows are required")
    if not rows.size or not np.ptp(rows, axis=0).any():
        raise ConfigError("no input varies: all columns are constant or dropped")
    if positive is not None:
        return _table_from_labels(
            rows, y.astype(str) == positive, positive, _name_negative_label(y, positive), columns.notes
        )
    y = y.astype(str) if y.dtype.kind not in "buif" else y
    values = np.unique(y)
    if len(values) == 1:
        raise ConfigError(f"the target has one value, {quote_value(str(values[0]))}: it must have two or be numerical")
    if len(values) == 2 and not numbers:
        low, high = map(str, values.tolist())
        return _table_from_labels(rows, y == values[1], high, low, columns.notes)
    if y.dtype.kind not in "buif":
        listing = ", ".join(map(str, values[:MAX_LISTED_MESSAGE_ENTRIES])) + (
            ", ..." if len(values) > MAX_LISTED_MESSAGE_ENTRIES else ""
        )
        hint = format_option(f"--positive {quote_value(str(values[0]))}", f"positive={str(values[0])!r}")
        advice = f". To predict one of them against all others, name it: {hint}" if hint else ""
        raise ConfigError(f"the target has {len(values)} values, {listing}: it must have two or be numerical{advice}")
    if (infinite := np.isinf(y.astype(float))).any():
        raise ConfigError(f"the target is infinite in row {int(np.argmax(infinite)) + first_row}")
    return LabelledTable(rows, y.astype(float), None, columns.notes)


def _table_from_labels(
    rows: np.ndarray, is_positive: np.ndarray, high: str, low: str, notes: Sequence[str]
) -> LabelledTable:
    """Make a table with the labels +1 and -1 from a mask of the rows with the label +1."""
    return LabelledTable(rows, np.where(is_positive, 1.0, -1.0), (high, low), tuple(notes))


def _name_negative_label(y: np.ndarray, positive: str) -> str:
    """Return a name for all values of a target other than the positive value."""
    values = sorted(set(map(str, y.tolist())))
    if positive not in values:
        raise ConfigError(
            f"no row has the target {quote_value(positive)}: "
            f"its values are {', '.join(values[:MAX_LISTED_MESSAGE_ENTRIES])}"
        )
    other_values = [value for value in values if value != positive]
    if not other_values:
        raise ConfigError(f"the target has one value, {quote_value(positive)}: two values are required")
    return other_values[0] if len(other_values) == 1 else f"not {positive}"
