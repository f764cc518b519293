"""Pictures of legend entries, for the legends of reports and of the explorer."""

from __future__ import annotations

from figures.description import LegendEntry
from figures.interactive.axes_and_theme import DARK_PAGE_FILTER, PAGE_COLOUR, get_curve_colour
from figures.interactive.chart_rows import get_dash

SVG_MARKER_PATHS = {
    "o": "M8 2.5a3.5 3.5 0 1 0 .01 0z",
    "s": "M4.8 2.8h6.4v6.4H4.8z",
    "^": "M8 2l4 7H4z",
    "D": "M8 1.5l4 4.5-4 4.5L4 6z",
    "v": "M8 10l4-7H4z",
    "<": "M4 6l7-4v8z",
    ">": "M12 6l-7-4v8z",
    "x": "M5 3l6 6M11 3l-6 6",
    "|": "M8 1v10",
    "*": "M8 1l1.2 3.4h3.6L9.9 6.5l1.1 3.5L8 7.9 5 10l1.1-3.5L3.2 4.4h3.6z",
}


def make_swatch(entry: LegendEntry) -> str:
    """Return the picture of a legend entry as SVG: a line, a marker, both, or a band.

    >>> make_swatch(LegendEntry("", {"color": "#0072B2", "linestyle": "--"})).count("<path")
    1
    """
    colour = get_curve_colour(entry.style.get("color", entry.style.get("facecolor", "0")))
    marker, linestyle = SVG_MARKER_PATHS.get(str(entry.style.get("marker"))), entry.style.get("linestyle", "-")
    dash = "" if linestyle == "none" else get_dash(linestyle)
    svg_dash = "none" if dash == "solid" else dash
    line_path = f'<path d="M0 6h32" stroke="{colour}" stroke-width="2" stroke-dasharray="{svg_dash}"/>'
    fill = PAGE_COLOUR if entry.style.get("markerfacecolor") == "white" else colour
    marker_path = f'<path d="{marker}" transform="translate(8 0)" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
    paths = line_path * bool(dash) + marker_path * bool(marker)
    if entry.kind == "band":
        paths = f'<path d="M0 1h32v10H0z" fill="{colour}" fill-opacity="{entry.style["alpha"]}"/>'
    style = f"width:2.25em;height:1em;flex:none;filter:{DARK_PAGE_FILTER}"
    return f'<svg viewBox="0 0 32 12" style="{style}" aria-hidden="true">{paths}</svg>'
