"""Stores of sweeps, written chunk by chunk: a kill at any time leaves them readable and correct.

A chunk is simulated, written and read in one piece. It is a box of the grid (the sweep's axes, then seeds), and one
zarr chunk of every variable of a store, so that writers of different chunks never touch the same file. A chunk takes a
few seconds of work: losing one costs little, and writing it takes little time compared with its simulation.

The variables of a chunk are written first, then the fingerprints of its runs (`statmech.stores.checksums`), and its
`state` last. Each file is written under a temporary name and renamed. A reader who checks `state` therefore sees
complete chunks only. All files have checksums. Only the process that holds the lock of a store writes it
(`statmech.stores.locks`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from statmech.errors import (
    DamagedStoreError,
    ScenarioError,
    StoreError,
    make_unreadable_store_error,
    make_unwritable_file_error,
)
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import MAX_CELLS_PER_STORE, MAX_CELLS_PER_STORE_CHUNK
from statmech.runtime.user_code_and_provenance import is_running_version
from statmech.stores import checksums
from statmech.stores.checksums import FINGERPRINT_VARIABLE, compute_fingerprint_salt, compute_fingerprints
from statmech.stores.dataset import config_from_attributes, decode_attributes
from statmech.stores.sweep_cost import count_scenario_cores, estimate_cost
from statmech.stores.zarr_store import (
    DONE_STATE,
    FAILED_STATE,
    MISSING_STATE,
    RUN_STATE_VARIABLE,
    RUN_VERSION_VARIABLE,
    check_attribute_types,
    check_same_sweep,
    get_chunk_file,
    ignore_zarr_warnings,
    list_provenances,
    list_stores,
)

MAX_SEEDS_PER_CHUNK = 64  # a multiple of the seed batch of every kind of scenario
TARGET_CHUNK_SECONDS, TARGET_CHUNK_BYTES = 2.0, 2**26  # approximate, from the estimated cost
MAX_CHUNKS_PER_STORE = MAX_CELLS_PER_STORE // MAX_CELLS_PER_STORE_CHUNK
UNKNOWN_VERSION_INDEX = 255  # marks runs recomputed by a version that the store does not record


class Chunk(NamedTuple):
    """A box of the parameter grid: its number, and its slices along the sweep's axes and the seeds."""

    number: int
    slices: tuple[slice, ...]

    @property
    def first_index(self) -> tuple[int, ...]:
        """The index of the chunk's first parameter combination."""
        return tuple(side.start for side in self.slices[:-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths along the axes, and the number of seeds."""
        return tuple(side.stop - side.start for side in self.slices)

    @property
    def runs(self) -> int:
        """The number of runs: parameter combinations times seeds."""
        return math.prod(self.shape)

    @property
    def seeds(self) -> range:
        """The seeds of the chunk's runs."""
        return range(self.slices[-1].start, self.slices[-1].stop)

    def contains(self, index: tuple[int, ...]) -> bool:
        """Return True if a parameter combination is in the chunk."""
        return all(side.start <= i < side.stop for i, side in zip(index, self.slices, strict=False))


def compute_chunk_lengths(scenario: AbstractScenario) -> tuple[int, ...]:
    """Return the lengths of a chunk along each axis of a sweep, and along the seeds.

    They depend on the scenario alone. Raises `ScenarioError` for more chunks than a store may have.
    """
    cost = estimate_cost(scenario)
    fitting = (
        int(TARGET_CHUNK_BYTES / (cost.dataset_bytes / cost.runs))
        // scenario.seeds_per_batch
        * scenario.seeds_per_batch
    )
    seeds = min(MAX_SEEDS_PER_CHUNK, scenario.seeds, max(fitting, scenario.seeds_per_batch))
    seconds = count_scenario_cores(scenario) * cost.seconds / cost.runs * seeds
    bytes_ = cost.dataset_bytes / cost.runs * seeds
    cells = max(
        1,
        min(
            int(TARGET_CHUNK_SECONDS / max(seconds, 1e-9)), int(TARGET_CHUNK_BYTES / bytes_), MAX_CELLS_PER_STORE_CHUNK
        ),
    )
    lengths = [seeds]
    for length in reversed(scenario.shape.values()):  # the last axis varies fastest
        lengths.append(min(length, cells))
        cells = max(1, cells // length)
    if (
        count := count_chunks((*scenario.shape.values(), scenario.seeds), chunk_shape := tuple(reversed(lengths)))
    ) > MAX_CHUNKS_PER_STORE:
        runs = f"{cost.runs:,} runs are stored in {count:,} chunks, and a store has at most {MAX_CHUNKS_PER_STORE:,}"
        raise ScenarioError([(("seeds",), f"{runs}: use fewer seeds, or fewer values on the axes")])
    return chunk_shape


def count_chunks(shape: Sequence[int], lengths: Sequence[int]) -> int:
    """Return the number of chunks that cover a grid."""
    return math.prod(-(-n // length) for n, length in zip(shape, lengths, strict=True))


def iterate_chunks(shape: tuple[int, ...], lengths: tuple[int, ...]) -> Iterator[Chunk]:
    """Yield all chunks of a grid, with the last axis varying fastest.

    >>> [chunk.slices for chunk in iterate_chunks((3, 2), (2, 2))]
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(0, 2, None))]
    """
    counts = [math.ceil(n / length) for n, length in zip(shape, lengths, strict=True)]
    for number, index in enumerate(itertools.product(*map(range, counts))):
        box = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, lengths, shape, strict=True))
        yield Chunk(number, box)


class SweepStore:
    """The store of a scenario's simulation at `path`, with the chunks that have been written so far.

    Opening raises `DamagedStoreError` if a checksum is wrong, unless `check` is False.
    """

    def __init__(self, path: Path, check: bool = True):
        self.path = path
        if check and (names := checksums.find_corrupted_files(path)):
            raise DamagedStoreError(path, names)
        try:
            self._open_arrays()
        except Exception as failure:  # zarr and its codecs raise various errors on untrusted metadata
            raise make_unreadable_store_error(path, failure) from None

    def _open_arrays(self) -> None:
        import zarr

        path = self.path
        # without this setting a chunk of NaN would look like a missing chunk
        with ignore_zarr_warnings(), zarr.config.set({"array.write_empty_chunks": True}):
            self.group: Any = zarr.open_group(path, mode="r+", use_consolidated=False)
            arrays = dict(self.group.arrays())
        self.state: Any = arrays[RUN_STATE_VARIABLE]
        self.fingerprint: Any = arrays.get(FINGERPRINT_VARIABLE)  # None in stores of early versions
        self.made_by: Any = arrays.get(RUN_VERSION_VARIABLE)  # None in stores of early versions
        self.arrays: dict[str, Any] = {name: array for name, array in arrays.items() if _is_run_variable(name, array)}
        special_arrays = {
            RUN_STATE_VARIABLE: self.state,
            FINGERPRINT_VARIABLE: self.fingerprint,
            RUN_VERSION_VARIABLE: self.made_by,
        }
        run_arrays = {**{name: array for name, array in special_arrays.items() if array is not None}, **self.arrays}
        if wrong := [name for name, array in run_arrays.items() if not _has_run_layout(name, array, self.state)]:
            raise ValueError(f"{wrong[0]} does not have the shape, chunks or type of a variable of runs")
        check_attribute_types(self.group.attrs)
        self._salt = compute_fingerprint_salt(
            config_from_attributes(self.group.attrs), {**self.data, **(self.code or {})}
        )

    @property
    def config(self) -> dict[str, Any]:
        """The stored config."""
        return config_from_attributes(self.group.attrs)

    @property
    def data(self) -> dict[str, str]:
        """The digests of the config's data sets, recorded when the store was created."""
        return dict(decode_attributes(self.group.attrs).get("data", {}))

    @property
    def code(self) -> dict[str, str] | None:
        """The digests of the user's files when the store was created, or None if they were not recorded."""
        return decode_attributes(self.group.attrs).get("code")

    @property
    def provenances(self) -> list[dict[str, Any]]:
        """The provenance of each version that has computed runs, in chronological order."""
        return list_provenances(self.group.attrs)

    @property
    def is_running_version(self) -> bool:
        """True if the running version is the latest version that the store records."""
        return is_running_version(self.provenances[-1])

    def list_chunks(self) -> list[Chunk]:
        """Return all chunks, finished or not."""
        return list(iterate_chunks(self.state.shape, self.state.chunks))

    def get_chunk_index(self, index: tuple[int, ...]) -> tuple[int, ...]:
        """Return the grid position of the chunk that contains a parameter combination."""
        return tuple(i // length for i, length in zip(index, self.state.chunks, strict=False))

    def read_states(self, chunk: Chunk) -> np.ndarray:
        """Return the state of each run of a chunk, or `MISSING_STATE` if the file cannot be read."""
        try:
            return np.asarray(self.state[chunk.slices])
        except Exception:  # zarr and its codecs raise various errors on a corrupted file
            return np.full(chunk.shape, MISSING_STATE, "int8")

    @property
    def missing_values(self) -> dict[str, np.ndarray]:
        """The values of each variable in a run that has not been simulated."""
        return {
            name: np.full(array.shape[len(self.state.shape) :], array.fill_value) for name, array in self.arrays.items()
        }

    def load_chunk_buffer(self, chunk: Chunk, states: np.ndarray) -> dict[str, np.ndarray]:
        """Return arrays for a chunk's variables, with stored values of finished runs and missing values elsewhere."""
        variables = make_missing_values(self.missing_values, chunk.shape)
        finished = states == DONE_STATE
        if finished.any():
            for name, values in variables.items():
                values[finished] = np.asarray(self.arrays[name][chunk.slices])[finished]
        return variables

    def write(self, chunk: Chunk, values: dict[str, np.ndarray], states: np.ndarray) -> None:
        """Write a chunk. Raises `StoreError` if writing fails, for example on a full disk."""
        try:
            self.write_arrays(chunk, values, states)
        except OSError as failure:
            problem = make_unwritable_file_error(self.path, failure)
            raise StoreError(f"{problem}. Finished chunks are saved; rerun the same command to resume") from None

    def write_arrays(
        self, chunk: Chunk, values: dict[str, np.ndarray], states: np.ndarray, made_by: np.ndarray | None = None
    ) -> None:
        """Write the arrays of a chunk: variables, then fingerprints, then states."""
        for name, array in self.arrays.items():
            array[chunk.slices] = values[name]
        finished = self.read_states(chunk) == DONE_STATE
        if self.fingerprint is not None:
            new = self._compute_fingerprints(values, chunk)
            # finished runs keep their fingerprints, so that corrupted numbers remain visible
            self.fingerprint[chunk.slices] = (
                np.where(finished, self.fingerprint[chunk.slices], new) if finished.any() else new
            )
        if self.made_by is not None:
            self._write_versions(chunk, finished, made_by)
        self.state[chunk.slices] = states

    def read_versions(self, chunk: Chunk) -> np.ndarray:
        """Return the version that has computed each run of a chunk, as an index into `provenances`."""
        return np.zeros(chunk.shape, "uint8") if self.made_by is None else np.asarray(self.made_by[chunk.slices])

    def _write_versions(self, chunk: Chunk, finished: np.ndarray, made_by: np.ndarray | None) -> None:
        """Record the version that has computed each run.

        By default this is the running version, for all runs that were not finished before.
        """
        before = self.read_versions(chunk)
        this = len(self.provenances) - 1 if self.is_running_version else UNKNOWN_VERSION_INDEX
        new = np.where(finished, before, this) if made_by is None else made_by
        if not np.array_equal(before, new):  # all zeros, the first version alone, need not be stored
            self.made_by[chunk.slices] = new

    def mark_missing(self, chunk: Chunk) -> None:
        """Mark all runs of a chunk as missing, and erase their values, which may be corrupted."""
        states = np.full(chunk.shape, MISSING_STATE, "int8")
        self.state[chunk.slices] = states
        self.write_arrays(chunk, make_missing_values(self.missing_values, chunk.shape), states)

    def faults(self, chunk: Chunk, states: np.ndarray) -> list[str]:
        """Describe each corrupted or missing file of a chunk with these states.

        Without fingerprints, an intact chunk at the wrong position is not detected.
        """
        if not (states != MISSING_STATE).any():
            return []
        values, faults = self._read_chunk(chunk)
        if faults or self.fingerprint is None:
            return faults
        try:
            stored = np.asarray(self.fingerprint[chunk.slices])
        except Exception:  # zarr and its codecs raise various errors
            return [f"{self._get_chunk_file(FINGERPRINT_VARIABLE, self.fingerprint, chunk)}: corrupted"]
        if (stored == self._compute_fingerprints(values, chunk))[states == DONE_STATE].all():
            return []
        return [f"{self._get_chunk_file('*', self.state, chunk)}: not the numbers that were computed for this place"]

    def count_states(self) -> dict[int, int]:
        """Count the runs in each state."""
        return count_states([self], self.list_chunks())

    def _read_chunk(self, chunk: Chunk) -> tuple[dict[str, np.ndarray], list[str]]:
        """Return the values of a chunk, and a description of each corrupted or missing file.

        zarr reads a missing file as missing values.
        """
        values, faults = {}, []
        for name, array in self.arrays.items():
            file = self._get_chunk_file(array.basename, array, chunk)
            try:
                values[name] = np.asarray(array[chunk.slices])
                if not (self.path / file).is_file():
                    faults.append(f"{file}: missing")
            except Exception:  # zarr and its codecs raise various errors
                faults.append(f"{file}: corrupted")
        return values, faults

    def _get_chunk_file(self, name: str, array: Any, chunk: Chunk) -> Path:
        """Return the file with a variable's values in a chunk, relative to the store."""
        position = (*self.get_chunk_index(chunk.first_index), chunk.seeds.start // self.state.chunks[-1])
        return get_chunk_file(self.path, name, position, array.ndim).relative_to(self.path)

    def _compute_fingerprints(self, values: dict[str, np.ndarray], chunk: Chunk) -> np.ndarray:
        return compute_fingerprints(values, self._number_runs(chunk), self._salt)

    def _number_runs(self, chunk: Chunk) -> np.ndarray:
        """Return the number of each run of a chunk, counted over the entire sweep.

        The seeds vary fastest, then the last axis.
        """
        numbers = np.zeros((), np.uint64)
        for length, index in zip(self.state.shape, np.ogrid[chunk.slices], strict=True):
            numbers = numbers * np.uint64(length) + index.astype(np.uint64)
        return numbers


def open_stores(path: Path) -> list[SweepStore]:
    """Open all stores of a simulation to read their chunks.

    Raises `StoreError` if no store exists, or if a shard belongs to another sweep.
    """
    paths = list_stores(path)
    if not paths:
        raise StoreError(f"{path}: no such result. `statmech run CONFIG` computes one")
    for store_path in paths:
        checksums.check_regular_files(store_path)
    first, *shards = stores = list(map(SweepStore, paths))
    for shard in shards:
        check_same_sweep(first.path, first.group.attrs, shard.path, shard.group.attrs)
    return stores


def count_states(stores: Sequence[SweepStore], chunks: Sequence[Chunk]) -> dict[int, int]:
    """Count the runs of chunks in each state. A run is done if one of the stores has it."""
    counts = dict.fromkeys((MISSING_STATE, DONE_STATE, FAILED_STATE), 0)
    for chunk in chunks:
        states = [store.read_states(chunk) for store in stores]
        is_done, has_failed = (
            np.any([part == state for part in states], axis=0) for state in (DONE_STATE, FAILED_STATE)
        )
        counts[DONE_STATE] += int(is_done.sum())
        counts[FAILED_STATE] += int((has_failed & ~is_done).sum())
        counts[MISSING_STATE] += int((~has_failed & ~is_done).sum())
    return counts


def make_missing_values(missing_values: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return arrays of variables for runs of this shape, from the values of one missing run."""
    return {name: np.broadcast_to(value, (*shape, *value.shape)).copy() for name, value in missing_values.items()}


def _has_run_layout(name: str, array: Any, state: Any) -> bool:
    """Return True if an array contains numbers for each run, in the same chunks of runs as the states."""
    dims, state_dims = (tuple(variable.metadata.dimension_names or ()) for variable in (array, state))
    required_dtype = np.dtype(
        {RUN_STATE_VARIABLE: "int8", FINGERPRINT_VARIABLE: "uint64", RUN_VERSION_VARIABLE: "uint8"}.get(
            name, array.dtype
        )
    )
    is_numeric = array.dtype.kind in "biuf" and array.dtype == required_dtype and state_dims[-1:] == ("seed",)
    prefix_pairs = ((dims, state_dims), (array.shape, state.shape), (array.chunks, state.chunks))
    fits_limit = count_chunks(state.shape, state.chunks) <= MAX_CHUNKS_PER_STORE
    return is_numeric and fits_limit and all(full[: len(prefix)] == prefix for full, prefix in prefix_pairs)


def _is_run_variable(name: str, array: Any) -> bool:
    return "seed" in (array.metadata.dimension_names or ()) and name not in (
        "seed",
        RUN_STATE_VARIABLE,
        FINGERPRINT_VARIABLE,
        RUN_VERSION_VARIABLE,
    )
