"""Keys of a scenario that are functions of time, as variables that charts can show next to the errors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.controls import Control, edges_of, is_over_time
from statmech.scenarios.axes import points
from statmech.scenarios.variables import UNSHOWN, Variable

if TYPE_CHECKING:
    import xarray as xr

    from statmech.results.results import Results
    from statmech.scenarios.base import AbstractScenario

OF_T = "_of_t"  # the name of a variable is the name of its key with this suffix


def changing(scenario: AbstractScenario) -> dict[str, tuple[Any, ...]]:
    """Return the values of each key that has a function of time among its values.

    >>> from statmech import Scenario
    >>> [*changing(Scenario(rule="hebb", t=9, flip=[0.1, {"at": [0, 5], "is": [0.2, 0]}]))]
    ['flip']
    """
    values_by_key = {name: points(value) for name, value in scenario.axis_values().items()}
    return {name: values for name, values in values_by_key.items() if any(map(is_over_time, values))}


def variables(scenario: AbstractScenario) -> dict[str, Variable]:
    """Return a variable for each time-dependent key, if times are recorded."""
    described = {name: scenario.describe(name) for name in changing(scenario)} if "t" in scenario.recorded else {}
    return {
        name + OF_T: Variable(("t",), f"{key.meaning}, at time t", key.label, role="control")
        for name, key in described.items()
    }


def with_functions(results: Results) -> Results:
    """Add the time-dependent keys as variables to the theory of results."""
    names = [*changing(results.scenario)] if "t" in results.scenario.recorded else []
    if not names or results.theory is None:
        return results
    theory, lines = (
        None if part is None else _with(results.scenario, names, part) for part in (results.theory, results.lines)
    )
    return replace(results, theory=theory, lines=lines)


def jumps(scenario: AbstractScenario) -> tuple[float, ...]:
    """Return the positive times of jumps of any key."""
    controls = [value for values in changing(scenario).values() for value in values if isinstance(value, Control)]
    return tuple(edge for edge in edges_of(controls) if edge > 0)


def _with(scenario: AbstractScenario, names: list[str], part: xr.Dataset) -> xr.Dataset:
    dims = next(
        array.dims for name, array in part.data_vars.items() if name in scenario.variables and "t" in array.dims
    )
    sizes = {dim: part.sizes[dim] for dim in dims if dim not in UNSHOWN}
    arrays = {name + OF_T: _values(scenario, name, part) for name in names}
    missing = {name: {dim: n for dim, n in sizes.items() if dim not in array.dims} for name, array in arrays.items()}
    return part.assign({name: array.expand_dims(missing[name]) for name, array in arrays.items()})


def _values(scenario: AbstractScenario, name: str, part: xr.Dataset) -> xr.DataArray:
    """Compute a key at the times of a dataset, with optimal values taken from theory."""
    import xarray as xr

    t = part.t.values
    rows = np.array([_at(value, t) for value in changing(scenario)[name]])
    dim = next((dim for dim, group in scenario.dimensions.items() if name in group and dim in part.dims), None)
    nominal = xr.DataArray(rows, dims=(dim, "t")) if dim else xr.DataArray(rows[0], dims=("t",))
    if "control" not in part or name not in part.controlled:
        return nominal
    optimal = part["control"].sel(controlled=name, drop=True).drop_vars([*part.coords], errors="ignore")
    return optimal.fillna(nominal)


def _at(value: Any, t: np.ndarray) -> np.ndarray:
    """Evaluate a value at times t, as NaN if it is optimised by theory."""
    if isinstance(value, Control):
        return value.at(t)
    return np.full(t.shape, np.nan if is_over_time(value) else value, float)
