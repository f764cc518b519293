r"""Rosenblatt's perceptron in weight space, and the effects of its updates used in two convergence proofs.

Passes: `iterate_mistakes` finds the mistakes without JAX, for many examples with few features.

Proofs: with z an example times its label and :math:`|\mathbf u|=1`, the k-th update
:math:`\mathbf w_k=\mathbf w_{k-1}+\mathbf z`, made because :math:`a=\mathbf w_{k-1}\cdot\mathbf z\le 0`, changes
activation, projection and length such that

.. math:: a' = \mathbf w_k\cdot\mathbf z = a + |\mathbf z|^2, \qquad
          \mathbf u\cdot\mathbf w_k \ge k\gamma, \qquad |\mathbf w_k|^2 \le k R^2

if :math:`\mathbf u\cdot\mathbf z\ge\gamma` and :math:`|\mathbf z|\le R` for all examples. The first relation is Daume's
(3.3) to (3.6), where a bias adds 1 to :math:`|\mathbf x|^2`. The other relations are Block's and Novikoff's. With
:math:`\mathbf u\cdot\mathbf w\le|\mathbf w|` they give the bound of `theory.mistake_bound`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

MAX_DENSE_ENTRIES = 2**22  # sparse rows are converted to dense arrays in chunks of this size


def is_mistake(field: Any) -> Any:
    """Return True for a misclassified or undecided example, in NumPy or JAX.

    Undecided examples count as wrong: w = 0 would otherwise never learn.
    """
    return field <= 0


def iterate_mistakes(w: np.ndarray, z: Any, block: int = 64) -> Iterator[tuple[int, np.ndarray]]:
    """Make a perceptron's pass over z (P, N), examples times labels, and yield each mistake with the new w.

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


class UpdateHistory(NamedTuple):
    """The history of M updates: activations a and a', projections u.w and squared lengths of w, each (M,)."""

    activation_before: np.ndarray
    activation_after: np.ndarray
    weight_projection: np.ndarray
    squared_weight_length: np.ndarray


def compute_update_history(updates: np.ndarray, direction: np.ndarray) -> UpdateHistory:
    r"""Compute the update history of a perceptron from w = 0.

    Parameters
    ----------
    updates : array (M, N)
        The examples times their labels that were added to w, one after the other.
    direction : array (N,)
        A student that is right on all examples, of any length; u is this divided by its length.

    Returns
    -------
    UpdateHistory
        In units of the examples.

    Examples
    --------
    >>> compute_update_history(np.array([[2.0, 0.0], [-1.0, 1.0]]), np.array([1.0, 3.0])).activation_after
    array([4., 0.])
    """
    w = np.cumsum(updates, axis=0)
    before = np.einsum("kn,kn->k", w - updates, updates)
    after = np.einsum("kn,kn->k", w, updates)
    return UpdateHistory(before, after, w @ direction / np.linalg.norm(direction), np.einsum("kn,kn->k", w, w))


def find_broken_inequalities(run: UpdateHistory, z: np.ndarray, direction: np.ndarray) -> list[str]:
    """Return the inequalities of convergence proofs that a run of a perceptron violates.

    A perceptron satisfies all inequalities.

    Parameters
    ----------
    run : UpdateHistory
        A run, update by update.
    z : array (P, N)
        All examples times their labels.
    direction : array (N,)
        A student that is right on all examples.

    Returns
    -------
    list of str
        The inequalities that fail.

    Examples
    --------
    >>> z = np.array([[2.0, 0.0], [-1.0, 1.0]])
    >>> find_broken_inequalities(compute_update_history(z, np.array([1.0, 3.0])), z, np.array([1.0, 3.0]))
    []
    >>> find_broken_inequalities(compute_update_history(z[[0, 0]], np.array([1.0, 3.0])), z, np.array([1.0, 3.0]))
    ['a <= 0', '|w|^2 <= k R^2']
    """
    margin, squared_radius = (z @ direction).min() / np.linalg.norm(direction), (z**2).sum(axis=1).max()
    k = np.arange(1, len(run.activation_before) + 1)
    slack = 1e-9 * k * squared_radius  # tolerance for rounding
    shortest = (z**2).sum(axis=1).min()
    holds = {
        "a <= 0": run.activation_before <= slack,
        "a' - a >= min |z|^2": run.activation_after - run.activation_before >= shortest - slack,
        "u.w >= k gamma": run.weight_projection >= k * margin - slack,
        "|w|^2 <= k R^2": run.squared_weight_length <= k * squared_radius + slack,
        "k <= (R / gamma)^2": k * margin**2 <= squared_radius + slack if margin > 0 else k < 0,
    }
    return [name for name, true in holds.items() if not np.all(true)]
