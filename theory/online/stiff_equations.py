"""Integration of stiff order-parameter equations in modes, for one cell.

The rates of modes differ as much as their variances, so that the fastest mode limits the step of an explicit method.
SciPy's LSODA switches to backward differences where the equations become stiff. The integration variable is ln(1 + t),
because overlaps approach their limits as powers of t: for a perceptron with two modes this takes a third of the steps
and has a hundredth of the error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from statmech.errors import DivergedStudentError, SolverError
from statmech.numerics.accuracy import is_chart_accuracy_active

RTOL = 1e-11  # at 1e-10 the Adams method may stay at low order and take more steps
LOG_LENGTH_CLIP = 300.0  # harmless: rules with diverging lengths have the same rates at any length
MAX_LOG_LENGTH = 700.0  # for larger |log l|, l or 1/l overflows
CHART_TOLERANCE_FACTOR = 1e7  # saves two thirds of the evaluations
MAX_STEPS = 1_000_000
ODEINT_SUCCESS_MESSAGE = "Integration successful."

RateFunction = Callable[
    [float, np.ndarray], np.ndarray
]  # from a time and a state (n,) to rates (n,) or a Jacobian (n, n)


def integrate_stiff_equations(
    rates: RateFunction,
    start: np.ndarray,
    times: np.ndarray,
    atol: np.ndarray,
    cell_description: str,
    jacobian: RateFunction | None = None,
) -> np.ndarray:
    """Integrate stiff equations, and return the state vectors (T, n) at the given times.

    Raises `SolverError` if the integration stops early.

    Parameters
    ----------
    rates
        The rates.
    start
        The state at t = 0 (n,).
    times
        Increasing times (T,).
    atol
        Absolute tolerances (n,).
    cell_description
        Description of the cell for the error message.
    jacobian
        The Jacobian of the rates, or None for finite differences.
    """
    from scipy.integrate import ODEintWarning, odeint  # imported late: not needed for isotropic inputs

    last, tolerance_factor = times[-1], CHART_TOLERANCE_FACTOR if is_chart_accuracy_active() else 1.0

    def with_log_time(function: RateFunction) -> RateFunction:
        return lambda log_time, values: np.exp(log_time) * function(np.expm1(log_time), values)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ODEintWarning)  # the error raised below says the same
        values, report = odeint(
            with_log_time(rates),
            start,
            [0.0, *np.log1p(times[times > 0])],
            Dfun=with_log_time(jacobian) if jacobian else None,
            tfirst=True,
            rtol=tolerance_factor * RTOL,
            atol=tolerance_factor * atol,
            mxstep=MAX_STEPS,
            full_output=True,
        ) if last > 0 else (start[None], {"message": ODEINT_SUCCESS_MESSAGE})  # fmt: skip
    if report["message"] != ODEINT_SUCCESS_MESSAGE or not np.isfinite(values).all():
        raise SolverError(f"the order-parameter equations of {cell_description} stop before t = {last:g}")
    return np.concatenate([np.repeat(values[:1], np.sum(times == 0), axis=0), values[1:]])


def compute_clipped_length(log_length: np.ndarray) -> np.ndarray:
    """Return lengths, clipped to the floating-point range."""
    return np.exp(
        np.minimum(np.maximum(log_length, -LOG_LENGTH_CLIP), LOG_LENGTH_CLIP)
    )  # several times as fast as np.clip


def check_length_overflow(log_length: np.ndarray, cell_description: str) -> None:
    """Raise `DivergedStudentError` if a length leaves the floating-point range."""
    if np.any(np.abs(log_length) > MAX_LOG_LENGTH):
        bounds = f"{np.exp(-MAX_LOG_LENGTH):.0e} to {np.exp(MAX_LOG_LENGTH):.0e}"
        raise DivergedStudentError(f"{cell_description} has diverged: a student's length left {bounds}")
