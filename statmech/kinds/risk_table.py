"""Scenarios of convex losses for rows of a real table with real targets.

A config file with `inputs: {rows: ..., target: ...}` and a `loss` becomes a `LabelledRows`, the input of
`simulate.run` and `theory.solve`. The input dimension N is the number of columns of the table that vary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, PlainSerializer

from statmech.convex.losses import LOSSES, Loss, explain_label_mismatch
from statmech.errors import ConfigError, Problem, ScenarioError
from statmech.inputs.input_distributions import Rows, format_inputs_label, inputs_from_config, inputs_to_config
from statmech.inputs.real_tables import (
    TABLE_POPULATIONS,
    RealTable,
    TablePopulation,
    compute_table_digest,
    diagnose_table,
    load_named_table,
)
from statmech.keys.key_types import PARAMETERS, Whole, config_key, one_of
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import IntegerOrAxis, NameOrAxis, NumberOrAxis, axis_of, ensure_tuple
from statmech.keys.variables import Variable
from statmech.kinds.convex_fit import (
    FIT_THEORY_VARIABLES,
    FIT_VARIABLES,
    MINIMISED_LOSS_FIELD,
    LamOrBestAxis,
    MinimisedLossAxis,
    PenalisedCell,
    estimate_fit_seconds,
)
from statmech.kinds.risk_clusters import UNSUPPORTED_TEACHER_KEYS

MAX_TABLE_EXAMPLES = 10**7
ASSUMED_TABLE_COLUMNS = 500  # assumed in time estimates if the table cannot be read
TableExampleCountAxis = Annotated[
    IntegerOrAxis,
    axis_of(
        Annotated[Whole, Field(ge=2, le=MAX_TABLE_EXAMPLES)],
        {"type": "integer", "minimum": 2, "maximum": MAX_TABLE_EXAMPLES},
    ),
]
TableRowsAxis = Annotated[
    Any,
    axis_of(
        Annotated[Any, AfterValidator(inputs_from_config), PlainSerializer(inputs_to_config)],
        {
            "type": "object",
            "properties": {
                "rows": {"type": "string"},
                "target": {"type": ["string", "integer"]},
                "raw": {"type": "boolean"},
            },
            "required": ["rows"],
        },
        spaced=False,
    ),
]
UNSUPPORTED_ROW_KEYS = {  # reasons, where {} stands for the keys
    **dict.fromkeys((*UNSUPPORTED_TEACHER_KEYS, "drift"), "rows with a target have labels of their own: remove {}"),
    "N": "the columns of the table are the inputs: remove {}",
}

ROW_VARIABLES = {
    "eps_y": Variable((), "generalization error on fresh labels with noise, those of the table", r"$\epsilon_y$"),
    "mse_y": Variable((), "mean squared error of the target", r"$\mathrm{mse}_y$"),
    **{name: FIT_VARIABLES[name] for name in ("train_loss", "eps_t", "gap", "converged")},
}


class LabelledRows(AbstractScenario):
    """Learners that minimise a convex loss of P rows from a real table.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = LabelledRows(population="held_out", loss="logistic", inputs={"rows": "clouds-60"}, P=[60, 240])
    >>> [(cell.name, cell.P, cell.table.N) for cell in scenario.cells()]
    [('logistic', 60, 60), ('logistic', 240, 60)]
    """

    CHOICE: ClassVar = "population"
    KEYS_IMPLIED_BY_OTHERS: ClassVar = ("population",)
    KINDS: ClassVar = TABLE_POPULATIONS
    FURTHER_CLASS_CHOICES: ClassVar = {"loss": LOSSES}
    AXES: ClassVar = ("inputs", "population", "loss", PARAMETERS, "lam", "P")
    UNSUPPORTED_KEYS: ClassVar = UNSUPPORTED_ROW_KEYS | {
        "alpha": "rows of a table are counted: give the number of examples P instead of {}"
    }
    TITLE: ClassVar = "real tables"
    CITES: ClassVar = ("loureiro2021mixtures", "mignacco2020")
    USUAL_X_KEY: ClassVar = "P"
    equations: ClassVar = (
        r"\mathbf w = \arg\min\sum_\mu\ell(x^\mu) + \lambda\,|\mathbf w|^2/2",
        r"x = yh \text{ or } y-h, \quad h = \mathbf w\cdot\mathbf x",
        r"\epsilon_y = \sum_y\pi_y\,\Phi(-\mu_y/Q)",
    )
    variables: ClassVar = ROW_VARIABLES
    theory_only_variables: ClassVar = {"lam_best": FIT_THEORY_VARIABLES["lam_best"]}

    population: Annotated[NameOrAxis, one_of(TABLE_POPULATIONS, "a population of rows")] = Field(
        description="population of the rows: `table` (drawn with replacement, tested on all rows) or `held_out` (drawn "
        "without replacement, tested on the others)"
    )
    loss: MinimisedLossAxis = MINIMISED_LOSS_FIELD
    inputs: TableRowsAxis = Field(
        description="distribution of the inputs, rows of a table with a `target` (name or number of a column), or of a "
        "data set with two classes"
    )
    lam: LamOrBestAxis = config_key(
        0.1,
        description="strength of the penalty, which is l2; best: that of the smallest error",
        symbol=r"$\lambda$",
    )
    model: Literal["auto", "clusters", "moments"] = Field(
        default="auto",
        description="model of the rows in theory: `clusters` (two classes of one covariance), `moments` (covariances "
        "of inputs and target, for squared errors), or each for its own errors",
    )
    P: TableExampleCountAxis = config_key(description="number of stored examples", symbol="$P$")
    intercept: bool = Field(default=True, description="students have an intercept, without a penalty")

    if TYPE_CHECKING:  # show editors and type checkers the parameters of losses
        width: InitVar[NumberOrAxis] = 1.0

    @classmethod
    def find_unsupported_key_problems(cls, config: dict[str, Any]) -> Iterator[Problem]:
        yield from super().find_unsupported_key_problems(config)
        yield from find_keys_inside_inputs(config)
        if config.get("model") == "logit":
            reason = "of real tables it overstates the error several times: model is clusters or moments"
            yield ("model",), f"a fitted logit teacher is not supported, {reason}"

    def _find_problems(self) -> Iterator[Problem]:
        yield from find_inputs_without_rows(self.inputs)
        if 0 in ensure_tuple(self.lam):
            yield ("lam",), "lam must be above 0, or best"
        if self.model == "moments" and {*ensure_tuple(self.loss)} != {"square"}:
            yield ("model",), "moments describe squared errors: the loss must be square"

    def find_input_file_problems(self) -> Iterator[Problem]:
        """Find the first table with too few rows or an unsupported target for a convex loss."""
        for values in self.iterate_combinations("inputs", "population", "loss", *self.parameters, "P"):
            if problem := self._find_table_problem(values):
                yield problem
                return

    def _find_table_problem(self, values: dict[str, Any]) -> Problem | None:
        try:
            table = load_rows_table(values["inputs"])
        except ScenarioError as failure:
            return failure.problems[0]
        name, rows = values["inputs"].path, len(table.Z)
        if table.labels is None and values["loss"] != "square":
            return ("loss",), f"the target of {name} is a number: the loss must be square, not {values['loss']}"
        if table.labels is None and self.model == "clusters":
            return ("model",), f"the target of {name} is a number: it has no clusters"
        if table.labels and (reason := explain_label_mismatch(self.make_component(values, "loss"))):
            return ("loss",), reason
        if values["P"] > (max_examples := self.make_component(values).max_examples(rows)):
            return ("P",), f"{name} has {rows} rows, of which at most {max_examples} can be examples, not {values['P']}"
        return None

    def data_digests(self) -> dict[str, str]:
        return compute_row_table_digests(self.inputs)

    def diagnose_tables(self) -> Mapping[str, dict[str, Any]]:
        """Return the diagnosis of each input table, keyed by the name of its inputs."""
        return diagnose_row_tables(self.inputs)

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for all parameter combinations on one core."""
        return sum(map(_estimate_run_seconds, self.cells()))

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> LabelledRowsCell:
        return LabelledRowsCell(
            name=values["loss"],
            population_name=values["population"],
            population=self.make_component(values),
            loss=self.make_component(values, "loss"),
            inputs=values["inputs"],
            model=self.model,
            intercept=self.intercept,
            lam=values["lam"],
            P=values["P"],
            index=index,
        )


