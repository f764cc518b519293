r"""Penalties :math:`\lambda\,(s\,|\mathbf w|_1 + \tfrac{1-s}2\,|\mathbf w|^2)`, s the share of the l1 norm.

l2 (ridge) has s = 0, l1 (lasso) s = 1, and the elastic net any share between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class Penalty:
    """A penalty with a share of the l1 norm."""

    share: float = 0.0
    label: ClassVar[str] = "elastic net"

    def parts(self, lam: np.ndarray | float) -> tuple[np.ndarray | float, np.ndarray | float]:
        """The factors of |w|_1 and of |w|^2/2.

        >>> Penalty(0.25).parts(2.0)
        (0.5, 1.5)
        """
        return lam * self.share, lam * (1 - self.share)

    def value(self, w: np.ndarray, lam: float) -> np.ndarray:
        """The penalty of weights (..., N)."""
        l1, l2 = self.parts(lam)
        return l1 * np.abs(w).sum(axis=-1) + 0.5 * l2 * (w * w).sum(axis=-1)

    def prox(self, w: np.ndarray, lam: float, step: np.ndarray | float) -> np.ndarray:
        """The minimum over u of step * penalty(u) + (u - w)^2/2, for each weight."""
        l1, l2 = self.parts(lam)
        return np.sign(w) * np.maximum(np.abs(w) - step * l1, 0.0) / (1 + step * l2)


PENALTIES: dict[str, float | None] = {
    "l2": 0.0,
    "l1": 1.0,
    "elastic_net": None,
}  # the share of l1; None: a key states it
