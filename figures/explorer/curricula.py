"""Menus for keys that are functions of time, with sliders for a single step in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.explorer import settings
from figures.explorer.forms import SEVERAL_VALUES_LABEL, FormMenu, KeyForm, SliderSpec
from figures.labels import format_control_with_arrows
from figures.series import MAX_CURVES_PER_CHART
from statmech.controls import ControlFunction, control_from_config, get_control_values, is_time_dependent
from statmech.optima import OPTIMAL_KEYWORD, OptimalControlOptions
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.controlled_keys import is_time_function_section
from statmech.scenarios.kind_registry import get_kinds

CONSTANT_FORM, STEP_FORM, ALL_VALUES_FORM = "constant", "step", "all"
NUM_STEP_SLIDER_STOPS = 20  # for the sliders of the two levels and of the time
MIN_MENU_PIXELS, MENU_BORDER_PIXELS, MENU_LETTER_PIXELS = (
    160,
    60,
    9,
)  # menu width in pixels: minimum, border, per letter


class TimeFunctionMenu(FormMenu):
    """Menu of a key that may change with time.

    The key's own slider sets a constant value.
    """

    @property
    def is_constant(self) -> bool:
        """True if the key is constant in time."""
        return bool(self.menu.value == CONSTANT_FORM)


def list_time_function_values(scenario: AbstractScenario | None) -> dict[str, list[Any]]:
    """Return the config values of all time-dependent keys of a scenario.

    >>> from statmech import Scenario
    >>> list_time_function_values(Scenario(rule="hebb", t=9, eta=[1, "optimal"]))
    {'eta': [1.0, 'optimal']}
    """
    if scenario is None:
        return {}
    config = scenario.config()
    for group in config.pop("zip", []):
        config |= group
    return {
        name: _ensure_list(config[name])
        for name in settings.list_allowed_time_function_keys(scenario)
        if _has_time_function(config.get(name))
    }


def make_time_function_menus(
    kind_name: str, config: Mapping[str, Any], listed_values: Mapping[str, list[Any]]
) -> list[TimeFunctionMenu]:
    """Make a menu for each time-dependent key in the config of a page.

    `listed_values` replaces the values of the config.
    """
    kind = get_kinds()[kind_name]
    values_by_key = {
        name: listed_values.get(name, _ensure_list(config.get(name)))
        for name in settings.list_allowed_time_function_keys(kind)
    }
    return [
        _make_time_function_menu(kind_name, name, config, values)
        for name, values in values_by_key.items()
        if _has_time_function(values)
    ]


def _make_time_function_menu(
    kind_name: str, name: str, config: Mapping[str, Any], values: list[Any]
) -> TimeFunctionMenu:
    functions = [value for value in values if _has_time_function(value)]
    listed = isinstance(config.get(name), list)
    key = get_kinds()[kind_name].describe(name)
    forms = {
        CONSTANT_FORM: KeyForm(CONSTANT_FORM, (), lambda: None, lambda value: None if is_time_dependent(value) else ())
    }
    if len(functions) > 1:
        forms |= {
            str(index): _make_listed_function_form(value)
            for index, value in enumerate(functions)
            if value != OPTIMAL_KEYWORD
        }
    forms[STEP_FORM] = _make_single_step_form(kind_name, name, functions, _get_last_time(config))
    if name in get_kinds()[kind_name].OPTIMISABLE_KEYS:
        forms[OPTIMAL_KEYWORD] = KeyForm(
            OPTIMAL_KEYWORD, (), lambda: OPTIMAL_KEYWORD, lambda value: () if value == OptimalControlOptions() else None
        )
    if 1 < len(values) <= MAX_CURVES_PER_CHART and not listed:
        forms[ALL_VALUES_FORM] = KeyForm(SEVERAL_VALUES_LABEL, (), lambda: values, lambda value: None)
    title = f"{settings.get_slider_label(kind_name, name)}(t)"
    menu = TimeFunctionMenu(
        name, forms, config, key.default, _parse_control, lambda value: format_control_with_arrows(str(value)), title
    )
    menu.menu.width = max(MIN_MENU_PIXELS, MENU_BORDER_PIXELS + MENU_LETTER_PIXELS * max(map(len, menu.menu.options)))
    return menu


def _make_listed_function_form(value: Any) -> KeyForm:
    control = control_from_config(value)
    return KeyForm(
        format_control_with_arrows(str(control)), (), lambda: value, lambda other: () if other == control else None
    )


def _make_single_step_form(kind_name: str, name: str, functions: Sequence[Any], last_time: float) -> KeyForm:
    """Make the form of a control that changes once, in a step.

    Its sliders start at the first function with one step, or else in the middle of their ranges.
    """
    step_values = (_get_levels_and_step_time(control_from_config(value)) for value in functions)
    low, high, _ = settings.get_slider_range(kind_name, name)
    before, after, time = next(
        (values_of_step for values_of_step in step_values if values_of_step is not None), (low, high, last_time / 2)
    )
    levels = tuple(map(settings.round_float, np.linspace(low, high, NUM_STEP_SLIDER_STOPS + 1).tolist()))
    times = tuple(map(settings.round_float, np.linspace(0, last_time, NUM_STEP_SLIDER_STOPS + 1)[1:-1].tolist()))
    sliders = (
        SliderSpec("before", levels, before),
        SliderSpec("after", levels, after),
        SliderSpec("step at t", times, time),
    )
    return KeyForm(
        "one step",
        sliders,
        lambda level_before, level_after, t: {"at": [0, t], "is": [level_before, level_after]},
        _get_levels_and_step_time,
    )


def _get_last_time(config: Mapping[str, Any]) -> float:
    """Return the last time in the config of a page."""
    times = config.get("t") or 1
    return float(times[-1] if isinstance(times, list) else times)


def _get_levels_and_step_time(value: Any) -> tuple[Any, ...] | None:
    """Return the two levels and the time of a single step, or None for any other value."""
    if not isinstance(value, ControlFunction) or value.segments.num_segments != 2 or value.segments.points > 1:
        return None
    return *value.values, value.edges[1]


def find_first_constant(values: Any, default: float) -> float:
    """Return the first constant value of a key, or else the value of a function at t = 0.

    An optimum has no value, so that the default is returned.

    >>> (
    ...     find_first_constant([{"at": [0, 5], "is": [0.2, 0]}, 0.1], 0),
    ...     find_first_constant({"at": [0, 5], "is": [0.2, 0]}, 0)
    ... )
    (0.1, 0.2)
    """
    parsed = [_parse_control(value) for value in _ensure_list(values)]
    numbers = [value for value in parsed if not is_time_dependent(value)]
    return float(next(iter([*numbers, *(number for value in parsed for number in get_control_values(value))]), default))


def _parse_control(value: Any) -> Any:
    return control_from_config(value) if _has_time_function(value) else value


def _has_time_function(config_value: Any) -> bool:
    """Return True if a value in a config, or one value in a list, is a function of time."""
    values = _ensure_list(config_value)
    return any(value == OPTIMAL_KEYWORD or is_time_function_section(value) for value in values)


def _ensure_list(config_value: Any) -> list[Any]:
    return config_value if isinstance(config_value, list) else [] if config_value is None else [config_value]
