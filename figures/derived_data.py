r"""Data derived for figures: exponents of power laws, the last recorded students, and ratios of variables.

Exponents: the exponent of :math:`y\propto x^a` is the slope of a straight line through :math:`\log\langle y\rangle`
against :math:`\log x`, where y is averaged over runs. The line is fitted by least squares to the upper half of the
logarithmic range of x, where power laws of large x appear. The error is computed by a jackknife over runs, because
points of the same runs at several times are correlated, so that the scatter about the line underestimates the error.

Stored examples: the students that were recorded last, and the scale of the alpha axis.

Ratios: `divide_variables` divides variables by the theoretical value of another variable or, without theory, by its
mean over runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from statmech.errors import ConfigError
from statmech.keys.variables import BIAS_SUFFIX, DIMS_AVERAGED_IN_FIGURES, STD_SUFFIX

if TYPE_CHECKING:
    import xarray as xr

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
        if not self.error > 0:
            return f"{self.value:.2f}"
        digits = max(0, 1 - int(np.floor(np.log10(self.error))))
        return f"{self.value:.{digits}f}({round(self.error * 10**digits)})"


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


CONVERGENCE_FILL_NOTE = "full points: all runs have converged; hollow: not all"


def get_recorded_dimension(dataset: Any) -> str:
    """Return the name of the recorded dimension: `epochs` or `updates`."""
    return next(name for name in ("epochs", "updates") if name in dataset.dims)


def select_last_recorded(dataset: Any) -> Any:
    """Select the students that were recorded last."""
    return dataset.isel({get_recorded_dimension(dataset): -1})


def choose_log_axis_for_alphas(alphas: xr.DataArray) -> str:
    """Return "x" for a logarithmic alpha axis, or "" if the values are equally spaced."""
    steps = np.diff(alphas.values)
    return "" if steps.size and np.allclose(steps, steps[0]) else "x"


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
    names, has_theory = list(names), results.theory is not None and divisor_name in results.theory
    theory, lines = (
        part if part is None else _divide_dataset(part, divisor_name, names) for part in (results.theory, results.lines)
    )
    simulation = results.simulation
    if simulation is not None and has_theory:
        simulation = _divide_dataset(
            simulation, divisor_name, names, _average_over_students(results.theory[divisor_name])
        )
    elif simulation is not None and divisor_name in simulation:
        simulation = _linearise_ratio(simulation, divisor_name, names)
    elif not has_theory:
        raise ConfigError(f"figure.over: {divisor_name} has no value in these results")
    return replace(results, simulation=simulation, theory=theory, lines=lines)


def _divide_dataset(
    dataset: xr.Dataset, divisor_name: str, names: list[str], divisor: xr.DataArray | None = None
) -> xr.Dataset:
    """Divide variables and their corrections of order 1/N, or drop them if the dataset lacks the divisor."""
    if divisor is None and divisor_name not in dataset:
        return dataset.drop_vars([name for name in names if name in dataset])
    divisor = _average_over_students(dataset[divisor_name]) if divisor is None else divisor
    _check_divisor(divisor, divisor_name)
    all_names = [
        name + suffix for name in names for suffix in ("", STD_SUFFIX, BIAS_SUFFIX) if name + suffix in dataset
    ]
    return dataset.assign({name: (dataset[name] / divisor).transpose(*dataset[name].dims, ...) for name in all_names})


def _linearise_ratio(simulation: xr.Dataset, divisor_name: str, names: list[str]) -> xr.Dataset:
    runs = _average_over_students(simulation[divisor_name])
    mean = runs.mean("seed")
    _check_divisor(mean, divisor_name)
    ratios = {}
    for name in names:
        values = _average_over_students(simulation[name])
        ratio = values.mean("seed") / mean
        ratios[name] = ratio + (values - ratio * runs) / mean
    return simulation.assign(ratios)


def _average_over_students(values: xr.DataArray) -> xr.DataArray:
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
