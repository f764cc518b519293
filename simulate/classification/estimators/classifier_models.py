r"""Scikit-learn models of a study's classifiers, and counts of the weights and features of fitted models.

`PrunedPerceptron` is a single sigmoid unit with optimal brain damage (Le Cun, Denker & Solla 1989), as used by Jackson
& Craven. The unit is trained to minimal cross-entropy. Then the weight of smallest saliency

.. math:: s_i = \tfrac12 h_{ii}w_i^2, \qquad h_{ii} = \sum_x p(x)(1-p(x))\,x_i^2,

the increase of a quadratic error without mixed terms, is set to 0 permanently, and the procedure is repeated. A
validation set determines how many weights remain. To save time, a fraction of the remaining weights can be set to 0 at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from simulate.classification.conjunctions import get_voting_stages, sum_conjunction_weights
from simulate.classification.estimators.attentive import AttentivePerceptron
from simulate.classification.estimators.linear_classifiers import Perceptron
from simulate.classification.estimators.sparse_perceptron import SparsePerceptron
from statmech.classification import classifiers
from statmech.inputs.data_sets import DataSetContent, list_distinct_values

HIDDEN_LAYER_SIZES = (5, 10, 20, 40, 80)  # candidates for multi-layer perceptrons (Jackson & Craven, section 4)
VALIDATION_FRACTION, MLP_BATCH_EXAMPLES = 0.2, 200  # for multi-layer perceptrons only
MIN_MLP_PATIENCE_STEPS = 100  # 10 passes (only 20 steps on the data set votes) stop small hidden layers too early
TREE_PRUNING_COST_CANDIDATES = (
    0.0,
    0.001,
    0.003,
    0.01,
    0.03,
    0.1,
)  # candidate costs of a leaf, chosen by cross-validation
MODEL_SELECTION_FOLDS = 5  # for model selection within each training set


class PrunedPerceptron(ClassifierMixin, BaseEstimator):
    """A sigmoid unit for two classes, pruned to the fewest weights with minimal validation error.

    `lam_per_example` is the strength of the l2 penalty per example, `validation` the fraction of the examples used for
    validation, `share` the fraction of the remaining weights that are removed at a time, at least one. Examples may be
    a sparse matrix. Fitted: `classes_`, `coef_`, `intercept_`. Raises `ValueError` as scikit-learn's estimators do.

    >>> X = np.random.default_rng(0).standard_normal((200, 10))
    >>> model = PrunedPerceptron().fit(X, X[:, 3] > 0)
    >>> np.flatnonzero(model.coef_)
    array([3])
    """

    def __init__(
        self, lam_per_example: float = 1e-3, validation: float = 0.25, random_state: Any = 0, share: float = 0.0
    ):
        self.lam_per_example = lam_per_example
        self.validation = validation
        self.random_state = random_state
        self.share = share

    def fit(self, X: Any, y: Any) -> Self:
        """Fit and prune the sigmoid unit on examples X (m, features) with labels y (m,) of two classes."""
        X, y = validate_data(self, X, y, dtype=float, accept_sparse="csr")
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise ValueError(f"PrunedPerceptron requires examples of two classes, not of {len(self.classes_)}")
        inside, outside, y_inside, y_outside = train_test_split(
            X, y, test_size=self.validation, stratify=y, random_state=self.random_state
        )
        min_error = np.inf
        for coef, intercept in self._iterate_prunings(inside, y_inside):
            wrong = np.mean(self.classes_[(outside @ coef + intercept > 0).astype(int)] != y_outside)
            if wrong <= min_error:  # equal errors: prefer fewer weights
                min_error, self.coef_, self.intercept_ = wrong, coef[None], np.array([intercept])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the activations (m,) of the pruned unit."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, accept_sparse="csr", reset=False)
        return X @ self.coef_[0] + self.intercept_[0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each example."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _iterate_prunings(self, X: Any, y: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        """Yield the unit's weights and bias before each pruning, and finally the bias alone."""
        remaining, squares = np.arange(X.shape[1]), X.power(2) if sp.issparse(X) else X**2
        unit = LogisticRegression(C=1 / (self.lam_per_example * len(y)), max_iter=1000, warm_start=True)
        while remaining.size:
            unit.fit(X[:, remaining], y)
            coef = np.zeros(X.shape[1])
            coef[remaining] = unit.coef_[0]
            yield coef, float(unit.intercept_[0])
            p = unit.predict_proba(X[:, remaining])[:, 1]
            saliency = (p * (1 - p)) @ squares[:, remaining] * unit.coef_[0] ** 2 / 2
            pruned = np.argsort(saliency, kind="stable")[: max(1, int(self.share * remaining.size))]
            remaining, unit.coef_ = np.delete(remaining, pruned), np.delete(unit.coef_, pruned, axis=1)
        yield np.zeros(X.shape[1]), float(np.log(np.mean(y == self.classes_[1]) / np.mean(y == self.classes_[0])))


