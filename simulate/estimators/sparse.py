"""Sparse perceptrons for scikit-learn (Jackson & Craven, Learning Sparse Perceptrons)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from simulate.conjunctions import Conjunction, Stage, boost, output
from simulate.estimators.indicators import attribute_of, encode


class SparsePerceptron(ClassifierMixin, BaseEstimator):
    r"""A vote of few conjunctions of at most k attributes' values, found by boosting an exhaustive search.

    .. math:: f(x) = \mathrm{sign}\sum_i -\ln(\beta_i)\,h_i(x)

    (Figure 1 and section 3.3 of the paper; `simulate.conjunctions`). Columns of words are nominal attributes, columns
    of numbers are cut into at most `bins` intervals. More than two classes: one against the rest.

    Parameters: `k`, the most attributes in a conjunction; `stages`, a number, or "cv" for that of the least error in
    cross-validation, at most the number of an ordinary perceptron's weights; `discount` of the correlations of
    conjunctions of two and more (the paper's factor is unreadable; 1/2 is our reading); `bins`; `cv` folds, shuffled by
    `random_state`; the word for `missing` values. Fitted: `classes_`, `attributes_`, `stages_` (weak hypotheses, a list
    for each class, one for two classes), `n_stages_`, `n_weights_` (different conjunctions), `concept_` in words.

    Raises `ValueError` as scikit-learn's estimators do, also for a word that was not seen in `fit`.

    >>> X = [["y", "n"], ["y", "y"], ["n", "n"], ["n", "y"]] * 5
    >>> model = SparsePerceptron(discount=1.0).fit(X, ["and" if row == ["y", "y"] else "not" for row in X])
    >>> print(model.concept_)
    not:  1.000  unless  x0 = y and x1 = y
    >>> model.predict([["y", "y"], ["y", "n"]]).tolist()
    ['and', 'not']
    """

    def __init__(
        self,
        k: int = 2,
        stages: int | str = "cv",
        discount: float = 0.5,
        bins: int = 4,
        cv: int = 10,
        missing: str = "?",
        random_state: Any = 0,
    ):
        self.k = k
        self.stages = stages
        self.discount = discount
        self.bins = bins
        self.cv = cv
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from examples X (m, columns) with labels y (m,)."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=None, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"SparsePerceptron needs examples of two classes or more, not of 1 class: {self.classes_[0]!r}"
            )
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        self.attributes_ = [attribute_of(str(name), X[:, i], self.bins, self.missing) for i, name in enumerate(names)]
        indicators, attributes = encode(self.attributes_, X, self.missing)
        targets = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        self.stages_ = [self._learn(indicators, attributes, np.where(labels == one, 1, -1)) for one in targets]
        self.n_stages_ = [len(stages) for stages in self.stages_]
        self.n_weights_ = sum(len(_merged(stages)) for stages in self.stages_)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The weighted votes: (m,) for the second of two classes, else (m, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=None, reset=False)
        indicators, _ = encode(self.attributes_, X, self.missing)
        votes = [output(stages, indicators) for stages in self.stages_]
        return votes[0] if len(votes) == 1 else np.column_stack(votes)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each example; a vote that is undecided goes to the first class."""
        votes = self.decision_function(X)
        return self.classes_[(votes > 0).astype(int) if votes.ndim == 1 else votes.argmax(axis=1)]

    @property
    def concept_(self) -> str:
        """The learnt concept, a line a conjunction: the class it speaks for, its weight, and when."""
        check_is_fitted(self)
        return "\n".join(line for _, _, line in self._lines())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _learn(self, indicators: np.ndarray, attributes: np.ndarray, y: np.ndarray) -> list[Stage]:
        most = indicators.shape[1]
        wanted = self._by_cross_validation(indicators, attributes, y, most) if self.stages == "cv" else self.stages
        return list(boost(indicators, y, attributes, self.k, int(wanted), self.discount))

    def _by_cross_validation(self, X: np.ndarray, attributes: np.ndarray, y: np.ndarray, most: int) -> int:
        """The fewest stages of the least held-out error."""
        folds = min(self.cv, int(np.sum(y == 1)), int(np.sum(y == -1)))
        if folds < 2:
            return most
        wrong = np.zeros(most)
        for inside, outside in StratifiedKFold(folds, shuffle=True, random_state=self.random_state).split(X, y):
            votes, done = np.zeros(len(outside)), 0
            for stage in boost(X[inside], y[inside], attributes, self.k, most, self.discount):
                votes = output([stage], X[outside]) + (votes if stage.error > 0 else 0)
                wrong[done] += np.sum(np.sign(votes) != y[outside])
                done += 1
            wrong[done:] += np.sum(np.sign(votes) != y[outside])  # it ended early: more stages change nothing
        return int(np.argmin(wrong)) + 1

    def _lines(self) -> list[tuple[float, Conjunction, str]]:
        names = [name for attribute in self.attributes_ for name in attribute.names()]
        found = []
        for index, stages in enumerate(self.stages_):
            positive = self.classes_[1] if len(self.stages_) == 1 else self.classes_[index]
            negative = self.classes_[0] if len(self.stages_) == 1 else f"not {positive}"
            for conjunction, weight in _merged(stages).items():
                text = " and ".join(names[i] for i in conjunction.indicators)
                when = f"if  {text}" if conjunction.sense > 0 else f"unless  {text}"
                found.append((weight, conjunction, f"{positive}:  {weight:.3f}  {when if text else 'always'}"))
                if not text and conjunction.sense < 0:
                    found[-1] = (weight, conjunction, f"{negative}:  {weight:.3f}  always")
        return found

    def _check_parameters(self) -> None:
        if not isinstance(self.k, Integral) or self.k < 1:
            raise ValueError(f"k must be a whole number from 1 on, not {self.k!r}")
        if self.stages != "cv" and (not isinstance(self.stages, Integral) or self.stages < 1):
            raise ValueError(f'stages must be "cv" or a whole number from 1 on, not {self.stages!r}')
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount must lie between 0 and 1, not {self.discount!r}")
        if not isinstance(self.bins, Integral) or self.bins < 2:
            raise ValueError(f"bins must be a whole number from 2 on, not {self.bins!r}")


def _merged(stages: list[Stage]) -> dict[Conjunction, float]:
    """Conjunctions with the sum of their weights, both senses of one as one; the heaviest first."""
    if stages and stages[-1].error == 0.0:
        stages = stages[-1:]
    total: dict[tuple[int, ...], float] = {}
    for stage in stages:
        indicators = stage.hypothesis.indicators
        total[indicators] = total.get(indicators, 0.0) + stage.hypothesis.sense * stage.weight
    heaviest = sorted(total.items(), key=lambda item: -abs(item[1]))
    return {Conjunction(indicators, 1 if weight >= 0 else -1): abs(weight) for indicators, weight in heaviest}
