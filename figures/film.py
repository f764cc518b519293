"""Films of published figures: a GIF that is saved with the figure if its module defines `film`."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from statmech.runtime import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from statmech.results.results import Results

COLOURS = 32
Frames = Iterable[tuple["Figure", int]]  # each with its duration in milliseconds


def of(name: str, results: Results) -> Frames | None:
    """Return the frames of a figure's film, or None without a film.

    >>> of("overlay", None) is None
    True
    """
    from figures import module_of

    make = getattr(module_of(name), "film", None)
    frames: Frames | None = make and make(results.simulation, results.theory)
    return frames


def save(name: str, results: Results, stem: Path) -> list[Path]:
    """Write the film of a figure, if it has one, as a GIF that is complete or not written at all.

    Returns the files. Raises `StoreError` if a file cannot be written.
    """
    frames = of(name, results)
    return [] if frames is None else files.write_beside(stem, {"gif": content(frames)})


def content(frames: Frames) -> bytes:
    """Encode frames as a GIF that repeats endlessly.

    The same frames give the same bytes.
    """
    pictures, durations = zip(*_pictures(frames), strict=True)
    palette = pictures[-1].quantize(COLOURS, Image.Quantize.MAXCOVERAGE)  # the last frame has every colour
    small = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    file = io.BytesIO()
    small[0].save(file, "GIF", save_all=True, append_images=small[1:], duration=durations, loop=0, optimize=True)
    return file.getvalue()


def _pictures(frames: Frames) -> Iterator[tuple[Image.Image, int]]:
    for figure, milliseconds in frames:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"), milliseconds
