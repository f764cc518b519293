r"""Dormand and Prince's method of order 8 for many small systems of differential equations side by side.

One step from (t, y) evaluates the field at 12 stages,

.. math:: k_i = f\Big(y + h\sum_{j<i} a_{ij}k_j\Big), \qquad y' = y + h\sum_i b_ik_i,

and 3 more give the polynomial of degree 7 between y and y' that is evaluated at the recorded times (Hairer, Norsett &
Wanner, *Solving Ordinary Differential Equations I*, section II.10). Each system, a lane
of the last axis, has its own time and step size, and takes the same steps whatever its neighbours are.

The step size follows the larger of two errors: Hairer's estimate for y', and, where a recorded time lies in the step,
the last term of the polynomial over `SMOOTH`. The second matters at large t, where stability bounds the step: for
y' = -zy/h with z = 6, close to that bound, the polynomial's error is 80 times the estimate for y'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.numerics.gaussian import Array
from statmech.runtime.programs import filled_up
from theory.numerics.tableau import ALL, STAGES, Tableau, tableau

Field = Callable[[Array], Array]

ORDER = 8
FIRST = 0.1  # step size; where it is too large, it is reduced by rejections
SAFETY, SLOWEST, FASTEST = 0.9, 0.2, 10.0  # of the change of the step size
LARGEST = 0.00839  # maximum of x^4 (1 - x)^3, the factor of the polynomial's last term
SMOOTH = 16.0  # that term over the tolerance: 8 to 12 in smooth regions, 80 to 230 where stability bounds the step
TOGETHER = 8  # recorded times that are evaluated together; their number is a multiple
LEAST = 256  # recorded times of a program: one serves a config and its dense lines, and takes no longer
MANY = 2**14  # values of all lanes, of which 256 times are 32 MiB: more are recorded at few times


class State(NamedTuple):
    """Steps attempted; of each lane its time and next step size (L,), its values (C, L), the stages; what is recorded.

    The first stage is the field at the lane's values, except before the first step.
    """

    attempts: Array
    t: Array
    h: Array
    y: Array
    stages: Array
    recorded: Array


class Step(NamedTuple):
    """An attempted step: each lane's time, step size and values at its end, the stages, and how many recorded times
    are not after its beginning, and its end.
    """

    t: Array
    h: Array
    y: Array
    stages: Array
    first: Array
    stop: Array


def padded(times: np.ndarray, values: int = 1) -> np.ndarray:
    """Recorded times of so many values, filled up with inf so that few programs are compiled.

    >>> padded(np.arange(9.0)).size
    256
    """
    least = LEAST if values <= MANY else TOGETHER
    return np.pad(times, (0, filled_up(max(least, times.size)) - times.size), constant_values=np.inf)


def integrate(
    field: Field, start: Array, times: Array, rtol: float, atol: Array, most: int | Array, begin: Array | float = 0.0
) -> tuple[Array, Array]:
    """The solutions of dy/dt = field(y) with y(begin) = start at increasing times.

    Parameters
    ----------
    field
        The derivative (C, L) at values (C, L): each lane's depends on that lane alone.
    start : array (C, L)
        Values of C variables in L lanes where they begin.
    times : array (T,)
        Recorded times, filled up to a multiple of `TOGETHER` with inf.
    rtol, atol : float, array (C, 1)
        A step's error is at most atol + rtol |y|.
    most
        Attempted steps at which to stop.
    begin : float, array (L,)
        The time at which each lane begins.

    Returns
    -------
    values : array (T, C, L)
        Values at the finite times from `begin` on, and `start` at the others.
    completed : array (L,)
        Whether a lane has reached the last finite time.
    """
    constants = tableau()
    end = jnp.max(jnp.where(jnp.isfinite(times), times, 0.0))
    lanes = start.shape[1]
    state = State(
        attempts=jnp.zeros((), int),
        t=jnp.broadcast_to(jnp.asarray(begin, float), lanes),
        h=jnp.full(lanes, FIRST),
        y=start,
        stages=jnp.zeros((ALL, *start.shape)),
        recorded=jnp.broadcast_to(start, (times.size, *start.shape)),
    )

    def unfinished(state: State) -> Array:
        return (state.attempts < most) & jnp.any(_moving(state, end))

    def advance(state: State) -> State:
        step = _step(constants, field, state, times, end)
        error = _error(constants, state.y, step, rtol, atol)
        taken = _moving(state, end) & (error <= 1)
        return State(
            attempts=state.attempts + 1,
            t=jnp.where(taken, step.t, state.t),
            h=step.h * _change(error, taken),
            y=jnp.where(taken, step.y, state.y),
            # the others are 0: one that is not a number, times a weight of 0, would make all stages of the next step so
            stages=jnp.zeros_like(step.stages).at[0].set(jnp.where(taken, step.stages[STAGES], step.stages[0])),
            recorded=_recorded(constants, state, step, taken, times),
        )

    state = jax.lax.while_loop(unfinished, advance, state)
    return state.recorded, state.t >= end


def _moving(state: State, end: Array) -> Array:
    """Lanes that have not reached the end, and whose step size is not lost in rounding."""
    return (state.t < end) & (state.t + state.h > state.t)


def _step(constants: Tableau, field: Field, state: State, times: Array, end: Array) -> Step:
    """A step of each lane, with the polynomial's stages if a recorded time lies in any."""
    last = state.t + state.h >= end
    h, t = jnp.where(last, end - state.t, state.h), jnp.where(last, end, state.t + state.h)
    # counted: a binary search would be a tenth of the program to compile
    first, stop = (jnp.sum(times[:, None] <= at, axis=0) for at in (state.t, t))
    a = jnp.asarray(constants.a)

    def stage(index: Array, stages: Array) -> Array:
        row = jax.lax.dynamic_index_in_dim(a, index, keepdims=False)
        new = field(state.y + h * jnp.tensordot(row, stages, 1))
        return jax.lax.dynamic_update_index_in_dim(stages, new, index, 0)

    # one loop, from the first stage only in the first step: the field is compiled once
    until = jnp.where(jnp.any(stop > first), ALL, STAGES + 1)
    stages = jax.lax.fori_loop(jnp.where(state.attempts > 0, 1, 0), until, stage, state.stages)
    return Step(t, h, state.y + h * jnp.tensordot(a[STAGES], stages, 1), stages, first, stop)


