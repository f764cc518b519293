"""The `statmech` command: its subcommands, plugin files and error messages.

Heavy imports are inside the commands, so that help and config errors appear at once.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from statmech.cli import about, compute, look, predict, share
from statmech.cli.groups import CommandGroup, OptionDeclaringCommand
from statmech.cli.options import parse_nonempty_path
from statmech.cli.terminal import print
from statmech.errors import ConfigError, StatmechError
from statmech.runtime.hidden_packages import check_shadowing

GARBAGE_COLLECTION_THRESHOLD = 100_000  # new objects per collection: objects of imported modules are never garbage
COMMAND_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Compute": (compute.run, compute.simulate, compute.theory, predict.predict),
    "Look": (look.compare, look.figure, look.explore, look.status, look.verify),
    "Share": (share.report, share.export, share.cite),
    "About": (about.configs, about.info, about.schema),
}

app = typer.Typer(
    cls=CommandGroup,
    help="Simulation and exact N -> infinity theory of perceptrons that learn from a teacher.",
    epilog="Start with `statmech run ensemble`. Add --help to any command for its options and examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for panel, commands in COMMAND_PANELS.items():
    for command in commands:
        app.command(cls=OptionDeclaringCommand, rich_help_panel=panel)(command)


def _print_version_and_exit(requested: bool) -> None:
    if requested:
        from statmech import __version__

        print(f"statmech {__version__}")
        raise typer.Exit


@app.callback()
def load_plugin_files(
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--load",
            parser=parse_nonempty_path,
            metavar="FILE.py",
            help="Run a file that registers additional rules, activations or losses first; may be repeated. "
            "Files named in STATMECH_LOAD are loaded as well.",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version_and_exit, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Load the plugin files of --load and STATMECH_LOAD before the command runs."""
    if files or "STATMECH_LOAD" in os.environ:
        from statmech import plugins

        plugins.load_plugins_from_environment()
        for file in files or []:
            plugins.load_plugin(file)


@cache
def _print_warning_once(sentence: str) -> None:
    """Print a warning only once, without its source position.

    The position would not help the author of a config.
    """
    print(sentence, file=sys.stderr)


def main() -> None:
    """Run the command, and report user errors as a single message with exit code 2."""
    gc.set_threshold(GARBAGE_COLLECTION_THRESHOLD)
    warnings.showwarning = lambda message, *where: _print_warning_once(str(message))
    try:
        check_shadowing()
        if "--load" in sys.argv[2:] and not sys.argv[1].startswith("-"):
            raise ConfigError(f"--load must precede the command: statmech --load FILE.py {sys.argv[1]} ...")
        app()
    except StatmechError as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.status)
    except OSError as failure:  # for example, a full disk or a file of another user
        print(f"{failure.filename or 'files'}: {failure.strerror or failure}", file=sys.stderr)
        sys.exit(2)
    except RuntimeError as failure:
        if "home directory" not in str(failure):
            raise
        print("Bokeh, which draws interactive charts, needs a home directory: set HOME to a folder", file=sys.stderr)
        sys.exit(2)
    except MemoryError as failure:
        print(f"not enough memory: {failure}", file=sys.stderr)
        sys.exit(2)
