"""Creation, extension and repair of stores for sweeps.

The store of an extended sweep is created next to the old store, the old chunks are copied, and then the two stores
exchange names. After a kill in between, `recover_interrupted_replacement` recovers one complete store.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from statmech.errors import DamagedStoreError, StatmechError, make_unreadable_store_error, make_unwritable_file_error
from statmech.keys.figure_key import FigureKeyValue
from statmech.keys.scenario import AbstractScenario
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.runtime.user_code_and_provenance import provenance
from statmech.stores import checksums
from statmech.stores.checksums import FINGERPRINT_VARIABLE
from statmech.stores.dataset import (
    FIGURE_KEY,
    add_figure,
    config_from_attributes,
    encode_attributes,
    list_config_differences,
    make_coordinates,
)
from statmech.stores.sweep_chunks import Chunk, SweepStore, compute_chunk_lengths
from statmech.stores.zarr_store import (
    DONE_STATE,
    FAILED_STATE,
    MISSING_STATE,
    RUN_STATE_VARIABLE,
    RUN_VERSION_VARIABLE,
    consolidate_store,
    ignore_zarr_warnings,
)

GridIndex = tuple[int, ...]


def create_store(
    path: Path,
    scenario: AbstractScenario,
    attrs: dict[str, Any],
    old: SweepStore | None = None,
    figure: FigureKeyValue = None,
) -> SweepStore:
    """Create a store at `path`, replacing any file or store there.

    Raises `StoreError` if the store cannot be written.

    Parameters
    ----------
    path
        The store.
    scenario
        The sweep whose runs it stores.
    attrs
        Attributes of the store, such as its title.
    old
        Store whose runs that belong to this sweep are copied.
    figure
        The figure that the folder of results remembers.
    """
    new = _get_new_store_path(path)
    verifiable = old is None or old.fingerprint is not None  # copying numbers does not make them verifiable
    config = add_figure(scenario.config(), figure)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        identity = {
            "store": uuid.uuid4().hex,
            **attrs,
            "earlier": [encode_attributes(earlier_provenance) for earlier_provenance in _list_earlier_provenances(old)],
        }
        _create_empty(new, scenario, config, identity, compute_chunk_lengths(scenario), fingerprinted=verifiable)
        if old is not None:
            _copy_runs(old, SweepStore(new), scenario)
        _replace_store(path, new)
    except OSError as failure:
        raise make_unwritable_file_error(path, failure) from None
    return SweepStore(path)


def recover_interrupted_replacement(path: Path) -> None:
    """Finish or undo the replacement of a store after an interruption by a kill."""
    backup = _get_backup_store_path(path)
    if backup.exists():
        if path.exists():
            remove_store(backup)
        else:
            backup.rename(path)
    remove_store(_get_new_store_path(path))


def repair_metadata(path: Path) -> list[str]:
    """Rewrite corrupted metadata and coordinates of a store from its config.

    Returns the rewritten files. Raises `DamagedStoreError` if the config itself is corrupted, or another version
    created the store.
    """
    names = checksums.find_corrupted_files(path)
    remaining = _repair_from_twin(path, names) if names and names != [checksums.GROUP_METADATA_FILE] else names
    if remaining:
        raise DamagedStoreError(path, remaining)
    return names


def _repair_from_twin(path: Path, names: list[str]) -> list[str]:
    """Replace corrupted files by files from a new store of the same config.

    Returns the names of files that remain corrupted.
    """
    twin = _get_new_store_path(path)
    try:
        attrs = checksums.read_group_metadata(path)["attributes"]
        config = config_from_attributes(attrs)
        _create_empty(twin, scenario_from(config), config, {}, tuple(attrs["chunks"]))
        return checksums.repair_files(path, names, twin)
    except StatmechError:
        raise
    except OSError as failure:
        raise make_unwritable_file_error(path, failure) from None
    except Exception as failure:  # zarr raises various errors for an untrusted config or chunk shape
        raise make_unreadable_store_error(path, failure) from None
    finally:
        remove_store(twin)


def check_variable_forms(store: SweepStore, scenario: AbstractScenario) -> None:
    """Raise `DamagedStoreError` if the form of a stored variable does not match the scenario."""
    lengths = store.state.chunks
    inner = {name: (variable.dims, variable.missing) for name, variable in scenario.variables.items()}
    forms = {
        name: _compute_variable_form(scenario, *arguments, lengths)
        for name, arguments in {**inner, RUN_STATE_VARIABLE: ((), np.int8(MISSING_STATE))}.items()
    }
    stored_forms = {
        name: _read_variable_form(array) for name, array in {**store.arrays, RUN_STATE_VARIABLE: store.state}.items()
    }
    if wrong := [name for name, form in forms.items() if stored_forms.get(name) != form]:
        raise DamagedStoreError(store.path, wrong)


def is_extension(new: AbstractScenario, old: dict[str, Any]) -> bool:
    """Return True if a scenario extends the store of the `old` config by axis values or seeds and omits nothing."""
    if not list_config_differences(new.config(), old):
        return False
    before = scenario_from(old)
    if type(before) is not type(new) or before.seeds > new.seeds:
        return False
    axes = {*new.axis_names(), "seeds", FIGURE_KEY, "zip"}
    fixed = {name: value for name, value in new.config().items() if name not in axes}
    if fixed != {name: value for name, value in before.config().items() if name not in axes}:
        return False
    grid = {_format_cell_key(values) for values, _ in new.iterate_points()}
    return {_format_cell_key(values) for values, _ in before.iterate_points()} <= grid


def _format_cell_key(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, default=str)


def _copy_runs(old: SweepStore, new: SweepStore, scenario: AbstractScenario) -> None:
    """Copy the runs of intact chunks of the old store into the new store, chunk by chunk."""
    states = np.full(old.state.shape, MISSING_STATE, "int8")
    for chunk in old.list_chunks():
        stored = old.read_states(chunk)
        if not old.faults(chunk, stored):
            states[chunk.slices] = stored
    before = {_format_cell_key(values): index for values, index in scenario_from(old.config).iterate_points()}
    sources: dict[GridIndex, dict[GridIndex, GridIndex]] = defaultdict(dict)
    for values, index in scenario.iterate_points():
        if (source := before.get(_format_cell_key(values))) is not None:
            sources[new.get_chunk_index(index)][index] = source
    for chunk in new.list_chunks():
        if inside := sources.get(new.get_chunk_index(chunk.first_index)):
            _copy_chunk(old, states, new, chunk, inside)


def _list_earlier_provenances(old: SweepStore | None) -> list[dict[str, Any]]:
    """Return the provenances of the earlier versions that computed runs of an old store."""
    if old is None:
        return []
    return old.provenances[:-1] if old.is_running_version else old.provenances


def _copy_chunk(
    old: SweepStore, old_states: np.ndarray, new: SweepStore, chunk: Chunk, sources: dict[GridIndex, GridIndex]
) -> None:
    """Copy the runs of one chunk into an extended store. `sources` maps indices of the new grid to the old grid."""
    seeds = slice(chunk.seeds.start, min(chunk.seeds.stop, old.state.shape[-1]))
    if seeds.start >= seeds.stop:
        return
    states = new.read_states(chunk)
    values, made_by = new.load_chunk_buffer(chunk, states), new.read_versions(chunk)
    for index, source in sources.items():
        inside = tuple(i - start for i, start in zip(index, chunk.first_index, strict=True))
        stored = old_states[source][seeds]
        states[inside][: stored.size] = stored
        if old.made_by is not None:
            made_by[inside][: stored.size] = old.made_by[(*source, seeds)]
        runs = np.flatnonzero(stored)
        if runs.size == 0:
            continue
        for name, array in old.arrays.items():
            # the old array may be smaller, with fewer students or examples
            stored_values = np.asarray(array.oindex[(*source, seeds.start + runs)])
            values[name][inside][(runs, *(slice(n) for n in stored_values.shape[1:]))] = stored_values
    if states.any():
        new.write_arrays(chunk, values, states, made_by)


def _create_empty(
    path: Path,
    scenario: AbstractScenario,
    config: dict[str, Any],
    attrs: dict[str, Any],
    lengths: tuple[int, ...],
    fingerprinted: bool = True,
) -> None:
    """Create a store with coordinates, and with variables that have no chunks so far."""
    import xarray as xr
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    remove_store(path)
    path.mkdir()  # fails if a link is still here: its target would be overwritten
    empty = xr.Dataset(
        coords=make_coordinates(scenario, {"seed": scenario.seeds}),
        attrs={"config": json.dumps(config), **encode_attributes(attrs), "chunks": lengths},
    )
    with ignore_zarr_warnings():
        empty.assign_attrs(encode_attributes(provenance())).to_zarr(path, consolidated=False, mode="w")
    group = zarr.open_group(path, mode="r+", use_consolidated=False)

    def add(name: str, inner: tuple[str, ...], missing: Any, attrs: dict[str, Any]) -> None:
        group.create_array(
            name,
            **_compute_variable_form(scenario, inner, missing, lengths)._asdict(),
            fill_value=missing,
            attributes=attrs,
            compressors=(ZstdCodec(level=1), Crc32cCodec()),  # CRC over all bytes, since zstd does not check its header
        )

    for name, variable in scenario.variables.items():
        add(name, variable.dims, variable.missing, variable.dataset_attributes)
    if fingerprinted:
        add(
            FINGERPRINT_VARIABLE, (), np.uint64(0), {"long_name": "binds a run's numbers to its position in this sweep"}
        )
    add(
        RUN_VERSION_VARIABLE,
        (),
        np.uint8(0),
        {"long_name": "version that computed a run, among `earlier` and the latest"},
    )
    add(
        RUN_STATE_VARIABLE,
        (),
        np.int8(MISSING_STATE),
        {"flag_values": [MISSING_STATE, DONE_STATE, FAILED_STATE], "flag_meanings": "missing done failed"},
    )
    consolidate_store(path)
    checksums.write_checksums(path)


class _VariableForm(NamedTuple):
    """The metadata of a stored variable that determine how its numbers are read."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    dimension_names: tuple[str, ...]


def _compute_variable_form(
    scenario: AbstractScenario, inner: tuple[str, ...], missing: Any, lengths: tuple[int, ...]
) -> _VariableForm:
    """Return the form of a variable in a new store with these inner dimensions, in chunks of these lengths."""
    recorded = {name: len(values) for name, values in scenario.recorded_coordinates.items()}
    sizes = recorded | {"seed": scenario.seeds} | scenario.shape
    dims = (*scenario.shape, "seed", *inner)
    chunks = (*lengths, *(max(1, sizes[dim]) for dim in inner))
    return _VariableForm(tuple(sizes[dim] for dim in dims), chunks, np.asarray(missing).dtype, dims)


def _read_variable_form(array: Any) -> _VariableForm:
    return _VariableForm(array.shape, array.chunks, array.dtype, tuple(array.metadata.dimension_names or ()))


def _replace_store(path: Path, new: Path) -> None:
    """Replace the store at `path` by a new store."""
    backup = _get_backup_store_path(path)
    remove_store(backup)
    if path.exists() or path.is_symlink():
        path.rename(backup)
    new.rename(path)
    remove_store(backup)


def remove_store(path: Path) -> None:
    """Remove the store, file or link at a path, but never the target of a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _get_new_store_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _get_backup_store_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")
