"""The concept of a sparse perceptron: its weighted conjunctions as text and as a LaTeX table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    '"': "''",
    "[": "{[}",  # LaTeX reads [ after \\ as an optional argument
    "*": "{*}",  # LaTeX reads * after \\ as the starred command
    "<": "$<$",
    ">": "$>$",
    **{character: f"\\{character}" for character in "&%$#_"},
}
LATEX_RELATIONS = {"<=": r"$\le$", ">=": r"$\ge$", "!=": r"$\ne$"}


class ConceptTerm(NamedTuple):
    """A weighted conjunction that votes for one class if true, and for the other class if false.

    With sense 1 a true conjunction votes for `positive`, with sense -1 for `negative`. `names` lists the conditions of
    the indicators: a conjunction without names is always true. Weights are either all floats or all ints.
    """

    positive: str
    negative: str
    weight: float
    sense: int
    names: tuple[str, ...]

    @property
    def condition(self) -> str:
        """The conjunction as text."""
        return " and ".join(self.names) or "always"

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """Texts of the class, the weight, "if" or "unless", and the condition."""
        weight = str(self.weight) if isinstance(self.weight, int) else f"{self.weight:.3f}"
        if not self.names:
            return self.positive if self.sense > 0 else self.negative, weight, "", "always"
        return self.positive, weight, "if" if self.sense > 0 else "unless", self.condition


def format_concept(terms: Sequence[ConceptTerm]) -> str:
    """Format a concept as text with one term per line.

    >>> first = ConceptTerm("sick", "well", 3, 1, ("fever = high", "age > 60"))
    >>> print(format_concept([first, ConceptTerm("sick", "well", 1, -1, ())]))
    sick:  3  if  fever = high and age > 60
    well:  1  always
    """
    return "\n".join(
        f"{'  '.join(filter(None, (f'{label}:', *rest)))}" for label, *rest in (term.parts for term in terms)
    )


def format_concept_latex(terms: Sequence[ConceptTerm]) -> str:
    r"""Format a concept as a LaTeX `tabular` with four columns that needs no packages.

    >>> print(format_concept_latex([ConceptTerm("a_b", "c", 1.25, -1, ("cost < 5%",))]))
    \begin{tabular}{lrll}
    class & weight & & conjunction \\
    \hline
    a\_b & 1.250 & unless & cost $<$ 5\% \\
    \end{tabular}
    """
    rows = [" & ".join(map(escape_latex, term.parts)) + r" \\" for term in terms]
    head = [r"\begin{tabular}{lrll}", r"class & weight & & conjunction \\", r"\hline"]
    return "\n".join([*head, *rows, r"\end{tabular}"])


def escape_latex(text: str) -> str:
    r"""Escape the LaTeX special characters in a string.

    Relations become symbols, and white space becomes single blanks.

    >>> print(escape_latex("R&D != 50_000$"))
    R\&D $\ne$ 50\_000\$
    """
    tokens = " ".join(text.split()).split(" ")
    return " ".join(
        LATEX_RELATIONS.get(token) or "".join(LATEX_ESCAPES.get(character, character) for character in token)
        for token in tokens
    )
