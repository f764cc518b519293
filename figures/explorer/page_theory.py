"""The theory that a page shows: at the scenario's own values, and on a dense grid along x where that costs little."""

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

LARGE = 10**6  # the N at which theory is solved for a page: more than any K or rate asks for
KEPT = 32  # datasets, so that a slider that returns to a value has its curves at once
SOLVING = threading.Lock()  # a page that opens waits for what is being solved for it


def both(scenario: AbstractScenario, along: str) -> tuple[xr.Dataset | None, xr.Dataset | None]:
    """Solve theory at the scenario's own values, and on a dense grid along a key; together, where that costs little."""
    if scenario.unsolved:
        return None, None
    values = values_along(scenario, along)
    dense = _dense(settings.choice_of(scenario), along, values)
    if dense and along == "t":
        dense = sorted({*dense, *(time for time in jumps(scenario) if values[0] < time < values[-1])})
    averaged = [name for name, variable in scenario.variables.items() if variable.between]  # between recorded times
    if len(dense) <= len(values):
        return _solved(scenario), None
    try:
        dense_theory = _solved(scenario_from({**scenario.config(), along: dense}))
    except StatmechError:  # beyond the end of x are values that the scenario refuses
        return _solved(scenario), None
    grid = np.asarray(dense)
    if averaged and along in scenario.recorded:
        return _solved(scenario), dense_theory.drop_vars([name for name in averaged if name in dense_theory])
    theory = dense_theory.isel({along: np.searchsorted(grid, values)})
    theory = theory.assign_coords({along: values}).assign_attrs(config=json.dumps(scenario.config()))
    return theory, dense_theory if grid[-1] == values[-1] else dense_theory.isel({along: grid <= values[-1]})


def broken(scenario: AbstractScenario, theory: xr.Dataset | None, along: str) -> xr.Dataset | None:
    """Return theory with the first-order transitions along a key, as lines are drawn; None if it has none."""
    if theory is None or len(values_along(scenario, along)) < 4:
        return None
    from theory.dense_lines import broken_where_known  # here: it needs JAX

    lines = broken_where_known(scenario, theory, along)
    return None if lines is theory else lines


def is_to_be_searched(scenario: AbstractScenario) -> bool:
    """True if a scenario wants an optimum that is unknown: a search takes a minute or more."""
    if "control" not in scenario.theory_only:
        return False
    from theory.control.best_controls import are_known  # here: it needs JAX

    return not are_known([*scenario.cells()], recorded_last(scenario))


def without_optima(scenario: AbstractScenario) -> AbstractScenario:
    """Return a scenario with the other values alone of keys that are wanted at their optimum, or with simple ones.

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
    """True if a value in a config is an optimum."""
    return written == OPTIMAL or (isinstance(written, dict) and OPTIMAL in written)


def search(scenario: AbstractScenario) -> None:
    """Find the optima that a scenario wants, which later solutions share."""
    from theory.control.best_controls import with_best

    with_best([*scenario.cells()], recorded_last(scenario))


def recorded_last(scenario: AbstractScenario) -> float:
    """The last recorded time."""
    return float(scenario.recorded["t"][-1])


def values_along(scenario: AbstractScenario, along: str) -> list[float]:
    """Return the scenario's values of a key; none where they are zipped with others or do not increase."""
    if any(along in group for group in scenario.zipped):
        return []
    key_values = scenario.recorded.get(along, scenario.axis_values().get(along, ()))
    values = list(key_values) if isinstance(key_values, tuple | np.ndarray) else []
    return values if values == sorted(values) else []


def _dense(choice: str, along: str, values: list[float]) -> list[float]:
    """Return the places at which theory is solved at each step of a drag; none where they would delay it."""
    if len(values) < 2:
        return []
    if settings.is_recorded(choice, along):
        return settings.between(
            choice, along, values, settings.FINE if settings.page_of(choice).even else settings.LINE
        )
    if choice in settings.COMPILED:
        # always as many as there can be, for another number would be compiled, which takes seconds
        slider_stops = [] if along in settings.SHARED else settings.stops_of(choice, along)
        stops = [stop for stop in slider_stops if stop > values[-1]]
        return settings.between(choice, along, [*values, *stops], settings.SWEPT)
    return []


def with_all_digits(results: Results) -> Results:
    """Return results with all digits of theory, of which charts have fewer for inputs of many variances."""
    from theory.solutions import solve_each

    laws = points(getattr(results.scenario, "inputs", ()))
    if results.theory is None or not any(law.structured for law in laws):
        return results
    return replace(results, theory=solve_each(results.scenario))


def _solved(scenario: AbstractScenario) -> xr.Dataset:
    """Return the theory of each rule, learner, ... in turn, kept; at any N from that at one."""
    classes = scenario.classes()
    kinds = tuple(classes[name] for name in scenario.chosen())
    config = scenario.config()
    one_size = "N" in series.ignored_in_the_limit(scenario) and isinstance(config.get("N"), int)
    with SOLVING:
        theory = _solved_as(json.dumps({**config, "N": LARGE, "seeds": 1} if one_size else config), kinds)
    return _at(theory, scenario, config["N"]) if one_size else theory


def _at(large: xr.Dataset, scenario: AbstractScenario, N: int) -> xr.Dataset:
    """Return the theory at this N from that at `LARGE`: variances and biases of order 1/N are proportional to 1/N."""
    ratio = LARGE / N
    factors = {STD: ratio**0.5, BIAS: ratio}
    rescaled = {name: large[name] * factor for suffix, factor in factors.items() for name in _ending(large, suffix)}
    theory = large.assign(rescaled).assign_coords(N=N)
    return theory.assign_attrs(config=json.dumps(scenario.config()))


def _ending(dataset: xr.Dataset, suffix: str) -> list[str]:
    return [str(name) for name in dataset.data_vars if str(name).endswith(suffix)]


@lru_cache(maxsize=KEPT)
def _solved_as(config: str, kinds: tuple[type, ...]) -> xr.Dataset:
    """Return the theory of a config with these kinds, which a user may define again under the same names."""
    from theory.solutions import solve_each

    with accurate_enough_for_charts():
        return solve_each(scenario_from(json.loads(config)))
