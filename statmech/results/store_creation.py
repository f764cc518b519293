"""Creation, growth and repair of stores for sweeps.

The store of an extended sweep is created next to the old store, the old chunks are copied, and then the two stores
exchange names. After a kill in between, `complete_replacement` recovers one complete store.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from statmech.errors import DamagedError, StatmechError, unreadable, unwritable
from statmech.results import checksums
from statmech.results.chunks import Chunk, chunk_lengths
from statmech.results.dataset import coordinates
from statmech.results.fingerprints import FINGERPRINT
from statmech.results.store import DONE, MADE_BY, STATE, consolidate, provenance, quiet
from statmech.results.stored_config import FIGURE, as_attributes, config_of, differences, with_figure
from statmech.results.sweep_store import FAILED, MISSING, SweepStore
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.composition import FigureKey
from statmech.scenarios.registry import scenario_from

Index = tuple[int, ...]


def create(
    path: Path,
    scenario: AbstractScenario,
    attrs: dict[str, Any],
    old: SweepStore | None = None,
    figure: FigureKey = None,
) -> SweepStore:
    """Create a store at `path`, and replace any file or store there.

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
    new = _new(path)
    verifiable = old is None or old.fingerprint is not None  # copying numbers does not make them verifiable
    config = with_figure(scenario.config(), figure)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        identity = {
            "store": uuid.uuid4().hex,
            **attrs,
            "earlier": [as_attributes(earlier_provenance) for earlier_provenance in _earlier(old)],
        }
        _create_empty(new, scenario, config, identity, chunk_lengths(scenario), fingerprinted=verifiable)
        if old is not None:
            _copy(old, SweepStore(new), scenario)
        _replace(path, new)
    except OSError as failure:
        raise unwritable(path, failure) from None
    return SweepStore(path)


def complete_replacement(path: Path) -> None:
    """Finish or undo a replacement of a store that a kill has interrupted."""
    backup = _backup(path)
    if backup.exists():
        if path.exists():
            _remove(backup)
        else:
            backup.rename(path)
    _remove(_new(path))


def repair_metadata(path: Path) -> list[str]:
    """Rewrite corrupted metadata and coordinates of a store from its config.

    Returns the rewritten files. Raises `DamagedError` if the config itself is corrupted, or another version created the
    store.
    """
    names = checksums.corrupted(path)
    remaining = _remaining(path, names) if names and names != [checksums.ROOT] else names
    if remaining:
        raise DamagedError(path, remaining)
    return names


def _remaining(path: Path, names: list[str]) -> list[str]:
    """Replace corrupted files by files from a new store of the same config.

    Returns the names of files that remain corrupted.
    """
    twin = _new(path)
    try:
        attrs = checksums.group_of(path)["attributes"]
        config = config_of(attrs)
        _create_empty(twin, scenario_from(config), config, {}, tuple(attrs["chunks"]))
        return checksums.repair(path, names, twin)
    except StatmechError:
        raise
    except OSError as failure:
        raise unwritable(path, failure) from None
    except Exception as failure:  # zarr raises various errors for the config and the chunks of a stranger
        raise unreadable(path, failure) from None
    finally:
        _remove(twin)


def check_form(store: SweepStore, scenario: AbstractScenario) -> None:
    """Raise `DamagedError` for a store with variables of another form than in a store from `create`."""
    lengths = store.state.chunks
    inner = {name: (variable.dims, variable.missing) for name, variable in scenario.variables.items()}
    forms = {
        name: _form(scenario, *arguments, lengths)
        for name, arguments in {**inner, STATE: ((), np.int8(MISSING))}.items()
    }
    stored_forms = {name: _form_of(array) for name, array in {**store.arrays, STATE: store.state}.items()}
    if wrong := [name for name, form in forms.items() if stored_forms.get(name) != form]:
        raise DamagedError(store.path, wrong)


def is_extension(new: AbstractScenario, old: dict[str, Any]) -> bool:
    """Return True if a scenario extends the `old` config by values on its axes or by seeds, and omits nothing."""
    if not differences(new.config(), old):
        return False
    before = scenario_from(old)
    if type(before) is not type(new) or before.seeds > new.seeds:
        return False
    axes = {*new.axis_names(), "seeds", FIGURE, "zip"}
    fixed = {name: value for name, value in new.config().items() if name not in axes}
    if fixed != {name: value for name, value in before.config().items() if name not in axes}:
        return False
    grid = {_key(values) for values, _ in new.grid()}
    return {_key(values) for values, _ in before.grid()} <= grid


def _key(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, default=str)


