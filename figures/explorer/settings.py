"""Settings of the explorer: initial settings of its pages, values of their sliders, and links that restore a page.

A page has the name of its kind of scenario (`statmech.keys.scenario.get_kinds`). The query in the address of a
link holds the settings of a page, which are checked like a config.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from figures.curves import MAX_CURVES_PER_CHART, get_chart_variables, needs_log_x
from figures.derived_data import get_time_dependent_keys
from figures.explorer.pages import NORMALISATION_LABELS, PAGES, Page, View, explain_missing_page
from figures.labels import key_label, kind_label
from statmech.config.config_files import apply_overrides
from statmech.errors import ConfigError, ScenarioError, StatmechError, format_unknown_name
from statmech.inputs.data_sets import GENERATED_DATA_SOURCES
from statmech.keys.scenario import AbstractScenario, get_kinds
from statmech.keys.sweep_grid import drop_duplicates, ensure_tuple
from statmech.kinds.selection_and_vocabulary import find_selecting_keys, get_kind_name, scenario_from
from statmech.parameters.parameter_fields import collect_parameters, get_parameters
from statmech.parameters.schedules_and_controls import get_initial_value

INPUTS_KEY, PROTOCOL_KEY = "inputs", "protocol"  # keys with menus of forms
NUM_SNAPSHOT_TIMES = 10  # recorded times if time is not on the x axis
RANGE_VALUES, MIN_STOP_VALUES = 11, 8  # values along x: without slider stops, and at least with stops
# points of a theory line: along recorded times, and along a sweep axis
RECORDED_LINE_POINTS, SWEEP_LINE_POINTS = 80, 40
UNIFORM_TIME_LINE_POINTS = 240  # for uniformly spaced times, as a rate may jump at any time
ALL_INTEGERS_SOLVED_BELOW = 12  # every smaller integer is solved, and only slider stops above
KINDS_WITH_COMPILED_THEORY = ("rule",)  # theory is compiled again for each number of values
KEYS_SHARING_COMPILED_PROGRAM = ("K", "N")  # all values of these keys share one compiled program
DECADE_MULTIPLES = (1, 2, 5)
INTEGER_STOPS = (0, *(m * 10**e for e in range(5) for m in DECADE_MULTIPLES), 10**5)
SLIDER_STOPS: dict[str, tuple[float, ...]] = {
    "K": (1, 2, 3, 4, 5, 7, 9, 11, 15, 21, 31, 51, 101),
    "N": tuple(m * 10**e for e in range(1, 6) for m in DECADE_MULTIPLES),
    "t": tuple(m * 10**e for e in range(0, 7) for m in DECADE_MULTIPLES),
    "alpha": (0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 50),
    "error_rate": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49),
    "lam": tuple(m * 10.0**e for e in range(-4, 3) for m in DECADE_MULTIPLES),
    "P": (30, 100, 300, 1000, 3000, 10_000),
    "s": (1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 25),
    "k": (1, 2, 3),
    "chunk": (1, 2, 4, 8, 16, 32),
    "batch": (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1),
    "epochs": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
    "schedule": (0.5, *(m * 10**e for e in range(4) for m in DECADE_MULTIPLES)),
    "seeds": (2, 4, 8, 16, 32, 64, 128, 256),
    "sweeps": (20, 50, 100, 200, 500, 1000, 2000, 4000, 10_000, 20_000),
}
PROMINENT_KEYS = (  # the most interesting sliders come first
    *("overlap", "switch", "K", "eta", "lam", "s", "P", "error_rate"),
    *("mean", "distance", "flip", "alpha", "epochs", "t"),
)
SLIDER_RANGES = {  # minimum, maximum, step
    "eta": (0.05, 3.0, 0.05),
    "margin": (0.0, 2.0, 0.02),
    "flip": (0.0, 0.5, 0.01),
    "mean": (-1.0, 4.0, 0.05),
    "drift": (0.0, 0.3, 0.005),
    "feature_mean": (0.0, 0.3, 0.005),
    "theta": (-2.0, 2.0, 0.05),
    "discount": (0.05, 1.0, 0.05),
    "within": (0.001, 0.2, 0.001),
    "omega": (0.1, 1.9, 0.1),
}


def get_page_settings_by_kind() -> dict[str, Page]:
    """Return the initial settings of pages, by kind of scenario."""
    return {name: PAGES[name] for name in get_kinds() if name in PAGES}


def find_page_kind(config: Mapping[str, Any]) -> str:
    """Return the kind of scenario of a config, or an empty string if the kind has no page.

    >>> find_page_kind({"loss": "square", "descent": "gradient"}), find_page_kind({"alpha": 1})
    ('descent', '')
    """
    return next(
        (
            name
            for name in (get_kind_name(config), *find_selecting_keys({*config}))
            if name in get_page_settings_by_kind()
        ),
        "",
    )


def get_page_kind(scenario: AbstractScenario) -> str:
    """Return the name of a scenario's kind."""
    return find_page_kind(scenario.config())


