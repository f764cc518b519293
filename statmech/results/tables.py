"""Tables of results as data: what `statmech compare` prints and `statmech report` writes, each in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statmech.results import comparison

if TYPE_CHECKING:
    import xarray as xr

MOST_ROWS = 40  # of a table
ONE_SEED = "one seed has no standard error: nothing to compare"
DISTANCES = "simulation - theory, in standard errors (the largest over all moments)"
BOUNDS = "runs that keep theory's bounds (simulation / bound of the nearest)"
NOT_ALL = "Where not all runs converged, theory is that of learners that have; runs without a student are left out."
HEADINGS = {"eps_g_majority_vote": "eps_g vote", "eps_g_weight_mean": "eps_g mean"}


@dataclass(frozen=True)
class Column:
    """A heading, and whether what stands below is a number."""

    heading: str
    number: bool = True


@dataclass(frozen=True)
class Cell:
    """A text, marked where a reader should look: beyond a bound, or not all runs."""

    text: str
    marked: bool = False


@dataclass(frozen=True)
class Table:
    """A title, columns, rows and notes below; `whole` if no cell may be broken over lines. Without rows, notes only."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    whole: bool = False


def comparison_tables(simulation: xr.Dataset, theory: xr.Dataset) -> Iterator[Table]:
    """How far simulation and theory are apart: how bounds are kept, then distances where theory has values.

    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule="hebb", N=50, t=[1, 2], seeds=4, eta=[0.5, 1])
    >>> [table] = comparison_tables(simulate.run(scenario), theory.solve(scenario))
    >>> table.title, [row[0].text for row in table.rows]
    ('simulation - theory, in standard errors (the largest over all moments)', ['0.5', '1'])
    """
    bounds = comparison.bounded(simulation, theory)
    if bounds:
        yield _of_bounds(simulation, theory)
    if set(theory.data_vars) - set(bounds):
        yield _of_values(simulation, theory)


def _of_bounds(simulation: xr.Dataset, theory: xr.Dataset) -> Table:
    """Runs that keep the bounds, of how many, and in brackets the ratio nearest to the bound or furthest beyond."""
    found, converged = comparison.kept(simulation, theory), comparison.converged(simulation)
    rows = [
        (*_told(cell), *map(_kept, bounds.values()), *_converged(converged, at))
        for at, (cell, bounds) in enumerate(found[:MOST_ROWS])
    ]
    broken = {name: sum(bounds[name].of - bounds[name].runs for _, bounds in found) for name in found[0][1]}
    runs = ", ".join(f"{name} {some}" for name, some in broken.items() if some)
    notes = [f"the first {MOST_ROWS} of {len(found)} cells"] if len(found) > MOST_ROWS else []
    notes.append(f"{theory.attrs['source']}. Broken: {runs or 'none'}.")
    return Table(BOUNDS, _columns(*found[0], converged), tuple(rows), tuple(notes))


def _of_values(simulation: xr.Dataset, theory: xr.Dataset) -> Table:
    """Each cell's largest distances."""
    if simulation.sizes["seed"] < 2:
        return Table(DISTANCES, (), (), (ONE_SEED,))
    distance = comparison.distances(simulation, theory)
    found, bound = list(comparison.rows(distance)), comparison.bound(distance)
    converged = comparison.converged(simulation)
    rows = [
        (*_told(found[at].cell), *(_distance(z, bound) for z in found[at].largest.values()), *_converged(converged, at))
        for at in _furthest(found)
    ]
    columns = _columns(found[0].cell, found[0].largest, converged)
    return Table(DISTANCES, columns, tuple(rows), tuple(_explained(found, bound, converged)))


def _explained(found: list[comparison.Row], bound: float, converged: list[tuple[int, int]] | None) -> Iterator[str]:
    if len(found) > MOST_ROWS:
        yield f"the {MOST_ROWS} furthest apart of {len(found)} cells"
    beyond = sum(abs(z) > bound for row in found for z in row.largest.values())
    lie = "1 lies" if beyond == 1 else f"{beyond or 'none'} lie"
    yield f"Where theory is right, all lie within {bound:.1f} in 99 of 100 sweeps. Here {lie} beyond."
    if beyond:
        yield "The theory is that of N -> infinity; at finite N the means differ by O(1/N)."
    if converged is not None and any(some < of for some, of in converged):
        yield NOT_ALL


def _columns(cell: Iterable[str], variables: Iterable[str], converged: Any) -> tuple[Column, ...]:
    """A column for each coordinate of a cell and each variable, and one for who converged if not all always do."""
    last = () if converged is None else (Column("converged"),)
    return (*(Column(name, False) for name in cell), *(Column(HEADINGS.get(name, name)) for name in variables), *last)


def _told(cell: dict[str, Any]) -> list[Cell]:
    return [Cell(value if isinstance(value, str) else f"{value:g}") for value in cell.values()]


def _furthest(rows: list[comparison.Row]) -> list[int]:
    """Which rows of a table: all, or those furthest apart."""

    def distance(at: int) -> float:
        return max((abs(z) for z in rows[at].largest.values() if z == z), default=0.0)

    return sorted(sorted(range(len(rows)), key=distance, reverse=True)[:MOST_ROWS])


def _converged(converged: list[tuple[int, int]] | None, at: int) -> list[Cell]:
    return [] if converged is None else [_share(*converged[at])]


def _kept(kept: comparison.Kept) -> Cell:
    share = _share(kept.runs, kept.of)
    return Cell(f"{share.text} ({kept.ratio:.2g})", share.marked) if kept.of else Cell("-")


def _share(some: int, of: int) -> Cell:
    return Cell(f"{some}/{of}", some < of)


def _distance(z: float, bound: float) -> Cell:
    return Cell(f"{z:+.1f}", abs(z) > bound) if z == z else Cell("-")
