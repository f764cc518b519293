r"""Samples of the examples' fields: columns of a scrambled Sobol net, and the teacher's field in the gauge y = 1.

**Labels** are absorbed into the inputs, :math:`\mathbf x \to y\,\mathbf x`, which changes no force. All outputs are
then 1, the field of a student is the stability, and teachers differ only in the distribution of their field t = y u.
Its density is :math:`2\varphi(t)\,p(t)`, with p(u) the probability of :math:`y=+1`, and is sampled by inversion. A
linear teacher has two columns instead, its field u and the noise.

**A column** contains :math:`S=2^k` numbers, one in each of S intervals of equal probability, in the order of one axis
of a Sobol net whose digits are scrambled (Matousek's linear scramble and a shift of digits). Each column has its own
order, but the positions within the intervals are common to all columns of a replica. Quantiles are thus computed once
for S positions and reused for all columns, and the numbers of each column have the exact mean and variance. Columns are
used in the order in which they are needed, so that a longer run extends a shorter run.

**Generators** of the net are the numbers that the binary digits of a point's index add to its coordinates. Column d has
a primitive polynomial :math:`x^m + c_1x^{m-1} + \dots + 1` over the field of two elements, and m odd numbers
:math:`v_1,\dots,v_m` with :math:`v_j < 2^j`. Further numbers follow, digit by digit modulo 2,

.. math:: v_j = 2c_1v_{j-1}\oplus 2^2c_2v_{j-2}\oplus\dots\oplus 2^mv_{j-m}\oplus v_{j-m},

and the generator of the j-th digit is :math:`v_j/2^j`.

SciPy tabulates 21,201 columns by Joe & Kuo, SIAM J. Sci. Comput. 30, 2635 (2008). The first 64 columns are repeated
here, since importing `scipy.stats` takes longer than most theory calculations that need them.

**Matching**: a new normal is made orthogonal to all known vectors of samples: the teacher's field, the noise, earlier
normals and slopes. Then the square loss, whose slopes are linear in these vectors, is exact with any number of samples.
Slopes of a smooth loss soon have no new part, so that the number of directions stays far below the number of steps.
With a kink, a bend or batches each step has a new part, and matching hardly reduces the error.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from statmech.convex.teachers import LabelTeacher, LinearTeacher, Teacher
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, make_panel_rules, normal_cdf, normal_density, normal_quantile

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
SCRAMBLED_COLUMNS_PER_BLOCK = 64  # columns that are scrambled at once
NUM_SCIPY_SOBOL_COLUMNS = 21_201  # maximum that SciPy tabulates
INITIAL_ROW_TABLE_LENGTH = 32  # the table grows by doubling
REPROJECTION_NORM_RATIO = 0.5  # a row whose norm shrinks more is projected again, against rounding
NEW_DIRECTION_NORM_TOL = {"float64": 1e-9, "float32": 1e-5}  # norm of a new component, relative to slopes or weights
MIN_KNOWN_ROW_NORM = 1e-6  # smaller remainders are rounding errors and get no row
FIELD_TABLE_INTERVALS = 300  # equal intervals, and the same number of geometric intervals
FIRST_INTERVAL_WIDTH_RATIO = 0.02  # first edge of the geometric intervals, in units of the teacher's width
NODES_PER_FIELD_INTERVAL = 8
MIN_TABULATED_PROBABILITY = 1e-30  # smaller probabilities are not tabulated


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
    """Compute the direction numbers v_j of a column of the Sobol net for all binary digits."""
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


class SobolColumns:
    """Samples of one replica: columns of a Sobol net, used one after the other.

    Parameters
    ----------
    replica : int
        Number of the replica, which determines its scramble.
    size : int
        Number S of samples, a power of 2 up to 2^16.
    matched : bool
        Whether to make new normals orthogonal to all known vectors, in double precision. Otherwise single precision is
        used.
    """

    def __init__(self, replica: int, size: int, matched: bool) -> None:
        self.size, self.replica = size, replica
        self.columns = 0  # number of columns used
        self.dtype = np.dtype(np.float64 if matched else np.float32)
        self.known_rows = RowTable(size, self.dtype) if matched else None
        self.orthogonalise_later_normals(np.ones(size))

    def draw_normal(self, out: np.ndarray) -> np.ndarray:
        """Write the next column of normal samples of the Sobol net into an array (S,), and return this array."""
        normal = self._permute_to_next_column(_draw_stratified_normals(self.replica, self.size)[1])
        if self.known_rows is None:
            out[:] = normal
            return out
        norm = self.known_rows.project_out(normal, out)
        out *= 1 / norm
        if self._has_room_for_known_row():
            self.known_rows.get_free_row()[:] = out
            self.known_rows.mark_free_row_filled()
        return out

    def orthogonalise_later_normals(self, row: np.ndarray) -> None:
        """Make later normal samples of the fields orthogonal to a row (S,) of norm 1."""
        if self.known_rows is None or not self._has_room_for_known_row():
            return
        rest = self.known_rows.get_free_row()
        norm = self.known_rows.project_out(row, rest)
        if norm > MIN_KNOWN_ROW_NORM:
            rest *= 1 / norm
            self.known_rows.mark_free_row_filled()

    def _has_room_for_known_row(self) -> bool:
        """Return True if known vectors span less than half of the samples' dimensions."""
        return self.known_rows is not None and len(self.known_rows.filled) < self.size // 2

    def draw_uniform(self) -> np.ndarray:
        """Return the next uniform samples (S,)."""
        return self._permute_to_next_column(_draw_stratified_normals(self.replica, self.size)[0])

    def _permute_to_next_column(self, values: np.ndarray) -> np.ndarray:
        """Permute increasing values (S,) to the order of the next column."""
        self.columns += 1
        return values.take(_compute_column_permutation(self.replica, self.size, self.columns - 1))


