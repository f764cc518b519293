r"""The generalization error of two-layer networks, in closed form or on test fields, and students' specialisation.

**Closed form.** With the outputs' difference :math:`e = \sum_mw_mg(y_m) - \sum_kv_kg(h_k)` and :math:`I_2` of
`statmech.students.activations`, the error follows from the scalar products of the units,

.. math:: \epsilon_g = \tfrac12\langle e^2\rangle
          = \tfrac12\Big[\sum_{mn}w_mw_nI_2(T_{mn}) + \sum_{kl}v_kv_lI_2(Q_{kl})\Big] - \sum_{km}v_kw_mI_2(R_{km}) .

**Near perfect learning** these sums cancel: R and Q round at 1e-16, and so does :math:`\epsilon_g`, although a
simulation resolves differences of weights that are much smaller. With the coordinates of the units, compare each
student with the unit :math:`b_k` closest to it, a teacher's or none (:math:`b_k = 0`), and let :math:`u_k = h_k - b_k`,
:math:`\Omega_m = w_m - \sum_{k:b_k=y_m}v_k`:

.. math:: e = \sum_m\Omega_mg(y_m) - \Omega_0\,g(0) - \sum_kv_k\int_0^1ds\,g'(b_k+su_k)\,u_k,
          \qquad \Omega_0 = \sum_{k:b_k=0}v_k .

All terms of e are now small, and :math:`2\epsilon_g` is the sum of their products. With :math:`x_k = b_k+su_k` the
averages are integrals over s of :math:`\langle g(y_m)g'(x_k)u_k\rangle = I_3`, and over s and t of

.. math:: \langle g'(x_k)g'(x_l)u_ku_l\rangle = \langle u_ku_l\rangle J_2(C)
          + \frac{d}{d\varepsilon}J_2\big(C+\varepsilon(c_kc_l^\mathsf{T}+c_lc_k^\mathsf{T})\big)\Big|_{\varepsilon=0}

by Stein's lemma, used twice: C is the covariance matrix of :math:`(x_k, x_l)` and :math:`c_k` their covariances with
:math:`u_k`. This requires :math:`g(0) = 0`, which all activations here satisfy. For an odd g a student may also be
closest to the opposite of a unit, :math:`b_k = -y_m`, which enters :math:`\Omega_m` with -v. Linear units need no such
comparison: their error is the squared length of :math:`\sum_mw_m\mathbf B_m-\sum_kv_k\mathbf J_k`.

**ReLU.** :math:`J_2` bends where :math:`x_k` and :math:`x_l` coincide. Students near the same unit have a closed form,

.. math:: \langle(g(h)-g(y))^2\rangle = \frac d2 - \frac{|h||y|}\pi(\sin\theta-\theta\cos\theta), \qquad
          d = \langle(h-y)^2\rangle, \quad \sin^2\frac\theta2 = \frac{d-(|h|-|y|)^2}{4|h||y|},

for :math:`h_k` and :math:`b_k`, and by :math:`2ab = a^2+b^2-(a-b)^2` for two students near the same unit.

**Test fields.** For labels, and for teachers without closed forms, the error is measured on test fields.

**Specialisation** is the alignment of each student with a teacher unit. With the cosines
:math:`\rho_{km} = R_{km}/\sqrt{Q_{kk}T_{mm}}`, and n = min(K, M),

.. math:: \rho = \max_\pi\frac1n\sum_{i=1}^n \rho_{k_i m_i}

over all assignments of n students to n teacher units. Runs specialise to different assignments, so that the mean of R
over runs may vanish where the mean of :math:`\rho` does not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import perm
from typing import NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array, get_array_module, get_legendre_rule, one_minus_cos, x_minus_sin
from statmech.numerics.orthants import safe_ratio, safe_sqrt
from statmech.students.activations import Activation, Linear, Relu
from statmech.students.student_geometry import factor_semidefinite_matrix

NODES, SHORT_CHANGE_NODES = 24, 4  # per integral over s: relative errors of 1e-12 and, for short changes, 1e-15
MAX_SQUARED_SHORT_CHANGE = 1e-3  # squared change relative to the units' variances
MAX_CANCELLING_ERROR = 1e-6  # relative to the squared outputs: below it, sums lose six digits or more
BLOCK_NETWORKS = 1024  # pairs of units per block of networks

QuadratureRule = tuple[np.ndarray, np.ndarray]  # nodes and weights
NUM_TEST_FIELDS = 4096
PLATEAU_COSINE_TOL = 1e-9  # tolerance for mean cosines
MAX_ENUMERATED_ASSIGNMENTS = 24  # per matrix: larger problems use the assignment solver


def generalization_error(
    activation: Activation, T: Array, w: Array, R: Array, Q: Array, v: Array, output: str = "linear"
) -> Array:
    r"""Return the generalization error :math:`\epsilon_g` from the scalar products of units.

    Parameters
    ----------
    activation : Activation
        Activation of students and teacher, with closed forms or from
        `statmech.students.activations.ensure_gaussian_averages`.
    T : array (M, M)
        Products of teacher units.
    w : array (M,)
        Weights of teacher units in the output.
    R : array (..., K, M)
        Products of student and teacher units.
    Q : array (..., K, K)
        Products of student units.
    v : array (..., K)
        Weights of student units in the output.
    output : "linear" or "sign"
        With "sign" and M = 1 the teacher's output is the label :math:`\mathrm{sgn}(w_1y_1)`: its g has the sign of y.

    Returns
    -------
    array (...)

    Raises
    ------
    NotImplementedError
        If labels come from several teacher units, or if the activation has no closed forms.

    Examples
    --------
    >>> from statmech.students.activations import Erf
    >>> I = np.eye(2)
    >>> round(float(generalization_error(Erf(), I, np.ones(2), 0 * I, I, np.ones(2))), 6)       # 2/3
    0.666667
    """
    students = sum_weighted_pairs(average_field_pairs(activation.I2, get_diagonals(Q), Q, get_diagonals(Q)), v, v)
    if output == "sign":
        if len(w) > 1:
            raise NotImplementedError(f'output="sign" supports a teacher with one unit, not {len(w)}')
        cross = sum_weighted_pairs(
            average_field_pairs(activation.S2, get_diagonals(Q), R, get_diagonals(T)), v, np.sign(w)
        )
        return (1 + students) / 2 - cross
    teacher = sum_weighted_pairs(average_field_pairs(activation.I2, get_diagonals(T), T, get_diagonals(T)), w, w)
    cross = sum_weighted_pairs(average_field_pairs(activation.I2, get_diagonals(Q), R, get_diagonals(T)), v, w)
    return (teacher + students) / 2 - cross


def get_diagonals(G: Array) -> Array:
    """Return the diagonals (..., K) of matrices (..., K, K)."""
    return get_array_module(G).diagonal(G, axis1=-2, axis2=-1)


def sum_weighted_pairs(averages: Array, left: Array, right: Array) -> Array:
    """Sum averages (..., K, L), weighted by the output weights (..., K) and (..., L) of their units."""
    return (averages * left[..., :, None] * right[..., None, :]).sum((-2, -1))


def average_field_pairs(average: Callable[[Array], Array], left: Array, product: Array, right: Array) -> Array:
    """Return averages (..., K, L) over all pairs of fields with variances (..., K) and (..., L)."""
    xp = get_array_module(product)
    a, b, c = xp.broadcast_arrays(left[..., :, None], right[..., None, :], product)
    return average(xp.stack([xp.stack([a, c]), xp.stack([c, b])]))


def generalization_error_from_coordinates(
    activation: Activation,
    rows: np.ndarray,
    w: np.ndarray,
    parallel: np.ndarray,
    perpendicular: np.ndarray,
    v: np.ndarray,
) -> np.ndarray:
    r"""Return the generalization error from students' coordinates, accurately even near perfect learning.

    Parameters
    ----------
    activation : Activation
        Activation of students and teacher, with closed forms. Without `J2_along` the error comes from the sums.
    rows : array (M, M)
        Coordinates of the teacher units, :math:`T = LL^\mathsf{T}`.
    w : array (M,)
        Weights of teacher units in the output.
    parallel : array (..., K, M)
        Coordinates of the students on the same axes.
    perpendicular : array (..., K, K)
        Products of the students' components orthogonal to the teacher's axes.
    v : array (..., K)
        Weights of student units in the output.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> from statmech.students.activations import Linear
    >>> coordinates = np.eye(1), np.ones(1), np.ones((1, 1)), np.full((1, 1), 1e-30), np.ones(1)
    >>> far = generalization_error_from_coordinates(Linear(), *coordinates)
    >>> float(far)
    5e-31
    """
    K, M = parallel.shape[-2:]
    leading = np.broadcast_shapes(parallel.shape[:-2], perpendicular.shape[:-2], v.shape[:-1])
    parallel, perpendicular, v = (
        np.broadcast_to(part, (*leading, *shape)).reshape(-1, *shape)
        for part, shape in ((parallel, (K, M)), (perpendicular, (K, K)), (v, (K,)))
    )
    block = max(BLOCK_NETWORKS // max(K, M) ** 2, 1)
    errors = [
        _compute_block_errors(
            activation,
            rows,
            w,
            parallel[start : start + block],
            perpendicular[start : start + block],
            v[start : start + block],
        )
        for start in range(0, len(v), block)
    ]
    return np.concatenate([np.zeros(0), *errors]).reshape(leading)


def _compute_block_errors(
    activation: Activation,
    rows: np.ndarray,
    w: np.ndarray,
    parallel: np.ndarray,
    perpendicular: np.ndarray,
    v: np.ndarray,
) -> np.ndarray:
    """Return the generalization errors (L,) of L networks, from differences where sums would lose digits."""
    if _inherits_activation_function(activation, Linear):
        difference = w @ rows - (v[:, None, :] @ parallel)[:, 0]
        return ((difference**2).sum(-1) + sum_weighted_pairs(perpendicular, v, v)) / 2
    T, R, Q = rows @ rows.T, parallel @ rows.T, parallel @ parallel.swapaxes(-1, -2) + perpendicular
    error = np.array(generalization_error(activation, T, w, R, Q, v))
    is_near = error < MAX_CANCELLING_ERROR * (
        _sum_square_outputs(activation, T, w) + _sum_square_outputs(activation, Q, v)
    )
    if is_near.any() and _can_average_differences(activation):
        error[is_near] = _SmallDifferenceStudents(
            activation, rows, w, parallel[is_near], perpendicular[is_near], v[is_near]
        ).error()
    return error


def _inherits_activation_function(activation: Activation, kind: type[Activation]) -> bool:
    """Return True if an activation inherits the function g of a class without overriding g."""
    return type(activation).both is kind.both


def _can_average_differences(activation: Activation) -> bool:
    """Return True if an activation has J2_along, g(0) = 0 and no kinks (except ReLU), as small differences require."""
    has_derivative = type(activation).J2_along is not Activation.J2_along
    is_smooth = _inherits_activation_function(activation, Relu) or not activation.kinks
    return has_derivative and is_smooth and float(activation.both(np.zeros(1))[0][0]) == 0.0


def _sum_square_outputs(activation: Activation, G: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Sum the mean squared outputs of all units, weighted by their squared output weights."""
    variances = get_diagonals(G)
    return (v * v * activation.I2(np.array([[variances, variances], [variances, variances]]))).sum(-1)


