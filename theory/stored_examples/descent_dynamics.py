r"""Descent on stored examples for N -> infinity, simulated on samples of examples and weights.

**Ladder of directions.** A step of descent uses the matrix X of the examples' inputs, divided by :math:`\sqrt N`,
twice: in the fields of the weights, and in the force :math:`X^T\mathbf G` of the slopes G of the loss. If the weights
move only in the direction of this force (`DirectionLadder`), they are represented by components in orthonormal
directions :math:`e_0 = \mathbf w^*/\sqrt N, e_1, \dots`, whose images on the examples are :math:`A_k = Xe_k`. The
slopes are represented in orthonormal directions :math:`f_1, f_2, \dots` in the space of examples,
:math:`\langle f_jf_k\rangle = \delta_{jk}` with <> the mean over examples. With g the norm of the component of G
orthogonal to the earlier f's,

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

**Steps that act on single weights** (`TwoSided`). Soft thresholds, signs and Adam change the weights in directions
other than the forces of the examples, and their effect depends on the distribution of the teacher's weights. Weights
are therefore sampled, just as examples are. Their directions :math:`e_k` are orthonormal in the mean over weights, and
the first one is the teacher. The matrix X of the inputs over :math:`\sqrt N` is multiplied from both sides:

- by the weights, for their fields. The component of the weights orthogonal to the known e's gives a new e, with the
  image :math:`A = \xi + \alpha^{-1/2}\sum_j\langle B_je\rangle f_j`.
- by the slopes, for their force. The component of the slopes orthogonal to the known f's gives a new f, with the answer
  :math:`B = \zeta + \alpha^{1/2}\sum_k\langle A_kf\rangle e_k`, in units of :math:`X^Tf` over :math:`\sqrt\alpha`.

The normals :math:`\xi` and :math:`\zeta` are the unknown part of X, orthogonal to all f and to all e. The sums are
known from earlier products from the other side, since
:math:`\langle B_je_k\rangle = \sqrt\alpha\,\langle A_kf_j\rangle` for all j and k. Fields and forces are

.. math:: h = \sum_k\langle e_kz\rangle A_k, \qquad X^T\mathbf G = \sqrt\alpha\,\sum_j\langle f_jG\rangle B_j .

If steps follow only the forces, a new e is the normal part of the newest B, and the equations reduce to the ladder.

**Replicas.** The curves of a descent are means over independently scrambled samples, with standard errors.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from statmech.convex.losses import Loss, Penalty
from statmech.convex.teachers import LabelTeacher, label_error
from statmech.convex.weight_distributions import WeightDistribution
from statmech.errors import ScenarioError
from statmech.kinds.gradient_descent import DescentCell
from statmech.numerics.gaussian import normal_quantile
from statmech.runtime.operating_system import count_cores, get_total_memory
from statmech.students.student_geometry import angle_from_components
from theory.stored_examples.field_samples import (
    NEW_DIRECTION_NORM_TOL,
    ExampleSamples,
    RandomBatches,
    RowTable,
    SobolColumns,
)

WEIGHT_REPLICA_OFFSET = 1 << 32  # weights and examples use different Sobol nets
QUANTILE_PROBABILITY_BOUNDS = 1e-16, 1 - 1e-16  # normal quantiles outside this range are infinite
LASSO_PENALTY = Penalty(1.0)
NUM_DESCENT_REPLICAS = 8
TARGET_STANDARD_ERRORS = {"R": 1e-4, "eps_g": 1e-4, "eps_t": 3e-4}  # standard errors at all recorded steps
MIN_REPLICA_SAMPLES, MAX_REPLICA_SAMPLES = 2**9, 2**16  # per replica
ROW_TABLE_PEAK_MEMORY_RATIO = 3  # while a table doubles, memory holds the old and the new table
MIN_SAMPLES_PER_DIRECTION = 4  # more directions than samples cannot be orthogonal
SAMPLING_ERROR_DECAY_EXPONENT = 0.9  # minimum exponent of the error's decay with the number of samples


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
        """Compute the fields (S,) of a descent's sampled weights (S,), adding a direction for a new component."""
        w = w.astype(self.columns.dtype)
        if (e := _find_new_direction(self.directions, w)) is not None:
            image = self.samples.draw_normal(self.images.get_free_row())
            image += _compute_products_with_rows(self.answers, e) @ self.slopes.filled / np.sqrt(self.alpha)
            self.images.mark_free_row_filled()
            self.directions.mark_free_row_filled()
        return (_compute_products_with_rows(self.directions, w) @ self.images.filled).astype(float)

    def compute_force(self, G: np.ndarray) -> np.ndarray:
        r"""Compute a descent's force :math:`X^T\mathbf G` (S,) on each sampled weight."""
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
    """Sample weights of mean square 1 for a descent's teacher by inverting the distribution of each mixture component.

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
    >>> from statmech.convex.weight_distributions import Sparse
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
    """Return the new direction of a sampled descent, the normalised part of a row orthogonal to the known rows.

    The result is None if the row is a linear combination of known rows.
    """
    rest = known_rows.get_free_row()
    min_norm = NEW_DIRECTION_NORM_TOL[known_rows.buffer.dtype.name] * float(np.sqrt(row @ row / len(row)))
    norm = known_rows.project_out(row, rest, min_norm)
    if not norm > min_norm:
        return None
    rest *= 1 / norm
    return rest


def _compute_products_with_rows(rows: RowTable, row: np.ndarray) -> np.ndarray:
    """Return the scalar products of a row with all filled rows, defined as means over samples."""
    return np.asarray(rows.filled @ row / len(row))


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
        """Return the components of a sampled descent's initial weights with this length and cosine with the teacher."""
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
        r"""Compute the components of a sampled descent's force :math:`X^T\mathbf G`, adding a direction if needed."""
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
    >>> from statmech.kinds.gradient_descent import Descent
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
    """Run a descent on samples of its fields until the last step or an overflow."""
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
        G = loss.slope(h) if y is None else -loss.slope(y - h)  # without y all labels are 1
        v = ladder.compute_force(G if batches is None else G * batches.draw_batch(step))
        z, state = _pad_with_zero(z, len(v)), tuple(_pad_with_zero(row, len(v)) for row in state)
        state = cell.descent.next(state, v + cell.batch * l2 * z, rate, step)
        if l1:
            state = LASSO_PENALTY.prox(state[0], l1, rate * cell.batch), *state[1:]
    return DescentPath(parallel, perpendicular, train_loss, eps_t, len(ladder.images.filled))


