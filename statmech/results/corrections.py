"""What theory predicts of a run at finite N: its mean, and its standard deviation, to order 1/N.

A theory with `corrections: true` holds, beside a variable's value in the limit N -> infinity, its bias at this N
(`NAME_bias`) and the standard deviation of one run (`NAME_std`). All that draws or compares asks `predicted`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statmech.scenarios.variables import BIAS, STD

if TYPE_CHECKING:
    import xarray as xr


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
