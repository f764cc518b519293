"""Integration piece by piece between jumps of the equations, since no step may cross a jump."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array
from theory.numerics.dormand_prince import pad_times


class TimePiece(NamedTuple):
    """Time interval with its start, integration times relative to the start, and number of recorded times.

    The last integration time is the end of the piece and the start of the next piece.
    """

    begin: float
    times: np.ndarray
    num_recorded_times: int


def split_times_into_pieces(starts: Sequence[float], times: np.ndarray) -> Iterator[TimePiece]:
    """Split recorded times (T,) into pieces that start at the given times.

    A recorded time at an edge belongs to the piece that starts there.

    >>> times = np.array([1.0, 5.0, 9.0])
    >>> pieces = split_times_into_pieces([0.0, 5.0], times)
    >>> [(piece.begin, piece.times.tolist(), piece.num_recorded_times) for piece in pieces]
    [(0.0, [1.0, 5.0], 1), (5.0, [0.0, 4.0], 2)]
    """
    ends = [*starts[1:], max(times[-1], starts[-1])]
    for begin, end in zip(starts, ends, strict=True):
        relative_times = times[(times >= begin) & ((times < end) | (end == ends[-1]))] - begin
        reaches_end = relative_times.size > 0 and relative_times[-1] == end - begin
        yield TimePiece(
            begin, relative_times if reaches_end else np.append(relative_times, end - begin), relative_times.size
        )


def integrate_in_pieces(
    solve: Callable[[float, Array, Array], tuple[Array, Array]],
    starts: Sequence[float],
    start: Array,
    times: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate piece by piece.

    Returns the solution (T, C, L) and a mask (L,) of completed batch elements.

    Parameters
    ----------
    solve
        Integrates one piece. Its arguments are the start of the piece, the rows (C, L) there, and times relative to
        the start, padded with inf. It returns the rows at these times, and a mask of completed batch elements.
    starts
        Start times of the pieces, the first at 0.
    start : array (C, L)
        The rows at t = 0.
    times : array (T,)
        Recorded times, increasing.
    """
    blocks, completed, rows = [], np.ones(start.shape[1], bool), start
    for piece in split_times_into_pieces(starts, times):
        values, is_complete = map(np.asarray, solve(piece.begin, rows, pad_times(piece.times, rows.size)))
        blocks.append(values[: piece.num_recorded_times])
        completed, rows = completed & is_complete, values[len(piece.times) - 1]
    return np.concatenate(blocks), completed
