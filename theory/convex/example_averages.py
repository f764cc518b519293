r"""Averages over the examples of a learner that minimises a convex loss, and quadrature panels that resolve the loss.

Let h be the field of an example that the learner has not seen (times the label y, if there are labels), and p its
field after training: :math:`h = p + V\ell'(p)`, with V the susceptibility. The equations need the averages

.. math:: A = \langle 1 - \partial p/\partial h\rangle, \qquad B = \langle (p-h)^2\rangle, \qquad
          C = \int 2N(h; 0, l^2)\,\rho\!\left(\tfrac{h\cos\theta}l, \sin^2\theta\right)(p-h)\,dh,

where h has the density :math:`2N(h; 0, l^2)\,\mathrm{right}(h\cos\theta/l, \sin^2\theta)` for labels, with
:math:`\rho` the derivative of `right` with respect to the mean. For the residuals of a linear teacher h is normal of
variance :math:`s^2`, and :math:`C=A`. All functions work on a batch of parameter combinations, the last axis of arrays.

**Nodes.** The integrals run over p, without proximal points in the integrands: :math:`dh = (1+V\ell'')dp`, and
:math:`p - h = -V\ell'(p)`. A kink c of the loss is an atom: all h in :math:`[c+V\ell'(c^-), c+V\ell'(c^+)]` have p = c,
so that it is integrated over h. Panels end at kinks, bends, p = 0 (the training error jumps there), where the Gaussian
and the teacher's sigmoid change, and at a few distances from 0 and from the p of h = 0 (the tails of logistic and
exponential losses). If a loss is quadratic between kinks and bends, h is linear in p there, and a few panels suffice.
Empty panels, and panels with a flat loss, are omitted.

**Resolution of the loss.** Panels resolve a loss whatever the scale of its slope. On a panel from a to b the
Gauss-Legendre rule that integrates the curvature has to give
:math:`\int_a^b\ell''\,dp = \ell'(b^-) - \ell'(a^+)`. Where it does not, the panel is halved. As :math:`\ell''\ge0`,
nothing cancels: a slope that rises anywhere between the nodes is noticed.

**Slopes.** For :math:`g = p-h` at fixed h, :math:`\partial g/\partial\ln V = g\,\partial p/\partial h`, and with h in
units of l :math:`\partial g/\partial\ln l = -h\,d`, :math:`d = 1-\partial p/\partial h`. By Price's theorem
:math:`\partial_{\cos\theta}\langle f(h)\rangle = l\int 2N\rho f'dh`. Partial integration gives A without d,

.. math:: A = \left(l\cos\theta\,C - \langle hg\rangle\right)/l^2,

and thus the slopes of A without third derivatives of the loss. Only the slope of C with respect to the angle needs the
second derivative of `right`. It is a difference of two values of :math:`\rho`, as only the convergence of Newton's
method depends on its accuracy.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from statmech.convex.losses import Loss, prox
from statmech.convex.teachers import LabelTeacher
from statmech.numerics.gaussian import GAUSSIAN_CUTOFF, get_legendre_rule, make_composite_rule, normal_density

CENTRAL_PANEL_EDGES = (-15.0, -5.0, -1.5, 0.0, 1.5, 5.0, 15.0)
OUTER_PANEL_EDGES = (15.0, 45.0, 135.0, 405.0, 1215.0)  # used only for losses that change on larger scales
MIN_OUTER_PANEL_SLOPE_RISE = (
    1e-3  # relative to the largest slope on [-15, 15]; rises above the inverse are plain growth
)
NODES_PER_LOSS_PANEL = 12  # fewer than for averages, which have squares and products in their integrands
QUADRATURE_SLOPE_RISE_REL_TOL = (
    1e-10  # relative to the smaller end slope, since V times a decaying slope is not small at large V
)
# absolute, and relative to the larger slope
PANEL_SLOPE_FLOOR = 1e-9
SLOPE_ROUNDING_ERROR = 1e-15
MIN_PANEL_WIDTH = 1e-9  # stops the bisection at bends that the loss does not declare
NODES_PER_FIELD_PANEL = 20
FINE_GAUSSIAN_PANEL_EDGES = np.array(
    [-GAUSSIAN_CUTOFF, -4.0, -1.5, -0.5, -0.1, 0.0, 0.1, 0.5, 1.5, 4.0, GAUSSIAN_CUTOFF]
)  # in standard deviations
COARSE_GAUSSIAN_PANEL_EDGES = np.array([-GAUSSIAN_CUTOFF, -4.0, 0.0, 4.0, GAUSSIAN_CUTOFF])
SIGMOID_EDGES = np.array([-25.0, -10.0, -4.0, 4.0, 10.0, 25.0])  # units: width of the teacher's sigmoid
# from p(h = 0) to the right, for one-sided tails of the loss
LOSS_TAIL_PANEL_OFFSETS = np.array([1.5, 5.0, 15.0, 40.0])
PANEL_EDGE_PROX_REL_TOL = 1e-3  # loose, since any edges near the right positions are valid
LOG_TAN_DIFFERENCE_STEP = 1e-7  # for the forward difference of the teacher's response


@cache
def find_loss_panel_edges(loss: Loss) -> tuple[float, ...]:
    """Return panel edges for averages over examples, which cover [-15, 15] and include 0, the kinks and the bends.

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
    """Find panel edges for averages over examples beyond 15 (sign = 1) or -15, while the loss's slope still changes."""
    ends = [sign * size for size in OUTER_PANEL_EDGES]
    if _is_panel_resolved(loss, *sorted((ends[0], ends[-1]))):
        return []
    slopes = loss.slope(np.array([-sign * OUTER_PANEL_EDGES[0], *ends]))
    rises = np.abs(np.diff(slopes[1:])) / np.abs(slopes[:2]).max()
    notable = (rises > MIN_OUTER_PANEL_SLOPE_RISE) & (rises < 1 / MIN_OUTER_PANEL_SLOPE_RISE)
    return ends[1 : 1 + int(np.logical_and.accumulate(notable).sum())]


