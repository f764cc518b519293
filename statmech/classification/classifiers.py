"""Classifiers that a study compares on real data: their names, labels and parameters.

**To add a classifier** write one class here with one line in `CLASSIFIERS`, and register one function in
`simulate.classification.estimators.classifier_models` that makes its model; a classifier in a file of the user has a
method `make(task)` instead. Config keys, datasets, tables and figures follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from statmech.classification.stopping_boundaries import BOUNDARIES
from statmech.parameters.parameter_fields import parameter

EXAMPLE_ORDER_MEANINGS = {
    "every": "permuted before every pass",
    "once": "permuted once",
    "constant": "as they stand in the data",
    "by-class": "one class after the other, always",
}
FEATURE_ORDER_MEANINGS = {
    "random": "at random, again for each pass",
    "weight": "by |w|, the largest first",
    "fixed": "as they stand in the data",
}
REFERENCE_CLASSIFIER = "boosting"  # the baseline of all comparisons, as in the paper's Table 1


@dataclass(frozen=True)
class Classifier:
    """A learning algorithm that predicts a class from attributes. Subclasses define `label`."""

    label: ClassVar[str]  # shown in tables and legends
    cites: ClassVar[tuple[str, ...]] = ()  # bibliography keys of the papers
    uses_raw_attributes: ClassVar[bool] = False  # True: learns from the raw attributes instead of their 0/1 indicators

    @property
    def random_seed_parameters(self) -> dict[str, Any]:
        """The parameters that determine the random numbers of a run: all parameters."""
        return dict(vars(self))


@dataclass(frozen=True)
class BoostingClassifier(Classifier):
    """The sparse perceptron of Jackson & Craven: boosted conjunctions of at most k attribute values."""

    label, uses_raw_attributes = "boosting", True
    cites = ("jackson1996", "freund1997")
    k: int = parameter(2, "size of the largest conjunctions, in attributes", symbol="$k$", at_least=1, at_most=4)
    discount: float = parameter(
        0.5,
        "factor on the correlations of conjunctions of two and more",
        symbol="$d$",
        at_least=0,
        at_most=1,
    )
    stages: int = parameter(0, "boosting stages; 0: chosen by cross-validation", at_least=0)


@dataclass(frozen=True)
class TreeClassifier(Classifier):
    """A decision tree like C4.5: split by information gain and pruned by cross-validation."""

    label = "C4.5-like tree"
    cites = ("quinlan1993", "pedregosa2011")


@dataclass(frozen=True)
class MlpClassifier(Classifier):
    """A perceptron with one hidden layer of cross-validated size (5 to 80 units) and early stopping."""

    label = "multi-layer"
    cites = ("pedregosa2011",)


@dataclass(frozen=True)
class OrdinaryClassifier(Classifier):
    """An ordinary perceptron: a single sigmoid unit on all inputs, trained to minimise the cross-entropy."""

    label = "ordinary"
    cites: ClassVar[tuple[str, ...]] = ("pedregosa2011",)
    lam_per_example: float = parameter(
        1e-4, "strength of the l2 penalty per example, of single sigmoid units", symbol=r"$\lambda/P$", above=0
    )


@dataclass(frozen=True)
class SecondOrderClassifier(OrdinaryClassifier):
    """A single sigmoid unit on all inputs and all pairwise conjunctions of inputs."""

    label = "2nd-order"
    cites = ("jackson1996", "pedregosa2011")


@dataclass(frozen=True)
class PrunedClassifier(OrdinaryClassifier):
    """An ordinary perceptron pruned by optimal brain damage, which repeatedly removes the least salient weight."""

    label = "pruned"
    cites = ("lecun1990", "pedregosa2011")


@dataclass(frozen=True)
class PrunedSecondOrderClassifier(PrunedClassifier):
    """A pruned perceptron on inputs and their pairwise conjunctions, an open question of Jackson & Craven."""

    label = "pruned 2nd-order"
    share: float = parameter(
        0.05, "fraction of its remaining weights that a pruned 2nd-order perceptron loses at a time", above=0, below=1
    )


@dataclass(frozen=True)
class FinalWeightsClassifier(Classifier):
    """Daume's perceptron, predicting with its final weights."""

    label = "perceptron"
    cites = ("daume", "rosenblatt1958")
    output: ClassVar[str] = "last"  # weights used for prediction: "last", "averaged" or "voted"
    order: str = parameter(
        "every",
        "order in which perceptrons visit the examples",
        choices=EXAMPLE_ORDER_MEANINGS,
        noun="an order of examples",
    )
    passes: int = parameter(100, "most passes over the examples", at_least=1)


