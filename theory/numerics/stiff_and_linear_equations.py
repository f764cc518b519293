r"""Solvers of stiff order-parameter equations (LSODA) and of linear equations with time-dependent coefficients.

**Stiff equations** of one parameter combination: the rates of modes differ as much as their variances, so that the
fastest mode limits the step of an explicit method. SciPy's LSODA switches to backward differences where the equations
become stiff. The integration variable is ln(1 + t), because overlaps approach their limits as powers of t: for a
perceptron with two modes this takes a third of the steps and has a hundredth of the error.

**Linear equations** :math:`x' = M(t)x + d(t)` are solved by collocation at Gauss nodes on panels in t. The coefficients
do not depend on x, so that one linear system gives the slopes at the nodes of a panel as a function of the vector at
its start. Panels whose highest Legendre coefficient is not small are halved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from statmech.errors import SolverError
from statmech.inputs.covariance_modes import is_chart_accuracy_active
from statmech.numerics.gaussian import get_legendre_rule

NODES = 12  # per panel
LAST_LEGENDRE_COEFFICIENT_TOL = 1e-7
MAX_PANEL_HALVINGS = 24

CoefficientFunction = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
RTOL = 1e-11  # at 1e-10 the Adams method may stay at low order and take more steps
CHART_TOLERANCE_FACTOR = 1e7  # saves two thirds of the evaluations
MAX_STEPS = 1_000_000
ODEINT_SUCCESS_MESSAGE = "Integration successful."
# from a time and a state (n,) to rates (n,) or a Jacobian (n, n)
RateFunction = Callable[[float, np.ndarray], np.ndarray]


def solve_linear_odes(
    coefficients: CoefficientFunction, start: np.ndarray, times: np.ndarray, scale: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Solve the linear equation x' = M(t) x + d(t) for x at each time.

    Parameters
    ----------
    coefficients
        M (T, n, n) and d (T, n) at increasing times (T,).
    start : array (n,)
        The vector at t = 0.
    times : array (T,)
        Increasing.
    scale
        Returns the sizes (..., n) of vectors (..., n), the units of their errors.

    Returns
    -------
    array (T, n)

    Raises
    ------
    SolverError
        If the panels become too short.

    Examples
    --------
    >>> def decay(t):
    ...     return -np.ones((t.size, 1, 1)), np.zeros((t.size, 1))
    >>> solve_linear_odes(decay, np.ones(1), np.array([0.0, 1.0, 3.0]), np.ones_like).round(6).ravel()
    array([1.      , 0.367879, 0.049787])
    """
    last = np.log1p(times[-1] if times[-1] > 0 else 1.0)
    edges = np.expm1(np.linspace(0.0, last, 2 + int(2 * last)))
    slopes: dict[tuple[float, float], np.ndarray] = {}
    for _ in range(MAX_PANEL_HALVINGS):
        panels = list(pairwise(edges))
        new = [panel for panel in panels if panel not in slopes]
        slopes |= dict(zip(new, _solve_panel_slopes(coefficients, new), strict=True))
        values, at_nodes = _propagate_through_panels(start, np.diff(edges), [slopes[panel] for panel in panels])
        rough = _find_rough_panels(np.diff(edges), values, at_nodes, scale)
        if not rough.any():
            return _interpolate_in_panels(times, edges, values, at_nodes)
        edges = np.sort(np.concatenate([edges, (edges[:-1] + edges[1:])[rough] / 2]))
    raise SolverError(f"panels become too short before t = {times[-1]:g}: the coefficients change too fast")


def _solve_panel_slopes(coefficients: CoefficientFunction, panels: list[tuple[float, float]]) -> list[np.ndarray]:
    """Solve a linear equation for the slopes at the nodes of each panel, as affine functions of its initial vector.

    The functions are arrays (nodes, n, n + 1), and their last column is the constant term.
    """
    begin, end = np.asarray(panels).T
    t = begin[:, None] + (end - begin)[:, None] * get_legendre_rule(NODES)[0]
    to = _make_integration_weights(get_legendre_rule(NODES)[0])
    M, d = (part.reshape(*t.shape, *part.shape[1:]) for part in coefficients(t.reshape(-1)))
    size = d.shape[-1]
    right_side = np.concatenate([M, d[..., None]], axis=-1).reshape(len(panels), -1, size + 1)
    inside = np.einsum("p,piab,ij->piajb", end - begin, M, to).reshape(len(panels), NODES * size, -1)
    return list(np.linalg.solve(np.eye(NODES * size) - inside, right_side).reshape(len(panels), NODES, size, size + 1))


