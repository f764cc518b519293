"""Scenarios of online learning from the rows of a real table with real labels.

A config file with `inputs: {rows: ..., target: ...}` and a `rule` becomes an `OnlineRows`, the input of
`simulate.run` and `theory.solve`. The input dimension N is the number of columns of the table that vary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from statmech.errors import Problem, ScenarioError
from statmech.inputs.input_distributions import Rows, inputs_to_config
from statmech.inputs.real_tables import RealTable
from statmech.keys.initial_states import Start
from statmech.keys.key_types import PARAMETERS
from statmech.keys.time_dependent_keys import find_step_count_problems
from statmech.kinds.online_clusters import ONLINE_CLUSTER_VARIABLES
from statmech.kinds.online_learning import (
    RATE_KEY_DEFAULTS,
    OnlineCell,
    OnlineStudent,
    StudentStart,
    find_excessive_rates,
    make_start_field,
)
from statmech.kinds.risk_table import (
    ROW_VARIABLES,
    UNSUPPORTED_ROW_KEYS,
    TableRowsAxis,
    compute_row_table_digests,
    diagnose_row_tables,
    find_inputs_without_rows,
    find_keys_inside_inputs,
    get_or_assume_table_shape,
    load_rows_table,
)

ROW_STUDENT_VARIABLES = {name: ONLINE_CLUSTER_VARIABLES[name] for name in ("m_field", "length_field", "length")}
ONLINE_ROW_VARIABLES = ROW_STUDENT_VARIABLES | {"eps_y": replace(ROW_VARIABLES["eps_y"], dims=("t",))}


@dataclass(frozen=True)
class OnlineRowsCell(OnlineCell):
    """One grid point: a rule with its parameters, a table of inputs, and a start."""

    example_parameters: ClassVar = {}
    inputs: Rows

    @property
    def table(self) -> RealTable:
        """Table of the inputs, cached after the first read."""
        return load_rows_table(self.inputs)

    @property
    def example_identity(self) -> dict[str, Any]:
        return {"population": "table", "inputs": inputs_to_config(self.inputs)}


class OnlineRows(OnlineStudent):
    """A student that learns the rows of a real table online by a rule.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = OnlineRows(rule=["hebb", "perceptron"], inputs={"rows": "clouds-60"}, t=[1, 5])
    >>> [(cell.name, cell.N) for cell in scenario.cells()]
    [('hebb', 60), ('perceptron', 60)]
    """

    AXES: ClassVar = ("rule", "inputs", PARAMETERS, *RATE_KEY_DEFAULTS)
    CELL_CLASS: ClassVar = OnlineRowsCell
    EXAMPLES_WITHOUT_TEACHER: ClassVar = "rows with a target"
    UNSUPPORTED_KEYS: ClassVar = UNSUPPORTED_ROW_KEYS | {
        "K": "rows are learnt online by one student: remove {}",
        **dict.fromkeys(("P", "alpha"), "a stream of rows has no end: give times t instead of {}"),
    }
    TITLE: ClassVar = "online learning of real rows"
    CITES: ClassVar = ("miyoshi2005", "loureiro2021mixtures")
    dtype: ClassVar = "float64"
    engine: ClassVar = "vectors"
    equations: ClassVar = (
        r"\mathbf J \leftarrow \mathbf J + \eta\,y\,g(\kappa, l)\,\mathbf x",
        r"\kappa = y\,\mathbf J\cdot\mathbf x/l",
        r"\epsilon_y = \sum_y\pi_y\,\Phi\left(-s_ym_h/l_h\right)",
    )
    variables: ClassVar = ONLINE_ROW_VARIABLES

    population: Literal["table"] = Field(
        default="table",
        description="population of the rows: `table` (each example is drawn with replacement, and errors are those on "
        "all rows)",
    )
    inputs: TableRowsAxis = Field(
        description="distribution of the inputs, rows of a table with a `target` (name or number of a column) of two "
        "values, or of a data set with two classes"
    )
    start: StudentStart = make_start_field("{length}")

    @classmethod
    def find_unsupported_key_problems(cls, config: dict[str, Any]) -> Iterator[Problem]:
        if config.get("population") == "held_out":
            yield ("population",), "a stream of rows is drawn with replacement: population must be table, not held_out"
        yield from super().find_unsupported_key_problems(config)
        yield from find_keys_inside_inputs(config)

    def _find_problems(self) -> Iterator[Problem]:
        yield from find_inputs_without_rows(self.inputs)
        if isinstance(self.start, Start) and np.any(self.start.R):
            yield ("start",), "real labels have no teacher: remove R from the start"
        yield from super()._find_problems()

    def find_input_file_problems(self) -> Iterator[Problem]:
        """Find the first table of an online sweep without two classes, or with an unsuitable number of columns."""
        for values in self.iterate_combinations("inputs", "decay"):
            if problem := self._find_table_problem(values):
                yield problem
                return

    def _find_table_problem(self, values: dict[str, Any]) -> Problem | None:
        try:
            table = load_rows_table(values["inputs"])
        except ScenarioError as failure:
            return failure.problems[0]
        if table.labels is None:
            return ("inputs",), f"the target of {values['inputs'].path} is a number: a rule needs two classes"
        decay = values.get("decay", 0)
        return next(
            chain(find_step_count_problems(self.t[-1], table.N), find_excessive_rates("decay", decay, table.N)), None
        )

    def data_digests(self) -> dict[str, str]:
        return compute_row_table_digests(self.inputs)

    def diagnose_tables(self) -> Mapping[str, dict[str, Any]]:
        """Return the diagnosis of each input table, keyed by the name of its inputs."""
        return diagnose_row_tables(self.inputs)

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed, including the fields of all rows at each recorded time."""
        table_sizes = (math.prod(get_or_assume_table_shape(cell.inputs)) for cell in self.cells())
        return super().estimate_seconds_per_seed() + 1e-9 * sum(table_sizes) * len(self.t)

    def _make_program_key(self, cell: OnlineCell) -> tuple[Any, ...]:
        return *super()._make_program_key(cell), cell.inputs

    def make_specific_values(self, values: dict[str, Any]) -> dict[str, Any]:
        return {"N": get_or_assume_table_shape(values["inputs"])[1]}
