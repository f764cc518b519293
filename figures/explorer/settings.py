"""The settings of the explorer: the initial settings of its pages, and the values of their sliders.

A page has the name of its kind of scenario (`statmech.scenarios.registry.kinds`), here called its choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from figures.functions_of_time import changing
from figures.labels import key_label, kind_label
from figures.series import MOST, WIDE
from statmech.controls import at_start
from statmech.data_sets import MADE
from statmech.parameters import known_parameters, parameters_of
from statmech.scenarios.axes import once, points
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.page import Page
from statmech.scenarios.registry import choices_in, kind_name, kinds

INPUTS, PROTOCOL = "inputs", "protocol"  # keys with menus of forms
SNAPSHOTS = 10  # recorded times if time is not on the x axis
PLACES, FEW = 11, 8  # values on the x axis: without stops, and the minimum with stops
LINE, SWEPT = 80, 40  # points of a theory line: along recorded times, and along a sweep axis
FINE = 240  # used for uniform times, as a rate may jump at any time
WHOLE_UP_TO = 12  # theory is solved at every integer below, and at stops above
COMPILED = ("rule",)  # theory needs one compiled program per number of values
SHARED = ("K", "N")  # values of these keys share their equations, so no other program is needed
DECADES = (1, 2, 5)
WHOLE = (0, *(m * 10**e for e in range(5) for m in DECADES), 10**5)
STOPS: dict[str, tuple[float, ...]] = {
    "K": (1, 2, 3, 4, 5, 7, 9, 11, 15, 21, 31, 51, 101),
    "N": tuple(m * 10**e for e in range(1, 6) for m in DECADES),
    "t": tuple(m * 10**e for e in range(0, 7) for m in DECADES),
    "alpha": (0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 50),
    "error_rate": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49),
    "lam": tuple(m * 10.0**e for e in range(-4, 3) for m in DECADES),
    "P": (30, 100, 300, 1000, 3000, 10_000),
    "s": (1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 25),
    "k": (1, 2, 3),
    "chunk": (1, 2, 4, 8, 16, 32),
    "batch": (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1),
    "epochs": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
    "schedule": (0.5, *(m * 10**e for e in range(4) for m in DECADES)),
    "seeds": (2, 4, 8, 16, 32, 64, 128, 256),
    "sweeps": (20, 50, 100, 200, 500, 1000, 2000, 4000, 10_000, 20_000),
}
RANGES = {  # low, high, step
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


def pages() -> dict[str, Page]:
    """Return the initial settings of pages, by kind of scenario."""
    return {choice: kind.PAGE for choice, kind in kinds().items() if kind.PAGE is not None}


def named_in(config: Mapping[str, Any]) -> str:
    """Return the kind of scenario of a config, or an empty string if the kind has no page.

    >>> named_in({"loss": "square", "descent": "gradient"}), named_in({"alpha": 1})
    ('descent', '')
    """
    return next((name for name in (kind_name(config), *choices_in({*config})) if name in pages()), "")


def choice_of(scenario: AbstractScenario) -> str:
    """Return the name of a scenario's kind."""
    return named_in(scenario.config())


def page_of(choice: str) -> Page:
    """Return the initial settings of a page."""
    return pages()[choice]


def draggable(choice: str) -> list[str]:
    """Return the keys with sliders: numeric axes and parameters, and the sliders of the page."""
    kind, page = kinds()[choice], page_of(choice)
    names = dict.fromkeys([*kind.axis_names(), *page.sliders, page.along, *page.within])
    return [name for name in names if kind.describe(name).numeric and name not in page.without]


def stops_of(choice: str, name: str) -> tuple[float, ...]:
    """Return the stops of a slider.

    A slider without stops moves in equal steps. Integers have stops in every decade.
    """
    key, stops = kinds()[choice].describe(name), STOPS.get(name, ())
    if stops and not (
        key.whole and any(stop % 1 for stop in stops)
    ):  # e.g. a batch may be a fraction or a number of examples
        return stops
    has_integer_stops = key.whole and name not in RANGES
    return tuple(stop for stop in WHOLE if key.lower <= stop <= key.upper) if has_integer_stops else ()


def range_of(choice: str, name: str) -> tuple[float, float, float]:
    """Return low, high and step of a slider.

    By default they follow from the bounds and the default of its key.
    """
    key = kinds()[choice].describe(name)
    if name in RANGES:
        low, high, step = RANGES[name]
        return low, high - step if key.below == high else high, step
    wide = 4 * abs(key.default or 0) or 1.0
    low, high = key.lower if np.isfinite(key.lower) else -wide, key.upper if np.isfinite(key.upper) else wide
    if key.whole:
        first, last = math.floor(low) + (key.at_least is None), math.ceil(min(high, wide)) - (key.at_most is None)
        return first, last, max(1, round((last - first) / 100))
    step = (high - low) / 100
    return low + step, high - step, step


