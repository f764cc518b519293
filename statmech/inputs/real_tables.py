r"""Tables of real data with a target: reading, scaled rows, their eigenbasis, diagnosis and populations.

A table is a file with a column to predict, or a data set of `statmech.inputs.data_sets` with two classes or a numerical
target. Constant columns are dropped. The other columns are centred and optionally standardised, and all rows are
divided by one number, so that the mean of :math:`|\mathbf x|^2` is 1. Text attributes become indicators, one for each
value of the column but the last.

Diagnosis: statistics that determine whether theory is accurate for a table, and warnings.

Populations: how examples are drawn from the rows and learners are tested. `theory.convex` has the theory of each
population.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from statmech.errors import ConfigError, format_option, quote_value
from statmech.inputs import data_sets
from statmech.inputs.covariance_modes import MIN_EFFECTIVE_DIRECTIONS
from statmech.inputs.table_columns import (
    ARRAY_COLUMN_OPTIONS,
    DEFAULT_COLUMN_OPTIONS,
    MAX_LISTED_MESSAGE_ENTRIES,
    ColumnOptions,
    encode_columns,
    make_indicators,
)
from statmech.inputs.table_files import DEFAULT_FILE_FORMAT, TableFileFormat, read_table_file
from statmech.runtime.files import get_file_signature

if TYPE_CHECKING:
    import pandas as pd

MIN_TABLE_ROWS = 20
RANK_TOL = 1e-12  # relative to the largest eigenvalue
MAX_ROW_LENGTH_VARIANCE_RATIO, MIN_TRUSTED_ROWS_PER_COLUMN = 2.0, 10.0
MIN_NOISELESS_R2 = 0.999  # above it, the target counts as a linear function of the inputs


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
    """Make a table of real data with a target from arrays or a data frame.

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
    file: TableFileFormat = DEFAULT_FILE_FORMAT,
    options: ColumnOptions = DEFAULT_COLUMN_OPTIONS,
    *,
    numbers: bool = False,
    positive: str | None = None,
) -> LabelledTable:
    """Read a table of real data with a target from a file.

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
    """Make a table of real data from a data frame and the name of its target column."""
    columns = encode_columns(frame, target, options, first_row)
    rows, y = columns.X, columns.target
    if len(rows) < MIN_TABLE_ROWS:
        raise ConfigError(f"a table of {len(rows)} rows is too short: at least {MIN_TABLE_ROWS} rows are required")
    if not rows.size or not np.ptp(rows, axis=0).any():
        raise ConfigError("; ".join(["no input varies: all columns are constant or dropped", *columns.notes[1:]]))
    if positive is not None:
        return _table_from_labels(
            rows, y.astype(str) == positive, positive, _name_negative_label(y, positive), columns.notes
        )
    y = y.astype(str) if y.dtype.kind not in "buif" else y
    values, choice = np.unique(y), format_option("--target COLUMN", "target")
    subject = f"the target (the last column; {choice} chooses another)" if target == "-1" and choice else "the target"
    if len(values) == 1:
        raise ConfigError(f"{subject} has one value, {quote_value(str(values[0]))}: it must have two or be numerical")
    if len(values) == 2 and not numbers:
        low, high = map(str, values.tolist())
        return _table_from_labels(rows, y == values[1], high, low, columns.notes)
    if y.dtype.kind not in "buif":
        listing = ", ".join(map(str, values[:MAX_LISTED_MESSAGE_ENTRIES])) + (
            ", ..." if len(values) > MAX_LISTED_MESSAGE_ENTRIES else ""
        )
        hint = format_option(f"--positive {quote_value(str(values[0]))}", f"positive={str(values[0])!r}")
        advice = f". To predict one of them against all others, name it: {hint}" if hint else ""
        raise ConfigError(f"{subject} has {len(values)} values, {listing}: it must have two or be numerical{advice}")
    if (infinite := np.isinf(y.astype(float))).any():
        raise ConfigError(f"the target is infinite in row {int(np.argmax(infinite)) + first_row}")
    return LabelledTable(rows, y.astype(float), None, columns.notes)


def _table_from_labels(
    rows: np.ndarray, is_positive: np.ndarray, high: str, low: str, notes: Sequence[str]
) -> LabelledTable:
    """Make a table with the labels +1 and -1 from a mask of the rows with the label +1."""
    return LabelledTable(rows, np.where(is_positive, 1.0, -1.0), (high, low), tuple(notes))


def _name_negative_label(y: np.ndarray, positive: str) -> str:
    """Return a name for all values of a real table's target other than the positive value."""
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


class TableEigenbasis(NamedTuple):
    """Nonzero eigenvalues of Z'Z, the target's squared components along them, and its squared remainder."""

    eigenvalues: np.ndarray
    target_squares: np.ndarray
    unexplained_target_square: float


