"""Terms in one student's rates of log l and y = 1 - R, derived in `theory.online.equations`.

The arithmetic works for any arrays, so that theories without JAX (`theory.stopping.attention`) can use it.
"""

from __future__ import annotations

from typing import NamedTuple

from statmech.numerics.gaussian import Array
from statmech.rules import RuleAverages
from statmech.schedules import TimeDependence

ATOL = 1e-12  # applies to log l and c
VERSINE_ATOL = 1e-60  # negligible: the relative tolerance holds for arbitrarily small 1 - R


class RateTerms(NamedTuple):
    """Terms in one student's rates of log l and y = 1 - R: learning, noise, and decay or drift."""

    log_length_terms: tuple[Array, Array, Array]
    y_terms: tuple[Array, Array, Array]


def compute_rate_terms(averages: RuleAverages, y: Array, length: Array, changes: TimeDependence | None) -> RateTerms:
    """Compute the terms in one student's rates from the averages of its rule.

    Without `changes` there is no drift and no decay.
    """
    half_diffusion = averages.ff / length**2 / 2
    drift, decay = (0.0, 0.0) if changes is None else (changes.drift, changes.decay)
    return RateTerms(
        (averages.fu / length, half_diffusion, -decay),
        (-y * (2 - y) * averages.response / length, (1 - y) * half_diffusion, (1 - y) * drift),
    )
