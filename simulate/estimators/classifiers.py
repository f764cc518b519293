"""Makes the classifiers of a study, and tells what they come to: one function for each name of `CLASSIFIERS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier

from simulate.estimators.attentive import AttentivePerceptron
from simulate.estimators.perceptron import Perceptron
from simulate.estimators.pruned import PrunedPerceptron
from simulate.estimators.sparse import SparsePerceptron
from simulate.kernels.conjunctions import counted
from statmech.data_sets import Data, words
from statmech.scenarios.cross_validation import StudyCell

HIDDEN = (5, 10, 20, 40, 80)  # units of the multi-layer perceptrons (section 4 of Jackson & Craven)
PRUNINGS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)  # cost-complexities of a leaf that a tree may choose from
INNER = 5  # folds of the cross-validations inside


class Task(NamedTuple):
    """What a classifier is made for: its cell, the domain of nominal attributes, so many examples, a random state."""

    cell: StudyCell
    domain: Any  # the words of each column, or "auto" for numbers
    size: int
    random: int


def domain(data: Data) -> Any:
    """The words of each nominal attribute, whichever of them a fold may hold; "auto" for numbers."""
    return "auto" if data.X.dtype == float else words(data.X)


def numbers(data: Data) -> np.ndarray:
    """What classifiers of numbers see (m, n): an indicator of each word, none where it is missing; numbers up to 1."""
    if data.X.dtype == float:
        return data.X / max(np.abs(data.X).max(), 1e-300)
    encoder = OneHotEncoder(categories=domain(data), handle_unknown="ignore", sparse_output=False)
    encoded: np.ndarray = encoder.fit_transform(data.X)
    return encoded


def made(task: Task) -> Any:
    """A cell's classifier, to be fitted to columns of words if it is a `boosting`, else to `numbers`."""
    return MAKERS[task.cell.name](task, task.cell.classifier)


def _boosting(task: Task, of: Any) -> Any:
    stages = int(of.stages) or "cv"
    return SparsePerceptron(int(of.k), stages, of.discount, categories=task.domain, random_state=task.random)


def _tree(task: Task, of: Any) -> Any:
    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=task.random)
    return GridSearchCV(tree, {"ccp_alpha": PRUNINGS}, cv=INNER)


def _mlp(task: Task, of: Any) -> Any:
    network = MLPClassifier(
        learning_rate_init=0.01, max_iter=1000, early_stopping=True, validation_fraction=0.2, random_state=task.random
    )
    return GridSearchCV(network, {"hidden_layer_sizes": [(units,) for units in HIDDEN]}, cv=INNER)


def _ordinary(task: Task, of: Any) -> Any:
    return LogisticRegression(C=1 / (of.decay * task.size), max_iter=5000)


def _second_order(task: Task, of: Any) -> Any:
    pairs = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    return make_pipeline(FunctionTransformer(csr_array), pairs, _ordinary(task, of))


def _pruned(task: Task, of: Any) -> Any:
    return PrunedPerceptron(of.decay, random_state=task.random)


def _perceptron(output: str) -> Callable[[Task, Any], Any]:
    def make(task: Task, of: Any) -> Any:
        order = "constant" if task.cell.order == "by-class" else task.cell.order
        return Perceptron(int(of.passes), order, output, random_state=task.random)

    return make


def _attentive(task: Task, of: Any) -> Any:
    cell, passes = task.cell, int(of.passes)
    if of.budget:
        return AttentivePerceptron(budget=int(of.budget), max_iter=passes, random_state=task.random)
    return AttentivePerceptron(
        of.delta, cell.level, int(of.chunk), cell.chosen, max_iter=passes, random_state=task.random
    )


def _neighbours(task: Task, of: Any) -> Any:
    return KNeighborsClassifier(int(of.neighbours))


MAKERS: dict[str, Callable[[Task, Any], Any]] = {
    "boosting": _boosting,
    "tree": _tree,
    "mlp": _mlp,
    "ordinary": _ordinary,
    "second_order": _second_order,
    "pruned": _pruned,
    "perceptron": _perceptron("last"),
    "averaged": _perceptron("averaged"),
    "voted": _perceptron("voted"),
    "attentive": _attentive,
    "neighbours": _neighbours,
}


def weights(model: Any) -> float:
    """How many weights of a fitted classifier are not 0, thresholds apart; NaN for one that has none."""
    model = getattr(model, "best_estimator_", model)
    if isinstance(model, SparsePerceptron):
        return float(len({hypothesis.indicators for hypothesis in _voters(model) if hypothesis.indicators}))
    if isinstance(model, MLPClassifier):
        return float(sum(np.count_nonzero(layer) for layer in model.coefs_))
    last = model[-1] if hasattr(model, "steps") else model
    return float(np.count_nonzero(last.coef_)) if hasattr(last, "coef_") else np.nan


def features(model: Any, X: np.ndarray) -> dict[str, float]:
    """Features evaluated an example, to classify rows of X and in learning; NaN where no sum is evaluated."""
    if isinstance(model, AttentivePerceptron):
        classifying = sum(walks.features.mean() for walks in model.evaluate(X))
        return {"features": float(classifying), "features_learning": float(np.mean(model.features_))}
    every = float(X.shape[1]) if isinstance(model, Perceptron | LogisticRegression) else np.nan
    return {"features": every, "features_learning": every}


def pairs(model: Any, codons: bool) -> dict[str, float]:
    """How many weights of a sparse perceptron are of two attributes, and, of codons, how many lie within one."""
    if not isinstance(model, SparsePerceptron):
        return {}
    size = [len(attribute.names()) for attribute in model.attributes_]
    position = np.repeat(np.arange(len(size)), size)
    found = {hypothesis.indicators for hypothesis in _voters(model) if len(hypothesis.indicators) == 2}
    within = sum(one == other for one, other in (position[list(pair)] // 3 for pair in found))
    return {"pairs": float(len(found)), "codon_pairs": float(within) if codons else np.nan}


def _voters(model: SparsePerceptron) -> list[Any]:
    return [stage.hypothesis for stages in model.stages_ for stage in counted(stages)]
