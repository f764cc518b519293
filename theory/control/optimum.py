r"""The control with the lowest final error: gradient descent from several starts, between bounds.

Starts are the best constant, constants below and above it, and two decays: equations with noise have two basins of
attraction, in which a network stays on its plateau or leaves it, and the best constant may lie in the wrong one. All
minima found are returned. None is claimed to be the global one.

SciPy's L-BFGS-B minimises :math:`\log\epsilon_g`. Its result is judged by the projected gradient

.. math:: g_i - \text{the part of it that points beyond a bound at which } u_i \text{ lies},

which vanishes at a minimum between bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from statmech.controls import Segments
from statmech.errors import SolverError
from theory.control.gradients import Problem, value_and_gradient

LOWEST, HIGHEST = 1e-3, 30.0  # bounds of a learning rate
CONSTANTS = 16  # between the bounds, of which the best is refined
FACTORS = 1 / 3, 3.0  # of the best constant, further starts
DECAYS = 1.0, 3.0  # of starts that fall from twice the best constant by exp(-decay)
TOLERANCES = {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 2000, "maxfun": 5000}
SAME = 1e-6  # of log eps_g: minima that differ by less are one


class Minimum(NamedTuple):
    """A minimum: where the search began, the values (size,), the cost, and the norm of the projected gradient."""

    begun: str
    values: np.ndarray
    cost: float
    projected_gradient: float


class Optimum(NamedTuple):
    """All minima, the lowest first, what each search reached, and the best constant with its cost."""

    minima: list[Minimum]
    searches: list[Minimum]
    constant: float
    constant_cost: float

    @property
    def values(self) -> np.ndarray:
        """The values (size,) of the best control found."""
        return self.minima[0].values

    @property
    def cost(self) -> float:
        r"""Its cost, :math:`\log\epsilon_g`."""
        return self.minima[0].cost


def minimum(problem: Problem, bounds: tuple[float, float] = (LOWEST, HIGHEST)) -> Optimum:
    """Search the control with the lowest cost from several starts.

    Parameters
    ----------
    problem
        The equations, their start, and the control.
    bounds
        The lowest and the highest value of the control, above 0.

    Returns
    -------
    Optimum
        The minima that were found, with different costs.

    Raises
    ------
    SolverError
        If no start has a finite cost.
    """
    constant, constant_cost = best_constant(problem, bounds)
    found: list[Minimum] = []
    for begun, values in _starts(problem.segments, constant, bounds).items():
        found.append(_descended(problem, begun, values, bounds))
    if not (finite := [one for one in found if np.isfinite(one.cost)]):
        raise SolverError("no learning rate was found under which the equations stay finite")
    return Optimum(_different(finite), found, constant, constant_cost)


def best_constant(problem: Problem, bounds: tuple[float, float] = (LOWEST, HIGHEST)) -> tuple[float, float]:
    """The best constant control and its cost: the best of a grid, refined; the grid is geometric above 0."""
    ones, spaced = np.ones(problem.segments.size), np.geomspace if bounds[0] > 0 else np.linspace

    def cost(constant: np.ndarray) -> tuple[float, np.ndarray]:
        found, gradient = _finite(problem, constant * ones)
        return found, gradient.sum(keepdims=True)

    grid = spaced(*bounds, CONSTANTS)
    best = int(np.argmin([cost(one[None])[0] for one in grid]))
    limits = [(grid[max(best - 1, 0)], grid[min(best + 1, CONSTANTS - 1)])]
    refined = minimize(cost, grid[best : best + 1], jac=True, method="L-BFGS-B", bounds=limits, options=TOLERANCES)
    return float(refined.x[0]), float(refined.fun)


def projected(gradient: np.ndarray, values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """The gradient without what points beyond a bound at which a value lies.

    >>> projected(np.array([1.0, -1.0, 2.0]), np.array([0.0, 1.0, 1.0]), (0.0, 1.0))
    array([0., 0., 2.])
    """
    low, high = bounds
    return np.where((values <= low) & (gradient > 0) | (values >= high) & (gradient < 0), 0.0, gradient)


def _starts(segments: Segments, constant: float, bounds: tuple[float, float]) -> dict[str, np.ndarray]:
    """Where searches begin, by a description."""
    ones, elapsed = np.ones(segments.size), segments.times / segments.edges[-1]
    starts = {"the best constant": constant * ones}
    starts |= {f"the constant {factor * constant:.3g}": factor * constant * ones for factor in FACTORS}
    starts |= {f"a decay by exp({-decay:g})": 2 * constant * np.exp(-decay * elapsed) for decay in DECAYS}
    return {begun: np.clip(values, *bounds) for begun, values in starts.items()}


def _descended(problem: Problem, begun: str, values: np.ndarray, bounds: tuple[float, float]) -> Minimum:
    found: OptimizeResult = minimize(
        lambda at: _finite(problem, at), values, jac=True, method="L-BFGS-B", bounds=[bounds] * values.size,
        options=TOLERANCES,
    )  # fmt: skip
    gradient = projected(found.jac, found.x, bounds)
    return Minimum(begun, found.x, float(found.fun), float(np.linalg.norm(gradient)))


def _finite(problem: Problem, values: np.ndarray) -> tuple[float, np.ndarray]:
    """The cost and its gradient; infinite without a slope where the equations leave floating point numbers."""
    cost, gradient = value_and_gradient(problem, values)
    if np.isfinite(cost) and np.isfinite(gradient).all():
        return cost, gradient
    return np.inf, np.zeros_like(gradient)


def _different(minima: list[Minimum]) -> list[Minimum]:
    """Minima of different costs, the lowest first."""
    kept: list[Minimum] = []
    for one in sorted(minima, key=lambda found: found.cost):
        if not kept or one.cost - kept[-1].cost > SAME:
            kept.append(one)
    return kept
