r"""Hitting times of one unit on the sphere, until it finds its teacher: distributions and limits.

The cosine R of a unit is first the cosine of a random direction, and then a diffusion with the drift A and the variance
D of `theory.networks.sphere_steps`. The mean and the mean square of the first time t with :math:`R > R_*` solve

.. math:: A m_1' + \tfrac12D m_1'' = -1, \qquad A m_2' + \tfrac12D m_2'' = -2m_1, \qquad m(R_*) = 0,

by collocation for :math:`G = -m'` panel by panel, which never forms :math:`e^{\int 2A/D}`. The left end is an entrance,
or for even exponents a mirror at R = 0. The survival probability solves the backward equation, on finite volumes
(Scharfetter & Gummel 1969) and with Talbot's inversion of its Laplace transform.

**Limits.** For the exponent :math:`k\ge3` and :math:`\eta = \eta_0N^{1-k/2}`, :math:`z\propto\sqrt N R` has the
universal equation

.. math:: dz = (az^{k-1} - z/2)\,d\tau + dW, \qquad \tau = \eta_0^2F\,t/N^{k-2}, \qquad
          a = \frac{C_k}{\eta_0F}\Big(\frac VF\Big)^{k/2-1}, \qquad z(0)\sim N(0, F/V),

and :math:`t/N^{k-2}` tends to its explosion time. For k = 2, with :math:`\lambda = \eta C_2 - \eta^2F/2`,

.. math:: t = \frac{\ln N - \ln\xi^2 - \ln(1 + \eta^2V/2\lambda)}{2\lambda} + c, \qquad \xi\sim N(0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from statmech.errors import ScenarioError
from statmech.kinds.fixed_length_network import BEST_RATE_KEYWORD, FixedLengthCell, FixedLengthNetwork
from statmech.numerics.gaussian import make_composite_rule, normal_density
from statmech.students.sphere_units import LearningTask
from theory.networks.sphere_steps import SearchEquations, compute_noise_at_zero

PANEL_NODES = 20
START_CUTOFF = 12.0  # standard deviations of the start
START_PANELS, PATH_PANELS = 72, 36  # within the cutoff of the start, and beyond
MAX_START_COSINE = 1 - 1e-9
UNIVERSAL_CUTOFF, UNIVERSAL_END, EXPLOSION_PANELS = 9.0, 1e4, 60
START_VOLUMES, PATH_VOLUMES = 2400, 1200
TALBOT_NODES = 32
MEAN_LOG_SQUARED_NORMAL = -np.euler_gamma - math.log(2)  # mean of ln(xi^2), xi ~ N(0, 1)
LOG_SQUARED_NORMAL_STD = math.pi / math.sqrt(2)
DEFAULT_THRESHOLD = 0.5  # for the best rate of records without a threshold
MAX_BARRIER = 600.0  # the mean time is above its exponential function
MIN_UNIVERSAL_A, MAX_UNIVERSAL_A = 1e-3, 10.0  # range of the search for the best rate
DriftAndVariance = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class PassageMoments:
    """Mean and mean square of the time to the right end, at nodes with quadrature weights, all of shape (n,)."""

    nodes: np.ndarray
    weights: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def average(self, density: np.ndarray) -> tuple[float, float]:
        """Return the mean and the mean square for starts with this density (n,), normalised here."""
        chance = self.weights * density / (self.weights @ density)
        return float(chance @ self.first), float(chance @ self.second)


def solve_passage_moments(compute_drift_and_variance: DriftAndVariance, edges: np.ndarray) -> PassageMoments:
    """Solve for mean and mean square of the time until a diffusion passes the last of these panel edges (p + 1,).

    Their derivatives vanish at the first edge.

    >>> brownian = lambda x: (0 * x, 1 + 0 * x)
    >>> solved = solve_passage_moments(brownian, np.linspace(0, 1, 5))
    >>> bool(np.allclose(solved.first, 1 - solved.nodes**2))
    True
    """
    nodes, weights, integrals = _make_collocation_rule()
    half_widths = np.diff(edges)[:, None] / 2
    points = edges[:-1, None] + half_widths * (1 + nodes)
    drift, variance = compute_drift_and_variance(points)
    decay, source = 2 * drift / variance, 2 / variance
    inverses = np.linalg.inv(np.eye(PANEL_NODES) + half_widths[..., None] * integrals * decay[:, None])

    def solve(weighted_source: np.ndarray) -> np.ndarray:
        """Return the solution with this source at all points (p, n)."""
        particular = np.einsum("pij,pj->pi", inverses, half_widths * (weighted_source @ integrals.T))
        homogeneous = inverses.sum(2)
        gained = half_widths[:, 0] * ((weighted_source - decay * particular) @ weights)
        factor = 1 - half_widths[:, 0] * ((decay * homogeneous) @ weights)
        G = np.zeros(len(points))
        for panel in range(len(points) - 1):
            G[panel + 1] = gained[panel] + factor[panel] * G[panel]
        slopes = particular + homogeneous * G[:, None]
        totals = half_widths[:, 0] * (slopes @ weights)
        remaining = np.cumsum(totals[::-1])[::-1]
        return remaining[:, None] - half_widths * (slopes @ integrals.T)

    first = solve(source)
    second = solve(2 * source * first)
    return PassageMoments(points.ravel(), (half_widths * weights).ravel(), first.ravel(), second.ravel())


@cache
def _make_collocation_rule() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights on [-1, 1], and the matrix of integrals from -1 to each node."""
    legendre = np.polynomial.legendre
    nodes, weights = legendre.leggauss(PANEL_NODES)
    antiderivatives = legendre.legint(np.eye(PANEL_NODES), lbnd=-1)
    integrals = legendre.legval(nodes, antiderivatives).T @ np.linalg.inv(legendre.legvander(nodes, PANEL_NODES - 1))
    return nodes, weights, integrals


