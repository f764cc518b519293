"""Every number of a folder of results, read and checked against what was computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from statmech.errors import DamagedError, StoreError
from statmech.results.block_store import DONE, STATE, Growing
from statmech.results.checksums import broken
from statmech.results.chunks import Block


class Verification(NamedTuple):
    """What was read of a folder's stores: blocks, runs that are done, a line per fault, stores too old to verify."""

    stores: list[str]
    blocks: int
    done: int
    faults: list[str]
    unverified: list[str]

    @property
    def sound(self) -> bool:
        """Whether every number that is done is the one that was computed for its place."""
        return not (self.faults or self.unverified)

    def lines(self) -> list[str]:
        """The same for people: faults first, then what was read."""
        old = "was made before runs had fingerprints: checksums hold, but chunks in a wrong place would not be found"
        verified = "all sound" if self.sound else f"{len(self.faults)} faults"
        read = f"{', '.join(self.stores)}: {self.blocks} blocks and {self.done} runs read, {verified}"
        return [*self.faults, *(f"{store}: {old}" for store in self.unverified), read]


def verify(result: Path) -> Verification:
    """Read every chunk of a folder of results, or of one store.

    Raises `StoreError` where there is none. Runs that are missing or have failed hold no numbers, and are no faults.
    """
    paths = [result] if result.suffix == ".zarr" else [result / f"{part}.zarr" for part in ("simulation", "theory")]
    paths = [path for path in paths if path.is_dir()]
    if not paths:
        raise StoreError(f"{result}: no such result. `statmech run CONFIG` makes one")
    faults, unverified, blocks, done = list[str](), list[str](), 0, 0
    for path in paths:
        faults += [f"{path}: {name}: corrupted or missing" for name in broken(path)]
        store = _growing(path)
        if store is None:
            continue
        blocks += len(store.blocks())
        done += store.counts()[DONE]
        faults += [f"{path}: {fault}" for fault in _faults(store)]
        unverified += [str(path)] if store.fingerprint is None else []
    return Verification([str(path) for path in paths], blocks, done, faults, unverified)


def _growing(path: Path) -> Growing | None:
    """The store, if it is one of blocks; any other is sealed as a whole, and what is broken of it has been found."""
    if not (path / STATE).is_dir():
        return None
    try:
        return Growing(path, sealed=False)
    except Exception as failure:  # whatever zarr raises on damaged metadata
        if not broken(path):
            raise DamagedError(path, [f"{type(failure).__name__}: {failure}"]) from None
        return None


def _faults(store: Growing) -> Iterator[str]:
    for block in store.blocks():
        try:
            states = store.state[block.box]
        except Exception:  # whatever zarr and its codecs raise
            yield f"{_where(store, block)}: which of its runs are done cannot be read ({STATE} is corrupted)"
            continue
        for fault in store.faults(block, states):
            yield f"{_where(store, block)}: {fault}"


def _where(store: Growing, block: Block) -> str:
    """The values of the sweep's axes in a block, and its seeds."""
    dims: Any = store.state.metadata.dimension_names
    named = [_span(store, dim, part) for dim, part in zip(dims, block.box, strict=True)]
    return f"block {block.number} ({', '.join(named)})"


def _span(store: Growing, dim: str, part: slice) -> str:
    try:
        values = store.group[dim][part]
    except Exception:  # axes that are zipped have no values of their own name; others may be damaged
        values = range(part.start, part.stop)
    return f"{dim} {values[0]}" if len(values) == 1 else f"{dim} {values[0]} to {values[-1]}"