def _find_inner_edges(loss: Loss, low: float, high: float) -> list[float]:
    """Find panel edges for averages over examples by bisection from `low` to `high` until the quadrature is exact."""
    if high - low < MIN_PANEL_WIDTH * max(1.0, abs(low)) or _is_panel_resolved(loss, low, high):
        return []
    middle = 0.5 * (low + high)
    return [*_find_inner_edges(loss, low, middle), middle, *_find_inner_edges(loss, middle, high)]


def _is_panel_resolved(loss: Loss, low: float, high: float) -> bool:
    """Return True if quadrature of a loss's curvature over a panel of examples' fields gives the rise of its slope."""
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


class FieldNodes(NamedTuple):
    """Quadrature nodes and weights for averages over the field h, as arrays (panels, nodes)."""

    batch_size: int
    panel_batch_index: np.ndarray  # batch element of each panel (panels,)
    h: np.ndarray
    g: np.ndarray  # p - h
    h_weights: np.ndarray  # quadrature weights for integrals over h
    one_minus_dp_dh_weights: np.ndarray  # quadrature weights times 1 - dp/dh

    def sum_terms_per_batch_element(self, *terms: np.ndarray) -> np.ndarray:
        """Sum each term (panels, nodes) over the nodes of each batch element, returning (terms, batch)."""
        return _sum_per_batch_element(terms, self.panel_batch_index, self.batch_size)


class ChannelDensities(NamedTuple):
    """Density of the field h, and the teacher's response with its derivative with respect to ln tan(theta)."""

    h_density: np.ndarray
    teacher_response: np.ndarray
    response_log_tan_slope: np.ndarray


class ExampleAverages(NamedTuple):
    """Averages A, B and C (3, batch), and their derivatives (3, unknowns, batch) with respect to the log unknowns."""

    values: np.ndarray
    slopes: np.ndarray


