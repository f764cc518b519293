r"""Base classes of the linear classifiers, example weights, margin-based updates, and the perceptron.

Classes: `OneAgainstRestClassifier` is the base class of all classifiers, with one student for two classes, otherwise
one student per class against the rest. `LinearClassifier` is the base class of linear classifiers, which learn from
examples multiplied by their labels.

Example weights are the products of sample and class weights. Examples of weight 0 are dropped. A learner that visits
examples in turn draws the visits of a pass in proportion to the weights, by systematic resampling: an example of
relative weight p receives np of n visits, rounded up or down at random. Equal weights have no effect.

Updates: margin-based learners add each example whose margin does not exceed theta,

.. math:: \mathbf w \leftarrow \mathbf w + s\,y\,\mathbf x \quad\text{if}\quad y\,\mathbf w\cdot\mathbf x \le \theta,

where y is the label, and the updates differ in the strength s. The constant feature of a bias is one component of x.

Perceptron: Daume's perceptron for scikit-learn (A Course in Machine Learning, chapter 3), with its averaged and voted
forms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import zip_longest
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from simulate.learners.perceptron_convergence import iterate_mistakes

MAX_TOTAL_VISITS_PER_PASS = 10**8  # limits the indices of a pass to 1 GB
MAX_FEATURE_VALUE = 1e50  # the variance of margins, of order 1e200, must not overflow
EXAMPLE_ORDER_OPTIONS = ("constant", "once", "every")
PERCEPTRON_OUTPUT_OPTIONS = ("last", "averaged", "voted")


def combine_example_weights(X: Any, y: np.ndarray, sample_weight: Any, class_weight: Any) -> np.ndarray | None:
    """Return the weights (m,) of examples, or None if neither samples nor classes have weights.

    Raises `ValueError` for weights that are negative or all 0, and for classes that y does not have.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights: np.ndarray = _check_sample_weight(sample_weight, X, dtype=float, ensure_non_negative=True)
    if class_weight is None:
        return weights
    if not isinstance(class_weight, dict) and str(class_weight) != "balanced":
        raise ValueError(f'class_weight must be a dictionary of classes, "balanced", or None, not {class_weight!r}')
    classes, index = np.unique(y, return_inverse=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # all examples of a class may have weight 0
        factors = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weights)
        weights = np.where(weights > 0, weights * factors[index], 0.0)
    if not (weights >= 0).all() or not weights.any():
        raise ValueError("class_weight must not be negative, nor 0 for all examples")
    return weights


