"""Contrast of colours to the page, which lines, points and text need to be visible.

The Web Content Accessibility Guidelines (WCAG 2.2, 1.4.3 and 1.4.11) define contrast as the ratio of the relative
luminances of two colours, each increased by 0.05. Text needs a ratio of 4.5, lines and points need 3.
"""

from __future__ import annotations

from functools import cache

import numpy as np

TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0  # minimal contrast to the page
NUM_CONTRAST_STEPS = 100  # from a colour towards black or white
RGB_LUMINANCE_WEIGHTS = np.array([0.2126, 0.7152, 0.0722])


@cache
def make_legible(colour: str, background_colour: str, min_contrast: float) -> str:
    """Darken or lighten a colour until it has enough contrast to the page.

    >>> make_legible("#0072B2", "#ffffff", 4.5), make_legible("#E69F00", "#ffffff", 4.5)
    ('#0072B2', '#9c6c00')
    """
    if compute_contrast(colour, background_colour) >= min_contrast:
        return colour
    start, end = _get_channels(colour), np.full(3, 1.0 if _compute_luminance(background_colour) < 0.5 else 0.0)
    mixtures = (
        _hex_from_channels(start + (end - start) * step / NUM_CONTRAST_STEPS)
        for step in range(1, NUM_CONTRAST_STEPS + 1)
    )
    return next(candidate for candidate in mixtures if compute_contrast(candidate, background_colour) >= min_contrast)


def compute_contrast(colour: str, other_colour: str) -> float:
    """Compute the contrast of two colours, from 1 to 21.

    >>> round(compute_contrast("#000000", "#ffffff"), 6)
    21.0
    """
    low, high = sorted([_compute_luminance(colour), _compute_luminance(other_colour)])
    return (high + 0.05) / (low + 0.05)


def _compute_luminance(colour: str) -> float:
    """Compute the relative luminance of an sRGB colour."""
    part = _get_channels(colour)
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return float(RGB_LUMINANCE_WEIGHTS @ linear)


def _get_channels(colour: str) -> np.ndarray:
    return np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])


def _hex_from_channels(channels: np.ndarray) -> str:
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels.tolist())
