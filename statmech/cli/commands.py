"""The `statmech` command. Heavy imports stand inside the commands, so that help and config errors answer at once."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from statmech.cli import interrupts
from statmech.cli.terminal import print
from statmech.errors import ConfigError, DamagedError, StatmechError, escaped

if TYPE_CHECKING:
    import xarray as xr

    from simulate.execution.to_store import Outcome
    from statmech.scenarios.base import Sweep

REFUSED: Any = typer.BadParameter.__bases__[0].__bases__[0]  # ClickException, click's or typer's own


class Commands(TyperGroup):
    """The commands; what is said of a line that cannot be parsed is escaped like all that is printed."""

    def make_context(self, *given: Any, **extra: Any) -> Any:
        with _escaped():
            return super().make_context(*given, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _escaped():
            return super().invoke(ctx)


@contextmanager
def _escaped() -> Iterator[None]:
    try:
        yield
    except REFUSED as refused:
        refused.message = escaped(refused.message)
        raise


def _path(given: str) -> Path:
    """A path of the command line; an empty one comes of an unset variable, and does not mean the current folder."""
    if not given:
        raise typer.BadParameter("the name is empty")
    return Path(given)


app = typer.Typer(
    cls=Commands,
    help="Write a learning model once; play it out, solve it, and lay one over the other.",
    epilog="Start with: statmech run ensemble. Add --help to any command for its examples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Config = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A YAML file, the name of a shipped config, or a folder of results.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Override keys: K=5 or, an axis, K=1,3,5."),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="The same as an override; may be repeated.")
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", parser=_path, metavar="DIR", help="Folder of real data. [default: STATMECH_DATA, else OpenML]"
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", parser=_path, metavar="DIR", help="Folder for results. [default: results/NAME]")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute anew, replacing what is stored.")]
Again = Annotated[bool, typer.Option("--rerun-failed", help="Try the runs that have failed once more.")]
Shard = Annotated[
    str | None,
    typer.Option("--shard", metavar="K/N", help="Play every N-th block, from the K-th; `slurm`: as a job array tells."),
]
Memory = Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="Stay below so much memory, as 4GiB.")]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="WHERE", help="Play on workers: local, tcp://HOST:PORT or slurm:FILE."),
]
Patience = Annotated[
    float | None,
    typer.Option(min=1.0, metavar="SECONDS", help="Give up when for so long no worker has been at work."),
]
Json = Annotated[bool, typer.Option("--json", help="Print what happens as lines of JSON, for programs; no tables.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say how many cells, bytes and seconds, and stop.")]


@dataclass(frozen=True)
class Job:
    """A config read, and where its results go."""

    name: str
    scenario: Sweep
    figure: str
    folder: Path
    fresh: bool = False
    again: bool = False
    shard: tuple[int, int] = (1, 1)
    memory: float | None = None
    dask: str | None = None
    patience: float | None = None
    as_json: bool = False

    def path(self, part: str) -> Path:
        return self.folder / f"{part}.zarr"


@app.callback()
def before(
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--load",
            parser=_path,
            metavar="FILE.py",
            help="Run a file with rules of your own first; STATMECH_LOAD, too.",
        ),
    ] = None,
) -> None:
    """What holds for every command."""
    if files or "STATMECH_LOAD" in os.environ:
        from statmech import plugins

        plugins.load_named()
        for file in files or []:
            plugins.load(file)


@app.command()
def run(
    config: Config,
    overrides: Overrides = None,
    out: Out = None,
    fresh: Fresh = False,
    dry_run: DryRun = False,
    settings: Settings = None,
    data_dir: DataDir = None,
    again: Again = False,
    shard: Shard = None,
    memory: Memory = None,
    dask: Dask = None,
    patience: Patience = None,
    as_json: Json = False,
) -> None:
    """Simulate, solve, compare and draw, all from one config.

    Examples: `statmech run ensemble`, `statmech run my.yaml K=1,3,5 seeds=100 --out results/mine`.
    """
    _use_data(data_dir)
    job = _job(config, overrides, out, fresh, settings, data=True)
    job = _played(job, again, shard, memory, dask, patience, as_json)
    if dry_run:
        return _estimate(job)
    theory = None if job.scenario.unsolved else _solved(job)  # refused before anything is computed
    outcome = _simulate(job)
    if _can_show(job, outcome):
        _show(job, theory)
    _end(outcome)


@app.command()
def simulate(
    config: Config,
    overrides: Overrides = None,
    out: Out = None,
    fresh: Fresh = False,
    dry_run: DryRun = False,
    settings: Settings = None,
    data_dir: DataDir = None,
    again: Again = False,
    shard: Shard = None,
    memory: Memory = None,
    dask: Dask = None,
    patience: Patience = None,
    as_json: Json = False,
) -> None:
    """Play a scenario out at finite N, and store it as OUT/simulation.zarr.

    Example: `statmech simulate ensemble N=1000 seeds=64`.
    """
    _use_data(data_dir)
    job = _job(config, overrides, out, fresh, settings, data=True)
    job = _played(job, again, shard, memory, dask, patience, as_json)
    if dry_run:
        return _estimate(job)
    _end(_simulate(job))


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(parser=_path, metavar="DIR", help="A folder of results, or a store in it.")],
    as_json: Json = False,
) -> None:
    """Tell what a sweep has done, what runs, what is missing or has failed, how fast it goes and how long it will take.

    Example: `statmech status results/ensemble`.
    """
    from statmech.results.status import lines, read

    told = read(folder)
    print(json.dumps(told) if as_json else "\n".join(lines(told)))


@app.command()
def verify(
    folder: Annotated[
        Path, typer.Argument(parser=_path, metavar="RESULT", help="A folder of results, or a store in it.")
    ],
    as_json: Json = False,
) -> None:
    """Read every stored number and check that it is the one that was computed for its place.

    Prints a line per fault and exits with 1 if there is any, or if a store is too old to be verified.

    Example: `statmech verify results/ensemble`.
    """
    from statmech.results.verification import verify as check

    found = check(folder)
    print(json.dumps(found._asdict()) if as_json else "\n".join(found.lines()))
    if not found.sound:
        raise typer.Exit(1)


@app.command()
def theory(
    config: Config, overrides: Overrides = None, out: Out = None, fresh: Fresh = False, settings: Settings = None
) -> None:
    """Solve a scenario in the limit of large N, and store it as OUT/theory.zarr.

    Example: `statmech theory ensemble t=1e6`.
    """
    job = _job(config, overrides, out, fresh, settings)
    _solved(job) or _solve(job)


@app.command()
def compare(config: Config, overrides: Overrides = None, out: Out = None, settings: Settings = None) -> None:
    """Tell how far the stored simulation and theory of a config are apart, in standard errors.

    Example: `statmech compare results/ensemble` after `statmech run ensemble`.
    """
    job = _job(config, overrides, out, settings=settings)
    if job.scenario.unsolved:
        raise ConfigError(f"{job.name}: {job.scenario.unsolved}: there is nothing to compare")
    from statmech.cli import output

    output.results(*_both(job))


@app.command()
def figure(
    config: Annotated[str | None, typer.Argument(metavar="CONFIG", help="As for run.")] = None,
    overrides: Overrides = None,
    out: Out = None,
    settings: Settings = None,
    show: Annotated[bool, typer.Option("--list", help="List the published figures and stop.")] = False,
) -> None:
    """Draw the stored simulation and theory of a config again, as PNG, SVG and PDF.

    Examples: `statmech figure --list`, `statmech figure results/ensemble figure=overlay`.
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
def export(
    config: Config,
    to: Annotated[
        Path, typer.Option("--to", parser=_path, metavar="FILE", help="A .csv: means, errors, theory; a .nc: all runs.")
    ],
    overrides: Overrides = None,
    out: Out = None,
    settings: Settings = None,
) -> None:
    """Write the stored simulation and theory of a config for other programs.

    Example: `statmech export results/ensemble --to ensemble.csv` after `statmech run ensemble`.
    """
    from statmech.results import export as exports

    exports.write(*_both(_job(config, overrides, out, settings=settings)), to)
    print(f"wrote {to}", file=sys.stderr)


