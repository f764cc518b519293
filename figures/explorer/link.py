"""Links that restore a page: its settings are the query of its address and are checked like a config."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from figures.explorer import settings
from figures.explorer.settings import is_number
from figures.series import NORMALISED, drawn
from statmech.config import overridden
from statmech.errors import ConfigError, StatmechError, not_known
from statmech.scenarios.page import View, without_page
from statmech.scenarios.registry import kinds, scenario_from

VIEW = "view"  # section of a link, in addition to the keys of a config
SETTINGS = ("x", "show", "over", "log", "at", "runs")  # keys of this section
WORD = re.compile(r"[A-Za-z_][\w-]*")
YAML_WORDS = ("null", "true", "false")
FILES = "{}: files (inputs: rows) can only be named in a config: statmech explore CONFIG.yaml"


def written(view: View) -> str:
    """Format a view as the query of an address.

    >>> written(View({"rule": ["hebb", "adatron"], "K": 11, "t": 50}, x="K", log=("x",)))
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
    view_pairs = {f"{VIEW}.{name}": value for name, value in settings_by_name.items() if value not in ("", [], None)}
    pairs = {name: _text(value) for name, value in {**view.config, **view_pairs}.items()}
    return urlencode(pairs, safe=",:[]{}")


def read(query: str | Iterable[tuple[str, str]], files: Sequence[Any] = ()) -> View | None:
    """Return the checked view of a query, or None for a query without settings.

    Raises `ConfigError` for an invalid query. The query may name only `files`, the files in the config of the
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
        config, _ = overridden({}, [f"{name}={value}" for name, value in pairs])
        return _checked(config, files)
    except StatmechError as problem:
        raise ConfigError(f"link: {problem}") from None


def checked(view: View, choice: str) -> View:
    """Return a view of a page of this kind with all settings.

    Raises `ScenarioError` for an invalid config.
    """
    page = settings.page_of(choice)
    x = view.x or page.view.x or page.along
    scenario = scenario_from(settings.config_of(choice, view.config, x))
    if why := without_page(scenario):
        raise ConfigError(why)
    page_config, _ = settings.held_of(scenario, x)
    ends = {name: view.config[name] for name in view.config if name in page_config and is_number(view.config[name])}
    variables = drawn(scenario)
    unknown = [name for name in view.show if name not in variables]
    if unknown:
        raise ConfigError(not_known(unknown[0], "a variable", variables))
    return replace(view, config={**page_config, **ends}, x=x)


def _checked(given: dict[str, Any], files: Sequence[Any]) -> View:
    view_settings = given.pop(VIEW, {})
    if not isinstance(view_settings, Mapping):
        raise ConfigError(f"{VIEW} is a section: {VIEW}.x=K")
    choice = settings.named_in(given)
    if not choice:
        raise ConfigError(f"names none of {', '.join(settings.pages())}")
    if any(file not in files for file in settings.files(given)):
        raise ConfigError(FILES.format("link"))
    start = {name: value for name, value in settings.page_of(choice).start.items() if name not in given}
    needed = {name: start[name] for name in start if kinds()[choice].model_fields.get(name, _NOT).is_required()}
    return checked(_view({**needed, **given}, dict(view_settings), choice), choice)


class _NOT:
    """Replacement for a key that is not a field, such as a parameter, and is never required."""

    @staticmethod
    def is_required() -> bool:
        return False


def _view(given: dict[str, Any], shown: dict[str, Any], choice: str) -> View:
    for name in shown:
        if name not in SETTINGS:
            raise ConfigError(f"{VIEW}.{name}: {not_known(name, 'a setting of the view', SETTINGS)}")
    x, over, time = shown.get("x", ""), shown.get("over", ""), shown.get("at")
    if x and x not in settings.abscissas(choice):
        raise ConfigError(not_known(str(x), "an abscissa", settings.abscissas(choice)))
    if over not in NORMALISED:
        raise ConfigError(not_known(str(over), "a unit", [name for name in NORMALISED if name]))
    if time is not None and not is_number(time):
        raise ConfigError(f"{VIEW}.at must be a number, not {json.dumps(time, default=str)}")
    log = tuple(name for name in _words(shown.get("log", ["x"])) if name in ("x", "y"))
    runs = shown.get("runs") == "yes"
    return View(given, str(x), tuple(_words(shown.get("show", []))), str(over), log, time, runs)


def _words(given: Any) -> list[str]:
    return [str(item) for item in (given if isinstance(given, list) else [given])]


def _text(value: Any) -> str:
    """Format a value as in an override on the command line."""
    if isinstance(value, list) and len(value) == 1 and _is_word(value[0]):
        return str(value[0])
    if isinstance(value, list) and len(value) > 1 and all(is_number(item) or _is_word(item) for item in value):
        return ",".join(item if isinstance(item, str) else f"{item:.12g}" for item in value)
    if _is_word(value):
        return str(value)
    return f"{value:.12g}" if is_number(value) else json.dumps(value)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(WORD.fullmatch(value)) and value.lower() not in YAML_WORDS
