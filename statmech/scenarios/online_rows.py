"""Scenarios of online learning from the rows of a real table with real labels.

A config file with `inputs: {rows: ..., target: ...}` and a `rule` becomes an `OnlineRows`, the input of
`simulate.run` and `theory.solve`. The input dimension N is the number of columns of the table that vary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from statmech.errors import Problem, ScenarioError
from statmech.inputs import Rows, inputs_to_config
from statmech.parameters import format_parameter_value, get_real_parameter_family
from statmech.real_table import RealTable
from statmech.rules import RULES, Bayes
from statmech.scenarios.axes import NameOrAxis, NumberOrAxis, ensure_tuple
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.cells import hash_identity
from statmech.scenarios.initial_conditions import Start
from statmech.scenarios.keys import PARAMETERS, NonnegativeAxis, Times, make_keyword_or_section_type, one_of
from statmech.scenarios.labelled_rows import (
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
from statmech.scenarios.online import (
    ANNEALING_FIELD,
    DECAY_FIELD,
    RECORDED_TIMES_FIELD,
    SCHEDULE_FIELD,
    VECTORS_STEP_SECONDS,
    VECTORS_STEP_SECONDS_PER_DIMENSION,
    OnlineCell,
    Scenario,
    find_start_problems,
)
from statmech.scenarios.online_clusters import CLUSTER_TIME_DEPENDENCE_DEFAULTS, ONLINE_CLUSTER_VARIABLES
from statmech.scenarios.schedules import OptionalSchedule
from statmech.scenarios.step_sizes import find_annealing_problems, find_excessive_rates, find_step_count_problems
from statmech.scenarios.variables import Variable
from statmech.schedules import LEARNING_RATE_SCHEDULES

ROW_STUDENT_VARIABLES = {name: ONLINE_CLUSTER_VARIABLES[name] for name in ("m_field", "length_field", "length")}
ONLINE_ROW_VARIABLES = ROW_STUDENT_VARIABLES | {"eps_y": replace(ROW_VARIABLES["eps_y"], dims=("t",))}


class OnlineRows(AbstractScenario):
    """A student that learns the rows of a real table online by a rule.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = OnlineRows(rule=["hebb", "perceptron"], inputs={"rows": "clouds-60"}, t=[1, 5])
    >>> [(cell.name, cell.N) for cell in scenario.cells()]
    [('hebb', 60), ('perceptron', 60)]
    """

    CHOICE: ClassVar = "rule"
    KINDS: ClassVar = RULES
    AXES: ClassVar = ("rule", "inputs", PARAMETERS, *CLUSTER_TIME_DEPENDENCE_DEFAULTS)
    OMITTED_DEFAULTS: ClassVar = CLUSTER_TIME_DEPENDENCE_DEFAULTS
    UNSUPPORTED_KEYS: ClassVar = UNSUPPORTED_ROW_KEYS | {
        "K": "rows are learnt online by one student: remove {}",
        **dict.fromkeys(("P", "alpha"), "a stream of rows has no end: give times t instead of {}"),
    }
    TITLE: ClassVar = "online learning of real rows"
    CITES: ClassVar = ("miyoshi2005", "loureiro2021mixtures")
    seeds_per_batch: ClassVar = Scenario.seeds_per_batch
    dtype: ClassVar = "float64"
    engine: ClassVar = "vectors"
    equations: ClassVar = (
        r"\mathbf J \leftarrow \mathbf J + \eta\,y\,g(\kappa, l)\,\mathbf x",
        r"\kappa = y\,\mathbf J\cdot\mathbf x/l",
        r"\epsilon_y = \sum_y\pi_y\,\Phi\left(-s_ym_h/l_h\right)",
    )

    rule: Annotated[NameOrAxis, one_of(RULES, "a learning rule")] = Field(description="learning rule")
    population: Literal["table"] = Field(
        default="table",
        description="population of the rows: `table` (each example is drawn with replacement, and errors are those on "
        "all rows)",
    )
    inputs: TableRowsAxis = Field(
        description="distribution of the inputs, rows of a table with a `target` (name or number of a column) of two "
        "values, or of a data set with two classes"
    )
    decay: NonnegativeAxis = DECAY_FIELD
    schedule: OptionalSchedule = SCHEDULE_FIELD
    annealing: Annotated[NameOrAxis, one_of(LEARNING_RATE_SCHEDULES, "a schedule of the learning rate")] = (
        ANNEALING_FIELD
    )
    t: Times = RECORDED_TIMES_FIELD
    start: Annotated[Any, make_keyword_or_section_type(["drawn"], Start, "a start")] = Field(
        default="drawn", description="start, at t = 0: drawn (entries from N(0,1)) or {length}"
    )

    if TYPE_CHECKING:  # show editors and type checkers the parameters of rules
        eta: InitVar[NumberOrAxis] = 1.0
        assumed_flip: InitVar[NumberOrAxis] = 0.0
        margin: InitVar[NumberOrAxis] = 0.0

    @classmethod
    def find_unsupported_key_problems(cls, config: dict[str, Any]) -> Iterator[Problem]:
        if config.get("population") == "held_out":
            yield ("population",), "a stream of rows is drawn with replacement: population must be table, not held_out"
        yield from super().find_unsupported_key_problems(config)
        yield from find_keys_inside_inputs(config)

    def _find_problems(self) -> Iterator[Problem]:
        yield from find_inputs_without_rows(self.inputs)
        if any(issubclass(RULES[name], Bayes) for name in ensure_tuple(self.rule)):
            yield (
                ("rule",),
                'the rule "bayes" is the posterior mean of a teacher, and rows with a target have no teacher',
            )
        else:
            yield from find_start_problems(self.start, ensure_tuple(self.rule), [1], self.dtype)
        if isinstance(self.start, Start) and np.any(self.start.R):
            yield ("start",), "real labels have no teacher: remove R from the start"
        yield from find_annealing_problems(self.schedule, self.annealing)

    def find_input_file_problems(self) -> Iterator[Problem]:
        """Find the first table without two classes, or with an unsuitable number of columns."""
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

    @property
    def variables(self) -> dict[str, Variable]:
        return ONLINE_ROW_VARIABLES

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the recorded times."""
        return {"t": np.asarray(self.t)}

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for all parameter combinations on one core."""
        return sum(map(self._estimate_cell_seconds, self.cells()))

    def _estimate_cell_seconds(self, cell: OnlineRowsCell) -> float:
        """Estimate the seconds per run, including the fields of all rows at each recorded time."""
        rows, N = get_or_assume_table_shape(cell.inputs)
        return self.t[-1] * N * (VECTORS_STEP_SECONDS + VECTORS_STEP_SECONDS_PER_DIMENSION * N) + 1e-9 * rows * N * len(
            self.t
        )

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of the engine, which depends on rule and table."""
        return {
            (get_real_parameter_family(cell.rule), bool(cell.nondefault_time_dependence), cell.inputs)
            for cell in self.cells()
        }

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> OnlineRowsCell:
        return OnlineRowsCell(
            name=values["rule"],
            rule=self.make_component(values),
            K=1,
            N=get_or_assume_table_shape(values["inputs"])[1],
            inputs=values["inputs"],
            flip=0.0,
            start=self.start if isinstance(self.start, Start) else None,
            index=index,
            **{name: values[name] for name in CLUSTER_TIME_DEPENDENCE_DEFAULTS if name in values},
        )


@dataclass(frozen=True)
class OnlineRowsCell(OnlineCell):
    """One grid point: a rule with its parameters, a table of inputs, and a start."""

    inputs: Rows

    @property
    def table(self) -> RealTable:
        """Table of the inputs, cached after the first read."""
        return load_rows_table(self.inputs)

    @property
    def message_description(self) -> str:
        """Description of the rule and its parameters for messages."""
        parameters = {**self.rule_parameters, **self.nondefault_time_dependence}
        listed = ", ".join(f"{name} = {format_parameter_value(value)}" for name, value in parameters.items())
        return f"{self.name} ({listed})"

    def identity_hash(self) -> tuple[int, ...]:
        """Return eight integers that hash the cell's identity (`statmech.scenarios.cells.hash_identity`)."""
        identity = {
            "rule": self.name,
            **self.rule_parameters,
            "population": "table",
            "inputs": inputs_to_config(self.inputs),
            "start": self.start.model_dump() if self.start else "drawn",
            **self.nondefault_time_dependence,
        }
        return hash_identity(identity)
