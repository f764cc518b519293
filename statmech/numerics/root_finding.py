r"""Zeros of elementwise functions in brackets with a change of sign, by Chandrupatla's method.

The next point divides the bracket :math:`[x_1, x_2]` where the parabola in f through its ends and the former end
:math:`x_3` is 0, if that parabola is monotonic, otherwise in the middle (T. R. Chandrupatla, Adv. Eng. Software 28, 145
(1997)). The steps and tolerances equal `scipy.optimize.elementwise.find_root` bit for bit: this module exists because
`scipy.optimize` takes longer to import than small theory takes to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array

ZERO_VALUE_TOL, BRACKET_RTOL = np.finfo(float).smallest_normal, 4 * np.finfo(float).eps
MAX_BRACKET_STEPS = 2046  # enough to bisect the range of all floats


class ZeroSearchResult(NamedTuple):
    """Zeros x, with NaN where the search failed, and a mask of successful searches."""

    x: np.ndarray
    success: np.ndarray


class Bracket(NamedTuple):
    """Latest point, opposite end and former end of n brackets, with their values and the next division `t`."""

    x1: np.ndarray
    f1: np.ndarray
    x2: np.ndarray
    f2: np.ndarray
    x3: np.ndarray
    f3: np.ndarray
    t: np.ndarray


def find_zeros(function: Callable[..., Any], low: Array, high: Array, args: tuple[Array, ...] = ()) -> ZeroSearchResult:
    """Find the zeros of a function between two points.

    Parameters
    ----------
    function
        Function of x and `args`, elementwise: each value depends only on its own elements.
    low, high, args : array_like
        Ends and further arguments, which broadcast.

    Returns
    -------
    Zeros
        Arrays of the broadcast shape, accurate up to rounding.

    Examples
    --------
    >>> found = find_zeros(lambda x, c: x**3 - c, 0.0, 3.0, (np.array([8.0, 27.0, 64.0]),))
    >>> found.x.round(12), found.success
    (array([ 2.,  3., nan]), array([ True,  True, False]))
    """
    x1, x2, *rest = np.broadcast_arrays(*(np.asarray(array, float) for array in (low, high, *args)))
    shape, ends = x1.shape, [np.asarray(function(x, *rest), float).ravel() for x in (x1, x2)]
    x, success, active = np.full(x1.size, np.nan), np.zeros(x1.size, bool), np.arange(x1.size)
    arguments = [array.ravel() for array in rest]
    x1, x2, half = x1.ravel(), x2.ravel(), np.full(x1.size, 0.5)
    bracket = Bracket(x1, ends[0], x2, ends[1], x2, ends[1], half)
    with np.errstate(all="ignore"):
        for step in range(MAX_BRACKET_STEPS + 1):
            best, done, failed, width, tolerance = _assess_brackets(bracket)
            x[active[done]], success[active[done]] = best[done], True
            is_open = ~(done | failed)
            active, arguments = active[is_open], [array[is_open] for array in arguments]
            bracket = Bracket(*(array[is_open] for array in bracket))
            width = width[is_open]
            tolerance = tolerance[is_open]
            if not active.size:
                break
            if step:
                bracket = bracket._replace(t=_choose_division_fractions(bracket, tolerance / width / 2))
            new = bracket.x1 + bracket.t * (bracket.x2 - bracket.x1)
            bracket = _narrow_brackets(bracket, new, np.asarray(function(new, *arguments), float))
    return ZeroSearchResult(x.reshape(shape), success.reshape(shape))


def _assess_brackets(bracket: Bracket) -> tuple[np.ndarray, ...]:
    """Return the better end of each bracket, masks of zeros and failures, widths and tolerances."""
    first = np.abs(bracket.f1) < np.abs(bracket.f2)
    best, value = np.where(first, bracket.x1, bracket.x2), np.where(first, bracket.f1, bracket.f2)
    zero = np.abs(value) <= ZERO_VALUE_TOL
    failed = (np.sign(bracket.f1) == np.sign(bracket.f2)) | ~np.isfinite(bracket.x1) | ~np.isfinite(bracket.x2)
    failed = (failed | np.isnan(bracket.f1) & np.isnan(bracket.f2)) & ~zero
    width, tolerance = np.abs(bracket.x2 - bracket.x1), np.abs(best) * BRACKET_RTOL + 4 * ZERO_VALUE_TOL
    return best, (zero | (width < tolerance)) & ~failed, failed, width, tolerance


def _choose_division_fractions(bracket: Bracket, min_fraction: np.ndarray) -> np.ndarray:
    """Return the next division of each bracket, by a parabola or bisection, at least `min_fraction` from its ends."""
    xi = (bracket.x1 - bracket.x2) / (bracket.x3 - bracket.x2)
    phi = (bracket.f1 - bracket.f2) / (bracket.f3 - bracket.f2)
    alpha = (bracket.x3 - bracket.x1) / (bracket.x2 - bracket.x1)
    parabola = bracket.f1 / (bracket.f1 - bracket.f2) * bracket.f3 / (bracket.f3 - bracket.f2)
    parabola = parabola - alpha * bracket.f1 / (bracket.f3 - bracket.f1) * bracket.f2 / (bracket.f2 - bracket.f3)
    monotonic = (1 - np.sqrt(1 - xi) < phi) & (phi < np.sqrt(xi))
    return np.clip(np.where(monotonic, parabola, 0.5), min_fraction, 1 - min_fraction)


def _narrow_brackets(bracket: Bracket, x: np.ndarray, f: np.ndarray) -> Bracket:
    """Return the brackets, narrowed by a new point at one end."""
    same = np.sign(f) == np.sign(bracket.f1)
    return Bracket(
        x,
        f,
        np.where(same, bracket.x2, bracket.x1),
        np.where(same, bracket.f2, bracket.f1),
        np.where(same, bracket.x1, bracket.x2),
        np.where(same, bracket.f1, bracket.f2),
        bracket.t,
    )
