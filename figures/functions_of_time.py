"""Time-dependent keys of a scenario as variables, which charts show next to the errors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.keys.sweep_grid import ensure_tuple
from statmech.keys.variables import DIMS_HIDDEN_IN_FIGURES, Variable
from statmech.parameters.schedules_and_controls import ControlFunction, collect_segment_starts, is_time_dependent

if TYPE_CHECKING:
    import xarray as xr

    from statmech.keys.scenario import AbstractScenario
    from statmech.results.results import Results

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


def get_jump_times(scenario: AbstractScenario) -> tuple[float, ...]:
    """Return all positive jump times of the keys of a scenario."""
    controls = [
        value
        for values in get_time_dependent_keys(scenario).values()
        for value in values
        if isinstance(value, ControlFunction)
    ]
    return tuple(edge for edge in collect_segment_starts(controls) if edge > 0)


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
