"""Simulation of online learning: every cell, seeds in batches, batches on all cores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from simulate.execution.units import UnitResult
from simulate.kernels import gram, gram_of_groups, perceptrons, vectors
from simulate.kernels.learner import Task
from simulate.scenarios.batches import Batches, Unit, own_to_statmech
from statmech.errors import DivergedError, ScenarioError
from statmech.parameters import family_of
from statmech.results.dataset import describe, gram_of
from statmech.scenarios.online import OnlineCell, Scenario
from statmech.scenarios.variables import FIELD
from statmech.votes.few_students import FEW, vote_of_few
from statmech.votes.majority_vote import (
    TEST_CIRCLES,
    circles,
    circles_beside_equal_students,
    vote_beside_equal_students,
)

LONGEST = {"float64": 1e150, "float32": 1e15}  # also bounds 1/length: squares, and sums or divisions by N, stay exact
VOTE_CHUNK = 2**17  # enough that threads compute for longer than they wait for the interpreter


class Simulator(Batches[OnlineCell]):
    """Online learning: seeds in batches, by the requested engine if it is exact."""

    source = "weight vectors or order parameters on line"
    slow = ("decay", "drift")
    scenario: Scenario

    def task(self, cell: OnlineCell, others: Sequence[OnlineCell] = ()) -> Task:
        """Describe the perceptrons of a cell and of others with the same program to the engine."""
        return perceptrons.task(cell, self.scenario.dtype, others)

    def engine(self, cell: OnlineCell) -> ModuleType:
        """Return the requested engine, the engine of groups, or the direct engine if the Gram engine is not exact."""
        requested = super().engine(cell)
        if gram.covers(cell.inputs) or requested is vectors:
            return requested
        return gram_of_groups if cell.groups else vectors

    def remarks(self) -> list[str]:
        """Return a note if another engine is used than requested."""
        if self.scenario.engine == "vectors" or all(self.engine(cell) is not vectors for cell in self._sizes()):
            return []
        return ["inputs other than gaussian run on the direct engine (engine: vectors)"]

    def program(self, cell: OnlineCell) -> Hashable:
        """Return the rule's family, the sizes and the quantities that change with time.

        None with a schedule, whose rates round differently in wide programs, with functions of time, or for a user's
        rule: such cells are simulated alone.
        """
        if not own_to_statmech(cell.rule) or cell.schedule is not None or cell.controls:
            return None
        return family_of(cell.rule), cell.K, cell.N, cell.drift > 0, bool(cell.changes)

    def has_bits_of_wide(self, cell: OnlineCell) -> bool:
        """Return True for one or two students with constant rates, in float64."""
        return cell.K <= 2 and not cell.changes and self.scenario.dtype == "float64"

    def run(self, unit: Unit[OnlineCell]) -> list[UnitResult]:
        """Simulate the variables of each cell for a batch of seeds."""
        scenario, record = self.scenario, self.record(unit)
        parallel, perpendicular = record.along[..., 0], record.across
        check_lengths(scenario, unit, parallel, perpendicular)
        if self.engine(unit.cells[0]) is not vectors and scenario.dtype == "float32":
            for cell, *parts in zip(unit.cells, parallel, perpendicular, strict=True):
                check_precision(scenario, cell, *parts)
        values = describe(parallel, perpendicular)
        if record.measured is not None:
            *students, vote, mean = np.moveaxis(record.measured, -1, 0)
            values |= {"eps_g": np.stack(students, axis=-1), "eps_g_majority_vote": vote, "eps_g_weight_mean": mean}
        elif record.along_field is not None and record.across_field is not None:
            values |= _of_fields(scenario, unit, record.along_field[..., 0], record.across_field)
        else:
            values["eps_g_majority_vote"] = _votes(scenario, unit, parallel, perpendicular)
            if "R_field" in scenario.variables:  # for isotropic inputs, fields and weights have the same cosines
                values |= {name: values[name.removesuffix("_field")] for name in FIELD}
        if scenario.gram:
            values["gram"] = gram_of(parallel, perpendicular)
        return unit.results(values)


def _of_fields(
    scenario: Scenario, unit: Unit[OnlineCell], along: np.ndarray, across: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the errors and the order parameters of fields, from the fields' parallel and perpendicular parts."""
    values = describe(along, across)
    field_values = {name: values.pop(name.removesuffix("_field")) for name in FIELD}
    return field_values | values | {"eps_g_majority_vote": _votes(scenario, unit, along, across)}


def check_lengths(scenario: Any, unit: Unit[Any], along: np.ndarray, across: np.ndarray) -> None:
    """Raise `DivergedError` for students (cells, seeds, T, K) outside the range of exact lengths, or NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.hypot(along, np.sqrt(np.diagonal(across, axis1=-2, axis2=-1)))
    longest = LONGEST[scenario.dtype]
    exact = np.all((1 / longest < length) & (length < longest), axis=(1, 2, 3))
    if not exact.all():
        left = f"a student's length left {1 / longest:g} to {longest:g}, where {scenario.dtype} is exact"
        raise DivergedError(f"{unit.cells[int(np.argmin(exact))].described} has diverged: {left}")


def check_precision(scenario: Any, cell: OnlineCell, along: np.ndarray, across: np.ndarray) -> None:
    """Raise `ScenarioError` if the Gram engine's float32 rounding is not small compared with one example's update."""
    if scenario.t[-1] * cell.N < 0.5:
        return
    length = np.sqrt(np.max(along**2 + np.diagonal(across, axis1=-2, axis2=-1)))
    if length * cell.N > gram.STEP * cell.rule_at(scenario.t[-1]).eta:
        small = f"the update by one example at N = {cell.N:g} for a student of length {length:.3g}"
        raise ScenarioError([(("dtype",), f"float32 does not resolve {small} ({cell.described}); use float64")])


def _votes(scenario: Scenario, unit: Unit[OnlineCell], along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """Return the errors of the majority vote (cells, seeds, T): exact, or measured on circles that each seed draws."""
    if unit.cells[0].K <= FEW:
        return vote_of_few(along, across)
    cells = zip(unit.cells, along, across, strict=True)
    return np.stack([_measured_votes(scenario, cell, unit.seeds, *parts) for cell, *parts in cells])


def _measured_votes(
    scenario: Scenario, cell: OnlineCell, seeds: slice, along: np.ndarray, across: np.ndarray
) -> np.ndarray:
    """Measure the vote errors of a cell's seeds on random circles."""
    points, errors = _circles(cell), []
    block_seeds = max(1, VOTE_CHUNK // (along[0].size * points))
    for first in range(0, len(along), block_seeds):
        block = slice(first, first + block_seeds)
        rngs = [
            np.random.default_rng([scenario.key, *cell.words(), seed]) for seed in range(seeds.start, seeds.stop)[block]
        ]
        inputs = np.stack([circles(rng, points, cell.K) for rng in rngs], axis=1)
        errors.append(vote_beside_equal_students(along[block], across[block], inputs[:, :, None]))
    return np.concatenate(errors)


def _circles(cell: OnlineCell) -> int:
    """Return the number of circles per seed, which is small where students stay nearly equal."""
    return circles_beside_equal_students(cell.K, cell.N) if cell.alike else TEST_CIRCLES
