r"""Bounds on boosting sparse perceptrons, which hold for each run.

The bounds are from Jackson & Craven, Learning Sparse Perceptrons, section 3.2. A k-perceptron is
:math:`f(x) = \mathrm{sign}\sum_{i=1}^s h_i(x)`, a vote of s conjunctions with at most k inputs, each in one of two
senses. Under any distribution some conjunction is right with probability :math:`\frac12+\frac1{2s}` or more (Lemma 1).
AdaBoost with an exhaustive search thus has an advantage :math:`\gamma\ge\frac1{2s}` at every stage. Its training error
is at most :math:`(1-4\gamma^2)^{T/2} \le e^{-2\gamma^2T}` after T stages. For :math:`T > 2s^2\ln m` this is less than
1/m, and the training error is therefore 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, comb, log

import numpy as np
from scipy.special import gammaln

from statmech.classification.boosting import Boosting, BoostingCell
from statmech.errors import ScenarioError

MIN_BOUNDED_ADVANTAGE = 1e-150  # the bound on the stages, proportional to 1/advantage^2, overflows at smaller values
MAX_GAMMALN_FEATURES = 10**12  # for more features, differences of gammaln lose significant digits
BOUND_FAILURE_PROBABILITY = 0.05  # probability that a run exceeds its bound on eps_g
SOURCE = (
    "Bounds of Jackson & Craven, Lemmas 1 and 2; "
    f"the bound on eps_g holds in at least {1 - BOUND_FAILURE_PROBABILITY:.0%} of runs"
)


def compute_boosting_bounds(cell: BoostingCell) -> dict[str, float]:
    """Return upper bounds on AdaBoost's stages and eps_g, and a lower bound on its advantage, or NaN without a bound.

    A run that `cap` ends before the bound on its stages can neither satisfy nor violate this bound. With flipped labels
    no bound exists: AdaBoost moves its weight to the flipped examples, where the teacher's own conjunctions are worse
    than chance (`advantage` holds only for the first stage).
    """
    if cell.flip > 0:
        return dict.fromkeys(("stages", "eps_g", "advantage"), np.nan)
    gamma = guaranteed_advantage(cell.s, cell.booster.discount if cell.k > 1 else 1.0)
    if gamma < MIN_BOUNDED_ADVANTAGE:
        return {"stages": np.nan, "eps_g": np.nan, "advantage": gamma}
    max_stages = bound_stages(1 / (2 * gamma), cell.P)
    size = bound_log_perceptrons(count_conjunctions(cell.N, cell.k) + 1, max_stages)
    eps = bound_generalization_error(cell.P, BOUND_FAILURE_PROBABILITY, size)
    return {"stages": max_stages if max_stages <= cell.cap else np.nan, "eps_g": eps, "advantage": gamma}


def guaranteed_advantage(s: int, discount: float = 1.0, flip: float = 0.0) -> float:
    r"""Return the guaranteed advantage of the best conjunction over a random guess (Lemma 1).

    The target is a vote of s conjunctions.

    .. math:: \gamma = \frac{1-2p_f}{2s}

    A search that discounts the correlations of some conjunctions guarantees :math:`\gamma` times the discount.

    Parameters
    ----------
    s : int
        Number of conjunctions in the target.
    discount : float
        Factor on the correlations of conjunctions of two and more inputs.
    flip : float
        Probability :math:`p_f` that a label is inverted, independently of the input. The advantage is then an average
        over flips, under a distribution that does not depend on the flips, such as AdaBoost's first distribution.

    Returns
    -------
    float
        Between 0 and 1/2.

    Raises
    ------
    ScenarioError
        For s below 1, or a flip outside [0, 1/2].

    Examples
    --------
    >>> guaranteed_advantage(5), guaranteed_advantage(5, discount=0.5), guaranteed_advantage(5, flip=0.25)
    (0.1, 0.05, 0.05)
    """
    _check_counts(s=s)
    if not 0 <= flip <= 0.5:
        raise ScenarioError([(("flip",), f"must lie between 0 and 0.5, not {flip:g}")])
    return discount * (1 - 2 * flip) / (2 * s)


def count_conjunctions(inputs: int | Sequence[int], k: int) -> int:
    r"""Count the conjunctions of 1 to k inputs, for bounds on AdaBoost.

    .. math:: \sum_{j=1}^k\binom nj

    Parameters
    ----------
    inputs : int or sequence of int
        The number n of inputs. For nominal attributes, the number of indicators of each attribute: a conjunction joins
        indicators of different attributes, and the count is a sum of elementary symmetric polynomials.
    k : int
        Largest number of inputs in a conjunction.

    Returns
    -------
    int
        Without the empty conjunction, and counting both senses as one.

    Raises
    ------
    ScenarioError
        For k below 1.

    Examples
    --------
    >>> (
    ...     count_conjunctions(30, 2), count_conjunctions([2] * 15, 2), count_conjunctions([4] * 57, 2),
    ...     count_conjunctions([4] * 15, 2)
    ... )
    (465, 450, 25764, 1740)
    """
    if k < 1:
        raise ScenarioError([(("k",), f"must be 1 or more, not {k}")])
    if isinstance(inputs, int):
        return sum(comb(inputs, j) for j in range(1, k + 1))
    polynomial = [1] + [0] * k  # coefficient j counts the conjunctions of j indicators
    for size in inputs:
        for j in range(k, 0, -1):
            polynomial[j] += size * polynomial[j - 1]
    return sum(polynomial[1:])


def bound_stages(s: float, m: int) -> int:
    r"""Bound the number of stages that AdaBoost needs to classify all m training examples correctly.

    .. math:: T > 2s^2\ln m

    (Lemma 1; Freund & Schapire 1995), if the target is a vote of s conjunctions. The number depends only on the
    advantage: for another :math:`\gamma` pass :math:`s = 1/2\gamma`.

    Parameters
    ----------
    s : float
        Number of conjunctions of the target, or 1/2 over the advantage.
    m : int
        Number of examples.

    Returns
    -------
    int

    Raises
    ------
    ScenarioError
        For s or m below 1.

    Examples
    --------
    >>> bound_stages(3, 1000)
    125
    """
    _check_counts(m=m)
    if not s >= 1:
        raise ScenarioError([(("s",), f"must be 1 or more, not {s:g}")])
    return int(2 * s**2 * log(m)) + 1


def bound_training_error(errors: Sequence[float] | np.ndarray) -> np.ndarray:
    r"""Bound the training error after each stage by :math:`\prod_{i\le T} 2\sqrt{\epsilon_i(1-\epsilon_i)}`.

    Parameters
    ----------
    errors : array_like (T,)
        Weighted errors of the stages.

    Returns
    -------
    array (T,)
        The bound after each stage.

    Examples
    --------
    >>> bound_training_error([0.2, 0.3]).round(4)
    array([0.8   , 0.7332])
    """
    errors = np.asarray(errors, float)
    return np.cumprod(2 * np.sqrt(errors * (1 - errors)))


def bound_sample_size(eps: float, delta: float, log_size: float) -> int:
    r"""Return a number of examples that guarantees an error of at most eps for all consistent functions.

    .. math:: m \ge \frac1\epsilon\left(\ln\frac1\delta + \ln|F|\right)

    (Lemma 2), with :math:`\ln|F|` = `log_size`. The bound holds with probability 1 - delta.

    Parameters
    ----------
    eps : float
        Largest error.
    delta : float
        Probability of a larger error.
    log_size : float
        Logarithm of the number of functions in the class.

    Returns
    -------
    int

    Raises
    ------
    ScenarioError
        For eps or delta outside (0, 1).

    Examples
    --------
    >>> bound_sample_size(0.1, 0.05, log(1000))
    100
    """
    _check_probabilities(eps=eps, delta=delta)
    return ceil((log(1 / delta) + log_size) / eps)


def bound_generalization_error(m: int, delta: float, log_size: float) -> float:
    r"""Bound the error of every function in a class that is correct on all m examples.

    .. math:: \epsilon = \min\Bigl(1, \frac1m\Bigl(\ln\frac1\delta + \ln|F|\Bigr)\Bigr)

    (Lemma 2 solved for eps). The bound holds with probability 1 - delta. A value of 1 guarantees nothing.

    Parameters
    ----------
    m : int
        Number of examples.
    delta : float
        Probability that the bound does not hold.
    log_size : float
        Logarithm of the number of functions in the class.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    ScenarioError
        For delta outside (0, 1).

    Examples
    --------
    >>> round(bound_generalization_error(100, 0.05, log(1000)), 4)
    0.099
    """
    _check_counts(m=m)
    _check_probabilities(delta=delta)
    return min(1.0, (log(1 / delta) + log_size) / m)


def bound_log_perceptrons(features: int, r: int) -> float:
    r"""Bound the logarithm of the number of perceptrons with at most r weights over `features` conjunctions.

    .. math:: \ln|P^r| \le \ln\binom{|C_k|}{r} + r^2\ln 2,

    the number of choices of r features, times fewer than :math:`2^{r^2}` threshold functions of these features (Muroga
    1971). This is the paper's :math:`O(r^2+kr\log n)` (after Bruck 1990) with explicit constants.

    Parameters
    ----------
    features : int
        Number of conjunctions to choose from.
    r : int
        Largest number of weights.

    Returns
    -------
    float

    Examples
    --------
    >>> round(bound_log_perceptrons(450, 12), 1)
    153.0
    """
    _check_counts(features=features, r=r)
    r = min(r, features)
    return float(_log_binomial(features, r) + float(r) ** 2 * log(2))


def _log_binomial(features: int, r: int) -> float:
    r"""Return the logarithm of the binomial coefficient n over r, or of its bound :math:`n^r/r!` for large n."""
    if features > MAX_GAMMALN_FEATURES:
        return float(r * log(features) - gammaln(r + 1))
    return float(gammaln(features + 1) - gammaln(r + 1) - gammaln(features - r + 1))


def sufficient_examples(inputs: int | Sequence[int], k: int, s: int, eps: float, delta: float) -> int:
    r"""Return a number of examples that guarantees an error of at most eps for boosting an s-sparse k-perceptron.

    It is the smallest m of Lemma 2 for perceptrons with :math:`r = 2s^2\ln m` weights, which boosting returns for m
    examples. It grows as :math:`s^4/\epsilon` up to logarithms. The bound holds with probability 1 - delta.

    Parameters
    ----------
    inputs
        Number of Boolean inputs, or the number of values of each attribute.
    k : int
        Largest number of inputs in a conjunction.
    s : int
        Number of conjunctions of the target.
    eps : float
        Largest error.
    delta : float
        Maximum probability of a larger error.

    Returns
    -------
    int

    Examples
    --------
    >>> sufficient_examples(30, 2, s=2, eps=0.1, delta=0.05) > 10 * sufficient_examples(30, 2, s=1, eps=0.1, delta=0.05)
    True
    """
    features = count_conjunctions(inputs, k) + 1
    m = 2
    while True:  # the bound grows as ln(m)^2: iteration from below converges to the smallest solution
        needed = bound_sample_size(eps, delta, bound_log_perceptrons(features, bound_stages(s, m)))
        if needed <= m:
            return m
        m = needed


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1 or value != round(value):
            raise ScenarioError([((name,), f"must be an integer of at least 1, not {value}")])


def _check_probabilities(**probabilities: float) -> None:
    for name, value in probabilities.items():
        if not 0 < value < 1:
            raise ScenarioError([((name,), f"must lie between 0 and 1, not {value:g}")])


def solve(scenario: Boosting, cells: Sequence[BoostingCell]) -> Iterator[dict[str, np.ndarray]]:
    """Compute the bounds that hold for the runs of each cell."""
    return ({name: np.asarray(bound) for name, bound in compute_boosting_bounds(cell).items()} for cell in cells)