def controllable(kind: Any) -> list[str]:
    """Return the keys of a kind that may be functions of time."""
    return [*kind.OPTIMAL, *kind.STEPPED]


def has(choice: str, chosen: Sequence[str], name: str) -> bool:
    """Return True if a key is a parameter of at least one of these learners, or not a parameter at all."""
    classes = kinds()[choice].classes()
    # the scenario reports an error for unknown names
    learner_classes = [classes[learner] for learner in chosen if learner in classes]
    return name not in known_parameters(classes) or any(name in parameters_of(kind) for kind in learner_classes)


def chosen_in(choice: str, given: Mapping[str, Any]) -> list[str]:
    """Return the names of the rules, learners, losses, ... in the config of a page.

    >>> chosen_in("descent", {"descent": ["gradient", "momentum"], "loss": "huber", "alpha": 2})
    ['gradient', 'momentum', 'huber']
    """
    values = [given.get(key, ()) for key in kinds()[choice].choices()]
    return [name for value in values for name in (value if isinstance(value, list | tuple) else [value])]


def symbol(choice: str, name: str) -> str:
    """Return the label of a key's slider.

    >>> symbol("rule", "eta"), symbol("boundary", "error_rate")
    ('η', 'error rate')
    """
    return key_label(name, kinds()[choice].describe(name).label)


def planes(choice: str) -> dict[str, tuple[str, str]]:
    """Return the planes of two variables that this kind can be drawn in, by names such as "R-q"."""
    return {f"{x}-{y}": (x, y) for x, y in page_of(choice).planes}


def abscissas(choice: str) -> list[str]:
    """Return the possible x axes: keys with sliders, except times before the last, and planes."""
    inner_times = page_of(choice).within
    return [*(name for name in draggable(choice) if name not in inner_times), *planes(choice)]


def key_along(choice: str, x: str) -> str:
    """Return the key of the x axis, which in a plane is the default key of this kind."""
    return page_of(choice).along if x in planes(choice) else x


def is_recorded(choice: str, name: str) -> bool:
    """Return True if a key lists recorded times or steps of a run.

    Further values of such a key are cheap.
    """
    return name not in kinds()[choice].axis_names()


def places(choice: str, name: str, end: float, few: bool = False, above: float = 0) -> list[float]:
    """Return the values of a key up to an end.

    `few` reduces the number of times for a page with another key on the x axis.
    """
    if name == page_of(choice).along:
        return spread(choice, end, SNAPSHOTS if few else page_of(choice).places)
    stops = stops_of(choice, name)
    if stops:
        first = max(kinds()[choice].describe(name).lower, above)
        return sorted({*(stop for stop in stops if first <= stop <= end), end})
    low = min(range_of(choice, name)[0], end)
    return sorted({rounded(float(value)) for value in np.linspace(low, end, PLACES)})


def end_of(choice: str, name: str, value: Any) -> Any:
    """Return the end of a key on the x axis.

    It is the value of the key, or a larger one if there would be fewer than `FEW` values.
    """
    if not is_number(value) or name == page_of(choice).along:
        return value
    stops = stops_of(choice, name)
    if not stops:
        return range_of(choice, name)[1]
    return max(value, stops[min(FEW, len(stops)) - 1])


def spread(choice: str, end: float, number: int) -> list[float]:
    """Return values of the default x axis up to an end, by default uniform in the logarithm."""
    page = page_of(choice)
    values = np.linspace(0, end, number) if page.even else np.geomspace(min(page.first, end / 2), end, number)
    if page.whole:
        return sorted({round(value) for value in values})
    return [float(f"{value:.4g}") for value in values]


def is_number(value: Any) -> bool:
    """Return True for a number except bool.

    A page expands a number to all values up to it. Everything else is checked as in a config.
    """
    return isinstance(value, int | float) and not isinstance(value, bool)


def rounded(value: float) -> float:
    """Round a number to the digits of its text form, as a slider's arithmetic adds digits.

    >>> rounded(1.3000000000000003)
    1.3
    """
    return float(f"{value:.10g}")


