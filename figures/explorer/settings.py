"""The settings of the explorer: what a page starts with, and the values of its sliders."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from statmech.parameters import known_parameters, parameters_of
from statmech.scenarios.axes import points
from statmech.scenarios.page import Page
from statmech.scenarios.registry import SCENARIOS, scenario_from

DECADES = (1, 2, 5)
WHOLE = (0, *(m * 10**e for e in range(5) for m in DECADES), 10**5)
STOPS: dict[str, tuple[float, ...]] = {
    "K": (1, 2, 3, 4, 5, 7, 9, 11, 15, 21, 31, 51, 101),
    "N": tuple(m * 10**e for e in range(1, 6) for m in DECADES),
    "t": tuple(m * 10**e for e in range(0, 7) for m in DECADES),
    "alpha": (0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 50),
    "delta": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49),
    "P": (30, 100, 300, 1000, 3000, 10_000),
    "s": (1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 25),
    "k": (1, 2, 3),
    "chunk": (1, 2, 4, 8, 16, 32),
    "epochs": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
    "seeds": (2, 4, 8, 16, 32, 64, 128, 256),
    "sweeps": (20, 50, 100, 200, 500, 1000, 2000, 4000, 10_000, 20_000),
}
RANGES = {  # low, high, step
    "eta": (0.05, 3.0, 0.05),
    "margin": (0.0, 2.0, 0.02),
    "flip": (0.0, 0.5, 0.01),
    "mean": (-1.0, 4.0, 0.05),
    "drift": (0.0, 0.3, 0.005),
    "theta": (-2.0, 2.0, 0.05),
    "discount": (0.05, 1.0, 0.05),
    "within": (0.001, 0.2, 0.001),
    "omega": (0.1, 1.9, 0.1),
}


def pages() -> dict[str, Page]:
    """The kinds of scenarios that have a page, and what it starts with."""
    return {choice: kind.PAGE for choice, kind in SCENARIOS.items() if kind.PAGE is not None}


def page_of(choice: str) -> Page:
    """The initial settings of the page of a kind of scenario."""
    return pages()[choice]


def draggable(choice: str) -> list[str]:
    """The keys of a kind of scenario that have sliders: its numeric axes and parameters, and those of its page."""
    kind, page = SCENARIOS[choice], page_of(choice)
    names = dict.fromkeys([*kind.axis_names(), *page.sliders, page.along])
    return [name for name in names if kind.describe(name).numeric]


def stops_of(choice: str, name: str) -> tuple[float, ...]:
    """The values that a slider stops at; none if it moves in steps of one size. Whole numbers have decades."""
    if name in STOPS:
        return STOPS[name]
    key = SCENARIOS[choice].describe(name)
    whole = key.whole and name not in RANGES
    return tuple(stop for stop in WHOLE if key.lower <= stop <= key.upper) if whole else ()


def range_of(choice: str, name: str) -> tuple[float, float, float]:
    """Low, high and step of a slider, from the bounds and the default of its key where no others are chosen."""
    if name in RANGES:
        return RANGES[name]
    key = SCENARIOS[choice].describe(name)
    wide = 4 * abs(key.default or 0) or 1.0
    low, high = key.lower if np.isfinite(key.lower) else -wide, key.upper if np.isfinite(key.upper) else wide
    if key.whole:
        first, last = math.floor(low) + (key.at_least is None), math.ceil(min(high, wide)) - (key.at_most is None)
        return first, last, max(1, round((last - first) / 100))
    step = (high - low) / 100
    return low + step, high - step, step


def has(choice: str, chosen: Sequence[str], name: str) -> bool:
    """True if a key applies where these learn: it is a parameter of at least one of them, or not a parameter at all."""
    kinds = SCENARIOS[choice].KINDS
    return name not in known_parameters(kinds) or any(name in parameters_of(kinds[one]) for one in chosen)


def spread(choice: str, end: float) -> list[float]:
    """The values along x up to an end, uniform in the logarithm."""
    page = page_of(choice)
    places = np.geomspace(min(page.first, end / 2), end, page.places)
    if page.whole:
        return sorted({round(place) for place in places})
    return [float(f"{place:.4g}") for place in places]


def moved(held: Any, value: Any) -> Any:
    """A key's value: that of its slider, or the list it began with while the slider stands at its end.

    >>> moved([1, 2, 5], 5), moved([1, 2, 5], 10), moved(3, 4)
    ([1, 2, 5], 10, 4)
    """
    return held if isinstance(held, list) and value == held[-1] else value


def labelled(names: Iterable[str]) -> dict[str, str]:
    """The options of a menu by what it shows; Material UI's menus take that for HTML.

    >>> labelled(["hebb", "<b>"])
    {'hebb': 'hebb', '&lt;b&gt;': '<b>'}
    """
    return {html.escape(name): name for name in names}


def files(value: Any) -> list[Any]:
    """The files that a config asks to read: everything under `rows`, at any depth.

    >>> files({"inputs": ["sphere", {"rows": {"path": "x.csv"}}]})
    [{'path': 'x.csv'}]
    """
    if isinstance(value, dict):
        return [found for key, part in value.items() for found in ([part] if key == "rows" else files(part))]
    if isinstance(value, list | tuple):
        return [found for part in value for found in files(part)]
    return [value] if value == "rows" else []


def config_of(choice: str, given: dict[str, Any]) -> dict[str, Any]:
    """The keys of a config from what a page holds, where one number may stand for all places along x."""
    along, known = page_of(choice).along, known_parameters(SCENARIOS[choice].KINDS)
    places = given[along]
    plain = {name for name, field in known.items() if given.get(name) == field.default}
    made = {name: value for name, value in given.items() if name not in plain and has(choice, given[choice], name)}
    return made if isinstance(places, list) else {**made, along: spread(choice, float(places))}


def held_of(scenario: Any) -> tuple[dict[str, Any], list[str]]:
    """The settings of a page for a scenario, and the keys of whose values it takes only the first."""
    choice, cut = scenario.CHOICE, list[str]()
    along, config = page_of(choice).along, scenario.config()
    for group in config.pop("zip", []):
        config |= group
    for name in scenario.axis_names():
        value = config.get(name)
        if isinstance(value, list) and name not in (choice, along):
            config[name] = value[0]
            cut += [name] * (len(value) > 1)
    config[choice] = list(points(getattr(scenario, choice)))
    places = config[along] if isinstance(config[along], list) else [config[along]]
    config[along] = places[:: -(-len(places) // 60)] if len(places) > 1 else places[0]
    return config, cut


def one_by_one(scenario: Any) -> list[Any]:
    """The scenario of each that learns: one program of theory serves each, whichever are chosen together."""
    choice, kinds, config = scenario.CHOICE, scenario.KINDS, scenario.config()
    known = known_parameters(kinds)
    return [
        scenario_from(
            {name: v for name, v in config.items() if name not in known or name in parameters_of(kinds[one])}
            | {choice: [one]}
        )
        for one in points(getattr(scenario, choice))
    ]
