r"""Averages over one example of the updates of two, three and four equal students: their noise, and second order.

With :math:`\tau_k = f_k/(l_k\sin\theta_k)` and :math:`s_k` the input along a student's part across the teacher, the
cosine :math:`c_{kj} = \langle s_ks_j\rangle` of two such parts changes by :math:`\xi/N`,

.. math:: \xi_{12} = \tau_1s_2 + \tau_2s_1 + \tau_1\tau_2 - \tfrac c2(Y_1 + Y_2), \qquad Y_k = 2\tau_ks_k + \tau_k^2,

and to second order by :math:`b/N^2`, with :math:`P` the first three terms and :math:`\chi` = N times the square of the
input across the teacher less N, given all fields: :math:`s_0^2 + z_1^2 + z_2^2 - 4` in the notation below,

.. math:: b = \big\langle\tau_1\tau_2\chi - \tfrac c2(\tau_1^2 + \tau_2^2)\chi - \tfrac12P(Y_1 + Y_2)
              + \tfrac c8(3Y_1^2 + 3Y_2^2 + 2Y_1Y_2)\big\rangle.

**Students are independent** given the teacher's field v, which carries the label's sign, and a common normal
:math:`s_0`: :math:`s_k = \sqrt c\,s_0 + \sqrt{1-c}\,z_k`. The stability
:math:`\kappa_k = \cos\theta\,v + \sin\theta\,s_k` depends on v and :math:`s_0` by one normal y alone,

.. math:: \kappa_k = r\,y + \sin\theta\sqrt{1-c}\;z_k, \qquad
          (v,\, s_0) = (y\cos\alpha - x\sin\alpha,\; y\sin\alpha + x\cos\alpha), \qquad
          (r\cos\alpha,\, r\sin\alpha) = (\cos\theta,\, \sqrt c\,\sin\theta).

So every average is one integral over y of products of the conditional averages
:math:`\langle\tau^iz^j\rangle_z`, of polynomials in x whose averages given y (and the label noise) are closed.

**Opposed students**, c < 0, have no such field, but all averages continue analytically: :math:`s_k = i\sqrt{-c}\,s_0 +
\sqrt{1-c}\,z_k` with real normals. Given v and :math:`s_0` the contour of z is moved until the stability is real, where
these averages are Fourier integrals of :math:`\tau^i`. Those of n students exist for c > -1/(n - 1), like the students.

**All averages are of one kind.** With :math:`\phi = (1, s, \tau, \tau s, \tau^2)` of one student,
:math:`\xi_{12} = \phi_1^\mathsf{T}B\phi_2`, and a student's :math:`\xi_{\log l}` and :math:`\xi_\theta` are
:math:`\ell^\mathsf{T}\phi`. With the mean :math:`\mu` and the averages G of products of :math:`\phi` given y and x,

.. math:: \langle\xi_{12}^2\rangle = \operatorname{tr} GBGB, \quad
          \langle\xi_{12}\xi_{13}\rangle = (B\mu)^\mathsf{T}G\,B\mu, \quad
          \langle\xi_{12}\xi_{34}\rangle = (\mu^\mathsf{T}B\mu)^2, \quad
          \langle\xi_1\xi_{12}\rangle = \ell^\mathsf{T}GB\mu, \quad \dots
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from statmech.gaussian import TAIL, Array, density, legendre_per_panel
from statmech.rules import Rule
from theory.averages import TINY, WIDTHS

NODES = 24  # per panel
POWERS = tuple((i, j) for i in range(1, 5) for j in range(min(2, 4 - i) + 1))  # of tau and z
SLOWEST = 0.07  # rate of decay beyond which the nodes of opposed students' field reach: farther out it overflows


class Common(NamedTuple):
    """What students have in common at nodes (Y, X): weights, the teacher's field, s0, the common part of s, and one
    student's averages of tau^i z^j."""

    weight: Array
    v: Array
    s0: Array
    part: Array
    powers: dict[tuple[int, int], Array]


class Products(NamedTuple):
    r"""Averages over one example of products of equal students' :math:`\xi`, of a = (log l, log theta) and c.

    The mean (3,) of (a, c12), and the products of a1 and a2 (2, 2), of a1 or a3 and c12 (2,), of c12 and c12, c13 or
    c34; the second order of c.
    """

    mean: Array
    students: Array
    own: Array
    other: Array
    same: Array
    sharing: Array
    disjoint: Array
    second: Array


