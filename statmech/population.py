"""Populations of inputs: what the limit N -> infinity knows of a distribution, as a key of what has been solved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from statmech.errors import ScenarioError
from statmech.inputs import Inputs
from statmech.modes import Modes


@dataclass(frozen=True)
class Population:
    """Inputs of unequal variance in N dimensions, N = 0 where theory does not depend on it; `files` are their digests.

    >>> from statmech.inputs import Gaussian, inputs_from
    >>> population_of(Gaussian(), 100) is None                 # isotropic: theory needs nothing
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
    """The population of a distribution; None for isotropic inputs.

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
    modes = population.law.modes(population.N)
    if modes is None:
        raise ScenarioError([(("inputs",), "theory has no equations for these inputs")])
    return modes
