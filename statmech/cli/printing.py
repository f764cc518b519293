"""Printing to a terminal with control characters escaped."""

from __future__ import annotations

import builtins
import sys
from functools import cache
from pathlib import Path
from typing import TextIO

from statmech.errors import escape_name, escape_text


def print(*values: object, file: TextIO | None = None, flush: bool = False) -> None:
    """Print like the built-in function, but with control characters escaped (`statmech.errors.escape_text`)."""
    text = " ".join(map(str, values))
    for name in _find_names_with_line_breaks(*sys.argv):
        text = text.replace(name, escape_name(name))
    builtins.print(escape_text(text), file=file, flush=flush)


@cache
def _find_names_with_line_breaks(*arguments: str) -> list[str]:
    """Return the path components on the command line that contain a line break or a tab."""
    names = {name for argument in arguments for name in Path(argument).parts}
    return sorted(name for name in names if name.strip() and escape_text(name) != escape_name(name))