def products(rule: Rule, theta: Array, length: Array, c: Array, flip: Array, nodes: int = NODES) -> Products:
    """The averages of equal students of transverse cosine c >= 0, by quadrature cut at the kinks; scalars."""
    return _averages(_in_common_field(rule, theta, length, c, flip, nodes), theta, c)


def opposed_products(
    rule: Rule, theta: Array, length: Array, c: Array, flip: Array, most: Array, nodes: int = NODES
) -> Products:
    """The same of students of transverse cosine c < 0; averages of more than `most` of them are meaningless."""
    return _averages(_in_imaginary_field(rule, theta, length, c, flip, most, nodes), theta, c)


def _in_common_field(rule: Rule, theta: Array, length: Array, c: Array, flip: Array, nodes: int) -> Common:
    """Nodes of y, and three of x."""
    sin, cos, root = jnp.sin(theta), jnp.cos(theta), jnp.sqrt(c)
    width = sin * jnp.sqrt(1 - c)
    r = jnp.hypot(cos, root * sin)
    turn = jnp.arctan2(root * sin, cos)
    steep = jnp.cos(turn) / _nonzero(jnp.sin(turn))  # the teacher's field is positive where x < steep y
    reach = [WIDTHS / jnp.abs(_nonzero(steep)) * side for side in (-1, 1)]
    y, weight = _panels([0.0, *reach, *_ridges(rule, r, width)], nodes)
    x = jnp.asarray([-1.0, 0.0, 1.0])
    v = jnp.cos(turn) * y[:, None] - jnp.sin(turn) * x
    s0 = jnp.sin(turn) * y[:, None] + jnp.cos(turn) * x
    given = 2 * (weight * density(y))[:, None] * _weights(steep * y, flip)
    z, z_weight, tau = _updates(rule, theta, length, r * y, width, nodes)
    powers = {(i, j): jnp.sum(z_weight * density(z) * tau**i * z**j, axis=-1, keepdims=True) for i, j in POWERS}
    return Common(given, v, s0, root * s0, {(0, 0): 1.0, (0, 1): 0.0, (0, 2): 1.0} | powers)


def _in_imaginary_field(
    rule: Rule, theta: Array, length: Array, c: Array, flip: Array, most: Array, nodes: int
) -> Common:
    """Nodes of v, and of a positive s0, whose negative gives the complex conjugate."""
    sin, cos, shift = jnp.sin(theta), jnp.cos(theta), jnp.sqrt(-c / (1 - c))
    width = sin * jnp.sqrt(1 - c)
    v, weight = _panels([0.0, *_ridges(rule, jnp.abs(cos), width), *_ridges(rule, -jnp.abs(cos), width)], nodes)
    decay = jnp.sqrt(jnp.maximum((1 + (most - 1) * c) / (1 - c), SLOWEST))
    s0, s0_weight = legendre_per_panel(jnp.linspace(0.0, 1.0, 5) * TAIL / decay, nodes)
    s0, s0_weight = s0.reshape(-1), s0_weight.reshape(-1)
    label = flip + (1 - 2 * flip) * (v > 0)
    given = 4 * (weight * density(v) * label)[:, None] * s0_weight * density(s0)
    z, z_weight, tau = _updates(rule, theta, length, cos * v, width, 2 * nodes)
    b = shift * s0

    def average(i: int, j: int) -> Array:
        """The contour of z is moved so that the stability is real."""
        kernel = jnp.exp(1j * z[..., None] * b + (b**2 - z[..., None] ** 2) / 2) * (z[..., None] - 1j * b) ** j
        return jnp.einsum("yz,yzx->yx", z_weight * tau**i, kernel) / np.sqrt(2 * np.pi)

    powers = {(i, j): average(i, j) for i, j in POWERS}
    part = 1j * jnp.sqrt(-c) * s0 + 0.0 * v[:, None]
    return Common(given, v[:, None], s0, part, {(0, 0): 1.0, (0, 1): 0.0, (0, 2): 1.0} | powers)


def _ridges(rule: Rule, slope: Array, width: Array) -> list[Array]:
    """Where the conditional averages change: around each kink, within some widths of the stability given y."""
    sides = (-WIDTHS, 0.0, WIDTHS)
    return [(kink + side * width) / _nonzero(slope) for kink in rule.kinks for side in sides]


def _updates(
    rule: Rule, theta: Array, length: Array, stability: Array, width: Array, nodes: int
) -> tuple[Array, Array, Array]:
    """Nodes of z (Y, Z) that are cut at the kinks, their weights, and tau there."""
    cuts = [(kink - stability) / _nonzero(width) for kink in rule.kinks]
    z, weight = _panels([0.0, *cuts], nodes, stability)
    tau = rule.eta * rule.g(stability[:, None] + width * z, length) / (length * jnp.sin(theta))
    return z, weight, tau


