"""Deviation of simulation from theory, in standard errors estimated from the spread over seeds, or predicted.

How large the largest deviation may be if theory is exact, and how many seeds can judge, is derived in
`statmech.results.multiplicity`: values that exceed the bound together, such as neighbouring recorded times or R and
eps_g, count as one.

Where theory predicts mean and standard deviation of a run at this N (`corrections: true`), the simulation's own spread
is not used: one seed is enough, and the bound is that of the normal distribution. Variables whose bias or standard
deviation theory does not have are then left out.

Where theory states the standard error of its own value (`NAME_error`, of averages over samples) this is added in
quadrature.

Where theory gives a bound instead of a value (`Variable.bound`) a deviation is meaningless; instead, the runs that
satisfy the bound are counted, and the ratio closest to violating it is given.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.errors import ScenarioError
from statmech.numerics.statistics import standard_error_of_runs
from statmech.results import corrections, multiplicity
from statmech.results.multiplicity import LEVEL as LEVEL
from statmech.results.results import Results, results_of

if TYPE_CHECKING:
    import xarray as xr

    Simulation = xr.Dataset | Results

ROUNDING = 1e-9  # smaller differences are rounding: at a given start every seed has the same R, q, l


def distances(simulation: Simulation, theory: xr.Dataset | None = None) -> xr.Dataset:
    r"""Deviation of simulation from theory in standard errors, for every variable that both datasets contain.

    .. math:: z = \frac{\overline{x} - x_\mathrm{theory}}{\sqrt{s^2 / n + \sigma^2}}

    with mean :math:`\overline x` and standard deviation s over n seeds, and :math:`\sigma` the standard error of theory
    where it states one, with its rounding of 1e-9; or, where theory has corrections, with its bias
    added to :math:`x_\mathrm{theory}` and its standard deviation of one run in place of s. Students of an ensemble
    that start alike are exchangeable, and their mean is compared; students that start differently, and all with a
    predicted standard deviation, are compared one by one. Runs without a solution are left out, and so are values of
    which some run has not converged, and variables that theory only bounds (`runs_within_bounds`).

    Parameters
    ----------
    simulation, theory
        What `simulate.run` and `theory.solve` return; or the first alone, as `Results` with both.

    Returns
    -------
    The deviations on (sweep axes, recorded times), NaN where a value has no spread or no theory, and all NaN of a sweep
    whose runs rightly deviate from theory (`not_judged`). Of the attributes, `seeds` is the number of seeds,
    `values` that of the values compared, and `independent` the number of independent values that they count as. With a
    predicted standard deviation `left_out` names the variables left out, `unresolved` is the number of values where the
    expansion in 1/N fails (`statmech.results.corrections.resolved`), and all values count as independent, whatever
    their correlations: the bound is then too large rather than too small.

    Raises `ScenarioError` for a single seed, unless theory has corrections.
    """
    results = results_of(simulation, theory)
    runs, solution, scenario = *_both(results), results.scenario
    names = [name for name in _shared(results) if not scenario.variables[name].bound]
    if predicts(solution):
        return _from_prediction(runs, solution, names, list(scenario.recorded))
    if runs.sizes["seed"] < 2:
        raise ScenarioError([(("seeds",), "a standard error needs at least 2 seeds")])
    alike = scenario.exchangeable
    compared, expected = _compared(_where_converged(runs, names), alike), _compared(solution[names], alike)
    deviations = compared.map(
        lambda values: _deviation(values, expected[values.name], corrections.error(solution, values.name))
    ).where(not scenario.not_judged)
    recorded = [name for name in scenario.recorded if name in deviations.dims]
    deviations = deviations.assign_attrs(seeds=_seeds(runs), recorded=list(scenario.recorded))
    return deviations.assign_attrs(_numbers(compared, deviations, recorded))


def predicts(theory: xr.Dataset) -> bool:
    """True if theory predicts mean and standard deviation of a run of any variable."""
    return any(corrections.fully(theory, str(name)) for name in theory.data_vars)


def _from_prediction(runs: xr.Dataset, theory: xr.Dataset, names: list[str], recorded: list[str]) -> xr.Dataset:
    """The deviations in predicted standard errors, of the variables that have them."""
    known = [name for name in names if corrections.fully(theory, name)]
    deviations = runs[known].map(lambda values: _predicted_deviation(values, theory))
    count = int(sum(np.isfinite(values).sum() for values in deviations.values()))
    lacking = [name for name in names if name not in known]
    unresolved = int(sum(corrections.unresolved(theory, name).sum() for name in known))
    return deviations.assign_attrs(
        seeds=_seeds(runs, least=1),
        recorded=recorded,
        values=count,
        independent=count,
        left_out=lacking,
        unresolved=unresolved,
    )


def _predicted_deviation(values: Any, theory: xr.Dataset) -> Any:
    mean, std = corrections.predicted(theory, values.name)
    assert std is not None
    of_mean = np.hypot(std / np.sqrt(values.count("seed")), corrections.error(theory, values.name))
    error = of_mean.where(corrections.resolved(theory, values.name))
    return ((values.mean("seed") - mean) / error).transpose(*(dim for dim in values.dims if dim != "seed"))


def _where_converged(runs: xr.Dataset, names: list[str]) -> xr.Dataset:
    """These variables, NaN in all runs where one with a solution has not converged: theory describes converged ones."""
    if not names or "converged" not in runs:
        return runs[names]
    return runs[names].where((runs.converged | ~_solved(runs, names)).all("seed"))


def _solved(runs: xr.Dataset, names: list[str]) -> Any:
    """True for each run that has a value of any of these variables."""
    return functools.reduce(operator.or_, (runs[name].notnull() for name in names))


def _compared(dataset: xr.Dataset, exchangeable: bool) -> xr.Dataset:
    return dataset.mean("student") if exchangeable and "student" in dataset.dims else dataset


def _deviation(values: Any, expected: Any, of_theory: Any) -> Any:
    difference, error = values.mean("seed") - expected, standard_error_of_runs(values)
    spread = error > ROUNDING * abs(values.mean("seed"))  # seeds that are equal differ by rounding
    known = spread & (abs(difference) > ROUNDING) & np.isfinite(difference)
    return (difference / np.hypot(error, np.hypot(of_theory, ROUNDING))).where(known, other=np.nan)


def _numbers(runs: xr.Dataset, deviations: xr.Dataset, recorded: list[str]) -> dict[str, Any]:
    """The attributes `values` and `independent`."""
    known = [np.isfinite(_by_cell(values, recorded)) for values in deviations.data_vars.values()]
    samples = [_by_cell(values, ["seed", *recorded]) for values in runs.data_vars.values()]
    counts = np.array([mask.reshape(len(mask), -1).sum(axis=1) for mask in known]).sum(axis=0)

    def of(cell: int) -> np.ndarray:
        pairs = zip(samples, known, strict=True)
        return np.concatenate([values[cell][:, mask[cell]] for values, mask in pairs], axis=1)

    independent = multiplicity.independent(counts, of, deviations.attrs["seeds"])
    return {"values": int(counts.sum()), "independent": independent}


def _by_cell(values: xr.DataArray, inside: list[str]) -> np.ndarray:
    """An array (parameter combinations, *inside); of `inside`, the dimensions that there are."""
    last = [dim for dim in inside if dim in values.dims]
    outside = [dim for dim in values.dims if dim not in last]
    array = values.transpose(*outside, *last).values
    return array.reshape(-1, *array.shape[len(outside) :])


@dataclass(frozen=True)
class Row:
    """One parameter combination of a sweep: its coordinates, and each variable's largest deviation, with its sign."""

    cell: dict[str, Any]
    largest: dict[str, float]