def get_page_settings(kind_name: str) -> Page:
    """Return the initial settings of a page.

    Raises `ConfigError` if its kind names no key for the x axis.
    """
    if not get_kinds()[kind_name].USUAL_X_KEY:
        raise ConfigError(f"{kind_name}: a kind with a page requires `USUAL_X_KEY`, the usual key of the x axis")
    return PAGES[kind_name]


def list_slider_keys(kind_name: str, config: Mapping[str, Any] = {}) -> list[str]:
    """Return the keys with sliders: numeric axes and parameters, and the sliders of the page.

    A config excludes the keys that do not apply to its teacher, weights, ...
    """
    kind, page = get_kinds()[kind_name], get_page_settings(kind_name)
    names = dict.fromkeys([*kind.axis_names(), *page.further_slider_keys, kind.USUAL_X_KEY, *page.time_keys])
    excluded = {*page.keys_without_slider}
    for name, (deciding_key, values) in kind.list_key_conditions().items() if config else ():
        if {*values}.isdisjoint(ensure_tuple(config.get(deciding_key, get_default_value(kind_name, deciding_key)))):
            excluded.add(name)
    return [name for name in names if kind.describe(name).numeric and name not in excluded]


def get_slider_stops(kind_name: str, name: str) -> tuple[float, ...]:
    """Return the stops of a slider.

    A slider without stops moves in equal steps. Integers have stops in every decade.
    """
    key, stops = get_kinds()[kind_name].describe(name), SLIDER_STOPS.get(name, ())
    if stops and not (
        key.whole and any(stop % 1 for stop in stops)
    ):  # e.g. a batch may be a fraction or a number of examples
        return stops
    has_integer_stops = key.whole and name not in SLIDER_RANGES
    return tuple(stop for stop in INTEGER_STOPS if key.lower <= stop <= key.upper) if has_integer_stops else ()


def get_slider_range(kind_name: str, name: str) -> tuple[float, float, float]:
    """Return the minimum, maximum and step of a slider.

    By default they follow from the bounds and the default of its key.
    """
    key = get_kinds()[kind_name].describe(name)
    if name in SLIDER_RANGES:
        low, high, step = SLIDER_RANGES[name]
        return low, high - step if key.below == high else high, step
    wide = 4 * abs(key.default or 0) or 1.0
    low, high = key.lower if np.isfinite(key.lower) else -wide, key.upper if np.isfinite(key.upper) else wide
    if key.whole:
        first, last = math.floor(low) + (key.at_least is None), math.ceil(min(high, wide)) - (key.at_most is None)
        return first, last, max(1, round((last - first) / 100))
    step = (high - low) / 100
    return low + step, high - step, step


def list_allowed_time_function_keys(kind: Any) -> list[str]:
    """Return the keys of a kind that may be functions of time."""
    return [*kind.OPTIMISABLE_KEYS, *kind.STEPWISE_TIME_FUNCTION_KEYS]


def is_applicable_key(kind_name: str, learner_names: Sequence[str], name: str) -> bool:
    """Return True unless a key is a parameter of other learners only."""
    classes = get_kinds()[kind_name].classes()
    # unknown names are skipped here, because the scenario reports them
    learner_classes = [classes[learner] for learner in learner_names if learner in classes]
    return name not in collect_parameters(classes) or any(name in get_parameters(kind) for kind in learner_classes)


def list_learner_names(kind_name: str, config: Mapping[str, Any]) -> list[str]:
    """Return the names of the rules, learners, losses, ... in the config of a page.

    >>> list_learner_names("descent", {"descent": ["gradient", "momentum"], "loss": "huber", "alpha": 2})
    ['gradient', 'momentum', 'huber']
    """
    values = [config.get(key, ()) for key in get_kinds()[kind_name].choices()]
    return [name for value in values for name in (value if isinstance(value, list | tuple) else [value])]


