r"""Fluctuations and bias of order 1/N for one student that learns online.

**Expansion.** A chain :math:`X \to X + \xi/N` with :math:`\langle\xi\rangle = F + b/N` and
:math:`\operatorname{cov}\xi = D` has, at :math:`t = \mathrm{steps}/N`, the mean :math:`x + m/N` and the covariance C/N
(van Kampen), where

.. math:: \dot x = F, \qquad \dot C = AC + CA^\mathsf{T} + D, \qquad
          \dot m = Am + \tfrac12 F'' : C + b - \tfrac12(AF + \partial_tF), \qquad A = F'.

The last term accounts for discrete time, and is as large as the others. A schedule contributes :math:`\partial_tF`.

**One step.** A student's :math:`(\log l, \theta)` is closed, whatever the ensemble. Let u and w be the inputs parallel
and perpendicular to :math:`\mathbf J` in the plane of :math:`\mathbf B` and :math:`\mathbf J`. With :math:`\rho = f/l`,
the decay :math:`\nu` and :math:`a = \rho u - \nu`, an expansion of the exact step to second order in 1/N gives

.. math::
    \xi_l &= a + \tfrac12\rho^2, \qquad \xi_\theta = -\rho w + \tfrac12\rho^2\cot\theta, \\
    b_l &= \langle\tfrac12[a^2 + \rho^2(w^2 - 2)] - \xi_l^2\rangle, \\
    b_\theta &= \Big\langle\rho w a + \frac{\rho^3w}{2\sin^2\theta} - \rho^2(1 + a)\cot\theta
        - \frac{\rho^4\cos\theta\,(1 + 2\sin^2\theta)}{8\sin^3\theta}\Big\rangle.

Then the teacher drifts, which adds :math:`2\delta` to :math:`D_{\theta\theta}` and :math:`\delta\cot\theta` to
:math:`F_\theta`. With the :math:`F_\theta` of the example alone, :math:`b_\theta` gains

.. math:: -\frac{\cos\theta}{2\sin^3\theta}(\delta^2\cos^2\theta + 2\delta\sin^2\theta)
          - \frac{\delta F_\theta}{\sin^2\theta}.

**Averages.** Given the stability :math:`\kappa = \sigma u`, the powers of :math:`\sigma w` have the averages, with
:math:`\gamma = \cot\theta` and label noise :math:`p_f`,

.. math:: M_0 = p_f + (1-2p_f)\Phi(\gamma\kappa), \quad M_1 = (1-2p_f)\varphi(\gamma\kappa), \quad
          M_2 = M_0 - \gamma\kappa M_1

under the density :math:`2\varphi(\kappa)`. So F, D and b are averages over the stability alone
(`compute_step_moments`).

**Coordinates.** We integrate in :math:`(\log l, \log\theta)`, with :math:`\xi_\theta/\theta` and
:math:`b_\theta/\theta - \langle\xi_\theta^2\rangle/2\theta^2`. There C and m stay of order 1 for arbitrarily small
:math:`\theta`: the relative variance of eps_g is C/N, its relative bias (m + C/2)/N.

**Limits of validity** (measured with 1e5 seeds from random weights, t = 1 to 50). At N = 100 the corrected eps_g of all
shipped rules deviates by at most 0.05 % (2.3 standard errors), and variances by 0 to 3 %. At N = 10 it deviates by up
to 0.4 % (Hebb), 0.7 % (textbook AdaTron), 1.0 % (perceptron, whose variance is 1.23 times the predicted one at t = 50)
and 2.9 % (AdaTron, 1.43 times). The AdaTron's variance diverges as its learning rate tends to 3: at late times the
textbook rule has the variance :math:`\eta(20 - 15\eta + 3\eta^2)/5(3 - \eta)`. With label noise the AdaTron's length
tends to :math:`\eta/2`, where fluctuations of this order vanish
(`statmech.results.comparison.find_resolved_std_mask`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import (
    NODES,
    Array,
    get_legendre_rule,
    make_composite_rule,
    mills_ratio,
    normal_density,
    normal_upper_tail,
)
from statmech.students.rules import Rule

NUM_STEP_FUNCTION_NODES, NUM_SIGMOID_REMAINDER_NODES = (
    5,
    10,
)  # relative errors up to 4e-10 for linear rules
LABEL_SIGMOID_CUTOFF, STABILITY_CUTOFF = (
    8.5,
    9.5,
)  # in widths of the label sigmoid, and in standard deviations of the stability


class StepMoments(NamedTuple):
    """Averages of the update xi over one step, its products ll, lt and tt, and its second-order term.

    Entries are tuples or arrays.
    """

    first: Array
    products: Array
    second_order: Array


class AngleFunctions(NamedTuple):
    """Angle with its sine, cosine and cotangent."""

    theta: Array
    sin: Array
    cos: Array

    @property
    def cot(self) -> Array:
        return self.cos / self.sin


def average_over_perpendicular_field(
    rho: Array, kappa: Array, moments: tuple[Array, Array, Array], angle: AngleFunctions, decay: Array
) -> StepMoments:
    r"""Average the update of one step over the perpendicular field w at a fixed stability.

    Returns the first-order, product and second-order terms of :math:`(\log l, \theta)`.

    Parameters
    ----------
    rho
        The update divided by the length, times the label: :math:`\eta g(\kappa, l)/l`.
    kappa
        The stability.
    moments
        The averages :math:`M_0, M_1, M_2` of powers of :math:`\sigma w` at this stability.
    angle
        The student's angle to the teacher.
    decay
        The weights' decay.

    Returns
    -------
    StepMoments
        Arrays like `kappa`, stacked along a new first axis. Their averages over the density :math:`2\varphi(\kappa)`
        are the averages over a step.
    """
    m0, m1, m2 = moments
    cot, sin2, square = angle.cot, angle.sin**2, rho**2
    a, turn = rho * kappa - decay, square * cot / 2  # the update of theta is turn - rho w
    xi_l = a + square / 2
    xi_theta = m0 * turn - rho * m1
    products = m0 * xi_l**2, xi_l * xi_theta, m0 * turn**2 - 2 * turn * rho * m1 + square * m2
    second = (
        (m0 * (a**2 - 2 * square) + square * m2) / 2 - products[0],
        rho * m1 * (a + square / (2 * sin2))
        - m0 * square * (cot * (1 + a) + square * cot * (1 + 2 * sin2) / (8 * sin2)),
    )
    return StepMoments((m0 * xi_l, xi_theta), products, second)


class StabilityNodes(NamedTuple):
    r"""Nodes x >= 0 for the absolute stability, with weights, :math:`M_0` at x and -x, and :math:`M_1`."""

    x: Array
    weight: Array
    right: Array
    left: Array
    first_w_moment: Array


def compute_step_moments(rule: Rule, theta: Array, length: Array, flip: Array, changes: Any = None) -> StepMoments:
    """Average the update of a student's (log l, log theta) and its products over one example.

    All arguments are scalars.

    Parameters
    ----------
    rule
        The learning rule.
    theta, length
        The student's angle to the teacher, and its length.
    flip
        Probability that a label is flipped.
    changes
        The teacher's `drift` and the weights' `decay`. None means that both are 0.
    """
    linear = rule.linear is True
    stabilities = (
        make_linear_rule_nodes(theta, flip)
        if linear
        else make_stability_nodes(compute_stability_panel_edges(rule, theta, length), theta, flip)
    )
    terms = jax.vmap(lambda stability: compute_weighted_step_terms(rule, stability, theta, length, flip, changes))(
        stabilities
    )
    means = convert_to_step_averages(theta, jax.tree.map(partial(jnp.sum, axis=0), terms), changes)
    return StepMoments(*(jnp.stack(part) for part in means))


def compute_stability_panel_edges(rule: Rule, theta: Array, length: Array) -> list[Array]:
    """Compute increasing panel edges for the absolute stability, as in `theory.online.order_parameter_equations`."""
    kinks = [jnp.abs(kink) for kink in rule.edges(length) if not (isinstance(kink, (int, float)) and kink == 0)]
    sorted_edges = [
        jnp.minimum(edge, STABILITY_CUTOFF) for edge in (LABEL_SIGMOID_CUTOFF * jnp.abs(jnp.tan(theta)), *kinks)
    ]
    for last in range(len(sorted_edges) - 1, 0, -1):  # bubble sort, since `jnp.sort` is slow for a few values
        for index in range(last):
            low, high = sorted_edges[index], sorted_edges[index + 1]
            sorted_edges[index], sorted_edges[index + 1] = jnp.minimum(low, high), jnp.maximum(low, high)
    return [jnp.zeros_like(theta), *sorted_edges, jnp.full_like(theta, STABILITY_CUTOFF)]


def make_stability_nodes(edges: list[Array], theta: Array, flip: Array, nodes: int = NODES) -> StabilityNodes:
    """Make Gauss-Legendre nodes on the panels between edges, along a new first axis."""
    x, weights = (jnp.moveaxis(part, -1, 0) for part in make_composite_rule(jnp.stack(edges), nodes))
    field = x * jnp.abs(jnp.cos(theta) / jnp.sin(theta))
    wrong, slope = normal_upper_tail(field), normal_density(field)
    likely, unlikely = flip + (1 - 2 * flip) * (1 - wrong), flip + (1 - 2 * flip) * wrong
    right, left = _order_by_stability_sign(theta, likely, unlikely)
    return StabilityNodes(x, 2 * weights * normal_density(x), right, left, (1 - 2 * flip) * slope)


def make_linear_rule_nodes(theta: Array, flip: Array) -> StabilityNodes:
    r"""Make the few nodes needed for a rule that is linear on both sides of 0, along a new first axis.

    :math:`\Phi(\gamma\kappa)` is a step at 0 plus a remainder. Averages with the step are averages of polynomials. With
    :math:`c = |\cos\theta|` and :math:`|\kappa| = s\sin\theta`, :math:`\varphi(\kappa)\varphi(\gamma\kappa) =
    \varphi(s)/\sqrt{2\pi}`, so that the remainder has the weight :math:`\varphi(s)` times the smooth Mills ratio
    :math:`\Phi(-cs)/\varphi(cs)`. Gauss rules for :math:`\varphi` on the half line serve both terms.
    """
    (x, wide), (s, narrow) = (
        _reshape_to_columns(half_line_gauss_rule(nodes), theta.ndim)
        for nodes in (NUM_STEP_FUNCTION_NODES, NUM_SIGMOID_REMAINDER_NODES)
    )
    true, sin, field = 1 - 2 * flip, jnp.sin(theta), s * jnp.abs(jnp.cos(theta))
    mills = mills_ratio(field)
    shape = (NUM_STEP_FUNCTION_NODES, *theta.shape)
    right, left = _order_by_stability_sign(
        theta,
        jnp.concatenate([jnp.broadcast_to(flip + true, shape), -true * mills]),
        jnp.concatenate([jnp.broadcast_to(flip, shape), true * mills]),
    )
    weights = jnp.concatenate([jnp.broadcast_to(2 * wide, shape), np.sqrt(2 / np.pi) * narrow * sin])
    m1 = jnp.concatenate([jnp.zeros(shape), jnp.broadcast_to(true, mills.shape)])
    return StabilityNodes(jnp.concatenate([jnp.broadcast_to(x, shape), s * sin]), weights, right, left, m1)


def _order_by_stability_sign(theta: Array, likely: Array, unlikely: Array) -> tuple[Array, Array]:
    """Return the values for positive and negative stabilities.

    Positive stabilities are more likely if theta is acute.
    """
    acute = theta < np.pi / 2
    return jnp.where(acute, likely, unlikely), jnp.where(acute, unlikely, likely)


def _reshape_to_columns(rule: tuple[np.ndarray, np.ndarray], ndim: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = (part.reshape(-1, *[1] * ndim) for part in rule)
    return nodes, weights


@cache
def half_line_gauss_rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of a Gauss rule for the standard normal density on the half line.

    The rule is computed by the Stieltjes procedure.

    >>> x, weight = half_line_gauss_rule(5)
    >>> np.allclose([weight.sum(), weight @ x**8], [0.5, 105 / 2], rtol=1e-13)
    True
    """
    unit, fine = get_legendre_rule(400)
    x, weight = 16 * unit, 16 * fine * normal_density(16 * unit)
    diagonal, off_diagonal, previous, current = np.zeros(nodes), np.ones(nodes), np.zeros_like(x), np.ones_like(x)
    current /= np.sqrt(weight @ current**2)
    for k in range(nodes):  # recursion of orthonormal polynomials
        diagonal[k] = weight @ (x * current**2)
        new = (x - diagonal[k]) * current - (off_diagonal[k - 1] if k else 0.0) * previous
        off_diagonal[k] = np.sqrt(weight @ new**2)
        previous, current = current, new / off_diagonal[k]
    matrix = np.diag(diagonal) + np.diag(off_diagonal[:-1], 1) + np.diag(off_diagonal[:-1], -1)
    eigenvalues, vectors = np.linalg.eigh(matrix)
    return eigenvalues, vectors[0] ** 2 / 2


