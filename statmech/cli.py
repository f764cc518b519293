"""The `statmech` command. Heavy imports stand inside the commands, so that help and config errors answer at once."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from statmech.errors import ConfigError, StatmechError

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

    from statmech.sweep import Sweep

app = typer.Typer(
    help="Write a learning model once; play it out, solve it, and lay one over the other.",
    epilog="Start with: statmech run ensemble. Add --help to any command for its examples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
INTERRUPTED = 130
out, err = Console(), Console(stderr=True)

Config = Annotated[str, typer.Argument(metavar="CONFIG", help="A YAML file, or the name of a shipped config.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Override keys: K=5 or, an axis, K=1,3,5."),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="The same as an override; may be repeated.")
]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of real data. [default: STATMECH_DATA, else OpenML]")
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for results. [default: results/NAME]")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute anew, replacing what is stored.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say how many cells, bytes and seconds, and stop.")]


@dataclass(frozen=True)
class Job:
    """A config read, and where its results go."""

    name: str
    scenario: Sweep
    figure: str
    folder: Path
    fresh: bool = False

    def path(self, part: str) -> Path:
        return self.folder / f"{part}.zarr"


@app.command()
def run(
    config: Config,
    overrides: Overrides = None,
    out: Out = None,
    fresh: Fresh = False,
    dry_run: DryRun = False,
    settings: Settings = None,
    data_dir: DataDir = None,
) -> None:
    """Simulate, solve, compare and draw, all from one config.

    Examples: `statmech run ensemble`, `statmech run my.yaml K=1,3,5 seeds=100 --out results/mine`.
    """
    _use_data(data_dir)
    job = _job(config, overrides, out, fresh, settings)
    if dry_run:
        return _estimate(job)
    if job.scenario.on_data:
        study = _stored(job, "simulation") or _simulate(job)
        _judge(study)
        return _draw(job, study, None)
    # refuse before anything is computed
    simulation, theory = (_stored(job, part) for part in ("simulation", "theory"))
    simulation = simulation or _simulate(job)
    if job.scenario.unsolved:
        print(f"{job.scenario.unsolved}: simulated, but not solved and drawn", file=sys.stderr)
        return
    theory = theory or _solve(job)
    _compare(simulation, theory)
    _draw(job, simulation, theory)


@app.command()
def simulate(
    config: Config,
    overrides: Overrides = None,
    out: Out = None,
    fresh: Fresh = False,
    dry_run: DryRun = False,
    settings: Settings = None,
    data_dir: DataDir = None,
) -> None:
    """Play a scenario out at finite N, and store it as OUT/simulation.zarr.

    Example: `statmech simulate ensemble N=1000 seeds=64`.
    """
    _use_data(data_dir)
    job = _job(config, overrides, out, fresh, settings)
    if dry_run:
        return _estimate(job)
    _stored(job, "simulation") or _simulate(job)


@app.command()
def theory(
    config: Config, overrides: Overrides = None, out: Out = None, fresh: Fresh = False, settings: Settings = None
) -> None:
    """Solve a scenario in the limit of large N, and store it as OUT/theory.zarr.

    Example: `statmech theory ensemble t=1e6`.
    """
    job = _job(config, overrides, out, fresh, settings)
    _stored(job, "theory") or _solve(job)


@app.command()
def compare(config: Config, overrides: Overrides = None, out: Out = None, settings: Settings = None) -> None:
    """Tell how far the stored simulation and theory of a config are apart, in standard errors.

    Example: `statmech compare ensemble` after `statmech run ensemble`.
    """
    job = _job(config, overrides, out, settings=settings)
    if job.scenario.unsolved:
        raise ConfigError(f"{job.name}: {job.scenario.unsolved}: there is nothing to compare")
    _compare(*_both(job))


@app.command()
def figure(
    config: Annotated[str | None, typer.Argument(metavar="CONFIG", help="As for run.")] = None,
    overrides: Overrides = None,
    out: Out = None,
    settings: Settings = None,
    show: Annotated[bool, typer.Option("--list", help="List the published figures and stop.")] = False,
) -> None:
    """Draw the stored simulation and theory of a config again, as PNG, SVG and PDF.

    Examples: `statmech figure --list`, `statmech figure ensemble`, `statmech figure ensemble figure=overlay`.
    """
    from figures import FIGURES

    if show:
        for choice, figures_of in FIGURES.items():
            print(f"of a config with `{choice}`:")
            for name, told in figures_of.items():
                print(f"  {name:<22}{told}")
    elif config is None:
        raise ConfigError("figure needs a CONFIG, or --list")
    else:
        job = _job(config, overrides, out, settings=settings)
        _draw(job, *_both(job))


@app.command()
def info() -> None:
    """Show versions, devices, rules and folders."""
    import jax

    from statmech import config as configs
    from statmech import store
    from statmech.learners import LEARNERS
    from statmech.rules import RULES

    made = store.provenance()
    rows = {
        **made["versions"],
        "python": made["python"],
        "machine": made["machine"],
        "devices": ", ".join(str(device) for device in jax.devices()),
        "rules": ", ".join(RULES),
        "learners": ", ".join(LEARNERS),
        "configs": f"{configs.SHIPPED}: {', '.join(configs.shipped())}",
        "results": str(Path("results").absolute()),
    }
    for name, value in rows.items():
        print(f"{name:<10}{value}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of a config, for editors: statmech schema > statmech.schema.json."""
    from statmech.kinds import schema as config_schema

    print(json.dumps(config_schema(), indent=2))


