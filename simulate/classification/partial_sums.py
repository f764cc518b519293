r"""Attention: evaluation of margins feature by feature, up to a stopping level (Pelossof & Ying).

The features of an example are summed up to checkpoints, :math:`S_i = \sum_{j\le i} w_jz_j`. Where :math:`S_i` reaches a
level :math:`\tau` (`statmech.classification.stopping_boundaries`) the example is assumed to be right, and its other
features are not evaluated. The loop over rows and features (`sum_block_until_mistake`), which can also make perceptron
updates, is compiled when it is first needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

import numpy as np

from statmech.classification.stopping_boundaries import Boundary, compute_stopping_level, compute_total_level_rise
from statmech.runtime.compiled_programs import compile_loop

MIN_PROBED_MARGINS = 10
MARGIN_AVERAGING_WINDOW = 200  # averaging window: mean and variance change because w grows
MIN_BLOCK_EXAMPLES, MAX_BLOCK_EXAMPLES = 8, 8192  # the block size is halved after a mistake, else doubled
COMPILED_ARRAY_FLAGS: Final = ("C", "A", "W")  # arguments of compiled loops must be contiguous, aligned and writeable


class StoppedSums(NamedTuple):
    """Each row's sum when it stopped, and its number of evaluated features, both (m,)."""

    sums: np.ndarray
    features: np.ndarray


def sum_rows_until_level(
    z: np.ndarray,
    w: np.ndarray,
    checkpoints: np.ndarray,
    tau: float,
    initial_sums: np.ndarray | float = 0.0,
    level_rise: float = 0.0,
    two_sided: bool = False,
) -> StoppedSums:
    """Sum rows z times w from left to right, and stop each row at the first checkpoint above the level.

    Parameters
    ----------
    z
        Rows to sum (m, n).
    w
        Weights (n,).
    checkpoints
        Increasing numbers of features, up to n: sums are compared with the level there.
    tau
        The level.
    initial_sums
        Initial sum, a bias.
    level_rise
        Rise of the level by the end.
    two_sided
        True to compare the absolute value of the sum.

    Examples
    --------
    >>> sum_rows_until_level(np.array([[2.0, -9.0], [0.5, -1.0]]), np.ones(2), np.array([1, 2]), tau=1.0)
    StoppedSums(sums=array([ 2. , -0.5]), features=array([1, 2]))
    """

    (m, n), sums, features = z.shape, np.empty(len(z)), np.empty(len(z), int)
    z = np.require(z, float, COMPILED_ARRAY_FLAGS)
    w = np.require(w, float, COMPILED_ARRAY_FLAGS)
    initial_sums = np.full(m, initial_sums, float)
    sum_block_until_mistake(
        z,
        w,
        1.0,
        initial_sums,
        np.zeros(m, bool),
        checkpoints,
        tau,
        level_rise / n,
        two_sided,
        -np.inf,
        0,
        m,
        False,
        sums,
        features,
    )
    return StoppedSums(sums, features)


def sum_up_to_checkpoints(z: np.ndarray, w: np.ndarray, checkpoints: np.ndarray) -> np.ndarray:
    """Return the sums of rows z (m, n) times w at increasing checkpoints up to n.

    >>> sum_up_to_checkpoints(np.array([[2.0, -9.0, 1.0]]), np.ones(3), np.array([2, 3]))
    array([[-7., -6.]])
    """
    return np.cumsum(np.add.reduceat(z * w, np.append(0, checkpoints[:-1]), axis=1), axis=1)


class StoppingLevel(NamedTuple):
    """The level that stops a sum, which starts at tau and rises by `slope` over all features."""

    tau: float
    slope: float


class BlockResult(NamedTuple):
    """The result of consecutive examples, up to the end of a block or to a mistake."""

    last_index: int  # index of the last example
    features: int  # features evaluated in total
    stopped: np.ndarray  # True for examples that were not evaluated to the end
    probe_margins: np.ndarray  # margins of the probes
    is_last_mistaken: bool  # the last example's margin does not exceed theta
    margin: float  # partial margin of the last example when its evaluation ended
    num_wrongly_stopped: int  # stopped examples without a positive margin, counted if the student `learns`


class AttentionState:
    """A student with weights w (n,), a bias b, and estimates of its margins' mean and variance from probes.

    Its level applies to margins that are compared with theta.
    """

    def __init__(
        self,
        w: np.ndarray,
        boundary: str | Boundary,
        error_rate: float,
        memory: int = MARGIN_AVERAGING_WINDOW,
        theta: float = 0.0,
    ):
        self.w, self.b = w, 0.0
        self.boundary, self.error_rate, self.memory, self.theta = boundary, error_rate, memory, theta
        self.probes, self.mean, self.variance = 0, 0.0, 0.0
        self.level = StoppingLevel(np.inf, 0.0)

    def update_margin_moments(self, margins: np.ndarray) -> None:
        """Update the exponentially weighted mean and variance of margins, and the level for their partial sums."""
        if not margins.size:
            return
        for margin in margins:
            self.probes += 1
            weight = max(1 / self.probes, 1 / self.memory)
            deviation = margin - self.mean
            self.mean += weight * deviation
            self.variance = (1 - weight) * (self.variance + weight * deviation**2)
        if self.probes >= MIN_PROBED_MARGINS and self.variance > 0:
            self._update_stopping_level()

    def set_margin_moments(self, mean: float, variance: float) -> None:
        """Set a mean and variance that are known without probes."""
        self.probes, self.mean, self.variance = max(self.memory, MIN_PROBED_MARGINS), mean, variance
        self._update_stopping_level()

    def get_unlabelled_level(self) -> float:
        """Return the level for unlabelled examples.

        It is the level of a walk without drift, compared with 0.
        """
        if not np.isfinite(self.level.tau):
            return np.inf
        return float(compute_stopping_level(self.boundary, self.error_rate, 0.0, self.variance))

    def _update_stopping_level(self) -> None:
        tau = float(compute_stopping_level(self.boundary, self.error_rate, self.mean, self.variance, self.theta))
        self.level = StoppingLevel(tau, float(compute_total_level_rise(self.boundary, self.mean)))


