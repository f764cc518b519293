r"""Figure 1 of the MinOver assignment: examples cut the version space, and MinOver walks to its optimum.

In three dimensions a student is a point of a sphere, :math:`\mathbf J=\mathbf w/|\mathbf w|`. Students that classify an
example correctly lie on one side of the great circle :math:`\mathbf J\cdot\xi^\mu=0`. The version space is the region
on the correct side of all examples, and contains the teacher. The stability :math:`\kappa=\min_\mu\mathbf
J\cdot\xi^\mu S^\mu` is 0 on its edges and largest in one point. MinOver starts at the first example and jumps around
and inside the version space in decreasing steps, of order 1/updates, towards this point.

The point is not the centre of the largest circle that fits into the version space: an example with a long
:math:`\xi^\mu` pushes it less far away. For N -> infinity all inputs have the same length, and the points coincide.

The weight vectors follow from the stored embedding strengths and the examples, which the random key determines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Circle, Patch

from figures.legends import entry
from figures.panels import legend_below, letters
from figures.published.stored_examples.sphere import View, great_circle
from figures.style import AID, PAGE, SMALL, few, look_of, styled
from simulate.learners.examples import draw as data_set
from statmech.errors import ConfigError
from statmech.results.dataset import scenario_of

AXES = ("learner", "alpha")  # sweep axes that this figure shows
VALUES = {"learner": ("minover", "max_stability")}
CAPTION = (
    r"Version space (shaded) of $P$ examples of a teacher in $N=3$ dimensions, on the sphere of the directions of "
    r"students, seen from the point of largest stability at the largest $P$. (a)-(c) Each example cuts the sphere "
    r"along a great circle; points: MinOver after each update, the first of which makes the student equal to the first "
    r"example. (d) The same at the largest $P$ on the tangent plane, on which great circles are straight lines; "
    r"contours: stabilities of 20, 40, 60 and 80 % of the largest. Thin lines join all updates, some are "
    r"marked. (e) Stability of MinOver and (dashed) the largest possible one. One data set."
)
SHADE, CUT, PLACES = "0.82", "0.55", 401
TEACHER: dict[str, Any] = {"marker": "*", "color": "black", "markersize": 7, "linestyle": "none", "label": "teacher"}
BEST = TEACHER | {"marker": "X", "markersize": 6, "markerfacecolor": "white", "label": "largest stability"}
POINTS = ""
LINES = ""


class Walk(NamedTuple):
    """MinOver's walk on one data set.

    Teacher (3,), examples times labels (P, 3), students (T, 3), student of maximum stability (3,), updates (T,).
    """

    teacher: np.ndarray
    z: np.ndarray
    students: np.ndarray
    best: np.ndarray
    updates: np.ndarray

    @property
    def stability(self) -> np.ndarray:
        """The stability kappa after each update."""
        return least(self.students / np.linalg.norm(self.students, axis=-1, keepdims=True), self.z)

    @property
    def largest(self) -> float:
        """The largest possible kappa."""
        return float(least(self.best / np.linalg.norm(self.best), self.z))


def least(directions: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the smallest stability of students of length 1 (..., 3)."""
    stability: np.ndarray = (directions @ z.T).min(axis=-1)
    return stability


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw a sphere per number of examples, the enlarged version space, and the stability during the walk."""
    minover_walks = walks(simulation)
    figure = Figure(figsize=(PAGE, 5.7), layout=ConstrainedLayoutEngine(rect=(0, 0, 1, 0.985)))  # room for (a)
    rows = figure.add_gridspec(2, 1, height_ratios=(1, 1.1))
    above, below = rows[0].subgridspec(1, len(minover_walks)), rows[1].subgridspec(1, 2, width_ratios=(1, 1.7))
    balls = [figure.add_subplot(above[index]) for index in range(len(minover_walks))]
    plane, curve = (figure.add_subplot(below[index]) for index in range(2))
    view = View.towards(minover_walks[-1].best)
    for index, (ax, walk) in enumerate(zip(balls, minover_walks, strict=True)):
        sphere(ax, view, walk.z, walk.teacher)
        ax.set_title(f"$P={len(walk.z)}$")
        _trace(ax, view.orthographic(walk.students), index)
        ax.plot(*view.orthographic(walk.best[None]).T, **BEST, zorder=6)
        _stability(curve, walk, index)
    _zoom(plane, view, minover_walks[-1], len(minover_walks) - 1)
    curve.set(xscale="log", xlabel="MinOver updates", ylabel=r"stability $\kappa$")
    curve.xaxis.set_major_formatter("{x:g}")
    letters(*balls, plane, curve)
    legend_below(figure, _handles(curve), columns=4)
    return figure


def film(simulation: xr.Dataset, theory: xr.Dataset) -> Iterator[tuple[Figure, int]]:
    """Yield frames with durations in milliseconds: the examples one by one, then MinOver's updates."""
    walk = walks(simulation)[-1]
    view = View.towards(walk.best)
    for P in range(1, len(walk.z) + 1):
        yield _frame(view, walk, P, 0), 600
    for update in walk.updates[:-1]:
        if update <= 20 or update % 5 == 0:
            yield _frame(view, walk, len(walk.z), int(update)), 250
    yield _frame(view, walk, len(walk.z), int(walk.updates[-1])), 3000


