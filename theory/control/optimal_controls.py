r"""Optimal controls of the cells of a scenario with `optimal` keys.

The learning rate of a single perceptron is optimised in closed form, other controls by gradient descent
(`theory.control.control_gradients`). Simulation and theory use the same controls. They are stored as an attribute of a
solution, so that drawing requires no new search.

**Objective.** Controls minimise an error from the exact equations, at the last time or averaged over time. The average
is a sum over Gauss-Legendre nodes. Panels are equal, and geometric near t = 0.

**The best rate of a single perceptron** has a closed form up to an integral. Where g is proportional to a power of the
student's length l, the averages at learning rate 1 and length 1, the response D and :math:`F = \langle f^2\rangle`,
depend on the angle :math:`\theta` alone, and so do the rates for :math:`a = \eta/l` (for :math:`a = \eta` where f is
proportional to l):

.. math:: \dot R = aD\sin^2\theta - \tfrac12a^2RF .

The state is a single number, so that choosing the best rate at every time is the optimal control,

.. math:: a^*(\theta) = \frac{D\sin^2\theta}{F\cos\theta}, \qquad
          \dot\theta = -\frac{D^2\sin^3\theta}{2F\cos\theta}, \qquad
          t(\theta) = \int_\theta^{\theta_0}\frac{2F\cos\phi}{D^2\sin^3\phi}\,d\phi .

The integral is smooth at :math:`\theta_0 = \pi/2` (R = 0), where :math:`a^*` diverges because the weights of such a
student carry no information. With :math:`u = \log\tan(\phi/2)`, :math:`d\phi = \sin\phi\,du`, the integrand is smooth
on the scale 1 down to any angle. Without flips

.. math:: \text{perceptron:}\quad t = \frac{2\theta}{\sin^2\theta} + 2\cot\theta - \pi, \qquad
          \text{hebb:}\quad \tan^2\theta = \frac\pi{2t}

from R = 0, so that :math:`(t+\pi)\,\epsilon_g\to4/\pi` up to :math:`t^{-4}` for the perceptron rule.

Where g does not depend on the length, the learning rate is :math:`\eta^* = a^*l`. Along the optimum the noise alone
lengthens the student by :math:`\cos\theta/\cos\theta_0`, and with the weight decay :math:`\nu`

.. math:: \eta^* = \frac{l_0}{\cos\theta_0}\,\frac{D\sin^2\theta}F
          \exp\Big(2\int_u^{u_0}\frac{\langle fu\rangle}D\,du' - \nu t\Big),

whose scale is free at R = 0: the larger the scale, the more the first examples outweigh a randomly drawn start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import singledispatch
from itertools import product
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xarray as xr
from scipy.optimize import minimize, minimize_scalar

from statmech.errors import DivergedStudentError, SolverError
from statmech.keys.scenario import AbstractScenario
from statmech.keys.time_dependent_keys import FIRST_TASK_FRACTION_CONTROL, NUM_OPTIMUM_SEARCHES
from statmech.kinds.network import NetworkCell
from statmech.kinds.network_tasks import NetworkTaskCell
from statmech.kinds.online_learning import OnlineCell
from statmech.kinds.online_tasks import OnlineTaskCell
from statmech.numerics.gaussian import get_legendre_rule
from statmech.parameters.schedules_and_controls import (
    LAST_TIME_OBJECTIVE,
    ControlFunction,
    Objective,
    OptimalControlOptions,
    TimeSegments,
)
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import count_cores
from statmech.stores.dataset import scenario_from_dataset
from statmech.students.rules import Rule, RuleAverages
from statmech.students.student_geometry import angle_from_versine
from theory.control.control_gradients import ControlBounds, compute_cost_and_gradient, minimise_control_cost
from theory.control.controlled_equations import make_control_problem
from theory.networks import order_parameter_equations as network_equations
from theory.networks import several_tasks as network_tasks
from theory.online import order_parameter_equations as online_equations
from theory.online import several_tasks as online_tasks
from theory.online.student_states import make_initial_students

# width in u, and nodes per panel: the integral is exact to rounding
LOG_ANGLE_PANEL_WIDTH = 0.25
NODES_PER_LOG_ANGLE_PANEL = 16
MIN_TABULATED_ANGLE = 1e-14
MAX_ANGLE_NEWTON_STEPS = 40  # three or four suffice in practice
LENGTH_POWER_TEST_LENGTHS = 0.25, 0.5, 1.0, 2.0
LENGTH_POWER_TEST_STABILITIES = np.linspace(-3.0, 3.0, 13)
# equal panels, geometric edges, and nodes per panel of a time average
NUM_EQUAL_TIME_PANELS = 50
NUM_GEOMETRIC_TIME_EDGES = 40
NODES_PER_TIME_PANEL = 4
FIRST_TIME_PANEL_FRACTION = 1e-4  # relative to the averaging time
C = TypeVar("C")
MIN_LEARNING_RATE, MAX_LEARNING_RATE = 1e-3, 30.0
FRACTION_CONTROL_UPPER_BOUNDS = {
    FIRST_TASK_FRACTION_CONTROL: 1.0,
    "dropout": 0.9,
}  # upper bounds of controls that are fractions
CONSTANT_CONTROL_GRID_POINTS = 16  # grid points of a single control; two controls have half the points each
CONSTANT_CONTROL_TOL = 1e-7  # absolute, for a fraction or for the logarithm of a learning rate
# smooth controls: first edge, ratio of successive edges, values per segment
FIRST_SEGMENT_FRACTION = 1e-3
SEGMENT_LENGTH_RATIO = 2.0
POINTS = 8
INTEGRATOR_STEPS_LAST_SEGMENT = 40  # integrator steps
MAX_LEARNING_RATE_AT_ZERO_R = 100.0  # at t = 0: fixes the free scale of a student that starts at R = 0
TIME_AND_ERROR_EQUALITY_RTOL = 1e-9  # relative, for times and for errors
_control_cache: dict[Any, Future[BestControls]] = {}  # finished and running searches
_control_cache_lock = Lock()
BEST_CONTROLS_ATTRIBUTE = "best_controls"  # attribute of the dataset


class BestRates(NamedTuple):
    """Angle to the teacher, best rate and best learning rate of a student at each time (T,).

    The rate a is the learning rate over the student's length. The learning rate is given in units of its scale, which
    is the length over the cosine at t = 0 (1 where f scales with l).
    """

    theta: np.ndarray
    rate: np.ndarray
    eta: np.ndarray


def compute_best_rates(cell: OnlineCell, times: np.ndarray) -> BestRates:
    """Compute the angle and the optimal learning rates of a single student at the given times.

    Parameters
    ----------
    cell
        The cell with the rule, flip rate, weight decay and start. The equations do not include drift.
    times : array (T,)
        Times in any order.

    Returns
    -------
    BestRates
        Arrays (T,). The rate is infinite at R = 0.

    Raises
    ------
    SolverError
        If g is not proportional to a power of the student's length.
    """
    if (power := find_update_length_exponent(cell.rule)) is None:
        raise SolverError(
            f"{cell.message_description}: the best rate has no closed form, as g depends on the student's length"
        )
    start, times = float(np.squeeze(angle_from_versine(make_initial_students(cell).y))), np.asarray(times, float)
    edges = np.arange(np.log(np.tan(start / 2)), np.log(MIN_TABULATED_ANGLE), -LOG_ANGLE_PANEL_WIDTH)
    with use_cpu_double_precision():
        edge_times = np.concatenate(
            [[0.0], np.cumsum(_integrate_over_log_angle(_time_per_log_angle, cell, edges[1:], edges[:-1]))]
        )
        panel = np.clip(np.searchsorted(edge_times, times, side="right") - 1, 0, edges.size - 2)
        theta = _find_angles_at_elapsed_times(cell, edges[panel], times - edge_times[panel])
        unit_averages = _compute_unit_averages(cell, theta)
        growth = np.concatenate(
            [[0.0], np.cumsum(_integrate_over_log_angle(_log_length_per_log_angle, cell, edges[1:], edges[:-1]))]
        )[panel]
        growth = (
            growth
            + _integrate_over_log_angle(_log_length_per_log_angle, cell, np.log(np.tan(theta / 2)), edges[panel])
            - cell.decay * times
        )
    with np.errstate(divide="ignore"):
        eta = unit_averages.response * np.sin(theta) ** 2 / unit_averages.ff
        rate = eta / np.maximum(np.cos(theta), 0.0)
    return BestRates(theta, rate, rate if power else eta * np.exp(growth))


def find_update_length_exponent(rule: Rule) -> int | None:
    """Find the n in g(kappa, l) = l^n g(kappa, 1) for an optimal rate in closed form, or return None.

    >>> from statmech.students.rules import RULES
    >>> (
    ...     find_update_length_exponent(RULES["perceptron"]()),
    ...     find_update_length_exponent(RULES["adatron_textbook"]()),
    ...     find_update_length_exponent(RULES["bayes"]())
    ... )
    (0, 1, None)
    """
    rescaled_updates = [
        np.asarray(rule.g(LENGTH_POWER_TEST_STABILITIES, np.float64(length)), float) / length
        for length in LENGTH_POWER_TEST_LENGTHS
    ]
    return next((n for n in (0, 1) if all(_iterate_length_power_checks(rescaled_updates, n))), None)


def _iterate_length_power_checks(rescaled_updates: list[np.ndarray], power: int) -> Iterator[bool]:
    """Yield for each length whether g/l follows the power law that the optimal rate in closed form requires."""
    ratios = (np.array(LENGTH_POWER_TEST_LENGTHS) / LENGTH_POWER_TEST_LENGTHS[0]) ** (power - 1)
    return (
        np.allclose(update, ratio * rescaled_updates[0]) for update, ratio in zip(rescaled_updates, ratios, strict=True)
    )


def _compute_unit_averages(cell: OnlineCell, theta: np.ndarray) -> RuleAverages:
    """Compute the averages at learning rate 1 and length 1 that determine the optimal rate of a rule."""
    rule = replace(cell.rule, eta=1.0)
    parts = online_equations.compute_rule_averages(
        rule, rule.has_closed_form, theta, np.ones_like(theta), np.float64(cell.flip)
    )
    return RuleAverages(*(np.asarray(values) + 0 * theta for values in parts))


def _time_per_log_angle(cell: OnlineCell, u: np.ndarray) -> np.ndarray:
    """Return the time per unit change of u, -dt/du."""
    theta = 2 * np.arctan(np.exp(u))
    single = _compute_unit_averages(cell, theta)
    return 2 * single.ff * np.cos(theta) / (single.response * np.sin(theta)) ** 2


def _log_length_per_log_angle(cell: OnlineCell, u: np.ndarray) -> np.ndarray:
    """Return the growth of log l per unit change of u due to learning alone, without noise."""
    single = _compute_unit_averages(cell, 2 * np.arctan(np.exp(u)))
    return 2 * single.fu / single.response


def _integrate_over_log_angle(
    integrand: Callable[..., np.ndarray], cell: OnlineCell, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Integrate a function of u along the optimal rate, from low (n,) to high (n,).

    The integral of `_time_per_log_angle` is the time elapsed.
    """
    x, weight = get_legendre_rule(NODES_PER_LOG_ANGLE_PANEL)
    width = (high - low)[:, None]
    values = integrand(cell, (low[:, None] + width * x).reshape(-1)).reshape(len(low), NODES_PER_LOG_ANGLE_PANEL)
    return np.asarray((width * weight * values).sum(-1))


