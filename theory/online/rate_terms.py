"""The terms of one student's rates of log l and y = 1 - R, which `theory.online.equations` derives.

They are arithmetic of any arrays, so that theories without JAX (`theory.stopping.attention`) share them.
"""

from __future__ import annotations

from typing import NamedTuple

from statmech.numerics.gaussian import Array
from statmech.rules import Averages
from statmech.schedules import Changes

ATOL = 1e-12  # of log l and c
ATOL_Y = 1e-60  # so that 1 - R is accurate to a relative tolerance however small it gets


class RateTerms(NamedTuple):
    """The terms of the rates of one student's log l and y = 1 - R: what it learns, its noise, and what changes."""

    log_length: tuple[Array, Array, Array]
    y: tuple[Array, Array, Array]


def rate_terms(averages: Averages, y: Array, length: Array, changes: Changes | None) -> RateTerms:
    """Compute the terms of one student's rates, for any rule with these averages; no `changes`: nothing changes."""
    half_diffusion = averages.ff / length**2 / 2
    drift, decay = (0.0, 0.0) if changes is None else (changes.drift, changes.decay)
    return RateTerms(
        (averages.fu / length, half_diffusion, -decay),
        (-y * (2 - y) * averages.response / length, (1 - y) * half_diffusion, (1 - y) * drift),
    )
