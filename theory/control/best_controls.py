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

from statmech.controls import Control, Segments
from statmech.optima import LAST, Objective, Optimal
from statmech.runtime.system import cores
from statmech.scenarios.controlled_keys import SEARCHES, SHARE
from statmech.scenarios.online import OnlineCell
from theory.control.best_rates import best_rates, length_power
from theory.control.errors import objectives
from theory.control.gradients import value_and_gradient
from theory.control.optimum import Bounds, minimum
from theory.control.systems import problem_of

C = TypeVar("C")
LOWEST, HIGHEST = 1e-3, 30.0
SHARES = {SHARE: 1.0, "dropout": 0.9}  # controls between 0 and 1
CONSTANTS = 16  # grid of a single control; two controls have half of these values each
TOLERANCE = 1e-7  # for a constant between 0 and 1, or for the logarithm of a learning rate
FIRST, RATIO, POINTS = 1e-3, 2.0, 8  # smooth controls: first segment, ratio of segments, values per segment
STEPS = 40  # integrator steps
LARGEST = 100.0  # at t = 0, for a student that starts at R = 0, where the scale is free
CLOSE = 1e-9  # relative to the last time, or to an error

_known: dict[Any, Future[Best]] = {}  # finished and running searches
_lock = Lock()


class Best(NamedTuple):
    """Optimal controls and best constants by name, with the objective and measures of convergence.

    `gain` is the objective of the constants over the objective of the controls. `projected_gradient` is the norm of the
    projected gradient of the objective's logarithm. `reached` has the result of each search (SEARCHES,), NaN for
    searches that were not needed.
    """

    controls: dict[str, Control]
    constants: dict[str, float]
    objective: float
    gain: float
    projected_gradient: float
    reached: np.ndarray

    def variables(self, names: Sequence[str], t: np.ndarray) -> dict[str, np.ndarray]:
        """Return the variables of a dataset at recorded times (T,), for controls of these names."""
        missing = np.full(t.size, np.nan)
        return {
            "control": np.stack([self.controls[name].at(t) if name in self.controls else missing for name in names]),
            "best_constant": np.array([self.constants.get(name, np.nan) for name in names]),
            "gain": np.asarray(self.gain),
            "projected_gradient": np.asarray(self.projected_gradient),
            "objective": np.asarray(self.objective),
            "objective_of_search": self.reached,
        }


class Found(NamedTuple):
    """Controls, the norm of the projected gradient at the controls, and the result of each search."""

    controls: dict[str, Control]
    gradient: float
    searches: list[float]


class Range(NamedTuple):
    """Values that a control may take. They are spaced geometrically for a learning rate."""

    low: float
    high: float
    geometric: bool

    def at(self, place: float) -> float:
        """Return the value at a coordinate, which is the value's logarithm for geometric spacing."""
        return float(np.exp(place) if self.geometric else place)

    @property
    def coordinate_bounds(self) -> tuple[float, float]:
        """The lowest and the highest coordinate."""
        low, high = np.log([self.low, self.high]) if self.geometric else (self.low, self.high)
        return float(low), float(high)


def with_best(cells: Sequence[C], last: float) -> list[tuple[C, Best | None]]:
    """Add the best controls up to the last time to each cell that has `optimal` keys.

    Returns each cell with its optimum, and other cells unchanged with None.
    """
    with ThreadPoolExecutor(cores()) as pool:  # the compiled equations release the GIL
        return list(pool.map(lambda cell: _with_best(cell, last), cells))


def remember(cell: Any, last: float, best: Best) -> None:
    """Store the best controls of a cell in the cache, unless the cache has them already."""
    result = Future[Best]()
    result.set_result(best)
    with _lock:
        _known.setdefault(_key(cell, last), result)


def _with_best(cell: Any, last: float) -> tuple[Any, Best | None]:
    if not cell.wishes:
        return cell, None
    best = _remembered(cell, last)
    return _with(cell, best.controls), best


def are_known(cells: Sequence[Any], last: float) -> bool:
    """Return True if this process has found the best controls of all cells with `optimal` keys."""
    results = [_known.get(_key(cell, last)) for cell in cells if cell.wishes]
    return all(result is not None and result.done() for result in results)


def _key(cell: Any, last: float) -> Any:
    """Return a key with everything that determines the best controls of a cell."""
    return type(cell), replace(cell, N=10**6, index=()).words(), last


