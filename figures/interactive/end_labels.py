"""Labels at the ends of lines: wrapped, without overlaps, and inside the chart."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

LABEL_LINE_LETTERS, MAX_LABEL_LINES = 20, 3  # longer labels would leave too little space for the curves
UNBREAKABLE_EQUALS = "\u00a0=\u00a0"  # keeps a name and its value on one line


def wrap_label(label: str) -> str:
    """Wrap the label of a curve, and cut it off after `MAX_LABEL_LINES` lines.

    The whole label is shown under the pointer.

    >>> wrap_label("power law (decay 1.5, teacher decay 2)"), wrap_label("hebb")
    ('power law (decay\\n1.5, teacher decay\\n2)', 'hebb')
    >>> wrap_label("nesterov, momentum = 0.9").replace("\u00a0", " ")
    'nesterov,\\nmomentum = 0.9'
    """
    text = label.replace(" = ", UNBREAKABLE_EQUALS)
    return "\n".join(textwrap.wrap(text, LABEL_LINE_LETTERS, max_lines=MAX_LABEL_LINES, placeholder=" …"))


def separate_positions(targets: Sequence[float], min_distance: float, height: float) -> list[float]:
    """Spread positions to a minimal distance, as little as possible and in the same order.

    The new positions lie between 0 and the height if there is enough space.

    >>> separate_positions([10.0, 12.0, 50.0], 10.0, 60.0), separate_positions([1.0, 2.0, 59.0], 10.0, 60.0)
    ([6.0, 16.0, 50.0], [5.0, 15.0, 55.0])
    """
    order = sorted(range(len(targets)), key=lambda index: targets[index])
    groups: list[list[int]] = []
    positions = list(targets)
    for index in order:
        groups.append([index])
        while True:
            group = groups[-1]
            middle = sum(targets[member] for member in group) / len(group)
            for rank, member in enumerate(group):
                positions[member] = middle + (rank - (len(group) - 1) / 2) * min_distance
            if len(groups) == 1 or positions[group[0]] - positions[groups[-2][-1]] >= min_distance:
                break
            groups[-2:] = [groups[-2] + group]
    return _move_into_range(positions, order, min_distance, height)


def _move_into_range(positions: list[float], order: Sequence[int], min_distance: float, height: float) -> list[float]:
    """Move positions into the range from 0 to the height, and push neighbours aside."""
    lower = min_distance / 2
    for index in order:
        positions[index] = max(positions[index], lower)
        lower = positions[index] + min_distance
    upper = height - min_distance / 2
    for index in reversed(order):
        positions[index] = min(positions[index], upper)
        upper = positions[index] - min_distance
    return positions
