r"""Escape times of two student units that learn from two teacher units, and runs aligned at the escape.

The quantity

.. math:: u = \tfrac12(R_{11} + R_{22} - R_{12} - R_{21})

vanishes on the symmetric plateau. Its sign determines the assignment of student units to teacher units. A run escapes
when :math:`|u|` first reaches `ESCAPE_ASYMMETRY_THRESHOLD`.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from statmech.errors import ConfigError

ESCAPE_ASYMMETRY_THRESHOLD = 0.25  # value of |u| at the escape


def compute_overlap_asymmetry(dataset: xr.Dataset) -> xr.DataArray:
    """Compute the asymmetry u of the overlaps, which vanishes on the plateau."""
    R = dataset.R
    same = R.isel(student=0, teacher_unit=0) + R.isel(student=1, teacher_unit=1)
    crossed = R.isel(student=0, teacher_unit=1) + R.isel(student=1, teacher_unit=0)
    u: xr.DataArray = (same - crossed) / 2
    return u


def find_escape_times(dataset: xr.Dataset) -> np.ndarray:
    """Find the escape time of each run (..., seed), by interpolation between recorded times.

    The time is NaN for a run that does not escape.
    """
    u = abs(compute_overlap_asymmetry(dataset)).transpose(..., "t").values
    t = dataset.t.values
    first_index = np.argmax(u >= ESCAPE_ASYMMETRY_THRESHOLD, axis=-1)  # 0 for runs that do not escape
    late, early = (np.take_along_axis(u, np.maximum(first_index - k, 0)[..., None], -1)[..., 0] for k in (0, 1))
    growing = (first_index > 0) & (early > 0)
    late, early = np.where(growing, late, 2.0), np.where(growing, early, 1.0)
    fraction = np.log(ESCAPE_ASYMMETRY_THRESHOLD / early) / np.log(late / early)  # u grows exponentially
    t_before = t[np.maximum(first_index - 1, 0)]
    return np.where(growing, t_before + fraction * (t[first_index] - t_before), np.nan)


def split_own_and_other_overlaps(dataset: xr.Dataset) -> xr.Dataset:
    """Return eps_g, the specialisation, and overlaps with own units and with other units.

    A student unit finally specialises on its own teacher unit.
    """
    R, Q, u = dataset.R, dataset.Q, compute_overlap_asymmetry(dataset)
    same = (R.isel(student=0, teacher_unit=0) + R.isel(student=1, teacher_unit=1)) / 2
    crossed = (R.isel(student=0, teacher_unit=1) + R.isel(student=1, teacher_unit=0)) / 2
    final = u.isel(t=-1)
    parts = {
        "eps_g": dataset.eps_g,
        "specialisation": dataset.specialisation,
        "R_own": xr.where(final > 0, same, crossed),
        "R_other": xr.where(final > 0, crossed, same),
        "Q_own": (Q.isel(student=0, other=0) + Q.isel(student=1, other=1)) / 2,
        "Q_other": Q.isel(student=0, other=1),
        "R": R,
    }
    return xr.Dataset(
        {
            name: part.drop_vars(("student", "teacher_unit", "other"), errors="ignore") if name != "R" else part
            for name, part in parts.items()
        }
    )


def align_runs_at_escape(dataset: xr.Dataset, times_since_escape: np.ndarray) -> xr.Dataset:
    """Interpolate escaping runs at times relative to their escape.

    Values are NaN at times that were not recorded.
    """
    from scipy.interpolate import CubicSpline  # imported late: an overlay of few times needs no splines

    times, t = find_escape_times(dataset), dataset.t.values
    if not np.isfinite(times).any():
        raise ConfigError(f"no run has left the plateau by t = {t[-1]:g}")
    runs = dataset.drop_vars("R").isel(seed=np.isfinite(times))
    run_times = times[np.isfinite(times)][:, None] + times_since_escape
    is_recorded = (t[0] <= run_times) & (run_times <= t[-1])
    variables = {}
    for name, values in runs.items():
        splines = [CubicSpline(t, run) for run in values.transpose("seed", "t").values]
        interpolated = np.stack([spline(spline_times) for spline, spline_times in zip(splines, run_times, strict=True)])
        variables[name] = (("seed", "since"), np.where(is_recorded, interpolated, np.nan))
    return xr.Dataset(variables, {"since": times_since_escape})
