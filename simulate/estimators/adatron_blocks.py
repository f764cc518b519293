r"""AdaTron in blocks of epochs that visit only the examples whose strengths can change.

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

from simulate.kernels.coordinate_loops import compile_loop
from simulate.learners.interface import bound_stability_gap

MIN_BLOCK_RADIUS_RATIO = 2.0  # radius of a block over the distance moved in the previous epoch
MAX_BLOCK_EXAMPLE_FRACTION = 0.7  # blocks with a larger fraction of the examples save no time
MIN_BLOCK_EPOCHS, LONG_BLOCK_EPOCHS = (
    2,
    16,
)  # shorter blocks double the radius, longer blocks halve it


class AdaTronRecord(NamedTuple):
    """Recorded strengths (T, P) and numbers of epochs (T,), and whether the final gap is certified."""

    strengths: np.ndarray
    epochs: np.ndarray
    converged: bool


def run_adatron(z: np.ndarray, recorded_epochs: np.ndarray, omega: float, tolerance: float) -> AdaTronRecord:
    """Run AdaTron from x = 0 until its gap is certified.

    Parameters
    ----------
    z : array (P, N)
        Examples times labels.
    recorded_epochs : array (T,)
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
    >>> run_adatron(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1, 5]), omega=1.0, tolerance=1e-6).strengths
    array([[2. , 0.5],
           [2. , 0.5]])
    """
    run = AdaTronRun(z, omega, tolerance)
    strengths = []
    for max_epochs in recorded_epochs:
        run.run_epochs(int(max_epochs))
        strengths.append(run.x.copy())
    return AdaTronRecord(np.array(strengths), np.minimum(recorded_epochs, run.epochs), run.converged)


class AdaTronRun:
    """State of an AdaTron run: embedding strengths (P,), student and number of epochs.

    `converged` is True once the gap is certified.
    """

    def __init__(self, z: np.ndarray, omega: float, tolerance: float):
        self.N, self.omega, self.tolerance = z.shape[1], omega, tolerance
        self.z = z if len(z) > self.N else np.ascontiguousarray(qr(z.T, mode="r")[0][: len(z)].T)
        self.lengths = np.sqrt(np.einsum("pn,pn->p", self.z, self.z))
        self.x, self.epochs, self.converged = np.zeros(len(z)), 0, False
        self.w, self.fields = np.zeros(self.z.shape[1]), np.zeros(len(z))
        self.last_epoch_distance, self.radius_factor = 0.0, MIN_BLOCK_RADIUS_RATIO

    def run_epochs(self, total_epochs: int) -> None:
        """Run AdaTron until its gap is certified or `total_epochs` epochs have been made."""
        while self.epochs < total_epochs and not self.converged:
            indices, radius = self._find_changeable_examples()
            max_epochs = MIN_BLOCK_EPOCHS if radius == np.inf else max(LONG_BLOCK_EPOCHS, self.epochs // 4)
            num_epochs = self._run_block(indices, radius, min(total_epochs - self.epochs, max_epochs))
            if radius < np.inf and num_epochs < MIN_BLOCK_EPOCHS:
                self.radius_factor *= 2
            elif num_epochs >= LONG_BLOCK_EPOCHS:
                self.radius_factor = max(self.radius_factor / 2, MIN_BLOCK_RADIUS_RATIO)
            self.epochs += num_epochs
            self.w = self.x @ self.z / self.N
            self.fields = self.z @ self.w
            self.converged = bool(bound_stability_gap(self.fields, self.x) <= self.tolerance)

    def _find_changeable_examples(self) -> tuple[np.ndarray, float]:
        """Find the examples that can change while the student moves by less than a radius.

        Returns the indices and the radius.
        """
        room = np.where(self.x > 0, -1.0, self.fields - 1)
        indices = np.flatnonzero(room <= self.radius_factor * self.last_epoch_distance * self.lengths)
        if not self.epochs or len(indices) > MAX_BLOCK_EXAMPLE_FRACTION * len(room):
            return np.arange(len(room)), np.inf
        room[indices] = np.inf
        return indices, float(np.min(room / np.where(self.lengths > 0, self.lengths, 1.0)))

    def _run_block(self, indices: np.ndarray, radius: float, max_epochs: int) -> int:
        """Run up to `max_epochs` epochs on these examples and return the number of complete epochs."""
        x, z = self.x[indices], self.z[indices]
        limits = self.omega, self.tolerance, radius, float(self.N), max_epochs
        num_epochs, self.last_epoch_distance = run_epochs_in_ball(z, self.lengths[indices], x, self.w, *limits)
        self.x[indices] = x
        return int(num_epochs)


@compile_loop("f8(f8[::1], f8[::1])")
def compute_distance(v, w):  # type: ignore[no-untyped-def]
    """Compute the distance between two vectors (N,)."""
    square = 0.0
    for n in range(len(v)):
        square += (v[n] - w[n]) * (v[n] - w[n])
    return np.sqrt(square)


@compile_loop("f8(f8[::1], f8[:,::1], i8)")
def compute_field(w, z, example):  # type: ignore[no-untyped-def]
    """Compute the field of an example."""
    field = 0.0
    for n in range(len(w)):
        field += w[n] * z[example, n]
    return field


@compile_loop("Tuple((i8, f8))(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, f8, i8)")
def run_epochs_in_ball(z, lengths, x, w, omega, tolerance, radius, N, max_epochs):  # type: ignore[no-untyped-def]
    """Run AdaTron epochs until the gap is certified or the student leaves a ball around its start.

    Parameters
    ----------
    z
        Examples times their labels (P, N).
    lengths
        Lengths of the examples (P,).
    x, w
        Strengths (P,) and student (N,); updated.
    omega, tolerance
        Step size and relative gap of `AdaTron`.
    radius
        Largest distance of the student from its start.
    N
        Input dimension, which divides the fields.
    max_epochs
        Largest number of epochs.

    Returns
    -------
    epochs
        The number of complete epochs.
    way
        The distance that the student moved in the last epoch.
    """
    start, w_before, x_before, max_distance, worst = w.copy(), w.copy(), x.copy(), 0.0, 0
    for epoch in range(max_epochs):
        for n in range(len(w)):
            w_before[n] = w[n]
        for i in range(len(x)):
            x_before[i] = x[i]
            square = lengths[i] * lengths[i] / N
            step = omega * (1 - compute_field(w, z, i)) / (square if square > 0 else 1.0)
            step = step if step > -x[i] else -x[i]
            if step == 0:
                continue
            x[i] += step
            step /= N
            for n in range(len(w)):
                w[n] += step * z[i, n]
            max_distance += abs(step) * lengths[i]
            if max_distance > radius:
                max_distance = compute_distance(w, start)
            if max_distance > radius:  # skipped examples might have changed
                epoch_distance = compute_distance(w, w_before)
                for j in range(i + 1):
                    x[j] = x_before[j]
                return epoch, epoch_distance
        total, squared_norm = 0.0, 0.0
        for i in range(len(x)):
            total += x[i]
        for n in range(len(w)):
            squared_norm += N * w[n] * w[n]
        min_field = compute_field(w, z, worst)
        if squared_norm - min_field * total > tolerance * squared_norm:  # one violating example disproves convergence
            continue
        for i in range(len(x)):
            field = compute_field(w, z, i)
            if field < min_field:
                min_field, worst = field, i
        if squared_norm - min_field * total <= tolerance * squared_norm:
            return epoch + 1, compute_distance(w, w_before)
    return max_epochs, compute_distance(w, w_before)
