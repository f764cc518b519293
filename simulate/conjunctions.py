r"""Boosting over conjunctions: the kernel of sparse perceptrons (Jackson & Craven, Figure 1 and section 3.3).

Examples are rows of 0-1 indicators. A weak hypothesis h is a conjunction of at most k indicators of different
attributes, the empty one (always true) included, in one of two senses: true counts +1, or true counts -1. Stage i takes
that of the largest correlation :math:`E_{D_i}[f\,h]` with the labels f, those of two and more indicators discounted,
and reweighs what it gets right by :math:`\beta_i`:

.. math:: \epsilon_i = \sum_{h_i(x)\ne f(x)} D_i(x), \quad \beta_i = \epsilon_i/(1-\epsilon_i), \quad
          \text{output } \mathrm{sign}\sum_i -\ln(\beta_i)\,h_i(x).

**The search is exact and made of matrix products.** With :math:`d_x = D(x)f(x)` and a conjunction's truth c,
:math:`E_D[f h] = \pm(2\sum_x d_xc(x) - \sum_x d_x)`. For all pairs at once the sums are
:math:`X^\mathsf{T}\mathrm{diag}(d)X`; for triples the same over the rows where a third indicator holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


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
    weights = np.full(len(y), 1.0 / len(y))
    X = np.asarray(X, float)
    for _ in range(stages):
        distribution = weights / weights.sum()
        hypothesis = best(X, distribution * y, attributes, k, discount)
        wrong = hypothesis(X) != y
        error = float(distribution[wrong].sum())
        if not wrong.any():
            yield Stage(hypothesis, 0.0, 1.0)
            return
        if error >= 0.5 - 1e-12:
            return
        beta = error / (1 - error)
        yield Stage(hypothesis, error, -float(np.log(beta)))
        weights = distribution * np.where(wrong, 1.0, beta)


def best(X: np.ndarray, signed: np.ndarray, attributes: np.ndarray, k: int, discount: float) -> Conjunction:
    """The conjunction of the largest discounted correlation, for `signed` (m,), the distribution times the labels.

    Of equal ones (to rounding) that of fewer indicators, then of lower indices.
    """
    total, largest, found = signed.sum(), -np.inf, Conjunction((), 1)
    for indicators, sums in _candidates(X, signed, attributes, k):
        correlation = (2 * sums - total) * (discount if indicators.shape[1] > 1 else 1.0)
        at = int(np.argmax(np.abs(correlation) >= np.abs(correlation).max() * (1 - 1e-12)))
        if abs(correlation[at]) > largest * (1 + 1e-12) + 1e-15:
            largest = abs(correlation[at])
            found = Conjunction(tuple(map(int, indicators[at])), 1 if correlation[at] >= 0 else -1)
    return found


def counted(stages: list[Stage]) -> list[Stage]:
    """The stages that vote: all, or the last alone if that is always right."""
    return stages[-1:] if stages and stages[-1].error == 0.0 else stages


def output(stages: list[Stage], X: np.ndarray) -> np.ndarray:
    """The weighted vote (m,) of the stages, whose sign is the prediction."""
    return sum((stage.weight * stage.hypothesis(X) for stage in counted(stages)), np.zeros(len(X)))


def _candidates(
    X: np.ndarray, signed: np.ndarray, attributes: np.ndarray, k: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All conjunctions by size, in blocks: indicators (c, j), and the sums of `signed` where they are true (c,)."""
    n = X.shape[1]
    yield np.zeros((1, 0), int), np.array([signed.sum()])
    yield np.arange(n)[:, None], signed @ X
    for order in range(2, k + 1):
        for first in _leading(n, attributes, order - 2):
            rows = X[:, first].all(axis=1) if first else slice(None)
            yield from _pairs(X[rows], signed[rows], attributes, first)


def _pairs(
    X: np.ndarray, signed: np.ndarray, attributes: np.ndarray, first: list[int]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All that join `first` with two later indicators, of attributes all different."""
    start = first[-1] + 1 if first else 0
    later = np.array([i for i in range(start, X.shape[1]) if attributes[i] not in attributes[first]], int)
    one, other = np.triu_indices(len(later), 1)
    apart = attributes[later[one]] != attributes[later[other]]
    one, other = one[apart], other[apart]
    if one.size:
        sums = (X[:, later] * signed[:, None]).T @ X[:, later]
        leading = np.broadcast_to(np.array(first, int), (one.size, len(first)))
        yield np.column_stack([leading, later[one], later[other]]), sums[one, other]


def _leading(n: int, attributes: np.ndarray, size: int) -> Iterator[list[int]]:
    """All increasing lists of `size` indicators of different attributes."""
    if size == 0:
        yield []
        return
    for shorter in _leading(n, attributes, size - 1):
        for i in range(shorter[-1] + 1 if shorter else 0, n):
            if attributes[i] not in attributes[shorter]:
                yield [*shorter, i]
