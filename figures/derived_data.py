r"""Data derived for figures: exponents of power laws, the last recorded students, ratios, and functions of time.

Exponents: the exponent of :math:`y\propto x^a` is the slope of a straight line through :math:`\log\langle y\rangle`
against :math:`\log x`, where y is averaged over runs. The line is fitted by least squares to the upper half of the
logarithmic range of x, where power laws of large x appear. The error is computed by a jackknife over runs, because
points of the same runs at several times are correlated, so that the scatter about the line underestimates the error.

Stored examples: the students that were recorded last.

Ratios: `divide_variables` divides variables by the theoretical value of another variable or, without theory, by its
mean over runs.

Functions of time: the time-dependent keys of a scenario as variables, which charts show next to the errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from statmech.errors import ConfigError
from statmech.keys.sweep_grid import ensure_tuple
from statmech.keys.variables import BIAS_SUFFIX, DIMS_AVERAGED_IN_FIGURES, DIMS_HIDDEN_IN_FIGURES, STD_SUFFIX, Variable
from statmech.parameters.schedules_and_controls import ControlFunction, is_time_dependent

if TYPE_CHECKING:
    import xarray as xr

    from statmech.keys.scenario import AbstractScenario
    from statmech.results.results import Results


MIN_FIT_POINTS = 3


class FittedExponent(NamedTuple):
    """An exponent, its standard error (NaN for a single run), and the ends of the fitted line, (2,) each."""

    value: float
    error: float
    x: np.ndarray
    y: np.ndarray

    @property
    def text_with_error(self) -> str:
        """The exponent with its error in units of the last digit.

        >>> ends = np.ones(2)
        >>> exponents = FittedExponent(-0.9876, 0.0132, ends, ends), FittedExponent(0.5, float("nan"), ends, ends)
        >>> [exponent.text_with_error for exponent in exponents]
        ['-0.988(13)', '0.50']
        """
        error = f"({round(self.error * 10**self.digits)})" if self.error > 0 else ""
        return f"{self.value:.{self.digits}f}{error}"

    @property
    def digits(self) -> int:
        """The number of decimals of the exponent: two digits of its error, or two without an error."""
        return max(0, 1 - int(np.floor(np.log10(self.error)))) if self.error > 0 else 2


def fit_exponent(x: np.ndarray, run_values: np.ndarray, min_x: float = 0.0) -> FittedExponent | None:
    """Fit the exponent of a power law.

    Parameters
    ----------
    x
        Abscissae (n,).
    run_values
        Values (seeds, n) of each run at x, NaN where a value is missing.
    min_x
        The smallest x of the fit, by default the geometric mean of the ends.

    Returns
    -------
    Exponent
        None for fewer than three positive points in this range.

    Examples
    --------
    >>> x = np.geomspace(1, 100, 9)
    >>> fitted = fit_exponent(x, np.array([2 / x, 4 / x]))
    >>> round(fitted.value, 6), fitted.x.tolist(), round(float(fitted.y[-1]), 6)
    (-1.0, [10.0, 100.0], 0.03)
    """
    mean = _average_runs(run_values)
    positive = (x > 0) & (mean > 0)
    if not positive.any():
        return None
    min_x = min_x or float(np.sqrt(x[positive].min() * x[positive].max()))
    selected = positive & (x >= min_x * (1 - 1e-9))
    if selected.sum() < MIN_FIT_POINTS:
        return None
    x, run_values = x[selected], run_values[:, selected]
    slope, offset = _fit_log_log_line(x, mean[selected])
    ends = np.array([x.min(), x.max()])
    return FittedExponent(slope, _jackknife_error(x, run_values), ends, np.exp(offset) * ends**slope)


def _average_runs(run_values: np.ndarray) -> np.ndarray:
    is_finite = np.isfinite(run_values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(is_finite, run_values, 0).sum(axis=0) / is_finite.sum(axis=0))


def _fit_log_log_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    slope, offset = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope), float(offset)


def _jackknife_error(x: np.ndarray, run_values: np.ndarray) -> float:
    """Compute the jackknife error of the slope over runs, or NaN if a mean is not positive."""
    count = len(run_values)
    means = [_average_runs(np.delete(run_values, seed, axis=0)) for seed in range(count)] if count > 1 else []
    if not means or not np.all(np.array(means) > 0):
        return float("nan")
    slopes = np.array([_fit_log_log_line(x, mean)[0] for mean in means])
    return float(np.sqrt((count - 1) / count * ((slopes - slopes.mean()) ** 2).sum()))


def get_recorded_dimension(dataset: Any) -> str:
    """Return the name of the recorded dimension: `epochs` or `updates`."""
    return next(name for name in ("epochs", "updates") if name in dataset.dims)


def select_last_recorded(dataset: Any) -> Any:
    """Select the students that were recorded last."""
    return dataset.isel({get_recorded_dimension(dataset): -1})


def divide_variables(results: Results, divisor_name: str, names: Iterable[str]) -> Results:
    r"""Divide variables of results by another variable.

    If theory has the divisor, all variables are divided by its theoretical value. Otherwise a ratio is computed as the
    ratio :math:`r = \langle y\rangle/\langle o\rangle` of two correlated means. Each run has the value
    :math:`r + (y - r\,o)/\langle o\rangle`. These values have the mean r, and their standard error is the standard
    error of the ratio to first order.

    Parameters
    ----------
    results
        Simulation and theory, with their lines.
    divisor_name
        The divisor.
    names
        The variables to divide.

    Raises
    ------
    ConfigError
        If the divisor is 0, or has no value.
    """
    names, simulation = list(names), results.simulation
    if results.theory is not None and divisor_name in results.theory:
        for part in (results.theory, results.lines):
            if part is not None and divisor_name in part:
                _check_divisor(average_over_students(part[divisor_name]), divisor_name)
        return divide_by_theory(results, divisor_name, names)
    if simulation is None or divisor_name not in simulation:
        raise ConfigError(f"figure.over: {divisor_name} has no value in these results")
    theory, lines = (part and part.drop_vars(names, errors="ignore") for part in (results.theory, results.lines))
    return replace(results, simulation=_linearise_ratio(simulation, divisor_name, names), theory=theory, lines=lines)


def divide_by_theory(results: Results, divisor_name: str, names: Iterable[str]) -> Results:
    """Divide variables and their corrections of order 1/N by the value of another variable in theory.

    Results without the divisor in theory are returned unchanged. Lines without the divisor are dropped.
    """
    theory, lines = results.theory, results.lines
    if theory is None or divisor_name not in theory:
        return results
    all_names = {name + suffix for name in names for suffix in ("", STD_SUFFIX, BIAS_SUFFIX)}
    divisors = (theory, theory, lines if lines is not None and divisor_name in lines else None)
    parts = (
        part if part is None else _divide_dataset(part, all_names, divisor, divisor_name)
        for part, divisor in zip((results.simulation, theory, lines), divisors, strict=True)
    )
    simulation, theory, lines = parts
    return replace(results, simulation=simulation, theory=theory, lines=lines)


def _divide_dataset(dataset: xr.Dataset, names: set[str], theory: xr.Dataset | None, divisor_name: str) -> xr.Dataset:
    """Divide variables by another variable of theory, or drop them without theory."""
    present = [name for name in names if name in dataset]
    if theory is None:
        return dataset.drop_vars(present)
    divisor = average_over_students(theory[divisor_name])
    return dataset.assign({name: (dataset[name] / divisor).transpose(*dataset[name].dims, ...) for name in present})


def _linearise_ratio(simulation: xr.Dataset, divisor_name: str, names: list[str]) -> xr.Dataset:
    runs = average_over_students(simulation[divisor_name])
    mean = runs.mean("seed")
    _check_divisor(mean, divisor_name)
    ratios = {}
    for name in names:
        values = average_over_students(simulation[name])
        ratio = values.mean("seed") / mean
        ratios[name] = ratio + (values - ratio * runs) / mean
    return simulation.assign(ratios)


def average_over_students(values: xr.DataArray) -> xr.DataArray:
    """Average values over students and folds, where they have these dimensions."""
    return values.mean([dim for dim in DIMS_AVERAGED_IN_FIGURES if dim in values.dims])


def _check_divisor(divisor: xr.DataArray, divisor_name: str) -> None:
    """Raise `ConfigError` if the divisor is 0 somewhere, or has no value."""
    if not divisor.notnull().any():
        raise ConfigError(f"figure.over: {divisor_name} has no value in these results")
    zero = divisor == 0
    if zero.any():
        first = divisor.where(zero, drop=True).isel(dict.fromkeys(divisor.dims, 0))
        position = ", ".join(f"{name} = {value.item()}" for name, value in first.coords.items() if name in divisor.dims)
        raise ConfigError(
            f"figure.over: {divisor_name} is 0{f' at {position}' if position else ''}, so it cannot be a divisor"
        )


TIME_DEPENDENT_KEY_SUFFIX = "_of_t"  # appended to the name of a key


def get_time_dependent_keys(scenario: AbstractScenario) -> dict[str, tuple[Any, ...]]:
    """Return the values of each key that has at least one function of time.

    >>> from statmech import Scenario
    >>> [*get_time_dependent_keys(Scenario(rule="hebb", t=9, flip=[0.1, {"at": [0, 5], "is": [0.2, 0]}]))]
    ['flip']
    """
    values_by_key = {name: ensure_tuple(value) for name, value in scenario.axis_values().items()}
    return {name: values for name, values in values_by_key.items() if any(map(is_time_dependent, values))}


def describe_time_dependent_keys(scenario: AbstractScenario) -> dict[str, Variable]:
    """Return a variable for each time-dependent key, if times are recorded."""
    described = (
        {name: scenario.describe(name) for name in get_time_dependent_keys(scenario)}
        if "t" in scenario.recorded_coordinates
        else {}
    )
    return {
        name + TIME_DEPENDENT_KEY_SUFFIX: Variable(("t",), f"{key.meaning}, at time t", key.label, role="control")
        for name, key in described.items()
    }


def add_time_dependent_keys(results: Results) -> Results:
    """Add the time-dependent keys as variables to the theory of results."""
    names = [*get_time_dependent_keys(results.scenario)] if "t" in results.scenario.recorded_coordinates else []
    if not names or results.theory is None:
        return results
    theory, lines = (
        None if part is None else _add_key_values(results.scenario, names, part)
        for part in (results.theory, results.lines)
    )
    return replace(results, theory=theory, lines=lines)


def _add_key_values(scenario: AbstractScenario, names: list[str], dataset: xr.Dataset) -> xr.Dataset:
    dims = next(
        array.dims for name, array in dataset.data_vars.items() if name in scenario.variables and "t" in array.dims
    )
    sizes = {dim: dataset.sizes[dim] for dim in dims if dim not in DIMS_HIDDEN_IN_FIGURES}
    arrays = {name + TIME_DEPENDENT_KEY_SUFFIX: _compute_key_values(scenario, name, dataset) for name in names}
    missing = {name: {dim: n for dim, n in sizes.items() if dim not in array.dims} for name, array in arrays.items()}
    return dataset.assign({name: array.expand_dims(missing[name]) for name, array in arrays.items()})


def _compute_key_values(scenario: AbstractScenario, name: str, dataset: xr.Dataset) -> xr.DataArray:
    """Evaluate a key at the times of a dataset, with optimal values from theory."""
    import xarray as xr

    t = dataset.t.values
    rows = np.array([_evaluate_at_times(value, t) for value in get_time_dependent_keys(scenario)[name]])
    dim = next((dim for dim, group in scenario.dimensions.items() if name in group and dim in dataset.dims), None)
    nominal = xr.DataArray(rows, dims=(dim, "t")) if dim else xr.DataArray(rows[0], dims=("t",))
    if "control" not in dataset or name not in dataset.controlled:
        return nominal
    optimal = dataset["control"].sel(controlled=name, drop=True).drop_vars([*dataset.coords], errors="ignore")
    return optimal.fillna(nominal)


def _evaluate_at_times(value: Any, t: np.ndarray) -> np.ndarray:
    """Evaluate a constant or function at times t, or return NaN if theory optimises the value."""
    if isinstance(value, ControlFunction):
        return value.value_at(t)
    return np.full(t.shape, np.nan if is_time_dependent(value) else value, float)


def is_step_function(y: np.ndarray) -> bool:
    """Return True if most values equal the previous value, as in a piecewise constant function of time.

    >>> is_step_function(np.array([5, 5, 5, 6, 6])), is_step_function(np.array([5, 6, 7, 8, 8]))
    (True, False)
    """
    return bool(np.unique(y[np.isfinite(y)]).size <= y.size / 2)


def move_jumps_to_edges(x: np.ndarray, y: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return x with each jump of a sampled step function moved back to the edge of its interval.

    >>> move_jumps_to_edges(np.array([0.0, 4.0, 5.5, 9.0]), np.array([1, 1, 2, 2]), np.array([0.0, 5.0, np.inf]))
    array([0., 4., 5., 9.])
    """
    last_edge = edges[np.maximum(np.searchsorted(edges, x, side="right") - 1, 0)]
    is_jump = (np.diff(y, prepend=y[0]) != 0) & (last_edge > np.concatenate([x[:1], x[:-1]]))
    return np.where(is_jump, last_edge, x)
