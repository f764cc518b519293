"""The theory of a page: at the scenario's own values, and on a dense grid along x if that is cheap."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import series
from figures.explorer import settings
from figures.functions_of_time import jumps
from statmech.errors import StatmechError
from statmech.numerics.accuracy import accurate_enough_for_charts
from statmech.optima import OPTIMAL
from statmech.results.results import Results
from statmech.scenarios.axes import points
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.registry import scenario_from
from statmech.scenarios.variables import BIAS, STD

if TYPE_CHECKING:
    import xarray as xr

LARGE = 10**6  # theory is solved at this N, which is large enough for any K and rate
KEPT = 32  # a slider that returns to a value shows its curves immediately
SOLVING = threading.Lock()  # an opening page waits for its theory


def both(scenario: AbstractScenario, along: str) -> tuple[xr.Dataset | None, xr.Dataset | None]:
    """Solve theory at the scenario's own values, and on a dense grid along a key.

    The grid is None if it would take too long.
    """
    if scenario.unsolved:
        return None, None
    values = values_along(scenario, along)
    dense = _dense(settings.choice_of(scenario), along, values)
    if dense and along == "t":
        dense = sorted({*dense, *(time for time in jumps(scenario) if values[0] < time < values[-1])})
    averaged = [
        name for name, variable in scenario.variables.items() if variable.between
    ]  # averages over the time between records
    if len(dense) <= len(values):
        return _solved(scenario), None
    try:
        dense_theory = _solved(scenario_from({**scenario.config(), along: dense}))
    except StatmechError:  # the scenario does not accept all values beyond the end of x
        return _solved(scenario), None
    grid = np.asarray(dense)
    if averaged and along in scenario.recorded:
        return _solved(scenario), dense_theory.drop_vars([name for name in averaged if name in dense_theory])
    theory = dense_theory.isel({along: np.searchsorted(grid, values)})
    theory = theory.assign_coords({along: values}).assign_attrs(config=json.dumps(scenario.config()))
    return theory, dense_theory if grid[-1] == values[-1] else dense_theory.isel({along: grid <= values[-1]})


def broken(scenario: AbstractScenario, theory: xr.Dataset | None, along: str) -> xr.Dataset | None:
    """Return theory as lines with first-order transitions along a key.

    Returns None if there are no transitions.
    """
    if theory is None or len(values_along(scenario, along)) < 4:
        return None
    from theory.dense_lines import broken_where_known  # imported here, as it needs JAX

    lines = broken_where_known(scenario, theory, along)
    return None if lines is theory else lines


def is_to_be_searched(scenario: AbstractScenario) -> bool:
    """Return True if a scenario has an optimum that is still unknown.

    A search takes a minute or more.
    """
    if "control" not in scenario.theory_only:
        return False
    from theory.control.best_controls import are_known  # imported here, as it needs JAX

    return not are_known([*scenario.cells()], recorded_last(scenario))


def without_optima(scenario: AbstractScenario) -> AbstractScenario:
    """Return a scenario without the optimal values of its keys.

    A key that has only optimal values gets its default.

    >>> from statmech import Scenario
    >>> without_optima(Scenario(rule="hebb", t=1, eta=[0.5, "optimal"])).config()["eta"]
    [0.5]
    """
    config, choice = scenario.config(), settings.choice_of(scenario)
    simple = {name: settings.default_of(choice, name) for name in settings.controllable(scenario)}
    simple[settings.PROTOCOL] = "interleaved" if config.get("switch") is None else "blocked"
    for name in simple.keys() & config.keys():
        values = config[name] if isinstance(config[name], list) else [config[name]]
        other_values = [value for value in values if not _is_optimum(value)]
        if len(other_values) < len(values):
            config[name] = other_values or simple[name]
    return scenario_from(config)


def _is_optimum(written: Any) -> bool:
    """Return True if a value in a config is an optimum."""
    return written == OPTIMAL or (isinstance(written, dict) and OPTIMAL in written)


def search(scenario: AbstractScenario) -> None:
    """Find the optima of a scenario, which later solutions share."""
    from theory.control.best_controls import with_best

    with_best([*scenario.cells()], recorded_last(scenario))


def recorded_last(scenario: AbstractScenario) -> float:
    """Return the last recorded time."""
    return float(scenario.recorded["t"][-1])


def values_along(scenario: AbstractScenario, along: str) -> list[float]:
    """Return the values of a key of a scenario.

    The list is empty if the values are zipped with other keys or do not increase.
    """
    if any(along in group for group in scenario.zipped):
        return []
    key_values = scenario.recorded.get(along, scenario.axis_values().get(along, ()))
    values = list(key_values) if isinstance(key_values, tuple | np.ndarray) else []
    return values if values == sorted(values) else []


def _dense(choice: str, along: str, values: list[float]) -> list[float]:
    """Return the grid of theory values that each step of a drag solves.

    The list is empty if the solution would delay the drag.
    """
    if len(values) < 2:
        return []
    if settings.is_recorded(choice, along):
        return settings.between(
            choice, along, values, settings.FINE if settings.page_of(choice).even else settings.LINE
        )
    if choice in settings.COMPILED:
        # always the largest possible number: each other number takes seconds to compile
        slider_stops = [] if along in settings.SHARED else settings.stops_of(choice, along)
        stops = [stop for stop in slider_stops if stop > values[-1]]
        return settings.between(choice, along, [*values, *stops], settings.SWEPT)
    return []


def with_all_digits(results: Results) -> Results:
    """Return results with theory solved to full accuracy.

    Charts use a lower accuracy for inputs with many variances.
    """
    from theory.solutions import solve_each

    all_inputs = points(getattr(results.scenario, "inputs", ()))
    if results.theory is None or not any(inputs.structured for inputs in all_inputs):
        return results
    return replace(results, theory=solve_each(results.scenario))


def _solved(scenario: AbstractScenario) -> xr.Dataset:
    """Solve the theory of each rule, learner, ... and cache it.

    The solution at one N gives the theory at every N.
    """
    classes = scenario.classes()
    kinds = tuple(classes[name] for name in scenario.chosen())
    config = scenario.config()
    one_size = "N" in series.ignored_in_the_limit(scenario) and isinstance(config.get("N"), int)
    with SOLVING:
        theory = _solved_as(json.dumps({**config, "N": LARGE, "seeds": 1} if one_size else config), kinds)
    return _at(theory, scenario, config["N"]) if one_size else theory


def _at(large: xr.Dataset, scenario: AbstractScenario, N: int) -> xr.Dataset:
    """Return the theory at this N from the theory at `LARGE`.

    Variances and biases of order 1/N are proportional to 1/N.
    """
    ratio = LARGE / N
    factors = {STD: ratio**0.5, BIAS: ratio}
    rescaled = {name: large[name] * factor for suffix, factor in factors.items() for name in _ending(large, suffix)}
    theory = large.assign(rescaled).assign_coords(N=N)
    return theory.assign_attrs(config=json.dumps(scenario.config()))


def _ending(dataset: xr.Dataset, suffix: str) -> list[str]:
    return [str(name) for name in dataset.data_vars if str(name).endswith(suffix)]


@lru_cache(maxsize=KEPT)
def _solved_as(config: str, kinds: tuple[type, ...]) -> xr.Dataset:
    """Solve the theory of a config.

    `kinds` is part of the cache key, as a user may define a class again under the same name.
    """
    from theory.solutions import solve_each

    with accurate_enough_for_charts():
        return solve_each(scenario_from(json.loads(config)))
