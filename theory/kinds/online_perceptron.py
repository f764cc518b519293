"""Theory of online learning: order parameters from their equations, and errors of the ensemble from integrals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.keys.time_dependent_keys import count_steps
from statmech.keys.variables import BIAS_SUFFIX, LOCAL_FIELD_DESCRIPTIONS
from statmech.kinds.online_learning import OnlineCell
from statmech.kinds.online_perceptron import Scenario
from statmech.runtime.jax_and_blas_settings import has_jax
from statmech.students import student_geometry
from statmech.students.ensemble_vote import majority_vote_error, mean_weight_vector_error
from statmech.students.student_geometry import compute_ensemble_order_parameters, make_gram_matrix
from theory.online import anisotropic_inputs
from theory.online.ensemble_errors import compute_vote_error
from theory.online.student_states import Students

if TYPE_CHECKING:
    from theory.online.ensemble_fluctuations import PairFluctuations
    from theory.online.student_fluctuations import StudentFluctuations

if has_jax():  # imported early: `theory.solve` sets up the folder of compiled programs only after JAX is imported
    import_module("theory.online.order_parameter_equations")

SOURCE = "order-parameter equations, N -> infinity"


def solve(scenario: Scenario, cells: Sequence[OnlineCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell of online perceptrons, in order.

    Exchangeable students obey the same equations for every K > 1. Corrections are evaluated at the step nearest to N t,
    which a simulation records.
    """
    if not scenario.corrections:
        cell_values = _solve_without_corrections(scenario, cells)
        return _add_averaged_variables(scenario, cells, cell_values) if scenario.average else cell_values
    recorded = {N: _round_to_step_times(scenario.t, N) for N in {cell.N for cell in cells}}
    groups: dict[tuple[float, ...], list[int]] = {}
    for index, cell in enumerate(cells):
        groups.setdefault(recorded[cell.N], []).append(index)
    variables: dict[int, dict[str, np.ndarray]] = {}
    for times, members in groups.items():
        group = [cells[index] for index in members]
        after = list(_solve_with_corrections(group, times, scenario.gram))
        if times != tuple(scenario.t):
            before = _compute_variables(
                group, _solve_distinct_cells(_solve_isotropic, group, scenario.t), scenario.gram
            )
            after = [_add_recorded_corrections(values, later) for values, later in zip(before, after, strict=True)]
        variables |= dict(zip(members, after, strict=True))
    return iter([variables[index] for index in range(len(cells))])


def _solve_without_corrections(scenario: Scenario, cells: Sequence[OnlineCell]) -> Iterator[dict[str, np.ndarray]]:
    """Solve cells of online perceptrons in order, for N -> infinity without corrections."""
    isotropic = [cell for cell in cells if not cell.inputs.has_unequal_variances]
    structured = [cell for cell in cells if cell.inputs.has_unequal_variances]
    first = _compute_variables(isotropic, _solve_distinct_cells(_solve_isotropic, isotropic, scenario.t), scenario.gram)
    if not structured:
        return first
    second = _compute_field_variables(
        structured, _solve_distinct_cells(anisotropic_inputs.solve_cells, structured, scenario.t), scenario
    )
    return (
        next(second) if cell.inputs.has_unequal_variances else _copy_to_field_variables(next(first)) for cell in cells
    )


def _add_averaged_variables(
    scenario: Scenario, cells: Sequence[OnlineCell], cell_values: Iterator[dict[str, np.ndarray]]
) -> Iterator[dict[str, np.ndarray]]:
    """Add the variables of averaged weights to the variables of each cell of online perceptrons."""
    from theory.online.averaged_students import solve_averaged_students  # imported late, because it needs JAX

    averages = _solve_distinct_cells(solve_averaged_students, cells, scenario.t)
    for cell, values, average in zip(cells, cell_values, averages, strict=True):
        yield values | {name: np.broadcast_to(value, (len(value), cell.K)) for name, value in average.items()}


