r"""Noise and second-order terms: averages over one example of the updates of two to four equal students.

Let :math:`\tau_k = f_k/(l_k\sin\theta_k)`, and let :math:`s_k` be the projection of the input on the part of student k
perpendicular to the teacher. The cosine :math:`c_{kj} = \langle s_ks_j\rangle` of two such parts changes by
:math:`\xi/N`,

.. math:: \xi_{12} = \tau_1s_2 + \tau_2s_1 + \tau_1\tau_2 - \tfrac c2(Y_1 + Y_2), \qquad Y_k = 2\tau_ks_k + \tau_k^2,

and to second order by :math:`b/N^2`. Here :math:`P` are the first three terms, and :math:`\chi` is N times the square
of the perpendicular input minus N, given all fields: :math:`s_0^2 + z_1^2 + z_2^2 - 4` in the notation below,

.. math:: b = \big\langle\tau_1\tau_2\chi - \tfrac c2(\tau_1^2 + \tau_2^2)\chi - \tfrac12P(Y_1 + Y_2)
              + \tfrac c8(3Y_1^2 + 3Y_2^2 + 2Y_1Y_2)\big\rangle.

**Students are independent** given the teacher's field v, which carries the label's sign, and a common normal
:math:`s_0`: :math:`s_k = \sqrt c\,s_0 + \sqrt{1-c}\,z_k`. The stability
:math:`\kappa_k = \cos\theta\,v + \sin\theta\,s_k` depends on v and :math:`s_0` by one normal y alone,

.. math:: \kappa_k = r\,y + \sin\theta\sqrt{1-c}\;z_k, \qquad
          (v,\, s_0) = (y\cos\alpha - x\sin\alpha,\; y\sin\alpha + x\cos\alpha), \qquad
          (r\cos\alpha,\, r\sin\alpha) = (\cos\theta,\, \sqrt c\,\sin\theta).

So every average is a single integral over y: the integrand contains products of the conditional averages
:math:`\langle\tau^iz^j\rangle_z` and polynomials in x, whose averages given y (and the label noise) have closed forms.

**Opposed students**, c < 0, have no such field, but all averages continue analytically: :math:`s_k = i\sqrt{-c}\,s_0 +
\sqrt{1-c}\,z_k` with real normals. Given v and :math:`s_0` the contour of z is moved until the stability is real, so
that the averages become Fourier integrals of :math:`\tau^i`. For n students they exist if c > -1/(n - 1), as do the
students. The integrand is an entire function of :math:`s_0` that grows no faster than :math:`e^{\eta^2/2}` with its
imaginary part :math:`\eta`, so that equally spaced nodes at distance h err by :math:`e^{-2\pi^2/h^2}`.

**All averages have the same form.** With :math:`\phi = (1, s, \tau, \tau s, \tau^2)` for one student,
:math:`\xi_{12} = \phi_1^\mathsf{T}B\phi_2`, and a student's :math:`\xi_{\log l}` and :math:`\xi_\theta` are
:math:`\ell^\mathsf{T}\phi`. With the mean :math:`\mu` and the averages G over products of :math:`\phi` given y and x,

.. math:: \langle\xi_{12}^2\rangle = \operatorname{tr} GBGB, \quad
          \langle\xi_{12}\xi_{13}\rangle = (B\mu)^\mathsf{T}G\,B\mu, \quad
          \langle\xi_{12}\xi_{34}\rangle = (\mu^\mathsf{T}B\mu)^2, \quad
          \langle\xi_1\xi_{12}\rangle = \ell^\mathsf{T}GB\mu, \quad \dots
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    Array,
    make_composite_rule,
    normal_cdf,
    normal_density,
    replace_zero,
)
from statmech.students.rules import Rule
from theory.online.student_fluctuations import LABEL_SIGMOID_CUTOFF

UPDATE_PRODUCT_NODES = 24  # per panel
CONDITIONAL_TAU_Z_POWERS = tuple(
    (i, j) for i in range(1, 5) for j in range(min(2, 4 - i) + 1)
)  # exponents of tau and z
PHI_TAU_S_POWERS = ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0))  # exponents of tau and s
IMAGINARY_FIELD_SPACING = 0.75  # gives errors of 6e-16 for opposed students
MIN_FIELD_DECAY_RATE = 0.07  # averages overflow at the distant nodes required by slower decays


class CommonFields(NamedTuple):
    """Fields shared by all students at the quadrature nodes (Y, X).

    `weight` is the weight of each node, `v` the teacher's field, `common_normal` the common normal variable and
    `common_s_part` the common part of s. `conditional_averages` contains the averages of tau^i z^j over one student.
    """

    weight: np.ndarray
    v: np.ndarray
    common_normal: np.ndarray
    common_s_part: np.ndarray
    conditional_averages: dict[tuple[int, int], Array]


class UpdateProducts(NamedTuple):
    r"""Averages over one example of products of two updates :math:`\xi` of a = (log l, log theta) or c.

    `mean` (3,) is the average of (a, c12). The products are a1 a1 and a1 a2 (2, 2), a1 c12 and a3 c12 (2,), and the
    scalars c12 c12, c12 c13 and c12 c34. `second_order` is the second-order term of c.
    """

    mean: Array
    a1_a1: Array
    a1_a2: Array
    a1_c12: Array
    a3_c12: Array
    c12_c12: Array
    c12_c13: Array
    c12_c34: Array
    second_order: Array


def compute_update_products(
    rule: Rule,
    theta: float,
    length: float,
    c: float,
    flip: float,
    max_students: int = 4,
    nodes: int = UPDATE_PRODUCT_NODES,
) -> UpdateProducts:
    """Average products of the updates of equal students over one example, by quadrature.

    Parameters
    ----------
    rule
        The learning rule with the current learning rate.
    theta, length
        The students' angle to the teacher, and their length.
    c
        The students' transverse cosine, less than 1.
    flip
        The label noise.
    max_students
        The maximum number of students in an average, 2 to 4. Averages over more students are set to 0.
    nodes
        Nodes per panel.

    Returns
    -------
    UpdateProducts
        The averages as arrays.
    """
    common = (
        _make_common_fields(rule, theta, length, c, flip, nodes)
        if c >= 0
        else _make_mutually_opposed_student_fields(rule, theta, length, c, flip, max_students, nodes)
    )
    averages = _combine_averages(common, theta, c)
    if max_students < 3:
        averages = averages._replace(a3_c12=np.zeros(2), c12_c13=np.zeros(()))
    return averages if max_students > 3 else averages._replace(c12_c34=np.zeros(()))


def _make_common_fields(rule: Rule, theta: float, length: float, c: float, flip: float, nodes: int) -> CommonFields:
    """Make quadrature nodes (y, x) for students with a common field (c >= 0)."""
    sin, cos, root = np.sin(theta), np.cos(theta), np.sqrt(c)
    width = sin * np.sqrt(1 - c)
    r = np.hypot(cos, root * sin)
    turn = np.arctan2(root * sin, cos)
    steep = np.cos(turn) / replace_zero(np.sin(turn))  # the teacher's field is positive for x < steep * y
    sigmoid_width = LABEL_SIGMOID_CUTOFF / replace_zero(steep)
    y, weight = _make_panel_nodes(
        [-sigmoid_width, 0.0, sigmoid_width, *_find_field_panel_edges(rule, length, r, width)], nodes
    )
    x = np.asarray([-1.0, 0.0, 1.0])
    v = np.cos(turn) * y[:, None] - np.sin(turn) * x
    s0 = np.sin(turn) * y[:, None] + np.cos(turn) * x
    node_weight = (
        2
        * (weight * normal_density(y))[:, None]
        * _compute_parabola_weights(np.clip(steep * y, -2 * GAUSSIAN_CUTOFF, 2 * GAUSSIAN_CUTOFF), flip)
    )
    z, z_weight, tau = _make_update_nodes(rule, theta, length, r * y, width, nodes)
    powers = {
        (i, j): np.sum(z_weight * normal_density(z) * tau**i * z**j, axis=-1, keepdims=True)
        for i, j in CONDITIONAL_TAU_Z_POWERS
    }
    return CommonFields(node_weight, v, s0, root * s0, powers)


def _make_mutually_opposed_student_fields(
    rule: Rule, theta: float, length: float, c: float, flip: float, max_students: int, nodes: int
) -> CommonFields:
    """Make quadrature nodes (v, s0) for opposed students (c < 0).

    Only positive s0 are needed, since a negative s0 gives the complex conjugate.
    """
    sin, cos, shift = np.sin(theta), np.cos(theta), np.sqrt(-c / (1 - c))
    width = sin * np.sqrt(1 - c)
    v, weight = _make_panel_nodes([0.0, *_find_field_panel_edges(rule, length, cos, width)], nodes)
    farthest = GAUSSIAN_CUTOFF / np.sqrt(max((1 + (max_students - 1) * c) / (1 - c), MIN_FIELD_DECAY_RATE))
    s0 = IMAGINARY_FIELD_SPACING * (np.arange(np.ceil(farthest / IMAGINARY_FIELD_SPACING)) + 0.5)
    label = flip + (1 - 2 * flip) * (v > 0)
    node_weight = 4 * IMAGINARY_FIELD_SPACING * (weight * normal_density(v) * label)[:, None] * normal_density(s0)
    waves = int(np.ceil(GAUSSIAN_CUTOFF * shift * s0[-1] / 4))  # extra nodes resolve the oscillations on a panel
    z, z_weight, tau = _make_update_nodes(rule, theta, length, cos * v, width, nodes + waves)
    powers = _average_on_shifted_contours(z, z_weight, tau, shift * s0)
    return CommonFields(node_weight, v[:, None], s0, 1j * np.sqrt(-c) * s0 + 0.0 * v[:, None], powers)


def _average_on_shifted_contours(
    z: np.ndarray, weight: np.ndarray, tau: np.ndarray, b: np.ndarray
) -> dict[tuple[int, int], np.ndarray]:
    """Average tau^i (z - ib)^j on contours shifted by -ib, for shifts b (X,) and nodes (Y, Z).

    Each power (i, j) gives an array (Y, X).
    """
    real = np.stack([weight * normal_density(z) * tau**i * z**j for i, j in CONDITIONAL_TAU_Z_POWERS], axis=1)
    waves = np.exp(1j * z[..., None] * b)
    centred = dict(zip(CONDITIONAL_TAU_Z_POWERS, np.moveaxis(real @ waves * np.exp(b**2 / 2), 1, 0), strict=True))
    shifted = dict(centred)
    for i, j in CONDITIONAL_TAU_Z_POWERS:
        if j == 1:
            shifted[i, 1] = centred[i, 1] - 1j * b * centred[i, 0]
        if j == 2:
            shifted[i, 2] = centred[i, 2] - 2j * b * centred[i, 1] - b**2 * centred[i, 0]
    return shifted


def _find_field_panel_edges(rule: Rule, length: float, slope: float, width: float) -> list[float]:
    """Find panel edges in y: the kinks, and points several widths on both sides of each kink.

    The width is the standard deviation of the stability given y.
    """
    sides = (-LABEL_SIGMOID_CUTOFF, 0.0, LABEL_SIGMOID_CUTOFF)
    return [(edge + side * width) / replace_zero(slope) for edge in rule.edges(length) for side in sides]


def _make_update_nodes(
    rule: Rule, theta: float, length: float, stability: np.ndarray, width: float, nodes: int
) -> tuple[np.ndarray, ...]:
    """Make nodes in z (Y, Z) on panels between the kinks, with their weights and updates tau."""
    cuts = [(edge - stability) / replace_zero(width) for edge in rule.edges(length)]
    z, weight = _make_panel_nodes([0.0, *cuts], nodes, stability)
    tau = rule.eta * rule.g(stability[:, None] + width * z, length) / (length * np.sin(theta))
    return z, weight, np.asarray(tau)


def _compute_parabola_weights(bound: np.ndarray, flip: float) -> np.ndarray:
    """Compute quadrature weights (Y, 3) for the nodes x = -1, 0, 1.

    Averages of parabolas over a normal variable x below `bound` (Y,) are exact.
    """
    m0, m1 = flip + (1 - 2 * flip) * normal_cdf(bound), -(1 - 2 * flip) * normal_density(bound)
    m2 = m0 + bound * m1
    return np.stack([(m2 - m1) / 2, m0 - m2, (m2 + m1) / 2], axis=-1)


def _combine_averages(common: CommonFields, theta: float, c: float) -> UpdateProducts:
    """Combine the conditional averages of one student into the averages of products."""
    G, student, pair = (
        _compute_second_moments(common, c),
        _make_student_update_vectors(common, theta),
        _make_cosine_update_matrix(c),
    )
    mu = G[..., 0]
    B_mu, GB = mu @ pair, G @ pair
    a, c12 = dot_last_axis(student, mu[..., None, :]), dot_last_axis(mu, B_mu)

    def mean(x: np.ndarray) -> np.ndarray:
        return np.real(np.tensordot(common.weight, x, 2))

    return UpdateProducts(
        mean=np.append(mean(a), mean(c12)),
        a1_a1=mean(student @ G @ np.swapaxes(student, -1, -2)),
        a1_a2=mean(a[..., :, None] * a[..., None, :]),
        a1_c12=mean(dot_last_axis(student, (G @ B_mu[..., None])[..., None, :, 0])),
        a3_c12=mean(a * c12[..., None]),
        c12_c12=mean(np.sum(GB * np.swapaxes(GB, -1, -2), axis=(-1, -2))),
        c12_c13=mean(dot_last_axis(B_mu, (G @ B_mu[..., None])[..., 0])),
        c12_c34=mean(c12**2),
        second_order=mean(_compute_cosine_second_order(common, G, c)),
    )


def _compute_second_moments(common: CommonFields, c: float) -> np.ndarray:
    """Compute the conditional averages G (Y, X, 5, 5) of products of phi."""
    powers = {(0, 0): 1.0, (0, 1): 0.0, (0, 2): 1.0} | common.conditional_averages
    mean, deviation = common.common_s_part, np.sqrt(1 - c)

    def average(i: int, j: int) -> np.ndarray:
        """Compute the conditional average of tau^i s^j."""
        terms = [1.0], [mean, deviation], [mean**2, 2 * mean * deviation, deviation**2]
        return sum(factor * powers[i, k] for k, factor in enumerate(terms[j])) + 0.0 * mean

    return np.stack(
        [np.stack([average(i + k, j + n) for k, n in PHI_TAU_S_POWERS], -1) for i, j in PHI_TAU_S_POWERS], -2
    )


def _make_student_update_vectors(common: CommonFields, theta: float) -> np.ndarray:
    """Make the vectors ell (Y, X, 2, 5) that give the updates of log l and log theta from phi."""
    sin, cos = np.sin(theta), np.cos(theta)
    ell = np.zeros((*common.common_s_part.shape, 2, len(PHI_TAU_S_POWERS)))
    ell[..., 0, 2], ell[..., 0, 3], ell[..., 0, 4] = sin * cos * common.v, sin**2, sin**2 / 2
    ell[..., 1, 2], ell[..., 1, 3], ell[..., 1, 4] = -(sin**2) * common.v, sin * cos, sin * cos / 2
    ell[..., 1, :] /= theta
    return ell


def _make_cosine_update_matrix(c: float) -> np.ndarray:
    """Make the matrix B that gives the update of c12 from phi of both students."""
    B = np.zeros((len(PHI_TAU_S_POWERS), len(PHI_TAU_S_POWERS)))
    B[2, 1], B[2, 2], B[0, 3], B[0, 4] = 1.0, 0.5, -c, -c / 2
    return B + B.T


def _compute_cosine_second_order(common: CommonFields, G: np.ndarray, c: float) -> np.ndarray:
    """Compute the second-order term b of c12 at the nodes (Y, X)."""
    z, mu = common.conditional_averages, G[..., 0]
    excess = common.common_normal**2 - 3  # chi without its terms in z, which are added below
    y = np.array([0.0, 0.0, 0.0, 2.0, 1.0])
    Gy, Y = G @ y, mu @ y
    crossed = Gy[..., 2] * mu[..., 1] + Gy[..., 1] * mu[..., 2] + Gy[..., 2] * mu[..., 2]
    square = z[1, 0] ** 2 * (excess - 1) + 2 * z[1, 0] * z[1, 2] - c * (z[2, 0] * excess + z[2, 2])
    return square - crossed + c * (3 * (Gy @ y) + Y**2) / 4


def _make_panel_nodes(edges: list[Array], nodes: int, template: Array = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Make quadrature nodes and weights on the panels between edges, along a new last axis.

    Edges are broadcast to the shape of `template`.
    """
    shape = np.shape(template)
    cut = np.stack([np.broadcast_to(edge, shape) for edge in (-GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF, *edges)])
    cut = np.sort(np.clip(cut, -GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF), axis=0)
    wide = np.append(True, np.any(np.diff(cut, axis=0) > 0, axis=tuple(range(1, cut.ndim))))  # omits empty panels
    return make_composite_rule(cut[wide], nodes)


def dot_last_axis(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute scalar products along the last axis."""
    return np.sum(x * y, axis=-1)
