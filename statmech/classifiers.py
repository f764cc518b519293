"""Classifiers that a study compares on data: what they are called, and their parameters.

**To add a classifier** write one class here, one line in `CLASSIFIERS`, and one function in
`simulate.estimators.classifiers` that makes it. Config key, datasets, tables and figures follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from statmech.parameters import parameter


@dataclass(frozen=True)
class Classifier:
    """A way to a class from attributes; subclasses state their `label`, and which keys besides parameters concern them.

    `keys`: "order" (of examples), "level" (a boundary) and "chosen" (order of features).
    """

    label: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Boosting(Classifier):
    """The sparse perceptron: boosted conjunctions of at most k attributes' values (Jackson & Craven)."""

    label = "boosting"
    k: int = parameter(2, "most attributes in a conjunction", symbol="$k$", at_least=1, at_most=4)
    discount: float = parameter(
        0.5,
        "factor on the correlation of conjunctions of two and more when a stage chooses",
        symbol="$d$",
        at_least=0,
        at_most=1,
    )
    stages: int = parameter(0, "boosting stages; 0: chosen by cross-validation", symbol="$T$", at_least=0)


@dataclass(frozen=True)
class Tree(Classifier):
    """A C4.5-like decision tree: splits of the largest information gain, its pruning chosen by cross-validation."""

    label = "C4.5-like tree"


@dataclass(frozen=True)
class Mlp(Classifier):
    """A perceptron with a hidden layer: 5, 10, 20, 40 or 80 units, by cross-validation; stops by a validation set."""

    label = "multi-layer"


@dataclass(frozen=True)
class Ordinary(Classifier):
    """A single sigmoid unit of all inputs, its cross-entropy minimised: an ordinary perceptron."""

    label = "ordinary"
    decay: float = parameter(1e-4, "weight decay of single sigmoid units, per example", symbol=r"$\lambda$", above=0)


@dataclass(frozen=True)
class SecondOrder(Ordinary):
    """The same of all inputs and all conjunctions of two."""

    label = "2nd-order"


@dataclass(frozen=True)
class Pruned(Ordinary):
    """The same after optimal brain damage: the weight of least saliency goes, again and again."""

    label = "pruned"


@dataclass(frozen=True)
class Perceptron(Classifier):
    """Daume's perceptron, its last weights."""

    label, keys = "perceptron", ("order",)
    passes: int = parameter(100, "most passes over the examples", at_least=1)


@dataclass(frozen=True)
class Averaged(Perceptron):
    """Daume's perceptron, the mean of its weights over all visits."""

    label = "averaged"


@dataclass(frozen=True)
class Voted(Perceptron):
    """Daume's perceptron, a vote of all its weights."""

    label = "voted"


@dataclass(frozen=True)
class Attentive(Classifier):
    """The Attentive Perceptron: features are evaluated until a boundary is reached (Pelossof & Ying)."""

    label, keys = "attentive", ("level", "chosen")
    delta: float = parameter(0.1, "target decision-error rate of the boundary", symbol=r"$\delta$", above=0, below=0.5)
    chunk: int = parameter(16, "features evaluated between two looks at the sum", at_least=1)
    passes: int = parameter(100, "most passes over the examples", at_least=1)
    budget: int = parameter(
        0, "features that a hard-budget perceptron knows, and always evaluates; 0: no budget", at_least=0
    )


@dataclass(frozen=True)
class Neighbours(Classifier):
    """The majority of the nearest examples (k-NN)."""

    label = "nearest neighbours"
    neighbours: int = parameter(5, "examples that vote in k-NN", symbol="$k$", at_least=1)


CLASSIFIERS: dict[str, type[Classifier]] = {
    "boosting": Boosting,
    "tree": Tree,
    "mlp": Mlp,
    "ordinary": Ordinary,
    "second_order": SecondOrder,
    "pruned": Pruned,
    "perceptron": Perceptron,
    "averaged": Averaged,
    "voted": Voted,
    "attentive": Attentive,
    "neighbours": Neighbours,
}
