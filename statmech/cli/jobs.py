"""Jobs of the commands: a scenario read from a config, and the folder of its results.

Execution of a simulation: full sweep or shard, memory limit, local process or Dask workers.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import ConfigError, Problem
from statmech.stores.shards import MAX_SHARDS

if TYPE_CHECKING:
    from simulate.execution.store_runs import Outcome
    from statmech.cli.options import ConfigOptions, SimulateOptions
    from statmech.keys.figure_key import Composition
    from statmech.keys.scenario import AbstractScenario


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
            from simulate.execution.dask_cluster import run_on_cluster

            return partial(run_on_cluster, self.dask, patience=self.patience)
        from simulate.execution.store_runs import run_into

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
    from simulate.execution.dask_cluster import check_cluster_name

    if options.shard is not None or options.memory is not None:
        raise ConfigError("--dask distributes the sweep among workers with their own memory: omit --shard and --memory")
    check_cluster_name(str(options.dask))


@dataclass(frozen=True)
class Job:
    """The scenario of a config with its figure, its results folder, and the command that computes it."""

    name: str
    scenario: AbstractScenario
    figure: str | Composition
    folder: Path
    command: str = ""  # shell command, empty if stored results are only redrawn
    source: str = ""  # command-line arguments: config, overrides and --out

    @property
    def simulation_store(self) -> Path:
        """The path of the simulation store."""
        return self.folder / "simulation.zarr"

    @property
    def theory_store(self) -> Path:
        """The path of the theory store."""
        return self.folder / "theory.zarr"


def job_from_source(source: ConfigOptions, *, data: bool = False) -> Job:
    """Make a job from a config and its overrides.

    With `data`, all data sets of the config must be available.
    """
    import figures
    from statmech.config import config_files as configs

    path = configs.find_config(source.config)
    scenario = configs.load(source.config, source.all_overrides, data=data, check=_find_named_figure_problems)
    figure = figures.choose_figure(scenario.figure, configs.get_shipped_config_name(source.config), scenario.CHOICE)
    folder = source.out or (path if path.is_dir() else Path("results") / path.stem)
    arguments = shlex.join([str(source.config), *source.all_overrides])
    command = "" if path.is_dir() else f"statmech run {arguments}"
    out = f" --out {shlex.quote(str(source.out))}" if source.out else ""
    return Job(path.absolute().stem, scenario, figure, folder, command, arguments + out)


def _find_named_figure_problems(keys: dict[str, Any]) -> Iterator[Problem]:
    """Yield a problem if the named figure does not exist or does not support these config keys."""
    import figures
    from statmech.kinds.registry import add_default_population, find_selecting_keys

    figure, choice = keys.get("figure"), next(iter(find_selecting_keys({*add_default_population(keys)})), None)
    if isinstance(figure, str) and choice is not None:
        try:
            figures.choose_figure(figure, "", choice)
        except ConfigError as failure:
            yield ("figure",), str(failure).removeprefix("figure: ")


def set_data_folder(folder: Path | None) -> None:
    """Set the folder that contains the data sets."""
    from statmech.inputs.data_sets import DATA_FOLDER_ENV_VARIABLE

    if folder is not None:
        if not folder.is_dir():
            raise ConfigError(f"--data-dir {folder}: no such folder")
        os.environ[DATA_FOLDER_ENV_VARIABLE] = str(folder)
