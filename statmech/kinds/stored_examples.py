"""Scenarios of learning from stored examples: learners, numbers of examples, and recorded times.

A config file with the key `learner` becomes a `StoredExamples`, the input of `simulate.run` and `theory.solve`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field, StrictBool

from statmech.convex.losses import LOSSES
from statmech.errors import Problem, quote_value
from statmech.keys.inputs_and_examples import (
    MAX_EXACT_INTEGER,
    AlphaAxis,
    compute_example_counts,
    explain_bad_example_count,
)
from statmech.keys.key_types import (
    PARAMETERS,
    DimensionAxis,
    FlipAxis,
    Whole,
    config_key,
    make_recorded_axis_type,
    one_of,
)
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell, IntegerOrAxis, NameOrAxis, NumberOrAxis, expand_to_list
from statmech.keys.variables import Variable
from statmech.parameters.parameter_fields import ConfigKey, collect_parameters
from statmech.students.learners import LEARNERS, STOP_REASONS, Learner

RecordedEpochs = Annotated[Any, make_recorded_axis_type("epochs")]


def _read_updates(raw: Any) -> Any:
    """Return numbers of updates as a list, with spaced axes rounded to integers."""
    updates = expand_to_list(raw)
    return sorted({round(value) for value in updates}) if isinstance(raw, dict) else updates


def _reject_loss_names(value: Any) -> Any:
    """Raise `ValueError` if the name of a learner is the name of a loss."""
    names = (
        [name for name in expand_to_list(value) if isinstance(name, str) and name in LOSSES_BY_LEARNER_NAME]
        if isinstance(value, str | list | tuple)
        else []
    )
    if not names:
        return value
    losses = ", ".join(LOSSES_BY_LEARNER_NAME[name] for name in names)
    if len(names) == 1:
        raise ValueError(
            f'"{names[0]}" is not a learner but minimises a loss: write loss: {losses}, without the key learner'
        )
    quoted_names = ", ".join(map(quote_value, names))
    raise ValueError(
        f"{quoted_names} are not learners but minimise losses: write loss: [{losses}], without the key learner"
    )


RecordedUpdates = Annotated[
    Any, make_recorded_axis_type("updates", _read_updates, Annotated[Whole, Field(ge=0, le=MAX_EXACT_INTEGER)])
]

LOSSES_BY_LEARNER_NAME = {
    **{name: name for name in LOSSES},
    "svm": "hinge",
    "ridge": "square",
}  # losses that users may try as learners
RECORDED_DIM_PLACEHOLDER = "moment"  # placeholder, replaced by `epochs` or `updates`
STOP_REASON_ATTRS = {"flag_values": list(range(len(STOP_REASONS))), "flag_meanings": " ".join(STOP_REASONS)}
STORED_EXAMPLE_VARIABLES = {
    "R": Variable((RECORDED_DIM_PLACEHOLDER,), "teacher-student cosine", "$R$"),
    "eps_g": Variable((RECORDED_DIM_PLACEHOLDER,), "generalization error", r"$\epsilon_g$"),
    "kappa": Variable((RECORDED_DIM_PLACEHOLDER,), "smallest stability of stored examples, w.xi S/|w|", r"$\kappa$"),
    "eps_t": Variable((RECORDED_DIM_PLACEHOLDER,), "training error", r"$\epsilon_t$", in_theory=False),
    "gap": Variable(
        (RECORDED_DIM_PLACEHOLDER,),
        "certified relative gap to the optimum, the largest stability",
        "gap",
        in_theory=False,
        role="diagnostic",
    ),
    "updates_made": Variable(
        (RECORDED_DIM_PLACEHOLDER,), "updates made (examples visited, if visited in turn)", "updates made", 0, False
    ),
    "stopped_by": Variable(
        (RECORDED_DIM_PLACEHOLDER,), "criterion that ended the run", "stopped by", 0, False, STOP_REASON_ATTRS
    ),
    "converged": Variable(
        (RECORDED_DIM_PLACEHOLDER,), "whether the run converged, as the learner reports", "converged", False, False
    ),
}
EMBEDDING_STRENGTHS_VARIABLE = Variable(
    (RECORDED_DIM_PLACEHOLDER, "example"), "embedding strengths x: w = sum of x xi S / N", "$x$", in_theory=False
)


class StoredExamples(AbstractScenario):
    """Learners of P = alpha N stored examples from one teacher.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = StoredExamples(learner=["minover", "hebb"], N=20, alpha=[1, 2, 5], seeds=10)
    >>> [cell.P for cell in scenario.cells()]
    [20, 40, 100, 20, 40, 100]
    """

    CHOICE: ClassVar = "learner"
    KINDS: ClassVar = LEARNERS
    AXES: ClassVar = ("learner", "stop", "N", PARAMETERS, "flip", "alpha")
    TITLE: ClassVar = "stored examples"
    CITES: ClassVar = ("gardner1988",)
    SIMULATION_ONLY_KEYS: ClassVar = ("strengths",)
    NON_KEY_COORDINATES: ClassVar = {
        "P": ConfigKey("P", "number of stored examples", int, symbol="$P$"),
        "example": ConfigKey("example", "stored example", int),
    }
    USUAL_X_KEY: ClassVar = "alpha"
    equations: ClassVar = (
        r"\alpha = P/N, \quad S^\mu = \mathrm{sign}(\mathbf B\cdot\xi^\mu)",
        r"\kappa = \min_\mu S^\mu\,\mathbf w\cdot\xi^\mu/|\mathbf w|",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )

    learner: Annotated[NameOrAxis, one_of(LEARNERS, "a learner"), BeforeValidator(_reject_loss_names)] = Field(
        description="learning algorithm"
    )
    alpha: AlphaAxis = config_key(
        description="stored examples per input dimension, P / N", symbol=r"$\alpha$", unit="P / N"
    )
    N: DimensionAxis = config_key(100, description="input dimension", symbol="$N$")
    flip: FlipAxis = config_key(
        0.0, description="probability that a label is flipped, of a stored example", symbol="$p_f$"
    )
    epochs: RecordedEpochs | None = Field(
        default=None, description="epochs (of P updates) after which students are recorded, increasing; 100 by default"
    )
    updates: RecordedUpdates | None = Field(
        default=None, description="updates after which students are recorded, increasing; in place of epochs"
    )
    strengths: StrictBool = Field(default=False, description="also record the embedding strengths")

    if TYPE_CHECKING:  # show editors and type checkers the parameters of learners
        sweeps: InitVar[IntegerOrAxis] = 4000
        votes: InitVar[IntegerOrAxis] = 201
        omega: InitVar[NumberOrAxis] = 1.0
        tolerance: InitVar[NumberOrAxis] = 1e-6
        within: InitVar[NumberOrAxis] = 0.01
        stop: InitVar[NameOrAxis] = "epochs"

    def _find_problems(self) -> Iterator[Problem]:
        if self.epochs is not None and self.updates is not None:
            yield ("updates",), "is the same as epochs, counted in updates: give one of them (`updates=` removes it)"
        name, moments = self.recorded_moments
        for alpha, N in self.list_value_pairs("alpha", "N"):
            if sentence := explain_bad_example_count(alpha, N):
                yield ("alpha",), sentence
                break
            if moments[-1] * alpha * N > MAX_EXACT_INTEGER:
                yield (name,), f"{moments[-1]:g} of {alpha * N:g} updates are too many to count in float64"
                break

    @property
    def recorded_moments(self) -> tuple[str, tuple[float, ...]]:
        """Name of the recorded dimension, `epochs` or `updates`, and its values."""
        return ("updates", self.updates) if self.updates is not None else ("epochs", self.epochs or (100.0,))

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        """Values of the keys that theory ignores, which are all except learner, alpha and flip.

        N is so large that P / N equals alpha to six digits.
        """
        return {"N": 10**6, "epochs": None, "updates": None} | dict.fromkeys(collect_parameters(LEARNERS))

    @property
    def variables(self) -> dict[str, Variable]:
        moment, _ = self.recorded_moments
        all_variables = STORED_EXAMPLE_VARIABLES | (
            {"strengths": EMBEDDING_STRENGTHS_VARIABLE} if self.strengths else {}
        )
        return {name: replace(variable, dims=(moment, *variable.dims[1:])) for name, variable in all_variables.items()}

    def estimate_seconds_per_seed(self) -> float:
        num_records = len(self.recorded_moments[1])
        return sum(_estimate_run_seconds(cell, num_records) for cell in self.cells())

    @property
    def derived_coordinates(self) -> dict[str, Any]:
        return {"P": compute_example_counts(self)}

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the dataset dimensions other than the sweep axes."""
        name, moments = self.recorded_moments
        largest = max(cell.P for cell in self.cells()) if self.strengths else 0
        return {name: np.asarray(moments)} | ({"example": np.arange(largest)} if self.strengths else {})

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> StoredExamplesCell:
        name, moments = self.recorded_moments
        P = round(values["alpha"] * values["N"])
        until = tuple(round(m * (P if name == "epochs" else 1)) for m in moments)
        return StoredExamplesCell(
            name=values["learner"],
            learner=self.make_component(values),
            N=values["N"],
            P=P,
            flip=values["flip"],
            recorded_updates=until,
            index=index,
        )


