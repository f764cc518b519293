"""Simulation of learners that minimise a convex loss on rows of a real table.

Every loss, penalty and number of examples of a sweep sees the same rows: larger samples extend smaller samples.
"""

from __future__ import annotations

import json

import numpy as np

from simulate.convex.table_fits import fit_table_rows, make_table_problem, measure_table_errors
from simulate.convex.training_data import INPUT_STREAM, make_random_stream
from simulate.kinds.empirical_risk import MAX_MEASURABLE_RISK_GAP, PenalisedFitSimulator, compute_mean_loss
from statmech.inputs.real_tables import RowSplit, describe_table_diagnoses
from statmech.kinds.risk_table import LabelledRows, LabelledRowsCell
from theory.convex.real_tables import find_best_penalties


class Simulator(PenalisedFitSimulator[LabelledRowsCell]):
    """Simulator of learners that minimise a convex loss on rows of a table, one run after the other."""

    source = "minimisation of a convex loss of rows of a table"
    scenario: LabelledRows
    find_best_penalties = staticmethod(find_best_penalties)

    def simulate(self, cell: LabelledRowsCell, seed: int) -> dict[str, float]:
        """Simulate one minimisation of a loss on rows of a table, and return its variables."""
        lam = self.get_penalty_strength(cell)
        return (
            fit_and_measure_student(cell, draw_rows(cell, self.scenario.key, seed), lam)
            if np.isfinite(lam)
            else {"converged": False}
        )

    def get_memory_key(self, cell: LabelledRowsCell) -> str:
        return "P"

    def count_run_bytes(self, cell: LabelledRowsCell) -> float:
        """Return the bytes of a run: three copies of the examples, the test rows, and three matrices."""
        n, N = cell.table.Z.shape
        return 8.0 * (3 * (cell.P * N + min(cell.P, N) ** 2) + n * N)

    def make_extra_attributes(self) -> dict[str, str]:
        """Return the diagnosis of each table, as JSON."""
        return {"tables": json.dumps(self.scenario.diagnose_tables())}

    def get_remarks_before_run(self) -> list[str]:
        """Return remarks on omitted columns, and on tables outside the valid range of theory."""
        return describe_table_diagnoses(self.scenario.diagnose_tables())


def draw_rows(cell: LabelledRowsCell, key: int, seed: int) -> RowSplit:
    """Draw the rows of a table that are the examples and the test rows of a seed.

    Parameters
    ----------
    cell
        The parameter combination.
    key, seed
        The key of the experiment's random numbers, and the run.
    """
    rows = len(cell.table.Z)
    name = cell.population.random_stream_name
    rng = make_random_stream(INPUT_STREAM, rows=rows, population=name, key=key, seed=seed)
    return cell.population.draw(rng, rows, cell.P)


def fit_and_measure_student(cell: LabelledRowsCell, rows: RowSplit, lam: float) -> dict[str, float]:
    """Fit a learner to rows of a table and measure its variables, or only its gap if it is far from the minimum.

    Parameters
    ----------
    cell
        The parameter combination.
    rows
        The examples and the test rows.
    lam
        Strength of the penalty.
    """
    table = cell.table
    problem = make_table_problem(table, cell.loss, lam, rows.examples, cell.intercept)
    minimum = fit_table_rows(table, cell.loss, lam, rows.examples, cell.intercept)
    values: dict[str, float] = {"gap": minimum.gap, "converged": minimum.converged}
    if not minimum.gap < MAX_MEASURABLE_RISK_GAP:
        return values
    x, errors = problem.x(minimum.w), measure_table_errors(table, minimum.w, rows.test_rows)
    values |= {"train_loss": compute_mean_loss(problem, x), "eps_y": errors.labels}
    if table.labels:
        values["eps_t"] = float(np.mean((1 - np.sign(x)) / 2))
    return values | ({"mse_y": errors.mean_squared_error} if cell.name == "square" else {})
