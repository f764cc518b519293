"""The steps of a stream of examples: their number, and rates that are too large for a step of 1/N."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.errors import Problem

MAX_STEPS = 2**62
CONSTANT = "hyperbolic"  # default for learning rates without a schedule


def steps(times: Sequence[float] | np.ndarray, N: int) -> np.ndarray:
    """Return the numbers of steps at the recorded times, N t rounded to integers.

    >>> steps([0.01, 0.5, 1], N=20)
    array([ 0, 10, 20])
    """
    return np.rint(np.asarray(times) * N).astype(np.int64)


def steps_problems(t: float, N: float) -> Iterator[Problem]:
    """Find a time with more steps, t N, than an integer can count.

    >>> list(steps_problems(10, 100)), list(steps_problems(1e10, 1e9))
    ([], [(('t',), 't N = 1e+10 N exceeds 2^62 steps')])
    """
    if t * N >= MAX_STEPS:
        yield ("t",), f"t N = {t:g} N exceeds 2^62 steps"


def rate_problems(name: str, rate: float, N: float) -> Iterator[Problem]:
    """Find a rate of drift or decay so large that one step would subtract more than 100 %.

    >>> list(rate_problems("decay", 5, 4))
    [(('decay',), 'decay = 5 is too large for N = 4: 1 - decay/N would be negative')]
    """
    if rate > N:
        yield (name,), f"{name} = {rate:g} is too large for N = {N}: 1 - {name}/N would be negative"


def annealing_problems(schedule: object, annealing: object) -> Iterator[Problem]:
    """Find an annealing given for a learning rate without a schedule.

    >>> list(annealing_problems(None, "exponential"))
    [(('annealing',), 'a learning rate without `schedule: {t0: time}` does not fall')]
    """
    if schedule is None and annealing != CONSTANT:
        yield ("annealing",), "a learning rate without `schedule: {t0: time}` does not fall"
