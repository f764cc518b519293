"""Best controls of the cells of a scenario with `optimal` keys.

The best rate of a single perceptron has a closed form (`theory.control.best_rates`). Other controls are found by
gradient descent (`theory.control.optimum`). Simulation and theory use the same controls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from statmech.controls import ControlFunction, TimeSegments
from statmech.optima import LAST_TIME_OBJECTIVE, Objective, OptimalControlOptions
from statmech.runtime.system import count_cores
from statmech.scenarios.controlled_keys import FIRST_TASK_FRACTION_CONTROL, NUM_OPTIMUM_SEARCHES
from statmech.scenarios.online_student import OnlineCell
from theory.control.best_rates import compute_best_rates, find_update_length_exponent
from theory.control.errors import compute_control_objectives
from theory.control.gradients import compute_cost_and_gradient
from theory.control.optimum import ControlBounds, minimise_control_cost
from theory.control.systems import make_control_problem

C = TypeVar("C")
MIN_LEARNING_RATE, MAX_LEARNING_RATE = 1e-3, 30.0
FRACTION_CONTROL_UPPER_BOUNDS = {
    FIRST_TASK_FRACTION_CONTROL: 1.0,
    "dropout": 0.9,
}  # upper bounds of controls that are fractions
CONSTANT_CONTROL_GRID_POINTS = 16  # grid points of a single control; two controls have half the points each
CONSTANT_CONTROL_TOL = 1e-7  # absolute, for a fraction or for the logarithm of a learning rate
FIRST_SEGMENT_FRACTION, SEGMENT_LENGTH_RATIO, POINTS = (
    1e-3,
    2.0,
    8,
)  # smooth controls: first edge, ratio of successive edges, values per segment
INTEGRATOR_STEPS_LAST_SEGMENT = 40  # integrator steps
MAX_LEARNING_RATE_AT_ZERO_R = 100.0  # at t = 0: fixes the free scale of a student that starts at R = 0
TIME_AND_ERROR_EQUALITY_RTOL = 1e-9  # relative, for times and for errors

_control_cache: dict[Any, Future[BestControls]] = {}  # finished and running searches
_control_cache_lock = Lock()


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
        """Return the dataset variables of the named controls at the recorded times (T,)."""
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
    """Find the best constants and their objective by refining the best point of a grid."""

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
    """Find the best controls by gradient descent from several starts."""
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
    """Return the bounds of all control values, one control after the other.

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
    """Make a control from the values that a search has found.

    The control is 1 before `start_time`, if the search starts after t = 0.
    """
    edges, all_values = segments.edges, tuple(values.tolist())
    if start_time > 0:
        edges, all_values = (0.0, *edges), (1.0, *all_values)
    return ControlFunction(TimeSegments(edges, segments.points), all_values, options)


def _make_segment_edges(
    cell: Any, options: OptimalControlOptions, start_time: float, last_time: float
) -> tuple[float, ...]:
    """Return the edges of equal segments up to the last time, and the times when the problem itself jumps."""
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
