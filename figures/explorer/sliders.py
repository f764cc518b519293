"""The sliders of the explorer: one with stops, and one with a number that can be typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import panel_material_ui as pmui

from figures.explorer import settings

STOPPING: dict[str, Any] = {"width": 112, "margin": (4, 8), "size": "small", "tooltips": False}
ROOM, ROOM_TYPED = 12, 8  # letters that fit into the width: name and value, or name only
LETTER, LETTER_TYPED = 10, 14  # pixels per further letter, more next to a typed number
NAMED = "label { white-space: nowrap !important }"  # the label is next to a number
TYPED: dict[str, Any] = STOPPING | {"width": 160, "format": "0.[0000000000]", "stylesheets": [NAMED]}


class Tidy(pmui.EditableFloatSlider):
    """Slider with a rounded value, without the digits that its steps add."""

    def _process_property_change(self, msg: dict[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] = super()._process_property_change(msg)
        for name in ("value", "value_throttled"):
            if isinstance(changed.get(name), float):
                changed[name] = settings.rounded(changed[name])
        return changed


def entitle(slider: Any, title: str, visible: bool = True) -> None:
    """Set the title and width of a slider, or hide it.

    Nothing is sent to the browser if nothing has changed.
    """
    if (slider.visible, slider.label) == (visible, title):
        return
    if isinstance(slider, Tidy):
        width = TYPED["width"] + LETTER_TYPED * max(0, len(title) - ROOM_TYPED)
    else:
        width = STOPPING["width"] + LETTER * max(0, len(title) + max(map(len, slider.options)) - ROOM)
    slider.param.update(visible=visible, label=title, width=width)


def step(slider: Any, number: int) -> None:
    """Move a slider by a number of steps within its range."""
    if isinstance(slider, Tidy):
        slider.value = settings.rounded(min(slider.end, max(slider.start, slider.value + number * slider.step)))
        return
    stops = [*slider.options.values()] if isinstance(slider.options, dict) else [*slider.options]
    slider.value = stops[min(len(stops) - 1, max(0, stops.index(slider.value) + number))]


def typed(low: float, high: float, step: float, value: float) -> Tidy:
    """Return a slider with equal steps, which also accepts a typed number."""
    return Tidy(start=min(low, value), end=max(high, value), step=step, value=value, **TYPED)


def stopping(name: str, stops: Iterable[float], value: Any, word: str = "") -> Any:
    """Return a slider with these stops and its initial value.

    Text options, such as "best", come before the numbers.
    """
    word_options = [
        word_option for word_option in dict.fromkeys((word, value)) if isinstance(word_option, str) and word_option
    ]
    numbers = sorted({*stops, *([] if isinstance(value, str) else [value])})
    options = {**{word_option: word_option for word_option in word_options}, **{f"{stop:g}": stop for stop in numbers}}
    slider = pmui.DiscreteSlider(label="", options=options, value=value, **STOPPING)
    entitle(slider, name)
    return slider
