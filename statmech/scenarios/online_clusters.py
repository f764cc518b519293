r"""Online learning of two clusters: every example is new, and its label is its cluster.

A config file with the keys `clusters` and `rule` becomes an `OnlineClusters`, the input of `simulate.run` and
`theory.solve`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from statmech.convex.clusters import CLUSTERS, GaussianClusters, TwoClusters
from statmech.errors import Problem, ScenarioError
from statmech.inputs import Anisotropic, Inputs, Spectrum, written
from statmech.modes import condensed
from statmech.parameters import family_of, shown
from statmech.rules import RULES, Bayes
from statmech.scenarios.axes import Names, Numbers, points
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.cells import words_of
from statmech.scenarios.gaussian_clusters import CLUSTERS_THEORY, OF_CLUSTERS, OF_TEACHERS, within_problems, without
from statmech.scenarios.initial_conditions import Start
from statmech.scenarios.inputs_key import LawAxis, inputs_key, unsuited_problems
from statmech.scenarios.keys import (
    PARAMETERS,
    DimensionAxis,
    NonnegativeAxis,
    Times,
    config_key,
    one_of,
    word_or_section,
)
from statmech.scenarios.online import (
    ANNEALING,
    DECAY,
    ENGINE,
    RECORDED,
    SCHEDULE,
    UNCHANGED,
    VARIABLES,
    VECTORS_STEP,
    VECTORS_STEP_PER_DIMENSION,
    OnlineCell,
    Scenario,
    start_problems,
)
from statmech.scenarios.schedules import OptionalSchedule
from statmech.scenarios.step_sizes import annealing_problems, rate_problems, steps_problems
from statmech.scenarios.variables import Variable
from statmech.schedules import SCHEDULES

GROUPS_STEP = 1.3e-7  # per step and group of the spectrum, on one core
CHANGING = {name: default for name, default in UNCHANGED.items() if name != "drift"}
MEASURED = {**OF_CLUSTERS, "length": VARIABLES["length"]}
SIMULATED = {name: replace(MEASURED[name], dims=("t",)) for name in ("m_field", "length_field", "length", "eps_g")}
SOLVED = {"eps_bayes": replace(CLUSTERS_THEORY["eps_bayes"], dims=("t",)), "eps_known": CLUSTERS_THEORY["eps_known"]}


class OnlineClusters(AbstractScenario):
    """A student that learns two clusters online by one rule.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = OnlineClusters(clusters="gaussian", rule=["hebb", "adatron"], N=100, t=[1, 5], positives=[0.5, 0.2])
    >>> scenario.shape
    {'rule': 2, 'positives': 2}
    """

    CHOICE: ClassVar = "rule"
    KINDS: ClassVar = RULES
    FURTHER: ClassVar = {"clusters": CLUSTERS}
    AXES: ClassVar = ("rule", "clusters", "inputs", "distance", "positives", PARAMETERS, "N", *CHANGING)
    OMITTED: ClassVar = CHANGING
    TITLE: ClassVar = "online learning of two clusters"
    CITES: ClassVar = ("miyoshi2005", "mignacco2020")
    SIMULATION_KEYS: ClassVar = ("engine",)
    together: ClassVar = Scenario.together
    dtype: ClassVar = "float64"
    equations: ClassVar = (
        r"\mathbf J \leftarrow \mathbf J + \eta\,y\,g(\kappa, l)\,\mathbf x",
        r"\kappa = y\,\mathbf J\cdot\mathbf x/l",
        r"\epsilon_g = \sum_y\pi_y\,\Phi\left(-s_ym_h/l_h\right)",
    )

    clusters: Annotated[Names, one_of(CLUSTERS, "a kind of clusters")] = Field(
        description="clusters of inputs, which are their labels"
    )
    rule: Annotated[Names, one_of(RULES, "a learning rule")] = Field(description="learning rule")
    N: DimensionAxis = config_key(1000, description="input dimension", symbol="$N$")
    inputs: LawAxis = inputs_key(
        "distribution of the inputs, around the centre of their cluster; the `teacher` of a spectrum is the difference "
        "of the centres"
    )
    decay: NonnegativeAxis = DECAY
    schedule: OptionalSchedule = SCHEDULE
    annealing: Annotated[Names, one_of(SCHEDULES, "a schedule of the learning rate")] = ANNEALING
    t: Times = RECORDED
    start: Annotated[Any, word_or_section(["drawn"], Start, "a start")] = Field(
        default="drawn",
        description="start, at t = 0: drawn (entries from N(0,1)) or {length, R}, R with the centres' difference",
    )
    engine: Literal["gram", "vectors"] = ENGINE
    figure: str | None = Field(default="clusters_online", description="published figure, to draw")

    if TYPE_CHECKING:  # the parameters of clusters and rules, for editors and type checkers
        distance: InitVar[Numbers] = 2.0
        positives: InitVar[Numbers] = 0.5
        eta: InitVar[Numbers] = 1.0
        assumed_flip: InitVar[Numbers] = 0.0
        margin: InitVar[Numbers] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _of_one_student(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Raise `ScenarioError` for keys of teachers, ensembles, and learners of stored examples."""
        if "loss" in given:
            raise ScenarioError([(("loss",), "clusters are learnt by a rule or by a loss: remove one of the two keys")])
        if "K" in given:
            raise ScenarioError([(("K",), "clusters are learnt online by one student: leave out K")])
        return without(given, (*OF_TEACHERS, "drift"))

    def _problems(self) -> Iterator[Problem]:
        yield from steps_problems(self.t[-1], max(points(self.N)))
        if any(issubclass(RULES[name], Bayes) for name in points(self.rule)):
            yield ("rule",), 'the rule "bayes" is the posterior mean of a teacher, and clusters have no teacher'
        else:
            yield from start_problems(self.start, points(self.rule), [1], self.dtype)
        yield from list(within_problems(self)) or list(unsuited_problems(self))
        for decay, N in self.pairs("decay", "N") if "decay" in self.axis_values() else ():
            if problem := next(rate_problems("decay", decay, N), None):
                yield problem
                return
        yield from annealing_problems(self.schedule, self.annealing)

    @property
    def theory_ignores(self) -> dict[str, Any]:
        return {"N": None}

    @property
    def variables(self) -> dict[str, Variable]:
        return SIMULATED

    @property
    def theory_only(self) -> dict[str, Variable]:
        return SOLVED

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """Coordinates of the recorded times."""
        return {"t": np.asarray(self.t)}

    def seconds(self) -> float:
        """Estimate the seconds that one seed of all parameter combinations takes on one core."""
        cells = math.prod(self.shape.values())
        pairs = (
            self.pairs("inputs", "N") if "inputs" in self.axis_values() else [(self.inputs, N) for N in points(self.N)]
        )
        return self.t[-1] * cells / len(pairs) * sum(N * self._estimate_step_seconds(inputs, N) for inputs, N in pairs)

    def _estimate_step_seconds(self, law: Inputs, N: int) -> float:
        """Estimate the seconds of one step."""
        cell = OnlineCell("", RULES["hebb"](), 1, N, in_groups(law), 0.0, None, ())
        if self.engine == "gram" and cell.groups:
            return GROUPS_STEP * cell.groups
        return VECTORS_STEP + VECTORS_STEP_PER_DIMENSION * N

    def programs(self) -> set[Any]:
        """Return a key for each program of the engine.

        Programs differ by rule, and by the size of the weight vectors or the number of groups.
        """
        return {(family_of(cell.rule), bool(cell.changes), cell.groups or cell.N) for cell in self.cells()}

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> OnlineClusterCell:
        return OnlineClusterCell(
            name=values["rule"],
            rule=self.kind_at(values),
            K=1,
            N=values["N"],
            inputs=in_groups(values["inputs"]),
            flip=0.0,
            start=self.start if isinstance(self.start, Start) else None,
            index=index,
            **{name: values[name] for name in CHANGING if name in values},
            clusters=self.kind_at(values, "clusters"),
        )


