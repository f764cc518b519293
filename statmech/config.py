"""Reading of config files (YAML 1.2) as scenarios, with file and line for every problem."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from statmech import yaml_messages
from statmech.errors import LONGEST_LINE, ConfigError, Problem, ScenarioError, not_known, shortened, unreadable
from statmech.parameters import known_parameters, parameters_of
from statmech.results.checksums import ROOT, check_ordinary, corrupted, group_of
from statmech.results.stored_config import config_of
from statmech.running_command import option
from statmech.runtime import files
from statmech.safe_yaml import MOST_LINES, TooLarge, document_of
from statmech.scenarios.axes import expand
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.composition import Composition
from statmech.scenarios.registry import kind_of, scenario_from

_PACKAGE = Path(__file__).parent
STORE = "simulation.zarr"
STORES = (STORE, "theory.zarr")
MOST_BYTES = 500_000
Check = Callable[[dict[str, Any]], Iterable[Problem]]
SHIPPED = next(
    (folder for folder in (_PACKAGE / "configs", _PACKAGE.parent / "configs") if folder.is_dir()),
    _PACKAGE / "configs",
)


def shipped() -> list[str]:
    """List the names of the configs that come with statmech, whatever the current folder.

    Returns
    -------
    list of str
        Names in alphabetical order.

    Examples
    --------
    >>> "ensemble" in shipped()
    True
    """
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def description(name: str) -> str:
    """Return the first comment of a shipped config, which describes its figure.

    >>> description("variety")
    'Figure 4 of Miyoshi, Hara & Okada: q against R during learning;
    the lower the curve, the more an ensemble gains.'
    """
    lines = (SHIPPED / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ") for line in lines if line.startswith("#")), "")


def find(config: str | Path) -> Path:
    """Find a config by its path or its shipped name. The path may be a results folder, which contains a config.

    Parameters
    ----------
    config
        A path, or a shipped name.

    Returns
    -------
    Path
        Path of the file or of the folder.

    Raises
    ------
    ConfigError
        If no such config exists.

    Examples
    --------
    >>> find("variety").name
    'variety.yaml'
    """
    if not str(config):
        raise ConfigError("the name of the config is empty")
    path = Path(config)
    path = path.parent if path.name == STORE else path
    if path.is_file() or (path / STORE).is_dir():
        return path
    shipped_file = SHIPPED / f"{config}.yaml"
    if path.suffix == "" and path.name == str(config) and shipped_file.is_file():
        return shipped_file
    raise ConfigError(f"{config}: {_missing(path)}")


def shipped_name(config: str | Path) -> str:
    """Return the name of a shipped config from its name or path, an empty string for any other config.

    >>> shipped_name("variety"), shipped_name(SHIPPED / "variety.yaml"), shipped_name(__file__)
    ('variety', 'variety', '')
    """
    path = find(config).resolve()
    return path.stem if path.parent == SHIPPED.resolve() else ""


def check_results(folder: Path) -> None:
    """Raise `ConfigError` if a folder has no results but some of its subfolders have.

    The message lists these subfolders.
    """
    if folder.is_dir() and folder.suffix != ".zarr" and not _stores(folder) and _stores(folder, "*/"):
        raise ConfigError(f"{folder}: {_without_results(folder)}")


def _stores(folder: Path, inside: str = "") -> list[Path]:
    """Find the stores of results in a folder, or in its subfolders that match a pattern."""
    return [store for name in STORES for store in folder.glob(f"{inside}{name}")]


def _without_results(path: Path) -> str:
    """Return a sentence about a folder without a simulation, with its subfolders that have one."""
    subfolders = sorted({str(store.parent) for store in _stores(path, "*/")})
    hint = f". Folders with results in it: {', '.join(subfolders)}" if subfolders else ""
    results = "with theory.zarr alone" if (path / "theory.zarr").is_dir() else "without results"
    return f"a folder {results}: no {STORE}{hint}"


def _missing(path: Path) -> str:
    """Return a sentence that explains why a path is not a config."""
    if path.is_dir():
        return _without_results(path)
    if path.exists():
        return "a pipe or a device; a config is an ordinary file"
    if "=" in path.name:
        return "no such file. The config comes first, KEY=VALUE after it: statmech run ensemble K=3"
    if path.stem in shipped():
        return f'no such file. Did you mean the shipped config "{path.stem}"?'
    if path.parent != Path("."):
        return "no such file, nor a folder of results"
    return f"no such file, and {not_known(path.stem, 'a shipped config', shipped())}"


def load(config: str | Path, overrides: Iterable[str] = (), *, data: bool = False, check: Check | None = None) -> Any:
    """Read a config from a path or by its shipped name, with `key=v1,v2` overrides.

    Parameters
    ----------
    config
        A path, a shipped name, or a folder of results.
    overrides
        Overrides of keys: `key=v1,v2`.
    data
        True to require the data files of the config, as a simulation does.
    check
        A function that returns further problems of the keys, such as a figure that does not exist.

    Returns
    -------
    AbstractScenario
        The scenario that the config describes.

    Raises
    ------
    ConfigError
        If the config is not valid. The message names file, line, the given value and the possible values.

    Examples
    --------
    >>> load("ensemble", ["K=3", "eta=0.5,1"]).shape
    {'rule': 3, 'eta': 2}
    """
    path, overrides = find(config), [overrides] if isinstance(overrides, str) else overrides
    document = _parse(path)
    keys, override_by_key = overridden(document, overrides)
    keys = _without_parameters_of_others(keys, override_by_key)
    problems = list(check(keys)) if check else []
    try:
        scenario = scenario_from(keys)
        problems += scenario.data_problems() if data else []
        problems += _figure_problems(scenario)
    except ScenarioError as failure:
        problems = [*failure.problems, *problems]
    if problems:
        raise ConfigError("\n".join(_located(ScenarioError(problems), path, document, override_by_key)))
    return scenario


def _without_parameters_of_others(given: dict[str, Any], places: dict[str, str]) -> dict[str, Any]:
    """Drop the parameters of the config file that no rule or learner selected by an override has.

    >>> changed, places = overridden({"learner": ["adatron"], "omega": 1.5, "alpha": 2}, ["learner=gibbs"])
    >>> _without_parameters_of_others(changed, places)
    {'learner': 'gibbs', 'alpha': 2}
    """
    kind = kind_of(given)
    choices = kind.choices() if hasattr(kind, "CHOICE") else {}
    selection = [(choices[key], name) for key in choices for name in _every(given.get(key, []))]
    if not any(key in places for key in choices) or any(name not in registry for registry, name in selection):
        return given
    used_names = {name for registry, class_name in selection for name in parameters_of(registry[class_name])}
    unused_names = known_parameters(kind.classes()).keys() - used_names - places.keys()
    return {name: value for name, value in given.items() if name not in unused_names}


def _every(value: Any) -> list[Any]:
    """Return a list unchanged, and any other value as a list with one entry."""
    return value if isinstance(value, list) else [value]


def _figure_problems(scenario: AbstractScenario) -> list[Problem]:
    """Return the reasons why a composed figure cannot be drawn. Named figures are checked elsewhere."""
    figure = scenario.figure
    return (
        [(("figure", *key), why) for key, why in figure.problems(scenario)] if isinstance(figure, Composition) else []
    )


def overridden(given: dict[str, Any], overrides: Iterable[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Apply `key=v1,v2` overrides to the keys of a config. The second result maps each changed key to its override.

    >>> overridden({"rule": "hebb", "t": [1]}, ["start.R=0.5"])
    ({'rule': 'hebb', 't': [1], 'start': {'R': 0.5}}, {'start': 'start.R=0.5'})
    """
    changed, override_by_key, problems = dict(given), {}, []
    for override in overrides:
        try:
            name, value = _override(override)
        except ConfigError as failure:
            problems.append(str(failure))
            continue
        first, *inner = name.split(".")
        _set(changed, [first, *inner], value)
        override_by_key[first] = override
    if problems:
        raise ConfigError("\n".join(problems))
    return changed, override_by_key