def get_slider_label(kind_name: str, name: str) -> str:
    """Return the label of a key's slider.

    >>> get_slider_label("rule", "eta"), get_slider_label("boundary", "error_rate")
    ('η', 'error rate')
    """
    return key_label(name, get_kinds()[kind_name].describe(name).label)


def get_planes(kind_name: str) -> dict[str, tuple[str, str]]:
    """Return the pairs of variables that can be drawn against each other, by names such as "R-q"."""
    return {f"{x}-{y}": (x, y) for x, y in get_page_settings(kind_name).variable_planes}


def list_abscissas(kind_name: str) -> list[str]:
    """Return the possible x axes: planes, and all keys with sliders except intermediate times."""
    inner_times = get_page_settings(kind_name).time_keys
    return [*(name for name in list_slider_keys(kind_name) if name not in inner_times), *get_planes(kind_name)]


def get_x_key(kind_name: str, x: str) -> str:
    """Return the key of the x axis, or the default key of this kind for a plane."""
    return get_kinds()[kind_name].USUAL_X_KEY if x in get_planes(kind_name) else x


def is_recorded_key(kind_name: str, name: str) -> bool:
    """Return True if a key lists recorded times or steps of a run.

    Further values of such a key are cheap.
    """
    return name not in get_kinds()[kind_name].axis_names()


def make_key_values(
    kind_name: str, name: str, end: float, snapshots: bool = False, lower_bound: float = 0
) -> list[float]:
    """Return the values of a key up to a maximum.

    `snapshots` reduces the number of times for a page with another key on the x axis.
    """
    if name == get_kinds()[kind_name].USUAL_X_KEY:
        return make_default_x_values(
            kind_name, end, NUM_SNAPSHOT_TIMES if snapshots else get_page_settings(kind_name).num_points
        )
    stops = get_slider_stops(kind_name, name)
    if stops:
        first = max(get_kinds()[kind_name].describe(name).lower, lower_bound)
        return sorted({*(stop for stop in stops if first <= stop <= end), end})
    low = min(get_slider_range(kind_name, name)[0], end)
    return sorted({round_float(float(value)) for value in np.linspace(low, end, RANGE_VALUES)})


def get_axis_end(kind_name: str, name: str, value: Any) -> Any:
    """Return the largest value of a key on the x axis.

    It is the value of the key, or a larger one if there would be fewer than `MIN_STOP_VALUES` values.
    """
    if not is_number(value) or name == get_kinds()[kind_name].USUAL_X_KEY:
        return value
    stops = get_slider_stops(kind_name, name)
    if not stops:
        return get_slider_range(kind_name, name)[1]
    return max(value, stops[min(MIN_STOP_VALUES, len(stops)) - 1])


def make_default_x_values(kind_name: str, end: float, num_values: int) -> list[float]:
    """Return values of the default x axis up to a maximum, usually spaced logarithmically."""
    page = get_page_settings(kind_name)
    values = (
        np.linspace(0, end, num_values)
        if page.evenly_spaced
        else np.geomspace(min(page.min_x, end / 2), end, num_values)
    )
    if page.has_integer_x_values:
        return sorted({round(value) for value in values})
    return values.tolist()  # a config writes equally spaced values as a range


def is_number(value: Any) -> bool:
    """Return True for a number that is not a bool.

    A page expands a number to all values up to it. Everything else is checked as in a config.
    """
    return isinstance(value, int | float) and not isinstance(value, bool)


def round_float(value: float) -> float:
    """Round away the digits that the arithmetic of a slider adds to a number.

    >>> round_float(1.3000000000000003)
    1.3
    """
    return float(f"{value:.10g}")


def choose_list_or_slider_value(config_value: Any, slider_value: Any) -> Any:
    """Return the rounded value of a slider, or the list in the config while the slider is at its last value.

    >>> choose_list_or_slider_value([1, 2, 5], 5), choose_list_or_slider_value([1, 2, 5], 10)
    ([1, 2, 5], 10)
    >>> choose_list_or_slider_value(3, 4)
    4
    """
    value = round_float(slider_value) if isinstance(slider_value, float) else slider_value
    return config_value if isinstance(config_value, list) and value == config_value[-1] else value


