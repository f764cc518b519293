"""A slider for recorded times, with a button that shows them as an animation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import panel_material_ui as pmui

from figures.explorer.delayed_calls import CallScheduler

FRAME_MILLISECONDS = 250  # duration of each recorded time in the animation
PLAY_SYMBOL, PAUSE_SYMBOL = "▶", "⏸"


class TimeAnimation:
    """Animation control that shows one recorded time after the other.

    `on_time()` is called for each time.
    """

    def __init__(self, scheduler: CallScheduler, on_time: Callable[[], None], initial_time: float | None = None):
        self.scheduler, self.shown, self.requested = scheduler, on_time, initial_time
        self.axis, self.values = "", np.zeros(0)
        self.is_playing, self.is_offering = False, False
        self.button = pmui.Button(
            label=PLAY_SYMBOL, variant="outlined", size="small", width=66, margin=(2, 2), visible=False
        )
        self.slider = pmui.DiscreteSlider(
            options=[0], value=0, width=130, margin=(0, 8), size="small", tooltips=False, visible=False
        )
        self.slider.param.watch(lambda event: self._handle_slider_move(), "value")
        self.button.on_click(lambda event: self._toggle_playing())
        self.parts = [self.button, self.slider]

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
        visible = values.size > 1
        self.button.visible = visible
        if not visible:
            self.slider.visible = False
            self.stop()
            return
        nearest = values[-1] if time is None else values[np.argmin(np.abs(values - time))]
        self.is_offering = True
        try:
            options = {f"{value:g}": float(value) for value in values}
            self.slider.param.update(label=f"at {axis}", options=options, value=float(nearest), visible=True)
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
