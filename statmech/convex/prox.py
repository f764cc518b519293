r"""The proximal point of a loss, found by Newton's method within a bracket.

.. math:: p = \mathrm{argmin}_p\, \frac{(p-h)^2}{2V} + \ell(p), \qquad F(p) = p - h + V\ell'(p) = 0 .

F rises with a slope of at least 1, and :math:`\ell'` does not decrease. For any q, the root therefore lies between q
and :math:`h - V\ell'(q)`: taking q = 0, h, every kink and every bend yields a bracket with a smooth loss inside. A kink
c is the root itself where :math:`c + V\ell'(c^-) \le h \le c + V\ell'(c^+)`.

Brackets may span 15 decades (the exponential loss at V = 1e12). Where a Newton step leaves the bracket, or is longer
than half of the previous step, the bracket is bisected on the arcsinh scale, which gives each decade the same weight.
"""

from __future__ import annotations

import numpy as np

from statmech.convex.losses import Loss

MAX_PROX_STEPS = 200  # bisection alone needs about 70 steps
MAX_FINITE_SLOPE = 1e300  # finite, so that the product with V = 0 is 0
MACHINE_EPSILON = float(np.finfo(float).eps)


def prox(loss: Loss, h: np.ndarray | float, V: np.ndarray | float, rtol: float = 0.0) -> np.ndarray:
    r"""Find the proximal point of a loss, :math:`p = \mathrm{argmin}_p\,(p-h)^2/(2V) + \ell(p)`.

    Parameters
    ----------
    loss : Loss
    h : array
        Finite fields, which broadcast with V.
    V : array
        Variances, at least 0.
    rtol : float
        Accepted error relative to h. At 0 only the rounding error remains.

    Returns
    -------
    array
        p, of the broadcast shape: exactly c where a kink c is the minimum. Elsewhere the error is about one
        rounding error of h and :math:`V\ell'`.

    Examples
    --------
    >>> from statmech.convex.losses import Hinge, Logistic
    >>> prox(Hinge(), np.array([-2.0, 0.5, 3.0]), 1.0)
    array([-1.,  1.,  3.])
    >>> p = prox(Logistic(), 0.0, 2.0)
    >>> bool(abs(p + 2.0 * Logistic().slope(p)) < 1e-15)
    True
    """
    h, V = np.broadcast_arrays(np.asarray(h, dtype=float), np.asarray(V, dtype=float))
    closed = loss.closed_prox(h, V)
    return find_prox_by_newton(loss, h, V, rtol) if closed is None else closed


def find_prox_by_newton(loss: Loss, h: np.ndarray, V: np.ndarray, rtol: float = 0.0) -> np.ndarray:
    """Find proximal points for h and V of the same shape by Newton's method, even if a closed form exists."""
    shape, h, V = h.shape, h.ravel(), V.ravel()
    with np.errstate(over="ignore", invalid="ignore"):  # slopes at large |x| may overflow
        low, high = _bracket_roots(loss, h, V)
        return _find_prox_roots(loss, h, V, low, high, rtol).reshape(shape)


def compute_prox_derivative(loss: Loss, p: np.ndarray, V: np.ndarray | float) -> np.ndarray:
    r"""Return the derivative of the proximal point with respect to h, :math:`1/(1 + V\ell''(p))`, and 0 at a kink.

    >>> from statmech.convex.losses import Hinge
    >>> compute_prox_derivative(Hinge(), np.array([-1.0, 1.0, 3.0]), 1.0)
    array([1., 0., 1.])
    """
    smooth: np.ndarray = 1 / (1 + V * loss.curvature(p))
    return np.where(np.isin(p, loss.kinks), 0.0, smooth) if loss.kinks else smooth


def compute_prox_force(loss: Loss, p: np.ndarray, h: np.ndarray, V: np.ndarray | float) -> np.ndarray:
    r"""Return :math:`(p - h)/V = -\ell'(p)` at the proximal point p, without loss of digits at small V.

    >>> from statmech.convex.losses import Hinge
    >>> compute_prox_force(Hinge(), np.array([-1.0, 1.0, 3.0]), np.array([-2.0, 0.5, 3.0]), 1.0)
    array([ 1. ,  0.5, -0. ])
    """
    if not loss.kinks:
        return -loss.slope(p)
    pinned = np.isin(p, loss.kinks) & (np.asarray(V) > 0)
    return np.where(pinned, (p - h) / np.where(pinned, V, 1.0), -loss.slope(p))


def _bracket_roots(loss: Loss, h: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bracket the roots, with coinciding bounds where a root is a kink."""
    low, high = np.full_like(h, -np.inf), np.full_like(h, np.inf)
    for q, left, right in _list_bracketing_points(loss, h):
        before, after = h - V * left, h - V * right  # bounds for roots on the left and on the right of q
        low = np.maximum(low, np.minimum(q, before))
        high = np.minimum(high, np.maximum(q, after))
    return low, high


def _list_bracketing_points(loss: Loss, h: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the bracketing points (0, the kinks, the bends and h), each with its one-sided slopes."""
    smooth, kinks = np.array([0.0, *loss.bends]), np.array(loss.kinks)
    slope, at_h = (
        loss.slope(smooth),
        np.clip(loss.slope(h), -MAX_FINITE_SLOPE, MAX_FINITE_SLOPE),
    )
    points = [*zip(smooth, slope, slope, strict=True), *zip(kinks, *loss.one_sided_slopes(kinks), strict=True)]
    return [*points, (h, at_h, at_h)]


def _find_prox_roots(
    loss: Loss, h: np.ndarray, V: np.ndarray, low: np.ndarray, high: np.ndarray, rtol: float
) -> np.ndarray:
    """Find the root in each bracket, independently of the other brackets."""
    p, previous_length = _bisect_arcsinh(low, high), np.full_like(low, np.inf)
    active = np.flatnonzero(low < high)
    for _ in range(MAX_PROX_STEPS):
        if not len(active):
            break
        converged, *updates = _take_newton_step(
            loss, rtol, *(array[active] for array in (h, V, p, previous_length, low, high))
        )
        for array, new in zip((p, previous_length, low, high), updates, strict=True):
            array[active] = new
        active = active[~converged]
    return p


def _take_newton_step(
    loss: Loss,
    rtol: float,
    h: np.ndarray,
    V: np.ndarray,
    p: np.ndarray,
    previous_length: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Return a mask of converged roots, the new points p, their step lengths and their brackets."""
    pull, rise = V * loss.slope(p), 1 + V * loss.curvature(p)
    F = p - h + pull
    low, high = np.where(F < 0, p, low), np.where(F > 0, p, high)
    newton = p - F / rise
    near = np.abs(newton - p) <= MACHINE_EPSILON * (np.abs(p) + (np.abs(h) + np.abs(pull)) / rise)
    near |= np.abs(F) <= rtol * np.abs(h)
    good = (low <= newton) & (newton <= high) & (2 * np.abs(newton - p) <= previous_length)
    new, halved = np.clip(newton, low, high), ~(good | near)
    if np.any(halved):
        new[halved] = _bisect_arcsinh(low[halved], high[halved])
    return near | (new == p), new, np.abs(new - p), low, high


def _bisect_arcsinh(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the midpoint of each bracket on the arcsinh scale."""
    middle = np.sinh(0.5 * (np.arcsinh(low) + np.arcsinh(high)))
    inside = (low < middle) & (middle < high)
    return np.where(inside, middle, 0.5 * (low + high))