def learners(kind_name: str) -> dict[str, str]:
    """Return the names of the rules, learners, ... of a scenario kind by menu label.

    >>> learners("booster")
    {'AdaBoost': 'adaboost'}
    """
    kind = get_kinds()[kind_name]
    return {kind_label(kind.KINDS, name): name for name in kind.KINDS}


def files(value: Any) -> list[Any]:
    """Return the files that a config reads: the values of `rows` at any depth, except generated data.

    >>> files({"inputs": ["sphere", {"rows": {"path": "x.csv"}}]})
    [{'path': 'x.csv'}]
    """
    if isinstance(value, dict):
        generated = [form for name in GENERATED_DATA_SOURCES for form in (name, {"path": name})]
        inside = {
            key: [part] if key == "rows" and part not in generated else files(part) for key, part in value.items()
        }
        return [file for parts in inside.values() for file in parts]
    if isinstance(value, list | tuple):
        return [file for part in value for file in files(part)]
    return [value] if value == "rows" else []


def expand_page_config(kind_name: str, page_config: dict[str, Any], x: str = "") -> dict[str, Any]:
    """Return a config from the settings of a page.

    One number is expanded to all values up to it for the key on the x axis, and for recorded times.
    """
    default_key, parameters = get_kinds()[kind_name].USUAL_X_KEY, collect_parameters(get_kinds()[kind_name].classes())
    key = get_x_key(kind_name, x or default_key)
    learner_names = list_learner_names(kind_name, page_config)
    plain_ = {name for name, field in parameters.items() if page_config.get(name) == field.default and name != key}
    config = {
        name: value
        for name, value in page_config.items()
        if name not in plain_ and is_applicable_key(kind_name, learner_names, name)
    }
    for name in dict.fromkeys([key, *([default_key] if is_recorded_key(kind_name, default_key) else [])]):
        value = config.get(name, get_default_value(kind_name, name))
        above = max(ensure_tuple(page_config.get("K", 0))) + 1 if name == "N" and kind_name == "rule" else 0
        config[name] = make_key_values(kind_name, name, value, name != key, above) if is_number(value) else value
    return {name: _format_config_value(name, value) for name, value in config.items() if value is not None}


def _format_config_value(name: str, value: Any) -> Any:
    """Convert the value of a key to its form in a config."""
    return {"t0": value} if name == "schedule" and not isinstance(value, dict) else value


def get_default_value(kind_name: str, name: str) -> Any:
    """Return the default of a key."""
    return get_kinds()[kind_name].describe(name).default


def choose_abscissa_key(scenario: AbstractScenario) -> str:
    """Return the key for the x axis of a scenario.

    It is the default key if that is swept, or if it has more recorded times than any other key has numbers.
    Otherwise it is the first swept number that applies to all learners.
    """
    choice = get_page_kind(scenario)
    default_key = get_kinds()[choice].USUAL_X_KEY
    swept = [name for name in scenario.axis_names() if len(ensure_tuple(scenario.axis_values().get(name, ()))) > 1]
    learning = [[name] for name in ensure_tuple(getattr(scenario, scenario.CHOICE))]
    shared = [name for name in swept if all(is_applicable_key(choice, learner, name) for learner in learning)]
    numbers = [
        name for name in shared if scenario.describe(name).numeric and name not in get_time_dependent_keys(scenario)
    ]
    longest = max((len(ensure_tuple(scenario.axis_values()[name])) for name in numbers), default=0)
    has_more_times = len(scenario.recorded_coordinates.get(default_key, ())) > longest
    return default_key if has_more_times or default_key in numbers or not numbers else numbers[0]


def get_log_x_axis(scenario: AbstractScenario, x: str) -> tuple[str, ...]:
    """Return ("x",) if the values of a key are positive and span enough for a logarithmic axis.

    >>> from statmech import Scenario
    >>> get_log_x_axis(Scenario(rule="hebb", t=1, flip=[0, 0.1, 0.3]), "flip")
    ()
    >>> get_log_x_axis(Scenario(rule="hebb", t=1, K=3), "K")
    ()
    >>> get_log_x_axis(Scenario(rule="hebb", t=1, drift=[0.01, 0.1, 1]), "drift")
    ('x',)
    """
    axis_values = ensure_tuple(scenario.axis_values().get(x, ()))
    key_values = scenario.recorded_coordinates.get(x, axis_values)
    values = [float(value) for value in key_values if isinstance(value, int | float)]
    return ("x",) if needs_log_x(np.array(values)) else ()


