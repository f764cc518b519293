"""Names, meanings and dimensions of a dataset's variables; each kind of scenario lists its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Variable:
    """A variable's axes after the sweep's own and `seed`, its long name, its short name for tables and plots, what
    stands where there is none, whether theory has it, too, attributes of its own, where theory has a bound and not a
    value, whether that lies "above" or "below" every run, and whether it is a mean between two recorded times."""

    dims: tuple[str, ...]
    long_name: str
    symbol: str
    missing: Any = np.nan
    in_theory: bool = True
    attrs: dict[str, Any] = field(default_factory=dict)
    bound: Literal["", "above", "below"] = ""
    between: bool = False

    @property
    def described(self) -> dict[str, Any]:
        """Its attributes in a dataset."""
        return {"long_name": self.long_name, "units": "1", **self.attrs}
