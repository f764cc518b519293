"""Simulate a scenario of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simulate.execution.work_units import (
    check_can_simulate,
    make_dataset_attributes,
    make_simulator,
    pause_garbage_collection,
    run_units,
)
from statmech.keys.scenario import AbstractScenario
from statmech.runtime.compiled_programs import set_up_compilation_cache
from statmech.runtime.progress_bar import ProgressCallback, report_progress
from statmech.stores.dataset import fill_arrays, get_variable_arrays, make_empty_dataset

if TYPE_CHECKING:
    import xarray as xr


def run(
    scenario: AbstractScenario, progress: ProgressCallback | None = None, before_unit: Callable[[], None] | None = None
) -> xr.Dataset:
    """Simulate a scenario and return a Dataset on (sweep axes, seed, recorded times).

    The variables are R, q, length, eps_g, ... on t and student for a `Scenario`, R, eps_g, kappa, ... on epochs for
    `StoredExamples`, and stages, eps_g, advantage, weights for `Boosting`.
    The same scenario gives the same bits. More seeds, or more values on an axis, leave the existing numbers unchanged.

    Parameters
    ----------
    scenario
        A scenario of any kind.
    progress
        Callback for the numbers of finished and of all units of work.
    before_unit
        Callback before each unit of work, in the unit's thread. An exception that it raises ends the simulation.

    Returns
    -------
    xarray.Dataset
        On (sweep axes, seed, recorded times, student).

    Raises
    ------
    ScenarioError
        If the scenario does not fit into this machine's memory.

    Examples
    --------
    >>> from statmech import Scenario, StoredExamples
    >>> sim = run(Scenario(rule="hebb", K=2, N=100, t=[0, 1], seeds=4))
    >>> dict(sim.R.sizes)
    {'seed': 4, 't': 2, 'student': 2}
    >>> sim = run(StoredExamples(learner=["minover", "max_stability"], N=20, alpha=2, seeds=4))
    >>> bool((sim.kappa[0] <= sim.kappa[1]).all())
    True
    """
    simulator = make_simulator(scenario)
    set_up_compilation_cache()
    check_can_simulate(simulator)
    with pause_garbage_collection():
        cells = list(scenario.cells())
    dataset = make_empty_dataset(
        scenario, seeds=scenario.seeds, title="statmech simulation", **make_dataset_attributes(simulator)
    )
    arrays, units = get_variable_arrays(dataset), list(simulator.prepare_units(cells, range(scenario.seeds)))
    for _, results in report_progress(run_units(simulator, units, before_unit=before_unit), len(units), progress):
        if isinstance(results, Exception):
            raise results
        for result in results:
            fill_arrays(arrays, result.cell_index, result.values, result.seeds)
    return dataset
