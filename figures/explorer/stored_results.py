"""A stored result: its sweep's axes as sliders, over what was simulated and solved."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import panel_material_ui as pmui

from figures import series
from figures.explorer.settings import labelled
from figures.series import Layout
from statmech.results.dataset import scenario_of

if TYPE_CHECKING:
    import xarray as xr

NONE = "(none)"


class Stored:
    """What is seen of a stored result: which axis lies along x, which in colours, and where on all others."""

    def __init__(self, simulation: xr.Dataset | None, theory: xr.Dataset | None, shown: Callable[[], None]):
        self.both = simulation, theory
        self.whole = tuple(None if part is None else series.with_axis(part) for part in (simulation, theory))
        self.shown = shown
        either = next(part for part in self.whole if part is not None)
        self.scenario = scenario_of(either)
        self.either, begun = either, series.layout(either)
        every = series.axes(either)
        self.x = pmui.Select(label="along x", options=labelled(every), value=begun.x, sizing_mode="stretch_width")
        self.colour = pmui.Select(
            label="in colours",
            options=labelled([NONE, *every]),
            value=begun.colour or NONE,
            sizing_mode="stretch_width",
        )
        self.sliders = {axis: self._slider(axis) for axis in every}
        for widget in (self.x, self.colour, *self.sliders.values()):
            widget.param.watch(lambda event: self.update(), "value")
        self.view = pmui.Column(self.x, self.colour, *self.sliders.values(), sizing_mode="stretch_width")

    @property
    def layout(self) -> Layout:
        colour = None if self.colour.value in (NONE, self.x.value) else self.colour.value
        shown = {self.x.value, colour}
        return Layout(self.x.value, colour, tuple(axis for axis in self.sliders if axis not in shown))

    def update(self) -> None:
        """Show the slice that the sliders tell."""
        for axis, slider in self.sliders.items():
            slider.visible = axis in self.layout.rest and self.either.sizes[axis] > 1
        self.shown()

    def close(self) -> None:
        """Nothing goes on in the background."""

    @property
    def simulation(self) -> xr.Dataset | None:
        return series.pick(self.whole[0], self._places())

    @property
    def theory(self) -> xr.Dataset | None:
        return series.pick(self.whole[1], self._places())

    def _places(self) -> dict[str, int]:
        return {axis: self.sliders[axis].value for axis in self.layout.rest}

    def _slider(self, axis: str) -> Any:
        values = series.values(self.either, axis)
        told = {html.escape(value) if isinstance(value, str) else f"{value:g}": at for at, value in enumerate(values)}
        number = np.issubdtype(values.dtype, np.number)
        kind = pmui.DiscreteSlider if number and len(told) > 1 else pmui.Select
        return kind(
            label=html.escape(axis), options=told, value=len(values) - 1 if number else 0, sizing_mode="stretch_width"
        )
