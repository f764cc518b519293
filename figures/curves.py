"""Curves of a simulation and its theory along one axis, for every kind of scenario.

A dataset has more axes than a chart. One axis is x, others are distinguished by colour, students and folds are averaged
over, and each remaining axis is shown at one position. Error bars are standard errors of the mean over seeds or, in
cross-validation, over folds (averaged over shuffles).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import derived_data
from figures.labels import round_to_distinct
from figures.style import CURVE_COLOURS, MAX_MARKERS_PER_CURVE, make_shades
from statmech.errors import ScenarioError
from statmech.inputs.data_sets import GENERATED_DATA_SOURCES, get_cached_data_set
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import ensure_tuple
from statmech.keys.variables import BIAS_SUFFIX, DIMS_AVERAGED_IN_FIGURES, DIMS_HIDDEN_IN_FIGURES, STD_SUFFIX, Variable
from statmech.numerics.statistics import compute_run_standard_error
from statmech.results import comparison
from statmech.results.comparison import find_unresolved_std_mask, predict_mean_and_std

if TYPE_CHECKING:
    import xarray as xr

    from statmech.results.results import Results

RUN_CONVERGED_VARIABLE = "converged"  # variable that only some kinds of scenarios have
MAX_CURVES_PER_CHART = 7  # one per colour
MAX_VALUES_WITHOUT_SHADES = 3  # more ordered values are easier to read as shades
MAX_INDEPENDENT_SAMPLE_FRACTION = 0.1  # samples of at most this fraction of a data set hardly overlap
MAX_SINGLE_RUNS = 32  # more runs are not drawn individually
LOG_Y_MIN_RATIO, LOG_X_MIN_RATIO = 100, 4  # ratio of maximum to minimum that makes an axis logarithmic
MIN_LOG_BAND_END_FRACTION = 1e-2  # lower end of a band on a logarithmic axis, relative to its line
GAP_SPREAD_TOL = 0.2  # largest spread of equal gaps, relative to their mean
MIN_MARKERS_WITH_LAST = 8  # fewer points would be drawn than with a smaller step that omits the last point
EQUAL_VARIABLE_TOL = 1e-6  # relative: the numerical error of an integrated vote
RELATIVE_ZERO_TOL = 1e-12  # smaller values, relative to the maximum, count as 0
EQUAL_LIMITS_MARGIN = 0.05  # relative margin of an axis around values that are equal up to rounding


@dataclass(frozen=True)
class Curve:
    """One curve of a chart.

    The simulation has a `mean` and an `error` (standard error) at each `x`, a number or a name, and theory expects
    the value `expected` there. The line of `theory` is given at `theory_x`, which is denser than x if theory can be
    solved between the recorded values. With corrections of order 1/N, one run lies in the `band`: theory plus bias,
    plus or minus one standard deviation. The `reference_levels` are labelled values of theory for comparison, also at
    `theory_x`. The `runs` (seeds, x) are given if single runs are drawn instead of their mean.
    """

    label: str
    x: np.ndarray
    mean: np.ndarray | None = None
    error: np.ndarray | None = None
    theory_at_x: np.ndarray | None = None
    theory_x: np.ndarray | None = None
    theory: np.ndarray | None = None
    band: tuple[np.ndarray, np.ndarray] | None = None
    reference_levels: tuple[tuple[str, np.ndarray], ...] = ()
    runs: np.ndarray | None = None

    @property
    def is_empty(self) -> bool:
        """True if neither theory nor simulation has a value."""
        return not any(part is not None and np.isfinite(part).any() for part in (self.theory, self.mean))


@dataclass(frozen=True)
class Layout:
    """Roles of the axes of a chart: along x, by colour, by marker, by panel, or at a single position."""

    x: str
    colour_axes: tuple[str, ...]
    single_position_axes: tuple[str, ...]
    marker_axes: tuple[str, ...] = ()
    panel_axes: tuple[str, ...] = ()


def get_chart_variables(scenario: AbstractScenario) -> dict[str, Variable]:
    """Return the variables that charts can show: numbers with at most one value per student.

    Flags and overlaps of units are excluded. Variables of theory alone are included if they are controls or keys that
    are functions of time. With several recorded times, only time-dependent variables are shown. A variable with
    another meaning in theory, such as the best recorded epoch of a run, is not shown.
    """
    recorded = get_recorded_times(scenario)
    allowed_dims = {*recorded, *DIMS_AVERAGED_IN_FIGURES}
    required_dims = {dim for dim, values in recorded.items() if len(values) > 1}
    controls = {
        name: variable for name, variable in scenario.theory_only_variables.items() if variable.role == "control"
    }
    all_variables = scenario.variables | controls
    theory_only_names = scenario.theory_only_variables.keys() - controls.keys()
    numbers = {
        name: variable
        for name, variable in all_variables.items()
        if variable.missing is np.nan and name not in theory_only_names
    }
    selected = {
        name: variable for name, variable in numbers.items() if required_dims <= {*variable.dims} <= allowed_dims
    }
    return selected | derived_data.describe_time_dependent_keys(scenario)


def get_recorded_times(scenario: AbstractScenario) -> dict[str, np.ndarray]:
    """Return the recorded axes that can lie along x, such as times, but not students or searches."""
    recorded = {dim for variable in scenario.variables.values() for dim in variable.dims} - {*DIMS_HIDDEN_IN_FIGURES}
    return {dim: np.asarray(values) for dim, values in scenario.recorded_coordinates.items() if dim in recorded}


def get_variables_with_values(results: Results, variables: dict[str, Variable] | None = None) -> dict[str, Variable]:
    """Return the variables that have a value, with distinct symbols."""
    parts = [part for part in (results.simulation, results.theory) if part is not None]
    variables = get_chart_variables(results.scenario) if variables is None else variables
    names_with_values = [
        name for name in variables if any(name in part and np.isfinite(part[name]).any() for part in parts)
    ]
    return distinguish_symbols({name: variables[name] for name in names_with_values})


def select_main_variables(results: Results) -> dict[str, Variable]:
    """Return the variables that a figure shows by default, without details and diagnostics.

    A constant variable, such as a fixed second layer, is excluded, and so is a variable that equals an earlier one,
    such as the error of a vote of one student.
    """
    variables = get_variables_with_values(results)
    names = [name for name in variables if variables[name].role == "result"]
    names = names or [name for name in variables if variables[name].role == "detail"] or [*variables]
    varied = [name for name in names if not _is_constant(results, name)] or names
    unique = [
        name
        for i, name in enumerate(varied)
        if not any(_are_variables_equal(results, name, earlier) for earlier in varied[:i])
    ]
    return {name: variables[name] for name in unique}


def _is_constant(results: Results, name: str) -> bool:
    """Return True if a variable has the same value in all runs, for all students and at all points of a sweep."""
    parts = [part[name].values for part in (results.simulation, results.theory) if part is not None and name in part]
    finite_values = [values[np.isfinite(values)] for values in parts]
    is_swept = any(results.either.sizes[axis] > 1 for axis in get_chart_axes(results.either))
    return is_swept and all(
        _is_rounding_difference(values.min(initial=np.inf), values.max(initial=-np.inf)) for values in finite_values
    )


def _are_variables_equal(results: Results, name: str, other_name: str) -> bool:
    """Return True if two variables are equal up to rounding, in simulation and theory."""
    parts = [part for part in (results.simulation, results.theory) if part is not None and {name, other_name} & {*part}]
    if not all(name in part and other_name in part for part in parts):
        return False
    pairs = [[derived_data.average_over_students(part[key]) for key in (name, other_name)] for part in parts]
    return all(
        first.dims == second.dims and np.allclose(first, second, EQUAL_VARIABLE_TOL, 0, equal_nan=True)
        for first, second in pairs
    )


def distinguish_symbols(variables: dict[str, Variable]) -> dict[str, Variable]:
    """Replace repeated symbols by the names of their variables."""
    symbols = [variable.symbol for variable in variables.values()]
    repeated = {name for index, name in enumerate(variables) if symbols[index] in symbols[:index]}
    return {
        name: replace(variable, symbol=name) if name in repeated else variable for name, variable in variables.items()
    }


def get_chart_axes(dataset: xr.Dataset) -> list[str]:
    """Return the axes that can lie along x: swept axes and recorded times."""
    return [str(dim) for dim in dataset.dims if dim not in DIMS_HIDDEN_IN_FIGURES]


def get_axis_values(dataset: xr.Dataset, axis: str) -> np.ndarray:
    """Return the values along an axis, for a zipped axis the values of its first coordinate."""
    first = get_axis_coordinates(dataset, axis)[0]
    return dataset.variables[first].values if first in dataset.coords else np.arange(dataset.sizes[axis])


def get_axis_coordinates(dataset: xr.Dataset, axis: str) -> list[str]:
    """Return the coordinates of an axis: its own name, or all keys of a zipped axis."""
    names = [str(name) for name, coordinate in dataset.coords.variables.items() if coordinate.dims == (axis,)]
    return [axis] if axis in names or not names else sorted(names, key=axis.find)


def has_several_numbers(dataset: xr.Dataset, axis: str) -> bool:
    """Return True if an axis holds several numbers, so that it can be x."""
    return get_axis_values(dataset, axis).dtype.kind in "iuf" and dataset.sizes[axis] > 1


def choose_default_layout(results: Results) -> Layout:
    """Return the initial layout of charts: x is the longest numeric axis, colour is the learner or rule."""
    dataset, choice = results.either, results.scenario.CHOICE
    all_axes = get_chart_axes(dataset)
    x = get_longest_axis([axis for axis in all_axes if has_several_numbers(dataset, axis)] or all_axes, dataset)
    short_axes = [axis for axis in all_axes if axis != x and 1 < dataset.sizes[axis] <= MAX_CURVES_PER_CHART]
    colour = choice if choice in short_axes else next(iter(short_axes), None)
    return Layout(x, (colour,) if colour else (), tuple(axis for axis in all_axes if axis not in (x, colour)))


def choose_figure_layout(
    results: Results,
    x: str,
    requested_axes: Sequence[str] = (),
    split: Sequence[str] = (),
    has_several_variables: bool = False,
) -> Layout:
    """Return a layout that shows all axes of the results in a figure against x.

    Colour distinguishes the learner or rule, otherwise the first axis that theory depends on. Markers distinguish an
    axis that theory does not depend on, otherwise the next one. Every additional axis has panels. If there are several
    axes, an axis with more than a few numbers is shown in shades of colour, and markers only distinguish an axis that
    theory does not depend on. Axes in `requested_axes` come first, the last of several by marker. Axes in `split` have
    panels.
    In panels of several variables (`has_several_variables`), markers distinguish the variables, colours the first
    requested axis, and all others have panels.
    """
    dataset, ignored = results.either, get_axes_ignored_by_theory(results.scenario)
    other_axes = [axis for axis in get_chart_axes(dataset) if axis != x]
    swept_axes = [axis for axis in other_axes if dataset.sizes[axis] > 1]
    if has_several_variables:
        coloured = tuple(requested_axes[:1])
        rows = (*split, *(axis for axis in swept_axes if axis not in (*coloured, *split)))
        return Layout(x, coloured, tuple(axis for axis in other_axes if axis not in (*coloured, *rows)), (), rows)
    ranked = sorted(swept_axes, key=lambda axis: (axis != results.scenario.CHOICE, axis in ignored))
    free = [axis for axis in ranked if axis not in split]
    shaded = [
        axis
        for axis in free
        if axis not in ignored
        and has_several_numbers(dataset, axis)
        and dataset.sizes[axis] > MAX_VALUES_WITHOUT_SHADES
    ]
    shaded = shaded[:1] if len(free) > 1 and not requested_axes else []
    colours = [*requested_axes[: max(1, len(requested_axes) - 1)]] or shaded or free[:1]
    remaining = [axis for axis in free if axis not in colours and (not shaded or axis in ignored)]
    short_axes = sorted(
        (axis for axis in remaining if dataset.sizes[axis] <= MAX_CURVES_PER_CHART),
        key=lambda axis: axis not in ignored,
    )
    markers = [*requested_axes[1:][-1:]] or short_axes[:1]
    panel_axes = (*split, *(axis for axis in swept_axes if axis not in (*colours, *markers, *split)))
    rest = tuple(axis for axis in other_axes if axis not in (*colours, *markers, *panel_axes))
    return Layout(x, tuple(colours), rest, tuple(markers), panel_axes)


def is_ignored_by_theory(results: Results, axes: Iterable[str]) -> bool:
    """Return True if the lines of theory depend on none of these axes."""
    return {*axes} <= get_axes_ignored_by_theory(results.scenario)


def get_axes_ignored_by_theory(scenario: AbstractScenario) -> set[str]:
    """Return the axes without effect on the lines of theory (the 1/N bands may depend on them)."""
    return {*scenario.keys_ignored_by_theory, *(["N"] if has_run_bands(scenario) else [])}


def has_run_bands(scenario: AbstractScenario) -> bool:
    """Return True if theory has corrections of order 1/N, which give the bands of one run."""
    return bool(getattr(scenario, "corrections", False))


def choose_colours(dataset: xr.Dataset, axes: tuple[str, ...], first: int = 0, count: int = 0) -> list[Any]:
    """Return a colour for each position on these axes, or shades for many ordered numbers.

    With other colours in the figure, `first` is their number. `count` is the number of positions if other panels show
    more positions.
    """
    count = count or int(np.prod([dataset.sizes[name] for name in axes]))
    if count > MAX_VALUES_WITHOUT_SHADES and all(has_several_numbers(dataset, name) for name in axes):
        return make_shades(count, grey=first > 0)
    return [CURVE_COLOURS[index % len(CURVE_COLOURS)] for index in range(first, first + count)]


def get_longest_axis(axes: list[str], dataset: xr.Dataset) -> str:
    """Return the longest of these axes, and the last if several are equally long."""
    return max(axes, key=lambda axis: (dataset.sizes[axis], axes.index(axis)))


def add_axis(results: Results, axis: str) -> Results:
    """Return results with this axis, added with a single value if it is missing."""
    if axis in results.either.dims:
        return results
    datasets = results.simulation, results.theory
    simulation, theory = (None if part is None else part.expand_dims(axis) for part in datasets)
    return replace(results, simulation=simulation, theory=theory)


def ensure_chart_axis(results: Results) -> Results:
    """Return results with at least one axis, if necessary by adding the axis of learners or rules."""
    return results if get_chart_axes(results.either) else add_axis(results, results.scenario.CHOICE)


def needs_log_x(x: np.ndarray) -> bool:
    """Return True if the values along x are positive, span a wide range and are spaced logarithmically."""
    return _has_wide_range(x, LOG_X_MIN_RATIO) and _is_log_spaced(x)


def has_nonpositive_means(results: Results, name: str) -> bool:
    """Return True if a mean over runs is 0 or less, so that a logarithmic axis cannot show it."""
    simulation = results.simulation
    return simulation is not None and name in simulation and bool((simulation[name].mean("seed") <= 0).any())


def needs_log_y(results: Results, name: str, variable: Variable) -> bool:
    """Return True if the values of a variable are positive and span decades.

    Values of theory decide or, without theory, means over runs. Both decide if theory is a bound, which runs may
    be far from.
    """
    simulation, theory = results.simulation, results.theory
    has_theory = theory is not None and name in theory
    parts = [theory[name].values.ravel()] if theory is not None and has_theory else []
    if simulation is not None and name in simulation and (not has_theory or variable.bound):
        means = simulation[name].mean("seed").values.ravel()
        parts.append(means[means > 0] if has_theory else means)
    all_values = np.concatenate(parts)
    finite = all_values[np.isfinite(all_values)]
    return _has_wide_range(finite, LOG_Y_MIN_RATIO) and not _is_rounding_difference(0.0, finite.max())


def _has_wide_range(numbers: np.ndarray, ratio: float) -> bool:
    """Return True if numbers are positive and the ratio of maximum to minimum is large enough."""
    if numbers.size < 2 or numbers.min() <= RELATIVE_ZERO_TOL * numbers.max():
        return False
    return bool(numbers.max() / numbers.min() >= ratio)


def _is_log_spaced(x: np.ndarray) -> bool:
    """Return True if values are spaced more uniformly on a logarithmic than on a linear axis."""

    def unevenness(positions: np.ndarray) -> float:
        gaps = np.diff(np.unique(positions))
        return float(gaps.std() / gaps.mean())

    return unevenness(np.log(x)) < unevenness(x)


def iterate_positions(
    dataset: xr.Dataset, axes: Iterable[str], label_value: Callable[[str, Any], str]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield every combination of positions on these axes with its label, or {} without axes."""
    columns = {name: label_positions(dataset, name, label_value) for name in axes}
    for indices in itertools.product(*(range(len(column)) for column in columns.values())):
        position = dict(zip(columns, indices, strict=True))
        yield ", ".join(columns[name][index] for name, index in position.items()), position


