"""Jobs of the commands: a scenario read from a config, and the folder of its results."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import ConfigError, Problem

if TYPE_CHECKING:
    from statmech.cli.options import ConfigOptions
    from statmech.keys.figure_key import Composition
    from statmech.keys.scenario import AbstractScenario


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
    from statmech.kinds.selection_and_vocabulary import add_default_population, find_selecting_keys

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
