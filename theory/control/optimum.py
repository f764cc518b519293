r"""Controls with the lowest final error: gradient descent from several starts, between bounds.

Starts are the best constants, constants below and above them, and two decaying controls. Equations with noise have two
basins of attraction: a network stays on its plateau or leaves it. The best constant may lie in the wrong basin. All
minima found are returned, without a claim that one is the global minimum.

SciPy's L-BFGS-B minimises the logarithm of the error from all starts to ten digits, and then refines the best minimum
to rounding. The measure of convergence is the projected gradient

.. math:: g_i - \text{the part of it that points beyond a bound at which } u_i \text{ lies},

which vanishes at a minimum between bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from statmech.errors import SolverError
from theory.control.gradients import ControlProblem, compute_cost_and_gradient

START_CONSTANT_FACTORS = 1 / 3, 3.0  # relative to the best constants
START_DECAY_RATES = 1.0, 3.0  # starts decay as exp(-rate t/T), from twice the best constants
SEARCH_LBFGS_OPTIONS = {"ftol": 1e-10, "gtol": 1e-9, "maxfun": 200}  # for every start: ten digits of the cost
REFINEMENT_LBFGS_OPTIONS = {
    "ftol": 1e-16,
    "gtol": 1e-9,
    "maxfun": 1000,
    "maxiter": 2000,
}  # for the best minimum: to rounding
EQUAL_COST_TOL = 1e-6  # minima whose costs differ less are merged


class ControlBounds(NamedTuple):
    """Lowest and highest values (controls * size,) of the controls. Equal bounds fix a value."""

    low: np.ndarray
    high: np.ndarray


class CostMinimum(NamedTuple):
    """Minimum of the cost: control values (controls * size,), cost, and norm of the projected gradient."""

    values: np.ndarray
    cost: float
    projected_gradient: float


class ControlOptimum(NamedTuple):
    """All distinct minima in order of increasing cost, and the result of each search."""

    minima: list[CostMinimum]
    search_results: list[CostMinimum]

    @property
    def values(self) -> np.ndarray:
        """Values (controls * size,) of the best controls found."""
        return self.minima[0].values

    @property
    def cost(self) -> float:
        """Cost of the best controls, the logarithm of the error."""
        return self.minima[0].cost


def minimise_control_cost(problem: ControlProblem, bounds: ControlBounds, constants: np.ndarray) -> ControlOptimum:
    """Find the controls with the lowest cost by searches from several starts.

    Parameters
    ----------
    problem
        The equations, their start, and the controls.
    bounds
        The bounds of the values, one control after the other.
    constants : array (controls,)
        The best constants.

    Returns
    -------
    ControlOptimum
        The minima found, with different costs.

    Raises
    ------
    SolverError
        If no start has a finite cost.
    """
    starts = [np.clip(values, *bounds) for values in _make_search_starts(problem, constants)]
    distinct_starts = {values.tobytes(): values for values in starts}  # clipping to the bounds can make starts equal
    searches = {
        start: _minimise_from_start(problem, values, bounds, SEARCH_LBFGS_OPTIONS)
        for start, values in distinct_starts.items()
    }
    results = [searches[values.tobytes()] for values in starts]
    if not any(np.isfinite(result.cost) for result in results):
        raise SolverError("the equations diverge for all controls that were tried")
    best = int(np.argmin([result.cost for result in results]))
    results[best] = _minimise_from_start(problem, results[best].values, bounds, REFINEMENT_LBFGS_OPTIONS)
    return ControlOptimum(_merge_equal_minima([result for result in results if np.isfinite(result.cost)]), results)


def project_gradient(gradient: np.ndarray, values: np.ndarray, bounds: ControlBounds) -> np.ndarray:
    """Return the gradient with components set to 0 where descent would cross a bound.

    >>> project_gradient(np.array([1.0, -1.0, 2.0]), np.array([0.0, 1.0, 1.0]), ControlBounds(np.zeros(3), np.ones(3)))
    array([0., 0., 2.])
    """
    low, high = bounds
    return np.where((values <= low) & (gradient > 0) | (values >= high) & (gradient < 0), 0.0, gradient)


def _make_search_starts(problem: ControlProblem, constants: np.ndarray) -> list[np.ndarray]:
    """Return the starts of the searches: the best constants, multiples of the constants, and decays."""
    segments = problem.segments
    best = np.repeat(constants, segments.num_values)
    elapsed = np.tile(segments.value_times / segments.edges[-1], problem.controls)
    decays = [2 * best * np.exp(-decay * elapsed) for decay in START_DECAY_RATES]
    return [best, *(factor * best for factor in START_CONSTANT_FACTORS), *decays]


def _minimise_from_start(
    problem: ControlProblem, values: np.ndarray, bounds: ControlBounds, options: Mapping[str, float]
) -> CostMinimum:
    result: OptimizeResult = minimize(
        lambda point: _get_finite_cost_and_gradient(problem, point), values, jac=True, method="L-BFGS-B",
        bounds=list(zip(*bounds, strict=True)), options=options,
    )  # fmt: skip
    gradient = project_gradient(result.jac, result.x, bounds)
    return CostMinimum(result.x, float(result.fun), float(np.linalg.norm(gradient)))


def _get_finite_cost_and_gradient(problem: ControlProblem, values: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the cost and its gradient, or infinity and zeros where the equations overflow."""
    cost, gradient = compute_cost_and_gradient(problem, values)
    if np.isfinite(cost) and np.isfinite(gradient).all():
        return cost, gradient
    return np.inf, np.zeros_like(gradient)


def _merge_equal_minima(minima: list[CostMinimum]) -> list[CostMinimum]:
    """Merge minima of equal cost and sort by increasing cost."""
    distinct: list[CostMinimum] = []
    for candidate in sorted(minima, key=lambda candidate: candidate.cost):
        if not distinct or candidate.cost - distinct[-1].cost > EQUAL_COST_TOL:
            distinct.append(candidate)
    return distinct
