r"""Descent on stored examples for N -> infinity, with steps that act on single weights.

Soft thresholds, signs and Adam change the weights in directions other than the forces of the examples, and their effect
depends on the distribution of the teacher's weights. Weights are therefore sampled, just as examples are. Their
directions :math:`e_k` are orthonormal in the mean over weights, and the first one is the teacher. The matrix X of the
inputs over :math:`\sqrt N` is multiplied from both sides:

- by the weights, for their fields. The component of the weights orthogonal to the known e's gives a new e, with the
  image :math:`A = \xi + \alpha^{-1/2}\sum_j\langle B_je\rangle f_j`.
- by the slopes, for their force. The component of the slopes orthogonal to the known f's gives a new f, with the answer
  :math:`B = \zeta + \alpha^{1/2}\sum_k\langle A_kf\rangle e_k`, in units of :math:`X^Tf` over :math:`\sqrt\alpha`.

The normals :math:`\xi` and :math:`\zeta` are the unknown part of X, orthogonal to all f and to all e. The sums are
known from earlier products from the other side, since
:math:`\langle B_je_k\rangle = \sqrt\alpha\,\langle A_kf_j\rangle` for all j and k. Fields and forces are

.. math:: h = \sum_k\langle e_kz\rangle A_k, \qquad X^T\mathbf G = \sqrt\alpha\,\sum_j\langle f_jG\rangle B_j .

If steps follow only the forces, a new e is the normal part of the newest B, and the equations reduce to
`theory.descent.ladder`.
"""

from __future__ import annotations

import numpy as np

from statmech.convex.weights import WeightDistribution
from statmech.numerics.gaussian import normal_quantile
from theory.descent.samples import NEW_DIRECTION_NORM_TOL, ExampleSamples, RowTable, SobolColumns

WEIGHT_REPLICA_OFFSET = 1 << 32  # weights and examples use different Sobol nets
QUANTILE_PROBABILITY_BOUNDS = 1e-16, 1 - 1e-16  # normal quantiles outside this range are infinite


class TwoSided:
    """Orthonormal directions of weights and slopes, and their products with the inputs (images and answers).

    All arrays are in single precision.

    Parameters
    ----------
    alpha : float
        Stored examples per input dimension.
    samples : ExampleSamples
        Samples of the examples.
    weights : WeightDistribution
        Distribution of the teacher's weights.
    """

    def __init__(self, alpha: float, samples: ExampleSamples, weights: WeightDistribution) -> None:
        self.alpha, self.samples = alpha, samples
        self.columns = SobolColumns(WEIGHT_REPLICA_OFFSET + samples.replica, samples.size, matched=False)
        self.teacher = sample_teacher_weights(weights, self.columns.draw_uniform())
        rows = (RowTable(samples.size, self.columns.dtype) for _ in range(4))
        self.directions, self.images, self.slopes, self.answers = rows  # e, A, f and B
        self.directions.get_free_row()[:] = self.teacher
        self.directions.mark_free_row_filled()
        self.images.get_free_row()[:] = samples.field
        self.images.mark_free_row_filled()

    def make_initial_weights(self, length: float, R: float) -> np.ndarray:
        """Draw initial weights (S,) of this length and cosine, with a normal part perpendicular to the teacher."""
        perpendicular = self._draw_orthogonal_normal(np.empty(len(self.teacher)))
        return length * (R * self.teacher + np.sqrt(1 - R * R) * perpendicular)

    def separate_teacher_component(self, w: np.ndarray) -> tuple[float, float]:
        """Return the components of weights parallel and perpendicular to the teacher."""
        parallel = float(np.mean(w * self.teacher))
        rest = w - parallel * self.teacher
        return parallel, float(np.sqrt(np.mean(rest * rest)))

    def compute_fields(self, w: np.ndarray) -> np.ndarray:
        """Compute the fields (S,) of weights (S,), adding a direction if the weights have a new component."""
        w = w.astype(self.columns.dtype)
        if (e := _find_new_direction(self.directions, w)) is not None:
            image = self.samples.draw_normal(self.images.get_free_row())
            image += _compute_products_with_rows(self.answers, e) @ self.slopes.filled / np.sqrt(self.alpha)
            self.images.mark_free_row_filled()
            self.directions.mark_free_row_filled()
        return (_compute_products_with_rows(self.directions, w) @ self.images.filled).astype(float)

    def compute_force(self, G: np.ndarray) -> np.ndarray:
        r"""Compute the force :math:`X^T\mathbf G` (S,) on each weight."""
        G = G.astype(self.columns.dtype)
        if (f := _find_new_direction(self.slopes, G)) is not None:
            answer = self._draw_orthogonal_normal(self.answers.get_free_row())
            answer += np.sqrt(self.alpha) * _compute_products_with_rows(self.images, f) @ self.directions.filled
            self.answers.mark_free_row_filled()
            self.slopes.mark_free_row_filled()
        return np.sqrt(self.alpha) * (_compute_products_with_rows(self.slopes, G) @ self.answers.filled).astype(float)

    def _draw_orthogonal_normal(self, out: np.ndarray) -> np.ndarray:
        """Draw the next normal of the weights, orthogonal to all directions and with mean square 1.

        Products with X are then exact.
        """
        self.columns.draw_normal(out)
        out *= 1 / self.directions.project_out(out, out)
        return out


def sample_teacher_weights(weights: WeightDistribution, probability: np.ndarray) -> np.ndarray:
    """Sample weights of mean square 1 by inverting the distribution of each mixture component.

    Parameters
    ----------
    weights : WeightDistribution
        The distribution.
    probability : array (S,)
        Probabilities, above 0 and below 1.

    Returns
    -------
    array (S,)

    Examples
    --------
    >>> from statmech.convex.weights import Sparse
    >>> sample_teacher_weights(Sparse(rho=0.5), np.array([0.1, 0.4, 0.6, 0.9])).round(3)
    array([ 0.   ,  0.   , -1.414,  1.414])
    """
    w, first = np.zeros_like(probability), 0.0
    for fraction, mean, variance in weights.pieces:
        in_piece = (probability >= first) & (probability < first + fraction)
        w[in_piece] = mean + np.sqrt(variance) * normal_quantile(
            np.clip((probability[in_piece] - first) / fraction, *QUANTILE_PROBABILITY_BOUNDS)
        )
        first += fraction
    return np.asarray(w / np.sqrt(np.mean(w * w)))


def _find_new_direction(known_rows: RowTable, row: np.ndarray) -> np.ndarray | None:
    """Return the normalised component of a row orthogonal to the known rows, stored in the next free row.

    The result is None if the row is a linear combination of known rows.
    """
    rest, min_norm = (
        known_rows.get_free_row(),
        NEW_DIRECTION_NORM_TOL[known_rows.buffer.dtype.name] * float(np.sqrt(row @ row / len(row))),
    )
    norm = known_rows.project_out(row, rest, min_norm)
    if not norm > min_norm:
        return None
    rest *= 1 / norm
    return rest


def _compute_products_with_rows(rows: RowTable, row: np.ndarray) -> np.ndarray:
    """Return the scalar products of a row with all filled rows, defined as means over samples."""
    return np.asarray(rows.filled @ row / len(row))