@cache
def compute_explosion_time(k: int, a: float, start_variance: float = 1.0) -> tuple[float, float]:
    """Return the mean and the standard deviation of the explosion time of dz = (a z^(k-1) - z/2) dtau + dW.

    Parameters
    ----------
    k : int
        The exponent, at least 3.
    a : float
        The strength of the signal.
    start_variance : float
        The variance of the normal z at the start.

    Examples
    --------
    >>> round(compute_explosion_time(3, 1.0)[0], 10)
    4.4786397243
    """
    barrier_position = (1 / (2 * a)) ** (1 / (k - 2))
    if barrier_position**2 * (0.5 - 1 / k) > MAX_BARRIER:
        return math.inf, math.inf
    left = -UNIVERSAL_CUTOFF if k % 2 else 0.0
    edges = np.concatenate(
        [
            np.linspace(left, UNIVERSAL_CUTOFF, START_PANELS + 1),
            np.geomspace(UNIVERSAL_CUTOFF, UNIVERSAL_END, EXPLOSION_PANELS + 1)[1:],
        ]
    )
    moments = solve_passage_moments(lambda z: (a * z ** (k - 1) - z / 2, np.ones_like(z)), edges)
    rest = -2 / (k - 2) * math.log1p(-(UNIVERSAL_END ** (2 - k)) / (2 * a))  # without noise, from the end to infinity
    mean, second = moments.average(normal_density(moments.nodes / math.sqrt(start_variance)))
    return mean + rest, math.sqrt(second - mean**2)


@cache
def find_best_universal_strength(k: int, start_variance: float = 1.0) -> float:
    """Find the a that minimises a^2 times the mean explosion time: the rate of the fastest search.

    >>> round(find_best_universal_strength(3), 5)
    0.23428
    """
    from scipy.optimize import minimize_scalar  # slow to import

    return math.exp(
        minimize_scalar(
            lambda log_a: 2 * log_a + math.log(compute_explosion_time(k, math.exp(log_a), start_variance)[0]),
            bounds=(math.log(MIN_UNIVERSAL_A), math.log(MAX_UNIVERSAL_A)),
            method="bounded",
            options={"xatol": 1e-9},
        ).x
    )


