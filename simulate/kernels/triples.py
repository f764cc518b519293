r"""The best conjunction of three indicators: a compiled search with bounds from pairs.

The rows of a pair with positive and with negative :math:`d_x` have the masses :math:`P, N = (T\pm S)/2`, with the sums
S and T of `simulate.kernels.conjunctions`. A triple i < j < l is true on a part of each pair's rows, so that

.. math:: -N \le S_{ijl} \le P

for all three. Triples that cannot exceed the largest correlation known, :math:`|2S-s|`, are not summed.

**A search tightens the bounds of the next search.** If it shows :math:`S_{ijl}\le P_{ij}-g` for all l, then after the
step to the next distribution, where :math:`S\leftarrow fS+S_\text{wrong}` and
:math:`P\leftarrow fP+P_\text{wrong}` with :math:`S_\text{wrong}\le P_\text{wrong}`,

.. math:: S_{ijl} \le P_{ij} - f g,

and similarly for N. The *gains* g of the pairs decay by f per stage, and are recomputed only for pairs that need it.
"""

from __future__ import annotations

import numpy as np

from simulate.kernels.coordinate_loops import compile_loop

SELECTED_SUM_COST_RATIO = 6  # time per indicator of a selective sum, relative to a sum over all indicators


def find_best_triple(
    X: np.ndarray,
    columns: np.ndarray,
    signed: np.ndarray,
    allowed: np.ndarray,
    sums: np.ndarray,
    masses: np.ndarray,
    gains: np.ndarray,
    total: float,
    threshold: float,
) -> tuple[tuple[int, int, int], float]:
    """Find the triple of largest |2S - total| and return its indices and its S.

    Of equal values (to rounding) the first triple is returned.

    Parameters
    ----------
    X : array (m, n)
        Indicators 0 or 1.
    columns : array (n, m)
        The indicators as bytes, one indicator per row.
    signed : array (m,)
        The distribution times the labels.
    allowed : array (n, n)
        1 for the pairs i < j that may be joined, else 0.
    sums, masses : arrays (n, n)
        The sums of `signed`, and of its absolute values, over the rows where i and j are true.
    gains : array (2, n, n)
        Known distances from P and N that triples of the pairs i < j with a later indicator keep; updated.
    total : float
        s, the sum that a conjunction of no indicators has.
    threshold : float
        A triple must exceed this, by more than rounding.

    Returns
    -------
    indicators : tuple of three int
        All -1 if no triple exceeds the threshold.
    sum : float

    Examples
    --------
    >>> X = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> signed = np.array([0.5, -0.25, -0.25])
    >>> pairs = [(X * d[:, None]).T @ X for d in (signed, np.abs(signed))]
    >>> find_best_triple(X, X.T.astype(np.uint8, order="C"), signed, np.triu(np.ones((3, 3)), 1), *pairs,
    ...               np.zeros((2, 3, 3)), 0.0, 0.5)
    ((0, 1, 2), 0.5)
    """
    above = np.where(allowed > 0, masses + (sums - total), -np.inf)
    below = np.where(allowed > 0, masses - (sums - total), -np.inf)
    i, j, l, best_sum = search_triples(np.ascontiguousarray(X), columns, signed, above, below, gains, total, threshold)
    return (int(i), int(j), int(l)), float(best_sum)


@compile_loop("i8(u1[::1], i8[::1])")
def write_nonzero_indices(true, rows):  # type: ignore[no-untyped-def]
    """Write the indices of the ones to `rows`, without branches, and return their number."""
    number = 0
    for x in range(len(true)):
        rows[number] = x
        number += true[x]
    return number


