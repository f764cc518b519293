r"""Zeros of elementwise functions between two points where their signs differ, by Chandrupatla's method.

The next point divides the bracket :math:`[x_1, x_2]` where the parabola in f through its ends and the former end
:math:`x_3` is 0, if that parabola is monotonic; else in the middle (T. R. Chandrupatla, Adv. Eng. Software 28, 145
(1997)). The steps and tolerances are those of `scipy.optimize.elementwise.find_root`, bit for bit: this is here because
`scipy.optimize` takes longer to import than small theory to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array

TINY, RELATIVE = np.finfo(float).smallest_normal, 4 * np.finfo(float).eps  # of a value, and of the bracket
MOST = 2046  # steps; bisection of all numbers takes as many


class Zeros(NamedTuple):
    """The points, NaN where none was found, and where one was."""

    x: np.ndarray
    success: np.ndarray


class Bracket(NamedTuple):
    """Ends and values, arrays (n,), the last point first, and the end before; `t` divides it at the next point."""

    x1: np.ndarray
    f1: np.ndarray
    x2: np.ndarray
    f2: np.ndarray
    x3: np.ndarray
    f3: np.ndarray
    t: np.ndarray


def zeros(function: Callable[..., Any], low: Array, high: Array, args: tuple[Array, ...] = ()) -> Zeros:
    """The zeros of a function between two points.

    Parameters
    ----------
    function
        Of x and `args`: each value depends on their elements at its place alone.
    low, high, args : array_like
        Ends, and further arguments, which broadcast.

    Returns
    -------
    Zeros
        Arrays of the broadcast shape; to rounding.

    Examples
    --------
    >>> found = zeros(lambda x, c: x**3 - c, 0.0, 3.0, (np.array([8.0, 27.0, 64.0]),))
    >>> found.x.round(12), found.success
    (array([ 2.,  3., nan]), array([ True,  True, False]))
    """
    x1, x2, *rest = np.broadcast_arrays(*(np.asarray(it, float) for it in (low, high, *args)))
    shape, ends = x1.shape, [np.asarray(function(x, *rest), float).ravel() for x in (x1, x2)]
    x, success, active = np.full(x1.size, np.nan), np.zeros(x1.size, bool), np.arange(x1.size)
    given = [it.ravel() for it in rest]
    x1, x2, half = x1.ravel(), x2.ravel(), np.full(x1.size, 0.5)
    bracket = Bracket(x1, ends[0], x2, ends[1], x2, ends[1], half)
    with np.errstate(all="ignore"):
        for step in range(MOST + 1):
            best, done, failed, width, tolerance = _ended(bracket)
            x[active[done]], success[active[done]] = best[done], True
            on = ~(done | failed)
            active, given = active[on], [it[on] for it in given]
            bracket, width, tolerance = Bracket(*(it[on] for it in bracket)), width[on], tolerance[on]
            if not active.size:
                break
            if step:
                bracket = bracket._replace(t=_division(bracket, tolerance / width / 2))
            new = bracket.x1 + bracket.t * (bracket.x2 - bracket.x1)
            bracket = _narrowed(bracket, new, np.asarray(function(new, *given), float))
    return Zeros(x.reshape(shape), success.reshape(shape))


def _ended(at: Bracket) -> tuple[np.ndarray, ...]:
    """The better ends, where they are zeros, where there is none, the brackets' widths, and their tolerances."""
    first = np.abs(at.f1) < np.abs(at.f2)
    best, least = np.where(first, at.x1, at.x2), np.where(first, at.f1, at.f2)
    zero = np.abs(least) <= TINY
    failed = (np.sign(at.f1) == np.sign(at.f2)) | ~np.isfinite(at.x1) | ~np.isfinite(at.x2)
    failed = (failed | np.isnan(at.f1) & np.isnan(at.f2)) & ~zero
    width, tolerance = np.abs(at.x2 - at.x1), np.abs(best) * RELATIVE + 4 * TINY
    return best, (zero | (width < tolerance)) & ~failed, failed, width, tolerance


def _division(at: Bracket, least: np.ndarray) -> np.ndarray:
    """Where the brackets are divided next: by the parabola or in the middle, not closer than `least` to an end."""
    xi, phi = (at.x1 - at.x2) / (at.x3 - at.x2), (at.f1 - at.f2) / (at.f3 - at.f2)
    alpha = (at.x3 - at.x1) / (at.x2 - at.x1)
    parabola = at.f1 / (at.f1 - at.f2) * at.f3 / (at.f3 - at.f2)
    parabola = parabola - alpha * at.f1 / (at.f3 - at.f1) * at.f2 / (at.f2 - at.f3)
    monotonic = (1 - np.sqrt(1 - xi) < phi) & (phi < np.sqrt(xi))
    return np.clip(np.where(monotonic, parabola, 0.5), least, 1 - least)


def _narrowed(at: Bracket, x: np.ndarray, f: np.ndarray) -> Bracket:
    """The brackets with a new point at one end."""
    same = np.sign(f) == np.sign(at.f1)
    return Bracket(
        x,
        f,
        np.where(same, at.x2, at.x1),
        np.where(same, at.f2, at.f1),
        np.where(same, at.x1, at.x2),
        np.where(same, at.f1, at.f2),
        at.t,
    )
