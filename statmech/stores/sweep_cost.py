"""Size and cost of a sweep, estimated before it runs: its cells, bytes, programs and seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from statmech.errors import ScenarioError
from statmech.keys.scenario import AbstractScenario
from statmech.runtime.operating_system import get_total_memory

REFERENCE_MACHINE_CORES = 2  # cores of the machine that measured all times (benchmarks/README.md)
# seconds of CPU time on an Intel Xeon, 22 November 2026: five runs of `statmech run ensemble rule=perceptron K=3 t=5
# seeds=8` minus its two programs (2.6 to 2.7 s in total), and first calls of the Gram engine (`peers.py programs`)
PROGRAM_START_SECONDS, COMPILE_SECONDS, PROGRAM_LOAD_SECONDS = 2.5, 1.9, 0.08
MEMORY_BYTES_PER_CELL = 800  # memory per parameter combination, including its runs
MAX_CELLS_PER_COST_ESTIMATE = 1000  # larger sweeps are thinned before the estimate


class SweepCost(NamedTuple):
    """The estimated cost of a sweep: grid points, independent runs, bytes of the dataset, and seconds.

    `programs` is the number of programs to be compiled or loaded from the cache.
    """

    cells: int
    runs: int
    dataset_bytes: int
    seconds: float
    programs: int


def estimate_cost(scenario: AbstractScenario) -> SweepCost:
    """Estimate the cost of simulating a scenario.

    >>> from statmech import Scenario
    >>> estimate_cost(Scenario(rule=["hebb", "adatron"], K=2, N=1000, t=[1.0], seeds=10)).runs
    20
    """
    cells = math.prod(scenario.shape.values())
    sizes = {name: len(values) for name, values in scenario.recorded_coordinates.items()}
    values = sum(math.prod(sizes[dim] for dim in variable.dims) for variable in scenario.variables.values())
    runs = cells * scenario.seeds
    sample = thin_scenario(scenario)
    fraction = math.prod(sample.shape.values()) / cells
    seconds = sample.estimate_seconds_per_seed() * scenario.seeds / count_scenario_cores(scenario) / fraction
    return SweepCost(cells, runs, 8 * values * runs, seconds, len(sample.list_compiled_programs()))


def check_cell_memory(scenario: AbstractScenario) -> None:
    """Raise `ScenarioError` if the parameter combinations exceed the memory of this machine."""
    number, available = math.prod(scenario.shape.values()), get_total_memory()
    if MEMORY_BYTES_PER_CELL * number > available:
        required = MEMORY_BYTES_PER_CELL * number
        sizes = f"require {required / 2**30:,.0f} GiB, and this machine has {available / 2**30:,.0f} GiB"
        raise ScenarioError([((), f"{number:,} parameter combinations {sizes}: use fewer values on the axes")])


def count_scenario_cores(scenario: AbstractScenario) -> int:
    """Return the number of cores in use by a simulation on a machine with `REFERENCE_MACHINE_CORES` cores."""
    return min(REFERENCE_MACHINE_CORES, scenario.workers or REFERENCE_MACHINE_CORES)


def thin_scenario(scenario: AbstractScenario) -> Any:
    """Thin a scenario for its estimate to about `MAX_CELLS_PER_COST_ESTIMATE` cells, every n-th value of long axes.

    The smallest and largest number of each axis are always kept, because costs are monotonic in each key.

    >>> from statmech import Scenario
    >>> large = Scenario(rule="hebb", t=1, eta={"linspace": [0.1, 1, 1000]}, flip={"linspace": [0, 0.5, 1000]})
    >>> some = thin_scenario(large)
    >>> some.shape
    {'eta': 32, 'flip': 33}
    """
    axes, shape = scenario.dimensions, scenario.shape
    stride = {name: 1 for name in shape}
    while math.prod(-(-n // stride[name]) for name, n in shape.items()) > MAX_CELLS_PER_COST_ESTIMATE:
        longest = max(shape, key=lambda name: shape[name] / stride[name])
        stride[longest] += 1
    thinned_values: dict[str, Any] = {}
    for axis, coordinates in axes.items():
        indices = sorted({*range(0, shape[axis], stride[axis]), *_find_extreme_indices(coordinates)})
        thinned_values |= {name: tuple(values[i] for i in indices) for name, values in coordinates.items()}
    parameters = {name: thinned_values.pop(name, value) for name, value in scenario.parameters.items()}
    return scenario.model_copy(update={**thinned_values, "parameters": parameters})


def _find_extreme_indices(coordinates: dict[str, tuple[Any, ...]]) -> Iterator[int]:
    """Yield the positions of the smallest and largest number of each key on an axis."""
    for values in coordinates.values():
        if all(isinstance(value, int | float) for value in values):
            yield from (values.index(min(values)), values.index(max(values)))
