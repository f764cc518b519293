"""A published figure with code of its own: its functions, the results that it can show, and its caption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FilmFrames = Iterable[tuple["Figure", int]]  # frames with their durations in milliseconds


@dataclass(frozen=True)
class PublishedFigure:
    """A figure that a function draws, with the conditions on its results and its caption.

    Parameters
    ----------
    draw
        A pure function of simulation and theory that returns the figure. A study on data has the theory None. The
        function raises `ConfigError` for results that it cannot show.
    axes
        The sweep axes that are shown completely. Results with other axes are not supported.
    supported_values
        The only values of some keys that the figure can show.
    required_variables
        Variables and coordinates that only some results of a kind have.
    caption
        The first sentences of the caption, by default the title in the shipped config.
    points_caption, lines_caption
        Sentences of the caption on points and lines, unless they are means over runs and theory.
    film
        A function of simulation and theory that returns the frames of an animation.
    """

    draw: Callable[..., Figure]
    axes: tuple[str, ...] = ()
    supported_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    required_variables: tuple[str, ...] = ()
    caption: str = ""
    points_caption: str | None = None
    lines_caption: str | None = None
    film: Callable[..., FilmFrames] | None = None
