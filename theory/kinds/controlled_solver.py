"""Decorator for the solvers of scenarios whose keys may be `optimal`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np

VariableArrays = dict[str, np.ndarray]
CellSolver = Callable[[Any, Sequence[Any]], Iterator[VariableArrays]]


def solve_at_best_controls(solve: CellSolver) -> CellSolver:
    """Wrap a solver so that cells with an `optimal` key are solved at their best control.

    The solution includes the best control.
    """

    @wraps(solve)
    def wrapper(scenario: Any, cells: Sequence[Any]) -> Iterator[VariableArrays]:
        if "control" not in scenario.theory_only_variables:
            return solve(scenario, cells)
        from theory.control.optimal_controls import add_best_controls  # imported late: needs JAX

        optima, t, names = (
            add_best_controls(cells, scenario.t[-1]),
            np.asarray(scenario.t, float),
            [*scenario.optimal_keys],
        )
        values = solve(scenario, [cell for cell, _ in optima])
        return (
            variables | (best.make_variables(names, t) if best else {})
            for variables, (_, best) in zip(values, optima, strict=True)
        )

    return wrapper
