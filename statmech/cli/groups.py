"""The commands and their group: help texts, and messages for a command line that cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from statmech.errors import ConfigError, escaped
from statmech.running_command import either, option, running

REFUSED: Any = typer.BadParameter.__bases__[0].__bases__[0]  # from click, or from typer's copy of click


class _Named:
    """Help that describes the value of an option by its metavar, and an argument by its name."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in params:
            # typer would show the type, such as <bool> or <list[str]>
            parameter.display_type_rich = partial(_value, parameter)
            # hides [x>=1.0]: the message for a wrong number gives the range
            parameter._get_number_range_help_str = str
            if parameter.required and parameter.param_type_name == "argument":
                # typer would print {CONFIG} in the usage line
                parameter._usage_display_name = partial(str, parameter.metavar)
        return params


def _value(parameter: Any, ctx: Any) -> str:
    return parameter.metavar or "" if parameter.param_type_name == "option" else ""


class Command(_Named, TyperCommand):
    """A command that messages can name while it runs."""

    def invoke(self, ctx: Any) -> Any:
        with running(self.name or "", (flag for parameter in self.params for flag in parameter.opts)):
            try:
                return super().invoke(ctx)
            except MemoryError as failure:
                raise MemoryError(str(failure) or either(option("set --memory"), "reduce the scenario")) from None


class Commands(_Named, TyperGroup):
    """The group of all commands, with control characters escaped in parser errors."""

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        with _escaped():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _escaped():
            return super().invoke(ctx)


@contextmanager
def _escaped() -> Iterator[None]:
    try:
        yield
    except EOFError as failure:  # Click would print "Aborted.", although no command reads from the terminal
        raise ConfigError(f"a file that is read ends too early: {failure or 'it is cut'}") from failure
    except REFUSED as error:
        error.message = escaped(error.message)
        if type(error).__name__ == "MissingParameter" and error.param.metavar == "CONFIG":
            error.message = _shipped()
        if "No such command 'list'" in error.message:
            error.message += " `statmech configs` lists the configs that can be run."
        raise


def _shipped() -> str:
    from statmech.config import shipped

    return f"`statmech configs` describes the shipped ones: {', '.join(shipped())}"
