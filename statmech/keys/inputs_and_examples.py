"""The config key `inputs`, and the numbers of examples P = alpha N in scenarios with stored examples.

Inputs: the type of the key, and checks of the distributions of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, PlainSerializer

from statmech.errors import Problem
from statmech.inputs.covariance_modes import MIN_EFFECTIVE_DIRECTIONS, format_direction_count
from statmech.inputs.input_distributions import (
    INPUTS,
    Gaussian,
    Inputs,
    format_inputs_label,
    inputs_from_config,
    inputs_to_config,
)
from statmech.keys.key_types import Number
from statmech.keys.sweep_grid import Grid, NumberOrAxis, axis_of, ensure_tuple

MAX_EXACT_INTEGER = 2**53  # larger integers are not exact in float64
AlphaAxis = Annotated[NumberOrAxis, axis_of(Annotated[Number, Field(gt=0)], {"type": "number", "exclusiveMinimum": 0})]
InputsAxis = Annotated[
    Any,
    axis_of(
        Annotated[Any, AfterValidator(inputs_from_config), PlainSerializer(inputs_to_config)],
        {"anyOf": [{"enum": list(INPUTS)}, {"type": "object", "minProperties": 1}]},
        spaced=False,
    ),
]


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


def make_inputs_field(description: str = "distribution of the inputs") -> Any:
    """Return the pydantic field of the key `inputs`, with Gaussian inputs by default."""
    return Field(
        default=Gaussian(),
        description=description,
        validate_default=True,
        json_schema_extra={"default": "gaussian"},
    )


def list_inputs_and_dimensions(scenario: Grid) -> list[tuple[Any, int]]:
    """Return all pairs of input distribution and dimension N in a sweep.

    Kinds without the key `inputs` have Gaussian inputs.
    """
    if "inputs" in scenario.axis_values():
        return scenario.list_value_pairs("inputs", "N")
    return [(Gaussian(), N) for N in ensure_tuple(scenario.axis_values()["N"])]


def make_few_direction_warnings(scenario: Grid) -> list[str]:
    """Return a warning for each distribution of inputs with few effective directions, as theory assumes many."""
    if not {"inputs", "N"} <= scenario.axis_values().keys():
        return []
    smallest: dict[Inputs, int] = {}
    for inputs, N in list_inputs_and_dimensions(scenario):
        if not inputs.isotropic:
            smallest[inputs] = min(N, smallest.get(inputs, N))
    inputs_with_modes = ((inputs, N, modes) for inputs, N in smallest.items() if (modes := inputs.modes(N)) is not None)
    effective = {format_inputs_label(inputs): N * modes.participation_ratio for inputs, N, modes in inputs_with_modes}
    return [
        f"inputs {name}: they vary in effectively {format_direction_count(directions)}; theory assumes many, 30 or more"
        for name, directions in effective.items()
        if directions < MIN_EFFECTIVE_DIRECTIONS
    ]


def find_input_dimension_problems(scenario: Grid) -> Iterator[Problem]:
    """Find the first distribution that is undefined in its input dimension."""
    if problem := next(filter(None, (inputs.problem(N) for inputs, N in list_inputs_and_dimensions(scenario))), None):
        yield problem


def find_unsuited_online_inputs(scenario: Grid) -> Iterator[Problem]:
    """Find distributions of inputs that online learning does not support."""
    for inputs, _ in list_inputs_and_dimensions(scenario):
        if sentence := inputs.find_online_learning_problem():
            yield ("inputs",), sentence


def find_input_table_problems(scenario: Grid) -> Iterator[Problem]:
    """Find the first input table that cannot be read, or does not have N columns."""
    if problem := next(
        filter(None, (inputs.find_file_problem(N) for inputs, N in list_inputs_and_dimensions(scenario))), None
    ):
        yield problem


def compute_input_table_digests(scenario: Grid) -> dict[str, str]:
    """Return the SHA-256 of each input table, keyed by path."""
    return {
        path: digest
        for inputs, _ in list_inputs_and_dimensions(scenario)
        for path, digest in inputs.file_digests().items()
    }
