"""The commands and their group: help texts, and messages for a command line that cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from statmech.errors import ConfigError, escape_text
from statmech.running_command import declare_running_command, format_option, join_alternatives

CLICK_EXCEPTION: Any = typer.BadParameter.__bases__[0].__bases__[0]  # from click, or from typer's copy of click


class _MetavarHelp:
    """Help that describes the value of an option by its metavar, and an argument by its name."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in params:
            # typer would show the type, such as <bool> or <list[str]>
            parameter.display_type_rich = partial(_get_help_metavar, parameter)
            # hides [x>=1.0]: the message for a wrong number gives the range
            parameter._get_number_range_help_str = str
            if parameter.required and parameter.param_type_name == "argument":
                # typer would print {CONFIG} in the usage line
                parameter._usage_display_name = partial(str, parameter.metavar)
        return params


def _get_help_metavar(parameter: Any, ctx: Any) -> str:
    return parameter.metavar or "" if parameter.param_type_name == "option" else ""


class Command(_MetavarHelp, TyperCommand):
    """A command that messages can name while it runs."""

    def invoke(self, ctx: Any) -> Any:
        with declare_running_command(self.name or "", (flag for parameter in self.params for flag in parameter.opts)):
            try:
                return super().invoke(ctx)
            except MemoryError as failure:
                raise MemoryError(
                    str(failure) or join_alternatives(format_option("set --memory"), "reduce the scenario")
                ) from None


class CommandGroup(_MetavarHelp, TyperGroup):
    """The group of all commands, with control characters escaped in parser errors."""

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
    except EOFError as failure:  # Click would print "Aborted.", although no command reads from the terminal
        raise ConfigError(f"a file that is read ends too early: {failure or 'it is cut'}") from failure
    except CLICK_EXCEPTION as error:
        error.message = escape_text(error.message)
        if type(error).__name__ == "MissingParameter" and error.param.metavar == "CONFIG":
            error.message = _describe_shipped_configs()
        if "No such command 'list'" in error.message:
            error.message += " `statmech configs` lists the configs that can be run."
        raise


def _describe_shipped_configs() -> str:
    from statmech.config import list_shipped_configs

    return f"`statmech configs` describes the shipped ones: {', '.join(list_shipped_configs())}"
