r"""Orthant probabilities: the probability that two, three or four normal variables are all positive.

For two and three variables they follow from the angles :math:`\theta_{ij} = \arccos\rho_{ij}` between the variables,

.. math:: P_2 = \frac{\pi-\theta_{12}}{2\pi}, \qquad P_3 = \frac{2\pi-\theta_{12}-\theta_{13}-\theta_{23}}{4\pi} .

**Four variables** have no closed form, but a single line integral (Plackett 1954). A normal density satisfies
:math:`\partial p/\partial\rho_{ij} = \partial^2p/\partial x_i\partial x_j`, so that

.. math:: \frac{\partial P_4}{\partial\rho_{ij}} = \langle\delta(x_i)\delta(x_j)\Theta(x_k)\Theta(x_l)\rangle
          = \frac{P_2(kl|ij)}{2\pi\sqrt{1-\rho_{ij}^2}}, \qquad P_2(kl|ij) = \frac{\pi-\psi_{kl|ij}}{2\pi},

with the angle :math:`\psi` of :math:`x_k, x_l` given :math:`x_i = x_j = 0`. On the path :math:`\rho_{1j}\to
t\rho_{1j}`, j = 2, 3, 4, the first variable is independent of the others at t = 0, where :math:`P_4 = P_3(234)/2`:

.. math:: P_4 = \tfrac12 P_3(234) + \sum_{j=2}^4\int_0^1 \frac{\rho_{1j}\,dt}{2\pi\sqrt{1-t^2\rho_{1j}^2}}\,
          \frac{\pi-\psi_{kl|1j}(t)}{2\pi} .

By the identities of Jacobi and Sylvester :math:`\tan\psi = \sqrt{D_4\,D_{ij}}/D_{ijk,ijl}` with the determinants of all
four variables, of i and j, and of the rows i, j, k and columns i, j, l. They are linear in :math:`t^2`: with
:math:`t = \cos\phi`, :math:`D(t) = D(0)\sin^2\phi + D(1)\cos^2\phi`, without cancellation. If the variables are nearly
dependent, :math:`1-r^2 = D_4/D_{234}\ll1`, the integrand varies on the scale :math:`\phi\sim\delta = \sqrt{1-r^2}`:
:math:`\phi = \delta\sinh s` keeps it analytic for :math:`|\mathrm{Im}\,s| < \pi/2`, and few Gauss-Legendre nodes in s
suffice for every :math:`\delta`.

**Degenerate covariances.** Where x_i and x_j coincide, :math:`\psi_{jl|i}` is undefined. The angles for (i, j) and
(j, i) are supplements of each other in every limit, so that setting both to :math:`\pi/2` gives the probability of the
other three. Where three coincide, the three angles add up to :math:`\pi`. A variable of variance 0 is never positive.

Covariances have their matrix indices first, C (n, n, ...), in NumPy or JAX.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from statmech.numerics.gaussian import Array, get_array_module, get_legendre_rule

NODES = 48  # errors below 4e-14 for delta > 1e-4, below 5e-9 otherwise (tested)
MIN_PATH_ANGULAR_SCALE = 1e-6  # smaller values of delta change the integral by delta^2 only
COINCIDENT_SINE2_TOL = 4e-15  # squared sine of the angle between variables that coincide up to rounding
DETERMINANT_TOL = 1e-12  # smaller determinants of three rows count as 0
SINE_60_DEGREES = np.sqrt(3) / 2


def has_positive_variances(C: Array) -> Array:
    """Return 1 where all variances of C (n, n, ...) are positive, else 0.

    >>> float(has_positive_variances(np.diag([1.0, 0.0])))
    0.0
    """
    xp = get_array_module(C)
    return xp.prod(xp.stack([(C[i, i] > 0) * 1.0 for i in range(len(C))]), axis=0)


def safe_sqrt(x: Array) -> Array:
    """Return the square root, and 0 for negative x, where the derivative is also 0.

    >>> safe_sqrt(np.array([-1.0, 4.0]))
    array([0., 2.])
    """
    xp = get_array_module(x)
    return xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), 0.0)


def safe_ratio(numerator: Array, denominator: Array) -> Array:
    """Return the quotient, and 0 where the denominator is not positive.

    >>> safe_ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    xp = get_array_module(denominator)
    return xp.where(denominator > 0, numerator / xp.where(denominator > 0, denominator, 1.0), 0.0)