def written(scenario: AbstractScenario) -> str:
    """Return a scenario as the text of a config file, without keys at their default values.

    >>> from statmech import Scenario
    >>> print(written(Scenario(rule=["hebb", "adatron"], eta=0.5, t=[1, 2])))
    rule: ["hebb", "adatron"]
    t: [1.0, 2.0]
    eta: 0.5
    """
    all_values, zipped = scenario.config(), {name for group in scenario.zipped for name in group}
    required: list[str] = [
        name for name, field in type(scenario).model_fields.items() if field.is_required() and name not in zipped
    ]
    required_values: dict[str, Any] = {name: all_values[name] for name in (*required, *(["zip"] if zipped else []))}
    default: dict[str, Any] = {}
    for _ in range(2):
        try:
            default = type(scenario)(**required_values).config()
            break
        except ScenarioError as failure:  # a default is not valid here, e.g. the start for the optimal rule
            required_values |= {str(key): all_values[str(key)] for (key, *_), _ in failure.problems}
    changed = {name: value for name, value in all_values.items() if default.get(name) != value}
    return "\n".join(f"{name}: {_in_yaml(value)}" for name, value in {**required_values, **changed}.items())


def _in_yaml(value: Any) -> str:
    """Return a value as YAML (in its subset JSON), equally spaced numbers as a range.

    >>> _in_yaml([0.0, 0.5, 1.0, 1.5]), _in_yaml([1.0, 2.0])
    ('{linspace: [0, 1.5, 4]}', '[1.0, 2.0]')
    """
    if isinstance(value, list) and len(value) > 3 and all(isinstance(number, float) for number in value):
        for spaced in ("linspace", "geomspace"):
            ends = [int(number) if number.is_integer() else number for number in (value[0], value[-1])]
            if (spaced == "linspace" or min(value) > 0) and [*expand({spaced: [*ends, len(value)]})] == value:
                return f"{{{spaced}: {json.dumps([*ends, len(value)])}}}"
    return json.dumps(value)


