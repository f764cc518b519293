r"""Averages over the steps of one unit on the sphere, and the coefficients that decide how it finds its teacher.

The cosine R of a student with its teacher is a Markov chain. With :math:`u = Rh + \sqrt{1-R^2}\,v` and the change f of
a step, its drift and variance per unit of t are

.. math:: A = \eta C - \tfrac12\eta^2RF + \tfrac{\eta^2}N\left[RF - \tfrac12RV - \sqrt{1-R^2}X\right], \qquad
          D = \tfrac{\eta^2}N\left[(1-R^2)V - C^2\right],

.. math:: C = \sqrt{1-R^2}\,\langle fv\rangle, \quad F = \langle f^2\rangle, \quad V = \langle f^2v^2\rangle, \quad
          X = \langle f^2vh\rangle,

up to terms of order :math:`1/N^2`. For labels and the correlation, f² does not depend on the label, so that V = F
and X = 0. At R = 0, :math:`C = C_kR^{k-1}`: k is the information exponent (Ben Arous, Gheissari & Jagannath 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statmech.students.sphere_units import HERMITE_NODES, LearningTask, make_field_rule

FIELD_NODES, NOISE_NODES = 64, 12
INTERPOLATION_NODES = 96


@dataclass(frozen=True)
class ChangeMoments:
    """Averages C, F, V and X of a step at cosines R (n,), each of shape (n,)."""

    C: np.ndarray
    F: np.ndarray
    V: np.ndarray
    X: np.ndarray


def compute_change_moments(task: LearningTask, R: np.ndarray) -> ChangeMoments:
    """Compute the averages of a step at cosines R (n,), with a squared input length of 1.

    >>> from statmech.students.label_teachers import make_wedge
    >>> from statmech.students.sphere_units import HermiteUnit
    >>> averages = compute_change_moments(LearningTask(HermiteUnit(3), make_wedge()), np.array([0.5]))
    >>> [round(float(part[0]), 6) for part in (averages.C, averages.F)]
    [0.254005, 3.0]
    """
    s = np.sqrt(1 - R * R)
    if task.teacher is None:
        f, h, v, weight = _tabulate_output_changes(task, R)
        moments = [(power @ weight) for power in (f * v, f * f, f * f * v * v, f * f * v * h)]
        return ChangeMoments(s * moments[0], *moments[1:])
    h, weight = make_field_rule(task.unit.kinks)
    averages = task.teacher.conditional_moments(h, R[:, None])
    C, F, V, X = (np.zeros(R.shape) for _ in range(4))
    for label in (1.0, -1.0):
        f = weight * task.compute_change(np.float64(label), h)
        square = f * task.compute_change(np.float64(label), h)
        clean, linear, squared = (label * (1 - 2 * task.flip) * average for average in averages)
        C += linear @ f / 2
        F += (1 + clean) @ square / 2
        V += (1 + squared) @ square / 2
        X += linear @ (square * h) / 2
    return ChangeMoments(s * C, F, V, X)


def _tabulate_output_changes(task: LearningTask, R: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return changes (n, m), fields h and v (m,) and weights (m,) on a grid, for outputs of a teacher unit."""
    noise_nodes = NOISE_NODES if task.noise else 1
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in (FIELD_NODES, HERMITE_NODES, noise_nodes)]
    h, v, noise = (grid.ravel() for grid in np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij"))
    weight = np.prod(np.meshgrid(*(weight / weight.sum() for _, weight in rules), indexing="ij"), axis=0).ravel()
    u = R[:, None] * h + np.sqrt(1 - R[:, None] ** 2) * v
    return task.compute_change(task.unit.both(u)[0] + task.noise * noise, h), h, v, weight


def compute_noise_at_zero(task: LearningTask) -> tuple[float, float]:
    """Compute the averages F and V of a step at R = 0."""
    moments = compute_change_moments(task, np.zeros(1))
    return float(moments.F[0]), float(moments.V[0])


@dataclass(frozen=True)
class SearchEquations:
    """Drift and variance of the cosine R between two cosines, with averages interpolated by Chebyshev polynomials."""

    task: LearningTask
    eta: float
    N: float
    left: float
    right: float

    @cached_property
    def compute_moments(self) -> Callable[[np.ndarray], np.ndarray]:
        """Function that interpolates the averages C, F, V and X (4, ...) at cosines (...)."""
        nodes = np.cos(np.pi * (np.arange(INTERPOLATION_NODES) + 0.5) / INTERPOLATION_NODES)
        R = (self.left + self.right + (self.right - self.left) * nodes) / 2
        moments = compute_change_moments(self.task, R)
        table = np.stack([moments.C, moments.F, moments.V, moments.X], axis=1)
        coefficients = np.polynomial.chebyshev.chebfit(nodes, table, INTERPOLATION_NODES - 1)
        return lambda R: np.polynomial.chebyshev.chebval(
            (2 * R - self.left - self.right) / (self.right - self.left), coefficients
        )

    def compute_drift_and_variance(self, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the drift and the variance per unit of t at cosines R (...)."""
        C, F, V, X = self.compute_moments(R)
        perpendicular = 1 - R * R
        square = self.eta**2
        drift = self.eta * C - square * R * F / 2
        drift += square / self.N * (R * F - R * V / 2 - np.sqrt(perpendicular) * X)
        return drift, square / self.N * (perpendicular * V - C * C)
