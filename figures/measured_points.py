"""Points from a CSV file, such as measurements, that are drawn together with a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from statmech.errors import ConfigError, format_unknown_name, quote_value
from statmech.runtime.files import read_csv_rows

CSV_COLUMNS, REQUIRED_COLUMNS = ("x", "y", "error"), ("x", "y")
MAX_CSV_BYTES = 1_000_000


@dataclass(frozen=True)
class MeasuredPoints:
    """Points (n,) with their errors, if known, and the name of their file."""

    name: str
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray | None = None


def read_points(path: str | Path) -> MeasuredPoints:
    """Read points from a CSV file with a header line.

    Parameters
    ----------
    path
        A file with the columns `x`, `y` and optionally `error`, in any order.

    Returns
    -------
    MeasuredPoints
        In the order of the file.

    Raises
    ------
    ConfigError
        For a file that cannot be read, lacks a column, or has a value that is not a number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.csv"
    ...     _ = file.write_text("x,y,error\\n1,0.3,0.01\\n2,0.2,0.01\\n")
    ...     read_points(file)
    MeasuredPoints(name='mine', x=array([1., 2.]), y=array([0.3, 0.2]), error=array([0.01, 0.01]))
    """
    path = Path(path)
    try:
        rows = [[cell.strip() for cell in row] for row in read_csv_rows(path, MAX_CSV_BYTES) if any(row)]
    except OSError as failure:
        raise ConfigError(f"figure.points: {path}: cannot be read: {failure.strerror}") from None
    names = rows[0] if rows else []
    _check_columns(path, names)
    table = [_parse_row(path, number, names, row) for number, row in enumerate(rows[1:], 2)]
    if not table:
        raise ConfigError(f"figure.points: {path}: has no points below the header line")
    columns = dict(zip(names, np.array(table).T, strict=True))
    if "error" in columns and (columns["error"] < 0).any():
        raise ConfigError(f"figure.points: {path}: an error is negative")
    return MeasuredPoints(path.stem, columns["x"], columns["y"], columns.get("error"))


def _check_columns(path: Path, names: list[str]) -> None:
    for name in names:
        if name not in CSV_COLUMNS:
            raise ConfigError(f"figure.points: {path}: {format_unknown_name(name, 'a column of points', CSV_COLUMNS)}")
    missing = [name for name in REQUIRED_COLUMNS if name not in names]
    if missing or len({*names}) < len(names):
        problem = f"has no column {' and '.join(missing)}" if missing else "has a column twice"
        raise ConfigError(f"figure.points: {path}: {problem}. Its first line names the columns: x,y,error or x,y.")


def _parse_row(path: Path, line_number: int, names: list[str], row: list[str]) -> list[float]:
    """Parse one row into finite numbers."""
    where = f"figure.points: {path}:{line_number}"
    if len(row) != len(names):
        raise ConfigError(f"{where}: the row must have {len(names)} values like the header, not {len(row)}")
    values = []
    for name, cell in zip(names, row, strict=True):
        try:
            value = float(cell)
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise ConfigError(f"{where}: {name} must be a finite number, not {quote_value(cell)}")
        values.append(value)
    return values
