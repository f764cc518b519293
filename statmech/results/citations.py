"""References as BibTeX: the papers behind a scenario's rules, learners, theory and figures.

**To cite a paper for a new method** add an entry to `references.bib`, in the form of the others, and name it in `cites`
of the class of the rule, learner, classifier, loss or inputs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from statmech.scenarios.axes import points
from statmech.scenarios.base import AbstractScenario

BIBLIOGRAPHY = Path(__file__).with_name("references.bib")
# One entry, with one field per line: this is the only file that we read, so a library for BibTeX is not worth it.
ENTRY = re.compile(r"^@(\w+)\{(\w+),\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)
TEXTS = {entry[2]: entry[0] for entry in ENTRY.finditer(BIBLIOGRAPHY.read_text(encoding="utf-8"))}
PAPERS = {key: dict(FIELD.findall(text)) for key, text in TEXTS.items()}

ACCENTS = {  # LaTeX's commands, and the combining characters of Unicode
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    '"': "\u0308",
    "~": "\u0303",
    "=": "\u0304",
    ".": "\u0307",
    "c": "\u0327",
    "k": "\u0328",
    "r": "\u030a",
    "u": "\u0306",
    "v": "\u030c",
    "H": "\u030b",
}
LETTERS = {"ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "aa": "å", "AA": "Å", "i": "ı"}
ACCENTED = re.compile(r"\\(?:([^\w\s{}])|([ckruvH])(?=[\s{]))\s*\{?(\\?\w)\}?")
LETTER = re.compile(r"\\(ss|ae|AE|aa|AA|[oOlLi])(?![a-zA-Z])\s*")


def cited(scenario: AbstractScenario) -> list[str]:
    """Return the keys of the papers that a scenario uses, without duplicates.

    Parameters
    ----------
    scenario
        A scenario of any kind.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from statmech import Scenario
    >>> cited(Scenario(rule=["hebb", "adatron"], t=1))
    ['miyoshi2005', 'anlauf1989']
    """
    kinds = scenario.classes()
    cites = [scenario.CITES, *(getattr(kinds[name], "cites", ()) for name in scenario.chosen())]
    inputs = points(getattr(scenario, "inputs", ()))
    if any(distribution.structured for distribution in inputs):
        cites.append(scenario.CITES_OF_MODES)
    return list(dict.fromkeys(chain.from_iterable([*cites, *(distribution.cites for distribution in inputs)])))


def bibtex(keys: Iterable[str]) -> str:
    """Return the BibTeX entries of these papers.

    Parameters
    ----------
    keys
        Keys of papers, as `cited` returns them.

    Returns
    -------
    str
        BibTeX.

    Examples
    --------
    >>> print(bibtex(["quinlan1993"]))
    @book{quinlan1993,
      author = {Quinlan, J. Ross},
      title = {C4.5: Programs for Machine Learning},
      publisher = {Morgan Kaufmann},
      year = {1993},
    }
    """
    return "\n\n".join(TEXTS[key] for key in keys)


def readable(key: str) -> str:
    """Return the reference to a paper as plain text.

    >>> readable("krauth1987")
    'Werner Krauth and Marc Mézard (1987). Learning algorithms with optimal stability in neural networks.
    Journal of Physics A 20, L745–L752.'
    """
    paper = PAPERS[key]
    publication = (
        paper.get("journal") or paper.get("booktitle") or paper.get("publisher") or paper.get("howpublished", "")
    )
    publication_details = ", ".join(
        part for part in (f"{publication} {paper.get('volume', '')}".strip(), paper.get("pages")) if part
    )
    authors, details = _names(paper["author"]), publication_details or paper.get("note", "")
    return plain(f"{authors} ({paper['year']}). {paper['title']}. {details}.")


def plain(text: str) -> str:
    r"""Convert LaTeX text to Unicode: accents, letters and dashes are converted, braces removed.

    >>> plain(r"M{\'e}zard, Erd{\H{o}}s, Fran{\c c}ois, \"Orjan, Stra{\ss}e, {\O}ystein, {\'\i}, {LaTeX}, 1--2")
    'Mézard, Erdős, François, Örjan, Straße, Øystein, í, LaTeX, 1–2'
    """
    text = ACCENTED.sub(lambda match: match[3].removeprefix("\\") + ACCENTS.get(match[1] or match[2], ""), text)
    text = LETTER.sub(lambda match: LETTERS[match[1]], text)
    return unicodedata.normalize("NFC", re.sub(r"[{}]", "", text)).replace("--", "–")


def _names(authors: str) -> str:
    """Return authors in BibTeX's form, last name first, as a list of names for a sentence."""
    *first_authors, last_author = [" ".join(reversed(name.split(", "))) for name in authors.split(" and ")]
    return f"{', '.join(first_authors)} and {last_author}" if first_authors else last_author