class TrainingDataProperties(NamedTuple):
    """Properties of a model's training data: attribute categories, number of examples, and random state.

    The categories are "auto" for columns of numbers.
    """

    attribute_categories: Any
    size: int
    random: int


def get_attribute_categories(data: DataSetContent) -> Any:
    """Return the categories of each nominal attribute, or "auto" for columns of numbers.

    Categories of the complete data set are used in every fold.
    """
    return "auto" if data.X.dtype == float else list_distinct_values(data.X)


def encode_as_numbers(data: DataSetContent) -> np.ndarray:
    """Encode the attributes of a data set as numbers (m, n) for models.

    A nominal attribute has one indicator per category, all 0 where the value is missing. Numbers are scaled to at most
    1.
    """
    if data.X.dtype == float:
        return data.X / max(np.abs(data.X).max(), 1e-300)
    encoder = OneHotEncoder(categories=get_attribute_categories(data), handle_unknown="ignore", sparse_output=False)
    return encoder.fit_transform(data.X)


def make_model(classifier: Any, task: TrainingDataProperties) -> Any:
    """Make the unfitted scikit-learn model of a classifier.

    A classifier that has a method `make(task)` makes its own model. Models learn from columns of text if the
    classifier has `uses_raw_attributes`, else from `numbers`.

    Parameters
    ----------
    classifier : an object of a class in `CLASSIFIERS`
    task : the data to learn from

    Returns
    -------
    a scikit-learn classifier

    >>> make_model(classifiers.NeighboursClassifier(neighbours=3), TrainingDataProperties("auto", size=100, random=0))
    KNeighborsClassifier(n_neighbors=3)
    """
    return classifier.make(task) if hasattr(classifier, "make") else make_model_by_classifier_type(classifier, task)


@singledispatch
def make_model_by_classifier_type(classifier: Any, task: TrainingDataProperties) -> Any:
    """Make the model with the function registered for the classifier's class or nearest base class."""
    name = type(classifier).__name__
    raise NotImplementedError(
        f"{name} requires a method `make(task)` or a registered function in "
        "simulate.classification.estimators.classifier_models"
    )


@make_model_by_classifier_type.register
def make_sparse_perceptron(classifier: classifiers.BoostingClassifier, task: TrainingDataProperties) -> Any:
    """Make the model of a sparse perceptron, whose number of stages is cross-validated unless it is given."""
    stages = classifier.stages or "cv"
    return SparsePerceptron(
        classifier.k, stages, classifier.discount, categories=task.attribute_categories, random_state=task.random
    )


@make_model_by_classifier_type.register
def make_decision_tree(classifier: classifiers.TreeClassifier, task: TrainingDataProperties) -> Any:
    """Make a decision tree whose pruning is selected by cross-validation."""
    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=task.random)
    return GridSearchCV(tree, {"ccp_alpha": TREE_PRUNING_COST_CANDIDATES}, cv=MODEL_SELECTION_FOLDS)