def compute_weighted_step_terms(
    rule: Rule, stabilities: StabilityNodes, theta: Array, length: Array, flip: Array, changes: Any = None
) -> StepMoments:
    """Compute the weighted step averages at one node, summed over the stabilities x and -x.

    All arguments are scalars.

    Parameters
    ----------
    rule
        The learning rule.
    stabilities
        The stabilities with their weights.
    theta, length
        The student's angle to the teacher, and its length.
    flip
        Probability that a label is flipped.
    changes
        The drift and decay, as in `compute_step_moments`.
    """
    angle, decay = AngleFunctions(theta, jnp.sin(theta), jnp.cos(theta)), 0.0 if changes is None else changes.decay
    x, weight, right, left, m1 = stabilities
    shift, scale = angle.cot * x * m1, rule.eta / length

    def step_at(kappa: Array, m0: Array, shift: Array) -> StepMoments:
        return average_over_perpendicular_field(
            scale * rule.g(kappa, length), kappa, (m0, m1, m0 - shift), angle, decay
        )

    steps = step_at(x, right, shift), step_at(-x, left, -shift)
    return jax.tree.map(lambda positive, negative: weight * (positive + negative), *steps)


def convert_to_step_averages(theta: Array, example: StepMoments, changes: Any = None) -> StepMoments:
    """Convert averages over an example to averages over a step, with drift, for (log l, log theta).

    All arguments are scalars.
    """
    angle = AngleFunctions(theta, jnp.sin(theta), jnp.cos(theta))
    return _convert_theta_to_log_theta(theta, example if changes is None else _add_drift(example, angle, changes.drift))


def _add_drift(example: StepMoments, angle: AngleFunctions, drift: Array) -> StepMoments:
    """Add the teacher's drift to the averages over an example."""
    (xi_l, xi_theta), (ll, lt, tt), (second_l, second_t) = example
    sin2, turn = angle.sin**2, drift * angle.cot
    bend = angle.cot / (2 * sin2) * (drift**2 * angle.cos**2 + 2 * drift * sin2) + drift * xi_theta / sin2
    products = ll, lt + turn * xi_l, tt + 2 * turn * xi_theta + turn**2 + 2 * drift
    return StepMoments((xi_l, xi_theta + turn), products, (second_l, second_t - bend))


def _convert_theta_to_log_theta(theta: Array, noise: StepMoments) -> StepMoments:
    """Convert step averages for (log l, theta) to step averages for (log l, log theta)."""
    (xi_l, xi_theta), (ll, lt, tt), (second_l, second_t) = noise
    square = tt / theta**2
    return StepMoments((xi_l, xi_theta / theta), (ll, lt / theta, square), (second_l, second_t / theta - square / 2))


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