def _pad_with_zero(row: np.ndarray, count: int) -> np.ndarray:
    """Append a zero to the components if a direction was added."""
    return row if len(row) == count else np.append(row, 0.0)


def _compute_training_averages(loss: Loss, y: np.ndarray | None, h: np.ndarray) -> tuple[float, float]:
    """Return the mean loss and the fraction of wrong labels, NaN for outputs. Zero fields count as half an error."""
    value = float(np.mean(loss.value(h if y is None else y - h)))
    wrong = float(np.mean((1 - np.sign(h)) / 2)) if y is None else np.nan
    return (value if np.isfinite(value) else np.nan), wrong


@dataclass(frozen=True)
class DescentCurves:
    """Means and standard errors over replicas, by name of the variable, at the recorded steps.

    `eps_g` is the mean after every step. Values are NaN after an overflow.
    """

    mean: dict[str, np.ndarray]
    error: dict[str, np.ndarray]
    eps_g: np.ndarray
    samples_per_replica: int  # per replica

    def select_steps(self, indices: list[int]) -> DescentCurves:
        """Select recorded steps by their indices."""
        mean, error = ({name: values[indices] for name, values in arrays.items()} for arrays in (self.mean, self.error))
        return replace(self, mean=mean, error=error)


def compute_descent_curves(cell: DescentCell, error_factor: float = 1.0) -> DescentCurves:
    """Compute the theoretical variables of a descent at its recorded steps, with errors of 1e-4 in R and eps_g.

    There are 8 replicas with at most 2^16 samples each. Different cells have the same samples, so that curves are
    smooth functions of any parameter. Results are cached for the lifetime of the process.

    Parameters
    ----------
    cell : DescentCell
        The descent, its loss and teacher, the number of examples P/N, and the recorded steps.
    error_factor : float
        Factor applied to the target errors.

    Returns
    -------
    DescentCurves

    Raises
    ------
    ScenarioError
        If the samples need more memory than this machine has.

    Examples
    --------
    >>> from statmech.kinds.gradient_descent import Descent
    >>> cell = next(Descent(descent="gradient", loss="logistic", alpha=2, epochs=[0, 1, 10]).cells())
    >>> found = compute_descent_curves(cell)
    >>> found.mean["eps_g"].round(3), bool(np.all(found.error["eps_g"] < 1e-4))
    (array([0.5  , 0.231, 0.213]), True)
    """
    complete_cell = _record_every_epoch(cell)
    cached = _get_cached_curves(complete_cell)
    if error_factor not in cached:  # a more accurate curve would not share the errors of neighbouring cells
        cached[error_factor] = _refine_curves(complete_cell, error_factor)
    return cached[error_factor].select_steps([complete_cell.steps.index(step) for step in cell.steps])


def _record_every_epoch(cell: DescentCell) -> DescentCell:
    """Return the cell of a descent with every epoch recorded, so that a line over epochs reuses its results."""
    per_epoch = max(round(1 / cell.batch), 1)
    steps = {*cell.steps, *range(0, cell.steps[-1] + 1, per_epoch)}
    N, P = (ratio := Fraction(cell.P, cell.N)).denominator, ratio.numerator
    return replace(cell, steps=tuple(sorted(steps)), N=N, P=P, alpha=P / N, engine="auto", index=())


