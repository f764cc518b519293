r"""Theory's prediction of the mean and standard deviation of a run at finite N, to order 1/N.

In addition to a variable's value in the limit N -> infinity, a theory with `corrections: true` has the bias at this N
(`NAME_bias`) and the standard deviation of one run (`NAME_std`). Figures and comparisons use `predict_mean_and_std`.

**Where the next order is small** (`find_resolved_std_mask`). The standard deviation s has relative errors of order 1/N.
Three errors can be estimated from the bias b and the scale x of a variable's fluctuations: x is the value itself for a
length or an error, and 1 - abs(R) for a cosine.

- Where the term of order :math:`1/\sqrt N` is small or vanishes, the next term has a spread equal to its mean, b: the
  variance is :math:`s^2 + b^2`, and s is too small by :math:`b^2/2s^2`. All students of an AdaTron with label noise
  reach the length eta/2. Predicted and simulated standard deviations of its length at N = 100 and 400, under a drift of
  0.3: :math:`\sqrt{1 + b^2/s^2}` = 1.35 and 1.10, observed 1.34 and 1.09.
- Fluctuations multiply x (the equations use log l and log theta), so that s grows or shrinks with the mean, by b/x. The
  length of a textbook AdaTron that forgets (`decay: 5`): 1 + b/x = 0.87 and 0.74, observed 0.88 and 0.77.
- The exponential of a Gaussian of variance :math:`s^2/x^2` has a standard deviation larger by :math:`s^2/4x^2`.

A value is judged where each error is at most 1/8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statmech.scenarios.variables import BIAS_SUFFIX, STANDARD_ERROR_SUFFIX, STD_SUFFIX

if TYPE_CHECKING:
    import xarray as xr

MAX_NEXT_ORDER_RATIO = 1 / 8  # limit for each of the three relative errors above
COSINE_VARIABLES = ("R", "q")
STD_ROUNDING_TOL = 1e-9  # relative to the mean: with a smaller spread, all runs have the same value


def predict_mean_and_std(theory: xr.Dataset, name: str) -> tuple[xr.DataArray, xr.DataArray | None]:
    r"""Return the mean and the standard deviation that theory predicts for a variable in one run.

    .. math:: \langle x\rangle = x_\infty + \mathrm{bias} + O(N^{-2})

    Parameters
    ----------
    theory
        A dataset from `theory.solve`, with or without corrections.
    name
        A variable of this theory.

    Returns
    -------
    mean : xarray.DataArray
        The value plus its bias; the value alone if theory has no bias for it.
    std : xarray.DataArray or None
        The standard deviation of one run; None if theory does not predict it.

    Examples
    --------
    >>> from statmech import Scenario
    >>> from theory import solve
    >>> scenario = Scenario(rule="hebb", N=100, t=[0, 10], corrections=True)
    >>> mean, std = predict_mean_and_std(solve(scenario), "eps_g")
    >>> mean.values.ravel().round(4), std.values.ravel().round(4)
    (array([0.5   , 0.1245]), array([0.0318, 0.0085]))
    >>> predict_mean_and_std(solve(Scenario(rule="hebb", t=[10])), "eps_g")[1] is None
    True
    """
    mean = theory[name] + theory[name + BIAS_SUFFIX] if name + BIAS_SUFFIX in theory else theory[name]
    return mean, theory.get(name + STD_SUFFIX)


def has_bias_and_std(theory: xr.Dataset, name: str) -> bool:
    """Return True if theory has both the bias and the standard deviation of a variable.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> has_bias_and_std(solve(Scenario(rule="hebb", t=[1], corrections=True)), "R")
    True
    """
    return name + BIAS_SUFFIX in theory and name + STD_SUFFIX in theory


def get_theory_standard_error(theory: xr.Dataset, name: str) -> xr.DataArray | float:
    """Return the standard error of theory's own value of a variable, 0 if theory is exact.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> get_theory_standard_error(solve(Scenario(rule="hebb", t=[1])), "R")
    0.0
    """
    return theory.get(name + STANDARD_ERROR_SUFFIX, 0.0)


def find_resolved_std_mask(theory: xr.Dataset, name: str) -> xr.DataArray:
    """Return True where a variable's standard deviation is nonzero and the next order in 1/N is small.

    With a given start, the standard deviation is zero except for rounding. At all other points where this is False,
    theory and simulation cannot be compared.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], corrections=True)
    >>> find_resolved_std_mask(solve(noisy), "length").values.ravel()
    array([ True, False])
    """
    mean, std = predict_mean_and_std(theory, name)
    assert std is not None
    bias, value = np.abs(theory[name + BIAS_SUFFIX]), np.abs(theory[name])
    scale = 1 - value if name in COSINE_VARIABLES else value
    is_small = (
        (bias**2 <= 2 * MAX_NEXT_ORDER_RATIO * std**2)
        & (bias <= MAX_NEXT_ORDER_RATIO * scale)
        & (std**2 <= 4 * MAX_NEXT_ORDER_RATIO * scale**2)
    )
    return (std > STD_ROUNDING_TOL * np.abs(mean)) & is_small


def find_unresolved_std_mask(theory: xr.Dataset, name: str) -> xr.DataArray:
    """Return True where the expansion in 1/N does not resolve a variable's standard deviation.

    Without a bias, this is False everywhere.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], corrections=True)
    >>> find_unresolved_std_mask(solve(noisy), "length").values.ravel()
    array([False,  True])
    """
    spreads = theory[name + STD_SUFFIX] > 0
    return spreads & ~find_resolved_std_mask(theory, name) if has_bias_and_std(theory, name) else spreads & False
