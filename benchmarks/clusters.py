"""The costs that docs/scaling.md assumes: of a run, a chunk, a check, a config, a task and a line of the log.

python benchmarks/clusters.py      (about a minute)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import simulate
from simulate.execution.dask_cluster import _connect_to_cluster
from simulate.execution.store_simulation import StoreLog, run_into
from simulate.execution.work_units import count_cores
from statmech import Scenario
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.stores.store_creation import create_store
from statmech.stores.sweep_chunks import DONE_STATE, SweepStore

MODEL: dict[str, Any] = {"rule": "hebb", "K": 3, "N": 1000, "t": [0, 1, 2, 5, 10]}


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def of_a_run() -> None:
    scenario = Scenario(**{**MODEL, "rule": ["hebb", "adatron"]}, seeds=256)
    simulate.run(scenario)
    took = min(seconds(lambda: simulate.run(scenario)) for _ in range(3))
    print(f"run (K = 3, N = 1000, t = 10)   {1e3 * took * count_cores() / 512:.2f} ms of a core")


def of_a_chunk(folder: Path) -> None:
    scenario = Scenario(**MODEL, eta=np.linspace(0.1, 2, 100).tolist(), seeds=640)
    store = create_store(folder / "chunk.zarr", scenario, {})
    chunks = store.list_chunks()[:40]
    shape, rng = chunks[0].shape, np.random.default_rng(0)
    empty = store.load_chunk_buffer(chunks[0], store.read_states(chunks[0]))
    values = {name: rng.random(array.shape) for name, array in empty.items()}
    states = np.full(shape, DONE_STATE, "int8")
    wrote = np.median([seconds(lambda chunk=chunk: store.write(chunk, values, states)) for chunk in chunks])
    read = np.median([seconds(lambda chunk=chunk: store.faults(chunk, states)) for chunk in chunks])
    names = [*store.arrays, "fingerprint", "state"]
    files = [file for name in names for file in (store.path / name / "c").rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files) / len(chunks)
    print(f"chunk of {shape[0]} x {shape[1]} runs           {len(files) / len(chunks):.0f} files, {size:,.0f} bytes")
    print(f"  written, read                 {1e3 * wrote:.1f} ms, {1e3 * read:.1f} ms")
    print(
        f"  its state read                {1e3 * seconds(lambda: [store.read_states(c) for c in chunks]) / 40:.2f} ms"
    )
    print(f"store opened                    {1e3 * seconds(lambda: SweepStore(store.path)):.1f} ms")


def of_a_config() -> None:
    for count in (1_000, 10_000, 100_000):
        config = Scenario(**MODEL, eta=np.linspace(0.1, 2, count).tolist(), seeds=2).config()
        took = seconds(lambda config=config: list(scenario_from(config).cells()))
        print(f"config, {count:>7,} combinations  {took:.3f} s to read")


def of_a_task() -> None:
    with ExitStack() as closing:
        client, _ = _connect_to_cluster("local:2", closing)
        client.gather(client.map(abs, range(50)))
        took = seconds(lambda: client.gather([client.submit(abs, -i, pure=False) for i in range(2000)]))
    print(f"task of Dask                    {took / 2:.2f} ms")


def of_a_line(folder: Path) -> None:
    log = StoreLog(folder / "lines.zarr", None)
    took = seconds(lambda: [log(event="playing", block=i) for i in range(1000)])
    print(f"line of the log                 {took:.3f} ms")


def of_a_check(folder: Path) -> None:
    scenario = Scenario(rule="hebb", eta=np.linspace(0.1, 2, 40).tolist(), K=1, N=50, t=[0, 1], seeds=640)
    run_into(folder / "again.zarr", scenario)
    count = len(SweepStore(folder / "again.zarr").list_chunks())
    took = seconds(lambda: run_into(folder / "again.zarr", scenario))
    print(f"check of a done chunk            {1e3 * took / count:.1f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        of_a_run()
        of_a_chunk(Path(scratch))
        of_a_config()
        of_a_task()
        of_a_line(Path(scratch))
        of_a_check(Path(scratch))
