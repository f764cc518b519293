r"""Quadrature panels that resolve a loss, whatever the scale of its slope.

On a panel from a to b the Gauss-Legendre rule that integrates the curvature has to give
:math:`\int_a^b\ell''\,dp = \ell'(b^-) - \ell'(a^+)`. Where it does not, the panel is halved. As :math:`\ell''\ge0`,
nothing cancels: a slope that rises anywhere between the nodes is noticed.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from statmech.convex.losses import Loss
from statmech.numerics.gaussian import make_composite_rule

CENTRAL_PANEL_EDGES = (-15.0, -5.0, -1.5, 0.0, 1.5, 5.0, 15.0)
OUTER_PANEL_EDGES = (15.0, 45.0, 135.0, 405.0, 1215.0)  # used only for losses that change on larger scales
MIN_OUTER_PANEL_SLOPE_RISE = (
    1e-3  # relative to the largest slope on [-15, 15]; rises above the inverse are plain growth
)
NODES_PER_LOSS_PANEL = 12  # fewer than for averages, which have squares and products in their integrands
QUADRATURE_SLOPE_RISE_REL_TOL = (
    1e-10  # relative to the smaller end slope, since V times a decaying slope is not small at large V
)
PANEL_SLOPE_FLOOR, SLOPE_ROUNDING_ERROR = (
    1e-9,
    1e-15,
)  # absolute, and relative to the larger slope
MIN_PANEL_WIDTH = 1e-9  # stops the bisection at bends that the loss does not declare


@cache
def find_loss_panel_edges(loss: Loss) -> tuple[float, ...]:
    """Return increasing panel edges that cover [-15, 15] and include 0, the kinks and the bends.

    >>> from statmech.convex.losses import Hinge
    >>> find_loss_panel_edges(Hinge())
    (-15.0, -5.0, -1.5, 0.0, 1.0, 1.5, 5.0, 15.0)
    """
    with np.errstate(all="ignore"):
        edges = sorted(
            {*CENTRAL_PANEL_EDGES, *_find_outer_edges(loss, -1), *_find_outer_edges(loss, 1), *loss.kinks, *loss.bends}
        )
        inner = [edge for low, high in pairwise(edges) for edge in (low, *_find_inner_edges(loss, low, high))]
    return (*inner, edges[-1])


@cache
def is_piecewise_quadratic(loss: Loss) -> bool:
    """Return True if the curvature is constant between kinks and bends.

    >>> from statmech.convex.losses import Hinge, Logistic
    >>> is_piecewise_quadratic(Hinge()), is_piecewise_quadratic(Logistic())
    (True, False)
    """
    p, _ = make_composite_rule(np.array(find_loss_panel_edges(loss)), NODES_PER_LOSS_PANEL)
    piece = np.searchsorted(sorted({*loss.kinks, *loss.bends}), p)
    return not np.any((np.diff(loss.curvature(p)) != 0) & (np.diff(piece) == 0))


def _find_outer_edges(loss: Loss, sign: int) -> list[float]:
    """Find panel edges beyond 15 (sign = 1) or -15, up to where the slope stops changing notably."""
    ends = [sign * size for size in OUTER_PANEL_EDGES]
    if _is_panel_resolved(loss, *sorted((ends[0], ends[-1]))):
        return []
    slopes = loss.slope(np.array([-sign * OUTER_PANEL_EDGES[0], *ends]))
    rises = np.abs(np.diff(slopes[1:])) / np.abs(slopes[:2]).max()
    notable = (rises > MIN_OUTER_PANEL_SLOPE_RISE) & (rises < 1 / MIN_OUTER_PANEL_SLOPE_RISE)
    return ends[1 : 1 + int(np.logical_and.accumulate(notable).sum())]


def _find_inner_edges(loss: Loss, low: float, high: float) -> list[float]:
    """Find the edges between `low` and `high` by bisection until the quadrature is exact."""
    if high - low < MIN_PANEL_WIDTH * max(1.0, abs(low)) or _is_panel_resolved(loss, low, high):
        return []
    middle = 0.5 * (low + high)
    return [*_find_inner_edges(loss, low, middle), middle, *_find_inner_edges(loss, middle, high)]


def _is_panel_resolved(loss: Loss, low: float, high: float) -> bool:
    """Return True if quadrature of the curvature reproduces the rise of the slope on this panel."""
    x, weight = make_composite_rule(np.array([low, high]), NODES_PER_LOSS_PANEL)
    rise = float(weight @ loss.curvature(x))
    before, after = _get_one_sided_slope(loss, low, side=1), _get_one_sided_slope(loss, high, side=0)
    smaller, larger = sorted((abs(before), abs(after)))
    return (
        not abs(rise - (after - before))
        > QUADRATURE_SLOPE_RISE_REL_TOL * (PANEL_SLOPE_FLOOR + smaller) + SLOPE_ROUNDING_ERROR * larger
    )


def _get_one_sided_slope(loss: Loss, x: float, side: int) -> float:
    """Return the slope at x, which is the left (side = 0) or right (side = 1) slope if x is a kink."""
    return float(loss.one_sided_slopes(x)[side] if x in loss.kinks else loss.slope(np.array(x)))
