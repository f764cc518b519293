r"""Fluctuations and bias of order 1/N for one student that learns online.

A chain :math:`X \to X + \xi/N` with :math:`\langle\xi\rangle = F + b/N` and :math:`\operatorname{cov}\xi = D` has, at
:math:`t = \mathrm{steps}/N`, the mean :math:`x + m/N` and the covariance C/N (van Kampen), where

.. math:: \dot x = F, \qquad \dot C = AC + CA^\mathsf{T} + D, \qquad
          \dot m = Am + \tfrac12 F'' : C + b - \tfrac12(AF + \partial_tF), \qquad A = F'.

The last term accounts for discrete time, and is as large as the others. A schedule contributes :math:`\partial_tF`.

**Coordinates.** We integrate in :math:`(\log l, \log\theta)`, with :math:`\xi_\theta/\theta` and
:math:`b_\theta/\theta - \langle\xi_\theta^2\rangle/2\theta^2`. There C and m stay of order 1 for arbitrarily small
:math:`\theta`: the relative variance of eps_g is C/N, its relative bias (m + C/2)/N.

**Limits of validity** (measured with 1e5 seeds from random weights, t = 1 to 50). At N = 100 the corrected eps_g of all
shipped rules deviates by at most 0.05 % (2.3 standard errors), and variances by 0 to 3 %. At N = 10 it deviates by up
to 0.4 % (Hebb), 0.7 % (textbook AdaTron), 1.0 % (perceptron, whose variance is 1.23 times the predicted one at t = 50)
and 2.9 % (AdaTron, 1.43 times). The AdaTron's variance diverges as its learning rate tends to 3: at late times the
textbook rule has the variance :math:`\eta(20 - 15\eta + 3\eta^2)/5(3 - \eta)`. With label noise the AdaTron's length
tends to :math:`\eta/2`, where fluctuations of this order vanish
(`statmech.results.corrections.find_resolved_std_mask`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import Array
from theory.fluctuations.student_noise import StepMoments

ArrayPair = tuple[Array, Array]


class StudentFluctuations(NamedTuple):
    """N times the covariances ll, lt, tt (..., 3, S) and biases (..., 2, S) of l = log length and t = log theta."""

    covariance: Array
    bias: Array


def compute_fluctuation_rates(
    field: Callable[[Array, Array, Array], ArrayPair],
    state: ArrayPair,
    t: Array,
    noise: StepMoments,
    fluctuations: StudentFluctuations,
) -> StudentFluctuations:
    """Compute the time derivatives of one student's covariances and biases.

    Parameters
    ----------
    field
        F as a function of log l, log theta and t: the time derivative of the state.
    state, t
        (log l, log theta), and the time.
    noise
        Averages over one step.
    fluctuations
        The fluctuations at this time.
    """
    (Fl, Ft), (later_l, later_t) = _compute_value_and_derivative(lambda t: field(*state, t), t)
    (Al, Bl), (All, Bll) = _compute_value_and_derivative(
        lambda l: _differentiate_pair(lambda l: field(l, state[1], t), l), state[0]
    )
    (At, Bt), (Att, Btt) = _compute_value_and_derivative(
        lambda s: _differentiate_pair(lambda s: field(state[0], s, t), s), state[1]
    )
    Alt, Blt = _differentiate_pair(lambda s: _differentiate_pair(lambda l: field(l, s, t), state[0]), state[1])
    (ll, lt, tt), (ml, mt) = fluctuations.covariance, fluctuations.bias
    derivatives = Fl, Ft, Al, Bl, At, Bt, All, Bll, Alt, Blt, Att, Btt
    Fl, Ft, Al, Bl, At, Bt, All, Bll, Alt, Blt, Att, Btt = jax.lax.optimization_barrier(derivatives)
    covariance = (
        2 * (Al * ll + At * lt) + noise.products[0] - Fl**2,
        Al * lt + At * tt + Bl * ll + Bt * lt + noise.products[1] - Fl * Ft,
        2 * (Bl * lt + Bt * tt) + noise.products[2] - Ft**2,
    )
    ml, mt = ml - Fl / 2, mt - Ft / 2  # A m below becomes A (m - F/2)
    bias = (
        Al * ml + At * mt + (All * ll + 2 * Alt * lt + Att * tt - later_l) / 2 + noise.second_order[0],
        Bl * ml + Bt * mt + (Bll * ll + 2 * Blt * lt + Btt * tt - later_t) / 2 + noise.second_order[1],
    )
    covariance, bias = jax.lax.optimization_barrier((covariance, bias))
    return StudentFluctuations(jnp.stack(covariance), jnp.stack(bias))


def _compute_value_and_derivative(function: Callable[[Array], ArrayPair], x: Array) -> tuple[ArrayPair, ArrayPair]:
    """Return the two values of a function and their derivatives at x."""
    values, derivatives = jax.jvp(function, (x,), (jnp.ones_like(x),))
    return values, derivatives


def _differentiate_pair(function: Callable[[Array], ArrayPair], x: Array) -> ArrayPair:
    return _compute_value_and_derivative(function, x)[1]


def make_initial_fluctuations(theta: np.ndarray, random: bool) -> StudentFluctuations:
    r"""Return the initial covariances and biases of students (S,).

    Given students have no fluctuations. For weights drawn from N(0, 1), C = diag(1/2, 1) and m = (-1/2, 0) in
    :math:`(\log l, \theta)`.
    """
    if not random:
        return StudentFluctuations(np.zeros((3, theta.size)), np.zeros((2, theta.size)))
    ones, zeros = np.ones_like(theta), np.zeros_like(theta)
    return StudentFluctuations(np.stack([ones / 2, zeros, 1 / theta**2]), np.stack([-ones / 2, -1 / (2 * theta**2)]))


def compute_student_corrections(
    theta: np.ndarray, length: np.ndarray, fluctuations: StudentFluctuations, N: int | np.ndarray
) -> dict[str, np.ndarray]:
    r"""Compute the standard deviation and bias of R, length and eps_g at finite N, in the shape of theta.

    Standard deviations describe a single run.

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
    result = {}
    for name, (first, second, variance, bias) in derivatives.items():
        result[f"{name}_std"] = np.abs(first) * np.sqrt(np.maximum(variance, 0) / N)  # variance < 0 is rounding
        result[f"{name}_bias"] = (first * bias + second * variance / 2) / N
    return result