def average_labelled_examples(loss: Loss, teacher: LabelTeacher, x: np.ndarray) -> ExampleAverages:
    """Compute A, B and C with their derivatives for labelled examples.

    The unknowns x (3, batch) are the logarithms of tan(theta), Q and V.
    """
    t, Q, V = np.exp(x)
    cos, sin = 1 / np.hypot(1, t), t / np.hypot(1, t)
    nodes = make_field_nodes(loss, Q, V, make_label_panel_edges(choose_gaussian_panel_edges(loss), teacher, t))
    channel = compute_label_densities(
        teacher, x[0, nodes.panel_batch_index], Q[nodes.panel_batch_index], nodes.h, with_slope=True
    )
    A, B, C, G = _compute_averages(nodes, channel)
    by_Q, by_V, hhd = _compute_average_slopes(nodes, channel)
    response_sum, C_t = nodes.sum_terms_per_batch_element(
        channel.teacher_response * nodes.one_minus_dp_dh_weights * nodes.g,
        channel.response_log_tan_slope * nodes.h_weights * nodes.g,
    )
    by_cos = -2 * Q * response_sum
    values = np.array([A, B, C])
    cos_over_Q = cos / Q
    A_V = cos_over_Q * by_V[1] - by_V[2] / Q**2
    A_Q = cos_over_Q * (by_Q[1] - C) + (G + hhd) / Q**2
    cos_slope = -cos * sin**2  # derivative of cos(theta) with respect to ln tan(theta)
    A_t = cos_over_Q * C_t - cos_slope * by_Q[1] / Q
    slopes = np.array([[A_t, A_Q, A_V], [cos_slope * by_cos, by_Q[0], by_V[0]], [C_t, by_Q[1], by_V[1]]])
    return ExampleAverages(values, slopes)


def average_over_residuals(loss: Loss, x: np.ndarray) -> ExampleAverages:
    """Compute A, B and C with their derivatives for a linear teacher, at x = (ln s, ln V) of shape (2, batch)."""
    s, V = np.exp(x)
    nodes = make_field_nodes(loss, s, V, choose_gaussian_panel_edges(loss))
    channel = compute_residual_densities(s[nodes.panel_batch_index], nodes.h)
    A, B, _, G = _compute_averages(nodes, channel)
    by_s, by_V, hhd = _compute_average_slopes(nodes, channel)
    A_slopes = [(G + hhd) / s**2, -by_V[2] / s**2]
    return ExampleAverages(np.array([A, B, A]), np.array([A_slopes, [by_s[0], by_V[0]], A_slopes]))


class TrainingAverages(NamedTuple):
    """Mean loss and label error rate on the training set, as arrays (batch,)."""

    loss: np.ndarray
    error: np.ndarray


def average_label_training_loss(
    loss: Loss, teacher: LabelTeacher, x: np.ndarray, reported_loss: Loss
) -> TrainingAverages:
    """Average the loss `reported_loss` and the label error over the training examples.

    The unknowns x are defined as in `average_labelled_examples`.
    """
    t, Q, V = np.exp(x)
    nodes = make_field_nodes(
        loss, Q, V, make_label_panel_edges(choose_gaussian_panel_edges(loss), teacher, t), include_flat=True
    )
    return _average_loss_and_error(
        nodes,
        compute_label_densities(teacher, x[0, nodes.panel_batch_index], Q[nodes.panel_batch_index], nodes.h).h_density,
        reported_loss,
    )


def average_residual_training_loss(loss: Loss, x: np.ndarray, reported_loss: Loss) -> TrainingAverages:
    """Average the loss `reported_loss` over the training residuals, given x as in `average_over_residuals`."""
    s, V = np.exp(x)
    nodes = make_field_nodes(loss, s, V, choose_gaussian_panel_edges(loss), include_flat=True)
    return _average_loss_and_error(
        nodes, compute_residual_densities(s[nodes.panel_batch_index], nodes.h).h_density, reported_loss
    )


def _average_loss_and_error(nodes: FieldNodes, weight: np.ndarray, reported_loss: Loss) -> TrainingAverages:
    p = nodes.h + nodes.g
    return TrainingAverages(
        *nodes.sum_terms_per_batch_element(
            weight * nodes.h_weights * reported_loss.value(p), weight * nodes.h_weights * (p < 0)
        )
    )


def compute_fresh_label_error(teacher: LabelTeacher, log_tan: np.ndarray) -> np.ndarray:
    """Average the label error of a student at this angle over fresh, possibly noisy examples."""
    batch_index, z, dz, _ = make_panel_nodes(
        np.minimum(make_label_panel_edges(COARSE_GAUSSIAN_PANEL_EDGES, teacher, np.exp(log_tan)), 0.0)
    )
    weight = compute_label_densities(teacher, log_tan[batch_index], np.ones(len(z)), z).h_density
    return _sum_per_batch_element((weight * dz)[None], batch_index, len(log_tan))[0]


