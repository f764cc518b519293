"""The optional members of a kind of scenario, each with its default."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from statmech.errors import Problem
from statmech.parameters import Key
from statmech.scenarios.grid import Grid
from statmech.scenarios.page import Page
from statmech.scenarios.variables import Variable

SECONDS_PER_RUN = 1e-2  # of a kind that gives no estimate


class Defaults(Grid):
    """The optional members of a kind of scenario; the required ones are those of `AbstractScenario`."""

    together: ClassVar[int] = 1  # seeds that are simulated together, so that another number would move the last bits
    on_data: ClassVar[bool] = False  # on given data, which no theory describes
    equations: ClassVar[tuple[str, ...]] = ()  # that all of this kind obey, in LaTeX, for pages that show them
    OMITTED: ClassVar[dict[str, Any]] = {}  # keys omitted from configs and datasets at these values
    TITLE: ClassVar[str] = ""  # of pages that show this kind
    CITES: ClassVar[tuple[str, ...]] = ()  # the papers behind its theory, by their keys in the bibliography
    CITES_OF_MODES: ClassVar[tuple[str, ...]] = ()  # and behind that of inputs of unequal variance
    COORDINATES: ClassVar[dict[str, Key]] = {}  # coordinates of its datasets that are not keys of its configs
    IMPLIED: ClassVar[tuple[str, ...]] = ()  # keys that a config may leave out, as others imply them
    SIMULATION_KEYS: ClassVar[tuple[str, ...]] = ()  # keys beside seeds and key on which no theory depends
    PAGE: ClassVar[Page | None] = None  # what the explorer starts with; None: it has no page for this kind
    workers: ClassVar[int | None] = None  # threads that simulate at once; None: one per core

    def _problems(self) -> Iterator[Problem]:
        """Kind-specific validation."""
        return iter(())

    def data_problems(self) -> Iterator[Problem]:
        """Why the data that the scenario names cannot be used here; only a simulation needs them."""
        return iter(())

    def data_digests(self) -> dict[str, str]:
        """The SHA-256 that each data set or file named by the scenario has now."""
        return {}

    @property
    def theory_only(self) -> dict[str, Variable]:
        """Further variables of its theory, which a simulation does not have."""
        return {}

    def seconds(self) -> float:
        """A rough estimate of the seconds that one seed of all cells takes on one core."""
        return SECONDS_PER_RUN * math.prod(self.shape.values())

    def programs(self) -> set[Any]:
        """Return what distinguishes the programs of simulation and theory; empty for kinds that do not count them."""
        return set()

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """The coordinates of the dataset's dimensions that are not axes of the sweep."""
        return {}

    @property
    def derived(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Coordinates that follow from others: the sweep's dimensions that they vary along, and their values."""
        return {}

    @property
    def unsolved(self) -> str:
        """The reason why theory has no equations for this scenario; empty if it has."""
        return ""

    @property
    def not_judged(self) -> str:
        """The reason why deviations from theory are expected and none is judged; empty if there is none."""
        return ""

    @property
    def quickly_solved(self) -> bool:
        """True if theory is solved at hundreds of places of a line within seconds."""
        return self.exchangeable  # the vote of unequal students takes a second at each

    @property
    def theory_ignores(self) -> dict[str, Any]:
        """Further keys that the theory does not depend on; those with a value have it where lines are solved.

        N among them may still enter by P / N, the ratio that is left when alpha N is rounded to P examples.
        """
        return {}

    @property
    def exchangeable(self) -> bool:
        """True if the students of every ensemble start alike."""
        return True

    @property
    def stated_equations(self) -> tuple[str, ...]:
        """The equations of this scenario, in LaTeX: those of its kind, where other inputs do not change them."""
        return self.equations

    @classmethod
    def equation_of(cls, name: str) -> str:
        """The equation of one of the classes that its keys name, in LaTeX; empty if it states none."""
        equation: str = getattr(cls.classes()[name], "equation", "")
        return equation
