"""Tables of results as plain data, for display by the command line, the report and notebooks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from statmech.results import comparison
from statmech.results.results import Results, as_results
from statmech.students.network_error import is_on_plateau

if TYPE_CHECKING:
    import xarray as xr

MAX_TABLE_ROWS = 40
SINGLE_SEED_MESSAGE = "a single seed has no standard error: nothing to compare"
DEVIATIONS_TITLE = "simulation - theory, in standard errors"
PREDICTED_DEVIATIONS_TITLE = f"{DEVIATIONS_TITLE} that theory predicts"
BOUNDS_TITLE = "runs that satisfy theory's bounds (simulation / bound, the ratio closest to a violation)"
CONVERGENCE_NOTE = "Theory describes runs that have converged: values are compared only where all runs have."
UNCONVERGED_MESSAGE = "not judged: in no parameter combination have all runs converged"
NO_VALUES_MESSAGE = "nothing to judge: all runs agree with theory to rounding, or theory has no value"
CONVERGED_COLUMN_HEADING = "converged"


@dataclass(frozen=True)
class TableColumn:
    """A table column: its heading, whether it contains numbers, and whether it identifies a row."""

    heading: str
    number: bool = True
    key: bool = False


@dataclass(frozen=True)
class TableCell:
    """A table cell, marked if its value exceeds a bound or its count is below the number of runs."""

    text: str
    highlighted: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a one-line verdict above and notes below. Without rows, its title is hidden."""

    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
    verdict: str = ""


class Tables(tuple[Table, ...]):
    """Tables that display themselves in a console and in a notebook."""

    def __repr__(self) -> str:
        return "\n\n".join(map(format_plain_text, self))

    def _repr_html_(self) -> str:
        return "".join(map(format_html, self))