class RealTable(NamedTuple):
    """A scaled table: rows Z (n, N) with mean |x|^2 = 1, and a target y (n,) of labels or centred numbers.

    `labels` are the names of the labels +1 and -1, or None for numbers. `constant` is the number of dropped constant
    columns. `basis` is the eigenbasis of Z with the centred target.
    """

    Z: np.ndarray
    y: np.ndarray
    labels: tuple[str, str] | None
    constant: int
    basis: TableEigenbasis

    @property
    def N(self) -> int:
        """The number of nonconstant columns."""
        return int(self.Z.shape[1])

    @property
    def kind(self) -> str:
        """Description of the target column: its labels, or "a number"."""
        return " and ".join(self.labels) if self.labels else "a number"


def make_real_table(table: LabelledTable, standardise: bool = False) -> RealTable:
    """Centre and scale the rows of a table of real data, and drop its constant columns.

    Parameters
    ----------
    table
        A table with inputs and a target.
    standardise
        Whether to divide each column by its standard deviation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.standard_normal((30, 2)), np.ones(30)])
    >>> table = make_real_table(make_labelled_table(X, ["no", "yes"] * 15))
    >>> table.Z.shape, table.constant, round(float(np.mean(np.sum(table.Z**2, axis=1))), 12)
    ((30, 2), 1, 1.0)
    """
    varies = np.ptp(table.X, axis=0) > 0
    Z = table.X[:, varies]
    Z = Z - Z.mean(axis=0)
    Z = Z / Z.std(axis=0) if standardise else Z
    Z = Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)))
    centred = table.y - table.y.mean()
    return RealTable(
        Z,
        table.y if table.labels else centred,
        table.labels,
        int(np.sum(~varies)),
        compute_table_eigenbasis(Z, centred),
    )


def compute_table_eigenbasis(Z: np.ndarray, y: np.ndarray) -> TableEigenbasis:
    """Compute the eigenbasis of a real table's rows, and the components of a target in this basis.

    Parameters
    ----------
    Z
        Centred rows (n, N).
    y
        Centred targets (n,).
    """
    s, axes = np.linalg.eigh(Z.T @ Z)
    nonzero = s > RANK_TOL * s[-1]
    s = s[nonzero]
    squares = (axes[:, nonzero].T @ (Z.T @ y)) ** 2 / s
    spans_all = len(s) == len(y) - 1  # the remainder is only a rounding error
    return TableEigenbasis(s, squares, 0.0 if spans_all else max(float(y @ y - squares.sum()), 0.0))


def load_named_table(rows: str, target: str | int | None, raw: bool = False) -> RealTable:
    """Load the table of a data set or a file, cached until the file changes.

    Parameters
    ----------
    rows
        The name of a data set, or the path of a file.
    target
        The name or number of the file's column to predict; None for a data set, which has classes.
    raw
        True to use a file's columns without standardisation. Data sets are never standardised.

    Raises
    ------
    ConfigError
        If the data are not such a table.
    ScenarioError
        If the file of a data set differs from its description.
    """
    return _load_real_table(rows, target, raw, _get_table_file_version(rows))


def compute_table_digest(table: RealTable) -> str:
    """Compute the SHA-256 of a real table's scaled rows and labels."""
    digest = hashlib.sha256(repr((table.Z.shape, table.labels)).encode())
    digest.update(table.Z.tobytes())
    digest.update(table.y.tobytes())
    return digest.hexdigest()


def is_data_set_name(rows: str) -> bool:
    """Return True if `rows` is the name of a data set.

    >>> is_data_set_name("digits-odd"), is_data_set_name("digits.csv")
    (True, False)
    """
    pair = data_sets.DIGIT_PAIR_PATTERN.fullmatch(rows)
    return rows in data_sets.DATA_SOURCES or (pair is not None and pair[1] != pair[2])


def _get_table_file_version(rows: str) -> tuple[object, ...]:
    """Return the version of a data set's or table's file."""
    return data_sets.get_data_file_version(rows) if is_data_set_name(rows) else get_file_signature(rows)


@lru_cache(maxsize=4)
def _load_real_table(rows: str, target: str | int | None, raw: bool, state: tuple[object, ...]) -> RealTable:
    """Load a table of real data, cached under the version `state` of its file."""
    if not is_data_set_name(rows):
        if target is None:
            raise ConfigError(f"{rows}: a file needs a target, the name or the number of the column to predict")
        return make_real_table(read_labelled_table(rows, str(target)), standardise=not raw)
    if target is not None:
        raise ConfigError(f"{rows}: the target of a data set is its class: remove `target`")
    data = data_sets.get_cached_data_set(rows)
    if data.y.dtype != float and len(values := np.unique(data.y)) != 2:
        raise ConfigError(f"{rows}: has {len(values)} classes, but two are required")
    X = data.X
    if X.dtype != float:  # each text column is encoded by indicators of its values
        X = np.array([values for column in X.T for values in make_indicators(column).values()]).T
    return make_real_table(make_labelled_table(X, data.y))


