"""What reaches a terminal: text alone, whatever names hold."""

from __future__ import annotations

import builtins
from typing import TextIO

from statmech.errors import escaped


def print(*values: object, file: TextIO | None = None, flush: bool = False) -> None:
    """Print as the built-in does, with control characters `statmech.errors.escaped`."""
    builtins.print(escaped(" ".join(map(str, values))), file=file, flush=flush)
