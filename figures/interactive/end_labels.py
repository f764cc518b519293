"""Labels at the ends of lines, wrapped, separated from each other, and inside the chart."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

LETTERS, ROWS = 20, 3  # longer labels would leave too little space for the curves
ONE_PIECE = "\u00a0=\u00a0"  # keeps a name and its value on one line


def in_lines(label: str) -> str:
    """Wrap the label of a curve to lines of at most `LETTERS` letters, and cut off the rest.

    The whole label is shown under the pointer.

    >>> in_lines("power law (decay 1.5, teacher decay 2)"), in_lines("hebb")
    ('power law (decay\\n1.5, teacher decay\\n2)', 'hebb')
    >>> in_lines("nesterov, momentum = 0.9").replace("\u00a0", " ")
    'nesterov,\\nmomentum = 0.9'
    """
    text = label.replace(" = ", ONE_PIECE)
    return "\n".join(textwrap.wrap(text, LETTERS, max_lines=ROWS, placeholder=" …"))


def spread(places: Sequence[float], room: float, height: float) -> list[float]:
    """Separate positions by a minimal distance (`room`), in the same order and close to the given positions.

    The new positions lie between 0 and the height if there is enough space.

    >>> spread([10.0, 12.0, 50.0], 10.0, 60.0), spread([1.0, 2.0, 59.0], 10.0, 60.0)
    ([6.0, 16.0, 50.0], [5.0, 15.0, 55.0])
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    groups: list[list[int]] = []
    positions = list(places)
    for index in order:
        groups.append([index])
        while True:
            group = groups[-1]
            middle = sum(places[member] for member in group) / len(group)
            for rank, member in enumerate(group):
                positions[member] = middle + (rank - (len(group) - 1) / 2) * room
            if len(groups) == 1 or positions[group[0]] - positions[groups[-2][-1]] >= room:
                break
            groups[-2:] = [groups[-2] + group]
    return _within(positions, order, room, height)


def _within(places: list[float], order: Sequence[int], room: float, height: float) -> list[float]:
    """Move positions outside the height into it, and their neighbours as far as necessary."""
    lower = room / 2
    for index in order:
        places[index] = max(places[index], lower)
        lower = places[index] + room
    upper = height - room / 2
    for index in reversed(order):
        places[index] = min(places[index], upper)
        upper = places[index] - room
    return places
