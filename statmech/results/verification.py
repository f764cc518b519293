"""Verification of stored results: every number is compared with its checksum and fingerprint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from statmech.errors import DamagedStoreError, StoreError
from statmech.results.checksums import check_regular_files, find_corrupted_files
from statmech.results.chunks import Chunk
from statmech.results.shards import list_stores
from statmech.results.sweep_store import DONE_STATE, RUN_STATE_VARIABLE, SweepStore


class Verification(NamedTuple):
    """The outcome of a verification: stores, chunks and finished runs read, faults, and unverified stores."""

    stores: list[str]
    blocks: int  # number of chunks; `statmech verify --json` prints this name
    done: int
    faults: list[str]
    unverified: list[str]  # stores without fingerprints
    recomputed: int = 0  # number of runs computed again for comparison
    remarks: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """True if every number of a finished run is intact and at its correct position."""
        return not (self.faults or self.unverified)

    def lines(self) -> list[str]:
        """Return lines of text: faults first, then a summary of the stores read."""
        old_store_message = (
            "was made before runs had fingerprints: checksums hold, but a chunk in the wrong place would not be found"
        )
        verified = "all sound" if self.is_sound else f"{len(self.faults)} fault{'' if len(self.faults) == 1 else 's'}"
        chunks = f"{self.blocks} chunk{'' if self.blocks == 1 else 's'}"
        recomputed = f", {self.recomputed} of them recomputed" if self.recomputed else ""
        summary = f"{', '.join(self.stores)}: {chunks} and {self.done} runs read{recomputed}, {verified}"
        return [*self.faults, *(f"{store}: {old_store_message}" for store in self.unverified), *self.remarks, summary]


def verify_results(result: Path) -> Verification:
    """Verify every chunk in a folder of results, or in one store.

    Missing and failed runs have no numbers, and are not faults.

    Parameters
    ----------
    result
        A folder of results, or a store.

    Returns
    -------
    Verification
        The faults, and the numbers of chunks and runs.

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
    ...     verify_results(Path(folder)).faults
    []
    """
    names = [result] if result.suffix == ".zarr" else [result / f"{part}.zarr" for part in ("simulation", "theory")]
    paths = [path for name in names for path in list_stores(name) if path.is_dir()]
    if not paths:
        raise StoreError(f"{result}: no such result. `statmech run CONFIG` computes one")
    faults, unverified, chunk_count, finished_runs = list[str](), list[str](), 0, 0
    for path in paths:
        check_regular_files(path)
        faults += [f"{path}: {name}: corrupted or missing" for name in find_corrupted_files(path)]
        store = _open_sweep_store(path)
        if store is None:
            continue
        chunk_count += len(store.list_chunks())
        finished_runs += store.count_states()[DONE_STATE]
        faults += [f"{path}: {fault}" for fault in _iterate_faults(store)]
        unverified += [str(path)] if store.fingerprint is None else []
    return Verification([str(path) for path in paths], chunk_count, finished_runs, faults, unverified)


def _open_sweep_store(path: Path) -> SweepStore | None:
    """Return the store of a sweep, or None for a store written in one piece.

    Checksums cover all files of a store that was written in one piece.
    """
    if not (path / RUN_STATE_VARIABLE).is_dir():
        return None
    try:
        return SweepStore(path, check=False)
    except DamagedStoreError:
        if not find_corrupted_files(path):
            raise
        return None


def _iterate_faults(store: SweepStore) -> Iterator[str]:
    for chunk in store.list_chunks():
        try:
            states = store.state[chunk.slices]
        except Exception:  # zarr and its codecs raise various errors
            chunk_text = describe_chunk(store, chunk)
            yield f"{chunk_text}: which of its runs are done cannot be read ({RUN_STATE_VARIABLE} is corrupted)"
            continue
        for fault in store.faults(chunk, states):
            yield f"{describe_chunk(store, chunk)}: {fault}"


def describe_chunk(store: SweepStore, chunk: Chunk) -> str:
    """Return a chunk's number, its values on the sweep's axes, and its seeds, as text."""
    dims: Any = store.state.metadata.dimension_names
    spans = [_format_span(store, dim, side) for dim, side in zip(dims, chunk.slices, strict=True)]
    return f"chunk {chunk.number} ({', '.join(spans)})"


def _format_span(store: SweepStore, dim: str, side: slice) -> str:
    try:
        values = store.group[dim][side]
    except Exception:  # zipped axes have no coordinate of their own, and coordinates may be corrupted
        values = range(side.start, side.stop)
    return f"{dim} {values[0]}" if len(values) == 1 else f"{dim} {values[0]} to {values[-1]}"
