"""How far simulation and theory are apart, in standard errors of the simulation's own spread over seeds.

Where theory has a bound instead of a value (`Variable.bound`) a distance would tell nothing: what is told is how many
runs keep the bound, and how near the nearest comes to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.results.dataset import scenario_of
from statmech.errors import ScenarioError

if TYPE_CHECKING:
    import xarray as xr

ROUNDING = 1e-9  # a difference this small is none: at a given start every seed has the same R, q, l
LEVEL = 0.01  # chance that a sweep whose theory is right has any value beyond `bound`


def distances(simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """(mean over seeds - theory) / standard error of that mean, for every variable both datasets hold.

    The students of an ensemble that start alike are exchangeable, and their mean is compared; students that start
    differently are compared one by one. NaN where a value has no spread, or no theory. Seeds in which a learner does
    not exist are left out; `converged` of the simulation tells how many. What theory only bounds is left out, too
    (`kept`). Raises `ScenarioError` for a single seed.
    """
    if simulation.sizes["seed"] < 2:
        raise ScenarioError([(("seeds",), "a standard error needs at least 2 seeds")])
    scenario = scenario_of(simulation)
    names = [name for name in _shared(simulation, theory) if not scenario.variables[name].bound]
    apart = simulation[names].map(lambda values: _distance(values, theory[values.name], scenario.exchangeable))
    return apart.assign_attrs(seeds=_seeds(simulation), recorded=list(scenario.recorded))


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
    """The coordinates that tell cells apart, in the order of the sweep's axes; along each, its namesake first."""
    along = ((axis, str(name)) for axis in axes for name, c in distance.coords.items() if c.dims == (axis,))
    return [name for _, name in sorted(along, key=lambda it: (axes.index(it[0]), it[0] != it[1], it[0].find(it[1])))]


@dataclass(frozen=True)
class Kept:
    """How many runs of how many keep a bound, and the ratio run / bound that comes nearest to 1 or lies beyond."""

    runs: int
    of: int
    ratio: float


def bounded(simulation: xr.Dataset, theory: xr.Dataset) -> list[str]:
    """The variables of both datasets that theory bounds."""
    variables = scenario_of(simulation).variables
    return [name for name in _shared(simulation, theory) if variables[name].bound]


def kept(simulation: xr.Dataset, theory: xr.Dataset) -> list[tuple[dict[str, Any], dict[str, Kept]]]:
    """Cell by cell of the sweep, its coordinates and how each bound is kept.

    A run without a value where theory has a bound does not keep it. Where theory promises nothing (NaN), no run counts;
    nor do runs that are missing or have failed.

    >>> import simulate, theory
    >>> from statmech import Boosting
    >>> scenario = Boosting(booster="adaboost", s=1, P=[10, 100], seeds=3)
    >>> [(cell, kept["stages"]) for cell, kept in kept(simulate.run(scenario), theory.solve(scenario))]
    [({'P': 10}, Kept(runs=3, of=3, ratio=0.2)), ({'P': 100}, Kept(runs=3, of=3, ratio=0.1))]
    """
    scenario, names = scenario_of(simulation), bounded(simulation, theory)
    axes, found = list(scenario.shape), []
    for index in itertools.product(*(range(scenario.shape[axis]) for axis in axes)):
        at = dict(zip(axes, index, strict=True))
        runs, limits = simulation[names].isel(at), theory[names].isel(at)
        cell = {name: runs[name].item() for name in _varying(simulation, axes)}
        found.append((cell, {name: _kept(runs[name], limits[name], scenario.variables[name].bound) for name in names}))
    return found


def _kept(runs: Any, limit: Any, side: str) -> Kept:
    limits = limit.broadcast_like(runs).transpose(*runs.dims).values.ravel()
    values = runs.values.ravel()
    promised = np.isfinite(limits) & _done(runs).broadcast_like(runs).transpose(*runs.dims).values.ravel()
    values, limits = values[promised], limits[promised]
    sign = 1 if side == "above" else -1
    good = sign * (limits - values) >= -ROUNDING * np.abs(limits)
    ratios = (values / np.where(limits == 0, np.nan, limits))[np.isfinite(values)]
    known = ratios[np.isfinite(ratios)]
    return Kept(int(good.sum()), values.size, float(sign * np.max(sign * known)) if known.size else np.nan)


def _done(runs: Any) -> Any:
    """Which runs there are: all, unless their store has told otherwise (`statmech.results.store.load`)."""
    return runs.coords.get("done", runs.seed == runs.seed)


def _seeds(simulation: xr.Dataset) -> int:
    """How many seeds stand behind a standard error, at least."""
    several = [count for count in _done(simulation).sum("seed").values.ravel().tolist() if count > 1]
    return min(several, default=2)


def _shared(simulation: xr.Dataset, theory: xr.Dataset) -> list[str]:
    return [name for name in scenario_of(simulation).variables if name in simulation and name in theory]


def converged(simulation: xr.Dataset) -> list[tuple[int, int]] | None:
    """How many runs converged, of how many, cell by cell as in `rows`, at the last moment; None where all always do."""
    if "converged" not in simulation:
        return None
    recorded = scenario_of(simulation).recorded
    last = simulation.converged.isel({dim: -1 for dim in simulation.converged.dims if dim in recorded})
    runs = _done(last).broadcast_like(last).sum("seed")
    return list(zip(last.sum("seed").values.ravel().tolist(), runs.values.ravel().tolist(), strict=True))
