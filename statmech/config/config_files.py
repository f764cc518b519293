"""Reading of config files (YAML 1.2) as scenarios, with the file and line of every error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from statmech.config import yaml_reader
from statmech.config.yaml_reader import MAX_YAML_LINES, YamlSizeError, load_yaml_document
from statmech.errors import (
    MAX_QUOTED_TEXT_LENGTH,
    ConfigError,
    Problem,
    ScenarioError,
    format_unknown_name,
    make_unreadable_store_error,
    shorten_text,
)
from statmech.keys.figure_key import Composition
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import expand_spacing
from statmech.kinds.selection_and_vocabulary import get_kind, scenario_from
from statmech.parameters.parameter_fields import collect_parameters, get_parameters
from statmech.runtime import files
from statmech.stores.checksums import (
    GROUP_METADATA_FILE,
    check_regular_files,
    find_corrupted_files,
    read_group_metadata,
)
from statmech.stores.dataset import config_from_attributes, explain_unloaded_code
from statmech.stores.zarr_store import list_stores

_PACKAGE_FOLDER = Path(__file__).parents[1]
SIMULATION_STORE_NAME = "simulation.zarr"
RESULT_STORE_PATTERNS = (SIMULATION_STORE_NAME, "simulation.*-of-*.zarr", "theory.zarr")
MAX_CONFIG_BYTES = 500_000
MAX_SECTION_LINE_LETTERS = 100  # longer sections of a written config have a line for each key
ConfigCheck = Callable[[dict[str, Any]], Iterable[Problem]]
SHIPPED_CONFIG_FOLDER = next(
    (folder for folder in (_PACKAGE_FOLDER / "configs", _PACKAGE_FOLDER.parent / "configs") if folder.is_dir()),
    _PACKAGE_FOLDER / "configs",
)


def list_shipped_configs() -> list[str]:
    """List the names of the configs that are part of the statmech package.

    Returns
    -------
    list of str
        Names in alphabetical order.

    Examples
    --------
    >>> "ensemble" in list_shipped_configs()
    True
    """
    return sorted(path.stem for path in SHIPPED_CONFIG_FOLDER.glob("*.yaml"))


def find_config(config: str | Path) -> Path:
    """Find a config by its path or its shipped name. A results folder is also a valid path.

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
    >>> find_config("variety").name
    'variety.yaml'
    """
    if not str(config):
        raise ConfigError("the name of the config is empty")
    path = Path(config)
    store = path.parent / SIMULATION_STORE_NAME
    path = path.parent if path in (store, *list_stores(store)) else path
    if path.is_file() or any(store.is_dir() for store in list_stores(path / SIMULATION_STORE_NAME)):
        return path
    shipped_file = SHIPPED_CONFIG_FOLDER / f"{config}.yaml"
    if path.suffix == "" and path.name == str(config) and shipped_file.is_file():
        return shipped_file
    raise ConfigError(f"{config}: {_describe_missing_config(path)}")


def get_shipped_config_name(config: str | Path) -> str:
    """Return the shipped name of a config, or an empty string if the config is not shipped.

    >>> (
    ...     get_shipped_config_name("variety"), get_shipped_config_name(SHIPPED_CONFIG_FOLDER / "variety.yaml"),
    ...     get_shipped_config_name(__file__)
    ... )
    ('variety', 'variety', '')
    """
    path = find_config(config).resolve()
    return path.stem if path.parent == SHIPPED_CONFIG_FOLDER.resolve() else ""


def check_results_not_in_subfolders(folder: Path) -> None:
    """Raise `ConfigError` for a file, or for a folder without results if some of its subfolders have results.

    The message lists these subfolders.
    """
    if folder.is_file():
        raise ConfigError(f"{folder}: not a folder. Give the folder of its results, such as results/{folder.stem}")
    if folder.is_dir() and folder.suffix != ".zarr" and not _find_stores(folder) and _find_stores(folder, "*/"):
        raise ConfigError(f"{folder}: {_describe_missing_results(folder)}")


def _find_stores(folder: Path, subfolder_pattern: str = "") -> list[Path]:
    """Find the result stores in a folder, or in the subfolders that match a pattern."""
    return [store for name in RESULT_STORE_PATTERNS for store in folder.glob(f"{subfolder_pattern}{name}")]


def _describe_missing_results(path: Path) -> str:
    """Return a message that a folder given as a config has no simulation, naming subfolders with simulations."""
    subfolders = sorted({str(store.parent) for store in _find_stores(path, "*/")})
    hint = f". Folders with results in it: {', '.join(subfolders)}" if subfolders else ""
    results = "with theory.zarr alone" if (path / "theory.zarr").is_dir() else "without results"
    return f"a folder {results}: no {SIMULATION_STORE_NAME}{hint}"


def _describe_missing_config(path: Path) -> str:
    """Explain in a message why a path is not a config."""
    if path.is_dir():
        return _describe_missing_results(path)
    if path.exists():
        return "a pipe or a device; a config is an ordinary file"
    if "=" in path.name:
        return "no such file. The config comes first, KEY=VALUE after it: statmech run ensemble K=3"
    if path.stem in list_shipped_configs():
        return f'no such file. Did you mean the shipped config "{path.stem}"?'
    if path.parent != Path("."):
        return "no such file, nor a folder of results"
    from statmech.config.shipped_configs import find_configs_by_topic  # imported late: reads every shipped config

    term, configs = find_configs_by_topic(path.stem)
    topic = f'Configs about "{term}": {", ".join(configs)}. ' if configs else ""
    listing = f"{topic}`statmech configs` lists {'all' if configs else 'them'}"
    return f"no such file, and {format_unknown_name(path.stem, 'a shipped config', list_shipped_configs(), listing)}"


def load(
    config: str | Path, overrides: Iterable[str] = (), *, data: bool = False, check: ConfigCheck | None = None
) -> Any:
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
    path, overrides = find_config(config), [overrides] if isinstance(overrides, str) else overrides
    document = parse_config_file(path)
    keys, override_by_key = apply_overrides(document, overrides)
    keys = _drop_unused_parameters(keys, override_by_key)
    problems = list(check(keys)) if check else []
    try:
        scenario = scenario_from(keys)
        problems += scenario.find_input_file_problems() if data else []
        if "figure" in override_by_key or not get_shipped_config_name(path):  # otherwise the overlay is drawn
            problems += _find_composed_figure_problems(scenario)
    except ScenarioError as failure:
        problems = [*failure.problems, *problems]
        if path.is_dir() and (explanation := explain_unloaded_code(_read_stored_attributes(path))):
            raise ConfigError(f"{path}: {explanation}") from None
    if problems:
        raise ConfigError("\n".join(_locate_problems(ScenarioError(problems), path, document, override_by_key)))
    return scenario


def _drop_unused_parameters(keys: dict[str, Any], override_by_key: dict[str, str]) -> dict[str, Any]:
    """Drop config parameters that do not belong to any rule or learner selected by an override.

    >>> changed, places = apply_overrides({"learner": ["adatron"], "omega": 1.5, "alpha": 2}, ["learner=gibbs"])
    >>> _drop_unused_parameters(changed, places)
    {'learner': 'gibbs', 'alpha': 2}
    """
    kind = get_kind(keys)
    choices = kind.choices() if hasattr(kind, "CHOICE") else {}
    selection = [(choices[key], name) for key in choices for name in _wrap_in_list(keys.get(key, []))]
    # the names are compared in a list, as a section of a config has no hash
    if not any(key in override_by_key for key in choices) or any(name not in [*names] for names, name in selection):
        return keys
    used_names = {name for registry, class_name in selection for name in get_parameters(registry[class_name])}
    unused_names = collect_parameters(kind.classes()).keys() - used_names - override_by_key.keys()
    return {name: value for name, value in keys.items() if name not in unused_names}


def _wrap_in_list(value: Any) -> list[Any]:
    """Return a list unchanged, and wrap any other value in a list."""
    return value if isinstance(value, list) else [value]


def _find_composed_figure_problems(scenario: AbstractScenario) -> list[Problem]:
    """Return the reasons why a composed figure cannot be drawn. Named figures are checked elsewhere."""
    figure = scenario.figure
    return (
        [(("figure", *key), why) for key, why in figure.problems(scenario)] if isinstance(figure, Composition) else []
    )


def apply_overrides(keys: dict[str, Any], overrides: Iterable[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Apply `key=v1,v2` overrides to config keys, and map each changed key to its override.

    >>> apply_overrides({"rule": "hebb", "t": [1]}, ["start.R=0.5"])
    ({'rule': 'hebb', 't': [1], 'start': {'R': 0.5}}, {'start': 'start.R=0.5'})
    """
    changed, override_by_key, problems = dict(keys), {}, []
    for override in overrides:
        try:
            name, value = _parse_override(override)
        except ConfigError as failure:
            problems.append(str(failure))
            continue
        first, *inner = name.split(".")
        _set_dotted_key(changed, [first, *inner], value)
        override_by_key[first] = override
    if problems:
        raise ConfigError("\n".join(problems))
    return changed, override_by_key


