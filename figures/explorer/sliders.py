"""Sliders of the explorer, the animation of recorded times, and editable lists of values.

Sliders have stops, or a number that can also be typed.

Animation: a slider selects a recorded time, and a button shows all recorded times one after the other.

Delayed calls run in the thread of the page. In a browser the page's document makes these calls, in a notebook the event
loop.

Value lists: the values of curves are listed in lines of text that can be edited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from tornado.ioloop import IOLoop

from figures.explorer import settings
from figures.explorer.settings import is_number
from figures.labels import format_config_value


class CallScheduler:
    """Scheduler of calls in the thread of a page, after a delay or as soon as possible.

    Panel keeps each of its periodic callbacks until the page is closed, and redraws its busy state for every call. Its
    `execute` makes a call of another thread in that thread if there is no browser page.
    """

    def __init__(self) -> None:
        self.document: Any = pn.state.curdoc
        self.loop = None if self.document is not None else IOLoop.current()

    def call_later(self, milliseconds: int, function: Callable[[], None]) -> None:
        """Call a function after a delay."""
        if self.loop is None:
            self.document.add_timeout_callback(function, milliseconds)
        else:
            self.loop.call_later(milliseconds / 1000, function)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function in the page's thread as soon as possible.

        This method may be called in any thread.
        """
        if self.loop is None:
            self.document.add_next_tick_callback(function)
        else:
            self.loop.add_callback(function)


CELL_STYLE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": 0}  # fills a cell of the grid
MENU_STYLE: dict[str, Any] = CELL_STYLE | {
    "size": "small",
    "sx": {
        "&.MuiInputBase-root, & .MuiInputBase-root": {"height": "40px"},
        "& .MuiSelect-select": {"padding-left": "10px !important"},
    },
}
SLIDER_SX = {  # the label and the value, which looks the same whether or not it can be typed, over the slider
    "&.MuiFormControl-root": {"height": "40px"},
    "& .MuiFormLabel-root": {"line-height": "20px", "max-width": "none", "white-space": "nowrap !important"},
    "& strong": {"color": "text.primary"},
    "&.MuiSlider-root": {"padding": "9px 0"},
    "& .MuiTextField-root, & .MuiInput-root": {"margin": "0 !important"},
    "& .MuiInput-root::before": {"border": "none !important"},
    "& .MuiInput-input": {"padding": "0", "height": "20px", "font-weight": "bold"},
    "& .MuiGrid-container": {"display": "none"},  # buttons that are smaller than a step of an arrow key
}
MAX_NARROW_TIME_LETTERS = 7  # letters of a key and its time; longer ones widen the slider
STOP_SLIDER_STYLE: dict[str, Any] = CELL_STYLE | {"size": "small", "tooltips": False, "sx": SLIDER_SX}
TYPED_SLIDER_STYLE: dict[str, Any] = STOP_SLIDER_STYLE | {"format": "0.[0000000000]"}


def set_slider_title(slider: Any, title: str, visible: bool = True) -> None:
    """Set the title of a slider, or hide it.

    Nothing is sent to the browser if nothing has changed.
    """
    if (slider.visible, slider.label) != (visible, title):
        slider.param.update(visible=visible, label=title)


def move_slider(slider: Any, num_steps: int) -> None:
    """Move a slider by a number of steps within its range."""
    if isinstance(slider, pmui.EditableFloatSlider):
        slider.value = settings.round_float(min(slider.end, max(slider.start, slider.value + num_steps * slider.step)))
        return
    stops = [*slider.options.values()] if isinstance(slider.options, dict) else [*slider.options]
    slider.value = stops[min(len(stops) - 1, max(0, stops.index(slider.value) + num_steps))]


def make_typed_slider(low: float, high: float, step: float, value: float) -> Any:
    """Return a slider with equal steps, which also accepts a typed number.

    Its steps add digits to a value. Rounding the value here would send it to the browser, where it could replace a
    newer one.
    """
    ends = {"start": min(low, value), "end": max(high, value)}
    return pmui.EditableFloatSlider(**ends, step=step, value=value, **TYPED_SLIDER_STYLE)


def make_stop_slider(name: str, stops: Iterable[float], value: Any, text_option: str = "") -> Any:
    """Return a slider with these stops and this initial value.

    Text options, such as "best", come before the numbers.
    """
    texts = [text for text in dict.fromkeys((text_option, value)) if isinstance(text, str) and text]
    numbers = sorted({*stops, *([] if isinstance(value, str) else [value])})
    options = {**dict(zip(texts, texts, strict=True)), **{f"{stop:,.7g}": stop for stop in numbers}}
    slider = pmui.DiscreteSlider(label="", options=options, value=value, **STOP_SLIDER_STYLE)
    set_slider_title(slider, name)
    return slider


