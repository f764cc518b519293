"""Verification: every number of a folder of results is read and checked against what was computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from statmech.errors import DamagedError, StoreError
from statmech.results.checksums import check_ordinary, corrupted
from statmech.results.chunks import Chunk
from statmech.results.sweep_store import DONE, STATE, SweepStore


class Verification(NamedTuple):
    """The stores read, their numbers of chunks and finished runs, a line per fault, and stores too old to verify."""

    stores: list[str]
    blocks: int  # chunks; the name is that of the command's JSON
    done: int
    faults: list[str]
    unverified: list[str]
    recomputed: int = 0  # runs
    remarks: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """True if every finished number is the one that was computed for its place."""
        return not (self.faults or self.unverified)

    def lines(self) -> list[str]:
        """The text for people: faults first, then what was read."""
        old = "was made before runs had fingerprints: checksums hold, but a chunk in the wrong place would not be found"
        verified = "all sound" if self.sound else f"{len(self.faults)} fault{'' if len(self.faults) == 1 else 's'}"
        chunks = f"{self.blocks} chunk{'' if self.blocks == 1 else 's'}"
        again = f", {self.recomputed} of them recomputed" if self.recomputed else ""
        read = f"{', '.join(self.stores)}: {chunks} and {self.done} runs read{again}, {verified}"
        return [*self.faults, *(f"{store}: {old}" for store in self.unverified), *self.remarks, read]


def verify(result: Path) -> Verification:
    """Read every chunk of a folder of results, or of one store.

    Runs that are missing or have failed hold no numbers, and are not faults.

    Parameters
    ----------
    result
        A folder of results, or a store.

    Returns
    -------
    Verification
        What is intact, and what is not.

    Raises
    ------
    StoreError
        If there is no store.

    Examples
    --------
    >>> import tempfile
    >>> import theory
    >>> from statmech import Scenario
    >>> from statmech.results.store import save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(theory.solve(Scenario(rule="hebb", t=10)), Path(folder) / "theory.zarr")
    ...     verify(Path(folder)).faults
    []
    """
    paths = [result] if result.suffix == ".zarr" else [result / f"{part}.zarr" for part in ("simulation", "theory")]
    paths = [path for path in paths if path.is_dir()]
    if not paths:
        raise StoreError(f"{result}: no such result. `statmech run CONFIG` computes one")
    faults, unverified, chunks, done = list[str](), list[str](), 0, 0
    for path in paths:
        check_ordinary(path)
        faults += [f"{path}: {name}: corrupted or missing" for name in corrupted(path)]
        store = _sweep_store(path)
        if store is None:
            continue
        chunks += len(store.chunks())
        done += store.counts()[DONE]
        faults += [f"{path}: {fault}" for fault in _faults(store)]
        unverified += [str(path)] if store.fingerprint is None else []
    return Verification([str(path) for path in paths], chunks, done, faults, unverified)


def _sweep_store(path: Path) -> SweepStore | None:
    """The store of a sweep; None for a store that was written whole, whose checksums say everything."""
    if not (path / STATE).is_dir():
        return None
    try:
        return SweepStore(path, check=False)
    except DamagedError:
        if not corrupted(path):
            raise
        return None


def _faults(store: SweepStore) -> Iterator[str]:
    for chunk in store.chunks():
        try:
            states = store.state[chunk.box]
        except Exception:  # whatever zarr and its codecs raise
            yield f"{name_of(store, chunk)}: which of its runs are done cannot be read ({STATE} is corrupted)"
            continue
        for fault in store.faults(chunk, states):
            yield f"{name_of(store, chunk)}: {fault}"


def name_of(store: SweepStore, chunk: Chunk) -> str:
    """A chunk's number, its values of the sweep's axes, and its seeds."""
    dims: Any = store.state.metadata.dimension_names
    spans = [_span(store, dim, side) for dim, side in zip(dims, chunk.box, strict=True)]
    return f"chunk {chunk.number} ({', '.join(spans)})"


def _span(store: SweepStore, dim: str, side: slice) -> str:
    try:
        values = store.group[dim][side]
    except Exception:  # zipped axes have no values of their own name; others may be corrupted
        values = range(side.start, side.stop)
    return f"{dim} {values[0]}" if len(values) == 1 else f"{dim} {values[0]} to {values[-1]}"
