"""Execution of a simulation: full sweep or shard, memory limit, local process or Dask workers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from statmech.errors import ConfigError
from statmech.results.shards import MAX_SHARDS

if TYPE_CHECKING:
    from simulate.execution.to_store import Outcome
    from statmech.cli.options import SimulateOptions

MIN_MEMORY_LIMIT, MAX_MEMORY_LIMIT = 2**20, 2**63  # bytes


@dataclass(frozen=True)
class ExecutionSettings:
    """Execution settings: shard (k, n), memory limit in bytes, Dask cluster, seconds to wait for workers."""

    shard: tuple[int, int] = (1, 1)
    memory: int | None = None
    dask: str | None = None
    patience: float | None = None

    def get_simulator(self) -> Callable[..., Outcome]:
        """Return the function that simulates a scenario into a store."""
        if self.dask is not None:
            from simulate.execution.clusters import run_on_cluster

            return partial(run_on_cluster, self.dask, patience=self.patience)
        from simulate.execution.to_store import run_into

        return partial(run_into, shard=self.shard, memory=self.memory)


def execution_from_options(options: SimulateOptions) -> ExecutionSettings:
    """Return the execution settings selected by command-line options.

    Raises `ConfigError` for options that exclude each other.
    """
    shard, memory = _parse_shard(options.shard), _parse_memory(options.memory)
    if options.dask is not None:
        _check_dask_options(options)
    return ExecutionSettings(shard, memory, options.dask, options.patience)


def _parse_shard(text: str | None) -> tuple[int, int]:
    """Return the shard (k, n) selected by --shard, or (1, 1) for the full sweep."""
    if text is None:
        return 1, 1
    if text == "slurm":
        return _get_slurm_shard()
    numbers = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if numbers is None or not 1 <= int(numbers[1]) <= int(numbers[2]) <= MAX_SHARDS:
        raise ConfigError(f"--shard {text}: must be K/N with integers 1 <= K <= N <= {MAX_SHARDS}, or slurm")
    return int(numbers[1]), int(numbers[2])


def _get_slurm_shard() -> tuple[int, int]:
    first, last, k = (os.environ.get(f"SLURM_ARRAY_TASK_{name}") for name in ("MIN", "MAX", "ID"))
    if first is None or last is None or k is None:
        raise ConfigError("--shard slurm: this is not a task of a job array (SLURM_ARRAY_TASK_ID is not set)")
    return int(k) - int(first) + 1, int(last) - int(first) + 1


def _parse_memory(text: str | None) -> int | None:
    from pydantic import ByteSize, TypeAdapter, ValidationError

    if text is None:
        return None
    try:
        size = TypeAdapter(ByteSize).validate_python(text)
    except (ValidationError, OverflowError):
        size = ByteSize(0)
    if not MIN_MEMORY_LIMIT <= size < MAX_MEMORY_LIMIT:
        raise ConfigError(f"--memory {text}: must be a size of at least 1 MiB, such as 500MB or 4GiB")
    return int(size)


def _check_dask_options(options: SimulateOptions) -> None:
    from simulate.execution.clusters import check_cluster_name

    if options.shard is not None or options.memory is not None:
        raise ConfigError("--dask distributes the sweep among workers with their own memory: omit --shard and --memory")
    check_cluster_name(str(options.dask))