def compute_label_densities(
    teacher: LabelTeacher, log_tan: np.ndarray, Q: np.ndarray, h: np.ndarray, with_slope: bool = False
) -> ChannelDensities:
    """Compute the density of a student's aligned field over the examples, and the response of a label teacher.

    Parameters
    ----------
    teacher
        The label teacher.
    log_tan
        ln tan of the student's angle to the teacher (panels,).
    Q
        The student's length (panels,).
    h
        Fields (panels, nodes).
    with_slope
        True to compute also the slope of the response with respect to `log_tan`.
    """
    z = h / Q[:, None]
    gauss = 2 * normal_density(z) / Q[:, None]
    right, slope_at, _ = teacher.probability_derivatives(*_compute_teacher_moments(log_tan, z))
    weight, response = gauss * right, gauss * slope_at
    if not with_slope:
        return ChannelDensities(weight, response, response)
    shifted_response = gauss * teacher.mean_probability_slope(
        *_compute_teacher_moments(log_tan + LOG_TAN_DIFFERENCE_STEP, z)
    )
    return ChannelDensities(weight, response, (shifted_response - response) / LOG_TAN_DIFFERENCE_STEP)


def compute_residual_densities(s: np.ndarray, h: np.ndarray) -> ChannelDensities:
    """Return the normal density with standard deviations s (panels,) at the residuals h (panels, nodes)."""
    weight = normal_density(h / s[:, None]) / s[:, None]
    return ChannelDensities(weight, 0 * weight, 0 * weight)


def make_label_panel_edges(gaussian_edges: np.ndarray, teacher: LabelTeacher, tan: np.ndarray) -> np.ndarray:
    """Return sorted panel edges (batch, edges) for averages over labelled examples, in units of Q.

    The given Gaussian edges are combined with edges around the teacher's sigmoid.
    """
    cos, variance = 1 / np.hypot(1, tan), tan**2 / (1 + tan**2)
    width = teacher.width(variance) / cos
    # wider sigmoids need no edges: they are as smooth as the Gaussian
    sigmoid = np.where(width < 1, width, GAUSSIAN_CUTOFF)[:, None] * SIGMOID_EDGES
    edges = np.concatenate([np.broadcast_to(gaussian_edges, (len(tan), len(gaussian_edges))), sigmoid], axis=1)
    return np.sort(np.clip(edges, -GAUSSIAN_CUTOFF, GAUSSIAN_CUTOFF), axis=1)


def choose_gaussian_panel_edges(loss: Loss) -> np.ndarray:
    """Return Gaussian panel edges in standard deviations, coarser for piecewise quadratic losses."""
    return COARSE_GAUSSIAN_PANEL_EDGES if is_piecewise_quadratic(loss) else FINE_GAUSSIAN_PANEL_EDGES


def make_field_nodes(
    loss: Loss, Q: np.ndarray, V: np.ndarray, edges: np.ndarray, include_flat: bool = False
) -> FieldNodes:
    """Make the quadrature nodes for averages over the field h.

    Parameters
    ----------
    loss
        The loss.
    Q, V
        The scale of the fields, and the susceptibility (batch,).
    edges
        Panel edges in units of Q, (batch, edges) or (edges,).
    include_flat
        True to include nodes with g = 0, where training does not change the field.
    """
    ends = Q[:, None] * edges
    parts = [_make_smooth_nodes(loss, V, ends, include_flat), *(_make_kink_nodes(loss, c, V, ends) for c in loss.kinks)]
    return FieldNodes(len(V), *(np.concatenate(part) for part in zip(*(part[1:] for part in parts), strict=True)))


def _make_smooth_nodes(loss: Loss, V: np.ndarray, h_edges: np.ndarray, include_flat: bool = False) -> FieldNodes:
    """Make nodes for averages over examples in p, the field after training, between the kinks of the loss."""
    edges = convert_edges_to_p(loss, V, h_edges)
    left, right = loss.one_sided_slopes(edges)
    mask = include_flat | (right[:, :-1] != 0) | (left[:, 1:] != 0)  # flat panels have end slopes 0
    batch_index, p, dp, rounding = make_panel_nodes(edges, mask)
    slope, stiff = V[batch_index, None] * loss.slope(p), V[batch_index, None] * loss.curvature(p)
    h = p + slope - (1 + stiff) * rounding  # correct the rounding of p, which a large V l'' would amplify
    return FieldNodes(len(V), batch_index, h, stiff * rounding - slope, (1 + stiff) * dp, stiff * dp)