@cache
def compute_best_rate(task: LearningTask, N: float, target: float) -> float:
    """Return the learning rate that finds the teacher fastest for large N.

    For k >= 3 it scales as N^(1-k/2). For k = 2 it maximises the growth rate, and for k = 1 it minimises the time
    without noise. It is NaN if R = 0 is a trap for k = 1.
    """
    k, (F, V) = task.exponent, compute_noise_at_zero(task)
    if not k:
        return math.nan
    C = task.signal_terms[k - 1]
    if k >= 3:
        a = find_best_universal_strength(k, F / V)
        return float(C / (a * F) * (V / F) ** (k / 2 - 1) * N ** (1 - k / 2))
    if k == 2:
        return float(C / F)
    from scipy.optimize import minimize_scalar  # slow to import

    equations = SearchEquations(task, 1.0, math.inf, 0.0, target)
    R = np.linspace(0.0, target, 400)[1:]
    C, F = equations.compute_moments(R)[:2]
    largest = float(np.min(2 * C / (R * F)))
    if largest <= 0:
        return math.nan  # R = 0 is a trap at every rate
    return float(
        minimize_scalar(
            lambda eta: _integrate_path(SearchEquations(task, eta, math.inf, 0.0, target)),
            bounds=(1e-3 * largest, 0.999 * largest),
            method="bounded",
        ).x
    )


def _integrate_path(equations: SearchEquations, rate: float = 0.0) -> float:
    """Return the time of the path without noise to the target, minus the time of growth at a constant rate."""
    R, weight = make_composite_rule(np.linspace(0.0, equations.right, PATH_PANELS + 1), PANEL_NODES)
    drift = equations.compute_drift_and_variance(R)[0]
    if drift.min() <= 0:
        return math.inf
    subtracted = 1 / (rate * R) if rate else 0.0
    return float(weight @ (1 / drift - subtracted))


