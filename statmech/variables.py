"""What a dataset's variables are called, mean, and which axes they have; each kind of scenario lists its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Variable:
    """A variable's axes after the sweep's own and `seed`, its long name, its short name for tables and plots, what
    stands where there is none, whether theory has it, too, and attributes of its own."""

    dims: tuple[str, ...]
    long_name: str
    symbol: str
    missing: Any = np.nan
    in_theory: bool = True
    attrs: dict[str, Any] = field(default_factory=dict)
