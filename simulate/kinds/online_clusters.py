"""Simulation of a student that learns two clusters online, with errors averaged over all inputs."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from simulate.execution.work_units import UnitResult
from simulate.kinds.seed_batches import BatchSimulator, BatchUnit, check_student_lengths
from simulate.online import grouped_gram_engine, perceptrons, weight_vector_engine
from simulate.online.learning_steps import EngineRecord, EngineTask
from statmech.kinds.online_clusters import OnlineClusterCell, OnlineClusters
from statmech.numerics.gaussian import normal_cdf


class Simulator(BatchSimulator[OnlineClusterCell]):
    """Simulator of a student that learns two clusters online, with seeds in batches."""

    source = "weight vectors or order parameters on line"
    scenario: OnlineClusters

    def describe_task(self, cell: OnlineClusterCell, other_cells: Sequence[OnlineClusterCell] = ()) -> EngineTask:
        """Describe the student of a cell to the engine."""
        return perceptrons.make_cluster_perceptron_task(cell)

    def choose_engine(self, cell: OnlineClusterCell) -> ModuleType:
        """Return the engine of groups for clusters, unless weight vectors are requested or have fewer coordinates."""
        return (
            grouped_gram_engine
            if self.scenario.engine == "gram" and cell.num_gram_variance_groups
            else weight_vector_engine
        )

    def run(self, unit: BatchUnit[OnlineClusterCell]) -> list[UnitResult]:
        """Simulate a student that learns two clusters for a batch of seeds, and return the variables of its cell."""
        record = self.run_engine(unit)
        check_student_lengths(self.scenario, unit, record.parallel[..., 0], record.perpendicular)
        return unit.make_results(_compute_variables(unit.cells[0], record))


def _compute_variables(cell: OnlineClusterCell, record: EngineRecord) -> dict[str, np.ndarray]:
    """Compute variables (cells, seeds, T) from components parallel and perpendicular to the axis of two clusters."""
    assert record.parallel_fields is not None
    assert record.perpendicular_fields is not None
    length, Q = (
        np.hypot(parallel[..., 0, 0], np.sqrt(perpendicular[..., 0, 0]))
        for parallel, perpendicular in (
            (record.parallel, record.perpendicular),
            (record.parallel_fields, record.perpendicular_fields),
        )
    )
    m = record.parallel[..., 0, 0] * cell.clusters.distance / 2
    clusters = cell.clusters_with_modes
    wrong = sum(
        fraction * normal_cdf(-factor * m / Q)
        for fraction, factor in zip(clusters.weights, clusters.centre_distances, strict=True)
    )
    return {"m_field": m, "length_field": Q, "length": length, "eps_g": np.asarray(wrong)}
