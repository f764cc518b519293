r"""Dormand and Prince's method of order 8 for batches of small systems of ordinary differential equations.

One step from (t, y) evaluates the field at 12 stages,

.. math:: k_i = f\Big(y + h\sum_{j<i} a_{ij}k_j\Big), \qquad y' = y + h\sum_i b_ik_i,

and 3 more give the polynomial of degree 7 between y and y' that is evaluated at the recorded times (Hairer, Norsett &
Wanner, *Solving Ordinary Differential Equations I*, section II.10). The systems form a batch, the last axis of arrays.
Each system has its own time and step size, and its steps do not depend on the other systems.

The step size follows the larger of two errors: Hairer's estimate for y', and, if a recorded time lies in the step, the
last term of the polynomial over `SMOOTH_DENSE_ERROR_RATIO`. The second error matters at large t, where stability limits
the step: for y' = -zy/h with z = 6, close to this limit, the polynomial's error is 80 times the estimate for y'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import Array
from statmech.runtime.programs import pad_array_length
from theory.numerics.tableau import NUM_ALL_STAGES, NUM_STAGES, Tableau, read_tableau

VectorField = Callable[[Array], Array]

METHOD_ORDER = 8
FIRST_TIME_STEP = 0.1  # reduced by rejections if it is too large
STEP_SAFETY_FACTOR, MIN_STEP_FACTOR, MAX_STEP_FACTOR = 0.9, 0.2, 10.0  # for the step-size control
MAX_DENSE_OUTPUT_LAST_TERM = 0.00839  # maximum of x^4 (1 - x)^3, the last term of the dense output
SMOOTH_DENSE_ERROR_RATIO = (
    16.0  # last term over the tolerance; it is 8 to 12 in smooth regions, 80 to 230 where stability limits the step
)
TIMES_PER_BLOCK = 8  # recorded times are padded to a multiple of this number
MIN_PADDED_TIMES = 256  # lets a config and its dense lines share one compiled program
MAX_VALUES_PER_PADDED_TIME = 2**14  # values per recorded time; 256 times take 32 MiB


class IntegrationState(NamedTuple):
    """State of the integrator for L systems with C variables each.

    The first stage is the field at the current values, except before the first step.
    """

    attempts: Array  # number of attempted steps
    t: Array  # time of each system (L,)
    h: Array  # next step size (L,)
    y: Array  # values (C, L)
    stages: Array
    recorded_values: Array  # values at the recorded times


class AttemptedStep(NamedTuple):
    """Result of an attempted step of all systems."""

    t: Array  # time at the end of the step (L,)
    h: Array  # step size (L,)
    y: Array  # values at the end of the step (C, L)
    stages: Array
    first_index: Array  # number of recorded times up to the start of the step (L,)
    stop_index: Array  # number of recorded times up to the end of the step (L,)


def pad_times(times: np.ndarray, num_values: int = 1) -> np.ndarray:
    """Pad recorded times with inf to a few standard sizes, which limits the number of compiled programs.

    `num_values` is the number of values recorded at each time.

    >>> pad_times(np.arange(9.0)).size
    256
    """
    min_size = MIN_PADDED_TIMES if num_values <= MAX_VALUES_PER_PADDED_TIME else TIMES_PER_BLOCK
    return np.pad(times, (0, pad_array_length(max(min_size, times.size)) - times.size), constant_values=np.inf)


def integrate(
    field: VectorField,
    start: Array,
    times: Array,
    rtol: float,
    atol: Array,
    max_attempts: int | Array,
    begin: Array | float = 0.0,
) -> tuple[Array, Array]:
    """Integrate dy/dt = field(y) with y(begin) = start, and return the solution at increasing times.

    Parameters
    ----------
    field
        The derivative (C, L) at values (C, L). The L systems must not depend on each other.
    start : array (C, L)
        Initial values of C variables in L systems.
    times : array (T,)
        Recorded times, padded with inf to a multiple of `TIMES_PER_BLOCK`.
    rtol, atol : float, array (C, 1)
        A step's error is at most atol + rtol |y|.
    max_attempts
        Maximum number of attempted steps.
    begin : float, array (L,)
        Initial time of each system.

    Returns
    -------
    values : array (T, C, L)
        Values at finite times after `begin`, and `start` at the other times.
    completed : array (L,)
        Whether a system has reached the last finite time.
    """
    constants = read_tableau()
    end = jnp.max(jnp.where(jnp.isfinite(times), times, 0.0))
    num_systems = start.shape[1]
    state = IntegrationState(
        attempts=jnp.zeros((), int),
        t=jnp.broadcast_to(jnp.asarray(begin, float), num_systems),
        h=jnp.full(num_systems, FIRST_TIME_STEP),
        y=start,
        stages=jnp.zeros((NUM_ALL_STAGES, *start.shape)),
        recorded_values=jnp.broadcast_to(start, (times.size, *start.shape)),
    )

    def has_unfinished(state: IntegrationState) -> Array:
        return (state.attempts < max_attempts) & jnp.any(_is_unfinished(state, end))

    def advance(state: IntegrationState) -> IntegrationState:
        step = _attempt_step(constants, field, state, times, end)
        error = _estimate_error(constants, state.y, step, rtol, atol)
        accepted = _is_unfinished(state, end) & (error <= 1)
        return IntegrationState(
            attempts=state.attempts + 1,
            t=jnp.where(accepted, step.t, state.t),
            h=step.h * _compute_step_factor(error, accepted),
            y=jnp.where(accepted, step.y, state.y),
            # reset the other stages, since NaN times a weight of 0 would make the next step NaN
            stages=jnp.zeros_like(step.stages).at[0].set(jnp.where(accepted, step.stages[NUM_STAGES], step.stages[0])),
            recorded_values=_record_values(constants, state, step, accepted, times),
        )

    state = jax.lax.while_loop(has_unfinished, advance, state)
    return state.recorded_values, state.t >= end


def _is_unfinished(state: IntegrationState, end: Array) -> Array:
    """Return True for systems that have not reached the end and have a step size above rounding."""
    return (state.t < end) & (state.t + state.h > state.t)


def _attempt_step(
    constants: Tableau, field: VectorField, state: IntegrationState, times: Array, end: Array
) -> AttemptedStep:
    """Attempt a step of each system, with the dense-output stages if any step contains a recorded time."""
    last = state.t + state.h >= end
    h, t = jnp.where(last, end - state.t, state.h), jnp.where(last, end, state.t + state.h)
    # count the times, since a binary search would add a tenth to the compile time
    first, stop = (jnp.sum(times[:, None] <= time, axis=0) for time in (state.t, t))
    a = jnp.asarray(constants.a)

    def stage(index: Array, stages: Array) -> Array:
        row = jax.lax.dynamic_index_in_dim(a, index, keepdims=False)
        new = field(state.y + h * jnp.tensordot(row, stages, 1))
        return jax.lax.dynamic_update_index_in_dim(stages, new, index, 0)

    # a single loop compiles the field only once; the first stage is computed only in the first step
    until = jnp.where(jnp.any(stop > first), NUM_ALL_STAGES, NUM_STAGES + 1)
    stages = jax.lax.fori_loop(jnp.where(state.attempts > 0, 1, 0), until, stage, state.stages)
    return AttemptedStep(t, h, state.y + h * jnp.tensordot(a[NUM_STAGES], stages, 1), stages, first, stop)


def _estimate_error(constants: Tableau, y: Array, step: AttemptedStep, rtol: float, atol: Array) -> Array:
    """Estimate the error of each system's step in units of the tolerance."""
    scale = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(step.y))

    def part(weights: np.ndarray) -> Array:
        return step.h * jnp.tensordot(weights, step.stages, 1) / scale

    fifth, third = (
        jnp.mean(part(weights) ** 2, axis=0)
        for weights in (constants.fifth_error_weights, constants.third_error_weights)
    )
    total = fifth + 0.01 * third
    error = fifth / jnp.sqrt(jnp.where(total > 0, total, 1.0))
    dense_error = (
        jnp.max(jnp.abs(part(constants.polynomial[-1])), axis=0) * MAX_DENSE_OUTPUT_LAST_TERM / SMOOTH_DENSE_ERROR_RATIO
    )
    return jnp.where(step.stop_index > step.first_index, jnp.maximum(error, dense_error), error)