@app.command()
def explore(
    what: Annotated[
        str | None, typer.Argument(metavar="[RESULT|CONFIG]", help="A folder of results, or a config as for run.")
    ] = None,
    overrides: Overrides = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port to listen on. [default: 5006, or any free one]")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    settings: Settings = None,
) -> None:
    """Open a page in the browser: drag a setting, see theory move and simulation land on it. Needs statmech[explore].

    Examples: `statmech explore`, `statmech explore ensemble`, `statmech explore results/ensemble`.
    """
    from statmech import config as configs

    result = what is not None and Path(what).is_dir()
    if result and (overrides or settings):
        raise ConfigError(f"{what}: stored results have no keys to override")
    scenario = None if what is None or result else configs.load(what, [*(overrides or []), *(settings or [])])
    if scenario is not None and scenario.on_data:
        raise ConfigError(f"{what}: a study on data has no settings to drag. Run it, and explore its results")
    page, server = _explorer()
    server.serve(page.of_result(Path(str(what))) if result else page.of_config(scenario), port, browser)


def _explorer() -> tuple[Any, Any]:
    """The modules that make pages and serve them, if their libraries are there."""
    try:
        from figures.explorer import page, server
    except ModuleNotFoundError as missing:
        raise ConfigError(f"explore needs {missing.name}: pip install -e '.[explore]' where statmech lies") from None
    return page, server


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(parser=_path, metavar="RESULT", help="A folder of results, or a store in it.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", parser=_path, metavar="FILE", help="[default: RESULT/report.html]")
    ] = None,
) -> None:
    """Write results as one HTML file that loads nothing: figure, charts, table, config, provenance, references.

    Example: `statmech report results/ensemble` after `statmech run ensemble`.
    """
    from figures.report.html import report as write

    print(f"wrote {write(folder, out)}", file=sys.stderr)


