"""Conversion of table columns to numbers: text to indicators, dates to days, missing cells to means.

No step is silent: `Columns.notes` lists the dropped, replaced and converted columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from statmech.errors import ConfigError, format_option, format_unknown_name, quote_value

if TYPE_CHECKING:
    import pandas as pd

MIN_CATEGORY_FRACTION = 0.01  # rarer values of a text column do not get an indicator
NUMERIC_MAJORITY_FRACTION = 0.5  # text in a column with a larger fraction of numbers is an error
MAX_LISTED_MESSAGE_ENTRIES = 8
MAX_CATEGORY_LEVELS = 20  # for text columns, and for columns that determine the target
NO_INDEX_COLUMN_KEYWORD = "none"
MissingPolicy = Literal["mean", "drop", "refuse"]


@dataclass(frozen=True)
class ColumnOptions:
    """Options for the treatment of columns and missing values.

    Parameters
    ----------
    drop
        Names or numbers of columns to drop, each a single one or several with commas.
    index
        The index column, which is dropped. "none" keeps all columns, None recognises index columns.
    missing
        "mean" replaces missing cells by the column's mean, "drop" drops their rows, "refuse" raises an error.
    """

    drop: tuple[str, ...] = ()
    index: str | None = None
    missing: MissingPolicy = "mean"


DEFAULT_COLUMN_OPTIONS = ColumnOptions()
ARRAY_COLUMN_OPTIONS = ColumnOptions(index=NO_INDEX_COLUMN_KEYWORD)  # numerical arrays have no index column


class NumericColumns(NamedTuple):
    """A converted table: inputs (n, N), their names, a target (n,), and notes of one sentence each."""

    X: np.ndarray
    names: tuple[str, ...]
    target: np.ndarray
    notes: tuple[str, ...]


def encode_columns(
    frame: pd.DataFrame, target: str | None, options: ColumnOptions, first_row: int = 1
) -> NumericColumns:
    """Convert the columns of a table to numbers, and separate the target.

    Parameters
    ----------
    frame
        The table.
    target
        The name of the column to predict, or its number from 0; -1 is the last column. None: no target.
    options
        Treatment of columns and missing cells.
    first_row
        The file's row of the first data, for messages.

    Raises
    ------
    ConfigError
        If a column or a cell cannot be used.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"colour": ["red", "blue", "red"], "size": [1.0, None, 3.0], "y": [0, 1, 1]})
    >>> found = encode_columns(frame, "y", ColumnOptions())
    >>> found.X, found.names, found.target
    (array([[0., 1.],
           [1., 2.],
           [0., 3.]]), ('colour = blue', 'size'), array([0, 1, 1]))
    """
    notes: list[str] = []
    y = np.zeros(len(frame))
    if target is not None:
        name = resolve_column_name(target, frame.columns)
        missing = frame[name].isna()
        if missing.all():
            option = format_option("--target COLUMN", "y")
            raise ConfigError(f"the target, column {quote_value(name)}, is empty: name another one with {option}")
        if missing.any():
            notes.append(f"{_format_count(int(missing.sum()), 'row')} without a target left out")
            frame = frame[~missing]
        y, frame = frame[name].to_numpy(), frame.drop(columns=name)
    dropped = [part for text in options.drop for part in ([text] if text in frame else text.split(","))]
    frame = frame.drop(columns=[resolve_column_name(name, frame.columns) for name in dropped])
    frame = _drop_index(frame, options.index, notes)
    if options.missing != "mean" and frame.isna().to_numpy().any():
        rows = frame.notna().all(axis=1).to_numpy()
        if options.missing == "refuse":
            row, column = np.argwhere(frame.isna().to_numpy())[0]
            where = f"row {int(frame.index[row]) + first_row}, column {quote_value(str(frame.columns[column]))}"
            raise ConfigError(f"{where} is empty, and missing cells are not allowed")
        notes.append(f"{_format_count(int((~rows).sum()), 'row')} with missing cells left out")
        frame, y = frame[rows], y[rows]
    return _encode_all_columns(frame, y, notes, first_row)


def resolve_column_name(column: str, names: Sequence[object]) -> str:
    """Return the name of a table column that is given by its name or its number (from 0).

    Parameters
    ----------
    column
        A name, or a number; -1 is the last column.
    names
        The names of all columns.

    Raises
    ------
    ConfigError
        If no such column exists.
    """
    column_names = [str(name) for name in names]
    if column in column_names:
        return column
    if column.lstrip("-").isdigit() and -len(column_names) <= int(column) < len(column_names):
        return column_names[int(column)]
    raise ConfigError(format_unknown_name(column, "a column", column_names))


def make_indicators(entries: np.ndarray) -> dict[str, np.ndarray]:
    """Return an indicator for each frequent value of a text column except the last value.

    The other indicators determine the last.

    Parameters
    ----------
    entries
        The entries of a column (n,).

    Examples
    --------
    >>> make_indicators(np.array(["a", "b", "a", "c"]))
    {'a': array([1., 0., 1., 0.]), 'b': array([0., 1., 0., 0.])}
    """
    values, counts = np.unique(entries.astype(str), return_counts=True)
    return {
        str(value): (entries == value).astype(float)
        for value in values[counts >= MIN_CATEGORY_FRACTION * len(entries)][:-1]
    }


def _drop_index(frame: pd.DataFrame, index: str | None, notes: list[str]) -> pd.DataFrame:
    """Drop the given index column, or by default all columns that number or name the rows."""
    if index == NO_INDEX_COLUMN_KEYWORD:
        return frame
    if index is not None:
        return frame.drop(columns=resolve_column_name(index, frame.columns))
    left_out = [
        str(name) for position, name in enumerate(frame.columns) if _is_index_column(frame[name], str(name), position)
    ]
    if left_out and len(left_out) < frame.shape[1]:
        listing = ", ".join("the nameless first column" if name == "Unnamed: 0" else name for name in left_out)
        keeping = f"; {flag} keeps all" if (flag := format_option("--index-col none")) else ""
        notes.append(f"left out: {listing} (numbers or names of the rows{keeping})")
        frame = frame.drop(columns=left_out)
    return frame


def _is_index_column(column: pd.Series, name: str, position: int) -> bool:
    """Return True if a column numbers or names the rows of a table."""
    if column.isna().any() or not column.is_unique:
        return False
    if name.startswith("Unnamed: ") and position == 0:
        return True
    if column.dtype.kind in "iu":
        steps = np.diff(column.to_numpy())
        return bool(np.all(steps == 1) or (position == 0 and np.all(steps > 0)))
    if column.dtype.kind == "M" or _is_date_column(column):
        return bool(column.is_monotonic_increasing)
    return column.dtype.kind == "O" and _compute_number_fraction(column) == 0


def _is_date_column(column: pd.Series) -> bool:
    """Return True if every entry of a column begins with a date, such as 2024-05-31."""
    return column.dtype.kind == "O" and bool(column.dropna().astype(str).str.match(r"\d{4}-\d\d-\d\d").all())


def _compute_number_fraction(column: pd.Series) -> float:
    """Return the fraction of numbers among the nonmissing entries of a column."""
    import pandas as pd

    return float(pd.to_numeric(column.dropna(), errors="coerce").notna().mean())


def _encode_all_columns(frame: pd.DataFrame, y: np.ndarray, notes: list[str], first_row: int) -> NumericColumns:
    """Convert all columns of a table to numbers, and collect notes on the conversion."""
    import pandas as pd

    parts: dict[str, np.ndarray] = {}
    kinds = {"numbers": 0, "words": 0, "dates": 0}
    texts, copies, num_filled, empty = list[str](), list[str](), 0, 0
    for label in frame.columns:
        name, column = str(label), frame[label]
        if column.isna().all():
            empty += 1
            continue
        if _determines_target(column, y):
            copies.append(name)
        if _is_date_column(column):
            column = pd.to_datetime(column, errors="coerce", utc=True)
        if column.dtype.kind == "M":
            column = (column - column.min()) / pd.Timedelta(days=1)
            kinds["dates"] += 1
        elif column.dtype.kind == "O" or isinstance(column.dtype, pd.CategoricalDtype):
            _check_text_entries(column, name, first_row)
            num_values = column.dropna().nunique()
            if num_values > max(MAX_CATEGORY_LEVELS, NUMERIC_MAJORITY_FRACTION * len(column)):
                texts.append(name)
                continue
            kinds["words"] += 1
            labels = column.astype(object).where(column.notna(), "(missing)").astype(str).to_numpy()
            parts |= {f"{name} = {level}": values for level, values in make_indicators(labels).items()}
            continue
        else:
            kinds["numbers"] += 1
        values = column.astype(float).to_numpy()
        if np.isinf(values).any():
            raise ConfigError(
                f"row {_find_file_row(column, np.isinf(values), first_row)}, column {quote_value(name)} is infinite"
            )
        holes = np.isnan(values)
        num_filled += int(holes.sum())
        parts[name] = np.where(holes, np.mean(values[~holes]), values)
    notes += (
        [f"left out: {', '.join(texts[:MAX_LISTED_MESSAGE_ENTRIES])} (text that differs in most rows)"] if texts else []
    )
    notes += [f"{_format_count(empty, 'empty column')} left out"] if empty else []
    notes += [f"{_format_count(num_filled, 'missing cell')} replaced by the mean of the column"] if num_filled else []
    for name in copies[:MAX_LISTED_MESSAGE_ENTRIES]:
        advice = format_option(f"--drop {name}", f"drop {name}")
        notes.append(f"warning: column {name} determines the target: {advice} if it is not known beforehand")
    kinds_text = ", ".join(f"{count} of {kind}" for kind, count in kinds.items() if count)
    num_indicators = len(parts) - kinds["numbers"] - kinds["dates"]
    indicated = f" ({_format_count(num_indicators, 'indicator')})" if kinds["words"] else ""
    notes.insert(0, f"{len(frame):,} rows, {_format_count(sum(kinds.values()), 'column')}: {kinds_text}{indicated}")
    X = np.column_stack([*parts.values()]) if parts else np.empty((len(frame), 0))
    return NumericColumns(X, tuple(parts), y, tuple(notes))


def _check_text_entries(column: pd.Series, name: str, first_row: int) -> None:
    """Raise `ConfigError` for text in a mostly numerical column, unless its values recur."""
    import pandas as pd

    counts = column.value_counts()
    is_text = (column.notna() & pd.to_numeric(column, errors="coerce").isna()).to_numpy()
    recur = len(counts) <= MAX_CATEGORY_LEVELS and counts[column[is_text].unique()].min() >= max(
        MIN_CATEGORY_FRACTION * len(column), 2
    )
    if 0 < is_text.sum() < (1 - NUMERIC_MAJORITY_FRACTION) * column.notna().sum() and not recur:
        where = f"row {_find_file_row(column, is_text, first_row)}, column {quote_value(name)}"
        if flag := format_option("--na WORD"):  # otherwise quote nothing: a stranger's config may name a private file
            example = quote_value(str(column.to_numpy()[int(np.argmax(is_text))]))
            raise ConfigError(f"{where}: {example} is not a number: {flag} names a marker of missing cells")
        raise ConfigError(f"{where} is not a number")


def _find_file_row(column: pd.Series, where: np.ndarray, first_row: int) -> int:
    """Return the row number in the file of the first True entry."""
    return int(column.index[int(np.argmax(where))]) + first_row


def _determines_target(column: pd.Series, y: np.ndarray) -> bool:
    """Return True if a table's column determines its target.

    Either each of its few values has a single target, or a threshold separates two classes.
    """
    import pandas as pd

    if len(y) < 2 or pd.Series(y).nunique() < 2:
        return False
    groups = pd.Series(y, index=column.index).groupby(column, observed=True).nunique()
    if 1 < len(groups) <= MAX_CATEGORY_LEVELS and groups.max() == 1 and column.notna().all():
        return True
    labels = np.unique(y.astype(str))
    if len(labels) != 2 or column.dtype.kind not in "iuf" or column.isna().any():
        return False
    first = y.astype(str) == labels[0]
    first_values, second_values = column.to_numpy()[first], column.to_numpy()[~first]
    return bool(first_values.max() < second_values.min() or second_values.max() < first_values.min())


def _format_count(number: int, thing: str) -> str:
    """Format a count followed by its noun, singular or plural."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