def pair_determinant(C: Array, i: int, j: int) -> Array:
    r"""Return :math:`C_{ii}C_{jj}-C_{ij}^2`, at least 0, and exactly 0 where the fields are parallel up to rounding.

    With :math:`c = |C_{ij}|` it is :math:`c\,(a+b) + ab`, where a and b are the variances minus c.

    >>> C = np.full((2, 2), 0.1)
    >>> float(pair_determinant(C, 0, 1))
    0.0
    """
    xp = get_array_module(C)
    c = abs(C[i, j])
    a, b = C[i, i] - c, C[j, j] - c
    result = c * (a + b) + a * b
    return xp.where(result > COINCIDENT_SINE2_TOL * C[i, i] * C[j, j], result, 0.0)


def pair_angle(C: Array, i: int, j: int) -> Array:
    r"""Return the angle :math:`\theta_{ij}` between two of the variables, from 0 to :math:`\pi`.

    >>> float(pair_angle(np.array([[1.0, 0.5], [0.5, 1.0]]), 0, 1) / np.pi)
    0.333333...
    """
    return angle_from_sine_cosine(safe_sqrt(pair_determinant(C, i, j)), C[i, j])


def angle_from_sine_cosine(sine: Array, cosine: Array) -> Array:
    """Return the angle from its sine and cosine times a common factor, or pi/2 where both are 0.

    >>> float(angle_from_sine_cosine(0.0, -2.0) / np.pi)
    1.0
    """
    xp = get_array_module(sine)
    is_undefined = (sine == 0) & (cosine == 0)  # arctan2 has no derivative there
    return np.pi / 2 - xp.arctan2(cosine, xp.where(is_undefined, 1.0, sine))


def orthant_probability_2(C: Array) -> Array:
    """Return the probability that two normal variables with covariances C (2, 2, ...) are positive.

    >>> float(orthant_probability_2(np.eye(2)))
    0.25
    """
    return has_positive_variances(C) * (np.pi - pair_angle(C, 0, 1)) / (2 * np.pi)


def orthant_probability_3(C: Array) -> Array:
    """Return the probability that three normal variables with covariances C (3, 3, ...) are positive.

    >>> float(orthant_probability_3(np.eye(3)))
    0.125
    """
    total = pair_angle(C, 0, 1) + pair_angle(C, 0, 2) + pair_angle(C, 1, 2)
    return has_positive_variances(C) * (2 * np.pi - total) / (4 * np.pi)


def orthant_probability_4(C: Array) -> Array:
    """Return the probability that four normal variables with covariances C (4, 4, ...) are positive.

    Parameters
    ----------
    C : array (4, 4, ...)
        Covariances, which may be singular.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> C = (np.eye(4) + 1) / 2                          # any correlations 1/2: 1/(n + 1)
    >>> round(float(orthant_probability_4(C)), 14)
    0.2
    """
    return has_positive_variances(C) * Correlations(C).compute_orthant_probability()


