"""Checks of online learning in steps of 1/N: number of steps, rates, and annealing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.errors import Problem

MAX_STEPS = 2**62
DEFAULT_ANNEALING = "hyperbolic"  # has no effect without a schedule


def count_steps(times: Sequence[float] | np.ndarray, N: int) -> np.ndarray:
    """Return the number of steps N t, rounded to an integer, for each recorded time.

    >>> count_steps([0.01, 0.5, 1], N=20)
    array([ 0, 10, 20])
    """
    return np.rint(np.asarray(times) * N).astype(np.int64)


def find_step_count_problems(t: float, N: float) -> Iterator[Problem]:
    """Find a time t whose number of steps t N overflows a 64-bit integer.

    >>> list(find_step_count_problems(10, 100)), list(find_step_count_problems(1e10, 1e9))
    ([], [(('t',), 't N = 1e+10 N exceeds 2^62 steps')])
    """
    if t * N >= MAX_STEPS:
        yield ("t",), f"t N = {t:g} N exceeds 2^62 steps"


def find_excessive_rates(name: str, rate: float, N: float) -> Iterator[Problem]:
    """Find a rate of drift or decay that exceeds N, so that 1 - rate/N is negative.

    >>> list(find_excessive_rates("decay", 5, 4))
    [(('decay',), 'decay = 5 is too large for N = 4: 1 - decay/N would be negative')]
    """
    if rate > N:
        yield (name,), f"{name} = {rate:g} is too large for N = {N}: 1 - {name}/N would be negative"


def find_annealing_problems(schedule: object, annealing: object) -> Iterator[Problem]:
    """Find an `annealing` that has no effect, because there is no schedule.

    >>> list(find_annealing_problems(None, "exponential"))
    [(('annealing',), 'a learning rate without `schedule: {t0: time}` does not fall')]
    """
    if schedule is None and annealing != DEFAULT_ANNEALING:
        yield ("annealing",), "a learning rate without `schedule: {t0: time}` does not fall"
