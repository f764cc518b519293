"""Films of published figures: a GIF is saved with a figure if its module defines `film`."""

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

NUM_PALETTE_COLOURS = 32
FilmFrames = Iterable[tuple["Figure", int]]  # frames with their durations in milliseconds


def get_film_frames(name: str, results: Results) -> FilmFrames | None:
    """Return the frames of a figure's film, or None if the figure has no film.

    >>> get_film_frames("overlay", None) is None
    True
    """
    from figures import import_figure_module

    make = getattr(import_figure_module(name), "film", None)
    frames: FilmFrames | None = make and make(results.simulation, results.theory)
    return frames


def save_film(name: str, results: Results, stem: Path) -> list[Path]:
    """Write a figure's animation, if it has one, to a GIF file that is never left incomplete.

    Returns the files. Raises `StoreError` if a file cannot be written.
    """
    frames = get_film_frames(name, results)
    return [] if frames is None else files.write_with_suffixes(stem, {"gif": encode_gif(frames)})


def encode_gif(frames: FilmFrames) -> bytes:
    """Encode frames as a GIF that repeats endlessly.

    The same frames give the same bytes.
    """
    pictures, durations = zip(*_render_frames(frames), strict=True)
    palette = pictures[-1].quantize(NUM_PALETTE_COLOURS, Image.Quantize.MAXCOVERAGE)  # the last frame has every colour
    small = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    file = io.BytesIO()
    small[0].save(file, "GIF", save_all=True, append_images=small[1:], duration=durations, loop=0, optimize=True)
    return file.getvalue()


def _render_frames(frames: FilmFrames) -> Iterator[tuple[Image.Image, int]]:
    for figure, milliseconds in frames:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"), milliseconds
