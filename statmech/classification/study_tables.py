"""Tables for studies of classifiers on data: means over folds, paired t-tests, and published values for comparison.

The t-tests compare a classifier with boosting on the same folds.

Published values are from Tables 1 and 2 of Jackson & Craven, Learning Sparse Perceptrons (NIPS 8, 1996). Our copy is a
scan that lost the tables' columns. The boosting and C4.5 accuracies, the entire row of votes, and the weights of the
ordinary and second-order perceptrons are certain. The scan shows the pairs (promoters, coding) of accuracies (88.7,
69.8) and (88.2, 70.3), and of weights (41, 52) and (59, 37), without the classifiers that they belong to. We therefore
give both values.

A star behind a number marks an accuracy significantly below the accuracy of boosting. The scan shows three stars in the
row of votes, next to legible numbers, one star for each C4.5 accuracy, and one for the 71.6 of the multi-layer
perceptron. The remaining six stars match the six entries of the ordinary, second-order and pruned perceptrons in the
two rows below.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech.classification.classifiers import CLASSIFIERS, REFERENCE_CLASSIFIER
from statmech.numerics.statistics import standard_error
from statmech.results.tables import Table, TableCell, TableColumn

if TYPE_CHECKING:
    import xarray as xr


SIGNIFICANCE_LEVEL = 0.05  # as in Table 1 of Jackson & Craven
PUBLISHED_ACCURACY: dict[str, dict[str, tuple[float, ...]]] = {
    "votes": {
        "boosting": (91.5,),
        "tree": (89.2,),
        "mlp": (92.2,),
        "ordinary": (90.8,),
        "second_order": (89.2,),
        "pruned": (87.6,),
    },
    "promoters": {
        "boosting": (92.7,),
        "tree": (84.4,),
        "mlp": (90.6,),
        "ordinary": (90.0,),
        "second_order": (88.7, 88.2),
        "pruned": (88.7, 88.2),
    },
    "coding": {
        "boosting": (72.9,),
        "tree": (62.6,),
        "mlp": (71.6,),
        "ordinary": (70.7,),
        "second_order": (69.8, 70.3),
        "pruned": (69.8, 70.3),
    },
}
PUBLISHED_WEIGHT_COUNTS: dict[str, dict[str, tuple[float, ...]]] = {
    "votes": {"boosting": (12,), "mlp": (651,), "ordinary": (30,), "second_order": (450,), "pruned": (12,)},
    "promoters": {
        "boosting": (41, 59),
        "mlp": (2267,),
        "ordinary": (228,),
        "second_order": (25764,),
        "pruned": (41, 59),
    },
    "coding": {"boosting": (52, 37), "mlp": (4270,), "ordinary": (60,), "second_order": (1740,), "pruned": (52, 37)},
}
CLASSIFIERS_WORSE_THAN_BOOSTING: dict[
    str, tuple[str, ...]
] = {  # starred in Table 1: p <= 0.05, paired two-tailed t-test
    "votes": ("tree", "second_order", "pruned"),
    "promoters": ("tree", "ordinary", "second_order", "pruned"),
    "coding": ("tree", "mlp", "ordinary", "second_order", "pruned"),
}


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
    """Return the reference accuracies (seed, fold) for a paired test: boosting with otherwise equal parameters.

    Returns None for boosting itself, and for a study without boosting.
    """
    names = study.classifier.values.ravel().tolist()
    if (
        "classifier" not in index
        or REFERENCE_CLASSIFIER not in names
        or names[index["classifier"]] == REFERENCE_CLASSIFIER
    ):
        return None
    return study.accuracy.isel({**index, "classifier": names.index(REFERENCE_CLASSIFIER)}).values


def _is_worse_or_better(accuracy: np.ndarray, reference: np.ndarray) -> tuple[bool, bool]:
    """Return whether paired tests find accuracies significantly below, and significantly above, the reference.

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


def make_study_tables(study: xr.Dataset) -> Iterator[Table]:
    """Yield a table of accuracies for each data set of a study."""
    from statmech.inputs.data_sets import find_data_source

    all_tests, notes = list(iterate_paired_tests(study)), json.loads(study.attrs["notes"])
    for name in dict.fromkeys(_get_data_set_name(study, test) for test in all_tests):
        tests = [test for test in all_tests if _get_data_set_name(study, test) == name]
        table_notes = [f"{name}: {notes[name]}"] if notes[name] else []
        table_notes += _make_study_notes(study, name, tests)
        yield _make_accuracy_table(
            study, name, f"{find_data_source(name).title}: accuracy on held-out folds", tests, table_notes
        )


def format_combination_label(test: PairedTest) -> str:
    """Return the coordinates of a parameter combination as text, without the data set."""
    values = {name: value for name, value in test.cell.items() if name != "data"}
    texts = {name: _format_coordinate(name, value) for name, value in values.items()}
    return ", ".join(texts[name] if isinstance(values[name], str) else f"{name} {texts[name]}" for name in values)