def reduce_config(scenario: AbstractScenario, x: str = "") -> dict[str, Any]:
    """Return the config of a page for a scenario, with fewer values of its keys.

    One key in addition to the x axis may have several values, which are curves. Every other key gets its first value.
    """
    learning, choice, config = scenario.CHOICE, get_page_kind(scenario), scenario.config()
    page = get_page_settings(choice)
    default_key = get_kinds()[choice].USUAL_X_KEY
    key = get_x_key(choice, x or default_key)
    if isinstance(config.get("figure"), dict):  # the page may lack the axes of the figure
        del config["figure"]
    zipped: dict[str, list[Any]] = {}
    for group in config.pop("zip", []):
        zipped |= group
        config |= {name: drop_duplicates(values) for name, values in group.items()}
    for name in scenario.axis_names():
        if name in config and (name == key or name not in get_time_dependent_keys(scenario)):
            config[name] = _numbers_from_sections(scenario, name, config[name])
    if "resample" in config and isinstance(config["K"], list):  # a single student does not learn a part of the examples
        config["K"] = sorted(config["K"], reverse=True)
    config[learning] = drop_duplicates(list(ensure_tuple(getattr(scenario, learning))))
    curves = math.prod(len(scenario.recorded_coordinates[dim]) for dim in page.curves)
    names = [name for name in scenario.axis_names() if name not in (learning, key)]
    max_values = MAX_CURVES_PER_CHART // (curves * len(config[learning]))
    single_value_keys = [PROTOCOL_KEY] if page.protocols else []
    single_value_keys += [
        name for name, values in get_time_dependent_keys(scenario).items() if name != key and len(values) > max_values
    ]
    _reduce_lists(config, names, max_values, single_value_keys)
    for name in {key, default_key}:
        config[name] = (
            thin_values(sort_if_numeric(config[name])) if isinstance(config.get(name), list) else config.get(name)
        )
    first_values = {
        name: _numbers_from_sections(scenario, name, values)[0]
        for name, values in zipped.items()
        if name not in (learning, key)
    }
    try:
        scenario_from(expand_page_config(choice, config, x))
    except ScenarioError:  # parallel values may not be possible in other combinations
        return config | first_values
    return config


def _reduce_lists(
    config: dict[str, Any], names: Iterable[str], max_values: int, single_value_keys: Sequence[str] = ()
) -> None:
    """Shorten lists of values in place.

    The key with the longest list that fits keeps up to `max_values` values, and every other key keeps one. Keys in
    `single_value_keys` keep one value, as a page has menus of single values.
    """
    lists = {name: len(config[name]) for name in names if isinstance(config.get(name), list)}
    together = [name for name in lists if name not in single_value_keys]
    several = max(together, key=lambda name: (lists[name] <= max_values, lists[name]), default="")
    for name in lists:
        number = min(max_values, lists[name]) if name == several else 1
        thinned_values = [config[name][index] for index in np.linspace(0, lists[name] - 1, number).round().astype(int)]
        config[name] = thinned_values if number > 1 else config[name][0]


def find_several_valued_key(kind_name: str, config: Mapping[str, Any], x: str) -> str:
    """Return the key with several values that is not on the x axis, or an empty string.

    Each value is a curve.

    >>> find_several_valued_key("loss", {"loss": ["square"], "lam": [0, 0.1], "alpha": [1, 2]}, "alpha")
    'lam'
    """
    kind = get_kinds()[kind_name]
    names = (name for name in kind.axis_names() if name not in (kind.CHOICE, x))
    return next((name for name in names if isinstance(config.get(name), list) and len(config[name]) > 1), "")


