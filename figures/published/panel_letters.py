"""Letters of the panels of a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def letters(*panels: Axes) -> None:
    """(a), (b), ... above the left end of each panel."""
    for letter, ax in zip("abcdefghij", panels, strict=False):
        ax.set_title(f"({letter})", loc="left")
