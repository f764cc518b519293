r"""Fluctuations and bias of order 1/N of one student who learns online.

A chain :math:`X \to X + \xi/N` with :math:`\langle\xi\rangle = F + b/N` and :math:`\operatorname{cov}\xi = D` has, at
:math:`t = \mathrm{steps}/N`, the mean :math:`x + m/N` and the covariance C/N (van Kampen), where

.. math:: \dot x = F, \qquad \dot C = AC + CA^\mathsf{T} + D, \qquad
          \dot m = Am + \tfrac12 F'' : C + b - \tfrac12(AF + \partial_tF), \qquad A = F'.

The last term is the discreteness of time, as large as the others; :math:`\partial_tF` is that of a schedule.

**One step.** A student's :math:`(\log l, \theta)` is closed, whatever the ensemble. With :math:`\rho = f/l`, u and w
the inputs along :math:`\mathbf J` and across it in the plane of :math:`\mathbf B` and :math:`\mathbf J`, the decay
:math:`\omega` and :math:`a = \rho u - \omega`, expanding the exact step in 1/N gives

.. math::
    \xi_l &= a + \tfrac12\rho^2, \qquad \xi_\theta = -\rho w + \tfrac12\rho^2\cot\theta, \\
    b_l &= \langle\tfrac12[a^2 + \rho^2(w^2 - 2)] - \xi_l^2\rangle, \\
    b_\theta &= \Big\langle\rho w a + \frac{\rho^3w}{2\sin^2\theta} - \rho^2(1 + a)\cot\theta
        - \frac{\rho^4\cos\theta\,(1 + 2\sin^2\theta)}{8\sin^3\theta}\Big\rangle.

Then the teacher drifts: it adds :math:`2\delta` to :math:`D_{\theta\theta}`, :math:`\delta\cot\theta` to
:math:`F_\theta`, and to :math:`b_\theta`, with the :math:`F_\theta` of the example alone,

.. math:: -\frac{\cos\theta}{2\sin^3\theta}(\delta^2\cos^2\theta + 2\delta\sin^2\theta)
          - \frac{\delta F_\theta}{\sin^2\theta}.

**Averages.** Given the stability :math:`\kappa = \sigma u`, the field :math:`\sigma w` has with :math:`\gamma =
\cot\theta` and label noise :math:`\lambda` powers that average to

.. math:: M_0 = \lambda + (1-2\lambda)\Phi(\gamma\kappa), \quad M_1 = (1-2\lambda)\varphi(\gamma\kappa), \quad
          M_2 = M_0 - \gamma\kappa M_1

under the density :math:`2\varphi(\kappa)`; F, D and b are averages over the stability alone (`step`).

**Coordinates.** We integrate in :math:`(\log l, \log\theta)`, with :math:`\xi_\theta/\theta` and
:math:`b_\theta/\theta - \langle\xi_\theta^2\rangle/2\theta^2`, where C and m stay of order 1 however small
:math:`\theta`: the relative variance of eps_g is C/N, its relative bias (m + C/2)/N.

**Where it fails** (measured with 1e5 seeds from drawn weights, t = 1 to 50). At N = 100 the corrected eps_g of all
shipped rules deviates by at most 0.05 % (2.3 standard errors), and variances by 0 to 3 %. At N = 10 it deviates by up
to 0.4 % (Hebb), 0.7 % (textbook AdaTron), 1.0 % (perceptron; its variance is 1.23 times the predicted at t = 50) and
2.9 % (AdaTron; 1.43 times). The AdaTron's variance diverges as its learning rate tends to 3: late, that of the textbook
rule is :math:`\eta(20 - 15\eta + 3\eta^2)/5(3 - \eta)`. With label noise the AdaTron's length tends to
:math:`\eta/2`, where its fluctuations of this order vanish (`statmech.results.corrections.resolved`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc

from statmech.gaussian import NODES, Array, density, legendre
from statmech.rules import Rule

STEP, BESIDE = 5, 10  # nodes for linear rules: errors up to 4e-10 of the averages of absolute values
WIDTHS, TAIL = 8.5, 9.5  # of the label's sigmoid, and of the stability's density, as in `theory.averages`

Pair = tuple[Array, Array]


class Fluctuations(NamedTuple):
    """Of (log l, log theta), N times the covariance (..., 3, S), as (ll, lt, tt), and N times the bias (..., 2, S)."""

    covariance: Array
    bias: Array


class Noise(NamedTuple):
    """Averages of one step: xi, its products as (ll, lt, tt), and its second order: tuples, or arrays."""

    first: Array
    products: Array
    second: Array


class Angle(NamedTuple):
    """An angle and its trigonometric functions."""

    theta: Array
    sin: Array
    cos: Array

    @property
    def cot(self) -> Array:
        return self.cos / self.sin


def step(rho: Array, kappa: Array, moments: tuple[Array, Array, Array], angle: Angle, decay: Array) -> Noise:
    r"""One step's xi, products of xi and second order of :math:`(\log l, \theta)` given the stability, averaged over w.

    Parameters
    ----------
    rho
        The update over the length, times the label: :math:`\eta g(\kappa, l)/l`.
    kappa
        The stability.
    moments
        :math:`M_0, M_1, M_2` of :math:`\sigma w` at this stability.
    angle
        The student's angle to the teacher.
    decay
        The weights' decay.

    Returns
    -------
    Noise
        Of arrays like `kappa`, along a first axis; averages over the density :math:`2\varphi(\kappa)` are those of a
        step.
    """
    m0, m1, m2 = moments
    cot, sin2, square = angle.cot, angle.sin**2, rho**2
    a, turn = rho * kappa - decay, square * cot / 2  # xi_theta = turn - rho w
    along = a + square / 2
    across = m0 * turn - rho * m1
    products = m0 * along**2, along * across, m0 * turn**2 - 2 * turn * rho * m1 + square * m2
    second = (
        (m0 * (a**2 - 2 * square) + square * m2) / 2 - products[0],
        rho * m1 * (a + square / (2 * sin2))
        - m0 * square * (cot * (1 + a) + square * cot * (1 + 2 * sin2) / (8 * sin2)),
    )
    return Noise((m0 * along, across), products, second)


class Stability(NamedTuple):
    r"""Sizes x of the stability with the weights of both its signs, :math:`M_0` at x and at -x, and :math:`M_1`."""

    x: Array
    weight: Array
    right: Array
    left: Array
    m1: Array


def noise(rule: Rule, theta: Array, length: Array, flip: Array, changes: Any = None) -> Noise:
    """Averages over an example of one step of a student's (log l, log theta); scalars.

    `changes` has the teacher's `drift` and the weights' `decay`; with None both are 0.
    """
    linear = rule.linear is True
    places = of_linear(theta, flip) if linear else on_panels(edges(rule, theta, length), theta, flip)
    terms = jax.vmap(lambda place: examples(rule, place, theta, length, flip, changes))(places)
    means = averaged(theta, jax.tree.map(partial(jnp.sum, axis=0), terms), changes)
    return Noise(*(jnp.stack(part) for part in means))


def edges(rule: Rule, theta: Array, length: Array) -> list[Array]:
    """Increasing ends of the panels of `theory.averages`, folded at stability 0."""
    every = (*rule.kinks, *rule.bends(length))
    kinks = [jnp.abs(kink) for kink in every if not (isinstance(kink, (int, float)) and kink == 0)]
    found = [jnp.minimum(edge, TAIL) for edge in (WIDTHS * jnp.abs(jnp.tan(theta)), *kinks)]
    for last in range(len(found) - 1, 0, -1):  # sorted by exchanges: `jnp.sort` of a few is slow
        for at in range(last):
            low, high = found[at], found[at + 1]
            found[at], found[at + 1] = jnp.minimum(low, high), jnp.maximum(low, high)
    return [jnp.zeros_like(theta), *found, jnp.full_like(theta, TAIL)]


def on_panels(edges: list[Array], theta: Array, flip: Array, nodes: int = NODES) -> Stability:
    """Gauss-Legendre rules on the panels between edges, arrays (nodes, ...) from (...)."""
    unit, weight = (part.reshape(-1, *[1] * theta.ndim) for part in legendre(nodes))
    panels = list(pairwise(edges))
    x = jnp.concatenate([left + (right - left) * unit for left, right in panels])
    weights = jnp.concatenate([(right - left) * weight for left, right in panels])
    field = x * jnp.abs(jnp.cos(theta) / jnp.sin(theta))
    wrong, slope = erfc(field / np.sqrt(2)) / 2, density(field)  # ndtr takes six times as long
    likely, unlikely = flip + (1 - 2 * flip) * (1 - wrong), flip + (1 - 2 * flip) * wrong
    right, left = _by_side(theta, likely, unlikely)
    return Stability(x, 2 * weights * density(x), right, left, (1 - 2 * flip) * slope)


def of_linear(theta: Array, flip: Array) -> Stability:
    r"""Few nodes that suffice for a rule that is linear on both sides of 0, arrays (nodes, ...) from (...).

    With :math:`c = |\cos\theta|`, :math:`\Phi(\gamma\kappa)` is a step at 0, of which all averages are those of
    polynomials, and beside it at :math:`|\kappa| = s\sin\theta`, since :math:`\varphi(\kappa)\varphi(\gamma\kappa) =
    \varphi(s)/\sqrt{2\pi}`, the weight :math:`\varphi(s)` with Mills's ratio :math:`\Phi(-cs)/\varphi(cs)`, which is
    smooth: Gauss rules for :math:`\varphi` on the half line serve both.
    """
    (x, wide), (s, narrow) = (_as_columns(half_line(nodes), theta.ndim) for nodes in (STEP, BESIDE))
    true, sin, field = 1 - 2 * flip, jnp.sin(theta), s * jnp.abs(jnp.cos(theta))
    mills = np.sqrt(np.pi / 2) * jnp.exp(field**2 / 2) * erfc(field / np.sqrt(2))
    shape = (STEP, *theta.shape)
    right, left = _by_side(
        theta,
        jnp.concatenate([jnp.broadcast_to(flip + true, shape), -true * mills]),
        jnp.concatenate([jnp.broadcast_to(flip, shape), true * mills]),
    )
    weights = jnp.concatenate([jnp.broadcast_to(2 * wide, shape), np.sqrt(2 / np.pi) * narrow * sin])
    m1 = jnp.concatenate([jnp.zeros(shape), jnp.broadcast_to(true, mills.shape)])
    return Stability(jnp.concatenate([jnp.broadcast_to(x, shape), s * sin]), weights, right, left, m1)


def _by_side(theta: Array, likely: Array, unlikely: Array) -> tuple[Array, Array]:
    """Values at positive and at negative stabilities, of which the positive are the likely if theta is acute."""
    acute = theta < np.pi / 2
    return jnp.where(acute, likely, unlikely), jnp.where(acute, unlikely, likely)


def _as_columns(rule: tuple[np.ndarray, np.ndarray], ndim: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = (part.reshape(-1, *[1] * ndim) for part in rule)
    return nodes, weights


@cache
def half_line(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (nodes,) of the Gauss rule for the standard normal density on the half line (Stieltjes).

    >>> x, weight = half_line(5)
    >>> np.allclose([weight.sum(), weight @ x**8], [0.5, 105 / 2], rtol=1e-13)
    True
    """
    unit, fine = legendre(400)
    x, weight = 16 * unit, 16 * fine * density(16 * unit)
    diagonal, beside, last, now = np.zeros(nodes), np.ones(nodes), np.zeros_like(x), np.ones_like(x)
    now /= np.sqrt(weight @ now**2)
    for k in range(nodes):  # orthonormal polynomials
        diagonal[k] = weight @ (x * now**2)
        new = (x - diagonal[k]) * now - (beside[k - 1] if k else 0.0) * last
        beside[k] = np.sqrt(weight @ new**2)
        last, now = now, new / beside[k]
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    found, vectors = np.linalg.eigh(matrix)
    return found, vectors[0] ** 2 / 2


