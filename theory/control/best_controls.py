"""Best controls of the cells of a scenario: those whose keys are wanted at their optimum, with these found.

One perceptron has its best rate at every time in closed form (`theory.control.best_rates`); others are searched by the
gradient (`theory.control.optimum`). Simulation and theory take the same control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from statmech.controls import Control, Optimal, Segments
from statmech.errors import DivergedError, SolverError
from statmech.order_parameters import angle_from_versine
from statmech.scenarios.controlled_keys import SEARCHES
from statmech.scenarios.network_tasks import NetworkTaskCell
from statmech.scenarios.online import OnlineCell
from theory.control.best_rates import best_rates, length_power
from theory.control.gradients import value_and_gradient
from theory.control.optimum import CONSTANTS, HIGHEST, LOWEST, minimum
from theory.control.systems import problem_of
from theory.networks import equations, tasks
from theory.online import trajectories

C = TypeVar("C")
FIRST, RATIO, POINTS = 1e-3, 2.0, 8  # of smooth controls: the first segment, how segments grow, and values on each
STEPS = 40  # of the integrator on each of these
LARGEST = 100.0  # learning rate at t = 0 of a student that starts at R = 0, where its scale is free
CLOSE = 1e-9  # of the last time: edges that lie closer are one

_known: dict[Any, Best] = {}
_lock = Lock()


class Best(NamedTuple):
    """A control at its optimum, the best constant, the error of that over the control's, the norm of the projected
    gradient of log eps_g, and the error that each search reached (SEARCHES,), NaN where there was none."""

    control: Control
    constant: float
    gain: float
    projected_gradient: float
    reached: np.ndarray

    def variables(self, t: np.ndarray) -> dict[str, np.ndarray]:
        """The variables that a dataset has of it, at recorded times."""
        return {
            "control": self.control.at(t),
            "best_constant": np.asarray(self.constant),
            "gain": np.asarray(self.gain),
            "projected_gradient": np.asarray(self.projected_gradient),
            "eps_g_of_search": self.reached,
        }


class Found(NamedTuple):
    """A control, the norm of the projected gradient there, and the error that each search reached."""

    control: Control
    gradient: float
    searches: list[float]


def with_best(cells: Sequence[C], last: float) -> list[tuple[C, Best | None]]:
    """Each cell with its best control up to the last time, and what is known of it; others as they are."""
    return [_with_best(cell, last) for cell in cells]


def _with_best(cell: Any, last: float) -> tuple[Any, Best | None]:
    wishes = [wish for _, wish in cell.controls if isinstance(wish, Optimal)]
    wishes += [cell.protocol.wish] if _of_share(cell) else []
    if not wishes:
        return cell, None
    [wish] = wishes
    best = _remembered(cell, wish, last)
    return _with(cell, best.control), best


def _remembered(cell: Any, wish: Optimal, last: float) -> Best:
    """The best control, found once in a process: simulation, theory and its lines share it, whatever their N."""
    key = type(cell), replace(cell, N=10**6, index=()).words(), last
    with _lock:
        if key not in _known:
            _known[key] = _found(cell, wish, last)
        return _known[key]


def _found(cell: Any, wish: Optimal, last: float) -> Best:
    bounds = (0.0, 1.0) if _of_share(cell) else (LOWEST, wish.at_most or HIGHEST)
    constant, constant_error = _best_constant(cell, bounds, last)
    closed = _in_closed_form(cell, wish, last) if isinstance(cell, OnlineCell) else None
    control, gradient, searches = closed or _searched(cell, wish, bounds, last)
    error = error_of(_with(cell, control), last)
    if not error <= constant_error:  # steps of a fixed size err where rates are large
        control = Control(control.segments, (constant,) * control.segments.size, wish)
        control = _after_switch(cell, control)
        error = constant_error
    reached = np.full(SEARCHES, np.nan)
    reached[: len(searches)] = searches
    return Best(control, constant, constant_error / error, gradient, reached)


def _of_share(cell: Any) -> bool:
    """True if the fraction of the first task is wanted, not the learning rate."""
    return isinstance(cell, NetworkTaskCell) and cell.wants_share


def _with(cell: Any, control: Control | float) -> Any:
    """The cell with a control, or a constant, in the place of what is wanted."""
    if _of_share(cell):
        if not isinstance(control, Control):
            control = _after_switch(cell, Control(Segments((0.0, np.inf)), (control,)))
        return replace(cell, protocol=replace(cell.protocol, share=control))
    if isinstance(control, Control):
        return replace(cell, controls=tuple({**dict(cell.controls), "eta": control}.items()))
    given = tuple((name, of) for name, of in cell.controls if not isinstance(of, Optimal))
    if isinstance(cell, OnlineCell):
        return replace(cell, rule=replace(cell.rule, eta=control), controls=given)
    return replace(cell, eta=control, controls=given)


def _after_switch(cell: Any, control: Control) -> Control:
    """A control of the fraction of the first task that is 1 up to the switch, if there is one."""
    if not _of_share(cell) or not cell.switch:
        return control
    edges = [edge for edge in control.segments.edges if edge > cell.switch]
    values = control.values[-len(edges) :]
    return Control(Segments((0.0, cell.switch, *edges)), (1.0, *values), control.wish)


def error_of(cell: Any, last: float) -> float:
    """The generalization error at the last time, the mean over tasks; infinite if the student diverges."""
    try:
        if isinstance(cell, OnlineCell):
            [students] = trajectories.solve_cells([cell], [last])
            return float(angle_from_versine(students.y[-1, 0])) / np.pi
        if isinstance(cell, NetworkTaskCell):
            [units] = tasks.solve_cells([cell], [last])
            return float(np.mean(tasks.errors_of(cell, units)[-1]))
        [units] = equations.solve_cells([cell], [last])
        return float(equations.error_of(cell, units)[-1])
    except (SolverError, DivergedError):
        return np.inf


def _best_constant(cell: Any, bounds: tuple[float, float], last: float) -> tuple[float, float]:
    """The best constant between bounds, and its error: the best of a grid, refined; the grid is geometric above 0."""
    geometric = bounds[0] > 0
    grid = np.log(np.geomspace(*bounds, CONSTANTS)) if geometric else np.linspace(*bounds, CONSTANTS)

    def error(place: float) -> float:
        return error_of(_with(cell, float(np.exp(place) if geometric else place)), last)

    errors = [error(place) for place in grid]
    best = int(np.argmin(errors))
    around = grid[max(best - 1, 0)], grid[min(best + 1, CONSTANTS - 1)]
    refined = minimize_scalar(error, bounds=around, method="bounded", options={"xatol": 1e-7})
    place, found = (refined.x, refined.fun) if refined.fun <= errors[best] else (grid[best], errors[best])
    return float(np.exp(place) if geometric else place), float(found)


def _searched(cell: Any, wish: Optimal, bounds: tuple[float, float], last: float) -> Found:
    """The control that the gradient finds."""
    begin = float(cell.switch or 0.0) if _of_share(cell) else 0.0
    problem = problem_of(cell, Segments(_edges(cell, wish, begin, last)))
    optimum = minimum(problem, bounds)
    # the last value holds on, so that a step at the last time has one
    segments = Segments((*problem.segments.edges[:-1], np.inf))
    control = _after_switch(cell, Control(segments, tuple(optimum.values.tolist()), wish))
    return Found(control, optimum.minima[0].projected_gradient, [float(np.exp(one.cost)) for one in optimum.searches])


def _edges(cell: Any, wish: Optimal, begin: float, last: float) -> tuple[float, ...]:
    """Equal segments from the beginning to the last time, cut where the problem itself jumps."""
    edges = np.linspace(begin, last, wish.segments + 1)
    jumps = [edge for edge in cell.edges if begin < edge < last]
    distant = [edge for edge in edges if np.min(np.abs(edge - np.array(jumps)), initial=np.inf) > CLOSE * last]
    return tuple(sorted([*map(float, distant), *jumps]))


def _in_closed_form(cell: OnlineCell, wish: Optimal, last: float) -> Found | None:
    """The best rate at every time of students who start alike, or None where it has no closed form."""
    power, R = length_power(cell.rule), float(cell.order_parameters.R[0])
    if power is None or cell.drift > 0 or len(cell.controls) > 1 or (power == 1 and R == 0) or not 0 <= R < 1:
        return None
    halvings = max(1, int(np.ceil(np.log(last / FIRST) / np.log(RATIO))))
    segments = Segments((0.0, *(last / RATIO ** np.arange(halvings, -1.0, -1.0)).tolist()), POINTS)
    eta = best_rates(cell, segments.times).eta
    if power == 0:
        length = float(cell.order_parameters.length[0])
        eta = eta * (length / R if R > 0 else (wish.at_most or LARGEST) / eta[0])
    if wish.at_most is not None and np.max(eta) > wish.at_most * (1 + CLOSE):
        return None
    values = np.maximum(eta, np.finfo(float).tiny)
    problem = problem_of(replace(cell, controls=()), segments)
    problem = problem._replace(step=(segments.edges[-1] - segments.edges[-2]) / STEPS)
    cost, gradient = value_and_gradient(problem, values)
    control = Control(segments, tuple(values.tolist()), wish)
    return Found(control, float(np.linalg.norm(gradient)), [float(np.exp(cost))])
