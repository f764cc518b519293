r"""Optima: options and objective for the optimal time dependence of a config key.

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

from statmech.errors import quote_value

OPTIMAL_KEYWORD = "optimal"
DEFAULT_CONTROL_SEGMENTS, MAX_CONTROL_SEGMENTS = 20, 500
MAX_POINTS_PER_SEGMENT = 100
SEARCH_EDGE_TOL = 1e-4  # relative; closer to an edge of the search range, an optimum counts as lying on it
LAST_TIME_OBJECTIVE, INTEGRAL_OBJECTIVE = "last", "integral"
OBJECTIVE_NAMES = LAST_TIME_OBJECTIVE, INTEGRAL_OBJECTIVE


@dataclass(frozen=True)
class Objective:
    """The quantity to minimise: eps_g at the last time or its mean over time, with weights of the tasks.

    >>> str(Objective("integral")), Objective("last", (1.0, 3.0)).shares(2).tolist()
    ('integral', [0.25, 0.75])
    """

    over: str = LAST_TIME_OBJECTIVE
    weights: tuple[float, ...] | None = None

    def shares(self, tasks: int) -> np.ndarray:
        """Return the normalised weights of the tasks (tasks,)."""
        weights = np.ones(tasks) if self.weights is None else np.asarray(self.weights)
        return np.asarray(weights / weights.sum())

    def __str__(self) -> str:
        """Return the label of the objective on a dataset axis."""
        return self.over + ("" if self.weights is None else " ".join([" of tasks", *(f"{w:g}" for w in self.weights)]))


@dataclass(frozen=True)
class OptimalControlOptions:
    """Options of a control to be optimised: equal segments, values per segment, upper bound and objective."""

    segments: int = DEFAULT_CONTROL_SEGMENTS
    points: int = 1
    at_most: float | None = None
    objective: Objective = Objective()

    def __str__(self) -> str:
        """Return the label of the optimum on a dataset axis."""
        further = (
            [f"in {self.segments} segments"]
            if self.segments != (DEFAULT_CONTROL_SEGMENTS if self.points == 1 else 1)
            else []
        )
        further += [f"with {self.points} points"] if self.points > 1 else []
        further += [f"up to {self.at_most:g}"] if self.at_most is not None else []
        further += [f"for the {self.objective}"] if self.objective != Objective() else []
        return " ".join([OPTIMAL_KEYWORD, *further])


def describe_edge_optimum(name: str, value: float, search_min: float, search_max: float) -> str:
    """Return a warning if an optimum lies at the edge of its search range, else an empty string.

    >>> describe_edge_optimum("lam: best", 1e6, 1e-6, 1e6)
    'lam: best is 1e+06, the largest value that is searched (1e-06 to 1e+06): the optimum may lie beyond'
    >>> describe_edge_optimum("lam: best", 0.3, 1e-6, 1e6)
    ''
    """
    for side, edge in (("smallest", search_min), ("largest", search_max)):
        if edge and np.isclose(
            value, edge, rtol=SEARCH_EDGE_TOL, atol=0.0
        ):  # an edge at 0 limits the parameter, not the search
            searched = f"the {side} value that is searched ({search_min:g} to {search_max:g})"
            return f"{name} is {edge:g}, {searched}: the optimum may lie beyond"
    return ""


def optimum_options_from_config(section: Any, number: Callable[[Any], float] = float) -> OptimalControlOptions:
    """Read the options of an optimum from a config section, parsing the bound with `number`.

    >>> str(optimum_options_from_config({"points": 8}))
    'optimal with 8 points'
    >>> str(optimum_options_from_config({"at_most": 3, "objective": {"last": [1, 3]}}))
    'optimal up to 3 for the last of tasks 1 3'
    """
    names = "segments", "points", "at_most", "objective"
    if not isinstance(section, dict) or section.keys() - set(names):
        raise ValueError(f"optimal takes the keys {', '.join(names[:-1])} and {names[-1]}, not {quote_value(section)}")
    points = _check_integer("points", section.get("points", 1), MAX_POINTS_PER_SEGMENT)
    segments = _check_integer(
        "segments", section.get("segments", DEFAULT_CONTROL_SEGMENTS if points == 1 else 1), MAX_CONTROL_SEGMENTS
    )
    at_most = section.get("at_most")
    objective = _objective_from_config(section["objective"]) if "objective" in section else Objective()
    return OptimalControlOptions(segments, points, None if at_most is None else number(at_most), objective)


def optimum_options_to_config(optimum: OptimalControlOptions) -> Any:
    """Convert the options of an optimum to their config form.

    >>> optimum_options_to_config(OptimalControlOptions())
    'optimal'
    >>> optimum_options_to_config(OptimalControlOptions(objective=Objective("integral")))
    {'optimal': {'objective': 'integral'}}
    """
    further: dict[str, Any] = {}
    if optimum.segments != (DEFAULT_CONTROL_SEGMENTS if optimum.points == 1 else 1):
        further["segments"] = optimum.segments
    further |= {"points": optimum.points} if optimum.points > 1 else {}
    further |= {"at_most": optimum.at_most} if optimum.at_most is not None else {}
    if optimum.objective != Objective():
        over, weights = optimum.objective.over, optimum.objective.weights
        further["objective"] = over if weights is None else {over: [*weights]}
    return {OPTIMAL_KEYWORD: further} if further else OPTIMAL_KEYWORD


def make_optimum_schema(number: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an optimum's section, with the schema `number` for its bound."""
    weights = {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1}
    weighted = {"type": "object", "properties": dict.fromkeys(OBJECTIVE_NAMES, weights), "additionalProperties": False}
    keys = {
        "segments": {"type": "integer", "minimum": 1, "maximum": MAX_CONTROL_SEGMENTS},
        "points": {"type": "integer", "minimum": 1, "maximum": MAX_POINTS_PER_SEGMENT},
        "at_most": number,
        "objective": {"anyOf": [{"enum": [*OBJECTIVE_NAMES]}, weighted | {"minProperties": 1, "maxProperties": 1}]},
    }
    return {"type": "object", "properties": keys, "additionalProperties": False}


def _check_integer(name: str, value: Any, max_value: int) -> int:
    """Return an integer between 1 and a maximum unchanged, else raise `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= max_value:
        raise ValueError(f"{name} must be an integer from 1 to {max_value}, not {quote_value(value)}")
    return value


def _objective_from_config(form: Any) -> Objective:
    """Make an objective from its config form."""
    if isinstance(form, str) and form in OBJECTIVE_NAMES:
        return Objective(form)
    if isinstance(form, dict) and len(form) == 1 and next(iter(form)) in OBJECTIVE_NAMES:
        [(over, weights)] = form.items()
        if isinstance(weights, list | tuple) and all(map(_is_task_weight, weights)) and sum(weights) > 0:
            return Objective(over, tuple(map(float, weights)))
        raise ValueError(
            f"the objective's weights must be a list of numbers, one for each task, not {quote_value(weights)}"
        )
    raise ValueError(f"an objective must be last or integral, alone or as {{last: [...]}}, not {quote_value(form)}")


def _is_task_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < np.inf