def walks(simulation: xr.Dataset) -> list[Walk]:
    """Return MinOver's walk on the first data set, for each alpha."""
    learners = [str(name) for name in simulation.learner.values]
    fits = int(simulation.N) == 3 and "strengths" in simulation and {"minover", "max_stability"} <= set(learners)
    if not fits or "updates" not in simulation.dims:
        needed = "N: 3, `updates`, `strengths: true` and the learners minover and max_stability"
        raise ConfigError(f"the figure version_space needs {needed}")
    key, first = scenario_of(simulation).key, simulation.isel(seed=0)
    return [_walk(first.isel(alpha=index), key) for index in range(first.alpha.size)]


def _walk(cell: xr.Dataset, key: int) -> Walk:
    P = int(cell.P)
    data = data_set(key, int(cell.seed), 3, P, float(cell.flip))
    strengths = cell.strengths.isel(example=slice(P)).transpose("learner", "updates", "example")
    walk, best = (strengths.sel(learner=name).values @ data.z / 3 for name in ("minover", "max_stability"))
    return Walk(data.teacher, data.z, walk, best[-1], cell.updates.values)


def sphere(ax: Axes, view: View, z: np.ndarray, teacher: np.ndarray) -> None:
    """Draw the version space of examples z, their great circles, and the teacher."""
    grid, points = view.disc(PLACES)
    _shade(ax, grid, least(points, z))
    for example in z:
        ax.plot(*view.orthographic(great_circle(example)).T, color=CUT, linewidth=0.6, zorder=2)
    ax.add_patch(Circle((0, 0), 1, fill=False, color="0.3", linewidth=0.8))
    ax.plot(*view.orthographic(teacher[None]).T, zorder=6, **TEACHER)
    ax.set(aspect="equal", xlim=(-1.06, 1.06), ylim=(-1.06, 1.06))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)


def _shade(ax: Axes, grid: np.ndarray, stability: np.ndarray) -> None:
    """Shade the part of a grid where all examples are classified correctly."""
    if np.nanmax(stability) > 0:
        ax.contourf(grid, grid, stability, levels=[0, 2 * np.nanmax(stability)], colors=[SHADE], zorder=0)


def _trace(ax: Axes, places: np.ndarray, index: int) -> None:
    """Draw a walk as a thin line with points at its updates."""
    line_style = {
        **look_of(index),
        "markersize": 2.2,
        "markerfacecolor": "white",
        "markeredgewidth": 0.6,
        "linewidth": 0.5,
    }
    ax.plot(*places.T, zorder=4, **line_style, markevery=few(len(places)), gid=AID)


