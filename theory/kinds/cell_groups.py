"""Groups of cells with the same setting, solved together, with given or with best penalties.

The kinds of scenarios with a convex loss, and Bayes-optimal inference, solve all numbers of examples in one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell
from statmech.kinds.convex_fit import BEST_PENALTY_KEYWORD, PenalisedCell
from theory.convex.best_lambda import MAX_SEARCHED_LAMBDA, cap_infinite_lambda

CellVariables = dict[str, np.ndarray]
C = TypeVar("C", bound=Cell)
PenalisedCellT = TypeVar("PenalisedCellT", bound=PenalisedCell)
T = TypeVar("T")


def solve_in_groups(
    cells: Sequence[C], get_setting: Callable[[C], Hashable], solve_group: Callable[[list[C]], Iterable[T]]
) -> Iterator[T]:
    """Solve groups of cells with the same setting together, and return the results in the order of the cells.

    Parameters
    ----------
    cells
        The cells.
    get_setting
        Function that returns the common setting of a group.
    solve_group
        Function that returns the result of each cell in a group.
    """
    groups: dict[Hashable, list[C]] = {}
    for cell in cells:
        groups.setdefault(get_setting(cell), []).append(cell)
    results = {
        cell.index: result
        for members in groups.values()
        for cell, result in zip(members, solve_group(members), strict=True)
    }
    return (results[cell.index] for cell in cells)


def solve_penalised_cells(
    scenario: AbstractScenario,
    cells: Sequence[PenalisedCellT],
    get_size: Callable[[PenalisedCellT], float],
    find_best_penalties: Callable[[Sequence[PenalisedCellT]], Iterable[float]],
    solve_points: Callable[[PenalisedCellT, np.ndarray, np.ndarray], Mapping[str, np.ndarray | float]],
) -> Iterator[CellVariables]:
    """Solve groups of cells with a penalty, with `lam: best` replaced by the best penalty.

    Equal numbers of examples and penalties are solved once per group. `lam_best` is the best penalty of each cell.

    Parameters
    ----------
    scenario, cells
        A scenario and its cells. Only its variables are returned.
    get_size
        Function that returns the number of examples, or the ratio to the number of inputs, that a cell is solved at.
    find_best_penalties
        Function that returns the best penalty of each cell in a group, NaN where it is unknown or not needed.
    solve_points
        Function of a group's first cell, sizes (batch,) and penalties (batch,). It returns variables (batch,), or
        numbers that apply to the whole group.
    """
    names = {*scenario.variables, *scenario.theory_only_variables}

    def solve_group(members: list[PenalisedCellT]) -> Iterator[CellVariables]:
        best = list(find_best_penalties(members))
        points = [
            (get_size(cell), cap_infinite_lambda(penalty) if cell.lam == BEST_PENALTY_KEYWORD else float(cell.lam))
            for cell, penalty in zip(members, best, strict=True)
        ]
        unique = {point: index for index, point in enumerate(dict.fromkeys(points))}
        sizes, lam = np.array(list(unique), float).T
        solution = solve_points(members[0], sizes, lam)
        arrays = {name: np.broadcast_to(values, sizes.shape) for name, values in solution.items() if name in names}
        for point, penalty in zip(points, best, strict=True):
            values = {name: np.asarray(array[unique[point]]) for name, array in arrays.items()}
            yield values | {"lam_best": np.asarray(penalty)}

    return solve_in_groups(cells, lambda cell: cell.shared_setting, solve_group)


def get_example_ratio(cell: Any) -> float:
    """Return the number of examples per input of a run, P/N, which differs slightly from alpha."""
    return float(cell.P / cell.N)


def get_sample_size(cell: PenalisedCell) -> float:
    """Return the number of examples per input that a config defines, or of the rows of a table."""
    return cell.sample_size


def searched_penalties(cell: PenalisedCell) -> tuple[float, float]:
    """Return the search range of the best penalty.

    The best penalty may be 0, which is a limit and not an edge of the search.
    """
    return 0.0, MAX_SEARCHED_LAMBDA


def omit_unused_penalties(
    cells: Sequence[PenalisedCellT], find_best_penalties: Callable[[Sequence[PenalisedCellT]], Iterable[float]]
) -> Callable[[Sequence[PenalisedCellT]], Iterable[float]]:
    """Return a search for best penalties that returns NaN if no cell of the line needs one."""
    if any(cell.lam == BEST_PENALTY_KEYWORD for cell in cells):
        return find_best_penalties
    return lambda members: [np.nan] * len(members)
