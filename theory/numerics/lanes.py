"""Batches of cells that one compiled program integrates together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from statmech.errors import SolverError
from statmech.numerics.gaussian import Array
from statmech.runtime.programs import pad_array_length

P = TypeVar("P", bound=Hashable)  # a program
S = TypeVar("S")  # the solution of a cell


def solve_in_batches(
    solution_keys: Sequence[Any],
    program: Callable[[int], P],
    batch_size: Callable[[P], int],
    solve: Callable[[P, list[int]], list[S]],
) -> list[S]:
    """Solve cells in batches that share a compiled program.

    Cells with equal identities are solved only once.

    Parameters
    ----------
    solution_keys
        Everything that determines the equations and the initial values of each cell.
    program
        Returns the program of the cell at an index.
    batch_size
        Returns the number of cells that a program integrates in one call.
    solve
        Returns the solutions of the cells at the given indices, which have the same program.
    """
    first: dict[Any, int] = {}
    for index, identity in enumerate(solution_keys):
        first.setdefault(identity, index)
    groups: dict[P, list[int]] = {}
    for index in first.values():
        groups.setdefault(program(index), []).append(index)
    solutions: dict[int, S] = {}
    for group_program, members in groups.items():
        size = batch_size(group_program)
        for batch in (members[start : start + size] for start in range(0, len(members), size)):
            solutions |= dict(zip(batch, solve(group_program, batch), strict=True))
    return [solutions[first[identity]] for identity in solution_keys]


def pad_with_last_member(members: Sequence[S]) -> list[S]:
    """Pad members to the batch size of the compiled program by repeating the last member.

    >>> pad_with_last_member("ab")
    ['a', 'b', 'b', 'b', 'b', 'b', 'b', 'b']
    """
    return [*members, *[members[-1]] * (pad_array_length(len(members)) - len(members))]


def check_integration_complete(cells: Sequence[Any], rows: Iterable[np.ndarray], completed: Array, last: float) -> None:
    """Raise `SolverError` if a cell has not reached the last time or has values that are not finite."""
    for cell, cell_rows, is_complete in zip(cells, rows, completed, strict=False):
        if not (is_complete and np.isfinite(cell_rows).all()):
            raise SolverError(f"the integration of {cell.message_description} stopped before t = {last:g}")
