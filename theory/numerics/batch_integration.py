r"""Integration of many small systems of ordinary differential equations in batches, by a Runge-Kutta method of order 8.

Method of Dormand and Prince: one step from (t, y) evaluates the field at 12 stages,

.. math:: k_i = f\Big(y + h\sum_{j<i} a_{ij}k_j\Big), \qquad y' = y + h\sum_i b_ik_i,

and 3 more give the polynomial of degree 7 between y and y' that is evaluated at the recorded times (Hairer, Norsett &
Wanner, *Solving Ordinary Differential Equations I*, section II.10). The coefficients are the same as in SciPy's
`DOP853`. They are repeated here because `scipy.integrate` takes a quarter of a second to import.

The step size follows the larger of two errors: Hairer's estimate for y', and, if a recorded time lies in the step, the
last term of the polynomial over `SMOOTH_DENSE_ERROR_RATIO`. The second error matters at large t, where stability limits
the step: for y' = -zy/h with z = 6, close to this limit, the polynomial's error is 80 times the estimate for y'.

Batches: the systems form a batch, the last axis of arrays. Each system has its own time and step size, and its steps do
not depend on the other systems. `solve_in_batches` solves cells in batches that one compiled program integrates
together.

Jumps: between jumps of the equations the integration proceeds piece by piece, since no step may cross a jump.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import SolverError
from statmech.numerics.gaussian import Array
from statmech.runtime.compiled_programs import pad_array_length

NUM_STAGES, NUM_ALL_STAGES = 12, 16  # stage 12 is the field at the new point, stages 13 to 15 give the dense output

# stages row by row below the diagonal, two error estimates of 13 coefficients, dense output in rows of 16
TABLEAU_TEXT = """
0.05260015195876773 0.0197250569845379 0.0591751709536137 0.02958758547680685 0 0.08876275643042054
0.2413651341592667 0 -0.8845494793282861 0.924834003261792 0.037037037037037035 0 0 0.17082860872947386
0.12546768756682242 0.037109375 0 0 0.17025221101954405 0.06021653898045596 -0.017578125 0.03709200011850479 0 0
0.17038392571223998 0.10726203044637328 -0.015319437748624402 0.008273789163814023 0.6241109587160757 0 0
-3.3608926294469414 -0.868219346841726 27.59209969944671 20.154067550477894 -43.48988418106996 0.47766253643826434 0
0 -2.4881146199716677 -0.590290826836843 21.230051448181193 15.279233632882423 -33.28821096898486
-0.020331201708508627 -0.9371424300859873 0 0 5.186372428844064 1.0914373489967295 -8.149787010746927
-18.52006565999696 22.739487099350505 2.4936055526796523 -3.0467644718982196 2.273310147516538 0 0
-10.53449546673725 -2.0008720582248625 -17.9589318631188 27.94888452941996 -2.8589982771350235 -8.87285693353063
12.360567175794303 0.6433927460157636 0.054293734116568765 0 0 0 0 4.450312892752409 1.8915178993145003
-5.801203960010585 0.3111643669578199 -0.1521609496625161 0.20136540080403034 0.04471061572777259
0.056167502283047954 0 0 0 0 0 0.25350021021662483 -0.2462390374708025 -0.12419142326381637 0.15329179827876568
0.00820105229563469 0.007567897660545699 -0.008298 0.03183464816350214 0 0 0 0 0.028300909672366776
0.053541988307438566 -0.05492374857139099 0 0 -0.00010834732869724932 0.0003825710908356584 -0.00034046500868740456
0.1413124436746325 -0.42889630158379194 0 0 0 0 -4.697621415361164 7.683421196062599 4.06898981839711
0.3567271874552811 0 0 0 -0.0013990241651590145 2.9475147891527724 -9.15095847217987
0.01312004499419488 0 0 0 0 -1.2251564463762044 -0.4957589496572502 1.6643771824549864 -0.35032884874997366
0.3341791187130175 0.08192320648511571 -0.022355307863886294 0 -0.18980075407240762 0 0 0 0 4.450312892752409
1.8915178993145003 -5.801203960010585 -0.4226823213237919 -0.1521609496625161 0.20136540080403034
0.02265179219836082 0
-8.428938276109013 0 0 0 0 0.5667149535193777 -3.0689499459498917 2.38466765651207 2.117034582445028
-0.871391583777973 2.2404374302607883 0.6315787787694688 -0.08899033645133331 18.148505520854727 -9.194632392478356
-4.436036387594894 10.427508642579134 0 0 0 0 242.28349177525817 165.20045171727028 -374.5467547226902
-22.113666853125306 7.733432668472264 -30.674084731089398 -9.332130526430229 15.697238121770845 -31.139403219565178
-9.35292435884448 35.81684148639408 19.985053242002433 0 0 0 0 -387.0373087493518 -189.17813819516758
527.8081592054236 -11.57390253995963 6.8812326946963 -1.0006050966910838 0.7777137798053443 -2.778205752353508
-60.19669523126412 84.32040550667716 11.99229113618279 -25.69393346270375 0 0 0 0 -154.18974869023643
-231.5293791760455 357.6391179106141 93.40532418362432 -37.45832313645163 104.0996495089623 29.8402934266605
-43.53345659001114 96.32455395918828 -39.17726167561544 -149.72683625798564
"""
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
C = TypeVar("C")  # a cell
P = TypeVar("P", bound=Hashable)  # a program
S = TypeVar("S")  # the solution of a cell


class Tableau(NamedTuple):
    """Coefficients of the stages (16, 16), of the errors of order 5 and 3 (16,), and of the dense output (4, 16)."""

    a: np.ndarray
    fifth_error_weights: np.ndarray
    third_error_weights: np.ndarray
    polynomial: np.ndarray


def read_tableau() -> Tableau:
    """Read the coefficients of the Runge-Kutta method into arrays.

    >>> bool(np.allclose(read_tableau().a[NUM_STAGES].sum(), 1.0, rtol=1e-14))
    True
    """
    stages, errors, polynomial = np.split(np.array(TABLEAU_TEXT.split(), float), [120, 146])
    a = np.zeros((NUM_ALL_STAGES, NUM_ALL_STAGES))
    a[np.tril_indices(NUM_ALL_STAGES, -1)] = stages
    fifth, third = np.pad(errors.reshape(2, -1), ((0, 0), (0, NUM_ALL_STAGES - NUM_STAGES - 1)))
    return Tableau(a, fifth, third, polynomial.reshape(-1, NUM_ALL_STAGES))


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
    """Integrate dy/dt = field(y) with y(begin) = start for a batch, and return the solution at increasing times.

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
    """Attempt a Runge-Kutta step of each system, with dense-output stages if any step contains a recorded time."""
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
    """Estimate the error of each system's Runge-Kutta step in units of the tolerance."""
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


