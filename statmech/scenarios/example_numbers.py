"""Numbers of examples P = alpha N in scenarios with stored examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from statmech.errors import Problem
from statmech.scenarios.axes import NumberOrAxis, axis_of
from statmech.scenarios.grid import Grid
from statmech.scenarios.keys import Number

MAX_EXACT_INTEGER = 2**53  # larger integers are not exact in float64
AlphaAxis = Annotated[NumberOrAxis, axis_of(Annotated[Number, Field(gt=0)], {"type": "number", "exclusiveMinimum": 0})]


def explain_bad_example_count(alpha: float, N: int) -> str | None:
    """Explain why alpha N is not a valid number of examples, or return None."""
    if alpha * N > MAX_EXACT_INTEGER:
        return f"{alpha * N:g} examples are too many to count in float64"
    if round(alpha * N) < 1:
        return f"alpha = {alpha:g} at N = {N} leaves no example: P = alpha N is below 1"
    return None


def find_example_count_problems(scenario: Grid) -> Iterator[Problem]:
    """Find the first invalid number of examples in a sweep."""
    sentences = (explain_bad_example_count(alpha, N) for alpha, N in scenario.list_value_pairs("alpha", "N"))
    if sentence := next(filter(None, sentences), None):
        yield ("alpha",), sentence


def compute_example_counts(scenario: Grid) -> tuple[tuple[str, ...], np.ndarray]:
    """Compute P = alpha N for a sweep, and return its dimensions and its values."""
    dims = [dim for dim, group in scenario.dimensions.items() if {"alpha", "N"} & set(group)]
    P = [round(values["alpha"] * values["N"]) for values in scenario.iterate_combinations("alpha", "N")]
    return tuple(dims), np.reshape(np.array(P, int), [scenario.shape[dim] for dim in dims])