def _remembered(cell: Any, last: float) -> Best:
    """Return the best controls of a cell, found once per process.

    Simulation, theory and its lines share the controls, whatever their N.
    """
    key, new = _key(cell, last), Future[Best]()
    with _lock:
        cached = _known.setdefault(key, new)
    if cached is new:
        try:
            new.set_result(_found(cell, last))
        except BaseException as error:
            del _known[key]
            new.set_exception(error)
    return cached.result()


def _found(cell: Any, last: float) -> Best:
    objective = next(iter(cell.wishes.values())).objective
    ranges = {name: range_of(name, options) for name, options in cell.wishes.items()}
    constants, constant_error = _best_constants(cell, ranges, last, objective)
    closed_form = _in_closed_form(cell, last) if type(cell) is OnlineCell else None
    controls, gradient, searches = closed_form or _searched(cell, ranges, constants, last)
    [error] = objectives([_with(cell, controls)], last, objective)
    if not error <= constant_error * (1 + CLOSE):  # steps of fixed size are inaccurate at large rates
        controls = {name: _constant(cell, name, constants[name], cell.wishes[name]) for name in controls}
        error = constant_error
    search_results = np.full(SEARCHES, np.nan)
    search_results[: len(searches)] = searches
    return Best(controls, constants, float(error), float(constant_error / error), gradient, search_results)


def range_of(name: str, wish: Optimal) -> Range:
    """Return the range of values for the search of the best control."""
    if name in SHARES:
        return Range(0.0, wish.at_most or SHARES[name], geometric=False)
    return Range(LOWEST, wish.at_most or HIGHEST, geometric=True)


def _with(cell: Any, controls: Mapping[str, Control]) -> Any:
    """Return the cell with these controls instead of its `optimal` keys."""
    other_controls = dict(controls)
    if fraction := other_controls.pop(SHARE, None):
        cell = replace(cell, protocol=replace(cell.protocol, share=fraction))
    return replace(cell, controls=tuple({**dict(cell.controls), **other_controls}.items()))


def _constant(cell: Any, name: str, value: float, wish: Optimal | None = None) -> Control:
    """Make a constant control.

    The fraction of the first task is 1 until the switch.
    """
    if name == SHARE and cell.switch:
        return Control(Segments((0.0, cell.switch, np.inf)), (1.0, value), wish)
    return Control(Segments((0.0, np.inf)), (value,), wish)