def _parse(path: Path) -> Any:
    """Read a config file, or the config in a results folder, as a mapping."""
    if path.is_dir():
        return _stored(path / STORE)
    try:
        content = files.read(path, MOST_BYTES)
    except OSError as failure:
        raise ConfigError(f"{path}: cannot be read: {failure.strerror or failure}") from None
    text = content.decode(errors="replace")
    try:
        document = document_of(content)
    except Exception as failure:  # ruamel raises many kinds: KeyError for an unknown YAML version, ...
        raise ConfigError(_at(path, *yaml_messages.located(failure, text))) from None
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        mapping = (None, "a config is a mapping of keys to values, such as `rule: hebb`")
        raise ConfigError(_at(path, *(yaml_messages.missing_space(text) or mapping)))
    return document


def _at(path: Path, line: int | None, sentence: str) -> str:
    """Prefix a message with its file and, if known, its line."""
    return f"{path}{f':{line}' if line else ''}: {sentence}"


def _stored(store: Path) -> Any:
    """Read the config of a results store. It must be intact: theory and missing runs are computed from it."""
    check_ordinary(store)
    if ROOT in corrupted(store):
        folder = option(f", and the folder with --out {store.parent}")
        raise ConfigError(f"{store}: its config is corrupted or missing ({ROOT}). Give the config file instead{folder}")
    try:
        return config_of(group_of(store)["attributes"])
    except (ValueError, LookupError, TypeError) as failure:
        raise unreadable(store, failure) from None


def _override(text: str) -> tuple[str, Any]:
    """Parse an override `key=value` into its key and value."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"{_short(text)}: an override has the form key=value or key=v1,v2, without spaces")
    is_list = "," in value and not value.lstrip().startswith(("[", "{"))
    try:
        return name, document_of(f"[{value}]" if is_list else value)
    except TooLarge as failure:
        raise ConfigError(f"{_short(text)}: {failure.problem}") from None
    except Exception as failure:  # ruamel raises many kinds
        reason = yaml_messages.located(failure, value)[1]
        problem = f"{_short(repr(value))} is neither a value nor a list of values v1,v2: {reason}"
        raise ConfigError(f"{_short(text)}: {problem}") from None


def _set(given: dict[str, Any], path: list[str], value: Any) -> None:
    """Set the value of a dotted key, for example of `start.R`. Missing sections are created."""
    for part in path[:-1]:
        section = given.get(part)
        given[part] = dict(section) if isinstance(section, dict) else {}
        given = given[part]
    given[path[-1]] = value


def _located(failure: ScenarioError, path: Path, document: Any, places: dict[str, str]) -> list[str]:
    """Return the problems of a config with their locations: first the file, by line, then the overrides."""
    in_file, in_overrides = [], []
    for (location, _), sentence in zip(failure.problems, failure.lines(), strict=True):
        if location and location[0] in places:
            key = str(location[0])
            in_overrides.append(f"{_short(places[key])}: {_quoted(sentence, key)}")
        else:
            in_file.append((_line(document, location), sentence))
    in_file.sort(key=lambda problem: problem[0] or MOST_LINES + 1)
    return [*(_at(path, line, sentence) for line, sentence in in_file), *in_overrides]


def _short(override: str) -> str:
    """Shorten an override for a message."""
    return shortened(override, LONGEST_LINE)


def _quoted(sentence: str, key: str) -> str:
    """Quote the ranges in a message about an override, because a shell would expand their brackets."""
    return re.sub(r"{linspace: .*?}", lambda match: f"'{key}={match[0]}'", sentence)


def _line(node: Any, location: tuple[str | int, ...]) -> int | None:
    """Find the line of the innermost part of a location that the file contains, or None."""
    line = None
    zipped = node.get("zip") if isinstance(node, dict) else None
    if location and isinstance(zipped, dict) and location[0] in zipped:
        location = ("zip", *location)
    for part in location:
        try:
            line = (node.lc.key(part) if isinstance(part, str) else node.lc.item(part))[0] + 1
            node = node[part]
        except (AttributeError, KeyError, IndexError, TypeError):
            break
    return line
