"""The Attentive Perceptron for scikit-learn (Pelossof & Ying)."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from simulate.classification.estimators.linear_classifiers import (
    MARGIN_UPDATE_RULES,
    LinearClassifier,
    LinearStudent,
    VisitSchedule,
    append_bias_multiply_by_labels,
    check_integer_parameters,
    check_large_features,
    format_python_value,
    resample_by_weight,
    sum_counts_per_pass,
)
from simulate.classification.partial_sums import (
    AttentionState,
    StoppedSums,
    evaluate_margins_in_blocks,
    sum_rows_until_level,
    sum_up_to_checkpoints,
)
from statmech.classification.stopping_boundaries import BOUNDARIES, MIN_TARGET_ERROR_RATE, get_check_positions
from statmech.errors import format_unknown_name

FEATURE_ORDER_OPTIONS = ("fixed", "random", "weight")


class PartialSums(NamedTuple):
    """Partial sums of m examples, with the level that stops their evaluation.

    All sums are given, including sums after the stop, which a prediction does not evaluate.
    """

    check_positions: np.ndarray  # numbers of features (looks,) after which a sum is compared with the level
    sums: np.ndarray  # (m, looks)
    level: float  # evaluation stops once the absolute value of a sum reaches this level
    features: np.ndarray  # numbers of evaluated features, (m,)
    order: np.ndarray  # features in their order of evaluation, (features,)


class AttentiveTrainingState:
    """Training state of a student: its features, their order, and the counts of each pass."""

    def __init__(
        self, student: AttentionState, features: int, used_features: np.ndarray, random: np.random.RandomState
    ):
        self.student, self.features, self.feature_indices, self.random = student, features, used_features, random
        self.order = np.arange(used_features.size)
        self.mistakes_per_pass: list[int] = []  # number of learnt examples in each pass
        self.mean_features_per_pass: list[float] = []  # mean number of features evaluated per example, in each pass


class AttentivePerceptron(LinearClassifier):
    r"""A perceptron that stops evaluating an example when its margin is likely to be positive.

    The margin :math:`S_n=y(\mathbf w\cdot\mathbf x+b)` is summed a few features at a time. An example whose partial sum
    reaches the level :math:`\tau` of the boundary (`statmech.classification.stopping_boundaries`) is assumed to have a
    margin above :math:`\theta`. All others are evaluated fully and learnt if :math:`S_n\le\theta`: by default as by
    `Perceptron`. Prediction, without a label, stops where the absolute value of the sum reaches the level of a walk
    without drift; `evaluate` returns the features it needs. `partial_fit` makes one pass in the order given.
    `sample_weight` and `class_weight` count as in `Perceptron`.

    A *decision error* is an example that stops although :math:`S_n\le\theta`. Reflected at :math:`\tau`, a walk that
    reaches it and ends at :math:`\theta` is one that ends at :math:`2\tau-\theta`, so that the level depends on
    :math:`\theta`, for sums of mean m and variance :math:`\sigma^2` (eq (4) of the paper and its corrections):

    .. math:: P(\max_i S_i\ge\tau,\ S_n\le\theta)
              = e^{2m\tau/\sigma^2}\,\Phi\!\left(\frac{\theta-2\tau-m}{\sigma}\right), \qquad \tau\ge\max(\theta,0).

    A prediction needs the sign of the sum: its level is the level for :math:`\theta=0`.

    Parameters
    ----------
    error_rate : float
        Target decision-error rate, met if features are exchangeable.
    boundary : {"brownian-bridge", "constant", "centred", "as-printed"}
    chunk : int
        Number of features between comparisons with the level.
    order : {"random", "weight", "fixed"}
        Order of the features: random or by decreasing weight, drawn or sorted again before each pass, or as given.
    budget : int, optional
        Always evaluate this number of features, the first of the order, and ignore all others: no attention.
    probes : float
        Fraction of the examples that are always evaluated in full; their margins give unbiased mean and variance.
    max_iter : int
        Largest number of passes.
    fit_intercept : bool
    random_state : int or RandomState
    theta : float, optional
        Examples of margin at most theta are learnt, in units of :math:`\mathbf w\cdot\mathbf x`, where a perceptron's w
        grows by one example per update. Not negative, since w = 0 would never learn. By default 0, the perceptron's
        mistakes, and 1 for passive-aggressive updates, which need a positive one.
    update : {"perceptron", "passive_aggressive"}
        Update rule: add the example once, or PA-I (Crammer et al. 2006;
        `simulate.classification.estimators.linear_classifiers`).
    aggressiveness : float
        C of PA-I, the maximal strength of an update.
    class_weight : dict or "balanced", optional

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_
    mistakes_ : list of int
        Examples learnt in each pass: mistakes, if theta is 0.
    features_ : list of float
        Features evaluated in each pass, a mean over examples.
    levels_, orders_ : lists
        Levels and orders of features for prediction.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`, for an invalid parameter.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 300))
    >>> y = X @ rng.standard_normal(300) > 0
    >>> model = AttentivePerceptron(error_rate=0.1, max_iter=20).fit(X, y)
    >>> bool(model.features_[-1] < 220 and model.score(X, y) > 0.88)
    True
    """

    def __init__(
        self,
        error_rate: float = 0.1,
        boundary: str = "brownian-bridge",
        chunk: int = 16,
        order: str = "random",
        budget: int | None = None,
        probes: float = 0.05,
        max_iter: int = 100,
        fit_intercept: bool = True,
        random_state: Any = 0,
        theta: float | None = None,
        update: str = "perceptron",
        aggressiveness: float = 1.0,
        class_weight: Any = None,
    ):
        self.error_rate = error_rate
        self.boundary = boundary
        self.chunk = chunk
        self.order = order
        self.budget = budget
        self.probes = probes
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.theta = theta
        self.update = update
        self.aggressiveness = aggressiveness
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the attentive perceptron to examples X (m, features) with labels y (m,) and sample weights (m,)."""
        self._student_passes: list[AttentiveTrainingState] = []
        super().fit(X, y, sample_weight)
        self._set_fitted_attributes()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass of the attentive perceptron over further examples in the given order.

        The first call names all `classes`.
        """
        X, y, weights, first = self._check_partial_fit(X, y, classes, sample_weight)
        signs = self._make_sign_labels(y)
        if first:
            self._student_passes = [self._make_training_state(X.shape[1]) for _ in signs]
        students = []
        for passes, labels in zip(self._student_passes, signs, strict=True):
            passes.order = self._order_features(passes.student.w, passes.random)
            indices = np.arange(len(y))
            rows = indices if weights is None else resample_by_weight(indices, weights, passes.random)
            self._run_pass(passes, append_bias_multiply_by_labels(X, labels, self.fit_intercept), rows)
            students.append(self._get_student(passes))
        self._set_fitted_weights(students)
        self._set_fitted_attributes()
        return self

    def evaluate(self, X: Any) -> list[StoppedSums]:
        """Return each student's final sums and numbers of evaluated features for the rows of X.

        A problem with two classes has one student.
        """
        check_is_fitted(self)
        X = self._validate_data(X, dtype=float, reset=False)
        check_large_features(X)
        results = []
        for w, b, order, level in zip(self.coef_, self.intercept_, self.orders_, self.levels_, strict=True):
            columns = X if np.array_equal(order, np.arange(X.shape[1])) else X[:, order]
            results.append(
                sum_rows_until_level(
                    columns, w[order], get_check_positions(order.size, self.chunk), level, b, two_sided=True
                )
            )
        return results

    def partial_sums(self, X: Any) -> list[PartialSums]:
        r"""Return each student's partial sums :math:`S_i=b+\sum_{j\le i}w_jx_j` for the rows of X.

        A problem with two classes has one student.

        Parameters
        ----------
        X : array (m, features)

        Returns
        -------
        list of PartialSums
            `check_positions`, `sums` (m, looks), the `level`, the number of `features` (m,) when the absolute value
            reaches the level, and the `order` of the features.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((2000, 300))
        >>> model = AttentivePerceptron(chunk=100, max_iter=20).fit(X, X.sum(axis=1) > 0)
        >>> [found] = model.partial_sums(X[:2])
        >>> found.check_positions.tolist(), found.features.tolist()
        ([100, 200, 300], [200, 300])
        >>> (abs(found.sums) >= found.level).tolist()
        [[False, True, False], [False, False, False]]
        """
        evaluations = zip(self.evaluate(X), self.coef_, self.intercept_, self.orders_, self.levels_, strict=True)
        X = self._validate_data(X, dtype=float, reset=False)
        results = []
        for stopped, w, b, order, level in evaluations:
            checkpoints = get_check_positions(order.size, self.chunk)
            results.append(
                PartialSums(
                    checkpoints,
                    b + sum_up_to_checkpoints(X[:, order], w[order], checkpoints),
                    level,
                    stopped.features,
                    order,
                )
            )
        return results

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the sums at the end of evaluation, (m,) for two classes, otherwise (m, classes).

        For two classes a positive sum means the second class.
        """
        return self._stack_decisions([result.sums for result in self.evaluate(X)])

    def _learn(self, z: Any, visits: VisitSchedule) -> LinearStudent:
        passes = self._make_training_state(z.shape[1] - 1)
        while len(passes.mistakes_per_pass) < self.max_iter and not visits.has_visited_all_correctly:
            passes.order = self._order_features(passes.student.w, passes.random)
            rows = visits.draw(passes.random.permutation(len(z)), passes.random)
            self._run_pass(passes, z, rows)
            visits.record_pass(rows, passes.mistakes_per_pass[-1])
        self._student_passes.append(passes)
        return self._get_student(passes)

    def _make_training_state(self, num_features: int) -> AttentiveTrainingState:
        random = check_random_state(self.random_state)
        used_features = self._choose_features_in_budget(num_features, random)
        theta = MARGIN_UPDATE_RULES[self.update].theta if self.theta is None else self.theta
        return AttentiveTrainingState(
            AttentionState(np.zeros(used_features.size), self.boundary, self.error_rate, theta=theta),
            num_features,
            used_features,
            random,
        )

    def _run_pass(self, progress: AttentiveTrainingState, z: np.ndarray, rows: np.ndarray) -> None:
        """Make one pass over these rows of z, the examples times their labels, in the budget of features.

        The constant feature is the last column.
        """
        student, used_features = progress.student, progress.feature_indices
        student.w = student.w[progress.order]
        wrong, features = self._learn_rows(
            student, z[np.ix_(rows, used_features[progress.order])], z[rows, -1], progress.random
        )
        student.w = student.w[np.argsort(progress.order)]
        progress.mistakes_per_pass.append(wrong)
        progress.mean_features_per_pass.append(features / max(1, len(rows)))

    def _get_student(self, progress: AttentiveTrainingState) -> LinearStudent:
        weights = np.zeros(progress.features + 1)
        weights[progress.feature_indices], weights[-1] = progress.student.w, progress.student.b
        return LinearStudent(weights, len(progress.mistakes_per_pass))

    def _set_fitted_attributes(self) -> None:
        self.mistakes_ = sum_counts_per_pass([passes.mistakes_per_pass for passes in self._student_passes])
        self.features_ = [
            count / len(self._student_passes)
            for count in sum_counts_per_pass([passes.mean_features_per_pass for passes in self._student_passes])
        ]
        self.levels_ = [passes.student.get_unlabelled_level() for passes in self._student_passes]
        self.orders_ = [passes.feature_indices[passes.order] for passes in self._student_passes]

    def _learn_rows(
        self, student: AttentionState, z: np.ndarray, bias_inputs: np.ndarray, random: np.random.RandomState
    ) -> tuple[int, int]:
        """Make one attentive pass over the rows z and return the numbers of learnt examples and evaluated features."""
        wrong = features = 0
        probes = random.random_sample(len(z)) < self.probes
        for block in evaluate_margins_in_blocks(
            student, z, bias_inputs, probes, get_check_positions(z.shape[1], self.chunk)
        ):
            features += block.features
            if block.is_last_mistaken:
                self._learn_example(student, z[block.last_index], bias_inputs[block.last_index], block.margin)
                wrong += 1
            if self.budget is None:
                student.update_margin_moments(block.probe_margins)
        return wrong, features

    def _learn_example(self, student: AttentionState, z: np.ndarray, bias_input: float, margin: float) -> None:
        """Update an attentive student with an example (times its label) whose margin does not exceed theta."""
        strength = MARGIN_UPDATE_RULES[self.update].strength(
            student.theta - margin, z @ z + bias_input**2, self.aggressiveness
        )
        student.w = student.w + strength * z
        student.b += strength * bias_input

    def _choose_features_in_budget(self, num_features: int, random: np.random.RandomState) -> np.ndarray:
        """Choose the features of an attentive student: all features, or a subset limited by the budget."""
        features = (
            random.permutation(num_features)
            if self.budget is not None and self.order == "random"
            else np.arange(num_features)
        )
        return features[: self.budget]

    def _order_features(self, w: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        if self.order == "random" and self.budget is None:
            return random.permutation(w.size)
        return np.argsort(-np.abs(w), kind="stable") if self.order == "weight" else np.arange(w.size)

    def _check_parameters(self) -> None:
        if not MIN_TARGET_ERROR_RATE <= self.error_rate < 0.5:
            raise ValueError(
                f"error_rate must lie between {MIN_TARGET_ERROR_RATE:g} and 0.5, "
                f"not {format_python_value(self.error_rate)}"
            )
        if self.boundary not in BOUNDARIES:
            raise ValueError(f"boundary: {format_unknown_name(self.boundary, 'a boundary', BOUNDARIES)}")
        if self.order not in FEATURE_ORDER_OPTIONS:
            raise ValueError(f"order: {format_unknown_name(self.order, 'an order', FEATURE_ORDER_OPTIONS)}")
        if self.order == "weight" and self.budget is not None:
            raise ValueError(
                "a budget requires `order` to be fixed or random, because features are chosen before learning"
            )
        if not 0 < self.probes <= 1:
            raise ValueError(f"probes must be greater than 0 and at most 1, not {format_python_value(self.probes)}")
        check_integer_parameters(chunk=self.chunk, max_iter=self.max_iter)
        if self.budget is not None:
            check_integer_parameters(budget=self.budget)
        self._check_update_parameters()

    def _check_update_parameters(self) -> None:
        if self.update not in MARGIN_UPDATE_RULES:
            raise ValueError(f"update: {format_unknown_name(self.update, 'an update', MARGIN_UPDATE_RULES)}")
        passive = self.update == "passive_aggressive"
        if self.theta is not None and (not 0 <= self.theta < np.inf or (passive and self.theta == 0)):
            raise ValueError(
                f"theta must be {'greater than' if passive else 'at least'} 0, not {format_python_value(self.theta)}"
            )
        if not self.aggressiveness > 0:
            raise ValueError(f"aggressiveness must be greater than 0, not {format_python_value(self.aggressiveness)}")
