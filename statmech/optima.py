r"""Optima: options for the best function of time of a key, and its objective.

In a config, `optimal`, or a section with options that differ from the defaults:

    eta: {optimal: {segments: 1, points: 32, at_most: 5, objective: integral}}

The objective is eps_g at the last time (`last`) or its mean over time (`integral`). For several tasks it is averaged
over the tasks, with equal weights or, as in `{last: [1, 3]}`, with given weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from statmech.errors import quoted

OPTIMAL = "optimal"
SEGMENTS, MOST_SEGMENTS = 20, 500
MOST_POINTS = 100
EDGE_TOL = 1e-4  # relative; an optimum this close to an edge of the search range counts as the edge
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
        """Return the normalised weights of the tasks (tasks,)."""
        weights = np.ones(tasks) if self.weights is None else np.asarray(self.weights)
        return np.asarray(weights / weights.sum())

    def __str__(self) -> str:
        """Return the label of the objective on the axis of a dataset."""
        return self.over + ("" if self.weights is None else " ".join([" of tasks", *(f"{w:g}" for w in self.weights)]))


@dataclass(frozen=True)
class Optimal:
    """Options for an unknown best control: equal segments, values per segment, an upper bound, and the objective."""

    segments: int = SEGMENTS
    points: int = 1
    at_most: float | None = None
    objective: Objective = Objective()

    def __str__(self) -> str:
        """Return the label of the optimum on the axis of a dataset."""
        further = [f"in {self.segments} segments"] if self.segments != (SEGMENTS if self.points == 1 else 1) else []
        further += [f"with {self.points} points"] if self.points > 1 else []
        further += [f"up to {self.at_most:g}"] if self.at_most is not None else []
        further += [f"for the {self.objective}"] if self.objective != Objective() else []
        return " ".join([OPTIMAL, *further])


def edge_remark(what: str, value: float, low: float, high: float) -> str:
    """Return a sentence about an optimum at the edge of its search range, or an empty string for an inner optimum.

    >>> edge_remark("lam: best", 1e6, 1e-6, 1e6)
    'lam: best is 1e+06, the largest value that is searched (1e-06 to 1e+06): the optimum may lie beyond'
    >>> edge_remark("lam: best", 0.3, 1e-6, 1e6)
    ''
    """
    for side, edge in (("smallest", low), ("largest", high)):
        if edge and np.isclose(
            value, edge, rtol=EDGE_TOL, atol=0.0
        ):  # an edge at 0 limits the possible values, not the search
            searched = f"the {side} value that is searched ({low:g} to {high:g})"
            return f"{what} is {edge:g}, {searched}: the optimum may lie beyond"
    return ""


def optimal_from(section: Any, number: Callable[[Any], float] = float) -> Optimal:
    """Return the options of an optimum from their section in a config. The function `number` parses the bound.

    >>> str(optimal_from({"points": 8})), str(optimal_from({"at_most": 3, "objective": {"last": [1, 3]}}))
    ('optimal with 8 points', 'optimal up to 3 for the last of tasks 1 3')
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
    """Return the options of an optimum in the form of a config.

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
    """Return the JSON Schema of an optimum's section. Its bound has the schema `number`."""
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
    """Return a value if it is an integer from 1 to a maximum, else raise `ValueError`."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most}, not {quoted(given)}")
    return given


def _objective(given: Any) -> Objective:
    """Return an objective from its form in a config."""
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
