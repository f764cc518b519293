r"""Tables of real data for learners and theory: centred and scaled rows, a target, and their eigenbasis.

Constant columns are dropped. The other columns are centred and optionally standardised, and all rows are divided by one
number, so that the mean of :math:`|\mathbf x|^2` is 1. A table is a file with a column to predict, or a data set of
`statmech.data_sets` with two classes or a numerical target. Text attributes become indicators, one for each value of
the column but the last.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from statmech import data_sets
from statmech.errors import ConfigError
from statmech.labelled_table import LabelledTable, make_labelled_table, read_labelled_table
from statmech.runtime.files import get_file_signature
from statmech.table_columns import make_indicators

RANK_TOL = 1e-12  # relative to the largest eigenvalue


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
    """Centre and scale a table, and drop its constant columns.

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
    """Compute the eigenbasis of a table's rows, and the components of a target in this basis.

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
    """Compute the SHA-256 of a table's numbers and labels."""
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
    """Load a table, cached under the version `state` of its file."""
    if not is_data_set_name(rows):
        if target is None:
            raise ConfigError(f"{rows}: a file needs a target, the name or the number of the column to predict")
        return make_real_table(read_labelled_table(rows, str(target)), standardise=not raw)
    if target is not None:
        raise ConfigError(f"{rows}: the target of a data set is its class: remove `target`")
    data = data_sets.get_cached_data_set(rows)
    if data.y.dtype != float and len(values := np.unique(data.y)) != 2:
        raise ConfigError(f"{rows}: has {len(values)} classes, but two are required")
    return make_real_table(
        make_labelled_table(data.X if data.X.dtype == float else _encode_text_columns(data.X), data.y)
    )


def _encode_text_columns(X: np.ndarray) -> np.ndarray:
    """Encode each text column by indicators of its values."""
    return np.array([values for column in X.T for values in make_indicators(column).values()]).T
