"""Attributes of stores and datasets: strings and numbers, as NetCDF requires, with structured values as JSON.

The config consists of the scenario's keys, and the published figure that the folder of results remembers.

The figure is a property of the folder, not of the model: two configs with different figures have the same results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from statmech.errors import shorten_text
from statmech.scenarios.composition import Composition

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
    """Return the values of attributes, the inverse of `encode_attributes`.

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
    """Return a config with the figure of its folder, or unchanged if `figure` is None.

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
    """Return a line for each key that differs between two configs, except the figure.

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
