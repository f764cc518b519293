r"""The resolvent of a table: the averages over the covariance of its population, from n rows that are a sample of it.

The covariance of a sample is not that of its population: its eigenvalues are spread. Theory of a learner with an l2
penalty needs of the population, of eigenvalues :math:`\omega_a` of N times its covariance, only functions of one number
k > 0, as

.. math:: \varphi(k) = \sum_a\nu_a\frac{\omega_a}{\omega_a + k},

and these follow from the sample at another strength z of its own penalty. With the eigenvalues :math:`s_i` of
:math:`Z^TZ`, of centred rows Z with n' degrees of freedom,

.. math:: \mathrm{df}(z) = \sum_i\frac{s_i}{s_i + z} = N\varphi(k), \qquad k = \frac{Nz}{n' - \mathrm{df}(z)} .

(The relation is that of generalised cross-validation: Golub, Heath & Wahba 1979; for kernels and real data Jacot,
Simsek, Spadaro, Hongler & Gabriel 2020, Wei, Hu & Steinhardt 2022.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

SWEEPS = 200  # of Newton's method, which converges from above
CLOSE = 1e-14  # relative change of z in its last step


@dataclass(frozen=True, eq=False)
class Resolvent:
    """Eigenvalues s (r,) of a table's centred rows, all that are not 0, its degrees of freedom and its columns."""

    eigenvalues: np.ndarray
    degrees: int
    columns: int

    def effective(self, z: np.ndarray) -> np.ndarray:
        """The effective number df of directions at each z (lanes,)."""
        s = self.eigenvalues[:, None]
        return np.sum(s / (s + z), axis=0)

    def effective_slope(self, z: np.ndarray) -> np.ndarray:
        """The derivative of df by z."""
        s = self.eigenvalues[:, None]
        return -np.sum(s / (s + z) ** 2, axis=0)

    def left(self, z: np.ndarray) -> np.ndarray:
        """Return the degrees of freedom that df leaves, without loss of digits where df comes close to all."""
        s = self.eigenvalues[:, None]
        return self.degrees - len(s) + np.sum(z / (s + z), axis=0)

    def population(self, z: np.ndarray) -> np.ndarray:
        """The k of the population at each z."""
        return self.columns * z / self.left(z)

    def population_slope(self, z: np.ndarray) -> np.ndarray:
        """The derivative of k by z."""
        s = self.eigenvalues[:, None]
        rise = self.degrees - len(s) + np.sum((z / (s + z)) ** 2, axis=0)
        return self.columns * rise / self.left(z) ** 2

    @cached_property
    def least(self) -> float:
        """The least k that the table knows: 0 if it has more rows than columns, else that of z = 0."""
        if len(self.eigenvalues) < self.degrees:
            return 0.0
        return float(self.columns / np.sum(1 / self.eigenvalues))

    def sample(self, k: np.ndarray) -> np.ndarray:
        """The z of the sample at each k of the population (lanes,); NaN up to `least`.

        The root of :math:`Nz/k + \\mathrm{df}(z) - n'`, which is convex, by Newton's method from above.
        """
        z = np.where(k > self.least, k * self.degrees / self.columns, np.nan)
        for _ in range(SWEEPS):
            step = (self.columns * z / k + self.effective(z) - self.degrees) / (
                self.columns / k + self.effective_slope(z)
            )
            z = z - step
            if not np.any(np.abs(step) > CLOSE * z):
                break
        return z
