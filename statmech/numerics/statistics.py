r"""Standard errors of means, the bound on the largest of many deviations from theory, and the number of seeds needed.

**Standard errors** are computed for plain arrays and for datasets of runs.

**Largest deviation if theory is exact.** A deviation in standard errors, :math:`t = \sqrt n\,(\overline x -
x_\mathrm{theory})/s` from n seeds, has Student's distribution with n - 1 degrees of freedom, because the order
parameters of a large system fluctuate as Gaussians (their skewness is :math:`O(1/\sqrt N)`). The largest of M values
exceeds c with a probability of at most :math:`M\,P(|t| > c)`. This bound is too large where several values exceed c
together, as at neighbouring times, and as R and :math:`\epsilon_g = \arccos(R)/\pi` always do. A group of k values
above c is counted once by the weight 1/k:

.. math:: P(\max_j |t_j| > c) = \sum_j P(|t_j| > c)\,\langle 1/k \rangle_{|t_j| > c} = M'\,P(|t| > c),
    \qquad M' = M\,\langle 1/k \rangle,

which is exact. The mean is taken over Gaussian samples with the correlations of the runs, given that a random value
exceeds c (`count_independent_values`). Parameter combinations are counted as independent, as they are in online
learning. Where they share their data, the bound is too large rather than too small.

**How many seeds can judge.** If the standard deviation :math:`\sigma` were known, n seeds would find a deviation of
:math:`c_\infty\sigma/\sqrt n`, where :math:`c_\infty` is the bound of the normal distribution; with the standard
deviation estimated from the same seeds, it must be :math:`c_n\sigma/\sqrt n`. So n seeds find only as much as
:math:`n\,(c_\infty/c_n)^2` seeds would if :math:`\sigma` were known. Where this number is below n/2, most seeds are
used up in estimating the standard errors, and the bound lies far in the tails of Student's distribution, where a few
seeds that happen to agree lead to any value. Seeds can judge if

.. math:: c_n \le \sqrt2\,c_\infty

(`compute_min_seeds`): at least 8 seeds for one value, 15 for 100, 18 for 1,000.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.special import ndtri, stdtrit

if TYPE_CHECKING:
    import xarray as xr


RunValues = TypeVar("RunValues", "xr.DataArray", "xr.Dataset")
FALSE_ALARM_PROBABILITY = 0.01  # probability that some value exceeds the bound although theory is exact
MIN_EFFECTIVE_SEED_FRACTION = 0.5  # effective seeds per seed, compared with known standard deviations
NUM_GAUSSIAN_SAMPLES = 400  # gives the number of independent values to about 5 %, and the bound to 0.5 %
MAX_SAMPLED_SEEDS = 64  # with more seeds, Student's distribution is close to normal


def take_mean_square_roots(dataset: xr.Dataset, prefix: str) -> xr.Dataset:
    """Replace mean squares, and the standard errors of measured mean squares, by the roots and their standard errors.

    Parameters
    ----------
    dataset
        Variables NAME, and NAME_error for the standard error of NAME.
    prefix
        The beginning of the names of mean squares. All other variables remain as they are.

    Examples
    --------
    >>> import xarray as xr
    >>> roots = take_mean_square_roots(xr.Dataset({"mse": 4.0, "mse_error": 0.4, "lam": 4.0}), "mse")
    >>> {name: float(roots[name]) for name in roots}
    {'mse': 2.0, 'mse_error': 0.1, 'lam': 4.0}
    """
    squares = {str(name): part for name, part in dataset.items() if str(name).startswith(prefix)}
    roots = {name: part**0.5 for name, part in squares.items()}
    for name, part in squares.items():
        if (square := name.removesuffix("_error")) != name:
            roots[name] = part / (2 * roots[square])
    return dataset.assign(roots)


def standard_error(values: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    r"""Return the standard error of the mean, :math:`s/\sqrt n` with :math:`s^2 = \sum_i (x_i - \bar x)^2 / (n - 1)`.

    Parameters
    ----------
    values
        Samples, an array of any shape. NaN marks missing samples, which do not count.
    axis
        The axis or axes of the samples, or None for all axes.

    Returns
    -------
    The standard errors in the shape of `values` without these axes, NaN where there are fewer than two samples.

    >>> float(standard_error(np.array([1.0, 3.0, np.nan])))
    1.0
    """
    is_present = ~np.isnan(values)
    count = is_present.sum(axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(is_present, values, 0.0).sum(axis, keepdims=True) / count
        squares = np.where(is_present, values - mean, 0.0) ** 2
        count = np.squeeze(count, axis)
        return np.sqrt(squares.sum(axis) / (count - 1)) / np.sqrt(count)


def compute_run_standard_error(values: RunValues, dim: str | Sequence[str] = "seed") -> RunValues:
    """Return the standard error of the mean over `dim`, for one variable or each variable of a dataset.

    >>> import xarray as xr
    >>> runs = xr.DataArray([[1.0, 3.0], [5.0, float("nan")]], dims=("t", "seed"))
    >>> compute_run_standard_error(runs).values
    array([ 1., nan])
    """
    return values.reduce(standard_error, dim)


def compute_deviation_bound(values: float, seeds: int | None) -> float:
    """Compute the bound on the deviations of independent values, in standard errors.

    If theory is exact, some value exceeds the bound with probability `FALSE_ALARM_PROBABILITY`.

    Parameters
    ----------
    values
        The number of independent values.
    seeds
        The number of seeds behind each estimated standard error, at least 2. None if the standard errors are known: the
        bound then comes from the normal distribution.

    Returns
    -------
    The bound, in standard errors.

    Examples
    --------
    >>> (
    ...     round(compute_deviation_bound(1, 64), 1), round(compute_deviation_bound(100, 64), 1),
    ...     round(compute_deviation_bound(100, 8), 1)
    ... )
    (2.7, 4.2, 7.9)
    >>> round(compute_deviation_bound(100, None), 1)
    3.9
    """
    if seeds is None:
        return float(-ndtri(_one_sided_tail_probability(values)))
    return float(-stdtrit(seeds - 1, _one_sided_tail_probability(values)))


def compute_min_seeds(values: int) -> int:
    """Compute the minimum number of seeds needed to judge the deviations of independent values.

    Parameters
    ----------
    values
        The number of independent values.

    Returns
    -------
    The number of seeds.

    Examples
    --------
    >>> [compute_min_seeds(values) for values in (1, 100, 1000, 10_000)]
    [8, 15, 18, 22]
    """
    max_bound, seeds = compute_deviation_bound(values, None) / np.sqrt(MIN_EFFECTIVE_SEED_FRACTION), 2
    while compute_deviation_bound(values, seeds) > max_bound:
        seeds += 1
    return seeds


def count_independent_values(counts: np.ndarray, runs: Callable[[int], np.ndarray], seeds: int) -> float:
    r"""Count correlated values as an equivalent number :math:`M' = M\langle 1/k\rangle` of independent values.

    Parameters
    ----------
    counts
        The number of compared values for each parameter combination.
    runs
        Returns the runs of a parameter combination, shape (seeds, values); NaN where a seed has no value.
    seeds
        The number of seeds behind each estimated standard error.

    Returns
    -------
    A number between 1 and the sum of `counts`; 0 if this sum is 0. The same runs give the same number.

    Examples
    --------
    A value, its double, and one that is independent:

    >>> x, y = np.random.default_rng(1).standard_normal((2, 32))
    >>> round(count_independent_values(np.array([3]), lambda _: np.stack([x, 2 * x, y], axis=1), 32), 1)
    2.0
    """
    values = int(counts.sum())
    if not values:
        return 0.0
    rng = np.random.default_rng(0)
    cells = rng.choice(len(counts), NUM_GAUSSIAN_SAMPLES, p=counts / values)
    groups = [
        _draw_exceeding_count(factor, min(seeds, MAX_SAMPLED_SEEDS), _one_sided_tail_probability(values), rng)
        for cell, draws in zip(*np.unique(cells, return_counts=True), strict=True)
        for factor in [_factorise_correlations(runs(cell))] * draws
    ]
    return max(1.0, values * float(np.mean(1 / np.array(groups))))


def _one_sided_tail_probability(values: float) -> float:
    """Return the probability that a given value exceeds the bound on a given side."""
    return FALSE_ALARM_PROBABILITY / 2 / max(values, 1)


def _factorise_correlations(runs: np.ndarray) -> np.ndarray:
    """Return a matrix F such that F^T F contains the correlations of runs (seeds, values)."""
    deviations = np.nan_to_num(runs - np.nanmean(runs, axis=0))
    return np.asarray(np.linalg.qr(deviations / np.linalg.norm(deviations, axis=0), mode="r"))


def _draw_exceeding_count(factor: np.ndarray, seeds: int, tail: float, rng: np.random.Generator) -> int:
    """Draw Gaussian deviations with a random one beyond the bound, and count all deviations beyond the bound."""
    sample = rng.standard_normal((seeds, len(factor))) @ factor
    column = rng.integers(factor.shape[1])
    pushed = _draw_exceeding_sample(sample[:, column], tail, rng)
    sample += np.outer(pushed - sample[:, column], factor[:, column] @ factor)  # shift the other values by regression
    t = np.sqrt(seeds) * sample.mean(axis=0) / sample.std(axis=0, ddof=1)
    return max(1, int(np.sum(np.abs(t) > -stdtrit(seeds - 1, tail))))


def _draw_exceeding_sample(sample: np.ndarray, tail: float, rng: np.random.Generator) -> np.ndarray:
    """Draw a Gaussian sample whose standardised mean t exceeds the bound on the largest deviation.

    The given sample is rotated towards equal values, which leaves its norm unchanged.
    """
    seeds, deviations = len(sample), sample - sample.mean()
    t = -stdtrit(seeds - 1, tail * (1 - rng.random()))
    direction = t / np.sqrt(seeds) + deviations * np.sqrt((seeds - 1) / np.sum(deviations**2))
    return np.asarray(direction * np.linalg.norm(sample) / np.linalg.norm(direction))