def _solve_isotropic(cells: list[OnlineCell], times: Sequence[float]) -> list[Students]:
    """Solve the online perceptrons of cells with isotropic inputs.

    Cells are cell_values in parallel, or by the equations of a single mode if JAX is missing.
    """
    if not has_jax():
        return [metrics.weights for metrics in anisotropic_inputs.solve_cells(cells, times)]
    from theory.online.order_parameter_equations import solve_cells

    return solve_cells(cells, times)


def solve_line(scenario: Scenario, cells: Sequence[OnlineCell]) -> Iterator[dict[str, np.ndarray]]:
    """Solve theory for a dense line, at exact times instead of the times of integer steps."""
    return _solve_with_corrections(cells, scenario.t, scenario.gram) if scenario.corrections else solve(scenario, cells)


def _round_to_step_times(times: Sequence[float], N: int) -> tuple[float, ...]:
    """Return the times of the steps that a simulation records.

    Times that agree up to rounding errors are not changed.
    """
    exact, recorded = np.asarray(times, float), count_steps(times, N) / N
    return tuple(np.where(np.isclose(exact, recorded, rtol=1e-12, atol=0), exact, recorded).tolist())


def _add_recorded_corrections(values: dict[str, np.ndarray], recorded: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add corrections for the recorded steps of online perceptrons to values at the exact times.

    The change of a value between these times is added to its bias.
    """
    further = {name: value for name, value in recorded.items() if name not in values}
    for name in [name for name in further if name.endswith(BIAS_SUFFIX)]:
        base = name.removesuffix(BIAS_SUFFIX)
        further[name] = further[name] + recorded[base] - values[base]
    return values | further


def _solve_distinct_cells(
    solve: Callable[..., list[Any]], cells: Sequence[OnlineCell], times: Sequence[float]
) -> list[Any]:
    """Solve each distinct cell of online perceptrons once, and return a solution for every cell.

    Cells with the same equations share a solution.
    """
    first: dict[Any, OnlineCell] = {}
    for cell in cells:
        first.setdefault(_make_equation_key(cell), cell)
    solutions = dict(zip(first, solve(list(first.values()), times), strict=True))
    return [solutions[_make_equation_key(cell)] for cell in cells]


def _solve_with_corrections(
    cells: Sequence[OnlineCell], times: Sequence[float], gram: bool
) -> Iterator[dict[str, np.ndarray]]:
    """Solve cells at given times, including corrections of order 1/N."""
    # imported late, also below: corrections need JAX
    from theory.online.order_parameter_equations import solve_with_fluctuations

    solutions = _solve_distinct_cells(solve_with_fluctuations, cells, times)
    students = [cell_students for cell_students, _ in solutions]
    student_corrections = _compute_student_corrections(cells, solutions)
    pair_corrections = _compute_pair_corrections(cells, students, times)
    for index, values in enumerate(_compute_variables(cells, students, gram)):
        yield (
            values
            | student_corrections[index]
            | (
                _get_single_student_corrections(student_corrections[index])
                if cells[index].K == 1
                else pair_corrections.get(index, {})
            )
        )


def _compute_student_corrections(
    cells: Sequence[OnlineCell], solutions: Sequence[tuple[Students, StudentFluctuations]]
) -> list[dict[str, np.ndarray]]:
    """Compute the corrections (times, K) of the online perceptrons of each cell.

    Cells with the same number of distinct students share one call.
    """
    from theory.online.student_fluctuations import StudentFluctuations, compute_student_corrections

    corrections_by_cell: list[dict[str, np.ndarray]] = [{} for _ in cells]
    sizes = [students.y.shape[-1] for students, _ in solutions]
    for size in set(sizes):
        members = [index for index, cell_size in enumerate(sizes) if cell_size == size]
        students = Students(*map(np.stack, zip(*(solutions[index][0] for index in members), strict=True)))
        fluctuations = StudentFluctuations(
            *map(np.stack, zip(*(solutions[index][1] for index in members), strict=True))
        )
        theta, length = student_geometry.angle_from_versine(students.y), np.exp(students.log_length)
        values = compute_student_corrections(
            theta, length, fluctuations, np.array([cells[index].N for index in members])[:, None, None]
        )
        for row, index in enumerate(members):
            shape = (theta.shape[1], cells[index].K)
            corrections_by_cell[index] = {name: np.broadcast_to(value[row], shape) for name, value in values.items()}
    return corrections_by_cell


def _get_single_student_corrections(student: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the corrections for an ensemble of one student, which equal the student's own."""
    std, bias = student["eps_g_std"][:, 0], student["eps_g_bias"][:, 0]
    return {"eps_g_weight_mean_std": std, "eps_g_weight_mean_bias": bias, "eps_g_majority_vote_std": std}


def _compute_pair_corrections(
    cells: Sequence[OnlineCell], students: Sequence[Students], times: Sequence[float]
) -> dict[int, dict[str, np.ndarray]]:
    """Compute the corrections of online perceptrons that require pairs of students, by cell index.

    The corrections apply to cells with equal students and K > 1. Cells that differ in K and N share their pairs.
    """
    from theory.online.ensemble_fluctuations import (
        compute_ensemble_corrections,
        get_max_averaged_students,
        solve_pair_fluctuations,
    )

    members = [index for index, cell in enumerate(cells) if cell.has_equal_starts and cell.K > 1]
    pairs: dict[Any, PairFluctuations] = {}
    corrections_by_cell = {}
    for index in members:
        cell, key = cells[index], (*_make_equation_key(cells[index]), get_max_averaged_students(cells[index]))
        pairs[key] = pairs[key] if key in pairs else solve_pair_fluctuations(cell, times)
        theta, c = student_geometry.angle_from_versine(students[index].y)[:, 0], students[index].c[:, 0]
        values = compute_ensemble_corrections(theta, c, cell.K, cell.N, pairs[key])
        student_values = {name: np.repeat(values[name][:, None], cell.K, axis=-1) for name in ("q_std", "q_bias")}
        corrections_by_cell[index] = values | student_values
    return corrections_by_cell


def _make_equation_key(cell: OnlineCell) -> tuple[Any, ...]:
    """Return a key of all that determines the equations and initial conditions of a cell of online perceptrons."""
    students = min(cell.K, 2) if cell.has_equal_starts else cell.K
    inputs = (
        (cell.inputs, cell.N if cell.inputs.modes_depend_on_N else None) if cell.inputs.has_unequal_variances else ()
    )
    changes = *cell.nondefault_time_dependence.items(), *cell.controls, cell.resample, cell.burn_in
    return cell.name, *cell.rule_parameters.values(), cell.flip, *changes, id(cell.start), students, *inputs


def _compute_field_variables(
    cells: Sequence[OnlineCell], solutions: Sequence[anisotropic_inputs.WeightAndFieldStudents], scenario: Scenario
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the theoretical variables of each cell of online perceptrons with anisotropic inputs.

    Errors follow from the fields, whose R, q and length have separate names.
    """
    field_variables = _compute_variables(cells, [metrics.fields for metrics in solutions], gram=False)
    for cell, metrics, values in zip(cells, solutions, field_variables, strict=True):
        weights = _compute_weight_variables(cell, metrics.weights, scenario.gram)
        yield _copy_to_field_variables(values) | {
            name: values_of_weights for name, values_of_weights in weights.items() if not name.startswith("eps_g")
        }


def _compute_weight_variables(cell: OnlineCell, students: Students, gram: bool) -> dict[str, np.ndarray]:
    """Return all theoretical variables of online perceptrons' weights except the errors of the ensemble."""
    if cell.has_equal_starts:
        return _get_equal_student_variables(cell.K, students, gram)
    parallel, perpendicular = _get_unequal_components(students)
    return {
        **compute_ensemble_order_parameters(parallel, perpendicular),
        **({"gram": make_gram_matrix(parallel, perpendicular)} if gram else {}),
    }


def _copy_to_field_variables(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add the variables of the fields, which have the values of the weights for isotropic inputs."""
    return values | {name: values[name.removesuffix("_field")] for name in LOCAL_FIELD_DESCRIPTIONS}


def _compute_variables(
    cells: Sequence[OnlineCell], students: list[Students], gram: bool
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the theoretical variables of each cell of online perceptrons.

    Cells with equal students are computed together.
    """
    members = [index for index, cell in enumerate(cells) if cell.has_equal_starts]
    variables = _compute_equal_ensembles(
        [cells[index].K for index in members], [students[index] for index in members], gram
    )
    alike = dict(zip(members, variables, strict=True))
    for index in range(len(cells)):
        yield alike[index] if index in alike else _get_unequal_student_variables(students[index], gram)


def _compute_equal_ensembles(
    K: Sequence[int], solutions: Sequence[Students], gram: bool
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the theoretical variables of each cell of equal online perceptrons.

    Errors are computed in one call, other variables in one call per K.
    """
    if not K:
        return
    students, sizes = Students(*map(np.stack, zip(*solutions, strict=True))), np.asarray(K)
    theta, c = student_geometry.angle_from_versine(students.y)[..., 0], students.c[..., 0]
    errors = {
        "eps_g_majority_vote": majority_vote_error(theta, c, sizes[:, None]),
        "eps_g_weight_mean": mean_weight_vector_error(theta, c, sizes[:, None]),
    }
    groups = {size: np.flatnonzero(sizes == size) for size in dict.fromkeys(K)}
    values = {
        size: _get_equal_student_variables(size, Students(*(part[rows] for part in students)), gram)
        for size, rows in groups.items()
    }
    for index, size in enumerate(K):
        row = int(np.searchsorted(groups[size], index))
        variables = {name: array[row] for name, array in values[size].items()}
        yield variables | {name: error[index] for name, error in errors.items()}


def _get_equal_student_variables(K: int, students: Students, gram: bool) -> dict[str, np.ndarray]:
    """Return all theoretical variables of equal online perceptrons except the errors of the ensemble.

    One student represents all K, and arrays may have any leading axes.
    """
    theta = student_geometry.angle_from_versine(students.y)[..., 0]
    length = np.exp(students.log_length[..., 0])
    c = students.c[..., 0]
    q = np.cos(student_geometry.angle_between_students(theta, theta, c)) if K > 1 else np.full(theta.shape, np.nan)
    student_arrays = {"R": 1 - students.y[..., 0], "q": q, "length": length, "eps_g": theta / np.pi}
    values = {name: np.repeat(value[..., None], K, axis=-1) for name, value in student_arrays.items()}
    if gram:
        zeros = np.zeros((*theta.shape, K))
        cosines = _fill_pair_matrices(np.repeat(c[..., None], K * (K - 1) // 2, axis=-1), K)
        values["gram"] = make_gram_matrix(
            *_compute_components(theta[..., None] + zeros, length[..., None] + zeros, cosines)
        )
    return values


def _get_unequal_student_variables(students: Students, gram: bool) -> dict[str, np.ndarray]:
    parallel, perpendicular = _get_unequal_components(students)
    vote = compute_vote_error(parallel, perpendicular)
    return {
        **compute_ensemble_order_parameters(parallel, perpendicular),
        "eps_g_majority_vote": vote.value,
        "eps_g_majority_vote_error": vote.error,
        **({"gram": make_gram_matrix(parallel, perpendicular)} if gram else {}),
    }


def _get_unequal_components(students: Students) -> tuple[np.ndarray, np.ndarray]:
    """Return the components of non-identical students parallel and perpendicular to the teacher.

    Perpendicular parts are given by their Gram matrices.
    """
    theta = student_geometry.angle_from_versine(students.y)
    return _compute_components(theta, np.exp(students.log_length), _fill_pair_matrices(students.c, theta.shape[-1]))


def _compute_components(theta: np.ndarray, length: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return students' parallel components, and the Gram matrices of their perpendicular parts."""
    perpendicular = length * np.sin(theta)
    return length * np.cos(theta), perpendicular[..., :, None] * c * perpendicular[..., None, :]


def _fill_pair_matrices(c: np.ndarray, K: int) -> np.ndarray:
    """Return K x K matrices of transverse cosines of online perceptrons from the values for pairs.

    Pairs are the upper triangle, row by row.
    """
    matrix = np.ones((*c.shape[:-1], K, K))
    first, second = np.triu_indices(K, 1)
    matrix[..., first, second] = matrix[..., second, first] = c
    return matrix