def rows(distance: xr.Dataset) -> Iterator[Row]:
    """The deviations of each parameter combination, the largest over all recorded times.

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
    """The deviation that none of these exceeds with probability 1 - LEVEL if theory is exact.

    Student's t distribution for the number of seeds, or the normal distribution if the standard errors are predicted,
    at LEVEL divided by the number of independent values (`statmech.results.multiplicity`).
    """
    return multiplicity.bound(distance.attrs["independent"], None if _predicted(distance) else distance.attrs["seeds"])


def fewest_seeds(distance: xr.Dataset) -> int:
    """The number of seeds from which on as many deviations can be judged (`statmech.results.multiplicity`).

    It is 1 if the standard errors are predicted.
    """
    return 1 if _predicted(distance) else multiplicity.fewest_seeds(distance.attrs["values"])


def _predicted(distance: xr.Dataset) -> bool:
    return "left_out" in distance.attrs


def magnitudes(distance: xr.Dataset) -> np.ndarray:
    """The magnitudes of all deviations that are compared, without those of values that have no spread or no theory."""
    values = np.concatenate([np.abs(values.values).ravel() for values in distance.data_vars.values()])
    return values[np.isfinite(values)]


def can_judge(distance: xr.Dataset) -> bool:
    """True if these deviations come from at least `fewest_seeds`."""
    return int(distance.attrs["seeds"]) >= fewest_seeds(distance)


def _largest(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[np.argmax(np.abs(finite))]) if finite.size else np.nan


def _varying(distance: xr.Dataset, axes: list[Any]) -> list[str]:
    """The coordinates along the sweep's axes, in their order; along each, the one of its name first."""
    along = ((axis, str(name)) for axis in axes for name, c in distance.coords.items() if c.dims == (axis,))
    return [name for _, name in sorted(along, key=lambda it: (axes.index(it[0]), it[0] != it[1], it[0].find(it[1])))]