class ExampleSamples(SobolColumns):
    """Samples of the examples: the teacher's field, outputs, and normals.

    Parameters
    ----------
    teacher : Teacher
        How outputs depend on the teacher's field.
    replica : int
        Number of the replica, which determines its scramble.
    size : int
        Number S of samples, a power of 2 up to 2^16.
    matched : bool
        Whether to make new normals orthogonal to all known vectors.

    Examples
    --------
    >>> from statmech.convex.teachers import SignTeacher
    >>> samples = ExampleSamples(SignTeacher(), replica=0, size=512, matched=True)
    >>> normal = samples.draw_normal(np.empty(512))
    >>> bool(abs(samples.field @ normal) < 1e-12), round(float(normal @ normal), 9)
    (True, 512.0)
    """

    def __init__(self, teacher: Teacher, replica: int, size: int, matched: bool) -> None:
        super().__init__(replica, size, matched)
        self.outputs: np.ndarray | None = None  # only for a linear teacher, since labels are 1
        if isinstance(teacher, LabelTeacher):
            self.field = self._permute_to_next_column(_get_sorted_teacher_fields(teacher, replica, size))
            self.orthogonalise_later_normals(self.field)
        else:
            assert isinstance(teacher, LinearTeacher)
            self.field = self.outputs = self.draw_normal(np.empty(size))
            if teacher.noise:
                self.outputs = self.field + teacher.noise * self.draw_normal(np.empty(size))


class RowTable:
    """Growing table of rows (n, S), with projection onto the complement of orthonormal rows.

    Scalar products are means over S. The table grows by doubling.

    >>> rows = RowTable(2, np.dtype(float))
    >>> rows.get_free_row()[:] = 1.0
    >>> rows.mark_free_row_filled()
    >>> rest = np.empty(2)
    >>> rows.project_out(np.array([3.0, 1.0]), rest), rest
    (1.0, array([ 1., -1.]))
    """

    def __init__(self, size: int, dtype: np.dtype) -> None:
        self.buffer = np.empty((INITIAL_ROW_TABLE_LENGTH, size), dtype)
        self.filled = self.buffer[:0]

    def get_free_row(self) -> np.ndarray:
        """Return the next free row of a table of samples, to be written before `mark_free_row_filled`."""
        if len(self.filled) == len(self.buffer):
            self.buffer = np.concatenate([self.buffer, np.empty_like(self.buffer)])
            self.filled = self.buffer[: len(self.filled)]
        return self.buffer[len(self.filled)]

    def mark_free_row_filled(self) -> None:
        """Add the next free row to the filled rows."""
        self.filled = self.buffer[: len(self.filled) + 1]

    def project_out(self, row: np.ndarray, rest: np.ndarray, min_norm: float = 0.0) -> float:
        """Write the component of a row of samples orthogonal to all filled rows into `rest`, and return its norm.

        `rest` may be the row itself. The Gram-Schmidt projection is repeated if the norm becomes small, unless it is
        smaller than `min_norm`.
        """
        size, rows = len(row), self.filled
        row_norm = np.sqrt(row @ row / size)
        np.subtract(row, (rows @ row / size) @ rows, out=rest)
        norm = np.sqrt(rest @ rest / size)
        if min_norm < norm < REPROJECTION_NORM_RATIO * row_norm:
            rest -= (rows @ rest / size) @ rows
            norm = np.sqrt(rest @ rest / size)
        return float(norm)


