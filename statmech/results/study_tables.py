"""Tables for studies of classifiers on data, with published values next to measured values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from statmech.classifiers import CLASSIFIERS
from statmech.results import published_values as paper
from statmech.results.paired_tests import PairedTest, iterate_paired_tests
from statmech.results.results import Results, as_results
from statmech.results.tables import Table, TableCell, TableColumn, Tables, make_comparison_tables

if TYPE_CHECKING:
    import xarray as xr


def make_results_tables(simulation: Results | xr.Dataset | None, theory: xr.Dataset | None = None) -> Tables:
    """Return the tables of any results: simulation against theory or, for a study on data, accuracies.

    Without a simulation or theory to compare, the tables consist of a note.
    """
    results = as_results(simulation, theory)
    if not results.complete:
        return Tables([Table("", (), (), verdict=_describe_missing_dataset(results))])
    return Tables(make_study_tables(results.either) if results.scenario.on_data else make_comparison_tables(results))


def _describe_missing_dataset(results: Results) -> str:
    if results.simulation is None:
        return "There is no simulation to compare with theory."
    return f"There is no theory to compare with: {results.scenario.unsolved or 'it has not been solved'}."


def make_study_tables(study: xr.Dataset) -> Iterator[Table]:
    """Yield a table of accuracies for each data set of a study."""
    from statmech.data_sets import find_data_source

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

    >>> format_published_value(paper.PUBLISHED_ACCURACY, "promoters", "pruned")
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
    """Return the functions that format each column, by heading.

    The paper has columns if it gives values for this data set, and features have columns if not all are evaluated.
    """
    columns: dict[str, Callable[[PairedTest], str]] = {
        "accuracy %": lambda test: _format_accuracy(test, study.sizes["seed"])
    }
    if any(format_published_value(paper.PUBLISHED_ACCURACY, data, _get_classifier_name(study, test)) for test in tests):
        columns["paper"] = lambda test: format_published_value(
            paper.PUBLISHED_ACCURACY, data, _get_classifier_name(study, test)
        )
        columns["weights"] = lambda test: _format_number(test.means["nonzero_weights"])
        columns["paper "] = lambda test: format_published_value(
            paper.PUBLISHED_WEIGHT_COUNTS, data, _get_classifier_name(study, test)
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
    if any(format_published_value(paper.PUBLISHED_ACCURACY, data, _get_classifier_name(study, test)) for test in tests):
        notes.append("paper: Jackson & Craven 1996; ? our scan of it leaves open which of the two.")
    for test in tests:
        if test.means["codon_pairs"] > 0:
            fraction = test.means["codon_pairs"] / test.means["pairs"]
            name = format_combination_label(test) or "boosting"
            notes.append(f"{fraction:.0%} of the pairs that {name} chose lie within one codon (of all pairs: 1/7).")
    concept = json.loads(study.attrs["concepts"]).get(data)
    return notes + ([f"\nboosting, learnt from all of {data}:\n{concept['text']}"] if concept else [])
