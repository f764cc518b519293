"""Tables of studies on data, with the published values beside the measured ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from statmech.results import published_values as paper
from statmech.classifiers import CLASSIFIERS
from statmech.scenarios.cross_validation import KEYS
from statmech.results.results import Results, results_of
from statmech.results.tables import Cell, Column, Table, Tables, comparison_tables
from statmech.results.paired_tests import Verdict, verdicts

if TYPE_CHECKING:
    import xarray as xr


def tables(simulation: Results | xr.Dataset | None, theory: xr.Dataset | None = None) -> Tables:
    """The tables of any results: simulation against theory or, for a study on data, its accuracies.

    Empty where there is nothing to compare.
    """
    results = results_of(simulation, theory)
    if not results.complete:
        return Tables()
    return Tables(study_tables(results.either) if results.scenario.on_data else comparison_tables(results))


def study_tables(study: xr.Dataset) -> Iterator[Table]:
    """A table for each data set."""
    from statmech.data_sets import source

    every, notes = list(verdicts(study)), json.loads(study.attrs["notes"])
    for name in dict.fromkeys(_data(study, verdict) for verdict in every):
        mine = [verdict for verdict in every if _data(study, verdict) == name]
        below = [f"{name}: {notes[name]}"] if notes[name] else []
        below += _explained(study, name, mine)
        yield _table(study, name, f"{source(name).title}: accuracy on held-out folds", mine, below)


def cell_label(verdict: Verdict) -> str:
    """What tells a cell from the others, the data set apart."""
    told = {name: _shown(name, value) for name, value in verdict.cell.items() if name != "data"}
    return ", ".join(value if name in ("classifier", *KEYS) else f"{name} {value}" for name, value in told.items())


def published(values: dict[str, dict[str, tuple[float, ...]]], data: str, classifier: str) -> str:
    """The paper's value, or the two that it may be.

    >>> published(paper.ACCURACY, "promoters", "pruned")
    '88.7 or 88.2 ?'
    """
    known = values.get(data, {}).get(classifier, ())
    return " or ".join(f"{value:g}" for value in known) + (" ?" if len(known) > 1 else "")


def _data(study: xr.Dataset, verdict: Verdict) -> str:
    return str(verdict.cell.get("data", study.data.item() if study.data.ndim == 0 else ""))


def _classifier(study: xr.Dataset, verdict: Verdict) -> str:
    return str(verdict.cell.get("classifier", study.classifier.item() if study.classifier.ndim == 0 else ""))


def _table(study: xr.Dataset, data: str, title: str, mine: list[Verdict], notes: list[str]) -> Table:
    coordinates = [name for name in mine[0].cell if name != "data"] or ["classifier"]
    columns = _columns(study, data, mine)
    headings = [Column(name, name not in ("classifier", *KEYS)) for name in coordinates]
    headings += [Column(name.strip()) for name in columns]
    rows = []
    for verdict in mine:
        here = {"classifier": _classifier(study, verdict), **verdict.cell}
        told = [*(_shown(name, here[name]) for name in coordinates), *(tell(verdict) for tell in columns.values())]
        rows.append(tuple(map(Cell, told)))
    return Table(title, tuple(headings), tuple(rows), tuple(notes), whole=True)


def _columns(study: xr.Dataset, data: str, mine: list[Verdict]) -> dict[str, Callable[[Verdict], str]]:
    """Headings, and what stands below: what the paper tells, too, or else features where not all are evaluated."""
    columns: dict[str, Callable[[Verdict], str]] = {"accuracy %": lambda of: _accuracy(of, study.sizes["seed"])}
    if any(published(paper.ACCURACY, data, _classifier(study, of)) for of in mine):
        columns["paper"] = lambda of: published(paper.ACCURACY, data, _classifier(study, of))
        columns["weights"] = lambda of: _number(of.means["weights"])
        columns["paper "] = lambda of: published(paper.WEIGHTS, data, _classifier(study, of))
        return columns
    columns["training %"] = lambda of: _number(100 * of.means["accuracy_training"])
    if any(of.means["features"] % 1 > 0 for of in mine):
        columns["features"] = lambda of: _number(of.means["features"])
        columns["in learning"] = lambda of: _number(of.means["features_learning"])
    else:
        columns["weights"] = lambda of: _number(of.means["weights"])
    return columns


def _shown(name: str, value: Any) -> str:
    if name == "classifier":
        return CLASSIFIERS[value].label
    return value if isinstance(value, str) else f"{value:g}"


def _accuracy(verdict: Verdict, shuffles: int) -> str:
    if verdict.means["accuracy"] != verdict.means["accuracy"]:  # its runs are missing or have failed
        return "-"
    star = ""
    for mark, count in (("*", verdict.worse), ("+", verdict.better)):
        if count:
            star += f" {mark}" if shuffles == 1 else f" {mark}{count}/{shuffles}"
    return f"{100 * verdict.means['accuracy']:.1f} ± {100 * verdict.error:.1f}{star}"


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.1f}".rstrip("0").rstrip(".")


def _explained(study: xr.Dataset, data: str, mine: list[Verdict]) -> list[str]:
    folds, shuffles = int(study.accuracy.count("fold").max()), study.sizes["seed"]
    told = [f"± is the standard error over {folds} folds, a mean over {shuffles} shuffles."]
    if any(verdict.worse is not None for verdict in mine):
        told.append(
            "* less, + more accurate than boosting: p <= 0.05, paired two-tailed t-test over folds (of shuffles)."
        )
    if any(published(paper.ACCURACY, data, _classifier(study, of)) for of in mine):
        told.append("paper: Jackson & Craven 1996; ? our scan of it does not tell which of the two.")
    pairs = [verdict for verdict in mine if verdict.means["codon_pairs"] > 0]
    for verdict in pairs:
        share = verdict.means["codon_pairs"] / verdict.means["pairs"]
        who = cell_label(verdict) or "boosting"
        told.append(f"{share:.0%} of the pairs that {who} chose lie within one codon (of all pairs: 1/7).")
    concept = json.loads(study.attrs["concepts"]).get(data)
    return told + ([f"\nboosting, learnt from all of {data}:\n{concept['text']}"] if concept else [])
