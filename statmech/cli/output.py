"""What the command prints of results: how far simulation and theory are apart, and what studies found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from statmech.cli.terminal import print
from statmech.errors import escaped

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table as Printed

    from statmech.results.tables import Cell, Table

out = Console()


def results(simulation: xr.Dataset, theory: xr.Dataset | None) -> None:
    """The tables of a simulation and its theory, or of a study."""
    from statmech.results.study_tables import tables

    for table in tables(simulation, theory):
        if table.rows:
            out.print(_printed(table))
        for note in table.notes:
            print(note, file=sys.stdout if table.rows else sys.stderr)


def _printed(table: Table) -> Printed:
    from rich.table import Table as Printed

    made = Printed(title=Text(escaped(table.title)), title_justify="left")
    for column in table.columns:
        made.add_column(Text(column.heading), justify="right" if column.number else "left", no_wrap=table.whole)
    for row in table.rows:
        made.add_row(*map(_text, row))
    return made


def _text(cell: Cell) -> Text:
    return Text(escaped(cell.text), style="bold red" if cell.marked else "")
