"""The arrangement of results in a figure: the axes shown along x, by colour, by marker and by panel.

The abscissa is the usual key of the kind of scenario (t, alpha, ...) if it has several values, otherwise the longest
numeric axis. A `Composition` may name another abscissa. A long numeric axis that is not the abscissa is shown at a few
of its values, and recorded times at the last one. For a figure that requires parallel axes (`zip`),
`check_parallel_axes` checks that exactly these axes are swept in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import curves, derived_data, guides, labels
from figures.curves import Layout
from figures.style import CURVE_COLOURS, CURVE_DASHES, CURVE_MARKERS, get_curve_style
from statmech.config.config_files import list_shipped_configs
from statmech.errors import ConfigError, ScenarioError
from statmech.keys.figure_key import Composition, find_drawable_axes, find_drawable_variables, get_drawable_coordinates
from statmech.keys.sweep_grid import ensure_tuple

if TYPE_CHECKING:
    import xarray as xr

    from statmech.keys.variables import Variable
    from statmech.results.results import Results


MAX_UNTHINNED_AXIS_VALUES = 12  # a legend lists only a few values of a longer axis
MAX_PANELS_PER_VARIABLE = 12


@dataclass(frozen=True)
class ArrangedResults:
    """Results in a figure, with their layout and the colours of their curves.

    `x_variable` is the variable on the horizontal axis if it shows a variable, `label` names these results among
    others, and `title_texts` are texts for the title. `in_browser` is True for the charts of the explorer, which have
    labels in Unicode, and reference levels.
    """

    results: Results
    layout: Layout
    x_variable: str = ""
    label: str = ""
    title_texts: tuple[str, ...] = ()
    curve_colours: tuple[Any, ...] = (CURVE_COLOURS[0],)
    curve_markers: tuple[str, ...] = CURVE_MARKERS  # unless an axis is distinguished by marker
    results_index: int = 0  # index of these results in a figure of several results
    fills_converged: bool = False  # whether hollow points mean that not all runs converged
    derived_variables: dict[str, Variable] = field(default_factory=dict)
    in_browser: bool = False

    @property
    def x(self) -> str:
        """The axis along x."""
        return self.layout.x

    @property
    def size_and_runs_texts(self) -> list[str]:
        """Texts for the input dimension and the number of runs."""
        scenario = self.results.scenario
        if self.results.simulation is None and "N" in scenario.keys_ignored_by_theory:
            return []  # theory is the limit of large N
        return [size for size in labels.describe_size_and_runs(self.results.either).split(", ") if size]

    @property
    def line_dashes(self) -> Any:
        """The dash pattern of theory lines, different for each of several results to reveal overlaps."""
        return CURVE_DASHES[self.results_index % len(CURVE_DASHES)]

    def get_marker(self, index: int) -> str:
        """Return the marker for a position on the marker axis or, without such an axis, for a colour."""
        markers = CURVE_MARKERS if self.layout.marker_axes else self.curve_markers
        return markers[index % len(markers)]

    def describe_variable(self, name: str) -> Variable:
        """Return the description of a variable in the results or in the figure."""
        return {**find_drawable_variables(self.results.scenario), **self.derived_variables}[name]

    def iterate_panels(self) -> Iterator[tuple[str, Results]]:
        """Yield the title and the results of each panel."""
        for title, position in curves.iterate_positions(self.results.either, self.layout.panel_axes, self.label_value):
            yield title, curves.select_position(self.results, position)

    @property
    def label_value(self) -> Callable[[str, Any], str]:
        """The function that labels a value of an axis."""
        return labels.make_value_labeller(self.results.scenario, self.in_browser)


def choose_abscissa(results: Results) -> str | None:
    """Return the axis or single-valued key for the horizontal axis, or None for results drawn in rows."""
    data, usual_key = results.either, labels.get_usual_abscissa_key(results.scenario)
    numeric = [axis for axis in curves.get_chart_axes(data) if curves.has_several_numbers(data, axis)]
    if results.scenario.on_data or (usual_key is None and not numeric):
        return None
    usual_axis = next(
        (axis for axis in curves.get_chart_axes(data) if usual_key in curves.get_axis_coordinates(data, axis)),
        usual_key,
    )
    return usual_axis if usual_axis in numeric or not numeric else curves.get_longest_axis(numeric, data)


def arrange_results(labelled_results: Mapping[str, Results], composition: Composition) -> list[ArrangedResults]:
    """Arrange labelled results as the parts of a figure.

    Raises `ConfigError` for results that have no common axis along x, or lack a requested variable.
    """
    parts = [_arrange_single(label, results, composition) for label, results in labelled_results.items()]
    if None in parts:
        raise ConfigError(
            f"{[*labelled_results][parts.index(None)]}: these results have no numeric axis and cannot share a figure"
        )
    valid_parts = [part for part in parts if part is not None]
    _check_common_axis(valid_parts)
    fills = any(curves.has_unconverged_runs(part.results) for part in valid_parts)
    return _assign_colours([replace(part, fills_converged=fills) for part in valid_parts])


def is_drawn_in_rows(labelled_results: Mapping[str, Results], composition: Composition) -> bool:
    """Return True if results without an axis of numbers are drawn with one row per parameter combination."""
    first = next(iter(labelled_results.values()))
    has_numbers = len(labelled_results) > 1 or choose_abscissa(first) is not None
    return not (has_numbers or composition.x or composition.panels)


def select_variables(results: Results, composition: Composition) -> dict[str, Variable]:
    """Return the requested variables, or the variables that a figure shows by default.

    Raises `ConfigError` if a requested variable has no value.
    """
    if not composition.y:
        candidates: dict[str, Variable] = curves.select_main_variables(results)
        return {name: variable for name, variable in candidates.items() if name != composition.x} or candidates
    possible = get_possible_variables(results, composition)
    for name in (*composition.y, *([composition.x] if composition.x in possible else [])):
        parts = [part for part in (results.simulation, results.theory) if part is not None and name in part]
        if not any(np.isfinite(part[name]).any() for part in parts):
            available = ", ".join(curves.get_variables_with_values(results))
            raise ConfigError(f"figure: {name} has no value in these results. Variables with values: {available}.")
    return curves.distinguish_symbols({name: possible[name] for name in composition.y})


def select_common_variables(parts: list[ArrangedResults], composition: Composition) -> dict[str, Variable]:
    """Return the variables common to all parts of a figure, or all variables if none is common."""
    variables_by_part = [select_variables(part.results, composition) for part in parts]
    merged = {name: variable for part_variables in variables_by_part for name, variable in part_variables.items()}
    return {
        name: variable
        for name, variable in merged.items()
        if all(name in part_variables for part_variables in variables_by_part)
    } or merged


def _arrange_single(label: str, results: Results, composition: Composition) -> ArrangedResults | None:
    """Arrange results: choose their layout, solve theory on a dense grid, and normalise variables."""
    axes_by_name = {
        name: dim
        for dim in curves.get_chart_axes(results.either)
        for name in curves.get_axis_coordinates(results.either, dim)
    }
    variables = get_possible_variables(results, composition)
    plane = composition.x if composition.x in variables else ""
    x_axis = axes_by_name.get(composition.x or "", composition.x)
    x = choose_abscissa(results) if plane or x_axis is None else x_axis
    if x is None:
        return None
    if results.simulation is not None and curves.has_independent_samples(results):  # a mean for each seed
        results = replace(results, simulation=results.simulation.mean("fold", keep_attrs=True))
    results = curves.add_dense_lines(curves.add_axis(results, x), x, composition.limits.get("x", ()))
    results = _select_values(guides.add_derived_variables(results, composition.derive), composition)
    series_axes, split = (
        [axes_by_name[name] for name in names if name in axes_by_name]
        for names in (composition.series, composition.split)
    )
    results = _drop_unused_axes(results, x, [*select_variables(results, composition), plane])
    results, notes = _thin_long_axes(results, x, [*series_axes, *split])
    series_axes, split = (
        [axis for axis in dict.fromkeys(axes) if axis in results.either.dims and axis != x]
        for axes in (series_axes, split)
    )
    layout = curves.choose_figure_layout(results, x, series_axes, split, isinstance(composition.y, dict))
    results, panel_notes = _thin_panel_axes(results, layout.panel_axes)
    single_values = [
        text for axis in layout.single_position_axes if axis != "controlled" for text in _label_values(results, axis)
    ]  # an optimal key is named by the label of its axis
    results = curves.select_position(results, dict.fromkeys(layout.single_position_axes, 0))
    results = (
        derived_data.divide_variables(results, composition.over, [*select_variables(results, composition)])
        if composition.over
        else results
    )
    derived = composition.find_derived_variables()
    texts = (*single_values, *notes, *panel_notes)
    return ArrangedResults(results, layout, plane or "", label, texts, derived_variables=derived)


def get_possible_variables(results: Results, composition: Composition) -> dict[str, Variable]:
    """Return the variables that a figure can show, including derived variables."""
    return find_drawable_variables(results.scenario) | composition.find_derived_variables()


def is_shipped_figure(composition: Composition) -> bool:
    """Return True for the figure of a shipped config: results of the user may lack some of its variables and values."""
    return composition.name in list_shipped_configs()


def _select_values(results: Results, composition: Composition) -> Results:
    """Select the first value, the last value or given values on some axes, and keep these axes.

    In a figure of a shipped config, whose axes the user may have changed, all values are selected if one is missing.
    """
    position: dict[str, Any] = {}
    for axis, values in composition.at.items():
        if axis not in results.either.dims:
            continue
        numbers = curves.get_axis_values(results.either, axis).tolist()
        indices = {"first": 0, "last": len(numbers) - 1} | {number: index for index, number in enumerate(numbers)}
        if missing := [value for value in ensure_tuple(values) if value not in indices]:
            if is_shipped_figure(composition):
                continue
            values_text = ", ".join(map(labels.format_config_value, indices))
            value_text = labels.format_config_value(missing[0])
            raise ConfigError(f"figure.at: {axis} has no value {value_text}. Possible: {values_text}.")
        position[axis] = [indices[value] for value in ensure_tuple(values)]
    return curves.select_position(results, position)


def _drop_unused_axes(results: Results, x: str, names: list[str]) -> Results:
    """Select the first position on axes that no drawn variable has, such as the searches for an optimum."""
    parts = [part for part in (results.simulation, results.theory) if part is not None]
    used = {dim for part in parts for name in names if name in part for dim in part[name].dims} | {x}
    unused = [axis for axis in curves.get_chart_axes(results.either) if axis not in used]
    return curves.select_position(results, dict.fromkeys(unused, 0))


def _thin_long_axes(results: Results, x: str, requested_axes: list[str]) -> tuple[Results, list[str]]:
    """Thin long axes to a few values (recorded times: to the last), and describe the omitted values."""
    data, recorded_axes = results.either, get_drawable_coordinates(results.scenario)
    long = [axis for axis in curves.get_chart_axes(data) if axis != x and data.sizes[axis] > MAX_UNTHINNED_AXIS_VALUES]
    long = [axis for axis in long if curves.has_several_numbers(data, axis)]
    last = {axis: [-1] for axis in long if axis in recorded_axes and axis not in requested_axes}
    counts = {axis: curves.MAX_CURVES_PER_CHART for axis in long if axis not in last}
    return _select_spaced_values(curves.select_position(results, last), counts)


def _thin_panel_axes(results: Results, panel_axes: Sequence[str]) -> tuple[Results, list[str]]:
    """Halve the longest of the axes that have panels until few panels remain, and describe the omitted values."""
    counts = {axis: results.either.sizes[axis] for axis in panel_axes}
    while math.prod(counts.values()) > MAX_PANELS_PER_VARIABLE:
        longest = max(reversed(counts), key=counts.__getitem__)  # the last of equally long axes
        counts[longest] = (counts[longest] + 1) // 2
    return _select_spaced_values(results, counts)


def _select_spaced_values(results: Results, counts: Mapping[str, int]) -> tuple[Results, list[str]]:
    """Select some equally spaced positions on each axis, and describe the omitted values."""
    notes = []
    for axis, count in counts.items():
        if count < (size := results.either.sizes[axis]):
            symbol = labels.axis_label(results.scenario, curves.get_axis_coordinates(results.either, axis))
            notes.append(f"{count} of {size} values of {symbol}")
            positions = np.linspace(0, size - 1, count).round().astype(int).tolist()
            results = curves.select_position(results, {axis: positions})
    return results, notes


def _label_values(results: Results, axis: str) -> list[str]:
    return curves.label_positions(results.either, axis, labels.make_value_labeller(results.scenario))


def _check_common_axis(parts: list[ArrangedResults]) -> None:
    """Raise `ConfigError` if the parts of a figure have different axes or variables along x."""
    labels_by_x = {
        part.x_variable or curves.get_axis_coordinates(part.results.either, part.x)[0]: part.label
        for part in reversed(parts)
    }
    if len(labels_by_x) > 1:
        descriptions = " and ".join(
            f"{label} against {x}" for x, label in sorted(labels_by_x.items(), key=lambda item: item[1])
        )
        raise ConfigError(
            f"figure.x: these results have no common axis ({descriptions}): set x to an axis of all results"
        )


def _assign_colours(parts: list[ArrangedResults]) -> list[ArrangedResults]:
    """Assign each part the colours of its axes or, with several parts, the next unused colours."""
    if len(parts) == 1:
        hues = curves.choose_colours(parts[0].results.either, parts[0].layout.colour_axes)
        return [replace(parts[0], curve_colours=tuple(hues))]
    coloured: list[ArrangedResults] = []
    first = 0
    for part in parts:
        count = len(curves.choose_colours(part.results.either, part.layout.colour_axes))
        colours = tuple(CURVE_COLOURS[(first + index) % len(CURVE_COLOURS)] for index in range(count))
        markers = _choose_markers(first, count)
        coloured.append(replace(part, curve_colours=colours, curve_markers=markers, results_index=len(coloured)))
        first += count
    return coloured


def continue_colours(
    parts_by_panel: list[list[ArrangedResults]], contents: Sequence[Composition]
) -> list[list[ArrangedResults]]:
    """Distinguish the colours and markers of panels that show different axes by colour.

    A value has the same colour and marker in all panels, also where a panel shows only some of the values. Where
    markers name the variables of a panel, other panels with its colours have one more marker, the same for all curves.
    """
    positions_by_axes: dict[tuple[str, ...], list[str]] = {}
    widest_parts: dict[tuple[str, ...], ArrangedResults] = {}
    for part in sorted((parts[0] for parts in parts_by_panel), key=lambda part: -len(_list_colour_positions(part))):
        texts = positions_by_axes.setdefault(part.layout.colour_axes, [])
        texts += [text for text in _list_colour_positions(part) if text not in texts]
        widest_parts.setdefault(part.layout.colour_axes, part)
    variable_counts = {
        parts[0].layout.colour_axes: len(content.y)
        for parts, content in zip(parts_by_panel, contents, strict=True)
        if isinstance(content.y, dict)
    }
    first_indices: dict[tuple[str, ...], int] = {}
    count, continued = 0, []
    for parts, content in zip(parts_by_panel, contents, strict=True):
        axes = parts[0].layout.colour_axes
        if len(parts) == 1 and axes:
            texts = positions_by_axes[axes]
            if axes not in first_indices:
                first_indices[axes], count = count, count + len(texts)
            first = first_indices[axes]
            hues = curves.choose_colours(widest_parts[axes].results.either, axes, first, len(texts))
            markers = _choose_markers(first, len(texts))
            if axes in variable_counts and not isinstance(content.y, dict):
                markers = _choose_markers(variable_counts[axes], 1) * len(texts)
            indices = [texts.index(text) for text in _list_colour_positions(parts[0])]
            own_hues, own_markers = (tuple(values[index] for index in indices) for values in (hues, markers))
            parts = [replace(parts[0], curve_colours=own_hues, curve_markers=own_markers)]
        continued.append(parts)
    return continued


def _list_colour_positions(part: ArrangedResults) -> list[str]:
    """Return the labels of the positions that are distinguished by colour."""
    return [
        text for text, _ in curves.iterate_positions(part.results.either, part.layout.colour_axes, part.label_value)
    ]


def _choose_markers(first: int, count: int) -> tuple[str, ...]:
    return tuple(str(get_curve_style(index)["marker"]) for index in range(first, first + count))


def find_composition_problems(labelled_scenarios: Mapping[str, Any], composition: Composition) -> list[str]:
    """Return one sentence for each reason why scenarios cannot be drawn in this composition.

    Among several scenarios, some may have a single value of x or lack an axis that distinguishes other curves.
    """
    problems_by_label = {label: list(composition.problems(scenario)) for label, scenario in labelled_scenarios.items()}
    shared_keys = {
        key for problems in problems_by_label.values() for key, _ in problems if key[0] in ("x", "series", "split")
    }
    ignored_keys = {
        key for key in shared_keys if not all(key in dict(problems) for problems in problems_by_label.values())
    }
    ignored_keys -= (
        {("x",)}
        if any(composition.x not in _get_possible_abscissae(scenario) for scenario in labelled_scenarios.values())
        else set()
    )
    return [
        f"{label}: {line}" if label else line
        for label, problems in problems_by_label.items()
        for line in ScenarioError((("figure", *key), text) for key, text in problems if key not in ignored_keys).lines()
    ]


def _get_possible_abscissae(scenario: Any) -> set[str | None]:
    return {
        None,
        *scenario.axis_names(),
        *get_drawable_coordinates(scenario),
        *find_drawable_variables(scenario),
        *find_drawable_axes(scenario),
    }


def check_parallel_axes(figure_name: str, data: xr.Dataset, axes: tuple[str, ...]) -> None:
    """Raise `ConfigError` unless exactly these axes are swept in parallel."""
    if not set(axes) <= data.coords.keys() or data[axes[-1]].dims != ("_".join(axes),):
        raise ConfigError(f'the figure "{figure_name}" requires {", ".join(axes)} as parallel axes (zip)')
