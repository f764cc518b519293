r"""The learner that minimises a convex loss of two Gaussian clusters, with an l2 penalty, for N -> infinity.

The fields of a student w, times the label, have the mean s m, with :math:`m = \mathbf w\cdot\mathbf d`, and the
deviation Q in each cluster (`statmech.convex.clusters`). With the averages of `theory.convex.cluster_averages`, the
hats

.. math:: \hat V = \alpha A/V, \qquad \hat q = \alpha B/V^2, \qquad \hat m = \alpha C/V,

and :math:`D_a = \lambda\rho_a + \hat V\omega_a`, of modes with variances :math:`\omega_a`, fractions :math:`\nu_a`
of the directions, powers :math:`t_a` and factors :math:`\rho_a` of the penalty,

.. math:: m = \hat m\sum_a\frac{t_a}{D_a}, \qquad
          Q^2 = \hat m^2\sum_a\frac{\omega_at_a}{D_a^2} + \hat q\sum_a\frac{\nu_a\omega_a^2}{D_a^2}, \qquad
          V = \sum_a\frac{\nu_a\omega_a}{D_a},

with E = 0 for an intercept, and :math:`\epsilon_g = \sum_y\pi_y\,\Phi(-\mu_y/Q)` (Mignacco et al. 2020; Loureiro,
Sicuro, Gerbelot, Pacco, Krzakala & Zdeborova 2021). The unknowns are :math:`\ln(Q/m)`, :math:`\ln Q` and :math:`\ln V`.
Without an intercept the error decreases with m/Q, as both s are positive. The best lambda then minimises the first
unknown.

Solutions are followed along lambda by Newton's method, as in `theory.convex.saddle_point`. An intercept is the fourth
unknown, as :math:`b/(1+Q)`, which stays finite when all lengths diverge. It is freed at a moderate lambda, since at a
large one a loss with a kink hardly determines it: the fourth equation is :math:`\kappa E/\sqrt B =
(1-\kappa)\,b/(1+Q)`, and :math:`\kappa` grows from 0 to 1. A loss with a kink can have its minimum at w = 0 and the
more frequent answer, such as the hinge loss for unequal clusters with a large overlap. Then the equations for the
logarithms have no solution, and the state is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from statmech.convex.clusters import LABELS, TwoClusters, interpolates_below
from statmech.convex.limits import smallest
from statmech.convex.losses import Loss
from statmech.numerics.gaussian import cumulative
from theory.convex.best_lambda import LARGEST, LEAST, LEVEL, ROUGH, Place, picked, sought
from theory.convex.cluster_averages import Stabilities, of_clusters, training_of_clusters
from theory.convex.saddle_point import SOLVED, Point, Solved, follow, healthy, newton, solve
from theory.convex.sides import Linearised

SLIGHT = 1e-6  # Newton's method converges from here to the limit lambda = 0
STRIDE = np.log(4.0)  # in ln lambda
AMONG = 9
CLASS_STEPS = (6, 24)  # from equal classes to unequal classes; the second value is used if the first fails
CLOSE = 1e-4  # ends the search in ln lambda; the error changes with the square of this distance
Averages = tuple[np.ndarray, np.ndarray]  # A, B, C and E (4, batch), and their derivatives (4, k, batch)


@dataclass(frozen=True, eq=False)
class ClusterEquations:
    """The equations of a loss of stabilities. The `l1_fraction` of a point is kappa, which frees the intercept."""

    loss: Loss
    clusters: TwoClusters
    intercept: bool = False

    def linearised(self, x: np.ndarray, alpha: np.ndarray, at: Point) -> Linearised:
        """Return residuals and derivatives at x (k, batch)."""
        with np.errstate(all="ignore"):  # NaN after too long a step, which is taken back
            averages = self._averages(x)
            side, slopes = self._sides(averages, x, alpha, np.exp(at.log_lam))
            F, J = side.values - x[:3], slopes - np.eye(3, len(x))[..., None]
            if not self.intercept:
                return Linearised(F, J, side.by_lam)
            intercept_residual, intercept_slopes = self._freed(averages, x, at.l1_fraction)
            zeros = np.zeros_like(alpha)
            return Linearised(
                np.array([*F, intercept_residual]),
                np.concatenate([J, intercept_slopes[None]]),
                np.array([*side.by_lam, zeros]),
            )

    def side(self, hats: Hats, lam: np.ndarray) -> Side:
        """Solve the equations of the weights under the penalty."""
        return side_of(self.clusters, hats, lam)

    @property
    def size(self) -> float:
        """Scale of the penalty: students follow Hebb's rule if lambda is much larger."""
        return float(np.max(self.clusters.variances / self.clusters.ridge)) + float(np.sum(self.clusters.powers))

    def _sides(self, averages: Averages, x: np.ndarray, alpha: np.ndarray, lam: np.ndarray) -> tuple[Side, np.ndarray]:
        """Solve the equations of the weights, and return also their derivatives (3, k, batch) in the unknowns."""
        (A, B, C, _), by_x = averages
        V = np.exp(x[2])
        last = np.eye(len(x))[2][:, None]
        hats = Hats(alpha * A / V, alpha * B / V**2, alpha * C / V)
        side = self.side(hats, lam)
        log_m, log_q = by_x[2] / C - last, by_x[1] / B - 2 * last
        V_slopes = alpha / V * (by_x[0] - A * last)
        return side, side.by_m[:, None] * log_m + side.by_q[:, None] * log_q + side.by_V[:, None] * V_slopes

    def _freed(self, averages: Averages, x: np.ndarray, kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residual of the intercept's equation, and its derivatives (k, batch) in the unknowns."""
        (_, B, _, E), by_x = averages
        offset = np.eye(len(x))[3][:, None]
        slopes = (by_x[3] - 0.5 * E / B * by_x[1]) / np.sqrt(B)
        return kappa * E / np.sqrt(B) - (1 - kappa) * x[3], kappa * slopes - (1 - kappa) * offset

    def _averages(self, x: np.ndarray) -> Averages:
        """Return A, B, C and E (4, batch), and their derivatives (4, k, batch) in the unknowns."""
        values, (m_, b_, Q_, V_) = self._of(x)
        m, Q = np.exp(x[1] - x[0]), np.exp(x[1])
        by_x = [-m * m_, m * m_ + Q_, V_]
        if self.intercept:
            by_x = [by_x[0], by_x[1] + Q * x[3] * b_, V_, (1 + Q) * b_]
        return values, np.stack(by_x, axis=1)

    def _of(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A, B, C and E, and their derivatives (variable, average, batch) in m, b, ln Q and ln V."""
        values, slopes = of_clusters(self.loss, self.clusters, self.stabilities(x))
        return values, np.moveaxis(slopes, 1, 0)

    def stabilities(self, x: np.ndarray) -> Stabilities:
        """Return the distribution of the stabilities of fresh examples at unknowns x (k, batch)."""
        means = self.clusters.factors[:, None] * np.exp(x[1] - x[0]) + LABELS[:, None] * self.offset(x)
        return Stabilities(means, np.exp(x[1]), np.exp(x[2]))

    def offset(self, x: np.ndarray) -> np.ndarray:
        """Return the intercept b at unknowns x (k, batch)."""
        return (1 + np.exp(x[1])) * x[3] if self.intercept else np.zeros_like(x[0])

    @cached_property
    def force(self) -> float:
        """Scale of l' before training."""
        return float(np.abs(self.loss.slope(np.zeros(1)))[0]) or 1.0

    def start(self, alpha: np.ndarray, log_lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the unknowns of Hebb's rule, and a ln lambda that makes them an approximate solution.

        This is the given `log_lam` or a larger value.
        """
        slope, bend = self.force, float(self.loss.curvature(np.zeros(1))[0])
        scale = slope * (np.sqrt(alpha * (1 + alpha)) + 1) + bend * alpha
        log_lam = np.maximum(log_lam, np.log(3 * self.size * (scale + 1 + alpha)))
        signal = float(self.clusters.weights @ self.clusters.factors)
        hats = Hats(0 * alpha, alpha * slope**2, alpha * slope * signal)
        x = self.side(hats, np.exp(log_lam)).values
        return (np.array([*x, 0 * alpha]) if self.intercept else x), log_lam


class Hats(NamedTuple):
    """The hats V^, q^ and m^ (batch,): the conjugate order parameters."""

    V: np.ndarray
    q: np.ndarray
    m: np.ndarray


class Side(NamedTuple):
    """ln(Q/m), ln Q and ln V (3, batch), and their derivatives in ln m^, ln q^, V^ and ln lambda."""

    values: np.ndarray
    by_m: np.ndarray
    by_q: np.ndarray
    by_V: np.ndarray
    by_lam: np.ndarray


def side_of(clusters: TwoClusters, hats: Hats, lam: np.ndarray) -> Side:
    """Compute the unknowns from the hats under an l2 penalty.

    Parameters
    ----------
    clusters
        The clusters.
    hats
        The hats (batch,).
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
        """Return the derivatives in a parameter that changes D by `change`."""
        part = change / D
        m = -np.sum(m_parts * part, axis=0) / S
        Q = -(hats.m**2 * np.sum(centre * part, axis=0) + hats.q * np.sum(spread * part, axis=0)) / Q2
        return np.array([Q - m, Q, -np.sum(response * part, axis=0) / R])

    zeros = np.zeros_like(Q2)
    return Side(
        np.array([log_Q - np.log(hats.m * S), log_Q, np.log(R)]),
        np.array([of_m / Q2 - 1, of_m / Q2, zeros]),
        np.array([0.5 * of_q / Q2, 0.5 * of_q / Q2, zeros]),
        differentiate(omega),
        differentiate(pull),
    )


class ClusterState(NamedTuple):
    """The state of learners, arrays (batch,), NaN where the equations have no solution."""

    m_field: np.ndarray
    length_field: np.ndarray
    length: np.ndarray
    V: np.ndarray
    intercept: np.ndarray
    residual: np.ndarray
    train_loss: np.ndarray
    eps_t: np.ndarray
    eps_g: np.ndarray


def unknown_state(lanes: int) -> ClusterState:
    """Return a state of NaN for a batch of learners."""
    return ClusterState(*(np.full(lanes, np.nan) for _ in ClusterState._fields))


def minimum(
    loss: Loss, clusters: TwoClusters, alpha: np.ndarray, lam: np.ndarray, intercept: bool = False
) -> ClusterState:
    """Solve for the minimum at each alpha and lambda.

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
    >>> from statmech.convex.clusters import GaussianClusters
    >>> from statmech.convex.losses import Logistic
    >>> one = minimum(Logistic(), GaussianClusters().among(None), np.array([2.0]), np.array([0.1]))
    >>> [float(value[0].round(9)) for value in (one.m_field, one.length_field, one.eps_g)]
    [1.375596026, 1.880254441, 0.232206069]
    """
    equations = ClusterEquations(loss, clusters, intercept and not clusters.balanced)  # equal clusters: b = 0
    state = unknown_state(len(alpha))
    ends = interpolates_below(loss, clusters, intercept) if np.any(lam == 0) else np.nan
    phases = (
        (lam > 0, _penalised),
        ((lam == 0) & (alpha < ends), _interpolating),
        ((lam == 0) & (alpha > ends), _bare),
    )
    for mask, phase in phases:
        elements = np.flatnonzero(mask)
        if len(elements):
            for values, part in zip(state, phase(equations, alpha[elements], lam[elements]), strict=True):
                values[elements] = part
    return state


Phase = Callable[[ClusterEquations, np.ndarray, np.ndarray], ClusterState]


def solve_clusters(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray) -> Solved:
    """Solve the equations at each alpha and lambda > 0 (batch,), NaN where no solution was found.

    If freeing the intercept fails, solutions are followed from classes of equal size, whose intercept is 0.

    Parameters
    ----------
    equations
        The equations of a loss and two clusters.
    alpha, lam
        Examples per weight, and strength of the penalty.
    """
    solution = solve(equations, alpha, lam, float(equations.intercept))
    for steps in CLASS_STEPS if equations.intercept else ():
        elements = np.flatnonzero(np.isnan(solution.residual))
        if len(elements):
            for values, part in zip(
                solution, _from_equal(equations, alpha[elements], lam[elements], steps), strict=True
            ):
                values[..., elements] = part
    return solution


def _from_equal(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray, steps: int) -> Solved:
    """Follow a solution from equal classes to the given classes, in equal steps of the logit of their fraction."""
    clusters, point = equations.clusters, Point(np.log(lam), np.ones_like(lam))
    fractions = 1 / (1 + (1 / clusters.positives - 1) ** np.linspace(0, 1, steps + 1))
    solution = solve(replace(equations, clusters=clusters._replace(positives=0.5)), alpha, lam, 1.0)
    for fraction in (*fractions[1:-1], clusters.positives):
        next_equations = replace(equations, clusters=clusters._replace(positives=float(fraction)))
        next_solution = newton(next_equations, solution.x, alpha, point)
        solution = Solved(*(part + np.where(next_solution.residual <= SOLVED, 0.0, np.nan) for part in next_solution))
    return solution


def _penalised(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray) -> ClusterState:
    """Solve at lambda > 0."""
    return described(equations, solve_clusters(equations, alpha, lam), alpha, lam)


def _bare(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray) -> ClusterState:
    """Solve without a penalty where the training loss cannot be made 0."""
    nearby = solve_clusters(equations, alpha, lam + SLIGHT)
    point = Point(lam - np.inf, np.full_like(lam, equations.intercept))
    return described(equations, newton(equations, nearby.x, alpha, point), alpha, lam)


def _interpolating(equations: ClusterEquations, alpha: np.ndarray, lam: np.ndarray) -> ClusterState:
    """Solve the limit of a vanishing penalty where students fit all examples."""
    limit_loss = smallest(equations.loss)
    if limit_loss is None:
        return unknown_state(len(alpha))
    nearby = solve_clusters(equations, alpha, lam + SLIGHT)
    x, point = nearby.x, Point(0 * lam, np.full_like(lam, equations.intercept))
    x[2] += np.log(SLIGHT)
    limit_equations = replace(equations, loss=limit_loss)
    state = described(limit_equations, newton(limit_equations, x, alpha, point), alpha, lam + 1, equations.loss)
    return state._replace(V=np.where(np.isnan(state.V), np.nan, np.inf))


def described(
    equations: ClusterEquations, solved: Solved, alpha: np.ndarray, lam: np.ndarray, value: Loss | None = None
) -> ClusterState:
    """Compute the state of learners from the solved unknowns.

    Parameters
    ----------
    equations, solved
        The equations and their solution.
    alpha, lam
        Examples per weight, and strength of the penalty (batch,).
    value
        The loss to report, if it differs from the loss of the equations, as in a limit.
    """
    x = solved.x + np.where(solved.residual <= SOLVED, 0.0, np.nan)
    loss, clusters = equations.loss, equations.clusters
    with np.errstate(all="ignore"):
        stabilities = equations.stabilities(x)
        training = training_of_clusters(loss, clusters, stabilities, value or loss)
        length = _length(clusters, of_clusters(loss, clusters, stabilities).values, stabilities.V, alpha, lam)
        error_rate = _error(equations, x)
    m = np.exp(x[1] - x[0])
    return ClusterState(
        m,
        stabilities.Q,
        length,
        stabilities.V,
        equations.offset(x),
        solved.residual,
        training.loss,
        training.error,
        error_rate,
    )


def _length(
    clusters: TwoClusters, averages: np.ndarray, V: np.ndarray, alpha: np.ndarray, lam: np.ndarray
) -> np.ndarray:
    """Return the length of the weights, |w|/sqrt(N)."""
    A, B, C, _ = averages
    _, omega, nu, t, ridge = (np.asarray(part)[..., None] for part in clusters)
    D = lam * ridge + alpha * A / V * omega
    square = (alpha * C / V) ** 2 * np.sum(t / D**2, axis=0) + alpha * B / V**2 * np.sum(nu * omega / D**2, axis=0)
    length: np.ndarray = np.sqrt(square)
    return length


def best_lambdas(loss: Loss, clusters: TwoClusters, alphas: np.ndarray, intercept: bool = False) -> np.ndarray:
    """Find the penalty of the smallest generalization error at each alpha (batch,).

    It is 0 where the error falls until the penalty vanishes (with an intercept the bound of the search, 1e-10). It is
    infinite where the error still falls at lambda = 1e6, or is never smaller than the fraction of the less frequent
    class.

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
    >>> from statmech.convex.clusters import GaussianClusters
    >>> from statmech.convex.losses import Logistic
    >>> best_lambdas(Logistic(), GaussianClusters().among(None), np.array([2.0]))
    array([inf])
    >>> best_lambdas(Logistic(), GaussianClusters(positives=0.2).among(None), np.array([2.0]), intercept=True).round(3)
    array([0.175])
    """
    return find_best_lambdas(ClusterEquations(loss, clusters, intercept and not clusters.balanced), alphas)


def find_best_lambdas(equations: ClusterEquations, alpha: np.ndarray) -> np.ndarray:
    """Find the penalty of the smallest error that these equations give at each alpha (batch,).

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
        return sought(equations, alpha, 0.0, np.zeros(len(alpha), bool))
    full_kappa, elements = np.ones_like(alpha), np.arange(len(alpha))

    def follow_to_next(place: Place, step: np.ndarray | float) -> Place:
        log_lam = np.clip(place[0] + step, np.log(LEAST), np.log(LARGEST))
        return log_lam, follow(
            equations, alpha, place[1], Point(place[0], full_kappa), Point(log_lam, full_kappa), ROUGH
        )

    def compute_error_rates(places: list[Place]) -> np.ndarray:
        error_rates = np.array([_error(equations, solution.x) for _, solution in places])
        return np.where(np.isnan(error_rates), np.inf, error_rates)

    log_lam = healthy(equations, alpha)
    down, up = [(log_lam, solve_clusters(equations, alpha, np.exp(log_lam)))], list[Place]()
    while np.any(down[-1][0] > np.log(LEAST)):
        down.append(follow_to_next(down[-1], -STRIDE))
    while not up or np.any(np.isfinite(up[-1][1].residual) & (up[-1][0] < np.log(LARGEST))):
        up.append(follow_to_next(up[-1] if up else down[0], STRIDE))
    points, half_width = [*reversed(down), *up], STRIDE
    while True:
        values = compute_error_rates(points)
        best_index = np.argmin(values, axis=0)
        best = picked(points, best_index, elements)
        if half_width <= CLOSE:
            break
        points = [follow_to_next(best, half_width * part) for part in np.linspace(-1, 1, AMONG)]
        half_width *= 2 / (AMONG - 1)
    useless = values[best_index, elements] > equations.clusters.weights.min() - LEVEL
    return np.where(useless, np.inf, np.exp(best[0]))


def _error(equations: ClusterEquations, x: np.ndarray) -> np.ndarray:
    """Return the generalization error at unknowns x (k, batch)."""
    stabilities = equations.stabilities(x)
    error_rate: np.ndarray = equations.clusters.weights @ cumulative(-stabilities.means / stabilities.Q)
    return error_rate
