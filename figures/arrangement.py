"""The arrangement of results in a figure: the axes along x, in colours, by markers and in panels.

The abscissa is the usual key of the kind of scenario (t, alpha, ...) if it has several values, otherwise the longest
numeric axis. A `Composition` may name another abscissa. A long numeric axis that is not the abscissa is shown at a few
of its values, and recorded times at the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import labels, ratios, series
from figures.series import Layout
from figures.style import COLOURS, DASHES, look_of
from statmech.errors import ConfigError
from statmech.scenarios.composition import Composition, axes, drawable, times

if TYPE_CHECKING:
    from statmech.results.results import Results
    from statmech.scenarios.variables import Variable


LISTED = 12  # a legend lists only a few values of a longer axis


@dataclass(frozen=True)
class Part:
    """Results in a figure, with their layout and the colours of their curves.

    `plane` is the variable on the horizontal axis if it shows a variable, `label` names these results among others,
    and `stated` are texts for the title.
    """

    results: Results
    layout: Layout
    plane: str = ""
    label: str = ""
    stated: tuple[str, ...] = ()
    hues: tuple[Any, ...] = (COLOURS[0],)
    first: int = 0  # index of the first colour and marker, counted over all results
    number: int = 0  # index of these results

    @property
    def x(self) -> str:
        """The axis along x."""
        return self.layout.x

    @property
    def sizes(self) -> list[str]:
        """Texts for the input dimension and the number of runs."""
        return [size for size in labels.size_of(self.results.either).split(", ") if size]

    @property
    def dashes(self) -> Any:
        """The dashes of lines of theory, which differ between results so that lines do not hide each other."""
        return DASHES[self.number % len(DASHES)]

    def marker(self, index: int) -> str:
        """Return the marker of the index-th position on the marker axis or, without one, of the index-th colour."""
        index += 0 if self.layout.markers else self.first
        return str(look_of(index)["marker"])

    def titles(self) -> Iterator[tuple[str, Results]]:
        """Yield the title and the results of each panel."""
        label = labels.mathtext_label(self.results.scenario)
        for title, position in series.positions(self.results.either, self.layout.panels, label):
            yield title, series.sliced(self.results, position)


def abscissa(results: Results) -> str | None:
    """Return the axis, or the key of a single value, that results are drawn against, or None if they have rows."""
    data, usual_key = results.either, labels.abscissa(results.scenario)
    numeric = [axis for axis in series.axes(data) if series.is_numeric(data, axis)]
    if results.scenario.on_data or (usual_key is None and not numeric):
        return None
    usual_axis = next((axis for axis in series.axes(data) if usual_key in series.along(data, axis)), usual_key)
    return usual_axis if usual_axis in numeric or not numeric else series.longest(numeric, data)


def arranged(every: Mapping[str, Results], wish: Composition) -> list[Part]:
    """Arrange labelled results as the parts of a figure. The list is empty if they have rows.

    Raises `ConfigError` for results that have no common axis along x, or lack a requested variable.
    """
    parts = [_part(label, results, wish) for label, results in every.items()]
    if None in parts and len(parts) == 1:
        return []
    if None in parts:
        raise ConfigError(f"{[*every][parts.index(None)]}: results of names have no axis along x, and no common figure")
    valid_parts = [part for part in parts if part is not None]
    _check_common(valid_parts)
    return _coloured(valid_parts)


def variables(results: Results, wish: Composition) -> dict[str, Variable]:
    """Return the requested variables, or the variables that a figure shows by default.

    Raises `ConfigError` if a requested variable has no value.
    """
    if not wish.y:
        candidates = series.of_interest(results)
        return {name: variable for name, variable in candidates.items() if name != wish.x} or candidates
    for name in (*wish.y, *([wish.x] if wish.x in drawable(results.scenario) else [])):
        parts = [part for part in (results.simulation, results.theory) if part is not None and name in part]
        if not any(np.isfinite(part[name]).any() for part in parts):
            available = ", ".join(series.with_values(results))
            raise ConfigError(f"figure: {name} has no value in these results. Variables with values: {available}.")
    candidates = drawable(results.scenario)
    return series.distinct({name: candidates[name] for name in wish.y})


def common_variables(parts: list[Part], wish: Composition) -> dict[str, Variable]:
    """Return the variables that all parts of a figure share or, without such a variable, all variables."""
    variables_by_part = [variables(part.results, wish) for part in parts]
    merged = {name: variable for part_variables in variables_by_part for name, variable in part_variables.items()}
    return {
        name: variable
        for name, variable in merged.items()
        if all(name in part_variables for part_variables in variables_by_part)
    } or merged


def _part(label: str, results: Results, wish: Composition) -> Part | None:
    """Arrange one of the results: choose its layout, solve theory on a dense grid, and divide variables."""
    axes_by_name = {name: dim for dim in series.axes(results.either) for name in series.along(results.either, dim)}
    plane = wish.x if wish.x in drawable(results.scenario) else ""
    x_axis = axes_by_name.get(wish.x or "", wish.x)
    x = abscissa(results) if plane or x_axis is None else x_axis
    if x is None:
        return None
    results = series.with_lines(series.with_axis(results, x), x)
    series_axes, split = (
        [axes_by_name[name] for name in names if name in axes_by_name] for names in (wish.series, wish.split)
    )
    results, notes = _thinned(results, x, [*series_axes, *split])
    layout = series.layout_along(results, x, list(dict.fromkeys(series_axes)), list(dict.fromkeys(split)))
    single_values = [text for axis in layout.rest for text in _values(results, axis)]
    results = series.sliced(results, dict.fromkeys(layout.rest, 0))
    results = ratios.divided(results, wish.over, [*variables(results, wish)]) if wish.over else results
    return Part(results, layout, plane or "", label, (*single_values, *notes))


def _thinned(results: Results, x: str, asked: list[str]) -> tuple[Results, list[str]]:
    """Select a few positions on long axes, the last one for recorded times, and describe the omitted values."""
    data, notes = results.either, []
    long = [axis for axis in series.axes(data) if axis != x and data.sizes[axis] > LISTED]
    for axis in (axis for axis in long if series.is_numeric(data, axis)):
        size, last = data.sizes[axis], axis in times(results.scenario) and axis not in asked
        positions = (
            [size - 1] if last else np.unique(np.linspace(0, size - 1, series.MOST).round().astype(int)).tolist()
        )
        if not last:
            symbol = labels.axis_label(results.scenario, series.along(data, axis))
            notes.append(f"{len(positions)} of {size} values of {symbol}")
        results = series.sliced(results, {axis: positions})
    return results, notes


def _values(results: Results, axis: str) -> list[str]:
    return series.labels(results.either, axis, labels.mathtext_label(results.scenario))


def _check_common(parts: list[Part]) -> None:
    """Raise `ConfigError` if the parts of a figure have different axes or variables along x."""
    labels_by_x = {part.plane or series.along(part.results.either, part.x)[0]: part.label for part in reversed(parts)}
    if len(labels_by_x) > 1:
        descriptions = " and ".join(
            f"{label} against {x}" for x, label in sorted(labels_by_x.items(), key=lambda item: item[1])
        )
        raise ConfigError(
            f"figure.x: these results have no common axis ({descriptions}): set x to an axis of all results"
        )


def _coloured(parts: list[Part]) -> list[Part]:
    """Assign colours to each part: the colours of its axes or, among several results, the next unused ones."""
    if len(parts) == 1:
        hues = series.colours_of(parts[0].results.either, parts[0].layout.colours)
        return [replace(parts[0], hues=tuple(hues))]
    coloured: list[Part] = []
    first = 0
    for part in parts:
        count = len(series.colours_of(part.results.either, part.layout.colours))
        hues = [COLOURS[(first + index) % len(COLOURS)] for index in range(count)]
        coloured.append(replace(part, hues=tuple(hues), first=first, number=len(coloured)))
        first += count
    return coloured


def problems_of(every: Mapping[str, Any], wish: Composition) -> list[str]:
    """Return the reasons why labelled scenarios cannot be drawn in this composition, a sentence each.

    Among several scenarios, some may have a single value of x or lack an axis that distinguishes other curves.
    """
    problems_by_label = {label: list(wish.problems(scenario)) for label, scenario in every.items()}
    shared_keys = {
        key for problems in problems_by_label.values() for key, _ in problems if key[0] in ("x", "series", "split")
    }
    ignored_keys = {
        key for key in shared_keys if not all(key in dict(problems) for problems in problems_by_label.values())
    }
    ignored_keys -= {("x",)} if any(wish.x not in _known(scenario) for scenario in every.values()) else set()
    return [
        f"{label}: figure.{key[0]}: {sentence}" if label else f"figure.{key[0]}: {sentence}"
        for label, problems in problems_by_label.items()
        for key, sentence in problems
        if key not in ignored_keys
    ]


def _known(scenario: Any) -> set[str | None]:
    return {None, *scenario.axis_names(), *times(scenario), *drawable(scenario), *axes(scenario)}
