"""Scenarios of gradient descent on a convex loss: the descent, its batches, and the recorded epochs.

A config file with the key `descent` becomes a `Descent`, the input of `simulate.run` and `theory.solve`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from statmech.convex.descent_methods import DESCENTS, compute_max_stable_eta
from statmech.convex.descent_methods import Descent as Steps
from statmech.convex.losses import DESCENT_LOSSES, L1_FRACTIONS_BY_PENALTY, Square
from statmech.errors import Problem
from statmech.keys.initial_states import Cosine, Finite
from statmech.keys.key_types import PARAMETERS, DimensionAxis, Number, config_key, make_recorded_axis_type, one_of
from statmech.keys.sweep_grid import NameOrAxis, NumberOrAxis, axis_of, ensure_tuple, expand_to_list
from statmech.keys.time_dependent_keys import OptionalSchedule
from statmech.keys.variables import Variable, make_standard_error_variable
from statmech.kinds.convex_fit import (
    BAYES_ERROR_VARIABLES,
    BEST_PENALTY_KEYWORD,
    FIT_VARIABLES,
    FractionAxis,
    LossCell,
    LossFit,
    make_penalty,
)

INTEGER_REL_TOL = 1e-6  # relative error; the inverse of 0.333333333 counts as 3
BATCH_SAMPLINGS = {
    "shuffle": "each example once an epoch",
    "replacement": "a new random subset of the examples in each step",
}
DESCENT_OMITTED_DEFAULTS: dict[str, Any] = {"schedule": None}
# The deferred engine is faster for fewer steps than this ratio times b N. The measured ratio is 0.5 (batch 1) to 2.5
# (batch 1/16) if every step has a new direction (N = 400 and 1000, alpha = 2 and 3, AMD EPYC, 25 November 2026). Smooth
# losses at full batch have fewer directions, so that the ratio is higher
MAX_DEFERRED_ENGINE_STEP_RATIO = 1.0
# seconds on one core, from the same measurements: per product of two array entries, per random number, and per step
PRODUCT_SECONDS, DRAW_SECONDS_PER_NUMBER, DESCENT_STEP_SECONDS = 4e-10, 2e-8, 2e-5


def _reject_best_lam(value: Any) -> Any:
    """Reject the penalty strength `best`, which is supported only without `descent`."""
    if value == BEST_PENALTY_KEYWORD:
        raise ValueError(f"must be a number: `{BEST_PENALTY_KEYWORD}` is supported only for a `loss` without `descent`")
    return value


def _read_epochs(value: Any) -> Any:
    """Return epochs as a list, with logarithmic and geometric spacings rounded to integers."""
    epochs = expand_to_list(value)
    logarithmic = isinstance(value, dict) and "linspace" not in value
    return sorted({float(round(epoch)) for epoch in epochs}) if logarithmic else epochs


PenaltyStrength = Annotated[Number, BeforeValidator(_reject_best_lam), Field(ge=0)]
DescentLamAxis = Annotated[NumberOrAxis, axis_of(PenaltyStrength, {"type": "number", "minimum": 0})]
EtaAxis = Annotated[NumberOrAxis, axis_of(Annotated[Number, Field(gt=0)], {"type": "number", "exclusiveMinimum": 0})]
RecordedDescentEpochs = Annotated[Any, make_recorded_axis_type("epochs", _read_epochs)]


class DescentStart(BaseModel):
    """The student at epoch 0: its length and, unless the length is 0, its cosine with the teacher.

    >>> DescentStart(length=1).cosine
    0.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    length: Annotated[Finite, Field(ge=0)] = Field(default=0.0, description="|w|/sqrt(N)")
    R: Cosine | None = Field(default=None, description="teacher-student cosine, 0 by default")

    @property
    def cosine(self) -> float:
        """Teacher-student cosine, with the default 0."""
        return self.R or 0.0


