"""The typeface of pages: DejaVu Sans, as in figures of matplotlib, embedded in the style sheet of a page.

Pages have the same look on every computer and load no file from the network. The fonts are the copies in matplotlib,
reduced to the characters of western languages and mathematics. Their names and licence stay in the files.
"""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Iterable
from functools import cache
from pathlib import Path

TYPEFACE = "DejaVu Sans"
FONT_STACK = '"DejaVu Sans", Verdana, sans-serif'  # Verdana has the same proportions
MONOSPACE_FONT_STACK = '"DejaVu Sans Mono", Menlo, Consolas, monospace'
FONT_FACES = {  # file, and the family, weight and style that it has in CSS
    "DejaVuSans": ("DejaVu Sans", 400, "normal"),
    "DejaVuSans-Bold": ("DejaVu Sans", 700, "normal"),
    "DejaVuSans-Oblique": ("DejaVu Sans", 400, "italic"),
    "DejaVuSansMono": ("DejaVu Sans Mono", 400, "normal"),
}
EMBEDDED_RANGES = (  # Unicode: letters and signs of messages, captions and symbols
    (0x20, 0x7E), (0xA0, 0x17F), (0x302, 0x304), (0x391, 0x3D6), (0x1D62, 0x1D65), (0x2010, 0x2026), (0x2032, 0x2033),
    (0x2070, 0x209C), (0x2113, 0x2113), (0x2190, 0x2193), (0x2202, 0x2207), (0x2211, 0x221E), (0x2248, 0x2265),
    (0x22C5, 0x22C5), (0x2500, 0x2503), (0x25B4, 0x25BE), (0x275A, 0x275A), (0x27E8, 0x27E9),
)  # fmt: skip
LICENCE_NAME_IDS = [0, 1, 2, 3, 4, 6, 13, 14]  # copyright, names and licence in a font file


def make_font_css(faces: Iterable[str] = tuple(FONT_FACES)) -> str:
    """Return CSS that embeds the font faces in a page.

    >>> make_font_css(["DejaVuSansMono"])[:66]
    '@font-face { font-family: "DejaVu Sans Mono"; font-weight: 400; fo'
    """
    return "\n".join(map(_make_font_face, faces))


@cache
def _make_font_face(file_name: str) -> str:
    family, weight, style = FONT_FACES[file_name]
    source = f"url(data:font/woff;base64,{base64.b64encode(_reduce_font(file_name)).decode()})"
    return (
        f'@font-face {{ font-family: "{family}"; font-weight: {weight}; font-style: {style}; '
        f'src: {source} format("woff"); }}'
    )


def _reduce_font(file_name: str) -> bytes:
    """Return a font of matplotlib as WOFF, without characters outside `EMBEDDED_RANGES`."""
    import matplotlib
    from fontTools import subset  # matplotlib depends on it
    from fontTools.ttLib import TTFont

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it warns of a table of the font's editor
    font = TTFont(Path(matplotlib.get_data_path()) / "fonts/ttf" / f"{file_name}.ttf")
    options = subset.Options(hinting=False, notdef_outline=True, name_IDs=LICENCE_NAME_IDS, layout_features=["mark"])
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[code for first, last in EMBEDDED_RANGES for code in range(first, last + 1)])
    subsetter.subset(font)
    font.flavor = "woff"
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()