def _error(constants: Tableau, y: Array, step: Step, rtol: float, atol: Array) -> Array:
    """The error of each lane's step over the tolerance."""
    scale = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(step.y))

    def part(weights: np.ndarray) -> Array:
        return step.h * jnp.tensordot(weights, step.stages, 1) / scale

    fifth, third = (jnp.mean(part(weights) ** 2, axis=0) for weights in (constants.fifth, constants.third))
    total = fifth + 0.01 * third
    error = fifth / jnp.sqrt(jnp.where(total > 0, total, 1.0))
    between = jnp.max(jnp.abs(part(constants.polynomial[-1])), axis=0) * LARGEST / SMOOTH
    return jnp.where(step.stop > step.first, jnp.maximum(error, between), error)


def _change(error: Array, taken: Array) -> Array:
    """The factor of the step size after a step with this error; an error that is not a number is a large one."""
    factor = jnp.clip(SAFETY * jnp.maximum(error, FASTEST**-ORDER * SAFETY**ORDER) ** (-1 / ORDER), SLOWEST, FASTEST)
    return jnp.where(taken, factor, jnp.where(factor < 1, factor, SLOWEST))


def _recorded(constants: Tableau, state: State, step: Step, taken: Array, times: Array) -> Array:
    """The recorded values, with those at times in the step."""
    change, (before, after) = step.y - state.y, (step.h * step.stages[0], step.h * step.stages[STAGES])
    higher = (step.h * jnp.tensordot(row, step.stages, 1) for row in constants.polynomial)
    terms = [change, before - change, 2 * change - before - after, *higher]

    def record(block: Array, recorded: Array) -> Array:
        t = jax.lax.dynamic_slice_in_dim(times, block * TOGETHER, TOGETHER)[:, None]
        due = taken & (t > state.t) & (t <= step.t)
        x = ((t - state.t) / step.h)[:, None]
        value = jnp.zeros((TOGETHER, *state.y.shape))
        for index, term in enumerate(reversed(terms)):
            value = (value + term) * (x if index % 2 == 0 else 1 - x)
        old = jax.lax.dynamic_slice_in_dim(recorded, block * TOGETHER, TOGETHER)
        new = jnp.where(due[:, None], state.y + value, old)
        return jax.lax.dynamic_update_slice_in_dim(recorded, new, block * TOGETHER, 0)

    first, stop = jnp.min(step.first), jnp.max(jnp.where(taken, step.stop, 0))
    return jax.lax.fori_loop(first // TOGETHER, (stop + TOGETHER - 1) // TOGETHER, record, state.recorded)
