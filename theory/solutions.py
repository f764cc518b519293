"""Theory of a scenario of any kind as a dataset, on the grid of its sweep or as smooth lines.

Smooth lines are solved on a dense grid along one axis that does not depend on the simulated grid.

Cells with an `optimal` key are solved at their best control. `describe_optima_at_edges` warns of optima at an edge of
the search range, where the true optimum may lie outside.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import PchipInterpolator, UnivariateSpline

from statmech.errors import ScenarioError, SolverError
from statmech.keys.scenario import AbstractScenario, check_is_scenario
from statmech.keys.time_dependent_keys import FIRST_TASK_FRACTION_CONTROL
from statmech.keys.variables import STANDARD_ERROR_SUFFIX, list_standard_error_names
from statmech.runtime.compiled_programs import set_up_compilation_cache
from statmech.runtime.jax_and_blas_settings import use_one_blas_thread
from statmech.runtime.progress_bar import ProgressCallback, report_progress
from statmech.stores.dataset import fill_arrays, get_variable_arrays, make_empty_dataset
from statmech.stores.sweep_cost import check_cell_memory

VariableArrays = dict[str, np.ndarray]
CellSolver = Callable[[Any, Sequence[Any]], Iterator[VariableArrays]]

DEFAULT_LINE_POINTS = 200
MIN_JUMP_STEP_RATIO = 3.0  # relative to the preceding step
MIN_JUMP_RANGE_FRACTION = 0.01  # relative to the range of a line
MIN_JUMP_SLOPE_RATIO = 1.2  # relative to the neighbouring slopes
SINGULARITY_GRID_FACTORS = 1 + np.array(
    [-0.3, -0.22, -0.15, *np.linspace(-0.11, 0.02, 14), 0.04, 0.08, 0.11, 0.15, 0.22, 0.3]
)  # grid points, relative to the singular value, dense where a length has its maximum
RELATIVE_TIMES_AFTER_JUMPS = np.array([0, *np.geomspace(5e-4, 0.05, 16)])  # relative to the last time
TRANSITION_WIDTH_FRACTION = 0.01  # relative to the position of the transition
SAME_STATE_JUMP_FRACTION = 0.05  # relative to the jump: closer values belong to the same state
MAX_SWEEP_GRID_POINTS = 6000  # product over all axes of the sweep
MIN_GEOMETRIC_VALUES = 4  # fewer values do not reveal their spacing
MIN_LINE_POINTS_RANGE = 12, 40  # as many as there are recorded values, within this range
SPLINE_MEAN_CHI_SQUARED = 0.5  # mean squared deviation from samples, in standard errors
MAX_SPLINE_DEVIATION = 2.0  # in standard errors of a sample
MIN_SPLINE_ERROR_RATIO = 0.05  # relative to the largest error on the line: no value is treated as exact
MIN_SPLINE_LINE_POINTS = 5
_LINE_CACHE: ContextVar[dict[Any, xr.Dataset | None] | None] = ContextVar("_LINE_CACHE", default=None)
SEARCH_EDGE_TOL = 1e-4  # relative; closer to an edge of the search range, an optimum counts as lying on it


def describe_optima_at_edges(scenario: AbstractScenario, dataset: xr.Dataset, solver: Any) -> list[str]:
    """Return a warning for each distinct optimum that lies at an edge of its search range.

    Parameters
    ----------
    scenario, dataset
        A scenario and its theory.
    solver
        The solver of the scenario. Its `searched_penalties(cell)` returns the search range of `lam: best`.
    """
    cells = list(scenario.cells())
    remarks = [*_describe_penalties_at_edges(cells, dataset, solver), *_describe_controls_at_edges(cells, dataset)]
    return list(dict.fromkeys(filter(None, remarks)))


def _describe_penalties_at_edges(cells: list[Any], dataset: xr.Dataset, solver: Any) -> Iterator[str]:
    if "lam_best" not in dataset or not hasattr(solver, "searched_penalties"):
        return
    for cell in cells:
        if cell.lam == "best":
            low, high = solver.searched_penalties(cell)
            yield _describe_edge_optimum("lam: best", min(float(dataset.lam_best.values[cell.index]), high), low, high)


def _describe_controls_at_edges(cells: list[Any], dataset: xr.Dataset) -> Iterator[str]:
    if "control" not in dataset:
        return
    from theory.control.optimal_controls import get_search_range  # imported late: needs JAX

    names = [str(name) for name in dataset.controlled.values]
    for cell in cells:
        for name, options in cell.optimal_keys.items():
            low, high = get_search_range(name, options)[:2]
            values = dataset.control.values[cell.index][names.index(name)]
            for extreme in (np.nanmin(values), np.nanmax(values)):
                if name != FIRST_TASK_FRACTION_CONTROL or extreme < 1:  # a fraction of 1 may be a true optimum
                    yield _describe_edge_optimum(f"{name}: optimal, at some times,", float(extreme), low, high)


def _describe_edge_optimum(name: str, value: float, search_min: float, search_max: float) -> str:
    """Return a warning if an optimum lies at the edge of its search range, else an empty string.

    >>> _describe_edge_optimum("lam: best", 1e6, 1e-6, 1e6)
    'lam: best is 1e+06, the largest value that is searched (1e-06 to 1e+06): the optimum may lie beyond'
    >>> _describe_edge_optimum("lam: best", 0.3, 1e-6, 1e6)
    ''
    """
    for side, edge in (("smallest", search_min), ("largest", search_max)):
        # an edge at 0 limits the parameter, not the search
        if edge and np.isclose(value, edge, rtol=SEARCH_EDGE_TOL, atol=0.0):
            searched = f"the {side} value that is searched ({search_min:g} to {search_max:g})"
            return f"{name} is {edge:g}, {searched}: the optimum may lie beyond"
    return ""


def solve(scenario: AbstractScenario, progress: ProgressCallback | None = None) -> xr.Dataset:
    """Compute the theory of a scenario for N -> infinity, as a Dataset on (sweep axes, recorded times).

    `Scenario`: R, q, length and eps_g follow eqs (3.5) and (3.6) of Miyoshi, Hara & Okada, and the errors of the
    ensemble eq (3.2); see `theory.online.order_parameter_equations` and `theory.online.ensemble_errors`. For unequal
    students `eps_g_majority_vote_error` is the standard error of the vote's integration, 0 up to K = 4. With
    `corrections`, the dataset includes standard deviations and biases at N, after the integer number of steps nearest
    to N t (`theory.online.student_fluctuations`).

    `StoredExamples`: R, eps_g and kappa in the limit of each learner, NaN where the limit does not exist
    (`theory.stored_examples.learning_curves_and_bounds`). They do not depend on the number of updates, which is
    infinite in this limit.
    `Boosting`: bounds on stages, eps_g and advantage at this N and P (`theory.classification.boosting`).

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
    """Solve the theory lines of a scenario in separate calls, for example one for each rule or learner.

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
    solutions = chain.from_iterable(_solve_at_best_controls(solve_group, scenario, group) for group in groups)
    # products are small: additional BLAS threads mostly wait for each other, which triples the time of descents
    with use_one_blas_thread():
        for cell, values in zip(cells, report_progress(solutions, len(cells), progress), strict=True):
            fill_arrays(arrays, cell.index, values)
    if "control" in dataset:
        from theory.control.optimal_controls import make_controls_attribute  # imported late: needs JAX

        dataset.attrs |= make_controls_attribute(scenario)
    if remarks := describe_optima_at_edges(scenario, dataset, solver):
        dataset.attrs["edges"] = "\n".join(remarks)
    return dataset


def _solve_at_best_controls(
    solve_group: CellSolver, scenario: AbstractScenario, cells: Sequence[Any]
) -> Iterator[VariableArrays]:
    """Solve cells with an `optimal` key at their best control, which the solution includes."""
    if "control" not in scenario.theory_only_variables:
        return solve_group(scenario, cells)
    from theory.control.optimal_controls import add_best_controls  # imported late: needs JAX

    t, names = np.asarray(scenario.t, float), [*scenario.optimal_keys]
    controlled_cells, optima = zip(*add_best_controls(cells, scenario.t[-1]), strict=True)
    return (
        variables | (best.make_variables(names, t) if best else {})
        for variables, best in zip(solve_group(scenario, controlled_cells), optima, strict=True)
    )


def get_solver(scenario: AbstractScenario) -> Any:
    """Return the solver of a scenario.

    The solver is the scenario's own method `solve`, or else the module of the same name in `theory`.
    """
    return ScenarioMethodSolver if scenario.solve is not None else import_module(f"theory.{scenario.get_module_name()}")


class ScenarioMethodSolver:
    """Solver of scenario kinds that have a method `solve(cell)`."""

    SOURCE = "the scenario's own equations"

    @staticmethod
    def solve(scenario: AbstractScenario, cells: Sequence[Any]) -> Iterator[VariableArrays]:
        """Return the variables of each cell."""
        assert scenario.solve is not None  # other scenarios have a module in `theory`
        return ({name: np.asarray(value) for name, value in scenario.solve(cell).items()} for cell in cells)


@contextmanager
def cache_theory_lines() -> Iterator[None]:
    """Solve each theory line at most once within this block.

    Charts of a report and figures that request the same line share one solution. A block inside another uses its lines.

    >>> from statmech import Scenario
    >>> with cache_theory_lines():
    ...     first, again = (smooth(Scenario(rule="hebb", t=[1, 10]), "t") for _ in range(2))
    >>> first is not again, first.R.values is again.R.values
    (True, True)
    """
    outer_lines = _LINE_CACHE.get()
    outside = _LINE_CACHE.set({} if outer_lines is None else outer_lines)
    try:
        yield
    finally:
        _LINE_CACHE.reset(outside)


def smooth(
    scenario: AbstractScenario, axis: str, max_points: int = DEFAULT_LINE_POINTS, own_theory: xr.Dataset | None = None
) -> xr.Dataset | None:
    """Solve the theory of a scenario on a dense grid along one axis.

    Half of the points are equally spaced and half geometrically, so that a line bends smoothly on linear and on
    logarithmic axes. Integer axes (K, s, P) use every integer, or as many as `max_points` allows. Where the solver
    declares a first-order transition, values that jump are NaN, so that no line joins the two branches. The grid
    includes each singularity that the solver declares; a diverging value is infinite there. Sampled values are replaced
    by splines within their standard errors.

    Parameters
    ----------
    scenario
        Any scenario with a theory.
    axis
        An axis of the sweep or of its recorded times; the grid extends from its first to its last value.
    max_points
        The maximum number of grid points along the axis.
    own_theory
        The theory of the scenario, if known. Lines of sampled theory pass through its values, whose errors are smaller.

    Returns
    -------
    The Dataset of `theory.solve`, dense along `axis` and without the axes that the theory ignores (such as N). A grid
    of times omits variables that are averaged between recorded times (`Variable.is_interval_mean`). None if the theory
    does not vary along `axis`, cannot be solved on such a grid, or would take minutes (unequal students, hundreds of
    parameter combinations).

    Examples
    --------
    >>> from statmech import Scenario
    >>> line = smooth(Scenario(rule="hebb", N=[50, 100], t=[1, 10]), "t")
    >>> dict(line.R.sizes), line.t.values[[0, -1]]
    ({'t': 200, 'student': 1}, array([ 1., 10.]))
    """
    cached_lines = _LINE_CACHE.get()
    if cached_lines is None:
        return _solve_dense_line(scenario, axis, max_points, own_theory)
    key = type(scenario), repr(scenario.config()), axis, max_points, own_theory is None
    if key not in cached_lines:
        cached_lines[key] = _solve_dense_line(scenario, axis, max_points, own_theory)
    lines = cached_lines[key]
    return None if lines is None else lines.copy(deep=False)


def _solve_dense_line(
    scenario: AbstractScenario, axis: str, max_points: int, own_theory: xr.Dataset | None
) -> xr.Dataset | None:
    if own_theory is not None and "control" in own_theory:
        from theory.control.optimal_controls import restore_best_controls  # imported late: needs JAX

        restore_best_controls(own_theory)
    config = _make_dense_config(scenario, axis, max_points)
    if config is None:
        return None
    try:
        dense = type(scenario)(**config)
        solution = solve_line(dense)
    except (ScenarioError, SolverError):  # the grid is too fine or leaves the valid range of the equations
        return None
    if axis in dense.recorded_coordinates:
        means = [name for name, variable in dense.variables.items() if variable.is_interval_mean]
        solution = solution.drop_vars(means, errors="ignore")
    ignored = [str(dim) for dim in solution.dims if dim in scenario.keys_ignored_by_theory]
    lines = solution.isel(dict.fromkeys(ignored, 0), drop=True)
    if any((lines[name] > 0).any() for name in list_standard_error_names(lines)):
        if own_theory is not None:
            lines = _shift_to_solved_values(lines, own_theory, axis)
        lines = _smooth_sampled_values(lines, axis, 0 if axis in dense.recorded_coordinates else DEFAULT_LINE_POINTS)
    return break_at_declared_transitions(scenario, lines, axis)


def _shift_to_solved_values(lines: xr.Dataset, own_theory: xr.Dataset, axis: str) -> xr.Dataset:
    """Shift sampled lines along an axis so that they pass through solved values, whose errors are smaller.

    Neighbouring samples share most of their error. Their deviations from solved values are therefore interpolated. At
    positions on other axes where nothing is solved, the samples of the lines stay.
    """
    ignored = {dim: 0 for dim in own_theory.dims if dim not in lines.dims}
    own_values = own_theory.isel(ignored, drop=True)
    if own_values.sizes.get(axis, 1) < 2:
        return lines
    same = np.isclose(lines[axis].values[:, None], own_values[axis].values).any(1)  # equal but for rounding
    lines = lines.interp({axis: np.union1d(lines[axis][~same], own_values[axis])})
    x_in_range = lines[axis].clip(own_values[axis].min(), own_values[axis].max())
    positions = {dim: lines[dim] for dim in lines.dims if dim != axis and dim in own_values.indexes}
    for error_name in list_standard_error_names(lines):
        name = error_name.removesuffix(STANDARD_ERROR_SUFFIX)
        if error_name in own_values and axis in own_values[name].dims:
            value, error = own_values[[name, error_name]].reindex(positions).data_vars.values()
            shift = (value - lines[name]).fillna(0.0).interp({axis: x_in_range}).where(lines[error_name] > 0, 0.0)
            lines[name] = value.combine_first(lines[name] + shift)
            lines[error_name] = error.combine_first(lines[error_name])
    return lines


def _smooth_sampled_values(lines: xr.Dataset, axis: str, num_further_points: int) -> xr.Dataset:
    """Replace sampled values of theory lines by splines along an axis, at its values and at further points.

    The splines stay within the standard errors of the samples.
    """
    x, exact = lines[axis].values, xr.zeros_like(lines[axis], float)
    fine = np.union1d(x, np.linspace(x[0], x[-1], num_further_points))

    def spline(values: xr.DataArray) -> xr.DataArray:
        if axis not in values.dims or values.dtype.kind != "f":
            return values
        error = lines.get(f"{values.name}{STANDARD_ERROR_SUFFIX}", exact)
        smooth: xr.DataArray = xr.apply_ufunc(
            lambda y, y_error: _evaluate_spline(x, y, y_error, fine),
            values,
            error,
            input_core_dims=[[axis], [axis]],
            output_core_dims=[["fine"]],
            vectorize=True,
        )
        return smooth.rename(fine=axis).transpose(*values.dims).assign_attrs(values.attrs)

    other_coords = {name: coord.variable for name, coord in lines.coords.items() if axis not in coord.dims}
    splines = {name: spline(values) for name, values in lines.data_vars.items()}
    return xr.Dataset(splines, {axis: fine, **other_coords}, lines.attrs)


def _evaluate_spline(x: np.ndarray, y: np.ndarray, error: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """Evaluate the spline of a theory line through values with these standard errors.

    Straight lines are used if all errors are 0. Points outside the range of finite values are NaN.
    """
    finite = np.isfinite(y) & np.isfinite(error)
    if finite.sum() < MIN_SPLINE_LINE_POINTS or not error[finite].any():
        return np.interp(fine, x, y)
    x, y, error = x[finite], y[finite], error[finite]
    weights = 1 / np.maximum(error, MIN_SPLINE_ERROR_RATIO * error.max())
    with warnings.catch_warnings(action="ignore"):  # deviations larger than intended are clipped below
        smoothed = UnivariateSpline(x, y, weights, s=SPLINE_MEAN_CHI_SQUARED * x.size)(x)
    smoothed = np.clip(smoothed, y - MAX_SPLINE_DEVIATION * error, y + MAX_SPLINE_DEVIATION * error)
    # a monotone interpolation, because the spline itself may swing beyond the values between them
    return PchipInterpolator(x, smoothed, extrapolate=False)(fine)


def break_at_declared_transitions(scenario: AbstractScenario, lines: xr.Dataset, axis: str) -> xr.Dataset:
    """Interrupt lines along an axis at the first-order transitions that their solver declares."""
    transition = getattr(get_solver(scenario), "TRANSITION_VARIABLES", {}).get(axis)
    return break_lines_at_jumps(lines, axis, lines[transition]) if transition else lines


def break_lines_at_jumps(lines: xr.Dataset, axis: str, transitions: xr.DataArray) -> xr.Dataset:
    """Insert NaN into theory lines where variables jump at transitions along an axis.

    Parameters
    ----------
    lines
        Theory on a dense increasing grid along the axis.
    axis
        The name of the axis.
    transitions
        Positions of first-order transitions, for example one for each prior. NaN and values outside the grid are
        ignored.

    Returns
    -------
    xarray.Dataset
        The lines with the transitions added to the axis. A variable without a jump at a transition is interpolated.

    Examples
    --------
    >>> x = np.linspace(0, 1, 11)
    >>> lines = xr.Dataset({"m": ("x", x + (x > 0.55)), "f": ("x", x)}, {"x": x})
    >>> jumps = xr.DataArray([0.55, np.nan], dims="case")
    >>> break_lines_at_jumps(lines, "x", jumps).sel(x=0.55).to_array().values.round(12)
    array([ nan, 0.55])
    """
    x = lines[axis].values
    positions = np.unique(transitions)
    for transition in positions[(positions > x[1]) & (positions < x[-2])].tolist():
        is_here = transitions == transition
        is_here = is_here.any(axis) if axis in is_here.dims else is_here
        varying = [line for line in lines.values() if axis in line.dims and line.dtype.kind == "f"]
        gaps = {line.name: _find_gap(line, axis, transition, is_here) for line in varying}
        lines = lines.map(_break_line, axis=axis, transition=transition, gaps=gaps)
    return lines


def _break_line(
    line: xr.DataArray, axis: str, transition: float, gaps: Mapping[Hashable, xr.DataArray]
) -> xr.DataArray:
    """Insert a transition into a theory line, with NaN in the common gap of all lines with these dimensions."""
    if line.name not in gaps:
        return line
    extended = line.interp({axis: np.union1d(line[axis], transition)}).transpose(*line.dims)
    gap = gaps[line.name]
    if gap.any():
        gap = gap.copy(data=np.any([line_gap for line_gap in gaps.values() if line_gap.dims == gap.dims], axis=0))
    return extended.where(~gap.reindex_like(extended, fill_value=False))


def _find_gap(line: xr.DataArray, axis: str, transition: float, has_transition: xr.DataArray) -> xr.DataArray:
    """Return True where a line jumps at a transition, for points from there up to the other state.

    Only the entries that `has_transition` marks have a gap. Points just above the transition belong to the gap while
    they lie between the two states. Iterations are slow there and have not reached the other state after the recorded
    number of steps.
    """
    x, near = line[axis].values, TRANSITION_WIDTH_FRACTION * abs(transition)
    above, below = max(transition + near, x[x > transition][0]), x[x < transition][-1]
    points = np.array([min(transition - near, x[x < transition][-2]), below, above, *x[x > above][:1]])
    line = line.transpose(axis, ...)
    values = line.interp({axis: points}).values
    just_above = line.interp({axis: np.array([transition, *x[(x > transition) & (x < above)]])})
    min_jump = MIN_JUMP_RANGE_FRACTION * (line.max(axis) - line.min(axis))
    other_dims = [dim for dim in has_transition.dims if dim not in line.dims]
    has_transition = has_transition.any(other_dims).broadcast_like(min_jump).transpose(*min_jump.dims)
    with np.errstate(invalid="ignore"):  # infinite values have no difference
        steps = np.abs(np.diff(values, axis=0))
        before, jump, *after = (steps.T / np.diff(points)).T  # slopes
        # steeper than both neighbours, for coarse grids
        steeper = jump > MIN_JUMP_SLOPE_RATIO * np.maximum(before, after[0] if after else 0.0)
        is_jump = (steeper | (steps[1] > MIN_JUMP_STEP_RATIO * steps[0])) & (steps[1] > min_jump.values)
        in_transit = np.abs(just_above - values[2]) > SAME_STATE_JUMP_FRACTION * steps[1]
    return in_transit & has_transition.values & is_jump


def _make_dense_config(scenario: AbstractScenario, axis: str, max_points: int) -> dict[str, Any] | None:
    """Return the scenario's config on the dense grid of a theory line, or None if no such grid is possible."""
    config, ignores = scenario.config(), scenario.keys_ignored_by_theory
    section_key, values = _split_section_axis(config.get(axis, ()))
    zipped = [name for group in scenario.zipped for name in group]
    if scenario.unsolved or scenario.on_data or axis in ignores or {axis, *ignores} & {*zipped}:
        return None
    if not scenario.has_fast_theory:
        return None
    if values.dtype.kind not in "iuf" or values.size < 2:
        return None
    num_other_points = math.prod(length for name, length in scenario.shape.items() if name not in (axis, *ignores))
    max_grid_points = MAX_SWEEP_GRID_POINTS // num_other_points
    if max_grid_points < np.clip(values.size, *MIN_LINE_POINTS_RANGE):
        return None
    integer = scenario.has_integer_values(axis)
    steps = integer and axis in scenario.recorded_coordinates  # iterations compute every step, even if few are recorded
    solver_points = max_points if steps else getattr(get_solver(scenario), "LINE_POINTS", max_points)
    num_points = min(max_points, max_grid_points, solver_points)
    has_many_values = values.size >= MIN_GEOMETRIC_VALUES and values.min() > 0 and not integer
    is_geometric = has_many_values and np.isclose(np.ptp(np.diff(np.log(values))), 0.0)  # for a logarithmic axis
    ends = values.min(), values.max()
    dense = np.geomspace(*ends, num_points) if is_geometric else make_line_grid(values, num_points, integer)
    find_singularities = getattr(get_solver(scenario), "find_singularities", None)
    singular_values = find_singularities(scenario).get(axis, ()) if find_singularities else ()
    singular = np.outer(singular_values, SINGULARITY_GRID_FACTORS).ravel()
    singular = find_times_after_jumps(scenario) if axis == "t" else singular
    added_points = singular[(singular > dense[0]) & (singular < dense[-1])]
    points = np.union1d(dense, added_points).tolist()
    axis_form = [{section_key: point} for point in points] if section_key else points
    return {**config, axis: axis_form, **_choose_ignored_key_values(config, ignores)}


