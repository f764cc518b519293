r"""Gradients of the final error with respect to controls, and descent to the controls of lowest final error.

**Gradient.** With the state x, the order-parameter equations :math:`\dot x = f(x, u)` and the cost
:math:`J = \log\epsilon_g(x(T))`, reverse differentiation of the integrator gives :math:`dJ/du`. Differentiation with
respect to zeros that are added to the state at the beginning of each step gives the costate
:math:`p(t) = dJ/dx(t)`. By Pontryagin's principle :math:`H = p\cdot f(x, u)` is constant along an optimum of autonomous
equations. For controls that are constant on segments, the derivative of J with respect to the edge between two segments
is :math:`H_- - H_+`.

The cost is the logarithm of the error because its gradient does not vanish with the error. For the integral of the
error over time the state has an additional entry, the integral so far (`TimeAverageSystem`).

**Integrator.** The Runge-Kutta method of order 4 has steps of fixed size that end at every edge of the control. An
adaptive method would choose steps that depend on the control, without a gradient. Steps of 0.1 give
:math:`\log\epsilon_g` to 1e-8 for two erf units over t = 100 at their best rates, and to 2e-6 at their best constant
rate. The reverse pass recomputes the rates of each stage, so that memory holds only the states of all stages.

**Descent** between bounds starts from the best constants, constants below and above them, and two decaying controls.
Equations with noise have two basins of attraction: a network stays on its plateau or leaves it. The best constant may
lie in the wrong basin. All minima found are returned, without a claim that one is the global minimum.

SciPy's L-BFGS-B minimises the logarithm of the error from all starts to ten digits, and then refines the best minimum
to rounding. The measure of convergence is the projected gradient

.. math:: g_i - \text{the part of it that points beyond a bound at which } u_i \text{ lies},

which vanishes at a minimum between bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import OptimizeResult, minimize

from statmech.errors import SolverError
from statmech.numerics.gaussian import Array
from statmech.parameters.schedules_and_controls import TimeSegments, interpolation_weights
from statmech.runtime.compiled_programs import SEQUENTIAL_EXECUTION_OPTIONS, CachedProgram
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision

MAX_CONTROL_TIME_STEP = 0.1
RUNGE_KUTTA_TIMES = np.array([0.0, 0.5, 1.0])  # in units of the step
RUNGE_KUTTA_TIME_INDICES = np.array([0, 1, 1, 2])
RUNGE_KUTTA_WEIGHTS = np.array([1.0, 2.0, 2.0, 1.0]) / 6
RUNGE_KUTTA_SUBSTEPS = np.array([0.5, 0.5, 1.0, 0.0])  # length of the substep to the next stage, in units of the step

# a reverse pass has many small operations: more than one thread doubles or triples its CPU time
compile_single_threaded = partial(CachedProgram, options=lambda system: [SEQUENTIAL_EXECUTION_OPTIONS])
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


class ControlledSystem(Protocol):
    """Equations with controls, which must be hashable as static arguments of compiled programs."""

    def compute_rates(self, setting: Any, inputs: Any, state: Array, controls: Array) -> Array:
        """Return the time derivative of the state (C,) for these controls (n,) and other inputs."""

    def compute_error(self, setting: Any, state: Array) -> Array:
        """Return the error of the state (C,), whose logarithm at the last time is the cost J."""


@dataclass(frozen=True)
class TimeAverageSystem:
    """Equations whose error is the time average of another system's error.

    The last entry of the state is the integral so far.
    """

    system: ControlledSystem

    def compute_rates(self, setting: tuple[Any, Array], inputs: Any, state: Array, controls: Array) -> Array:
        """Return the time derivative of the state (C + 1,)."""
        inner, _ = setting
        state_rates = self.system.compute_rates(inner, inputs, state[:-1], controls)
        return jnp.append(state_rates, self.system.compute_error(inner, state[:-1]))

    def compute_error(self, setting: tuple[Any, Array], state: Array) -> Array:
        """Return the integral divided by the elapsed time."""
        return state[-1] / setting[1]


class ControlledTrajectory(NamedTuple):
    """Cost, gradient and trajectory that follow from given controls.

    The gradient has shape (controls * size,). At the beginning of each step (n,) the trajectory has the time, the
    controls (n, controls), the Hamiltonian and the state (n, C). `final_state` is the final state (C,).
    """

    cost: float
    gradient: np.ndarray
    t: np.ndarray
    controls: np.ndarray
    hamiltonian: np.ndarray
    states: np.ndarray
    final_state: np.ndarray


class SegmentSteps(NamedTuple):
    """Step length (n,) and other inputs on each segment."""

    widths: Array
    inputs: Any


class ControlProblem(NamedTuple):
    """Control problem of a system with its arguments, initial state and segments.

    `setting` has run-time arguments, `start` the state at the first edge (C,), and `inputs` further values on each
    segment: arrays whose first axis is the segment, or None. `controls` is the number of controls, and `step` the
    maximum step.
    """

    system: ControlledSystem
    setting: Any
    start: np.ndarray
    segments: TimeSegments
    inputs: Any = None
    controls: int = 1
    step: float = MAX_CONTROL_TIME_STEP

    @property
    def time_average_problem(self) -> ControlProblem:
        """Control problem with the time average of the error as its objective."""
        span = self.segments.edges[-1] - self.segments.edges[0]
        start = np.append(self.start, 0.0)
        return self._replace(
            system=TimeAverageSystem(self.system), setting=(self.setting, np.float64(span)), start=start
        )

    @property
    def steps(self) -> int:
        """Number of steps on each segment."""
        return max(1, int(np.ceil(np.max(np.diff(self.segments.edges)) / self.step - 1e-9)))

    @property
    def stage_times(self) -> np.ndarray:
        """Times (steps, 3) of all integrator stages, as fractions of a segment."""
        return (np.arange(self.steps)[:, None] + RUNGE_KUTTA_TIMES) / self.steps

    @property
    def program_arguments(self) -> tuple[Any, ...]:
        """Run-time arguments of the compiled programs of cost and gradient, except the values of the controls."""
        widths = np.diff(self.segments.edges) / self.steps
        steps = SegmentSteps(widths, self.inputs)
        return (
            self.setting,
            np.asarray(self.start, float),
            steps,
            interpolation_weights(self.stage_times, self.segments.points),
        )


def compute_cost_and_gradient(problem: ControlProblem, values: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the cost and its gradient for control values (controls * size,), one control after the other."""
    with use_cpu_double_precision():
        cost, gradient = _compute_cost_and_gradient(
            problem.system, *problem.program_arguments, _reshape_to_segments(problem, values)
        )
    return float(cost), np.asarray(gradient).reshape(-1)


