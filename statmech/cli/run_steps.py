"""The steps of a run: simulate, solve, compare, draw.

Each step reuses stored results, and writes the missing ones. Logged events of a run become messages to the user. The
execution settings select the full sweep or a shard, a memory limit, and the local process or Dask workers.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from statmech.cli.terminal_output import print
from statmech.errors import ConfigError, DamagedStoreError
from statmech.runtime.user_code_and_provenance import format_version, is_running_version
from statmech.stores.dataset import decode_attributes
from statmech.stores.zarr_store import MAX_SHARDS, get_shard_path, list_stores

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr
    from matplotlib.figure import Figure

    from simulate.execution.store_simulation import Outcome
    from statmech.cli.options_and_jobs import Job, SimulateOptions
    from statmech.keys.figure_key import Composition
    from statmech.keys.scenario import AbstractScenario
    from statmech.results.results import Results
    from statmech.stores.store_status import Verification


MIN_MEMORY_LIMIT, MAX_MEMORY_LIMIT = 2**20, 2**63  # bytes
UP_TO_DATE_MESSAGE = "{} is up to date (use --fresh to recompute it)"


@dataclass(frozen=True)
class ExecutionSettings:
    """Execution settings: shard (k, n), memory limit in bytes, Dask cluster, seconds to wait for workers."""

    shard: tuple[int, int] = (1, 1)
    memory: int | None = None
    dask: str | None = None
    patience: float | None = None

    def get_simulator(self) -> Callable[..., Outcome]:
        """Return the function that a run calls to simulate into its store: in this process or on a cluster."""
        if self.dask is not None:
            from simulate.execution.dask_cluster import run_on_cluster

            return partial(run_on_cluster, self.dask, patience=self.patience)
        from simulate.execution.store_simulation import run_into

        return partial(run_into, shard=self.shard, memory=self.memory)


def execution_from_options(options: SimulateOptions) -> ExecutionSettings:
    """Return the execution settings of a run, from its options.

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


def describe_event(event: dict[str, Any], scenario: AbstractScenario) -> str:
    """Return the message that a run prints for a logged event, or an empty string if only programs need the event."""
    match event["event"]:
        case "failed":
            runs = f"{_format_grid_point(scenario, event['cell'])}seeds {_format_seeds(event['seeds'])}"
            return f"{runs}: attempt {event['attempt']} failed: {event['error']}"
        case "damaged":
            return f"chunk {event['block']} is corrupted and is recomputed ({'; '.join(event['faults'][:3])})"
        case "restored":
            return f"{event['file']} is corrupted and is rewritten"
        case "grown":
            return "\n".join(["the sweep has grown, and its stored runs are kept:", *event["differences"]])
        case "version":
            stored_version, running_version = format_version(event["stored"]), format_version(event["running"])
            versions = f"the stored runs are by {stored_version}, new ones by {running_version}"
            return f"{versions}; `statmech verify` recomputes some of each"
    return ""


def _format_grid_point(scenario: AbstractScenario, index: list[int]) -> str:
    """Format the parameters at a grid point as text, such as "rule hebb, K 3, "."""
    axes = zip(index, scenario.dimensions.values(), strict=True)
    values = {name: values[i] for i, group in axes for name, values in group.items()}
    return "".join(f"{name} {value if isinstance(value, str) else f'{value:g}'}, " for name, value in values.items())


def _format_seeds(seeds: list[int]) -> str:
    """Format the seeds in a message of a run, consecutive seeds as a range such as "0 to 63"."""
    first, last = seeds[0], seeds[-1]
    if len(seeds) > 1 and last - first + 1 == len(seeds):
        return f"{first} to {last}"
    return ", ".join(map(str, seeds))


def simulate_missing_runs(job: Job, execution: ExecutionSettings, options: SimulateOptions) -> Outcome:
    """Simulate the missing runs of a job, with progress and messages."""
    import logging  # imported here: commands without Zarr start faster

    from simulate.execution.work_units import remarks
    from statmech.cli.options_and_jobs import RunOptions
    from statmech.runtime.progress_bar import show_progress_bar

    # Zarr raises only one of several failed writes, and asyncio would print the others
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    # left to the comparison at the end, which prints it as well
    verdict = job.scenario.expected_deviation_reason if isinstance(options, RunOptions) and not options.as_json else ""
    for remark in remarks(job.scenario):
        if remark != verdict:
            print(remark, file=sys.stderr)
    events: list[dict[str, Any]] = []
    with show_progress_bar("simulation", writes_log=True) as bar:

        def follow(event: dict[str, Any]) -> None:
            events.append(event)
            if event["event"] == "playing":
                bar.show_part(f"chunk {event['block']}")
            if options.as_json:
                print(json.dumps(event), flush=True)
            elif event["event"] == "begun" and event["blocks"] and not sys.stderr.isatty():  # no progress bar in a file
                print(f"simulating {event['runs'] - event['done']:,} runs", file=sys.stderr, flush=True)
            elif sentence := describe_event(event, job.scenario):
                print(sentence, file=sys.stderr)

        outcome = execution.get_simulator()(
            job.simulation_store,
            job.scenario,
            fresh=options.fresh,
            rerun_failed=options.rerun_failed,
            figure=job.figure,
            progress=bar.progress,
            tell=follow,
        )
    begin_event = next(event for event in events if event["event"] == "begun")
    store = get_shard_path(job.simulation_store, execution.shard)
    print(f"wrote {store}" if begin_event["blocks"] else UP_TO_DATE_MESSAGE.format(store), file=sys.stderr)
    return outcome


