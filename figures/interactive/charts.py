"""All that a simulation and its theory tell, as charts for one page.

A chart shows one variable along one axis, a colour for each value of another (`figures.series.layout`). Of every other
axis it shows one place, and there is a set of charts for each: of so many places that all charts together are few.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from figures.interactive.page import Chart, plain
from figures.series import (
    MOST,
    Curve,
    Layout,
    along,
    axes,
    curves,
    drawn,
    labels,
    layout,
    pick,
    shown_first,
    values,
    with_axis,
)
from figures.style import COLOURS, MARKERS
from statmech.results.dataset import scenario_of
from statmech.scenarios.variables import Variable

if TYPE_CHECKING:
    import xarray as xr

MOST_CHARTS, MOST_POINTS = 36, 400  # of a page, and of a curve
HEIGHT = 260  # of a chart, in pixels
SPAN, ROUNDING = 100, 1e-12  # the largest value over the least, if their axis is to be logarithmic; what is less is 0


@dataclass(frozen=True)
class Place:
    """A place on each of the axes that a page offers to choose from, and what the charts show there."""

    at: tuple[int, ...]
    charts: list[Any]


@dataclass(frozen=True)
class Charts:
    """The charts of a page: the axes to choose from with the labels of their places, a legend (label, colour, marker),
    what the axes and variables mean, and what is not shown."""

    axes: dict[str, list[str]]
    places: list[Place]
    legend: list[tuple[str, str, str]]
    meanings: list[tuple[str, str]]
    left_out: list[str]


def charts(simulation: xr.Dataset | None, theory: xr.Dataset | None) -> Charts:
    """Every variable of a simulation, a theory, or both."""
    simulation, theory = (part if part is None else with_axis(part) for part in (simulation, theory))
    either = simulation if simulation is not None else theory
    assert either is not None
    where = layout(either)
    names = _variables(simulation, theory)
    simulation, theory, thinned = _along_x(simulation, theory, where.x)
    shown = _few({axis: either.sizes[axis] for axis in where.rest}, max(1, MOST_CHARTS // len(names)))
    drawing = Drawing(simulation, theory, where, names)
    places = [Place(at, drawing.at(here)) for at, here in _places(shown)]
    every = {axis: labels(either, axis) for axis in where.rest}
    return Charts(
        {axis: [every[axis][at] for at in found] for axis, found in shown.items() if len(found) > 1},
        places,
        _legend(either, where),
        _meanings(either, where, drawing.variables),
        [*thinned, *_cut(every, shown), *drawing.lost()],
    )


class Drawing:
    """How every chart of a page is drawn: variables, scales and what lies along x."""

    def __init__(self, simulation: Any, theory: Any, where: Layout, names: list[str]):
        self.simulation, self.theory, self.where = simulation, theory, where
        either = simulation if simulation is not None else theory
        x = values(either, where.x)
        self.places = [] if x.dtype.kind in "if" and x.size > 1 else labels(either, where.x)
        self.log_x = not self.places and _logarithmic(x[x > 0]) and _evenly_spaced(x[x > 0])
        self.variables = _told_apart({name: scenario_of(either).variables[name] for name in names})
        self.log_y = {name: self._wants_log(name) for name in names}
        self.xlabel = along(either, where.x)[0]

    def at(self, place: dict[str, int]) -> list[Any]:
        """A figure for each variable that has a value at a place; they pan and zoom along x together."""
        every = {name: self._curves(name, place) for name in self.variables}
        found = [self._chart(name, told) for name, told in every.items() if any(map(_told, told))]
        for chart in found[1:]:
            chart.x_range = found[0].x_range
        return found

    def lost(self) -> Iterator[str]:
        """What has no place on logarithmic axes."""
        either = self.simulation if self.simulation is not None else self.theory
        if self.log_x and (values(either, self.where.x) <= 0).any():
            yield f"{self.xlabel} = 0, which has no place on a logarithmic axis"
        for name in (name for name, log in self.log_y.items() if log):
            if self.simulation is not None and (self.simulation[name].mean("seed") <= 0).any():
                symbol = plain(self.variables[name].symbol)
                yield f"means of {symbol} that are 0, which has no place on a logarithmic axis"

    def _curves(self, name: str, place: dict[str, int]) -> list[Curve]:
        found = curves(name, pick(self.simulation, place), pick(self.theory, place), self.where)
        return [replace(curve, x=np.asarray(self.places)) if self.places else curve for curve in found]

    def _chart(self, name: str, found: list[Curve]) -> Any:
        looks = self.variables[name], self.xlabel, self.places, self.log_x, self.log_y[name], HEIGHT
        chart = Chart(*looks)
        chart.show(found)
        chart.figure.toolbar.active_drag = None  # a finger on a chart scrolls the page
        return chart.figure

    def _wants_log(self, name: str) -> bool:
        """By theory's values or, without them, the runs' means; of runs that keep far from a bound, by both."""
        solved = self.theory is not None and name in self.theory
        found = [self.theory[name].values.ravel()] if solved else []
        if self.simulation is not None and (not solved or self.variables[name].bound):
            means = self.simulation[name].mean("seed").values.ravel()
            found.append(means[means > 0] if solved else means)
        every = np.concatenate(found)
        return _logarithmic(every[np.isfinite(every)])


def _told(curve: Curve) -> bool:
    """Whether a curve has any value."""
    return any(part is not None and bool(np.isfinite(part).any()) for part in (curve.theory, curve.mean))


def _logarithmic(found: np.ndarray) -> bool:
    """Whether values are all above 0 and span decades."""
    return found.size > 1 and found.min() > ROUNDING * found.max() and found.max() / found.min() >= SPAN


def _evenly_spaced(x: np.ndarray) -> bool:
    """Whether places stand more evenly on a logarithmic axis."""

    def unevenness(places: np.ndarray) -> float:
        gaps = np.diff(np.unique(places))
        return float(gaps.std() / gaps.mean())

    return unevenness(np.log(x)) < unevenness(x)


def _variables(simulation: Any, theory: Any) -> list[str]:
    """The variables that have a value, those theory speaks of first."""
    parts = [part for part in (simulation, theory) if part is not None]
    known = [name for name in drawn(scenario_of(parts[0])) if any(name in part for part in parts)]
    some = [name for name in known if any(name in part and np.isfinite(part[name]).any() for part in parts)]
    return list(dict.fromkeys([*shown_first(some, theory), *some]))


def _told_apart(variables: dict[str, Variable]) -> dict[str, Variable]:
    """Variables whose symbol another has before them go by their names."""
    known = [variable.symbol for variable in variables.values()]
    again = {name for at, name in enumerate(variables) if known[at] in known[:at]}
    return {name: replace(it, symbol=name) if name in again else it for name, it in variables.items()}


def _along_x(simulation: Any, theory: Any, x: str) -> tuple[Any, Any, list[str]]:
    """Both datasets with numbers along x in their order, and no more of them than a curve needs."""
    either = simulation if simulation is not None else theory
    found = values(either, x)
    order = np.argsort(found, kind="stable") if found.dtype.kind in "if" else np.arange(found.size)
    kept = order[_spread(order.size, MOST_POINTS)]
    told = [f"{order.size - kept.size} of {order.size} places along {x}"] if kept.size < order.size else []
    simulation, theory = (part if part is None else part.isel({x: kept}) for part in (simulation, theory))
    return simulation, theory, told


def _few(sizes: dict[str, int], most: int) -> dict[str, list[int]]:
    """Places on each axis, evenly spread, so that there are at most so many together.

    >>> _few({"K": 5, "eta": 10}, 12)
    {'K': [0, 2, 4], 'eta': [0, 3, 6, 9]}
    """
    lengths = dict(sizes)
    while math.prod(lengths.values()) > most:
        lengths[max(lengths, key=lambda axis: lengths[axis])] -= 1
    return {axis: _spread(size, lengths[axis]).tolist() for axis, size in sizes.items()}


def _spread(size: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(int))


def _places(shown: dict[str, list[int]]) -> Iterator[tuple[tuple[int, ...], dict[str, int]]]:
    """For each set of charts: which labels of the axes offered it has, and its place in the datasets."""
    offered = [axis for axis in shown if len(shown[axis]) > 1]
    for at in itertools.product(*(range(len(shown[axis])) for axis in offered)):
        here = dict(zip(offered, at, strict=True))
        yield at, {axis: found[here.get(axis, 0)] for axis, found in shown.items()}


def _cut(every: dict[str, list[str]], shown: dict[str, list[int]]) -> Iterator[str]:
    for axis, told in every.items():
        if len(shown[axis]) < len(told):
            missing = [name for at, name in enumerate(told) if at not in shown[axis]]
            named = ", ".join([*missing[:8], *["..."] * (len(missing) > 8)])
            yield f"{len(missing)} of {len(told)} places of {axis} ({named})"


def _legend(either: Any, where: Layout) -> list[tuple[str, str, str]]:
    told = labels(either, where.colour)[:MOST] if where.colour else []
    return [(name, COLOURS[at], MARKERS[at]) for at, name in enumerate(told)]


def _meanings(either: Any, where: Layout, variables: dict[str, Variable]) -> list[tuple[str, str]]:
    every = [name for axis in axes(either) for name in along(either, axis)]
    told = [(name, either[name].attrs["long_name"]) for name in every if name in either.coords]
    return told + [(plain(variable.symbol), variable.long_name) for variable in variables.values()]
