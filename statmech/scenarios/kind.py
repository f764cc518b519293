"""The required members of every kind of scenario.

In addition a kind defines its keys, as fields. Its methods `simulate` and `solve` compute the results or, for many
seeds in one compiled call, a `Simulator` and a function `solve` in files of the same name in `simulate/scenarios/` and
`theory/scenarios/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from statmech.scenarios.variables import Variable


class Kind:
    """The required members of every kind of scenario."""

    CHOICE: ClassVar[str]  # key that selects the learning algorithm; also the noun of messages
    KINDS: ClassVar[dict[str, type]]  # classes by name; their parameters become keys
    FURTHER_CHOICES: ClassVar[dict[str, Mapping[str, type]]] = {}  # further keys that select classes
    AXES: ClassVar[tuple[str, ...]]  # keys that can be axes, in the order of the dataset's dimensions
    # a parameter listed in AXES has its own position, and is always present, at least with its default

    OPTIMISABLE_KEYS: ClassVar[tuple[str, ...]] = ()  # keys that can be optimised, as functions of time
    STEPWISE_KEYS: ClassVar[tuple[str, ...]] = ()  # further keys that can be functions of time

    @classmethod
    def choices(cls) -> dict[str, Mapping[str, type]]:
        """Return the keys that select classes, each with its classes by name."""
        return {cls.CHOICE: cls.KINDS, **cls.FURTHER_CHOICES}

    @classmethod
    def classes(cls) -> Mapping[str, type]:
        """Return every class whose parameters are keys, by name.

        If two keys have a class of the same name, the second gets its key as a suffix.
        """
        further = [(key, name, kind) for key, kinds in cls.FURTHER_CHOICES.items() for name, kind in kinds.items()]
        return {**cls.KINDS, **{f"{name} ({key})" if name in cls.KINDS else name: kind for key, name, kind in further}}

    @property
    def variables(self) -> dict[str, Variable]:
        """Variables of this scenario's datasets."""
        raise NotImplementedError

    simulate: ClassVar[Callable[..., dict[str, Any]] | None] = None  # simulate(cell, seed): variables of one run
    solve: ClassVar[Callable[..., dict[str, Any]] | None] = None  # solve(cell): variables predicted by theory
