"""The `statmech` command: its group of subcommands, help texts, plugin files and error messages.

Imports that take long are inside the subcommands, so that help and config errors appear at once. The classes of the
subcommands and of their group write the help texts, and the messages about invalid command lines.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from statmech.cli import compute_commands, config_commands, results_commands
from statmech.cli.options_and_jobs import parse_nonempty_path
from statmech.cli.terminal_output import print
from statmech.errors import (
    ConfigError,
    StatmechError,
    declare_running_command,
    escape_text,
    format_option,
    join_alternatives,
)
from statmech.runtime.installed_packages import check_shadowing

CLICK_EXCEPTION: Any = typer.BadParameter.__bases__[0].__bases__[0]  # click's or typer's ClickException


GARBAGE_COLLECTION_THRESHOLD = 100_000  # new objects per collection: objects of imported modules are never garbage


class _MetavarHelpMixin:
    """Mixin whose help text shows the metavar of an option and the name of an argument."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in params:
            # typer would also show types, such as <bool> or <list[str]>
            parameter.display_type_rich = partial(_get_help_metavar, parameter)
            # hide ranges such as [x>=1.0]: messages about wrong numbers give them
            parameter._get_number_range_help_str = str
            if parameter.required and parameter.param_type_name == "argument":
                # print CONFIG in the usage line, not typer's {CONFIG}
                parameter._usage_display_name = partial(str, parameter.metavar)
        return params


def _get_help_metavar(parameter: Any, ctx: Any) -> str:
    return parameter.metavar or "" if parameter.param_type_name == "option" else ""


class OptionDeclaringCommand(_MetavarHelpMixin, TyperCommand):
    """A command that declares its name and options to messages while it runs."""

    def invoke(self, ctx: Any) -> Any:
        with declare_running_command(self.name or "", (flag for parameter in self.params for flag in parameter.opts)):
            try:
                return super().invoke(ctx)
            except MemoryError as failure:
                raise MemoryError(
                    str(failure) or join_alternatives(format_option("set --memory"), "simulate a smaller scenario")
                ) from None


class CommandGroup(_MetavarHelpMixin, TyperGroup):
    """The group of all commands, which escapes control characters in parser errors."""

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        with _escape_error_messages():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _escape_error_messages():
            return super().invoke(ctx)


@contextmanager
def _escape_error_messages() -> Iterator[None]:
    try:
        yield
    except EOFError as failure:  # otherwise Click prints "Aborted.", although no command reads input
        raise ConfigError(f"a file ends unexpectedly: {failure or 'it is truncated'}") from failure
    except CLICK_EXCEPTION as error:
        error.message = escape_text(error.message)
        if type(error).__name__ == "MissingParameter" and error.param.metavar == "CONFIG":
            error.message = "`statmech configs` lists the shipped ones"
        if "No such command 'list'" in error.message:
            error.message += " `statmech configs` lists the configs that can be run."
        if "unexpected extra argument" in error.message and "=" in error.message:
            error.message += ". This command takes no keys: a folder of results contains its config."
        raise


COMMAND_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Compute": (compute_commands.run, compute_commands.simulate, compute_commands.theory, compute_commands.predict),
    "Look": (
        results_commands.compare,
        results_commands.figure,
        results_commands.explore,
        results_commands.status,
        results_commands.verify,
    ),
    "Share": (results_commands.report, results_commands.export, results_commands.cite),
    "About": (config_commands.configs, config_commands.info, config_commands.schema),
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
        from statmech.config import user_files

        user_files.load_plugins_from_environment()
        for file in files or []:
            user_files.load_plugin(file)


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
