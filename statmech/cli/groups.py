"""Classes of commands and their group: help texts, and messages about invalid command lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from statmech.errors import ConfigError, escape_text
from statmech.running_command import declare_running_command, format_option, join_alternatives

CLICK_EXCEPTION: Any = typer.BadParameter.__bases__[0].__bases__[0]  # click's or typer's ClickException


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
            error.message = _format_shipped_config_hint()
        if "No such command 'list'" in error.message:
            error.message += " `statmech configs` lists the configs that can be run."
        raise


def _format_shipped_config_hint() -> str:
    from statmech.config import list_shipped_configs

    return f"`statmech configs` describes the shipped ones: {', '.join(list_shipped_configs())}"