def format_plain_text(table: Table) -> str:
    """Return a table of results as text with aligned columns.

    >>> columns = TableColumn("rule", number=False), TableColumn("R")
    >>> print(format_plain_text(Table("of R", columns, ((TableCell("hebb"), TableCell("+1.2")),), ("all",), "agrees")))
    agrees
    of R
    rule     R
    hebb  +1.2
    all
    """
    lines = [[column.heading for column in table.columns], *([cell.text for cell in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [str.rjust if column.number else str.ljust for column in table.columns]
    rows = [
        "  ".join(align(text, width) for align, text, width in zip(aligned, line, widths, strict=True)).rstrip()
        for line in lines
    ]
    verdict = [table.verdict] if table.verdict else []
    return "\n".join([*verdict, *([table.title, *rows] if table.rows else []), *table.notes])


def split_table(table: Table, width: int) -> list[Table]:
    """Split a table of results into parts that fit into a width, including their frames.

    No number is cut, and each part repeats the key columns.

    >>> columns = TableColumn("rule", number=False, key=True), TableColumn("R"), TableColumn("eps_g_vote")
    >>> table = Table("deviations", columns, ((TableCell("hebb"), TableCell("+1.2"), TableCell("-188448.5")),))
    >>> [[column.heading for column in part.columns] for width in (80, 20) for part in split_table(table, width)]
    [['rule', 'R', 'eps_g_vote'], ['rule', 'R'], ['rule', 'eps_g_\\nvote']]
    """
    if not table.rows or compute_framed_width(table) <= width:
        return [table]
    headings = [re.sub("_(?=[a-z]{4})", "_\n", column.heading).replace(" ", "\n") for column in table.columns]
    columns = (replace(column, heading=heading) for column, heading in zip(table.columns, headings, strict=True))
    table = replace(table, columns=tuple(columns))
    keys = [number for number, column in enumerate(table.columns) if column.key]
    column_groups: list[list[int]] = [keys]
    for number in range(len(table.columns)):
        if number not in keys:
            if (
                column_groups[-1] != keys
                and compute_framed_width(_select_columns(table, [*column_groups[-1], number])) > width
            ):
                column_groups.append(keys)
            column_groups[-1] = [*column_groups[-1], number]
    return [_select_columns(table, numbers) for numbers in column_groups]


def compute_framed_width(table: Table) -> int:
    """Return the width of a table with lines between its columns."""
    texts = [column.heading.splitlines() for column in table.columns]
    for row in table.rows:
        texts = [[*lines, cell.text] for lines, cell in zip(texts, row, strict=True)]
    return 1 + sum(3 + max(map(len, lines)) for lines in texts)


def _select_columns(table: Table, numbers: list[int]) -> Table:
    def select(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(row[number] for number in numbers)

    return replace(table, columns=select(table.columns), rows=tuple(map(select, table.rows)))


def format_html(table: Table) -> str:
    """Return a table of results as an HTML element, with marked cells in bold.

    >>> format_html(Table("of R", (TableColumn("R"),), ((TableCell("<1", highlighted=True),),)))
    '<table><caption>of R</caption><tr><th>R</th></tr><tr><td><b>&lt;1</b></td></tr></table>'
    """
    verdict = f"<p><b>{escape(table.verdict)}</b></p>" if table.verdict else ""
    notes = "".join(f"<p>{escape(note)}</p>".replace("\n", "<br>") for note in table.notes)
    if not table.rows:
        return verdict + notes
    heads = "".join(f"<th>{escape(column.heading)}</th>" for column in table.columns)
    rows = ["".join(f"<td>{_format_html_cell(cell)}</td>" for cell in row) for row in table.rows]
    body = "".join(f"<tr>{row}</tr>" for row in (heads, *rows))
    return f"{verdict}<table><caption>{escape(table.title)}</caption>{body}</table>{notes}"


def _format_html_cell(cell: TableCell) -> str:
    return f"<b>{escape(cell.text)}</b>" if cell.highlighted else escape(cell.text)


def make_results_tables(simulation: Results | xr.Dataset | None, theory: xr.Dataset | None = None) -> Tables:
    """Return the tables of any results: simulation against theory or, for a study on data, accuracies.

    Without a simulation or theory to compare, the tables consist of a note.
    """
    results = as_results(simulation, theory)
    if not results.complete:
        return Tables([Table("", (), (), verdict=_describe_missing_dataset(results))])
    return Tables(
        results.scenario.make_data_tables(results.either)
        if results.scenario.on_data
        else make_comparison_tables(results)
    )


def _describe_missing_dataset(results: Results) -> str:
    if results.simulation is None:
        return "There is no simulation to compare with theory."
    return f"There is no theory to compare with: {results.scenario.unsolved or 'it has not been solved'}."


def make_comparison_tables(simulation: Results | xr.Dataset, theory: xr.Dataset | None = None) -> Iterator[Table]:
    """Yield tables that compare simulation and theory: first bounds, then deviations where theory has values.

    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule="hebb", N=50, t=[1, 2], seeds=4, eta=[0.5, 1])
    >>> [table] = make_comparison_tables(simulate.run(scenario), theory.solve(scenario))
    >>> table.title, [row[0].text for row in table.rows]
    ('simulation - theory, in standard errors (the largest over all recorded times)', ['0.5', '1'])
    """
    results = as_results(simulation, theory)
    assert results.theory is not None
    bounds = comparison.list_bounded_variables(results)
    if bounds:
        yield _make_bounds_table(results, results.theory.attrs["source"])
    if set(results.theory.data_vars) - set(bounds):
        yield _make_deviations_table(results)


def _make_bounds_table(results: Results, source: str) -> Table:
    """Return the table of bounds: satisfying runs / all runs, and the worst ratio in brackets."""
    cells, converged = comparison.count_runs_within_bounds(results), comparison.count_converged_runs(results)
    rows = [
        (
            *_make_coordinate_cells(cell, results),
            *map(_make_bound_cell, bounds.values()),
            *_make_converged_cells(converged, number),
        )
        for number, (cell, bounds) in enumerate(cells[:MAX_TABLE_ROWS])
    ]
    violated = {name: sum(bounds[name].of - bounds[name].runs for _, bounds in cells) for name in cells[0][1]}
    notes = (
        [f"the first {MAX_TABLE_ROWS} of {len(cells)} parameter combinations"] if len(cells) > MAX_TABLE_ROWS else []
    )
    notes.append(f"{source}.")
    runs = ", ".join(f"{name} {count:,}" for name, count in violated.items() if count)
    judged = sum(bounds[name].of for _, bounds in cells for name in bounds)
    verdict = (
        f"violates: {runs} of {judged:,} values" if runs else f"agrees: no bound is violated, of {judged:,} values"
    )
    columns = _make_columns(_select_config_coordinates(cells[0][0], results), cells[0][1], converged)
    return _drop_empty_columns(Table(BOUNDS_TITLE, columns, tuple(rows), tuple(notes), verdict))


def _make_deviations_table(results: Results) -> Table:
    """Return the table of the largest deviations for each parameter combination."""
    predicted = results.theory is not None and comparison.has_any_bias_and_std(results.theory)
    if results.either.sizes["seed"] < 2 and not predicted:
        return Table(DEVIATIONS_TITLE, (), (), verdict=SINGLE_SEED_MESSAGE)
    distance = comparison.distances(results)
    deviation_rows = list(comparison.iterate_deviation_rows(distance))
    converged = comparison.count_converged_runs(results)
    judged = comparison.has_enough_seeds(distance) and not results.scenario.expected_deviation_reason
    limit = comparison.get_deviation_bound(distance) if judged else math.inf
    rows = [
        (
            *_make_coordinate_cells(deviation_rows[number].cell, results),
            *(_make_deviation_cell(z, limit) for z in deviation_rows[number].largest_deviations.values()),
            *_make_converged_cells(converged, number),
        )
        for number in _select_largest_deviation_rows(deviation_rows)
    ]
    columns = _make_columns(
        _select_config_coordinates(deviation_rows[0].cell, results), deviation_rows[0].largest_deviations, converged
    )
    title = PREDICTED_DEVIATIONS_TITLE if predicted else DEVIATIONS_TITLE
    if any(len(values) > 1 for values in results.scenario.recorded_coordinates.values()):
        title += " (the largest over all recorded times)"
    reason = results.scenario.expected_deviation_reason
    notes = (
        []
        if reason
        else [
            *_make_deviation_notes(distance, deviation_rows, converged),
            *_describe_unsolved_runs(results),
            *_describe_networks_on_plateau(results),
        ]
    )
    notes += [] if results.theory is None else results.theory.attrs.get("edges", "").splitlines()
    verdict = f"not judged: {reason}" if reason else _make_verdict(distance, _has_unconverged_runs(converged))
    return _drop_empty_columns(Table(title, columns, tuple(rows), tuple(notes), verdict))


def _drop_empty_columns(table: Table) -> Table:
    """Return a table of results without uninformative columns.

    These are columns of dashes, and the column of converged runs if all runs have converged. Key columns stay.

    >>> columns = TableColumn("rule", number=False, key=True), TableColumn("R"), TableColumn("q")
    >>> table = _drop_empty_columns(Table("", columns, ((TableCell("hebb"), TableCell("+1.2"), TableCell("-")),)))
    >>> [column.heading for column in table.columns]
    ['rule', 'R']
    """

    def has_information(number: int, column: TableColumn) -> bool:
        cells = [row[number] for row in table.rows]
        if column.heading == CONVERGED_COLUMN_HEADING:
            return any(cell.highlighted for cell in cells)
        return column.key or any(cell.text != "-" for cell in cells)

    numbers = [number for number, column in enumerate(table.columns) if has_information(number, column)]
    return (
        _select_columns(table, numbers)
        if any(not table.columns[number].key for number in numbers)
        else replace(table, rows=())
    )


def _make_verdict(distance: xr.Dataset, incomplete: bool) -> str:
    """Return the verdict above a table: whether simulation and theory agree."""
    count, z = distance.attrs["values"], comparison.get_deviation_magnitudes(distance)
    if not count:
        return UNCONVERGED_MESSAGE if incomplete else NO_VALUES_MESSAGE
    largest = f"largest |z| {z.max():.1f} of {_format_count(count)}"
    if not comparison.has_enough_seeds(distance):
        seeds, needed = distance.attrs["seeds"], comparison.get_min_judging_seeds(distance)
        return f"not judged: {_format_count(seeds, 'seed')} are too few, {needed} can judge; {largest}"
    bound = comparison.get_deviation_bound(distance)
    exceeding = int((z > bound).sum())
    if not exceeding:
        return f"agrees: {largest}, bound {bound:.1f}"
    return f"deviates: {exceeding:,} of {_format_count(count)} beyond the bound {bound:.1f}, largest |z| {z.max():.1f}"


def _format_count(number: int, noun: str = "value") -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _make_deviation_notes(
    distance: xr.Dataset, rows: list[comparison.DeviationRow], converged: list[tuple[int, int]] | None
) -> Iterator[str]:
    if len(rows) > MAX_TABLE_ROWS:
        yield f"the {MAX_TABLE_ROWS} largest deviations of {len(rows)} parameter combinations"
    if distance.attrs["values"]:
        yield from _explain_verdict(distance)
    if _has_unconverged_runs(converged):
        yield CONVERGENCE_NOTE


def _has_unconverged_runs(converged: list[tuple[int, int]] | None) -> bool:
    """Return True if some run has not converged."""
    return converged is not None and any(runs < total for runs, total in converged)


def _describe_unsolved_runs(results: Results) -> Iterator[str]:
    unsolved_runs, all_runs = comparison.count_unsolved_runs(results)
    if unsolved_runs:
        verb = "is" if unsolved_runs == 1 else "are"
        yield f"{unsolved_runs} of {all_runs} runs returned no solution and {verb} excluded."


def _describe_networks_on_plateau(results: Results) -> Iterator[str]:
    """Yield a note below a table if networks stay on the plateau even at their best learning rate."""
    theory, scenario = results.theory, results.scenario
    if theory is None or "control" not in theory or scenario.CHOICE != "network" or "task" in theory.dims:
        return
    last = theory.isel(t=-1)
    cells = [cell for cell in scenario.cells() if cell.optimal_keys and min(cell.K, cell.M) > 1]
    plateau_count = 0
    for cell in cells:
        order_parameters = last[dict(zip(scenario.shape, cell.index, strict=True))]
        R, Q = order_parameters.R.values[: cell.K, : cell.M], order_parameters.Q.values[: cell.K, : cell.K]
        plateau_count += bool(is_on_plateau(cell.T, R, Q))
    if plateau_count:
        subject = "the network does" if len(cells) == 1 else f"{plateau_count} of {len(cells)} networks do"
        yield f"At its best learning rate {subject} not leave the plateau before the last time."


def _explain_verdict(distance: xr.Dataset) -> Iterator[str]:
    """Yield notes below a table that explain its verdict."""
    if not comparison.has_enough_seeds(distance):
        yield "z: deviation in standard errors, which so few seeds leave uncertain."
        return
    exceeds_bound = bool(
        (comparison.get_deviation_magnitudes(distance) > comparison.get_deviation_bound(distance)).any()
    )
    yield "z: deviation in standard errors. If theory is exact, all stay below the bound in 99 % of sweeps."
    if "left_out" in distance.attrs:
        yield from _explain_predicted_errors(distance, exceeds_bound)
    elif exceeds_bound:
        yield "Theory describes N -> infinity: at finite N the means differ by O(1/N)."


def _explain_predicted_errors(distance: xr.Dataset, exceeds_bound: bool) -> Iterator[str]:
    """Yield notes below a table that explain predicted standard errors."""
    if distance.attrs["left_out"]:
        names = ", ".join(distance.attrs["left_out"])
        yield f"Not compared, as theory lacks their standard deviation or their bias at finite N: {names}."
    if unresolved := distance.attrs["unresolved"]:
        yield f"Not compared, as terms beyond order 1/N are not small: {unresolved} of the values."
    if exceeds_bound:
        yield "Theory has means and standard deviations to order 1/N; many seeds at small N resolve the next order."


def _make_columns(cell: Iterable[str], variables: Iterable[str], converged: Any) -> tuple[TableColumn, ...]:
    """Return a table's columns for coordinates, variables and, if runs may fail to converge, converged runs."""
    final_columns = () if converged is None else (TableColumn(CONVERGED_COLUMN_HEADING),)
    return (
        *(TableColumn(name, False, key=True) for name in cell),
        *(TableColumn(name) for name in variables),
        *final_columns,
    )


def _select_config_coordinates(cell: dict[str, Any], results: Results) -> dict[str, Any]:
    """Return the coordinates of a parameter combination that are config keys, such as alpha but not P."""
    return {name: value for name, value in cell.items() if name not in results.scenario.NON_KEY_COORDINATES}


def _make_coordinate_cells(cell: dict[str, Any], results: Results) -> list[TableCell]:
    values = _select_config_coordinates(cell, results).values()
    return [TableCell(value if isinstance(value, str) else f"{value:g}") for value in values]


def _select_largest_deviation_rows(rows: list[comparison.DeviationRow]) -> list[int]:
    """Return the indices of the rows to show: all rows, or the rows with the largest deviations."""

    def deviation(number: int) -> float:
        return max((abs(z) for z in rows[number].largest_deviations.values() if z == z), default=0.0)

    return sorted(sorted(range(len(rows)), key=deviation, reverse=True)[:MAX_TABLE_ROWS])


def _make_converged_cells(converged: list[tuple[int, int]] | None, number: int) -> list[TableCell]:
    return [] if converged is None else [_make_count_cell(*converged[number])]


def _make_bound_cell(counts: comparison.BoundCount) -> TableCell:
    count = _make_count_cell(counts.runs, counts.of)
    return TableCell(f"{count.text} ({counts.ratio:.2g})", count.highlighted) if counts.of else TableCell("-")


def _make_count_cell(runs: int, total: int) -> TableCell:
    return TableCell(f"{runs}/{total}", runs < total)


def _make_deviation_cell(z: float, limit: float) -> TableCell:
    return TableCell(f"{z:+.1f}", abs(z) > limit) if z == z else TableCell("-")
