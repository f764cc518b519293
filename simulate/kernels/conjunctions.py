r"""Boosting over conjunctions: the kernel of sparse perceptrons (Jackson & Craven, Figure 1 and section 3.3).

Examples are rows of 0-1 indicators. A weak hypothesis h is a conjunction of at most k indicators of different
attributes, the empty one (always true) included, in one of two senses: true counts +1, or true counts -1. Stage i takes
that of the largest correlation :math:`E_{D_i}[f\,h]` with the labels f, those of two and more indicators discounted,
and reweighs what it gets right by :math:`\beta_i`:

.. math:: \epsilon_i = \sum_{h_i(x)\ne f(x)} D_i(x), \quad \beta_i = \epsilon_i/(1-\epsilon_i), \quad
          \text{output } \mathrm{sign}\sum_i -\ln(\beta_i)\,h_i(x).

**The search is exact and made of matrix products.** With :math:`d_x = D(x)f(x)` and a conjunction's truth c,
:math:`E_D[f h] = \pm(2\sum_x d_xc(x) - \sum_x d_x)`. For all pairs at once the sums are
:math:`S = X^\mathsf{T}\mathrm{diag}(d)X`; for triples the same over the rows where a first indicator holds.

**A stage costs what it got wrong.** The next distribution is the last, times :math:`\beta` where h was right, over its
sum :math:`2\epsilon`, so that only the sums over the wrong rows are new:

.. math:: S \leftarrow \frac{S}{2(1-\epsilon)} + \frac{1-2\epsilon}{2\epsilon(1-\epsilon)}\,S_\text{wrong}.

The first factor is below 1: rounding errors fade from stage to stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

MOST = 5 * 10**7  # conjunctions whose sums are kept: some gigabytes
ROWS = 256  # multiplied at a time: they stay in the cache


class Conjunction(NamedTuple):
    """Indices of the indicators that must all be 1 (none: always true), and the sense: what true counts, +1 or -1."""

    indicators: tuple[int, ...]
    sense: int

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Its values +-1 on rows of indicators."""
        return np.where(X[:, list(self.indicators)].all(axis=1), self.sense, -self.sense)


class Stage(NamedTuple):
    """A weak hypothesis, its error under the stage's distribution, and its weight in the output, -ln(beta)."""

    hypothesis: Conjunction
    error: float
    weight: float


def boost(
    X: np.ndarray, y: np.ndarray, attributes: np.ndarray, k: int, stages: int, discount: float = 0.5
) -> Iterator[Stage]:
    """AdaBoost's stages on indicators X (m, n) of 0 and 1 and labels y (m,) of +-1, at most `stages` of them.

    `attributes` (n,) numbers the attribute of each indicator. It ends early with a hypothesis that is always right,
    whose weight beta = 0 leaves undefined: it is 1, and is meant to stand alone (`output` sees to that); and before one
    that is no better than chance, after which nothing would change.

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

    Of equal ones (to rounding) that of fewer indicators, then of lower indices.
    """
    return Search(np.asarray(X, float), signed, attributes, k, discount).best()


