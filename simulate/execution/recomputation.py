"""Recomputation of stored runs: a sample of those of every version is simulated again and compared bit by bit.

Checksums and fingerprints say that a number is the one that was written. Only its recomputation says that the code of
today, with the user's files of today, still gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulate.execution.units import Simulator, run_units, simulator_of
from statmech.errors import StatmechError
from statmech.results.chunks import Chunk
from statmech.results.store import DONE, other_code, other_data, version_in_words
from statmech.results.sweep_store import UNKNOWN, SweepStore
from statmech.results.verification import name_of
from statmech.scenarios.cells import Cell
from statmech.scenarios.registry import scenario_from


class Recomputed(NamedTuple):
    """The number of runs that were recomputed, a line per parameter combination that differs, and why none was."""

    runs: int
    differing: list[str]
    obstacle: str = ""


def recompute(path: Path, most: int) -> Recomputed:
    """Simulate again the runs of `most` random parameter combinations of every version that has computed some.

    Parameters
    ----------
    path
        The store of a simulation.
    most
        Parameter combinations per version; of each, the seeds that are simulated together.

    Returns
    -------
    Recomputed
        With an `obstacle` if data or code are not those of the stored runs.

    Examples
    --------
    >>> import tempfile
    >>> from statmech import Scenario
    >>> from simulate.execution.to_store import run_into
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "simulation.zarr"
    ...     _ = run_into(path, Scenario(rule="hebb", N=20, t=[1], seeds=4))
    ...     recompute(path, 1)
    Recomputed(runs=4, differing=[], obstacle='')
    """
    store = SweepStore(path)
    try:
        scenario = scenario_from(store.config)
        missing = " ".join(sentence for _, sentence in scenario.data_problems())
        obstacle = missing or other_data(path, scenario, store.data) or other_code(path, scenario, store.code)
    except StatmechError as failure:  # a rule whose file is not loaded
        obstacle = str(failure)
    if obstacle:
        return Recomputed(0, [], obstacle)
    simulator, runs, differing = simulator_of(scenario), 0, list[str]()
    cells = {cell.index: cell for cell in scenario.cells()}
    for sample, version in _samples(store, most, scenario.together):
        index = sample.corner
        stored, done = store.buffer(sample, store.states(sample)), _of_version(store, sample, version)
        runs += int(done.sum())
        for names in _differing(simulator, cells[index], sample, stored, done):
            made_by = version_in_words(store.provenances[version]) if version != UNKNOWN else "an unknown version"
            differing.append(f"{name_of(store, sample)}: {names} differ from what this version computes; by {made_by}")
    return Recomputed(runs, differing)


def _samples(store: SweepStore, most: int, together: int) -> Iterator[tuple[Chunk, int]]:
    """Random pieces of chunks, of one parameter combination and of seeds that are simulated together; their version."""
    rng, chunks = np.random.default_rng(0), store.chunks()
    for version in [*range(len(store.provenances)), UNKNOWN]:
        counts = [int(_of_version(store, chunk, version).sum()) for chunk in chunks]
        chosen = rng.choice(sum(counts), min(most, sum(counts)), replace=False)
        for number in sorted(chosen):
            at = int(np.searchsorted(np.cumsum(counts), number, side="right"))
            chunk, inside = chunks[at], int(number) - sum(counts[:at])
            *place, seed = np.argwhere(_of_version(store, chunk, version))[inside] + [side.start for side in chunk.box]
            first = int(seed) // together * together
            seeds = slice(first, min(first + together, chunk.box[-1].stop))
            yield Chunk(chunk.number, (*(slice(int(i), int(i) + 1) for i in place), seeds)), version


def _of_version(store: SweepStore, chunk: Chunk, version: int) -> np.ndarray:
    """The finished runs of a version, among those of a chunk."""
    finished: np.ndarray = (store.states(chunk) == DONE) & (store.versions(chunk) == version)
    return finished


def _differing(
    simulator: Simulator, cell: Cell, sample: Chunk, stored: dict[str, np.ndarray], done: np.ndarray
) -> Iterator[str]:
    """The names of the variables that differ, if any; or the error that the simulation raises."""
    wrong = set[str]()
    for _, results in run_units(simulator, simulator.ready_units([cell], sample.seeds)):
        if isinstance(results, Exception):
            yield f"{type(results).__name__}: {results}: all variables"
            return
        for result in results:
            seeds = slice(result.seeds.start - sample.seeds.start, result.seeds.stop - sample.seeds.start)
            for name, values in result.values.items():
                was = stored[name].reshape(sample.seeds.stop - sample.seeds.start, *stored[name].shape[done.ndim :])
                inner = tuple(slice(length) for length in values.shape[1:])
                of_runs = done.reshape(-1)[seeds]
                is_now = np.asarray(values).astype(was.dtype)
                if was[(seeds, *inner)][of_runs].tobytes() != is_now[of_runs].tobytes():
                    wrong.add(name)
    if wrong:
        yield ", ".join(sorted(wrong))
