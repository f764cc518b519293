"""Simulation of walks with early stopping: Gaussian features, evaluated by `simulate.classification.partial_sums`.

A seed's walks depend only on the experiment's key, N and the seed's number: every boundary, mean and error rate sees
the same walks apart from their drift, so that boundaries can be compared walk by walk.
"""

from __future__ import annotations

import numpy as np

from simulate.classification.partial_sums import sum_rows_until_level
from simulate.execution.work_units import NUMBA_BYTES, PerSeedSimulator, SeedUnit, UnitResult
from statmech.classification.random_walks import Stopping, StoppingCell
from statmech.keys.sweep_grid import hash_identity
from statmech.runtime.installed_packages import require_modules

NORMALS_PER_DRAW = 2**19  # 4 MiB per block of walks


class Simulator(PerSeedSimulator):
    """Simulator of walks with early stopping."""

    source = "walks of Gaussian features"
    scenario: Stopping

    def check_resources(self) -> None:
        """Raise an error if Numba, which compiles the loop over features, is not installed."""
        require_modules("a walk with early stopping", "estimators", "numba")

    def count_library_bytes(self) -> float:
        """Return the memory of Numba in bytes."""
        return NUMBA_BYTES

    def estimate_max_unit_bytes(self) -> float:
        """Return the bytes of the largest work unit: its walks, the previous walks, and the shared arrays."""
        return 8.0 * max(_count_elements_in_memory(cell, self.scenario.walks) for cell in self.scenario.cells())

    def run(self, unit: SeedUnit) -> list[UnitResult]:
        """Return the fractions of decision errors and of evaluated features for each cell's walks."""
        seeds = slice(unit.seed, unit.seed + 1)
        fractions = _count_seed_errors_and_features(self.scenario, unit) / self.scenario.walks
        return [
            UnitResult(cell.index, seeds, {"decision_error": errors[None], "features": features[None] / cell.N})
            for cell, (errors, features) in zip(unit.cells, fractions, strict=True)
        ]


def _count_seed_errors_and_features(scenario: Stopping, unit: SeedUnit) -> np.ndarray:
    """Count decision errors and evaluated features (cells, 2) of a seed's walks."""
    N = unit.cells[0].N
    random = np.random.default_rng([scenario.key, unit.seed, *hash_identity({"data": "Gaussian walks", "N": N})])
    counts, rows = np.zeros((len(unit.cells), 2), int), _count_walks_per_draw(N)
    for first in range(0, scenario.walks, rows):
        steps = random.standard_normal((min(rows, scenario.walks - first), N))
        ends = steps.sum(axis=1) / np.sqrt(N)
        counts += [count_errors_and_features(cell, steps, ends) for cell in unit.cells]
    return counts


def _count_elements_in_memory(cell: StoppingCell, walks: int) -> int:
    """Count the array elements in memory: two blocks of walks, or one block with weights and checks."""
    rows = _count_walks_per_draw(cell.N)
    return max(cell.N * min(walks, 2 * rows), cell.N * min(walks, rows) + cell.N + 2 * len(cell.check_positions))


def _count_walks_per_draw(N: int) -> int:
    """Return the number of walks drawn together."""
    return max(1, NORMALS_PER_DRAW // N)


def count_errors_and_features(cell: StoppingCell, steps: np.ndarray, ends: np.ndarray) -> tuple[int, int]:
    """Count decision errors and evaluated features of walks (m, N) whose sums without drift are `ends`."""
    # instead of being added to the steps, the drift is subtracted from the boundary
    stops = sum_rows_until_level(
        steps, np.full(cell.N, cell.N**-0.5), cell.check_positions, cell.tau, level_rise=cell.boundary_rise - cell.mean
    )
    wrong = (stops.features < cell.N) & (ends + cell.mean < cell.theta)
    return int(wrong.sum()), int(stops.features.sum())
