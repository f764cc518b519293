"""Stored theories, each valid for all scenarios that differ only in keys without effect on theory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import StoreError
from statmech.keys.scenario import AbstractScenario
from statmech.stores.dataset import (
    decode_attributes,
    get_variable_arrays,
    list_config_differences,
    make_empty_dataset,
    remove_figure,
    scenario_from_dataset,
)
from statmech.stores.zarr_store import (
    check_dataset_form,
    describe_changed_code,
    get_recomputation_hint,
    get_replacement_hint,
    load,
)

if TYPE_CHECKING:
    import xarray as xr


GRID_POINT_ATTRIBUTES = {"best_controls"}  # JSON attributes with one entry per grid point
MismatchHandler = Callable[[AbstractScenario], None]


def load_theory(
    path: Path, scenario: AbstractScenario, on_mismatch: MismatchHandler | None = None
) -> xr.Dataset | None:
    """Return the stored theory of a scenario, or None if nothing is stored.

    Parameters
    ----------
    path
        The store.
    scenario
        The scenario, for example of the simulation next to the store.
    on_mismatch
        Is called with the scenario of the store if this scenario has another theory, and may raise. Use it for callers
        that may replace the store. By default it raises `StoreError` with a line per difference.
    """
    if not (path.exists() or path.is_symlink()):
        return None
    dataset = load(path)
    stored = scenario_from_dataset(dataset)
    check_dataset_form(path, dataset, stored)
    adapted = adapt_theory(dataset, scenario)
    if adapted is None:
        (on_mismatch or partial(_raise_other_theory, path, scenario))(stored)
    elif changed_code := describe_changed_code(path, scenario, decode_attributes(dataset.attrs).get("code")):
        raise StoreError(f"{changed_code}. {get_replacement_hint() if on_mismatch else get_recomputation_hint(path)}")
    return adapted


def _raise_other_theory(path: Path, scenario: AbstractScenario, stored: AbstractScenario) -> None:
    changed = list_theory_differences(scenario, stored, "simulation", "theory")
    lines = [f"{path}: is not the theory of simulation.zarr beside it. Differences:", *changed]
    raise StoreError(
        "\n".join([*lines, f"`statmech theory {path.parent} --fresh` solves the theory of the simulation."])
    )


def adapt_theory(theory: xr.Dataset, scenario: AbstractScenario) -> xr.Dataset | None:
    """Adapt a theory to the axes and coordinates of a scenario, or return None if the scenario has another theory.

    >>> import theory
    >>> from statmech import Scenario
    >>> solved = theory.solve(Scenario(rule="hebb", t=[1, 2], N=100, seeds=4))
    >>> adapted = adapt_theory(solved, Scenario(rule="hebb", t=[1, 2], N=[100, 400], seeds=16))
    >>> dict(adapted.R.sizes), adapt_theory(solved, Scenario(rule="hebb", t=[1, 3]))
    ({'N': 2, 't': 2, 'student': 1}, None)
    """
    stored = scenario_from_dataset(theory)
    if remove_figure(stored.config()) == remove_figure(scenario.config()):
        return theory
    if type(stored) is not type(scenario):
        return None
    if _get_fixed_theory_entries(stored) != _get_fixed_theory_entries(scenario):
        return None
    indices: dict[str, tuple[int, ...]] = {}
    numbers: dict[str, int] = {}
    for number, (values, index) in enumerate(stored.iterate_points()):
        indices[identity := _format_point_key(stored, values)], numbers[identity] = index, number
    targets = [(_format_point_key(scenario, values), index) for values, index in scenario.iterate_points()]
    if {*indices} != {identity for identity, _ in targets}:
        return None
    adapted = make_empty_dataset(scenario, seeds=None)
    adapted = adapted.drop_vars([name for name in adapted.data_vars if name not in theory])
    ignored_dims = [dim for dim in theory.dims if dim in stored.keys_ignored_by_theory and dim not in stored.shape]
    sources = {
        name: theory[name].isel({dim: [0] for dim in ignored_dims if dim in theory[name].dims}) for name in adapted
    }
    for name, array in get_variable_arrays(adapted).items():
        for identity, index in targets:
            array[index] = sources[name].values[indices[identity]]
    attrs = {**theory.attrs, "config": json.dumps(scenario.config())}
    for name in GRID_POINT_ATTRIBUTES & attrs.keys():
        stored_values = json.loads(attrs[name])
        attrs[name] = json.dumps([stored_values[numbers[identity]] for identity, _ in targets])
    return adapted.assign_attrs(attrs)


def list_theory_differences(scenario: AbstractScenario, stored: AbstractScenario, *sides: str) -> list[str]:
    """Return a line for each key that affects theory and differs between two scenarios."""
    requested, stored_config, ignored = scenario.config(), stored.config(), get_keys_ignored_by_theory(scenario)
    requested_keys, stored_keys = (
        {k: v for k, v in config.items() if k not in ignored} for config in (requested, stored_config)
    )
    return list_config_differences(requested_keys, stored_keys, *sides) or list_config_differences(
        requested, stored_config, *sides
    )


def get_keys_ignored_by_theory(scenario: AbstractScenario) -> set[str]:
    """Return the keys of a scenario that have no effect on its theory."""
    return {"seeds", "key", "figure", *scenario.SIMULATION_ONLY_KEYS, *scenario.keys_ignored_by_theory}


def _get_fixed_theory_entries(scenario: AbstractScenario) -> dict[str, Any]:
    """Return the config entries that affect theory and cannot be axes."""
    excluded = {*scenario.axis_names(), *get_keys_ignored_by_theory(scenario), "zip"}
    return {name: value for name, value in scenario.config().items() if name not in excluded}


def _format_point_key(scenario: AbstractScenario, values: Mapping[str, Any]) -> str:
    """Return the parameters that determine the theory of a grid point, as JSON.

    The ratio P/N replaces N.
    """
    ignored = get_keys_ignored_by_theory(scenario)
    parameters = {name: value for name, value in values.items() if name not in ignored}
    if {"alpha", "N"} <= values.keys():
        parameters["P/N"] = round(values["alpha"] * values["N"]) / values["N"]
    return json.dumps(parameters, sort_keys=True, default=repr)
