"""Sliders of the explorer: with stops, or with a number that can also be typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import panel_material_ui as pmui

from figures.explorer import settings

STOP_SLIDER_STYLE: dict[str, Any] = {"width": 112, "margin": (4, 8), "size": "small", "tooltips": False}
FREE_LETTERS, FREE_LABEL_LETTERS = 12, 8  # letters that fit into the width: name and value, or name only
LETTER_PIXELS, TYPED_LETTER_PIXELS = 10, 14  # extra width per further letter, larger next to a typed number
SLIDER_LABEL_CSS = "label { white-space: nowrap !important }"  # keeps the label on one line
TYPED_SLIDER_STYLE: dict[str, Any] = STOP_SLIDER_STYLE | {
    "width": 160,
    "format": "0.[0000000000]",
    "stylesheets": [SLIDER_LABEL_CSS],
}


class RoundedValueSlider(pmui.EditableFloatSlider):
    """Slider that rounds away the digits that its steps add to a value."""

    def _process_property_change(self, msg: dict[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] = super()._process_property_change(msg)
        for name in ("value", "value_throttled"):
            if isinstance(changed.get(name), float):
                changed[name] = settings.round_float(changed[name])
        return changed


def set_slider_title(slider: Any, title: str, visible: bool = True) -> None:
    """Set the title and width of a slider, or hide it.

    Nothing is sent to the browser if nothing has changed.
    """
    if (slider.visible, slider.label) == (visible, title):
        return
    if isinstance(slider, RoundedValueSlider):
        width = TYPED_SLIDER_STYLE["width"] + TYPED_LETTER_PIXELS * max(0, len(title) - FREE_LABEL_LETTERS)
    else:
        width = STOP_SLIDER_STYLE["width"] + LETTER_PIXELS * max(
            0, len(title) + max(map(len, slider.options)) - FREE_LETTERS
        )
    slider.param.update(visible=visible, label=title, width=width)


def move_slider(slider: Any, num_steps: int) -> None:
    """Move a slider by a number of steps within its range."""
    if isinstance(slider, RoundedValueSlider):
        slider.value = settings.round_float(min(slider.end, max(slider.start, slider.value + num_steps * slider.step)))
        return
    stops = [*slider.options.values()] if isinstance(slider.options, dict) else [*slider.options]
    slider.value = stops[min(len(stops) - 1, max(0, stops.index(slider.value) + num_steps))]


def make_typed_slider(low: float, high: float, step: float, value: float) -> RoundedValueSlider:
    """Return a slider with equal steps, which also accepts a typed number."""
    return RoundedValueSlider(start=min(low, value), end=max(high, value), step=step, value=value, **TYPED_SLIDER_STYLE)


def make_stop_slider(name: str, stops: Iterable[float], value: Any, text_option: str = "") -> Any:
    """Return a slider with these stops and this initial value.

    Text options, such as "best", come before the numbers.
    """
    text_options = [
        option_text
        for option_text in dict.fromkeys((text_option, value))
        if isinstance(option_text, str) and option_text
    ]
    numbers = sorted({*stops, *([] if isinstance(value, str) else [value])})
    options = {**{option_text: option_text for option_text in text_options}, **{f"{stop:g}": stop for stop in numbers}}
    slider = pmui.DiscreteSlider(label="", options=options, value=value, **STOP_SLIDER_STYLE)
    set_slider_title(slider, name)
    return slider
