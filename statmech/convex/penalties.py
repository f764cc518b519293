r"""Penalties :math:`r(\mathbf w) = \lambda\,(s\,|\mathbf w|_1 + \tfrac{1-s}2\,|\mathbf w|^2)` on the weights.

l2 (ridge) has s = 0, l1 (lasso) s = 1, and the elastic net any s in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

Strength = TypeVar("Strength", float, np.ndarray)


@dataclass(frozen=True)
class Penalty:
    """An elastic-net penalty: a fraction `share` of its strength multiplies the l1 norm."""

    share: float = 0.0
    label: ClassVar[str] = "elastic net"

    def split_strength(self, lam: Strength) -> tuple[Strength, Strength]:
        r"""Return the strengths of the l1 and l2 terms.

        They are the factors :math:`\lambda s` of :math:`|\mathbf w|_1` and :math:`\lambda(1-s)` of
        :math:`|\mathbf w|^2/2`.

        Parameters
        ----------
        lam : array or float
            The strength of the penalty.

        Returns
        -------
        l1, l2 : arrays or floats
            Factors of the same shape.

        Examples
        --------
        >>> Penalty(0.25).split_strength(2.0)
        (0.5, 1.5)
        """
        return lam * self.share, lam * (1 - self.share)

    def value(self, w: np.ndarray, lam: float) -> np.ndarray:
        """Return the penalty of the weights.

        Parameters
        ----------
        w : array (..., N)
            Weights.
        lam : float
            The strength of the penalty.

        Returns
        -------
        array (...)

        Examples
        --------
        >>> float(Penalty(0.5).value(np.array([3.0, -1.0]), lam=1.0))
        4.5
        """
        l1, l2 = self.split_strength(lam)
        return l1 * np.abs(w).sum(axis=-1) + 0.5 * l2 * (w * w).sum(axis=-1)

    def prox(self, w: np.ndarray, lam: float, step: np.ndarray | float) -> np.ndarray:
        r"""Return the proximal point of each weight, :math:`\mathrm{argmin}_u\, (u-w)^2/2 + \eta\,r(u)`.

        .. math:: u = \mathrm{sgn}(w)\,\frac{\max(0, |w| - \eta\lambda s)}{1 + \eta\lambda(1-s)}

        Parameters
        ----------
        w : array
            Weights.
        lam : float
            The strength of the penalty.
        step : array or float
            The step :math:`\eta`; it broadcasts with the weights.

        Returns
        -------
        array
            Proximal points of the broadcast shape: exactly 0 where the l1 norm fixes a weight at 0.

        Examples
        --------
        >>> Penalty(1.0).prox(np.array([-2.0, 0.3]), lam=1.0, step=0.5)
        array([-1.5,  0. ])
        """
        l1, l2 = self.split_strength(lam)
        return np.sign(w) * np.maximum(np.abs(w) - step * l1, 0.0) / (1 + step * l2)


L1_FRACTIONS_BY_PENALTY: dict[str, float | None] = {  # the fraction s, or None if a config key sets it
    "l2": 0.0,
    "l1": 1.0,
    "elastic_net": None,
}
