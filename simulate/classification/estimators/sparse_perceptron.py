"""Sparse perceptrons for scikit-learn (Jackson & Craven, Learning Sparse Perceptrons), and their 0-1 indicators.

The inputs of sparse perceptrons are indicators of nominal attributes. A column of text has one indicator per value. A
column of numbers has one per interval: one interval per value if there are few values, else intervals of approximately
equal numbers of examples. Intervals are closed above, "a < x <= b" (scikit-learn's KBinsDiscretizer uses intervals
closed below, "a <= x < b", with values as bounds). A missing value ("?", NaN, None, pandas.NA) has no indicator in a
column of either kind, and neither has an unknown category.

With negations each indicator has a second one, true wherever the first is false. The negation is also true where the
value is missing, since "= v" is false there. In this way a vote can count an indicator that is false: "unless x = v"
and "if x != v" are the same.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils.validation import check_is_fitted

from simulate.classification.conjunctions import (
    BoostingStage,
    ConceptTerm,
    Conjunction,
    boost_conjunctions,
    compute_weighted_vote,
    format_concept,
    format_concept_latex,
    sum_conjunction_weights,
)
from simulate.classification.estimators.linear_classifiers import (
    OneAgainstRestClassifier,
    check_integer_parameters,
    combine_example_weights,
    drop_zero_weight_examples,
    format_python_value,
)
from statmech.runtime.jax_and_blas_settings import use_one_blas_thread

MAX_CV_STAGES = 1000  # a table with thousands of columns would otherwise allow thousands of stages
CV_NOTICE_SECONDS = 30.0  # CPU time; slower cross-validations report their progress in a single warning
MIXED_TABLE_OPTIONS = {"dtype": None, "ensure_all_finite": "allow-nan"}  # scikit-learn's options for text and numbers


@dataclass(frozen=True)
class IndicatorAttribute:
    """A named column with its categories, or with the upper bounds of all intervals but the last."""

    name: str
    category_names: tuple[str, ...] | None
    interval_upper_bounds: np.ndarray | None

    def encode_column(self, column: np.ndarray, missing_text: str) -> np.ndarray:
        """Return an attribute's indicators (m, n) of 0 and 1, one column per category or interval.

        Rows of missing values and unknown categories are 0. Raises `ValueError` for text in a column of numbers.
        """
        is_known = ~find_missing_values(column, missing_text)
        if self.category_names is None:
            assert self.interval_upper_bounds is not None
            array = np.zeros((len(column), len(self.interval_upper_bounds) + 1))
            array[is_known, np.searchsorted(self.interval_upper_bounds, self._convert_numbers(column[is_known]))] = 1
            return array
        labels = np.array([str(value) for value in column], dtype=object)
        return ((labels[:, None] == np.array(self.category_names, dtype=object)) & is_known[:, None]).astype(float)

    def _convert_numbers(self, column: np.ndarray) -> np.ndarray:
        """Convert an attribute's column of numbers to floats, before its intervals are encoded."""
        try:
            return np.asarray(column, float)
        except ValueError:
            text = next(value for value in column if not isinstance(value, Real))
            raise ValueError(f"{self.name} is a column of numbers, but {text!r} is not a number") from None

    def get_conditions(self) -> list[str]:
        """Return the condition of each indicator of an attribute as text.

        >>> IndicatorAttribute("age", None, np.array([30.0, 60.0])).get_conditions()
        ['age <= 30', '30 < age <= 60', 'age > 60']
        """
        if self.category_names is not None:
            return [f"{self.name} = {value}" for value in self.category_names]
        assert self.interval_upper_bounds is not None
        if not self.interval_upper_bounds.size:
            return [f"any {self.name}"]
        low, high = self.interval_upper_bounds[0], self.interval_upper_bounds[-1]
        middle = [
            f"{a:.4g} < {self.name} <= {b:.4g}"
            for a, b in zip(self.interval_upper_bounds[:-1], self.interval_upper_bounds[1:], strict=True)
        ]
        return [f"{self.name} <= {low:.4g}", *middle, f"{self.name} > {high:.4g}"]

    def get_negated_conditions(self) -> list[str]:
        """Return the condition of each negated indicator of an attribute as text.

        >>> IndicatorAttribute("age", None, np.array([30.0, 60.0])).get_negated_conditions()
        ['age > 30', 'not 30 < age <= 60', 'age <= 60']
        """
        if self.category_names is not None:
            return [f"{self.name} != {value}" for value in self.category_names]
        names = [f"not {name}" for name in self.get_conditions()]
        assert self.interval_upper_bounds is not None
        if self.interval_upper_bounds.size:
            names[0], names[-1] = (
                f"{self.name} > {self.interval_upper_bounds[0]:.4g}",
                f"{self.name} <= {self.interval_upper_bounds[-1]:.4g}",
            )
        return names