def recompute_run_sample(folder: Path, verification: Verification, combinations: int) -> Verification:
    """Recompute a sample of runs for a job, and add the outcome to the verification."""
    from simulate.execution.store_simulation import recompute

    path = folder if folder.suffix == ".zarr" else folder / "simulation.zarr"
    outcomes = {store: recompute(store, combinations) for store in list_stores(path)}
    faults = [f"{store}: {line}" for store, outcome in outcomes.items() for line in outcome.difference_descriptions]
    obstacles = dict.fromkeys(outcome.obstacle for outcome in outcomes.values() if outcome.obstacle)
    remarks = tuple(f"no run was recomputed: {obstacle}" for obstacle in obstacles)
    recomputed = sum(outcome.runs for outcome in outcomes.values())
    return verification._replace(recomputed=recomputed, faults=faults, remarks=remarks)


def load_stored_theory(job: Job, fresh: bool) -> xr.Dataset | None:
    """Return the stored theory of a job, or None if it must be computed.

    Raises `StoreError` for the theory of another config. The theory of a smaller sweep, or of another version, whose
    equations may differ, is recomputed.
    """
    from statmech.errors import StoreError
    from statmech.stores import stored_theory, zarr_store
    from statmech.stores.store_creation import is_extension

    def refuse(stored: AbstractScenario) -> None:
        if not is_extension(job.scenario, stored.config()):
            changed = stored_theory.list_theory_differences(job.scenario, stored)
            raise StoreError(
                zarr_store.describe_other_config(job.theory_store, changed, zarr_store.get_replacement_hint())
            )

    try:
        dataset = None if fresh else stored_theory.load_theory(job.theory_store, job.scenario, refuse)
    except DamagedStoreError as failure:
        print(f"{failure}; it is recomputed", file=sys.stderr)
        return None
    if dataset is None:
        return None
    made_by = decode_attributes(dataset.attrs)
    if not is_running_version(made_by):
        print(f"{job.theory_store}: is by {format_version(made_by)}; it is recomputed", file=sys.stderr)
        return None
    zarr_store.record_figure(job.theory_store, job.figure)
    print(UP_TO_DATE_MESSAGE.format(job.theory_store), file=sys.stderr)
    return dataset


def solve_and_save_theory(job: Job) -> xr.Dataset:
    """Solve the scenario of a job and store its theory."""
    import theory
    from statmech.runtime.progress_bar import show_progress_bar
    from statmech.stores import zarr_store

    with show_progress_bar("theory", writes_log=True) as bar:
        dataset = theory.solve(job.scenario, bar.progress)
    if "edges" in dataset.attrs:
        print(dataset.attrs["edges"], file=sys.stderr)
    zarr_store.save(dataset, job.theory_store, job.figure)
    print(f"wrote {job.theory_store}", file=sys.stderr)
    return dataset


def load_stored_results(job: Job) -> Results:
    """Return the stored results of a job, and print which runs are missing or have failed."""
    from statmech.stores.store_status import MAX_LISTED_SHARDS, read_status
    from statmech.stores.stored_theory import load_theory
    from statmech.stores.zarr_store import load_simulation

    simulation = load_simulation(job.simulation_store, job.scenario)
    theory = load_theory(job.theory_store, job.scenario)
    results = _make_results(job, simulation, theory)
    if not results.complete:
        raise ConfigError(f"{job.folder}: {_describe_missing_results(job, results)}")
    counts = read_status(job.simulation_store)
    if counts["missing"] or counts["failed"]:
        runs = f"{counts['missing']} runs are missing and {counts['failed']} have failed"
        shards = f" (no store of shard {', '.join(counts['absent'][:MAX_LISTED_SHARDS])})" if counts["absent"] else ""
        print(f"{job.simulation_store}: {runs}; they are omitted{shards}", file=sys.stderr)
    return replace(results, status=counts)


