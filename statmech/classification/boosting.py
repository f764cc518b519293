r"""Scenarios of boosting: teachers that are sparse perceptrons, numbers of examples, and recorded variables.

A teacher is a vote of s conjunctions of its N Boolean inputs, :math:`f(x) = \mathrm{sign}\sum_{i=1}^s h_i(x)`. The
number of inputs in each conjunction is uniform from 1 to k. The inputs are drawn uniformly without replacement, and the
sign is :math:`\pm1` with equal probability. The same conjunction may be drawn twice (weight 2), but never the empty
one. Inputs are uniform on :math:`\{0,1\}^N`. Where the sum is 0, f is not defined and the input is redrawn. A teacher
that is undecided on more than 90 % of the inputs is also redrawn. For odd s every input is decided. For even s the
remaining inputs have :math:`|\sum_i h_i| \ge 2`, an easier task.

With `flip`, each label of a stored example is inverted with this probability, independently, while eps_g is measured on
the teacher's own labels. A vote that fits all flipped labels, if it exists, needs many stages. A run therefore ends
after `cap` stages, and `cap` can be an axis.

A config file with the key `booster` becomes a `Boosting`, the input of `simulate.run` and `theory.solve`.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from statmech.keys.key_types import PARAMETERS, DimensionAxis, FlipAxis, Whole, config_key, one_of
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import Cell, IntegerOrAxis, NameOrAxis, NumberOrAxis, axis_of, ensure_tuple
from statmech.keys.variables import Variable
from statmech.parameters.parameter_fields import parameter

# larger values must be typos; `MAX_STORED_EXAMPLES` also limits `cap` and `tests`
MAX_TEACHER_CONJUNCTIONS = 10**6
MAX_STORED_EXAMPLES = 10**12
BOOSTING_VARIABLES = {
    "stages": Variable((), "boosting stages, until all examples are classified correctly", "stages", bound="above"),
    "eps_g": Variable((), "generalization error", r"$\epsilon_g$", bound="above"),
    "advantage": Variable((), "smallest 1/2 - error over all stages' hypotheses", r"$\min_i\gamma_i$", bound="below"),
    "nonzero_weights": Variable(
        (), "number of nonzero weights, distinct conjunctions in the vote", "nonzero weights", in_theory=False
    ),
    "converged": Variable(
        (), "whether the run converged: all examples are classified correctly", "converged", False, False
    ),
}


@dataclass(frozen=True)
class AdaBoost:
    """AdaBoost whose weak learner searches all conjunctions of up to k inputs (Jackson & Craven, Figure 1)."""

    label: ClassVar[str] = "AdaBoost"
    k: int = parameter(2, "size of the largest conjunctions, in inputs", symbol="$k$", at_least=1)
    discount: float = parameter(
        1.0, "factor on the correlations of conjunctions of two and more", symbol="$d$", at_least=0, at_most=1
    )


BOOSTERS: dict[str, type[AdaBoost]] = {"adaboost": AdaBoost}

ConjunctionCountAxis = Annotated[
    IntegerOrAxis,
    axis_of(
        Annotated[Whole, Field(ge=1, le=MAX_TEACHER_CONJUNCTIONS)],
        {"type": "integer", "minimum": 1, "maximum": MAX_TEACHER_CONJUNCTIONS},
        spaced=False,
    ),
]
ExampleCountAxis = Annotated[
    IntegerOrAxis,
    axis_of(
        Annotated[Whole, Field(ge=1, le=MAX_STORED_EXAMPLES)],
        {"type": "integer", "minimum": 1, "maximum": MAX_STORED_EXAMPLES},
        spaced=False,
    ),
]


class Boosting(AbstractScenario):
    """Sparse perceptrons learnt by boosting from P examples of a teacher that is a sparse perceptron.

    Any list is an axis of a sweep. Theory gives bounds, not values: `Variable.bound` is "above" or "below" the runs.
    Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Boosting(booster="adaboost", s=[3, 5], P=[100, 1000], k=2)
    >>> [(cell.s, cell.P, cell.booster.discount) for cell in scenario.cells()]
    [(3, 100, 1.0), (3, 1000, 1.0), (5, 100, 1.0), (5, 1000, 1.0)]
    """

    CHOICE: ClassVar = "booster"
    KINDS: ClassVar = BOOSTERS
    AXES: ClassVar = ("booster", "N", PARAMETERS, "s", "P", "flip", "cap")
    TITLE: ClassVar = "boosting"
    CITES: ClassVar = ("jackson1996", "freund1997")
    SIMULATION_ONLY_KEYS: ClassVar = ("tests",)
    USUAL_X_KEY: ClassVar = "P"
    equations: ClassVar = (
        r"f(x) = \mathrm{sign}\sum_{i=1}^s h_i(x)",
        r"h_i \text{ conjunctions of at most } k \text{ inputs}",
        r"\text{stages} \le 2s^2\ln P, \quad \gamma_i \ge \tfrac1{2s}",
    )
    variables: ClassVar = BOOSTING_VARIABLES

    booster: Annotated[NameOrAxis, one_of(BOOSTERS, "a booster")] = Field(description="boosting algorithm")
    s: ConjunctionCountAxis = config_key(description="number of conjunctions in the teacher", symbol="$s$")
    P: ExampleCountAxis = config_key(description="number of stored examples", symbol="$P$")
    N: DimensionAxis = config_key(20, description="input dimension, of Boolean inputs", symbol="$N$")
    flip: FlipAxis = config_key(
        0.0, description="probability that a label is flipped, of a stored example", symbol="$p_f$"
    )
    cap: ExampleCountAxis = config_key(
        10_000, description="most boosting stages, after which a run stops without having converged"
    )
    tests: Annotated[Whole, Field(ge=1, le=MAX_STORED_EXAMPLES)] = Field(
        default=10_000, description="fresh examples on which eps_g is measured"
    )

    if TYPE_CHECKING:  # show editors and type checkers the parameters of boosters
        k: InitVar[IntegerOrAxis] = 2
        discount: InitVar[NumberOrAxis] = 1.0

    @property
    def unsolved(self) -> str:
        return "" if 0 in ensure_tuple(self.flip) else "the bounds of Lemmas 1 and 2 are those of labels without flips"

    def estimate_seconds_per_seed(self) -> float:
        return sum(map(self._estimate_cell_seconds, self.cells()))

    def _estimate_cell_seconds(self, cell: BoostingCell) -> float:
        """Estimate the seconds per run of AdaBoost, assuming about 0.4 s^2 stages where examples suffice."""
        needed = np.inf if cell.flip else min(1 + 0.4 * cell.s**2, cell.P)
        stages, conjunctions = min(needed, cell.cap), cell.N**cell.k
        stage = 1e-4 + 3e-9 * conjunctions + cell.P * (2e-8 + 2e-9 * cell.N + 5e-11 * conjunctions) + 1e-8 * self.tests
        return 5e-3 + stages * stage + 1.5e-8 * cell.s * (cell.P + self.tests)

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> BoostingCell:
        return BoostingCell(
            self.make_component(values), values["N"], values["s"], values["P"], index, values["flip"], values["cap"]
        )


@dataclass(frozen=True)
class BoostingCell(Cell):
    """One grid point: a booster with its parameters, the teachers, the examples, and the flip probability."""

    booster: AdaBoost
    N: int
    s: int
    P: int
    index: tuple[int, ...]
    flip: float = 0.0
    cap: int = 10_000

    @property
    def k(self) -> int:
        """Maximum number of inputs in a conjunction, limited to N."""
        return min(self.booster.k, self.N)