def examples(rule: Rule, place: Stability, theta: Array, length: Array, flip: Array, changes: Any = None) -> Noise:
    """The weighted terms of `step` at stabilities x and -x; scalars."""
    angle, decay = Angle(theta, jnp.sin(theta), jnp.cos(theta)), 0.0 if changes is None else changes.decay
    x, weight, right, left, m1 = place
    shift, scale = angle.cot * x * m1, rule.eta / length

    def at(kappa: Array, m0: Array, shift: Array) -> Noise:
        return step(scale * rule.g(kappa, length), kappa, (m0, m1, m0 - shift), angle, decay)

    both = at(x, right, shift), at(-x, left, -shift)
    return jax.tree.map(lambda one, other: weight * (one + other), *both)


def averaged(theta: Array, example: Noise, changes: Any = None) -> Noise:
    """The averages of a step of (log l, log theta), with drift, from those of an example; scalars."""
    angle = Angle(theta, jnp.sin(theta), jnp.cos(theta))
    return _of_logarithms(theta, example if changes is None else _drifted(example, angle, changes.drift))


def _drifted(example: Noise, angle: Angle, drift: Array) -> Noise:
    """The averages of a step after which the teacher drifts, from those of the example alone."""
    (along, across), (ll, lt, tt), (second_l, second_t) = example
    sin2, turn = angle.sin**2, drift * angle.cot
    bend = angle.cot / (2 * sin2) * (drift**2 * angle.cos**2 + 2 * drift * sin2) + drift * across / sin2
    products = ll, lt + turn * along, tt + 2 * turn * across + turn**2 + 2 * drift
    return Noise((along, across + turn), products, (second_l, second_t - bend))


