"""What a chart shows of a simulation and its theory, whatever the scenario: a curve for each colour, along one axis.

A dataset has more axes than a chart: one lies along x, one is told by colours, students and folds are averaged over,
and of all others one place is shown. Errors are standard errors of the mean over seeds, or, in a study of one shuffle,
over folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.results.dataset import scenario_of
from statmech.scenarios.variables import Variable

if TYPE_CHECKING:
    import xarray as xr

MOST = 7  # curves: as many as there are colours
AVERAGED = ("student", "fold")
UNSHOWN = ("seed", "row", "column", "example", *AVERAGED)
NORMALISED = {
    "": "as they are",
    "theory": "over theory",
    "one student": "eps_g over that of one student",
}


@dataclass(frozen=True)
class Curve:
    """One colour of a chart: x (numbers or names), theory there, and the simulation's means and standard errors."""

    label: str
    x: np.ndarray
    theory: np.ndarray | None = None
    mean: np.ndarray | None = None
    error: np.ndarray | None = None

    def over(self, unit: np.ndarray) -> Curve:
        """The same in another unit, point by point."""
        parts = ((name, getattr(self, name)) for name in ("theory", "mean", "error"))
        with np.errstate(divide="ignore", invalid="ignore"):
            return replace(self, **{name: part / unit for name, part in parts if part is not None})


@dataclass(frozen=True)
class Layout:
    """Which axis lies along x, which is told by colours (None: no other), and which have one place shown."""

    x: str
    colour: str | None
    rest: tuple[str, ...]


def drawn(scenario: Any) -> dict[str, Variable]:
    """The variables that charts can show: numbers, not flags, one for each student at most."""
    inner = {dim for dim in scenario.recorded if dim not in UNSHOWN} | set(AVERAGED)
    every = scenario.variables.items()
    return {name: it for name, it in every if it.missing is np.nan and set(it.dims) <= inner}


def axes(dataset: xr.Dataset) -> list[str]:
    """The axes that a chart can lie along: those of the sweep, and recorded moments."""
    return [str(dim) for dim in dataset.dims if dim not in UNSHOWN]


def values(dataset: xr.Dataset, axis: str) -> np.ndarray:
    """The values along an axis; of a zipped one, those of its first coordinate."""
    first = along(dataset, axis)[0]
    found: np.ndarray = dataset[first].values if first in dataset.coords else np.arange(dataset.sizes[axis])
    return found


def along(dataset: xr.Dataset, axis: str) -> list[str]:
    """The coordinates that tell the places on an axis: its namesake or, of a zipped one, all that run along it."""
    found = [str(name) for name, c in dataset.coords.items() if c.dims == (axis,)]
    return [axis] if axis in found or not found else sorted(found, key=axis.find)


def layout(dataset: xr.Dataset, x: str | None = None, colour: str | None = None) -> Layout:
    """Where axes go: along x that of most numbers, in colours what learns, unless told otherwise."""
    every = axes(dataset)
    numbers = [axis for axis in every if values(dataset, axis).dtype.kind in "if" and dataset.sizes[axis] > 1]
    x = x or max(numbers or every, key=lambda axis: (dataset.sizes[axis], every.index(axis)))
    others = [axis for axis in every if axis != x and dataset.sizes[axis] > 1]
    choice = scenario_of(dataset).CHOICE
    few = [axis for axis in others if dataset.sizes[axis] <= MOST]
    if colour is None or colour == x:
        colour = choice if choice in few else next(iter(few), None)
    return Layout(x, colour, tuple(axis for axis in every if axis not in (x, colour)))


def with_axis(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset, with what learns as an axis if it has none."""
    return dataset if axes(dataset) else dataset.expand_dims(scenario_of(dataset).CHOICE)


def curves(
    name: str, simulation: xr.Dataset | None, theory: xr.Dataset | None, layout: Layout, unit: str = ""
) -> list[Curve]:
    """A variable's curves, a colour each, of datasets that have no axes left but those of the layout.

    `unit` is one of `NORMALISED`: "theory" divides all by theory, "one student" errors of an ensemble by theory's of
    one student.
    """
    asked = {name, "eps_g"} if unit == "one student" else {name}  # slices of whole datasets would take most of the time
    simulation, theory = (
        None if part is None else part[[it for it in part.data_vars if it in asked]] for part in (simulation, theory)
    )
    coloured = _coloured(simulation, theory, layout)
    return [_curve(name, label, sim, sol, layout.x, unit) for label, sim, sol in coloured]


def _coloured(simulation: Any, theory: Any, layout: Layout) -> Iterator[tuple[str, Any, Any]]:
    told = simulation if simulation is not None else theory
    if layout.colour is None:
        yield "", simulation, theory
        return
    for at, name in enumerate(labels(told, layout.colour)[:MOST]):
        here = {layout.colour: at}
        yield name, pick(simulation, here), pick(theory, here)


def label(axis: str, value: Any) -> str:
    """What tells a place on an axis from others."""
    return str(value) if isinstance(value, str) else f"{axis} = {value:g}"


def labels(dataset: xr.Dataset, axis: str) -> list[str]:
    """What tells the places on an axis apart."""
    columns = [[label(name, value) for value in values(dataset, name).tolist()] for name in along(dataset, axis)]
    return [", ".join(told) for told in zip(*columns, strict=True)]


def _curve(name: str, told: str, simulation: Any, theory: Any, x: str, unit: str) -> Curve:
    either = simulation if simulation is not None else theory
    made = Curve(told, values(either, x))
    if theory is not None and name in theory:
        made = replace(made, theory=_along(theory[name], x, made.x))
    if simulation is not None and name in simulation:
        mean, error = _means(simulation[name])
        made = replace(made, mean=mean, error=error)
    if unit == "theory" and made.theory is not None:
        return made.over(made.theory)
    if unit == "one student" and name.startswith("eps_g") and theory is not None:
        return made.over(_along(theory.eps_g, x, made.x))
    return made


def _along(array: Any, x: str, places: np.ndarray) -> np.ndarray:
    line = array.mean([dim for dim in AVERAGED if dim in array.dims])
    found: np.ndarray = line.broadcast_like(array).values if line.ndim > 1 else np.broadcast_to(line, places.shape)
    return np.asarray(found, float)


def _means(runs: Any) -> tuple[np.ndarray, np.ndarray]:
    inner = [dim for dim in AVERAGED if dim in runs.dims]
    over = inner if runs.sizes.get("seed", 1) == 1 else []
    runs = (runs if over else runs.mean(inner)).stack(run=["seed", *over])
    count = runs.count("run")
    error = runs.std("run", ddof=1) / count**0.5 if runs.sizes["run"] > 1 else runs.mean("run") * np.nan
    return np.atleast_1d(runs.mean("run").values), np.atleast_1d(error.values)


def pick(dataset: xr.Dataset | None, places: dict[str, int]) -> xr.Dataset | None:
    """One place on each of these axes, where the dataset has them."""
    if dataset is None:
        return None
    return dataset.isel({axis: at for axis, at in places.items() if axis in dataset.dims})


def shown_first(variables: Iterable[str], theory: xr.Dataset | None) -> list[str]:
    """The variables that a page opens with: those theory speaks of, else all."""
    every = list(variables)
    return [name for name in every if theory is not None and name in theory] or every
