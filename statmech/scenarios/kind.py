"""The contract: the members that every kind of scenario states.

Beside these members a kind has its own keys, as fields. It is simulated and solved by its methods `simulate` and
`solve` or, for many seeds in one compiled call, by a `Simulator` and a function `solve` in files of its name in
`simulate/scenarios/` and `theory/scenarios/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from statmech.scenarios.variables import Variable


class Kind:
    """The members that every kind of scenario states."""

    CHOICE: ClassVar[str]  # the key that names what learns, and the noun of messages
    KINDS: ClassVar[dict[str, type]]  # the classes it selects from; their parameters are keys like the others
    FURTHER: ClassVar[dict[str, Mapping[str, type]]] = {}  # further keys that name classes, with these, likewise
    AXES: ClassVar[tuple[str, ...]]  # keys that may be axes, in the order of the dataset's dimensions: a parameter
    # that is named here has its own place among them, and is always stated, if only with its default

    OPTIMAL: ClassVar[tuple[str, ...]] = ()  # keys that may be wanted at their optimum, as functions of time
    STEPPED: ClassVar[tuple[str, ...]] = ()  # further keys that may be functions of time

    @classmethod
    def choices(cls) -> dict[str, Mapping[str, type]]:
        """The keys that name classes, each with these."""
        return {cls.CHOICE: cls.KINDS, **cls.FURTHER}

    @classmethod
    def classes(cls) -> Mapping[str, type]:
        """Every class whose parameters are keys, by its name; a name of two classes is that of the first key's."""
        further = [(key, name, kind) for key, kinds in cls.FURTHER.items() for name, kind in kinds.items()]
        return {**cls.KINDS, **{f"{name} ({key})" if name in cls.KINDS else name: kind for key, name, kind in further}}

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables of this scenario's datasets."""
        raise NotImplementedError

    simulate: ClassVar[Callable[..., dict[str, Any]] | None] = None  # of (cell, seed): the variables of one run
    solve: ClassVar[Callable[..., dict[str, Any]] | None] = None  # of (cell): the variables that theory predicts