def _best_constants(
    cell: Any, ranges: dict[str, Range], last: float, objective: Objective
) -> tuple[dict[str, float], float]:
    """Find the best constants and their objective by refining the best point of a grid."""

    def cells_at(places: Sequence[Sequence[float]]) -> list[Any]:
        constants = [
            {name: control_range.at(x) for (name, control_range), x in zip(ranges.items(), point, strict=True)}
            for point in places
        ]
        return [_with(cell, {name: _constant(cell, name, x) for name, x in values.items()}) for values in constants]

    def objective_at(place: Sequence[float]) -> float:
        return float(objectives(cells_at([place]), last, objective)[0])

    axes = [
        np.linspace(*control_range.coordinate_bounds, CONSTANTS if len(ranges) == 1 else CONSTANTS // 2)
        for control_range in ranges.values()
    ]
    grid = list(product(*axes))
    values = objectives(cells_at(grid), last, objective)
    best = grid[int(np.argmin(values))]
    neighbours = [_around(axis, x) for axis, x in zip(axes, best, strict=True)]
    coordinates: tuple[float, ...]
    if len(axes) == 1:
        refined = minimize_scalar(
            lambda x: objective_at([x]), bounds=neighbours[0], method="bounded", options={"xatol": TOLERANCE}
        )
        coordinates, lowest = (refined.x,), refined.fun
    else:
        options = {"xatol": 10 * TOLERANCE, "fatol": 1e-12 * np.min(values)}
        refined = minimize(objective_at, best, method="Nelder-Mead", bounds=neighbours, options=options)
        coordinates, lowest = tuple(refined.x), refined.fun
    if not lowest <= np.min(values):
        coordinates, lowest = best, np.min(values)
    return {
        name: control_range.at(x) for (name, control_range), x in zip(ranges.items(), coordinates, strict=True)
    }, float(lowest)


def _around(axis: np.ndarray, x: float) -> tuple[float, float]:
    """Return the neighbours of a value on an axis."""
    index = int(np.searchsorted(axis, x))
    return float(axis[max(index - 1, 0)]), float(axis[min(index + 1, axis.size - 1)])


def _searched(cell: Any, ranges: dict[str, Range], constants: dict[str, float], last: float) -> Found:
    """Find the controls by gradient descent."""
    options = next(iter(cell.wishes.values()))
    only_fraction = [*ranges] == [
        SHARE
    ] and options.objective.over == LAST  # then the control has no effect before the switch
    begin = float(cell.switch or 0.0) if only_fraction else 0.0
    problem = problem_of(cell, Segments(_edges(cell, options, begin, last), options.points))
    problem = problem if options.objective.over == LAST else problem.over_time
    optimum = minimum(problem, _bounds(cell, ranges, problem.segments), np.array([*constants.values()]))
    # the last value of a piecewise constant control has no end, so that a step at the last time has a value
    edges = problem.segments.edges if options.points > 1 else (*problem.segments.edges[:-1], np.inf)
    segments = Segments(edges, options.points)
    values = dict(zip(ranges, np.split(optimum.values, len(ranges)), strict=True))
    controls = {name: _from(begin, segments, values[name], cell.wishes[name]) for name in ranges}
    return Found(
        controls, optimum.minima[0].projected_gradient, [float(np.exp(search.cost)) for search in optimum.searches]
    )


def _bounds(cell: Any, ranges: dict[str, Range], segments: Segments) -> Bounds:
    """Return the bounds of the values of all controls in a row.

    The fraction of the first task is fixed to 1 until the switch.
    """
    low, high = (
        np.repeat([control_range[side] for control_range in ranges.values()], segments.size) for side in (0, 1)
    )
    if SHARE in ranges and cell.switch:
        fixed = [*ranges].index(SHARE) * segments.size + np.flatnonzero(segments.times < cell.switch)
        low[fixed] = high[fixed] = 1.0
    return Bounds(low, high)


def _from(begin: float, segments: Segments, values: np.ndarray, wish: Optimal) -> Control:
    """Make a control that begins at t = 0.

    It is 1 before the switch if the search begins there.
    """
    edges, all_values = segments.edges, tuple(values.tolist())
    if begin > 0:
        edges, all_values = (0.0, *edges), (1.0, *all_values)
    return Control(Segments(edges, segments.points), all_values, wish)


def _edges(cell: Any, wish: Optimal, begin: float, last: float) -> tuple[float, ...]:
    """Return the edges of equal segments up to the last time, cut also where the problem itself jumps."""
    edges = np.linspace(begin, last, wish.segments + 1)
    jumps = [edge for edge in cell.edges if begin < edge < last]
    distant = [edge for edge in edges if np.min(np.abs(edge - np.array(jumps)), initial=np.inf) > CLOSE * last]
    return tuple(sorted([*map(float, distant), *jumps]))


def _in_closed_form(cell: OnlineCell, last: float) -> Found | None:
    """Compute the best rate at every time of equal students, or return None if there is no closed form."""
    options = cell.wishes["eta"]
    power, R = length_power(cell.rule), float(cell.order_parameters.R[0])
    if power is None or cell.drift > 0 or len(cell.controls) > 1 or (power == 1 and R == 0) or not 0 <= R < 1:
        return None
    halvings = max(1, int(np.ceil(np.log(last / FIRST) / np.log(RATIO))))
    segments = Segments((0.0, *(last / RATIO ** np.arange(halvings, -1.0, -1.0)).tolist()), POINTS)
    eta = best_rates(cell, segments.times).eta
    if power == 0:
        length = float(cell.order_parameters.length[0])
        eta = eta * (length / R if R > 0 else (options.at_most or LARGEST) / eta[0])
    if options.at_most is not None and np.max(eta) > options.at_most * (1 + CLOSE):
        return None
    values = np.maximum(eta, np.finfo(float).tiny)
    problem = problem_of(replace(cell, controls=()), segments)
    problem = problem._replace(step=(segments.edges[-1] - segments.edges[-2]) / STEPS)
    problem = problem if options.objective.over == LAST else problem.over_time
    cost, gradient = value_and_gradient(problem, values)
    control = Control(segments, tuple(values.tolist()), options)
    return Found({"eta": control}, float(np.linalg.norm(gradient)), [float(np.exp(cost))])
