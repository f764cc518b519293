"""How far simulation and theory are apart, in standard errors of the simulation's own spread over seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.dataset import scenario_of
from statmech.errors import ScenarioError

if TYPE_CHECKING:
    import xarray as xr

ROUNDING = 1e-9  # a difference this small is none: at a given start every seed has the same R, q, l
LEVEL = 0.01  # chance that a sweep whose theory is right has any value beyond `bound`


def distances(simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """(mean over seeds - theory) / standard error of that mean, for every variable both datasets hold.

    The students of an ensemble that start alike are exchangeable, and their mean is compared; students that start
    differently are compared one by one. NaN where a value has no spread, or no theory. Seeds in which a learner does
    not exist are left out; `converged` of the simulation tells how many. Raises `ScenarioError` for a single seed.
    """
    if simulation.sizes["seed"] < 2:
        raise ScenarioError([(("seeds",), "a standard error needs at least 2 seeds")])
    scenario = scenario_of(simulation)
    names = [name for name in scenario.variables if name in simulation and name in theory]
    apart = simulation[names].map(lambda values: _distance(values, theory[values.name], scenario.exchangeable))
    return apart.assign_attrs(seeds=simulation.sizes["seed"], recorded=list(scenario.recorded))


def _distance(values: Any, expected: Any, exchangeable: bool) -> Any:
    if exchangeable and "student" in values.dims:
        values, expected = values.mean("student"), expected.mean("student")
    difference = values.mean("seed") - expected
    error = values.std("seed", ddof=1) / np.sqrt(values.count("seed"))
    spread = error > ROUNDING * abs(values.mean("seed"))  # seeds that are equal differ by rounding
    known = spread & (abs(difference) > ROUNDING) & np.isfinite(difference)
    return (difference / error).where(known, other=np.nan)


@dataclass(frozen=True)
class Row:
    """One cell of a sweep: its coordinates, and each variable's largest distance over all moments, signed."""

    cell: dict[str, Any]
    largest: dict[str, float]


def rows(distance: xr.Dataset) -> Iterator[Row]:
    """The distances cell by cell of the sweep.

    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule=["hebb", "adatron"], N=10**6, K=2, t=[0.01], seeds=8, flip=0.1)
    >>> [row.cell["rule"] for row in rows(distances(simulate.run(scenario), theory.solve(scenario)))]
    ['hebb', 'adatron']
    """
    axes = [dim for dim in next(iter(distance.data_vars.values())).dims if dim not in distance.attrs["recorded"]]
    for index in itertools.product(*(range(distance.sizes[axis]) for axis in axes)):
        cell = distance.isel(dict(zip(axes, index, strict=True)))
        yield Row(
            {name: cell[name].item() for name in _varying(distance, axes)},
            {str(name): _largest(values.values) for name, values in cell.data_vars.items()},
        )


def bound(distance: xr.Dataset) -> float:
    """How many standard errors the largest of all these distances stays below, with probability 1 - LEVEL.

    Bonferroni's bound over all values compared, with Student's t for the number of seeds.
    """
    from scipy.special import stdtrit

    compared = sum(int(np.isfinite(values.values).sum()) for values in distance.data_vars.values())
    return float(-stdtrit(distance.attrs["seeds"] - 1, LEVEL / 2 / max(compared, 1)))


def _largest(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[np.argmax(np.abs(finite))]) if finite.size else np.nan


def _varying(distance: xr.Dataset, axes: list[Any]) -> list[str]:
    """The coordinates that tell cells apart, in the order of the sweep's axes."""
    return [str(name) for axis in axes for name, c in distance.coords.items() if c.dims == (axis,)]


def converged(simulation: xr.Dataset) -> list[tuple[int, int]] | None:
    """How many runs converged, of how many, cell by cell as in `rows`, at the last moment; None where all always do."""
    if "converged" not in simulation:
        return None
    moment, _ = scenario_of(simulation).moments
    last = simulation.converged.isel({moment: -1})
    counts = last.sum("seed").values.ravel()
    return [(int(count), simulation.sizes["seed"]) for count in counts]