def solve_in_batches(
    cells: Sequence[C],
    solution_key: Callable[[C], Any],
    program: Callable[[C], P],
    batch_size: Callable[[P], int],
    solve: Callable[[P, list[C]], list[S]],
) -> list[S]:
    """Solve cells in batches, each integrated by one compiled program.

    Cells with equal keys are solved only once.

    Parameters
    ----------
    cells
        The cells, each possibly with further arguments of its solver.
    solution_key
        Returns everything that determines the equations and the initial values of a cell.
    program
        Returns the program of a cell.
    batch_size
        Returns the number of cells that a program integrates in one call.
    solve
        Returns the solutions of cells that have the same program.
    """
    keys, first = list(map(solution_key, cells)), dict[Any, C]()
    for key, cell in zip(keys, cells, strict=True):
        first.setdefault(key, cell)
    groups: dict[P, list[Any]] = {}
    for key, cell in first.items():
        groups.setdefault(program(cell), []).append(key)
    solutions: dict[Any, S] = {}
    for group_program, members in groups.items():
        size = batch_size(group_program)
        for batch in (members[start : start + size] for start in range(0, len(members), size)):
            solutions |= zip(batch, solve(group_program, [first[key] for key in batch]), strict=True)
    return [solutions[key] for key in keys]


def pad_with_last_member(members: Sequence[S]) -> list[S]:
    """Pad members to the batch size of the compiled program by repeating the last member.

    >>> pad_with_last_member("ab")
    ['a', 'b', 'b', 'b', 'b', 'b', 'b', 'b']
    """
    return [*members, *[members[-1]] * (pad_array_length(len(members)) - len(members))]


def check_integration_complete(cells: Sequence[Any], rows: Iterable[np.ndarray], completed: Array, last: float) -> None:
    """Raise `SolverError` if a cell has not reached the last time or has values that are not finite."""
    for cell, cell_rows, is_complete in zip(cells, rows, completed, strict=False):
        if not (is_complete and np.isfinite(cell_rows).all()):
            raise SolverError(f"the integration of {cell.message_description} stopped before t = {last:g}")


class TimePiece(NamedTuple):
    """Time interval with its start, integration times relative to the start, and number of recorded times.

    The last integration time is the end of the piece and the start of the next piece.
    """

    begin: float
    times: np.ndarray
    num_recorded_times: int


def split_times_into_pieces(starts: Sequence[float], times: np.ndarray) -> Iterator[TimePiece]:
    """Split recorded times (T,) into pieces of an integration that start at the given times.

    A recorded time at an edge belongs to the piece that starts there.

    >>> times = np.array([1.0, 5.0, 9.0])
    >>> pieces = split_times_into_pieces([0.0, 5.0], times)
    >>> [(piece.begin, piece.times.tolist(), piece.num_recorded_times) for piece in pieces]
    [(0.0, [1.0, 5.0], 1), (5.0, [0.0, 4.0], 2)]
    """
    ends = [*starts[1:], max(times[-1], starts[-1])]
    for begin, end in zip(starts, ends, strict=True):
        relative_times = times[(times >= begin) & ((times < end) | (end == ends[-1]))] - begin
        reaches_end = relative_times.size > 0 and relative_times[-1] == end - begin
        yield TimePiece(
            begin, relative_times if reaches_end else np.append(relative_times, end - begin), relative_times.size
        )


def integrate_in_pieces(
    solve: Callable[[float, Array, Array], tuple[Array, Array]],
    starts: Sequence[float],
    start: Array,
    times: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate a batch of cells piece by piece.

    Returns the solution (T, C, L) and a mask (L,) of completed batch elements.

    Parameters
    ----------
    solve
        Integrates one piece. Its arguments are the start of the piece, the rows (C, L) there, and times relative to
        the start, padded with inf. It returns the rows at these times, and a mask of completed batch elements.
    starts
        Start times of the pieces, the first at 0.
    start : array (C, L)
        The rows at t = 0.
    times : array (T,)
        Recorded times, increasing.
    """
    blocks, completed, rows = [], np.ones(start.shape[1], bool), start
    for piece in split_times_into_pieces(starts, times):
        values, is_complete = map(np.asarray, solve(piece.begin, rows, pad_times(piece.times, rows.size)))
        blocks.append(values[: piece.num_recorded_times])
        completed, rows = completed & is_complete, values[len(piece.times) - 1]
    return np.concatenate(blocks), completed
