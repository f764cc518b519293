"""Tables with a target: numerical columns, and a column of labels or numbers to predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from statmech import table_columns, table_files
from statmech.errors import ConfigError, quote_value
from statmech.running_command import format_option
from statmech.table_columns import ARRAY_COLUMN_OPTIONS, MAX_LISTED_MESSAGE_ENTRIES, ColumnOptions, encode_columns
from statmech.table_files import TableFileFormat, read_table_file

if TYPE_CHECKING:
    import pandas as pd

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
