r"""Generators of Sobol's net, the numbers that the binary digits of a point's index add to its coordinates.

Column d has a primitive polynomial :math:`x^m + c_1x^{m-1} + \dots + 1` over the field of two elements, and m odd
numbers :math:`v_1,\dots,v_m` with :math:`v_j < 2^j`. Further numbers follow, digit by digit modulo 2,

.. math:: v_j = 2c_1v_{j-1}\oplus 2^2c_2v_{j-2}\oplus\dots\oplus 2^mv_{j-m}\oplus v_{j-m},

and the generator of the j-th digit is :math:`v_j/2^j`.

SciPy tabulates 21,201 columns by Joe & Kuo, SIAM J. Sci. Comput. 30, 2635 (2008). The first 64 columns are repeated
here, since importing `scipy.stats` takes longer than most theory calculations that need them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

NUM_BINARY_DIGITS = 16  # per coordinate, for at most 2^16 points
# columns 1 to 63: polynomial as a binary number, then v_1 to v_m; column 0 has v_j = 1
SOBOL_POLYNOMIAL_TABLE = """
3 1; 7 1 3; 11 1 3 1; 13 1 1 1; 19 1 1 3 3; 25 1 3 5 13; 37 1 1 5 5 17; 41 1 1 5 5 5; 47 1 1 7 11 19;
55 1 1 5 1 1; 59 1 1 1 3 11; 61 1 3 5 5 31; 67 1 3 3 9 7 49; 91 1 1 1 15 21 21; 97 1 3 1 13 27 49;
103 1 1 1 15 7 5; 109 1 3 1 15 13 25; 115 1 1 5 5 19 61; 131 1 3 7 11 23 15 103; 137 1 3 7 13 13 15 69;
143 1 1 3 13 7 35 63; 145 1 3 5 9 1 25 53; 157 1 3 1 13 9 35 107; 167 1 3 1 5 27 61 31; 171 1 1 5 11 19 41 61;
185 1 3 5 3 3 13 69; 191 1 1 7 13 1 19 1; 193 1 3 7 5 13 19 59; 203 1 1 3 9 25 29 41; 211 1 3 5 13 23 1 55;
213 1 3 7 3 13 59 17; 229 1 3 1 3 5 53 69; 239 1 1 5 5 23 33 13; 241 1 1 7 7 1 61 123; 247 1 1 7 9 13 61 49;
253 1 3 3 5 3 55 33; 285 1 3 1 15 31 13 49 245; 299 1 3 5 15 31 59 63 97; 301 1 3 1 11 11 11 77 249;
333 1 3 1 11 27 43 71 9; 351 1 1 7 15 21 11 81 45; 355 1 3 7 3 25 31 65 79; 357 1 3 1 1 19 11 3 205;
361 1 1 5 9 19 21 29 157; 369 1 3 7 11 1 33 89 185; 391 1 3 3 3 15 9 79 71; 397 1 3 7 11 15 39 119 27;
425 1 1 3 1 11 31 97 225; 451 1 1 1 3 23 43 57 177; 463 1 3 7 7 17 17 37 71; 487 1 3 1 5 27 63 123 213;
501 1 1 3 5 11 43 53 133; 529 1 3 5 5 29 17 47 173 479; 539 1 3 3 11 3 1 109 9 69; 545 1 1 1 5 17 39 23 5 343;
557 1 3 1 5 25 15 31 103 499; 563 1 1 1 11 11 17 63 105 183; 601 1 1 5 11 9 29 97 231 363;
607 1 1 5 15 19 45 41 7 383; 617 1 3 7 7 31 19 83 137 221; 623 1 1 1 3 23 15 111 223 83;
631 1 1 5 13 31 15 55 25 161; 637 1 1 3 13 25 47 39 87 257
"""
NUM_STORED_SOBOL_COLUMNS = 64


@lru_cache(maxsize=4)
def get_sobol_generators(columns: int) -> np.ndarray:
    """Return the generator matrices of the Sobol sequence as integers (digits, columns).

    Generators are multiplied by 2^16 and ordered from the first digit to the last.

    Parameters
    ----------
    columns : int
        Number of columns, at most 21,201.

    Returns
    -------
    array of int

    Examples
    --------
    >>> get_sobol_generators(3)[:3]                                  # halves, quarters and eighths
    array([[32768, 32768, 32768],
           [16384, 49152, 49152],
           [ 8192, 40960, 24576]])
    """
    if columns > NUM_STORED_SOBOL_COLUMNS:
        return _read_scipy_generators(columns)
    rows = [np.array(row.split(), int) for row in SOBOL_POLYNOMIAL_TABLE.split(";")[: columns - 1]]
    numbers = [np.ones(NUM_BINARY_DIGITS, int), *(_compute_direction_numbers(int(row[0]), row[1:]) for row in rows)][
        :columns
    ]
    return np.stack(numbers, axis=-1) << np.arange(NUM_BINARY_DIGITS - 1, -1, -1)[:, None]


def _compute_direction_numbers(polynomial: int, first: np.ndarray) -> np.ndarray:
    """Compute the direction numbers v_j of a column for all binary digits."""
    degree = len(first)
    v = [*first[:NUM_BINARY_DIGITS]]
    for j in range(degree, NUM_BINARY_DIGITS):
        new = v[j - degree]
        for k in range(1, degree + 1):
            if polynomial >> (degree - k) & 1:
                new ^= v[j - k] << k
        v.append(new)
    return np.array(v)


def _read_scipy_generators(columns: int) -> np.ndarray:
    """Extract the generators from points of SciPy's Sobol sequence.

    SciPy returns points in the order of Gray's code, where the index 2^(j+1) - 1 has the single digit j.
    """
    from scipy.stats import qmc  # slow to import

    net, rows, num_drawn = qmc.Sobol(columns, scramble=False), [], 0
    for digit in range(NUM_BINARY_DIGITS):
        net.fast_forward(2 ** (digit + 1) - 1 - num_drawn)
        rows.append(net.random(1)[0])
        num_drawn = 2 ** (digit + 1)
    return (np.array(rows) * 2**NUM_BINARY_DIGITS).astype(np.intp)
