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

REFUSED: Any = typer.BadParameter.__bases__[0].__bases__[0]  # from click, or from the copy of click within typer


class _Named:
    """Help that describes the value of an option by its metavar, and an argument by its name."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in params:
            one.display_type_rich = partial(_value, one)  # typer would show the type, such as <bool> or <list[str]>
            one._get_number_range_help_str = str  # hides [x>=1.0]: the message for a wrong number gives the range
            if one.required and one.param_type_name == "argument":
                one._usage_display_name = partial(str, one.metavar)  # typer would print {CONFIG} in the usage line
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
    except EOFError as failure:  # Click would print "Aborted.", as for a closed terminal, but no command prompts
        raise ConfigError(f"a file that is read ends too early: {failure or 'it is cut'}") from failure
    except REFUSED as refused:
        refused.message = escaped(refused.message)
        if type(refused).__name__ == "MissingParameter" and refused.param.metavar == "CONFIG":
            refused.message = _shipped()
        if "No such command 'list'" in refused.message:
            refused.message += " `statmech configs` lists the configs that can be run."
        raise


def _shipped() -> str:
    from statmech.config import shipped

    return f"`statmech configs` describes the shipped ones: {', '.join(shipped())}"
