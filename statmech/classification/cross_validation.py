"""Scenarios of cross-validation, which compare classifiers on data sets.

A config file with the key `classifier` becomes a `Study`, the input of `simulate.run`. There is no theory of real data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, Field, StrictBool

from statmech.classification.classifiers import CLASSIFIERS, Classifier
from statmech.classification.stopping_boundaries import BOUNDARIES
from statmech.errors import Problem
from statmech.inputs import data_sets
from statmech.keys.key_types import PARAMETERS, Whole, one_of
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import (
    Cell,
    IntegerOrAxis,
    NameOrAxis,
    NumberOrAxis,
    axis_of,
    ensure_tuple,
    hash_identity,
    rename_keys_for_seeds,
)
from statmech.keys.variables import Variable
from statmech.parameters.parameter_fields import ConfigKey

MAX_FOLDS = 1000
# CPU seconds per fold, accurate to a factor of about 2.5 for votes, promoters, coding, noisy and digits-3-8 (machine:
# benchmarks/README.md). Learners with passes: seconds per visited example. Other learners: a constant, a rate per
# training example, and the power of the number of attributes that multiplies the rate
FOLD_SECONDS, VISIT_SECONDS = 0.005, 8e-7
VISIT_SECONDS_BY_CLASSIFIER = {"attentive": 2e-5, "passive_aggressive": 3e-5}
FIT_COSTS_BY_CLASSIFIER = {
    "boosting": (0.0, 1.5e-6, 2),
    "tree": (0.0, 2e-5, 1),
    "mlp": (5.0, 7e-5, 1),
    "ordinary": (0.0, 2e-7, 1),
    "second_order": (0.01, 1.2e-7, 2),
    "pruned": (0.2, 7e-7, 2),
    "pruned_second_order": (0.8, 1.5e-6, 2),
    "neighbours": (0.0, 1e-6, 1),
}
DECISION_MAP_POINTS_PER_SIDE = 160  # along each side of a decision map

FOLD_DIMS = ("fold",)
STUDY_VARIABLES = {
    "accuracy": Variable(FOLD_DIMS, "fraction of a fold's examples that are classified correctly", "accuracy"),
    "accuracy_training": Variable(
        FOLD_DIMS, "fraction of the training examples that are classified correctly", "training accuracy"
    ),
    "nonzero_weights": Variable(FOLD_DIMS, "number of nonzero weights, without thresholds", "nonzero weights"),
    "features_evaluated": Variable(
        FOLD_DIMS, "features evaluated per classified example, mean", "features per prediction"
    ),
    "features_learning": Variable(
        FOLD_DIMS, "features evaluated per example and pass during learning, mean", "features in learning"
    ),
    "pairs": Variable(FOLD_DIMS, "conjunctions of two among a sparse perceptron's weights", "pairs", role="detail"),
    "codon_pairs": Variable(FOLD_DIMS, "conjunctions of two within one codon", "pairs within a codon", role="detail"),
    "passes_made": Variable(
        FOLD_DIMS, "passes over the examples until there is no mistake", "passes made", role="detail"
    ),
}
PLANE_DECISION_VARIABLE = Variable(
    ("vertical", "horizontal"), "decision on a plane of two attributes, learnt from all examples", "decision"
)
POSITION_PAIR_WEIGHTS_VARIABLE = Variable(
    ("fold", "position", "partner"),
    "sum of |weight| over a sparse perceptron's conjunctions of two at two positions of the sequence",
    "weight of pairs",
)


def _check_data_set_exists(name: str) -> str:
    """Check that a data set of this name exists."""
    data_sets.find_data_source(name)
    return name


DataSetAxis = Annotated[
    NameOrAxis, axis_of(Annotated[str, AfterValidator(_check_data_set_exists)], {"type": "string"}, spaced=False)
]


class Study(AbstractScenario):
    """Classifiers compared on data sets by cross-validation.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> study = Study(classifier=["boosting", "tree"], data="votes", seeds=1)
    >>> [cell.name for cell in study.cells()], dict(study.recorded_coordinates)["fold"].size
    (['boosting', 'tree'], 10)
    """

    CHOICE: ClassVar = "classifier"
    on_data: ClassVar = True
    KINDS: ClassVar = CLASSIFIERS
    TITLE: ClassVar = "cross-validation"
    NON_KEY_COORDINATES: ClassVar = {
        "fold": ConfigKey("fold", "held-out fold", int),
        "vertical": ConfigKey("vertical", "point along the second attribute", int),
        "horizontal": ConfigKey("horizontal", "point along the first attribute", int),
        "position": ConfigKey("position", "letter of the sequence, from 1", int),
        "partner": ConfigKey("partner", "letter of the sequence after `position`", int),
    }
    AXES: ClassVar = ("data", "classifier", "order", "level", "chosen", PARAMETERS)
    LABELLED_CLASSES: ClassVar = {"level": BOUNDARIES}
    unsolved: ClassVar = "there is no theory of real data"

    classifier: Annotated[NameOrAxis, one_of(CLASSIFIERS, "a classifier")] = Field(description="classifier")
    data: DataSetAxis = Field(description="data set, from --data-dir or OpenML")
    folds: Annotated[Whole, Field(ge=2, le=MAX_FOLDS)] = Field(
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

    if TYPE_CHECKING:  # show editors and type checkers the parameters of classifiers
        neighbours: InitVar[IntegerOrAxis] = 5
        level: InitVar[NameOrAxis] = "brownian-bridge"
        chosen: InitVar[NameOrAxis] = "random"
        error_rate: InitVar[NumberOrAxis] = 0.1
        chunk: InitVar[IntegerOrAxis] = 16
        passes: InitVar[IntegerOrAxis] = 100
        budget: InitVar[IntegerOrAxis] = 0
        theta: InitVar[NumberOrAxis] = 0.0
        aggressiveness: InitVar[NumberOrAxis] = 1.0
        order: InitVar[NameOrAxis] = "every"
        lam_per_example: InitVar[NumberOrAxis] = 1e-4
        share: InitVar[NumberOrAxis] = 0.05
        k: InitVar[IntegerOrAxis] = 2
        discount: InitVar[NumberOrAxis] = 0.5
        stages: InitVar[IntegerOrAxis] = 0

    def data_digests(self) -> dict[str, str]:
        """Return the SHA-256 of the attributes, classes, names and folds of each data set."""
        return {name: data_sets.get_data_digest(name) for name in ensure_tuple(self.data)}

    @property
    def variables(self) -> dict[str, Variable]:
        further = {"decision": PLANE_DECISION_VARIABLE} if self.plane else {}
        return STUDY_VARIABLES | further | ({"pair_weights": POSITION_PAIR_WEIGHTS_VARIABLE} if self.positions else {})

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of a study: the folds and, if recorded, the positions or the plane.

        The data set with the most folds determines the number of folds. Data sets with predefined folds may have fewer.
        """
        max_folds = max(data_sets.find_data_source(name).folds or self.folds for name in ensure_tuple(self.data))
        coordinates = {"fold": np.arange(max_folds)}
        if self.positions:
            letters = np.arange(1, max(data_sets.find_data_source(name).length for name in ensure_tuple(self.data)) + 1)
            coordinates |= {"position": letters, "partner": letters}
        return coordinates | (
            {"vertical": np.arange(DECISION_MAP_POINTS_PER_SIDE), "horizontal": np.arange(DECISION_MAP_POINTS_PER_SIDE)}
            if self.plane
            else {}
        )

    @staticmethod
    def make_data_tables(simulation: Any) -> Iterator[Any]:
        from statmech.classification.study_tables import make_study_tables  # lazy import: needed by tables alone

        yield from make_study_tables(simulation)

    def _find_problems(self) -> Iterator[Problem]:
        for name in ensure_tuple(self.data):
            if self.plane and len(data_sets.find_data_source(name).attributes) != 2:
                yield (
                    ("plane",),
                    f"{name} has {len(data_sets.find_data_source(name).attributes)} attributes, and a plane has 2",
                )
                break
        for name in ensure_tuple(self.data):
            if self.positions and not data_sets.find_data_source(name).sequence:
                yield ("positions",), f"{name} has no sequences, in which attributes have positions"
                break

    def estimate_seconds_per_seed(self) -> float:
        return sum(map(self._estimate_cell_seconds, self.cells()))

    def _estimate_cell_seconds(self, cell: StudyCell) -> float:
        """Estimate the seconds for all folds of one shuffle of a study's cell."""
        data = data_sets.find_data_source(cell.data)
        folds = data.folds or self.folds
        training_examples = min(self.examples or data.examples, data.examples) * (1 - 1 / folds)
        constant, rate, power = FIT_COSTS_BY_CLASSIFIER.get(cell.name, (0.0, 0.0, 0))
        visits = VISIT_SECONDS_BY_CLASSIFIER.get(cell.name, VISIT_SECONDS) * getattr(cell.classifier, "passes", 0)
        return folds * (FOLD_SECONDS + constant + training_examples * (visits + rate * len(data.attributes) ** power))

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> StudyCell:
        return StudyCell(values["classifier"], self.make_component(values), values["data"], index)


@dataclass(frozen=True)
class StudyCell(Cell):
    """One grid point: a classifier with its parameters on a data set."""

    name: str
    classifier: Classifier
    data: str
    index: tuple[int, ...]

    def random(self, key: int, seed: int) -> int:
        """Return the random state for a study's classifier, from the config's key and the seed of a run."""
        seed_values = rename_keys_for_seeds(
            self.classifier.random_seed_parameters, {"error_rate": "delta", "lam_per_example": "decay"}
        )
        return hash_identity({"name": self.name, "data": self.data, **seed_values, "key": key, "seed": seed})[0]