@lru_cache(maxsize=256)
def _get_cached_curves(cell: DescentCell) -> dict[float, DescentCurves]:
    """Return this process's cache of a cell's curves, a dictionary with the slack as its key."""
    return {}


def _refine_curves(cell: DescentCell, error_factor: float) -> DescentCurves:
    """Compute the curves of a descent, increasing the number of samples until errors are small enough."""
    size, directions = MIN_REPLICA_SAMPLES, cell.steps[-1] + 2
    while True:
        at_once = max(1, min(count_cores(), int(get_total_memory() // estimate_replica_bytes(cell, directions, size))))
        with ThreadPoolExecutor(at_once) as pool:  # NumPy releases the interpreter lock
            paths = list(pool.map(partial(simulate_descent, cell, size=size), range(NUM_DESCENT_REPLICAS)))
        result, directions = _average_paths(cell, paths, size), max(path.num_directions for path in paths)
        error = np.nanmax(
            [0.0, *np.concatenate([result.error[name] / goal for name, goal in TARGET_STANDARD_ERRORS.items()])]
        )
        is_accurate = error <= error_factor and MIN_SAMPLES_PER_DIRECTION * directions <= size
        # more samples do not help if a path diverges
        if is_accurate or size == MAX_REPLICA_SAMPLES or np.isnan(result.mean["R"]).any():
            return result
        size = _choose_next_size(size, error / error_factor, directions)
        _check_memory(cell, directions, size)


def estimate_replica_bytes(cell: DescentCell, directions: int, size: int) -> int:
    """Estimate the peak memory in bytes of a replica with these numbers of directions and samples.

    The tables grow by doubling. They contain images and slopes, on both sides if steps act on single weights, and a
    basis of both if samples are matched.
    """
    tables, number = (4, 8) if has_matched_samples(cell) else (4 if cell.has_coordinatewise_steps else 2, 4)
    return ROW_TABLE_PEAK_MEMORY_RATIO * tables * number * directions * size


def _check_memory(cell: DescentCell, directions: int, size: int) -> None:
    """Raise `ScenarioError` if a replica needs more memory than this machine has."""
    if (needed := estimate_replica_bytes(cell, directions, size)) > get_total_memory():
        sizes = f"takes {needed / 2**30:.3g} GiB, and this machine has {get_total_memory() / 2**30:.3g} GiB"
        raise ScenarioError([(("epochs",), f"theory with {directions:,} directions {sizes}")])


def _choose_next_size(size: int, error: float, directions: int) -> int:
    """Choose a power of 2, at least twice the number of samples, that should reach the target error."""
    doublings = max(1, int(np.ceil(np.log2(max(error, 1.0)) / SAMPLING_ERROR_DECAY_EXPONENT)))
    room = 1 << (MIN_SAMPLES_PER_DIRECTION * directions - 1).bit_length()
    return min(max(size << doublings, room), MAX_REPLICA_SAMPLES)


def _average_paths(cell: DescentCell, paths: list[DescentPath], size: int) -> DescentCurves:
    """Compute means and standard errors over the descent paths of the replicas."""
    parallel, perpendicular, train_loss, eps_t = (np.array(part) for part in list(zip(*paths, strict=True))[:4])
    eps_g = np.where(
        np.hypot(parallel, perpendicular) == 0, 0.5, angle_from_components(perpendicular, parallel) / np.pi
    )  # zero weights guess at random
    recorded = list(cell.steps)
    parallel, perpendicular = parallel[:, recorded], perpendicular[:, recorded]
    variables = {
        **_compute_weight_variables(cell, parallel, perpendicular),
        "eps_g": eps_g[:, recorded],
        "train_loss": train_loss,
        "eps_t": eps_t,
    }
    with np.errstate(all="ignore"):  # the square of a length overflows before the length does
        mean = {name: np.mean(values, axis=0) for name, values in variables.items()}
        error = {name: np.std(values, axis=0, ddof=1) / np.sqrt(len(paths)) for name, values in variables.items()}
    for name, values in error.items():
        overflowed = ~np.isfinite(values)
        mean[name][overflowed] = values[overflowed] = np.nan
    return DescentCurves(mean, error, np.mean(eps_g, axis=0), size)


def _compute_weight_variables(
    cell: DescentCell, parallel: np.ndarray, perpendicular: np.ndarray
) -> dict[str, np.ndarray]:
    """Return a sampled descent's cosine, length, and error on fresh labels or of a linear teacher's field."""
    length = np.hypot(parallel, perpendicular)
    R, nans = parallel / np.where(length == 0, 1.0, length), np.full_like(parallel, np.nan)
    if isinstance(cell.teacher, LabelTeacher):
        return {"R": R, "length": length, "eps_y": label_error(cell.teacher, R), "mse": nans}
    return {"R": R, "length": length, "eps_y": nans, "mse": (1 - parallel) ** 2 + perpendicular**2}