@dataclass(frozen=True)
class StoredExamplesCell(Cell):
    """One grid point: a learner with its parameters, the numbers N and P, and the recorded numbers of updates."""

    name: str
    learner: Learner
    N: int
    P: int
    flip: float
    recorded_updates: tuple[int, ...]  # numbers of updates at which students are recorded
    index: tuple[int, ...]


def _estimate_markov_chain_seconds(cell: StoredExamplesCell) -> float:
    """Estimate the seconds to run a Markov chain through version space."""
    return getattr(cell.learner, "sweeps", 0) * cell.N * cell.P * 1.5e-9


# seconds per data set on one core, measured at N = 20 to 400 and P = 10 to 2,000
LEARNING_SECONDS_ESTIMATORS: dict[str, Callable[[StoredExamplesCell], float]] = {
    "hebb": lambda cell: 0.0,
    "pseudo_inverse": lambda cell: 2e-9 * cell.P * cell.N * min(cell.P, cell.N),
    "max_stability": lambda cell: 1e-4 + 2.5e-10 * cell.N * cell.P**2,
    "minover": lambda cell: cell.recorded_updates[-1] * (3e-8 + 6e-10 * cell.P),
    "gibbs": _estimate_markov_chain_seconds,
    "bayes": _estimate_markov_chain_seconds,
}


def _estimate_run_seconds(cell: StoredExamplesCell, num_records: int) -> float:
    """Estimate the maximum seconds per data set to draw examples, learn, and measure."""
    shared = 1e-4 + cell.P * cell.N * (1.5e-8 + 1e-9 * num_records) + 5e-11 * cell.N * cell.P**2
    update_seconds = cell.recorded_updates[-1] * (5e-8 + 2e-9 * cell.P)
    return shared + (
        LEARNING_SECONDS_ESTIMATORS[cell.name](cell) if cell.name in LEARNING_SECONDS_ESTIMATORS else update_seconds
    )