def main() -> None:
    """Run the command; a problem a user can mend is one message and exit code 2."""
    # diffrax's run-time checks call back into Python, and JAX keeps no such program in its cache; theory checks itself
    os.environ.setdefault("EQX_ON_ERROR", "nan")
    try:
        app()
    except StatmechError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
    except SystemExit as done:
        if done.code != INTERRUPTED:  # which is how typer ends after Ctrl-C
            raise
        print("interrupted; nothing half-written is kept", file=sys.stderr)
        sys.stderr.flush()
        os._exit(INTERRUPTED)  # at once: an ordinary exit would wait for the programs still running in threads


def _job(
    given: str,
    overrides: list[str] | None,
    out: Path | None,
    fresh: bool = False,
    settings: list[str] | None = None,
) -> Job:
    import figures
    from statmech import config as configs

    name = configs.find(given).stem
    scenario = configs.load(given, [*(overrides or []), *(settings or [])])
    return Job(
        name, scenario, figures.named(scenario.figure, name, scenario.CHOICE), out or Path("results") / name, fresh
    )


def _stored(job: Job, part: str) -> xr.Dataset | None:
    from statmech import store

    dataset = store.kept(job.path(part), job.scenario, job.fresh)
    if dataset is not None:
        print(f"{job.path(part)} is of this config and is kept (--fresh computes it anew)", file=sys.stderr)
    return dataset


def _both(job: Job) -> tuple[xr.Dataset, Any]:
    from statmech import store

    simulation, theory = (store.kept(job.path(part), job.scenario, False) for part in ("simulation", "theory"))
    if simulation is None or (theory is None and not job.scenario.on_data):
        raise ConfigError(f"{job.folder}: has no simulation and theory yet. `statmech run {job.name}` makes them")
    return simulation, theory


def _simulate(job: Job) -> xr.Dataset:
    from simulate import run
    from simulate.run import remarks

    for remark in remarks(job.scenario):
        print(remark, file=sys.stderr)
    return _made(job, "simulation", lambda progress: run(job.scenario, progress))


def _solve(job: Job) -> xr.Dataset:
    from theory import solve

    return _made(job, "theory", lambda progress: solve(job.scenario, progress))


def _made(job: Job, part: str, make: Callable[[Any], xr.Dataset]) -> xr.Dataset:
    from statmech import store

    with _progress(part) as progress:
        dataset = make(progress)
    store.save(dataset, job.path(part))
    print(f"wrote {job.path(part)}", file=sys.stderr)
    return dataset


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; silence elsewhere."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _use_data(folder: Path | None) -> None:
    from statmech.data import FOLDER

    if folder is not None:
        if not folder.is_dir():
            raise ConfigError(f"--data-dir {folder}: no such folder")
        os.environ[FOLDER] = str(folder)


def _judge(study: xr.Dataset) -> None:
    """The tables of a study on data: one a data set, each cell a line."""
    from figures.tables import study_tables

    for table, notes in study_tables(study):
        out.print(table)
        for note in notes:
            out.print(note, highlight=False, markup=False)


def _compare(simulation: xr.Dataset, theory: xr.Dataset) -> None:
    from statmech import compare

    bounds = compare.bounded(simulation, theory)
    if bounds:
        _compare_bounds(simulation, theory)
    if set(theory.data_vars) - set(bounds):
        _compare_values(simulation, theory)


