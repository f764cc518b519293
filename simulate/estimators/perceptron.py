"""Daume's perceptron for scikit-learn (A Course in Machine Learning, chapter 3), and its averaged and voted forms."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from simulate.estimators.example_weights import VisitSchedule, resample_by_weight
from simulate.estimators.linear import (
    LinearClassifier,
    LinearStudent,
    append_bias_multiply_by_labels,
    check_large_features,
)
from simulate.estimators.one_against_rest import check_integer_parameters, format_python_value, sum_counts_per_pass
from simulate.kernels.mistakes import iterate_mistakes

EXAMPLE_ORDER_OPTIONS = ("constant", "once", "every")
PERCEPTRON_OUTPUT_OPTIONS = ("last", "averaged", "voted")


class PerceptronTrainingState:
    """Training state of a student: weights, number of visits, and sums for averaged and voted outputs."""

    def __init__(self, features: int, voted: bool, random: np.random.RandomState):
        self.w, self.random = np.zeros(features), random
        self.visits, self.last_mistake_visit = 0, 0
        self.weighted = np.zeros(features)  # sum of updates, each times the number of visits before the update
        self.voters: list[tuple[np.ndarray, int]] | None = [] if voted else None

    def run_pass(self, z: Any) -> int:
        """Make one pass over the rows z and return the number of mistakes."""
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
        """Fit the classifier to examples X (m, features) with labels y (m,) and sample weights (m,)."""
        self._progress: list[PerceptronTrainingState] = []
        self._mistakes_per_student: list[list[int]] = []
        super().fit(X, y, sample_weight)
        self.mistakes_ = sum_counts_per_pass(self._mistakes_per_student)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over further examples in the given order.

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
        """Return the activations, (m,) or (m, classes).

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
