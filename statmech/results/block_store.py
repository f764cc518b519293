"""Stores that grow block by block, and that a kill at any moment leaves readable and right.

A block's variables are written first, then the fingerprints of its runs (`statmech.results.fingerprints`), and its `state`
last, each chunk to a temporary file that is renamed: a reader who looks at `state` sees whole blocks only. Chunks carry
checksums. A block is written only to the store that its writer has opened, which no other process can exchange
meanwhile (`statmech.results.locks`). A store of a sweep that has grown is made beside the old one, its blocks are copied, and
then the two change names; a kill between leaves one of them to be found again.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from statmech.errors import DamagedError, StoreError, unwritable
from statmech.results.checksums import ROOT, broken, mend, seal
from statmech.results.chunks import Block, blocks, chunks_of
from statmech.results.dataset import coordinates
from statmech.results.fingerprints import FINGERPRINT, fingerprints, salt_of
from statmech.results.locks import writing
from statmech.results.store import DONE, STATE, chunk_file, differences, provenance, quiet

MISSING, FAILED = 0, 2


class Growing:
    """A store of a scenario's simulation at `path`, with the blocks that it has."""

    def __init__(self, path: Path, sealed: bool = True):
        """Open it; raises `DamagedError` where it is not `sealed` as it was made, if that is asked for."""
        import zarr

        self.path = path
        if sealed and (names := broken(path)):
            raise DamagedError(path, names)
        with quiet(), zarr.config.set({"array.write_empty_chunks": True}):  # else a chunk of NaN looks like a lost one
            self.group: Any = zarr.open_group(path, mode="r+", use_consolidated=False)
            arrays = dict(self.group.arrays())
        self.state: Any = arrays[STATE]
        self.fingerprint: Any = arrays.get(FINGERPRINT)  # None in stores of versions that had none
        self.arrays: dict[str, Any] = {name: one for name, one in arrays.items() if _has_seeds(name, one)}
        self._root = (path / ROOT).read_bytes()
        self._salt = salt_of(self.config, self.data)

    @property
    def config(self) -> dict[str, Any]:
        """The config that the store is of."""
        config: dict[str, Any] = json.loads(self.group.attrs["config"])
        return config

    @property
    def data(self) -> dict[str, str]:
        """The digests of the data that the config names, as they were when the store was made."""
        return dict(self.group.attrs.get("data", {}))

    def blocks(self) -> list[Block]:
        """All blocks, done or not."""
        return list(blocks(self.state.shape, self.state.chunks))

    def place(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """Where, along the axes of the sweep, the blocks of a cell stand."""
        return tuple(at // length for at, length in zip(index, self.state.chunks, strict=False))

    def states(self, block: Block) -> np.ndarray:
        """The state of each cell and seed of a block; missing where it cannot be read."""
        try:
            return np.asarray(self.state[block.box])
        except Exception:  # whatever zarr and its codecs raise on a damaged chunk
            return np.full(block.shape, MISSING, "int8")

    def blank(self, block: Block, states: np.ndarray) -> dict[str, np.ndarray]:
        """The variables of a block, to be filled in: what the store has of these states, missing values elsewhere."""
        known = states == DONE
        found = {}
        for name, array in self.arrays.items():
            values = np.full((*known.shape, *array.shape[known.ndim :]), array.fill_value)
            if known.any():
                values[known] = np.asarray(array[block.box])[known]
            found[name] = values
        return found

    def write(self, block: Block, values: dict[str, np.ndarray], states: np.ndarray) -> None:
        """Write a block. Raises `StoreError` if the disk does not take it, or another store has come into its place."""
        try:
            with writing(self.path):
                self._check()
                self.put(block, values, states)
        except StoreError:
            raise
        except OSError as failure:
            problem = unwritable(self.path, failure)
            raise StoreError(f"{problem}. What was written before is whole; the same command resumes it") from None

    def put(self, block: Block, values: dict[str, np.ndarray], states: np.ndarray) -> None:
        """Write a block of a store that nobody else writes: its variables, fingerprints, and then its states."""
        for name, array in self.arrays.items():
            array[block.box] = values[name]
        if self.fingerprint is not None:
            made = fingerprints(values, self._numbers(block), self._salt)
            known = self.states(block) == DONE  # as they were: were their numbers damaged, that is not to be sealed
            self.fingerprint[block.box] = np.where(known, self.fingerprint[block.box], made) if known.any() else made
        self.state[block.box] = states

    def forget(self, block: Block) -> None:
        """Mark a block as missing. Raises `StoreError` if another store has come into its place."""
        with writing(self.path):
            self._check()
            self.state[block.box] = np.full(block.shape, MISSING, "int8")

    def faults(self, block: Block, states: np.ndarray) -> list[str]:
        """What is wrong with a block of these states, a phrase for each chunk; empty if its numbers are right.

        In a store without fingerprints, chunks that are whole and stand in a wrong place are not found.
        """
        if not (states != MISSING).any():
            return []
        values, found = self._read(block)
        if found or self.fingerprint is None:
            return found
        try:
            kept = np.asarray(self.fingerprint[block.box])
        except Exception:  # whatever zarr and its codecs raise
            return [f"{self._chunk(FINGERPRINT, self.fingerprint, block)}: corrupted"]
        if (kept == fingerprints(values, self._numbers(block), self._salt))[states == DONE].all():
            return []
        return [f"{self._chunk('*', self.state, block)}: not the numbers that were computed for this place"]

    def counts(self) -> dict[int, int]:
        """How many runs are in each state."""
        states, counts = np.unique(np.concatenate([self.states(b).ravel() for b in self.blocks()]), return_counts=True)
        return dict.fromkeys((MISSING, DONE, FAILED), 0) | dict(zip(states.tolist(), counts.tolist(), strict=True))

    def _check(self) -> None:
        """Raise `StoreError` if the store is not the one that was opened."""
        try:
            same = (self.path / ROOT).read_bytes() == self._root
        except OSError:
            same = False
        if not same:
            raise StoreError(f"{self.path}: was replaced, or removed, since it was opened; the block is not written")

    def _read(self, block: Block) -> tuple[dict[str, np.ndarray], list[str]]:
        """A block's values, and a phrase for each chunk that is corrupted or missing (zarr reads missing values)."""
        values, found = {}, []
        for name, array in self.arrays.items():
            chunk = self._chunk(name, array, block)
            try:
                values[name] = np.asarray(array[block.box])
                if not (self.path / chunk).is_file():
                    found.append(f"{chunk}: missing")
            except Exception:  # whatever zarr and its codecs raise
                found.append(f"{chunk}: corrupted")
        return values, found

    def _chunk(self, name: str, array: Any, block: Block) -> Path:
        """The file of a variable's values of a block, in the store."""
        place = (*self.place(block.corner), block.seeds.start // self.state.chunks[-1])
        return chunk_file(self.path, name, place, array.ndim).relative_to(self.path)

    def _numbers(self, block: Block) -> np.ndarray:
        """The number of each run of a block in the sweep, the last axis and the seeds fastest."""
        found = np.zeros((), np.uint64)
        for length, at in zip(self.state.shape, np.ogrid[block.box], strict=True):
            found = found * np.uint64(length) + at.astype(np.uint64)
        return found


def create(path: Path, scenario: Any, attrs: dict[str, Any], old: Growing | None = None) -> Growing:
    """A new store in place of whatever stands at `path`; it keeps what an `old` store has of the same cells and seeds.

    Raises `StoreError` if the disk does not take it.
    """
    fresh = path.with_name(f".{path.name}.new")
    bound = old is None or old.fingerprint is not None  # what could not be verified does not become so by copying
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        _template(fresh, scenario, {"store": uuid.uuid4().hex, **attrs}, chunks_of(scenario), bound=bound)
        if old is not None:
            _copy(old, Growing(fresh), scenario)
        _exchange(fresh, path)
    except OSError as failure:
        raise unwritable(path, failure) from None
    return Growing(path)


def recover(path: Path) -> None:
    """Finish, or undo, a change of names that a kill has cut short."""
    aside = _aside(path)
    if aside.exists():
        if path.exists():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(path)
    shutil.rmtree(path.with_name(f".{path.name}.new"), ignore_errors=True)


def restore(path: Path) -> list[str]:
    """Make anew whatever is damaged of a store's metadata and coordinates, which follow from its config; tell what was.

    Raises `DamagedError` where that cannot be: the config itself is damaged, or other versions have made the store.
    """
    from statmech.scenarios.registry import scenario_from

    names = broken(path)
    if names and names != [ROOT]:
        twin = path.with_name(f".{path.name}.new")
        known = json.loads((path / ROOT).read_bytes())["attributes"]
        _template(twin, scenario_from(json.loads(known["config"])), {}, tuple(known["chunks"]))
        left = mend(path, names, twin)
        shutil.rmtree(twin, ignore_errors=True)
    else:
        left = names
    if left:
        raise DamagedError(path, left)
    return names


def extends(new: Any, old: dict[str, Any]) -> bool:
    """Whether a scenario is that of an `old` config with more values on its axes, or more seeds, and nothing less."""
    from statmech.scenarios.registry import scenario_from

    if not differences(new.config(), old):
        return False
    before = scenario_from(old)
    if type(before) is not type(new) or before.seeds > new.seeds:
        return False
    axes = {*new.axis_names(), "seeds", "figure", "zip"}
    same = {name: value for name, value in new.config().items() if name not in axes}
    if same != {name: value for name, value in before.config().items() if name not in axes}:
        return False
    here = [_key(values) for values, _ in new.grid()]
    return {_key(values) for values, _ in before.grid()} <= set(here)


def _has_seeds(name: str, array: Any) -> bool:
    return "seed" in (array.metadata.dimension_names or ()) and name not in ("seed", STATE, FINGERPRINT)


def _key(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, default=str)


def _copy(old: Growing, new: Growing, scenario: Any) -> None:
    """What the old store has, cell by cell of the new grid, block by block of the new store."""
    from statmech.scenarios.registry import scenario_from

    states = np.full(old.state.shape, MISSING, "int8")
    for block in old.blocks():
        found = old.states(block)
        if not old.faults(block, found):
            states[block.box] = found
    before = {_key(values): index for values, index in scenario_from(old.config).grid()}
    sources: dict[tuple[int, ...], dict[tuple[int, ...], tuple[int, ...]]] = defaultdict(dict)
    for values, index in scenario.grid():
        if (source := before.get(_key(values))) is not None:
            sources[new.place(index)][index] = source
    for block in new.blocks():
        if here := sources.get(new.place(block.corner)):
            _copy_block(old, states, new, block, here)


def _copy_block(
    old: Growing, known: np.ndarray, new: Growing, block: Block, sources: dict[tuple[int, ...], tuple[int, ...]]
) -> None:
    """Copy the runs of one block, of those in the `known` states of the old store's sound blocks."""
    states = new.states(block)
    values = new.blank(block, states)
    some = slice(block.seeds.start, min(block.seeds.stop, old.state.shape[-1]))
    for index, source in sources.items() if some.start < some.stop else ():
        place = tuple(i - start for i, start in zip(index, block.corner, strict=True))
        at: tuple[Any, ...] = (*source, some)
        had = known[at]
        states[place][: had.size] = had
        runs = np.flatnonzero(had)
        for name, array in old.arrays.items() if runs.size else ():
            kept = np.asarray(array.oindex[(*source, some.start + runs)])  # of smaller ensembles, or fewer examples
            values[name][place][(runs, *(slice(n) for n in kept.shape[1:]))] = kept
    if states.any():
        new.put(block, values, states)


def _template(path: Path, scenario: Any, attrs: dict[str, Any], chunks: tuple[int, ...], bound: bool = True) -> None:
    """An empty store: coordinates, and variables without chunks; `bound` if its runs are to have fingerprints."""
    import xarray as xr
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    recorded = {name: len(values) for name, values in scenario.recorded.items()}
    sizes = recorded | {"seed": scenario.seeds} | scenario.shape
    made = xr.Dataset(
        coords=coordinates(scenario, sizes), attrs={"config": json.dumps(scenario.config()), **attrs, "chunks": chunks}
    )
    with quiet():
        made.assign_attrs(provenance()).to_zarr(path, consolidated=False, mode="w")
    outer = (*scenario.shape, "seed")
    group = zarr.open_group(path, mode="r+", use_consolidated=False)

    def add(name: str, inner: tuple[str, ...], missing: Any, attrs: dict[str, Any]) -> None:
        dims = (*outer, *inner)
        group.create_array(
            name,
            shape=tuple(sizes[dim] for dim in dims),
            chunks=(*chunks, *(max(1, sizes[dim]) for dim in inner)),
            dtype=np.asarray(missing).dtype,
            fill_value=missing,
            dimension_names=dims,
            attributes=attrs,
            compressors=(ZstdCodec(level=1), Crc32cCodec()),  # over all bytes: zstd checks no bit of its header
        )

    for name, variable in scenario.variables.items():
        add(name, variable.dims, variable.missing, variable.described)
    if bound:
        add(FINGERPRINT, (), np.uint64(0), {"long_name": "what binds a run's numbers to its place in this sweep"})
    add(STATE, (), np.int8(MISSING), {"flag_values": [MISSING, DONE, FAILED], "flag_meanings": "missing done failed"})
    seal(path)


def _exchange(fresh: Path, path: Path) -> None:
    aside = _aside(path)
    shutil.rmtree(aside, ignore_errors=True)
    if path.exists():
        path.rename(aside)
    fresh.rename(path)
    shutil.rmtree(aside, ignore_errors=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")
