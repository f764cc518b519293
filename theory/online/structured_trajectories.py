"""The trajectories of students of inputs of unequal variance: each cell's equations, one after the other.

Rates of modes differ by as much as their variances, and so does what a step of an explicit method allows: SciPy's LSODA
turns to backward differences where the equations become stiff.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np

from statmech.errors import DivergedError, SolverError
from statmech.modes import condensed
from statmech.runtime.forks import check_fork
from statmech.scenarios.online import OnlineCell
from theory.online.equations import Students
from theory.online.structured import Equations
from theory.online.structured_jacobian import jacobian

RTOL = 1e-10
ATOL = 1e-12  # at early times; angles fall as 1/t at most
LAST = 700.0  # log l beyond which l itself, or 1/l, overflows
MAX_STEPS = 1_000_000
COMPLETED = "Integration successful."


class Metrics(NamedTuple):
    """Students at each time, by the products of their weights and by the covariances of their fields."""

    weights: Students
    fields: Students


def solve_cells(cells: Iterable[OnlineCell], times: Iterable[float]) -> list[Metrics]:
    """The students of each cell at each time, arrays with a leading axis of times.

    Raises `SolverError` if the integration stops early, `DivergedError` for lengths beyond floating point numbers.
    """
    check_fork()
    with jax.enable_x64(True):
        return [_solve(cell, np.asarray(list(times), float)) for cell in cells]


def _solve(cell: OnlineCell, times: np.ndarray) -> Metrics:
    modes = cell.inputs.modes(cell.N)
    assert modes is not None  # or the scenario would be unsolved
    equations = Equations(cell, condensed(modes))
    found = [equations.students_at(t, row) for t, row in zip(times, _integrated(equations, times), strict=True)]
    solved = Metrics(*(Students(*map(np.stack, zip(*each, strict=True))) for each in zip(*found, strict=True)))
    if np.any(np.abs(solved.weights.log_length) > LAST):
        bounds = f"{np.exp(-LAST):.0e} to {np.exp(LAST):.0e}"
        raise DivergedError(f"{cell.described} has diverged: a student's length left {bounds}")
    return solved


def _integrated(equations: Equations, times: np.ndarray) -> np.ndarray:
    """The state's vectors (T, n) at these times."""
    from scipy.integrate import ODEintWarning, odeint  # here: online learning from isotropic inputs does not need it

    last, start = times[-1], equations.packed(equations.start)
    alone = equations.students == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ODEintWarning)  # the message says the same
        values, report = odeint(
            equations.rates,
            start,
            [0.0, *times[times > 0]],
            Dfun=(lambda t, values: jacobian(equations, t, values)) if alone else None,
            tfirst=True,
            rtol=RTOL,
            atol=_atol(equations, last),
            mxstep=MAX_STEPS,
            full_output=True,
        ) if last > 0 else (start[None], {"message": COMPLETED})  # fmt: skip
    if report["message"] != COMPLETED or not np.isfinite(values).all():
        described = equations.cell.described
        raise SolverError(f"the order-parameter equations of {described} stop before t = {last:g}")
    return np.concatenate([np.repeat(values[:1], np.sum(times == 0), axis=0), values[1:]])


def _atol(equations: Equations, last: float) -> np.ndarray:
    """Absolute tolerances (n,), so small that angles are right to a relative one until the last time."""
    smallest = 1 / (1 + last)
    start = equations.start
    delta, across = (
        np.full(start.delta.shape, smallest),
        np.broadcast_to(smallest**2 * equations.share, start.delta.shape),
    )
    between = np.broadcast_to(smallest**2 * equations.share, start.between.shape)
    return ATOL * np.concatenate([np.ones(2 * equations.students), *map(np.ravel, (delta, across, between))])
