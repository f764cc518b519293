r"""Order-parameter equations of a student that learns two clusters online, in the limit N -> infinity.

An example of cluster y is normal with mean :math:`y\,s_y\,\mathbf d` and covariance :math:`\Sigma/N` (in the notation
:math:`\omega_a, \nu_a, t_a` of `statmech.convex.gaussian_clusters`). A step adds
:math:`f\mathbf x, f = \eta\,y\,g(\kappa, l)`, with the stability :math:`\kappa = yh/l` and the length
:math:`l = |\mathbf J|/\sqrt N`. In the directions of mode a the student's weights are :math:`\rho_aN\mathbf d_a` plus a
perpendicular part of squared length :math:`NP_a`. So yh is normal with mean :math:`s_ym` and deviation Q,

.. math:: m = \sum_at_a\rho_a, \qquad Q^2 = \sum_a\omega_a(t_a\rho_a^2 + P_a), \qquad
          l^2 = \sum_a(t_a\rho_a^2 + P_a),

and with three averages over both clusters (the second by Stein's lemma) and the weight decay :math:`\nu`,

.. math::
    c &= \eta\sum_y\pi_ys_y\langle g\rangle_y, \qquad E = \frac\eta Q\sum_y\pi_y\langle gz\rangle_y, \qquad
    F = \eta^2\sum_y\pi_y\langle g^2\rangle_y, \qquad z = \frac{yh - s_ym}Q, \\
    \dot\rho_a &= c + (\omega_aE - \nu)\,\rho_a, \qquad
    \dot P_a = 2\,(\omega_aE - \nu)\,P_a + \omega_a\nu_aF .

For the parts :math:`m_a = t_a\rho_a` and :math:`Q_a = \omega_a(t_a\rho_a^2 + P_a)` of m and :math:`Q^2` these are
:math:`\dot m_a = ct_a + \omega_aEm_a` and :math:`\dot Q_a = 2\omega_a(cm_a + EQ_a) + \omega_a^2\nu_aF`.
The error is :math:`\epsilon_g = \sum_y\pi_y\Phi(-s_ym/Q)`. We integrate :math:`\log l` and all other variables in units
of l, so the student may grow and shrink without bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from statmech.convex.gaussian_clusters import TwoClusters
from statmech.kinds.online_learning import OnlineCell
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, make_clipped_composite_rule, normal_cdf, normal_density
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.rules import Rule
from theory.numerics.stiff_and_linear_equations import integrate_stiff_equations
from theory.online.student_states import check_length_overflow, compute_clipped_length

ATOL = 1e-12


class ClusterTrajectory(NamedTuple):
    """Fields, length and error of a student at each time, as arrays (T,)."""

    m_field: np.ndarray
    length_field: np.ndarray
    length: np.ndarray
    eps_g: np.ndarray


class ClusterStepAverages(NamedTuple):
    """Averages c, E and F of the equations, including the learning rate."""

    signal: float
    slope: float
    noise: float


def compute_cluster_averages(
    rule: Rule, clusters: TwoClusters, m: float, Q: float, length: float
) -> ClusterStepAverages:
    """Compute the averages c, E and F of a learning step over examples of both clusters.

    The quadrature is split where the rule jumps or bends.

    Parameters
    ----------
    rule
        The learning rule.
    clusters
        The clusters.
    m, Q
        Mean (in units of s) and standard deviation of the stabilities, as multiples of the length.
    length
        Length of the weights.

    Examples
    --------
    >>> from statmech.convex.gaussian_clusters import GaussianClusters
    >>> from statmech.students.rules import Hebb
    >>> step = compute_cluster_averages(Hebb(), GaussianClusters(positives=0.2).combine_with_modes(None), 0.5, 1.0, 1.0)
    >>> round(step.signal, 12), round(step.noise, 12), abs(step.slope) < 1e-15
    (0.64, 1.0, True)
    """
    sums = np.zeros(3)
    edges = [float(edge) for edge in rule.edges(np.float64(length))]
    for cluster_weight, factor in zip(clusters.weights, clusters.centre_distances, strict=True):
        mean = factor * m
        z, weight = make_clipped_composite_rule(
            np.array([-GAUSSIAN_CUTOFF, 0.0, GAUSSIAN_CUTOFF, *((edge - mean) / Q for edge in edges)])
        )
        weight = cluster_weight * weight * normal_density(z)
        g = np.asarray(rule.g(mean + Q * z, np.float64(length)), float)
        sums += np.sum(weight * g * np.array([np.full_like(z, factor), z, g]), axis=1)
    signal, slope, noise = map(float, sums)
    return ClusterStepAverages(rule.eta * signal, rule.eta * slope / (Q * length), rule.eta**2 * noise)


class OnlineClusterEquations:
    """Rate equations of one cell and its clusters.

    The state is a vector of log l, rho/l (d,) and P/l^2 (d,).
    """

    def __init__(self, cell: OnlineCell, clusters: TwoClusters):
        self.cell = cell
        self.clusters = clusters

    @property
    def start(self) -> np.ndarray:
        """The initial state (1 + 2d,) of a student of two clusters."""
        (length,), (R,), _ = self.cell.start_order_parameters
        fractions, powers = self.clusters.shares, self.clusters.centre_powers
        rho = np.full(fractions.shape, R and R / np.sqrt(powers.sum()))
        return np.array([np.log(length), *rho, *((1 - R) * (1 + R) * fractions)])

    def compute_field_moments(self, rho: np.ndarray, perpendicular: np.ndarray) -> tuple[float, float]:
        """Return the mean m and deviation Q of the field, in the units of the state."""
        omega, powers = self.clusters.mode_variances, self.clusters.centre_powers
        return float(powers @ rho), float(np.sqrt(omega @ (powers * rho**2 + perpendicular)))

    def compute_noise_growth(self, F: float) -> np.ndarray:
        """Return the growth rates (d,) of the perpendicular parts due to the noise of single examples."""
        return self.clusters.mode_variances * self.clusters.shares * F

    def compute_rates(self, t: float, values: np.ndarray) -> np.ndarray:
        """Return the time derivative (1 + 2d,) of the state of a student that learns two clusters."""
        omega, powers = self.clusters.mode_variances, self.clusters.centre_powers
        length = float(compute_clipped_length(values[0]))
        rho, perpendicular = values[1:].reshape(2, -1)
        rule = self.cell.rule if self.cell.schedule is None else self.cell.get_rule_at(t)
        c, E, F = compute_cluster_averages(rule, self.clusters, *self.compute_field_moments(rho, perpendicular), length)
        pull = c / length + omega * E * rho
        spread = 2 * omega * E * perpendicular + self.compute_noise_growth(F) / length**2
        growth = (powers * rho) @ pull + spread.sum() / 2
        # the sum is 1 up to rounding errors, which would grow as a student shrinks
        growth /= powers @ rho**2 + perpendicular.sum()
        return np.array([growth - self.cell.decay, *(pull - growth * rho), *(spread - 2 * growth * perpendicular)])

    def compute_trajectory(self, times: np.ndarray) -> ClusterTrajectory:
        """Integrate the equations of a student of two clusters, and return its trajectory at given times (T,)."""
        start = self.start
        atol = np.array([ATOL, *np.full(self.clusters.shares.shape, ATOL), *(ATOL * self.clusters.shares)])
        values = integrate_stiff_equations(self.compute_rates, start, times, atol, self.cell.message_description)
        rho, perpendicular = np.split(values[:, 1:], 2, axis=1)
        units = np.sqrt(rho**2 @ self.clusters.centre_powers + perpendicular.sum(axis=1))  # 1 up to rounding
        log_length = values[:, 0] + np.log(units)
        check_length_overflow(log_length, self.cell.message_description)
        m, Q = np.array([self.compute_field_moments(*state) for state in zip(rho, perpendicular, strict=True)]).T
        wrong = self.clusters.weights @ normal_cdf(-np.outer(self.clusters.centre_distances, m / Q))
        scale = np.exp(values[:, 0])
        return ClusterTrajectory(m * scale, Q * scale, np.exp(log_length), wrong)


def solve_cells(cells: Iterable[tuple[OnlineCell, TwoClusters]], times: Iterable[float]) -> list[ClusterTrajectory]:
    """Solve each cell with its clusters, and return the trajectory of its student that learns online.

    Raises `SolverError` if the integration stops early, `DivergedStudentError` if a length leaves the floating-point
    range.
    """
    record_jax_use()
    with use_cpu_double_precision():  # a user-defined rule may use JAX
        return [
            OnlineClusterEquations(*cell_and_clusters).compute_trajectory(np.asarray(list(times), float))
            for cell_and_clusters in cells
        ]
