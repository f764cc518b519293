r"""Predictions of theory for a run at finite N: its mean and its standard deviation, to order 1/N.

A theory with `corrections: true` holds, beside a variable's value in the limit N -> infinity, its bias at this N
(`NAME_bias`) and the standard deviation of one run (`NAME_std`). All that draws or compares asks `predicted`.

**Where the next order is small** (`resolved`). The standard deviation s has relative errors of order 1/N. Three of them
follow from what the theory has, with the bias b and the scale x that a variable fluctuates on: the value itself of a
length or an error, 1 - abs(R) of a cosine.

- Where the term of order :math:`1/\sqrt N` is small or vanishes, the spread of the next is that of its mean, b: the
  variance is :math:`s^2 + b^2`, and s too small by :math:`b^2/2s^2`. All students of an AdaTron with label noise reach
  the length eta/2. Predicted and simulated standard deviations of its length at N = 100 and 400, under a drift of 0.3:
  :math:`\sqrt{1 + b^2/s^2}` = 1.35 and 1.10, seen 1.34 and 1.09.
- Fluctuations multiply x (students are followed in log l and log theta), so that s grows or shrinks with the mean, by
  b/x. The length of a textbook AdaTron that forgets (`decay: 5`): 1 + b/x = 0.87 and 0.74, seen 0.88 and 0.77.
- The exponential of a Gaussian of variance :math:`s^2/x^2` has a standard deviation larger by :math:`s^2/4x^2`.

A value is judged where each is at most 1/8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statmech.scenarios.variables import BIAS, ERROR, STD

if TYPE_CHECKING:
    import xarray as xr

NEXT = 1 / 8  # of the standard deviation, by each of the terms of the next order
COSINES = ("R", "q")
ROUNDING = 1e-9  # of values that every run has in common


def predicted(theory: xr.Dataset, name: str) -> tuple[xr.DataArray, xr.DataArray | None]:
    r"""The mean and the standard deviation of one run that theory predicts of a variable.

    .. math:: \langle x\rangle = x_\infty + \mathrm{bias} + O(N^{-2})

    Parameters
    ----------
    theory
        What `theory.solve` returns, with or without corrections.
    name
        One of its variables.

    Returns
    -------
    mean : xarray.DataArray
        The value plus its bias; the value alone where theory has no bias of it.
    std : xarray.DataArray or None
        The standard deviation of one run; None where theory has none.

    Examples
    --------
    >>> from statmech import Scenario
    >>> from theory import solve
    >>> scenario = Scenario(rule="hebb", N=100, t=[0, 10], corrections=True)
    >>> mean, std = predicted(solve(scenario), "eps_g")
    >>> mean.values.ravel().round(4), std.values.ravel().round(4)
    (array([0.5   , 0.1245]), array([0.0318, 0.0085]))
    >>> predicted(solve(Scenario(rule="hebb", t=[10])), "eps_g")[1] is None
    True
    """
    mean = theory[name] + theory[name + BIAS] if name + BIAS in theory else theory[name]
    return mean, theory.get(name + STD)


def fully(theory: xr.Dataset, name: str) -> bool:
    """True if theory has both the bias and the standard deviation of a variable.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> fully(solve(Scenario(rule="hebb", t=[1], corrections=True)), "R")
    True
    """
    return name + BIAS in theory and name + STD in theory


def error(theory: xr.Dataset, name: str) -> xr.DataArray | float:
    """The standard error of theory's own value of a variable; 0 where it states none.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> error(solve(Scenario(rule="hebb", t=[1])), "R")
    0.0
    """
    return theory.get(name + ERROR, 0.0)


def resolved(theory: xr.Dataset, name: str) -> xr.DataArray:
    """Return True where a variable's standard deviation is not zero and the terms of the next order in 1/N are small.

    At a given start the deviation is zero but for rounding. Elsewhere nothing can be judged where this is false.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], corrections=True)
    >>> resolved(solve(noisy), "length").values.ravel()
    array([ True, False])
    """
    mean, std = predicted(theory, name)
    assert std is not None
    bias, value = np.abs(theory[name + BIAS]), np.abs(theory[name])
    scale = 1 - value if name in COSINES else value
    small = (bias**2 <= 2 * NEXT * std**2) & (bias <= NEXT * scale) & (std**2 <= 4 * NEXT * scale**2)
    return (std > ROUNDING * np.abs(mean)) & small


def unresolved(theory: xr.Dataset, name: str) -> xr.DataArray:
    """Return True where the expansion does not resolve a variable's standard deviation; nowhere if it has no bias.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], corrections=True)
    >>> unresolved(solve(noisy), "length").values.ravel()
    array([False,  True])
    """
    spreads = theory[name + STD] > 0
    return spreads & ~resolved(theory, name) if fully(theory, name) else spreads & False