def diagnose_table(table: RealTable) -> dict[str, Any]:
    """Compute the statistics of a table of real data that determine whether theory is accurate, with warnings.

    Parameters
    ----------
    table
        The table.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((400, 40))
    >>> found = diagnose_table(make_real_table(make_labelled_table(X, np.where(X[:, 0] > 0, 1, -1))))
    >>> found["rows"], found["columns"], round(found["directions"], 1), found["warnings"]
    (400, 40, 36.5, '')
    """
    (n, N), s, y = table.Z.shape, table.basis.eigenvalues, table.y - table.y.mean()
    explained = float(table.basis.target_squares.sum() / np.sum(y**2))
    left = n - 1 - len(s)
    R2 = 1 - (1 - explained) * (n - 1) / left if left > 0 else np.nan
    directions = float(s.sum() ** 2 / np.sum(s**2))
    squares = np.sum(table.Z**2, axis=1)
    heavy = float(np.var(squares) / np.mean(squares) ** 2 * directions / 2)
    warnings = []
    if directions < MIN_EFFECTIVE_DIRECTIONS:
        warnings.append(f"the rows vary in effectively {directions:.3g} directions; theory assumes many, 30 or more")
    if heavy > MAX_ROW_LENGTH_VARIANCE_RATIO:
        warnings.append(
            f"squared lengths of the rows vary {heavy:.2g} times as much as those of Gaussian rows: for such heavy "
            "tails, errors can be half of the predicted errors"
        )
    if n < MIN_TRUSTED_ROWS_PER_COLUMN * N:
        warnings.append(f"{n} rows of {N} columns: with fewer than ten rows per column the prediction is itself noisy")
    if table.labels is None and R2 > MIN_NOISELESS_R2:
        warnings.append("the target is a linear function of the inputs: its smallest directions are not Gaussian")
    return {
        "rows": n,
        "columns": N,
        "constant_columns": table.constant,
        "R2": R2,
        "directions": directions,
        "tails": heavy,
        "warnings": "\n".join(warnings),
    }


class RowSplit(NamedTuple):
    """The row indices of the examples and of the test rows."""

    examples: np.ndarray
    test_rows: np.ndarray | slice


@dataclass(frozen=True)
class TablePopulation(ABC):
    """A population of rows. Subclasses define `draw` and may override `max_examples`."""

    label: ClassVar[str]
    random_stream_name: ClassVar[str]  # part of the seed of the random rows

    @abstractmethod
    def draw(self, rng: np.random.Generator, rows: int, P: int) -> RowSplit:
        """Draw P examples from a table, so that a smaller P selects the first of the same examples.

        Parameters
        ----------
        rng
            Random numbers.
        rows
            The number of rows of the table.
        P
            The number of examples.
        """

    def max_examples(self, rows: int) -> float:
        """Return the maximum number of examples for a table with this number of rows."""
        return np.inf


@dataclass(frozen=True)
class ResampledTablePopulation(TablePopulation):
    """The table itself: examples are drawn with replacement, and all rows are test rows."""

    label: ClassVar = "all rows"
    random_stream_name: ClassVar = "Table"
    equation: ClassVar = r"P(\mathbf x, y) = \tfrac1n\sum_{i=1}^n\delta(\mathbf x - \mathbf x_i)\,\delta_{y, y_i}"

    def draw(self, rng: np.random.Generator, rows: int, P: int) -> RowSplit:
        return RowSplit(rng.integers(0, rows, P), slice(None))


@dataclass(frozen=True)
class HeldOutRowsPopulation(TablePopulation):
    """The population behind the table: examples are drawn without replacement, and all other rows are test rows."""

    label: ClassVar = "held-out rows"
    random_stream_name: ClassVar = "HeldOut"
    equation: ClassVar = r"(\mathbf x_i, y_i) \sim P(\mathbf x, y), \quad i = 1 \ldots n"

    def draw(self, rng: np.random.Generator, rows: int, P: int) -> RowSplit:
        order = rng.permutation(rows)
        return RowSplit(order[:P], order[P:])

    def max_examples(self, rows: int) -> float:
        return rows - 1


TABLE_POPULATIONS: dict[str, type[TablePopulation]] = {
    "table": ResampledTablePopulation,
    "held_out": HeldOutRowsPopulation,
}


def describe_table_diagnoses(diagnoses: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return remarks on omitted columns, and on tables outside the valid range of theory.

    Parameters
    ----------
    diagnoses
        The diagnosis of each table, by its name.
    """
    return [line for name, diagnosis in diagnoses.items() for line in _describe_diagnosis(name, diagnosis)]


def _describe_diagnosis(name: str, diagnosis: dict[str, Any]) -> list[str]:
    """Return the remarks on one table of real data, from its diagnosis."""
    constant = diagnosis["constant_columns"]
    subject = "1 constant column is" if constant == 1 else f"{constant} constant columns are"
    columns = [f"{subject} omitted, and {diagnosis['columns']} are inputs"] if constant else []
    return [f"{name}: {sentence}" for sentence in (*columns, *diagnosis["warnings"].splitlines())]
