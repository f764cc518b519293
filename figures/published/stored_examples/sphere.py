r"""Views of the unit sphere in three dimensions: orthographic, and gnomonic onto a tangent plane.

A point p is at :math:`(p\cdot e_1, p\cdot e_2)` in the orthographic view, and at :math:`(p\cdot e_1, p\cdot
e_2)/p\cdot e_3` in the gnomonic view, where great circles are straight lines. The centre of the view is :math:`e_3`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CIRCLE_ANGLES = np.linspace(0, 2 * np.pi, 721)


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
