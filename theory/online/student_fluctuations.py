r"""Fluctuations and biases of order 1/N of students that learn online, and the averages of one learning step.

The first part treats one student. The second part averages products of the updates of two to four students, from
which `theory.online.ensemble_fluctuations` computes the fluctuations of pairs and of votes.

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

**Updates of two to four equal students:** noise and second-order terms, averaged over one example. Let
:math:`\tau_k = f_k/(l_k\sin\theta_k)`, and let :math:`s_k` be the projection of the input on the part of student k
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

.. math:: \kappa_k &= r\,y + \sin\theta\sqrt{1-c}\;z_k, \qquad
          (r\cos\alpha,\, r\sin\alpha) = (\cos\theta,\, \sqrt c\,\sin\theta), \\
          (v,\, s_0) &= (y\cos\alpha - x\sin\alpha,\; y\sin\alpha + x\cos\alpha).

So every average is a single integral over y: the integrand contains products of the conditional averages
:math:`\langle\tau^iz^j\rangle_z` and polynomials in x, whose averages given y (and the label noise) have closed forms.

**Opposed students**, c < 0, have no such field, but all averages continue analytically: :math:`s_k = i\sqrt{-c}\,s_0 +
\sqrt{1-c}\,z_k` with real normals. Given v and :math:`s_0` the contour of z is moved until the stability is real, so
that the averages become Fourier integrals of :math:`\tau^i`. For n students they exist if c > −1/(n − 1), as do the
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

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    NODES,
    Array,
    half_line_gauss_rule,
    make_composite_rule,
    mills_ratio,
    normal_cdf,
    normal_density,
    normal_upper_tail,
    replace_zero,
)
from statmech.students.rules import Rule

# relative errors up to 4e-10 for linear rules
NUM_STEP_FUNCTION_NODES = 5
NUM_SIGMOID_REMAINDER_NODES = 10
# in widths of the label sigmoid, and in standard deviations of the stability
LABEL_SIGMOID_CUTOFF = 8.5
STABILITY_CUTOFF = 9.5
ArrayPair = tuple[Array, Array]
UPDATE_PRODUCT_NODES = 24  # per panel
# exponents of tau and z
CONDITIONAL_TAU_Z_POWERS = tuple((i, j) for i in range(1, 5) for j in range(min(2, 4 - i) + 1))
PHI_TAU_S_POWERS = ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0))  # exponents of tau and s
IMAGINARY_FIELD_SPACING = 0.75  # gives errors of 6e-16 for opposed students
MIN_FIELD_DECAY_RATE = 0.07  # averages overflow at the distant nodes required by slower decays


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
    r"""Average a student's update and its noise over the perpendicular field w at a fixed stability.

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
    """Compute increasing panel edges of the absolute stability for averages of a student's noise."""
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
    """Make nodes for averages of a student's noise on the panels between edges, along a new first axis."""
    x, weights = (jnp.moveaxis(part, -1, 0) for part in make_composite_rule(jnp.stack(edges), nodes))
    field = x * jnp.abs(jnp.cos(theta) / jnp.sin(theta))
    wrong, slope = normal_upper_tail(field), normal_density(field)
    likely, unlikely = flip + (1 - 2 * flip) * (1 - wrong), flip + (1 - 2 * flip) * wrong
    right, left = _order_by_stability_sign(theta, likely, unlikely)
    return StabilityNodes(x, 2 * weights * normal_density(x), right, left, (1 - 2 * flip) * slope)


def make_linear_rule_nodes(theta: Array, flip: Array) -> StabilityNodes:
    r"""Make the few nodes needed for the noise of a rule that is linear on both sides of 0.

    The nodes have a new first axis. :math:`\Phi(\gamma\kappa)` is a step at 0 plus a remainder. Averages with the step
    are averages of polynomials. With :math:`c = |\cos\theta|` and :math:`|\kappa| = s\sin\theta`,
    :math:`\varphi(\kappa)\varphi(\gamma\kappa) = \varphi(s)/\sqrt{2\pi}`, so that the remainder has the weight
    :math:`\varphi(s)` times the smooth Mills ratio :math:`\Phi(-cs)/\varphi(cs)`. Gauss rules for :math:`\varphi` on
    the half line serve both terms.
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


def compute_weighted_step_terms(
    rule: Rule, stabilities: StabilityNodes, theta: Array, length: Array, flip: Array, changes: Any = None
) -> StepMoments:
    """Compute the weighted noise of a student's step at one node, summed over the stabilities x and -x.

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
    """Add the noise of the teacher's drift to a student's averages over an example."""
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
    r"""Compute the standard deviation and bias of a student's R, length and eps_g at finite N, like theta.

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
    """Make quadrature nodes (y, x) for the updates of students with a common field (c >= 0)."""
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
    """Make quadrature nodes (v, s0) for the updates of opposed students (c < 0).

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
    """Average a student's tau^i (z - ib)^j on contours shifted by -ib, for shifts b (X,) and nodes (Y, Z).

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
    """Make nodes in z (Y, Z) on panels between the kinks, with their weights and a student's updates tau."""
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
    """Combine the conditional averages of one student's update into the averages of products."""
    G = _compute_second_moments(common, c)
    student = _make_student_update_vectors(common, theta)
    pair = _make_cosine_update_matrix(c)
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
    """Compute the conditional averages G (Y, X, 5, 5) over products of phi, the powers of a student's update."""
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
    """Compute the second-order term b in the update of two students' cosine c12 at the nodes (Y, X)."""
    z, mu = common.conditional_averages, G[..., 0]
    excess = common.common_normal**2 - 3  # chi without its terms in z, which are added below
    y = np.array([0.0, 0.0, 0.0, 2.0, 1.0])
    Gy, Y = G @ y, mu @ y
    crossed = Gy[..., 2] * mu[..., 1] + Gy[..., 1] * mu[..., 2] + Gy[..., 2] * mu[..., 2]
    square = z[1, 0] ** 2 * (excess - 1) + 2 * z[1, 0] * z[1, 2] - c * (z[2, 0] * excess + z[2, 2])
    return square - crossed + c * (3 * (Gy @ y) + Y**2) / 4


def _make_panel_nodes(edges: list[Array], nodes: int, template: Array = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Make nodes and weights for averages of students' updates on the panels between edges, along a new last axis.

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
