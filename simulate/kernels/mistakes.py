r"""Rosenblatt's perceptron in weight space without JAX, for many examples with few features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

MAX_DENSE_ENTRIES = 2**22  # sparse rows are converted to dense arrays in chunks of this size


def is_mistake(field: Any) -> Any:
    """Return True for a misclassified or undecided example, in NumPy or JAX.

    Undecided examples count as wrong: w = 0 would otherwise never learn.
    """
    return field <= 0


def iterate_mistakes(w: np.ndarray, z: Any, block: int = 64) -> Iterator[tuple[int, np.ndarray]]:
    """Make one pass over z (P, N), examples times labels, and yield each mistake with the new w.

    Rows are dense or sparse. Blocks of examples are evaluated together up to their first mistake. `w` is the student
    before the pass and is not changed.

    >>> [int(index) for index, _ in iterate_mistakes(np.zeros(1), np.array([[1.0], [2.0], [-1.0], [0.5]]))]
    [0, 2, 3]
    """
    if not isinstance(z, np.ndarray):
        chunk = max(1, MAX_DENSE_ENTRIES // z.shape[1])
        for start in range(0, z.shape[0], chunk):
            for index, w in iterate_mistakes(w, z[start : start + chunk].toarray(), block):  # noqa: B020
                yield start + index, w
        return
    index = 0
    while index < len(z):
        errors = np.flatnonzero(is_mistake(z[index : index + block] @ w))
        if not errors.size:
            index, block = index + block, min(2 * block, 8192)
            continue
        index += int(errors[0])
        w = w + z[index]
        yield index, w
        index, block = index + 1, max(block // 2, 16)