def drop_zero_weight_examples(
    X: Any, y: np.ndarray, weights: np.ndarray | None
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Remove the examples of weight 0 and return X, y and relative weights.

    Equal weights become None.
    """
    if weights is None:
        return X, y, None
    positive = weights > 0
    X, y, weights = X[positive], y[positive], weights[positive]
    return X, y, None if weights.min() == weights.max() else weights / weights.max()


class VisitSchedule:
    """Schedule of the visits in each pass, with a record of the examples not visited since the last mistake."""

    def __init__(self, size: int, weights: np.ndarray | None = None):
        self.unvisited = np.ones(size, bool)
        self.weights = weights if weights is None else weights / weights.mean()

    def draw(self, order: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        """Draw the rows visited in a pass, in proportion to their weights."""
        return order if self.weights is None else resample_by_weight(order, self.weights, random)

    def record_pass(self, rows: np.ndarray, mistakes: int) -> None:
        """Record the rows visited in a pass and its number of mistakes."""
        self.unvisited[rows] = False
        if mistakes:
            self.unvisited[:] = True

    @property
    def has_visited_all_correctly(self) -> bool:
        """True if all examples have been visited since the last pass with a mistake."""
        return not self.unvisited.any()


def resample_by_weight(order: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Repeat each row of `order` by its weight, randomly rounded up or down to an integer.

    >>> resample_by_weight(np.array([2, 0, 1]), np.array([1.0, 2.0, 0.0]), np.random.RandomState(0))
    array([0, 1, 1])
    """
    if weights.sum() > MAX_TOTAL_VISITS_PER_PASS:
        raise ValueError(
            f"the weights add up to {weights.sum():g} visits, more than {MAX_TOTAL_VISITS_PER_PASS:,}: divide them"
        )
    ends = np.floor(np.cumsum(weights) + random.random_sample())
    return np.repeat(order, np.diff(ends, prepend=0.0).astype(int)[order])


class OneAgainstRestClassifier(ClassifierMixin, BaseEstimator):
    """Base class of classifiers whose `decision_function` has one column per student."""

    classes_: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each example.

        With two classes, only a positive decision means the second class.
        """
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]

    def _validate_data(self, *arrays: Any, **options: Any) -> Any:
        """Validate data as scikit-learn does.

        Warnings about overflow in the sum over finite X are suppressed.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return validate_data(self, *arrays, **options)

    def _set_classes(self, y: np.ndarray) -> None:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            [only] = self.classes_.tolist()
            raise ValueError(f"{type(self).__name__} needs examples of at least two classes, not of 1 class: {only!r}")

    def _make_sign_labels(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the labels +-1 of each student."""
        ones = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return [np.where(y == positive_class, 1, -1) for positive_class in ones]

    @staticmethod
    def _stack_decisions(columns: list[np.ndarray]) -> np.ndarray:
        """Return one column (m,) for two classes, otherwise an array (m, classes)."""
        return columns[0] if len(columns) == 1 else np.column_stack(columns)


def check_integer_parameters(min_value: int = 1, **values: Any) -> None:
    """Raise `ValueError` for parameters that are not integers of at least `min_value`."""
    for name, value in values.items():
        if not isinstance(value, Integral) or value < min_value:
            raise ValueError(f"{name} must be an integer of at least {min_value}, not {format_python_value(value)}")


def format_python_value(value: Any) -> str:
    """Return the repr of a value as a Python object, for example 1.0 instead of np.float64(1.0).

    >>> format_python_value(np.float64(1.0)), format_python_value("one")
    ('1.0', "'one'")
    """
    return repr(value.item() if isinstance(value, np.generic) else value)


def sum_counts_per_pass(passes: list[list[Any]]) -> list[Any]:
    """Sum the counts of several students pass by pass.

    Students may have different numbers of passes.

    >>> sum_counts_per_pass([[3, 1, 0], [2, 0]])
    [5, 1, 0]
    """
    return [sum(counts) for counts in zip_longest(*passes, fillvalue=0)]


class LinearStudent(NamedTuple):
    """Weights of a student, with the bias last, and its number of passes or epochs."""

    w: np.ndarray
    n_iter: int


class LinearClassifier(OneAgainstRestClassifier, ABC):
    """Base class of linear classifiers with the scikit-learn interface.

    Subclasses define the learning algorithm and whether rows may be sparse.
    """

    accepts_sparse_rows = False
    fit_intercept: bool
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier to examples X (m, features) with labels y (m,) and sample weights (m,)."""
        self._check_parameters()
        X, y = self._validate_data(X, y, dtype=float, accept_sparse="csr" if self.accepts_sparse_rows else False)
        check_large_features(X)
        check_small_features(X)
        X, y, weights = drop_zero_weight_examples(X, y, combine_example_weights(X, y, sample_weight, self.class_weight))
        self._set_classes(y)
        rows = (append_bias_multiply_by_labels(X, signs, self.fit_intercept) for signs in self._make_sign_labels(y))
        self._set_fitted_weights([self._learn(z, VisitSchedule(len(y), weights)) for z in rows])
        return self

    def _check_partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Any, np.ndarray, Any, bool]:
        """Check the examples passed to a linear classifier's `partial_fit` and return them with their weights.

        The last result is True for the first call, which must name all classes.
        """
        self._check_parameters()
        if str(self.class_weight) == "balanced":
            raise ValueError('class_weight="balanced" needs all examples: call fit, or set a dictionary of weights')
        first = not hasattr(self, "classes_")
        X, y = self._validate_data(
            X, y, dtype=float, accept_sparse="csr" if self.accepts_sparse_rows else False, reset=first
        )
        check_large_features(X)
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known_classes = np.unique(classes) if first else self.classes_
        if len(known_classes) < 2:
            raise ValueError(f"{type(self).__name__} needs at least two classes, not {known_classes.tolist()}")
        if unknown := sorted(set(np.unique(y).tolist()) - set(known_classes.tolist())):
            raise ValueError(f"y has classes {unknown} that are not among {known_classes.tolist()}")
        self.classes_ = known_classes
        return X, y, combine_example_weights(X, y, sample_weight, self.class_weight), first

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the activations w.x + b, (m,) for two classes, otherwise (m, classes).

        For two classes a positive activation means the second class.
        """
        check_is_fitted(self)
        X = self._validate_data(X, dtype=float, accept_sparse="csr" if self.accepts_sparse_rows else False, reset=False)
        check_large_features(X)
        return self._stack_decisions(list((X @ self.coef_.T + self.intercept_).T))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.accepts_sparse_rows
        return tags

    @abstractmethod
    def _learn(self, z: Any, visits: VisitSchedule) -> LinearStudent:
        """Train a student on the rows z (m, features + 1), the examples times their labels.

        The last column is the constant feature.
        """

    def _check_parameters(self) -> None:
        """Raise `ValueError` for invalid parameters."""

    def _set_fitted_weights(self, students: list[LinearStudent]) -> None:
        weights = np.array([student.w for student in students])
        self.coef_ = weights[:, :-1].copy()
        self.intercept_ = weights[:, -1] if self.fit_intercept else np.zeros(len(weights))
        self.n_iter_ = max(student.n_iter for student in students)


def check_large_features(X: Any) -> None:
    """Raise `ValueError` if features of X, dense or sparse, are so large that margins might overflow."""
    largest = float(np.max(np.abs(X.data if sp.issparse(X) else X), initial=0.0))
    if largest > MAX_FEATURE_VALUE:
        raise ValueError(
            f"X has a value of size {largest:g}, larger than {MAX_FEATURE_VALUE:g}: divide that feature by a constant"
        )


def check_small_features(X: Any) -> None:
    """Raise `ValueError` if a feature of X (m, features) is so small that its products underflow."""
    largest = abs(X).max(axis=0).toarray().ravel() if sp.issparse(X) else np.max(np.abs(X), axis=0)
    small = np.flatnonzero((largest > 0) & (largest < 1 / MAX_FEATURE_VALUE))
    if small.size:
        fault = f"the values of feature {small[0]} of X have sizes up to {largest[small[0]]:g}"
        raise ValueError(f"{fault}, less than {1 / MAX_FEATURE_VALUE:g}: multiply it by a constant")


def append_bias_multiply_by_labels(X: Any, signs: np.ndarray, intercept: bool) -> Any:
    """Append a constant feature (0 without an intercept) to examples and multiply them by their labels."""
    signs = signs.astype(float)
    constant = (signs if intercept else 0 * signs)[:, None]
    if sp.issparse(X):
        return sp.hstack([sp.diags_array(signs) @ X, sp.csr_array(constant)], format="csr")
    return np.hstack([signs[:, None] * X, constant])


def margin(model: Any, X: Any, y: Any) -> float:
    r"""Compute the margin of a fitted linear classifier on a data set of two classes.

    .. math:: \min_\mu\, y^\mu\,(\mathbf w\cdot\mathbf x^\mu+b)/|\mathbf w|, \qquad y^\mu = \pm1

    Negative if an example is misclassified (Daume, section 3.5, sets it to :math:`-\infty` then). The weights are
    `coef_` and `intercept_`, also for estimators with another decision function (voted, attentive).

    Parameters
    ----------
    model : estimator
        A linear classifier of two classes, fitted: of `simulate.learners` or scikit-learn, with `coef_`.
    X : array or sparse matrix (m, features)
    y : array (m,)
        Labels of these classes.

    Returns
    -------
    float
        In the units of X.

    Raises
    ------
    ValueError
        For more than two classes, labels of another class, or weights that are all 0.

    Examples
    --------
    >>> from simulate.learners import Perceptron
    >>> X, y = [[2.0], [-1.0]], [1, 0]
    >>> margin(Perceptron(fit_intercept=False).fit(X, y), X, y)
    1.0
    """
    check_is_fitted(model, "coef_")
    X, y = check_array(X, dtype=float, accept_sparse="csr"), np.asarray(y)
    if len(model.classes_) != 2:
        raise ValueError(f"a margin requires two classes, but this classifier has {len(model.classes_)}")
    if unknown := sorted(set(y.tolist()) - set(model.classes_.tolist())):
        raise ValueError(f"y has classes {unknown} that are not among {model.classes_.tolist()}")
    length = np.linalg.norm(model.coef_)
    if length == 0:
        raise ValueError("the margin is undefined: all weights of this classifier are 0")
    activations = (X @ model.coef_.T + model.intercept_)[:, 0]
    return float(np.min(np.where(y == model.classes_[1], 1.0, -1.0) * activations) / length)


def perceptron_strength(loss: float, squared_length: float, aggressiveness: float) -> float:
    """Return the update strength of the perceptron rule, which is 1 for any loss."""
    return 1.0


def passive_aggressive_strength(loss: float, squared_length: float, aggressiveness: float) -> float:
    r"""Return the update strength of the passive-aggressive rule PA-I (Crammer et al. 2006).

    .. math:: s = \min\Bigl(C,\ \frac{\ell}{|\mathbf x|^2}\Bigr), \qquad
              \ell = \max(0,\ \theta - y\,\mathbf w\cdot\mathbf x),

    which solves :math:`\min_{\mathbf w'}\ \tfrac12|\mathbf w'-\mathbf w|^2 + C\,\ell(\mathbf w')`: the smallest change
    that removes the loss, unless the strength would exceed C.

    Parameters
    ----------
    loss : float
        The loss, not negative.
    squared_length : float
        Squared length of the example.
    aggressiveness : float
        The bound C.

    Returns
    -------
    float
        The strength s; 0 for an example of length 0, which no weights can change.

    Examples
    --------
    >>> passive_aggressive_strength(1.0, 4.0, 1.0), passive_aggressive_strength(1.0, 4.0, 0.1)
    (0.25, 0.1)
    """
    return min(aggressiveness, loss / squared_length) if squared_length > 0 else 0.0


class MarginUpdateRule(NamedTuple):
    """An update rule: its default margin threshold and the function for its strength."""

    theta: float
    strength: Callable[[float, float, float], float]


MARGIN_UPDATE_RULES = {
    "perceptron": MarginUpdateRule(0.0, perceptron_strength),
    "passive_aggressive": MarginUpdateRule(1.0, passive_aggressive_strength),
}


class PerceptronTrainingState:
    """Training state of a student: weights, number of visits, and sums for averaged and voted outputs."""

    def __init__(self, features: int, voted: bool, random: np.random.RandomState):
        self.w, self.random = np.zeros(features), random
        self.visits, self.last_mistake_visit = 0, 0
        self.weighted = np.zeros(features)  # sum of updates, each times the number of visits before the update
        self.voters: list[tuple[np.ndarray, int]] | None = [] if voted else None

    def run_pass(self, z: Any) -> int:
        """Make one pass of a perceptron over the rows z and return the number of mistakes."""
        num_mistakes = 0
        for index, w in iterate_mistakes(self.w, z):
            self._record_voter(self.visits + index)
            self.weighted += (self.visits + index) * (w - self.w)
            self.w, num_mistakes = w, num_mistakes + 1
        self.visits += z.shape[0]
        return num_mistakes

    def compute_mean_weights(self) -> np.ndarray:
        """Compute the mean of w over all visits."""
        return self.w - self.weighted / max(self.visits, 1)

    def get_voters(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the successive weights (n, features) and the number of visits that each survived."""
        assert self.voters is not None
        voters = [*self.voters, (self.w, self.visits - self.last_mistake_visit)]
        return np.array([w for w, _ in voters]), np.array([count for _, count in voters], float)

    def _record_voter(self, visit: int) -> None:
        """Record the current weights as a voter, before the mistake at this visit."""
        if self.voters is not None and visit > self.last_mistake_visit:
            self.voters.append((self.w, visit - self.last_mistake_visit))
        self.last_mistake_visit = visit


class Perceptron(LinearClassifier):
    r"""Rosenblatt's perceptron, PerceptronTrain and PerceptronTest of Daume's chapter 3 (algorithms 5 and 6).

    .. math:: a = \mathbf w\cdot\mathbf x + b; \qquad
              \text{if } ya\le 0:\quad \mathbf w \leftarrow \mathbf w + y\mathbf x, \quad b\leftarrow b+y

    from w = 0, b = 0. More than two classes: one against the rest. Rows may be sparse; `partial_fit` makes one pass in
    the order given. With `sample_weight` or `class_weight` the examples of a pass are drawn in proportion to their
    weights, and learning stops once all were visited without a mistake; in `partial_fit` the weight is the mean number
    of visits.

    Parameters
    ----------
    max_iter : int
        Largest number of passes; learning stops after a pass without a mistake.
    order : {"constant", "once", "every"}
        Order of the examples: as given, permuted once, or before every pass, by `random_state`.
    output : {"last", "averaged", "voted"}
        The last weights, their mean over all visits, or the vote of all weights, each counted once per visit survived.
    fit_intercept : bool
    random_state : int or RandomState
    class_weight : dict or "balanced", optional
        Factor of the weights of each class (1 if not named), or such that all classes have the same weight.

    Attributes
    ----------
    classes_, n_iter_
    coef_, intercept_ : arrays (1 or classes, features) and (1 or classes,)
        The last or the averaged weights.
    mistakes_ : list of int
        Mistakes of each pass.

    Examples
    --------
    >>> model = Perceptron(order="constant").fit([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1, 0, 1])
    >>> model.coef_.tolist(), model.intercept_.tolist(), model.mistakes_
    ([[2.0, -1.0]], [0.0], [3, 1, 0])
    """

    accepts_sparse_rows = True

    def __init__(
        self,
        max_iter: int = 100,
        order: str = "every",
        output: str = "last",
        fit_intercept: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
    ):
        self.max_iter = max_iter
        self.order = order
        self.output = output
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the perceptron to examples X (m, features) with labels y (m,) and sample weights (m,)."""
        self._progress: list[PerceptronTrainingState] = []
        self._mistakes_per_student: list[list[int]] = []
        super().fit(X, y, sample_weight)
        self.mistakes_ = sum_counts_per_pass(self._mistakes_per_student)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass of the perceptron over further examples in the given order.

        The first call names all `classes`.
        """
        X, y, weights, first = self._check_partial_fit(X, y, classes, sample_weight)
        if first:
            self.mistakes_ = []
            self._progress = [self._make_training_state(X.shape[1] + 1) for _ in self._make_sign_labels(y)]
        rows = [append_bias_multiply_by_labels(X, signs, self.fit_intercept) for signs in self._make_sign_labels(y)]
        if weights is not None:
            indices = np.arange(len(y))
            rows = [
                z[resample_by_weight(indices, weights, progress.random)]
                for progress, z in zip(self._progress, rows, strict=True)
            ]
        self.mistakes_.append(sum(progress.run_pass(z) for progress, z in zip(self._progress, rows, strict=True)))
        self._set_fitted_weights(
            [LinearStudent(self._get_output_weights(progress), len(self.mistakes_)) for progress in self._progress]
        )
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the activations of the perceptron's last, averaged or voted weights, (m,) or (m, classes).

        The voted output returns the mean vote, from -1 to 1.
        """
        if self.output != "voted":
            return super().decision_function(X)
        check_is_fitted(self)
        X = self._validate_data(X, dtype=float, accept_sparse="csr", reset=False)
        check_large_features(X)
        votes = []
        for progress in self._progress:
            w, counts = progress.get_voters()
            votes.append(np.sign(X @ w[:, :-1].T + w[:, -1]) @ counts / counts.sum())
        return self._stack_decisions(votes)

    def _make_training_state(self, num_features: int) -> PerceptronTrainingState:
        return PerceptronTrainingState(num_features, self.output == "voted", check_random_state(self.random_state))

    def _learn(self, z: Any, visits: VisitSchedule) -> LinearStudent:
        progress = self._make_training_state(z.shape[1])
        mistake_counts: list[int] = []
        order = np.arange(z.shape[0])
        while len(mistake_counts) < self.max_iter and not visits.has_visited_all_correctly:
            if self.order == "every" or (self.order == "once" and not mistake_counts):
                order = progress.random.permutation(z.shape[0])
            rows = visits.draw(order, progress.random)
            mistake_counts.append(progress.run_pass(z[rows]))
            visits.record_pass(rows, mistake_counts[-1])
        self._progress.append(progress)
        self._mistakes_per_student.append(mistake_counts)
        return LinearStudent(self._get_output_weights(progress), len(mistake_counts))

    def _get_output_weights(self, progress: PerceptronTrainingState) -> np.ndarray:
        return progress.compute_mean_weights() if self.output == "averaged" else progress.w

    def _check_parameters(self) -> None:
        check_integer_parameters(max_iter=self.max_iter)
        for name, options in (("order", EXAMPLE_ORDER_OPTIONS), ("output", PERCEPTRON_OUTPUT_OPTIONS)):
            if getattr(self, name) not in options:
                raise ValueError(
                    f"{name} must be one of {', '.join(options)}, not {format_python_value(getattr(self, name))}"
                )
