"""What to cite for what a scenario uses: the papers its rules, learners, theory and figures come from, as BibTeX.

**To cite for a method of yours** write one entry in `PAPERS` and name it where the method stands in `USED`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from statmech.scenarios.axes import points

PAPERS: dict[str, dict[str, str]] = {
    "miyoshi2005": {
        "type": "article",
        "author": "Miyoshi, Seiji and Hara, Kazuyuki and Okada, Masato",
        "title": "Analysis of ensemble learning using simple perceptrons based on online learning theory",
        "journal": "Physical Review E",
        "volume": "71",
        "pages": "036116",
        "year": "2005",
    },
    "rosenblatt1958": {
        "type": "article",
        "author": "Rosenblatt, Frank",
        "title": "The perceptron: a probabilistic model for information storage and organization in the brain",
        "journal": "Psychological Review",
        "volume": "65",
        "pages": "386--408",
        "year": "1958",
    },
    "anlauf1989": {
        "type": "article",
        "author": "Anlauf, J. K. and Biehl, M.",
        "title": "The AdaTron: an adaptive perceptron algorithm",
        "journal": "Europhysics Letters",
        "volume": "10",
        "pages": "687--692",
        "year": "1989",
    },
    "krauth1987": {
        "type": "article",
        "author": "Krauth, Werner and M{\\'e}zard, Marc",
        "title": "Learning algorithms with optimal stability in neural networks",
        "journal": "Journal of Physics A",
        "volume": "20",
        "pages": "L745--L752",
        "year": "1987",
    },
    "gardner1988": {
        "type": "article",
        "author": "Gardner, Elizabeth",
        "title": "The space of interactions in neural network models",
        "journal": "Journal of Physics A",
        "volume": "21",
        "pages": "257--270",
        "year": "1988",
    },
    "opper1991": {
        "type": "article",
        "author": "Opper, Manfred and Haussler, David",
        "title": "Generalization performance of Bayes optimal classification algorithm for learning a perceptron",
        "journal": "Physical Review Letters",
        "volume": "66",
        "pages": "2677--2680",
        "year": "1991",
    },
    "novikoff1962": {
        "type": "inproceedings",
        "author": "Novikoff, Albert B. J.",
        "title": "On convergence proofs on perceptrons",
        "booktitle": "Proceedings of the Symposium on the Mathematical Theory of Automata",
        "volume": "12",
        "pages": "615--622",
        "year": "1962",
    },
    "daume": {
        "type": "book",
        "author": "Daum{\\'e} III, Hal",
        "title": "A Course in Machine Learning",
        "note": "chapter 3, The Perceptron",
        "year": "2012",
    },
    "freund1999": {
        "type": "article",
        "author": "Freund, Yoav and Schapire, Robert E.",
        "title": "Large margin classification using the perceptron algorithm",
        "journal": "Machine Learning",
        "volume": "37",
        "pages": "277--296",
        "year": "1999",
    },
    "pelossof2010": {
        "type": "misc",
        "author": "Pelossof, Raphael A. and Ying, Zhiliang",
        "title": "The Attentive Perceptron",
        "howpublished": "arXiv:1009.5972",
        "year": "2010",
    },
    "jackson1996": {
        "type": "inproceedings",
        "author": "Jackson, Jeffrey C. and Craven, Mark W.",
        "title": "Learning sparse perceptrons",
        "booktitle": "Advances in Neural Information Processing Systems 8",
        "pages": "654--660",
        "year": "1996",
    },
    "freund1997": {
        "type": "article",
        "author": "Freund, Yoav and Schapire, Robert E.",
        "title": "A decision-theoretic generalization of on-line learning and an application to boosting",
        "journal": "Journal of Computer and System Sciences",
        "volume": "55",
        "pages": "119--139",
        "year": "1997",
    },
    "lecun1990": {
        "type": "inproceedings",
        "author": "Le Cun, Yann and Denker, John S. and Solla, Sara A.",
        "title": "Optimal brain damage",
        "booktitle": "Advances in Neural Information Processing Systems 2",
        "pages": "598--605",
        "year": "1990",
    },
    "quinlan1993": {
        "type": "book",
        "author": "Quinlan, J. Ross",
        "title": "C4.5: Programs for Machine Learning",
        "publisher": "Morgan Kaufmann",
        "year": "1993",
    },
    "pedregosa2011": {
        "type": "article",
        "author": "Pedregosa, Fabian and others",
        "title": "Scikit-learn: Machine Learning in Python",
        "journal": "Journal of Machine Learning Research",
        "volume": "12",
        "pages": "2825--2830",
        "year": "2011",
    },
}
USED: dict[str, dict[str, tuple[str, ...]]] = {
    "rule": {
        "perceptron": ("rosenblatt1958",),
        "adatron": ("anlauf1989",),
        "adatron_textbook": ("anlauf1989",),
    },
    "learner": {
        "perceptron": ("rosenblatt1958", "novikoff1962"),
        "minover": ("krauth1987",),
        "adatron": ("anlauf1989",),
        "gibbs": ("opper1991",),
        "bayes": ("opper1991",),
    },
    "classifier": {
        "boosting": ("jackson1996", "freund1997"),
        "tree": ("quinlan1993", "pedregosa2011"),
        "mlp": ("pedregosa2011",),
        "ordinary": ("pedregosa2011",),
        "second_order": ("jackson1996", "pedregosa2011"),
        "pruned": ("lecun1990", "pedregosa2011"),
        "perceptron": ("daume", "rosenblatt1958"),
        "averaged": ("daume", "freund1999"),
        "voted": ("daume", "freund1999"),
        "attentive": ("pelossof2010",),
        "neighbours": ("pedregosa2011",),
    },
}


def cited(scenario: Any) -> list[str]:
    """The keys of what a scenario uses, each once.

    >>> from statmech import Scenario
    >>> cited(Scenario(rule=["hebb", "adatron"], t=1))
    ['miyoshi2005', 'anlauf1989']
    """
    choices = points(getattr(scenario, scenario.CHOICE))
    used = (USED.get(scenario.CHOICE, {}).get(choice, ()) for choice in choices)
    return list(dict.fromkeys([*scenario.CITES, *(key for keys in used for key in keys)]))


def bibtex(keys: Iterable[str]) -> str:
    """Entries for LaTeX.

    >>> print(bibtex(["quinlan1993"]))
    @book{quinlan1993,
      author = {Quinlan, J. Ross},
      title = {C4.5: Programs for Machine Learning},
      publisher = {Morgan Kaufmann},
      year = {1993},
    }
    """
    return "\n\n".join(_entry(key, PAPERS[key]) for key in keys)


ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303"}  # of LaTeX, of Unicode


def readable(key: str) -> str:
    """An entry for people.

    >>> readable("krauth1987")
    'Werner Krauth and Marc Mézard (1987). Learning algorithms with optimal stability in neural networks.
    Journal of Physics A 20, L745–L752.'
    """
    paper = PAPERS[key]
    where = paper.get("journal") or paper.get("booktitle") or paper.get("publisher") or paper.get("howpublished", "")
    place = ", ".join(part for part in (f"{where} {paper.get('volume', '')}".strip(), paper.get("pages")) if part)
    told = f"{_names(paper['author'])} ({paper['year']}). {paper['title']}. {place or paper.get('note', '')}."
    accented = re.sub(r"\{\\(\W)(\w)\}", lambda it: it[2] + ACCENTS.get(it[1], ""), told)
    return unicodedata.normalize("NFC", accented).replace("--", "–")


def _names(authors: str) -> str:
    every = [" ".join(reversed(name.split(", "))) for name in authors.split(" and ")]
    return " and ".join([", ".join(every[:-1]), every[-1]] if len(every) > 1 else every)


def _entry(key: str, paper: dict[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in paper.items() if name != "type"]
    return "\n".join([f"@{paper['type']}{{{key},", *lines, "}"])
