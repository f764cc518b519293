"""What the command prints of results: how far simulation and theory are apart, and what studies found."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

out = Console()


def study(made: xr.Dataset) -> None:
    """The tables of a study on data: one a data set, each cell a line."""
    from figures.tables import study_tables

    for table, notes in study_tables(made):
        out.print(table)
        for note in notes:
            out.print(note, highlight=False, markup=False)


def comparison(simulation: xr.Dataset, theory: xr.Dataset) -> None:
    from statmech import compare

    bounds = compare.bounded(simulation, theory)
    if bounds:
        _compare_bounds(simulation, theory)
    if set(theory.data_vars) - set(bounds):
        _compare_values(simulation, theory)


def _compare_bounds(simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """Runs that keep the bounds, of how many, and in brackets the ratio nearest to the bound or furthest beyond."""
    from statmech import compare

    found, converged = compare.kept(simulation, theory), compare.converged(simulation)
    table = _table("runs that keep theory's bounds (simulation / bound of the nearest)", found[0][0], found[0][1])
    if converged is not None:
        table.add_column("converged", justify="right")
    for at, (cell, bounds) in list(enumerate(found))[:MOST_ROWS]:
        share = [] if converged is None else [_share(*converged[at])]
        told = [f"{_share(kept.runs, kept.of)} ({kept.ratio:.2g})" if kept.of else "-" for kept in bounds.values()]
        table.add_row(*_told(cell), *told, *share)
    out.print(table)
    if len(found) > MOST_ROWS:
        print(f"the first {MOST_ROWS} of {len(found)} cells")
    broken = {name: sum(bounds[name].of - bounds[name].runs for _, bounds in found) for name in found[0][1]}
    runs = ", ".join(f"{name} {some}" for name, some in broken.items() if some)
    print(f"{theory.attrs['source']}. Broken: {runs or 'none'}.")


def _table(title: str, cell: dict[str, Any], variables: Iterable[str]) -> Table:
    """An empty table: a column for each coordinate of a cell and each variable."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in cell:
        table.add_column(name)
    for variable in variables:
        table.add_column(_HEADINGS.get(variable, variable), justify="right")
    return table


def _told(cell: dict[str, Any]) -> list[str]:
    return [value if isinstance(value, str) else f"{value:g}" for value in cell.values()]


def _compare_values(simulation: xr.Dataset, theory: xr.Dataset) -> None:
    from statmech import compare

    if simulation.sizes["seed"] < 2:
        print("one seed has no standard error: nothing to compare", file=sys.stderr)
        return
    distance = compare.distances(simulation, theory)
    rows, bound = list(compare.rows(distance)), compare.bound(distance)
    title = "simulation - theory, in standard errors (the largest over all moments)"
    table = _table(title, rows[0].cell, map(str, distance.data_vars))
    converged = compare.converged(simulation)
    if converged is not None:
        table.add_column("converged", justify="right")
    for at in _shown(rows):
        share = [] if converged is None else [_share(*converged[at])]
        table.add_row(*_told(rows[at].cell), *(_mark(z, bound) for z in rows[at].largest.values()), *share)
    out.print(table)
    if len(rows) > MOST_ROWS:
        print(f"the {MOST_ROWS} furthest apart of {len(rows)} cells")
    beyond = sum(abs(z) > bound for row in rows for z in row.largest.values())
    lie = "1 lies" if beyond == 1 else f"{beyond or 'none'} lie"
    told = f"Where theory is right, all lie within {bound:.1f} in 99 of 100 sweeps. Here {lie} beyond."
    print(told)
    if beyond:
        print("The theory is that of N -> infinity; at finite N the means differ by O(1/N).")
    if converged is not None and any(some < of for some, of in converged):
        print(
            "Where not all runs converged, theory is that of learners that have; runs without a student are left out."
        )


MOST_ROWS = 40  # of a table


def _shown(rows: list[Any]) -> list[int]:
    """Which rows of a table: all, or those furthest apart."""

    def distance(at: int) -> float:
        return max((abs(z) for z in rows[at].largest.values() if z == z), default=0.0)

    return sorted(sorted(range(len(rows)), key=distance, reverse=True)[:MOST_ROWS])


def _share(some: int, of: int) -> str:
    return f"{some}/{of}" if some == of else f"[bold red]{some}/{of}[/]"


_HEADINGS = {"eps_g_majority_vote": "eps_g vote", "eps_g_weight_mean": "eps_g mean"}


def _mark(z: float, bound: float) -> str:
    if z != z:
        return "-"
    return f"[bold red]{z:+.1f}[/]" if abs(z) > bound else f"{z:+.1f}"
