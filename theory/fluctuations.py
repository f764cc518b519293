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
\cot\theta` and label noise :math:`\lambda` the moments

.. math:: M_0 = \lambda + (1-2\lambda)\Phi(\gamma\kappa), \quad M_1 = (1-2\lambda)\varphi(\gamma\kappa), \quad
          M_2 = M_0 - \gamma\kappa M_1

under the density :math:`2\varphi(\kappa)`; F, D and b are averages over the stability alone (`step`).

**Coordinates.** We integrate in :math:`(\log l, \log\theta)`, with :math:`\xi_\theta/\theta` and
:math:`b_\theta/\theta - \langle\xi_\theta^2\rangle/2\theta^2`, where C and m stay of order 1 however small
:math:`\theta`: the relative variance of eps_g is C/N, its relative bias (m + C/2)/N.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc

from statmech.gaussian import Array, density, legendre
from statmech.rules import Rule

NODES = 20  # per panel: 1e-9 for rules with closed forms; those without need as many as `theory.averages`
WIDTHS, TAIL = 7.0, 8.0  # of the label's sigmoid, and of the stability's density

Pair = tuple[Array, Array]


class Fluctuations(NamedTuple):
    """Of (log l, log theta), N times the covariance (..., 3, S), as (ll, lt, tt), and N times the bias (..., 2, S)."""

    covariance: Array
    bias: Array


class Noise(NamedTuple):
    """Averages of one step: xi, its products as (ll, lt, tt), and its second order."""

    first: tuple[Array, Array]
    products: tuple[Array, Array, Array]
    second: tuple[Array, Array]


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


def noise(rule: Rule, theta: Array, length: Array, flip: Array, changes: Any = None, nodes: int = NODES) -> Noise:
    """Averages over an example of one step of a student's (log l, log theta); scalars.

    `changes` has the teacher's `drift` and the weights' `decay`; with None both are 0.
    """
    x, weight = stabilities(edges(rule, theta, length), nodes)
    terms = jax.vmap(lambda x, weight: examples(rule, x, weight, theta, length, flip, changes))(x, weight)
    return averaged(theta, jax.tree.map(partial(jnp.sum, axis=0), terms), changes)


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


def stabilities(edges: list[Array], nodes: int = NODES) -> tuple[Array, Array]:
    """Sizes of the stability and weights of both its signs, (nodes, ...), on the panels between edges (...)."""
    unit, weight = (part.reshape(-1, *[1] * edges[0].ndim) for part in legendre(nodes))
    panels = list(pairwise(edges))
    x = jnp.concatenate([left + (right - left) * unit for left, right in panels])
    weights = jnp.concatenate([(right - left) * weight for left, right in panels])
    return x, 2 * weights * density(x)


def examples(
    rule: Rule, x: Array, weight: Array, theta: Array, length: Array, flip: Array, changes: Any = None
) -> Noise:
    """The weighted terms of `step` at stabilities x and -x, which share all functions of their size; scalars."""
    angle, decay = Angle(theta, jnp.sin(theta), jnp.cos(theta)), 0.0 if changes is None else changes.decay
    field = jnp.abs(angle.cot) * x
    wrong, m1 = erfc(field / np.sqrt(2)) / 2, (1 - 2 * flip) * density(field)  # ndtr takes six times as long
    likely, unlikely = flip + (1 - 2 * flip) * (1 - wrong), flip + (1 - 2 * flip) * wrong
    acute, shift = angle.cos > 0, angle.cot * x * m1

    likely, unlikely, shift, m1 = jax.lax.optimization_barrier((likely, unlikely, shift, m1))

    def at(kappa: Array, m0: Array, shift: Array) -> Noise:
        rho = rule.eta * rule.g(kappa, length) / length
        return step(rho, kappa, (m0, m1, m0 - shift), angle, decay)

    right = at(x, jnp.where(acute, likely, unlikely), shift)
    left = at(-x, jnp.where(acute, unlikely, likely), -shift)
    return jax.tree.map(lambda one, other: weight * (one + other), right, left)


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
