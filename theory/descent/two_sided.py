r"""Descent on stored examples for N -> infinity when its steps act on single weights: samples of weights, too.

Soft thresholds, signs and Adam change the weights in other directions than those along which the examples have
answered, and what they do depends on the distribution of the teacher's weights. So weights are samples w, as examples
are, with directions :math:`e_k` orthonormal in the mean over weights, the teacher's weights first. X, the matrix of the
inputs over :math:`\sqrt N`, is asked from both sides:

- for the fields of weights. Their part outside the known e's is a new e, with the image
  :math:`A = \xi + \alpha^{-1/2}\sum_j\langle B_je\rangle f_j`;
- for the force of slopes. Their part outside the known f's is a new f, with the answer
  :math:`B = \zeta + \alpha^{1/2}\sum_k\langle A_kf\rangle e_k`, in units of :math:`X^Tf` over :math:`\sqrt\alpha`.

The normals :math:`\xi` and :math:`\zeta` are what X has not been asked before, orthogonal to all f and to all e, and
the sums are what it has answered from the other side, for
:math:`\langle B_je_k\rangle = \sqrt\alpha\,\langle A_kf_j\rangle` for all j and k. Fields and forces are

.. math:: h = \sum_k\langle e_kz\rangle A_k, \qquad X^T\mathbf G = \sqrt\alpha\,\sum_j\langle f_jG\rangle B_j .

If steps are along forces only, a new e is the normal part of the newest B, and this is the ladder of one side.
"""

from __future__ import annotations

import numpy as np

from statmech.convex.weights import Weights
from statmech.numerics.gaussian import quantile
from theory.descent.samples import NEW, Columns, Rows, Samples

OF_WEIGHTS = 1 << 32  # added to the number of a replica: a net of their own
CERTAIN = 1e-16, 1 - 1e-16  # probabilities: normals beyond them are infinite


class TwoSided:
    """The directions on both sides, their images and their answers, in single precision.

    Parameters
    ----------
    alpha : float
        Stored examples per input dimension.
    samples : Samples
        Samples of the examples.
    weights : Weights
        Distribution of the teacher's weights.
    """

    def __init__(self, alpha: float, samples: Samples, weights: Weights) -> None:
        self.alpha, self.samples = alpha, samples
        self.columns = Columns(OF_WEIGHTS + samples.replica, samples.size, matched=False)
        self.teacher = teacher_weights(weights, self.columns.uniform())
        rows = (Rows(samples.size, self.columns.dtype) for _ in range(4))
        self.directions, self.images, self.slopes, self.answers = rows  # e, A, f and B
        self.directions.next()[:] = self.teacher
        self.directions.add()
        self.images.next()[:] = samples.field
        self.images.add()

    def start(self, length: float, R: float) -> np.ndarray:
        """Weights (S,) of this length and cosine with the teacher's, normal across them."""
        across = self._normal(np.empty(len(self.teacher)))
        return length * (R * self.teacher + np.sqrt(1 - R * R) * across)

    def parts(self, w: np.ndarray) -> tuple[float, float]:
        """The components of weights along the teacher's and across them."""
        along = float(np.mean(w * self.teacher))
        rest = w - along * self.teacher
        return along, float(np.sqrt(np.mean(rest * rest)))

    def fields(self, w: np.ndarray) -> np.ndarray:
        """The fields (S,) of weights (S,); what is new in the weights is a direction more."""
        w = w.astype(self.columns.dtype)
        if (e := _new(self.directions, w)) is not None:
            image = self.samples.normal(self.images.next())
            image += _means(self.answers, e) @ self.slopes.filled / np.sqrt(self.alpha)
            self.images.add()
            self.directions.add()
        return (_means(self.directions, w) @ self.images.filled).astype(float)

    def force(self, G: np.ndarray) -> np.ndarray:
        r"""The force :math:`X^T\mathbf G` (S,) on each weight."""
        G = G.astype(self.columns.dtype)
        if (f := _new(self.slopes, G)) is not None:
            answer = self._normal(self.answers.next())
            answer += np.sqrt(self.alpha) * _means(self.images, f) @ self.directions.filled
            self.answers.add()
            self.slopes.add()
        return np.sqrt(self.alpha) * (_means(self.slopes, G) @ self.answers.filled).astype(float)

    def _normal(self, into: np.ndarray) -> np.ndarray:
        """Write the next normal of the weights, off all directions and of mean square 1: these answer for X exactly."""
        self.columns.normal(into)
        into *= 1 / self.directions.outside(into, into)
        return into


def teacher_weights(weights: Weights, probability: np.ndarray) -> np.ndarray:
    """Weights of mean square 1, one piece of their mixture after the other, each in increasing order.

    Parameters
    ----------
    weights : Weights
        The distribution.
    probability : array (S,)
        Probabilities, above 0 and below 1.

    Returns
    -------
    array (S,)

    Examples
    --------
    >>> from statmech.convex.weights import Sparse
    >>> teacher_weights(Sparse(rho=0.5), np.array([0.1, 0.4, 0.6, 0.9])).round(3)
    array([ 0.   ,  0.   , -1.414,  1.414])
    """
    w, first = np.zeros_like(probability), 0.0
    for share, mean, variance in weights.pieces:
        within = (probability >= first) & (probability < first + share)
        w[within] = mean + np.sqrt(variance) * quantile(np.clip((probability[within] - first) / share, *CERTAIN))
        first += share
    return np.asarray(w / np.sqrt(np.mean(w * w)))


def _new(known: Rows, row: np.ndarray) -> np.ndarray | None:
    """The part of a row outside all known ones, of mean square 1, where the next of them is; None if there is none."""
    rest, least = known.next(), NEW[known.room.dtype.name] * float(np.sqrt(row @ row / len(row)))
    norm = known.outside(row, rest, least)
    if not norm > least:
        return None
    rest *= 1 / norm
    return rest


def _means(rows: Rows, row: np.ndarray) -> np.ndarray:
    return np.asarray(rows.filled @ row / len(row))
