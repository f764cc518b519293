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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from statmech.gaussian import Array, composite_legendre, density
from statmech.rules import Rule

NODES = 16  # per panel
WIDTHS, TAIL = 8.5, 9.5  # of the label's sigmoid, and of the stability's density


class Fluctuations(NamedTuple):
    """Of (log l, log theta), N times the covariance (..., 3, S), as (ll, lt, tt), and N times the bias (..., 2, S)."""

    covariance: Array
    bias: Array


class Noise(NamedTuple):
    """Averages of one step: xi (2,), its products (3,) as (ll, lt, tt), and its second order (2,)."""

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
    return Noise(jnp.stack([m0 * along, across]), jnp.stack(products), jnp.stack(second))


def noise(rule: Rule, theta: Array, length: Array, flip: Array, changes: Any = None, nodes: int = NODES) -> Noise:
    """Averages over an example of one step of a student's (log l, log theta); scalars.

    `changes` has the teacher's `drift` and the weights' `decay`; with None both are 0.
    """
    angle, decay = Angle(theta, jnp.sin(theta), jnp.cos(theta)), 0.0 if changes is None else changes.decay
    kappa, weight, moments = _stabilities(rule, angle, flip, nodes)
    rho = rule.eta * rule.g(kappa, length) / length
    example = Noise(*(part @ weight for part in step(rho, kappa, moments, angle, decay)))
    return _of_logarithms(theta, example if changes is None else _drifted(example, angle, changes.drift))


def _stabilities(rule: Rule, angle: Angle, flip: Array, nodes: int) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """Stabilities, their weights, and the moments of the field across; positive and negative ones share all functions
    of their size."""
    kinks = [jnp.abs(jnp.asarray(kink, float)) for kink in rule.kinks if not _is_zero(kink)]
    edges = jnp.stack([jnp.zeros(()), jnp.abs(WIDTHS / angle.cot), jnp.asarray(TAIL), *kinks])
    x, weight = composite_legendre(jnp.sort(jnp.clip(edges, 0.0, TAIL)), nodes)
    field = jnp.abs(angle.cot) * x
    wrong, slope = ndtr(-field), density(field)
    likely, unlikely = flip + (1 - 2 * flip) * (1 - wrong), flip + (1 - 2 * flip) * wrong
    acute = angle.cos > 0
    m0 = jnp.concatenate([jnp.where(acute, likely, unlikely), jnp.where(acute, unlikely, likely)])
    kappa, m1 = jnp.concatenate([x, -x]), (1 - 2 * flip) * jnp.concatenate([slope, slope])
    weight = 2 * weight * density(x)
    return kappa, jnp.concatenate([weight, weight]), (m0, m1, m0 - angle.cot * kappa * m1)


def _is_zero(kink: Array) -> bool:
    return isinstance(kink, (int, float)) and kink == 0


def _drifted(example: Noise, angle: Angle, drift: Array) -> Noise:
    """The averages of a step after which the teacher drifts, from those of the example alone."""
    sin2 = angle.sin**2
    turn = jnp.stack([jnp.zeros_like(drift), drift * angle.cot])
    bend = angle.cot / (2 * sin2) * (drift**2 * angle.cos**2 + 2 * drift * sin2) + drift * example.first[1] / sin2
    mixed = jnp.stack(
        [jnp.zeros_like(drift), turn[1] * example.first[0], 2 * turn[1] * example.first[1] + turn[1] ** 2]
    )
    products = example.products + mixed + jnp.stack([jnp.zeros_like(drift)] * 2 + [2 * drift])
    return Noise(example.first + turn, products, example.second - jnp.stack([jnp.zeros_like(drift), bend]))


def _of_logarithms(theta: Array, noise: Noise) -> Noise:
    """The averages of a step of (log l, log theta), from those of (log l, theta)."""
    scale = jnp.stack([jnp.ones_like(theta), 1 / theta])
    products = noise.products / jnp.stack([jnp.ones_like(theta), theta, theta**2])
    second = scale * noise.second - jnp.stack([jnp.zeros_like(theta), products[2] / 2])
    return Noise(scale * noise.first, products, second)


def rates(
    field: Callable[[Array, Array], Array], state: Array, t: Array, noise: Noise, fluctuations: Fluctuations
) -> Fluctuations:
    """Time derivative of one student's fluctuations: of field(state, t) = F and the averages of one step."""
    F = field(state, t)
    A = jax.jacfwd(field)(state, t)
    curvature = jax.jacfwd(jax.jacfwd(field))(state, t)
    later = jax.jacfwd(field, 1)(state, t) if t.size else jnp.zeros((2, 1))
    ll, lt, tt = fluctuations.covariance
    C = jnp.stack([jnp.stack([ll, lt]), jnp.stack([lt, tt])])
    AC = A @ C
    D = noise.products - jnp.stack([F[0] ** 2, F[0] * F[1], F[1] ** 2])
    covariance = jnp.stack([2 * AC[0, 0], AC[0, 1] + AC[1, 0], 2 * AC[1, 1]]) + D
    bias = A @ fluctuations.bias + jnp.sum(curvature * C, axis=(1, 2)) / 2 + noise.second - (A @ F + later[:, 0]) / 2
    return Fluctuations(covariance, bias)


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
