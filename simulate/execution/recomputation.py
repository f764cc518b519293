"""Recomputation of stored runs: samples of every version are simulated again and compared bit by bit.

Checksums and fingerprints show that a number has not changed since it was written. Only recomputation shows that
today's code, with the user's files of today, still gives the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulate.execution.units import Simulator, make_simulator, run_units
from statmech.errors import StatmechError
from statmech.results.chunks import Chunk
from statmech.results.store import DONE_STATE, describe_changed_inputs, format_version
from statmech.results.sweep_store import UNKNOWN_VERSION_INDEX, SweepStore
from statmech.results.verification import describe_chunk
from statmech.scenarios.cells import Cell
from statmech.scenarios.registry import scenario_from


class Recomputation(NamedTuple):
    """Number of recomputed runs, a line per differing parameter combination, and any obstacle."""

    runs: int
    difference_descriptions: list[str]
    obstacle: str = ""


def recompute(path: Path, max_cells: int) -> Recomputation:
    """Recompute the runs of up to `max_cells` random parameter combinations of every version in the store.

    Parameters
    ----------
    path
        The store of a simulation.
    max_cells
        Maximum number of parameter combinations per version. The seeds simulated together count as one.

    Returns
    -------
    Recomputation
        With an `obstacle` if data or code differ from the stored runs'.

    Examples
    --------
    >>> import tempfile
    >>> from statmech import Scenario
    >>> from simulate.execution.to_store import run_into
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "simulation.zarr"
    ...     _ = run_into(path, Scenario(rule="hebb", N=20, t=[1], seeds=4))
    ...     result = recompute(path, 1)
    >>> result.runs, result.difference_descriptions, result.obstacle
    (4, [], '')
    """
    store = SweepStore(path)
    try:
        scenario = scenario_from(store.config)
        missing = " ".join(sentence for _, sentence in scenario.find_input_file_problems())
        obstacle = missing or describe_changed_inputs(path, scenario, store.data, store.code)
    except StatmechError as failure:  # for example, a user's rule is not loaded
        obstacle = str(failure)
    if obstacle:
        return Recomputation(0, [], obstacle)
    simulator, runs, differing = make_simulator(scenario), 0, list[str]()
    cells = {cell.index: cell for cell in scenario.cells()}
    for sample, version in _draw_run_samples(store, max_cells, scenario.seeds_per_batch):
        index = sample.first_index
        stored, is_done = (
            store.load_chunk_buffer(sample, store.read_states(sample)),
            _find_done_runs_of_version(store, sample, version),
        )
        runs += int(is_done.sum())
        for names in _find_differing_variables(simulator, cells[index], sample, stored, is_done):
            made_by = (
                format_version(store.provenances[version]) if version != UNKNOWN_VERSION_INDEX else "an unknown version"
            )
            differing.append(
                f"{describe_chunk(store, sample)}: {names} differ from the values of this version; by {made_by}"
            )
    return Recomputation(runs, differing)


def _draw_run_samples(store: SweepStore, max_cells: int, seeds_together: int) -> Iterator[tuple[Chunk, int]]:
    """Draw random samples of stored runs, and yield each with its version.

    A sample has one parameter combination and the seeds that are simulated together.
    """
    rng, chunks = np.random.default_rng(0), store.list_chunks()
    for version in [*range(len(store.provenances)), UNKNOWN_VERSION_INDEX]:
        counts = [int(_find_done_runs_of_version(store, chunk, version).sum()) for chunk in chunks]
        numbers = rng.choice(sum(counts), min(max_cells, sum(counts)), replace=False)
        for number in sorted(numbers):
            chunk_number = int(np.searchsorted(np.cumsum(counts), number, side="right"))
            chunk, inside = chunks[chunk_number], int(number) - sum(counts[:chunk_number])
            *cell_index, seed = np.argwhere(_find_done_runs_of_version(store, chunk, version))[inside] + [
                side.start for side in chunk.slices
            ]
            first = int(seed) // seeds_together * seeds_together
            seeds = slice(first, min(first + seeds_together, chunk.slices[-1].stop))
            yield Chunk(chunk.number, (*(slice(int(i), int(i) + 1) for i in cell_index), seeds)), version


def _find_done_runs_of_version(store: SweepStore, chunk: Chunk, version: int) -> np.ndarray:
    """Return a mask of a chunk's finished runs that this version simulated."""
    finished: np.ndarray = (store.read_states(chunk) == DONE_STATE) & (store.read_versions(chunk) == version)
    return finished


def _find_differing_variables(
    simulator: Simulator, cell: Cell, sample: Chunk, stored: dict[str, np.ndarray], is_done: np.ndarray
) -> Iterator[str]:
    """Simulate a sample again, and yield the names of differing variables or the error raised."""
    wrong = set[str]()
    for _, results in run_units(simulator, simulator.prepare_units([cell], sample.seeds)):
        if isinstance(results, Exception):
            yield f"{type(results).__name__}: {results}: all variables"
            return
        for result in results:
            seeds = slice(result.seeds.start - sample.seeds.start, result.seeds.stop - sample.seeds.start)
            for name, values in result.values.items():
                stored_values = stored[name].reshape(
                    sample.seeds.stop - sample.seeds.start, *stored[name].shape[is_done.ndim :]
                )
                inner = tuple(slice(length) for length in values.shape[1:])
                mask = is_done.reshape(-1)[seeds]
                new_values = np.asarray(values).astype(stored_values.dtype)
                if stored_values[(seeds, *inner)][mask].tobytes() != new_values[mask].tobytes():
                    wrong.add(name)
    if wrong:
        yield ", ".join(sorted(wrong))