def _describe_missing_results(job: Job, results: Results) -> str:
    """Return a message that names the missing results of a job and the command to compute them."""
    if results.simulation is None:
        lacks_theory = results.theory is None and not job.scenario.on_data
        missing_parts, command = ("simulation and no theory", "run") if lacks_theory else ("simulation", "simulate")
    elif job.scenario.unsolved:
        return f"a simulation alone: {job.scenario.unsolved}"
    else:
        missing_parts, command = "theory", "theory"
    return (
        f"no {missing_parts}. `statmech {command} {job.source}` computes {'them' if 'and' in missing_parts else 'it'}"
    )


def _make_results(job: Job, simulation: xr.Dataset | None, theory: xr.Dataset | None) -> Results:
    """Combine the simulation and theory of a job with its folder and figure."""
    from statmech.results.results import Results

    results = Results(job.scenario, simulation, theory, name=job.name, figure=job.figure, folder=job.folder)
    return replace(results, command=job.command)


def can_compare_and_draw(job: Job, execution: ExecutionSettings) -> bool:
    """Return True if a run has complete results, small enough to compare and draw.

    A shard is a part of the results, and all results must fit into memory. Otherwise the reason is printed.
    """
    from simulate.execution.work_units import can_draw_within_memory
    from statmech.stores.sweep_cost import estimate_cost

    if execution.shard[1] > 1:
        print(f"after the other shards, `statmech run {job.source}` compares and draws", file=sys.stderr)
        return False
    if not can_draw_within_memory(job.scenario, execution.memory):
        size = estimate_cost(job.scenario).dataset_bytes / 2**30
        excess = f"{size:.3g} GiB of results exceed the available memory and were not plotted"
        print(f"{excess}; they are stored in {job.simulation_store}", file=sys.stderr)
        return False
    return True


def compare_and_draw(job: Job, theory: xr.Dataset | None, formats: frozenset[str]) -> None:
    """Compare the results of a job with theory and draw both, solving the theory if it is not given."""
    from statmech.cli import terminal_output
    from statmech.stores.zarr_store import load_simulation

    if job.scenario.unsolved and not job.scenario.on_data:
        print(f"{job.scenario.unsolved}: simulated, but neither solved nor drawn", file=sys.stderr)
        return
    simulation = load_simulation(job.simulation_store, job.scenario)
    if theory is None and not job.scenario.on_data:
        theory = solve_and_save_theory(job)
    results = _make_results(job, simulation, theory)
    terminal_output.print_comparison_tables(results)
    draw_results(results, formats)


def draw_results(results: Results, formats: frozenset[str] | None = None, folder: Path | None = None) -> None:
    """Draw the results of a job in the given formats, by default in all formats and into the folder of the results.

    Formats that the folder already has are drawn again: a picture of older results next to a new one would mislead. A
    figure with a film is drawn as GIF as well.
    """
    import figures
    from figures import captions, matplotlib_drawing

    assert results.figure is not None
    assert results.folder is not None
    choice = results.figure
    name, figure, reason = figures.draw_with_fallback(choice, results)
    if reason:
        print(f"{reason}; drawing {name}", file=sys.stderr)
    stem = (folder or results.folder) / name
    pictures = _save_figure(figure, stem, formats)
    frames = figures.get_film_frames(name, results) if isinstance(choice, str) else None
    film = [] if frames is None else matplotlib_drawing.save_film(frames, stem)
    for file in (
        *pictures,
        *captions.write_caption(results, name if reason or isinstance(choice, str) else choice, stem),
        *film,
    ):
        print(f"wrote {file}", file=sys.stderr)


def draw_several_results(
    results_by_label: dict[str, Results], composition: Composition, folder: Path, formats: frozenset[str] | None
) -> None:
    """Draw the results of several jobs in one figure, and save the figure and its caption in a folder."""
    import figures
    from figures import captions

    figure = figures.compose(results_by_label, composition)
    stem = folder / "_".join([*results_by_label, composition.file_name])
    caption = captions.write_caption_text(captions.make_joint_caption(results_by_label, composition), stem)
    for file in (*_save_figure(figure, stem, formats), *caption):
        print(f"wrote {file}", file=sys.stderr)


def _save_figure(figure: Figure, stem: Path, formats: frozenset[str] | None) -> list[Path]:
    """Save the figure of a job in the given formats (default: all) and in every format that its folder has."""
    from figures import style
    from statmech.runtime import files

    chosen_formats = [
        suffix
        for suffix in style.FIGURE_FORMATS
        if formats is None or suffix in formats or files.add_suffix(stem, suffix).exists()
    ]
    return style.save_figure(figure, stem, chosen_formats)


def exit_if_runs_failed(outcome: Outcome) -> None:
    """Exit with code 1 if a run has failed."""
    if outcome.failed:
        print(f"{outcome.failed} runs have failed three times; --rerun-failed retries them", file=sys.stderr)
        raise typer.Exit(1)
