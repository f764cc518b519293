"""Menus in the explorer for config keys with alternative forms, with the sliders of each form.

Functions of time: a menu for each key that may change with time, with sliders for a single step in time.

Inputs: sliders for two variances or a power law, and for the alignment of the teacher. The menu offers the
distributions in the `inputs` of a page, isotropic inputs, and the initial inputs of the page's config, such as the rows
of a file.

Tasks: a menu of protocols for the order of tasks, with a slider for the fraction of replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import panel_material_ui as pmui

from figures.curves import MAX_CURVES_PER_CHART
from figures.explorer import settings
from figures.explorer.sliders import MENU_STYLE, make_stop_slider, set_slider_title
from figures.labels import format_control_with_arrows
from statmech.inputs.input_distributions import Inputs, PowerLaw, Spectrum, inputs_from_config, inputs_to_config
from statmech.keys.scenario import AbstractScenario, get_kinds
from statmech.keys.time_dependent_keys import is_time_function_section
from statmech.parameters.schedules_and_controls import (
    OPTIMAL_KEYWORD,
    ControlFunction,
    OptimalControlOptions,
    control_from_config,
    get_control_values,
    is_time_dependent,
)
from statmech.parameters.task_protocols import (
    BlockedProtocol,
    InterleavedProtocol,
    OptimalProtocol,
    ReplayProtocol,
    TaskProtocol,
    protocol_from_config,
)

UNCHANGED_VALUE_FORM_NAME = "as given"  # for a value that no form describes
SEVERAL_VALUES_LABEL = "as listed"  # menu entry for a list of values


class SliderSpec(NamedTuple):
    """Specification of a slider: its name, stops and initial value, and an optional text before the stops."""

    name: str
    stops: tuple[float, ...]
    initial_value: Any
    text_option: str = ""


class KeyForm(NamedTuple):
    """One way to describe the values of a key by sliders.

    One function converts the values of the sliders to a value in a config. The other converts a value of the key to the
    values of the sliders, or to None if the form does not describe it. Further `form_only_keys` apply only to this
    form.
    """

    title: str
    sliders: tuple[SliderSpec, ...]
    make_config_value: Callable[..., Any]
    get_slider_values: Callable[[Any], tuple[Any, ...] | None]
    form_only_keys: tuple[str, ...] = ()


class FormMenu:
    """Menu of the forms of a key, with the sliders of each form.

    The config keeps its original value as long as the menu and the sliders are unchanged. The menu also contains a
    value that no form describes.

    Parameters
    ----------
    key
        The key.
    forms
        The forms by name. Without forms the menu is not shown.
    config
        The config that the page opens with, which has one value of the key or a list.
    default
        The value of the key if it is not in the config.
    read
        Converts a value in a config to the value of the key.
    label
        Describes a value that has no form.
    title
        The title of the menu, by default the key.
    """

    def __init__(
        self,
        key: str,
        forms: Mapping[str, KeyForm],
        config: Mapping[str, Any],
        default: Any,
        parse_value: Callable[[Any], Any],
        describe_value: Callable[[Any], str] = str,
        title: str = "",
    ):
        self.key, self.forms, self.initial_config = key, forms, config
        self.given = config.get(key) or default
        several = isinstance(self.given, list)  # one curve per value
        value = parse_value(self.given[0] if several else self.given)
        name, values = (UNCHANGED_VALUE_FORM_NAME, ()) if several else self._find_form(value)
        options = {form.title: name for name, form in forms.items()}
        if name == UNCHANGED_VALUE_FORM_NAME:
            options[SEVERAL_VALUES_LABEL if several else describe_value(value)] = UNCHANGED_VALUE_FORM_NAME
        self.menu = pmui.Select(label=title or key, options=options, value=name, visible=bool(forms), **MENU_STYLE)
        self.sliders = {
            form_name: self._make_sliders(form, values if form_name == name else ())
            for form_name, form in forms.items()
        }
        self.widgets = [self.menu, *(slider for sliders in self.sliders.values() for slider in sliders)]
        self.initial_state = self._get_form_and_slider_values()
        self.show_selected_sliders()

    @property
    def config(self) -> dict[str, Any]:
        """The config entry of the key, or an empty dictionary if the menu has no forms."""
        if not self.forms:
            return {}
        name, values = self._get_form_and_slider_values()
        as_given = self._get_form_and_slider_values() == self.initial_state or name == UNCHANGED_VALUE_FORM_NAME
        return {self.key: self.given if as_given else self.forms[name].make_config_value(*values)}

    @property
    def inapplicable_keys(self) -> set[str]:
        """Keys that apply only to forms other than the selected one."""
        all_keys = {key for form in self.forms.values() for key in form.form_only_keys}
        if self.menu.value == UNCHANGED_VALUE_FORM_NAME:
            return {key for key in all_keys if self.initial_config.get(key) is None}
        return all_keys - {*self.forms[self.menu.value].form_only_keys}

    def show_selected_sliders(self) -> None:
        """Show only the sliders of the selected form."""
        for name, sliders in self.sliders.items():
            for slider in sliders:
                set_slider_title(slider, slider.label, name == self.menu.value)

    def set_visible(self, visible: bool) -> None:
        """Show the menu and its sliders, or hide both while the key is set elsewhere."""
        self.menu.visible = visible and bool(self.forms)
        for slider in self.sliders.get(self.menu.value, ()):
            set_slider_title(slider, slider.label, visible)

    def _get_form_and_slider_values(self) -> tuple[str, tuple[Any, ...]]:
        name = self.menu.value
        return name, tuple(slider.value for slider in self.sliders.get(name, ()))

    def _find_form(self, value: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the name of the form that describes a value, and the values of its sliders."""
        candidates = ((name, form.get_slider_values(value)) for name, form in self.forms.items())
        return next(
            ((name, values) for name, values in candidates if values is not None), (UNCHANGED_VALUE_FORM_NAME, ())
        )

    @staticmethod
    def _make_sliders(form: KeyForm, values: tuple[Any, ...]) -> list[Any]:
        firsts = values or tuple(slider.initial_value for slider in form.sliders)
        return [
            make_stop_slider(slider.name, slider.stops, first, slider.text_option)
            for slider, first in zip(form.sliders, firsts, strict=True)
        ]


