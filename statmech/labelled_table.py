"""Tables with a target: numbers in columns, and one column of labels or numbers to predict."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from statmech.errors import ConfigError, not_known, quoted
from statmech.runtime.files import opened

MOST_BYTES = 2**30  # of a file
FEWEST = 20  # rows of a table


class Labelled(NamedTuple):
    """Inputs X (n, N), a target y (n,), and what its two labels, +1 first, are called; None for numbers."""

    X: np.ndarray
    y: np.ndarray
    labels: tuple[str, str] | None


def labelled(X: object, y: object, *, numbers: bool = False) -> Labelled:
    """Arrays as a table with a target; a target of two values becomes labels, the larger one +1.

    Parameters
    ----------
    X : array (n, N)
        Numbers.
    y : array (n,)
        Two different values of any kind, or numbers.
    numbers
        Whether a target of two values remains a number.

    Raises
    ------
    ConfigError
        For too few rows, inputs or a target that are not finite numbers, and inputs that do not vary.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = labelled(rng.standard_normal((30, 2)), ["yes", "no"] * 15)
    >>> table.labels, table.y[:2]
    (('yes', 'no'), array([ 1., -1.]))
    """
    rows, target = _numbers(X, "X"), np.asarray(y)
    if rows.ndim != 2 or target.shape != rows.shape[:1]:
        shapes = f"not of shapes {rows.shape} and {target.shape}"
        raise ConfigError(f"X must be a table (n, N) and y its target (n,), {shapes}")
    if len(rows) < FEWEST:
        raise ConfigError(f"a table of {len(rows)} rows is too short: {FEWEST} rows are needed")
    if not np.ptp(rows, axis=0).any():
        raise ConfigError("X does not vary: all its columns are constant")
    values = np.unique(target)
    if len(values) == 1:
        raise ConfigError(f"the target has one value, {quoted(str(values[0]))}: two, or numbers, are needed")
    if len(values) == 2 and not numbers:
        low, high = map(str, values.tolist())
        return Labelled(rows, np.where(target == values[1], 1.0, -1.0), (high, low))
    if target.dtype.kind not in "buif":
        raise ConfigError(f"the target has {len(values)} values: two, or numbers, are needed")
    return Labelled(rows, _numbers(target, "y"), None)


def read(path: str, target: str) -> Labelled:
    """The table of a .csv file, with or without a line of names, whose target is a column's name or number.

    Parameters
    ----------
    path
        The file.
    target
        The name of the target's column, or its number, which counts from 0; -1 is the last.

    Raises
    ------
    ConfigError
        For a file that is not such a table.
    """
    lines = _lines(path)
    names = [] if _all_numbers(lines[0]) else lines[0]
    rows = lines[1:] if names and len(set(names)) == len(names) and not _like(lines[0], lines[1:]) else lines
    names = names if len(rows) < len(lines) else []
    at = _column(path, target, names, len(lines[0]))
    inputs = [[entry for place, entry in enumerate(row) if place != at] for row in rows]
    values = [row[at].strip() for row in rows]
    numbers = np.array(values, float) if _all_numbers(values) else np.array(values)
    try:
        return labelled(np.array(inputs, float), numbers)
    except ValueError as failure:
        if isinstance(failure, ConfigError):
            raise ConfigError(f"{path}: {failure}") from None
        row, column = next((r, c) for r, row in enumerate(inputs) for c, it in enumerate(row) if not _all_numbers([it]))
        column += column >= at
        name = f"column {quoted(names[column])}" if names else f"column {column}"
        raise ConfigError(f"{path}: row {row + 1 + (len(lines) - len(rows))}, {name} is not a number") from None


def _lines(path: str) -> list[list[str]]:
    """The rows of a file, all of one length."""
    try:
        with opened(Path(path), MOST_BYTES) as descriptor, open(descriptor, "rb", closefd=False) as file:
            rows = [row for row in csv.reader(io.TextIOWrapper(file, "utf-8", newline="")) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        raise ConfigError(f"{path}: not a readable table: {getattr(failure, 'strerror', None) or 'not text'}") from None
    if len(rows) < 2:
        raise ConfigError(f"{path}: a table needs rows, and a target for each")
    if odd := next((at for at, row in enumerate(rows) if len(row) != len(rows[0])), None):
        raise ConfigError(f"{path}: row {odd + 1} has {len(rows[odd])} columns, the first one {len(rows[0])}")
    return rows


def _like(first: list[str], others: list[list[str]]) -> bool:
    """True if a first row with words is data like the others, whose columns have words in the same places."""
    words = [not _all_numbers([entry]) for entry in first]
    return all(_all_numbers([row[at]]) is not word for at, word in enumerate(words) for row in others[:FEWEST])


def _column(path: str, target: str, names: list[str], columns: int) -> int:
    """The number of the target's column."""
    if target in names:
        return names.index(target)
    if target.lstrip("-").isdigit() and -columns <= int(target) < columns:
        return int(target) % columns
    known = names or [str(at) for at in range(columns)]
    raise ConfigError(f"{path}: {not_known(target, 'a column', known)}")


def _all_numbers(entries: list[str]) -> bool:
    try:
        np.array(entries, float)
    except ValueError:
        return False
    return True


def _numbers(values: object, name: str) -> np.ndarray:
    """Finite numbers in float64."""
    array = np.asarray(values)
    if array.dtype.kind not in "buif":
        raise ConfigError(f"{name} must be numbers, not {array.dtype.name}")
    if not np.isfinite(array).all():
        raise ConfigError(f"{name} must be finite: {int(np.sum(~np.isfinite(array)))} entries are not")
    return array.astype(float)
