r"""Gaussian averages: quadrature on panels between kinks, functions without cancellation, and the error function.

**Quadrature.** A learning rule jumps or bends at its kinks, and a quadrature across a jump does not converge
(Gauss-Hermite with 200 nodes still errs by 4e-4). `make_panel_rules` therefore cuts the line at given edges and puts a
Gauss-Legendre rule on each piece, where the integrand is smooth and the error decreases exponentially with the number
of nodes.

**Arrays.** Functions take NumPy or JAX arrays and return the same kind. JAX is not imported here.

**Error function.** In loops compiled by XLA, the error function and its derivative follow from a single exponential.
XLA computes :math:`\mathrm{erf}` in float64 from rational functions and an exponential, and the derivative from another
exponential. With :math:`E = e^{-x^2/2}` both follow from one exponential, which makes a step of a network of 2 + 2
units a quarter faster (`benchmarks/networks.py`; in float32 the step would be slower),

.. math:: \mathrm{erf}(x/\sqrt2) = \mathrm{sgn}(x)\,\big(1 - E\,Q(|x|)\big), \qquad
          Q(z) = e^{z^2/2}\,\mathrm{erfc}(z/\sqrt2),

where Q is smooth in z/(z + c) (Shepherd & Laframboise 1981, who expand :math:`(1+2u)e^{u^2}\mathrm{erfc}(u)`).
`ERFC_COEFFICIENTS` is a polynomial in :math:`s = a - b/(z + c)`, which is -1 at z = 0 and 1 at :math:`z = 4\sqrt2`,
:math:`c = 3.5\sqrt2`: its coefficients minimise the squared error at 600 Chebyshev nodes of s, weighted by
:math:`E + 0.001`. The absolute error of erf is at most 1e-15 everywhere: below x = 1e-3, fewer than 12 digits of erf
itself are correct.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

Array = Any  # a NumPy array, a JAX array or tracer, or a float; see `namespace`

NODES = 32  # per panel; doubling them changes no average of a shipped rule by more than 1e-12 (tested)
HAZARD_TAIL_CUTOFF = 8.0  # standard deviations: further left, the continued fraction is used
MIN_DIVISOR = 1e-200  # replaces divisors of 0 whose quotients do not matter
GAUSSIAN_CUTOFF = 9.5  # standard deviations: the probability outside is 2e-21


def get_array_module(x: Array) -> Any:
    """Return the array module of `x`: `numpy` or `jax.numpy`.

    >>> get_array_module(1.0).__name__
    'numpy'
    """
    return x.__array_namespace__() if hasattr(x, "__array_namespace__") else np


@cache
def get_legendre_rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights (nodes,) of the Gauss-Legendre rule on [0, 1].

    >>> x, w = get_legendre_rule(4)
    >>> round(float(w @ x**7), 12)
    0.125
    """
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, w / 2


