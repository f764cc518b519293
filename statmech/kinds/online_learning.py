"""The base class of perceptrons and networks that learn online, in steps of 1/N."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from statmech.errors import Problem
from statmech.inputs.input_distributions import Gaussian, Inputs
from statmech.keys.controlled_keys import (
    OPTIMUM_VARIABLES,
    find_late_control_changes,
    find_objective_problems,
    find_optimal_keys,
    make_optimum_coordinates,
)
from statmech.keys.key_types import Times, config_key
from statmech.keys.learning_rates import find_excessive_rates, find_step_count_problems
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import ensure_tuple
from statmech.keys.variables import Variable
from statmech.parameters.schedules_and_controls import OptimalControlOptions, is_time_dependent

BATCH_OVERHEAD_SECONDS = 3e-3  # overhead of one batch of seeds
MAX_GRAM_VECTORS = 16  # weight vectors are faster for more students and teachers
MIN_DIRECTIONS_PER_ORDER_PARAMETER = 10  # weight vectors are faster for fewer directions

RecordedTimes = Annotated[
    Times,
    config_key(description="times at which order parameters are recorded, increasing", symbol="$t$", unit="steps / N"),
]
SimulationDtype = Annotated[Literal["float64", "float32"], Field(description="precision of the simulation")]
SimulationEngine = Annotated[
    Literal["gram", "vectors"],
    Field(description="engine of the simulation: gram (the order parameters, in their exact distribution) or vectors"),
]


class OnlineLearning(AbstractScenario):
    """Base class of perceptrons and networks that learn online.

    Subclasses add the learning algorithm, the source of its examples, and the times t.
    """

    seeds_per_batch: ClassVar = 64  # a multiple of the batch size of every engine
    SIMULATION_ONLY_KEYS: ClassVar = ("dtype", "engine")

    if TYPE_CHECKING:
        t: Any  # subclasses define this key

    @property
    def optimal_keys(self) -> dict[str, list[OptimalControlOptions]]:
        """Options for each key to be optimised."""
        return find_optimal_keys(self)

    @property
    def time_dependent_keys(self) -> list[str]:
        """Names of the keys that are functions of time."""
        return [name for name, value in self.axis_values().items() if any(map(is_time_dependent, ensure_tuple(value)))]

    def _find_step_problems(self) -> Iterator[Problem]:
        """Find too many steps, and the first rate of drift or decay that exceeds N."""
        yield from find_step_count_problems(self.t[-1], max(ensure_tuple(self.N)))
        for name in ("drift", "decay"):
            for rate, N in self.list_value_pairs(name, "N") if name in self.axis_values() else ():
                if problem := next(find_excessive_rates(name, rate, N), None):
                    yield problem
                    return

    def _find_time_function_problems(self) -> Iterator[Problem]:
        """Find functions of time that are not supported, and unsupported objectives of optimal keys."""
        yield from find_late_control_changes(self.axis_values(), self.t[-1])
        yield from find_objective_problems(self.optimal_keys, getattr(self, "tasks", 1))
        distributions = ensure_tuple(self.axis_values().get("inputs", Gaussian()))
        if self.time_dependent_keys and not all(inputs.has_isotropic_normal_fields for inputs in distributions):
            yield (self.time_dependent_keys[0],), "changes with time for gaussian inputs of equal variance only"

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        return OPTIMUM_VARIABLES if self.optimal_keys else {}

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of times and, for optimal keys, of controls and searches."""
        return {"t": np.asarray(self.t)} | make_optimum_coordinates(self.optimal_keys)

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for the steps of all cells on one core."""
        return self.t[-1] * sum(cell.N * self._estimate_step_seconds(cell) for cell in self.cells())

    def _estimate_step_seconds(self, cell: Any) -> float:
        """Estimate the seconds per step and seed."""
        raise NotImplementedError

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of the engine."""
        return {self._make_program_key(cell) for cell in self.cells()}

    def _make_program_key(self, cell: Any) -> tuple[Any, ...]:
        """Return the values that determine the compiled program of a cell."""
        raise NotImplementedError


def count_gram_variance_groups(inputs: Inputs, num_vectors: int, N: int) -> int:
    """Return the number of variance groups for online learning in the Gram engine, or 0 if weight vectors are faster.

    >>> from statmech.inputs.input_distributions import Spectrum
    >>> [count_gram_variance_groups(Spectrum((0.5, 1.5)), num_vectors=4, N=N) for N in (60, 100)]
    [0, 2]
    """
    number = inputs.num_variance_groups
    return (
        number
        if num_vectors <= MAX_GRAM_VECTORS and MIN_DIRECTIONS_PER_ORDER_PARAMETER * number * num_vectors <= N
        else 0
    )