class StoppingStudent(Protocol):
    """A student with weights w (n,), bias b and level, which may change, and a margin threshold theta."""

    w: np.ndarray
    b: float
    level: StoppingLevel
    theta: float


def evaluate_margins_in_blocks(
    student: StoppingStudent,
    z: np.ndarray,
    bias_factors: np.ndarray,
    probes: np.ndarray,
    checkpoints: np.ndarray,
    block: int = 64,
    learns: bool = False,
) -> Iterator[BlockResult]:
    """Evaluate margins by sums that stop early in one pass over the examples, and yield the result of each block.

    The caller updates the student after each result.

    Parameters
    ----------
    student
        Weights, bias and level; read at the start of each block.
    z
        Examples times their labels (m, n).
    bias_factors
        Factors of the bias (m,): the labels, or 0 without a bias.
    probes
        True for examples that are evaluated fully (m,): their margins are an unbiased sample.
    checkpoints
        Increasing numbers of features, up to n: sums are compared with the level there.
    block
        Number of examples in the first block. The level is updated from its probes at its end.
    learns
        True to add each mistaken example to the student's w in place (no bias). The caller then updates only the level.
    """

    (m, n), row = z.shape, 0
    z, bias_factors = np.require(z, float, COMPILED_ARRAY_FLAGS), np.require(bias_factors, float, COMPILED_ARRAY_FLAGS)
    sums, features = np.empty(m), np.empty(m, int)
    while row < m:
        first, (tau, slope), theta = row, student.level, student.theta
        arguments = z, student.w, student.b, bias_factors, probes, checkpoints, tau, slope / n, False, theta
        row, block, num_lost = sum_block_until_mistake(*arguments, row, block, learns, sums, features)
        ends, evaluated = sums[first:row], features[first:row]
        margin = float(ends[-1])
        mistaken = bool(evaluated[-1] == n and margin <= theta)
        yield BlockResult(
            row - 1, int(evaluated.sum()), evaluated < n, ends[probes[first:row]], mistaken, margin, num_lost
        )


@compile_loop(
    "UniTuple(i8, 3)(f8[:,::1], f8[::1], f8, f8[::1], b1[::1], i8[::1], f8, f8, b1, f8, i8, i8, b1, f8[::1], i8[::1])"
)
def sum_block_until_mistake(  # type: ignore[no-untyped-def]
    z,
    w,
    b,
    bias_factors,
    probes,
    checkpoints,
    tau,
    level_rise_per_feature,
    two_sided,
    theta,
    row,
    block,
    learns,
    sums,
    features,
):
    """Sum rows z times w until a block ends or a mistake occurs, a full sum of at most theta.

    Starts at a given row. Returns the next row, the size of the next block, and the number of lost rows: rows that
    stopped although their full sums are not positive. Lost rows are counted only if the student learns here.

    Parameters
    ----------
    z, w, b
        Rows (m, n), weights (n,) and bias.
    bias_factors, probes
        Factors of the bias (m,), and True for rows that do not stop (m,).
    checkpoints
        Increasing numbers of features, up to n: sums are compared with the level there.
    tau, level_rise_per_feature
        The level, and its rise per feature.
    two_sided
        True to compare the absolute value of the sum.
    theta
        Threshold of full sums; -inf for no mistakes.
    row, block
        The first row, and the number of rows in its block.
    learns
        True to add each mistaken row to w and continue with a new block.
    sums, features
        Output: the sum where each row stopped (m,), and its number of summed features (m,).
    """
    m, n = z.shape
    num_lost, end, probed = 0, row + block, False
    while row < m:
        total, first, probe = b * bias_factors[row], 0, probes[row]
        for checkpoint in checkpoints:
            total += z[row, first] * w[first]  # the only feature up to this checkpoint if all features are checkpoints
            for i in range(first + 1, checkpoint):
                total += z[row, i] * w[i]
            first = checkpoint
            if not probe and (abs(total) if two_sided else total) >= tau + level_rise_per_feature * checkpoint:
                break
        sums[row], features[row] = total, first
        mistaken = first == n and total <= theta
        if learns and first < n:
            for i in range(first, n):
                total += z[row, i] * w[i]
            num_lost += total <= 0
        if learns and mistaken:
            for i in range(n):
                w[i] += z[row, i]
        row += 1
        probed |= probe
        if mistaken or row == end:
            block = max(block // 2, MIN_BLOCK_EXAMPLES) if mistaken else min(2 * block, MAX_BLOCK_EXAMPLES)
            end = row + block
            if probed or (mistaken and not learns):
                break
    return row, block, num_lost
