"""Decorator for the solvers of scenarios whose keys may be `optimal`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np

Values = dict[str, np.ndarray]
Solver = Callable[[Any, Sequence[Any]], Iterator[Values]]


def solve_at_best_controls(solve: Solver) -> Solver:
    """Wrap a solver so that cells with an `optimal` key are solved at their best control.

    The solution includes the best control.
    """

    @wraps(solve)
    def wrapper(scenario: Any, cells: Sequence[Any]) -> Iterator[Values]:
        if "control" not in scenario.theory_only:
            return solve(scenario, cells)
        from theory.control.best_controls import add_best_controls  # imported late: needs JAX

        optima, t, names = (
            add_best_controls(cells, scenario.t[-1]),
            np.asarray(scenario.t, float),
            [*scenario.optimal_keys],
        )
        values = solve(scenario, [cell for cell, _ in optima])
        return (
            variables | (best.variables(names, t) if best else {})
            for variables, (_, best) in zip(values, optima, strict=True)
        )

    return wrapper
