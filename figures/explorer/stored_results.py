"""Controls of a page of stored results, with sliders for the axes of the sweep."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import numpy as np
import panel_material_ui as pmui

from figures import curves
from figures.curves import Layout
from figures.explorer.page_charts import ChartContent, format_chart_caption, format_key_equation
from figures.labels import key_label, kind_label
from statmech.results.results import Results

NO_AXIS_LABEL = "(none)"
MENU_WIDGET_OPTIONS: dict[str, Any] = {"width": 150, "margin": (4, 6), "size": "small"}
SLIDER_WIDGET_OPTIONS: dict[str, Any] = {"width": 160, "margin": (4, 10), "size": "small", "tooltips": False}


class StoredResultsControls:
    """Controls of stored results: menus for the axes along x and in colour, sliders for the other axes."""

    def __init__(self, results: Results, on_results: Callable[[], None]):
        self.results, self.scenario, self.shown = results, results.scenario, on_results
        self.whole = curves.ensure_chart_axis(results)
        names, first = curves.get_chart_axes(self.whole.either), curves.choose_default_layout(self.whole)
        axes = {self._get_axis_title(axis): axis for axis in names}
        self.x = pmui.Select(label="along x", options=axes, value=first.x, **MENU_WIDGET_OPTIONS)
        self.colour = pmui.Select(
            label="in colours",
            options={NO_AXIS_LABEL: NO_AXIS_LABEL, **axes},
            value=next(iter(first.colour_axes), NO_AXIS_LABEL),
            **MENU_WIDGET_OPTIONS,
        )
        self.sliders = {axis: self._make_slider(axis) for axis in names}
        for widget in (self.x, self.colour, *self.sliders.values()):
            widget.param.watch(lambda event: self.update(), "value")
        self.row: list[Any] = [self.x, self.colour, *self.sliders.values()]
        self.more: list[Any] = []

    @property
    def layout(self) -> Layout:
        """The layout that is selected in the menus."""
        colours = () if self.colour.value in (NO_AXIS_LABEL, self.x.value) else (self.colour.value,)
        shown_axes = {self.x.value, *colours}
        return Layout(self.x.value, colours, tuple(axis for axis in self.sliders if axis not in shown_axes))

    @property
    def chart_content(self) -> ChartContent:
        """The results at the positions of the sliders."""
        layout = self.layout
        positions = {axis: self.sliders[axis].value for axis in layout.single_position_axes}
        position_labels = [
            curves.label_positions(self.whole.either, axis, self._format_axis_value)[index]
            for axis, index in positions.items()
        ]
        shown_axes = (layout.x, *layout.colour_axes)
        return ChartContent(
            curves.select_position(self.whole, positions),
            layout,
            caption=format_chart_caption(self.whole, shown_axes, ", ".join(position_labels)),
        )

    def update(self) -> None:
        """Show the results at the positions of the sliders."""
        for axis, slider in self.sliders.items():
            slider.visible = axis in self.layout.single_position_axes and self.whole.either.sizes[axis] > 1
        self.shown()

    def close(self) -> None:
        """Do nothing, as nothing runs in the background."""

    def _make_slider(self, axis: str) -> Any:
        values = curves.get_axis_values(self.whole.either, axis)
        options = {
            self._get_kind_label(axis, value) if isinstance(value, str) else f"{value:g}": index
            for index, value in enumerate(values)
        }
        number = np.issubdtype(values.dtype, np.number)
        kind = pmui.DiscreteSlider if number and len(options) > 1 else pmui.Select
        style = SLIDER_WIDGET_OPTIONS if kind is pmui.DiscreteSlider else MENU_WIDGET_OPTIONS
        return kind(label=self._get_axis_title(axis), options=options, value=len(values) - 1 if number else 0, **style)

    def _format_axis_value(self, name: str, value: Any) -> str:
        """Return a value of an axis for the caption."""
        return (
            html.escape(self._get_kind_label(name, value))
            if isinstance(value, str)
            else format_key_equation(self.scenario, name, value)
        )

    def _get_axis_title(self, axis: str) -> str:
        """Return the labels of the keys that vary along an axis."""
        keys = curves.get_axis_coordinates(self.whole.either, axis)
        return ", ".join(key_label(name, self.scenario.describe(name).label) for name in keys)

    def _get_kind_label(self, axis: str, value: str) -> str:
        """Return the label of a rule, learner, ..., or any other text unchanged."""
        return kind_label(self.scenario.choices().get(axis, {}), value)