@dataclass(frozen=True)
class AveragedClassifier(FinalWeightsClassifier):
    """Daume's perceptron, predicting with its weights averaged over all visits."""

    label, output = "averaged", "averaged"
    cites = ("daume", "freund1999")


@dataclass(frozen=True)
class VotedClassifier(FinalWeightsClassifier):
    """Daume's perceptron, predicting by a vote of all its weight vectors."""

    label, output = "voted", "voted"
    cites = ("daume", "freund1999")


@dataclass(frozen=True)
class AttentiveClassifier(Classifier):
    """The Attentive Perceptron of Pelossof & Ying, which evaluates features until it reaches a boundary."""

    label = "attentive"
    cites: ClassVar[tuple[str, ...]] = ("pelossof2010",)
    update: ClassVar[str] = "perceptron"  # update rule for an example to be learnt
    level: str = parameter(
        "brownian-bridge", "boundary where the Attentive Perceptron stops", choices=BOUNDARIES, noun="a boundary"
    )
    chosen: str = parameter(
        "random",
        "order in which the Attentive Perceptron evaluates features",
        choices=FEATURE_ORDER_MEANINGS,
        noun="an order of features",
    )
    error_rate: float = parameter(0.1, "target decision-error rate", symbol=r"$\epsilon_d$", above=0, below=0.5)
    chunk: int = parameter(16, "features between two looks at the sum", at_least=1)
    passes: int = parameter(100, "most passes over the examples", at_least=1)
    budget: int = parameter(
        0, "features of a hard-budget perceptron, which it always evaluates; 0: no budget", at_least=0
    )
    theta: float = parameter(
        0.0,
        "threshold of the full sum; examples whose margin does not exceed it are learnt",
        symbol=r"$\theta$",
        at_least=0,
    )

    @property
    def random_seed_parameters(self) -> dict[str, Any]:
        """All parameters except theta: runs at different theta share the order of examples and features."""
        return {name: value for name, value in vars(self).items() if name != "theta"}


@dataclass(frozen=True)
class PassiveAggressiveClassifier(AttentiveClassifier):
    """The passive-aggressive learner PA-I (Crammer et al.), which evaluates features up to a boundary."""

    label = "passive-aggressive"
    cites = ("crammer2006", "pelossof2010")
    update = "passive_aggressive"
    theta: float = parameter(
        1.0,
        "threshold of the full sum; examples whose margin does not exceed it are learnt",
        symbol=r"$\theta$",
        above=0,
    )
    aggressiveness: float = parameter(1.0, "largest step of a passive-aggressive update", symbol="$C$", above=0)


@dataclass(frozen=True)
class NeighboursClassifier(Classifier):
    """The k-nearest-neighbours classifier: a majority vote of the nearest examples."""

    label = "nearest neighbours"
    cites = ("pedregosa2011",)
    neighbours: int = parameter(5, "nearest examples that vote", at_least=1)


CLASSIFIERS: dict[str, type[Classifier]] = {
    "boosting": BoostingClassifier,
    "tree": TreeClassifier,
    "mlp": MlpClassifier,
    "ordinary": OrdinaryClassifier,
    "second_order": SecondOrderClassifier,
    "pruned": PrunedClassifier,
    "pruned_second_order": PrunedSecondOrderClassifier,
    "perceptron": FinalWeightsClassifier,
    "averaged": AveragedClassifier,
    "voted": VotedClassifier,
    "attentive": AttentiveClassifier,
    "passive_aggressive": PassiveAggressiveClassifier,
    "neighbours": NeighboursClassifier,
}