def label_positions(dataset: xr.Dataset, axis: str, label_value: Callable[[str, Any], str]) -> list[str]:
    """Return the labels of the positions on an axis."""
    columns = [
        [label_value(name, value) for value in round_to_distinct(get_axis_values(dataset, name).tolist())]
        for name in get_axis_coordinates(dataset, axis)
    ]
    return [", ".join(row) for row in zip(*columns, strict=True)]


def make_curve(
    results: Results,
    name: str,
    x: str,
    label: str = "",
    level_names: Sequence[str] = (),
    single_runs: bool = False,
    has_band: bool = True,
) -> Curve:
    """Return the curve of one variable along x, from results without other axes.

    The line of theory is taken from the dense lines if they contain the variable.
    """
    simulation, theory, lines = results.simulation, results.theory, results.lines
    x_values = get_axis_values(results.either, x)
    result = Curve(label, x_values)
    if simulation is not None and name in simulation:
        mean, error = (np.atleast_1d(part.values) for part in compute_mean_and_error(simulation[name]))
        has_theory = theory is not None and name in theory
        expected = _broadcast_theory(theory[name], x_values) if theory is not None and has_theory else None
        runs = get_single_runs(simulation[name]) if single_runs else None
        result = replace(result, mean=mean, error=error, theory_at_x=expected, runs=runs)
    source = lines if lines is not None and name in lines else theory
    if source is not None and name in source:
        source_x = x_values if source is theory else get_axis_values(source, x)
        variables = results.scenario.variables | results.scenario.theory_only_variables
        levels = [(variables[level].symbol, source[level]) for level in level_names if level in source]
        result = replace(
            result,
            theory_x=source_x,
            theory=_broadcast_theory(source[name], source_x),
            band=_compute_band(name, source, source_x) if has_band else None,
            reference_levels=tuple((symbol, _broadcast_theory(level, source_x)) for symbol, level in levels),
        )
    return result