@app.command()
def cite(config: Config, overrides: Overrides = None) -> None:
    """Print the BibTeX of what a config uses: its rules or learners, and the theory laid over them.

    Example: `statmech cite ensemble > references.bib`.
    """
    from statmech import config as configs
    from statmech.results.citations import bibtex, cited

    print(bibtex(cited(configs.load(config, overrides or []))))


@app.command()
def info() -> None:
    """Show versions, devices, rules and folders."""
    import jax

    from statmech import config as configs
    from statmech.learners import LEARNERS
    from statmech.results import store
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
    from statmech.scenarios.registry import schema as config_schema

    print(json.dumps(config_schema(), indent=2))


def main() -> None:
    """Run the command; a problem a user can mend is one message and exit code 2."""
    # diffrax's run-time checks call back into Python, and JAX keeps no such program in its cache; theory checks itself
    os.environ.setdefault("EQX_ON_ERROR", "nan")
    interrupts.watch()
    try:
        if "--load" in sys.argv[2:] and not sys.argv[1].startswith("-"):
            raise ConfigError(f"--load stands before the command: statmech --load FILE.py {sys.argv[1]} ...")
        app()
    except StatmechError as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.status)
    except OSError as failure:  # a figure on a full disk, a log of another's
        print(f"{failure.filename or 'files'}: {failure.strerror or failure}", file=sys.stderr)
        sys.exit(2)
    except MemoryError as failure:
        print(f"not enough memory: {failure or 'give --memory, or a smaller scenario'}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as done:
        if done.code not in (interrupts.INTERRUPTED, interrupts.TERMINATED):  # the first is how typer ends after Ctrl-C
            raise
        interrupts.end(done.code)


def _job(
    given: str,
    overrides: list[str] | None,
    out: Path | None,
    fresh: bool = False,
    settings: list[str] | None = None,
    data: bool = False,
) -> Job:
    import figures
    from statmech import config as configs

    found = configs.find(given)
    scenario = configs.load(given, [*(overrides or []), *(settings or [])], data=data)
    figure = figures.named(scenario.figure, found.stem, scenario.CHOICE)
    scenario = scenario.model_copy(update={"figure": figure})  # results remember what they are drawn as
    return Job(found.stem, scenario, figure, out or (found if found.is_dir() else Path("results") / found.stem), fresh)


def _played(
    job: Job,
    again: bool,
    shard: str | None,
    memory: str | None,
    dask: str | None,
    patience: float | None,
    as_json: bool,
) -> Job:
    """A job, and how it is played."""
    job = replace(job, again=again, shard=_shard(shard, job.fresh), memory=_bytes(memory), as_json=as_json)
    return replace(job, dask=_cluster(dask, job), patience=patience)


def _shard(given: str | None, fresh: bool) -> tuple[int, int]:
    """The shard to play, (1, 1) for all."""
    if given is None:
        return 1, 1
    if fresh:
        raise ConfigError("--shard goes on with a store, and --fresh replaces it: shards would undo each other")
    if given == "slurm":
        first, last, k = (os.environ.get(f"SLURM_ARRAY_TASK_{part}") for part in ("MIN", "MAX", "ID"))
        if first is None or last is None or k is None:
            raise ConfigError("--shard slurm: this is no job of an array (SLURM_ARRAY_TASK_ID is not set)")
        return int(k) - int(first) + 1, int(last) - int(first) + 1
    k, _, n = given.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise ConfigError(f"--shard {given}: must be K/N with whole 1 <= K <= N, or slurm")
    return int(k), int(n)


def _cluster(given: str | None, job: Job) -> str | None:
    """The cluster to play on, if any."""
    if given is None:
        return None
    if job.shard != (1, 1) or job.memory is not None:
        raise ConfigError("--dask shares out the blocks, and workers know their memory: no --shard or --memory with it")
    from simulate.execution.clusters import check

    check(given)
    return given


UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def _bytes(given: str | None) -> float | None:
    if given is None:
        return None
    number = given.rstrip("BbIiKkMmGgTt ")
    try:
        size = float(number) * UNITS[given[len(number) :].strip().upper()]
    except (KeyError, ValueError):
        size = 0.0
    if not 2**20 <= size < float("inf"):
        raise ConfigError(f"--memory {given}: must be a size of 1 MiB or more, as 500MB or 4GiB")
    return size


def _solved(job: Job) -> xr.Dataset | None:
    """The stored theory of this very config. One of a config that has since grown is made anew, any other refused."""
    from statmech.results import store, store_creation

    path = job.path("theory")
    try:
        dataset = store.kept(path, job.scenario, job.fresh, outgrown=store_creation.is_extension)
    except DamagedError as failure:
        print(f"{failure}; it is made anew", file=sys.stderr)
        return None
    if dataset is not None:
        print(f"{path} is of this config and is kept (--fresh computes it anew)", file=sys.stderr)
    return dataset


def _both(job: Job) -> tuple[xr.Dataset, Any]:
    from statmech.results import store
    from statmech.results.status import read as status_of

    simulation, theory = (store.kept(job.path(part), job.scenario, False) for part in ("simulation", "theory"))
    if simulation is None or (theory is None and not job.scenario.on_data):
        raise ConfigError(f"{job.folder}: has no simulation and theory yet. `statmech run {job.name}` makes them")
    told = status_of(job.path("simulation"))
    if told["missing"] or told["failed"]:
        runs = f"{told['missing']} runs are missing and {told['failed']} have failed"
        print(f"{job.path('simulation')}: {runs}; they are left out", file=sys.stderr)
    return simulation, theory


def _simulate(job: Job) -> Outcome:
    """Play what the store lacks; tell whether anything was lacking, and what failed."""
    from simulate.run import remarks
    from statmech.cli import progress

    for remark in remarks(job.scenario):
        print(remark, file=sys.stderr)
    path, events = job.path("simulation"), []

    def tell(event: dict[str, Any]) -> None:
        events.append(event)
        if event["event"] == "playing":
            told.running(f"block {event['block']}")
        if job.as_json:
            print(json.dumps(event), flush=True)
        elif event["event"] in ("failed", "damaged", "restored", "grown", "waiting"):
            print(_told(event), file=sys.stderr)

    with progress.shown("simulation") as told:
        outcome = _player(job)(path, job.scenario, fresh=job.fresh, again=job.again, progress=told.progress, tell=tell)
    begun = next(event for event in events if event["event"] == "begun")
    kept = f"{path} is of this config and is kept (--fresh computes it anew)"
    print(f"wrote {path}" if begun["blocks"] else kept, file=sys.stderr)
    return outcome


def _player(job: Job) -> Callable[..., Outcome]:
    """What plays a scenario into a store: this process, or workers."""
    if job.dask is not None:
        from simulate.execution.clusters import run_on

        return partial(run_on, job.dask, patience=job.patience)
    from simulate.execution.to_store import run_into

    return partial(run_into, shard=job.shard, memory=job.memory)


def _told(event: dict[str, Any]) -> str:
    if event["event"] == "failed":
        return f"cell {event['cell']}, seeds {event['seeds']}: attempt {event['attempt']} failed: {event['error']}"
    if event["event"] == "damaged":
        return f"block {event['block']} is corrupted, and is computed again ({'; '.join(event['faults'][:3])})"
    if event["event"] == "waiting":
        return f"waiting: {event['owner']} makes the store"
    if event["event"] == "restored":
        return f"{event['file']} is damaged, and is made anew"
    return "\n".join(["the sweep has grown, and what is there is kept:", *event["differences"]])


def _can_show(job: Job, outcome: Outcome) -> bool:
    """Whether the sweep is there to be shown: all of it, or all but what failed, and no more than memory holds."""
    from statmech.scenarios.cost import estimate, machine_memory

    if outcome.missing:
        print(f"{outcome.missing} runs are still missing: other shards play them", file=sys.stderr)
        return False
    size, room = estimate(job.scenario).bytes_, job.memory or machine_memory() / 2
    if 2 * size > room:
        told = f"{size / 2**30:.3g} GiB of results are too large to compare and draw here"
        print(f"{told}; they lie in {job.path('simulation')}", file=sys.stderr)
        return False
    return not job.as_json


def _show(job: Job, theory: xr.Dataset | None) -> None:
    from statmech.cli import output
    from statmech.results import store

    simulation = store.kept(job.path("simulation"), job.scenario, False)
    assert simulation is not None
    if job.scenario.on_data:
        output.results(simulation, None)
        _draw(job, simulation, None)
    elif job.scenario.unsolved:
        print(f"{job.scenario.unsolved}: simulated, but not solved and drawn", file=sys.stderr)
    else:
        theory = theory if theory is not None else _solve(job)
        output.results(simulation, theory)
        _draw(job, simulation, theory)


def _end(outcome: Outcome) -> None:
    """Exit with 1 if some of the work has failed."""
    if outcome.failed:
        print(f"{outcome.failed} runs have failed three times; --rerun-failed tries them again", file=sys.stderr)
        raise typer.Exit(1)


def _solve(job: Job) -> xr.Dataset:
    from statmech.cli import progress
    from statmech.results import store
    from theory import solve

    with progress.shown("theory") as told:
        dataset = solve(job.scenario, told.progress)
    store.save(dataset, job.path("theory"))
    print(f"wrote {job.path('theory')}", file=sys.stderr)
    return dataset


def _use_data(folder: Path | None) -> None:
    from statmech.data_sets import FOLDER

    if folder is not None:
        if not folder.is_dir():
            raise ConfigError(f"--data-dir {folder}: no such folder")
        os.environ[FOLDER] = str(folder)


def _draw(job: Job, simulation: xr.Dataset, theory: xr.Dataset | None) -> None:
    import figures
    from figures import style

    name = figures.fitting(job.figure, simulation)
    if name != job.figure:
        print(f"the figure {job.figure} has no place for all of these axes; drawing {name}", file=sys.stderr)
    for file in style.save(figures.draw(name, simulation, theory), job.folder / name):
        print(f"wrote {file}", file=sys.stderr)


def _estimate(job: Job) -> None:
    from statmech.scenarios.cost import estimate

    cost = estimate(job.scenario)
    print(f"cells    {cost.cells} ({' x '.join(f'{n} {name}' for name, n in job.scenario.shape.items()) or 'one'})")
    print(f"runs     {cost.runs}")
    print(f"bytes    {cost.bytes_:,}")
    seconds = float(f"{cost.seconds:.2g}")
    print(f"seconds  about {seconds:g} on 2 cores like those of benchmarks/README.md, compilation apart")
