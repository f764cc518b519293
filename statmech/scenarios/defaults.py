"""The optional members of a kind of scenario, each with its default."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from statmech.errors import Problem
from statmech.parameters import ConfigKey
from statmech.scenarios.grid import Grid
from statmech.scenarios.page import Page
from statmech.scenarios.variables import Variable

DEFAULT_SECONDS_PER_RUN = 1e-2  # for kinds without an estimate


class Defaults(Grid):
    """The optional members of a kind of scenario. `Kind` lists the required members."""

    together: ClassVar[int] = 1  # seeds per batch: another batch size would change the last bits of results
    on_data: ClassVar[bool] = False  # True for kinds that learn from given data, without theory
    equations: ClassVar[tuple[str, ...]] = ()  # LaTeX, shown in the explorer and in reports
    OMITTED_DEFAULTS: ClassVar[dict[str, Any]] = {}  # keys omitted from configs and datasets at these values
    TITLE: ClassVar[str] = ""  # shown on pages
    CITES: ClassVar[tuple[str, ...]] = ()  # papers behind the theory: keys in the bibliography
    UNEQUAL_VARIANCE_CITES: ClassVar[tuple[str, ...]] = ()  # further papers for inputs of unequal variance
    COORDINATES: ClassVar[dict[str, ConfigKey]] = {}  # dataset coordinates that are not keys of a config
    IMPLIED_KEYS: ClassVar[tuple[str, ...]] = ()  # optional in a config: other keys imply them
    SIMULATION_KEYS: ClassVar[tuple[str, ...]] = ()  # theory depends neither on these nor on seeds and key
    PAGE: ClassVar[Page | None] = None  # initial page of the explorer; None: no page for this kind
    workers: ClassVar[int | None] = None  # parallel threads; None: one per core

    def _find_problems(self) -> Iterator[Problem]:
        """Yield the problems that only this kind of scenario can have."""
        return iter(())

    def find_data_problems(self) -> Iterator[Problem]:
        """Find reasons why the data named by the scenario cannot be used: only a simulation needs them."""
        return iter(())

    def data_digests(self) -> dict[str, str]:
        """Return the current SHA-256 of each data set or file that the scenario names."""
        return {}

    @property
    def theory_only(self) -> dict[str, Variable]:
        """Further variables that only theory computes."""
        return {}

    def seconds(self) -> float:
        """Estimate the seconds that one seed of all cells takes on one core."""
        return DEFAULT_SECONDS_PER_RUN * math.prod(self.shape.values())

    def programs(self) -> set[Any]:
        """Return one key for each program of simulation and theory, or an empty set if they are not counted."""
        return set()

    @property
    def recorded(self) -> dict[str, np.ndarray]:
        """Coordinates of the dataset dimensions that are not axes of the sweep."""
        return {}

    @property
    def derived(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Coordinates computed from other keys: the dimensions of the sweep that they vary along, and their values."""
        return {}

    @property
    def unsolved(self) -> str:
        """Reason why theory has no equations for this scenario, or an empty string if it has."""
        return ""

    @property
    def expected_deviation(self) -> str:
        """Reason why deviations from theory are expected and not tested, or an empty string."""
        return ""

    @property
    def is_quickly_solved(self) -> bool:
        """True if theory solves hundreds of points of a line within seconds."""
        return self.exchangeable  # the vote of unequal students takes a second per point

    @property
    def theory_ignores(self) -> dict[str, Any]:
        """Further keys that theory does not depend on.

        A key with a value other than None gets this value where lines are solved.

        N can be listed although it enters through P / N, because alpha N is rounded to P examples.
        """
        return {}

    @property
    def exchangeable(self) -> bool:
        """True if all students of an ensemble start with the same order parameters."""
        return True

    @property
    def displayed_equations(self) -> tuple[str, ...]:
        """Equations of this scenario, in LaTeX: the kind's equations, unless its inputs change them."""
        return self.equations

    @classmethod
    def get_equation(cls, name: str) -> str:
        """Return the LaTeX equation of a class that a key selects, or an empty string."""
        equation: str = getattr(cls.classes()[name], "equation", "")
        return equation
