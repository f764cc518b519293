"""Terminal output of commands: escaped text, tables of results, lists, and the estimate of a dry run.

All commands print by `print` of this module. Only tables and columns import rich.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from statmech.errors import escape_name, escape_text

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console
    from rich.table import Table as RichTable

    from statmech.keys.scenario import AbstractScenario
    from statmech.results.results import Results
    from statmech.results.tables import Table


def prepare_standard_streams() -> None:
    """Open closed standard streams and make printing work in every locale.

    Otherwise a file that is opened under the number of a closed stream would receive the printed text.
    """
    stdout_was_closed = sys.stdout is None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            while os.open(os.devnull, os.O_RDWR) < number:  # os.open returns the smallest free descriptor
                pass
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the locale may lack some characters
    if stdout_was_closed:
        print("standard output is closed: nothing is printed there", file=sys.stderr)


def print(*values: object, file: TextIO | None = None, flush: bool = False) -> None:
    """Print like the built-in function, but with control characters escaped (`statmech.errors.escape_text`)."""
    text = " ".join(map(str, values))
    for name in _find_names_with_line_breaks(*sys.argv):
        text = text.replace(name, escape_name(name))
    builtins.print(escape_text(text), file=file, flush=flush)


@cache
def _find_names_with_line_breaks(*arguments: str) -> list[str]:
    """Return the path components on the command line that contain a line break or a tab."""
    names = {name for argument in arguments for name in Path(argument).parts}
    return sorted(name for name in names if name.strip() and escape_text(name) != escape_name(name))


@cache
def get_stdout_console() -> Console:
    from rich.console import Console

    return Console()


def print_comparison_tables(simulation: Results | xr.Dataset | None, theory: xr.Dataset | None = None) -> None:
    """Print the comparison tables of results, or of a simulation and its theory, on the terminal."""
    from statmech.results.tables import make_results_tables

    for table in make_results_tables(simulation, theory):
        if table.verdict:
            print(table.verdict, file=sys.stdout if table.rows else sys.stderr)
        if table.rows:
            _print_table(table)
        for note in table.notes:
            print(note, file=sys.stdout if table.rows else sys.stderr)


def print_described_names(rows: Iterable[tuple[str, str]], indent: str = "", width: int = 0) -> None:
    """Print a list of names with their descriptions, the names in a column of at least this width.

    On a terminal, descriptions wrap within their column.
    """
    rows = [(indent + name, text) for name, text in rows]
    width = max(width, max((len(name) for name, _ in rows), default=0))
    if not get_stdout_console().is_terminal:
        for name, text in rows:
            print(f"{name:<{width}}  {text}".rstrip())
        return
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=width)
    grid.add_column()
    for name, text in rows:
        grid.add_row(Text(escape_text(name)), Text(escape_text(text)))
    get_stdout_console().print(grid)


def print_grouped_names(descriptions_by_group: Mapping[str, Mapping[str, str]]) -> None:
    """Print a list of names with their descriptions in groups, each group below its heading."""
    width = max(len(name) for names in descriptions_by_group.values() for name in names)
    for index, (heading, names) in enumerate(descriptions_by_group.items()):
        print("\n" * (index > 0) + heading)
        print_described_names(names.items(), indent="  ", width=width + 2)


def print_published_figures() -> None:
    """Print the list of published figures, grouped by the kind of config they support."""
    from figures import list_figures_by_kind

    print_grouped_names(
        {f"of a config with `{choice}`:": descriptions for choice, descriptions in list_figures_by_kind().items()}
    )


def print_sweep_estimate(
    scenario: AbstractScenario, memory: float | None = None, includes_drawing: bool = False
) -> None:
    """Print the estimate of a dry run: the number of runs, memory and time.

    The memory includes results that are compared and, with `includes_drawing`, their drawing. `memory` is the memory
    limit.
    """
    from simulate.execution.work_units import estimate_peak_memory, make_simulator, remarks
    from statmech.stores.sweep_cost import COMPILE_SECONDS, PROGRAM_LOAD_SECONDS, PROGRAM_START_SECONDS, estimate_cost

    cost = estimate_cost(scenario)
    for remark in remarks(scenario):
        print(remark, file=sys.stderr)
    needed_bytes = estimate_peak_memory(make_simulator(scenario), memory, includes_drawing)
    programs = f"{cost.programs} program{'s' if cost.programs > 1 else ''}"
    seconds_to_load = cost.programs * PROGRAM_LOAD_SECONDS
    compiling = f"{cost.programs * COMPILE_SECONDS:.2g} to compile {programs}, or {seconds_to_load:.2g} to load"
    grid = " x ".join(f"{n:,} {name}" for name, n in scenario.shape.items())
    seconds = f"about {float(f'{cost.seconds:.2g}'):g}" if cost.seconds >= 1 else "less than 1"
    print_described_names(
        [
            ("parameter combinations", f"{cost.cells:,}{f' ({grid})' if grid else ''}"),
            ("runs", f"{cost.runs:,}"),
            ("bytes", f"{cost.dataset_bytes:,} of results"),
            ("memory", f"about {needed_bytes / 2**30:.2g} GiB while it runs"),
            ("seconds", f"{seconds} on the benchmark machine (2 cores, benchmarks/README.md)"),
            (
                "before",
                f"about {PROGRAM_START_SECONDS:g} to start"
                + (f", and {compiling}" if cost.programs else ", without compilation"),
            ),
        ]
    )


def _print_table(table: Table) -> None:
    from rich.text import Text

    from statmech.results.tables import compute_framed_width, split_table

    console = get_stdout_console()
    # printed separately, because a rich table would wrap its title at the table's width
    console.print(Text(escape_text(table.title)), soft_wrap=True)
    for part in split_table(table, console.width):
        rich = _make_rich_table(part)
        # rich would truncate a table wider than the terminal
        rich.width = compute_framed_width(part) if compute_framed_width(part) > console.width else None
        console.print(rich, crop=False)


def _make_rich_table(table: Table) -> RichTable:
    """Return a table of results as a table of rich, with marked cells in bold red."""
    from rich.table import Table as RichTable
    from rich.text import Text

    rich = RichTable()
    for column in table.columns:
        rich.add_column(Text(column.heading), justify="right" if column.number else "left", no_wrap=True)
    for row in table.rows:
        rich.add_row(*(Text(escape_text(cell.text), "bold red" if cell.highlighted else "") for cell in row))
    return rich