@dataclass(frozen=True)
class LabelledRowsCell(PenalisedCell):
    """One grid point: a table, a population of rows, a loss, a penalty, and a number of examples."""

    name: str
    population_name: str
    population: TablePopulation
    loss: Loss
    inputs: Rows
    model: str
    intercept: bool
    lam: float | str
    P: int
    index: tuple[int, ...]

    @property
    def table(self) -> RealTable:
        """Table of the inputs, cached after the first read."""
        return load_rows_table(self.inputs)

    @property
    def N(self) -> int:
        """Number of columns that vary."""
        return self.table.N

    @property
    def shared_setting(self) -> tuple[Any, ...]:
        return self.inputs, self.population, self.loss, self.model, self.intercept

    @property
    def sample_size(self) -> float:
        return self.P


def load_rows_table(rows: Rows) -> RealTable:
    """Return the table of the rows of a scenario, or raise `ScenarioError` if it cannot be read.

    Parameters
    ----------
    rows
        Rows of a file with a target, or of a data set.
    """
    try:
        return load_named_table(rows.path, rows.target, rows.raw)
    except ScenarioError as failure:
        problems = [(("inputs",), sentence) for _, sentence in failure.problems]
    except (ConfigError, OSError) as failure:
        problems = [(("inputs",), str(failure))]
    raise ScenarioError(problems)