def _copy(old: SweepStore, new: SweepStore, scenario: AbstractScenario) -> None:
    """Copy the runs of intact chunks of the old store into the new store, chunk by chunk."""
    states = np.full(old.state.shape, MISSING, "int8")
    for chunk in old.chunks():
        stored = old.states(chunk)
        if not old.faults(chunk, stored):
            states[chunk.box] = stored
    before = {_key(values): index for values, index in scenario_from(old.config).grid()}
    sources: dict[Index, dict[Index, Index]] = defaultdict(dict)
    for values, index in scenario.grid():
        if (source := before.get(_key(values))) is not None:
            sources[new.chunk_index(index)][index] = source
    for chunk in new.chunks():
        if inside := sources.get(new.chunk_index(chunk.corner)):
            _copy_chunk(old, states, new, chunk, inside)


def _earlier(old: SweepStore | None) -> list[dict[str, Any]]:
    """Return the provenances of all other versions that have computed runs of an old store."""
    if old is None:
        return []
    return old.provenances[:-1] if old.is_of_this_version else old.provenances


def _copy_chunk(
    old: SweepStore, old_states: np.ndarray, new: SweepStore, chunk: Chunk, sources: dict[Index, Index]
) -> None:
    """Copy the runs of one chunk, for parameter combinations with `sources` in the old grid."""
    seeds = slice(chunk.seeds.start, min(chunk.seeds.stop, old.state.shape[-1]))
    if seeds.start >= seeds.stop:
        return
    states = new.states(chunk)
    values, made_by = new.buffer(chunk, states), new.versions(chunk)
    for index, source in sources.items():
        inside = tuple(i - start for i, start in zip(index, chunk.corner, strict=True))
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
        new.write_alone(chunk, values, states, made_by)


def _create_empty(
    path: Path,
    scenario: AbstractScenario,
    config: dict[str, Any],
    attrs: dict[str, Any],
    lengths: tuple[int, ...],
    fingerprinted: bool = True,
) -> None:
    """Create a store with coordinates, and variables without chunks."""
    import xarray as xr
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    _remove(path)
    path.mkdir()  # fails if a link, whose target would be overwritten, cannot be removed
    empty = xr.Dataset(
        coords=coordinates(scenario, {"seed": scenario.seeds}),
        attrs={"config": json.dumps(config), **as_attributes(attrs), "chunks": lengths},
    )
    with quiet():
        empty.assign_attrs(as_attributes(provenance())).to_zarr(path, consolidated=False, mode="w")
    group = zarr.open_group(path, mode="r+", use_consolidated=False)

    def add(name: str, inner: tuple[str, ...], missing: Any, attrs: dict[str, Any]) -> None:
        group.create_array(
            name,
            **_form(scenario, inner, missing, lengths)._asdict(),
            fill_value=missing,
            attributes=attrs,
            compressors=(ZstdCodec(level=1), Crc32cCodec()),  # CRC over all bytes, since zstd does not check its header
        )

    for name, variable in scenario.variables.items():
        add(name, variable.dims, variable.missing, variable.described)
    if fingerprinted:
        add(FINGERPRINT, (), np.uint64(0), {"long_name": "binds a run's numbers to its position in this sweep"})
    add(MADE_BY, (), np.uint8(0), {"long_name": "version that computed a run, among `earlier` and the latest"})
    add(STATE, (), np.int8(MISSING), {"flag_values": [MISSING, DONE, FAILED], "flag_meanings": "missing done failed"})
    consolidate(path)
    checksums.write(path)


class _Form(NamedTuple):
    """The metadata of a stored variable that determine how its numbers are read."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    dimension_names: tuple[str, ...]


def _form(scenario: AbstractScenario, inner: tuple[str, ...], missing: Any, lengths: tuple[int, ...]) -> _Form:
    """Return the form of a variable with these inner dimensions, in chunks of these lengths."""
    recorded = {name: len(values) for name, values in scenario.recorded.items()}
    sizes = recorded | {"seed": scenario.seeds} | scenario.shape
    dims = (*scenario.shape, "seed", *inner)
    chunks = (*lengths, *(max(1, sizes[dim]) for dim in inner))
    return _Form(tuple(sizes[dim] for dim in dims), chunks, np.asarray(missing).dtype, dims)


def _form_of(array: Any) -> _Form:
    return _Form(array.shape, array.chunks, array.dtype, tuple(array.metadata.dimension_names or ()))


def _replace(path: Path, new: Path) -> None:
    """Replace the store at `path` by a new store."""
    backup = _backup(path)
    _remove(backup)
    if path.exists() or path.is_symlink():
        path.rename(backup)
    new.rename(path)
    _remove(backup)


def _remove(path: Path) -> None:
    """Remove a store, or a file or link at its path, but not the target of a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _new(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _backup(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")
