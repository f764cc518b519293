"""The concept that boosting learns from all examples of a data set: a bar per weighted conjunction."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import xarray as xr
from matplotlib.figure import Figure

from figures import concept
from simulate.estimators.concept import ConceptTerm
from statmech.data_sets import find_data_source
from statmech.errors import ConfigError

WORD_HYPHEN = re.compile(r"(?<=[a-z])-(?=[a-z])")  # hyphens within a name
AXES = ()  # sweep axes that this figure shows
VALUES = {"classifier": ("boosting",)}
CAPTION = (
    "The sparse perceptron learnt from all examples: a bar per conjunction, as long as its weight. Where the "
    "conjunction is true it votes for the class of its colour, to the right for one class, to the left for the other; "
    "where it is false it votes against it."
)
POINTS = ""


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the concept of the study's data set with the names of its attributes."""
    concepts = json.loads(simulation.attrs["concepts"])
    if not concepts:
        raise ConfigError("the figure votes_concept needs the classifier boosting, which has a concept to draw")
    name, learnt = next(iter(concepts.items()))
    terms = [
        ConceptTerm(**{**term, "names": [WORD_HYPHEN.sub(" ", condition) for condition in term["names"]]})
        for term in learnt["terms"]
    ]
    figure = concept.draw(SimpleNamespace(terms_=terms, classes_=learnt["classes"]))
    figure.suptitle(f"{find_data_source(name).heading}: learnt from all examples")
    return figure
