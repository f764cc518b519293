"""Concept that boosting learns from all examples of a data set, with one bar per weighted conjunction."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import xarray as xr
from matplotlib.figure import Figure

from figures.classification import concept_bars
from simulate.classification.conjunctions import ConceptTerm
from statmech.errors import ConfigError
from statmech.inputs.data_sets import find_data_source

NAME_HYPHEN_PATTERN = re.compile(r"(?<=[a-z])-(?=[a-z])")  # matches a hyphen within a name
AXES = ()  # sweep axes that this figure shows
SUPPORTED_VALUES = {"classifier": ("boosting",)}
CAPTION = (
    "The sparse perceptron learnt from all examples: one bar per conjunction, with a length equal to the weight. A "
    "true conjunction votes for the class of its colour (to the right for one class, to the left for the other), and a "
    "false conjunction votes against this class."
)
POINTS_CAPTION = ""


def draw(simulation: xr.Dataset, theory: None) -> Figure:
    """Draw the concept learnt from the study's data set, with the names of the attributes."""
    concepts = json.loads(simulation.attrs["concepts"])
    if not concepts:
        raise ConfigError('the figure "votes_concept" requires the classifier boosting, which learns a concept')
    name, learnt = next(iter(concepts.items()))
    terms = [
        ConceptTerm(**{**term, "names": [NAME_HYPHEN_PATTERN.sub(" ", condition) for condition in term["names"]]})
        for term in learnt["terms"]
    ]
    figure = concept_bars.draw(SimpleNamespace(terms_=terms, classes_=learnt["classes"]))
    figure.suptitle(f"{find_data_source(name).title_with_stand_in_mark}: learnt from all examples")
    return figure
