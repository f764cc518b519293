r"""The equations of a scenario as pictures, which need neither scripts nor fonts.

Matplotlib supports a part of LaTeX (mathtext). Unsupported commands are rewritten. An equation that matplotlib still
cannot draw is shown as LaTeX.
"""

from __future__ import annotations

import re
from typing import Any

from figures.labels import kind_label
from figures.style import apply_style, make_svg_element
from statmech.scenarios.base import AbstractScenario

EQUATION_FONT_SIZE = 14  # points, as in the surrounding text
MATHTEXT_REPLACEMENTS = (  # unsupported LaTeX and its equivalent in mathtext
    (r"\\[td]frac", r"\\frac"),
    (r"\\frac\s*(\w)\s*(\w)", r"\\frac{\1}{\2}"),
    (r"\\frac\s*(\w)\s*(\\\w+|\{)", r"\\frac{\1}\2"),
    (r"(\\frac\{\w\})(\\[a-z]+)", r"\1{\2}"),
    (r"\\(mathbf|mathrm|mathcal)\s+(\w)", r"\\\1{\2}"),
    (r"\\(le|ge)(?![a-z])", r"\\\1q"),
    (r"\\[bB]igg?[lr]?(?![a-z])", ""),
)


def render_equations(scenario: AbstractScenario) -> list[tuple[str, str, str]]:
    """Return the equations of a scenario and its learners as tuples (label, LaTeX, SVG element or "")."""
    common = [("", latex) for latex in scenario.displayed_equations]
    learner_equations = [
        (kind_label(scenario.classes(), name), scenario.get_equation(name))
        for name in scenario.list_chosen_class_names()
    ]
    return [(owner, latex, svg_from_latex(latex)) for owner, latex in (*common, *learner_equations) if latex]


def mathtext_from_latex(latex: str) -> str:
    r"""Rewrite an equation in the subset of LaTeX that matplotlib supports.

    >>> equation = r"\epsilon_g = \tfrac1\pi\arccos R \ge 0, \quad \mathbf w \leftarrow \tfrac12\mathbf w"
    >>> print(mathtext_from_latex(equation))
    \epsilon_g = \frac{1}{\pi}\arccos R \geq 0, \quad \mathbf{w} \leftarrow \frac{1}{2}\mathbf{w}
    """
    for pattern, replacement in MATHTEXT_REPLACEMENTS:
        latex = re.sub(pattern, replacement, latex)
    return latex


@apply_style
def _draw_equation(text: str) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    figure.set_layout_engine("none")
    figure.patch.set_alpha(0)
    text_artist = figure.text(0, 0, f"${text}$", size=EQUATION_FONT_SIZE, math_fontfamily="cm")
    box = text_artist.get_window_extent(FigureCanvasAgg(figure).get_renderer())
    margin = 2 * figure.dpi / 72
    figure.set_size_inches((box.width + 2 * margin) / figure.dpi, (box.height + 2 * margin) / figure.dpi)
    text_artist.set_position(((margin - box.x0) / figure.bbox.width, (margin - box.y0) / figure.bbox.height))
    return figure


def svg_from_latex(latex: str) -> str:
    """Return an equation as an SVG element, or "" if matplotlib cannot draw it."""
    try:
        return make_svg_element(_draw_equation(mathtext_from_latex(latex)))
    except ValueError:
        return ""