def format_config(scenario: AbstractScenario) -> str:
    """Format a scenario as a config file, omitting keys with default values.

    >>> from statmech import Scenario
    >>> print(format_config(Scenario(rule=["hebb", "adatron"], eta=0.5, t=[1, 2])))
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
        except ScenarioError as failure:  # some defaults are not valid here, such as the start for the optimal rule
            required_values |= {str(key): all_values[str(key)] for (key, *_), _ in failure.problems}
    changed = {name: value for name, value in all_values.items() if default.get(name) != value}
    return "\n".join(_format_yaml_entry(name, value) for name, value in {**required_values, **changed}.items())


def _format_yaml_entry(name: str, value: Any) -> str:
    """Format a key and its value, in a line for each inner key if one line would be long."""
    line = f"{name}: {format_yaml_value(value)}"
    if len(line) <= MAX_SECTION_LINE_LETTERS or not isinstance(value, dict) or not all(map(str.isidentifier, value)):
        return line
    return "\n  ".join([f"{name}:", *(f"{key}: {format_yaml_value(part)}" for key, part in value.items())])


def format_yaml_value(value: Any) -> str:
    """Format a config value as JSON, which is also YAML, and equally spaced numbers as a range.

    >>> format_yaml_value([0.0, 0.5, 1.0, 1.5]), format_yaml_value([1.0, 2.0])
    ('{linspace: [0, 1.5, 4]}', '[1.0, 2.0]')
    """
    if isinstance(value, list) and len(value) > 3 and all(isinstance(number, float) for number in value):
        for spaced in ("linspace", "geomspace"):
            ends = [int(number) if number.is_integer() else number for number in (value[0], value[-1])]
            if (spaced == "linspace" or min(value) > 0) and [*expand_spacing({spaced: [*ends, len(value)]})] == value:
                return f"{{{spaced}: {json.dumps([*ends, len(value)])}}}"
    return json.dumps(value)


def parse_config_file(path: Path) -> Any:
    """Read a config file, or the config in a results folder, as a mapping."""
    if path.is_dir():
        return config_from_attributes(_read_stored_attributes(path))
    try:
        content = files.read_bounded_file(path, MAX_CONFIG_BYTES)
    except OSError as failure:
        raise ConfigError(f"{path}: cannot be read: {failure.strerror or failure}") from None
    text = content.decode(errors="replace")
    try:
        document = load_yaml_document(content)
    except Exception as failure:  # ruamel raises many types, such as KeyError for an unknown YAML version
        raise ConfigError(_prefix_location(path, *yaml_reader.describe_yaml_mistake(failure, text))) from None
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        mapping = (None, "a config is a mapping of keys to values, such as `rule: hebb`")
        raise ConfigError(_prefix_location(path, *(yaml_reader.find_missing_colon_space(text) or mapping)))
    return document


def _prefix_location(path: Path, line: int | None, sentence: str) -> str:
    """Prefix a message with its file and, if known, its line."""
    return f"{path}{f':{line}' if line else ''}: {sentence}"


def _read_stored_attributes(folder: Path) -> Any:
    """Read the attributes of the simulation in a folder, or raise an error if they have no valid config."""
    store = list_stores(folder / SIMULATION_STORE_NAME)[0]
    check_regular_files(store)
    if GROUP_METADATA_FILE in find_corrupted_files(store):
        raise ConfigError(
            f"{store}: its config is corrupted or missing ({GROUP_METADATA_FILE}). Give the config file instead: "
            f"`statmech run CONFIG --fresh --out {store.parent}`"
        )
    try:
        attributes = read_group_metadata(store)["attributes"]
        config_from_attributes(attributes)
    except (ValueError, LookupError, TypeError) as failure:
        raise make_unreadable_store_error(store, failure) from None
    return attributes


def _parse_override(text: str) -> tuple[str, Any]:
    """Parse an override `key=value` into its key and value."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"{_shorten_override(text)}: an override has the form key=value or key=v1,v2, without spaces")
    is_list = "," in value and not value.lstrip().startswith(("[", "{"))
    try:
        return name, load_yaml_document(f"[{value}]" if is_list else value)
    except YamlSizeError as failure:
        raise ConfigError(f"{_shorten_override(text)}: {failure.problem}") from None
    except Exception as failure:  # ruamel raises many types of exceptions
        reason = yaml_reader.describe_yaml_mistake(failure, value)[1]
        problem = f"{_shorten_override(repr(value))} is neither a value nor a list of values v1,v2: {reason}"
        raise ConfigError(f"{_shorten_override(text)}: {problem}") from None


