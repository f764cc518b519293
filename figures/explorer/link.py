"""Links that restore a page: the query of the address holds the settings, which are checked like a config."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from figures.explorer import settings
from figures.explorer.settings import is_number
from figures.series import NORMALISATION_LABELS, get_chart_variables
from statmech.config import apply_overrides
from statmech.errors import ConfigError, StatmechError, format_unknown_name
from statmech.scenarios.kind_registry import get_kinds
from statmech.scenarios.page import View, explain_missing_page
from statmech.scenarios.registry import scenario_from

VIEW_SECTION = "view"  # section of a link for settings that are not config keys
VIEW_SETTING_NAMES = ("x", "show", "over", "log", "at", "runs")  # keys of the section `view`
IDENTIFIER_PATTERN = re.compile(r"[A-Za-z_][\w-]*")
YAML_LITERALS = ("null", "true", "false")
FILE_NOT_ALLOWED_MESSAGE = (
    "{}: data files (inputs: rows) can be named only in a config: run statmech explore CONFIG.yaml"
)


def format_query(view: View) -> str:
    """Format a view as the query string of a link.

    >>> format_query(View({"rule": ["hebb", "adatron"], "K": 11, "t": 50}, x="K", log=("x",)))
    'rule=hebb,adatron&K=11&t=50&view.x=K&view.log=x'
    """
    settings_by_name = {
        "x": view.x,
        "show": list(view.show),
        "over": view.over,
        "log": list(view.log) or "none",
        "at": view.at,
    }
    settings_by_name["runs"] = "yes" if view.runs else ""
    view_pairs = {
        f"{VIEW_SECTION}.{name}": value for name, value in settings_by_name.items() if value not in ("", [], None)
    }
    pairs = {name: _format_query_value(value) for name, value in {**view.config, **view_pairs}.items()}
    return urlencode(pairs, safe=",:[]{}")


def read(query: str | Iterable[tuple[str, str]], allowed_files: Sequence[Any] = ()) -> View | None:
    """Parse and check the view in a query, or return None for a query without settings.

    Raises `ConfigError` for an invalid query. The query may name only `allowed_files`, the files in the config of the
    explorer.

    >>> read("rule=hebb&t=50&K=3&view.x=K").x
    'K'
    >>> read("rule=hebb&t=50&view.at=now")
    Traceback (most recent call last):
    statmech.errors.ConfigError: link: view.at must be a number, not "now"
    """
    pairs = parse_qsl(query.lstrip("?"), keep_blank_values=True) if isinstance(query, str) else list(query)
    pairs = [(name, value) for name, value in pairs if name != "token"]
    if not pairs:
        return None
    try:
        config, _ = apply_overrides({}, [f"{name}={value}" for name, value in pairs])
        return _check_query_config(config, allowed_files)
    except StatmechError as problem:
        raise ConfigError(f"link: {problem}") from None


def check_and_complete_view(view: View, kind_name: str) -> View:
    """Check a view of this kind of scenario, and complete its settings.

    Raises `ScenarioError` for an invalid config.
    """
    page = settings.get_page_settings(kind_name)
    x = view.x or page.view.x or page.x_key
    scenario = scenario_from(settings.expand_page_config(kind_name, view.config, x))
    if why := explain_missing_page(scenario):
        raise ConfigError(why)
    page_config, _ = settings.reduce_config(scenario, x)
    ends = {name: view.config[name] for name in view.config if name in page_config and is_number(view.config[name])}
    variables = get_chart_variables(scenario)
    unknown = [name for name in view.show if name not in variables]
    if unknown:
        raise ConfigError(format_unknown_name(unknown[0], "a variable", variables))
    return replace(view, config={**page_config, **ends}, x=x)


def _check_query_config(config: dict[str, Any], allowed_files: Sequence[Any]) -> View:
    view_settings = config.pop(VIEW_SECTION, {})
    if not isinstance(view_settings, Mapping):
        raise ConfigError(f"{VIEW_SECTION} is a section without a value: set for example {VIEW_SECTION}.x=K")
    choice = settings.find_page_kind(config)
    if not choice:
        raise ConfigError(f"must contain one of the keys {', '.join(settings.get_page_settings_by_kind())}")
    if any(file not in allowed_files for file in settings.files(config)):
        raise ConfigError(FILE_NOT_ALLOWED_MESSAGE.format("link"))
    start = {name: value for name, value in settings.get_page_settings(choice).start.items() if name not in config}
    needed = {
        name: start[name]
        for name in start
        if get_kinds()[choice].model_fields.get(name, _NeverRequiredField).is_required()
    }
    return check_and_complete_view(_parse_view({**needed, **config}, dict(view_settings), choice), choice)


class _NeverRequiredField:
    """Stand-in for a key that is not a field, such as a parameter, and never required."""

    @staticmethod
    def is_required() -> bool:
        return False


def _parse_view(config: dict[str, Any], view_settings: dict[str, Any], kind_name: str) -> View:
    for name in view_settings:
        if name not in VIEW_SETTING_NAMES:
            raise ConfigError(
                f"{VIEW_SECTION}.{name}: {format_unknown_name(name, 'a setting of the view', VIEW_SETTING_NAMES)}"
            )
    x, over, time = view_settings.get("x", ""), view_settings.get("over", ""), view_settings.get("at")
    if x and x not in settings.list_abscissas(kind_name):
        raise ConfigError(format_unknown_name(str(x), "an abscissa", settings.list_abscissas(kind_name)))
    if over not in NORMALISATION_LABELS:
        raise ConfigError(format_unknown_name(str(over), "a unit", [name for name in NORMALISATION_LABELS if name]))
    if time is not None and not is_number(time):
        raise ConfigError(f"{VIEW_SECTION}.at must be a number, not {json.dumps(time, default=str)}")
    log = tuple(name for name in _as_text_list(view_settings.get("log", ["x"])) if name in ("x", "y"))
    runs = view_settings.get("runs") == "yes"
    return View(config, str(x), tuple(_as_text_list(view_settings.get("show", []))), str(over), log, time, runs)


def _as_text_list(value: Any) -> list[str]:
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _format_query_value(value: Any) -> str:
    """Format a value like an override on the command line."""
    if isinstance(value, list) and len(value) == 1 and _is_identifier(value[0]):
        return str(value[0])
    if isinstance(value, list) and len(value) > 1 and all(is_number(item) or _is_identifier(item) for item in value):
        return ",".join(item if isinstance(item, str) else f"{item:.12g}" for item in value)
    if _is_identifier(value):
        return str(value)
    return f"{value:.12g}" if is_number(value) else json.dumps(value)


def _is_identifier(value: Any) -> bool:
    return isinstance(value, str) and bool(IDENTIFIER_PATTERN.fullmatch(value)) and value.lower() not in YAML_LITERALS
