r"""Optima: the wish for the best function of time of a key, and for what it is to be best.

In a config `optimal`, or a section of what is not the default:

    eta: {optimal: {segments: 1, points: 32, at_most: 5, objective: integral}}

The objective is eps_g at the last time (`last`) or its mean over time (`integral`), of several tasks their mean or,
as in `{last: [1, 3]}`, the mean with these weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from statmech.errors import quoted

OPTIMAL = "optimal"
SEGMENTS, MOST_SEGMENTS = 20, 500  # of an optimum, unless its section says so; and at most
MOST_POINTS = 100  # on a segment
EDGE_TOL = 1e-4  # relative distance of a search from an edge at which it ends there
LAST, INTEGRAL = "last", "integral"
OVER = LAST, INTEGRAL


@dataclass(frozen=True)
class Objective:
    """The quantity that an optimum minimises: eps_g at the last time or its mean over time, and the weights of tasks.

    >>> str(Objective("integral")), Objective("last", (1.0, 3.0)).shares(2).tolist()
    ('integral', [0.25, 0.75])
    """

    over: str = LAST
    weights: tuple[float, ...] | None = None

    def shares(self, tasks: int) -> np.ndarray:
        """The weights of tasks (tasks,), which sum to 1."""
        weights = np.ones(tasks) if self.weights is None else np.asarray(self.weights)
        return np.asarray(weights / weights.sum())

    def __str__(self) -> str:
        """Its name on the axis of a dataset."""
        return self.over + ("" if self.weights is None else " ".join([" of tasks", *(f"{w:g}" for w in self.weights)]))


@dataclass(frozen=True)
class Optimal:
    """The wish for the best control, on a number of equal segments, by a number of values on each, up to a bound."""

    segments: int = SEGMENTS
    points: int = 1
    at_most: float | None = None
    objective: Objective = Objective()

    def __str__(self) -> str:
        """Its name on the axis of a dataset."""
        further = [f"in {self.segments} segments"] if self.segments != (SEGMENTS if self.points == 1 else 1) else []
        further += [f"with {self.points} points"] if self.points > 1 else []
        further += [f"up to {self.at_most:g}"] if self.at_most is not None else []
        further += [f"for the {self.objective}"] if self.objective != Objective() else []
        return " ".join([OPTIMAL, *further])


def edge_remark(what: str, value: float, low: float, high: float) -> str:
    """Return a sentence for an optimum at an edge of the range in which it was sought; empty for one inside.

    >>> edge_remark("lam: best", 1e6, 1e-6, 1e6)
    'lam: best is 1e+06, the largest value that is searched (1e-06 to 1e+06): the optimum may lie beyond'
    >>> edge_remark("lam: best", 0.3, 1e-6, 1e6)
    ''
    """
    for side, edge in (("smallest", low), ("largest", high)):
        if edge and np.isclose(value, edge, rtol=EDGE_TOL, atol=0.0):  # 0 is an edge of what is possible
            searched = f"the {side} value that is searched ({low:g} to {high:g})"
            return f"{what} is {edge:g}, {searched}: the optimum may lie beyond"
    return ""


def optimal_from(section: Any, number: Callable[[Any], float] = float) -> Optimal:
    """An optimum from the section that describes it; `number` reads its bound.

    >>> optimal_from({"points": 8}), str(optimal_from({"at_most": 3, "objective": {"last": [1, 3]}}))
    (Optimal(segments=1, points=8, at_most=None, objective=Objective(over='last', weights=None)), \
'optimal up to 3 for the last of tasks 1 3')
    """
    names = "segments", "points", "at_most", "objective"
    if not isinstance(section, dict) or section.keys() - set(names):
        raise ValueError(f"optimal has the keys {', '.join(names[:-1])} and {names[-1]}, not {quoted(section)}")
    points = _whole("points", section.get("points", 1), MOST_POINTS)
    segments = _whole("segments", section.get("segments", SEGMENTS if points == 1 else 1), MOST_SEGMENTS)
    at_most = section.get("at_most")
    objective = _objective(section["objective"]) if "objective" in section else Objective()
    return Optimal(segments, points, None if at_most is None else number(at_most), objective)


def written_optimal(wish: Optimal) -> Any:
    """An optimum in the form of a config.

    >>> written_optimal(Optimal()), written_optimal(Optimal(objective=Objective("integral")))
    ('optimal', {'optimal': {'objective': 'integral'}})
    """
    further: dict[str, Any] = {}
    if wish.segments != (SEGMENTS if wish.points == 1 else 1):
        further["segments"] = wish.segments
    further |= {"points": wish.points} if wish.points > 1 else {}
    further |= {"at_most": wish.at_most} if wish.at_most is not None else {}
    if wish.objective != Objective():
        over, weights = wish.objective.over, wish.objective.weights
        further["objective"] = over if weights is None else {over: [*weights]}
    return {OPTIMAL: further} if further else OPTIMAL


def schema_of_optimum(number: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of the section of an optimum, whose bound has the schema `number`."""
    weights = {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1}
    weighted = {"type": "object", "properties": dict.fromkeys(OVER, weights), "additionalProperties": False}
    keys = {
        "segments": {"type": "integer", "minimum": 1, "maximum": MOST_SEGMENTS},
        "points": {"type": "integer", "minimum": 1, "maximum": MOST_POINTS},
        "at_most": number,
        "objective": {"anyOf": [{"enum": [*OVER]}, weighted | {"minProperties": 1, "maxProperties": 1}]},
    }
    return {"type": "object", "properties": keys, "additionalProperties": False}


def _whole(name: str, given: Any, most: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        raise ValueError(f"{name} is a whole number from 1 to {most}, not {quoted(given)}")
    return given


def _objective(given: Any) -> Objective:
    """An objective from its form in a config."""
    if isinstance(given, str) and given in OVER:
        return Objective(given)
    if isinstance(given, dict) and len(given) == 1 and next(iter(given)) in OVER:
        [(over, weights)] = given.items()
        if isinstance(weights, list | tuple) and all(map(_is_weight, weights)) and sum(weights) > 0:
            return Objective(over, tuple(map(float, weights)))
        raise ValueError(f"the objective's weights are a list of numbers, one for each task, not {quoted(weights)}")
    raise ValueError(f"an objective is last, integral, {{last: [...]}} or {{integral: [...]}}, not {quoted(given)}")


def _is_weight(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < np.inf
