"""Arguments and options of the commands, each described once, and the jobs that they describe.

Options that several commands share are fields of a dataclass. A job is a scenario read from a config and overrides,
with the folder of its results.
"""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from statmech.cli.completion import complete_config_name, complete_override
from statmech.errors import ConfigError, Problem, format_unknown_name

if TYPE_CHECKING:
    from statmech.keys.figure_key import Composition
    from statmech.keys.scenario import AbstractScenario


CLUSTER_OPTIONS_HELP_PANEL = "Clusters and job arrays"
FIGURE_OPTIONS_HELP_PANEL = "Contents of the figure"


def parse_nonempty_path(text: str) -> Path:
    """Convert a command-line argument to a path, and reject an empty argument.

    An empty argument comes from an unset shell variable, and does not mean the current folder.
    """
    if not text:
        raise typer.BadParameter("the name is empty")
    return Path(text)


def parse_formats(text: str) -> frozenset[str]:
    """Parse the option with a comma-separated list of picture formats."""
    from figures.style import FIGURE_FORMATS

    formats = text.lower().split(",")
    for name in formats:
        if name not in FIGURE_FORMATS:
            raise typer.BadParameter(format_unknown_name(name, "a picture format", FIGURE_FORMATS))
    return frozenset(formats)


ConfigArgument = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG",
        help="A YAML file, a shipped config (`statmech configs`), or a folder of results.",
        autocompletion=complete_config_name,
    ),
]
OverrideArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Keys to override: K=5, or several values to sweep over, K=1,3,5.",
        autocompletion=complete_override,
    ),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="The same as KEY=VALUE; may be repeated.")
]
OutputFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--out", parser=parse_nonempty_path, metavar="DIR", help="Folder of the results.", show_default="results/NAME"
    ),
]
DataFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        parser=parse_nonempty_path,
        metavar="DIR",
        help="Folder of real data sets.",
        show_default="STATMECH_DATA, else OpenML",
    ),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Recompute, and replace what is stored.")]
FormatsOption = Annotated[
    frozenset[str] | None,
    typer.Option(
        "--formats",
        parser=parse_formats,
        metavar="png,svg,pdf",
        help="Figure formats. Formats already in the folder are always redrawn.",
        show_default=False,
    ),
]
StyleOption = Annotated[
    str | None,
    typer.Option(
        "--style",
        metavar="page|pre|talk",
        help="pre: a column of 8.6 cm, 8 points; talk: large type.",
    ),
]
ResidualsOption = Annotated[
    bool, typer.Option("--residuals", help="Below each panel, deviations from theory in standard errors.")
]
RerunFailedOption = Annotated[bool, typer.Option("--rerun-failed", help="Retry the runs that have failed.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Estimate runs, memory and time; compute nothing.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="K/N",
        help="Run every N-th chunk, from the K-th, into simulation.K-of-N.zarr; `slurm`: both from a job array.",
        rich_help_panel=CLUSTER_OPTIONS_HELP_PANEL,
    ),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="WHERE",
        help="Run on Dask workers: local, tcp://HOST:PORT or slurm:FILE.",
        rich_help_panel=CLUSTER_OPTIONS_HELP_PANEL,
    ),
]
MemoryLimitOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Memory limit, e.g. 4GiB.",
        rich_help_panel=CLUSTER_OPTIONS_HELP_PANEL,
    ),
]
WorkerTimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--patience",
        min=1.0,
        metavar="SECONDS",
        help="With --dask: give up after this many seconds without an active worker.",
        show_default="300, with slurm: 86400",
        rich_help_panel=CLUSTER_OPTIONS_HELP_PANEL,
    ),
]
ResultFolderArgument = Annotated[
    Path, typer.Argument(parser=parse_nonempty_path, metavar="DIR", help="A folder of results, or a store in it.")
]


@dataclass(frozen=True)
class ConfigOptions:
    """A config with its overrides."""

    config: ConfigArgument
    overrides: OverrideArguments = None
    set_overrides: SetOption = None

    @property
    def all_overrides(self) -> list[str]:
        """All overrides, in the order of application."""
        return [*(self.overrides or []), *(self.set_overrides or [])]


@dataclass(frozen=True)
class ComputeOptions(ConfigOptions):
    """A config whose results are computed unless they are already stored in the folder `out`."""

    out: OutputFolderOption = None
    fresh: FreshOption = False
    data_dir: DataFolderOption = None


@dataclass(frozen=True)
class SimulateOptions(ComputeOptions):
    """A config to simulate, with options for the execution."""

    dry_run: DryRunOption = False
    rerun_failed: RerunFailedOption = False
    as_json: JsonOption = False
    shard: ShardOption = None
    memory: MemoryLimitOption = None
    dask: DaskOption = None
    patience: WorkerTimeoutOption = None