def _zoom(ax: Axes, view: View, walk: Walk, index: int) -> None:
    """Draw the version space on the tangent plane, with contours of equal stability."""
    corners = view.gnomonic(_corners(walk.z))
    width = 1.12 * float(np.nanmax(np.abs(corners))) if len(corners) else 1.0
    grid, points = view.plane(width, PLACES)
    stability = least(points, walk.z)
    _shade(ax, grid, stability)
    ax.contour(grid, grid, stability, levels=walk.largest * np.arange(0.2, 1, 0.2), colors="0.45", linewidths=0.5)
    for example in walk.z:
        ax.plot(*_within(view.gnomonic(great_circle(example)), width).T, color=CUT, linewidth=0.6, zorder=2)
    points_of_walk = view.gnomonic(walk.students)
    _trace(ax, _within(points_of_walk, width), index)
    ax.plot(*view.gnomonic(walk.teacher[None]).T, zorder=6, **TEACHER)
    ax.plot(0, 0, zorder=6, **BEST)
    outside = int((~(np.abs(points_of_walk) < width).all(axis=-1)).sum())
    ax.set(aspect="equal", xlim=(-width, width), ylim=(-width, width))
    ax.set_title(f"$P={len(walk.z)}$, enlarged")
    ax.set_xlabel(f"{outside} of {len(points_of_walk)} updates lie outside", fontsize=SMALL, color="0.35")
    ax.set_xticks([])
    ax.set_yticks([])


def _within(places: np.ndarray, width: float) -> np.ndarray:
    """Replace points outside a square with NaN."""
    return np.where((np.abs(places) < width).all(axis=-1, keepdims=True), places, np.nan)


def _corners(z: np.ndarray) -> np.ndarray:
    """Find the corners (n, 3) of a version space, where two great circles meet."""
    pairs = [sign * np.cross(z[i], z[j]) for i in range(len(z)) for j in range(i) for sign in (1, -1)]
    corners = np.array(pairs).reshape(-1, 3)
    tolerance = 1e-9 * np.linalg.norm(corners, axis=-1)
    return corners[(corners @ z.T).min(axis=-1, initial=np.inf) >= -tolerance]


def _stability(ax: Axes, walk: Walk, index: int) -> None:
    """Draw kappa against updates, and the largest possible value."""
    line_style = {**look_of(index), "markersize": 2.5, "markerfacecolor": "white", "linewidth": 0.8}
    ax.plot(
        walk.updates,
        walk.stability,
        label=f"MinOver, $P={len(walk.z)}$",
        **line_style,
        markevery=few(len(walk.updates)),
        gid=AID,
    )
    ax.axhline(walk.largest, color=line_style["color"], linestyle="--", linewidth=0.8)


def _handles(ax: Axes) -> list[Any]:
    """Return the legend handles of the walks, students and great circles."""
    return [
        *ax.get_legend_handles_labels()[0],
        entry(r"largest $\kappa$", color="0.3", linestyle="--", linewidth=0.8),
        entry(**BEST),
        entry(**TEACHER),
        entry("great circle of an example", color=CUT, linewidth=0.6),
        Patch(color=SHADE, label="version space"),
    ]


@styled
def _frame(view: View, walk: Walk, P: int, update: int) -> Figure:
    """Draw a frame of the film: the first P examples on the sphere, the walk so far, and its stability."""
    figure = Figure(figsize=(6.4, 3.4), dpi=100)
    ball, curve = figure.subplots(1, 2, width_ratios=(1, 1))
    sphere(ball, view, walk.z[:P], walk.teacher)
    newest = view.orthographic(great_circle(walk.z[P - 1])).T
    if not update:
        ball.plot(*newest, color="black", linewidth=1.4, zorder=3)
    ball.set_xlabel(f"$P={P}$" if not update else f"$P={P}$, {update} updates")
    is_made = walk.updates <= update
    _trace(ball, view.orthographic(walk.students[is_made]), 0)
    ball.plot(*view.orthographic(walk.students[is_made][-1:]).T, color="black", marker="o", markersize=4, zorder=7)
    if update:
        ball.plot(*view.orthographic(walk.best[None]).T, **BEST, zorder=6)
    curve.plot(walk.updates[is_made], walk.stability[is_made], **look_of(0), markersize=2.5, label="MinOver")
    curve.axhline(walk.largest, color="0.3", linestyle="--", linewidth=0.8)
    low = float(walk.stability.min())
    curve.set(xlim=(0, walk.updates[-1] + 1), ylim=(1.08 * low if low < 0 else 0, 1.25 * walk.largest))
    curve.set(xlabel="MinOver updates", ylabel=r"stability $\kappa$")
    legend_below(figure, _handles(curve), columns=3)
    return figure
