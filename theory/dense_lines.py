r"""Theory on a dense grid along one axis: smooth lines, whatever grid was simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import UnivariateSpline

from statmech.errors import ScenarioError, SolverError
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.variables import ERROR
from theory.solutions import solve_line, solver_of

PLACES = 200
STEEP = 3.0  # relative to the step before
LEAST_JUMP = 0.01  # relative to the range of a line
STEEPER = 1.2  # relative to the slopes before and after
AROUND = 1 + np.array([-0.08, -0.04, -0.02, -0.01, 0, 0.01, 0.02, 0.04, 0.08])  # grid points over the singular value
NEAR = 0.01  # relative to the position of the transition
CLOSE = 0.05  # relative to the jump: closer values belong to the same state
MOST = 6000  # product over all axes of the sweep
LEAST = 40  # a coarser line looks like a polygon
SPLINE_CHI2 = 0.5  # mean squared deviation of a spline from sampled values, in units of their standard errors
MIN_SPLINE_ERROR = 0.05  # relative to the largest error on the line: no value is treated as exact
MIN_SPLINE_VALUES = 5
_KEPT: ContextVar[dict[Any, xr.Dataset | None] | None] = ContextVar("_LINE_CACHE", default=None)


@contextmanager
def each_line_once() -> Iterator[None]:
    """Solve each line at most once within this block.

    Charts of a report and figures that request the same line share one solution.

    >>> from statmech import Scenario
    >>> with each_line_once():
    ...     first, again = (smooth(Scenario(rule="hebb", t=[1, 10]), "t") for _ in range(2))
    >>> first is not again, first.R.values is again.R.values
    (True, True)
    """
    outside = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(outside)


def smooth(scenario: AbstractScenario, axis: str, places: int = PLACES) -> xr.Dataset | None:
    """Solve the theory of a scenario on a dense grid along one axis.

    Half of the points are equally spaced and half geometrically, so that a line bends smoothly on linear and on
    logarithmic axes. Integer axes (K, s, P) use every integer, or as many as `places` allows. Where the solver declares
    a first-order transition, values that jump are NaN, so that no line joins the two branches. The grid includes each
    singularity that the solver declares; a diverging value is infinite there. Sampled values are replaced by splines
    within their standard errors.

    Parameters
    ----------
    scenario
        Any scenario with a theory.
    axis
        An axis of the sweep or of its recorded times; the grid extends from its first to its last value.
    places
        The maximum number of grid points along the axis.

    Returns
    -------
    The Dataset of `theory.solve`, dense along `axis` and without the axes that the theory ignores (such as N). A grid
    of times omits variables that are averaged between recorded times (`Variable.between`). None if the theory does not
    vary along `axis`, cannot be solved on such a grid, or would take minutes (unequal students, hundreds of parameter
    combinations).

    Examples
    --------
    >>> from statmech import Scenario
    >>> line = smooth(Scenario(rule="hebb", N=[50, 100], t=[1, 10]), "t")
    >>> dict(line.R.sizes), line.t.values[[0, -1]]
    ({'t': 200, 'student': 1}, array([ 1., 10.]))
    """
    kept = _KEPT.get()
    if kept is None:
        return _smooth(scenario, axis, places)
    key = type(scenario), repr(scenario.config()), axis, places
    if key not in kept:
        kept[key] = _smooth(scenario, axis, places)
    lines = kept[key]
    return None if lines is None else lines.copy(deep=False)


def _smooth(scenario: AbstractScenario, axis: str, places: int) -> xr.Dataset | None:
    config = _config(scenario, axis, places)
    if config is None:
        return None
    try:
        dense = type(scenario)(**config)
        solved = solve_line(dense)
    except (ScenarioError, SolverError):  # a grid that is too fine or leaves the range of the equations
        return None
    if axis in dense.recorded:
        solved = solved.drop_vars([name for name, it in dense.variables.items() if it.between and name in solved])
    ignored = [str(dim) for dim in solved.dims if dim in scenario.theory_ignores]
    lines = solved.isel(dict.fromkeys(ignored, 0), drop=True)
    sampled = axis not in dense.recorded and any((lines[name] > 0).any() for name in lines if str(name).endswith(ERROR))
    return broken_where_known(scenario, _without_sampling_noise(lines, axis) if sampled else lines, axis)


def _without_sampling_noise(lines: xr.Dataset, axis: str) -> xr.Dataset:
    """Replace sampled values by splines on a fine grid along an axis.

    The splines stay within the standard errors of the samples.
    """
    x, exact = lines[axis].values, xr.zeros_like(lines[axis], float)
    fine = np.union1d(x, np.linspace(x[0], x[-1], PLACES))

    def spline(values: xr.DataArray) -> xr.DataArray:
        if axis not in values.dims or values.dtype.kind != "f":
            return values
        error = lines.get(f"{values.name}{ERROR}", exact)
        smooth: xr.DataArray = xr.apply_ufunc(
            lambda y, of_y: _spline(x, y, of_y, fine),
            values,
            error,
            input_core_dims=[[axis], [axis]],
            output_core_dims=[["fine"]],
            vectorize=True,
        )
        return smooth.rename(fine=axis).transpose(*values.dims).assign_attrs(values.attrs)

    others = {name: it.variable for name, it in lines.coords.items() if axis not in it.dims}
    splines = {name: spline(values) for name, values in lines.data_vars.items()}
    return xr.Dataset(splines, {axis: fine, **others}, lines.attrs)


def _spline(x: np.ndarray, y: np.ndarray, error: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """Evaluate a smoothing spline through values with these standard errors.

    Straight lines are used if all errors are 0. Points outside the range of finite values are NaN.
    """
    known = np.isfinite(y) & np.isfinite(error)
    if known.sum() < MIN_SPLINE_VALUES or not error[known].any():
        return np.interp(fine, x, y)
    x, y, error = x[known], y[known], error[known]
    weights = 1 / np.maximum(error, MIN_SPLINE_ERROR * error.max())
    found = UnivariateSpline(x, y, weights, s=SPLINE_CHI2 * x.size)(fine)
    return np.where((fine >= x[0]) & (fine <= x[-1]), found, np.nan)


def broken_where_known(scenario: AbstractScenario, lines: xr.Dataset, axis: str) -> xr.Dataset:
    """Interrupt lines along an axis at the first-order transitions that their solver declares."""
    transition = getattr(solver_of(scenario), "JUMPS", {}).get(axis)
    return broken(lines, axis, lines[transition]) if transition else lines


def broken(lines: xr.Dataset, axis: str, transitions: xr.DataArray) -> xr.Dataset:
    """Interrupt the variables that jump at transitions along an axis by a NaN there.

    Parameters
    ----------
    lines
        Theory on a dense increasing grid along the axis.
    axis
        The name of the axis.
    transitions
        Positions of first-order transitions, for example one for each prior. NaN and values outside the grid are
        ignored.

    Returns
    -------
    xarray.Dataset
        The lines with the transitions added to the axis. A variable without a jump at a transition is interpolated.

    Examples
    --------
    >>> x = np.linspace(0, 1, 11)
    >>> lines = xr.Dataset({"m": ("x", x + (x > 0.55)), "f": ("x", x)}, {"x": x})
    >>> broken(lines, "x", xr.DataArray([0.55, np.nan], dims="case")).sel(x=0.55).to_array().values.round(12)
    array([ nan, 0.55])
    """
    x = lines[axis].values
    every = np.unique(transitions)
    for transition in every[(every > x[1]) & (every < x[-2])].tolist():
        own = transitions == transition
        lines = lines.map(_torn, axis=axis, transition=transition, own=own.any(axis) if axis in own.dims else own)
    return lines


def _torn(line: xr.DataArray, axis: str, transition: float, own: xr.DataArray) -> xr.DataArray:
    """Insert a transition into a line, with NaN if the line jumps there.

    The value becomes NaN only for the entries that `own` marks. Points just above the transition are also NaN while
    they lie between the two states. Iterations are slow there and have not reached the other state after the recorded
    number of steps.
    """
    if axis not in line.dims or line.dtype.kind != "f":
        return line
    x, near = line[axis].values, NEAR * abs(transition)
    beyond, last = max(transition + near, x[x > transition][0]), x[x < transition][-1]
    places = np.array([min(transition - near, x[x < transition][-2]), last, beyond, *x[x > beyond][:1]])
    values = line.interp({axis: places}).transpose(axis, ...).values
    added = line.interp({axis: np.union1d(x, transition)}).transpose(axis, ...)
    least = LEAST_JUMP * (line.max(axis) - line.min(axis))
    own = own.any([dim for dim in own.dims if dim not in line.dims]).broadcast_like(least).transpose(*least.dims)
    with np.errstate(invalid="ignore"):  # differences between infinite values
        steps = np.abs(np.diff(values, axis=0))
        before, jump, *after = (steps.T / np.diff(places)).T  # slopes
        steeper = jump > STEEPER * np.maximum(before, after[0] if after else 0.0)  # on both sides, on a coarse grid
        torn = own.values & (steeper | (steps[1] > STEEP * steps[0])) & (steps[1] > least.values)
        just_beyond = (added[axis] >= transition) & (added[axis] < beyond)
        other = np.abs(added[just_beyond].values - values[2]) > CLOSE * steps[1]
    added[just_beyond] = np.where(torn & other, np.nan, added[just_beyond])
    return added.transpose(*line.dims)


def _config(scenario: AbstractScenario, axis: str, places: int) -> dict[str, Any] | None:
    """Return the config of the scenario on a dense grid, or None if no such grid is possible."""
    config, ignores = scenario.config(), scenario.theory_ignores
    values = np.asarray(config.get(axis, ()))
    zipped = [name for group in scenario.zipped for name in group]
    if scenario.unsolved or scenario.on_data or axis in ignores or {axis, *ignores} & {*zipped}:
        return None
    if not scenario.quickly_solved:
        return None
    if values.dtype.kind not in "iuf" or values.size < 2:
        return None
    others = math.prod(length for name, length in scenario.shape.items() if name not in (axis, *ignores))
    if others * LEAST > MOST:
        return None
    whole = scenario.is_whole(axis)
    steps = whole and axis in scenario.recorded  # iterations pass all steps, however few are recorded
    fewer = places if steps else getattr(solver_of(scenario), "LINE_POINTS", places)
    most = min(places, MOST // others, fewer)
    dense = grid(values, most, whole)
    singular = np.outer(getattr(solver_of(scenario), "SINGULARITIES", {}).get(axis, ()), AROUND).ravel()
    within = singular[(singular > dense[0]) & (singular < dense[-1])]
    return {**config, axis: np.union1d(dense, within).tolist(), **_without(config, ignores)}


def _without(config: dict[str, Any], ignores: dict[str, Any]) -> dict[str, Any]:
    """Return one value of each given key that the theory ignores.

    A value in `ignores` takes precedence over the first value in the config.

    A value in `ignores` takes precedence over the first value in the config.
    """
    given = {name: config[name] for name in config.keys() & ignores.keys()}
    first = {name: value[0] if isinstance(value, list) else value for name, value in given.items()}
    return first | {name: value for name, value in ignores.items() if value is not None}


def grid(values: np.ndarray, places: int, whole: bool = False) -> np.ndarray:
    """Make an increasing grid from the smallest to the largest of these values.

    >>> grid(np.array([1, 11]), 200, whole=True)
    array([ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11])
    """
    low, high = values.min(), values.max()
    if whole and high - low < places:
        return np.union1d(np.arange(np.ceil(low), high + 1, dtype=values.dtype), values)
    equally, first = np.linspace(low, high, places - places // 2), _first(values)
    bent = np.geomspace(first, high, places // 2 + 2)[1:-1] if first else np.linspace(low, high, places // 2 + 2)[1:-1]
    together = np.sort(np.concatenate([equally, bent]))
    return np.union1d(np.rint(together).astype(int), values) if whole else together


def _first(values: np.ndarray) -> float:
    """Return the start of geometric spacing, or 0 if the axis has negative values.

    If an axis begins at 0 the start is a tenth of the smallest positive value.
    """
    if values.min() < 0 or values.max() <= 0:
        return 0.0
    return float(values.min() or values[values > 0].min() / 10)