@dataclass(frozen=True)
class RunOptions(SimulateOptions):
    """A config to simulate, compare with theory and draw."""

    formats: FormatsOption = None


def _make_figure_option(flag: str, metavar: str, help_: str) -> Any:
    return Annotated[
        str | None, typer.Option(flag, metavar=metavar, help=help_, rich_help_panel=FIGURE_OPTIONS_HELP_PANEL)
    ]


@dataclass(frozen=True)
class FigureOptions:
    """Options that select the results, axes and variables of a figure, as the config key `figure` does."""

    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIG",
            help="A folder of results, or a config as for run.",
            autocompletion=complete_config_name,
        ),
    ] = None
    further: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG|KEY=VALUE",
            help="Further results to draw in the same figure; keys to override.",
            autocompletion=complete_override,
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=parse_nonempty_path,
            metavar="DIR",
            help="Folder of the picture.",
            show_default="folder of the results",
        ),
    ] = None
    set_overrides: SetOption = None
    formats: FormatsOption = None
    list_all: Annotated[bool, typer.Option("--list", help="List the published figures and stop.")] = False
    x: _make_figure_option("--x", "NAME", "Axis, or variable, along the horizontal axis.") = None  # type: ignore[valid-type]
    y: _make_figure_option("--y", "NAME,...", "Variables, a panel each.") = None  # type: ignore[valid-type]
    series: _make_figure_option("--series", "NAME,...", "Axes that colours and markers distinguish.") = None  # type: ignore[valid-type]
    split: _make_figure_option("--split", "NAME,...", "Axes with one panel per value.") = None  # type: ignore[valid-type]
    over: _make_figure_option("--over", "NAME", "Variable that divides y.") = None  # type: ignore[valid-type]
    points: _make_figure_option("--points", "FILE.csv", "Your own points: columns x, y and error.") = None  # type: ignore[valid-type]
    style: StyleOption = None
    residuals: ResidualsOption = False
    fit: Annotated[
        bool,
        typer.Option("--fit", help="Fit exponents, on logarithmic axes.", rich_help_panel=FIGURE_OPTIONS_HELP_PANEL),
    ] = False

    @property
    def figure_keys(self) -> dict[str, Any]:
        """The `figure` keys that options of the command line give, with comma-separated values as lists."""
        from statmech.keys.figure_key import OPTION_KEYS

        given_keys = {name: getattr(self, name) for name in OPTION_KEYS if getattr(self, name)}
        lists = {
            name: [entry.strip() for entry in given_keys[name].split(",")]
            for name in ("y", "series", "split")
            if name in given_keys
        }
        return given_keys | lists


def accept_options(options_class: type) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Return a decorator that turns the fields of a dataclass into options of a command."""
    hints = get_type_hints(options_class, include_extras=True)
    parameters = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(options_class).parameters.values()
    ]

    def decorate(command: Callable[[Any], None]) -> Callable[..., None]:
        @wraps(command)
        def call(**values: Any) -> None:
            command(options_class(**values))

        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


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
    from statmech.config.config_files import find_config, get_shipped_config_name, load

    path = find_config(source.config)
    scenario = load(source.config, source.all_overrides, data=data, check=_find_named_figure_problems)
    figure = figures.choose_figure(scenario.figure, get_shipped_config_name(source.config), scenario.CHOICE)
    out = source.out if isinstance(source, ComputeOptions) else None
    folder = out or (path if path.is_dir() else Path("results") / path.stem)
    arguments = shlex.join([str(source.config), *source.all_overrides])
    command = "" if path.is_dir() else f"statmech run {arguments}"
    out_option = f" --out {shlex.quote(str(out))}" if out else ""
    return Job(path.absolute().stem, scenario, figure, folder, command, arguments + out_option)


def _find_named_figure_problems(keys: dict[str, Any]) -> Iterator[Problem]:
    """Yield a problem if the figure that a job's config names does not exist or does not support its keys."""
    import figures
    from statmech.kinds.selection_and_vocabulary import add_default_population, find_selecting_keys

    figure, choice = keys.get("figure"), next(iter(find_selecting_keys({*add_default_population(keys)})), None)
    if isinstance(figure, str) and choice is not None:
        try:
            figures.choose_figure(figure, "", choice)
        except ConfigError as failure:
            yield ("figure",), str(failure).removeprefix("figure: ")


def set_data_folder(folder: Path | None) -> None:
    """Set the folder that contains the data sets, as the option --data-dir gives it."""
    from statmech.inputs.data_sets import DATA_FOLDER_ENV_VARIABLE

    if folder is not None:
        if not folder.is_dir():
            raise ConfigError(f"--data-dir {folder}: no such folder")
        os.environ[DATA_FOLDER_ENV_VARIABLE] = str(folder)
