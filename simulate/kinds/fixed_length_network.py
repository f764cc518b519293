"""Simulation of one unit on the sphere, until its cosine with the teacher passes a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from simulate.execution import work_units
from simulate.execution.work_units import XLA_BYTES, XLA_PROGRAM_BYTES, UnitResult, check_run_memory
from simulate.online.fixed_length_engine import (
    BATCH_WIDTH,
    CHAIN_NAME,
    VECTOR_BLOCK_STEPS,
    VECTOR_NAME,
    simulate_runs,
)
from statmech.errors import DivergedStudentError, ScenarioError
from statmech.keys.sweep_grid import hash_identity
from statmech.keys.time_dependent_keys import MAX_STEPS, count_steps
from statmech.kinds.fixed_length_network import BEST_RATE_KEYWORD, FixedLengthCell, FixedLengthNetwork
from statmech.numerics.random_numbers import fold_in_key_data, make_key_data
from statmech.runtime.jax_and_blas_settings import use_next_device
from statmech.runtime.operating_system import record_jax_use
from statmech.stores.sweep_cost import estimate_cost
from theory.networks.hitting_times import get_cell_best_rate, get_predicted_time

MAX_EXPECTED_STEPS = 1e12  # a run takes more than a day
MAX_UNPREDICTED_STEPS = 10**9  # for runs without theory
TAIL_STDS = 60.0  # a run is later than the mean plus this number of standard deviations with probability below 1e-20
LABEL_REUSE_REMARK = (
    "a trial step on the same example gains nothing for labels: every function of a label is affine in it, so that the "
    "information exponent cannot fall below that of the label"
)


class FixedLengthUnit(NamedTuple):
    """Work unit: a cell, the number of a batch of runs, and the requested seeds."""

    cell: FixedLengthCell
    batch_index: int
    seeds: slice


class Simulator(work_units.Simulator):
    """Simulator of one unit on the sphere, with batches of runs that take turns."""

    source = "one unit of fixed length on line"
    scenario: FixedLengthNetwork

    def units(self, cells: Sequence[Any], seeds: range) -> Iterator[FixedLengthUnit]:
        """Yield a unit of work for each cell and batch of seeds."""
        size = self.scenario.seeds_per_batch
        for cell in cells:
            for first in range(seeds.start, seeds.stop, size):
                yield FixedLengthUnit(cell, first // size, slice(first, min(first + size, seeds.stop)))

    def insert_best_controls(self, cells: Sequence[Any]) -> Sequence[Any]:
        """Return the cells with numbers instead of `eta: best`, from theory."""
        return [insert_best_rate(cell) for cell in cells]

    def run(self, unit: FixedLengthUnit) -> list[UnitResult]:
        """Simulate the runs of a batch up to the last requested seed, and return the variables of the cell."""
        record_jax_use()
        cell, scenario = unit.cell, self.scenario
        first = unit.batch_index * scenario.seeds_per_batch
        key = make_key_data(scenario.key)
        for number in (*hash_identity(cell.identity), unit.batch_index):
            key = fold_in_key_data(key, number)
        steps = np.zeros(0, np.int64) if scenario.t is None else count_steps(scenario.t, cell.N)
        max_steps = count_max_steps(cell)
        with use_next_device(gpu=False):
            passed, R = simulate_runs(
                cell.task,
                eta=cell.rate,
                N=cell.N,
                target=cell.target,
                is_even=cell.task.is_even,
                num_runs=unit.seeds.stop - first,
                key=key,
                recorded_steps=steps,
                max_steps=max_steps,
                uses_vectors=scenario.engine == "vectors",
            )
        requested = slice(unit.seeds.start - first, None)
        values = {}
        if cell.target is not None:
            values["t_until"] = passed[requested] / cell.N
            if cut := int(np.sum(passed < 0)):
                reason = (
                    f"{cut} of {len(passed)} runs have not passed R = {cell.target:g} at t = {max_steps / cell.N:.3g}"
                )
                raise DivergedStudentError(f"{cell.message_description}: {reason}, and a mean without them is biased")
        if scenario.t is not None:
            values |= {
                "R": R[requested],
                "eps_g": cell.task.compute_error(R[requested].ravel()).reshape(-1, len(steps)),
            }
        return [UnitResult(cell.index, unit.seeds, values)]

    def make_extra_attributes(self) -> dict[str, str]:
        """Return the name of the engine as an attribute of the dataset."""
        return {"source": VECTOR_NAME if self.scenario.engine == "vectors" else CHAIN_NAME}

    def get_remarks_before_run(self) -> list[str]:
        """Return the expected numbers of steps, and that trial steps gain nothing for labels."""
        cells = list(self.scenario.cells())
        reuses = (
            [LABEL_REUSE_REMARK] if any(cell.task.teacher and cell.task.trial is not None for cell in cells) else []
        )
        return [*reuses, *describe_expected_steps(cells)]

    def check_resources(self) -> None:
        """Raise `ScenarioError` for rates that never find the teacher, and for vectors that do not fit into memory."""
        for cell in self.scenario.cells():
            if problem := explain_endless_search(cell):
                raise ScenarioError([(("eta",), problem)])
        if self.scenario.engine == "vectors":
            for cell in self.scenario.iterate_representative_cells("N"):
                check_run_memory("N", f"a batch of vectors of N = {cell.N:g}", self._count_vector_bytes(cell))

    def _count_vector_bytes(self, cell: FixedLengthCell) -> float:
        """Return the bytes of the vectors and the inputs of a batch."""
        width = self.scenario.seeds_per_batch if self.scenario.t is not None else BATCH_WIDTH
        return float(cell.N * width * (24 * VECTOR_BLOCK_STEPS + 48))

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest unit."""
        if self.scenario.engine != "vectors":
            return 0.0
        return max(map(self._count_vector_bytes, self.scenario.iterate_representative_cells("N")))

    def count_library_bytes(self) -> float:
        """Return the memory of the compiler and its programs in bytes."""
        return XLA_BYTES + XLA_PROGRAM_BYTES * estimate_cost(self.scenario).programs