def moved(held: Any, value: Any) -> Any:
    """Return the value of a slider, or the initial list while the slider is at the end of the list.

    >>> moved([1, 2, 5], 5), moved([1, 2, 5], 10), moved(3, 4)
    ([1, 2, 5], 10, 4)
    """
    return held if isinstance(held, list) and value == held[-1] else value


def learners(choice: str) -> dict[str, str]:
    """Return the names of the rules, learners, ... of a scenario kind by menu label.

    >>> learners("booster")
    {'AdaBoost': 'adaboost'}
    """
    kind = kinds()[choice]
    return {kind_label(kind.KINDS, name): name for name in kind.KINDS}


def files(value: Any) -> list[Any]:
    """Return the files that a config reads: the values of `rows` at any depth, except generated data.

    >>> files({"inputs": ["sphere", {"rows": {"path": "x.csv"}}]})
    [{'path': 'x.csv'}]
    """
    if isinstance(value, dict):
        generated = [form for name in MADE for form in (name, {"path": name})]
        inside = {
            key: [part] if key == "rows" and part not in generated else files(part) for key, part in value.items()
        }
        return [file for parts in inside.values() for file in parts]
    if isinstance(value, list | tuple):
        return [file for part in value for file in files(part)]
    return [value] if value == "rows" else []


def config_of(choice: str, given: dict[str, Any], x: str = "") -> dict[str, Any]:
    """Return a config from the settings of a page.

    One number is expanded to all values up to it for the key on the x axis, and for recorded times.
    """
    default_key, parameters = page_of(choice).along, known_parameters(kinds()[choice].classes())
    key = key_along(choice, x or default_key)
    learner_names = chosen_in(choice, given)
    plain_ = {name for name, field in parameters.items() if given.get(name) == field.default and name != key}
    config = {name: value for name, value in given.items() if name not in plain_ and has(choice, learner_names, name)}
    for name in dict.fromkeys([key, *([default_key] if is_recorded(choice, default_key) else [])]):
        value = config.get(name, default_of(choice, name))
        above = max(points(given.get("K", 0))) + 1 if name == "N" and choice == "rule" else 0
        config[name] = places(choice, name, value, name != key, above) if is_number(value) else value
    return {name: _written(name, value) for name, value in config.items() if value is not None}


def _written(name: str, value: Any) -> Any:
    """Return the value of a key in the form of a config."""
    return {"t0": value} if name == "schedule" and not isinstance(value, dict) else value


def default_of(choice: str, name: str) -> Any:
    """Return the default of a key."""
    return kinds()[choice].describe(name).default


def x_of(scenario: AbstractScenario) -> str:
    """Return the key for the x axis of a scenario.

    It is the default key if that is swept, or if it has more recorded times than any other key has numbers.
    Otherwise it is the first swept number that applies to all learners.
    """
    choice = choice_of(scenario)
    default_key = page_of(choice).along
    swept = [name for name in scenario.axis_names() if len(points(scenario.axis_values().get(name, ()))) > 1]
    learning = [[name] for name in points(getattr(scenario, scenario.CHOICE))]
    shared = [name for name in swept if all(has(choice, learner, name) for learner in learning)]
    numbers = [name for name in shared if scenario.describe(name).numeric and name not in changing(scenario)]
    longest = max((len(points(scenario.axis_values()[name])) for name in numbers), default=0)
    has_more_times = len(scenario.recorded.get(default_key, ())) > longest
    return default_key if has_more_times or default_key in numbers or not numbers else numbers[0]


def logarithmic(scenario: AbstractScenario, x: str) -> tuple[str, ...]:
    """Return ("x",) if the values of a key are positive and wide enough for a logarithmic axis.

    >>> from statmech import Scenario
    >>> logarithmic(Scenario(rule="hebb", t=1, flip=[0, 0.1, 0.3]), "flip")
    ()
    >>> logarithmic(Scenario(rule="hebb", t=1, drift=[0.01, 0.1, 1]), "drift")
    ('x',)
    """
    key_values = scenario.recorded.get(x, scenario.axis_values().get(x, ()))
    values = [float(value) for value in points(tuple(key_values)) if isinstance(value, int | float)]
    return ("x",) if values and min(values) > 0 and max(values) >= WIDE * min(values) else ()