def find_keys_inside_inputs(config: dict[str, Any]) -> Iterator[Problem]:
    """Find the first key of a config that is misplaced inside `inputs`."""
    sections = _list_input_sections(config.get("inputs"))
    if inside := [name for section in sections for name in ("population", "model") if name in section]:
        yield ("inputs",), f"`{inside[0]}` belongs at the top level of the config, not inside `inputs`"


def find_inputs_without_rows(inputs: Any) -> Iterator[Problem]:
    """Find the first inputs that are not rows of a table."""
    if not_rows := next((rows for rows in ensure_tuple(inputs) if not rows.from_file), None):
        yield ("inputs",), f"a population of rows needs `rows` of a table, not {format_inputs_label(not_rows)}"


def compute_row_table_digests(inputs: Any) -> dict[str, str]:
    """Return the SHA-256 of each input table, keyed by the name of the inputs."""
    return {format_inputs_label(rows): compute_table_digest(load_rows_table(rows)) for rows in ensure_tuple(inputs)}


def diagnose_row_tables(inputs: Any) -> dict[str, dict[str, Any]]:
    """Return the diagnosis of each input table, keyed by the name of the inputs."""
    return {format_inputs_label(rows): diagnose_table(load_rows_table(rows)) for rows in ensure_tuple(inputs)}


def get_or_assume_table_shape(rows: Rows) -> tuple[int, int]:
    """Return the shape of the table of these rows, or a typical shape if the table cannot be read."""
    try:
        return load_rows_table(rows).Z.shape
    except ScenarioError:
        return 10 * ASSUMED_TABLE_COLUMNS, ASSUMED_TABLE_COLUMNS


def _list_input_sections(inputs: Any) -> list[dict[str, Any]]:
    """Return the values of the config key `inputs` that are sections."""
    return [
        section for section in (inputs if isinstance(inputs, list | tuple) else [inputs]) if isinstance(section, dict)
    ]


def _estimate_run_seconds(cell: LabelledRowsCell) -> float:
    """Estimate the seconds to fit the loss and compute the fields of all rows."""
    rows, N = get_or_assume_table_shape(cell.inputs)
    return estimate_fit_seconds(cell.loss, cell.P, N) + 1e-9 * rows * N
