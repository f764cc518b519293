"""A grid of panels without gaps: rows with fewer panels have wider panels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from figures.panels import blank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def rows_of(panels: int, most: int) -> list[int]:
    """Distribute panels over rows of nearly equal length, with at most `most` columns.

    >>> rows_of(4, 3), rows_of(5, 3), rows_of(7, 3)
    ([2, 2], [3, 2], [3, 2, 2])
    """
    rows = -(-panels // most)
    return [panels // rows + (row < panels % rows) for row in range(rows)]


def panels_of(panels: int, most: int, height: float, width: float, head: float = 0.0) -> tuple[Figure, list[Axes]]:
    """Create a figure with a grid of panels and return both, with the panels row by row.

    All lengths are in inches. `head` is the height of title and legend.
    """
    rows = rows_of(panels, most)
    figure = blank(width, head + height * len(rows))
    columns = math.lcm(*rows)
    grid = figure.add_gridspec(len(rows), columns)
    cells = [
        (row, column * (columns // count), columns // count)
        for row, count in enumerate(rows)
        for column in range(count)
    ]
    return figure, [figure.add_subplot(grid[row, first : first + span]) for row, first, span in cells]
