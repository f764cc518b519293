"""The required members of every kind of scenario.

In addition, a kind defines its keys as fields. Results are computed by its methods `simulate` and `solve`. To simulate
many seeds in one compiled call, define instead a `Simulator` and a function `solve` in files of the same name in
`simulate/scenarios/` and `theory/scenarios/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from statmech.scenarios.variables import Variable


class ScenarioKind:
    """Base class with the required members of every kind of scenario."""

    CHOICE: ClassVar[str]  # key that selects the learning algorithm; also its name in messages
    KINDS: ClassVar[dict[str, type]]  # learning algorithms by name; their parameters become keys
    FURTHER_CLASS_CHOICES: ClassVar[dict[str, Mapping[str, type]]] = {}  # further keys that select a class
    AXES: ClassVar[tuple[str, ...]]  # possible axes, in the order of the dataset dimensions
    # AXES can list a parameter to fix its position; the dataset then contains it even at its default

    OPTIMISABLE_KEYS: ClassVar[tuple[str, ...]] = ()  # keys whose function of time can be optimised
    STEPWISE_TIME_FUNCTION_KEYS: ClassVar[tuple[str, ...]] = ()  # further keys that can change stepwise in time

    @classmethod
    def choices(cls) -> dict[str, Mapping[str, type]]:
        """Return the keys that select a class, each with its possible classes by name."""
        return {cls.CHOICE: cls.KINDS, **cls.FURTHER_CLASS_CHOICES}

    @classmethod
    def classes(cls) -> Mapping[str, type]:
        """Return all classes whose parameters are keys, by name.

        If two keys share the name of a class, the name under the second key gets this key as a suffix.
        """
        further = [
            (key, name, kind) for key, kinds in cls.FURTHER_CLASS_CHOICES.items() for name, kind in kinds.items()
        ]
        return {**cls.KINDS, **{f"{name} ({key})" if name in cls.KINDS else name: kind for key, name, kind in further}}

    @property
    def variables(self) -> dict[str, Variable]:
        """Variables in datasets of this scenario, by name."""
        raise NotImplementedError

    simulate: ClassVar[Callable[..., dict[str, Any]] | None] = None  # simulate(cell, seed): variables of one run
    solve: ClassVar[Callable[..., dict[str, Any]] | None] = None  # solve(cell): predictions of theory