@dataclass(frozen=True)
class HittingTime:
    """Time, in steps divided by N, until a unit on the sphere first passes a cosine with its teacher.

    Starts are random directions with a smaller cosine.

    Parameters
    ----------
    task : LearningTask
        The unit, its teacher, its error and noise.
    eta, N : float
        Learning rate and input dimension.
    target : float
        The cosine to be passed.
    """

    task: LearningTask
    eta: float
    N: int
    target: float

    @property
    def exponent(self) -> int:
        """Information exponent k, or 0 if nothing pulls R away from 0."""
        return self.task.exponent

    @property
    def signal(self) -> float:
        """Coefficient C_k of R^(k-1) in C."""
        return float(self.task.signal_terms[self.exponent - 1])

    @cached_property
    def noise(self) -> tuple[float, float]:
        """Averages F and V at R = 0."""
        return compute_noise_at_zero(self.task)

    @cached_property
    def equations(self) -> SearchEquations:
        """Drift and variance of R, from the cutoff of the start to the target."""
        cutoff = min(START_CUTOFF / math.sqrt(self.N), MAX_START_COSINE)
        return SearchEquations(self.task, self.eta, self.N, 0.0 if self.task.is_even else -cutoff, self.target)

    def _make_edges(self, start_count: int, path_count: int) -> np.ndarray:
        """Return edges of intervals from the start to the target, dense where runs start."""
        left, cutoff = self.equations.left, START_CUTOFF / math.sqrt(self.N)
        if cutoff >= self.target:
            return np.linspace(left, self.target, start_count + 1)
        path = np.geomspace(cutoff, self.target, path_count + 1)[1:]
        return np.concatenate([np.linspace(left, cutoff, start_count + 1), path])

    def _compute_start_density(self, R: np.ndarray) -> np.ndarray:
        """Return the density of R at the start, up to its normalisation."""
        return np.exp((self.N - 3) / 2 * np.log1p(-R * R))

    @cached_property
    def _mean_and_second_moment(self) -> tuple[float, float]:
        with np.errstate(all="ignore"):
            moments = solve_passage_moments(
                self.equations.compute_drift_and_variance, self._make_edges(START_PANELS, PATH_PANELS)
            )
            mean, second = moments.average(self._compute_start_density(moments.nodes))
        return (mean, second) if math.isfinite(mean) and mean > 0 else (math.inf, math.inf)

    @property
    def mean(self) -> float:
        """Mean time at finite N, or infinity if it is too large for a number."""
        return self._mean_and_second_moment[0]

    @property
    def std(self) -> float:
        """Standard deviation of the time at finite N."""
        mean, second = self._mean_and_second_moment
        return math.sqrt(second - mean**2) if second < math.inf else math.inf

    @cached_property
    def strength(self) -> float:
        """Strength a of the signal in the universal equation, for k >= 3."""
        k, C, (F, V) = self.exponent, self.signal, self.noise
        return C / (self.eta * self.N ** (k / 2 - 1) * F) * (V / F) ** (k / 2 - 1)

    @cached_property
    def limit(self) -> float:
        """Limit of the mean of t/N^(k-2) for k >= 3, of t - ln N/(2 lambda) for k = 2, of t for k = 1."""
        return self._limit_mean_and_std[0]

    @property
    def asymptote(self) -> float:
        """Mean time for large N: N^(k-2) times the limit for k >= 3, the limit plus ln(N)/(2 lambda) for k = 2."""
        if self.exponent == 2:
            return self.limit + math.log(self.N) / (2 * self.growth_rate)
        return float(self.limit * self.N ** max(self.exponent - 2, 0))

    @property
    def limit_std(self) -> float:
        """Standard deviation that belongs to `limit`."""
        return self._limit_mean_and_std[1]

    @cached_property
    def _limit_mean_and_std(self) -> tuple[float, float]:
        k, (F, V) = self.exponent, self.noise
        if k >= 3:
            mean, std = compute_explosion_time(k, self.strength, F / V)
            unit = (self.eta * self.N ** (k / 2 - 1)) ** 2 * F
            return mean / unit, std / unit
        path = SearchEquations(self.task, self.eta, math.inf, 0.0, self.target)
        if k <= 1:
            return _integrate_path(path), 0.0
        rate = self.growth_rate
        if rate <= 0:
            return math.inf, math.inf
        shift = _integrate_path(path, rate) + math.log(self.target) / rate
        amplitude = MEAN_LOG_SQUARED_NORMAL + math.log1p(self.eta**2 * V / (2 * rate))
        return shift - amplitude / (2 * rate), LOG_SQUARED_NORMAL_STD / (2 * rate)

    @property
    def growth_rate(self) -> float:
        """Growth rate lambda of small R, for k = 2."""
        return self.eta * self.signal - self.eta**2 * self.noise[0] / 2

    @cached_property
    def best_eta(self) -> float:
        """Learning rate that finds the teacher fastest for large N."""
        return compute_best_rate(self.task, self.N, self.target)

    def survival(self, t: float | np.ndarray) -> np.ndarray:
        """Return the probability that the target has not been passed by times t (...).

        >>> from statmech.students.label_teachers import make_wedge
        >>> from statmech.students.sphere_units import HermiteUnit
        >>> time = HittingTime(LearningTask(HermiteUnit(3), make_wedge()), 0.19274, 100, 0.5)
        >>> round(float(time.survival(time.mean)), 3)
        0.369
        """
        return invert_survival(*self._backward_equation, np.asarray(t, float))

    @cached_property
    def _backward_equation(self) -> tuple[np.ndarray, np.ndarray]:
        """Bands (3, n) of the generator on finite volumes, and probabilities (n,) of the start."""
        edges = self._make_edges(START_VOLUMES, PATH_VOLUMES)
        bands = make_generator_bands(self.equations.compute_drift_and_variance, edges)
        centers, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        chance = self._compute_start_density(centers) * widths
        return bands, chance / chance.sum()


def make_generator_bands(compute_drift_and_variance: DriftAndVariance, edges: np.ndarray) -> np.ndarray:
    """Return the bands (3, n) of the generator of a diffusion on n volumes, which is absorbed at the last edge.

    The rates between volumes follow Scharfetter and Gummel. The first edge is a mirror.
    """
    from scipy.special import exprel  # slow to import

    centers, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    distances = np.append(np.diff(centers), edges[-1] - centers[-1])
    drift, variance = compute_drift_and_variance(edges[1:])
    variance_steps = np.diff(compute_drift_and_variance(np.append(centers, edges[-1]))[1])
    peclet = (2 * drift * distances - variance_steps) / variance  # the rates discretise (D m')'/2, not D m''/2
    up, down = (variance / 2 / exprel(-sign * peclet) for sign in (1, -1))
    rate_up = up / (distances * widths)
    rate_down = np.append(0.0, down[:-1] / (distances[:-1] * widths[1:]))
    bands = np.zeros((3, len(centers)))
    bands[0, 1:] = rate_up[:-1]
    bands[1] = -(rate_up + rate_down)
    bands[2, :-1] = rate_down[1:]
    return bands