CONSTANT_FORM, STEP_FORM, ALL_VALUES_FORM = "constant", "step", "all"
NUM_STEP_SLIDER_STOPS = 20  # for the sliders of the two levels and of the time


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
    return TimeFunctionMenu(
        name, forms, config, key.default, _parse_control, lambda value: format_control_with_arrows(str(value)), title
    )


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


ISOTROPIC_LABEL = "isotropic"
GAUSSIAN_INPUTS_NAME = "gaussian"  # name of isotropic inputs in a config
RANDOM_TEACHER = "random"  # a teacher without a preferred direction
TEACHER_PART_DECIMALS = 8  # the rounded parts of the teacher must add up to 1
ALIGNMENT_DECIMALS = 5  # rounds the initial value of a slider
MIN_NUM_DIRECTIONS = 2  # required by theory, although two variances suffice


def _make_slider_stops(last_stop: float) -> tuple[float, ...]:
    return tuple(round(0.05 * step, 2) for step in range(round(last_stop / 0.05) + 1))


def make_two_variance_spectrum(spread: float, alignment: Any = RANDOM_TEACHER) -> Spectrum:
    """Return a spectrum with the variances 1 - D and 1 + D in equal fractions.

    `alignment` is the part of the teacher's field variance in the directions of larger variance.

    >>> make_two_variance_spectrum(0.8, 0.9)
    Spectrum(eigenvalues=(0.2, 1.8), shares=(), teacher=(0.5, 0.5), misfit=0.0, ridge=())
    """
    variances = np.array([settings.round_float(1 - spread), settings.round_float(1 + spread)])
    if alignment == RANDOM_TEACHER:
        return Spectrum(tuple(variances.tolist()))
    weights = np.array([1 - alignment, alignment]) / variances
    larger = round(float(weights[1] / weights.sum()), TEACHER_PART_DECIMALS)
    return Spectrum(tuple(variances.tolist()), teacher=(round(1 - larger, TEACHER_PART_DECIMALS), larger))


def _get_spread_and_alignment(inputs: Inputs) -> tuple[Any, ...] | None:
    """Return D and the alignment of inputs with variances 1 - D and 1 + D, or None for other inputs."""
    if not isinstance(inputs, Spectrum) or len(inputs.eigenvalues) != 2 or inputs.misfit or inputs.ridge:
        return None
    spread = settings.round_float(inputs.eigenvalues[1] - 1)
    equal = len({*inputs.shares}) < 2 and 0 <= spread < 1
    if not equal or make_two_variance_spectrum(spread).eigenvalues != inputs.eigenvalues:
        return None
    powers = inputs.modes(MIN_NUM_DIRECTIONS).powers
    return spread, RANDOM_TEACHER if inputs.teacher == RANDOM_TEACHER else round(float(powers[1]), ALIGNMENT_DECIMALS)


