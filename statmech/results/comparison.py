r"""Deviation of simulation from theory in standard errors, and theory's corrections of order 1/N.

**Deviations.** Standard errors are estimated from seeds or predicted. How large the largest deviation may be if theory
is exact, and how many seeds can judge, is derived in `statmech.numerics.statistics`: values that exceed the bound
together, such as neighbouring recorded times or R and eps_g, count as one.

Where theory predicts mean and standard deviation of a run at this N (`corrections: true`), the simulation's own spread
is not used: one seed is sufficient, and the bound comes from the normal distribution. Variables are then omitted if
theory lacks their bias or standard deviation.

Where theory gives the standard error of its own value (`NAME_error`, for averages over samples), this error is added in
quadrature.

Where theory gives a bound instead of a value (`Variable.bound`), a deviation is meaningless. Instead, the runs that
satisfy the bound are counted, and the ratio closest to violating it is given.

**Corrections.** Theory predicts the mean and standard deviation of a run at finite N, to order 1/N. In addition to a
variable's value in the limit N -> infinity, a theory with `corrections: true` has the bias at this N (`NAME_bias`) and
the standard deviation of one run (`NAME_std`). Figures and comparisons use `predict_mean_and_std`.

**Where the next order is small** (`find_resolved_std_mask`). The standard deviation s has relative errors of order 1/N.
Three errors can be estimated from the bias b and the scale x of a variable's fluctuations: x is the value itself for a
length or an error, and :math:`1-|R|` for a cosine.

- Where the term of order :math:`1/\sqrt N` is small or vanishes, the next term has a spread equal to its mean, b: the
  variance is :math:`s^2 + b^2`, and s is too small by :math:`b^2/2s^2`. All students of an AdaTron with label noise
  reach the length eta/2. Predicted and simulated standard deviations of its length at N = 100 and 400, under a drift of
  0.3: :math:`\sqrt{1 + b^2/s^2}` = 1.35 and 1.10, observed 1.34 and 1.09.
- Fluctuations multiply x (the equations use log l and log theta), so that s grows or shrinks with the mean, by b/x. The
  length of a textbook AdaTron that forgets (`decay: 5`): 1 + b/x = 0.87 and 0.74, observed 0.88 and 0.77.
- The exponential of a Gaussian of variance :math:`s^2/x^2` has a standard deviation larger by :math:`s^2/4x^2`.

A value is judged where each error is at most 1/8.
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
from statmech.keys.variables import BIAS_SUFFIX, STANDARD_ERROR_SUFFIX, STD_SUFFIX
from statmech.numerics import statistics
from statmech.numerics.statistics import compute_run_standard_error
from statmech.results.results import Results, as_results

if TYPE_CHECKING:
    import xarray as xr


MAX_NEXT_ORDER_RATIO = 1 / 8  # limit for each of the three relative errors above
COSINE_VARIABLES = ("R", "q")
STD_ROUNDING_TOL = 1e-9  # relative to the mean: with a smaller spread, all runs have the same value
DEVIATION_ROUNDING_TOL = 1e-9  # with a fixed start, R, q and l differ between seeds by rounding errors only


def predict_mean_and_std(theory: xr.Dataset, name: str) -> tuple[xr.DataArray, xr.DataArray | None]:
    r"""Return the mean and the standard deviation that theory predicts for a variable in one run.

    .. math:: \langle x\rangle = x_\infty + \mathrm{bias} + O(N^{-2})

    Parameters
    ----------
    theory
        A dataset from `theory.solve`, with or without corrections.
    name
        A variable of this theory.

    Returns
    -------
    mean : xarray.DataArray
        The value plus its bias; the value alone if theory has no bias for it.
    std : xarray.DataArray or None
        The standard deviation of one run; None if theory does not predict it.

    Examples
    --------
    >>> from statmech import Scenario
    >>> from theory import solve
    >>> scenario = Scenario(rule="hebb", N=100, t=[0, 10], corrections=True)
    >>> mean, std = predict_mean_and_std(solve(scenario), "eps_g")
    >>> mean.values.ravel().round(4), std.values.ravel().round(4)
    (array([0.5   , 0.1245]), array([0.0318, 0.0085]))
    >>> predict_mean_and_std(solve(Scenario(rule="hebb", t=[10])), "eps_g")[1] is None
    True
    """
    mean = theory[name] + theory[name + BIAS_SUFFIX] if name + BIAS_SUFFIX in theory else theory[name]
    return mean, theory.get(name + STD_SUFFIX)


def has_bias_and_std(theory: xr.Dataset, name: str) -> bool:
    """Return True if theory has both the bias and the standard deviation of a variable.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> has_bias_and_std(solve(Scenario(rule="hebb", t=[1], corrections=True)), "R")
    True
    """
    return name + BIAS_SUFFIX in theory and name + STD_SUFFIX in theory


def get_theory_standard_error(theory: xr.Dataset, name: str) -> xr.DataArray | float:
    """Return the standard error of theory's own value of a variable, 0 if theory is exact.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> get_theory_standard_error(solve(Scenario(rule="hebb", t=[1])), "R")
    0.0
    """
    return theory.get(name + STANDARD_ERROR_SUFFIX, 0.0)


def find_resolved_std_mask(theory: xr.Dataset, name: str) -> xr.DataArray:
    """Return True where theory resolves a standard deviation: it is nonzero and the next order in 1/N is small.

    With a given start, the standard deviation is zero except for rounding. At all other points where this is False,
    theory and simulation cannot be compared.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], corrections=True)
    >>> find_resolved_std_mask(solve(noisy), "length").values.ravel()
    array([ True, False])
    """
    mean, std = predict_mean_and_std(theory, name)
    assert std is not None
    bias, value = np.abs(theory[name + BIAS_SUFFIX]), np.abs(theory[name])
    scale = 1 - value if name in COSINE_VARIABLES else value
    is_small = (
        (bias**2 <= 2 * MAX_NEXT_ORDER_RATIO * std**2)
        & (bias <= MAX_NEXT_ORDER_RATIO * scale)
        & (std**2 <= 4 * MAX_NEXT_ORDER_RATIO * scale**2)
    )
    return (std > STD_ROUNDING_TOL * np.abs(mean)) & is_small


def find_unresolved_std_mask(theory: xr.Dataset, name: str) -> xr.DataArray:
    """Return True where the expansion in 1/N does not resolve a variable's standard deviation.

    Without a bias, this is False everywhere.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], corrections=True)
    >>> find_unresolved_std_mask(solve(noisy), "length").values.ravel()
    array([False,  True])
    """
    spreads = theory[name + STD_SUFFIX] > 0
    return spreads & ~find_resolved_std_mask(theory, name) if has_bias_and_std(theory, name) else spreads & False


if TYPE_CHECKING:
    import xarray as xr

    Simulation = xr.Dataset | Results


def distances(simulation: Simulation, theory: xr.Dataset | None = None) -> xr.Dataset:
    r"""Compute the deviation of simulation from theory in standard errors, for all variables of both datasets.

    .. math:: z = \frac{\overline{x} - x_\mathrm{theory}}{\sqrt{s^2 / n + \sigma^2}}

    Here :math:`\overline x` and s are mean and standard deviation over n seeds, and :math:`\sigma` is the standard
    error of theory where it has one, combined with a rounding error of 1e-9. Where theory has corrections, its bias is
    added to :math:`x_\mathrm{theory}`, and its standard deviation of one run replaces s. Students of an ensemble with
    equal starts are exchangeable, and their mean is compared. Students with different starts, and all students with a
    predicted standard deviation, are compared one by one. Runs without a solution are omitted. So are values where some
    run has not converged, and variables that theory only bounds (`count_runs_within_bounds`).

    Parameters
    ----------
    simulation, theory
        Datasets from `simulate.run` and `theory.solve`; or the first argument alone, as `Results` with both.

    Returns
    -------
    The deviations on (sweep axes, recorded times), NaN where a value has no spread or no theory. All are NaN if the
    runs of a sweep rightly deviate from theory (`expected_deviation_reason`). The attribute `seeds` is the number of
    seeds, `values` the number of compared values, and `independent` the number of independent values that they are
    equivalent to. With a predicted standard deviation `left_out` names the omitted variables, and `unresolved` is the
    number of values where the expansion in 1/N fails (`statmech.results.comparison.find_resolved_std_mask`). All
    values then count as independent, regardless of their correlations, which makes the bound too large rather than too
    small.

    Raises `ScenarioError` for a single seed, unless theory has corrections.
    """
    results = as_results(simulation, theory)
    runs, solution, scenario = *_require_both_datasets(results), results.scenario
    names = [name for name in _list_compared_variables(results) if not scenario.variables[name].bound]
    if has_any_bias_and_std(solution):
        return _compare_with_prediction(runs, solution, names, list(scenario.recorded_coordinates))
    if runs.sizes["seed"] < 2:
        raise ScenarioError([(("seeds",), "a standard error requires at least 2 seeds")])
    exchangeable = scenario.has_equal_starts
    compared = _average_exchangeable_students(_mask_unconverged(runs, names), exchangeable)
    expected = _average_exchangeable_students(solution[names], exchangeable)
    deviations = compared.map(
        lambda values: _compute_deviation(
            values, expected[values.name], get_theory_standard_error(solution, values.name)
        )
    ).where(not scenario.expected_deviation_reason)
    recorded = [name for name in scenario.recorded_coordinates if name in deviations.dims]
    deviations = deviations.assign_attrs(seeds=_find_min_seed_count(runs), recorded=list(scenario.recorded_coordinates))
    return deviations.assign_attrs(_count_compared_values(compared, deviations, recorded))


def has_any_bias_and_std(theory: xr.Dataset) -> bool:
    """Return True if theory predicts the mean and standard deviation of a run for some variable."""
    return any(has_bias_and_std(theory, str(name)) for name in theory.data_vars)


def _compare_with_prediction(runs: xr.Dataset, theory: xr.Dataset, names: list[str], recorded: list[str]) -> xr.Dataset:
    """Compute deviations in predicted standard errors, for all variables with a prediction."""
    predicted_names = [name for name in names if has_bias_and_std(theory, name)]
    deviations = runs[predicted_names].map(lambda values: _deviation_in_predicted_errors(values, theory))
    count = int(sum(np.isfinite(values).sum() for values in deviations.values()))
    omitted = [name for name in names if name not in predicted_names]
    unresolved = int(sum(find_unresolved_std_mask(theory, name).sum() for name in predicted_names))
    return deviations.assign_attrs(
        seeds=_find_min_seed_count(runs, minimum=1),
        recorded=recorded,
        values=count,
        independent=count,
        left_out=omitted,
        unresolved=unresolved,
    )


def _deviation_in_predicted_errors(values: Any, theory: xr.Dataset) -> Any:
    mean, std = predict_mean_and_std(theory, values.name)
    assert std is not None
    mean_error = np.hypot(std / np.sqrt(values.count("seed")), get_theory_standard_error(theory, values.name))
    error = mean_error.where(find_resolved_std_mask(theory, values.name))
    return ((values.mean("seed") - mean) / error).transpose(*(dim for dim in values.dims if dim != "seed"))


def _mask_unconverged(runs: xr.Dataset, names: list[str]) -> xr.Dataset:
    """Return variables with NaN wherever some run has a solution but has not converged.

    Theory describes converged runs only.
    """
    if not names or "converged" not in runs:
        return runs[names]
    return runs[names].where((runs.converged | ~_find_solved_runs(runs, names)).all("seed"))


def _find_solved_runs(runs: xr.Dataset, names: list[str]) -> Any:
    """Return a mask of the runs that have a value for at least one variable."""
    return functools.reduce(operator.or_, (runs[name].notnull() for name in names))


def _average_exchangeable_students(dataset: xr.Dataset, exchangeable: bool) -> xr.Dataset:
    return dataset.mean("student") if exchangeable and "student" in dataset.dims else dataset


def _compute_deviation(values: Any, expected: Any, theory_error: Any) -> Any:
    difference, error = values.mean("seed") - expected, compute_run_standard_error(values)
    spread = error > DEVIATION_ROUNDING_TOL * abs(values.mean("seed"))  # smaller spreads are rounding errors
    is_defined = spread & (abs(difference) > DEVIATION_ROUNDING_TOL) & np.isfinite(difference)
    return (difference / np.hypot(error, np.hypot(theory_error, DEVIATION_ROUNDING_TOL))).where(
        is_defined, other=np.nan
    )


def _count_compared_values(runs: xr.Dataset, deviations: xr.Dataset, recorded: list[str]) -> dict[str, Any]:
    """Return the attributes `values` and `independent` of the deviations."""
    masks = [np.isfinite(_flatten_cells(values, recorded)) for values in deviations.data_vars.values()]
    samples = [_flatten_cells(values, ["seed", *recorded]) for values in runs.data_vars.values()]
    counts = np.array([mask.reshape(len(mask), -1).sum(axis=1) for mask in masks]).sum(axis=0)

    def get_cell_runs(cell: int) -> np.ndarray:
        pairs = zip(samples, masks, strict=True)
        return np.concatenate([values[cell][:, mask[cell]] for values, mask in pairs], axis=1)

    independent = statistics.count_independent_values(counts, get_cell_runs, deviations.attrs["seeds"])
    return {"values": int(counts.sum()), "independent": independent}


def _flatten_cells(values: xr.DataArray, inner_dims: list[str]) -> np.ndarray:
    """Return values to compare as an array (parameter combinations, *inner dimensions).

    Missing dimensions among `inner_dims` are ignored.
    """
    inner = [dim for dim in inner_dims if dim in values.dims]
    outer = [dim for dim in values.dims if dim not in inner]
    array = values.transpose(*outer, *inner).values
    return array.reshape(-1, *array.shape[len(outer) :])


@dataclass(frozen=True)
class DeviationRow:
    """A parameter combination of a sweep, with the largest deviation of each variable and its sign."""

    cell: dict[str, Any]
    largest_deviations: dict[str, float]


def iterate_deviation_rows(distance: xr.Dataset) -> Iterator[DeviationRow]:
    """Yield the largest deviations over all recorded times, for each parameter combination.

    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule=["hebb", "adatron"], N=10**6, K=2, t=[0.01], seeds=8, flip=0.1)
    >>> [row.cell["rule"] for row in iterate_deviation_rows(distances(simulate.run(scenario), theory.solve(scenario)))]
    ['hebb', 'adatron']
    """
    axes = [dim for dim in next(iter(distance.data_vars.values())).dims if dim not in distance.attrs["recorded"]]
    for index in itertools.product(*(range(distance.sizes[axis]) for axis in axes)):
        cell = distance.isel(dict(zip(axes, index, strict=True)))
        yield DeviationRow(
            {name: cell[name].item() for name in _list_varying_coordinates(distance, axes)},
            {str(name): _find_largest_deviation(values.values) for name, values in cell.data_vars.items()},
        )


def get_deviation_bound(distance: xr.Dataset) -> float:
    """Return the bound on all deviations, in standard errors, for an exact theory.

    Some deviation exceeds the bound with probability `FALSE_ALARM_PROBABILITY`. The bound is a quantile of Student's t
    distribution, or of the normal distribution if the standard errors are predicted (`statmech.numerics.statistics`).
    """
    return statistics.compute_deviation_bound(
        distance.attrs["independent"], None if _has_predicted_errors(distance) else distance.attrs["seeds"]
    )


def get_min_judging_seeds(distance: xr.Dataset) -> int:
    """Return the minimum number of seeds needed to judge the deviations.

    One seed is sufficient if the standard errors are predicted (see `statmech.numerics.statistics`).
    """
    return 1 if _has_predicted_errors(distance) else statistics.compute_min_seeds(distance.attrs["values"])


def _has_predicted_errors(distance: xr.Dataset) -> bool:
    return "left_out" in distance.attrs


def get_deviation_magnitudes(distance: xr.Dataset) -> np.ndarray:
    """Return the magnitudes of all finite deviations, from variables that have a spread and a theory."""
    values = np.concatenate([np.abs(values.values).ravel() for values in distance.data_vars.values()])
    return values[np.isfinite(values)]


def has_enough_seeds(distance: xr.Dataset) -> bool:
    """Return True if there are enough seeds to judge the deviations."""
    return int(distance.attrs["seeds"]) >= get_min_judging_seeds(distance)


def _find_largest_deviation(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[np.argmax(np.abs(finite))]) if finite.size else np.nan


def _list_varying_coordinates(distance: xr.Dataset, axes: list[Any]) -> list[str]:
    """Return the names of coordinates along the sweep's axes, in the order of the axes.

    For each axis, the coordinate with the axis's own name comes first.
    """
    axes_and_names = ((axis, str(name)) for axis in axes for name, c in distance.coords.items() if c.dims == (axis,))
    ordered = sorted(axes_and_names, key=lambda pair: (axes.index(pair[0]), pair[0] != pair[1], pair[0].find(pair[1])))
    return [name for _, name in ordered]


@dataclass(frozen=True)
class BoundCount:
    """The number of runs that satisfy a bound, the number of all runs, and the worst ratio of run to bound."""

    runs: int
    of: int
    ratio: float


def list_bounded_variables(simulation: Simulation, theory: xr.Dataset | None = None) -> list[str]:
    """Return the names of variables in both datasets that theory only bounds."""
    results = as_results(simulation, theory)
    return [name for name in _list_compared_variables(results) if results.scenario.variables[name].bound]


def count_runs_within_bounds(
    simulation: Simulation, theory: xr.Dataset | None = None
) -> list[tuple[dict[str, Any], dict[str, BoundCount]]]:
    """Count the simulated runs that satisfy each bound of theory, for each parameter combination of a sweep.

    Returns pairs of coordinates and counts. A run without a value violates the bound that theory has for it. Where
    theory gives no bound (NaN) no run counts. Missing and failed runs do not count either.

    >>> import simulate, theory
    >>> from statmech import Boosting
    >>> scenario = Boosting(booster="adaboost", s=1, P=[10, 100], seeds=3)
    >>> counts = count_runs_within_bounds(simulate.run(scenario), theory.solve(scenario))
    >>> [(cell["P"], bounds["stages"].runs, bounds["stages"].ratio) for cell, bounds in counts]
    [(10, 3, 0.2), (100, 3, 0.1)]
    """
    results = as_results(simulation, theory)
    runs, limits, scenario = *_require_both_datasets(results), results.scenario
    names, axes = list_bounded_variables(results), list(scenario.shape)
    counts_by_cell = []
    for index in itertools.product(*(range(scenario.shape[axis]) for axis in axes)):
        index_by_axis = dict(zip(axes, index, strict=True))
        values, bounds = runs[names].isel(index_by_axis), limits[names].isel(index_by_axis)
        cell = {name: values[name].item() for name in _list_varying_coordinates(runs, axes)}
        counts_by_cell.append(
            (
                cell,
                {
                    name: _count_within_bound(values[name], bounds[name], scenario.variables[name].bound)
                    for name in names
                },
            )
        )
    return counts_by_cell


def _count_within_bound(runs: Any, limit: Any, side: str) -> BoundCount:
    limits = limit.broadcast_like(runs).transpose(*runs.dims).values.ravel()
    values = runs.values.ravel()
    limited = np.isfinite(limits) & _get_finished_mask(runs).broadcast_like(runs).transpose(*runs.dims).values.ravel()
    values, limits = values[limited], limits[limited]
    sign = 1 if side == "above" else -1
    satisfied = sign * (limits - values) >= -DEVIATION_ROUNDING_TOL * np.abs(limits)
    ratios = (values / np.where(limits == 0, np.nan, limits))[np.isfinite(values)]
    finite_ratios = ratios[np.isfinite(ratios)]
    return BoundCount(
        int(satisfied.sum()), values.size, float(sign * np.max(sign * finite_ratios)) if finite_ratios.size else np.nan
    )


def _get_finished_mask(runs: Any) -> Any:
    """Return a mask of finished runs.

    All runs are finished unless the store records missing or failed runs (`statmech.stores.zarr_store.load`).
    """
    return runs.coords.get("done", runs.seed == runs.seed)


def _find_min_seed_count(simulation: xr.Dataset, minimum: int = 2) -> int:
    """Return the smallest number of finished seeds, ignoring points with fewer than `minimum`."""
    counts = [count for count in _get_finished_mask(simulation).sum("seed").values.ravel().tolist() if count >= minimum]
    return min(counts, default=minimum)


def _require_both_datasets(results: Results) -> tuple[xr.Dataset, xr.Dataset]:
    if results.simulation is None or results.theory is None:
        raise TypeError("a comparison requires a simulation and its theory")
    return results.simulation, results.theory


def _list_compared_variables(results: Results) -> list[str]:
    simulation, theory = _require_both_datasets(results)
    judged = [name for name, variable in results.scenario.variables.items() if variable.in_theory]
    return [name for name in judged if name in simulation and name in theory]


def count_converged_runs(simulation: Simulation) -> list[tuple[int, int]] | None:
    """Return the numbers of converged and of finished runs at the last time, per parameter combination.

    Returns None for a scenario whose runs always converge.
    """
    results = as_results(simulation)
    runs = results.simulation
    if runs is None or "converged" not in runs:
        return None
    mask = _select_last_time(runs.converged, results)
    finished_counts = _get_finished_mask(mask).broadcast_like(mask).sum("seed")
    return list(zip(mask.sum("seed").values.ravel().tolist(), finished_counts.values.ravel().tolist(), strict=True))


def count_unsolved_runs(simulation: Simulation) -> tuple[int, int]:
    """Return the number of finished runs without a solution, and the number of all finished runs."""
    results = as_results(simulation)
    runs = results.simulation
    if runs is None or "converged" not in runs:
        return 0, 0
    names = [name for name, variable in results.scenario.variables.items() if variable.in_theory and name in runs]
    has_solution = _select_last_time(_find_solved_runs(runs, names), results)
    is_finished = _get_finished_mask(runs).broadcast_like(has_solution)
    return int((is_finished & ~has_solution).sum()), int(is_finished.sum())


def _select_last_time(values: xr.DataArray, results: Results) -> xr.DataArray:
    """Return values at the last recorded time."""
    return values.isel({dim: -1 for dim in values.dims if dim in results.scenario.recorded_coordinates})
