"""Lanes: the cells that one compiled program integrates side by side."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from statmech.errors import SolverError
from statmech.numerics.gaussian import Array
from statmech.runtime.programs import filled_up

P = TypeVar("P", bound=Hashable)  # a program
S = TypeVar("S")  # the solution of a cell


def side_by_side(
    identities: Sequence[Any],
    program: Callable[[int], P],
    lanes: Callable[[P], int],
    solve: Callable[[P, list[int]], list[S]],
) -> list[S]:
    """Solutions of cells: one for all of the same identity, and those of one program in lanes of the same call.

    Parameters
    ----------
    identities
        All that the equations of each cell and their start depend on.
    program
        The program of the cell at an index.
    lanes
        The number of cells that a program integrates side by side.
    solve
        The solutions of the cells at some indices, all of one program.
    """
    first: dict[Any, int] = {}
    for at, identity in enumerate(identities):
        first.setdefault(identity, at)
    groups: dict[P, list[int]] = {}
    for at in first.values():
        groups.setdefault(program(at), []).append(at)
    solved: dict[int, S] = {}
    for one, members in groups.items():
        size = lanes(one)
        for some in (members[start : start + size] for start in range(0, len(members), size)):
            solved |= dict(zip(some, solve(one, some), strict=True))
    return [solved[first[identity]] for identity in identities]


def with_last_again(members: Sequence[S]) -> list[S]:
    """Members and the last of them again, as many as a program is compiled for.

    >>> with_last_again("ab")
    ['a', 'b', 'b', 'b', 'b', 'b', 'b', 'b']
    """
    return [*members, *[members[-1]] * (filled_up(len(members)) - len(members))]


def check_complete(cells: Sequence[Any], rows: Iterable[np.ndarray], completed: Array, last: float) -> None:
    """Raise `SolverError` for the first cell whose rows are not finite, or end before the last time."""
    for cell, own, done in zip(cells, rows, completed, strict=False):
        if not (done and np.isfinite(own).all()):
            raise SolverError(f"the order-parameter equations of {cell.described} stop before t = {last:g}")