def _of_logarithms(theta: Array, noise: Noise) -> Noise:
    """The averages of a step of (log l, log theta), from those of (log l, theta)."""
    (along, across), (ll, lt, tt), (second_l, second_t) = noise
    square = tt / theta**2
    return Noise((along, across / theta), (ll, lt / theta, square), (second_l, second_t / theta - square / 2))


def rates(
    field: Callable[[Array, Array, Array], Pair], state: Pair, t: Array, noise: Noise, fluctuations: Fluctuations
) -> Fluctuations:
    """Time derivative of one student's fluctuations, from field(log l, log theta, t) = F and a step's averages."""
    (Fl, Ft), (later_l, later_t) = _with_derivative(lambda t: field(*state, t), t)
    (Al, Bl), (All, Bll) = _with_derivative(lambda l: _derivative(lambda l: field(l, state[1], t), l), state[0])
    (At, Bt), (Att, Btt) = _with_derivative(lambda s: _derivative(lambda s: field(state[0], s, t), s), state[1])
    Alt, Blt = _derivative(lambda s: _derivative(lambda l: field(l, s, t), state[0]), state[1])
    (ll, lt, tt), (ml, mt) = fluctuations.covariance, fluctuations.bias
    derivatives = Fl, Ft, Al, Bl, At, Bt, All, Bll, Alt, Blt, Att, Btt
    Fl, Ft, Al, Bl, At, Bt, All, Bll, Alt, Blt, Att, Btt = jax.lax.optimization_barrier(derivatives)
    covariance = (
        2 * (Al * ll + At * lt) + noise.products[0] - Fl**2,
        Al * lt + At * tt + Bl * ll + Bt * lt + noise.products[1] - Fl * Ft,
        2 * (Bl * lt + Bt * tt) + noise.products[2] - Ft**2,
    )
    ml, mt = ml - Fl / 2, mt - Ft / 2  # A m - A F / 2
    bias = (
        Al * ml + At * mt + (All * ll + 2 * Alt * lt + Att * tt - later_l) / 2 + noise.second[0],
        Bl * ml + Bt * mt + (Bll * ll + 2 * Blt * lt + Btt * tt - later_t) / 2 + noise.second[1],
    )
    covariance, bias = jax.lax.optimization_barrier((covariance, bias))
    return Fluctuations(jnp.stack(covariance), jnp.stack(bias))