class _SmallDifferenceStudents(NamedTuple):
    """Students near teacher units: coordinates (L, K, M), perpendicular products (L, K, K) and weights (L, K)."""

    activation: Activation
    rows: np.ndarray
    w: np.ndarray
    parallel: np.ndarray
    perpendicular: np.ndarray
    v: np.ndarray

    def error(self) -> np.ndarray:
        """Return the errors (L,) of networks near perfect learning as sums of products of small differences."""
        M, K = self.rows.shape[0], self.v.shape[-1]
        unit, sign = self._find_closest_units()
        base = sign[..., None] * np.vstack([self.rows, np.zeros(M)])[unit]
        fields = _FieldChanges(base, self.parallel - base, self.perpendicular)
        nodes = get_legendre_rule(
            SHORT_CHANGE_NODES
            if (fields.size() < MAX_SQUARED_SHORT_CHANGE * np.diagonal(self.rows @ self.rows.T).min()).all()
            else NODES
        )
        rest = self.w - ((sign * self.v)[..., None] * (unit[..., None] == np.arange(M))).sum(-2)
        T = self.rows @ self.rows.T
        total = sum_weighted_pairs(
            average_field_pairs(self.activation.I2, get_diagonals(T), T, get_diagonals(T)), rest, rest
        )
        for k in range(K):
            for m in range(M):
                total = total - 2 * rest[:, m] * self.v[:, k] * self._average_teacher_change_product(
                    fields, k, self.rows[m], nodes
                )
            for l in range(k + 1):
                pair = self._average_change_product(fields, k, l, unit[:, k] == unit[:, l], nodes)
                total = total + (1 + (l < k)) * self.v[:, k] * self.v[:, l] * pair
        return total / 2

    def _find_closest_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the teacher unit closest to each student unit (L, K), with M for the zero unit, and its sign."""
        squares, product = (self.rows**2).sum(-1), self.parallel @ self.rows.T
        sign = np.where(self.activation.odd & (product < 0), -1.0, 1.0)
        distance = np.concatenate([squares - 2 * sign * product, np.zeros_like(product[..., :1])], axis=-1)
        unit = np.argmin(distance, axis=-1)
        signs = np.concatenate([sign, np.ones_like(product[..., :1])], axis=-1)
        return unit, np.take_along_axis(signs, unit[..., None], axis=-1)[..., 0]

    def _average_teacher_change_product(
        self, fields: _FieldChanges, k: int, row: np.ndarray, nodes: QuadratureRule
    ) -> np.ndarray:
        """Average g(y) (g(h_k) - g(b_k)), a term of the error of a network near perfect learning."""
        s, weight = nodes
        bb, bu, uu = (part[:, None] for part in fields.pair_covariances(k, k))
        b_y, uy = fields.base[:, k] @ row, fields.change[:, k] @ row
        xx, xu, xy = bb + 2 * s * bu + s * s * uu, bu + s * uu, b_y[:, None] + s * uy[:, None]
        uy, uu, yy = uy[:, None] + 0 * s, uu + 0 * s, row @ row + 0 * xx
        return self.activation.I3(np.array([[xx, xu, xy], [xu, uu, uy], [xy, uy, yy]])) @ weight

    def _average_change_product(
        self, fields: _FieldChanges, k: int, l: int, same: np.ndarray, nodes: QuadratureRule
    ) -> np.ndarray:
        """Average (g(h_k) - g(b_k)) (g(h_l) - g(b_l)), a term of the error of a network near perfect learning."""
        if not _inherits_activation_function(self.activation, Relu):
            return self._integrate_change_product(fields, k, l, nodes)
        closed = self._average_relu_change_product(fields, k, l)
        return closed if same.all() else np.where(same, closed, self._integrate_change_product(fields, k, l, nodes))

    def _integrate_change_product(self, fields: _FieldChanges, k: int, l: int, nodes: QuadratureRule) -> np.ndarray:
        """Average (g(h_k) - g(b_k)) (g(h_l) - g(b_l)) by quadrature over s and t."""
        t, weight = nodes
        s = t[:, None]
        (kk, ku, kuu), (ll, lu, luu) = (_add_node_axes(fields.pair_covariances(i, i)) for i in (k, l))
        kl, k_ul, uu = _add_node_axes(fields.pair_covariances(k, l))
        l_uk = _add_node_axes([fields.pair_covariances(l, k)[1]])[0]
        a, b = kk + 2 * s * ku + s * s * kuu, ll + 2 * t * lu + t * t * luu
        c = kl + t * k_ul + s * l_uk + s * t * uu
        C = _stack_covariances(a, c, b)
        left, right = (ku + s * kuu, l_uk + t * uu), (k_ul + s * uu, lu + t * luu)  # covariances with u_k and u_l
        E = _stack_covariances(2 * left[0] * right[0], left[0] * right[1] + left[1] * right[0], 2 * left[1] * right[1])
        return weight @ (uu * self.activation.J2(C) + self.activation.J2_along(C, E)) @ weight

    @staticmethod
    def _average_relu_change_product(fields: _FieldChanges, k: int, l: int) -> np.ndarray:
        """Average the product of two students' differences from the same ReLU unit, in closed form."""
        sizes = [_average_squared_relu_change(*fields.pair_covariances(i, i)) for i in (k, l)]
        if k == l:
            return sizes[0]
        (bb, bu, uu), (_, bw, ww) = fields.pair_covariances(k, k), fields.pair_covariances(l, l)
        uw = fields.pair_covariances(k, l)[2]
        difference = _average_squared_relu_change(bb + 2 * bw + ww, bu - bw + uw - ww, uu + ww - 2 * uw)
        return (sizes[0] + sizes[1] - difference) / 2


