"""Simulates online learning: every cell, seeds in batches, batches on all cores."""

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

LONGEST = {"float64": 1e150, "float32": 1e15}  # and the inverse: their squares, over N or N of them, keep all digits
VOTE_CHUNK = 2**17  # fields integrated together: enough that threads compute more than they wait for the interpreter


class Simulator(Batches[OnlineCell]):
    """Online learning: seeds in batches, by the engine that is asked for where that is exact."""

    source = "weight vectors or order parameters on line"
    slow = ("decay", "drift")
    scenario: Scenario

    def task(self, cell: OnlineCell, others: Sequence[OnlineCell] = ()) -> Task:
        """The perceptrons of a cell, and of others."""
        return perceptrons.task(cell, self.scenario.dtype, others)

    def engine(self, cell: OnlineCell) -> ModuleType:
        """The engine asked for, that of groups, or the direct one where the Gram engine is not exact."""
        asked = super().engine(cell)
        if gram.covers(cell.inputs) or asked is vectors:
            return asked
        return gram_of_groups if cell.groups else vectors

    def remarks(self) -> list[str]:
        """Note if another engine is used than was requested."""
        if self.scenario.engine == "vectors" or all(self.engine(cell) is not vectors for cell in self._sizes()):
            return []
        return ["inputs other than gaussian run on the direct engine (engine: vectors)"]

    def program(self, cell: OnlineCell) -> Hashable:
        """The rule's family, sizes and what changes; None with a schedule, whose rates round otherwise in lanes, and
        with functions of time."""
        if not own_to_statmech(cell.rule) or cell.schedule is not None or cell.controls:
            return None
        return family_of(cell.rule), cell.K, cell.N, cell.drift > 0, bool(cell.changes)

    def has_bits_of_wide(self, cell: OnlineCell) -> bool:
        """True for one or two students whose rates do not change, in float64."""
        return cell.K <= 2 and not cell.changes and self.scenario.dtype == "float64"

    def run(self, unit: Unit[OnlineCell]) -> list[UnitResult]:
        """The variables of a batch of seeds of each cell."""
        scenario, record = self.scenario, self.record(unit)
        along, across = record.along[..., 0], record.across
        check_lengths(scenario, unit, along, across)
        if self.engine(unit.cells[0]) is not vectors and scenario.dtype == "float32":
            for cell, *parts in zip(unit.cells, along, across, strict=True):
                check_precision(scenario, cell, *parts)
        values = describe(along, across)
        if record.measured is not None:
            *students, vote, mean = np.moveaxis(record.measured, -1, 0)
            values |= {"eps_g": np.stack(students, axis=-1), "eps_g_majority_vote": vote, "eps_g_weight_mean": mean}
        elif record.along_field is not None and record.across_field is not None:
            values |= _of_fields(scenario, unit, record.along_field[..., 0], record.across_field)
        else:
            values["eps_g_majority_vote"] = _votes(scenario, unit, along, across)
            if "R_field" in scenario.variables:  # where inputs are isotropic fields have the cosines of weights
                values |= {name: values[name.removesuffix("_field")] for name in FIELD}
        if scenario.gram:
            values["gram"] = gram_of(along, across)
        return unit.results(values)


def _of_fields(
    scenario: Scenario, unit: Unit[OnlineCell], along: np.ndarray, across: np.ndarray
) -> dict[str, np.ndarray]:
    """The errors, and the order parameters of fields, from the fields' parts along and across the teacher's."""
    values = describe(along, across)
    found = {name: values.pop(name.removesuffix("_field")) for name in FIELD}
    return found | values | {"eps_g_majority_vote": _votes(scenario, unit, along, across)}


def check_lengths(scenario: Any, unit: Unit[Any], along: np.ndarray, across: np.ndarray) -> None:
    """Refuse students (cells, seeds, T, K) too long or short for their numbers to be right; NaN is neither."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.hypot(along, np.sqrt(np.diagonal(across, axis1=-2, axis2=-1)))
    longest = LONGEST[scenario.dtype]
    exact = np.all((1 / longest < length) & (length < longest), axis=(1, 2, 3))
    if not exact.all():
        left = f"a student's length left {1 / longest:g} to {longest:g}, where {scenario.dtype} is exact"
        raise DivergedError(f"{unit.cells[int(np.argmin(exact))].described} has diverged: {left}")


def check_precision(scenario: Any, cell: OnlineCell, along: np.ndarray, across: np.ndarray) -> None:
    """Refuse float32 where the Gram engine's rounding is not small beside what one example of N t teaches."""
    if scenario.t[-1] * cell.N < 0.5:
        return
    length = np.sqrt(np.max(along**2 + np.diagonal(across, axis1=-2, axis2=-1)))
    if length * cell.N > gram.STEP * cell.rule_at(scenario.t[-1]).eta:
        small = f"the update by one example at N = {cell.N:g} for a student of length {length:.3g}"
        raise ScenarioError([(("dtype",), f"float32 does not resolve {small} ({cell.described}); use float64")])


def _votes(scenario: Scenario, unit: Unit[OnlineCell], along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """The error of the majority vote, shape (cells, seeds, T): exact, or measured on circles that each seed draws."""
    if unit.cells[0].K <= FEW:
        return vote_of_few(along, across)
    each = zip(unit.cells, along, across, strict=True)
    return np.stack([_measured_votes(scenario, cell, unit.seeds, *parts) for cell, *parts in each])


def _measured_votes(
    scenario: Scenario, cell: OnlineCell, seeds: slice, along: np.ndarray, across: np.ndarray
) -> np.ndarray:
    """The measured error of a cell's seeds."""
    points, errors = _circles(cell), []
    together = max(1, VOTE_CHUNK // (along[0].size * points))
    for first in range(0, len(along), together):
        some = slice(first, first + together)
        rngs = [
            np.random.default_rng([scenario.key, *cell.words(), seed]) for seed in range(seeds.start, seeds.stop)[some]
        ]
        inputs = np.stack([circles(rng, points, cell.K) for rng in rngs], axis=1)
        errors.append(vote_beside_equal_students(along[some], across[some], inputs[:, :, None]))
    return np.concatenate(errors)


def _circles(cell: OnlineCell) -> int:
    """Circles for each seed: few where students stay nearly equal."""
    return circles_beside_equal_students(cell.K, cell.N) if cell.alike else TEST_CIRCLES
