"""Solve a scenario of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.errors import ScenarioError
from statmech.results.dataset import Progress, arrays_of, blank, fill, tracked
from statmech.runtime.blas import one_thread
from statmech.runtime.jax_cache import use_cache
from statmech.scenarios.base import AbstractScenario, check_type
from statmech.scenarios.cost import check_cells
from theory.search_edges import edge_remarks

if TYPE_CHECKING:
    import xarray as xr


def solve(scenario: AbstractScenario, progress: Progress | None = None) -> xr.Dataset:
    """The theory of a scenario in the limit N -> infinity, as a Dataset on (sweep axes, recorded times).

    Of a `Scenario`: R, q, length and eps_g follow eqs (3.5) and (3.6) of Miyoshi, Hara & Okada, the ensemble's errors
    their eq (3.2); see `theory.online.equations` and `theory.ensembles.errors`. For unequal students
    `eps_g_majority_vote_error` is the standard error of the vote's integration, 0 up to K = 4; with `corrections`,
    standard deviations and biases at N of what is recorded after the whole number of steps that is nearest to N t
    (`theory.fluctuations.student_fluctuations`).

    Of `StoredExamples`: R, eps_g and kappa of each learner's limit (`theory.stored_examples.replica`), NaN where it
    does not exist; independent of the number of updates, for it is that of infinitely many. Of `Boosting`: bounds on
    stages, eps_g and advantage at this N and P (`theory.boosting.bounds`).

    Of `Risk`: the replica-symmetric minimum, with the residual of its equations (`statmech.convex`), NaN where there
    is none; the best lambda and the alpha up to which labels can be separated, or beyond which an l1 norm
    recovers sparse weights from outputs without noise.

    Where P = alpha N is rounded to a whole number of examples, theory is that of P/N, so that runs are compared with
    the theory of the examples that they have; lines (`theory.smooth`) are those of alpha itself.

    Parameters
    ----------
    scenario
        A scenario of any kind.
    progress
        Is called with the numbers of solved parameter combinations and of all.

    Returns
    -------
    xarray.Dataset
        On (sweep axes, recorded times, student).

    Raises
    ------
    ScenarioError
        For inputs without equations.
    SolverError
        Naming a parameter combination that cannot be solved.

    Examples
    --------
    >>> from statmech import Scenario, StoredExamples
    >>> sol = solve(Scenario(rule="hebb", K=2, t=[1, 10]))
    >>> sol.R.isel(student=0).values.round(6)
    array([0.491379, 0.923401])
    >>> round(solve(StoredExamples(learner="minover", alpha=2)).kappa.item(), 6)
    0.454578
    """
    check_type(scenario)
    check_cells(scenario)
    return _filled(scenario, [list(scenario.cells())], progress)


def solve_each(scenario: AbstractScenario) -> xr.Dataset:
    """The lines of a scenario, each rule, learner, ... solved by a separate call.

    One compiled program then serves each of them, whichever are chosen together.
    """
    check_type(scenario)
    groups: dict[int, list[Any]] = {}
    axis = next((at for at, names in enumerate(scenario.dimensions.values()) if scenario.CHOICE in names), None)
    for cell in scenario.cells():
        groups.setdefault(0 if axis is None else cell.index[axis], []).append(cell)
    return _filled(scenario, list(groups.values()), as_lines=True)


def solve_line(scenario: AbstractScenario) -> xr.Dataset:
    """Return the dataset of `solve` for a line: corrections are not those of the recorded steps but of any time."""
    return _filled(scenario, [list(scenario.cells())], as_lines=True)


def _filled(
    scenario: AbstractScenario, groups: list[list[Any]], progress: Progress | None = None, as_lines: bool = False
) -> xr.Dataset:
    if scenario.unsolved:
        raise ScenarioError([((), scenario.unsolved)])
    solver, cells = solver_of(scenario), [cell for group in groups for cell in group]
    use_cache()
    further = solver.attributes(scenario) if hasattr(solver, "attributes") else {}
    known = {"source": solver.SOURCE, "code": scenario.code_digests(), **further}
    dataset = blank(scenario, seeds=None, title="statmech theory", **known)
    arrays = arrays_of(dataset)
    of_group = getattr(solver, "solve_line", solver.solve) if as_lines else solver.solve
    solutions = chain.from_iterable(of_group(scenario, group) for group in groups)
    # products are small: further BLAS threads mostly wait for each other, which takes three times the time of descents
    with one_thread():
        for cell, values in zip(cells, tracked(solutions, len(cells), progress), strict=True):
            fill(arrays, cell.index, values)
    if "control" in dataset:
        from theory.control.stored_controls import written  # here: it needs JAX

        dataset.attrs |= written(scenario)
    if remarks := edge_remarks(scenario, dataset, solver):
        dataset.attrs["edges"] = "\n".join(remarks)
    return dataset


def solver_of(scenario: AbstractScenario) -> Any:
    """The solver of a scenario: of its own method `solve`, else its file in `theory/scenarios/`."""
    return CellByCell if scenario.solve is not None else import_module(f"theory.scenarios.{scenario.module()}")


class CellByCell:
    """Solves the kinds that have a method `solve(cell)`."""

    SOURCE = "the scenario's own equations"

    @staticmethod
    def solve(scenario: AbstractScenario, cells: Sequence[Any]) -> Iterator[dict[str, np.ndarray]]:
        """The variables of each cell."""
        assert scenario.solve is not None  # or its file would solve it
        return ({name: np.asarray(value) for name, value in scenario.solve(cell).items()} for cell in cells)
