"""Cross-validation: classifiers compared on data sets.

A config file with the key `classifier` becomes a `Study`, the input of `simulate.run`. There is no theory of real data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, Field, StrictBool

from statmech import data_sets
from statmech.classifiers import CHOSEN as CHOSEN
from statmech.classifiers import CLASSIFIERS, Classifier
from statmech.classifiers import ORDERS as ORDERS
from statmech.errors import Problem
from statmech.parameters import Key
from statmech.scenarios.axes import Names, Numbers, Wholes, axis_of, points
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.cells import Cell, in_seed_names, words_of
from statmech.scenarios.keys import PARAMETERS, Whole, one_of
from statmech.scenarios.variables import Variable

MOST_FOLDS = 1000
# CPU seconds of a fold, within a factor of about 2.5 of measurements on votes, promoters, coding, noisy, digits-3-8
# (machine: benchmarks/README.md): seconds per visited example for learners that pass over the examples; for others a
# constant, a rate per training example, and the power of the number of attributes
FOLD, VISIT = 0.005, 8e-7
VISITS = {"attentive": 2e-5, "passive_aggressive": 3e-5}
LEARNT = {
    "boosting": (0.0, 1.5e-6, 2),
    "tree": (0.0, 2e-5, 1),
    "mlp": (5.0, 7e-5, 1),
    "ordinary": (0.0, 2e-7, 1),
    "second_order": (0.01, 1.2e-7, 2),
    "pruned": (0.2, 7e-7, 2),
    "pruned_second_order": (0.8, 1.5e-6, 2),
    "neighbours": (0.0, 1e-6, 1),
}
PLANE = 160  # per side of a decision map

Fold = ("fold",)
STUDY = {
    "accuracy": Variable(Fold, "fraction of a fold's examples that are classified correctly", "accuracy"),
    "accuracy_training": Variable(
        Fold, "fraction of the training examples that are classified correctly", "training accuracy"
    ),
    "nonzero_weights": Variable(Fold, "number of nonzero weights, without thresholds", "nonzero weights"),
    "features_evaluated": Variable(Fold, "features evaluated per classified example, mean", "features per prediction"),
    "features_learning": Variable(
        Fold, "features evaluated per example and pass during learning, mean", "features in learning"
    ),
    "pairs": Variable(Fold, "conjunctions of two among a sparse perceptron's weights", "pairs", role="detail"),
    "codon_pairs": Variable(Fold, "conjunctions of two within one codon", "pairs within a codon", role="detail"),
    "passes_made": Variable(Fold, "passes over the examples until there is no mistake", "passes made", role="detail"),
}
DECISION = Variable(
    ("vertical", "horizontal"), "decision on a plane of two attributes, learnt from all examples", "decision"
)
PAIR_WEIGHTS = Variable(
    ("fold", "position", "partner"),
    "sum of |weight| over a sparse perceptron's conjunctions of two at two positions of the sequence",
    "weight of pairs",
)


def _data_name(given: str) -> str:
    """Check that a data set with this name exists."""
    data_sets.source(given)
    return given


DataAxis = Annotated[Names, axis_of(Annotated[str, AfterValidator(_data_name)], {"type": "string"}, spaced=False)]


class Study(AbstractScenario):
    """Classifiers compared on data sets by cross-validation.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> study = Study(classifier=["boosting", "tree"], data="votes", seeds=1)
    >>> [cell.name for cell in study.cells()], dict(study.recorded)["fold"].size
    (['boosting', 'tree'], 10)
    """

    CHOICE: ClassVar = "classifier"
    on_data: ClassVar = True
    KINDS: ClassVar = CLASSIFIERS
    TITLE: ClassVar = "cross-validation"
    COORDINATES: ClassVar = {
        "fold": Key("fold", "held-out fold", int),
        "vertical": Key("vertical", "point along the second attribute", int),
        "horizontal": Key("horizontal", "point along the first attribute", int),
        "position": Key("position", "letter of the sequence, from 1", int),
        "partner": Key("partner", "letter of the sequence after `position`", int),
    }
    AXES: ClassVar = ("data", "classifier", "order", "level", "chosen", PARAMETERS)

    classifier: Annotated[Names, one_of(CLASSIFIERS, "a classifier")] = Field(description="classifier")
    data: DataAxis = Field(description="data set, from --data-dir or OpenML")
    folds: Annotated[Whole, Field(ge=2, le=MOST_FOLDS)] = Field(
        default=10, description="number of parts of the examples; each is held out once"
    )
    examples: Annotated[Whole, Field(ge=20)] | None = Field(
        default=None, description="size of a random part of the data set, drawn again for each seed; all by default"
    )
    plane: StrictBool = Field(
        default=False, description="also record the decisions on a plane, for data of two attributes"
    )
    positions: StrictBool = Field(
        default=False, description="also record the weights of conjunctions of two by their positions in a sequence"
    )
    seeds: Annotated[Whole, Field(ge=1, le=10**6)] = Field(
        default=1, description="independent runs of each grid point, each of another shuffle into folds"
    )

    if TYPE_CHECKING:  # the parameters of classifiers, for editors and type checkers
        neighbours: InitVar[Wholes] = 5
        level: InitVar[Names] = "brownian-bridge"
        chosen: InitVar[Names] = "random"
        error_rate: InitVar[Numbers] = 0.1
        chunk: InitVar[Wholes] = 16
        passes: InitVar[Wholes] = 100
        budget: InitVar[Wholes] = 0
        theta: InitVar[Numbers] = 0.0
        aggressiveness: InitVar[Numbers] = 1.0
        order: InitVar[Names] = "every"
        lam_per_example: InitVar[Numbers] = 1e-4
        share: InitVar[Numbers] = 0.05
        k: InitVar[Wholes] = 2
        discount: InitVar[Numbers] = 0.5
        stages: InitVar[Wholes] = 0

    def data_digests(self) -> dict[str, str]:
        """Return the SHA-256 of each data set: attributes, classes, names and folds."""
        return {name: data_sets.digest(name) for name in points(self.data)}

    @property
    def variables(self) -> dict[str, Variable]:
        further = {"decision": DECISION} if self.plane else {}
        return STUDY | further | ({"pair_weights": PAIR_WEIGHTS} if self.positions else {})

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """Coordinates of the folds, and of positions or a plane if these are recorded.

        The data set with the most folds determines their number: a data set with predefined folds may have fewer.
        """
        max_folds = max(data_sets.source(name).folds or self.folds for name in points(self.data))
        coordinates = {"fold": np.arange(max_folds)}
        if self.positions:
            letters = np.arange(1, max(data_sets.source(name).length for name in points(self.data)) + 1)
            coordinates |= {"position": letters, "partner": letters}
        return coordinates | ({"vertical": np.arange(PLANE), "horizontal": np.arange(PLANE)} if self.plane else {})

    @property
    def unsolved(self) -> str:
        return "there is no theory of real data"

    def _problems(self) -> Iterator[Problem]:
        for name in points(self.data):
            if self.plane and len(data_sets.source(name).attributes) != 2:
                yield ("plane",), f"{name} has {len(data_sets.source(name).attributes)} attributes, and a plane has 2"
                break
        for name in points(self.data):
            if self.positions and not data_sets.source(name).sequence:
                yield ("positions",), f"{name} has no sequences, in which attributes have positions"
                break

    def seconds(self) -> float:
        return sum(map(self._seconds, self.cells()))

    def _seconds(self, cell: StudyCell) -> float:
        """Estimate the seconds that all folds of one shuffle take."""
        data = data_sets.source(cell.data)
        folds = data.folds or self.folds
        training_examples = min(self.examples or data.examples, data.examples) * (1 - 1 / folds)
        constant, rate, power = LEARNT.get(cell.name, (0.0, 0.0, 0))
        visits = VISITS.get(cell.name, VISIT) * getattr(cell.classifier, "passes", 0)
        return folds * (FOLD + constant + training_examples * (visits + rate * len(data.attributes) ** power))

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> StudyCell:
        return StudyCell(values["classifier"], self.kind_at(values), values["data"], index)


@dataclass(frozen=True)
class StudyCell(Cell):
    """One grid point: a classifier with its parameters on a data set."""

    name: str
    classifier: Classifier
    data: str
    index: tuple[int, ...]

    def random(self, key: int, seed: int) -> int:
        """Return the random state of this cell for a seed."""
        seed_values = in_seed_names(self.classifier.identity, {"error_rate": "delta", "lam_per_example": "decay"})
        return words_of({"name": self.name, "data": self.data, **seed_values, "key": key, "seed": seed})[0]