def in_groups(law: Inputs) -> Spectrum:
    """Return the distribution of inputs around a centre as groups of directions of equal variance.

    >>> from statmech.inputs import Gaussian
    >>> in_groups(Gaussian()).eigenvalues, in_groups(Anisotropic((0.5, 1.5))).eigenvalues
    ((1.0,), (0.5, 1.5))
    """
    if isinstance(law, Spectrum):
        return law
    return Spectrum(law.spectrum if isinstance(law, Anisotropic) else (1.0,))


@dataclass(frozen=True)
class OnlineClusterCell(OnlineCell):
    """One grid point: a rule with its parameters, the clusters, a size, and a start."""

    clusters: GaussianClusters = field(default_factory=GaussianClusters)

    @property
    def two(self) -> TwoClusters:
        """The clusters with the modes of the inputs around their centres."""
        modes = self.inputs.modes(self.N)
        assert modes is not None  # a spectrum always has modes
        return self.clusters.among(condensed(modes))

    @property
    def described(self) -> str:
        """Rule and clusters with all parameters, for messages."""
        parameters = {**self.parameters, **vars(self.clusters), **self.changes}
        return f"{self.name} ({', '.join(f'{name} = {shown(value)}' for name, value in parameters.items())})"

    def words(self) -> tuple[int, ...]:
        """Return the hash of the cell's identity, eight integers (`statmech.scenarios.cells.words_of`)."""
        identity = {
            "rule": self.name,
            **self.parameters,
            "clusters": vars(self.clusters),
            "N": self.N,
            "start": self.start.model_dump() if self.start else "drawn",
            "inputs": written(self.inputs),
            **self.changes,
        }
        return words_of(identity)
