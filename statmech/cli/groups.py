"""The commands and their group: their help, and the answer to a command line that cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from statmech.errors import ConfigError, escaped
from statmech.running_command import either, option, running

REFUSED: Any = typer.BadParameter.__bases__[0].__bases__[0]  # ClickException, click's or typer's own


class _Named:
    """Help that describes values by one word: of options theirs, of arguments their name, of flags none."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in params:
            one.display_type_rich = partial(_value, one)  # typer's own is the type: <bool>, <list[str]>
            one._get_number_range_help_str = str  # and [x>=1.0], which the message on a wrong number says
            if one.required and one.param_type_name == "argument":
                one._usage_display_name = partial(str, one.metavar)  # {CONFIG} in the first line
        return params


def _value(parameter: Any, ctx: Any) -> str:
    return parameter.metavar or "" if parameter.param_type_name == "option" else ""


class Command(_Named, TyperCommand):
    """One command, which messages know while it runs."""

    def invoke(self, ctx: Any) -> Any:
        with running(self.name or "", (flag for parameter in self.params for flag in parameter.opts)):
            try:
                return super().invoke(ctx)
            except MemoryError as failure:
                raise MemoryError(str(failure) or either(option("set --memory"), "reduce the scenario")) from None


class Commands(_Named, TyperGroup):
    """All commands; the error of a command line that cannot be parsed is escaped like everything that is printed."""

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
    except (
        EOFError
    ) as failure:  # Click would take it for a closed terminal and say "Aborted."; no command asks anything
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