def held_of(scenario: AbstractScenario, x: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return the config of a page for a scenario, and the keys reduced to fewer values.

    One key in addition to the x axis may have several values, which are curves. Every other key gets its first value.
    """
    learning, choice, config = scenario.CHOICE, choice_of(scenario), scenario.config()
    page = page_of(choice)
    default_key, key = page.along, key_along(choice, x or page.along)
    if isinstance(config.get("figure"), dict):  # the page may not have the axes of the figure
        del config["figure"]
    for group in config.pop("zip", []):
        config |= {name: once(values) for name, values in group.items()}
    for name in scenario.axis_names():
        if name in config and (name == key or name not in changing(scenario)):
            config[name] = _numbers(scenario, name, config[name])
    config[learning] = once(list(points(getattr(scenario, learning))))
    curves = math.prod(len(scenario.recorded[dim]) for dim in page.curves)
    names = [name for name in scenario.axis_names() if name not in (learning, key)]
    max_values = MOST // (curves * len(config[learning]))
    single_value_keys = [PROTOCOL] if page.protocols else []
    single_value_keys += [
        name for name, values in changing(scenario).items() if name != key and len(values) > max_values
    ]
    cut = _cut(config, names, max_values, single_value_keys)
    for name in {key, default_key}:
        config[name] = thinned(increasing(config[name])) if isinstance(config.get(name), list) else config.get(name)
    return config, cut


def _cut(config: dict[str, Any], names: Iterable[str], most: int, alone: Sequence[str] = ()) -> list[str]:
    """Reduce lists of values in place, and return the reduced keys.

    The key with the longest list that fits keeps up to `most` values, and every other key keeps one. Keys in `alone`
    keep one value, as a page has menus of single values.
    """
    lists = {name: len(config[name]) for name in names if isinstance(config.get(name), list)}
    together = [name for name in lists if name not in alone]
    several = max(together, key=lambda name: (lists[name] <= most, lists[name]), default="")
    for name in lists:
        number = min(most, lists[name]) if name == several else 1
        thinned_values = [config[name][index] for index in np.linspace(0, lists[name] - 1, number).round().astype(int)]
        config[name] = thinned_values if number > 1 else config[name][0]
    return [name for name in lists if lists[name] > (most if name == several else 1)]


def several_in(choice: str, given: Mapping[str, Any], x: str) -> str:
    """Return the key with several values that is not on the x axis, or an empty string.

    Each value is a curve.

    >>> several_in("loss", {"loss": ["square"], "lam": [0, 0.1], "alpha": [1, 2]}, "alpha")
    'lam'
    """
    kind = kinds()[choice]
    names = (name for name in kind.axis_names() if name not in (kind.CHOICE, x))
    return next((name for name in names if isinstance(given.get(name), list) and len(given[name]) > 1), "")


def values_near(choice: str, name: str, value: Any) -> list[Any]:
    """Return three values of a key around its current value."""
    stops = [*stops_of(choice, name)]
    if not stops:
        low, high, _ = range_of(choice, name)
        return sorted({rounded(float(number)) for number in (low, (low + high) / 2, high)})
    index = stops.index(value) if value in stops else 1
    first = max(0, min(index - 1, len(stops) - 3))
    return stops[first : first + 3]


def _numbers(scenario: AbstractScenario, name: str, written: Any) -> Any:
    """Return the numbers of a key that a config has as sections, such as {t0: 5}.

    A function of time gives its first value.
    """
    axis_values = points(scenario.axis_values().get(name))
    listed_values = written if isinstance(written, list) else [written]
    sections = any(isinstance(value_in_config, dict) for value_in_config in listed_values) or name in changing(scenario)
    if not sections or not scenario.describe(name).numeric:
        return written
    values = once([at_start(value, scenario.describe(name).default) for value in axis_values])
    return values if isinstance(written, list) else values[0]


def increasing(values: list[Any]) -> list[Any]:
    """Sort numbers. Values that include text keep their order.

    >>> increasing([3, 0.5, 2]), increasing([0, "best"])
    ([0.5, 2, 3], [0, 'best'])
    """
    return sorted(values) if all(map(is_number, values)) else values


def thinned(values: list[Any]) -> Any:
    """Return at most 60 of these values, or a single value itself."""
    return values[:: -(-len(values) // 60)] if len(values) > 1 else values[0]


def between(choice: str, x: str, values: Sequence[float], number: int) -> list[float]:
    """Return about `number` points for a smooth line of theory, including these values.

    For an integer key the missing integers below `WHOLE_UP_TO` are added instead.
    """
    if len(values) < 2:
        return list(values)
    if kinds()[choice].is_whole(x):
        return sorted({*values, *(n for n in range(1, WHOLE_UP_TO) if values[0] < n < values[-1])})
    from theory.dense_lines import grid

    return sorted({*values, *(rounded(point) for point in grid(np.asarray(values, float), number).tolist())})
