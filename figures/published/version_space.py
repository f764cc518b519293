"""The figure of a version space in three dimensions, where MinOver walks to the point of largest stability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Circle, Patch

from figures.panels import add_panel_letters, draw_legend_below, make_line_handle
from figures.published_figure import PublishedFigure
from figures.style import NO_LEGEND_GID, PAGE_WIDTH, SMALL_FONT_SIZE, apply_style, choose_drawn_steps, get_curve_style
from simulate.kinds.stored_examples import draw_data_set
from statmech.errors import ConfigError
from statmech.stores.dataset import scenario_from_dataset

CIRCLE_ANGLES = np.linspace(0, 2 * np.pi, 2881)


@dataclass(frozen=True)
class SphereView:
    """View of the sphere, defined by the axes e_1, e_2, e_3 as rows (3, 3).

    >>> SphereView.from_centre(np.array([0, 0, 2.0])).project_orthographic(np.array([[0, 0, 5.0], [0, 0, -1.0]]))
    array([[ 0.,  0.],
           [nan, nan]])
    """

    axes: np.ndarray

    @classmethod
    def from_centre(cls, centre: np.ndarray) -> SphereView:
        """Return the view centred on a given direction."""
        e3 = centre / np.linalg.norm(centre)
        e1 = np.cross(np.eye(3)[np.argmin(np.abs(e3))], e3)
        e1 /= np.linalg.norm(e1)
        return cls(np.array([e1, np.cross(e3, e1), e3]))

    def project_orthographic(self, points: np.ndarray) -> np.ndarray:
        """Project the directions of points (n, 3) orthographically to coordinates (n, 2).

        Coordinates are NaN on the far side.
        """
        coordinates = self._compute_view_coordinates(points)
        return np.where(coordinates[:, 2:] >= 0, coordinates[:, :2], np.nan)

    def project_gnomonic(self, points: np.ndarray) -> np.ndarray:
        """Project the directions of points (n, 3) to coordinates (n, 2) on the tangent plane.

        Coordinates are NaN on the far side.
        """
        coordinates = self._compute_view_coordinates(points)
        return np.where(
            coordinates[:, 2:] > 0,
            coordinates[:, :2] / np.where(coordinates[:, 2:] > 0, coordinates[:, 2:], 1.0),
            np.nan,
        )

    def make_disc_grid(self, num_points: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the grid (n,) of an orthographic view, and the points (n, n, 3) on the sphere.

        Points are NaN outside the disc.
        """
        grid = np.linspace(-1, 1, num_points)
        x, y = np.meshgrid(grid, grid)
        depth2 = 1 - x**2 - y**2
        depth = np.sqrt(np.where(depth2 >= 0, depth2, np.nan))
        return grid, np.stack([x, y, depth], axis=-1) @ self.axes

    def make_tangent_grid(self, width: float, num_points: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the grid (n,) of a gnomonic view, and the directions (n, n, 3) as unit vectors."""
        grid = np.linspace(-width, width, num_points)
        x, y = np.meshgrid(grid, grid)
        points = np.stack([x, y, np.ones_like(x)], axis=-1)
        return grid, points / np.linalg.norm(points, axis=-1, keepdims=True) @ self.axes

    def _compute_view_coordinates(self, points: np.ndarray) -> np.ndarray:
        return points / np.linalg.norm(points, axis=-1, keepdims=True) @ self.axes.T


def make_great_circle(normal: np.ndarray) -> np.ndarray:
    """Return points (n, 3) on the great circle orthogonal to a vector."""
    e1, e2, _ = SphereView.from_centre(normal).axes
    return np.outer(np.cos(CIRCLE_ANGLES), e1) + np.outer(np.sin(CIRCLE_ANGLES), e2)


VERSION_SPACE_COLOUR, GREAT_CIRCLE_COLOUR, SPHERE_GRID_POINTS = "0.82", "0.55", 401
TEACHER_MARKER_STYLE: dict[str, Any] = {
    "marker": "*",
    "color": "black",
    "markersize": 7,
    "linestyle": "none",
    "label": "teacher",
}
BEST_STUDENT_STYLE = TEACHER_MARKER_STYLE | {
    "marker": "X",
    "markersize": 6,
    "markerfacecolor": "white",
    "label": "largest stability",
}


class MinOverWalk(NamedTuple):
    """MinOver's walk on one data set.

    Teacher (3,), examples times labels (P, 3), students (T, 3), student of maximum stability (3,), updates (T,).
    """

    teacher: np.ndarray
    z: np.ndarray
    students: np.ndarray
    best_student: np.ndarray
    updates: np.ndarray

    @property
    def stability(self) -> np.ndarray:
        """The stability kappa after each update."""
        return compute_stability(self.students / np.linalg.norm(self.students, axis=-1, keepdims=True), self.z)

    @property
    def max_stability(self) -> float:
        """The largest possible stability kappa."""
        return float(compute_stability(self.best_student / np.linalg.norm(self.best_student), self.z))


def compute_stability(directions: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the smallest stability of students of length 1 (..., 3)."""
    return (directions @ z.T).min(axis=-1)


def draw_version_space(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw one sphere per number of examples, the enlarged version space, and the stability during the walk.

    In three dimensions a student is a point of a sphere, :math:`\mathbf J=\mathbf w/|\mathbf w|`. Students that
    classify an example correctly lie on one side of the great circle :math:`\mathbf J\cdot\xi^\mu=0`. The version space
    is the region on the correct side of all examples, and contains the teacher. The stability
    :math:`\kappa=\min_\mu\mathbf J\cdot\xi^\mu S^\mu` is 0 on its edges and largest at one point. MinOver starts at the
    first example and jumps around and inside the version space in decreasing steps, of order 1/updates, towards this
    point.

    The point is not the centre of the largest circle that fits into the version space: an example with a long
    :math:`\xi^\mu` pushes it less far away. For N -> infinity all inputs have the same length, and the points coincide.

    The weight vectors follow from the stored embedding strengths and the examples, which the random key determines.

    Views: the sphere is shown in an orthographic view, and in a gnomonic view onto a tangent plane. A point p is at
    :math:`(p\cdot e_1, p\cdot e_2)` in the orthographic view, and at :math:`(p\cdot e_1, p\cdot e_2)/p\cdot e_3` in the
    gnomonic view, where great circles are straight lines. The centre of the view is :math:`e_3`.
    """
    minover_walks = make_walks(simulation)
    figure = Figure(figsize=(PAGE_WIDTH, 5.7), layout=ConstrainedLayoutEngine(rect=(0, 0, 1, 0.985)))  # space for "(a)"
    rows = figure.add_gridspec(2, 1, height_ratios=(1, 1.1))
    above, below = rows[0].subgridspec(1, len(minover_walks)), rows[1].subgridspec(1, 2, width_ratios=(1, 1.7))
    balls = [figure.add_subplot(above[index]) for index in range(len(minover_walks))]
    plane, curve = (figure.add_subplot(below[index]) for index in range(2))
    view = SphereView.from_centre(minover_walks[-1].best_student)
    for index, (ax, walk) in enumerate(zip(balls, minover_walks, strict=True)):
        draw_version_space_sphere(ax, view, walk.z, walk.teacher)
        ax.set_title(f"$P={len(walk.z)}$")
        _draw_walk(ax, view.project_orthographic(walk.students), index)
        ax.plot(*view.project_orthographic(walk.best_student[None]).T, **BEST_STUDENT_STYLE, zorder=6)
        _draw_stability(curve, walk, index)
    _draw_tangent_view(plane, view, minover_walks[-1], len(minover_walks) - 1)
    curve.set(xscale="log", xlabel="MinOver updates", ylabel=r"stability $\kappa$")
    curve.xaxis.set_major_formatter("{x:g}")
    add_panel_letters(*balls, plane, curve)
    draw_legend_below(figure, _make_legend_handles(curve), columns=4)
    return figure


def film_version_space(simulation: xr.Dataset, theory: xr.Dataset) -> Iterator[tuple[Figure, int]]:
    """Yield frames with durations in milliseconds: more and more examples, then MinOver's updates."""
    walks = make_walks(simulation)
    walk, index = walks[-1], len(walks) - 1  # in the colour of the figure
    view = SphereView.from_centre(walk.best_student)
    for P in sorted({min(count, len(walk.z)) for count in (1, 2, 3, 6, len(walk.z))}):
        yield _draw_film_frame(view, walk, P, 0, index), 900
    for update in walk.updates[:-1]:
        if update <= 20 or update % 5 == 0:
            yield _draw_film_frame(view, walk, len(walk.z), int(update), index), 250
    yield _draw_film_frame(view, walk, len(walk.z), int(walk.updates[-1]), index), 3000


version_space = PublishedFigure(
    draw=draw_version_space,
    axes=("learner", "alpha"),
    supported_values={"learner": ("minover", "max_stability")},
    caption=(
        r"Version space (shaded) of $P$ examples of a teacher in $N=3$ dimensions, on the sphere of student "
        r"directions, seen from the point of largest stability at the largest $P$. (a)-(c) Each example cuts the "
        r"sphere along a great circle; points: MinOver after each update (the first update makes the student equal to "
        r"the first example). (d) The same at the largest $P$ on the tangent plane, where great circles are straight "
        r"lines; contours: stabilities of 20, 40, 60 and 80 % of the largest. Thin lines join all updates, of which "
        r"some are marked. (e) Stability of MinOver, and the largest possible stability (dashed). One data set."
    ),
    points_caption="",
    lines_caption="",
    film=film_version_space,
)


def make_walks(simulation: xr.Dataset) -> list[MinOverWalk]:
    """Return MinOver's walks on the first data set, one for each alpha."""
    learners = [str(name) for name in simulation.learner.values]
    fits = int(simulation.N) == 3 and "strengths" in simulation and {"minover", "max_stability"} <= set(learners)
    if not fits or "updates" not in simulation.dims:
        needed = "N: 3, `updates`, `strengths: true` and the learners minover and max_stability"
        raise ConfigError(f'the figure "version_space" requires {needed}')
    key, first = scenario_from_dataset(simulation).key, simulation.isel(seed=0)
    return [_make_walk(first.isel(alpha=index), key) for index in range(first.alpha.size)]


def _make_walk(cell: xr.Dataset, key: int) -> MinOverWalk:
    P = int(cell.P)
    data = draw_data_set(key, int(cell.seed), 3, P, float(cell.flip))
    strengths = cell.strengths.isel(example=slice(P)).transpose("learner", "updates", "example")
    walk, best = (strengths.sel(learner=name).values @ data.z / 3 for name in ("minover", "max_stability"))
    return MinOverWalk(data.teacher, data.z, walk, best[-1], cell.updates.values)


def draw_version_space_sphere(ax: Axes, view: SphereView, z: np.ndarray, teacher: np.ndarray) -> None:
    """Draw the version space of examples z, their great circles, and the teacher."""
    grid, points = view.make_disc_grid(SPHERE_GRID_POINTS)
    _shade_version_space(ax, grid, compute_stability(points, z))
    for example in z:
        circle = view.project_orthographic(make_great_circle(example))
        ax.plot(*circle.T, color=GREAT_CIRCLE_COLOUR, linewidth=0.6, zorder=2, gid=NO_LEGEND_GID)
    ax.add_patch(Circle((0, 0), 1, fill=False, color="0.3", linewidth=0.8))
    ax.plot(*view.project_orthographic(teacher[None]).T, zorder=6, **TEACHER_MARKER_STYLE)
    ax.set(aspect="equal", xlim=(-1.06, 1.06), ylim=(-1.06, 1.06))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)


def _shade_version_space(ax: Axes, grid: np.ndarray, stability: np.ndarray) -> None:
    """Shade the part of a grid where all examples are classified correctly."""
    if np.nanmax(stability) > 0:
        ax.contourf(
            grid, grid, stability, levels=[0, 2 * np.nanmax(stability)], colors=[VERSION_SPACE_COLOUR], zorder=0
        )


def _draw_walk(ax: Axes, points: np.ndarray, index: int) -> None:
    """Draw a walk as a thin line with points at its updates."""
    line_style = {
        **get_curve_style(index),
        "markersize": 2.2,
        "markerfacecolor": "white",
        "markeredgewidth": 0.6,
        "linewidth": 0.5,
    }
    ax.plot(*points.T, zorder=4, **line_style, markevery=choose_drawn_steps(len(points)), gid=NO_LEGEND_GID)


def _draw_tangent_view(ax: Axes, view: SphereView, walk: MinOverWalk, index: int) -> None:
    """Draw the version space on the tangent plane, with contours of equal stability."""
    corners = view.project_gnomonic(_find_version_space_corners(walk.z))
    width = 1.12 * float(np.nanmax(np.abs(corners))) if len(corners) else 1.0
    grid, points = view.make_tangent_grid(width, SPHERE_GRID_POINTS)
    stability = compute_stability(points, walk.z)
    _shade_version_space(ax, grid, stability)
    ax.contour(grid, grid, stability, levels=walk.max_stability * np.arange(0.2, 1, 0.2), colors="0.45", linewidths=0.5)
    for example in walk.z:
        ax.plot(
            *_mask_points_outside_square(view.project_gnomonic(make_great_circle(example)), width).T,
            color=GREAT_CIRCLE_COLOUR,
            linewidth=0.6,
            zorder=2,
        )
    points_of_walk = view.project_gnomonic(walk.students)
    _draw_walk(ax, _mask_points_outside_square(points_of_walk, width), index)
    ax.plot(*view.project_gnomonic(walk.teacher[None]).T, zorder=6, **TEACHER_MARKER_STYLE)
    ax.plot(0, 0, zorder=6, **BEST_STUDENT_STYLE)
    outside = int((~(np.abs(points_of_walk) < width).all(axis=-1)).sum())
    ax.set(aspect="equal", xlim=(-width, width), ylim=(-width, width))
    ax.set_title(f"$P={len(walk.z)}$, enlarged")
    ax.spines[:].set(visible=True, color=GREAT_CIRCLE_COLOUR, linewidth=0.6)
    note = f"{outside} of {len(points_of_walk)} updates lie outside;\ncontours: 20 to 80 % of the largest $\\kappa$"
    ax.set_xlabel(note, fontsize=SMALL_FONT_SIZE, color="0.35")
    ax.set_xticks([])
    ax.set_yticks([])


def _mask_points_outside_square(points: np.ndarray, width: float) -> np.ndarray:
    """Replace points outside a square with NaN."""
    return np.where((np.abs(points) < width).all(axis=-1, keepdims=True), points, np.nan)


def _find_version_space_corners(z: np.ndarray) -> np.ndarray:
    """Find the corners (n, 3) of a version space, where two great circles meet."""
    pairs = [sign * np.cross(z[i], z[j]) for i in range(len(z)) for j in range(i) for sign in (1, -1)]
    corners = np.array(pairs).reshape(-1, 3)
    tolerance = 1e-9 * np.linalg.norm(corners, axis=-1)
    return corners[(corners @ z.T).min(axis=-1, initial=np.inf) >= -tolerance]


def _draw_stability(ax: Axes, walk: MinOverWalk, index: int) -> None:
    """Draw kappa against updates, and the largest possible value."""
    line_style = {**get_curve_style(index), "markersize": 2.5, "markerfacecolor": "white", "linewidth": 0.8}
    ax.plot(
        walk.updates,
        walk.stability,
        label=f"MinOver, $P={len(walk.z)}$",
        **line_style,
        markevery=choose_drawn_steps(len(walk.updates)),
        gid=NO_LEGEND_GID,
    )
    ax.axhline(walk.max_stability, color=line_style["color"], linestyle="--", linewidth=0.8)


def _make_legend_handles(ax: Axes) -> list[Any]:
    """Return the legend handles of the walks, students and great circles."""
    return [
        *ax.get_legend_handles_labels()[0],
        make_line_handle(r"largest $\kappa$", color="0.3", linestyle="--", linewidth=0.8),
        make_line_handle(**BEST_STUDENT_STYLE),
        make_line_handle(**TEACHER_MARKER_STYLE),
        make_line_handle("great circle of an example", color=GREAT_CIRCLE_COLOUR, linewidth=0.6),
        Patch(color=VERSION_SPACE_COLOUR, label="version space"),
    ]


@apply_style
def _draw_film_frame(view: SphereView, walk: MinOverWalk, P: int, update: int, index: int) -> Figure:
    """Draw a frame of the film: the first P examples on the sphere, the walk so far, and its stability."""
    figure = Figure(figsize=(6.4, 3.4), dpi=150)
    ball, curve = figure.subplots(1, 2, width_ratios=(1, 1))
    draw_version_space_sphere(ball, view, walk.z[:P], walk.teacher)
    newest = view.project_orthographic(make_great_circle(walk.z[P - 1])).T
    if not update:
        ball.plot(*newest, color="black", linewidth=1.4, zorder=3)
    ball.set_xlabel(f"$P={P}$, {update} update{'s' * (update != 1)}")
    is_made = walk.updates <= update
    _draw_walk(ball, view.project_orthographic(walk.students[is_made]), index)
    student_style = {**get_curve_style(index), "markersize": 6, "markeredgecolor": "black", "zorder": 7}
    ball.plot(*view.project_orthographic(walk.students[is_made][-1:]).T, **student_style)
    if update:
        ball.plot(*view.project_orthographic(walk.best_student[None]).T, **BEST_STUDENT_STYLE, zorder=6)
    curve.plot(walk.updates, walk.stability, color=VERSION_SPACE_COLOUR, linewidth=0.8, zorder=1)
    curve.plot(
        walk.updates[is_made], walk.stability[is_made], **get_curve_style(index), markersize=2.5, label="MinOver"
    )
    curve.axhline(walk.max_stability, color="0.3", linestyle="--", linewidth=0.8)
    low = float(walk.stability.min())
    curve.set(xlim=(0, walk.updates[-1] + 1), ylim=(1.08 * low if low < 0 else 0, 1.25 * walk.max_stability))
    curve.set(xlabel="MinOver updates (grey: to come)", ylabel=r"stability $\kappa$")
    draw_legend_below(figure, _make_legend_handles(curve), columns=3)
    return figure
