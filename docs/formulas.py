r"""Formulas in prose: what pages write as α = 10, N → ∞ or eps_g is set in the font of mathematics.

Pages stay readable as text; the site has one font for a symbol. Only words of paragraphs, lists, tables and headings
of sections change: code, titles of pages, signatures and the text of links do not. An expression is set completely or,
if it is not understood, not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

GREEK = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\epsilon", "η": r"\eta", "θ": r"\theta",
    "κ": r"\kappa", "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma",
    "τ": r"\tau", "φ": r"\varphi", "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega", "Δ": r"\Delta", "Θ": r"\Theta",
    "Λ": r"\Lambda", "Φ": r"\Phi", "Σ": r"\Sigma",
}  # fmt: skip
SIGNS = {
    "∞": r"\infty",
    "→": r"\to",
    "->": r"\to",
    "infinity": r"\infty",
    "≤": r"\le",
    "<=": r"\le",
    ">=": r"\ge",
    "≥": r"\ge",
    "≈": r"\approx",
    "·": r"\cdot",
    "−": "-",
    "±": r"\pm",
    "′": "'",
    "″": "''",
}
RAISED, SUBSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "₀₁₂₃₄₅₆₇₈₉₊₋"
LOWERED = str.maketrans(RAISED + SUBSCRIPT, "0123456789-0123456789+-")
FUNCTIONS = "arccos|arcsin|sin|cos|cot|tanh|tan|ln|log|exp|max|min|sgn|sqrt"

LETTER = r"[B-HJ-Zb-z]"  # not A, a or I, which are words
HAT = "\u0302"
COUNT = r"\d[\d,.]*(?<![,.])"
NUMBER = rf"{COUNT}(?:\^[−-]?\d+|e[−+-]?\d+|[{RAISED}]+)?(?![\d\w])"
BASE = rf"(?:[{''.join(GREEK)}]+{LETTER}?|{LETTER}){HAT}?(?:_\w{{1,2}}\b|[{SUBSCRIPT}]+)?"
NAME = rf"(?!μs\b)(?:eps_[gt]\b|ε_[gt]\b|He[{SUBSCRIPT}]|{BASE}(?![^\W{RAISED}]|['’]))[′″]?"
PLAIN = rf"(?:{COUNT})?{NAME}[{RAISED}]*(?:/{NAME}|/{NUMBER})?|{NUMBER}(?:/{NAME})?"
CALL = rf"\([−-]?(?:{PLAIN})(?:(?:, ?| ?[=+−] ?)[−-]?(?:{PLAIN}))*\)"
WORD = rf"(?:(?:{FUNCTIONS}) )?{NAME}[{RAISED}]*(?:{CALL})?|(?:{FUNCTIONS}){CALL}|√{NAME}"
OVER = rf"/(?:{WORD}|{NUMBER}|{CALL}|a\b)"
PRODUCT = rf"(?:{COUNT})?(?:{WORD})(?:{OVER})?|{NUMBER}(?:{OVER})?|{CALL}(?:{OVER}|[{RAISED}]+)|∞|infinity\b"
SIZE = rf"\|(?:{PLAIN})(?: ?[+−] ?(?:{PLAIN}))*\|[{RAISED}]*"
TERM = rf"(?:{PRODUCT}|{SIZE})"
RELATION = r"->|<=|>=|[=<>≤≥→≈]"
START = r"(?:(?<![\w.'’/@-])|(?<=finite-))"
END = r"(?![\w(]|-(?!th\b|sparse\b|perceptron)\w|/\w|\.\w)"
FORMULA = re.compile(rf"{START}[−±]?{TERM}(?:(?:\s*(?:{RELATION}|[+−±·])\s*| - )[−±-]?{TERM})*{END}")
POWER = re.compile(rf"\d(?:\^|e[−+-]?\d|[{RAISED}])")
EXPONENT = re.compile(r"(?<=\d)e\+?([−-]?)0*(\d+)")
# beside a hit, the rest of an expression that is not understood
REST_BEFORE = re.compile(rf"(?:{RELATION}|[+−·×∝±^|/√*%]|[A-Za-z√/)Α-ω]\([^()]*)\s?$|\)$|[\w)|] - $")
REST_AFTER = re.compile(
    rf"\s?(?:{RELATION}|[+·×∝^|*√]|−\S|[/−] )|\)?[{RAISED}′″\u0302]|\)?/[(√]|\)/?[\w(]| - (?:[\d(|]|\w\b)"
)
INITIALS = "BCDEFGHJLMST"  # of names and journals, where a full stop and a word follow
LISTED = re.compile(r"experiments? (?:[A-Z],? (?:and |to )?)*$", re.IGNORECASE)
PANEL_LETTERS = "bcdef"  # in parentheses
UNBROKEN_SPACE = re.compile(r"(?<=\d) (?=[%±])|(?<=\d ±) (?=\d)")
UNIT = re.compile(r"(?:\d|\b(?:CPU|wall))\s$")
SECONDS = re.compile(r"(?:^|, )s$")  # in the head of a column


def parts(text: str, head: bool = False) -> list[tuple[bool, str]]:
    r"""The pieces of a text, or of the head of a column, each with whether it is a formula, and formulas in LaTeX.

    >>> parts("as N → ∞ at α = 0.5 (15 s)")
    [(False, 'as '), (True, 'N \\to \\infty'), (False, ' at '), (True, '\\alpha = 0.5'), (False, ' (15 s)')]
    >>> parts("K = 3, s", head=True), parts("s of P", head=True)
    ([(True, 'K = 3'), (False, ', s')], [(True, 's'), (False, ' of '), (True, 'P')])
    >>> parts("direct, μs per step, at μ")
    [(False, 'direct, μs per step, at '), (True, '\\mu')]
    """
    found, at, end = [], 0, len(text) - bool(head and SECONDS.search(text))
    for hit in FORMULA.finditer(text, 0, end):
        if is_formula(text, hit):
            found += [(False, text[at : hit.start()]), (True, latex(hit[0]))]
            at = hit.end()
    return [piece for piece in (*found, (False, text[at:])) if piece[1]]


def is_formula(text: str, hit: re.Match[str]) -> bool:
    """True of relations, symbols and powers of numbers; false of other numbers, units and initials of names."""
    if hit[0] == "infinity" or not (POWER.search(hit[0]) or re.search(WORD, EXPONENT.sub("", hit[0]))):
        return False
    before, after = text[: hit.start()], text[hit.end() :]
    if REST_BEFORE.search(before) or REST_AFTER.match(after):
        return False
    if hit[0] in [*PANEL_LETTERS] and before.endswith("(") and after.startswith(")"):
        return False
    if re.fullmatch(rf"{COUNT} {LETTER}", hit[0]) or (len(hit[0]) == 1 and UNIT.search(before)):
        return False
    return not (hit[0] in INITIALS and (re.match(r"\. ?\w", after) or LISTED.search(before)))


def latex(text: str) -> str:
    r"""A formula in LaTeX.

    >>> print(latex("κ ≥ x²"), "and", latex("P = αN"), "and", latex("N = 1,000"), "and", latex("arccos R"))
    \kappa \ge x^2 and P = \alpha N and N = 1{,}000 and \arccos R
    """
    text = re.sub(r"(?<=\d),(?=\d)", "{,}", text.replace("\N{NO-BREAK SPACE}", " "))
    text = re.sub(r"(?<![\d.])1\\cdot ", "", EXPONENT.sub(r"\\cdot 10^{\1\2}", text))
    text = re.sub(r"\^([−-]\d+|\d{2,})", r"^{\1}", text)
    text = re.sub(r"sqrt\(([^()]*)\)", r"sqrt{\1}", text)
    text = re.sub(r"_([A-Za-z0-9]{2})(?![A-Za-z0-9])", r"_{\1}", re.sub("eps_|ε_", "ε_", text))
    for letter, command in (GREEK | SIGNS).items():
        text = re.sub(rf"{letter}(?=[A-Za-z0-9])", lambda _, c=command: f"{c} " if c[0] == "\\" else c, text).replace(
            letter, command
        )
    text = re.sub(rf"\b({FUNCTIONS})\b", r"\\\1", text).replace(r"\sgn", r"\mathrm{sgn}\,")
    text = re.sub(r"√(\\?\w+)", r"\\sqrt{\1}", text)
    text = re.sub(rf"(\\\w+ ?|\w){HAT}", r"\\hat{\1}", text).replace("He", r"\mathrm{He}")
    for digits, sign in ((RAISED, "^"), (SUBSCRIPT, "_")):
        text = re.sub(rf"[{digits}]+", lambda run, sign=sign: _script(sign, run[0].translate(LOWERED)), text)
    return text


def _script(sign: str, digits: str) -> str:
    return f"{sign}{digits}" if len(digits) == 1 else f"{sign}{{{digits}}}"


class Formulas(SphinxTransform):
    """Sets the formulas in the prose of a page."""

    default_priority = 800  # before Sphinx asks whether the page has equations

    def apply(self) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if _is_prose(text):
                words = re.sub(UNBROKEN_SPACE, "\N{NO-BREAK SPACE}", str(text).replace("alpha N", "αN"))
                pieces = parts(words, head=any(isinstance(it, nodes.thead) for it in _around(text)))
                if pieces and (words != str(text) or any(formula for formula, _ in pieces)):
                    text.parent.replace(text, [_node(formula, piece) for formula, piece in pieces])


KEPT = (
    nodes.FixedTextElement, nodes.literal, nodes.math, nodes.math_block, nodes.reference, nodes.raw,
    nodes.comment, nodes.field_name, nodes.term, addnodes.literal_strong, addnodes.literal_emphasis,
    addnodes.desc_signature, addnodes.pending_xref, addnodes.toctree,
)  # fmt: skip


def _is_prose(text: nodes.Text) -> bool:
    around = [*_around(text)]
    inside = any(isinstance(node, nodes.paragraph | nodes.entry) or _is_heading(node) for node in around)
    return inside and not any(isinstance(node, KEPT) for node in around)


def _is_heading(node: nodes.Node) -> bool:
    """True of the heading of a section; that of a page is also the title of its window, which shows plain text."""
    return isinstance(node, nodes.title) and isinstance(node.parent.parent, nodes.section)


def _around(text: nodes.Text) -> Iterator[nodes.Node]:
    """What a text is in, up to the page."""
    node = text.parent
    while node is not None and not isinstance(node, nodes.document):
        yield node
        node = node.parent


def _node(formula: bool, piece: str) -> nodes.Node:
    return nodes.math(piece, piece) if formula else nodes.Text(piece)