def make_panel_rules(edges: Array, nodes: int = NODES) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights (p, ..., nodes) on the p panels between edges (p + 1, ...).

    Edges may coincide: an empty panel has weight 0. Where they decrease, the weights are negative.
    """
    x, w = get_legendre_rule(nodes)
    left, width = edges[:-1, ..., None], get_array_module(edges).diff(edges, axis=0)[..., None]
    return left + width * x, width * w


def make_composite_rule(edges: Array, nodes: int = NODES) -> tuple[Array, Array]:
    r"""Return nodes and weights of a composite Gauss-Legendre rule on panels between successive edges.

    .. math:: \int_{e_0}^{e_p} f(x)\,dx \approx \sum_{i=1}^p (e_i - e_{i-1})
              \sum_n w_n\, f(e_{i-1} + (e_i - e_{i-1})\,x_n)

    Parameters
    ----------
    edges : array (p + 1, ...)
        Edges of the p panels. They may coincide or decrease, see `make_panel_rules`.
    nodes : int
        Nodes per panel.

    Returns
    -------
    x, weight : arrays (..., p * nodes)

    Examples
    --------
    >>> x, weight = make_composite_rule(np.array([0.0, 1.0, 4.0]), nodes=8)
    >>> round(float(weight @ abs(x - 1)), 12)                   # exact, though |x - 1| bends at 1
    5.0
    """
    x, weight = (get_array_module(edges).moveaxis(part, 0, -2) for part in make_panel_rules(edges, nodes))
    return x.reshape(*x.shape[:-2], -1), weight.reshape(*x.shape[:-2], -1)


def make_clipped_composite_rule(edges: Array, nodes: int = NODES) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights for Gaussian averages, on the line cut at the edges.

    Edges are clipped to the range of `GAUSSIAN_CUTOFF` standard deviations and sorted, and may coincide. The caller
    fixes their number, so that the quadrature compiles once for all values of the edges.

    Parameters
    ----------
    edges : array (p + 1,)
        Ends of the line and the kinks of the integrand, in any order.
    nodes : int
        Nodes per panel.

    Returns
    -------
    x, weight : arrays (p * nodes,)

    Examples
    --------
    >>> x, weight = make_clipped_composite_rule(np.array([-2.0, 0.3, 5.0]))
    >>> round(float(weight @ abs(x - 0.3)), 12)          # exact, though |x - 0.3| bends at 0.3
    13.69
    """
    xp = get_array_module(edges)
    return make_composite_rule(xp.sort(xp.clip(edges, -GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF)), nodes)


def normal_density(x: Array) -> Array:
    r"""Return the standard normal density :math:`\varphi(x) = e^{-x^2/2}/\sqrt{2\pi}`."""
    return get_array_module(x).exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def normal_cdf(x: Array) -> Array:
    r"""Return the standard normal distribution function :math:`\Phi(x)`.

    >>> float(normal_cdf(1.0).round(6))
    0.841345
    """
    if get_array_module(x) is np:
        from scipy.special import ndtr
    else:
        from jax.scipy.special import ndtr
    return ndtr(1.0 * x)


def normal_quantile(probability: Array) -> Array:
    r"""Return the standard normal quantile, the inverse of :math:`\Phi`. It is minus infinity at probability 0.

    >>> float(normal_quantile(0.025).round(6))
    -1.959964
    """
    if get_array_module(probability) is np:
        from scipy.special import ndtri
    else:
        from jax.scipy.special import ndtri
    return ndtri(1.0 * probability)


def reversed_hazard(x: Array) -> Array:
    r"""Return :math:`\varphi(x)/\Phi(x)`, also in the far left tail, where both underflow and the ratio tends to -x.

    The relative error is below 1e-14 up to x = 8, and equals the error of the density at larger x.

    >>> [float(value.round(6)) for value in reversed_hazard(np.array([-1e8, -6.0, 0.0, 6.0]))]
    [100000000.0, 6.158483, 0.797885, 0.0]
    """
    xp = get_array_module(x)
    right = xp.maximum(x, -HAZARD_TAIL_CUTOFF)
    return xp.where(
        x < -HAZARD_TAIL_CUTOFF, _hazard_by_continued_fraction(x), normal_density(right) / normal_upper_tail(-right)
    )


def normal_upper_tail(x: Array) -> Array:
    r"""Return the upper tail probability :math:`\Phi(-x)`, in JAX in a sixth of the time of `normal_cdf`.

    >>> float(normal_upper_tail(1.0).round(6))
    0.158655
    """
    if get_array_module(x) is np:
        from scipy.special import erfc
    else:
        from jax.scipy.special import erfc
    return erfc(x / np.sqrt(2)) / 2


def mills_ratio(x: Array) -> Array:
    r"""Return the Mills ratio :math:`\Phi(-x)/\varphi(x)` for x up to 37, where both underflow.

    >>> float(mills_ratio(8.0).round(6))
    0.123132
    """
    return normal_upper_tail(x) / normal_density(x)


def reversed_hazard_excess(x: Array) -> Array:
    r"""Return :math:`x + \varphi(x)/\Phi(x)`, which tends to -1/x in the far left tail, where both terms cancel.

    >>> [float(value.round(6)) for value in 1e8 * reversed_hazard_excess(np.array([-1e8, -1e4]))]
    [1.0, 9999.9998]
    """
    return get_array_module(x).where(x < -HAZARD_TAIL_CUTOFF, _excess_by_continued_fraction(x), x + reversed_hazard(x))


