"""Terminal output of commands: tables of results, lists, and the estimate of a dry run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from statmech.cli.terminal import print
from statmech.errors import escaped

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table as RichTable

    from statmech.results.results import Results
    from statmech.results.tables import Table, TableCell
    from statmech.scenarios.base import AbstractScenario

out = Console()


def results(simulation: Results | xr.Dataset | None, theory: xr.Dataset | None = None) -> None:
    """Print the tables of results, or of a simulation and its theory."""
    from statmech.results.study_tables import tables

    for table in tables(simulation, theory):
        if table.verdict:
            print(table.verdict, file=sys.stdout if table.rows else sys.stderr)
        if table.rows:
            _print_table(table)
        for note in table.notes:
            print(note, file=sys.stdout if table.rows else sys.stderr)


def listing(rows: Iterable[tuple[str, str]], indent: str = "", width: int = 0) -> None:
    """Print names in a column of at least this width, with a description each.

    On a terminal, descriptions wrap within their column.
    """
    rows = [(indent + name, text) for name, text in rows]
    width = max(width, max((len(name) for name, _ in rows), default=0))
    if not out.is_terminal:
        for name, text in rows:
            print(f"{name:<{width}}  {text}".rstrip())
        return
    from rich.table import Table as RichTable

    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=width)
    grid.add_column()
    for name, text in rows:
        grid.add_row(Text(escaped(name)), Text(escaped(text)))
    out.print(grid)


def groups(listed: Mapping[str, Mapping[str, str]]) -> None:
    """Print groups of names with a description each, below the heading of the group."""
    width = max(len(name) for names in listed.values() for name in names)
    for index, (heading, names) in enumerate(listed.items()):
        print("\n" * (index > 0) + heading)
        listing(names.items(), indent="  ", width=width + 2)


def figures() -> None:
    """Print the published figures, grouped by the kind of config that they show."""
    from figures import FIGURES

    groups({f"of a config with `{choice}`:": descriptions for choice, descriptions in FIGURES.items()})


def estimate(scenario: AbstractScenario, memory: float | None = None, drawn: bool = False) -> None:
    """Print the number of runs of a sweep, and estimates of their memory and time.

    The memory includes results that are compared and, with `drawn`, their drawing. `memory` is the memory limit.
    """
    from simulate.execution.units import needed, simulator_of
    from simulate.run import remarks
    from statmech.scenarios.cost import COMPILE, LOAD, START, estimate

    cost = estimate(scenario)
    for remark in remarks(scenario):
        print(remark, file=sys.stderr)
    programs = f"{cost.programs} program{'s' if cost.programs > 1 else ''}"
    compiling = f"{cost.programs * COMPILE:.2g} to compile {programs}, or {cost.programs * LOAD:.2g} to load"
    grid = " x ".join(f"{n} {name}" for name, n in scenario.shape.items())
    seconds = f"about {float(f'{cost.seconds:.2g}'):g}" if cost.seconds >= 1 else "less than 1"
    listing(
        [
            ("parameter combinations", f"{cost.cells}{f' ({grid})' if grid else ''}"),
            ("runs", f"{cost.runs}"),
            ("bytes", f"{cost.bytes_:,} of results"),
            ("memory", f"about {needed(simulator_of(scenario), memory, drawn) / 2**30:.2g} GiB while it runs"),
            ("seconds", f"{seconds} on the benchmark machine (2 cores, benchmarks/README.md)"),
            (
                "before",
                f"about {START:g} to start" + (f", and {compiling}" if cost.programs else ", without compilation"),
            ),
        ]
    )


def _print_table(table: Table) -> None:
    from statmech.results.tables import framed, parts

    # printed separately, because a rich table would wrap its title at the table's width
    out.print(Text(escaped(table.title)), soft_wrap=True)
    for part in parts(table, out.width):
        rich = _rich_table(part)
        # rich would cut a table that is wider than the terminal
        rich.width = framed(part) if framed(part) > out.width else None
        out.print(rich, crop=False)


def _rich_table(table: Table) -> RichTable:
    from rich.table import Table as RichTable

    rich = RichTable()
    for column in table.columns:
        rich.add_column(Text(column.heading), justify="right" if column.number else "left", no_wrap=True)
    for row in table.rows:
        rich.add_row(*map(_text, row))
    return rich


def _text(cell: TableCell) -> Text:
    return Text(escaped(cell.text), style="bold red" if cell.marked else "")
