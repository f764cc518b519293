"""Sparse perceptrons for scikit-learn (Jackson & Craven, Learning Sparse Perceptrons)."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted, validate_data

from simulate.conjunctions import Stage, boost, merged, output
from simulate.estimators.classes import OneAgainstRest, check_whole
from simulate.estimators.indicators import attribute_of, encode


class SparsePerceptron(OneAgainstRest):
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
        self._name_classes(y)
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        self.attributes_ = [attribute_of(str(name), X[:, i], self.bins, self.missing) for i, name in enumerate(names)]
        indicators, attributes = encode(self.attributes_, X, self.missing)
        self.stages_ = [self._learn(indicators, attributes, signs) for signs in self._signs(y)]
        self.n_stages_ = [len(stages) for stages in self.stages_]
        self.n_weights_ = sum(len(merged(stages)) for stages in self.stages_)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The weighted votes: (m,) for the second of two classes, else (m, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=None, reset=False)
        indicators, _ = encode(self.attributes_, X, self.missing)
        return self._decision([output(stages, indicators) for stages in self.stages_])

    @property
    def concept_(self) -> str:
        """The learnt concept, a line a conjunction: the class it speaks for, its weight, and when."""
        check_is_fitted(self)
        return "\n".join(self._lines())

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

    def _lines(self) -> Iterator[str]:
        names = [name for attribute in self.attributes_ for name in attribute.names()]
        two = len(self.classes_) == 2
        for positive, stages in zip(self.classes_[1:] if two else self.classes_, self.stages_, strict=True):
            negative = self.classes_[0] if two else f"not {positive}"
            for conjunction, weight in merged(stages).items():
                text = " and ".join(names[i] for i in conjunction.indicators)
                for_it = conjunction.sense > 0
                if text:
                    yield f"{positive}:  {weight:.3f}  {'if' if for_it else 'unless'}  {text}"
                else:
                    yield f"{positive if for_it else negative}:  {weight:.3f}  always"

    def _check_parameters(self) -> None:
        check_whole(k=self.k)
        check_whole(2, bins=self.bins)
        if self.stages != "cv" and (not isinstance(self.stages, Integral) or self.stages < 1):
            raise ValueError(f'stages must be "cv" or a whole number from 1 on, not {self.stages!r}')
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount must lie between 0 and 1, not {self.discount!r}")