@compile_loop("void(f8[:,::1], i8[::1], f8[::1], i8, f8[::1])")
def sum_weighted_rows(X, rows, values, first, sums):  # type: ignore[no-untyped-def]
    """Sum rows of X weighted by `values`, four rows at a time.

    Parameters
    ----------
    X
        Matrix (m, n).
    rows, values
        Indices of the rows and their factors (r,).
    first
        First column to sum.
    sums
        Output: the sums (n,) for columns >= `first`.
    """
    sums[first:] = 0.0
    fours = len(rows) // 4 * 4
    for r in range(0, fours, 4):
        a, b, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        e, f, g, h = values[r], values[r + 1], values[r + 2], values[r + 3]
        for l in range(first, X.shape[1]):
            sums[l] += e * X[a, l] + f * X[b, l] + g * X[c, l] + h * X[d, l]
    for r in range(fours, len(rows)):
        value, x = values[r], rows[r]
        for l in range(first, X.shape[1]):
            sums[l] += value * X[x, l]


@compile_loop(
    "Tuple((i8, i8, i8, f8))(f8[:,::1], u1[:,::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8, f8)",
)
def search_triples(X, columns, signed, above, below, gains, total, threshold):  # type: ignore[no-untyped-def]
    """Find the triple of largest |2S - s| and return its indices and its sum S.

    The indices are -1 if no triple exceeds the threshold.

    Parameters
    ----------
    X
        Indicators 0 or 1 (m, n).
    columns
        Their transpose as bytes (n, m).
    signed
        The distribution times the labels (m,).
    above, below
        Bounds of 2S - s and of s - 2S by pairs (n, n).
    gains
        Known distances of triples of these pairs from the bounds (2, n, n); updated.
    total
        The sum s of `signed`.
    threshold
        Value to exceed.
    """
    n, m = columns.shape
    best, best_i, best_j, best_l, best_sum = threshold, -1, -1, -1, 0.0
    rows, common_rows, values = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m)
    candidates, sums = np.empty(n, np.int64), np.empty(n)
    for i in range(n):
        num_true = -1  # the rows of i are listed only when a pair needs them
        for j in range(i + 1, n):
            min_score = best * (1 - 1e-12) - 1e-15
            can_exceed, can_fall_below = (
                above[i, j] - 2 * gains[0, i, j] > min_score,
                below[i, j] - 2 * gains[1, i, j] > min_score,
            )
            if not (can_exceed or can_fall_below):
                continue
            number = 0
            for l in range(j + 1, n):
                candidates[number] = l
                high = can_exceed and above[i, l] > min_score and above[j, l] > min_score
                number += high or (can_fall_below and below[i, l] > min_score and below[j, l] > min_score)
            if number == 0:
                continue
            if num_true < 0:
                num_true = write_nonzero_indices(columns[i], rows)
            num_common = 0
            for r in range(num_true):
                common_rows[num_common] = rows[r]
                num_common += columns[j, rows[r]]
            for r in range(num_common):
                values[r] = signed[common_rows[r]]
            max_sum, min_sum = (total + min_score) / 2, (total - min_score) / 2  # bounds for skipped triples
            if SELECTED_SUM_COST_RATIO * number > n - j:  # summing all triples also tightens their bounds most
                sum_weighted_rows(X, common_rows[:num_common], values, j + 1, sums)
                number, max_sum, min_sum = 0, -np.inf, np.inf
                for l in range(j + 1, n):
                    candidates[number] = l
                    number += above[i, l] > -np.inf and above[j, l] > -np.inf
            else:
                for o in range(number):
                    product = 0.0
                    for r in range(num_common):
                        product += values[r] * columns[candidates[o], common_rows[r]]
                    sums[candidates[o]] = product
            for o in range(number):
                value = sums[candidates[o]]
                max_sum, min_sum = max(max_sum, value), min(min_sum, value)
                if abs(2 * value - total) > best * (1 + 1e-12) + 1e-15:
                    best, best_i, best_j, best_l, best_sum = abs(2 * value - total), i, j, candidates[o], value
            gains[0, i, j] = max(gains[0, i, j], (above[i, j] + total) / 2 - max_sum)
            gains[1, i, j] = max(gains[1, i, j], (below[i, j] - total) / 2 + min_sum)
    return best_i, best_j, best_l, best_sum