def _hazard_by_continued_fraction(x: Array) -> Array:
    """Return the hazard in the far left tail by Laplace's continued fraction y + 1/(y + 2/(y + ...)) at y = -x."""
    return get_array_module(x).maximum(-1.0 * x, HAZARD_TAIL_CUTOFF) + _excess_by_continued_fraction(x)


def _excess_by_continued_fraction(x: Array) -> Array:
    """Return Laplace's continued fraction for the normal tail without its first term."""
    y = get_array_module(x).maximum(-1.0 * x, HAZARD_TAIL_CUTOFF)
    fraction = y
    for term in range(12, 1, -1):
        fraction = y + term / fraction
    return 1 / fraction


def step(x: Array) -> Array:
    r"""Return the step function :math:`\Theta(x)`, 1 where x > 0 and 0 elsewhere.

    >>> step(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 1.])
    """
    return (x > 0) * 1.0


def x_minus_sin(x: Array) -> Array:
    r"""Return :math:`x - \sin x` without cancellation at small x, where it is :math:`x^3/6`.

    The relative error is below 1e-14 for all x in [0, 2 pi]. The plain difference has no correct digit at x = 1e-6.

    >>> float(x_minus_sin(np.float64(1e-6)))
    1.666666666666...e-19
    """
    xp = get_array_module(x)
    small = xp.where(abs(x) < 1.0, x, 0.0)
    series, term = 0.0, small
    for k in range(1, 10):  # x^3/3! - x^5/5! + ...: nine terms have a relative error of 1e-17 at x = 1
        term = -term * small * small / ((2 * k) * (2 * k + 1))
        series = series - term
    return xp.where(abs(x) < 1.0, series, x - xp.sin(x))


def one_minus_cos(x: Array) -> Array:
    r"""Return :math:`1 - \cos x = 2\sin^2(x/2)`, without cancellation at small x."""
    return 2 * get_array_module(x).sin(x / 2) ** 2


def replace_zero(x: Array) -> Array:
    """Replace 0 by a tiny number, so that quotients whose values do not matter stay finite."""
    return get_array_module(x).where(abs(x) < MIN_DIVISOR, MIN_DIVISOR, x)


ERFC_COEFFICIENTS = (
    0.36313154401871983,
    -0.3541265192791533,
    0.18279351609143674,
    -0.07253365535598842,
    0.021915350896223283,
    -0.004817489410707664,
    0.0006697682805031861,
    -2.415772503686305e-05,
    -1.0590895718766021e-05,
    1.5972733607656497e-06,
    1.431629581449448e-07,
    -4.7998976349188907e-08,
    -2.884907164593114e-09,
    1.3090130790426425e-09,
    1.4329591386315307e-10,
)
A, B, C = 2.75, 13.125 * math.sqrt(2), 3.5 * math.sqrt(2)  # a, b and c


def scaled_erf_and_derivative(x: Array) -> tuple[Array, Array]:
    """Return erf(x / sqrt 2), with an absolute error of 1e-15, and its derivative.

    Parameters
    ----------
    x : array
        NumPy array or traced JAX array, in float64.

    Returns
    -------
    g, derivative : arrays
        Arrays of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> g, derivative = scaled_erf_and_derivative(np.array([0.0, 1.0, -40.0]))
    >>> g, derivative.round(8)
    (array([ 0.        ,  0.68268949, -1.        ]), array([0.79788456, 0.48394145, 0.        ]))
    """
    xp = get_array_module(x)
    exponential, s = xp.exp(-0.5 * x * x), A - B / (xp.abs(x) + C)
    total = ERFC_COEFFICIENTS[-1]
    for coefficient in ERFC_COEFFICIENTS[-2::-1]:
        total = total * s + coefficient
    return xp.sign(x) * (1 - exponential * total), math.sqrt(2 / math.pi) * exponential


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
