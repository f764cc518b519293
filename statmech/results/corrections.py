"""What theory predicts of a run at finite N: its mean, and its standard deviation, to order 1/N.

A theory with `corrections: true` holds, beside a variable's value in the limit N -> infinity, its bias at this N
(`NAME_bias`) and the standard deviation of one run (`NAME_std`). All that draws or compares asks `predicted`.

The terms that are left out are of order 1/N in the standard deviation. Where the 1/sqrt(N) that is kept vanishes, as
that of the length of an AdaTron with label noise does (all students reach eta/2), or where the bias is as large, as for
an AdaTron with a learning rate close to 3, the expansion says nothing of the spread (`resolved`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statmech.scenarios.variables import BIAS, STD

if TYPE_CHECKING:
    import xarray as xr

LARGEST = 0.5  # bias over standard deviation up to which the terms of the next order are taken to be small
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


def resolved(theory: xr.Dataset, name: str) -> xr.DataArray:
    """Where the standard deviation of a variable exceeds twice its bias, and is not zero but for rounding.

    At a given start it is zero. Elsewhere the next order is as large where this is false, so nothing can be judged.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], corrections=True)
    >>> resolved(solve(noisy), "length").values.ravel()
    array([ True, False])
    """
    mean, std = predicted(theory, name)
    assert std is not None
    return (std > ROUNDING * np.abs(mean)) & (np.abs(theory[name + BIAS]) <= LARGEST * std)


def unresolved(theory: xr.Dataset, name: str) -> xr.DataArray:
    """Where a variable has a standard deviation that the expansion does not resolve; nowhere if it has no bias.

    >>> from statmech import Scenario
    >>> from theory import solve
    >>> noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 20], corrections=True)
    >>> unresolved(solve(noisy), "length").values.ravel()
    array([False,  True])
    """
    spreads = theory[name + STD] > 0
    return spreads & ~resolved(theory, name) if fully(theory, name) else spreads & False