FRAME_MILLISECONDS = 250  # duration of each recorded time in the animation
PLAY_SYMBOL, PAUSE_SYMBOL, PLAY_BUTTON_SX = "▶", "❚❚", {"min-width": "0"}


class TimeAnimation:
    """Animation control that shows one recorded time after the other.

    `on_time()` is called for each time.
    """

    def __init__(self, scheduler: CallScheduler, on_time: Callable[[], None], initial_time: float | None = None):
        self.scheduler, self.shown, self.requested = scheduler, on_time, initial_time
        self.axis, self.values = "", np.zeros(0)
        self.is_playing, self.is_offering = False, False
        self.button = pmui.Button(
            label=PLAY_SYMBOL, variant="outlined", size="small", width=40, height=40, margin=0, sx=PLAY_BUTTON_SX
        )
        self.slider = pmui.DiscreteSlider(options=[0], value=0, **STOP_SLIDER_STYLE)
        self.slider.param.watch(lambda event: self._handle_slider_move(), "value")
        self.button.on_click(lambda event: self._toggle_playing())
        self.controls = pn.Row(self.button, self.slider, visible=False, **CELL_STYLE)

    @property
    def index(self) -> int:
        """The index of the selected recorded time."""
        return int(np.argmin(np.abs(self.values - self.slider.value))) if self.values.size else -1

    @property
    def selected_time(self) -> float:
        """The selected recorded time."""
        return float(self.values[self.index]) if self.values.size else 0.0

    @property
    def chosen(self) -> float | None:
        """The selected recorded time, or None if it is the last."""
        return self.selected_time if self.values.size and self.index < self.values.size - 1 else None

    def offer_times(self, axis: str, values: np.ndarray) -> None:
        """Replace the recorded times that the slider offers.

        The selected time is kept, and the last time remains the last.
        """
        if axis == self.axis and np.array_equal(values, self.values):
            return
        time = self.chosen if self.values.size else self.requested
        self.axis, self.values = axis, values
        is_long = len(f"{axis}{max(values, default=0):g}") > MAX_NARROW_TIME_LETTERS
        style = {"gap": "12px", "grid-column": "span 2" if is_long else "auto"}
        self.controls.param.update(visible=values.size > 1, styles=style)
        if values.size <= 1:
            self.stop()
            return
        nearest = values[-1] if time is None else values[np.argmin(np.abs(values - time))]
        self.is_offering = True
        try:
            options = {f"{value:,.7g}": float(value) for value in values}
            self.slider.param.update(label=f"at {axis}", options=options, value=float(nearest))
        finally:
            self.is_offering = False

    def stop(self) -> None:
        """Stop the animation at the selected time."""
        self.is_playing = False
        self.button.label = PLAY_SYMBOL

    def _handle_slider_move(self) -> None:
        if not self.is_offering:
            self.shown()

    def _toggle_playing(self) -> None:
        if self.is_playing:
            self.stop()
            return
        if self.index == self.values.size - 1:
            self.slider.value = float(self.values[0])
        self.is_playing = True
        self.button.label = PAUSE_SYMBOL
        self.scheduler.call_later(FRAME_MILLISECONDS, self._advance)

    def _advance(self) -> None:
        if not self.is_playing:
            return
        if self.index >= self.values.size - 1:
            self.stop()
            return
        self.slider.value = float(self.values[self.index + 1])
        self.scheduler.call_later(FRAME_MILLISECONDS, self._advance)


def format_value_line(values: Iterable[Any]) -> str:
    """Format values in one line of text.

    A section is shown by its name or, without a name, in words.

    >>> format_value_line([0, 0.001, "best"]), format_value_line([{"replay": 0.1}, {"name": "one unit", "v": [1]}])
    ('0, 0.001, best', '0.1, one unit')
    """
    return ", ".join(map(_format_listed_value, values))


def parse_value_line(line: str, listed_values: Iterable[Any]) -> str:
    """Convert an edited line to the text of a config.

    The names of listed sections are replaced with the sections.

    >>> parse_value_line("one unit, 2", [{"name": "one unit", "v": [1]}])
    '{"name": "one unit", "v": [1]}, 2'
    """
    sections = {_format_listed_value(value): json.dumps(value) for value in listed_values if isinstance(value, dict)}
    pattern = "|".join(map(re.escape, sorted(sections, key=len, reverse=True)))
    return re.sub(pattern, lambda match: sections[match[0]], line) if sections else line


def _format_listed_value(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("name") or format_config_value(value))
    return value if isinstance(value, str) else f"{value:g}" if is_number(value) else json.dumps(value)