def _propagate_through_panels(x: np.ndarray, h: np.ndarray, slopes: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Propagate the initial vector of a linear equation through all panels.

    Returns the vectors at the panel edges (P + 1, n), and their slopes at the nodes (P, nodes, n).
    """
    weights, values, at_nodes = get_legendre_rule(NODES)[1], [x], []
    for length, affine in zip(h, slopes, strict=True):
        at_nodes.append(affine @ np.append(x, 1.0))
        x = x + length * weights @ at_nodes[-1]
        values.append(x)
    return np.stack(values), np.stack(at_nodes)


def _find_rough_panels(
    h: np.ndarray, values: np.ndarray, slopes: np.ndarray, scale: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return a mask (P,) of the panels with too large a last Legendre coefficient of the slopes."""
    last = h[:, None] * abs(_make_legendre_matrix()[:, -1] @ slopes)
    return np.any(last > LAST_LEGENDRE_COEFFICIENT_TOL * scale(np.maximum(abs(values[1:]), abs(values[:-1]))), axis=-1)


def _make_legendre_matrix() -> np.ndarray:
    """Make the matrix (nodes, coefficients) that converts values at the nodes to Legendre coefficients."""
    nodes, weights = get_legendre_rule(NODES)
    return np.polynomial.legendre.legvander(2 * nodes - 1, NODES - 1) * weights[:, None] * (2 * np.arange(NODES) + 1)


def _make_integration_weights(s: np.ndarray) -> np.ndarray:
    """Compute the weights (S, nodes) that integrate an interpolated function from 0 to s (S,)."""
    integrals = np.polynomial.legendre.legint(np.eye(NODES), lbnd=-1, axis=0) / 2
    return np.polynomial.legendre.legval(2 * s - 1, integrals).T @ _make_legendre_matrix().T


def _interpolate_in_panels(times: np.ndarray, edges: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Interpolate the vectors of a linear equation at the recorded times (T,) within their panels."""
    panel = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, len(slopes) - 1)
    h = np.diff(edges)[panel]
    weights = _make_integration_weights((times - edges[panel]) / h)
    return values[panel] + h[:, None] * np.einsum("tn,tna->ta", weights, slopes[panel])


def integrate_stiff_equations(
    rates: RateFunction,
    start: np.ndarray,
    times: np.ndarray,
    atol: np.ndarray,
    cell_description: str,
    jacobian: RateFunction | None = None,
) -> np.ndarray:
    """Integrate the stiff equations of one cell, and return the state vectors (T, n) at the given times.

    Raises `SolverError` if the integration stops early.

    Parameters
    ----------
    rates
        The rates.
    start
        The state at t = 0 (n,).
    times
        Increasing times (T,).
    atol
        Absolute tolerances (n,).
    cell_description
        Description of the cell for the error message.
    jacobian
        The Jacobian of the rates, or None for finite differences.
    """
    from scipy.integrate import ODEintWarning, odeint  # imported late: not needed for isotropic inputs

    last, tolerance_factor = times[-1], CHART_TOLERANCE_FACTOR if is_chart_accuracy_active() else 1.0

    def with_log_time(function: RateFunction) -> RateFunction:
        return lambda log_time, values: np.exp(log_time) * function(np.expm1(log_time), values)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ODEintWarning)  # the error raised below says the same
        values, report = odeint(
            with_log_time(rates),
            start,
            [0.0, *np.log1p(times[times > 0])],
            Dfun=with_log_time(jacobian) if jacobian else None,
            tfirst=True,
            rtol=tolerance_factor * RTOL,
            atol=tolerance_factor * atol,
            mxstep=MAX_STEPS,
            full_output=True,
        ) if last > 0 else (start[None], {"message": ODEINT_SUCCESS_MESSAGE})  # fmt: skip
    if report["message"] != ODEINT_SUCCESS_MESSAGE or not np.isfinite(values).all():
        raise SolverError(f"the order-parameter equations of {cell_description} stop before t = {last:g}")
    return np.concatenate([np.repeat(values[:1], np.sum(times == 0), axis=0), values[1:]])