def _compute_step_factor(error: Array, accepted: Array) -> Array:
    """Compute the change factor of the step size, given the error of the last step.

    NaN counts as a large error.
    """
    factor = jnp.clip(
        STEP_SAFETY_FACTOR
        * jnp.maximum(error, MAX_STEP_FACTOR**-METHOD_ORDER * STEP_SAFETY_FACTOR**METHOD_ORDER) ** (-1 / METHOD_ORDER),
        MIN_STEP_FACTOR,
        MAX_STEP_FACTOR,
    )
    return jnp.where(accepted, factor, jnp.where(factor < 1, factor, MIN_STEP_FACTOR))


def _record_values(
    constants: Tableau, state: IntegrationState, step: AttemptedStep, accepted: Array, times: Array
) -> Array:
    """Record interpolated values at all times within the accepted steps."""
    change, (before, after) = step.y - state.y, (step.h * step.stages[0], step.h * step.stages[NUM_STAGES])
    higher = (step.h * jnp.tensordot(row, step.stages, 1) for row in constants.polynomial)
    terms = [change, before - change, 2 * change - before - after, *higher]

    def record(block: Array, recorded: Array) -> Array:
        t = jax.lax.dynamic_slice_in_dim(times, block * TIMES_PER_BLOCK, TIMES_PER_BLOCK)[:, None]
        due = accepted & (t > state.t) & (t <= step.t)
        x = ((t - state.t) / step.h)[:, None]
        value = jnp.zeros((TIMES_PER_BLOCK, *state.y.shape))
        for index, term in enumerate(reversed(terms)):
            value = (value + term) * (x if index % 2 == 0 else 1 - x)
        old = jax.lax.dynamic_slice_in_dim(recorded, block * TIMES_PER_BLOCK, TIMES_PER_BLOCK)
        new = jnp.where(due[:, None], state.y + value, old)
        return jax.lax.dynamic_update_slice_in_dim(recorded, new, block * TIMES_PER_BLOCK, 0)

    first, stop = jnp.min(step.first_index), jnp.max(jnp.where(accepted, step.stop_index, 0))
    return jax.lax.fori_loop(
        first // TIMES_PER_BLOCK, (stop + TIMES_PER_BLOCK - 1) // TIMES_PER_BLOCK, record, state.recorded_values
    )
