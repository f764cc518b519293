"""Guides, marks and derived variables of figures, computed from formulas in the section `figure` of a config.

A formula is evaluated for theory on a dense grid, for theory at the values of the sweep, or for the runs of a
simulation. Its names are variables, averaged over students, and axes. After `theory.`, they are variables of theory at
the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from figures import curves
from figures.description import CurveStyle, DrawnCurve, DrawnLine, DrawnMark, LegendEntry
from figures.style import MINIMUM_STAR_STYLE, NO_LEGEND_GID, THEORY_COLOUR
from statmech.keys.figure_key import DerivedVariable, GuideLine, MarkedPoint
from statmech.numerics.formulas import evaluate_formula, find_formula_names

if TYPE_CHECKING:
    from figures.curves import Curve
    from statmech.results.results import Results

DASHES_BY_NAME = {"dotted": ":", "dashed": "--", "solid": "-"}
GUIDE_WIDTH = 1.0
TICK_MARK_STYLE: dict[str, Any] = {
    "marker": "|",
    "markersize": 10,
    "markeredgewidth": 1.4,
    "linestyle": "none",
    "zorder": 6,
}
MARK_STYLES: dict[str, dict[str, Any]] = {"star": MINIMUM_STAR_STYLE, "tick": TICK_MARK_STYLE}
GUIDE_POINT_STYLE: dict[str, Any] = {"marker": "x", "color": THEORY_COLOUR, "markersize": 4}
PLANE_GUIDE_POINTS = 101
PLANE_COORDINATE = "variable along x"
DIMS_AVERAGED_IN_FORMULAS = ("student", "example")
EQUAL_GUIDE_TOL = 1e-9  # relative: guides that differ less are one guide


def add_derived_variables(results: Results, derived: Mapping[str, DerivedVariable]) -> Results:
    """Add variables that are computed by formulas, where their names have values.

    Parameters
    ----------
    results
        Simulation, theory and lines of theory.
    derived
        The formulas by the name of the new variable.
    """
    for name, item in derived.items():
        lines, theory, runs = results.lines, results.theory, results.simulation
        values = [
            _evaluate(item.formula, part, divisor)
            for part, divisor in ((runs, theory), (theory, theory), (lines, lines))
        ]
        if values[0] is not None and runs is not None:
            values[0] = values[0] + 0.0 * runs.seed  # a formula of axes has no values of runs
        if find_formula_names(item.formula)[1] and _is_constant(values[1]):
            values[1:] = [None, None]  # a deviation from theory, which is 0 for theory itself
        runs, theory, lines = (
            part if part is None or value is None else part.assign({name: value})
            for part, value in zip((runs, theory, lines), values, strict=True)
        )
        results = replace(results, simulation=runs, theory=theory, lines=lines)
    return results


def _is_constant(values: Any) -> bool:
    return values is not None and bool(values.max() - values.min() < EQUAL_GUIDE_TOL)


def _evaluate(formula: str, dataset: xr.Dataset | None, theory: xr.Dataset | None) -> Any:
    """Evaluate a formula for a dataset, or return None if the dataset or theory lacks one of its names."""
    if dataset is None:
        return None
    own_names, theory_names = find_formula_names(formula)
    theory_values = theory if theory is not None else xr.Dataset()
    if not ({*own_names} <= {*dataset.variables} and {*theory_names} <= {*theory_values.variables}):
        return None
    values = [
        {name: part[name].mean([dim for dim in part[name].dims if dim in DIMS_AVERAGED_IN_FORMULAS]) for name in names}
        for part, names in ((dataset, own_names), (theory_values, theory_names))
    ]
    return evaluate_formula(formula, *values)


def _evaluate_in_theory(formula: float | str | None, results: Results) -> Any:
    """Evaluate a formula in theory, on the dense grid if possible, or return None if a name has no value.

    Without theory, a formula may contain axes.
    """
    if not isinstance(formula, str):
        return formula
    axes = results.either.coords.to_dataset()
    for part in (results.lines, results.theory, axes):
        value = _evaluate(formula, part, part)
        if value is not None and bool(np.isfinite(value).any()):
            return value
    return None


def make_guide_lines(
    guides: Sequence[GuideLine], results: Results, x: str, x_variable: str, colours: Mapping[str, Sequence[Any]]
) -> Iterator[DrawnLine]:
    """Make the guide lines of a panel.

    Parameters
    ----------
    guides
        The guides of the panel.
    results
        The results of the panel, with all axes that are distinguished by colour or marker.
    x, x_variable
        The axis along x, and the variable that is drawn along x instead, or "".
    colours
        The colours of the positions on the axis that is distinguished by colour.
    """
    for guide in guides:
        names = {*chain(*find_formula_names(guide.y))} if isinstance(guide.y, str) else set()
        if names == {x_variable}:
            yield _make_plane_guide(guide, results, x_variable)
            continue
        value = _evaluate_in_theory(guide.x if guide.y is None else guide.y, results)
        if value is None:
            continue
        values = value if isinstance(value, xr.DataArray) else xr.DataArray(float(value))
        if x_variable and x in values.dims:
            values, x_values = xr.broadcast(values, _evaluate_in_theory(x_variable, results))
            values = values.assign_coords({PLANE_COORDINATE: x_values})
        for colour, part in _split_by_colour(values, colours):
            style = _make_guide_style(guide) | ({"color": colour} if colour else {})
            style |= {} if guide.label else {"gid": NO_LEGEND_GID}
            line = _make_line(part, x, guide, style)
            if line is not None:
                yield line


def make_guide_points(guides: Sequence[GuideLine], results: Results, x: str) -> Iterator[DrawnCurve]:
    """Make the means over runs of guides that show runs, as crosses.

    Parameters
    ----------
    guides
        The guides of the panel.
    results
        The results of the panel; of axes other than x the first position is drawn.
    x
        The axis along x.
    """
    for guide in guides:
        values = _evaluate(str(guide.y), results.simulation, results.theory) if guide.runs else None
        if values is not None:
            single = values.isel({dim: 0 for dim in values.dims if dim not in ("seed", x)})
            mean, error = (np.atleast_1d(part.values) for part in curves.compute_mean_and_error(single))
            points = curves.Curve(guide.label, curves.get_axis_values(results.either, x), mean, error)
            yield DrawnCurve(points, CurveStyle(GUIDE_POINT_STYLE, None, {}), guide.label)


def _make_line(values: xr.DataArray, x: str, guide: GuideLine, style: dict[str, Any]) -> DrawnLine | None:
    """Make a guide along the values of a variable or at a single value, or return None without a finite value."""
    if not np.isfinite(values).any():
        return None
    is_curve = guide.y is not None and x in values.dims and values.sizes[x] > 1 and float(np.ptp(values.values)) > 0
    if is_curve:
        line = values.transpose(..., x).values.reshape(-1, values.sizes[x])[0]
        x_values = curves.get_axis_values(values.to_dataset(name="guide"), x)
        if PLANE_COORDINATE in values.coords:
            x_values = values[PLANE_COORDINATE].transpose(..., x).values.reshape(-1, values.sizes[x])[0]
        return DrawnLine(style, x_values, line, guide.text)
    single = float(values.values[np.isfinite(values.values)].flat[0])
    position = {"x": single} if guide.y is None else {"y": single}
    return DrawnLine(style, **position, text=guide.text)


def _make_guide_style(guide: GuideLine) -> dict[str, Any]:
    return {"color": THEORY_COLOUR, "linestyle": DASHES_BY_NAME[guide.line], "linewidth": GUIDE_WIDTH}


def _split_by_colour(values: xr.DataArray, colours: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Any, xr.DataArray]]:
    """Yield the colour and the values of each curve, or None as the colour if all curves have the same values."""
    axis = next((name for name in colours if name in values.dims and values.sizes[name] > 1), None)
    if axis is None:
        yield None, values
        return
    common = values.max(axis)
    if bool((values.isnull() | (abs(values - common) <= EQUAL_GUIDE_TOL * abs(common))).all()):
        yield None, common
        return
    for index, colour in enumerate(colours[axis]):
        yield colour, values.isel({axis: index})


def _make_plane_guide(guide: GuideLine, results: Results, x_variable: str) -> DrawnLine:
    """Make a guide in the plane of two variables, as a function of the variable along x."""
    parts = [
        part[x_variable] for part in (results.theory, results.simulation) if part is not None and x_variable in part
    ]
    low, high = (float(getattr(parts[0], end)()) for end in ("min", "max"))
    grid = np.linspace(min(low, 0.0), high, PLANE_GUIDE_POINTS)
    values = evaluate_formula(str(guide.y), {x_variable: grid}, {x_variable: grid})
    return DrawnLine(_make_guide_style(guide), grid, np.broadcast_to(values, grid.shape), guide.text)


def make_marks(
    marks: Sequence[MarkedPoint], results: Results, curve: Curve, colour: Any, log: str
) -> Iterator[DrawnMark]:
    """Make the marked points of one curve, if they lie within its range of x.

    Parameters
    ----------
    marks
        The marks of the panel.
    results
        The results of the curve.
    curve
        The curve.
    colour
        The colour of the curve.
    log
        The logarithmic axes.
    """
    if curve.theory_x is None or curve.theory is None:
        return
    for mark in marks:
        x, y = (_get_first_finite(_evaluate_in_theory(formula, results)) for formula in (mark.x, mark.y))
        is_inside = np.nanmin(curve.theory_x) <= x <= np.nanmax(curve.theory_x)
        if mark.y is None and is_inside:
            scale = np.log if "x" in log else np.asarray
            is_finite = np.isfinite(curve.theory)
            y = float(np.interp(scale(x), scale(curve.theory_x[is_finite]), curve.theory[is_finite]))
        if is_inside and np.isfinite(y):
            yield DrawnMark(x, y, {"color": colour, **MARK_STYLES[mark.marker]})


def _get_first_finite(value: Any) -> float:
    numbers = np.ravel(np.nan if value is None else value)
    finite = numbers[np.isfinite(numbers)]
    return float(finite[0]) if finite.size else np.nan


def make_guide_entries(guides: Sequence[GuideLine], marks: Sequence[MarkedPoint]) -> list[LegendEntry]:
    """Make the legend entries of labelled guides and marks, without repetition."""
    entries = [
        LegendEntry(guide.label, _make_guide_style(guide) | (GUIDE_POINT_STYLE if guide.runs else {}))
        for guide in guides
        if guide.label
    ]
    entries += [
        LegendEntry(mark.label, {"color": THEORY_COLOUR, **MARK_STYLES[mark.marker]}) for mark in marks if mark.label
    ]
    return list({entry.label: entry for entry in entries}.values())
