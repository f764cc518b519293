"""Computations of an explorer page: theory, and simulations in a background thread.

Theory is solved at the scenario's own values, and on a dense grid along x if this is fast. Simulations and their
compilations run with a low priority, so that theory keeps up with a drag.

A new scenario replaces the scenario that is being simulated, and a few seeds are shown first. A compilation cannot be
stopped, and a drag would queue one compilation for each value that it passes. Scenarios that are superseded while
another scenario is compiled therefore never start.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from figures import curves
from figures.explorer import settings
from statmech.errors import StatmechError
from statmech.inputs.covariance_modes import use_chart_accuracy
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import ensure_tuple
from statmech.keys.variables import BIAS_SUFFIX, STD_SUFFIX
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.parameters.schedules_and_controls import OPTIMAL_KEYWORD
from statmech.results.results import Results

if TYPE_CHECKING:
    import xarray as xr


NUM_PREVIEW_SEEDS = 4  # shown before the remaining seeds have finished


LOW_PRIORITY = 19  # the largest "nice" value: a simulation uses the time that theory leaves


def lower_thread_priority() -> None:
    """Lower the priority of the calling thread and of its future child threads, where the system can do so."""
    if sys.platform == "linux":  # elsewhere priorities belong to processes
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)


class SupersededError(Exception):
    """Exception that stops a simulation when a newer scenario is waiting."""


def describe_exception(problem: BaseException) -> str:
    """Return the text that a page shows for an exception.

    The text is the message alone if the message was written for users, and otherwise the type and the message.

    >>> describe_exception(StatmechError("`rule`: too fast")), describe_exception(ZeroDivisionError("division by zero"))
    ('rule: too fast', 'ZeroDivisionError: division by zero')
    """
    if isinstance(problem, StatmechError | MemoryError) and str(problem):
        return str(problem).replace("`", "")
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


class BackgroundSimulator:
    """Simulator that runs scenarios in a thread.

    The thread calls `report(dataset or None, message)` when results arrive.
    """

    def __init__(self, report: Callable[[xr.Dataset | None, str], None]):
        self.report = report
        self.token = 0
        self.lock, self.search_lock, self.simulation_lock = threading.Lock(), threading.Lock(), threading.Lock()

    def start(self, scenario: AbstractScenario, preview_seeds: int = NUM_PREVIEW_SEEDS) -> None:
        """Start to simulate a scenario, and stop any simulation that is still running.

        The results of the `preview_seeds` seeds are shown before all seeds have finished.
        """
        token = self.stop()
        threading.Thread(target=self._simulate, args=(scenario, token, preview_seeds), daemon=True).start()

    def search_optimum(self, find_optimum: Callable[[], None], on_found: Callable[[], None]) -> None:
        """Run `find_optimum` in a thread, then call `on_found` unless a newer scenario has arrived.

        `find_optimum` takes long. It starts when an older search has ended.
        """
        token = self.stop()
        threading.Thread(target=self._run_search, args=(find_optimum, on_found, token), daemon=True).start()

    def stop(self) -> int:
        """Stop the simulation, and return the token that identifies the next one."""
        with self.lock:
            self.token += 1
            return self.token

    def _run_search(self, find_optimum: Callable[[], None], on_found: Callable[[], None], token: int) -> None:
        lower_thread_priority()
        with self.search_lock:
            if self.token != token:
                return
            try:
                find_optimum()
            except BaseException as problem:
                self.report(None, describe_exception(problem))
                return
        if self.token == token:
            on_found()

    def _simulate(self, scenario: AbstractScenario, token: int, preview_seeds: int = NUM_PREVIEW_SEEDS) -> None:
        lower_thread_priority()
        try:
            with self.simulation_lock:
                for seeds in sorted({min(preview_seeds, scenario.seeds), scenario.seeds}):
                    self._run_seeds(scenario.model_copy(update={"seeds": seeds}), token)
        except SupersededError:
            return
        except BaseException as problem:  # any exception in a rule that a user wrote would be lost in this thread
            if self.token == token:
                self.report(None, describe_exception(problem))

    def _run_seeds(self, scenario: AbstractScenario, token: int) -> None:
        from simulate import run

        def progress(num_done: int, total: int) -> None:
            self._report_if_newest(token, None, f"simulating {seeds}: {num_done / total:.0%}")

        seeds = f"{scenario.seeds:,} seed{'s' * (scenario.seeds > 1)}"
        self._report_if_newest(token, None, f"simulating {seeds}: 0%")
        simulation = run(scenario, progress, partial(self._check_newest, token))
        self._report_if_newest(token, simulation, f"simulated {seeds}")

    def _report_if_newest(self, token: int, simulation: xr.Dataset | None, message: str) -> None:
        self._check_newest(token)
        self.report(simulation, message)

    def _check_newest(self, token: int) -> None:
        """Raise `SupersededError` if a newer scenario has been started."""
        if self.token != token:
            raise SupersededError


FIRST_RUNS_FOLDER = Path(__file__).with_name("first_runs")  # written by tests/first_runs.py
SHIPPED_PACKAGE = "statmech"  # users may define rules, losses, ... of the same names elsewhere


def get_first_runs_path(scenario: AbstractScenario) -> Path:
    """Return the file of the stored first runs of a scenario, which exists for pages that visitors open first."""
    config = json.dumps({**scenario.config(), "seeds": 0}, sort_keys=True)
    return FIRST_RUNS_FOLDER / f"{hashlib.sha256(config.encode()).hexdigest()[:12]}.nc.gz"


def load_first_runs(scenario: AbstractScenario) -> xr.Dataset | None:
    """Return the stored first runs of a scenario, or None."""
    path, classes = get_first_runs_path(scenario), scenario.classes()
    modules = (classes[name].__module__.partition(".")[0] for name in scenario.list_chosen_class_names())
    if not path.exists() or {*modules} - {SHIPPED_PACKAGE}:
        return None
    import xarray as xr

    return xr.load_dataset(io.BytesIO(gzip.decompress(path.read_bytes())), engine="scipy")


def describe_stored_runs(runs: xr.Dataset, num_seeds: int = 0) -> str:
    """Describe stored runs in words, if necessary with the number of seeds of their config.

    >>> import xarray as xr
    >>> describe_stored_runs(xr.Dataset({"m": (("seed", "step"), np.array([[np.nan, 1.0], [np.nan, 0.9]]))}), 10)
    '2 stored seeds of 10 (last step only)'
    """
    has_last_step_only = "step" in runs.dims and any(
        bool(values.isel(step=0).isnull().all()) for values in runs.values() if "step" in values.dims
    )
    seeds = f"{runs.sizes['seed']:,} stored seeds" + (f" of {num_seeds:,}" if num_seeds else "")
    return f"{seeds} (last step only)" if has_last_step_only else seeds


CACHED_SOLUTION_N = 10**6  # above every K: one solution is rescaled to all other N
MAX_CACHED_DATASETS = 32  # a slider can return to earlier values without delay
SOLVER_LOCK = threading.Lock()  # a page waits for the thread that solves its theory in advance


def solve_with_dense_grid(scenario: AbstractScenario, axis: str) -> tuple[xr.Dataset | None, xr.Dataset | None]:
    """Solve theory at the scenario's own values, and on a dense grid along a key.

    The grid is None if it would take too long.
    """
    if scenario.unsolved:
        return None, None
    values = get_key_values(scenario, axis)
    dense = _make_dense_grid(settings.get_page_kind(scenario), axis, values)
    if dense and axis == "t":
        from theory.solutions import find_times_after_jumps  # imported here, as it needs JAX

        times = find_times_after_jumps(scenario)
        dense = np.union1d(dense, times[(times > values[0]) & (times < values[-1])]).tolist()
    averaged = [
        name for name, variable in scenario.variables.items() if variable.is_interval_mean
    ]  # averages over the time between records
    if len(dense) <= len(values):
        return _solve_cached(scenario), None
    try:
        dense_theory = _solve_cached(scenario_from({**scenario.config(), axis: dense}))
    except StatmechError:  # the scenario rejects some stops beyond the end of x
        return _solve_cached(scenario), None
    grid = np.asarray(dense)
    if averaged and axis in scenario.recorded_coordinates:
        return _solve_cached(scenario), dense_theory.drop_vars([name for name in averaged if name in dense_theory])
    theory = dense_theory.isel({axis: np.searchsorted(grid, values)})
    theory = theory.assign_coords({axis: values}).assign_attrs(config=json.dumps(scenario.config()))
    return theory, dense_theory if grid[-1] == values[-1] else dense_theory.isel({axis: grid <= values[-1]})


def break_at_transitions(scenario: AbstractScenario, theory: xr.Dataset | None, axis: str) -> xr.Dataset | None:
    """Break the lines of theory at first-order transitions along a key.

    Returns None if there are no transitions.
    """
    if theory is None or len(get_key_values(scenario, axis)) < 4:
        return None
    from theory.solutions import break_at_declared_transitions  # imported here, as it needs JAX

    lines = break_at_declared_transitions(scenario, theory, axis)
    return None if lines is theory else lines


def has_unknown_optimum(scenario: AbstractScenario) -> bool:
    """Return True if a scenario has an optimum that is still unknown.

    A search takes a minute or more.
    """
    if "control" not in scenario.theory_only_variables:
        return False
    from theory.control.optimal_controls import are_best_controls_cached  # imported here, as it needs JAX

    return not are_best_controls_cached([*scenario.cells()], get_last_recorded_time(scenario))


def remove_optima(scenario: AbstractScenario) -> AbstractScenario:
    """Return a copy of a scenario without optimal values.

    A key that has only optimal values gets its default.

    >>> from statmech import Scenario
    >>> remove_optima(Scenario(rule="hebb", t=1, eta=[0.5, "optimal"])).config()["eta"]
    [0.5]
    """
    config, choice = scenario.config(), settings.get_page_kind(scenario)
    simple = {
        name: settings.get_default_value(choice, name) for name in settings.list_allowed_time_function_keys(scenario)
    }
    simple[settings.PROTOCOL_KEY] = "interleaved" if config.get("switch") is None else "blocked"
    for name in simple.keys() & config.keys():
        values = config[name] if isinstance(config[name], list) else [config[name]]
        other_values = [value for value in values if not _is_optimum(value)]
        if len(other_values) < len(values):
            config[name] = other_values or simple[name]
    return scenario_from(config)


def _is_optimum(config_value: Any) -> bool:
    """Return True if a value in a config is an optimum."""
    return config_value == OPTIMAL_KEYWORD or (isinstance(config_value, dict) and OPTIMAL_KEYWORD in config_value)


def search_optima(scenario: AbstractScenario) -> None:
    """Find the optima of a scenario, and store them for later solutions."""
    from theory.control.optimal_controls import add_best_controls

    add_best_controls([*scenario.cells()], get_last_recorded_time(scenario))


def get_last_recorded_time(scenario: AbstractScenario) -> float:
    """Return the last recorded time of a scenario."""
    return float(scenario.recorded_coordinates["t"][-1])


def get_key_values(scenario: AbstractScenario, axis: str) -> list[float]:
    """Return the values of a key of a scenario.

    The list is empty if the values are zipped with other keys or do not increase.
    """
    if any(axis in group for group in scenario.zipped):
        return []
    key_values = scenario.recorded_coordinates.get(axis, scenario.axis_values().get(axis, ()))
    values = list(key_values) if isinstance(key_values, tuple | np.ndarray) else []
    return values if values == sorted(values) else []


def _make_dense_grid(kind_name: str, axis: str, values: list[float]) -> list[float]:
    """Return the grid for solving theory at each step of a drag.

    The list is empty if the solution would delay the drag.
    """
    if len(values) < 2:
        return []
    if settings.is_recorded_key(kind_name, axis):
        return settings.make_theory_grid(
            kind_name,
            axis,
            values,
            settings.UNIFORM_TIME_LINE_POINTS
            if settings.get_page_settings(kind_name).evenly_spaced
            else settings.RECORDED_LINE_POINTS,
        )
    if kind_name in settings.KINDS_WITH_COMPILED_THEORY:
        # always the largest number of values: any other number takes seconds to compile
        slider_stops = (
            [] if axis in settings.KEYS_SHARING_COMPILED_PROGRAM else settings.get_slider_stops(kind_name, axis)
        )
        stops = [stop for stop in slider_stops if stop > values[-1]]
        return settings.make_theory_grid(kind_name, axis, [*values, *stops], settings.SWEEP_LINE_POINTS)
    return []


def solve_to_full_accuracy(results: Results) -> Results:
    """Solve the theory of results again, to full accuracy.

    Charts use a lower accuracy for inputs with many variances.
    """
    from theory.solutions import solve_each

    all_inputs = ensure_tuple(getattr(results.scenario, "inputs", ()))
    if results.theory is None or not any(inputs.has_unequal_variances for inputs in all_inputs):
        return results
    return replace(results, theory=solve_each(results.scenario))


def _solve_cached(scenario: AbstractScenario) -> xr.Dataset:
    """Return the theory of a scenario, solved or from the cache.

    The solution at one N gives the theory at every N.
    """
    classes = scenario.classes()
    kinds = tuple(classes[name] for name in scenario.list_chosen_class_names())
    config = scenario.config()
    one_size = "N" in curves.get_axes_ignored_by_theory(scenario) and isinstance(config.get("N"), int)
    with SOLVER_LOCK:
        theory = _solve_config(
            json.dumps({**config, "N": CACHED_SOLUTION_N, "seeds": 1} if one_size else config), kinds
        )
    return _rescale_to_size(theory, scenario, config["N"]) if one_size else theory


def _rescale_to_size(theory_at_large_size: xr.Dataset, scenario: AbstractScenario, N: int) -> xr.Dataset:
    """Rescale theory from `CACHED_SOLUTION_N` to another N.

    Variances and biases of order 1/N are proportional to 1/N.
    """
    ratio = CACHED_SOLUTION_N / N
    factors = {STD_SUFFIX: ratio**0.5, BIAS_SUFFIX: ratio}
    rescaled = {
        name: theory_at_large_size[name] * factor
        for suffix, factor in factors.items()
        for name in _list_variables_with_suffix(theory_at_large_size, suffix)
    }
    theory = theory_at_large_size.assign(rescaled).assign_coords(N=N)
    return theory.assign_attrs(config=json.dumps(scenario.config()))


def _list_variables_with_suffix(dataset: xr.Dataset, suffix: str) -> list[str]:
    return [str(name) for name in dataset.data_vars if str(name).endswith(suffix)]


@lru_cache(maxsize=MAX_CACHED_DATASETS)
def _solve_config(config: str, kinds: tuple[type, ...]) -> xr.Dataset:
    """Solve the theory of a config.

    `kinds` is part of the cache key, as a user may define a class again under the same name.
    """
    from theory.solutions import solve_each

    with use_chart_accuracy():
        return solve_each(scenario_from(json.loads(config)))