def convert_edges_to_p(loss: Loss, V: np.ndarray, h_edges: np.ndarray) -> np.ndarray:
    """Map panel edges for averages over examples from h to p, and add edges where the loss changes its shape."""
    p = prox(loss, h_edges, V[:, None], PANEL_EDGE_PROX_REL_TOL)
    inner = np.array([0.0, *loss.kinks, *loss.bends])
    if not is_piecewise_quadratic(loss):
        middle = p[:, [p.shape[1] // 2]]  # p(h = 0), since the edges are symmetric
        fixed = np.broadcast_to(find_loss_panel_edges(loss), (len(V), len(find_loss_panel_edges(loss))))
        inner = np.concatenate([fixed, middle + LOSS_TAIL_PANEL_OFFSETS], axis=1)
    return np.sort(np.concatenate([p, np.clip(inner, p[:, :1], p[:, -1:])], axis=1), axis=1)


def _make_kink_nodes(loss: Loss, kink: float, V: np.ndarray, h_edges: np.ndarray) -> FieldNodes:
    """Make nodes for averages over examples on the interval of h that training maps to a kink of the loss."""
    left, right = loss.one_sided_slopes(kink)
    edges = np.clip(h_edges, (kink + V * left)[:, None], (kink + V * right)[:, None])
    low, high = h_edges[:, :1], h_edges[:, -1:]
    first, last = np.clip((kink + V * left)[:, None], low, high), np.clip((kink + V * right)[:, None], low, high)
    batch_index, h, dh, _ = make_panel_nodes(np.clip(np.concatenate([first, edges, last], axis=1), low, high))
    return FieldNodes(len(V), batch_index, h, kink - h, dh, dh)


def make_panel_nodes(edges: np.ndarray, mask: np.ndarray | float = 1.0) -> tuple[np.ndarray, ...]:
    """Make Gauss-Legendre nodes for averages over examples on the panels between edges (batch, edges).

    Returns the batch index of each panel, the nodes, their weights and their rounding errors. Panels of width 0 and
    panels outside `mask` are omitted.
    """
    x, w = get_legendre_rule(NODES_PER_FIELD_PANEL)
    gaps = np.diff(edges)
    batch_index, panel = np.nonzero(gaps * mask)
    left, width = edges[batch_index, panel, None], gaps[batch_index, panel, None]
    offset = width * x
    node = left + offset
    return batch_index, node, width * w, (node - left) - offset


def _compute_averages(nodes: FieldNodes, channel: ChannelDensities) -> np.ndarray:
    """Compute the averages A, B, C and <h g> over examples from the nodes."""
    pull = channel.h_density * nodes.h_weights * nodes.g
    return nodes.sum_terms_per_batch_element(
        channel.h_density * nodes.one_minus_dp_dh_weights,
        pull * nodes.g,
        channel.teacher_response * nodes.h_weights * nodes.g,
        pull * nodes.h,
    )


def _compute_average_slopes(nodes: FieldNodes, channel: ChannelDensities) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the derivatives of the averages over examples with respect to ln Q and ln V.

    Returns the derivatives of (B, C) for ln Q, the derivatives of (B, C, <h g>) for ln V, and <h^2 (1 - dp/dh)>.
    """
    h_d, free = nodes.one_minus_dp_dh_weights * nodes.h, (nodes.h_weights - nodes.one_minus_dp_dh_weights) * nodes.g
    weighted_free, weighted = channel.h_density * free, channel.h_density * h_d
    B_Q, C_Q, B_V, C_V, G_V, hhd = nodes.sum_terms_per_batch_element(
        weighted * nodes.g,
        channel.teacher_response * h_d,
        weighted_free * nodes.g,
        channel.teacher_response * free,
        weighted_free * nodes.h,
        weighted * nodes.h,
    )
    return np.array([-2 * B_Q, -C_Q]), np.array([2 * B_V, C_V, G_V]), hhd


def _sum_per_batch_element(terms: Iterable[np.ndarray], batch_index: np.ndarray, batch_size: int) -> np.ndarray:
    """Sum each term (panels, nodes) over all nodes of each batch element."""
    return np.array([np.bincount(batch_index, np.sum(term, axis=-1), batch_size) for term in terms])


def _compute_teacher_moments(log_tan: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and variance of the teacher's field, given a student's field of z standard deviations."""
    t = np.exp(log_tan)[:, None]
    return z / np.hypot(1, t), t**2 / (1 + t**2)
