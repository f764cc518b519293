"""Diagnosis of a table: statistics that determine whether theory is accurate, and warnings."""

from __future__ import annotations

from typing import Any

import numpy as np

from statmech.modes import MIN_EFFECTIVE_DIRECTIONS
from statmech.real_table import RealTable

MAX_ROW_LENGTH_VARIANCE_RATIO, MIN_TRUSTED_ROWS_PER_COLUMN = 2.0, 10.0
MIN_NOISELESS_R2 = 0.999  # above it, the target counts as a linear function of the inputs


def diagnose_table(table: RealTable) -> dict[str, Any]:
    """Compute the statistics of a table that determine whether theory is accurate, with warnings.

    Parameters
    ----------
    table
        The table.

    Examples
    --------
    >>> from statmech.labelled_table import make_labelled_table
    >>> from statmech.real_table import make_real_table
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