def find_times_after_jumps(scenario: AbstractScenario) -> np.ndarray:
    """Return the times at and shortly after jumps of controls and tasks, where lines of theory may have corners."""
    cells: Sequence[Any] = list(scenario.cells())
    if "control" in scenario.theory_only_variables:
        from theory.control.optimal_controls import add_best_controls  # imported late: needs JAX

        cells = [cell for cell, _ in add_best_controls(cells, scenario.t[-1])]
    jumps = sorted({edge for cell in cells for edge in getattr(cell, "edges", ())})
    return np.add.outer(jumps, scenario.t[-1] * RELATIVE_TIMES_AFTER_JUMPS).ravel()


def _split_section_axis(axis_form: Any) -> tuple[str, np.ndarray]:
    """Return the common key of an axis of sections, or "" for an axis of plain values, and the values.

    >>> _split_section_axis([{"share": 0.2}, {"share": 0.5}])
    ('share', array([0.2, 0.5]))
    """
    if not isinstance(axis_form, list) or not all(isinstance(form, dict) and len(form) == 1 for form in axis_form):
        return "", np.asarray(axis_form)
    section_key, *further_keys = dict.fromkeys(key for form in axis_form for key in form)
    return section_key, np.asarray([] if further_keys else [form[section_key] for form in axis_form])