def _find_angles_at_elapsed_times(cell: OnlineCell, edge: np.ndarray, elapsed: np.ndarray) -> np.ndarray:
    """Find the angles (T,) at the optimal rate from the times elapsed since the start of their panels (T,)."""
    u = edge - LOG_ANGLE_PANEL_WIDTH / 2
    for _ in range(MAX_ANGLE_NEWTON_STEPS):
        excess = _integrate_over_log_angle(_time_per_log_angle, cell, u, edge) - elapsed
        new_u = np.clip(u + excess / _time_per_log_angle(cell, u), edge - LOG_ANGLE_PANEL_WIDTH, edge - 1e-300)
        converged = np.max(np.abs(new_u - u), initial=0.0) <= 1e-15 * np.max(np.abs(u), initial=1.0)
        u = new_u
        if converged:
            break
    return np.where(elapsed == 0, 2 * np.arctan(np.exp(edge)), 2 * np.arctan(np.exp(u)))


def compute_control_objectives(cells: Sequence[Any], last_time: float, objective: Objective) -> np.ndarray:
    """Compute the objectives (n,) that controls minimise, for n cells of one kind.

    An objective is infinite if the student diverges.
    """
    try:
        return _compute_objectives_or_raise(cells, last_time, objective)
    except (SolverError, DivergedStudentError):
        if len(cells) == 1:
            return np.array([np.inf])
    return np.concatenate([compute_control_objectives([cell], last_time, objective) for cell in cells])


