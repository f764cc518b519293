"""Numbers of examples P = alpha N, of every kind of scenario that stores them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from statmech.errors import Problem
from statmech.scenarios.axes import Numbers, axis_of
from statmech.scenarios.grid import Grid
from statmech.scenarios.keys import Number

MOST = 2**53  # counted in float64, too
AlphaAxis = Annotated[Numbers, axis_of(Annotated[Number, Field(gt=0)], {"type": "number", "exclusiveMinimum": 0})]


def number_problem(alpha: float, N: int) -> str | None:
    """Why there cannot be so many examples; None if there can."""
    if alpha * N > MOST:
        return f"{alpha * N:g} examples are too many to count in float64"
    if round(alpha * N) < 1:
        return f"alpha = {alpha:g} at N = {N} leaves no example: P = alpha N is below 1"
    return None


def number_problems(scenario: Grid) -> Iterator[Problem]:
    """The first number of examples of a sweep that cannot be."""
    sentences = (number_problem(alpha, N) for alpha, N in scenario.pairs("alpha", "N"))
    if sentence := next(filter(None, sentences), None):
        yield ("alpha",), sentence


def numbers(scenario: Grid) -> tuple[tuple[str, ...], np.ndarray]:
    """The sweep's dimensions along which P = alpha N varies, and P along them."""
    dims = [dim for dim, group in scenario.dimensions.items() if {"alpha", "N"} & set(group)]
    P = [round(values["alpha"] * values["N"]) for values in scenario.combinations("alpha", "N")]
    return tuple(dims), np.reshape(np.array(P, int), [scenario.shape[dim] for dim in dims])
