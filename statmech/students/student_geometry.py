r"""Order parameters: functions of the Gram matrix of teacher and students.

The state of every online scenario is :math:`G_{ij} = \mathbf w_i\cdot\mathbf w_j/N` of
:math:`\mathbf w = (\mathbf B, \mathbf J_1, \dots, \mathbf J_K)` with :math:`G_{00} = 1`. Its views are

.. math:: l_k = \sqrt{G_{kk}}, \quad R_k = G_{0k}/l_k, \quad q_{kk'} = G_{kk'}/(l_k l_{k'}).

As learning succeeds, R and q round to 1 and differences such as 1 - R lose their digits. The components of a student
parallel and perpendicular to the teacher, :math:`\mathbf J_k/\sqrt N = a_k\hat{\mathbf B} + \mathbf b_k`, keep all
digits, and so does the angle :math:`\theta_k = \operatorname{atan2}(|\mathbf b_k|, a_k)`. The transverse parts of two
students have the cosine
:math:`c_{kk'} = \hat{\mathbf b}_k\cdot\hat{\mathbf b}_{k'}`.
"""

from __future__ import annotations

import numpy as np

from statmech.numerics.gaussian import Array, get_array_module

MAX_UNSCALED_SQUARED_LENGTH = 2.0**300  # larger squared lengths are rescaled before LAPACK runs
MIN_SQUARED_COSINE = 1e-300  # smaller values give the angle pi/2 to all digits
EIGENVALUE_TOL = 1e-12  # rounding error of eigenvalues, relative to the largest
MAX_UNSCALED_SQUARE_RATIO = 2.0**20  # at larger ratios of squared lengths, short vectors would be lost


def angle_from_components(perpendicular: Array, parallel: Array) -> Array:
    r"""Return the angle :math:`\theta = \arccos R` between student and teacher from the student's components.

    >>> float(angle_from_components(1e-9, 1.0))
    1e-09
    """
    return get_array_module(perpendicular).arctan2(perpendicular, parallel)


def angle_from_versine(y: Array) -> Array:
    r"""Return the angle :math:`\theta = \arccos R` from :math:`y = 1 - R`, without cancellation as R -> 1.

    .. math:: \theta = 2\arctan\sqrt{y/(2 - y)}

    >>> float(angle_from_versine(5e-19))
    1e-09
    """
    return _angle_from_half_angle_squares(y, 2 - y)


def angle_between_students(theta_1: Array, theta_2: Array, c: Array) -> Array:
    r"""Return the angle :math:`\arccos q` of two students from their angles to the teacher and transverse cosine c.

    :math:`q = \cos\theta_1\cos\theta_2 + c\,\sin\theta_1\sin\theta_2`, computed as a haversine so that
    small angles are accurate.

    >>> float(angle_between_students(1e-8, 1e-8, 0.5))
    1e-08
    """
    xp = get_array_module(c)
    haversine = xp.sin(theta_1) * xp.sin(theta_2) * (1 - c) / 2
    if theta_1 is not theta_2:  # the term vanishes for two equivalent students
        haversine = haversine + xp.sin((theta_1 - theta_2) / 2) ** 2
    return _angle_from_half_angle_squares(haversine, 1 - haversine)


def _angle_from_half_angle_squares(sin2: Array, cos2: Array) -> Array:
    """Return 2 arctan(sqrt(sin2 / cos2)), which compiles to code twice as fast as arctan2."""
    xp = get_array_module(sin2)
    return 2 * xp.arctan(xp.sqrt(sin2 / xp.maximum(cos2, MIN_SQUARED_COSINE)))


