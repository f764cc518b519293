"""The configs that are part of statmech: titles, questions that they answer, and figures.

Each config says this in its section `figure`. The file is read without validation, because lists of configs must be
printed fast.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from itertools import chain
from typing import NamedTuple

from ruamel.yaml import YAML

from statmech.config.config_files import SHIPPED_CONFIG_FOLDER, list_shipped_configs
from statmech.errors import list_synonyms
from statmech.keys.figure_key import Composition
from statmech.kinds.selection_and_vocabulary import add_default_population, get_kind

QUESTIONS = (  # in the order of `statmech configs` and of the gallery
    "How fast does one student learn online?",
    "What does an ensemble gain over one student?",
    "What does a student learn from other students?",
    "Why does a network stop learning, and for how long?",
    "When do more examples or parameters hurt?",
    "Which loss, and which penalty?",
    "When should descent stop?",
    "What can be inferred at all, and what is hard?",
    "How many examples can be stored, and how well is a rule learnt from them?",
    "Does theory hold on real data?",
    "How many features does a decision need?",
    "Can a perceptron be read?",
)
MIN_TERM_SIMILARITY = 0.8  # ratio of difflib; "losses" must find "loss", but "foo" not "floor"
MAX_SUGGESTED_CONFIGS = 4


class ShippedConfig(NamedTuple):
    """A shipped config: the key of its kind, such as "rule", and its figure."""

    kind_name: str
    figure: Composition


@cache
def read_shipped_config(name: str) -> ShippedConfig:
    """Read the kind and the figure of a shipped config.

    >>> config = read_shipped_config("variety")
    >>> config.kind_name, config.figure.question
    ('rule', 'What does an ensemble gain over one student?')
    """
    config = YAML(typ="safe").load((SHIPPED_CONFIG_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    figure = Composition(**{**config.get("figure", {}), "name": name})
    return ShippedConfig(get_kind(add_default_population(config)).CHOICE, figure)


def read_shipped_configs() -> dict[str, ShippedConfig]:
    """Read the kind and the figure of every shipped config, by name."""
    return {name: read_shipped_config(name) for name in list_shipped_configs()}


def group_configs_by_question() -> dict[str, list[str]]:
    """Return the names of the shipped configs that answer each question.

    >>> group_configs_by_question()["When should descent stop?"]
    ['batch_perceptron', 'batches', 'early_stopping', 'implicit_bias', 'momentum']
    """
    figures = {name: config.figure for name, config in read_shipped_configs().items()}
    return {question: [name for name in figures if figures[name].question == question] for question in QUESTIONS}


def find_configs_by_topic(topic: str) -> tuple[str, list[str]]:
    """Find the word most similar to a topic in the names, titles and questions of the shipped configs.

    Returns the word and the configs that use it most, or "" and no configs.

    >>> find_configs_by_topic("tassk"), find_configs_by_topic("nonsense")
    (('task', ['forgetting', 'optimal_protocol', 'replay']), ('', []))
    """
    terms_by_config = {
        name: re.findall(r"[a-z]+", f"{name} {config.figure.title} {config.figure.question}".lower().replace("_", " "))
        for name, config in read_shipped_configs().items()
    }
    known_terms = [*dict.fromkeys(chain.from_iterable(terms_by_config.values()))]
    similar = [get_close_matches(name.lower(), known_terms, 1, MIN_TERM_SIMILARITY) for name in list_synonyms(topic)]
    term = next(chain.from_iterable(similar), "")
    configs = [name for name, terms in terms_by_config.items() if term in terms]
    return term, sorted(configs, key=lambda name: -terms_by_config[name].count(term))[:MAX_SUGGESTED_CONFIGS]