def find_missing_values(column: np.ndarray, missing_text: str) -> np.ndarray:
    """Return a mask (m,) of the missing values: the text `missing_text`, None, NaN or pandas.NA.

    >>> find_missing_values(np.array([1.0, None, "?", "a", np.nan], dtype=object), "?").tolist()
    [False, True, True, False, True]
    """
    if column.dtype.kind in "biuf":
        return np.isnan(column)
    return np.array([value is None or _is_unequal(value, value) or value == missing_text for value in column], bool)


def _is_unequal(x: Any, y: Any) -> bool:
    """Return True unless `x` equals `y`.

    NaN does not equal itself, and pandas.NA equals nothing.
    """
    equal = x == y
    return not (isinstance(equal, bool | np.bool_) and equal)


def make_indicator_attribute(
    name: str,
    column: np.ndarray,
    max_intervals: int,
    missing_text: str,
    categories: Any = None,
    weights: np.ndarray | None = None,
) -> IndicatorAttribute:
    """Make the attribute that encodes a column as indicators, by categories of text or intervals of numbers.

    Parameters
    ----------
    name
        Name of the column.
    column
        Values of the column (m,).
    max_intervals
        Maximal number of intervals.
    missing_text
        The text that marks a missing value.
    categories
        Possible values of a nominal attribute. None: the values of the column.
    weights
        Weights of the values, divided equally among the intervals. None: all equal.
    """
    is_known = ~find_missing_values(column, missing_text)
    present = column[is_known]
    if categories is not None:
        categories = tuple(map(str, categories))
        if unknown := sorted({str(value) for value in present} - {*categories}):
            raise ValueError(f"Found unknown categories {unknown} in {name}. Known: {', '.join(categories)}")
        return IndicatorAttribute(name, categories, None)
    if not present.size or not all(isinstance(value, Real) for value in present):
        labels = sorted({str(value) for value in present})
        if len(labels) > max_intervals and all(map(_is_number, labels)):
            remedy = "convert them (pandas.to_numeric), or list them in `categories`"
            warnings.warn(f"{name} contains numbers as text, which are treated as categories: {remedy}", stacklevel=4)
        return IndicatorAttribute(name, tuple(labels), None)
    values = np.asarray(present, float)
    levels = np.unique(values)
    if levels.size > max_intervals:
        fractions = np.linspace(0, 1, max_intervals + 1)[1:-1]
        levels = np.unique(
            _find_weighted_quantiles(values, fractions, np.ones(len(values)) if weights is None else weights[is_known])
        )
        return IndicatorAttribute(name, None, levels[levels < values.max()])
    return IndicatorAttribute(name, None, _compute_separating_values(levels[:-1], levels[1:]))


