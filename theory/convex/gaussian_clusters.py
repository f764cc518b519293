r"""Learning of two Gaussian clusters for N -> infinity: minimisers with an l2 penalty, and optimal classifiers.

**Averages.** For a student w with :math:`m = \mathbf w\cdot\mathbf d` the stability h of an unseen example with label y
is normal of variance :math:`Q^2` around :math:`\mu_y = s_ym + yb`, with b the intercept
(`statmech.convex.gaussian_clusters`). With p the stability after training, and :math:`g = p - h`,

.. math:: A = \sum_y\pi_y\langle d\rangle_y, \qquad B = \sum_y\pi_y\langle g^2\rangle_y, \qquad
          C = \sum_y\pi_ys_y\langle g\rangle_y, \qquad E = \sum_y\pi_yy\,\langle g\rangle_y,
          \qquad d = 1 - \partial p/\partial h = -\partial g/\partial h .

The nodes of `theory.convex.example_averages` are shifted by the mean.

**Slopes.** For any f(h), :math:`\partial_\mu\langle f\rangle = \langle f'\rangle = \langle(h-\mu)f\rangle/Q^2` and
:math:`\partial_{\ln Q}\langle f\rangle = \langle(h-\mu)f'\rangle`. As d may jump, its averages use the forms without a
derivative of d. With respect to ln V at fixed h, :math:`\partial g = g\,(1-d)`, and
:math:`A = -\langle(h-\mu)g\rangle/Q^2`.

**Equations.** With these averages, the hats

.. math:: \hat V = \alpha A/V, \qquad \hat q = \alpha B/V^2, \qquad \hat m = \alpha C/V,

and :math:`D_a = \lambda\rho_a + \hat V\omega_a`, of modes with variances :math:`\omega_a`, fractions :math:`\nu_a` of
the directions, powers :math:`t_a` and factors :math:`\rho_a` of the penalty, the order parameters are

.. math:: m = \hat m\sum_a\frac{t_a}{D_a}, \qquad
          Q^2 = \hat m^2\sum_a\frac{\omega_at_a}{D_a^2} + \hat q\sum_a\frac{\nu_a\omega_a^2}{D_a^2}, \qquad
          V = \sum_a\frac{\nu_a\omega_a}{D_a},

with E = 0 for an intercept, and :math:`\epsilon_g = \sum_y\pi_y\,\Phi(-\mu_y/Q)` (Mignacco et al. 2020; Loureiro,
Sicuro, Gerbelot, Pacco, Krzakala & Zdeborova 2021). The unknowns are :math:`\ln(Q/m)`, :math:`\ln Q` and :math:`\ln V`.
Without an intercept the error decreases with m/Q, as both s are positive. The best lambda then minimises the first
unknown.

**Solution.** Solutions are followed along lambda by Newton's method, as in `theory.convex.saddle_point`. An intercept
is the fourth unknown, as :math:`b/(1+Q)`, which stays finite when all lengths diverge. It is freed at a moderate
lambda, since at a large one a loss with a kink hardly determines it: the fourth equation is
:math:`\kappa E/\sqrt B = (1-\kappa)\,b/(1+Q)`, and :math:`\kappa` grows from 0 to 1. A loss with a kink can have its
minimum at w = 0 and the more frequent answer, such as the hinge loss for unequal clusters with a large overlap. Then
the equations for the logarithms have no solution, and the state is NaN.

**A classifier that knows the clusters** takes the side of a plane perpendicular to :math:`\Sigma^{-1}\mathbf d`. With
the separation :math:`\delta^2 = \sum_at_a/\omega_a`, half the distance of the clusters' fields in standard deviations,
the error of the best plane is

.. math:: \epsilon = \sum_y\pi_y\,\Phi\!\left(-\delta - \frac{y}{2\delta}\ln\frac{\pi_+}{\pi_-}\right) .

**The Bayes-optimal learner** knows everything but the direction of d in each group, and has P = alpha N examples. The
posterior of d is Gaussian: each example of cluster y contains d with the factor :math:`s_y`, whose mean square is
:math:`4\pi_+\pi_-`. The error is the same function of

.. math:: \delta^2 = \sum_a\frac{t_a}{\omega_a}\,\frac{k_a}{1 + k_a}, \qquad
          k_a = 4\pi_+\pi_-\alpha\,\frac{t_a}{\nu_a\omega_a} .

In equal clusters without structure this is Hebb's rule (Mignacco, Krzakala, Lu, Urbani & Zdeborova 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from statmech.convex.gaussian_clusters import CLUSTER_LABELS, TwoClusters
from statmech.convex.losses import Loss, find_minimiser_interval
from statmech.convex.separability_thresholds import compute_cluster_interpolation_threshold
from statmech.kinds.risk_clusters import ClusterCell
from statmech.numerics.gaussian import normal_cdf, normal_density
from theory.convex.best_lambda import (
    EQUAL_ERROR_TOL,
    MAX_SEARCHED_LAMBDA,
    MIN_SEARCHED_LAMBDA,
    SCAN_RESIDUAL_TOL,
    ScanPoint,
    minimise_over_lambda,
    select_scan_points,
)
from theory.convex.example_averages import FieldNodes, TrainingAverages, choose_gaussian_panel_edges, make_field_nodes
from theory.convex.saddle_point import (
    SOLUTION_RESIDUAL_TOL,
    PenaltyPoint,
    SaddlePointSolution,
    estimate_moderate_l1_log_lambda,
    follow_solution,
    run_newton,
    solve_saddle_point,
)
from theory.convex.weight_averages import LinearisedEquations

CLUSTER_ZERO_LIMIT_START_LAMBDA = 1e-6  # Newton's method starts from this solution to reach the limit lambda = 0
CLUSTER_LOG_LAMBDA_SCAN_STEP = np.log(4.0)  # step in ln lambda
NUM_SCAN_POINTS_PER_REFINEMENT = 9
CLASS_FRACTION_STEP_COUNTS = (6, 24)  # the second number is used if the first fails
CLUSTER_LOG_LAMBDA_TOL = 1e-4  # sufficient, since the error is quadratic in ln lambda near its minimum
AveragesWithSlopes = tuple[np.ndarray, np.ndarray]  # A, B, C and E (4, batch), and their derivatives (4, k, batch)


class ClusterStabilities(NamedTuple):
    """Distribution of the stabilities of fresh examples."""

    means: np.ndarray  # one per cluster (2, batch)
    Q: np.ndarray  # standard deviation (batch,)
    V: np.ndarray  # susceptibility (batch,)


class ClusterAverages(NamedTuple):
    """Averages A, B, C and E (4, batch), and their derivatives (4, 4, batch) with respect to m, b, ln Q and ln V."""

    values: np.ndarray
    slopes: np.ndarray


def average_over_clusters(loss: Loss, clusters: TwoClusters, stabilities: ClusterStabilities) -> ClusterAverages:
    """Compute A, B, C and E, averages over both clusters, with their derivatives.

    Parameters
    ----------
    loss
        A loss of stabilities.
    clusters
        The clusters.
    stabilities
        The distribution of the stabilities of fresh examples.
    """
    nodes, z, weight = _make_cluster_nodes(loss, stabilities)
    g, Q = nodes.g, np.tile(stabilities.Q, 2)
    d_dh, dh = weight * nodes.one_minus_dp_dh_weights, weight * nodes.h_weights
    free = dh - d_dh
    sums = nodes.sum_terms_per_batch_element(d_dh, dh * g * g, dh * g)
    by_mean = nodes.sum_terms_per_batch_element(d_dh * z, -2 * d_dh * g, -d_dh) / np.array([Q, 1 + 0 * Q, 1 + 0 * Q])
    by_Q = nodes.sum_terms_per_batch_element(d_dh * (z * z - 1), -2 * d_dh * g * z, -d_dh * z) * np.array(
        [1 + 0 * Q, Q, Q]
    )
    by_V = nodes.sum_terms_per_batch_element(-free * g * z, 2 * free * g * g, free * g) / np.array(
        [Q, 1 + 0 * Q, 1 + 0 * Q]
    )
    fractions, factors, y = clusters.weights, clusters.centre_distances, CLUSTER_LABELS
    # rows: A, B, C and E; columns: clusters
    average_weights = np.array([fractions, fractions, fractions * factors, fractions * y])
    cluster_terms = np.array([sums, by_mean, by_mean, by_Q, by_V]).reshape(5, 3, 2, -1)[:, [0, 1, 2, 2]]
    cluster_terms[1] *= factors[:, None]
    cluster_terms[2] *= y[:, None]
    values, *slopes = np.sum(average_weights[:, :, None] * cluster_terms, axis=2)
    return ClusterAverages(values, np.moveaxis(np.array(slopes), 0, 1))


def average_cluster_training_loss(
    loss: Loss, clusters: TwoClusters, stabilities: ClusterStabilities, reported_loss: Loss
) -> TrainingAverages:
    """Average the loss `reported_loss` and the label error over the training examples of both clusters.

    Parameters
    ----------
    loss, clusters, stabilities
        As in `average_over_clusters`.
    reported_loss
        The loss to average.
    """
    nodes, _, weight = _make_cluster_nodes(loss, stabilities, include_flat=True)
    p = nodes.h + nodes.g
    sums = nodes.sum_terms_per_batch_element(
        weight * nodes.h_weights * reported_loss.value(p), weight * nodes.h_weights * (p < 0)
    ).reshape(2, 2, -1)
    return TrainingAverages(*np.sum(clusters.weights[:, None] * sums, axis=1))


def _make_cluster_nodes(
    loss: Loss, stabilities: ClusterStabilities, include_flat: bool = False
) -> tuple[FieldNodes, np.ndarray, np.ndarray]:
    """Make the quadrature nodes of both clusters.

    Returns the nodes, their distances from the mean in units of Q, and the densities at the nodes. The batch of
    the first cluster precedes the batch of the second.
    """
    means, Q, V = stabilities.means.ravel(), np.tile(stabilities.Q, 2), np.tile(stabilities.V, 2)
    nodes = make_field_nodes(loss, Q, V, (means / Q)[:, None] + choose_gaussian_panel_edges(loss), include_flat)
    z = (nodes.h - means[nodes.panel_batch_index, None]) / Q[nodes.panel_batch_index, None]
    return nodes, z, normal_density(z) / Q[nodes.panel_batch_index, None]


@dataclass(frozen=True, eq=False)
class ClusterEquations:
    """Saddle-point equations of a loss of stabilities on two clusters.

    The `l1_fraction` of a penalty point serves as kappa, the parameter that switches the intercept on.
    """

    loss: Loss
    clusters: TwoClusters
    intercept: bool = False

    def linearise(self, x: np.ndarray, alpha: np.ndarray, point: PenaltyPoint) -> LinearisedEquations:
        """Compute the residuals of the equations of two clusters and their derivatives at the unknowns x (k, batch)."""
        with np.errstate(all="ignore"):  # steps that give NaN are rejected later
            averages = self._compute_averages(x)
            side, slopes = self._linearise_weights(averages, x, alpha, np.exp(point.log_lam))
            F, J = side.values - x[:3], slopes - np.eye(3, len(x))[..., None]
            if not self.intercept:
                return LinearisedEquations(F, J, side.by_log_lam)
            intercept_residual, intercept_slopes = self._linearise_intercept(averages, x, point.l1_fraction)
            zeros = np.zeros_like(alpha)
            return LinearisedEquations(
                np.array([*F, intercept_residual]),
                np.concatenate([J, intercept_slopes[None]]),
                np.array([*side.by_log_lam, zeros]),
            )

    def solve_penalised_weights(self, hats: ClusterHats, lam: np.ndarray) -> WeightSolution:
        """Solve the equations of the weights at penalty strength lambda."""
        return solve_weights(self.clusters, hats, lam)

    @property
    def hebb_lambda_scale(self) -> float:
        """Penalty scale: students follow Hebb's rule at much larger lambda."""
        return float(np.max(self.clusters.mode_variances / self.clusters.ridge)) + float(
            np.sum(self.clusters.centre_powers)
        )

    def _linearise_weights(
        self, averages: AveragesWithSlopes, x: np.ndarray, alpha: np.ndarray, lam: np.ndarray
    ) -> tuple[WeightSolution, np.ndarray]:
        """Solve the equations of the weights for two clusters, and return the derivatives (3, k, batch)."""
        (A, B, C, _), by_x = averages
        V = np.exp(x[2])
        last = np.eye(len(x))[2][:, None]
        hats = ClusterHats(alpha * A / V, alpha * B / V**2, alpha * C / V)
        side = self.solve_penalised_weights(hats, lam)
        log_m, log_q = by_x[2] / C - last, by_x[1] / B - 2 * last
        V_slopes = alpha / V * (by_x[0] - A * last)
        return side, side.by_log_m_hat[:, None] * log_m + side.by_log_q_hat[:, None] * log_q + side.by_V_hat[
            :, None
        ] * V_slopes

    def _linearise_intercept(
        self, averages: AveragesWithSlopes, x: np.ndarray, kappa: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the residual of the intercept's equation for two clusters, and its derivatives (k, batch)."""
        (_, B, _, E), by_x = averages
        offset = np.eye(len(x))[3][:, None]
        slopes = (by_x[3] - 0.5 * E / B * by_x[1]) / np.sqrt(B)
        return kappa * E / np.sqrt(B) - (1 - kappa) * x[3], kappa * slopes - (1 - kappa) * offset

    def _compute_averages(self, x: np.ndarray) -> AveragesWithSlopes:
        """Compute A, B, C and E (4, batch) of both clusters, and their derivatives (4, k, batch) by the unknowns."""
        values, (m_, b_, Q_, V_) = self._average_over_clusters(x)
        m, Q = np.exp(x[1] - x[0]), np.exp(x[1])
        by_x = [-m * m_, m * m_ + Q_, V_]
        if self.intercept:
            by_x = [by_x[0], by_x[1] + Q * x[3] * b_, V_, (1 + Q) * b_]
        return values, np.stack(by_x, axis=1)

    def _average_over_clusters(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute A, B, C and E, and their derivatives (variable, average, batch) for m, b, ln Q and ln V."""
        values, slopes = average_over_clusters(self.loss, self.clusters, self.compute_stabilities(x))
        return values, np.moveaxis(slopes, 1, 0)

    def compute_stabilities(self, x: np.ndarray) -> ClusterStabilities:
        """Describe the stabilities of fresh examples of both clusters, given the unknowns x (k, batch)."""
        means = self.clusters.centre_distances[:, None] * np.exp(x[1] - x[0]) + CLUSTER_LABELS[
            :, None
        ] * self.compute_intercept(x)
        return ClusterStabilities(means, np.exp(x[1]), np.exp(x[2]))

    def compute_intercept(self, x: np.ndarray) -> np.ndarray:
        """Compute the intercept b from the unknowns x (k, batch)."""
        return (1 + np.exp(x[1])) * x[3] if self.intercept else np.zeros_like(x[0])

    @cached_property
    def initial_loss_slope(self) -> float:
        """Absolute slope of the loss before training, or 1 if this slope vanishes."""
        return float(np.abs(self.loss.slope(np.zeros(1)))[0]) or 1.0

    def compute_hebb_start(self, alpha: np.ndarray, log_lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the unknowns of two clusters for Hebb's rule, with a ln lambda large enough for this approximation.

        The returned ln lambda is at least `log_lam`.
        """
        slope, bend = self.initial_loss_slope, float(self.loss.curvature(np.zeros(1))[0])
        scale = slope * (np.sqrt(alpha * (1 + alpha)) + 1) + bend * alpha
        log_lam = np.maximum(log_lam, np.log(3 * self.hebb_lambda_scale * (scale + 1 + alpha)))
        signal = float(self.clusters.weights @ self.clusters.centre_distances)
        hats = ClusterHats(0 * alpha, alpha * slope**2, alpha * slope * signal)
        x = self.solve_penalised_weights(hats, np.exp(log_lam)).values
        return (np.array([*x, 0 * alpha]) if self.intercept else x), log_lam


class ClusterHats(NamedTuple):
    """Conjugate order parameters V^, q^ and m^ (the hats), as arrays (batch,)."""

    V: np.ndarray
    q: np.ndarray
    m: np.ndarray


class WeightSolution(NamedTuple):
    """Unknowns ln(Q/m), ln Q and ln V (3, batch), and their derivatives for ln m^, ln q^, V^ and ln lambda."""

    values: np.ndarray
    by_log_m_hat: np.ndarray
    by_log_q_hat: np.ndarray
    by_V_hat: np.ndarray
    by_log_lam: np.ndarray


def solve_weights(clusters: TwoClusters, hats: ClusterHats, lam: np.ndarray) -> WeightSolution:
    """Compute the unknowns of two clusters from the conjugate order parameters under an l2 penalty.

    Parameters
    ----------
    clusters
        The clusters.
    hats
        The conjugate order parameters (batch,).
    lam
        Strength of the penalty (batch,).
    """
    _, omega, nu, t, ridge = (np.asarray(part)[..., None] for part in clusters)
    pull = ridge * lam
    D = pull + hats.V * omega
    m_parts, centre, spread, response = t / D, omega * t / D**2, nu * omega**2 / D**2, nu * omega / D
    of_m, of_q = hats.m**2 * np.sum(centre, axis=0), hats.q * np.sum(spread, axis=0)
    Q2, S, R = of_m + of_q, np.sum(m_parts, axis=0), np.sum(response, axis=0)
    log_Q = 0.5 * np.log(Q2)

    def differentiate(change: np.ndarray) -> np.ndarray:
        """Differentiate the unknowns with respect to a parameter, where `change` is the derivative of D."""
        part = change / D
        m = -np.sum(m_parts * part, axis=0) / S
        Q = -(hats.m**2 * np.sum(centre * part, axis=0) + hats.q * np.sum(spread * part, axis=0)) / Q2
        return np.array([Q - m, Q, -np.sum(response * part, axis=0) / R])

    zeros = np.zeros_like(Q2)
    return WeightSolution(
        np.array([log_Q - np.log(hats.m * S), log_Q, np.log(R)]),
        np.array([of_m / Q2 - 1, of_m / Q2, zeros]),
        np.array([0.5 * of_q / Q2, 0.5 * of_q / Q2, zeros]),
        differentiate(omega),
        differentiate(pull),
    )


class ClusterState(NamedTuple):
    """Order parameters and errors of learners, as arrays (batch,), NaN where the equations have no solution."""

    m_field: np.ndarray
    length_field: np.ndarray
    length: np.ndarray
    V: np.ndarray
    intercept: np.ndarray
    residual: np.ndarray
    train_loss: np.ndarray
    eps_t: np.ndarray
    eps_g: np.ndarray


def make_nan_state(batch_size: int) -> ClusterState:
    """Return a state with all entries NaN."""
    return ClusterState(*(np.full(batch_size, np.nan) for _ in ClusterState._fields))


def solve_cluster_minimum(
    loss: Loss, clusters: TwoClusters, alpha: np.ndarray, lam: np.ndarray, intercept: bool = False
) -> ClusterState:
    """Compute the state at the minimum of a penalised loss on two clusters for each alpha and lambda (batch,).

    Parameters
    ----------
    loss
        A loss of stabilities.
    clusters
        The clusters.
    alpha
        Examples per weight (batch,).
    lam
        Strength of the l2 penalty (batch,), 0 for the limit of a vanishing penalty.
    intercept
        True for students with an intercept, which has no penalty.

    Examples
    --------
    >>> from statmech.convex.gaussian_clusters import GaussianClusters
    >>> from statmech.convex.losses import Logistic
    >>> clusters = GaussianClusters().combine_with_modes(None)
    >>> one = solve_cluster_minimum(Logistic(), clusters, np.array([2.0]), np.array([0.1]))
    >>> [float(value[0].round(9)) for value in (one.m_field, one.length_field, one.eps_g)]
    [1.375596026, 1.880254441, 0.232206069]
    """
    equations = ClusterEquations(loss, clusters, intercept and not clusters.is_balanced)  # b = 0 for equal clusters
    state = make_nan_state(len(alpha))
    ends = compute_cluster_interpolation_threshold(loss, clusters, intercept) if np.any(lam == 0) else np.nan
    phases = (
        (lam > 0, _solve_clusters_penalised),
        ((lam == 0) & (alpha < ends), _solve_clusters_interpolating),
        ((lam == 0) & (alpha > ends), _solve_clusters_unpenalised),
    )
    for mask, phase in phases:
        elements = np.flatnonzero(mask)
        if len(elements):
            for values, part in zip(state, phase(equations, alpha[elements], lam[elements]), strict=True):
                values[elements] = part
    return state


ClusterPhaseSolver = Callable[[ClusterEquations, np.ndarray, np.ndarray], ClusterState]


def solve_cluster_equations(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray) -> SaddlePointSolution:
    """Solve the equations of two clusters at each alpha and lambda > 0 (batch,), NaN where this fails.

    If switching on the intercept fails, solutions are continued from classes of equal size, which have no intercept.

    Parameters
    ----------
    equations
        The equations of a loss and two clusters.
    alpha, lam
        Examples per weight, and strength of the penalty.
    """
    solution = solve_saddle_point(equations, alpha, lam, float(equations.intercept))
    for steps in CLASS_FRACTION_STEP_COUNTS if equations.intercept else ():
        elements = np.flatnonzero(np.isnan(solution.residual))
        if len(elements):
            for values, part in zip(
                solution, _follow_from_equal_classes(equations, alpha[elements], lam[elements], steps), strict=True
            ):
                values[..., elements] = part
    return solution


def _follow_from_equal_classes(
    equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray, steps: int
) -> SaddlePointSolution:
    """Continue a solution for two clusters from equal classes to their class fraction, in equal steps of its logit."""
    clusters, point = equations.clusters, PenaltyPoint(np.log(lam), np.ones_like(lam))
    fractions = 1 / (1 + (1 / clusters.positives - 1) ** np.linspace(0, 1, steps + 1))
    solution = solve_saddle_point(replace(equations, clusters=clusters._replace(positives=0.5)), alpha, lam, 1.0)
    for fraction in (*fractions[1:-1], clusters.positives):
        next_equations = replace(equations, clusters=clusters._replace(positives=float(fraction)))
        next_solution = run_newton(next_equations, solution.x, alpha, point)
        solution = SaddlePointSolution(
            *(part + np.where(next_solution.residual <= SOLUTION_RESIDUAL_TOL, 0.0, np.nan) for part in next_solution)
        )
    return solution


def _solve_clusters_penalised(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray) -> ClusterState:
    """Compute the state at a penalty lambda > 0."""
    return describe_cluster_state(equations, solve_cluster_equations(equations, alpha, lam), alpha, lam)


def _solve_clusters_unpenalised(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray) -> ClusterState:
    """Compute the state without a penalty, where the training loss stays above 0."""
    nearby = solve_cluster_equations(equations, alpha, lam + CLUSTER_ZERO_LIMIT_START_LAMBDA)
    point = PenaltyPoint(lam - np.inf, np.full_like(lam, equations.intercept))
    return describe_cluster_state(equations, run_newton(equations, nearby.x, alpha, point), alpha, lam)


def _solve_clusters_interpolating(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray) -> ClusterState:
    """Compute the state on two clusters in the limit of a vanishing penalty, where students fit all examples."""
    limit_loss = find_minimiser_interval(equations.loss)
    if limit_loss is None:
        return make_nan_state(len(alpha))
    nearby = solve_cluster_equations(equations, alpha, lam + CLUSTER_ZERO_LIMIT_START_LAMBDA)
    x, point = nearby.x, PenaltyPoint(0 * lam, np.full_like(lam, equations.intercept))
    x[2] += np.log(CLUSTER_ZERO_LIMIT_START_LAMBDA)
    limit_equations = replace(equations, loss=limit_loss)
    state = describe_cluster_state(
        limit_equations, run_newton(limit_equations, x, alpha, point), alpha, lam + 1, equations.loss
    )
    return state._replace(V=np.where(np.isnan(state.V), np.nan, np.inf))


def describe_cluster_state(
    equations: ClusterEquations,
    solution: SaddlePointSolution,
    alpha: np.ndarray,
    lam: np.ndarray,
    reported_loss: Loss | None = None,
) -> ClusterState:
    """Compute the order parameters and errors on two clusters from a solution of the equations.

    Parameters
    ----------
    equations, solution
        The equations and their solution.
    alpha, lam
        Examples per weight, and strength of the penalty (batch,).
    reported_loss
        The loss to report, if it differs from the loss of the equations, as in a limit.
    """
    x = solution.x + np.where(solution.residual <= SOLUTION_RESIDUAL_TOL, 0.0, np.nan)
    loss, clusters = equations.loss, equations.clusters
    with np.errstate(all="ignore"):
        stabilities = equations.compute_stabilities(x)
        training = average_cluster_training_loss(loss, clusters, stabilities, reported_loss or loss)
        length = _compute_weight_length(
            clusters, average_over_clusters(loss, clusters, stabilities).values, stabilities.V, alpha, lam
        )
        error_rate = _compute_generalization_error(equations, x)
    m = np.exp(x[1] - x[0])
    return ClusterState(
        m,
        stabilities.Q,
        length,
        stabilities.V,
        equations.compute_intercept(x),
        solution.residual,
        training.loss,
        training.error,
        error_rate,
    )


def _compute_weight_length(
    clusters: TwoClusters, averages: np.ndarray, V: np.ndarray, alpha: np.ndarray, lam: np.ndarray
) -> np.ndarray:
    """Compute the length |w|/sqrt(N) of the weight vector that separates two clusters."""
    A, B, C, _ = averages
    _, omega, nu, t, ridge = (np.asarray(part)[..., None] for part in clusters)
    D = lam * ridge + alpha * A / V * omega
    square = (alpha * C / V) ** 2 * np.sum(t / D**2, axis=0) + alpha * B / V**2 * np.sum(nu * omega / D**2, axis=0)
    return np.sqrt(square)


def find_best_cluster_lambdas(
    loss: Loss, clusters: TwoClusters, alphas: np.ndarray, intercept: bool = False
) -> np.ndarray:
    """Find the penalty that minimises the generalization error at each alpha (batch,).

    The best lambda is 0 where the error decreases until the penalty vanishes (1e-10, the bound of the search, with an
    intercept). It is infinite where the error still decreases at lambda = 1e6, or is never smaller than the fraction of
    the rarer class.

    Parameters
    ----------
    loss
        A loss of stabilities.
    clusters
        The clusters.
    alphas
        Examples per weight (batch,).
    intercept
        True for students with an intercept, without a penalty.

    Examples
    --------
    >>> from statmech.convex.gaussian_clusters import GaussianClusters
    >>> from statmech.convex.losses import Logistic
    >>> find_best_cluster_lambdas(Logistic(), GaussianClusters().combine_with_modes(None), np.array([2.0]))
    array([inf])
    >>> clusters = GaussianClusters(positives=0.2).combine_with_modes(None)
    >>> find_best_cluster_lambdas(Logistic(), clusters, np.array([2.0]), intercept=True).round(3)
    array([0.175])
    """
    return search_best_cluster_lambdas(ClusterEquations(loss, clusters, intercept and not clusters.is_balanced), alphas)


def find_best_cluster_penalties(cells: Sequence[ClusterCell]) -> list[float]:
    """Find the best lambda of each cell with two clusters, where all cells have the same setting."""
    loss, clusters, intercept = cells[0].setting
    alphas = list(dict.fromkeys(cell.alpha for cell in cells))
    lambdas = find_best_cluster_lambdas(loss, clusters, np.array(alphas, float), intercept)
    best = dict(zip(alphas, lambdas.tolist(), strict=True))
    return [best[cell.alpha] for cell in cells]


def search_best_cluster_lambdas(equations: ClusterEquations, alpha: np.ndarray) -> np.ndarray:
    """Find the penalty that minimises the generalization error on two clusters at each alpha (batch,).

    Without an intercept the error decreases with the first unknown, whose derivative is known. With an intercept the
    error depends on all unknowns, and a scan over penalties is refined around its best point.

    Parameters
    ----------
    equations
        The equations of a loss and two clusters.
    alpha
        Examples per weight.
    """
    if not equations.intercept:
        return minimise_over_lambda(equations, alpha, 0.0, np.zeros(len(alpha), bool))
    full_kappa, elements = np.ones_like(alpha), np.arange(len(alpha))

    def follow_to_next(scan_point: ScanPoint, step: np.ndarray | float) -> ScanPoint:
        log_lam = np.clip(scan_point[0] + step, np.log(MIN_SEARCHED_LAMBDA), np.log(MAX_SEARCHED_LAMBDA))
        return log_lam, follow_solution(
            equations,
            alpha,
            scan_point[1],
            PenaltyPoint(scan_point[0], full_kappa),
            PenaltyPoint(log_lam, full_kappa),
            SCAN_RESIDUAL_TOL,
        )

    def compute_error_rates(scan_points: list[ScanPoint]) -> np.ndarray:
        error_rates = np.array([_compute_generalization_error(equations, solution.x) for _, solution in scan_points])
        return np.where(np.isnan(error_rates), np.inf, error_rates)

    log_lam = estimate_moderate_l1_log_lambda(equations, alpha)
    down, up = [(log_lam, solve_cluster_equations(equations, alpha, np.exp(log_lam)))], list[ScanPoint]()
    while np.any(down[-1][0] > np.log(MIN_SEARCHED_LAMBDA)):
        down.append(follow_to_next(down[-1], -CLUSTER_LOG_LAMBDA_SCAN_STEP))
    while not up or np.any(np.isfinite(up[-1][1].residual) & (up[-1][0] < np.log(MAX_SEARCHED_LAMBDA))):
        up.append(follow_to_next(up[-1] if up else down[0], CLUSTER_LOG_LAMBDA_SCAN_STEP))
    points, half_width = [*reversed(down), *up], CLUSTER_LOG_LAMBDA_SCAN_STEP
    while True:
        values = compute_error_rates(points)
        best_index = np.argmin(values, axis=0)
        best = select_scan_points(points, best_index, elements)
        if half_width <= CLUSTER_LOG_LAMBDA_TOL:
            break
        points = [
            follow_to_next(best, half_width * part) for part in np.linspace(-1, 1, NUM_SCAN_POINTS_PER_REFINEMENT)
        ]
        half_width *= 2 / (NUM_SCAN_POINTS_PER_REFINEMENT - 1)
    useless = values[best_index, elements] > equations.clusters.weights.min() - EQUAL_ERROR_TOL
    return np.where(useless, np.inf, np.exp(best[0]))


def _compute_generalization_error(equations: ClusterEquations, x: np.ndarray) -> np.ndarray:
    """Compute the generalization error from the unknowns x (k, batch)."""
    stabilities = equations.compute_stabilities(x)
    return equations.clusters.weights @ normal_cdf(-stabilities.means / stabilities.Q)


def compute_learnt_separation(clusters: TwoClusters, alpha: float) -> float:
    """Return the separation of two clusters that the Bayes-optimal learner reaches.

    Parameters
    ----------
    clusters : TwoClusters
        The clusters.
    alpha : float
        Number of examples per input dimension.
    """
    precision = (
        np.prod(clusters.centre_distances)
        * alpha
        * clusters.centre_powers
        / (clusters.shares * clusters.nonzero_variances)
    )
    return clusters.compute_separation(precision / (1 + precision))


def compute_best_plane_error(separation: float, positives: float) -> float:
    """Return the error of the best plane between two clusters of a given separation.

    Parameters
    ----------
    separation : float
        Half the distance between the mean fields of the clusters, in standard deviations.
    positives : float
        Fraction of the examples in one of the clusters.

    Examples
    --------
    >>> round(compute_best_plane_error(1.0, 0.5), 10), compute_best_plane_error(0.0, 0.3)
    (0.1586552539, 0.3)
    """
    weights = np.array([positives, 1 - positives])
    if separation == 0:
        return float(weights.min())
    shift = CLUSTER_LABELS * np.log(positives / (1 - positives)) / (2 * separation)
    return float(weights @ normal_cdf(-separation - shift))
