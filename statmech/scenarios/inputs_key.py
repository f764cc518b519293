"""The config key `inputs`: a distribution of inputs or an axis of distributions, and its problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainSerializer

from statmech.errors import Problem
from statmech.inputs import INPUTS, Features, Gaussian, Inputs, Spectrum, inputs_from, label_of, written
from statmech.modes import FEW_DIRECTIONS, format_directions
from statmech.scenarios.axes import axis_of, points
from statmech.scenarios.grid import Grid

LawAxis = Annotated[
    Any,
    axis_of(
        Annotated[Any, AfterValidator(inputs_from), PlainSerializer(written)],
        {"anyOf": [{"enum": list(INPUTS)}, {"type": "object", "minProperties": 1}]},
        spaced=False,
    ),
]


def inputs_key(description: str = "distribution of the inputs") -> Any:
    """Return the field of the key `inputs`, with Gaussian inputs by default."""
    return Field(
        default=Gaussian(),
        description=description,
        validate_default=True,
        json_schema_extra={"default": "gaussian"},
    )


def pairs(scenario: Grid) -> list[tuple[Any, int]]:
    """Return the pairs of input distribution and dimension N that occur in a sweep.

    Kinds without the key `inputs` have Gaussian inputs.
    """
    if "inputs" in scenario.axis_values():
        return scenario.pairs("inputs", "N")
    return [(Gaussian(), N) for N in points(scenario.axis_values()["N"])]


def few_directions(scenario: Grid) -> list[str]:
    """Warn of distributions that vary in few directions: theory assumes many. Returns one sentence each."""
    if not {"inputs", "N"} <= scenario.axis_values().keys():
        return []
    smallest: dict[Inputs, int] = {}
    for inputs, N in pairs(scenario):
        if not inputs.isotropic:
            smallest[inputs] = min(N, smallest.get(inputs, N))
    inputs_with_modes = ((inputs, N, modes) for inputs, N in smallest.items() if (modes := inputs.modes(N)) is not None)
    effective = {label_of(inputs): N * modes.participation for inputs, N, modes in inputs_with_modes}
    return [
        f"inputs {name}: they vary in effectively {format_directions(directions)}; theory assumes many, 30 or more"
        for name, directions in effective.items()
        if directions < FEW_DIRECTIONS
    ]


def law_problems(scenario: Grid) -> Iterator[Problem]:
    """Find the first distribution that is not possible in its input dimension."""
    if problem := next(filter(None, (inputs.problem(N) for inputs, N in pairs(scenario))), None):
        yield problem


def unsuited_problems(scenario: Grid) -> Iterator[Problem]:
    """Find inputs that have no meaning for online learning."""
    yield from filter(None, (_unsuited(inputs) for inputs, _ in pairs(scenario)))


def _unsuited(law: Inputs) -> Problem | None:
    """Explain why inputs have no meaning for online learning, or return None."""
    if isinstance(law, Features):
        return ("inputs",), "features need a teacher on latent variables: learners of convex losses have them"
    if isinstance(law, Spectrum) and law.misfit > 0:
        return ("inputs",), "the teacher of online learning has no misfit: learners of convex losses have it"
    if isinstance(law, Spectrum) and law.ridge:
        return ("inputs",), "online learning has no penalty: learners of convex losses have a `ridge`"
    return None


def table_problems(scenario: Grid) -> Iterator[Problem]:
    """Find the first table of inputs that cannot be read or does not have N columns."""
    if problem := next(filter(None, (inputs.lacking(N) for inputs, N in pairs(scenario))), None):
        yield problem


def table_digests(scenario: Grid) -> dict[str, str]:
    """Return the SHA-256 of each table of inputs by its path."""
    return {path: digest for inputs, _ in pairs(scenario) for path, digest in inputs.digests().items()}
