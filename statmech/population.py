"""Populations of inputs: properties of a distribution for N -> infinity, as keys of cached solutions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from statmech.errors import ScenarioError
from statmech.inputs import Inputs
from statmech.modes import Modes


@dataclass(frozen=True)
class InputPopulation:
    """Inputs with unequal variances in N dimensions, and the digests of their files.

    N is 0 if theory does not depend on N.

    >>> from statmech.inputs import Gaussian, inputs_from_config
    >>> make_input_population(Gaussian(), 100) is None                 # isotropic
    True
    >>> make_input_population(inputs_from_config({"spectrum": [0.5, 1.5]}), 100).modes.variances
    array([0.5, 1.5])
    """

    inputs: Inputs
    N: int
    files: tuple[tuple[str, str], ...] = ()

    @property
    def modes(self) -> Modes:
        """The variances of the inputs and of the teacher's field."""
        return _compute_population_modes(self)


def make_input_population(inputs: Inputs, N: int) -> InputPopulation | None:
    """Return the population of a distribution of inputs, or None for isotropic inputs.

    Parameters
    ----------
    inputs
        The distribution.
    N
        Number of components.
    """
    if inputs.isotropic:
        return None
    return InputPopulation(inputs, N if inputs.modes_depend_on_N else 0, tuple(sorted(inputs.file_digests().items())))


@lru_cache(maxsize=16)
def _compute_population_modes(population: InputPopulation) -> Modes:
    """Compute the modes of a population, or raise `ScenarioError` if theory does not support the inputs."""
    modes = population.inputs.modes(population.N)
    if modes is None:
        raise ScenarioError([(("inputs",), "theory has no equations for these inputs")])
    return modes