class RandomBatches:
    """Random batches of the samples.

    Parameters
    ----------
    samples : ExampleSamples
        Samples of the replica.
    fraction : float
        Fraction b of the examples in a batch.
    shuffled : bool
        Whether each example appears once in an epoch of 1/b steps. Otherwise batches are drawn independently.
    """

    def __init__(self, samples: ExampleSamples, fraction: float, shuffled: bool) -> None:
        self.samples, self.fraction, self.shuffled = samples, fraction, shuffled
        self.slots = np.empty(0)

    def draw_batch(self, step: int) -> np.ndarray:
        """Return a mask (S,) of the sampled examples in the batch of a step.

        The method must be called for all steps in order.
        """
        if not self.shuffled:
            return self.samples.draw_uniform() < self.fraction
        batches = round(1 / self.fraction)
        if step % batches == 0:
            self.slots = np.floor(batches * self.samples.draw_uniform())
        return self.slots == step % batches


def compute_mean_teacher_field(teacher: LabelTeacher) -> float:
    r"""Return the mean :math:`\langle yu\rangle = 2\langle p'(u)\rangle` of the teacher's field in the gauge y = 1.

    >>> from statmech.convex.teachers import SignTeacher
    >>> round(compute_mean_teacher_field(SignTeacher(flip=0.1)), 6)              # 0.8 sqrt(2/pi)
    0.638308
    """
    return 2 * float(teacher.mean_probability_slope(np.zeros(1), np.ones(1))[0])


def compute_teacher_field_quantiles(teacher: LabelTeacher, probability: np.ndarray) -> np.ndarray:
    r"""Compute the quantiles of the teacher's field t = y u over the examples, to sample it by inversion.

    .. math:: \int_{-\infty}^t 2\varphi(v)\,p(v)\,dv = U

    A closed form is used if labels are the sign of the field, with or without flips, and a table for other labels.

    Parameters
    ----------
    teacher : LabelTeacher
        How labels depend on its field.
    probability : array (S,)
        Probabilities U, above 0 and below 1.

    Returns
    -------
    array (S,)

    Examples
    --------
    >>> from statmech.convex.teachers import LogitTeacher, SignTeacher
    >>> compute_teacher_field_quantiles(SignTeacher(flip=0.1), np.array([0.05, 0.2, 0.55])).round(6)
    array([-0.67449,  0.13971,  0.67449])
    >>> compute_teacher_field_quantiles(LogitTeacher(gain=1), np.array([0.05, 0.2, 0.55])).round(6)
    array([-1.077809, -0.350336,  0.523288])
    """
    if teacher.width(np.zeros(1))[0] > 0:
        return _interpolate_field_quantiles(teacher, normal_quantile(probability))
    flip = float(teacher.probability(np.array([-1.0]))[0])
    wrong = probability < flip
    chance = np.where(
        wrong, probability / (2 * max(flip, MIN_TABULATED_PROBABILITY)), (1 - probability) / (2 * (1 - flip))
    )
    return np.where(wrong, 1.0, -1.0) * normal_quantile(np.clip(chance, MIN_TABULATED_PROBABILITY, 0.5))


