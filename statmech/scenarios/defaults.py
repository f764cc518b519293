"""Optional members of a kind of scenario, with their defaults."""

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

DEFAULT_SECONDS_PER_RUN = 1e-2  # for kinds that do not estimate their run time


class ScenarioDefaults(Grid):
    """Optional members of a kind of scenario, with their defaults. `ScenarioKind` lists the required members."""

    seeds_per_batch: ClassVar[int] = 1  # seeds per batch; fixed, as the last bits of results depend on it
    on_data: ClassVar[bool] = False  # True if learners train on real data, so that there is no theory
    equations: ClassVar[tuple[str, ...]] = ()  # LaTeX, for the explorer and reports
    OMITTED_DEFAULTS: ClassVar[dict[str, Any]] = {}  # configs and datasets omit a key with this value
    TITLE: ClassVar[str] = ""  # heading of pages
    CITES: ClassVar[tuple[str, ...]] = ()  # bibliography keys of the papers behind the theory
    UNEQUAL_VARIANCE_CITES: ClassVar[tuple[str, ...]] = ()  # further bibliography keys for inputs of unequal variance
    NON_KEY_COORDINATES: ClassVar[dict[str, ConfigKey]] = {}  # dataset coordinates other than config keys
    KEYS_IMPLIED_BY_OTHERS: ClassVar[tuple[str, ...]] = ()  # required keys that other keys of a config can imply
    UNSUPPORTED_KEYS: ClassVar[dict[str, str]] = {}  # other kinds' keys, each with a reason; {} stands for the keys
    SIMULATION_ONLY_KEYS: ClassVar[tuple[str, ...]] = ()  # theory ignores these keys, like `seeds` and `key`
    PAGE: ClassVar[Page | None] = None  # initial page of the explorer; None for kinds without a page
    workers: ClassVar[int | None] = None  # parallel threads; None for one per core

    @classmethod
    def find_unsupported_key_problems(cls, config: dict[str, Any]) -> Iterator[Problem]:
        """Find the keys of a config that this kind does not support, and list keys with the same reason together."""
        for reason in dict.fromkeys(cls.UNSUPPORTED_KEYS.values()):
            if keys := [key for key, why in cls.UNSUPPORTED_KEYS.items() if why == reason and key in config]:
                yield (keys[0],), reason.format(", ".join(keys))

    def _find_problems(self) -> Iterator[Problem]:
        """Yield the problems specific to this kind of scenario."""
        return iter(())

    def find_input_file_problems(self) -> Iterator[Problem]:
        """Find reasons why the scenario's data sets or files cannot be used in a simulation."""
        return iter(())

    def data_digests(self) -> dict[str, str]:
        """Return the current SHA-256 of each data set or file in the scenario."""
        return {}

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        """Variables computed by theory only."""
        return {}

    def estimate_seconds_per_seed(self) -> float:
        """Estimate the seconds per seed for all cells on one core."""
        return DEFAULT_SECONDS_PER_RUN * math.prod(self.shape.values())

    def list_compiled_programs(self) -> set[Any]:
        """Return one key per compiled program of simulation and theory, or an empty set if not counted."""
        return set()

    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]:
        """Coordinates of the dataset dimensions other than the sweep axes."""
        return {}

    @property
    def derived_coordinates(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Coordinates computed from other keys, each with its sweep dimensions and its values."""
        return {}

    @property
    def unsolved(self) -> str:
        """Reason why theory has no equations for this scenario, or an empty string."""
        return ""

    @property
    def expected_deviation_reason(self) -> str:
        """Reason why deviations from theory are expected and not tested, or an empty string."""
        return ""

    @property
    def has_fast_theory(self) -> bool:
        """True if theory solves a curve of several hundred points within seconds."""
        return self.has_equal_starts  # a vote of unequal students takes a second per point

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        """Keys that theory does not depend on, each with the value used for theory curves.

        None leaves the value of the scenario.

        N can be listed although alpha N is rounded to P examples, which changes P / N slightly.
        """
        return {}

    @property
    def has_equal_starts(self) -> bool:
        """True if all students of an ensemble start with the same order parameters."""
        return True

    @property
    def displayed_equations(self) -> tuple[str, ...]:
        """LaTeX equations of this scenario, by default the equations of its kind."""
        return self.equations

    @classmethod
    def get_equation(cls, name: str) -> str:
        """Return the LaTeX equation of a class of this name, or an empty string."""
        equation: str = getattr(cls.classes()[name], "equation", "")
        return equation