def compute_trajectory(problem: ControlProblem, values: np.ndarray) -> ControlledTrajectory:
    """Compute trajectory, cost and gradient for control values (controls * size,), one control after the other."""
    with use_cpu_double_precision():
        results = _compute_trajectory(problem.system, *problem.program_arguments, _reshape_to_segments(problem, values))
    cost, gradient, controls, hamiltonian, states, last = map(np.asarray, results)
    edges = np.asarray(problem.segments.edges)
    t = edges[:-1, None] + np.diff(edges)[:, None] * problem.stage_times[:, 0]
    gradient, t, hamiltonian = (part.reshape(-1) for part in (gradient, t, hamiltonian))
    controls, states = (part.reshape(-1, part.shape[-1]) for part in (controls, states))
    return ControlledTrajectory(float(cost), gradient, t, controls, hamiltonian, states, last)


def _reshape_to_segments(problem: ControlProblem, values: np.ndarray) -> np.ndarray:
    return np.asarray(values, float).reshape(problem.controls, problem.segments.num_segments, problem.segments.points)


@compile_single_threaded
def _compute_cost_and_gradient(
    system: ControlledSystem, setting: Any, start: Array, steps: SegmentSteps, weights: Array, values: Array
) -> tuple[Array, ...]:
    """Return the cost and its gradient with respect to the values (controls, segments, points)."""

    def cost(values: Array) -> Array:
        return jnp.log(
            system.compute_error(
                setting, _integrate_system(system, setting, start, steps, _evaluate_stage_controls(weights, values))[0]
            )
        )

    return jax.value_and_grad(cost)(values)


