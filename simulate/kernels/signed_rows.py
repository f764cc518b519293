r"""Rows of a real table times their labels, as inputs of online learning.

A step :math:`\eta\,y\,g(y\,\mathbf J\cdot\mathbf x/l, l)\,\mathbf x` equals the step for the input :math:`y\mathbf x`
and the label 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from statmech.inputs import Rows


@dataclass(frozen=True)
class SignedRows(Rows):
    """Rows of a table with two classes, times their labels, drawn with replacement."""

    has_errors_given_by_angles = True  # errors are computed on all rows, without new inputs

    def table(self, N: int) -> np.ndarray:
        """Return the products (n, N) of rows and labels."""
        from statmech.scenarios.labelled_rows import load_rows_table  # imported here because most runs have no table

        table = load_rows_table(self)
        return (table.y[:, None] * table.Z).astype(np.float32)
