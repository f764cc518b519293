r"""Descent on stored examples for N -> infinity: the ladder of directions, on samples of the examples.

A step of descent uses the matrix X of the examples' inputs, divided by :math:`\sqrt N`, twice: in the fields of the
weights, and in the force :math:`X^T\mathbf G` of the slopes G of the loss. The weights move only in the direction of
this force. They are represented by components in orthonormal directions :math:`e_0 = \mathbf w^*/\sqrt N, e_1, \dots`,
whose images on the examples are :math:`A_k = Xe_k`. The slopes are represented in orthonormal directions
:math:`f_1, f_2, \dots` in the space of examples, :math:`\langle f_jf_k\rangle = \delta_{jk}` with <> the mean over
examples. With g the norm of the component of G orthogonal to the earlier f's,

.. math::

    h = \sum_k z_kA_k,\quad G = \ell'(h),\quad f = \frac{G - \sum_j\langle f_jG\rangle f_j}g,\quad
    v_k = \alpha\langle A_kG\rangle,\quad v_\mathrm{new} = -\sqrt\alpha\,g,\quad
    A_\mathrm{new} = \xi - f/\sqrt\alpha

with :math:`\xi` a standard normal of each example: the limit of Lu's Householder dice (2021).

*Derivation.* Conditioned on all earlier products, X is known on the directions e and f, and is a fresh Gaussian matrix
on their orthogonal complement. For a new f consider :math:`X^Tf/N`. Its components in the known directions e are
:math:`\alpha\langle A_kf\rangle`, and the rest is a fresh normal vector of length :math:`\sqrt\alpha` perpendicular to
these directions. The weights are combinations of such products, so that this rest is their only new direction. It is
called :math:`-e_\mathrm{new}`, with the sign of a descent step.

Next consider the image of the new direction. Its components in the earlier directions f are 0, since the products of X
with these lie within the earlier e's. Its component in the newest f is the product just computed,
:math:`-1/\sqrt\alpha`. Orthogonal to all f's it is fresh. This single term is the reaction of the examples on
themselves, which dynamical mean-field theory describes by response functions. It is valid for discontinuous slopes as
well as for smooth slopes. No iteration is needed, and each step depends only on the state after the previous step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.convex.losses import Loss
from statmech.convex.penalties import Penalty
from statmech.scenarios.descent import DescentCell
from theory.descent.samples import NEW_DIRECTION_NORM_TOL, ExampleSamples, RandomBatches, RowTable
from theory.descent.two_sided import TwoSided

LASSO_PENALTY = Penalty(1.0)


class DescentPath(NamedTuple):
    """Path of the descent of one replica, NaN after an overflow."""

    parallel: np.ndarray  # component of the weights parallel to the teacher, w.w*/N, after each step (steps + 1,)
    perpendicular: np.ndarray  # norm of the component perpendicular to the teacher (steps + 1,)
    train_loss: np.ndarray  # mean loss at the recorded steps (times,)
    eps_t: np.ndarray  # training error at the recorded steps (times,)
    num_directions: int  # number of directions after the last step


class DirectionLadder:
    """Orthonormal directions of weights and slopes, and the images of the weight directions on the examples.

    Parameters
    ----------
    alpha : float
        Stored examples per input dimension.
    samples : ExampleSamples
        Samples of the examples.
    """

    def __init__(self, alpha: float, samples: ExampleSamples) -> None:
        self.alpha, self.samples = alpha, samples
        self.new_direction_tol = NEW_DIRECTION_NORM_TOL[samples.dtype.name]
        self.images, self.slopes = (RowTable(samples.size, samples.dtype) for _ in range(2))  # A and f
        self.images.get_free_row()[:] = samples.field
        self.images.mark_free_row_filled()

    def make_initial_weights(self, length: float, R: float) -> np.ndarray:
        """Return the components of initial weights with this length and cosine with the teacher."""
        if length == 0:
            return np.zeros(1)
        self.samples.draw_normal(self.images.get_free_row())
        self.images.mark_free_row_filled()
        return length * np.array([R, np.sqrt(1 - R * R)])

    def separate_teacher_component(self, w: np.ndarray) -> tuple[float, float]:
        """Return the components of weights parallel and perpendicular to the teacher."""
        return float(w[0]), float(np.sqrt(w[1:] @ w[1:]))

    def compute_fields(self, w: np.ndarray) -> np.ndarray:
        """Compute the fields (S,) of weights with these components."""
        return (w.astype(self.samples.dtype) @ self.images.filled[: len(w)]).astype(float, copy=False)

    def compute_force(self, G: np.ndarray) -> np.ndarray:
        r"""Compute the components of :math:`X^T\mathbf G`, adding a direction if G has a new component."""
        size, G = self.samples.size, G.astype(self.samples.dtype, copy=False)
        v = self.alpha * (self.images.filled @ G).astype(float) / size
        f, min_norm = self.slopes.get_free_row(), self.new_direction_tol * float(np.sqrt(G @ G / size))
        g = self.slopes.project_out(G, f, min_norm)
        if not g > min_norm:
            return v
        f *= 1 / g
        self.slopes.mark_free_row_filled()
        self.samples.orthogonalise_later_normals(f)
        image = self.samples.draw_normal(self.images.get_free_row())
        image -= f / np.sqrt(self.alpha)
        self.images.mark_free_row_filled()
        return np.append(v, -np.sqrt(self.alpha) * g)


def simulate_descent(cell: DescentCell, replica: int, size: int) -> DescentPath:
    """Simulate the descent of a cell on the samples of one replica.

    Parameters
    ----------
    cell : DescentCell
        The descent, its loss and teacher, the number of examples P/N, and the recorded steps.
    replica : int
        Number of the replica, which determines its samples.
    size : int
        Number S of samples, a power of 2.

    Returns
    -------
    DescentPath

    Examples
    --------
    >>> from statmech.scenarios.descent import Descent
    >>> cell = next(Descent(descent="gradient", loss="square", alpha=2, epochs=[1, 10]).cells())
    >>> path = simulate_descent(cell, replica=0, size=512)
    >>> R = path.parallel[1:] / np.hypot(path.parallel, path.perpendicular)[1:]
    >>> R[[0, 9]].round(6)                  # Hebb's rule after a step: 1/sqrt(1 + pi/(2 alpha))
    array([0.748398, 0.829896])
    """
    with np.errstate(all="ignore"):  # overflow ends the path
        return _run_descent(cell, replica, size)


def has_matched_samples(cell: DescentCell) -> bool:
    """Return True if samples are matched and computed in double precision.

    This is the case for a smooth loss and full batches.
    """
    return cell.batch == 1 and not (
        cell.loss_for_teacher_outputs.kinks or cell.loss_for_teacher_outputs.bends or cell.has_coordinatewise_steps
    )


def _run_descent(cell: DescentCell, replica: int, size: int) -> DescentPath:
    """Simulate a descent until the last step or an overflow."""
    last, times = cell.steps[-1], {step: index for index, step in enumerate(cell.steps)}
    samples = ExampleSamples(cell.teacher, replica, size, matched=has_matched_samples(cell))
    batches = None if cell.batch == 1 else RandomBatches(samples, cell.batch, cell.sampling == "shuffle")
    ladder: DirectionLadder | TwoSided = DirectionLadder(cell.P / cell.N, samples)
    if cell.has_coordinatewise_steps:
        ladder = TwoSided(cell.P / cell.N, samples, cell.weights)
    loss, y, (l1, l2) = cell.loss_for_teacher_outputs, samples.outputs, cell.strengths
    parallel, perpendicular = np.full((2, last + 1), np.nan)
    train_loss, eps_t = np.full((2, len(times)), np.nan)
    state = cell.descent.start(ladder.make_initial_weights(cell.length, cell.R))
    for step in range(last + 1):
        w, z, rate = state[0], cell.descent.query(state), cell.rate(step)
        if not np.isfinite(w @ w):
            break
        parallel[step], perpendicular[step] = ladder.separate_teacher_component(w)
        h = ladder.compute_fields(z)
        if step in times:
            of_w = h if z is w else ladder.compute_fields(w)
            train_loss[times[step]], eps_t[times[step]] = _compute_training_averages(loss, y, of_w)
        if step == last:
            break
        G = _compute_loss_slopes(loss, y, h)
        v = ladder.compute_force(G if batches is None else G * batches.draw_batch(step))
        z, state = _pad_with_zero(z, len(v)), tuple(_pad_with_zero(row, len(v)) for row in state)
        state = cell.descent.next(state, v + cell.batch * l2 * z, rate, step)
        if l1:
            state = LASSO_PENALTY.prox(state[0], l1, rate * cell.batch), *state[1:]
    return DescentPath(parallel, perpendicular, train_loss, eps_t, len(ladder.images.filled))


def _pad_with_zero(row: np.ndarray, count: int) -> np.ndarray:
    """Append a zero to the components if a direction was added."""
    return row if len(row) == count else np.append(row, 0.0)


def _compute_loss_slopes(loss: Loss, y: np.ndarray | None, h: np.ndarray) -> np.ndarray:
    """Return the derivative of the loss with respect to the field, where `y` is None if all labels are 1."""
    return loss.slope(h) if y is None else -loss.slope(y - h)


def _compute_training_averages(loss: Loss, y: np.ndarray | None, h: np.ndarray) -> tuple[float, float]:
    """Return the mean loss and the fraction of wrong labels, NaN for outputs. Zero fields count as half an error."""
    value = float(np.mean(loss.value(h if y is None else y - h)))
    wrong = float(np.mean((1 - np.sign(h)) / 2)) if y is None else np.nan
    return (value if np.isfinite(value) else np.nan), wrong
