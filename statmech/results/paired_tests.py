"""Comparison of classifiers on data: means over folds, and paired t-tests against boosting on the same folds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.classifiers import REFERENCE_CLASSIFIER
from statmech.numerics.statistics import standard_error

if TYPE_CHECKING:
    import xarray as xr

SIGNIFICANCE_LEVEL = 0.05  # as in Table 1 of Jackson & Craven


@dataclass(frozen=True)
class PairedTest:
    """One parameter combination of a study, and its comparison with boosting.

    Parameters
    ----------
    cell
        The coordinates of the parameter combination.
    means
        Means over shuffles and folds.
    errors
        Standard errors over folds, averaged over shuffles.
    worse, better
        The numbers of shuffles where the classifier is significantly less, or more, accurate than boosting, by a paired
        two-tailed t-test over folds; None if there is no such test.
    """

    cell: dict[str, Any]
    means: dict[str, float]
    errors: dict[str, float]
    worse_shuffles: int | None
    better_shuffles: int | None

    @property
    def error(self) -> float:
        """The standard error of the accuracy."""
        return self.errors["accuracy"]


def iterate_paired_tests(study: xr.Dataset) -> Iterator[PairedTest]:
    """Yield the tests of all parameter combinations of a study, in the order of its axes.

    Parameters
    ----------
    study
        A simulated study.

    Yields
    ------
    PairedTest
        One per parameter combination.

    Examples
    --------
    >>> import simulate
    >>> from statmech import Study
    >>> study = simulate.run(Study(classifier=["perceptron", "neighbours"], data="moons", folds=5))
    >>> [test.cell["classifier"] for test in iterate_paired_tests(study)]
    ['perceptron', 'neighbours']
    """
    axes = [str(dim) for dim in study.accuracy.dims if dim not in ("seed", "fold")]
    for index in itertools.product(*(range(study.sizes[axis]) for axis in axes)):
        yield _compute_paired_test(study, dict(zip(axes, index, strict=True)))


def _compute_paired_test(study: xr.Dataset, index: dict[str, int]) -> PairedTest:
    cell, reference = study.isel(index), _get_reference_accuracy(study, index)
    accuracy = cell.accuracy.values
    tests = (
        None if reference is None else [_is_worse_or_better(*pair) for pair in zip(accuracy, reference, strict=True)]
    )
    folded = {str(name): cell[name].values for name in study.data_vars if cell[name].dims == ("seed", "fold")}
    return PairedTest(
        {str(name): cell[name].item() for axis in index for name, c in study.coords.items() if c.dims == (axis,)},
        {name: _finite_mean(values) for name, values in folded.items()},
        {name: _finite_mean(standard_error(values, axis=1)) for name, values in folded.items()},
        None if tests is None else sum(worse for worse, _ in tests),
        None if tests is None else sum(better for _, better in tests),
    )


def _get_reference_accuracy(study: xr.Dataset, index: dict[str, int]) -> np.ndarray | None:
    """Return the accuracies (seed, fold) of boosting with otherwise equal parameters.

    Returns None for boosting itself, and for a study without boosting.
    """
    names = study.classifier.values.ravel().tolist()
    if (
        "classifier" not in index
        or REFERENCE_CLASSIFIER not in names
        or names[index["classifier"]] == REFERENCE_CLASSIFIER
    ):
        return None
    accuracy: np.ndarray = study.accuracy.isel({**index, "classifier": names.index(REFERENCE_CLASSIFIER)}).values
    return accuracy


def _is_worse_or_better(accuracy: np.ndarray, reference: np.ndarray) -> tuple[bool, bool]:
    """Return whether accuracies are significantly below, and significantly above, the reference.

    The test is paired by folds.
    """
    from scipy.stats import ttest_rel

    is_compared = np.isfinite(accuracy) & np.isfinite(reference)
    difference = accuracy[is_compared] - reference[is_compared]
    if difference.size < 2 or np.ptp(difference) == 0:  # the same difference in all folds: no spread to test against
        return False, False
    significant = bool(ttest_rel(accuracy[is_compared], reference[is_compared]).pvalue <= SIGNIFICANCE_LEVEL)
    return significant and difference.mean() < 0, significant and difference.mean() > 0


def _finite_mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else np.nan


Verdict, verdicts = PairedTest, iterate_paired_tests  # names in earlier versions
