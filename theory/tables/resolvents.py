r"""The resolvent of a table: averages over the covariance of a population, estimated from a sample of n rows.

The eigenvalues of a sample covariance are more spread than the eigenvalues of the population covariance. Let
:math:`\omega_a` be the eigenvalues of N times the population covariance. Theory of a learner with an l2 penalty depends
on them only by functions of one number k > 0, such as

.. math:: \varphi(k) = \sum_a\nu_a\frac{\omega_a}{\omega_a + k},

and these follow from the sample at another penalty strength z. With the eigenvalues :math:`s_i` of :math:`Z^TZ`, for
centred rows Z with n' degrees of freedom,

.. math:: \mathrm{df}(z) = \sum_i\frac{s_i}{s_i + z} = N\varphi(k), \qquad k = \frac{Nz}{n' - \mathrm{df}(z)} .

(The relation is that of generalised cross-validation: Golub, Heath & Wahba 1979; for kernels and real data Jacot,
Simsek, Spadaro, Hongler & Gabriel 2020, Wei, Hu & Steinhardt 2022.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

MAX_PENALTY_NEWTON_STEPS = 200  # Newton's method converges from above
SAMPLE_PENALTY_REL_TOL = 1e-14  # relative change of z in the last step


@dataclass(frozen=True, eq=False)
class Resolvent:
    """Resolvent of a table: nonzero eigenvalues s (r,) of its centred rows, degrees of freedom, and columns."""

    eigenvalues: np.ndarray
    degrees_of_freedom: int
    num_columns: int

    def effective_directions(self, z: np.ndarray) -> np.ndarray:
        """Return the effective number of directions df at each z (batch,)."""
        s = self.eigenvalues[:, None]
        return np.sum(s / (s + z), axis=0)

    def effective_directions_slope(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative of df with respect to z."""
        s = self.eigenvalues[:, None]
        return -np.sum(s / (s + z) ** 2, axis=0)

    def remaining_degrees(self, z: np.ndarray) -> np.ndarray:
        """Return the degrees of freedom minus df, without cancellation."""
        s = self.eigenvalues[:, None]
        return self.degrees_of_freedom - len(s) + np.sum(z / (s + z), axis=0)

    def population_penalty(self, z: np.ndarray) -> np.ndarray:
        """Return the penalty strength k of the population at each z of the sample."""
        return self.num_columns * z / self.remaining_degrees(z)

    def population_penalty_slope(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative of k with respect to z."""
        s = self.eigenvalues[:, None]
        rise = self.degrees_of_freedom - len(s) + np.sum((z / (s + z)) ** 2, axis=0)
        return self.num_columns * rise / self.remaining_degrees(z) ** 2

    @cached_property
    def min_population_penalty(self) -> float:
        """Smallest k that the table determines: 0 if it has more rows than columns, otherwise k at z = 0."""
        if len(self.eigenvalues) < self.degrees_of_freedom:
            return 0.0
        return float(self.num_columns / np.sum(1 / self.eigenvalues))

    def sample_penalty(self, k: np.ndarray) -> np.ndarray:
        """Return the penalty strength z of the sample at each k of the population (batch,).

        Newton's method finds the root of the convex function :math:`Nz/k + \\mathrm{df}(z) - n'` from above. The result
        is NaN for k up to `min_population_penalty`.
        """
        z = np.where(k > self.min_population_penalty, k * self.degrees_of_freedom / self.num_columns, np.nan)
        for _ in range(MAX_PENALTY_NEWTON_STEPS):
            step = (self.num_columns * z / k + self.effective_directions(z) - self.degrees_of_freedom) / (
                self.num_columns / k + self.effective_directions_slope(z)
            )
            z = z - step
            if not np.any(np.abs(step) > SAMPLE_PENALTY_REL_TOL * z):
                break
        return z
