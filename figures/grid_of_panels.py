"""A grid of panels without gaps: rows with fewer panels have wider panels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from figures.panels import make_blank_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def distribute_panels(panel_count: int, max_columns: int) -> list[int]:
    """Distribute panels over rows of nearly equal length, with at most `max_columns` columns.

    >>> distribute_panels(4, 3), distribute_panels(5, 3), distribute_panels(7, 3)
    ([2, 2], [3, 2], [3, 2, 2])
    """
    rows = -(-panel_count // max_columns)
    return [panel_count // rows + (row < panel_count % rows) for row in range(rows)]


def make_panel_grid(
    panel_count: int, max_columns: int, height: float, width: float, title_height: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """Create a figure with a grid of panels, and return the figure and its panels row by row.

    All lengths are in inches. `title_height` is the height of title and legend.
    """
    rows = distribute_panels(panel_count, max_columns)
    figure = make_blank_figure(width, title_height + height * len(rows))
    columns = math.lcm(*rows)
    grid = figure.add_gridspec(len(rows), columns)
    cells = [
        (row, column * (columns // count), columns // count)
        for row, count in enumerate(rows)
        for column in range(count)
    ]
    return figure, [figure.add_subplot(grid[row, first : first + span]) for row, first, span in cells]