def list_nearby_values(kind_name: str, name: str, value: Any, num_curves: int = 1) -> list[Any]:
    """Return up to three values of a key around its current value, each with `num_curves` curves in a chart.

    >>> list_nearby_values("rule", "K", 3), list_nearby_values("rule", "K", 3, 3), list_nearby_values("rule", "K", 3, 4)
    ([2, 3, 4], [2, 3], [3])
    """
    stops, count = [*get_slider_stops(kind_name, name)], min(3, MAX_CURVES_PER_CHART // num_curves)
    if count < 2:
        return [value]
    if not stops:
        low, high, _ = get_slider_range(kind_name, name)
        return sorted({round_float(float(number)) for number in np.linspace(low, high, count)})
    index = stops.index(value) if value in stops else 1
    first = max(0, min(index - 1, len(stops) - count))
    return stops[first : first + count]


def _numbers_from_sections(scenario: AbstractScenario, name: str, config_value: Any) -> Any:
    """Convert config sections of a key, such as {t0: 5}, to numbers.

    A function of time gives its first value.
    """
    axis_values = ensure_tuple(scenario.axis_values().get(name))
    listed_values = config_value if isinstance(config_value, list) else [config_value]
    sections = any(
        isinstance(value_in_config, dict) for value_in_config in listed_values
    ) or name in get_time_dependent_keys(scenario)
    if not sections or not scenario.describe(name).numeric:
        return config_value
    default = scenario.describe(name).default
    initial_values = [get_initial_value(value, default) for value in axis_values]
    # a rate that depends on N, for example, is not a number of a slider
    values = drop_duplicates(
        [value if is_number(value) or isinstance(value, str) else default for value in initial_values]
    )
    return values if isinstance(config_value, list) else values[0]


def sort_if_numeric(values: list[Any]) -> list[Any]:
    """Sort values if all are numbers, and otherwise keep their order.

    >>> sort_if_numeric([3, 0.5, 2]), sort_if_numeric([0, "best"])
    ([0.5, 2, 3], [0, 'best'])
    """
    return sorted(values) if all(map(is_number, values)) else values


def thin_values(values: list[Any]) -> Any:
    """Thin a list to at most 60 values, or return its only value."""
    return values[:: -(-len(values) // 60)] if len(values) > 1 else values[0]


def make_theory_grid(kind_name: str, x: str, values: Sequence[float], num_points: int) -> list[float]:
    """Return about `num_points` points for a smooth line of theory, including these values.

    For an integer key the missing integers below `ALL_INTEGERS_SOLVED_BELOW` are added instead, or below `num_points`
    if one solution contains every integer.
    """
    if len(values) < 2:
        return list(values)
    if get_kinds()[kind_name].has_integer_values(x):
        end = num_points if is_recorded_key(kind_name, x) else ALL_INTEGERS_SOLVED_BELOW
        return sorted({*values, *(n for n in range(1, end) if values[0] < n < values[-1])})
    from theory.solutions import make_line_grid

    return sorted(
        {*values, *(round_float(point) for point in make_line_grid(np.asarray(values, float), num_points).tolist())}
    )


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
    page = get_page_settings(kind_name)
    x = view.x or page.view.x or get_kinds()[kind_name].USUAL_X_KEY
    scenario = scenario_from(expand_page_config(kind_name, view.config, x))
    if why := explain_missing_page(scenario):
        raise ConfigError(why)
    page_config = reduce_config(scenario, x)
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
    choice = find_page_kind(config)
    if not choice:
        raise ConfigError(f"must contain one of the keys {', '.join(get_page_settings_by_kind())}")
    if any(file not in allowed_files for file in files(config)):
        raise ConfigError(FILE_NOT_ALLOWED_MESSAGE.format("link"))
    start, fields = get_page_settings(choice).start, get_kinds()[choice].model_fields
    needed = {
        name: value
        for name, value in start.items()
        if name not in config and name in fields and fields[name].is_required()
    }
    return check_and_complete_view(_parse_view({**needed, **config}, dict(view_settings), choice), choice)


def _parse_view(config: dict[str, Any], view_settings: dict[str, Any], kind_name: str) -> View:
    for name in view_settings:
        if name not in VIEW_SETTING_NAMES:
            raise ConfigError(
                f"{VIEW_SECTION}.{name}: {format_unknown_name(name, 'a setting of the view', VIEW_SETTING_NAMES)}"
            )
    x, over, time = view_settings.get("x", ""), view_settings.get("over", ""), view_settings.get("at")
    if x and x not in list_abscissas(kind_name):
        raise ConfigError(format_unknown_name(str(x), "an abscissa", list_abscissas(kind_name)))
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
