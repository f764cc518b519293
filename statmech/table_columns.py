"""Conversion of a table's columns to numbers: text to indicators, dates to days, missing cells to means.

No step is silent: `Columns.notes` lists the dropped, replaced and converted columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from statmech.errors import ConfigError, not_known, quoted
from statmech.running_command import option

if TYPE_CHECKING:
    import pandas as pd

RARE = 0.01  # fraction of the rows; rarer values do not get an indicator
MOSTLY = 0.5  # fraction of a column; text among this fraction of numbers is a mistake
MAX_SHOWN = 8
MAX_LEVELS = 20  # for text, and for copies of the target
KEEP_ALL = "none"
Missing = Literal["mean", "drop", "refuse"]


@dataclass(frozen=True)
class ColumnOptions:
    """Options for the columns and missing values of a table.

    Parameters
    ----------
    drop
        Names or numbers of columns to drop.
    index
        The index column, which is dropped. "none" keeps all columns, None recognises index columns.
    missing
        "mean" replaces missing cells by the column's mean, "drop" drops their rows, "refuse" raises an error.
    """

    drop: tuple[str, ...] = ()
    index: str | None = None
    missing: Missing = "mean"


RECOGNISED = ColumnOptions()
ARRAYS = ColumnOptions(index=KEEP_ALL)  # arrays of numbers do not contain an index


class Columns(NamedTuple):
    """Inputs (n, N) with their names, a target (n,), and notes on the conversion, one sentence each."""

    X: np.ndarray
    names: tuple[str, ...]
    target: np.ndarray
    notes: tuple[str, ...]


def columns_of(frame: pd.DataFrame, target: str | None, options: ColumnOptions, first_row: int = 1) -> Columns:
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
    >>> found = columns_of(frame, "y", ColumnOptions())
    >>> found.X, found.names, found.target
    (array([[0., 1.],
           [1., 2.],
           [0., 3.]]), ('colour = blue', 'size'), array([0, 1, 1]))
    """
    notes: list[str] = []
    y = np.zeros(len(frame))
    if target is not None:
        name = column_named(target, frame.columns)
        missing = frame[name].isna()
        if missing.any():
            notes.append(f"{_count(int(missing.sum()), 'row')} without a target left out")
            frame = frame[~missing]
        y, frame = frame[name].to_numpy(), frame.drop(columns=name)
    frame = frame.drop(columns=[column_named(name, frame.columns) for name in options.drop])
    frame = _without_index(frame, options.index, notes)
    if options.missing != "mean" and frame.isna().to_numpy().any():
        rows = frame.notna().all(axis=1).to_numpy()
        if options.missing == "refuse":
            row, column = np.argwhere(frame.isna().to_numpy())[0]
            where = f"row {int(frame.index[row]) + first_row}, column {quoted(str(frame.columns[column]))}"
            raise ConfigError(f"{where} is empty, and missing cells are not allowed")
        notes.append(f"{_count(int((~rows).sum()), 'row')} with missing cells left out")
        frame, y = frame[rows], y[rows]
    return _encoded(frame, y, notes, first_row)


def column_named(given: str, names: Sequence[object]) -> str:
    """Return the name of a column from its name or its number from 0.

    Parameters
    ----------
    given
        A name, or a number; -1 is the last column.
    names
        The names of all columns.

    Raises
    ------
    ConfigError
        If no such column exists.
    """
    column_names = [str(name) for name in names]
    if given in column_names:
        return given
    if given.lstrip("-").isdigit() and -len(column_names) <= int(given) < len(column_names):
        return column_names[int(given)]
    raise ConfigError(not_known(given, "a column", column_names))


def indicators(words: np.ndarray) -> dict[str, np.ndarray]:
    """Return an indicator of each frequent value of a text column, except for the last.

    The other indicators determine the last.

    Parameters
    ----------
    words
        The entries of a column (n,).

    Examples
    --------
    >>> indicators(np.array(["a", "b", "a", "c"]))
    {'a': array([1., 0., 1., 0.]), 'b': array([0., 1., 0., 0.])}
    """
    values, counts = np.unique(words.astype(str), return_counts=True)
    return {str(value): (words == value).astype(float) for value in values[counts >= RARE * len(words)][:-1]}


def _without_index(frame: pd.DataFrame, index: str | None, notes: list[str]) -> pd.DataFrame:
    """Drop the named index column, or without a name all columns that number or name the rows."""
    if index == KEEP_ALL:
        return frame
    if index is not None:
        return frame.drop(columns=column_named(index, frame.columns))
    left_out = [str(name) for position, name in enumerate(frame.columns) if _is_index(frame[name], str(name), position)]
    if left_out and len(left_out) < frame.shape[1]:
        listing = ", ".join("the nameless first column" if name == "Unnamed: 0" else name for name in left_out)
        keeping = f"; {flag} keeps all" if (flag := option("--index-col none")) else ""
        notes.append(f"left out: {listing} (numbers or names of the rows{keeping})")
        frame = frame.drop(columns=left_out)
    return frame