ZERO_START = DescentStart(length=0.0, R=None)
DESCENT_VARIABLES = {
    name: replace(FIT_VARIABLES[name], dims=("epochs",))
    for name in ("R", "length", "eps_g", "eps_y", "mse", "train_loss", "eps_t")
}
DESCENT_VARIABLES["eps_g"] = replace(
    DESCENT_VARIABLES["eps_g"], reference_variables=("eps_limit", "eps_best_lam", "eps_bayes")
)
BEST_EPOCH_VARIABLE = Variable((), "epoch of the smallest generalization error", "best epoch", in_theory=False)
DESCENT_RUN_VARIABLES = {
    "best_epoch": BEST_EPOCH_VARIABLE,
    "diverged": Variable((), "whether the run diverged: a number overflowed", "diverged", False, False),
}
DESCENT_THEORY_VARIABLES = {
    "eps_best": Variable((), "smallest generalization error of all steps", r"$\epsilon_\mathrm{best}$"),
    "eps_limit": Variable((), "generalization error of the minimum", r"$\epsilon_\infty$"),
    "eps_best_lam": Variable(
        (), "generalization error of the minimum with the best penalty", r"$\epsilon_{\lambda^*}$"
    ),
    **BAYES_ERROR_VARIABLES,
}


class Descent(LossFit):
    """Learners by gradient descent on a convex loss of P = alpha N stored examples.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Descent(descent="gradient", loss="square", N=20, alpha=2, batch=[1, 0.25], epochs=[0, 10])
    >>> [cell.steps for cell in scenario.cells()]
    [(0, 10), (0, 40)]
    """

    CHOICE: ClassVar = "descent"
    KINDS: ClassVar = DESCENTS
    FURTHER_CLASS_CHOICES: ClassVar = {"loss": DESCENT_LOSSES}
    AXES: ClassVar = (
        *("descent", "loss", "penalty", "l1_ratio", "teacher", "flip", "noise", "gain", "weights", "rho", PARAMETERS),
        *("N", "lam", "alpha", "eta", "schedule", "batch", "sampling"),
    )
    OMITTED_DEFAULTS: ClassVar = DESCENT_OMITTED_DEFAULTS
    TITLE: ClassVar = "descent"
    CITES: ClassVar = ("celentano2021", "gerbelot2024", "lu2021")
    USUAL_X_KEY: ClassVar = "epochs"
    equations: ClassVar = (
        r"\nabla = \sum_{\mu\in\mathrm{batch}}\mathbf x^\mu\,\partial_h\ell^\mu/\sqrt{N} + b\lambda\mathbf w",
        r"h = \mathbf w\cdot\mathbf x/\sqrt{N}",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )
    variables: ClassVar = DESCENT_VARIABLES | DESCENT_RUN_VARIABLES

    descent: Annotated[NameOrAxis, one_of(DESCENTS, "a descent")] = Field(
        description="how the weights move down the loss"
    )
    loss: Annotated[NameOrAxis, one_of(DESCENT_LOSSES, "a loss")] = Field(
        description="loss that is minimised, step by step"
    )
    lam: DescentLamAxis = config_key(0.0, description="strength of the penalty", symbol=r"$\lambda$")
    eta: EtaAxis = config_key(0.1, description="learning rate, of the loss summed over the examples", symbol=r"$\eta$")
    schedule: OptionalSchedule = config_key(
        None,
        description="schedule of the learning rate, {t0: epochs}: it falls as eta / (1 + epoch/t0), constant else",
        symbol="$t_0$",
        unit="epochs",
    )
    batch: FractionAxis = config_key(1.0, description="batch of a step, as a fraction of the examples", symbol="$b$")
    sampling: Annotated[NameOrAxis, one_of(BATCH_SAMPLINGS, "a sampling")] = Field(
        default="shuffle",
        description="sampling of batches: shuffle (each example once an epoch) or replacement "
        "(each step a new random subset of the examples)",
    )
    N: DimensionAxis = config_key(10_000, description="input dimension", symbol="$N$")
    start: DescentStart = Field(
        default=ZERO_START, description="start, at epoch 0: {length, R}; the weights vanish by default"
    )
    epochs: RecordedDescentEpochs = Field(
        default=(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
        description="epochs (of 1/batch steps) after which students are recorded, increasing",
    )
    engine: Literal["auto", "deferred", "explicit"] = Field(
        default="auto",
        description="engine of the simulation: deferred (random numbers are drawn when a step needs them, exact in "
        "distribution), explicit (inputs and weights), or the faster of the two",
    )

    if TYPE_CHECKING:  # show editors and type checkers the parameters of descents
        momentum: InitVar[NumberOrAxis] = 0.9
        beta1: InitVar[NumberOrAxis] = 0.9
        beta2: InitVar[NumberOrAxis] = 0.999
        epsilon: InitVar[NumberOrAxis] = 1e-8

    def _find_problems(self) -> Iterator[Problem]:
        yield from super()._find_problems()
        yield from self._find_start_problems()
        yield from self._find_batch_problems()
        yield from self._find_divergent_rates()
        yield from self._find_coordinatewise_problems()
        yield from self._find_descents_without_N_limit()

    def _find_start_problems(self) -> Iterator[Problem]:
        """Find starts with a cosine, but with length 0."""
        if self.start.length == 0 and self.start.R is not None:
            yield ("start",), "a student of length 0 has no R"

    def _find_batch_problems(self) -> Iterator[Problem]:
        """Find batches of a descent that are empty or do not divide the examples, and epochs between two steps."""
        for batch, sampling in self.list_value_pairs("batch", "sampling"):
            if sampling == "shuffle" and not _is_nearly_integer(1 / batch):
                reason = f"{batch:g} does not divide the examples (sampling: replacement takes any)"
                yield ("batch",), f"sampling shuffle needs a batch of 1/2, 1/3, ...: {reason}"
                return
            if fractional_epochs := [epoch for epoch in self.epochs if not _is_nearly_integer(epoch / batch)]:
                yield ("epochs",), f"{fractional_epochs[0]:g} is not an integer number of steps of batch {batch:g}"
                return
        for values in self.iterate_combinations("batch", "alpha", "N"):
            num_examples = round(values["alpha"] * values["N"])
            if 0 < num_examples * values["batch"] < 1:
                yield ("batch",), f"{values['batch']:g} of {num_examples} examples is less than one"
                return

    def _find_divergent_rates(self) -> Iterator[Problem]:
        """Find the first learning rate that makes descent on the square loss diverge."""
        if self.schedule is not None:
            return
        names = ("descent", "loss", "penalty", "l1_ratio", *self.parameters, "lam", "alpha", "batch")
        bounds: dict[tuple[Any, ...], float] = {}
        for values in self.iterate_combinations(*names, "eta") if "square" in ensure_tuple(self.loss) else ():
            if DESCENT_LOSSES[values["loss"]] is not Square or values["batch"] < 1:
                continue
            setting = tuple(values.get(name) for name in names)
            if setting not in bounds:
                l2 = make_penalty(values).split_strength(values["lam"])[1]
                bounds[setting] = compute_max_stable_eta(self.make_component(values), values["alpha"], l2, 1.0)
            if values["eta"] > (bound := bounds[setting]):
                condition = f"the {values['loss']} loss at alpha = {values['alpha']:g} needs eta below {bound:.3g}"
                yield ("eta",), f"eta = {values['eta']:g} diverges: {condition}"
                return

    def _find_descents_without_N_limit(self) -> Iterator[Problem]:
        """Find descents without a limit for N -> infinity."""
        for values in self.iterate_combinations("descent", *self.parameters):
            if sentence := self.make_component(values).problem:
                yield (sentence.split(" ")[0],), sentence
                return

    def _find_coordinatewise_problems(self) -> Iterator[Problem]:
        """Find penalties and engines that the coordinatewise steps of a descent do not support.

        An l1 norm requires steps along the force for its proximal step. The deferred engine has no single weights.
        """
        for descent, penalty in self.list_value_pairs("descent", "penalty"):
            coordinatewise, has_l1 = DESCENTS[descent].coordinatewise, L1_FRACTIONS_BY_PENALTY[penalty] != 0
            if coordinatewise and has_l1:
                linear = ", ".join(name for name, kind in DESCENTS.items() if not kind.coordinatewise)
                yield ("penalty",), f"{penalty} needs a descent with steps along the force: {linear}, not {descent}"
                return
            if self.engine == "deferred" and (coordinatewise or has_l1):
                subject = f"descent {descent}" if coordinatewise else f"penalty {penalty}"
                yield ("engine",), f"deferred has no single weights, on which {subject} acts (engine: explicit)"
                return

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        errors = {
            name: error_variable
            for base_name, variable in DESCENT_VARIABLES.items()
            for name, error_variable in make_standard_error_variable(base_name, variable).items()
        }
        return errors | {"best_epoch": replace(BEST_EPOCH_VARIABLE, in_theory=True)} | DESCENT_THEORY_VARIABLES

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        return super().keys_ignored_by_theory | {"engine": "auto"}

    @classmethod
    def has_integer_values(cls, name: str) -> bool:
        """Return True for keys with integer values, and for `epochs`."""
        return name == "epochs" or super().has_integer_values(name)

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        return {"epochs": np.asarray(self.epochs)}

    def estimate_run_seconds(self, cell: DescentCell) -> float:
        """Estimate the seconds per run of a descent with the chosen engine.

        For the deferred engine, every step is assumed to add a direction, as with kinked losses.
        """
        steps, products = cell.steps[-1], 2 * PRODUCT_SECONDS * cell.steps[-1]
        if choose_descent_engine(cell) == "deferred":
            return DESCENT_STEP_SECONDS * steps + cell.P * (1 + steps) * (DRAW_SECONDS_PER_NUMBER + products)
        return DESCENT_STEP_SECONDS * steps + cell.P * cell.N * (DRAW_SECONDS_PER_NUMBER + products * cell.batch)

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> DescentCell:
        shuffled = values["sampling"] == "shuffle"
        batch = 1 / round(1 / values["batch"]) if shuffled else values["batch"]
        return DescentCell(
            **self.make_cell_values(values, index),
            descent=self.make_component(values),
            eta=values["eta"],
            t0=values.get("schedule"),
            batch=batch,
            sampling=values["sampling"],
            length=self.start.length,
            R=self.start.cosine,
            steps=tuple(round(epoch / batch) for epoch in self.epochs),
            engine=self.engine,
        )


def _is_nearly_integer(number: float) -> bool:
    return math.isfinite(number) and abs(number - round(number)) <= INTEGER_REL_TOL * max(1.0, number)


@dataclass(frozen=True)
class DescentCell(LossCell):
    """One grid point: a descent with its loss, start and teacher, the input dimension and number of examples.

    The student is recorded after each number of `steps`. The time `t0` of the schedule is in epochs, or None.
    """

    descent: Steps
    lam: float
    eta: float
    t0: float | None
    batch: float
    sampling: str
    length: float
    R: float
    steps: tuple[int, ...]
    engine: str

    @property
    def strengths(self) -> tuple[float, float]:
        """Strengths of the l1 norm, applied by a proximal step, and of the l2 norm, added to the force."""
        return self.penalty.split_strength(self.lam)

    @property
    def has_coordinatewise_steps(self) -> bool:
        """True if steps act on single weights, so that the distribution of the teacher's weights matters."""
        return self.descent.coordinatewise or self.strengths[0] > 0

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches per epoch if examples are shuffled."""
        return round(1 / self.batch)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, where the first step is 0."""
        return self.eta if self.t0 is None else self.eta / (1 + step * self.batch / self.t0)


def choose_descent_engine(cell: DescentCell) -> str:
    """Choose the faster engine for a cell of a descent, unless the config selects one.

    The cost of a step is the number of known directions (deferred), or b N inputs or weights (explicit).

    >>> scenario = Descent(descent="gradient", loss="square", alpha=2, N=[100, 1000])
    >>> [choose_descent_engine(cell) for cell in scenario.cells()]
    ['explicit', 'deferred']
    """
    if cell.engine != "auto":
        return cell.engine
    is_short = cell.steps[-1] < MAX_DEFERRED_ENGINE_STEP_RATIO * cell.batch * cell.N
    return "deferred" if is_short and not cell.has_coordinatewise_steps else "explicit"
