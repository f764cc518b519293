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

from statmech.controls import Control, Optimal, Segments
from statmech.scenarios.controlled_keys import SEARCHES
from statmech.scenarios.network_tasks import NetworkTaskCell
from statmech.scenarios.online import OnlineCell
from theory.control.best_rates import best_rates, length_power
from theory.control.gradients import value_and_gradient
from theory.control.optimum import HIGHEST, LOWEST, best_constant, minimum
from theory.control.systems import problem_of

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


def with_best(cells: Sequence[C], last: float) -> list[tuple[C, Best | None]]:
    """Each cell with its best control up to the last time, and what is known of it; others as they are."""
    return [_with_best(cell, last) for cell in cells]


def _with_best(cell: Any, last: float) -> tuple[Any, Best | None]:
    if isinstance(cell, NetworkTaskCell) and cell.wants_share:
        best = _remembered(cell, cell.protocol.wish, last)  # type: ignore[attr-defined]
        return replace(cell, protocol=replace(cell.protocol, share=best.control)), best  # type: ignore[call-arg]
    wanted = [(name, wish) for name, wish in cell.controls if isinstance(wish, Optimal)]
    if not wanted:
        return cell, None
    [(name, wish)] = wanted
    best = _remembered(cell, wish, last)
    return replace(cell, controls=tuple({**dict(cell.controls), name: best.control}.items())), best


def _remembered(cell: Any, wish: Optimal, last: float) -> Best:
    """The best control, found once in a process: simulation, theory and its lines share it, whatever their N."""
    key = type(cell), replace(cell, N=10**6, index=()).words(), last
    with _lock:
        if key not in _known:
            _known[key] = _found(cell, wish, last)
        return _known[key]


def _found(cell: Any, wish: Optimal, last: float) -> Best:
    if isinstance(cell, OnlineCell) and (closed := _in_closed_form(cell, wish, last)):
        return closed
    share = isinstance(cell, NetworkTaskCell) and cell.wants_share
    begin = cell.switch or 0.0 if share else 0.0
    problem = problem_of(cell, Segments(_edges(cell, wish, begin, last)))
    optimum = minimum(problem, (0.0, 1.0) if share else (LOWEST, wish.at_most or HIGHEST))
    reached = np.full(SEARCHES, np.nan)
    reached[: len(optimum.searches)] = np.exp([one.cost for one in optimum.searches])
    edges, values = problem.segments.edges, optimum.values.tolist()
    if begin > 0:
        edges, values = (0.0, *edges), [1.0, *values]
    # the last value holds on, so that a step at the last time has one
    control = Control(Segments((*edges[:-1], np.inf)), tuple(values), wish)
    return Best(control, optimum.constant, optimum.gain, optimum.minima[0].projected_gradient, reached)


def _edges(cell: Any, wish: Optimal, begin: float, last: float) -> tuple[float, ...]:
    """Equal segments from the beginning to the last time, cut where the problem itself jumps."""
    edges = np.linspace(begin, last, wish.segments + 1)
    jumps = [edge for edge in cell.edges if begin < edge < last]
    distant = [edge for edge in edges if np.min(np.abs(edge - np.array(jumps)), initial=np.inf) > CLOSE * last]
    return tuple(sorted([*map(float, distant), *jumps]))


def _in_closed_form(cell: OnlineCell, wish: Optimal, last: float) -> Best | None:
    """The best rate at every time of students who start alike, or None where it has no closed form."""
    power, R = length_power(cell.rule), float(cell.order_parameters.R[0])
    if power is None or cell.drift > 0 or len(cell.controls) > 1 or (power == 1 and R == 0) or not -1 < R < 1 or R < 0:
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
    constant, constant_cost = best_constant(problem, (LOWEST, wish.at_most or HIGHEST), cost - CLOSE)
    reached = np.full(SEARCHES, np.nan)
    reached[0] = np.exp(cost)
    control = Control(segments, tuple(values.tolist()), wish)
    return Best(control, constant, float(np.exp(constant_cost - cost)), float(np.linalg.norm(gradient)), reached)
