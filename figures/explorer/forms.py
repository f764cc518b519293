"""Menus for the alternative forms of a config key, with the sliders of each form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import panel_material_ui as pmui

from figures.explorer.sliders import make_stop_slider, set_slider_title

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
        self.menu = pmui.Select(
            label=title or key,
            options=options,
            value=name,
            width=160,
            margin=(4, 6),
            size="small",
            visible=bool(forms),
        )
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