def invert_survival(bands: np.ndarray, chance: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the probability at times t (...) that a chain with this generator is not yet absorbed.

    Talbot's contour, as optimised by Dingfelder & Weideman (2015), has 32 nodes and an error near rounding.
    """
    from scipy.linalg import solve_banded  # slow to import

    theta = math.pi * (2 * np.arange(TALBOT_NODES // 2) + 1) / TALBOT_NODES
    cot = 1 / np.tan(0.6407 * theta)
    contour = TALBOT_NODES * (-0.6122 + 0.5017 * theta * cot + 0.2645j * theta)
    slope = TALBOT_NODES * (0.5017 * cot - 0.5017 * 0.6407 * theta / np.sin(0.6407 * theta) ** 2 + 0.2645j)
    survival = np.ones(t.shape)
    for index in np.ndindex(t.shape):
        if t[index] > 0:
            total = 0.0
            for z, dz in zip(contour / t[index], slope / t[index], strict=True):
                matrix = -bands.astype(complex)
                matrix[1] += z
                transform = chance @ solve_banded((1, 1), matrix, np.ones(bands.shape[1]))
                total += 2 / TALBOT_NODES * (np.exp(z * t[index]) * dz * transform).imag
            survival[index] = total
    return survival


def get_cell_hitting_time(cell: FixedLengthCell) -> HittingTime:
    """Return the hitting time of a cell with a threshold, cached."""
    assert cell.target is not None  # true for every cell with a threshold
    eta = get_cell_best_rate(cell) if cell.eta == BEST_RATE_KEYWORD else cell.rate
    return _make_hitting_time(cell.task, eta, cell.N, cell.target)


def get_cell_best_rate(cell: FixedLengthCell) -> float:
    """Return the learning rate of the fastest search, for the threshold of a cell or without one for R = 1/2."""
    return compute_best_rate(cell.task, cell.N, DEFAULT_THRESHOLD if cell.target is None else cell.target)


def get_predicted_time(cell: FixedLengthCell) -> HittingTime | None:
    """Return the hitting time of a cell, or None without a threshold or without theory."""
    return None if cell.target is None or cell.task.trial is not None else get_cell_hitting_time(cell)


_make_hitting_time = cache(HittingTime)


def hitting_time(network: FixedLengthNetwork) -> HittingTime:
    """Predict the time until a unit of fixed length passes the threshold of its config.

    Parameters
    ----------
    network : FixedLengthNetwork
        A network with a threshold and a single value of every key.

    Returns
    -------
    HittingTime
        `mean` and `std` in units of t, `survival(t)`, the `limit` for large N, the `exponent` and `best_eta`.

    Raises
    ------
    ScenarioError
        For axes, without `until`, with trial steps, and for other kinds of scenarios.

    Examples
    --------
    >>> from statmech import FixedLengthNetwork
    >>> network = FixedLengthNetwork(
    ...     network={"hermite": 3}, length="fixed", teacher="wedge", flip=0.1, eta=0.1, N=100, until={"R": 0.5}
    ... )
    >>> time = hitting_time(network)
    >>> round(time.mean, 7), round(time.std, 7), time.exponent
    (441.4885394, 396.0968049, 3)
    """
    if "until" not in network.list_keys():
        raise ScenarioError([((), "hitting times are predicted for networks with `length: fixed` only")])
    if network.shape:
        axis = next(iter(network.shape))
        raise ScenarioError([((axis,), "hitting times are predicted for single values of all keys")])
    if network.unsolved:
        raise ScenarioError([((), network.unsolved)])
    return get_cell_hitting_time(next(iter(network.cells())))
