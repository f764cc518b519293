"""Pieces of time: where equations jump, no step of their integration may cross."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from statmech.numerics.gaussian import Array
from theory.numerics.dormand_prince import padded


class Piece(NamedTuple):
    """A piece: its beginning, the times to integrate to, counted from there, and how many of them are recorded ones.

    The last of the times is the end of the piece, where the next one begins.
    """

    begin: float
    times: np.ndarray
    recorded: int


def pieces(starts: Sequence[float], times: np.ndarray) -> Iterator[Piece]:
    """The pieces that begin at these times, the first at 0, each with the recorded times (T,) in it.

    A recorded time at an edge belongs to the piece that begins there.

    >>> [(piece.begin, piece.times.tolist(), piece.recorded) for piece in pieces([0.0, 5.0], np.array([1.0, 5.0, 9.0]))]
    [(0.0, [1.0, 5.0], 1), (5.0, [0.0, 4.0], 2)]
    """
    ends = [*starts[1:], max(times[-1], starts[-1])]
    for begin, end in zip(starts, ends, strict=True):
        here = times[(times >= begin) & ((times < end) | (end == ends[-1]))] - begin
        whole = here.size > 0 and here[-1] == end - begin
        yield Piece(begin, here if whole else np.append(here, end - begin), here.size)


def in_pieces(
    solve: Callable[[float, Array, Array], tuple[Array, Array]],
    starts: Sequence[float],
    start: Array,
    times: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows (T, C, L) of a solution that is integrated piece by piece, and which lanes (L,) are complete.

    Parameters
    ----------
    solve
        Of the beginning of a piece, the rows (C, L) there, and times from there on, filled up with inf: the rows at
        these times, and which lanes reach the last.
    starts
        The times at which pieces begin, the first at 0.
    start : array (C, L)
        The rows at t = 0.
    times : array (T,)
        Recorded times, increasing.
    """
    found, completed, rows = [], np.ones(start.shape[1], bool), start
    for piece in pieces(starts, times):
        values, done = map(np.asarray, solve(piece.begin, rows, padded(piece.times, rows.size)))
        found.append(values[: piece.recorded])
        completed, rows = completed & done, values[len(piece.times) - 1]
    return np.concatenate(found), completed