def _is_index(column: pd.Series, name: str, place: int) -> bool:
    """Return True for a column that numbers or names the rows."""
    if column.isna().any() or not column.is_unique:
        return False
    if name.startswith("Unnamed: ") and place == 0:
        return True
    if column.dtype.kind in "iu":
        steps = np.diff(column.to_numpy())
        return bool(np.all(steps == 1) or (place == 0 and np.all(steps > 0)))
    if column.dtype.kind == "M" or _are_dates(column):
        return bool(column.is_monotonic_increasing)
    return column.dtype.kind == "O" and _number_fraction(column) == 0


def _are_dates(column: pd.Series) -> bool:
    """Return True for texts that begin with a date, such as 2024-05-31."""
    return column.dtype.kind == "O" and bool(column.dropna().astype(str).str.match(r"\d{4}-\d\d-\d\d").all())


def _number_fraction(column: pd.Series) -> float:
    """Return the fraction of numbers among the entries of a column that are not missing."""
    import pandas as pd

    return float(pd.to_numeric(column.dropna(), errors="coerce").notna().mean())


def _encoded(frame: pd.DataFrame, y: np.ndarray, notes: list[str], first_row: int) -> Columns:
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
        if _determines(column, y):
            copies.append(name)
        if _are_dates(column):
            column = pd.to_datetime(column, errors="coerce", utc=True)
        if column.dtype.kind == "M":
            column = (column - column.min()) / pd.Timedelta(days=1)
            kinds["dates"] += 1
        elif column.dtype.kind == "O" or isinstance(column.dtype, pd.CategoricalDtype):
            _check_words(column, name, first_row)
            num_values = column.dropna().nunique()
            if num_values > max(MAX_LEVELS, MOSTLY * len(column)):
                texts.append(name)
                continue
            kinds["words"] += 1
            labels = column.astype(object).where(column.notna(), "(missing)").astype(str).to_numpy()
            parts |= {f"{name} = {level}": values for level, values in indicators(labels).items()}
            continue
        else:
            kinds["numbers"] += 1
        values = column.astype(float).to_numpy()
        if np.isinf(values).any():
            raise ConfigError(f"row {_row(column, np.isinf(values), first_row)}, column {quoted(name)} is infinite")
        holes = np.isnan(values)
        num_filled += int(holes.sum())
        parts[name] = np.where(holes, np.mean(values[~holes]), values)
    notes += [f"left out: {', '.join(texts[:MAX_SHOWN])} (text that differs in most rows)"] if texts else []
    notes += [f"{_count(empty, 'empty column')} left out"] if empty else []
    notes += [f"{_count(num_filled, 'missing cell')} replaced by the mean of the column"] if num_filled else []
    for name in copies[:MAX_SHOWN]:
        advice = option(f"--drop {name}", f"drop {name}")
        notes.append(f"warning: column {name} determines the target: {advice} if it is not known beforehand")
    kinds_text = ", ".join(f"{count} of {kind}" for kind, count in kinds.items() if count)
    indicated = f" ({len(parts) - kinds['numbers'] - kinds['dates']} indicators)" if kinds["words"] else ""
    notes.insert(0, f"{len(frame):,} rows, {_count(sum(kinds.values()), 'column')}: {kinds_text}{indicated}")
    X = np.column_stack([*parts.values()]) if parts else np.empty((len(frame), 0))
    return Columns(X, tuple(parts), y, tuple(notes))


def _check_words(column: pd.Series, name: str, first_row: int) -> None:
    """Raise `ConfigError` for text in a column of numbers, unless the column has a few recurring values."""
    import pandas as pd

    counts = column.value_counts()
    is_text = (column.notna() & pd.to_numeric(column, errors="coerce").isna()).to_numpy()
    recur = len(counts) <= MAX_LEVELS and counts[column[is_text].unique()].min() >= max(RARE * len(column), 2)
    if 0 < is_text.sum() < (1 - MOSTLY) * column.notna().sum() and not recur:
        where = f"row {_row(column, is_text, first_row)}, column {quoted(name)}"
        if flag := option("--na WORD"):  # the file of a stranger's config may be a private one, which nothing quotes
            example = quoted(str(column.to_numpy()[int(np.argmax(is_text))]))
            raise ConfigError(f"{where}: {example} is not a number: {flag} names a word for missing cells")
        raise ConfigError(f"{where} is not a number")


def _row(column: pd.Series, where: np.ndarray, first_row: int) -> int:
    """Return the file's row of the first True entry."""
    return int(column.index[int(np.argmax(where))]) + first_row


def _determines(column: pd.Series, y: np.ndarray) -> bool:
    """Return True if a column determines the target.

    Either each of its few values has a single target, or a threshold separates two classes.
    """
    import pandas as pd

    if len(y) < 2 or pd.Series(y).nunique() < 2:
        return False
    groups = pd.Series(y, index=column.index).groupby(column, observed=True).nunique()
    if 1 < len(groups) <= MAX_LEVELS and groups.max() == 1 and column.notna().all():
        return True
    labels = np.unique(y.astype(str))
    if len(labels) != 2 or column.dtype.kind not in "iuf" or column.isna().any():
        return False
    first = y.astype(str) == labels[0]
    first_values, second_values = column.to_numpy()[first], column.to_numpy()[~first]
    return bool(first_values.max() < second_values.min() or second_values.max() < first_values.min())


def _count(number: int, thing: str) -> str:
    """Format a number of things, singular or plural."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
