"""Simulation of online learning, with batches of seeds distributed over all cores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import ModuleType

import numpy as np

from simulate.execution.work_units import UnitResult
from simulate.kinds.seed_batches import (
    BatchSimulator,
    BatchUnit,
    check_float32_precision,
    check_student_lengths,
    is_defined_by_statmech,
)
from simulate.online import gram_engine, grouped_gram_engine, perceptrons, weight_vector_engine
from simulate.online.learning_steps import EngineTask
from statmech.keys.time_dependent_keys import count_steps
from statmech.keys.variables import LOCAL_FIELD_DESCRIPTIONS
from statmech.kinds.online_learning import OnlineCell
from statmech.kinds.online_perceptron import Scenario
from statmech.parameters.parameter_fields import get_real_parameter_family
from statmech.students.ensemble_vote import (
    MAX_EXACT_STUDENTS,
    NUM_TEST_CIRCLES,
    choose_test_circle_count,
    draw_random_circles,
    few_student_vote_error,
    measure_near_equal_vote_error,
)
from statmech.students.student_geometry import (
    compute_ensemble_order_parameters,
    compute_student_order_parameters,
    make_gram_matrix,
)

VOTE_FIELDS_PER_BLOCK = 2**17  # with smaller blocks, threads mostly wait for the interpreter lock


class Simulator(BatchSimulator[OnlineCell]):
    """Simulator of online learning, with batches of seeds on the requested engine if it is exact."""

    source = "weight vectors or order parameters on line"
    float32_limited_rates = ("decay", "drift")
    scenario: Scenario

    def describe_task(self, cell: OnlineCell, other_cells: Sequence[OnlineCell] = ()) -> EngineTask:
        """Describe the perceptrons of a cell, and of other cells with the same program, to the engine."""
        return perceptrons.make_perceptron_task(cell, self.scenario.dtype, other_cells)

    def count_students(self, cell: OnlineCell) -> int:
        """Return the number of vectors simulated for a cell: students, and the averages of their weights."""
        return cell.K * (2 if cell.average else 1)

    def choose_engine(self, cell: OnlineCell) -> ModuleType:
        """Return the engine of perceptrons: the requested engine, or an engine that is exact for their inputs."""
        requested = super().choose_engine(cell)
        if gram_engine.supports_inputs(cell.inputs) or requested is weight_vector_engine:
            return requested
        return grouped_gram_engine if cell.num_gram_variance_groups else weight_vector_engine

    def get_remarks_before_run(self) -> list[str]:
        """Return a remark if perceptrons do not run on the requested engine."""
        if self.scenario.engine == "vectors" or all(
            self.choose_engine(cell) is not weight_vector_engine for cell in self._iterate_representative_cells()
        ):
            return []
        return ["inputs other than gaussian run on the direct engine (engine: vectors)"]

    def get_program_key(self, cell: OnlineCell) -> Hashable:
        """Return the rule's family, the sizes and the quantities that change with time, which perceptrons share.

        The key is None for a schedule (its rates round differently in wide programs), for functions of time, for a
        user's rule, and for students that are averaged or learn their own examples: such cells are simulated alone.
        """
        special = cell.schedule is not None or cell.controls or cell.average or cell.resample is not None
        if special or not is_defined_by_statmech(cell.rule):
            return None
        return (
            get_real_parameter_family(cell.rule),
            cell.K,
            cell.N,
            cell.drift > 0,
            bool(cell.nondefault_time_dependence),
        )

    def has_same_bits_when_wide(self, cell: OnlineCell) -> bool:
        """Return True for one or two students with constant rates, in float64."""
        return cell.K <= 2 and not cell.nondefault_time_dependence and self.scenario.dtype == "float64"

    def run(self, unit: BatchUnit[OnlineCell]) -> list[UnitResult]:
        """Simulate perceptrons for a batch of seeds, and return the variables of each cell."""
        scenario, record = self.scenario, self.run_engine(unit)
        parallel, perpendicular = record.parallel[..., 0], record.perpendicular
        averages = {}
        if scenario.average:
            averages = _compute_averaged_variables(scenario, unit, parallel, perpendicular)
            K = unit.cells[0].K
            parallel, perpendicular = parallel[..., :K], perpendicular[..., :K, :K]
        check_student_lengths(scenario, unit, parallel, perpendicular)
        if self.choose_engine(unit.cells[0]) is not weight_vector_engine and scenario.dtype == "float32":
            for cell, *parts in zip(unit.cells, parallel, perpendicular, strict=True):
                check_float32_precision(scenario, cell, *parts)
        values = compute_ensemble_order_parameters(parallel, perpendicular)
        if record.measured is not None:
            *students, vote, mean = np.moveaxis(record.measured, -1, 0)
            values |= {"eps_g": np.stack(students, axis=-1), "eps_g_majority_vote": vote, "eps_g_weight_mean": mean}
        elif record.parallel_fields is not None and record.perpendicular_fields is not None:
            values |= _compute_field_variables(
                scenario, unit, record.parallel_fields[..., 0], record.perpendicular_fields
            )
        else:
            values["eps_g_majority_vote"] = _compute_vote_errors(scenario, unit, parallel, perpendicular)
            if "R_field" in scenario.variables:  # for isotropic inputs, fields and weights have the same cosines
                values |= {name: values[name.removesuffix("_field")] for name in LOCAL_FIELD_DESCRIPTIONS}
        if scenario.gram:
            values["gram"] = make_gram_matrix(parallel, perpendicular)
        return unit.make_results(values | averages)


def _compute_averaged_variables(
    scenario: Scenario, unit: BatchUnit[OnlineCell], parallel: np.ndarray, perpendicular: np.ndarray
) -> dict[str, np.ndarray]:
    """Compute R, length and error of perceptrons' averaged weights, which follow the students in the engine's record.

    Until the first averaged step, the averages are the students themselves.
    """
    [cell] = unit.cells
    number = count_steps(scenario.t, cell.N) - perceptrons.count_steps_before_averaging(cell)
    averaged = (number > 0)[:, None]
    sizes = np.sqrt(np.diagonal(perpendicular, axis1=-2, axis2=-1))
    parts = (
        np.where(averaged, part[..., cell.K :] * cell.N / np.maximum(number, 1)[:, None], part[..., : cell.K])
        for part in (parallel, sizes)
    )
    return {f"{name}_averaged": value for name, value in compute_student_order_parameters(*parts).items()}


def _compute_field_variables(
    scenario: Scenario, unit: BatchUnit[OnlineCell], parallel: np.ndarray, perpendicular: np.ndarray
) -> dict[str, np.ndarray]:
    """Compute errors and order parameters of perceptrons from the parallel and perpendicular parts of fields."""
    values = compute_ensemble_order_parameters(parallel, perpendicular)
    field_values = {name: values.pop(name.removesuffix("_field")) for name in LOCAL_FIELD_DESCRIPTIONS}
    return (
        field_values | values | {"eps_g_majority_vote": _compute_vote_errors(scenario, unit, parallel, perpendicular)}
    )


def _compute_vote_errors(
    scenario: Scenario, unit: BatchUnit[OnlineCell], parallel: np.ndarray, perpendicular: np.ndarray
) -> np.ndarray:
    """Return the errors of the perceptrons' majority vote (cells, seeds, T), exact or measured on random circles."""
    if unit.cells[0].K <= MAX_EXACT_STUDENTS:
        return few_student_vote_error(parallel, perpendicular)
    cells = zip(unit.cells, parallel, perpendicular, strict=True)
    return np.stack([_measure_vote_errors_on_circles(scenario, cell, unit.seeds, *parts) for cell, *parts in cells])


def _measure_vote_errors_on_circles(
    scenario: Scenario, cell: OnlineCell, seeds: slice, parallel: np.ndarray, perpendicular: np.ndarray
) -> np.ndarray:
    """Measure the vote errors of a cell's perceptrons on random circles for each seed.

    The number of circles is small if students stay similar.
    """
    points = choose_test_circle_count(cell.K, cell.N) if cell.has_equal_starts else NUM_TEST_CIRCLES
    errors = []
    block_seeds = max(1, VOTE_FIELDS_PER_BLOCK // (parallel[0].size * points))
    for first in range(0, len(parallel), block_seeds):
        block = slice(first, first + block_seeds)
        rngs = [
            np.random.default_rng([scenario.key, *cell.identity_hash(), seed])
            for seed in range(seeds.start, seeds.stop)[block]
        ]
        inputs = np.stack([draw_random_circles(rng, points, cell.K) for rng in rngs], axis=1)
        errors.append(measure_near_equal_vote_error(parallel[block], perpendicular[block], inputs[:, :, None]))
    return np.concatenate(errors)