class Search:
    """The sums of `signed` (m,) over the rows where each conjunction is true, kept from stage to stage.

    A block holds those of all that join some first indicators (none for pairs) with two later ones. Raises `ValueError`
    for more of k indicators than `MOST`.
    """

    def __init__(self, X: np.ndarray, signed: np.ndarray, attributes: np.ndarray, k: int, discount: float):
        n, attributes = X.shape[1], np.asarray(attributes)
        k = min(k, len(np.unique(attributes)))
        if comb(n, k) > MOST:
            raise ValueError(f"conjunctions of {k} of {n} indicators are too many to search: more than {MOST:,}")
        self.X, self.attributes, self.discount = X, attributes, discount
        self.apart = np.triu(attributes[:, None] != attributes, 1).astype(float)
        # where blocks are worked on: large arrays cost more to make than to fill
        self.room, self.rows = np.empty(n * n), np.empty((2, ROWS, n))
        leading = [first for order in range(2, k + 1) for first in _leading(n, attributes, order - 2)]
        self.blocks = [(first, np.zeros((n - _after(first),) * 2)) for first in leading]
        self.total, self.singles = 0.0, np.zeros(n)
        self._add(0.0, np.arange(len(X)), signed)

    def best(self) -> Conjunction:
        """See `best`."""
        largest, found = abs(self.total), Conjunction((), 1 if self.total >= 0 else -1)
        for first, sums, allowed, discount in self._blocks():
            half = np.subtract(sums, self.total / 2, out=self._room(sums))
            np.abs(half, out=half)
            half *= allowed
            peak = half.max(initial=0.0)
            if 2 * discount * peak > largest * (1 + 1e-12) + 1e-15:
                at = np.unravel_index(np.argmax(half >= peak * (1 - 1e-12)), sums.shape)
                largest = 2 * discount * peak
                indicators = (*first, *(int(i) + _after(first) for i in at))
                found = Conjunction(indicators, 1 if sums[at] >= self.total / 2 else -1)
        return found

    def reweigh(self, signed: np.ndarray, wrong: np.ndarray, error: float) -> None:
        """To the next stage's distribution, from that times the labels, what a hypothesis got wrong, and its error."""
        fade, grow = 0.5 / (1 - error), (0.5 - error) / (error * (1 - error))
        self._add(fade, np.flatnonzero(wrong), grow * signed[wrong])

    def _add(self, fade: float, rows: np.ndarray, signed: np.ndarray) -> None:
        """All sums times `fade`, and the sums of `signed` (r,) over these rows (r,) more."""
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
        """The same for the pairs of indicators from `start` on, by matrix products of a few rows at a time."""
        room = self._room(sums)
        for at in range(0, len(rows), ROWS):
            some = rows[at : at + ROWS]
            taken, weighted = self.rows[:, : len(some)]
            self.X.take(some, axis=0, out=taken, mode="clip")  # or it would be copied once more
            np.multiply(taken, signed[at : at + ROWS, None], out=weighted)
            sums += np.matmul(weighted[:, start:].T, taken[:, start:], out=room)

    def _room(self, sums: np.ndarray) -> np.ndarray:
        return self.room[: sums.size].reshape(sums.shape)

    def _blocks(self) -> Iterator[tuple[list[int], np.ndarray, np.ndarray | float, float]]:
        """All conjunctions but the empty one, by size: first indicators, sums, which of them to look at, discount."""
        yield [], self.singles, 1.0, 1.0
        for first, sums in self.blocks:
            start = _after(first)
            allowed = self.apart[start:, start:]
            if first:
                other = np.all(self.attributes[start:, None] != self.attributes[first], axis=1)
                allowed = allowed * other * other[:, None]
            yield first, sums, allowed, self.discount


def _after(first: list[int]) -> int:
    """The first indicator that may join these: each conjunction is looked at once, its indicators in order."""
    return first[-1] + 1 if first else 0


def counted(stages: list[Stage]) -> list[Stage]:
    """The stages that vote: all, or the last alone if that is always right."""
    return stages[-1:] if stages and stages[-1].error == 0.0 else stages


def output(stages: list[Stage], X: np.ndarray) -> np.ndarray:
    """The weighted vote (m,) of the stages, whose sign is the prediction."""
    return sum((stage.weight * stage.hypothesis(X) for stage in counted(stages)), np.zeros(len(X)))


def merged(stages: list[Stage]) -> dict[Conjunction, float]:
    """Conjunctions with the sum of their weights, both senses of one as one; the heaviest first."""
    total: dict[tuple[int, ...], float] = {}
    for stage in counted(stages):
        indicators = stage.hypothesis.indicators
        total[indicators] = total.get(indicators, 0) + stage.hypothesis.sense * stage.weight
    heaviest = sorted(total.items(), key=lambda item: -abs(item[1]))
    return {Conjunction(indicators, 1 if weight >= 0 else -1): abs(weight) for indicators, weight in heaviest}


def _leading(n: int, attributes: np.ndarray, size: int) -> Iterator[list[int]]:
    """All increasing lists of `size` indicators of different attributes."""
    if size == 0:
        yield []
        return
    for shorter in _leading(n, attributes, size - 1):
        for i in range(shorter[-1] + 1 if shorter else 0, n):
            if attributes[i] not in attributes[shorter]:
                yield [*shorter, i]