@compile_single_threaded
def _compute_trajectory(
    system: ControlledSystem, setting: Any, start: Array, steps: SegmentSteps, weights: Array, values: Array
) -> tuple[Array, ...]:
    """Return the cost, its gradient, the trajectory and the final state.

    The trajectory has the controls, the Hamiltonian and the state at the beginning of each step.
    """

    def cost(values: Array, added: Array) -> tuple[Array, tuple[Array, Array]]:
        last, states = _integrate_system(
            system, setting, start, steps, _evaluate_stage_controls(weights, values), added
        )
        return jnp.log(system.compute_error(setting, last)), (last, states)

    zeros = jnp.zeros((values.shape[1], *weights.shape[:1], *start.shape))
    (cost_value, (last, states)), (gradient, costates) = jax.value_and_grad(cost, (0, 1), has_aux=True)(values, zeros)
    controls = _evaluate_stage_controls(weights, values)[:, :, 0]

    def on_segment(inputs: Any, states: Array, controls: Array) -> Array:
        return jax.vmap(lambda state, control: system.compute_rates(setting, inputs, state, control))(states, controls)

    rates = jax.vmap(on_segment)(steps.inputs, states, controls)
    return cost_value, gradient, controls, jnp.sum(costates * rates, axis=-1), states, last


def _evaluate_stage_controls(weights: Array, values: Array) -> Array:
    """Return the controls (segments, steps, 3, controls) at all integrator stages."""
    return jnp.einsum("nsp,ckp->knsc", weights, values)


def _integrate_system(
    system: ControlledSystem,
    setting: Any,
    start: Array,
    segment_steps: SegmentSteps,
    stages: Array,
    added: Array | None = None,
) -> tuple[Array, Array]:
    """Integrate a system for its gradient, and return its final state and its states before each step.

    The states before each step have the shape (segments, steps, C).
    """

    def step(segment_step: SegmentSteps, state: Array, xs: tuple[Array, Array]) -> tuple[Array, Array]:
        stages, offset = xs
        step_start = state + offset

        @partial(jax.checkpoint, prevent_cse=False)
        def stage(carry: tuple[Array, Array], xs: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
            (state, increment), (controls, weight, substep) = carry, xs
            change = segment_step.widths * system.compute_rates(setting, segment_step.inputs, state, controls)
            return (step_start + substep * change, increment + weight * change), None

        (_, increment), _ = jax.lax.scan(
            stage,
            (step_start, jnp.zeros_like(step_start)),
            (stages[RUNGE_KUTTA_TIME_INDICES], RUNGE_KUTTA_WEIGHTS, RUNGE_KUTTA_SUBSTEPS),
        )
        return step_start + increment, step_start

    def segment(state: Array, xs: tuple[SegmentSteps, Array, Array]) -> tuple[Array, Array]:
        segment_step, stages, added = xs
        return jax.lax.scan(partial(step, segment_step), state, (stages, added))

    added = jnp.zeros((*stages.shape[:2], *start.shape)) if added is None else added
    return jax.lax.scan(segment, start, (segment_steps, stages, added))


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
    """Find the controls with the lowest cost by gradient descent from several starts.

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
    """Return the starts of gradient descent: the best constants, multiples of the constants, and decays."""
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
    """Merge minima of equal cost, found by gradient descent, and sort by increasing cost."""
    distinct: list[CostMinimum] = []
    for candidate in sorted(minima, key=lambda candidate: candidate.cost):
        if not distinct or candidate.cost - distinct[-1].cost > EQUAL_COST_TOL:
            distinct.append(candidate)
    return distinct
