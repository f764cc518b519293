"""Printing to a terminal: text only, whatever control characters names contain."""

from __future__ import annotations

import builtins
from typing import TextIO

from statmech.errors import escaped


def print(*values: object, file: TextIO | None = None, flush: bool = False) -> None:
    """Print like the built-in function, with control characters escaped (`statmech.errors.escaped`)."""
    builtins.print(escaped(" ".join(map(str, values))), file=file, flush=flush)