def _compare_bounds(simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """Runs that keep the bounds, of how many, and in brackets the ratio nearest to the bound or furthest beyond."""
    from statmech import compare

    found, converged = compare.kept(simulation, theory), compare.converged(simulation)
    table = _table("runs that keep theory's bounds (simulation / bound of the nearest)", found[0][0], found[0][1])
    if converged is not None:
        table.add_column("converged", justify="right")
    for at, (cell, bounds) in list(enumerate(found))[:MOST_ROWS]:
        share = [] if converged is None else [_share(*converged[at])]
        told = [f"{_share(kept.runs, kept.of)} ({kept.ratio:.2g})" if kept.of else "-" for kept in bounds.values()]
        table.add_row(*_told(cell), *told, *share)
    out.print(table)
    if len(found) > MOST_ROWS:
        print(f"the first {MOST_ROWS} of {len(found)} cells")
    broken = {name: sum(bounds[name].of - bounds[name].runs for _, bounds in found) for name in found[0][1]}
    runs = ", ".join(f"{name} {some}" for name, some in broken.items() if some)
    print(f"{theory.attrs['source']}. Broken: {runs or 'none'}.")


def _table(title: str, cell: dict[str, Any], variables: Iterable[str]) -> Table:
    """An empty table: a column for each coordinate of a cell and each variable."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in cell:
        table.add_column(name)
    for variable in variables:
        table.add_column(_HEADINGS.get(variable, variable), justify="right")
    return table


def _told(cell: dict[str, Any]) -> list[str]:
    return [value if isinstance(value, str) else f"{value:g}" for value in cell.values()]


def _compare_values(simulation: xr.Dataset, theory: xr.Dataset) -> None:
    from statmech import compare

    if simulation.sizes["seed"] < 2:
        print("one seed has no standard error: nothing to compare", file=sys.stderr)
        return
    distance = compare.distances(simulation, theory)
    rows, bound = list(compare.rows(distance)), compare.bound(distance)
    title = "simulation - theory, in standard errors (the largest over all moments)"
    table = _table(title, rows[0].cell, map(str, distance.data_vars))
    converged = compare.converged(simulation)
    if converged is not None:
        table.add_column("converged", justify="right")
    for at in _shown(rows):
        share = [] if converged is None else [_share(*converged[at])]
        table.add_row(*_told(rows[at].cell), *(_mark(z, bound) for z in rows[at].largest.values()), *share)
    out.print(table)
    if len(rows) > MOST_ROWS:
        print(f"the {MOST_ROWS} furthest apart of {len(rows)} cells")
    beyond = sum(abs(z) > bound for row in rows for z in row.largest.values())
    told = f"Where theory is right, all lie within {bound:.1f} in 99 of 100 sweeps. Here {beyond or 'none'} lie beyond."
    print(told)
    if beyond:
        print("The theory is that of N -> infinity; at finite N the means differ by O(1/N).")
    if converged is not None and any(some < of for some, of in converged):
        print(
            "Where not all runs converged, theory is that of learners that have; runs without a student are left out."
        )


MOST_ROWS = 40  # of a table


def _shown(rows: list[Any]) -> list[int]:
    """Which rows of a table: all, or those furthest apart."""

    def distance(at: int) -> float:
        return max((abs(z) for z in rows[at].largest.values() if z == z), default=0.0)

    return sorted(sorted(range(len(rows)), key=distance, reverse=True)[:MOST_ROWS])


def _share(some: int, of: int) -> str:
    return f"{some}/{of}" if some == of else f"[bold red]{some}/{of}[/]"


_HEADINGS = {"eps_g_majority_vote": "eps_g vote", "eps_g_weight_mean": "eps_g mean"}


def _mark(z: float, bound: float) -> str:
    if z != z:
        return "-"
    return f"[bold red]{z:+.1f}[/]" if abs(z) > bound else f"{z:+.1f}"


def _draw(job: Job, simulation: xr.Dataset, theory: xr.Dataset | None) -> None:
    import figures
    from figures import style

    name = figures.fitting(job.figure, simulation)
    if name != job.figure:
        print(f"the figure {job.figure} has no place for all of these axes; drawing {name}", file=sys.stderr)
    for file in style.save(figures.draw(name, simulation, theory), job.folder / name):
        print(f"wrote {file}", file=sys.stderr)


def _estimate(job: Job) -> None:
    from statmech.cost import estimate

    cost = estimate(job.scenario)
    print(f"cells    {cost.cells} ({' x '.join(f'{n} {name}' for name, n in job.scenario.shape.items()) or 'one'})")
    print(f"runs     {cost.runs}")
    print(f"bytes    {cost.bytes_:,}")
    print(f"seconds  about {cost.seconds:.2g} on 2 cores like those of benchmarks/README.md, compilation apart")


if __name__ == "__main__":
    main()