def _compute_objectives_or_raise(cells: Sequence[Any], last_time: float, objective: Objective) -> np.ndarray:
    if objective.over == LAST_TIME_OBJECTIVE:
        times, weights = np.array([last_time]), np.ones(1)
    else:
        times, weights = _make_time_average_nodes(last_time)
    errors = np.stack(compute_task_errors(cells, times))
    return np.asarray(weights @ errors @ objective.shares(errors.shape[-1]))


def compute_task_errors(cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    """Compute the generalization errors (T, tasks) of cells of one kind.

    Cells are integrated in parallel where possible.
    """
    return _compute_errors_by_type(cells[0], cells, times)


@singledispatch
def _compute_errors_by_type(first_cell: Any, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    raise TypeError(f"{first_cell!r} has no error that a control could lower")


@_compute_errors_by_type.register
def _compute_student_errors(_: OnlineCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    return [
        angle_from_versine(students.y[:, :1]) / np.pi for students in online_equations.solve_cells(list(cells), times)
    ]


@_compute_errors_by_type.register
def _compute_task_student_errors(_: OnlineTaskCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    return [angle_from_versine(student.y) / np.pi for student in online_tasks.solve_cells(cells, times)]


@_compute_errors_by_type.register
def _compute_network_errors(_: NetworkCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    solutions = network_equations.solve_cells(cells, times)
    return [
        network_equations.compute_generalization_error(cell, units)[:, None]
        for cell, units in zip(cells, solutions, strict=True)
    ]


@_compute_errors_by_type.register
def _compute_task_network_errors(_: NetworkTaskCell, cells: Sequence[Any], times: np.ndarray) -> list[np.ndarray]:
    solutions = network_tasks.solve_cells(cells, times)
    return [network_tasks.compute_task_errors(cell, units) for cell, units in zip(cells, solutions, strict=True)]


def _make_time_average_nodes(last_time: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the quadrature times and weights of an objective that is a time average."""
    edges = np.union1d(
        np.linspace(0, last_time, NUM_EQUAL_TIME_PANELS + 1),
        np.geomspace(FIRST_TIME_PANEL_FRACTION, 1, NUM_GEOMETRIC_TIME_EDGES) * last_time,
    )
    x, weight = get_legendre_rule(NODES_PER_TIME_PANEL)
    width = np.diff(edges)[:, None]
    return (edges[:-1, None] + width * x).reshape(-1), (width * weight).reshape(-1) / last_time


class BestControls(NamedTuple):
    """Optimal controls and best constants by name, with the objective and measures of convergence.

    `gain` is the objective of the constants over the objective of the controls. `projected_gradient` is the norm of the
    projected gradient of the objective's logarithm. `reached` has the result of each search (searches,), NaN for
    searches that were not needed.
    """

    controls: dict[str, ControlFunction]
    constants: dict[str, float]
    objective: float
    gain: float
    projected_gradient: float
    reached: np.ndarray

    def make_variables(self, names: Sequence[str], t: np.ndarray) -> dict[str, np.ndarray]:
        """Return the dataset variables of the best controls with these names at the recorded times (T,)."""
        missing = np.full(t.size, np.nan)
        return {
            "control": np.stack(
                [self.controls[name].value_at(t) if name in self.controls else missing for name in names]
            ),
            "best_constant": np.array([self.constants.get(name, np.nan) for name in names]),
            "gain": np.asarray(self.gain),
            "projected_gradient": np.asarray(self.projected_gradient),
            "objective": np.asarray(self.objective),
            "objective_of_search": self.reached,
        }


class ControlSearchResult(NamedTuple):
    """Result of a search: controls, norm of the projected gradient, and the objective found from each start."""

    controls: dict[str, ControlFunction]
    projected_gradient_norm: float
    start_objectives: list[float]


class ControlRange(NamedTuple):
    """Range of the values of a control, spaced geometrically for a learning rate."""

    low: float
    high: float
    geometric: bool

    def value_at(self, coordinate: float) -> float:
        """Return the value at a coordinate, its exponential if spacing is geometric."""
        return float(np.exp(coordinate) if self.geometric else coordinate)

    @property
    def coordinate_bounds(self) -> tuple[float, float]:
        """Lowest and highest coordinate of the range."""
        low, high = np.log([self.low, self.high]) if self.geometric else (self.low, self.high)
        return float(low), float(high)


def add_best_controls(cells: Sequence[C], last_time: float) -> list[tuple[C, BestControls | None]]:
    """Replace the `optimal` keys of each cell by its best controls up to the last time.

    Returns pairs of a cell and its optimum, which is None for a cell without such keys.
    """
    with ThreadPoolExecutor(count_cores()) as pool:  # the compiled equations release the GIL
        return list(pool.map(lambda cell: _add_cell_controls(cell, last_time), cells))


def cache_best_controls(cell: Any, last_time: float, best: BestControls) -> None:
    """Store the best controls of a cell in the cache, unless they are already present."""
    result = Future[BestControls]()
    result.set_result(best)
    with _control_cache_lock:
        _control_cache.setdefault(_make_cache_key(cell, last_time), result)


def _add_cell_controls(cell: Any, last_time: float) -> tuple[Any, BestControls | None]:
    if not cell.optimal_keys:
        return cell, None
    best = _get_best_controls(cell, last_time)
    return _apply_controls(cell, best.controls), best


def are_best_controls_cached(cells: Sequence[Any], last_time: float) -> bool:
    """Return True if the best controls of all cells with `optimal` keys are in the cache."""
    results = [_control_cache.get(_make_cache_key(cell, last_time)) for cell in cells if cell.optimal_keys]
    return all(result is not None and result.done() for result in results)


def _make_cache_key(cell: Any, last_time: float) -> Any:
    """Return a key with everything that determines the best controls of a cell."""
    return type(cell), replace(cell, N=10**6, index=()).identity_hash(), last_time


def _get_best_controls(cell: Any, last_time: float) -> BestControls:
    """Return the best controls of a cell, found once per process.

    Simulation, theory and dense lines share the controls, which do not depend on N.
    """
    key, new = _make_cache_key(cell, last_time), Future[BestControls]()
    with _control_cache_lock:
        cached = _control_cache.setdefault(key, new)
    if cached is new:
        try:
            new.set_result(_find_best_controls(cell, last_time))
        except BaseException as error:
            del _control_cache[key]
            new.set_exception(error)
    return cached.result()


def _find_best_controls(cell: Any, last_time: float) -> BestControls:
    objective = next(iter(cell.optimal_keys.values())).objective
    ranges = {name: get_search_range(name, options) for name, options in cell.optimal_keys.items()}
    constants, constant_error = _find_best_constants(cell, ranges, last_time, objective)
    closed_form = _find_closed_form_best_rate(cell, last_time) if type(cell) is OnlineCell else None
    controls, gradient, searches = closed_form or _search_controls(cell, ranges, constants, last_time)
    [error] = compute_control_objectives([_apply_controls(cell, controls)], last_time, objective)
    if not error <= constant_error * (
        1 + TIME_AND_ERROR_EQUALITY_RTOL
    ):  # steps of fixed size are inaccurate at large rates
        controls = {
            name: _make_constant_control(cell, name, constants[name], cell.optimal_keys[name]) for name in controls
        }
        error = constant_error
    search_results = np.full(NUM_OPTIMUM_SEARCHES, np.nan)
    search_results[: len(searches)] = searches
    return BestControls(controls, constants, float(error), float(constant_error / error), gradient, search_results)


def get_search_range(name: str, options: OptimalControlOptions) -> ControlRange:
    """Return the search range of a control with this name."""
    if name in FRACTION_CONTROL_UPPER_BOUNDS:
        return ControlRange(0.0, options.at_most or FRACTION_CONTROL_UPPER_BOUNDS[name], geometric=False)
    return ControlRange(MIN_LEARNING_RATE, options.at_most or MAX_LEARNING_RATE, geometric=True)


def _apply_controls(cell: Any, controls: Mapping[str, ControlFunction]) -> Any:
    """Return the cell with these controls instead of its `optimal` keys."""
    other_controls = dict(controls)
    if fraction := other_controls.pop(FIRST_TASK_FRACTION_CONTROL, None):
        cell = replace(cell, protocol=replace(cell.protocol, share=fraction))
    return replace(cell, controls=tuple({**dict(cell.controls), **other_controls}.items()))


def _make_constant_control(
    cell: Any, name: str, value: float, options: OptimalControlOptions | None = None
) -> ControlFunction:
    """Make a constant control.

    The fraction of the first task is 1 until the switch.
    """
    if name == FIRST_TASK_FRACTION_CONTROL and cell.switch:
        return ControlFunction(TimeSegments((0.0, cell.switch, np.inf)), (1.0, value), options)
    return ControlFunction(TimeSegments((0.0, np.inf)), (value,), options)


def _find_best_constants(
    cell: Any, ranges: dict[str, ControlRange], last_time: float, objective: Objective
) -> tuple[dict[str, float], float]:
    """Find the best constant controls and their objective by refining the best point of a grid."""

    def cells_at(points: Sequence[Sequence[float]]) -> list[Any]:
        constants = [
            {name: control_range.value_at(x) for (name, control_range), x in zip(ranges.items(), point, strict=True)}
            for point in points
        ]
        return [
            _apply_controls(cell, {name: _make_constant_control(cell, name, x) for name, x in values.items()})
            for values in constants
        ]

    def objective_at(point: Sequence[float]) -> float:
        return float(compute_control_objectives(cells_at([point]), last_time, objective)[0])

    axes = [
        np.linspace(
            *control_range.coordinate_bounds,
            CONSTANT_CONTROL_GRID_POINTS if len(ranges) == 1 else CONSTANT_CONTROL_GRID_POINTS // 2,
        )
        for control_range in ranges.values()
    ]
    grid = list(product(*axes))
    values = compute_control_objectives(cells_at(grid), last_time, objective)
    best = grid[int(np.argmin(values))]
    neighbours = [_get_grid_neighbours(axis, x) for axis, x in zip(axes, best, strict=True)]
    coordinates: tuple[float, ...]
    if len(axes) == 1:
        refined = minimize_scalar(
            lambda x: objective_at([x]), bounds=neighbours[0], method="bounded", options={"xatol": CONSTANT_CONTROL_TOL}
        )
        coordinates, lowest = (refined.x,), refined.fun
    else:
        options = {"xatol": 10 * CONSTANT_CONTROL_TOL, "fatol": 1e-12 * np.min(values)}
        refined = minimize(objective_at, best, method="Nelder-Mead", bounds=neighbours, options=options)
        coordinates, lowest = tuple(refined.x), refined.fun
    if not lowest <= np.min(values):
        coordinates, lowest = best, np.min(values)
    return {
        name: control_range.value_at(x) for (name, control_range), x in zip(ranges.items(), coordinates, strict=True)
    }, float(lowest)


def _get_grid_neighbours(axis: np.ndarray, x: float) -> tuple[float, float]:
    """Return the neighbours of a value on an axis."""
    index = int(np.searchsorted(axis, x))
    return float(axis[max(index - 1, 0)]), float(axis[min(index + 1, axis.size - 1)])


def _search_controls(
    cell: Any, ranges: dict[str, ControlRange], constants: dict[str, float], last_time: float
) -> ControlSearchResult:
    """Find the best controls of a cell by a search within their ranges."""
    options = next(iter(cell.optimal_keys.values()))
    only_fraction = [*ranges] == [
        FIRST_TASK_FRACTION_CONTROL
    ] and options.objective.over == LAST_TIME_OBJECTIVE  # a fraction of tasks has no effect before the switch
    begin = float(cell.switch or 0.0) if only_fraction else 0.0
    problem = make_control_problem(
        cell, TimeSegments(_make_segment_edges(cell, options, begin, last_time), options.points)
    )
    problem = problem if options.objective.over == LAST_TIME_OBJECTIVE else problem.time_average_problem
    optimum = minimise_control_cost(
        problem, _make_control_bounds(cell, ranges, problem.segments), np.array([*constants.values()])
    )
    # the last value of a piecewise constant control is extended, so that the control is defined at the last time
    edges = problem.segments.edges if options.points > 1 else (*problem.segments.edges[:-1], np.inf)
    segments = TimeSegments(edges, options.points)
    values = dict(zip(ranges, np.split(optimum.values, len(ranges)), strict=True))
    controls = {name: _make_control(begin, segments, values[name], cell.optimal_keys[name]) for name in ranges}
    return ControlSearchResult(
        controls,
        optimum.minima[0].projected_gradient,
        [float(np.exp(search.cost)) for search in optimum.search_results],
    )


def _make_control_bounds(cell: Any, ranges: dict[str, ControlRange], segments: TimeSegments) -> ControlBounds:
    """Return the bounds of all values in the search for the best controls, one control after the other.

    The fraction of the first task is fixed to 1 until the switch.
    """
    low, high = (
        np.repeat([control_range[side] for control_range in ranges.values()], segments.num_values) for side in (0, 1)
    )
    if FIRST_TASK_FRACTION_CONTROL in ranges and cell.switch:
        fixed = [*ranges].index(FIRST_TASK_FRACTION_CONTROL) * segments.num_values + np.flatnonzero(
            segments.value_times < cell.switch
        )
        low[fixed] = high[fixed] = 1.0
    return ControlBounds(low, high)


def _make_control(
    start_time: float, segments: TimeSegments, values: np.ndarray, options: OptimalControlOptions
) -> ControlFunction:
    """Make a control from the best values that a search has found.

    The control is 1 before `start_time`, if the search starts after t = 0.
    """
    edges, all_values = segments.edges, tuple(values.tolist())
    if start_time > 0:
        edges, all_values = (0.0, *edges), (1.0, *all_values)
    return ControlFunction(TimeSegments(edges, segments.points), all_values, options)


def _make_segment_edges(
    cell: Any, options: OptimalControlOptions, start_time: float, last_time: float
) -> tuple[float, ...]:
    """Return the edges of an optimal control's segments up to the last time, and the times of other jumps."""
    edges = np.linspace(start_time, last_time, options.segments + 1)
    jumps = [edge for edge in cell.edges if start_time < edge < last_time]
    distant = [
        edge
        for edge in edges
        if np.min(np.abs(edge - np.array(jumps)), initial=np.inf) > TIME_AND_ERROR_EQUALITY_RTOL * last_time
    ]
    return tuple(sorted([*map(float, distant), *jumps]))


def _find_closed_form_best_rate(cell: OnlineCell, last_time: float) -> ControlSearchResult | None:
    """Compute the best learning rate at every time, or return None if no closed form exists."""
    options = cell.optimal_keys["eta"]
    power, R = find_update_length_exponent(cell.rule), float(cell.start_order_parameters.R[0])
    if power is None or cell.drift > 0 or len(cell.controls) > 1 or (power == 1 and R == 0) or not 0 <= R < 1:
        return None
    halvings = max(1, int(np.ceil(np.log(last_time / FIRST_SEGMENT_FRACTION) / np.log(SEGMENT_LENGTH_RATIO))))
    segments = TimeSegments(
        (0.0, *(last_time / SEGMENT_LENGTH_RATIO ** np.arange(halvings, -1.0, -1.0)).tolist()), POINTS
    )
    eta = compute_best_rates(cell, segments.value_times).eta
    if power == 0:
        length = float(cell.start_order_parameters.length[0])
        eta = eta * (length / R if R > 0 else (options.at_most or MAX_LEARNING_RATE_AT_ZERO_R) / eta[0])
    if options.at_most is not None and np.max(eta) > options.at_most * (1 + TIME_AND_ERROR_EQUALITY_RTOL):
        return None
    values = np.maximum(eta, np.finfo(float).tiny)
    problem = make_control_problem(replace(cell, controls=()), segments)
    problem = problem._replace(step=(segments.edges[-1] - segments.edges[-2]) / INTEGRATOR_STEPS_LAST_SEGMENT)
    problem = problem if options.objective.over == LAST_TIME_OBJECTIVE else problem.time_average_problem
    cost, gradient = compute_cost_and_gradient(problem, values)
    control = ControlFunction(segments, tuple(values.tolist()), options)
    return ControlSearchResult({"eta": control}, float(np.linalg.norm(gradient)), [float(np.exp(cost))])


def make_controls_attribute(scenario: AbstractScenario) -> dict[str, str]:
    """Return the attribute with the best controls of the cells of a solved scenario."""
    optima = add_best_controls([*scenario.cells()], scenario.recorded_coordinates["t"][-1])
    return {BEST_CONTROLS_ATTRIBUTE: json.dumps([best and _serialise_controls(best) for _, best in optima])}


def restore_best_controls(theory: xr.Dataset) -> None:
    """Load the best controls stored in a solution into the cache of this process.

    The attribute lists the controls in the order of the scenario's cells, without naming cells.
    """
    if BEST_CONTROLS_ATTRIBUTE not in theory.attrs:
        return
    scenario = scenario_from_dataset(theory)
    for cell, plain in zip(scenario.cells(), json.loads(theory.attrs[BEST_CONTROLS_ATTRIBUTE]), strict=True):
        if plain:
            cache_best_controls(
                cell, scenario.recorded_coordinates["t"][-1], _deserialise_controls(cell.optimal_keys, plain)
            )


def _serialise_controls(best: BestControls) -> dict[str, Any]:
    controls = {
        name: {"edges": control.segments.edges, "points": control.segments.points, "values": control.values}
        for name, control in best.controls.items()
    }
    return best._asdict() | {"controls": controls, "reached": best.reached.tolist()}


def _deserialise_controls(options: dict[str, OptimalControlOptions], plain: dict[str, Any]) -> BestControls:
    controls = {
        name: ControlFunction(
            TimeSegments(tuple(stored["edges"]), stored["points"]), tuple(stored["values"]), options[name]
        )
        for name, stored in plain["controls"].items()
    }
    return BestControls(**plain | {"controls": controls, "reached": np.array(plain["reached"])})
