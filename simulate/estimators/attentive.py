"""The Attentive Perceptron for scikit-learn (Pelossof & Ying)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from simulate.attention import Attentive, Walks, lessons, walks
from simulate.estimators.classes import check_whole, summed
from simulate.estimators.linear import LinearClassifier, Student
from statmech.boundaries import BOUNDARIES, looks
from statmech.errors import not_known

ORDERS = ("fixed", "random", "weight")


class AttentivePerceptron(LinearClassifier):
    r"""A perceptron that looks no longer at an example than it must.

    The margin :math:`y(\mathbf w\cdot\mathbf x+b)` is summed in chunks of `chunk` features, in the `order` "weight",
    largest first (anew each pass), "random" (anew each pass) or "fixed". An example whose partial sum reaches the level
    of its `boundary` ("brownian-bridge", "constant", "centred" or "as-printed", see `statmech.boundaries`), which
    promises at most a share `delta` of decision errors if features are exchangeable, is taken for right; all others
    are evaluated fully and learnt as in `Perceptron`. A share `probes` of the examples is evaluated fully in any case:
    their margins tell mean and variance, fairly.

    `budget`: the hard-budget perceptron instead, which knows only so many features, the first of the order.
    Prediction, which knows no label, stops where a sum is as far from 0, on either side, as the boundary of a walk
    without drift; `evaluate` tells the features that took.

    Fitted: `classes_`, `coef_`, `intercept_`, `n_iter_`, `mistakes_` and `features_` (evaluated, a mean over examples)
    of each pass, `levels_` and `orders_` for prediction.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 300))
    >>> y = X @ rng.standard_normal(300) > 0
    >>> model = AttentivePerceptron(delta=0.1, max_iter=20).fit(X, y)
    >>> bool(model.features_[-1] < 220 and model.score(X, y) > 0.88)
    True
    """

    def __init__(
        self,
        delta: float = 0.1,
        boundary: str = "brownian-bridge",
        chunk: int = 16,
        order: str = "random",
        budget: int | None = None,
        probes: float = 0.05,
        max_iter: int = 100,
        fit_intercept: bool = True,
        random_state: Any = 0,
    ):
        self.delta = delta
        self.boundary = boundary
        self.chunk = chunk
        self.order = order
        self.budget = budget
        self.probes = probes
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from examples X (m, features) with labels y (m,)."""
        self.levels_: list[float] = []
        self.orders_: list[np.ndarray] = []
        self._made: list[list[int]] = []
        self._seen: list[list[float]] = []
        super().fit(X, y)
        self.mistakes_ = summed(self._made)
        self.features_ = [count / len(self._seen) for count in summed(self._seen)]
        return self

    def evaluate(self, X: Any) -> list[Walks]:
        """For each student (one for two classes) where its sums ended on the rows of X, and the features that took."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=float, reset=False)
        found = []
        for w, b, order, level in zip(self.coef_, self.intercept_, self.orders_, self.levels_, strict=True):
            columns = X if np.array_equal(order, np.arange(X.shape[1])) else X[:, order]
            found.append(walks(columns, w[order], looks(order.size, self.chunk), level, b, two_sided=True))
        return found

    def decision_function(self, X: Any) -> np.ndarray:
        """The sums where evaluation ended: (m,) for the second of two classes, else (m, classes)."""
        return self._decision([one.sums for one in self.evaluate(X)])

    def _learn(self, z: Any) -> Student:
        z, start = z[:, :-1], z[:, -1]
        random, n = check_random_state(self.random_state), z.shape[1]
        known = self._known(n, random)
        one = Attentive(np.zeros(known.size), self.boundary, self.delta)
        made: list[int] = []
        seen: list[float] = []
        while len(made) < self.max_iter and (not made or made[-1]):
            order, rows = self._order(one.w, random), random.permutation(len(z))
            one.w = one.w[order]
            wrong, features = self._walk(one, z[np.ix_(rows, known[order])], start[rows], random)
            one.w = one.w[np.argsort(order)]
            made.append(wrong)
            seen.append(features / len(z))
        self._made.append(made)
        self._seen.append(seen)
        self.levels_.append(one.blind())
        self.orders_.append(known[order])
        weights = np.zeros(n + 1)
        weights[known], weights[-1] = one.w, one.b
        return Student(weights, len(made))

    def _walk(self, one: Attentive, z: np.ndarray, start: np.ndarray, random: np.random.RandomState) -> tuple[int, int]:
        """One pass over rows z; its mistakes, and the features evaluated."""
        wrong = features = 0
        probes = random.random_sample(len(z)) < self.probes
        for lesson in lessons(one, z, start, probes, looks(z.shape[1], self.chunk)):
            features += lesson.features
            if lesson.mistaken:
                one.w = one.w + z[lesson.last]
                one.b += start[lesson.last]
                wrong += 1
            if self.budget is None:
                one.take(lesson.margins)
        return wrong, features

    def _known(self, n: int, random: np.random.RandomState) -> np.ndarray:
        """The features that are ever evaluated."""
        every = random.permutation(n) if self.budget is not None and self.order == "random" else np.arange(n)
        return every[: self.budget]

    def _order(self, w: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        if self.order == "random" and self.budget is None:
            return random.permutation(w.size)
        return np.argsort(-np.abs(w), kind="stable") if self.order == "weight" else np.arange(w.size)

    def _check_parameters(self) -> None:
        if not 0 < self.delta < 0.5:
            raise ValueError(f"delta must lie between 0 and 0.5, not {self.delta!r}")
        if self.boundary not in BOUNDARIES:
            raise ValueError(f"boundary: {not_known(self.boundary, 'a boundary', BOUNDARIES)}")
        if self.order not in ORDERS:
            raise ValueError(f"order: {not_known(self.order, 'an order', ORDERS)}")
        if self.order == "weight" and self.budget is not None:
            raise ValueError("a budget is of features known before weights are: order must be fixed or random")
        if not 0 < self.probes <= 1:
            raise ValueError(f"probes must lie between 0 and 1, not {self.probes!r}")
        check_whole(chunk=self.chunk, max_iter=self.max_iter)
        if self.budget is not None:
            check_whole(budget=self.budget)