def _choose_ignored_key_values(config: dict[str, Any], ignores: dict[str, Any]) -> dict[str, Any]:
    """Choose one value for each configured key that the theory ignores.

    A value in `ignores` takes precedence over the first value in the config.
    """
    configured = {name: config[name] for name in config.keys() & ignores.keys()}
    first = {name: value[0] if isinstance(value, list) else value for name, value in configured.items()}
    return first | {name: value for name, value in ignores.items() if value is not None}


def make_line_grid(values: np.ndarray, max_points: int, integer: bool = False) -> np.ndarray:
    """Make an increasing grid for theory lines from the smallest to the largest of these values.

    >>> make_line_grid(np.array([1, 11]), 200, integer=True)
    array([ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11])
    """
    low, high = values.min(), values.max()
    if integer and high - low < max_points:
        return np.union1d(np.arange(np.ceil(low), high + 1, dtype=values.dtype), values)
    linear, first = np.linspace(low, high, max_points - max_points // 2), _get_geometric_start(values)
    make_grid = np.geomspace if first else np.linspace
    points = np.sort(np.concatenate([linear, make_grid(first or low, high, max_points // 2 + 2)[1:-1]]))
    return np.union1d(np.rint(points).astype(int), values) if integer else points


def _get_geometric_start(values: np.ndarray) -> float:
    """Return the first point of geometric spacing, or 0 if the axis has negative values.

    If an axis begins at 0 the start is a tenth of the smallest positive value.
    """
    if values.min() < 0 or values.max() <= 0:
        return 0.0
    return float(values.min() or values[values > 0].min() / 10)