@make_model_by_classifier_type.register
def make_multilayer_perceptron(classifier: classifiers.MlpClassifier, task: TrainingDataProperties) -> Any:
    """Make the model of a multi-layer perceptron, whose hidden layer is selected by cross-validation."""
    network = MLPClassifier(
        learning_rate_init=0.01,
        max_iter=1000,
        early_stopping=True,
        validation_fraction=VALIDATION_FRACTION,
        n_iter_no_change=_compute_patience_passes(task.size),
        random_state=task.random,
    )
    return GridSearchCV(
        network, {"hidden_layer_sizes": [(units,) for units in HIDDEN_LAYER_SIZES]}, cv=MODEL_SELECTION_FOLDS
    )


def _compute_patience_passes(num_examples: int) -> int:
    """Compute the number of passes without validation progress that ends the training.

    Small data sets have few steps per pass and therefore need more passes.

    >>> _compute_patience_passes(391), _compute_patience_passes(15000)
    (50, 10)
    """
    steps = ceil((1 - VALIDATION_FRACTION) * num_examples / MLP_BATCH_EXAMPLES)
    return max(10, ceil(MIN_MLP_PATIENCE_STEPS / steps))


@make_model_by_classifier_type.register
def make_logistic_regression(classifier: classifiers.OrdinaryClassifier, task: TrainingDataProperties) -> Any:
    """Make a logistic regression."""
    return LogisticRegression(C=1 / (classifier.lam_per_example * task.size), max_iter=5000)


@make_model_by_classifier_type.register
def make_pair_logistic(classifier: classifiers.SecondOrderClassifier, task: TrainingDataProperties) -> Any:
    """Make a logistic regression on all inputs and all pairs of inputs."""
    return _add_pair_features(make_logistic_regression(classifier, task))


@make_model_by_classifier_type.register
def make_pruned_perceptron(classifier: classifiers.PrunedClassifier, task: TrainingDataProperties) -> Any:
    """Make a perceptron pruned by optimal brain damage."""
    return PrunedPerceptron(classifier.lam_per_example, random_state=task.random)


@make_model_by_classifier_type.register
def make_pruned_pair_perceptron(
    classifier: classifiers.PrunedSecondOrderClassifier, task: TrainingDataProperties
) -> Any:
    """Make a pruned perceptron on all inputs and all pairs of inputs."""
    return _add_pair_features(
        PrunedPerceptron(classifier.lam_per_example, share=classifier.share, random_state=task.random)
    )


def _add_pair_features(model: Any) -> Any:
    """Make a pipeline that learns from all inputs and all conjunctions of two inputs."""
    pairs = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    return make_pipeline(FunctionTransformer(csr_array), pairs, model)


@make_model_by_classifier_type.register
def make_perceptron(classifier: classifiers.FinalWeightsClassifier, task: TrainingDataProperties) -> Any:
    """Make a perceptron with the given example order and output."""
    order = "constant" if classifier.order == "by-class" else classifier.order
    return Perceptron(classifier.passes, order, classifier.output, random_state=task.random)


@make_model_by_classifier_type.register
def make_attentive_perceptron(classifier: classifiers.AttentiveClassifier, task: TrainingDataProperties) -> Any:
    """Make the model of an attentive perceptron with a budget of features or an error rate."""
    options: dict[str, Any] = {
        "max_iter": classifier.passes,
        "random_state": task.random,
        "theta": classifier.theta,
        "update": classifier.update,
        "aggressiveness": getattr(classifier, "aggressiveness", 1.0),
    }
    if classifier.budget:
        return AttentivePerceptron(budget=classifier.budget, **options)
    return AttentivePerceptron(classifier.error_rate, classifier.level, classifier.chunk, classifier.chosen, **options)


