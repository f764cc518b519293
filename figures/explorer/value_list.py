"""Editable lines of text that list the values of curves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from figures.explorer.settings import is_number
from figures.labels import format_config_value


def format_value_line(values: Iterable[Any]) -> str:
    """Format values in one line of text.

    A section is shown by its name or, without a name, in words.

    >>> format_value_line([0, 0.001, "best"]), format_value_line([{"replay": 0.1}, {"name": "one unit", "v": [1]}])
    ('0, 0.001, best', '0.1, one unit')
    """
    return ", ".join(map(_format_listed_value, values))


def parse_value_line(line: str, listed_values: Iterable[Any]) -> str:
    """Convert an edited line to the text of a config.

    The names of listed sections are replaced with the sections.

    >>> parse_value_line("one unit, 2", [{"name": "one unit", "v": [1]}])
    '{"name": "one unit", "v": [1]}, 2'
    """
    sections = {_format_listed_value(value): json.dumps(value) for value in listed_values if isinstance(value, dict)}
    pattern = "|".join(map(re.escape, sorted(sections, key=len, reverse=True)))
    return re.sub(pattern, lambda match: sections[match[0]], line) if sections else line


def _format_listed_value(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("name") or format_config_value(value))
    return value if isinstance(value, str) else f"{value:g}" if is_number(value) else json.dumps(value)
