"""The Attentive Perceptron for scikit-learn (Pelossof & Ying)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from simulate.estimators.classes import check_whole, summed
from simulate.estimators.linear import LinearClassifier, Student, check_size, labelled
from simulate.kernels.partial_sums import Attentive, Walks, lessons, walks
from statmech.boundaries import BOUNDARIES, LEAST, looks
from statmech.errors import not_known

ORDERS = ("fixed", "random", "weight")


class Course:
    """The state of a student: number of features, those known and their order, and counts of each pass."""

    def __init__(self, student: Attentive, features: int, known: np.ndarray, random: np.random.RandomState):
        self.student, self.features, self.known, self.random = student, features, known, random
        self.order = np.arange(known.size)
        self.made: list[int] = []  # mistakes of each pass
        self.seen: list[float] = []  # features evaluated per example


class AttentivePerceptron(LinearClassifier):
    r"""A perceptron that stops evaluating an example when its margin is likely to be positive.

    The margin :math:`y(\mathbf w\cdot\mathbf x+b)` is summed a few features at a time. An example whose partial sum
    reaches the level of the boundary (`statmech.boundaries`) is assumed to be right; all others are evaluated fully and
    learnt as by `Perceptron`. Prediction, without a label, stops where the absolute value of the sum reaches the level
    of a walk without drift; `evaluate` returns the features it needs. `partial_fit` makes one pass in the order given.

    Parameters
    ----------
    delta : float
        Target decision-error rate, met if features are exchangeable.
    boundary : {"brownian-bridge", "constant", "centred", "as-printed"}
    chunk : int
        Features between looks.
    order : {"random", "weight", "fixed"}
        Order of the features: random or by decreasing weight, drawn or sorted again before each pass, or as given.
    budget : int, optional
        Use the hard-budget perceptron instead, which knows only this number of features, the first of the order.
    probes : float
        Fraction of the examples that are always evaluated in full; their margins give unbiased mean and variance.
    max_iter : int
        Largest number of passes.
    fit_intercept : bool
    random_state : int or RandomState

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_
    mistakes_ : list of int
        Mistakes of each pass.
    features_ : list of float
        Features evaluated in each pass, a mean over examples.
    levels_, orders_ : lists
        Levels and orders of features for prediction.

    Examples
    --------
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
        self._courses: list[Course] = []
        super().fit(X, y)
        self._describe()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """One pass over more examples, in the order given; the first call names all `classes`."""
        X, y, first = self._more(X, y, classes)
        signs = self._signs(y)
        if first:
            self._courses = [self._begin(X.shape[1]) for _ in signs]
        students = []
        for course, one in zip(self._courses, signs, strict=True):
            self._pass(course, labelled(X, one, self.fit_intercept), np.arange(len(y)))
            students.append(self._student(course))
        self._take(students)
        self._describe()
        return self

    def evaluate(self, X: Any) -> list[Walks]:
        """Final sums on the rows of X, and the features evaluated, for each student (one for two classes)."""
        check_is_fitted(self)
        X = self._validated(X, dtype=float, reset=False)
        check_size(X)
        results = []
        for w, b, order, level in zip(self.coef_, self.intercept_, self.orders_, self.levels_, strict=True):
            columns = X if np.array_equal(order, np.arange(X.shape[1])) else X[:, order]
            results.append(walks(columns, w[order], looks(order.size, self.chunk), level, b, two_sided=True))
        return results

    def decision_function(self, X: Any) -> np.ndarray:
        """The sums where evaluation ended: (m,) for two classes, positive for the second, else (m, classes)."""
        return self._decision([one.sums for one in self.evaluate(X)])

    def _learn(self, z: Any) -> Student:
        course = self._begin(z.shape[1] - 1)
        while len(course.made) < self.max_iter and (not course.made or course.made[-1]):
            self._pass(course, z, None)
        self._courses.append(course)
        return self._student(course)

    def _begin(self, n: int) -> Course:
        random = check_random_state(self.random_state)
        known = self._known(n, random)
        return Course(Attentive(np.zeros(known.size), self.boundary, self.delta), n, known, random)

    def _pass(self, course: Course, z: np.ndarray, rows: np.ndarray | None) -> None:
        """One pass over these rows, or all in random order, of examples times labels, the constant's last."""
        one, known = course.student, course.known
        course.order = self._order(one.w, course.random)
        rows = course.random.permutation(len(z)) if rows is None else rows
        one.w = one.w[course.order]
        wrong, features = self._walk(one, z[np.ix_(rows, known[course.order])], z[rows, -1], course.random)
        one.w = one.w[np.argsort(course.order)]
        course.made.append(wrong)
        course.seen.append(features / len(z))

    def _student(self, course: Course) -> Student:
        weights = np.zeros(course.features + 1)
        weights[course.known], weights[-1] = course.student.w, course.student.b
        return Student(weights, len(course.made))

    def _describe(self) -> None:
        self.mistakes_ = summed([course.made for course in self._courses])
        self.features_ = [count / len(self._courses) for count in summed([course.seen for course in self._courses])]
        self.levels_ = [course.student.blind() for course in self._courses]
        self.orders_ = [course.known[course.order] for course in self._courses]

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
        """The features that are used."""
        features = random.permutation(n) if self.budget is not None and self.order == "random" else np.arange(n)
        return features[: self.budget]

    def _order(self, w: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        if self.order == "random" and self.budget is None:
            return random.permutation(w.size)
        return np.argsort(-np.abs(w), kind="stable") if self.order == "weight" else np.arange(w.size)

    def _check_parameters(self) -> None:
        if not LEAST <= self.delta < 0.5:
            raise ValueError(f"delta must lie between {LEAST:g} and 0.5, not {self.delta!r}")
        if self.boundary not in BOUNDARIES:
            raise ValueError(f"boundary: {not_known(self.boundary, 'a boundary', BOUNDARIES)}")
        if self.order not in ORDERS:
            raise ValueError(f"order: {not_known(self.order, 'an order', ORDERS)}")
        if self.order == "weight" and self.budget is not None:
            raise ValueError("with a budget the features are chosen before learning: order must be fixed or random")
        if not 0 < self.probes <= 1:
            raise ValueError(f"probes must lie between 0 and 1, not {self.probes!r}")
        check_whole(chunk=self.chunk, max_iter=self.max_iter)
        if self.budget is not None:
            check_whole(budget=self.budget)
