"""Populations of inputs: the properties of a distribution in the limit N -> infinity, as a key for cached solutions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from statmech.errors import ScenarioError
from statmech.inputs import Inputs
from statmech.modes import Modes


@dataclass(frozen=True)
class Population:
    """Inputs of unequal variance in N dimensions, with the digests of their files.

    N is 0 if theory does not depend on N.

    >>> from statmech.inputs import Gaussian, inputs_from
    >>> population_of(Gaussian(), 100) is None                 # isotropic
    True
    >>> population_of(inputs_from({"spectrum": [0.5, 1.5]}), 100).modes.variances
    array([0.5, 1.5])
    """

    law: Inputs
    N: int
    files: tuple[tuple[str, str], ...] = ()

    @property
    def modes(self) -> Modes:
        """The variances of the inputs and of the teacher's field."""
        return _modes(self)


def population_of(law: Inputs, N: int) -> Population | None:
    """Return the population of a distribution of inputs, or None for isotropic inputs.

    Parameters
    ----------
    law
        The distribution.
    N
        Number of components.
    """
    if law.isotropic:
        return None
    return Population(law, N if law.sized else 0, tuple(sorted(law.digests().items())))


@lru_cache(maxsize=16)
def _modes(population: Population) -> Modes:
    """Compute the modes of a population. Raises `ScenarioError` if theory does not have equations for the inputs."""
    modes = population.law.modes(population.N)
    if modes is None:
        raise ScenarioError([(("inputs",), "theory has no equations for these inputs")])
    return modes