class _FieldChanges(NamedTuple):
    """Coordinates (L, K, M) of the closest units b_k and the changes u_k, and perpendicular products (L, K, K)."""

    base: np.ndarray
    change: np.ndarray
    perpendicular: np.ndarray

    def size(self) -> np.ndarray:
        """Return the mean squared changes (L, K), the averages of u_k u_k."""
        return (self.change**2).sum(-1) + get_diagonals(self.perpendicular)

    def pair_covariances(self, k: int, l: int) -> list[np.ndarray]:
        """Return the averages (L,) of b_k b_l, b_k u_l and u_k u_l."""
        pairs = ((self.base, self.base), (self.base, self.change), (self.change, self.change))
        bb, bu, uu = ((left[:, k] * right[:, l]).sum(-1) for left, right in pairs)
        return [bb, bu, uu + self.perpendicular[:, k, l]]


def _add_node_axes(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Append two axes for the quadrature nodes."""
    return [array[:, None, None] for array in arrays]


def _stack_covariances(a: np.ndarray, c: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Stack the covariance matrices (2, 2, ...) of two fields with variances a, b and covariance c."""
    a, c, b = np.broadcast_arrays(a, c, b)
    return np.array([[a, c], [c, b]])


def _average_squared_relu_change(yy: np.ndarray, yu: np.ndarray, uu: np.ndarray) -> np.ndarray:
    """Average (g(y + u) - g(y))^2 for ReLU, from the averages of y^2, y u and u^2."""
    hh = np.maximum(yy + 2 * yu + uu, 0.0)
    h, y = np.sqrt(hh), safe_sqrt(yy)
    radial = safe_ratio(2 * yu + uu, h + y)
    theta = 2 * np.arcsin(np.sqrt(np.clip(safe_ratio(uu - radial**2, 4 * h * y), 0.0, 1.0)))
    return uu / 2 - h * y / np.pi * (theta * one_minus_cos(theta) - x_minus_sin(theta))


class TeacherNetwork(NamedTuple):
    """A teacher network: activation, unit products T (M, M), output weights w (M,), and output "linear" or "sign"."""

    activation: Activation
    T: np.ndarray
    w: np.ndarray
    output: str = "linear"

    def compute_outputs(self, fields: np.ndarray) -> np.ndarray:
        """Return the outputs (n,) for fields (M, n) of the units."""
        sums = self.w @ self.activation.both(fields)[0]
        return np.sign(sums) if self.output == "sign" else sums


def measured_error(
    activation: Activation,
    teacher: TeacherNetwork,
    R: np.ndarray,
    Q: np.ndarray,
    v: np.ndarray,
    generator: np.random.Generator,
    num_fields: int = NUM_TEST_FIELDS,
) -> np.ndarray:
    r"""Estimate the generalization error as a mean over test fields, for teachers without a closed form.

    For students with closed forms only the teacher's fields y are drawn:

    .. math:: \epsilon_g = \tfrac12\Big\langle Y^2 - 2Y\sum_kv_k\langle g(h_k)|y\rangle\Big\rangle_y
              + \tfrac12\sum_{kl}v_kv_lI_2(Q_{kl}) .

    Parameters
    ----------
    activation : Activation
        Activation of the students.
    teacher : Teacher
        The teacher network.
    R : array (..., K, M)
        Products of student and teacher units.
    Q : array (..., K, K)
        Products of student units.
    v : array (..., K)
        Weights of student units in the output.
    generator : numpy Generator
        Draws the same fields for all leading axes.
    num_fields : int
        Number of test fields. The standard error decays with its square root.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> from statmech.students.activations import Erf
    >>> teacher, I = TeacherNetwork(Erf(), np.eye(2), np.ones(2), "sign"), np.eye(2)
    >>> round(float(measured_error(Erf(), teacher, I, I, np.ones(2), np.random.default_rng(0))), 2)
    0.17
    """

    def compute_error(network: _StudentNetwork, y: np.ndarray, normals: np.ndarray) -> float:
        target = teacher.compute_outputs(y)
        if not activation.has_closed_forms:
            return float(np.mean((target - network.v @ activation.both(network.fields(y, normals))[0]) ** 2)) / 2
        outputs = network.v @ activation.given(network.teacher_coefficients @ y, network.residual_variances[:, None])
        squares = sum_weighted_pairs(
            average_field_pairs(activation.I2, get_diagonals(network.Q), network.Q, get_diagonals(network.Q)),
            network.v,
            network.v,
        )
        return float(np.mean(target * target - 2 * target * outputs) + squares) / 2

    return _average_error_over_fields(compute_error, teacher, R, Q, v, generator, num_fields)


def label_error(
    activation: Activation,
    teacher: TeacherNetwork,
    R: np.ndarray,
    Q: np.ndarray,
    v: np.ndarray,
    generator: np.random.Generator,
    num_fields: int = NUM_TEST_FIELDS,
) -> np.ndarray:
    """Estimate on test fields the fraction of labels that the student network mispredicts.

    A tie counts 1/2.

    Parameters
    ----------
    activation : Activation
        Activation of the students.
    teacher : Teacher
        The teacher network, whose output is a label.
    R : array (..., K, M)
        Products of student and teacher units.
    Q : array (..., K, K)
        Products of student units.
    v : array (..., K)
        Weights of student units in the output.
    generator : numpy Generator
        Draws the same fields for all leading axes.
    num_fields : int
        Number of test fields. The standard error decays with its square root.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> from statmech.students.activations import Linear
    >>> teacher, I = TeacherNetwork(Linear(), np.eye(1), np.ones(1), "sign"), np.eye(1)
    >>> float(label_error(Linear(), teacher, -I, I, np.ones(1), np.random.default_rng(0)))
    1.0
    """

    def compute_error(network: _StudentNetwork, y: np.ndarray, normals: np.ndarray) -> float:
        outputs = network.v @ activation.both(network.fields(y, normals))[0]
        return float(np.mean(1 - np.sign(teacher.compute_outputs(y)) * np.sign(outputs))) / 2

    return _average_error_over_fields(compute_error, teacher, R, Q, v, generator, num_fields)


class _StudentNetwork(NamedTuple):
    """A student network, whose fields are mean @ y plus noise, given the teacher's fields y (M, n)."""

    teacher_coefficients: np.ndarray
    residual_covariance: np.ndarray
    Q: np.ndarray
    v: np.ndarray

    @property
    def residual_variances(self) -> np.ndarray:
        return np.maximum(get_diagonals(self.residual_covariance), 0.0)

    def fields(self, y: np.ndarray, normals: np.ndarray) -> np.ndarray:
        return self.teacher_coefficients @ y + factor_semidefinite_matrix(self.residual_covariance) @ normals


def _average_error_over_fields(
    compute_error: Callable[[_StudentNetwork, np.ndarray, np.ndarray], float],
    teacher: TeacherNetwork,
    R: np.ndarray,
    Q: np.ndarray,
    v: np.ndarray,
    generator: np.random.Generator,
    num_fields: int,
) -> np.ndarray:
    """Estimate the error of each network on the leading axes, with the same test fields for all."""
    leading = np.broadcast_shapes(R.shape[:-2], Q.shape[:-2], v.shape[:-1])
    R, Q = (np.broadcast_to(G, leading + G.shape[-2:]) for G in (R, Q))
    v = np.broadcast_to(v, leading + v.shape[-1:])
    M, K = len(teacher.w), v.shape[-1]
    y = factor_semidefinite_matrix(teacher.T) @ generator.standard_normal((M, num_fields))
    normals = generator.standard_normal((K, num_fields))
    mean = R @ np.linalg.pinv(teacher.T, hermitian=True)
    rest = Q - mean @ R.swapaxes(-1, -2)
    networks = (_StudentNetwork(mean[index], rest[index], Q[index], v[index]) for index in np.ndindex(leading))
    return np.array([compute_error(network, y, normals) for network in networks]).reshape(leading)


def specialisation(T: np.ndarray, R: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the mean cosine between a network's students and their teacher units in the best assignment.

    Parameters
    ----------
    T : array (M, M)
        Products of teacher units.
    R : array (..., K, M)
        Products of student and teacher units.
    Q : array (..., K, K)
        Products of student units. A unit of length 0 has cosine 0 with all others.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> R = np.array([[0.1, 0.9], [0.8, 0.0]])
    >>> round(float(specialisation(np.eye(2), R, np.eye(2))), 12)                    # each with the other's number
    0.85
    """
    squares = np.maximum(np.diagonal(Q, axis1=-2, axis2=-1), 0.0)  # rounding may make a vanishing square negative
    lengths = np.sqrt(squares)[..., :, None] * np.sqrt(np.diagonal(T))
    cosines = np.divide(R, lengths, out=np.zeros(np.broadcast_shapes(R.shape, lengths.shape)), where=lengths > 0)
    if cosines.shape[-2] > cosines.shape[-1]:
        cosines = np.swapaxes(cosines, -1, -2)
    num_rows, num_columns = cosines.shape[-2:]
    return (
        _maximise_cosine_by_enumeration
        if perm(num_columns, num_rows) <= MAX_ENUMERATED_ASSIGNMENTS
        else _maximise_cosine_by_solver
    )(cosines)


def is_on_plateau(T: np.ndarray, R: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return True where students have not left the symmetric plateau.

    Their specialisation is then closer to the specialisation of students parallel to the mean teacher unit than to 1.

    Parameters
    ----------
    T, R, Q
        As in `specialisation`.

    Returns
    -------
    array (...) of bool
        False for a teacher of one unit, or of equal units.

    Examples
    --------
    >>> symmetric = np.full((2, 2), 0.5)
    >>> bool(is_on_plateau(np.eye(2), symmetric, symmetric)), bool(is_on_plateau(np.eye(2), np.eye(2), np.eye(2)))
    (True, False)
    """
    towards_mean = T.sum(-1) / np.sqrt(np.diagonal(T) * T.sum())
    return np.asarray(specialisation(T, R, Q) < (1 + towards_mean.mean()) / 2 - PLATEAU_COSINE_TOL)


def _maximise_cosine_by_enumeration(cosines: np.ndarray) -> np.ndarray:
    """Return the best mean cosine over all assignments, for cosines (..., n, m) with n <= m."""
    num_rows, num_columns = cosines.shape[-2:]
    assignments = np.array(list(itertools.permutations(range(num_columns), num_rows)))
    return np.asarray(cosines[..., np.arange(num_rows), assignments].mean(-1).max(-1))


def _maximise_cosine_by_solver(cosines: np.ndarray) -> np.ndarray:
    """Assign students to teacher units for each matrix of cosines in turn. A matrix with NaN yields NaN."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    flat = cosines.reshape(-1, *cosines.shape[-2:])
    means = np.full(len(flat), np.nan)
    for index in np.flatnonzero(np.isfinite(flat).all((-2, -1))):
        means[index] = flat[index][linear_sum_assignment(flat[index], maximize=True)].mean()
    return means.reshape(cosines.shape[:-2])