def _find_weighted_quantiles(values: np.ndarray, fractions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Find the smallest values whose cumulative weight reaches the given fractions of the total.

    With weights that are not integers, rounding errors would decide in `np.quantile(..., method="inverted_cdf")`.
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.searchsorted(below, fractions - 1e-12)]


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _compute_separating_values(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return interval bounds: midpoints of pairs of values, or the lower value of neighbouring floats."""
    with np.errstate(over="ignore"):
        middle = (high + low) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)


def encode_indicators(
    attributes: list[IndicatorAttribute], X: Any, missing: str, negated: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Encode all columns of X as indicators (m, n), and return the attribute (n,) of each indicator.

    If `negated`, the negations follow the indicators.
    """
    parts = [attribute.encode_column(X[:, i], missing) for i, attribute in enumerate(attributes)]
    indicators, numbers = np.hstack(parts), np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    return (np.hstack([indicators, 1 - indicators]), np.tile(numbers, 2)) if negated else (indicators, numbers)


FoldIndices = tuple[np.ndarray, np.ndarray]  # indices of the training and test examples of a fold


class BoostingData(NamedTuple):
    """Indicators (m, n) of examples, their attributes (n,), and the weights (m,) of the examples."""

    X: np.ndarray
    attributes: np.ndarray
    weights: np.ndarray

    def select(self, rows: np.ndarray) -> BoostingData:
        """Return the data of the selected examples."""
        return BoostingData(self.X[rows], self.attributes, self.weights[rows])


class SlowCrossValidationNotice:
    """A single warning about a slow cross-validation."""

    def __init__(self, stages: int, conjunctions: int):
        self.stages, self.conjunctions, self.start = stages, conjunctions, time.thread_time()

    def warn_if_slow(self, stages_done: int) -> None:
        """Warn once if cross-validation of the boosting stages is slow, with the number of completed stages."""
        if time.thread_time() - self.start > CV_NOTICE_SECONDS:
            self.start = np.inf
            progress = (
                f"{stages_done:,} of at most {self.stages:,} stages of boosting over {self.conjunctions:,} conjunctions"
            )
            remedy = "Select columns (sklearn.feature_selection), or set k=1 or a number of stages, to save time"
            warnings.warn(f"Cross-validation has done {progress} in {CV_NOTICE_SECONDS:.0f} s. {remedy}", stacklevel=5)


class SparsePerceptron(OneAgainstRestClassifier):
    r"""A vote of a few conjunctions of at most k attribute values, found by boosting an exhaustive search.

    .. math:: f(x) = \mathrm{sign}\sum_i -\ln(\beta_i)\,h_i(x)

    (Jackson & Craven, Figure 1 and section 3.3; `simulate.classification.conjunctions`). Columns of text are
    nominal attributes, columns of numbers are cut into at most `bins` intervals. More than two classes: one against the
    rest.

    A missing value (NaN, None, pandas.NA, or the text `missing`) has no indicator, and neither has a category that did
    not occur in `fit`. `sample_weight` and `class_weight` are proportional to the first distribution of the boosting,
    and count in cross-validation.

    **Cost.** With m examples and n indicators (up to `bins` per column of numbers), a stage takes a time proportional
    to m n, and in the worst case to the number :math:`n^k/k!` of all conjunctions, which is usual if examples are many.
    A few examples in a wide table leave few conjunctions to search: 20 examples of 2,000 columns of numbers take some
    seconds. Cross-validation makes up to min(n, 1,000) stages for each of `cv` folds; a warning reports if that takes
    long. More than 50 million conjunctions are not supported: select columns first (`sklearn.feature_selection`), or
    reduce k or bins.

    Parameters
    ----------
    k : int
        Largest number of attributes in a conjunction.
    stages : int or "cv"
        Number of boosting stages (fewer may suffice, see `n_stages_`), or "cv" for the number of lowest error in
        cross-validation, at most the number of weights of an ordinary perceptron, and 1,000.
    discount : float
        Factor of the correlation for two or more indicators (the paper's value is illegible; 1/2 is our reading).
        Of 13 data sets 1 classifies 10 better and 3 worse at 30 stages, by 1.0 +- 0.7 points on average, in the same
        time (`python benchmarks/boosting.py`); with "cv" accuracy does not distinguish them (`statmech run discount`).
    bins : int
        Maximal number of intervals for a column of numbers.
    cv : int, cross-validation generator or iterable
        Folds of the cross-validation, shuffled by `random_state`; or scikit-learn's splits of the examples.
    missing : str
        The text for missing values, in addition to NaN, None and pandas.NA. Numbers with missing values remain numbers.
    categories : "auto" or list
        The categories of each column. "auto": the categories that occur in the examples.
    random_state : int or RandomState
    negated : bool
        Allow "attribute != value" in conjunctions, which is true where the value is missing.
    class_weight : dict or "balanced", optional
        Factor of the weights of each class (1 if not named), or such that all classes have the same weight.

    Attributes
    ----------
    classes_ : array
    attributes_ : list
        Names and categories or intervals of the columns.
    stages_ : list of lists of BoostingStage
        Weak hypotheses, one list per class, one for two classes.
    n_stages_ : list of int
    n_weights_ : int
        Number of different conjunctions.
    terms_ : list
        Conjunctions and their weights, the largest weight first.
    concept_, concept_latex_ : str
        The terms as text and as a LaTeX table.

    Raises
    ------
    ValueError
        As scikit-learn's estimators do. Also for text in a column of numbers, or a value not listed in `categories`.

    Examples
    --------
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
        cv: Any = 10,
        missing: str = "?",
        categories: Any = "auto",
        random_state: Any = 0,
        negated: bool = False,
        class_weight: Any = None,
    ):
        self.k = k
        self.stages = stages
        self.discount = discount
        self.bins = bins
        self.cv = cv
        self.missing = missing
        self.categories = categories
        self.random_state = random_state
        self.negated = negated
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Boost the classifier on examples X (m, columns) of any kind with labels y (m,) and sample weights (m,)."""
        self._check_parameters()
        X, y = self._validate_data(_keep_column_types(X), y, **MIXED_TABLE_OPTIONS, ensure_min_samples=2)
        all_weights = combine_example_weights(X, y, sample_weight, self.class_weight)
        splits = self._make_cv_splits(X, y, all_weights)
        X, y, weights = drop_zero_weight_examples(X, y, all_weights)
        self._set_classes(y)
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        self.attributes_ = [
            make_indicator_attribute(str(name), X[:, i], self.bins, self.missing, categories, weights)
            for i, (name, categories) in enumerate(zip(names, self._expand_given_categories(X.shape[1]), strict=True))
        ]
        indicators, attributes = encode_indicators(self.attributes_, X, self.missing, self.negated)
        data = BoostingData(indicators, attributes, np.ones(len(y)) if weights is None else weights)
        with use_one_blas_thread():  # boosting's matrix products are small: threads would mostly wait
            self.stages_ = [self._learn(data, signs, splits) for signs in self._make_sign_labels(y)]
        self.n_stages_ = [len(stages) for stages in self.stages_]
        self.n_weights_ = sum(len(sum_conjunction_weights(stages)) for stages in self.stages_)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the weighted votes, (m,) for two classes, otherwise (m, classes).

        For two classes a positive vote means the second class.
        """
        check_is_fitted(self)
        indicators = self._encode_indicators(X)
        return self._stack_decisions([compute_weighted_vote(stages, indicators) for stages in self.stages_])

    def integer_weights(self, X: Any, limit: int = 1000) -> Self:
        r"""Return a copy with integer weights of conjunctions that makes the same decisions on all training examples X.

        The weights are :math:`c\,w/\max|w|`, rounded, with the smallest suitable integer c, the copy's `integer_scale_`
        and largest weight. A conjunction whose weight rounds to 0 is dropped. A tie counts as a separate decision.
        Raises `ValueError` if no c up to `limit` is suitable.

        >>> X = [[a, b, c] for a in "yn" for b in "yn" for c in "yn"]
        >>> model = SparsePerceptron(stages=20).fit(X, [row.count("y") > 1 for row in X]).integer_weights(X)
        >>> print(model.concept_)
        True:  1  unless  x1 = n
        True:  1  unless  x0 = n
        True:  1  unless  x2 = n
        """
        check_is_fitted(self)
        check_integer_parameters(limit=limit)
        indicators = self._encode_indicators(X)
        voters_per_student = [sum_conjunction_weights(stages) for stages in self.stages_]
        values = [
            np.array([h(indicators) for h in voters]).reshape(len(voters), len(indicators))
            for voters in voters_per_student
        ]
        weights = [np.array(list(voters.values())) for voters in voters_per_student]
        largest = max((w.max() for w in weights if w.size), default=1.0)
        decisions = self._decide_votes([w @ h for w, h in zip(weights, values, strict=True)])
        for scale in range(1, limit + 1):
            rounded = [np.rint(scale * w / largest).astype(int) for w in weights]
            if np.array_equal(self._decide_votes([w @ h for w, h in zip(rounded, values, strict=True)]), decisions):
                return self._copy_with_integers(voters_per_student, rounded, scale)
        raise ValueError(f"no integer weights up to {limit} reproduce all decisions of the real weights")

    def _copy_with_integers(
        self, voter_weights: list[dict[Conjunction, float]], integer_weights: list[np.ndarray], scale: int
    ) -> Self:
        """Return a copy of the classifier with these conjunctions and integer weights."""
        model = copy.copy(self)
        model.stages_ = [
            [BoostingStage(h, np.nan, int(weight)) for h, weight in zip(voters, weights, strict=True) if weight]
            for voters, weights in zip(voter_weights, integer_weights, strict=True)
        ]
        model.n_weights_ = sum(map(len, model.stages_))
        model.integer_scale_ = scale
        return model

    def _decide_votes(self, columns: list[np.ndarray]) -> np.ndarray:
        """Return the decisions (m,) that follow from the votes of all students.

        The decision is the sign of one student's vote, or the class of the largest of several votes.
        """
        return np.sign(columns[0]) if len(columns) == 1 else np.argmax(columns, axis=0)

    def _encode_indicators(self, X: Any) -> np.ndarray:
        X = self._validate_data(_keep_column_types(X), **MIXED_TABLE_OPTIONS, reset=False)
        return encode_indicators(self.attributes_, X, self.missing, self.negated)[0]

    @property
    def terms_(self) -> list[ConceptTerm]:
        """Weighted conjunctions that the classifier learnt for each class, in order of decreasing weight."""
        check_is_fitted(self)
        names = [name for attribute in self.attributes_ for name in attribute.get_conditions()]
        if self.negated:
            names += [name for attribute in self.attributes_ for name in attribute.get_negated_conditions()]
        first, *rest = map(str, self.classes_)
        pairs = [(rest[0], first)] if len(rest) == 1 else [(label, f"not {label}") for label in (first, *rest)]
        return [
            ConceptTerm(*pair, weight, conjunction.sense, tuple(names[i] for i in conjunction.indicators))
            for pair, stages in zip(pairs, self.stages_, strict=True)
            for conjunction, weight in sum_conjunction_weights(stages).items()
        ]

    @property
    def concept_(self) -> str:
        """The learnt concept as text, with the class, weight and condition of one conjunction per line."""
        return format_concept(self.terms_)

    @property
    def concept_latex_(self) -> str:
        """The concept as a LaTeX table."""
        return format_concept_latex(self.terms_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _learn(self, data: BoostingData, y: np.ndarray, splits: list[FoldIndices] | None) -> list[BoostingStage]:
        max_stages = data.X.shape[1] // (2 if self.negated else 1)  # an ordinary perceptron has no negated inputs
        stages = self.stages
        if stages == "cv":
            stages = self._cross_validate_stages(data, y, splits, min(max_stages, MAX_CV_STAGES))
        return list(self._iterate_stages(data, y, int(stages)))

    def _iterate_stages(self, data: BoostingData, y: np.ndarray, stages: int) -> Iterator[BoostingStage]:
        return boost_conjunctions(data.X, y, data.attributes, self.k, stages, self.discount, data.weights)

    def _cross_validate_stages(
        self, data: BoostingData, y: np.ndarray, splits: list[FoldIndices] | None, max_stages: int
    ) -> int:
        """Find the smallest number of boosting stages with minimal validation error."""
        if splits is None:
            folds = min(self.cv, int(np.sum(y == 1)), int(np.sum(y == -1)))
            if folds < 2:
                return max_stages
            splitter = StratifiedKFold(folds, shuffle=True, random_state=self.random_state)
            splits = list(splitter.split(data.X, y))
        notice = SlowCrossValidationNotice(len(splits) * max_stages, comb(data.X.shape[1], self.k))
        wrong = np.zeros(max(max_stages, 1))
        for fold, (inside, outside) in enumerate(splits):
            votes, num_stages, weights = np.zeros(len(outside)), 0, data.weights[outside]
            for stage in self._iterate_stages(data.select(inside), y[inside], max_stages):
                votes = compute_weighted_vote([stage], data.X[outside]) + (votes if stage.error > 0 else 0)
                wrong[num_stages] += weights @ (np.sign(votes) != y[outside])
                num_stages += 1
                notice.warn_if_slow(fold * max_stages + num_stages)
            # boosting ended early: the votes no longer change
            wrong[num_stages:] += weights @ (np.sign(votes) != y[outside])
        return int(np.argmin(wrong.round(9))) + 1

    def _make_cv_splits(self, X: Any, y: np.ndarray, weights: np.ndarray | None) -> list[FoldIndices] | None:
        """Return the splits for selecting the stages that `cv` defines, as indices of examples with positive weight.

        The result is None if `cv` is a number of folds.
        """
        if isinstance(self.cv, Integral):
            return None
        positive = np.ones(len(y), bool) if weights is None else weights > 0
        rows = np.where(positive, np.cumsum(positive) - 1, -1)
        splits = check_cv(self.cv, y, classifier=True).split(X, y)
        inside_outside = ((rows[inside], rows[outside]) for inside, outside in splits)
        return [(inside[inside >= 0], outside[outside >= 0]) for inside, outside in inside_outside]

    def _expand_given_categories(self, columns: int) -> list[Any]:
        if isinstance(self.categories, str):
            return [None] * columns
        if len(self.categories) != columns:
            raise ValueError(f"categories lists {len(self.categories)} columns, but X has {columns}")
        return list(self.categories)

    def _check_parameters(self) -> None:
        if isinstance(self.cv, Integral):
            check_integer_parameters(2, cv=self.cv)
        if isinstance(self.categories, str) and self.categories != "auto":
            raise ValueError(
                'categories must be "auto" or a list of names for each column, '
                f"not {format_python_value(self.categories)}"
            )
        check_integer_parameters(k=self.k)
        check_integer_parameters(2, bins=self.bins)
        if self.stages != "cv" and (not isinstance(self.stages, Integral) or self.stages < 1):
            raise ValueError(f'stages must be "cv" or an integer of at least 1, not {format_python_value(self.stages)}')
        if not isinstance(self.negated, bool | np.bool_):
            raise ValueError(f"negated must be True or False, not {format_python_value(self.negated)}")
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount must lie between 0 and 1, not {format_python_value(self.discount)}")


def _keep_column_types(X: Any) -> Any:
    """Convert lists of text and numbers to an array of objects.

    NumPy would convert the numbers to text.
    """
    return np.array(X, dtype=object) if isinstance(X, list | tuple) and np.asarray(X).dtype.kind in "US" else X