def _weights(bound: Array, flip: Array) -> Array:
    """Weights (Y, 3) of x = -1, 0, 1 with which parabolas have their averages over a normal x below a bound (Y,)."""
    m0, m1 = flip + (1 - 2 * flip) * ndtr(bound), -(1 - 2 * flip) * density(bound)
    m2 = m0 + jnp.clip(bound, -2 * TAIL, 2 * TAIL) * m1  # infinite without common field, where its weight is 0
    return jnp.stack([(m2 - m1) / 2, m0 - m2, (m2 + m1) / 2], axis=-1)


def _averages(common: Common, theta: Array, c: Array) -> Products:
    """The averages of `Products` from the conditional averages of one student."""
    at, own, z = common.part, jnp.sqrt(1 - c), common.powers

    def m(i: int, j: int) -> Array:
        """<tau^i s^j> given y and x."""
        if j == 0:
            return z[i, 0] + 0.0 * at
        if j == 1:
            return at * z[i, 0] + own * z[i, 1]
        return at**2 * z[i, 0] + 2 * at * own * z[i, 1] + own**2 * z[i, 2]

    powers = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]  # of tau and s in phi
    G = jnp.stack([jnp.stack([m(i + k, j + n) for k, n in powers], -1) for i, j in powers], -2)
    mu, zero = G[..., 0], jnp.zeros_like(at)
    sin, cos = jnp.sin(theta), jnp.cos(theta)
    ell = jnp.stack(
        [
            jnp.stack([zero, zero, sin * cos * common.v + zero, zero + sin**2, zero + sin**2 / 2], -1),
            jnp.stack([zero, zero, -(sin**2) * common.v + zero, zero + sin * cos, zero + sin * cos / 2], -1) / theta,
        ],
        -2,
    )
    B = jnp.zeros((5, 5)).at[2, 1].set(1.0).at[2, 2].set(0.5).at[0, 3].set(-c).at[0, 4].set(-c / 2)
    B = B + B.T
    y = jnp.asarray([0.0, 0.0, 0.0, 2.0, 1.0])
    P = jnp.zeros((5, 5)).at[2, 1].set(1.0).at[1, 2].set(1.0).at[2, 2].set(1.0)
    Bmu, a = mu @ B, jnp.einsum("...ai,...i->...a", ell, mu)
    GB = G @ B
    c12 = jnp.sum(mu * Bmu, axis=-1)
    Gy = G @ y
    Y = mu @ y
    excess = common.s0**2 - 3  # of the square of the input, without z^2 - 1 of one student
    second = (
        z[1, 0] ** 2 * (excess - 1)
        + 2 * z[1, 0] * z[1, 2]
        - c * (z[2, 0] * excess + z[2, 2])
        - jnp.sum(Gy * (mu @ P), axis=-1)
        + c * (3 * (Gy @ y) + Y**2) / 4
    )

    def mean(x: Array) -> Array:
        return jnp.real(jnp.tensordot(common.weight, x, 2))

    return Products(
        mean=jnp.append(mean(a), mean(c12)),
        students=mean(a[..., :, None] * a[..., None, :]),
        own=mean(jnp.einsum("...ai,...i->...a", ell, jnp.einsum("...ij,...j->...i", G, Bmu))),
        other=mean(a * c12[..., None]),
        same=mean(jnp.einsum("...ij,...ji->...", GB, GB)),
        sharing=mean(jnp.einsum("...i,...ij,...j->...", Bmu, G, Bmu)),
        disjoint=mean(c12**2),
        second=mean(second),
    )


def _panels(edges: list[Array], nodes: int, like: Array = 0.0) -> tuple[Array, Array]:
    """Nodes and weights of panels between edges of the shape of `like`, along a new last axis."""
    shape = jnp.shape(like)
    cut = jnp.stack([jnp.broadcast_to(edge, shape) for edge in (-TAIL, TAIL, *edges)])
    along = legendre_per_panel(jnp.sort(jnp.clip(cut, -TAIL, TAIL), axis=0), nodes)
    x, weight = (jnp.moveaxis(part, 0, -2).reshape(*shape, -1) for part in along)
    return x, weight


def _nonzero(x: Array) -> Array:
    return jnp.where(jnp.abs(x) < TINY, TINY, x)