@dataclass(frozen=True)
class WithinBound:
    """The number of `of` runs that satisfy a bound, and the ratio run / bound that is closest to 1 or beyond it."""

    runs: int
    of: int
    ratio: float


def bounded(simulation: Simulation, theory: xr.Dataset | None = None) -> list[str]:
    """The variables of both datasets that theory bounds."""
    results = results_of(simulation, theory)
    return [name for name in _shared(results) if results.scenario.variables[name].bound]


def runs_within_bounds(
    simulation: Simulation, theory: xr.Dataset | None = None
) -> list[tuple[dict[str, Any], dict[str, WithinBound]]]:
    """For each parameter combination of the sweep, its coordinates and the runs that satisfy each bound.

    A run without a value where theory has a bound violates it. Where theory gives no bound (NaN) no run counts, nor do
    runs that are missing or have failed.

    >>> import simulate, theory
    >>> from statmech import Boosting
    >>> scenario = Boosting(booster="adaboost", s=1, P=[10, 100], seeds=3)
    >>> [(cell, kept["stages"]) for cell, kept in runs_within_bounds(simulate.run(scenario), theory.solve(scenario))]
    [({'P': 10}, WithinBound(runs=3, of=3, ratio=0.2)), ({'P': 100}, WithinBound(runs=3, of=3, ratio=0.1))]
    """
    results = results_of(simulation, theory)
    runs, limits, scenario = *_both(results), results.scenario
    names, axes = bounded(results), list(scenario.shape)
    every = []
    for index in itertools.product(*(range(scenario.shape[axis]) for axis in axes)):
        place = dict(zip(axes, index, strict=True))
        values, bounds = runs[names].isel(place), limits[names].isel(place)
        cell = {name: values[name].item() for name in _varying(runs, axes)}
        every.append(
            (cell, {name: _kept(values[name], bounds[name], scenario.variables[name].bound) for name in names})
        )
    return every


def _kept(runs: Any, limit: Any, side: str) -> WithinBound:
    limits = limit.broadcast_like(runs).transpose(*runs.dims).values.ravel()
    values = runs.values.ravel()
    limited = np.isfinite(limits) & _done(runs).broadcast_like(runs).transpose(*runs.dims).values.ravel()
    values, limits = values[limited], limits[limited]
    sign = 1 if side == "above" else -1
    satisfied = sign * (limits - values) >= -ROUNDING * np.abs(limits)
    ratios = (values / np.where(limits == 0, np.nan, limits))[np.isfinite(values)]
    known = ratios[np.isfinite(ratios)]
    return WithinBound(int(satisfied.sum()), values.size, float(sign * np.max(sign * known)) if known.size else np.nan)


def _done(runs: Any) -> Any:
    """True for each finished run: for all, unless the store says otherwise (`statmech.results.store.load`)."""
    return runs.coords.get("done", runs.seed == runs.seed)


def _seeds(simulation: xr.Dataset, least: int = 2) -> int:
    """The smallest number of seeds behind a standard error, which needs at least as many."""
    several = [count for count in _done(simulation).sum("seed").values.ravel().tolist() if count >= least]
    return min(several, default=least)


def _both(results: Results) -> tuple[xr.Dataset, xr.Dataset]:
    if results.simulation is None or results.theory is None:
        raise TypeError("a comparison needs a simulation and its theory")
    return results.simulation, results.theory


def _shared(results: Results) -> list[str]:
    simulation, theory = _both(results)
    judged = [name for name, variable in results.scenario.variables.items() if variable.in_theory]
    return [name for name in judged if name in simulation and name in theory]


def converged(simulation: Simulation) -> list[tuple[int, int]] | None:
    """The numbers of converged runs and of all runs at the last recorded time, in the order of `rows`.

    None for a scenario whose runs always converge.
    """
    results = results_of(simulation)
    runs = results.simulation
    if runs is None or "converged" not in runs:
        return None
    last = _last(runs.converged, results)
    done = _done(last).broadcast_like(last).sum("seed")
    return list(zip(last.sum("seed").values.ravel().tolist(), done.values.ravel().tolist(), strict=True))


def unsolved(simulation: Simulation) -> tuple[int, int]:
    """The number of finished runs that returned no solution, and that of all finished runs."""
    results = results_of(simulation)
    runs = results.simulation
    if runs is None or "converged" not in runs:
        return 0, 0
    names = [name for name, variable in results.scenario.variables.items() if variable.in_theory and name in runs]
    solved = _last(_solved(runs, names), results)
    done = _done(runs).broadcast_like(solved)
    return int((done & ~solved).sum()), int(done.sum())


def _last(values: xr.DataArray, results: Results) -> xr.DataArray:
    """Values at the last recorded time."""
    return values.isel({dim: -1 for dim in values.dims if dim in results.scenario.recorded})