def _with_derivative(of: Callable[[Array], Pair], x: Array) -> tuple[Pair, Pair]:
    """A pair's values and derivatives at x."""
    values, derivatives = jax.jvp(of, (x,), (jnp.ones_like(x),))
    return values, derivatives


def _derivative(of: Callable[[Array], Pair], x: Array) -> Pair:
    return _with_derivative(of, x)[1]


def initial(theta: np.ndarray, drawn: bool) -> Fluctuations:
    r"""The fluctuations of students (S,) at t = 0: none of given ones; of weights drawn from N(0, 1), in
    :math:`(\log l, \theta)`, C = diag(1/2, 1) and m = (-1/2, 0)."""
    if not drawn:
        return Fluctuations(np.zeros((3, theta.size)), np.zeros((2, theta.size)))
    one, zero = np.ones_like(theta), np.zeros_like(theta)
    return Fluctuations(np.stack([one / 2, zero, 1 / theta**2]), np.stack([-one / 2, -1 / (2 * theta**2)]))


def corrections(theta: np.ndarray, length: np.ndarray, fluctuations: Fluctuations, N: int) -> dict[str, np.ndarray]:
    r"""Standard deviation of one run and bias at N of R, length and eps_g, each of the shape of theta.

    An observable h of :math:`(\log l, \log\theta)` has variance :math:`h'^\mathsf{T}Ch'/N` and bias
    :math:`(h'm + \tfrac12h'':C)/N`.
    """
    (ll, _, tt), (m_l, m_t) = (np.moveaxis(part, -2, 0) for part in fluctuations)
    sin, cos = np.sin(theta), np.cos(theta)
    derivatives = {
        "R": (-theta * sin, -theta * sin - theta**2 * cos, tt, m_t),
        "length": (length, length, ll, m_l),
        "eps_g": (theta / np.pi, theta / np.pi, tt, m_t),
    }
    found = {}
    for name, (first, second, variance, bias) in derivatives.items():
        found[f"{name}_std"] = np.abs(first) * np.sqrt(variance / N)
        found[f"{name}_bias"] = (first * bias + second * variance / 2) / N
    return found