def insert_best_rate(cell: FixedLengthCell) -> FixedLengthCell:
    """Return a cell with the learning rate of the fastest search instead of `eta: best`."""
    if cell.eta != BEST_RATE_KEYWORD:
        return cell
    return replace(cell, best_eta=get_cell_best_rate(cell))


def count_max_steps(cell: FixedLengthCell) -> int:
    """Return the number of steps that no run exceeds, far in the tail of the predicted distribution."""
    time = get_predicted_time(cell)
    if time is None:
        return MAX_UNPREDICTED_STEPS
    return int(min(cell.N * (time.mean + TAIL_STDS * time.std), MAX_STEPS))


def explain_endless_search(cell: FixedLengthCell) -> str:
    """Explain why the runs of a cell would not end, or return an empty string."""
    time = get_predicted_time(cell)
    if time is None or (time.exponent and time.mean * cell.N <= MAX_EXPECTED_STEPS):
        return ""
    steps = f"{time.mean * cell.N:.2g}" if time.mean < np.inf else "more than 1e300"
    if not time.exponent:
        reason = "labels that are flipped with probability 1/2 have no signal"
    elif time.signal < 0:
        reason = f"R = 0 is a trap, because the coefficient of R^{time.exponent - 1} in the drift is below 0"
    else:
        strength = f"a = {time.strength:.3g} is too small" if time.exponent > 2 else "noise exceeds the signal"
        reason = f"{strength}: the best rate is {time.best_eta:.4g}"
    return f"{cell.message_description}: never finds the teacher, with {steps} expected steps, as {reason}"


def describe_expected_steps(cells: Sequence[FixedLengthCell]) -> Iterator[str]:
    """Yield a sentence on the expected number of steps of the shortest and longest runs, from theory."""
    if endless := next(filter(None, map(explain_endless_search, cells)), ""):
        yield endless
        return
    times = [(time.mean * cell.N, time.exponent) for cell in cells if (time := get_predicted_time(cell))]
    if times:
        shortest, longest = min(times)[0], max(times)[0]
        steps = f"{shortest:.3g}" if shortest == longest else f"{shortest:.3g} to {longest:.3g}"
        exponents = ", ".join(map(str, sorted({exponent for _, exponent in times})))
        yield f"a run takes {steps} steps on average, by theory (information exponent {exponents})"
