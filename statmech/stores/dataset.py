"""The xarray Dataset of results from simulation and theory, and its attributes.

Variables: `simulate.run` and `theory.solve` return the same variables, named by the terms of the field, on the same
sweep axes and recorded times. The simulation has an additional `seed` axis, and variables that only a run has. In a
sweep over K, students that a smaller ensemble does not have are NaN, and so are learners that do not exist.

Attributes of stores and datasets are strings and numbers, as NetCDF requires, with structured values as JSON.

Config: the config in the attributes consists of the scenario's keys, and the published figure that the folder of
results remembers. The figure is a property of the folder, not of the model: two configs with different figures have the
same results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.errors import ScenarioError, shorten_text
from statmech.keys.figure_key import Composition
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import is_axis
from statmech.keys.variables import Variable
from statmech.kinds.selection_and_vocabulary import scenario_from

if TYPE_CHECKING:
    import xarray as xr


FIGURE_KEY = "figure"
JSON_ATTRIBUTE_TYPES = {"versions": dict, "data": dict, "code": dict, "earlier": list}  # decoded type of each attribute


def config_from_attributes(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the config in the attributes of a store or dataset.

    Raises `ValueError` if it is missing or corrupted.

    >>> config_from_attributes({"config": '{"rule": "hebb"}'})
    {'rule': 'hebb'}
    """
    try:
        config = json.loads(attributes["config"])
    except (LookupError, TypeError, RecursionError) as failure:
        raise ValueError(f"its config cannot be read ({type(failure).__name__})") from None
    if not isinstance(config, dict):
        raise ValueError("its config is not a mapping of keys to values")
    return config


def encode_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as attributes that `to_netcdf` can write.

    >>> encode_attributes({"commit": "4d1c2e7", "code": {}})
    {'commit': '4d1c2e7', 'code': '{}'}
    """
    return {name: json.dumps(value) if name in JSON_ATTRIBUTE_TYPES else value for name, value in values.items()}


def decode_attributes(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values of a dataset's attributes, the inverse of `encode_attributes`.

    Raises `ValueError` for strings that are not JSON of the right type, and for mappings with values that are not
    strings.
    """
    values = dict(attributes)
    for name, kind in JSON_ATTRIBUTE_TYPES.items():
        if name in values:
            values[name] = _parse_json_attribute(name, values[name], kind)
    return values


def _parse_json_attribute(name: str, text: object, kind: type) -> Any:
    value: Any
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        value = None
    mappings: Any = value if kind is list else [value]
    if not (isinstance(value, kind) and all(isinstance(entry, dict) for entry in mappings)):
        raise ValueError(f"its attribute {name} is not a {'list of mappings' if kind is list else 'mapping'} in JSON")
    if kind is list:
        return [decode_attributes(entry) for entry in mappings]
    if not all(isinstance(entry, str) for entry in mappings[0].values()):
        raise ValueError(f"its attribute {name} is not a mapping with string values")
    return mappings[0]


def add_figure(config: dict[str, Any], figure: str | Composition | None) -> dict[str, Any]:
    """Return the config for a dataset with the figure of its folder, or unchanged if `figure` is None.

    >>> add_figure({"seeds": 4, "key": 0, "rule": "hebb"}, "overlay")
    {'seeds': 4, 'key': 0, 'figure': 'overlay', 'rule': 'hebb'}
    """
    if figure is None:
        return config
    keys = [*remove_figure(config)]
    # the same order as in a scenario's config, so that stores are bit-identical
    keys.insert(keys.index("key") + 1, FIGURE_KEY)
    changed = {**config, FIGURE_KEY: figure.model_dump(mode="json") if isinstance(figure, Composition) else figure}
    return {name: changed[name] for name in keys}


def remove_figure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored config without its figure, since results do not depend on the figure."""
    return {name: value for name, value in config.items() if name != FIGURE_KEY}


def list_config_differences(
    requested: Mapping[str, Any],
    stored: Mapping[str, Any],
    requested_name: str = "asked for",
    stored_name: str = "stored",
) -> list[str]:
    """Return a line for each key that differs between the configs of two datasets, except the figure.

    >>> list_config_differences({"rule": "hebb", "seeds": 4}, {"rule": "hebb", "seeds": 2, "figure": "overlay"})
    ['  seeds: stored 2, asked for 4']
    """
    requested, stored = remove_figure(requested), remove_figure(stored)
    changed = [name for name in requested | stored if requested.get(name) != stored.get(name)]
    return [
        f"  {name}: {stored_name} {_format_config_entry(stored, name)}, "
        f"{requested_name} {_format_config_entry(requested, name)}"
        for name in changed
    ]


def _format_config_entry(config: dict[str, Any], name: str) -> str:
    return shorten_text(json.dumps(config[name])) if name in config else "nothing"


def make_empty_dataset(scenario: AbstractScenario, seeds: int | None, **attrs: Any) -> xr.Dataset:
    """Return a dataset of missing values, for a simulation with these `seeds`, or for a theory if `seeds` is None."""
    import xarray as xr

    sizes = {name: len(values) for name, values in scenario.recorded_coordinates.items()}
    if seeds is not None:
        sizes["seed"] = seeds
    outer = [*scenario.shape, *(["seed"] if seeds is not None else [])]
    sizes |= scenario.shape
    data = {}
    variables = scenario.variables | ({} if seeds is not None else scenario.theory_only_variables)
    for name, variable in variables.items():
        if seeds is not None or variable.in_theory:
            dims = (*outer, *variable.dims)
            values = np.full([sizes[d] for d in dims], variable.missing)
            long_name = _make_long_name(variable, theory=seeds is None)
            data[name] = (dims, values, {"long_name": long_name, "units": "1", **variable.attrs})
    attributes = encode_attributes({"config": json.dumps(scenario.config()), **attrs})
    return xr.Dataset(data, make_coordinates(scenario, sizes), attributes)


def _make_long_name(variable: Variable, theory: bool) -> str:
    """Return a variable's long name, marked as a bound if theory only bounds the variable."""
    side = {"above": "upper bound: ", "below": "lower bound: "}.get(variable.bound if theory else "", "")
    return side + variable.long_name