def gram_matrix(length: np.ndarray, R: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the (K+1, K+1) Gram matrix of (B, J_1 .. J_K) from lengths (K,), R (K,) and q (K, K).

    >>> gram_matrix(np.array([2.0]), np.array([0.5]), np.eye(1))
    array([[1., 1.],
           [1., 4.]])
    """
    cosines = np.block([[np.ones((1, 1)), R[None, :]], [R[:, None], q]])
    np.fill_diagonal(cosines, 1.0)
    lengths = np.concatenate([[1.0], length])
    return cosines * np.outer(lengths, lengths)


def lowest_cosine_eigenvalue(R: np.ndarray, q: np.ndarray) -> float:
    """Return the lowest eigenvalue of the cosine matrix, negative if no such vectors exist.

    The cosines are R (K,) and q (K, K), or a scalar q for all pairs. Rounding errors may also be negative.

    >>> lowest_cosine_eigenvalue(np.array([0.9, 0.9]), np.array([[1, -0.5], [-0.5, 1]])) < 0
    True
    >>> lowest_cosine_eigenvalue(np.array([0.9, 0.9]), np.array(-0.5)) < 0
    True
    """
    if np.ndim(q) == 0:
        return _lowest_eigenvalue_equal_q(R, float(q))
    return float(np.linalg.eigvalsh(gram_matrix(np.ones_like(R), R, q))[0])


def _lowest_eigenvalue_equal_q(R: np.ndarray, q: float) -> float:
    """Return the lowest eigenvalue of the cosine matrix for a common q of all pairs of students.

    It is computed on the span of the teacher, the students' sum and their sum weighted by R. All other eigenvalues are
    1 - q.
    """
    K = R.size
    spanning = np.zeros((K + 1, 3))
    spanning[0, 0], spanning[1:, 1], spanning[1:, 2] = 1.0, 1.0, R
    basis = np.linalg.qr(spanning)[0]
    teacher, students = basis[:1], basis[1:]
    image = np.concatenate([teacher + R @ students, R[:, None] * teacher + (1 - q) * students + q * students.sum(0)])
    lowest = float(np.linalg.eigvalsh(basis.T @ image)[0])
    return min(lowest, 1 - q) if K > 2 else lowest


def student_coordinates(length: np.ndarray, R: np.ndarray, q: np.ndarray) -> np.ndarray:
    r"""Return the students' coordinates (K, K+1) in an orthonormal basis with the teacher's direction as axis 0.

    Rows have norm l_k, inner products l_k l_k' q_kk' and first entry l_k R_k. Coordinates exist for any
    consistent R and q, including identical students: the transverse Gram matrix is factored by its eigenvalues.

    >>> rows = student_coordinates(np.ones(2), np.array([0.6, 0.6]), np.ones((2, 2)))
    >>> rows @ rows.T
    array([[1., 1.],
           [1., 1.]])
    """
    parallel = length * R
    perpendicular = gram_matrix(length, R, q)[1:, 1:] - np.outer(parallel, parallel)
    return np.column_stack([parallel, factor_semidefinite_matrix(perpendicular)])


def factor_semidefinite_matrix(matrix: np.ndarray) -> np.ndarray:
    r"""Return factors F with :math:`FF^\mathsf{T} = M` of Gram matrices M (..., K, K), which may be singular.

    The matrices may be singular.

    >>> factor = factor_semidefinite_matrix(np.ones((2, 2)))
    >>> factor @ factor.T
    array([[1., 1.],
           [1., 1.]])
    """
    scale = _find_power_of_two_scales(np.diagonal(matrix, axis1=-2, axis2=-1))
    values, vectors = np.linalg.eigh(matrix / (scale[..., :, None] * scale[..., None, :]))
    # rounding errors are set to 0: their square roots would be 1e-8
    values = np.where(values > 1e-14 * values[..., -1:], values, 0.0)
    return scale[..., None] * (vectors * np.sqrt(values)[..., None, :])


def _find_power_of_two_scales(squares: np.ndarray) -> np.ndarray:
    """Return powers of two near students' lengths from `squares` (..., K), or 1 where scaling is not needed.

    Scaling is necessary for squares of very different or extreme size: errors of eigenvalues are relative to the
    largest, and a vector 1e7 times shorter would be lost. Scaling by a power of two does not change any bit of the
    mantissa.
    """
    largest, positive = squares.max(axis=-1, keepdims=True), squares > 0
    differ = largest > MAX_UNSCALED_SQUARE_RATIO * np.where(positive, squares, largest).min(axis=-1, keepdims=True)
    # LAPACK itself would scale these, but not by a power of two
    differ |= (largest > MAX_UNSCALED_SQUARED_LENGTH) | (largest < 1 / MAX_UNSCALED_SQUARED_LENGTH)
    return np.where(positive & differ, np.exp2(np.rint(np.log2(np.where(positive, squares, 1.0)) / 2)), 1.0)


def compute_student_order_parameters(
    parallel: np.ndarray, perpendicular: np.ndarray, length: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    r"""Compute R, length and generalization error of students, from their components relative to the teacher.

    .. math:: R = a / l, \quad l = \sqrt{a^2 + b^2}, \quad \epsilon_g = \arctan(b / a) / \pi

    Parameters
    ----------
    parallel, perpendicular
        Lengths a and b of the components parallel and perpendicular to the teacher, of any shape; b >= 0.
    length
        l, if it is known more exactly than by this formula.

    Returns
    -------
    Arrays of the same shape; R is NaN for a student of length 0.

    >>> parameters = compute_student_order_parameters(np.array(1.0), np.array(1.0))
    >>> {name: float(value.round(3)) for name, value in parameters.items()}
    {'R': 0.707, 'length': 1.414, 'eps_g': 0.25}
    """
    length = np.hypot(parallel, perpendicular) if length is None else length
    return {"R": parallel / length, "length": length, "eps_g": np.arctan2(perpendicular, parallel) / np.pi}


def compute_ensemble_order_parameters(parallel: np.ndarray, perpendicular_gram: np.ndarray) -> dict[str, np.ndarray]:
    r"""Compute order parameters and errors of an ensemble, from the students' components relative to the teacher.

    The error of the majority vote depends on more than pairs of students, and is computed elsewhere.

    Parameters
    ----------
    parallel
        Components :math:`a_k` parallel to the teacher, of shape (..., t, K).
    perpendicular_gram
        The Gram matrix of the components perpendicular to the teacher, of shape (..., t, K, K).

    Returns
    -------
    R, q (a student's mean over the others), length and eps_g, of shape (..., t, K), and eps_g of the weight mean,
    (..., t).
    """
    K = parallel.shape[-1]
    perpendicular_squared = np.diagonal(perpendicular_gram, axis1=-2, axis2=-1)
    student = compute_student_order_parameters(parallel, np.sqrt(perpendicular_squared))
    length = student["length"]
    pairs = parallel[..., :, None] * parallel[..., None, :] + perpendicular_gram
    q = pairs / (length[..., :, None] * length[..., None, :])
    mean_overlap = (q.sum(axis=-1) - 1) / (K - 1) if K > 1 else np.full(parallel.shape, np.nan)
    mean_perpendicular = np.sqrt(np.maximum(perpendicular_gram.sum(axis=(-2, -1)), 0.0))
    weight_mean = np.arctan2(mean_perpendicular, parallel.sum(axis=-1)) / np.pi
    return {**student, "q": mean_overlap, "eps_g_weight_mean": weight_mean}


def make_gram_matrix(parallel: np.ndarray, perpendicular_gram: np.ndarray) -> np.ndarray:
    """Return the Gram matrices (..., K+1, K+1) of teacher and students.

    The students are given by their components parallel to the teacher, and by the Gram matrix of the perpendicular
    components.
    """
    students = parallel[..., :, None] * parallel[..., None, :] + perpendicular_gram
    K = parallel.shape[-1]
    gram = np.ones((*parallel.shape[:-1], K + 1, K + 1))
    gram[..., 0, 1:] = gram[..., 1:, 0] = parallel
    gram[..., 1:, 1:] = students
    return gram


def factorise_gram(gram: np.ndarray) -> np.ndarray:
    """Return a lower triangular C (n, n) with C C^T equal to a Gram matrix, which can be singular.

    >>> factorise_gram(np.array([[1.0, 1.0], [1.0, 1.0]]))
    array([[1., 0.],
           [1., 0.]])
    """
    n = len(gram)
    rest, scale = _compute_cosines_and_lengths(gram)
    rows = np.zeros((n, n))
    for k in range(n):
        if rest[k, k] > EIGENVALUE_TOL * n:
            rows[:, k] = rest[:, k] / np.sqrt(rest[k, k])
            rest = rest - np.outer(rows[:, k], rows[:, k])
    return np.tril(rows) * scale[:, None]


def is_positive_semidefinite(gram: np.ndarray) -> bool:
    """Return True if a Gram matrix is positive semidefinite, up to rounding."""
    return bool(np.linalg.eigvalsh(_compute_cosines_and_lengths(gram)[0])[0] >= -EIGENVALUE_TOL * len(gram))


def _compute_cosines_and_lengths(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines (n, n) and lengths (n,) of vectors, leaving products with a zero vector unchanged."""
    scale = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    unit = np.where(scale > 0, scale, 1.0)
    return gram / np.outer(unit, unit), scale
