"""Shards: a simulation in several stores, each written by one process, that are read as one.

The store of a shard, `simulation.2-of-4.zarr`, has the coordinates of the entire sweep, and the runs that its process
has simulated. Readers combine all stores in a folder, including `simulation.zarr`: a run is done if one of them has it.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

MAX_SHARDS = 99_999
SHARD_NAME_PATTERN = re.compile(r"\.([1-9]\d{0,4})-of-([1-9]\d{0,4})\.zarr$")


def get_shard_path(path: Path, shard: tuple[int, int]) -> Path:
    """Return the store of shard (k, n) of the simulation at `path`, or `path` itself for a single shard.

    >>> get_shard_path(Path("simulation.zarr"), (2, 4)).name, get_shard_path(Path("simulation.zarr"), (1, 1)).name
    ('simulation.2-of-4.zarr', 'simulation.zarr')
    """
    k, n = shard
    return path if n == 1 else path.with_name(f"{path.stem}.{k}-of-{n}.zarr")


def list_stores(path: Path) -> list[Path]:
    """Return the existing stores of the simulation at `path`: itself and its shards."""
    shards = [store for store in path.parent.glob(f"{glob.escape(path.stem)}.*-of-*.zarr") if _get_shard(store)]
    return [store for store in (path, *sorted(shards, key=_get_shard)) if store.exists() or store.is_symlink()]


def list_absent_shards(stores: Iterable[Path]) -> list[str]:
    """Return the shards without a store next to the shards in `stores`.

    >>> list_absent_shards([Path("simulation.zarr"), Path("simulation.2-of-3.zarr")])
    ['1 of 3', '3 of 3']
    """
    shards = {shard for shard in map(_get_shard, stores) if shard}
    counts = sorted({shard[0] for shard in shards})
    return [f"{k} of {n}" for n in counts for k in range(1, n + 1) if (n, k) not in shards]


def _get_shard(store: Path) -> tuple[int, ...]:
    """Return the numbers (n, k) in the name of a shard's store, or an empty tuple for another name."""
    match = SHARD_NAME_PATTERN.search(store.name)
    return (int(match[2]), int(match[1])) if match else ()