def get_variable_arrays(dataset: xr.Dataset) -> dict[str, np.ndarray]:
    """Return the arrays of a dataset's variables, for `fill_arrays`.

    Indexing through xarray would take most of the time.
    """
    return {str(name): variable.values for name, variable in dataset.data_vars.items()}


def fill_arrays(
    arrays: dict[str, np.ndarray],
    index: tuple[Any, ...],
    values: dict[str, np.ndarray],
    seeds: slice | None = None,
) -> None:
    """Write the values of one parameter combination into the arrays of a dataset.

    If `seeds` selects some seeds, the values begin with an axis of seeds. For several combinations, `index` consists of
    arrays, and the values begin with an axis of combinations.
    """
    position = index + ((seeds,) if seeds is not None else ())
    outer = sum(map(np.ndim, index[:1])) + (seeds is not None)
    for name, array in values.items():
        arrays[name][position + tuple(slice(n) for n in array.shape[outer:])] = array


def scenario_from_dataset(dataset: xr.Dataset) -> Any:
    """Return the scenario of a dataset, from the config in its attributes.

    Parameters
    ----------
    dataset
        A dataset from a simulation or a theory.

    Returns
    -------
    AbstractScenario
        A scenario of the kind that the config describes.

    Raises
    ------
    ScenarioError
        If its rule or learner is in a file of the user that is not loaded.

    Examples
    --------
    >>> import theory
    >>> from statmech import Scenario
    >>> scenario_from_dataset(theory.solve(Scenario(rule="hebb", t=1))).rule
    'hebb'
    """
    try:
        return scenario_from(config_from_attributes(dataset.attrs))
    except ScenarioError:
        if explanation := explain_unloaded_code(dataset.attrs):
            raise ScenarioError([((), explanation)]) from None
        raise


def explain_unloaded_code(attributes: Mapping[Any, Any]) -> str:
    """Explain which files with code of the user a result needs that are not loaded, or return an empty string.

    >>> explain_unloaded_code({"code": '{"my_rules.py": "bb09"}'})
    'was computed with my_rules.py, which is not loaded: load it as in `statmech --load my_rules.py figure`'
    """
    loaded = {Path(file).name for module in [*sys.modules.values()] if (file := getattr(module, "__file__", None))}
    unloaded = [name for name in decode_attributes(attributes).get("code", {}) if name not in loaded]
    if not unloaded:
        return ""
    remedy = f"load it as in `statmech --load {unloaded[0]} figure`"
    return f"was computed with {', '.join(unloaded)}, which is not loaded: {remedy}"


def find_invalid_variables(dataset: xr.Dataset, scenario: AbstractScenario) -> list[str]:
    """Return the names of a dataset's variables and coordinates whose dimensions or type do not match a scenario."""
    seeds = {"seed": scenario.seeds} if "seed" in dataset.dims else {}
    sizes = {name: len(values) for name, values in scenario.recorded_coordinates.items()} | scenario.shape | seeds
    variables = {name: variable for name, variable in scenario.variables.items() if seeds or variable.in_theory}
    dims = {name: (*scenario.shape, *seeds, *variable.dims) for name, variable in variables.items()}
    coords = {name: _normalise_dims(coordinate[0]) for name, coordinate in make_coordinates(scenario, seeds).items()}
    lacking = [name for name in coords if name not in dataset.coords]
    wrong = [name for name, expected in (dims | coords).items() if name in dataset and dataset[name].dims != expected]
    lengths = [dim for dim, size in dataset.sizes.items() if size != sizes.get(str(dim), size)]
    texts = [name for name, array in dataset.data_vars.items() if array.dtype.kind not in "biuf"]
    return [*lacking, *wrong, *map(str, (*lengths, *texts))]


def _normalise_dims(names: Any) -> tuple[Any, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _make_axis_label(value: Any) -> Any:
    """Return a value on an axis as a number, or as a text label."""
    if isinstance(value, str | Number):
        return value
    return getattr(value, "axis_label", str(value))


def make_coordinates(scenario: AbstractScenario, sizes: dict[str, int]) -> dict[str, Any]:
    """Return the coordinates of a scenario's dataset, with descriptions.

    They include seeds if `sizes` has a number of seeds.
    """
    recorded = scenario.recorded_coordinates | ({"seed": np.arange(sizes["seed"])} if "seed" in sizes else {})
    coords: dict[str, Any] = {
        name: (name, values, {"long_name": scenario.describe(name).meaning} | ({"units": "1"} if name == "t" else {}))
        for name, values in recorded.items()
    }
    axis_by_name = {name: dim for dim, group in scenario.dimensions.items() for name in group}
    for name, value in scenario.axis_values().items():
        value = tuple(map(_make_axis_label, value)) if is_axis(value) else _make_axis_label(value)
        # one text label turns all values of the axis into text
        if is_axis(value) and any(isinstance(label, str) for label in value):
            value = tuple(label if isinstance(label, str) else f"{label:.15g}" for label in value)
        attrs = {"long_name": scenario.describe(name).meaning}
        coords[name] = (axis_by_name[name], list(value), attrs) if name in axis_by_name else ((), value, attrs)
    for name, (dims, values) in scenario.derived_coordinates.items():
        coords[name] = (dims, values, {"long_name": scenario.describe(name).meaning})
    return coords
