"""Play out every cell of an on-line scenario, seeds in batches, batches on all cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from simulate.execution.devices import next_device
from simulate.execution.threads import memory_a_core
from simulate.execution.units import Found
from simulate.kernels import gram, vectors
from statmech.errors import DivergedError, ScenarioError
from statmech.forks import check_fork
from statmech.majority_vote import TEST_CIRCLES, circles, vote_error
from statmech.order_parameters import square_root
from statmech.results.dataset import describe, gram_of
from statmech.scenarios.online import Cell, Scenario

if TYPE_CHECKING:
    pass

LONGEST = {"float64": 1e150, "float32": 1e15}  # and the inverse: their squares, over N or N of them, keep all digits
VOTE_CHUNK = 2**17  # fields integrated together: enough that threads compute more than they wait for the interpreter


@dataclass(frozen=True)
class Unit:
    """A cell and a batch of its seeds. The batch has its engine's size, however few of its seeds are asked for:
    another size would move the last bits."""

    cell: Cell
    batch: int
    seeds: slice


SOURCE = "weight vectors or order parameters on line"


def attrs(scenario: Scenario) -> dict[str, str]:
    """The engines that play."""
    return {"source": "; ".join(dict.fromkeys(engine_of(scenario, cell).NAME for cell in scenario.cells()))}


def remarks(scenario: Scenario) -> list[str]:
    """That another engine plays than the one asked for, if so."""
    if all(engine_of(scenario, cell).__name__ == f"simulate.kernels.{scenario.engine}" for cell in scenario.cells()):
        return []
    return ["inputs other than gaussian run on the direct engine (engine: vectors)"]


def memory(scenario: Scenario) -> float:
    """Bytes that the largest unit of work holds."""
    direct = [cell for cell in scenario.cells() if engine_of(scenario, cell) is vectors]
    return max((float(vectors.memory(cell, scenario.dtype)) for cell in direct), default=0.0)


def check(scenario: Scenario) -> None:
    """Refuse weight vectors that this machine cannot hold, before anything runs."""
    held = memory_a_core()
    for cell in scenario.cells():
        if engine_of(scenario, cell) is vectors and vectors.memory(cell, scenario.dtype) > held:
            told = f"N = {cell.N:g} with K = {cell.K} takes {vectors.memory(cell, scenario.dtype) / 2**30:.3g} GiB"
            bound = f"a run of weight vectors, and {held / 2**30:.3g} GiB are here for each core"
            raise ScenarioError([(("N",), f"{told} {bound}. Gaussian inputs need none of it on engine: gram.")])


def engine_of(scenario: Scenario, cell: Cell) -> ModuleType:
    """The engine that plays a cell: the one asked for, or the direct one where the Gram engine is not exact."""
    return vectors if scenario.engine == "vectors" or not gram.covers(cell) else gram


def units(scenario: Scenario, cells: Sequence[Cell], seeds: range) -> Iterator[Unit]:
    """The units of work: every cell, its seeds in batches."""
    for cell in cells:
        size = engine_of(scenario, cell).batch(cell.K)
        for first in range(seeds.start, seeds.stop, size):
            yield Unit(cell, first // size, slice(first, min(first + size, seeds.stop)))


def play(scenario: Scenario, unit: Unit) -> list[Found]:
    """One unit's arrays."""
    return [Found(unit.cell.index, unit.seeds, _values(scenario, unit))]


def _values(scenario: Scenario, unit: Unit) -> dict[str, np.ndarray]:
    """The variables of a unit's seeds, with a leading axis of them."""
    check_fork()
    cell, asked = unit.cell, unit.seeds.stop - unit.seeds.start
    with jax.enable_x64(True), next_device():
        steps = jnp.asarray(np.rint(np.asarray(scenario.t) * cell.N), jnp.int64)
        record = engine_of(scenario, cell).run(cell, scenario.dtype, unit_key(scenario, unit), steps)
        along, across = (np.asarray(part, float)[:asked] for part in record[:2])
    _check_lengths(scenario, cell, along, across)
    _check_precision(scenario, cell, along, across)
    values = describe(along, across)
    if record.measured is None:
        values["eps_g_majority_vote"] = _votes(scenario, unit, along, across)
    else:
        *students, vote, mean = np.moveaxis(np.asarray(record.measured, float)[:asked], -1, 0)
        values |= {"eps_g": np.stack(students, axis=-1), "eps_g_majority_vote": vote, "eps_g_weight_mean": mean}
    return values | ({"gram": gram_of(along, across)} if scenario.gram else {})


def _check_lengths(scenario: Scenario, cell: Cell, along: np.ndarray, across: np.ndarray) -> None:
    """Refuse students (seeds, T, K) too long or short for their numbers to be right; NaN is neither."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.hypot(along, np.sqrt(np.diagonal(across, axis1=-2, axis2=-1)))
    longest = LONGEST[scenario.dtype]
    if not np.all((1 / longest < length) & (length < longest)):
        told = f"a student's length left {1 / longest:g} to {longest:g}, where {scenario.dtype} is exact"
        raise DivergedError(f"{cell.described} has diverged: {told}")


def _check_precision(scenario: Scenario, cell: Cell, along: np.ndarray, across: np.ndarray) -> None:
    """Refuse float32 where the Gram engine's rounding is not small beside what one example of N t teaches."""
    if scenario.dtype != "float32" or engine_of(scenario, cell) is not gram or scenario.t[-1] * cell.N < 0.5:
        return
    length = np.sqrt(np.max(along**2 + np.diagonal(across, axis1=-2, axis2=-1)))
    if length * cell.N > gram.STEP * cell.rule.eta:
        told = f"float32 does not resolve what one example of N = {cell.N:g} teaches a student of length {length:.3g}"
        raise ScenarioError([(("dtype",), f"{told} ({cell.described}); float64 does")])


def unit_key(scenario: Scenario, unit: Unit) -> jax.Array:
    """A batch's key: of the experiment's key, the cell's own parameters and the batch's number, not of any position."""
    key = jax.random.key(scenario.key, impl="threefry2x32")
    for word in (*unit.cell.words(), unit.batch):
        key = jax.random.fold_in(key, np.uint32(word))
    return key


def _votes(scenario: Scenario, unit: Unit, along: np.ndarray, across: np.ndarray) -> np.ndarray:
    """The error of the majority vote, shape (seeds, T), on test inputs of each seed's own."""
    if unit.cell.K <= 2:  # a tie is a fair coin: two students err as often as one of them picked by it
        return describe(along, across)["eps_g"].mean(axis=-1)
    K, factor = unit.cell.K, square_root(across)
    together = max(1, VOTE_CHUNK // (along[0].size * TEST_CIRCLES))
    numbers, errors = _numbers(unit.seeds), []
    for at in range(0, len(numbers), together):
        part = slice(at, at + together)
        rngs = [np.random.default_rng([scenario.key, *unit.cell.words(), seed]) for seed in numbers[part]]
        inputs = np.stack([circles(rng, TEST_CIRCLES, K) for rng in rngs], axis=1)
        errors.append(vote_error(along[part], factor[part], inputs[:, :, None]))
    return np.concatenate(errors)


def _numbers(seeds: slice) -> range:
    return range(seeds.start, seeds.stop)
