"""The steps of a stream of examples, and problems with them: how many there are, and what one changes by 1/N."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.errors import Problem

MAX_STEPS = 2**62
CONSTANT = "hyperbolic"  # the annealing of a learning rate without a schedule, which does not fall


def steps(times: Sequence[float] | np.ndarray, N: int) -> np.ndarray:
    """The whole numbers of steps after which order parameters are recorded, those nearest to N t.

    >>> steps([0.01, 0.5, 1], N=20)
    array([ 0, 10, 20])
    """
    return np.rint(np.asarray(times) * N).astype(np.int64)


def steps_problems(t: float, N: float) -> Iterator[Problem]:
    """More steps, t N, than an integer counts.

    >>> list(steps_problems(10, 100)), list(steps_problems(1e10, 1e9))
    ([], [(('t',), 't N = 1e+10 N exceeds 2^62 steps')])
    """
    if t * N >= MAX_STEPS:
        yield ("t",), f"t N = {t:g} N exceeds 2^62 steps"


def rate_problems(name: str, rate: float, N: float) -> Iterator[Problem]:
    """A rate of drift or decay of which one step would take more than all.

    >>> list(rate_problems("decay", 5, 4))
    [(('decay',), 'decay = 5 is too large for N = 4: 1 - decay/N would be negative')]
    """
    if rate > N:
        yield (name,), f"{name} = {rate:g} is too large for N = {N}: 1 - {name}/N would be negative"


def annealing_problems(schedule: object, annealing: object) -> Iterator[Problem]:
    """A way to fall of a learning rate that has no schedule.

    >>> list(annealing_problems(None, "exponential"))
    [(('annealing',), 'a learning rate without `schedule: {t0: time}` does not fall')]
    """
    if schedule is None and annealing != CONSTANT:
        yield ("annealing",), "a learning rate without `schedule: {t0: time}` does not fall"
