r"""Boosting over conjunctions: the kernel of sparse perceptrons (Jackson & Craven, Figure 1 and section 3.3).

Examples are rows of 0-1 indicators. A weak hypothesis h is a conjunction of at most k indicators of different
attributes, the empty one (always true) included, in one of two senses: true counts +1, or true counts -1. Stage i takes
the one of largest correlation :math:`E_{D_i}[f\,h]` with the labels f, where those of two or more indicators are
discounted, and multiplies the weights of the examples that it gets right by :math:`\beta_i`:

.. math:: \epsilon_i = \sum_{h_i(x)\ne f(x)} D_i(x), \quad \beta_i = \epsilon_i/(1-\epsilon_i), \quad
          \text{output } \mathrm{sign}\sum_i -\ln(\beta_i)\,h_i(x).

**The search is exact and consists of matrix products.** With :math:`d_x = D(x)f(x)` and a conjunction's truth c,
:math:`E_D[f h] = \pm(2\sum_x d_xc(x) - \sum_x d_x)`. For all pairs at once the sums are
:math:`S = X^\mathsf{T}\mathrm{diag}(d)X`; for triples the same over the rows where a first indicator holds.

**The cost of a stage is proportional to its mistakes.** The next distribution is the previous one, times :math:`\beta`
where h is right, over its sum :math:`2\epsilon`, so that only the sums over the wrong rows are computed:

.. math:: S \leftarrow \frac{S}{2(1-\epsilon)} + \frac{1-2\epsilon}{2\epsilon(1-\epsilon)}\,S_\text{wrong}.

The first factor is below 1: rounding errors decay from stage to stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

MOST = 5 * 10**7  # largest number of conjunctions whose sums are stored: some gigabytes
ROWS = 256  # rows multiplied at a time, which fit into the cache


class Conjunction(NamedTuple):
    """Indices of the indicators that must all be 1 (none: always true), and the sense: the value of true, +1 or -1."""

    indicators: tuple[int, ...]
    sense: int

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Values +-1 on rows of indicators."""
        return np.where(X[:, list(self.indicators)].all(axis=1), self.sense, -self.sense)


class Stage(NamedTuple):
    """A weak hypothesis, its error under the stage's distribution, and its weight in the output, -ln(beta)."""

    hypothesis: Conjunction
    error: float
    weight: float


def boost(
    X: np.ndarray, y: np.ndarray, attributes: np.ndarray, k: int, stages: int, discount: float = 0.5
) -> Iterator[Stage]:
    """AdaBoost's stages on 0-1 indicators.

    It ends early with a hypothesis that is always right, whose weight is undefined (beta = 0) and set to 1, and which
    votes alone (see `output`); or before one that is no better than a random guess, after which nothing would change.

    Parameters
    ----------
    X : array (m, n)
        Indicators 0 or 1.
    y : array (m,)
        Labels +-1.
    attributes : array (n,)
        Number of the attribute of each indicator; a conjunction joins indicators of different attributes.
    k : int
        Largest number of indicators in a conjunction.
    stages : int
        Largest number of stages.
    discount : float
        Factor of the correlations of conjunctions of two or more indicators.

    Yields
    ------
    Stage

    Examples
    --------
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> [stage] = boost(X, np.array([-1, -1, -1, 1]), np.arange(2), k=2, stages=10, discount=1.0)
    >>> stage                                                                # AND, in one stage
    Stage(hypothesis=Conjunction(indicators=(0, 1), sense=1), error=0.0, weight=1.0)
    """
    X = np.asarray(X, float)
    distribution = np.full(len(y), 1.0 / len(y))
    search = Search(X, distribution * y, attributes, k, discount)
    for _ in range(stages):
        hypothesis = search.best()
        wrong = hypothesis(X) != y
        error = float(distribution[wrong].sum())
        if not wrong.any():
            yield Stage(hypothesis, 0.0, 1.0)
            return
        if error >= 0.5 - 1e-12:
            return
        beta = error / (1 - error)
        yield Stage(hypothesis, error, -float(np.log(beta)))
        search.reweigh(distribution * y, wrong, error)
        distribution = distribution * np.where(wrong, 1.0, beta)
        distribution /= distribution.sum()


def best(X: np.ndarray, signed: np.ndarray, attributes: np.ndarray, k: int, discount: float) -> Conjunction:
    """The conjunction of the largest discounted correlation, for `signed` (m,), the distribution times the labels.

    Of equal ones (to rounding) the one of fewer indicators, then of lower indices.
    """
    return Search(np.asarray(X, float), signed, attributes, k, discount).best()


