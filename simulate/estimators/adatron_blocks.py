r"""AdaTron's epochs over the few examples that can change, in blocks.

AdaTron visits all examples in turn (`simulate.learners.adatron`), but an example of strength 0 and field
:math:`e_\nu=\mathbf w\cdot\mathbf z^\nu\ge 1` does not change. While the student moves by less than a radius r from its
position at a block's start, an example does not change if

.. math:: x_\nu = 0, \qquad e_\nu - 1 \ge r\,|\mathbf z^\nu|,

by Cauchy and Schwarz. The epochs of a block skip these examples until the student might move by r in the next epoch.
The steps are exactly AdaTron's. The distance from the start is measured at the start of each epoch; within an epoch the
lengths of the steps are added. A visit costs O(N), with N at most P: with more features than examples, the examples are
expressed in a basis of the space that they span.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from simulate.kernels.coordinate_loops import compiled
from simulate.learners.interface import gap

NARROWEST = 2.0  # in units of the distance moved in the previous epoch
MOST = 0.7  # a block with a larger fraction of the examples saves no time
FEW, MANY = 2, 16  # fewer epochs show that the radius was too small, more that it was too large


class AdaTronRecord(NamedTuple):
    """Embedding strengths (T, P) and epochs (T,) at the recorded times, and True if the gap is certified at the end."""

    strengths: np.ndarray
    epochs: np.ndarray
    converged: bool


def learn(z: np.ndarray, until: np.ndarray, omega: float, tolerance: float) -> AdaTronRecord:
    """Run AdaTron from x = 0 until its gap is certified.

    Parameters
    ----------
    z : array (P, N)
        Examples times labels.
    until : array (T,)
        Increasing numbers of epochs. Strengths are recorded at these epochs.
    omega : float
        Step size.
    tolerance : float
        The gap, see `simulate.learners.minover`.

    Returns
    -------
    AdaTronRecord
        Recorded times after the end repeat the last.

    Examples
    --------
    >>> learn(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1, 5]), omega=1.0, tolerance=1e-6).strengths
    array([[2. , 0.5],
           [2. , 0.5]])
    """
    run = AdaTronCourse(z, omega, tolerance)
    strengths = []
    for max_epochs in until:
        run.go_on(int(max_epochs))
        strengths.append(run.x.copy())
    return AdaTronRecord(np.array(strengths), np.minimum(until, run.epochs), run.converged)


class AdaTronCourse:
    """A run of AdaTron: strengths (P,) after a number of epochs.

    `converged` is True once the gap is certified.
    """

    def __init__(self, z: np.ndarray, omega: float, tolerance: float):
        self.N, self.omega, self.tolerance = z.shape[1], omega, tolerance
        self.z = z if len(z) > self.N else np.ascontiguousarray(qr(z.T, mode="r")[0][: len(z)].T)
        self.lengths = np.sqrt(np.einsum("pn,pn->p", self.z, self.z))
        self.x, self.epochs, self.converged = np.zeros(len(z)), 0, False
        self.w, self.fields = np.zeros(self.z.shape[1]), np.zeros(len(z))
        self.way, self.reach = 0.0, NARROWEST

    def go_on(self, until: int) -> None:
        """Run epochs until their total number is `until`, or the gap is certified."""
        while self.epochs < until and not self.converged:
            indices, radius = self._choose()
            max_epochs = FEW if radius == np.inf else max(MANY, self.epochs // 4)
            num_epochs = self._block(indices, radius, min(until - self.epochs, max_epochs))
            if radius < np.inf and num_epochs < FEW:
                self.reach *= 2
            elif num_epochs >= MANY:
                self.reach = max(self.reach / 2, NARROWEST)
            self.epochs += num_epochs
            self.w = self.x @ self.z / self.N
            self.fields = self.z @ self.w
            self.converged = bool(gap(self.fields, self.x) <= self.tolerance)

    def _choose(self) -> tuple[np.ndarray, float]:
        """Find the examples that can change while the student moves by less than a radius.

        Returns the indices and the radius.
        """
        room = np.where(self.x > 0, -1.0, self.fields - 1)
        indices = np.flatnonzero(room <= self.reach * self.way * self.lengths)
        if not self.epochs or len(indices) > MOST * len(room):
            return np.arange(len(room)), np.inf
        room[indices] = np.inf
        return indices, float(np.min(room / np.where(self.lengths > 0, self.lengths, 1.0)))

    def _block(self, some: np.ndarray, radius: float, most: int) -> int:
        """Run at most `most` epochs of some examples, and return the number of epochs."""
        x, z = self.x[some], self.z[some]
        limits = self.omega, self.tolerance, radius, float(self.N), most
        num_epochs, self.way = visit(z, self.lengths[some], x, self.w, *limits)
        self.x[some] = x
        return int(num_epochs)


@compiled("f8(f8[::1], f8[::1])")
def distance(one, other):  # type: ignore[no-untyped-def]
    """Compute the length of the difference of two vectors (N,)."""
    square = 0.0
    for n in range(len(one)):
        square += (one[n] - other[n]) * (one[n] - other[n])
    return np.sqrt(square)


@compiled("f8(f8[::1], f8[:,::1], i8)")
def product(w, z, i):  # type: ignore[no-untyped-def]
    """Compute the field of an example."""
    field = 0.0
    for n in range(len(w)):
        field += w[n] * z[i, n]
    return field


@compiled("Tuple((i8, f8))(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, f8, i8)")
def visit(z, lengths, x, w, omega, tolerance, radius, N, most):  # type: ignore[no-untyped-def]
    """Visit examples in turn, epoch by epoch, until the gap is certified or the student has moved too far.

    Parameters
    ----------
    z
        Examples times their labels (P, N).
    lengths
        Their lengths (P,).
    x, w
        Strengths (P,) and student (N,); updated.
    omega, tolerance
        Step size and relative gap of `AdaTron`.
    radius
        Largest distance of the student from its start.
    N
        Input dimension, which divides the fields.
    most
        Largest number of epochs.

    Returns
    -------
    epochs
        The number of complete epochs.
    way
        The distance that the student moved in the last epoch.
    """
    start, w_before, x_before, max_distance, worst = w.copy(), w.copy(), x.copy(), 0.0, 0
    for epoch in range(most):
        for n in range(len(w)):
            w_before[n] = w[n]
        for i in range(len(x)):
            x_before[i] = x[i]
            square = lengths[i] * lengths[i] / N
            step = omega * (1 - product(w, z, i)) / (square if square > 0 else 1.0)
            step = step if step > -x[i] else -x[i]
            if step == 0:
                continue
            x[i] += step
            step /= N
            for n in range(len(w)):
                w[n] += step * z[i, n]
            max_distance += abs(step) * lengths[i]
            if max_distance > radius:
                max_distance = distance(w, start)
            if max_distance > radius:  # skipped examples might have changed
                epoch_distance = distance(w, w_before)
                for j in range(i + 1):
                    x[j] = x_before[j]
                return epoch, epoch_distance
        total, squared_norm = 0.0, 0.0
        for i in range(len(x)):
            total += x[i]
        for n in range(len(w)):
            squared_norm += N * w[n] * w[n]
        min_field = product(w, z, worst)
        if squared_norm - min_field * total > tolerance * squared_norm:  # the previous worst example is sufficient
            continue
        for i in range(len(x)):
            field = product(w, z, i)
            if field < min_field:
                min_field, worst = field, i
        if squared_norm - min_field * total <= tolerance * squared_norm:
            return epoch + 1, distance(w, w_before)
    return most, distance(w, w_before)
