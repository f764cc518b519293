"""Menus of the functions of time that a config has for its keys, with sliders for one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.explorer import settings
from figures.explorer.forms import SEVERAL, Form, FormMenu, Slider
from figures.labels import in_steps
from figures.series import MOST
from statmech.controls import Control, control_from, is_over_time, numbers_in
from statmech.optima import OPTIMAL, Optimal
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.controlled_keys import is_section
from statmech.scenarios.registry import kinds

CONSTANT, STEP, ALL = "constant", "step", "all"
STOPS = 20  # stops of the level and time sliders
LEAST, ROOM, LETTER = 160, 60, 9  # menu width in pixels: minimum, border, per letter


class ControlMenu(FormMenu):
    """Menu of a key that may change with time.

    The key's own slider sets a constant value.
    """

    @property
    def is_constant(self) -> bool:
        """True if the key is constant in time."""
        return bool(self.menu.value == CONSTANT)


def offered(scenario: AbstractScenario | None) -> dict[str, list[Any]]:
    """Return the values of all keys that a scenario has as functions of time, as in its config.

    >>> from statmech import Scenario
    >>> offered(Scenario(rule="hebb", t=9, eta=[1, "optimal"]))
    {'eta': [1.0, 'optimal']}
    """
    if scenario is None:
        return {}
    config = scenario.config()
    for group in config.pop("zip", []):
        config |= group
    return {name: _listed(config[name]) for name in settings.controllable(scenario) if _changes(config.get(name))}


def control_menus(choice: str, config: Mapping[str, Any], given: Mapping[str, list[Any]]) -> list[ControlMenu]:
    """Return a menu for each key that changes with time in the config of a page.

    `given` replaces the values of the config.
    """
    kind = kinds()[choice]
    values_by_key = {name: given.get(name, _listed(config.get(name))) for name in settings.controllable(kind)}
    return [_menu(choice, name, config, values) for name, values in values_by_key.items() if _changes(values)]


def _menu(choice: str, name: str, config: Mapping[str, Any], values: list[Any]) -> ControlMenu:
    functions = [value for value in values if _changes(value)]
    listed = isinstance(config.get(name), list)
    key = kinds()[choice].describe(name)
    forms = {CONSTANT: Form(CONSTANT, (), lambda: None, lambda value: None if is_over_time(value) else ())}
    if len(functions) > 1:
        forms |= {str(index): _given(value) for index, value in enumerate(functions) if value != OPTIMAL}
    forms[STEP] = _step(choice, name, functions, _last(config))
    if name in kinds()[choice].OPTIMAL:
        forms[OPTIMAL] = Form(OPTIMAL, (), lambda: OPTIMAL, lambda value: () if value == Optimal() else None)
    if 1 < len(values) <= MOST and not listed:
        forms[ALL] = Form(SEVERAL, (), lambda: values, lambda value: None)
    title = f"{settings.symbol(choice, name)}(t)"
    menu = ControlMenu(name, forms, config, key.default, _read, lambda value: in_steps(str(value)), title)
    menu.menu.width = max(LEAST, ROOM + LETTER * max(map(len, menu.menu.options)))
    return menu


def _given(value: Any) -> Form:
    control = control_from(value)
    return Form(in_steps(str(control)), (), lambda: value, lambda other: () if other == control else None)


def _step(choice: str, name: str, functions: Sequence[Any], last: float) -> Form:
    """Return the form of one step in time.

    Its sliders start at the first function with one step, or else in the middle of their ranges.
    """
    step_values = (_of_step(control_from(value)) for value in functions)
    low, high, _ = settings.range_of(choice, name)
    before, after, time = next(
        (values_of_step for values_of_step in step_values if values_of_step is not None), (low, high, last / 2)
    )
    levels = tuple(map(settings.rounded, np.linspace(low, high, STOPS + 1).tolist()))
    times = tuple(map(settings.rounded, np.linspace(0, last, STOPS + 1)[1:-1].tolist()))
    sliders = Slider("before", levels, before), Slider("after", levels, after), Slider("step at t", times, time)
    return Form(
        "one step",
        sliders,
        lambda level_before, level_after, t: {"at": [0, t], "is": [level_before, level_after]},
        _of_step,
    )


def _last(config: Mapping[str, Any]) -> float:
    """Return the last time in the config of a page, where t may be a single number."""
    times = config.get("t") or 1
    return float(times[-1] if isinstance(times, list) else times)


def _of_step(value: Any) -> tuple[Any, ...] | None:
    """Return the values before and after the step, and its time, or None unless there is one step."""
    if not isinstance(value, Control) or value.segments.number != 2 or value.segments.points > 1:
        return None
    return *value.values, value.edges[1]


def constant_in(values: Any, default: float) -> float:
    """Return the first constant among the values of a key, or else a function's value at t = 0.

    An optimum has no value, so that the default is returned.

    >>> constant_in([{"at": [0, 5], "is": [0.2, 0]}, 0.1], 0), constant_in({"at": [0, 5], "is": [0.2, 0]}, 0)
    (0.1, 0.2)
    """
    parsed = [_read(value) for value in _listed(values)]
    numbers = [value for value in parsed if not is_over_time(value)]
    return float(next(iter([*numbers, *(number for value in parsed for number in numbers_in(value))]), default))


def _read(value: Any) -> Any:
    return control_from(value) if _changes(value) else value


def _changes(written: Any) -> bool:
    """Return True if a value in a config, or one value in a list, is a function of time."""
    values = _listed(written)
    return any(value == OPTIMAL or is_section(value) for value in values)


def _listed(written: Any) -> list[Any]:
    return written if isinstance(written, list) else [] if written is None else [written]