class Correlations:
    """Correlations of three or four normal variables, and the angles between two variables given one or two others.

    >>> variables = Correlations((np.eye(4) + 1) / 2)
    >>> (
    ...     round(float(variables.angle_given_one(0, 1, 2) / np.pi), 14),
    ...     round(float(variables.angle_given_two(0, 1, 2, 3)), 14)
    ... )
    (0.39182655203061, 1.31811607165282)
    """

    def __init__(self, C: Array):
        xp = get_array_module(C)
        n = len(C)
        self.cosine = {(i, j): safe_ratio(C[i, j], safe_sqrt(C[i, i] * C[j, j])) for i in range(n) for j in range(n)}
        self.squared_sines = {pair: xp.maximum((1 - abs(r)) * (1 + abs(r)), 0.0) for pair, r in self.cosine.items()}
        pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
        self.coincident = {
            pair: (self.squared_sines[pair] < COINCIDENT_SINE2_TOL) & (abs(self.cosine[pair]) > 0.5) for pair in pairs
        }
        self.xp = xp
        self.all = self._compute_determinant_4() if n == 4 else None

    def _has_no_coincident_pair(self, first: Iterable[int], second: Iterable[int]) -> Array:
        """Return 1 where no variable of the first group is parallel to one of the second group, else 0."""
        pairs = [(i, j) for i in first for j in second if i != j]
        return self.xp.prod(self.xp.stack([1.0 - self.coincident[pair] for pair in pairs]), axis=0)

    def _compute_covariance_given(self, i: int, k: int, l: int) -> Array:
        """Return the covariance of variables k and l given variable i."""
        return self._has_no_coincident_pair((i,), (k, l)) * (self.cosine[k, l] - self.cosine[i, k] * self.cosine[i, l])

    def _compute_determinant_3(self, i: int, j: int, k: int) -> Array:
        """Return the correlation determinant of three variables."""
        product = self.squared_sines[i, j] * self.squared_sines[i, k] - self._compute_covariance_given(i, j, k) ** 2
        return self._has_no_coincident_pair((i, j, k), (i, j, k)) * self.xp.maximum(product, 0.0)

    def _compute_determinant_4(self) -> Array:
        """Return the correlation determinant of an orthant's four variables, by elimination with the largest pivot.

        The error is the error of one conditional variance, not of the square of a variance where two pairs nearly
        coincide.
        """
        xp = self.xp
        rest = {(k, l): self.cosine[k, l] - self.cosine[0, k] * self.cosine[0, l] for k in (1, 2, 3) for l in (1, 2, 3)}
        variances = xp.stack([self.squared_sines[0, k] for k in (1, 2, 3)])
        largest = xp.max(variances, axis=0)
        result = self._compute_determinant_with_pivot(rest, 3, 1, 2)
        for k, l, m in ((2, 1, 3), (1, 2, 3)):
            result = xp.where(
                self.squared_sines[0, k] == largest, self._compute_determinant_with_pivot(rest, k, l, m), result
            )
        return self._has_no_coincident_pair(range(4), range(4)) * xp.maximum(result, 0.0)

    def _compute_determinant_with_pivot(self, rest: dict[tuple[int, int], Array], k: int, l: int, m: int) -> Array:
        """Return the determinant of the variables k, l, m given variable 0, by elimination of k."""
        pivot = self.squared_sines[0, k]
        variances = (
            self.squared_sines[0, l] - safe_ratio(rest[k, l] ** 2, pivot),
            self.squared_sines[0, m] - safe_ratio(rest[k, m] ** 2, pivot),
        )
        covariance = rest[l, m] - safe_ratio(rest[k, l] * rest[k, m], pivot)
        return pivot * (variances[0] * variances[1] - covariance**2)

    def _compute_minor(self, i: int, j: int, k: int, l: int) -> Array:
        """Return the minor of rows i, j, k and columns i, j, l: the scaled covariance of k and l given i and j."""
        r = self.cosine
        left, right = r[i, l] - r[i, j] * r[j, l], r[j, l] - r[i, j] * r[i, l]
        minor = r[k, l] * self.squared_sines[i, j] - r[i, k] * left - r[j, k] * right
        return self._has_no_coincident_pair((i, j), (k, l)) * self._has_no_coincident_pair((i,), (j,)) * minor

    def angle_given_one(self, i: int, k: int, l: int) -> Array:
        """Return the angle between variables k and l, given that variable i is 0."""
        return self._compute_conditional_angle(
            self._compute_determinant_3(i, k, l), self._compute_covariance_given(i, k, l), k, l
        )

    def angle_given_two(self, i: int, j: int, k: int, l: int) -> Array:
        """Return the angle between variables k and l, given that variables i and j are 0."""
        return self._compute_conditional_angle(
            self.all * self.squared_sines[i, j], self._compute_minor(i, j, k, l), k, l
        )

    def _compute_conditional_angle(self, sine2: Array, cosine: Array, k: int, l: int) -> Array:
        """Return the conditional angle between k and l from its squared sine and its cosine, times a common factor."""
        xp, alike, opposite = self.xp, self.coincident[k, l], self.cosine[k, l] < 0
        is_undefined = (sine2 <= 0) & (abs(cosine) < DETERMINANT_TOL)
        degenerate_cosine = xp.where(opposite, -0.5, 0.5) * alike  # three coinciding variables have angles of pi/3
        return angle_from_sine_cosine(
            xp.where(is_undefined, 1.0, safe_sqrt(sine2)),
            xp.where(is_undefined, degenerate_cosine / SINE_60_DEGREES, cosine),
        )

    def compute_orthant_probability(self) -> Array:
        """Return the probability that all four variables are positive."""
        xp, determinant_3 = self.xp, self._compute_determinant_3(1, 2, 3)
        phi, weight = self._make_path_quadrature(determinant_3)
        sin2, cos2 = xp.sin(phi) ** 2, xp.cos(phi) ** 2
        total = sum(
            angle_from_sine_cosine(safe_sqrt(self.squared_sines[pair]), self.cosine[pair])
            for pair in ((1, 2), (1, 3), (2, 3))
        )
        result = (2 * np.pi - total) / (8 * np.pi)
        for j, k, l in ((1, 2, 3), (2, 1, 3), (3, 1, 2)):
            pair = sin2 + cos2 * self.squared_sines[0, j]  # 1 - t^2 r^2
            covariance = self._compute_covariance_given(j, k, l) * sin2 + self._compute_minor(0, j, k, l) * cos2
            psi = self._compute_conditional_angle((determinant_3 * sin2 + self.all * cos2) * pair, covariance, k, l)
            speed = self.cosine[0, j] * safe_ratio(xp.sin(phi), safe_sqrt(pair))
            result = result + xp.sum(weight * speed * (np.pi - psi), axis=0) / (4 * np.pi**2)
        for i, j in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
            rest = [k for k in range(4) if k != j]
            pairs = [(rest[0], rest[1]), (rest[0], rest[2]), (rest[1], rest[2])]
            total_of_rest = sum(
                angle_from_sine_cosine(safe_sqrt(self.squared_sines[pair]), self.cosine[pair]) for pair in pairs
            )
            same = self.coincident[i, j] & (self.cosine[i, j] > 0)
            result = xp.where(same, (2 * np.pi - total_of_rest) / (4 * np.pi), result)
        return result

    def _make_path_quadrature(self, determinant_3: Array) -> tuple[Array, Array]:
        """Return path nodes and weights (NODES, ...) for phi in [0, pi/2], dense on the smallest angular scale."""
        xp = self.xp
        scales = [
            safe_ratio(self._compute_determinant_3(0, j, k), self.squared_sines[j, k])
            for j, k in ((1, 2), (1, 3), (2, 3))
        ]
        scales += [safe_ratio(self.all, determinant_3), *(self.squared_sines[0, j] for j in (1, 2, 3))]
        delta = xp.sqrt(
            xp.min(xp.stack([xp.where(scale < MIN_PATH_ANGULAR_SCALE**2, 1.0, scale) for scale in scales]), axis=0)
        )
        x, w = (part.reshape((-1,) + (1,) * delta.ndim) for part in get_legendre_rule(NODES))
        max_s = xp.arcsinh(np.pi / 2 / delta)
        return delta * xp.sinh(max_s * x), max_s * w * delta * xp.cosh(max_s * x)
