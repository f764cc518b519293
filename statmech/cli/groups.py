"""The group of all commands: what it answers to a command line that cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from statmech.errors import escaped

REFUSED: Any = typer.BadParameter.__bases__[0].__bases__[0]  # ClickException, click's or typer's own


class Commands(TyperGroup):
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