def _get_power_law_exponents(inputs: Inputs) -> tuple[Any, ...] | None:
    return (inputs.decay, inputs.teacher_decay) if isinstance(inputs, PowerLaw) else None


def _make_slider_value_converter(make_inputs: Callable[..., Inputs]) -> Callable[..., Any]:
    """Return a function that converts the values of sliders to inputs in a config."""
    return lambda *values: inputs_to_config(make_inputs(*values))


ISOTROPIC_FORM = KeyForm(
    ISOTROPIC_LABEL,
    (),
    lambda: GAUSSIAN_INPUTS_NAME,
    lambda inputs: () if inputs_to_config(inputs) == GAUSSIAN_INPUTS_NAME else None,
)
INPUT_MENU_FORMS = {  # keys are names in a config
    "spectrum": KeyForm(
        "two variances",
        (
            SliderSpec("spread", _make_slider_stops(0.95), 0.5),
            SliderSpec("alignment", _make_slider_stops(1.0), RANDOM_TEACHER, RANDOM_TEACHER),
        ),
        _make_slider_value_converter(make_two_variance_spectrum),
        _get_spread_and_alignment,
    ),
    "power_law": KeyForm(
        "power law",
        (SliderSpec("decay", _make_slider_stops(3.0), 1.0), SliderSpec("teacher decay", _make_slider_stops(4.0), 1.5)),
        _make_slider_value_converter(PowerLaw),
        _get_power_law_exponents,
    ),
}


def make_input_menu(kind_name: str, config: dict[str, Any]) -> FormMenu:
    """Return the menu of the input distributions of a page, including isotropic inputs."""
    forms = {name: INPUT_MENU_FORMS[name] for name in settings.get_page_settings(kind_name).inputs}
    return FormMenu(
        settings.INPUTS_KEY,
        {"": ISOTROPIC_FORM, **forms} if forms else {},
        config,
        GAUSSIAN_INPUTS_NAME,
        inputs_from_config,
        lambda inputs: inputs.menu_name,
    )


REPLAY_FRACTIONS = tuple(round(0.05 * step, 2) for step in range(1, 20))
TWO_BLOCK_PROTOCOL_KEYS = ("switch",)  # used by protocols with two blocks


def _make_protocol_matcher(kind: type[TaskProtocol]) -> Callable[[Any], tuple[Any, ...] | None]:
    """Return a function that gives () (no sliders) for a protocol of this kind and None for any other."""
    return lambda protocol: () if type(protocol) is kind else None


def _get_replay_fraction(protocol: TaskProtocol) -> tuple[Any, ...] | None:
    """Return the fraction of replay if it is constant, and otherwise None."""
    if type(protocol) is not ReplayProtocol or isinstance(protocol.share, ControlFunction):
        return None
    return (protocol.share,)


PROTOCOL_MENU_FORMS = {  # keys are names in a config
    "blocked": KeyForm(
        "blocked", (), lambda: "blocked", _make_protocol_matcher(BlockedProtocol), TWO_BLOCK_PROTOCOL_KEYS
    ),
    "replay": KeyForm(
        "replay",
        (SliderSpec("fraction", REPLAY_FRACTIONS, 0.1),),
        lambda fraction: {"replay": fraction},
        _get_replay_fraction,
        TWO_BLOCK_PROTOCOL_KEYS,
    ),
    "interleaved": KeyForm("interleaved", (), lambda: "interleaved", _make_protocol_matcher(InterleavedProtocol)),
    OPTIMAL_KEYWORD: KeyForm(
        "optimal replay", (), lambda: OPTIMAL_KEYWORD, _make_protocol_matcher(OptimalProtocol), TWO_BLOCK_PROTOCOL_KEYS
    ),
}


def make_protocol_menu(kind_name: str, config: dict[str, Any]) -> FormMenu:
    """Return the menu of the protocols of a page."""
    forms = {name: PROTOCOL_MENU_FORMS[name] for name in settings.get_page_settings(kind_name).protocols}
    if config.get("switch") is None and OPTIMAL_KEYWORD in forms:  # optimal replay needs no switch
        forms[OPTIMAL_KEYWORD] = forms[OPTIMAL_KEYWORD]._replace(form_only_keys=())
    return FormMenu(settings.PROTOCOL_KEY, forms, config, "blocked", protocol_from_config)
