r"""Upper bound on the number of mistakes before a perceptron classifies all examples correctly.

(Block 1962, Novikoff 1962.) Let a student :math:`\mathbf u` of length 1 have a margin :math:`\mathbf u\cdot\mathbf
z\ge\gamma>0` on all examples times labels z, and let :math:`|\mathbf z|\le R`. Starting at w = 0, every mistake adds a
z with :math:`\mathbf w\cdot\mathbf z\le 0`, so that after M mistakes

.. math:: \mathbf u\cdot\mathbf w \ge M\gamma, \qquad |\mathbf w|^2 \le M R^2, \qquad\text{so}\quad M \le (R/\gamma)^2

for any order of the examples. The largest margin gives the smallest bound. A bias is the weight of a constant input,
and counts in both u and z.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from statmech.errors import ScenarioError


def mistake_bound(radius: ArrayLike, margin: ArrayLike) -> np.ndarray:
    r"""Bound the number of a perceptron's mistakes by the convergence theorem of Block and Novikoff.

    .. math:: M \le (R/\gamma)^2

    With inputs of length :math:`\sqrt N` and a stability :math:`\kappa` the bound is :math:`N/\kappa^2`.

    Parameters
    ----------
    radius : array_like
        Length of the longest example.
    margin : array_like
        Margin of a student of unit length (`simulate.margin`). It broadcasts with `radius`.

    Returns
    -------
    array
        The bound, infinite where the margin is not positive.

    Raises
    ------
    ScenarioError
        For a negative radius.

    Examples
    --------
    >>> mistake_bound(1.0, [0.5, 0.1, -0.2])
    array([  4., 100.,  inf])
    """
    radius, margin = np.asarray(radius, float), np.asarray(margin, float)
    if not np.all(radius >= 0):
        raise ScenarioError([(("radius",), "must not be negative")])
    safe = np.where(margin > 0, margin, 1.0)
    bound: np.ndarray = np.where(margin > 0, (radius / safe) ** 2, np.inf)
    return bound