def thin_curve(curve: Curve, log: bool, max_markers: int = MAX_MARKERS_PER_CURVE) -> Curve:
    """Thin a curve of more than `max_markers` points to few points, equally spaced on a linear or logarithmic axis.

    If the points are equally spaced, every second, third, ... point is kept, if possible with the last point.
    Otherwise the points nearest to equally spaced positions are kept. Points at maxima of theory are also kept.
    """
    if curve.mean is None or curve.x.dtype.kind not in "iuf":
        return curve
    indices = np.flatnonzero(np.isfinite(curve.mean) & np.isfinite(curve.x))
    if indices.size <= max_markers:
        return curve
    coordinates = np.log(curve.x[indices]) if log else curve.x[indices]
    if np.ptp(gaps := np.diff(coordinates)) < GAP_SPREAD_TOL * abs(gaps.mean()):
        step, last = -(-indices.size // MAX_MARKERS_PER_CURVE), indices.size - 1
        wider_steps = range(step, last // MIN_MARKERS_WITH_LAST + 1)
        selected = indices[:: next((wider for wider in wider_steps if last % wider == 0), step)]
    else:
        targets = np.linspace(coordinates.min(), coordinates.max(), MAX_MARKERS_PER_CURVE)
        selected = indices[np.unique(np.abs(coordinates - targets[:, None]).argmin(axis=1))]
    if curve.theory_at_x is not None:
        values = curve.theory_at_x[indices]
        is_peak = (values[1:-1] > values[:-2]) & (values[1:-1] > values[2:])
        selected = np.union1d(selected, indices[1:-1][is_peak])
    error, expected = (None if part is None else part[selected] for part in (curve.error, curve.theory_at_x))
    return replace(curve, x=curve.x[selected], mean=curve.mean[selected], error=error, theory_at_x=expected)


def _compute_band(name: str, theory: xr.Dataset, x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the lower and upper end of the band of one run, NaN where the band is not resolved.

    Returns None if theory has no standard deviation.
    """
    if name + STD_SUFFIX not in theory:  # saves time: xarray searches for similar names
        return None
    mean, std = predict_mean_and_std(theory, name)
    if std is None or not np.isfinite(std).any():
        return None
    std = std.where(~find_unresolved_std_mask(theory, name))
    middle, spread = _broadcast_theory(mean, x), _broadcast_theory(std, x)
    return middle - spread, middle + spread


def has_unresolved_bands(results: Results) -> bool:
    """Return True if any standard deviation of theory is unresolved, so that its band is not drawn."""
    parts = [part for part in (results.theory, results.lines) if part is not None]
    names = [name for name in get_chart_variables(results.scenario) if any(name + STD_SUFFIX in part for part in parts)]
    return any(
        bool(find_unresolved_std_mask(part, name).any())
        for part in parts
        for name in names
        if name + STD_SUFFIX in part
    )


def widen_equal_limits(low: float, high: float) -> tuple[float, float]:
    """Widen the limits of a linear axis if they are equal up to rounding.

    >>> widen_equal_limits(0.2, 0.4), widen_equal_limits(-1e-16, 1e-16), widen_equal_limits(1 - 1e-14, 1)
    ((0.2, 0.4), (-0.05, 0.05), (0.95, 1.05))
    """
    if not _is_rounding_difference(low, high):
        return low, high
    size = max(1.0, abs(low), abs(high))
    middle = round((low + high) / 2 / size, 9) * size
    return middle - EQUAL_LIMITS_MARGIN * size, middle + EQUAL_LIMITS_MARGIN * size


def _is_rounding_difference(low: float, high: float) -> bool:
    """Return True if two values differ by less than a comparison with theory can resolve."""
    return bool(high - low <= comparison.DEVIATION_ROUNDING_TOL * max(1.0, abs(low), abs(high)))


def clip_band_for_log(low: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Raise the lower end of a band to a positive value for a logarithmic axis."""
    return np.maximum(low, MIN_LOG_BAND_END_FRACTION * line)


def _broadcast_theory(array: Any, x: np.ndarray) -> np.ndarray:
    """Average theory over students, and broadcast it to every x."""
    line = derived_data.average_over_students(array)
    return np.asarray(np.broadcast_to(line.values, x.shape), float)


def compute_mean_and_error(runs: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the mean over seeds with its standard error, which is NaN for a single seed.

    Students are averaged first. For cross-validation, the mean is over shuffles and folds, and the standard error over
    folds is averaged over shuffles.
    """
    if "fold" in runs.dims:
        return runs.mean(["seed", "fold"]), compute_run_standard_error(runs, "fold").mean("seed")
    runs = derived_data.average_over_students(runs)
    return runs.mean("seed"), compute_run_standard_error(runs, "seed")


def has_independent_samples(results: Results) -> bool:
    """Return True if every seed draws a separate small sample of a generated data set."""
    examples: float = getattr(results.scenario, "examples", None) or 0
    names = ensure_tuple(getattr(results.scenario, "data", ())) if examples else ()
    return bool(names) and all(
        name in GENERATED_DATA_SOURCES
        and examples <= MAX_INDEPENDENT_SAMPLE_FRACTION * get_cached_data_set(name).y.size
        for name in names
    )


def get_converged_mask(simulation: xr.Dataset | None) -> np.ndarray | None:
    """Return a mask along x that is True where all runs converged, or None if not recorded."""
    if simulation is None or RUN_CONVERGED_VARIABLE not in simulation:
        return None
    flags = simulation[RUN_CONVERGED_VARIABLE]
    return np.atleast_1d(flags.all([dim for dim in ("seed", *DIMS_AVERAGED_IN_FIGURES) if dim in flags.dims]).values)


def has_unconverged_runs(results: Results) -> bool:
    """Return True if any run of these results failed to converge."""
    return (
        results.simulation is not None
        and RUN_CONVERGED_VARIABLE in results.simulation
        and not results.simulation[RUN_CONVERGED_VARIABLE].all()
    )


def get_single_runs(runs: xr.DataArray) -> np.ndarray:
    """Return the first few individual runs (seeds, x), averaged over students."""
    runs = derived_data.average_over_students(runs).isel(seed=slice(MAX_SINGLE_RUNS)).transpose("seed", ...)
    return np.asarray(runs.values.reshape(runs.sizes["seed"], -1), float)


def select_position(results: Results, position: dict[str, Any]) -> Results:
    """Select one position on each of these axes, in all datasets of the results."""
    simulation, theory, lines = (
        select_dataset_position(part, position) for part in (results.simulation, results.theory, results.lines)
    )
    return replace(results, simulation=simulation, theory=theory, lines=lines)


def select_variable(results: Results, name: str, other_names: Iterable[str]) -> Results:
    """Select a variable and others with their corrections of order 1/N, from the datasets that have the variable.

    Slicing whole datasets would take most of the time of a chart.
    """
    needed = {key + suffix for key in (name, *other_names) for suffix in ("", STD_SUFFIX, BIAS_SUFFIX)}
    needed |= {RUN_CONVERGED_VARIABLE}
    parts = (
        part[[key for key in part.data_vars if key in needed]] if part is not None and name in part else None
        for part in (results.simulation, results.theory, results.lines)
    )
    simulation, theory, lines = parts
    has_values = simulation is not None or theory is not None
    return replace(results, simulation=simulation, theory=theory, lines=lines) if has_values else results


def add_dense_lines(results: Results, x: str, x_limits: Sequence[float | None] = ()) -> Results:
    """Solve the theory of results on a dense grid along x, if they have theory.

    All other axes must be complete. The lines extend to the limits of x if theory can be solved there.
    """
    from theory import smooth  # lazy import: live charts do not need it

    if results.theory is None:
        return results
    theory, lines = results.theory, None
    ends = {end for end in x_limits if end is not None}
    if ends and x in (config := results.scenario.config()):
        with suppress(ScenarioError):  # a limit may be no possible value of x
            extended = type(results.scenario)(**config | {x: sorted({*get_axis_values(theory, x).tolist(), *ends})})
            lines = smooth(extended, x, own_theory=theory)
    lines = smooth(results.scenario, x, own_theory=theory) if lines is None else lines
    if lines is None:
        return replace(results, lines=None)
    selected = {
        dim: theory[dim]
        for dim, size in lines.sizes.items()
        if dim != x and dim in theory.coords and theory.sizes.get(dim) != size
    }  # lines have all recorded times, but results may have only a few
    return replace(results, lines=lines.sel(selected))


def select_dataset_position(dataset: xr.Dataset | None, position: dict[str, Any]) -> xr.Dataset | None:
    """Select one position on each of these axes, and ignore axes that the dataset lacks."""
    if dataset is None:
        return None
    return dataset.isel({axis: index for axis, index in position.items() if axis in dataset.dims})
