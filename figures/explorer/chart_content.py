"""Content of the charts at one time, and the controls of stored results that select it.

Content: results that are drawn at one time, with their layout (`ChartContent`).

Stored results: menus for the axes of the charts, and sliders for all other axes of the sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import panel_material_ui as pmui

from figures import curves
from figures.curves import Layout
from figures.explorer.sliders import MENU_STYLE, STOP_SLIDER_STYLE, move_slider
from figures.labels import key_label, kind_label, make_value_labeller
from statmech.results.results import Results


@dataclass(frozen=True)
class ChartContent:
    """Results to be drawn, and their layout.

    The results have only the axes of the layout. `plane` names two variables that are drawn against each other, and
    `title_texts` state the positions on the other axes.
    """

    results: Results
    layout: Layout
    plane: tuple[str, str] | None = None
    title_texts: tuple[str, ...] = ()


def has_theory_lines(results: Results) -> bool:
    """Return True if theory has finite values of a variable that is not a bound."""
    theory, drawn_variables = results.theory, curves.get_chart_variables(results.scenario)
    drawn_values = (
        ()
        if theory is None
        else [theory[name] for name, variable in drawn_variables.items() if name in theory and not variable.bound]
    )
    return any(bool(np.isfinite(values).any()) for values in drawn_values)


NO_AXIS_LABEL = "(none)"


class StoredResultsControls:
    """Controls of stored results: menus for the axes along x and in colour, sliders for the other axes."""

    def __init__(self, results: Results, on_results: Callable[[], None]):
        self.results, self.scenario, self.shown = results, results.scenario, on_results
        self.whole = curves.ensure_chart_axis(results)
        self.add_dense_lines = cache(lambda x: curves.add_dense_lines(self.whole, x))
        names, first = curves.get_chart_axes(self.whole.either), curves.choose_default_layout(self.whole)
        axes = {self._get_axis_title(axis): axis for axis in names}
        self.x = pmui.Select(label="along x", options=axes, value=first.x, **MENU_STYLE)
        self.colour = pmui.Select(
            label="in colours",
            options={NO_AXIS_LABEL: NO_AXIS_LABEL, **axes},
            value=next(iter(first.colour_axes), NO_AXIS_LABEL),
            **MENU_STYLE,
        )
        self.sliders = {axis: self._make_slider(axis) for axis in names}
        for widget in (self.x, self.colour, *self.sliders.values()):
            widget.param.watch(lambda event: self.update(), "value")
        self.row: list[Any] = [self.x, self.colour, *self.sliders.values()]
        self.further_controls: list[Any] = []
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
        label = make_value_labeller(self.scenario)
        texts = [curves.label_positions(self.whole.either, axis, label)[index] for axis, index in positions.items()]
        return ChartContent(
            curves.select_position(self.add_dense_lines(layout.x), positions), layout, title_texts=tuple(texts)
        )

    def update(self) -> None:
        """Show the results at the positions of the sliders."""
        for axis, slider in self.sliders.items():
            slider.visible = axis in self.layout.single_position_axes and self.whole.either.sizes[axis] > 1
        self.shown()

    @property
    def _arrow_key_sliders(self) -> list[Any]:
        """The first visible slider, or no slider."""
        return [slider for slider in self.sliders.values() if slider.visible and hasattr(slider, "step")][:1]

    def move_last_slider(self, num_steps: int) -> None:
        """Move the first visible slider."""
        for slider in self._arrow_key_sliders:
            move_slider(slider, num_steps)

    @property
    def arrow_key_hint(self) -> str:
        """The label of the slider that the arrow keys move."""
        return "".join(f"← {slider.label} →" for slider in self._arrow_key_sliders)

    def close(self) -> None:
        """Do nothing, as nothing runs in the background."""

    def _make_slider(self, axis: str) -> Any:
        values = curves.get_axis_values(self.whole.either, axis)
        options = {
            self._get_kind_label(axis, value) if isinstance(value, str) else f"{value:,.7g}": index
            for index, value in enumerate(values)
        }
        number = np.issubdtype(values.dtype, np.number)
        kind = pmui.DiscreteSlider if number and len(options) > 1 else pmui.Select
        style = STOP_SLIDER_STYLE if kind is pmui.DiscreteSlider else MENU_STYLE
        return kind(label=self._get_axis_title(axis), options=options, value=len(values) // 2 if number else 0, **style)

    def _get_axis_title(self, axis: str) -> str:
        """Return the labels of the keys that vary along an axis."""
        keys = curves.get_axis_coordinates(self.whole.either, axis)
        return ", ".join(key_label(name, self.scenario.describe(name).label) for name in keys)

    def _get_kind_label(self, axis: str, value: str) -> str:
        """Return the label of a rule, learner, ..., or any other text unchanged."""
        return kind_label(self.scenario.choices().get(axis, {}), value)
