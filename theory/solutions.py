"""Theory of a scenario of any kind, as a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.errors import ScenarioError
from statmech.results.dataset import (
    ProgressCallback,
    fill_arrays,
    get_variable_arrays,
    make_empty_dataset,
    report_progress,
)
from statmech.runtime.blas import use_one_blas_thread
from statmech.runtime.jax_cache import set_up_compilation_cache
from statmech.scenarios.base import AbstractScenario, check_is_scenario
from statmech.scenarios.cost import check_cell_memory
from theory.search_edges import describe_optima_at_edges

if TYPE_CHECKING:
    import xarray as xr


def solve(scenario: AbstractScenario, progress: ProgressCallback | None = None) -> xr.Dataset:
    """Compute the theory of a scenario for N -> infinity, as a Dataset on (sweep axes, recorded times).

    `Scenario`: R, q, length and eps_g follow eqs (3.5) and (3.6) of Miyoshi, Hara & Okada, and the errors of the
    ensemble eq (3.2); see `theory.online.equations` and `theory.ensembles.errors`. For unequal students
    `eps_g_majority_vote_error` is the standard error of the vote's integration, 0 up to K = 4. With `corrections`, the
    dataset includes standard deviations and biases at N, after the integer number of steps nearest to N t
    (`theory.fluctuations.student_fluctuations`).

    `StoredExamples`: R, eps_g and kappa in the limit of each learner (`theory.stored_examples.replica`), NaN where the
    limit does not exist. They do not depend on the number of updates, which is infinite in this limit. `Boosting`:
    bounds on stages, eps_g and advantage at this N and P (`theory.boosting.bounds`).

    `Risk`: the replica-symmetric minimum with the residual of its equations (`statmech.convex`), NaN where there is no
    minimum. Further variables are the best lambda and a threshold in alpha: labels are separable up to it, or an l1
    norm recovers sparse weights from noiseless outputs above it.

    Where P = alpha N is rounded to an integer number of examples, theory is evaluated at P/N, so that runs are compared
    with the theory of their own number of examples. Lines (`theory.smooth`) are evaluated at alpha itself.

    Parameters
    ----------
    scenario
        A scenario of any kind.
    progress
        Function that is called with the number of solved parameter combinations and their total number.

    Returns
    -------
    xarray.Dataset
        Variables on (sweep axes, recorded times, student).

    Raises
    ------
    ScenarioError
        For inputs without equations.
    SolverError
        If a parameter combination, which the message names, cannot be solved.

    Examples
    --------
    >>> from statmech import Scenario, StoredExamples
    >>> sol = solve(Scenario(rule="hebb", K=2, t=[1, 10]))
    >>> sol.R.isel(student=0).values.round(6)
    array([0.491379, 0.923401])
    >>> round(solve(StoredExamples(learner="minover", alpha=2)).kappa.item(), 6)
    0.454578
    """
    check_is_scenario(scenario)
    check_cell_memory(scenario)
    return _solve_groups(scenario, [list(scenario.cells())], progress)


def solve_each(scenario: AbstractScenario) -> xr.Dataset:
    """Solve the lines of a scenario in separate calls, for example one for each rule or learner.

    The compiled program of a line can then be reused for every selection of lines.
    """
    check_is_scenario(scenario)
    groups: dict[int, list[Any]] = {}
    axis = next((index for index, names in enumerate(scenario.dimensions.values()) if scenario.CHOICE in names), None)
    for cell in scenario.cells():
        groups.setdefault(0 if axis is None else cell.index[axis], []).append(cell)
    return _solve_groups(scenario, list(groups.values()), as_lines=True)


def solve_line(scenario: AbstractScenario) -> xr.Dataset:
    """Solve the theory of a scenario for a smooth line.

    Corrections are evaluated at the exact times, not at the recorded steps.
    """
    return _solve_groups(scenario, [list(scenario.cells())], as_lines=True)


def _solve_groups(
    scenario: AbstractScenario,
    groups: list[list[Any]],
    progress: ProgressCallback | None = None,
    as_lines: bool = False,
) -> xr.Dataset:
    if scenario.unsolved:
        raise ScenarioError([((), scenario.unsolved)])
    solver, cells = get_solver(scenario), [cell for group in groups for cell in group]
    set_up_compilation_cache()
    solver_attributes = solver.attributes(scenario) if hasattr(solver, "attributes") else {}
    attributes = {"source": solver.SOURCE, "code": scenario.user_code_digests(), **solver_attributes}
    dataset = make_empty_dataset(scenario, seeds=None, title="statmech theory", **attributes)
    arrays = get_variable_arrays(dataset)
    solve_group = getattr(solver, "solve_line", solver.solve) if as_lines else solver.solve
    solutions = chain.from_iterable(solve_group(scenario, group) for group in groups)
    # products are small: additional BLAS threads mostly wait for each other, which triples the time of descents
    with use_one_blas_thread():
        for cell, values in zip(cells, report_progress(solutions, len(cells), progress), strict=True):
            fill_arrays(arrays, cell.index, values)
    if "control" in dataset:
        from theory.control.stored_controls import make_controls_attribute  # imported late: needs JAX

        dataset.attrs |= make_controls_attribute(scenario)
    if remarks := describe_optima_at_edges(scenario, dataset, solver):
        dataset.attrs["edges"] = "\n".join(remarks)
    return dataset


def get_solver(scenario: AbstractScenario) -> Any:
    """Return the solver of a scenario.

    The solver is the scenario's own method `solve`, or else the module of the same name in `theory/scenarios/`.
    """
    return (
        ScenarioMethodSolver
        if scenario.solve is not None
        else import_module(f"theory.scenarios.{scenario.get_module_name()}")
    )


class ScenarioMethodSolver:
    """Solver of scenario kinds that have a method `solve(cell)`."""

    SOURCE = "the scenario's own equations"

    @staticmethod
    def solve(scenario: AbstractScenario, cells: Sequence[Any]) -> Iterator[dict[str, np.ndarray]]:
        """Return the variables of each cell."""
        assert scenario.solve is not None  # other scenarios have a module in `theory/scenarios/`
        return ({name: np.asarray(value) for name, value in scenario.solve(cell).items()} for cell in cells)
