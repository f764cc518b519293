"""Variables divided by another variable: by its value in theory or, without theory, by its mean over runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from statmech.errors import ConfigError
from statmech.scenarios.variables import BIAS_SUFFIX, DIMS_AVERAGED_IN_FIGURES, STD_SUFFIX

if TYPE_CHECKING:
    import xarray as xr

    from statmech.results.results import Results


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