def format_published_value(values: dict[str, dict[str, tuple[float, ...]]], data: str, classifier: str) -> str:
    """Format the published value, or both candidates if our scan of the paper is ambiguous.

    >>> format_published_value(PUBLISHED_ACCURACY, "promoters", "pruned")
    '88.7 or 88.2 ?'
    """
    candidates = values.get(data, {}).get(classifier, ())
    return " or ".join(f"{value:g}" for value in candidates) + (" ?" if len(candidates) > 1 else "")


def _get_data_set_name(study: xr.Dataset, test: PairedTest) -> str:
    return str(test.cell.get("data", study.data.item() if study.data.ndim == 0 else ""))


def _get_classifier_name(study: xr.Dataset, test: PairedTest) -> str:
    return str(test.cell.get("classifier", study.classifier.item() if study.classifier.ndim == 0 else ""))


def _make_accuracy_table(study: xr.Dataset, data: str, title: str, tests: list[PairedTest], notes: list[str]) -> Table:
    coordinates = [name for name in tests[0].cell if name != "data"] or ["classifier"]
    columns = _make_column_formatters(study, data, tests)
    headings = [TableColumn(name, not isinstance(tests[0].cell.get(name, ""), str), key=True) for name in coordinates]
    headings += [TableColumn(name.strip()) for name in columns]
    rows = []
    for test in tests:
        cell = {"classifier": _get_classifier_name(study, test), **test.cell}
        texts = [
            *(_format_coordinate(name, cell[name]) for name in coordinates),
            *(text(test) for text in columns.values()),
        ]
        rows.append(tuple(map(TableCell, texts)))
    return Table(title, tuple(headings), tuple(rows), tuple(notes))


def _make_column_formatters(
    study: xr.Dataset, data: str, tests: list[PairedTest]
) -> dict[str, Callable[[PairedTest], str]]:
    """Return the functions that format each column of a study's table of accuracies, by heading.

    The paper has columns if it gives values for this data set, and features have columns if not all are evaluated.
    """
    columns: dict[str, Callable[[PairedTest], str]] = {
        "accuracy %": lambda test: _format_accuracy(test, study.sizes["seed"])
    }
    if any(format_published_value(PUBLISHED_ACCURACY, data, _get_classifier_name(study, test)) for test in tests):
        columns["paper"] = lambda test: format_published_value(
            PUBLISHED_ACCURACY, data, _get_classifier_name(study, test)
        )
        columns["weights"] = lambda test: _format_number(test.means["nonzero_weights"])
        columns["paper "] = lambda test: format_published_value(
            PUBLISHED_WEIGHT_COUNTS, data, _get_classifier_name(study, test)
        )
        return columns
    columns["training %"] = lambda test: _format_number(100 * test.means["accuracy_training"])
    if any(test.means["features_evaluated"] % 1 > 0 for test in tests):
        columns["features"] = lambda test: _format_number(test.means["features_evaluated"])
        columns["in learning"] = lambda test: _format_number(test.means["features_learning"])
    else:
        columns["weights"] = lambda test: _format_number(test.means["nonzero_weights"])
    return columns


def _format_coordinate(name: str, value: Any) -> str:
    if name == "classifier":
        return CLASSIFIERS[value].label
    return value if isinstance(value, str) else f"{value:g}"


def _format_accuracy(test: PairedTest, shuffles: int) -> str:
    if test.means["accuracy"] != test.means["accuracy"]:  # NaN, because runs are missing or have failed
        return "-"
    star = ""
    for mark, count in (("*", test.worse_shuffles), ("+", test.better_shuffles)):
        if count:
            star += f" {mark}" if shuffles == 1 else f" {mark}{count}/{shuffles}"
    return f"{100 * test.means['accuracy']:.1f} ± {100 * test.error:.1f}{star}"


def _format_number(value: float) -> str:
    return "-" if value != value else f"{value:.1f}".rstrip("0").rstrip(".")


def _make_study_notes(study: xr.Dataset, data: str, tests: list[PairedTest]) -> list[str]:
    folds, shuffles = int(study.accuracy.count("fold").max()), study.sizes["seed"]
    notes = [f"± is the standard error over {folds} folds, averaged over {shuffles} shuffles."]
    if any(test.worse_shuffles is not None for test in tests):
        notes.append(
            "* less, + more accurate than boosting: p <= 0.05, paired two-tailed t-test over folds (of shuffles)."
        )
    if any(format_published_value(PUBLISHED_ACCURACY, data, _get_classifier_name(study, test)) for test in tests):
        notes.append("paper: Jackson & Craven 1996; ? our scan of it leaves open which of the two.")
    for test in tests:
        if test.means["codon_pairs"] > 0:
            fraction = test.means["codon_pairs"] / test.means["pairs"]
            name = format_combination_label(test) or "boosting"
            notes.append(f"{fraction:.0%} of the pairs that {name} chose lie within one codon (of all pairs: 1/7).")
    concept = json.loads(study.attrs["concepts"]).get(data)
    return notes + ([f"\nboosting, learnt from all of {data}:\n{concept['text']}"] if concept else [])