def _set_dotted_key(keys: dict[str, Any], path: list[str], value: Any) -> None:
    """Set the value of a dotted config key such as `start.R`, creating missing sections."""
    for part in path[:-1]:
        section = keys.get(part)
        keys[part] = dict(section) if isinstance(section, dict) else {}
        keys = keys[part]
    keys[path[-1]] = value


def _locate_problems(failure: ScenarioError, path: Path, document: Any, override_by_key: dict[str, str]) -> list[str]:
    """Return all problems with their locations, first in the config file by line, then in the overrides."""
    in_file, in_overrides = [], []
    for (location, _), sentence in zip(failure.problems, failure.lines(), strict=True):
        if location and location[0] in override_by_key:
            key = str(location[0])
            in_overrides.append(f"{_shorten_override(override_by_key[key])}: {_quote_range_brackets(sentence, key)}")
        else:
            in_file.append((_find_line(document, location), sentence))
    in_file.sort(key=lambda problem: problem[0] or MAX_YAML_LINES + 1)
    return [*(_prefix_location(path, line, sentence) for line, sentence in in_file), *in_overrides]


def _shorten_override(override: str) -> str:
    """Shorten an override for a message."""
    return shorten_text(override, MAX_QUOTED_TEXT_LENGTH)


def _quote_range_brackets(sentence: str, key: str) -> str:
    """Quote ranges such as {linspace: ...} in a message about an override, to protect them from a shell."""
    return re.sub(r"{linspace: .*?}", lambda match: f"'{key}={match[0]}'", sentence)


def _find_line(node: Any, location: tuple[str | int, ...]) -> int | None:
    """Return the line of the innermost part of a location that a config file contains, or None."""
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
