"""Completion of config names, keys and values by the Tab key of a shell.

`statmech --install-completion` switches it on. Bash splits `rule=hebb` into three words, while other shells complete it
as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from statmech.keys.scenario import AbstractScenario
    from statmech.parameters.parameter_fields import ConfigKey


def complete_config_name(ctx: typer.Context, arguments: list[str], incomplete: str) -> list[str | tuple[str, str]]:
    """Return the shipped configs, the YAML files and the folders whose name begins with the given text."""
    from statmech.config.config_files import list_shipped_configs

    paths = [path for path in Path().glob(f"{incomplete}*") if path.suffix in (".yaml", ".yml") or path.is_dir()]
    return [*list_shipped_configs(), *map(str, sorted(paths))]


def complete_override(ctx: typer.Context, arguments: list[str], incomplete: str) -> list[str | tuple[str, str]]:
    """Return the keys of the command's config, or the possible values of a key followed by `=`."""
    from statmech.errors import StatmechError

    try:
        kind = _find_kind(str(ctx.params.get("config")))
    except (StatmechError, OSError):
        return []
    keys = {name: key for name, key in kind.describe_all_keys().items() if name in kind.list_keys()}
    overrides = list(ctx.params.get("overrides") or ctx.params.get("further") or ())
    if overrides[-1:] == ["="]:
        overrides.pop()
    if overrides and overrides[-1] in keys:  # Bash has split the word at "="
        return [*_complete_values(keys[overrides[-1]], incomplete)]
    name, equals, typed = incomplete.partition("=")
    if equals:
        return [f"{name}={value}" for value in _complete_values(keys[name], typed)] if name in keys else []
    return [(f"{name}=", key.meaning) for name, key in keys.items()]


def _find_kind(config: str) -> type[AbstractScenario]:
    """Return the kind of scenario that a config selects."""
    from statmech.config.config_files import find_config, parse_config_file
    from statmech.kinds.selection_and_vocabulary import get_kind

    return get_kind(dict(parse_config_file(find_config(config))))


def _complete_values(key: ConfigKey, typed: str) -> Iterator[str]:
    """Yield the possible values of a key after the complete values of a list `v1,v2`."""
    complete, comma, _ = typed.rpartition(",")
    choices: Any = ("true", "false") if key.type is bool else key.choices
    for choice in choices:
        yield f"{complete}{comma}{choice}"