class Search:
    """The sums of `signed` (m,) over the rows where each conjunction is true, updated from stage to stage.

    A block contains the sums of all conjunctions of given first indicators (none for pairs) with two later ones. Raises
    `ValueError` if there are more conjunctions of k indicators than `MOST`.
    """

    def __init__(self, X: np.ndarray, signed: np.ndarray, attributes: np.ndarray, k: int, discount: float):
        n, attributes = X.shape[1], np.asarray(attributes)
        k = min(k, len(np.unique(attributes)))
        if comb(n, k) > MOST:
            raise ValueError(f"conjunctions of {k} of {n} indicators are too many to search: more than {MOST:,}")
        self.X, self.attributes, self.discount = X, attributes, discount
        self.distinct = np.triu(attributes[:, None] != attributes, 1).astype(float)
        # work space: large arrays cost more to allocate than to fill
        self.space, self.rows = np.empty(n * n), np.empty((2, ROWS, n))
        leading = [first for order in range(2, k + 1) for first in _leading(n, attributes, order - 2)]
        self.blocks = [(first, np.zeros((n - _after(first),) * 2)) for first in leading]
        self.total, self.singles = 0.0, np.zeros(n)
        self._add(0.0, np.arange(len(X)), signed)

    def best(self) -> Conjunction:
        """See `best`."""
        largest, result = abs(self.total), Conjunction((), 1 if self.total >= 0 else -1)
        for first, sums, allowed, discount in self._blocks():
            half = np.subtract(sums, self.total / 2, out=self._space(sums))
            np.abs(half, out=half)
            half *= allowed
            peak = half.max(initial=0.0)
            if 2 * discount * peak > largest * (1 + 1e-12) + 1e-15:
                index = np.unravel_index(np.argmax(half >= peak * (1 - 1e-12)), sums.shape)
                largest = 2 * discount * peak
                indicators = (*first, *(int(i) + _after(first) for i in index))
                result = Conjunction(indicators, 1 if sums[index] >= self.total / 2 else -1)
        return result

    def reweigh(self, signed: np.ndarray, wrong: np.ndarray, error: float) -> None:
        """Update to the next distribution, from `signed` of this stage, the mask of its mistakes and its error."""
        fade, grow = 0.5 / (1 - error), (0.5 - error) / (error * (1 - error))
        self._add(fade, np.flatnonzero(wrong), grow * signed[wrong])

    def _add(self, fade: float, rows: np.ndarray, signed: np.ndarray) -> None:
        """Multiply all sums by `fade`, and add the sums of `signed` (r,) over these rows (r,)."""
        self.total = fade * self.total + signed.sum()
        for first, sums in self.blocks:
            sums *= fade
            true = self.X[rows[:, None], first].all(axis=1) if first else slice(None)
            self._add_products(sums, rows[true], signed[true], _after(first))
        if self.blocks:
            self.singles = self.blocks[0][1].diagonal().copy()  # an indicator and itself
        else:
            self.singles = fade * self.singles + signed @ self.X[rows]

    def _add_products(self, sums: np.ndarray, rows: np.ndarray, signed: np.ndarray, start: int) -> None:
        """Add the sums of the pairs of indicators from `start` on, by matrix products of ROWS rows at a time."""
        space = self._space(sums)
        for first in range(0, len(rows), ROWS):
            batch = rows[first : first + ROWS]
            taken, weighted = self.rows[:, : len(batch)]
            self.X.take(batch, axis=0, out=taken, mode="clip")  # without "clip" it is copied once more
            np.multiply(taken, signed[first : first + ROWS, None], out=weighted)
            sums += np.matmul(weighted[:, start:].T, taken[:, start:], out=space)

    def _space(self, sums: np.ndarray) -> np.ndarray:
        return self.space[: sums.size].reshape(sums.shape)

    def _blocks(self) -> Iterator[tuple[list[int], np.ndarray, np.ndarray | float, float]]:
        """All conjunctions but the empty one, by size: first indicators, sums, mask of allowed ones, discount."""
        yield [], self.singles, 1.0, 1.0
        for first, sums in self.blocks:
            start = _after(first)
            allowed = self.distinct[start:, start:]
            if first:
                other = np.all(self.attributes[start:, None] != self.attributes[first], axis=1)
                allowed = allowed * other * other[:, None]
            yield first, sums, allowed, self.discount


def _after(first: list[int]) -> int:
    """The first indicator that may join these: each conjunction occurs once, with its indicators in order."""
    return first[-1] + 1 if first else 0


def counted(stages: list[Stage]) -> list[Stage]:
    """The stages that vote: all, or only the last if it is always right."""
    return stages[-1:] if stages and stages[-1].error == 0.0 else stages


def output(stages: list[Stage], X: np.ndarray) -> np.ndarray:
    """The weighted vote (m,) of the stages, whose sign is the prediction."""
    return sum((stage.weight * stage.hypothesis(X) for stage in counted(stages)), np.zeros(len(X)))


def merged(stages: list[Stage]) -> dict[Conjunction, float]:
    """Conjunctions and their total weights, both senses of one combined; the largest weight first."""
    total: dict[tuple[int, ...], float] = {}
    for stage in counted(stages):
        indicators = stage.hypothesis.indicators
        total[indicators] = total.get(indicators, 0) + stage.hypothesis.sense * stage.weight
    ordered = sorted(total.items(), key=lambda item: -abs(item[1]))
    return {Conjunction(indicators, 1 if weight >= 0 else -1): abs(weight) for indicators, weight in ordered}


def _leading(n: int, attributes: np.ndarray, size: int) -> Iterator[list[int]]:
    """All increasing lists of `size` indicators of different attributes."""
    if size == 0:
        yield []
        return
    for shorter in _leading(n, attributes, size - 1):
        for i in range(shorter[-1] + 1 if shorter else 0, n):
            if attributes[i] not in attributes[shorter]:
                yield [*shorter, i]
