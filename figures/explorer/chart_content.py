"""Content of the charts at one time, and the controls of stored results that select it.

Content: results that are drawn at one time, with their layout and caption (`ChartContent`).

Stored results: menus for the axes of the charts, and sliders for all other axes of the sweep.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import panel_material_ui as pmui

from figures import curves
from figures.curves import Layout
from figures.labels import format_control_with_arrows, html_from_latex, key_label, kind_label
from figures.legends import UNRESOLVED_BAND_NOTE
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import is_axis
from statmech.results.results import Results

BAND_CAPTION_TEXT = "band: theory + bias ± std of a run"


@dataclass(frozen=True)
class ChartContent:
    """Results to be drawn, their layout and their caption.

    The results have only the axes of the layout. `plane` names two variables that are drawn against each other. The
    caption is HTML.
    """

    results: Results
    layout: Layout
    plane: tuple[str, str] | None = None
    caption: str = ""


def format_chart_caption(
    results: Results, shown_axes: Sequence[str], time_text: str = "", single_runs: bool = False
) -> str:
    """Return a caption in HTML: common parameters of the curves, and the meaning of points and lines.

    >>> from statmech import Scenario
    >>> print(format_chart_caption(Results(Scenario(rule=["hebb"], K=3, N=100, t=[1, 2]), None, None), ("t", "rule")))
    <i>K</i> = 3, <i>N</i> = 100
    """
    scenario = results.scenario
    fixed_keys = [
        format_key_equation(scenario, name, value)
        for name, value in scenario.axis_values().items()
        if name not in shown_axes and not is_axis(value) and scenario.describe(name).numeric and not _is_zero(value)
    ]
    seeds = [] if results.simulation is None else [_describe_points(results.simulation.sizes["seed"], single_runs)]
    thick = single_runs and results.simulation is not None
    lines = ["thick: theory" if thick else "lines: theory"] if has_theory_lines(results) else []
    if lines and curves.has_run_bands(scenario):
        lines += [BAND_CAPTION_TEXT + (f", {UNRESOLVED_BAND_NOTE}" if curves.has_unresolved_bands(results) else "")]
    variables = scenario.variables | scenario.theory_only_variables
    levels = [
        html_from_latex(variables[level].symbol)
        for variable in curves.get_chart_variables(scenario).values()
        for level in variable.reference_variables
    ]
    dotted = [f"dotted: {', '.join(dict.fromkeys(levels))}"] if results.theory is not None and levels else []
    return "; ".join([", ".join([*([time_text] if time_text else []), *fixed_keys]), *seeds, *lines, *dotted])


def format_key_equation(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Format `key = value` as HTML without line breaks."""
    text = f"{value:,g}" if isinstance(value, int | float) else html.escape(format_control_with_arrows(str(value)))
    return f"{html_from_latex(scenario.describe(name).label)}\u00a0=\u00a0{text}"


def _is_zero(value: Any) -> bool:
    """Return True for the number 0, which switches off an effect such as noise."""
    return not isinstance(value, str) and value == 0


def has_theory_lines(results: Results) -> bool:
    """Return True if theory has finite values of a variable that is not a bound."""
    theory, drawn_variables = results.theory, curves.get_chart_variables(results.scenario)
    drawn_values = (
        ()
        if theory is None
        else [theory[name] for name, variable in drawn_variables.items() if name in theory and not variable.bound]
    )
    return any(bool(np.isfinite(values).any()) for values in drawn_values)


def _describe_points(num_seeds: int, single_runs: bool) -> str:
    if single_runs:
        return f"thin: {min(num_seeds, curves.MAX_SINGLE_RUNS)} single run{'s' * (num_seeds > 1)}"
    return f"points: mean of {num_seeds} seeds ± standard error" if num_seeds > 1 else "points: one seed"


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