def _interpolate_field_quantiles(teacher: LabelTeacher, normal: np.ndarray) -> np.ndarray:
    """Interpolate quantiles of the teacher's field as a function of standard normal quantiles.

    Cubic pieces have the exact slope. Let L(t) be the probability of a field below -t < 0. Since p(-u) = 1 - p(u), the
    probability of a field above t is 2 Phi(-t) - L(t). Thus neither tail is a difference of numbers near 1.
    """
    from scipy.interpolate import CubicHermiteSpline

    first = min(FIRST_INTERVAL_WIDTH_RATIO * float(teacher.width(np.zeros(1))[0]), 1.0)
    edges = np.union1d(
        np.linspace(0, GAUSSIAN_CUTOFF, FIELD_TABLE_INTERVALS + 1),
        np.geomspace(first, GAUSSIAN_CUTOFF, FIELD_TABLE_INTERVALS),
    )
    v, weight = make_panel_rules(edges, NODES_PER_FIELD_INTERVAL)
    masses = np.sum(2 * weight * normal_density(v) * teacher.probability(-v), axis=-1)
    left = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    right = 2 * normal_cdf(-edges) - left
    t = np.concatenate([-edges[::-1], edges[1:]])
    z = np.concatenate(
        [
            normal_quantile(np.maximum(left[::-1], MIN_TABULATED_PROBABILITY**2)),
            -normal_quantile(np.maximum(right[1:], MIN_TABULATED_PROBABILITY**2)),
        ]
    )
    in_table = np.append(left[::-1], right[1:]) > MIN_TABULATED_PROBABILITY
    slope = normal_density(z) / np.maximum(2 * normal_density(t) * teacher.probability(t), MIN_TABULATED_PROBABILITY**4)
    return np.asarray(CubicHermiteSpline(z[in_table], t[in_table], slope[in_table])(normal))


@lru_cache(maxsize=64)
def _draw_stratified_normals(replica: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw one uniform number in each of S equal intervals, and return them with their normal quantiles."""
    rng = np.random.default_rng([replica, size])
    uniform = (np.arange(size) + rng.random(size)) / size
    return uniform, _match_moments(normal_quantile(uniform), 0.0)


@lru_cache(maxsize=64)
def _get_sorted_teacher_fields(teacher: LabelTeacher, replica: int, size: int) -> np.ndarray:
    """Return samples of the teacher's field (S,) in increasing order, with the exact mean and mean square."""
    return _match_moments(
        compute_teacher_field_quantiles(teacher, _draw_stratified_normals(replica, size)[0]),
        compute_mean_teacher_field(teacher),
    )


def _match_moments(values: np.ndarray, mean: float) -> np.ndarray:
    """Shift and scale values to the given mean and to mean square 1."""
    values = values - np.mean(values)
    return mean + values * np.sqrt((1 - mean * mean) / np.mean(values * values))


def _compute_column_permutation(replica: int, size: int, column: int) -> np.ndarray:
    """Return the permutation of 0 to S - 1 of a Sobol column, built by doubling over the digits of the index."""
    digits = _scramble_sobol_generators(replica, size, column // SCRAMBLED_COLUMNS_PER_BLOCK)[
        :, column % SCRAMBLED_COLUMNS_PER_BLOCK
    ]
    order = np.empty(size, np.intp)
    order[0], num_filled = digits[-1], 1
    for digit in digits[:-1]:
        np.bitwise_xor(order[:num_filled], digit, out=order[num_filled : 2 * num_filled])
        num_filled *= 2
    return order


@lru_cache(maxsize=1024)
def _scramble_sobol_generators(replica: int, size: int, block: int) -> np.ndarray:
    """Scramble the generators (k, columns) of a block of columns. The last row of the result is the shift."""
    # further blocks reuse columns with other scrambles
    count = size.bit_length() - 1
    first = SCRAMBLED_COLUMNS_PER_BLOCK * (block % (NUM_SCIPY_SOBOL_COLUMNS // SCRAMBLED_COLUMNS_PER_BLOCK))
    columns = min(1 << (first + SCRAMBLED_COLUMNS_PER_BLOCK - 1).bit_length(), NUM_SCIPY_SOBOL_COLUMNS)
    plain = get_sobol_generators(columns)[:count, first : first + SCRAMBLED_COLUMNS_PER_BLOCK] >> (
        NUM_BINARY_DIGITS - count
    )
    rng = np.random.default_rng([replica, size, block])
    digits = 1 << np.arange(count)[::-1, None]
    mixed = np.zeros_like(plain)
    for digit, images in zip(digits, digits + rng.integers(digits, size=plain.shape), strict=True):
        mixed ^= np.where(plain & digit, images, 0)  # each digit contributes itself and random lower digits
    return np.vstack([mixed, rng.integers(size, size=plain.shape[1])])
