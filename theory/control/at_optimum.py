"""Solvers of scenarios whose keys may be wanted at their optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np

Values = dict[str, np.ndarray]
Solver = Callable[[Any, Sequence[Any]], Iterator[Values]]


def at_optimum(solve: Solver) -> Solver:
    """Wrap a solver of the cells of a scenario: those with wishes are solved at their best control, and say which."""

    @wraps(solve)
    def solved(scenario: Any, cells: Sequence[Any]) -> Iterator[Values]:
        if "control" not in scenario.theory_only:
            return solve(scenario, cells)
        from theory.control.best_controls import with_best  # here: it needs JAX

        found, t, names = with_best(cells, scenario.t[-1]), np.asarray(scenario.t, float), [*scenario.wishes]
        values = solve(scenario, [cell for cell, _ in found])
        return (own | (best.variables(names, t) if best else {}) for own, (_, best) in zip(values, found, strict=True))

    return solved