@make_model_by_classifier_type.register
def make_nearest_neighbours(classifier: classifiers.NeighboursClassifier, task: TrainingDataProperties) -> Any:
    """Make a nearest-neighbours classifier."""
    return KNeighborsClassifier(classifier.neighbours)


@singledispatch
def count_nonzero_weights(model: Any) -> float:
    """Count the nonzero weights of a fitted model, excluding thresholds.

    The count is NaN for models without weights.
    """
    return float(np.count_nonzero(model.coef_)) if hasattr(model, "coef_") else np.nan


@count_nonzero_weights.register
def _(model: GridSearchCV) -> float:
    return count_nonzero_weights(model.best_estimator_)


@count_nonzero_weights.register
def _(model: Pipeline) -> float:
    return count_nonzero_weights(model[-1])


@count_nonzero_weights.register
def _(model: MLPClassifier) -> float:
    return float(sum(np.count_nonzero(layer) for layer in model.coefs_))


@count_nonzero_weights.register
def _(model: SparsePerceptron) -> float:
    return float(len({hypothesis.indicators for hypothesis in _get_voting_hypotheses(model) if hypothesis.indicators}))


@singledispatch
def count_evaluated_features(model: Any, X: np.ndarray) -> dict[str, float]:
    """Count the features evaluated per example when classifying X and when learning.

    The counts are NaN for models that do not evaluate weighted sums.
    """
    return {"features_evaluated": np.nan, "features_learning": np.nan}


@count_evaluated_features.register(Perceptron)
@count_evaluated_features.register(LogisticRegression)
def _(model: Any, X: np.ndarray) -> dict[str, float]:
    return {"features_evaluated": float(X.shape[1]), "features_learning": float(X.shape[1])}


@count_evaluated_features.register
def _(model: AttentivePerceptron, X: np.ndarray) -> dict[str, float]:
    classifying = sum(walks.features.mean() for walks in model.evaluate(X))
    return {"features_evaluated": float(classifying), "features_learning": float(np.mean(model.features_))}


@singledispatch
def count_pair_weights(model: Any, codons: bool) -> dict[str, float]:
    """Count a sparse perceptron's weights on pairs of attributes, and on pairs within one codon."""
    return {}


@count_pair_weights.register
def _(model: SparsePerceptron, codons: bool) -> dict[str, float]:
    position = _get_indicator_attributes(model)
    attribute_pairs = {
        hypothesis.indicators for hypothesis in _get_voting_hypotheses(model) if len(hypothesis.indicators) == 2
    }
    num_within_codon = sum(first == second for first, second in (position[list(pair)] // 3 for pair in attribute_pairs))
    return {"pairs": float(len(attribute_pairs)), "codon_pairs": float(num_within_codon) if codons else np.nan}


@singledispatch
def sum_pair_weights(model: Any, length: int) -> np.ndarray:
    """Sum a sparse perceptron's absolute weights for each pair of attributes (length, length).

    The row is the first attribute of a pair. The sums are NaN for other models.
    """
    return np.full((length, length), np.nan)


@sum_pair_weights.register
def _(model: SparsePerceptron, length: int) -> np.ndarray:
    sums, position = np.zeros((length, length)), _get_indicator_attributes(model)
    for voter, weight in [pair for stages in model.stages_ for pair in sum_conjunction_weights(stages).items()]:
        if len(voter.indicators) == 2:
            sums[tuple(position[sorted(voter.indicators)])] += weight
    return sums


def _get_indicator_attributes(model: SparsePerceptron) -> np.ndarray:
    """Return the index of the attribute that each indicator belongs to."""
    size = [len(attribute.get_conditions()) for attribute in model.attributes_]
    return np.repeat(np.arange(len(size)), size)


def _get_voting_hypotheses(model: SparsePerceptron) -> list[Any]:
    """Return the voting hypotheses of all stages."""
    return [stage.hypothesis for stages in model.stages_ for stage in get_voting_stages(stages)]
