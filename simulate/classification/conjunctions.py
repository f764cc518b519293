r"""Conjunctions of indicators: boosting, exact searches for the best of up to three indicators, and formatting.

**Boosting** is the kernel of sparse perceptrons (Jackson & Craven, Figure 1 and section 3.3). Examples are rows of 0-1
indicators. A weak hypothesis h is a conjunction of at most k indicators of different attributes, including the empty
one (always true), in one of two senses: true counts +1, or true counts -1. Stage i selects the hypothesis of largest
correlation :math:`E_{D_i}[f\,h]` with the labels f, where correlations of two or more indicators are discounted. It
multiplies the weights of correctly classified examples by :math:`\beta_i`:

.. math:: \epsilon_i = \sum_{h_i(x)\ne f(x)} D_i(x), \quad \beta_i = \epsilon_i/(1-\epsilon_i), \quad
          \text{output } \mathrm{sign}\sum_i -\ln(\beta_i)\,h_i(x).

**The search is exact and consists of matrix products.** With :math:`d_x = D(x)f(x)` and a conjunction's truth c,
:math:`E_D[f h] = \pm(2\sum_x d_xc(x) - \sum_x d_x)`. For all pairs at once the sums are
:math:`S = X^\mathsf{T}\mathrm{diag}(d)X`; for triples the same over the rows where a first indicator holds.

**The cost of a stage is proportional to its mistakes.** The next distribution is the previous one times :math:`\beta`
where h is right, divided by its sum :math:`2\epsilon`. So only the sums over the wrong rows are computed:

.. math:: S \leftarrow \frac{S}{2(1-\epsilon)} + \frac{1-2\epsilon}{2\epsilon(1-\epsilon)}\,S_\text{wrong}.

The first factor is below 1: rounding errors decay from stage to stage.

**Few triples are summed.** A conjunction that adds indicators to a pair is true for a part of the pair's rows. Its sum
therefore lies between the sums of the negative and of the positive :math:`d_x` over these rows. With the mass
:math:`T = X^\mathsf{T}\mathrm{diag}(|d|)X` and :math:`s = \sum_x d_x`,

.. math:: |E_D[f h]| \le T + |S - s|

for all such conjunctions. Conjunctions that cannot reach the largest known correlation are skipped (branch and bound).

**Few pairs are summed in a wide table.** The same bound holds for single indicators, whose sums are products of a
vector and a matrix. With many indicators and few examples, some indicator agrees with the labels at random, and few
pairs can reach its correlation. The sums of all pairs are updated only in stages that need most pairs.

**The search for triples** is compiled, with tighter bounds from pairs. The rows of a pair with positive and with
negative :math:`d_x` have the masses :math:`P, N = (T\pm S)/2`. A triple i < j < l is true on a part of the rows of each
of its pairs, so that

.. math:: -N \le S_{ijl} \le P

for all three pairs. Triples that cannot exceed the largest correlation known, :math:`|2S-s|`, are not summed.

A search also tightens the bounds of the next search. If it shows :math:`S_{ijl}\le P_{ij}-g` for all l, then after the
step to the next distribution, where :math:`S\leftarrow fS+S_\text{wrong}` and
:math:`P\leftarrow fP+P_\text{wrong}` with :math:`S_\text{wrong}\le P_\text{wrong}`,

.. math:: S_{ijl} \le P_{ij} - f g,

and similarly for N. The *gains* g of the pairs decay by f per stage, and are recomputed only for pairs that need it.

**A concept** lists the weighted conjunctions that vote for each class, as text or as a LaTeX table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import comb
from typing import NamedTuple

import numpy as np

from statmech.runtime.compiled_programs import compile_loop

MAX_SEARCHED_CONJUNCTIONS = 5 * 10**7  # takes some seconds per stage if none can be skipped
PAIR_UPDATE_OVERHEAD_ROWS = 32  # fixed cost of updating all pair sums, as a number of extra rows
PRODUCT_BLOCK_ROWS = 256  # small enough for the cache
SELECTED_SUM_COST_RATIO = 6  # time per indicator of a selective sum, relative to a sum over all indicators
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    '"': "''",
    "[": "{[}",  # LaTeX reads [ after \\ as an optional argument
    "*": "{*}",  # LaTeX reads * after \\ as the starred command
    "<": "$<$",
    ">": "$>$",
    **{character: f"\\{character}" for character in "&%$#_"},
}
LATEX_RELATIONS = {"<=": r"$\le$", ">=": r"$\ge$", "!=": r"$\ne$"}


class Conjunction(NamedTuple):
    """A conjunction of indicators, with the value +1 or -1 where it is true.

    It is true where all indicators with these indices are 1. Its `sense` is its value there, and without indices it is
    always true.
    """

    indicators: tuple[int, ...]
    sense: int

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Evaluate the hypothesis, +1 or -1, on rows of indicators."""
        return np.where(X[:, list(self.indicators)].all(axis=1), self.sense, -self.sense)


class BoostingStage(NamedTuple):
    """A weak hypothesis, its error under the stage's distribution, and its weight -ln(beta) in the output."""

    hypothesis: Conjunction
    error: float
    weight: float


def boost_conjunctions(
    X: np.ndarray,
    y: np.ndarray,
    attributes: np.ndarray,
    max_indicators: int,
    max_stages: int,
    discount: float = 0.5,
    weights: np.ndarray | None = None,
) -> Iterator[BoostingStage]:
    """Boost conjunctions of 0-1 indicators by AdaBoost, and yield each stage.

    A hypothesis that is always right ends the stages early: its weight is undefined (beta = 0) and set to 1, and it
    votes alone. The stages also end before a hypothesis that is no better than a random guess, after
    which nothing would change.

    Parameters
    ----------
    X : array (m, n)
        Indicators 0 or 1.
    y : array (m,)
        Labels +-1.
    attributes : array (n,)
        Number of each indicator's attribute. A conjunction joins indicators of different attributes.
    max_indicators : int
        Largest number of indicators in a conjunction.
    max_stages : int
        Largest number of stages.
    discount : float
        Factor of the correlation where a conjunction has two or more indicators.
    weights : array (m,), optional
        Positive weights of the examples, proportional to the first distribution. By default all are equal.

    Yields
    ------
    BoostingStage

    Examples
    --------
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> y = np.array([-1, -1, -1, 1])
    >>> [stage] = boost_conjunctions(X, y, np.arange(2), max_indicators=2, max_stages=10, discount=1.0)
    >>> stage                                                                # AND, in one stage
    BoostingStage(hypothesis=Conjunction(indicators=(0, 1), sense=1), error=0.0, weight=1.0)
    """
    X = np.asarray(X, float)
    weights = np.ones(len(y)) if weights is None else weights
    distribution = weights / weights.sum()
    search = ConjunctionSearch(X, distribution * y, attributes, max_indicators, discount)
    for _ in range(max_stages):
        hypothesis = search.best()
        wrong = hypothesis(X) != y
        error = float(distribution[wrong].sum())
        if not wrong.any():
            yield BoostingStage(hypothesis, 0.0, 1.0)
            return
        if error >= 0.5 - 1e-12:
            return
        beta = error / (1 - error)
        yield BoostingStage(hypothesis, error, -float(np.log(beta)))
        search.update_distribution(wrong, error)
        distribution = distribution * np.where(wrong, 1.0, beta)
        distribution /= distribution.sum()


class ConjunctionSearch:
    """An exact search for the best conjunction, with pair sums that are updated from stage to stage.

    The pair sums add `signed` (m,), the distribution times the labels, over the rows where both indicators are true.
    More than `MAX_SEARCHED_CONJUNCTIONS` conjunctions of k indicators raise `ValueError`.
    """

    def __init__(self, X: np.ndarray, signed: np.ndarray, attributes: np.ndarray, k: int, discount: float):
        n = X.shape[1]
        self.attributes = np.asarray(attributes)
        self.k = min(k, len(np.unique(attributes)))
        if comb(n, self.k) > MAX_SEARCHED_CONJUNCTIONS:
            limit = f"more than {MAX_SEARCHED_CONJUNCTIONS:,}"
            fault = f"conjunctions of {self.k} of {n} indicators are too many to search: {limit}"
            raise ValueError(f"{fault}. Select columns first, or reduce k or bins")
        self.X, self.discount, self.signed = X, discount, signed
        self.total, self.indicator_sums, self.masses = signed.sum(), signed @ X, np.abs(signed) @ X
        # `pairs` times `pair_sum_factor` are the sums of `pair_sum_values` over pairs
        self.pair_sum_values, self.pair_sum_factor = np.zeros_like(signed), 1.0
        triples = n if self.k > 2 else 0
        self.columns = X[:, :triples].T.astype(np.uint8, order="C")
        self.gains = np.zeros((2, triples, triples))

    @cached_property
    def allowed_pairs(self) -> np.ndarray:
        """Matrix (n, n) with 1 for pairs i < j of indicators of different attributes, else 0."""
        return self._find_allowed_pairs(np.arange(self.X.shape[1]))

    @cached_property
    def pairs(self) -> tuple[np.ndarray, ...]:
        """Last computed sums (n, n) for all pairs, and for k > 2 the sums of absolute values."""
        n = self.X.shape[1]
        return tuple(np.zeros((n, n)) for _ in range(min(self.k - 1, 2)))

    @cached_property
    def workspace(self) -> tuple[np.ndarray, np.ndarray]:
        """Preallocated arrays for pairs (n, n) and for blocks of rows.

        Large arrays cost more to allocate than to fill.
        """
        n = self.X.shape[1]
        return np.empty((n, n)), np.empty((2, PRODUCT_BLOCK_ROWS, n))

    def best(self) -> Conjunction:
        """Find the conjunction with the largest discounted correlation.

        Ties (to rounding) are broken by fewer indicators, then by lower indices.
        """
        best_found = BestConjunctions()
        best_found.add_if_best((), abs(self.total), self.total)
        half_correlations = np.abs(self.indicator_sums - self.total / 2)
        if half_correlations.size:
            index = _find_first_near_max(half_correlations)
            best_found.add_if_best(
                (index,), 2 * float(half_correlations[index]), 2 * self.indicator_sums[index] - self.total
            )
        if self.k > 1:
            bound = self.discount * (self.masses + np.abs(self.indicator_sums - self.total))
            if len(candidates := np.flatnonzero(bound >= best_found.least)) > 1:
                self._search_larger_conjunctions(candidates, best_found)
        return best_found.result()

    def update_distribution(self, wrong: np.ndarray, error: float) -> None:
        """Update the search's sums to the next boosting stage, given the mask of mistakes and the error."""
        fade, grow = 0.5 / (1 - error), (0.5 - error) / (error * (1 - error))
        increase = np.where(wrong, grow * self.signed, 0.0)
        self.signed = fade * self.signed + increase
        self.total = fade * self.total + increase.sum()
        self.indicator_sums = fade * self.indicator_sums + increase @ self.X
        self.masses = fade * self.masses + np.abs(increase) @ self.X
        self.pair_sum_values *= fade
        self.pair_sum_factor *= fade
        self.gains *= fade

    def update_pair_sums(self) -> tuple[np.ndarray, ...]:
        """Update and return the sums of all pairs of indicators (n, n), for k > 2 also the sums of absolute values."""
        changed = self._find_reweighted_rows()
        increase = self.signed[changed] - self.pair_sum_values[changed]
        for sums, values in zip(self.pairs, (increase, np.abs(increase)), strict=False):
            self._decay_and_add_products(sums, self.pair_sum_factor, changed, values)
        self.pair_sum_values, self.pair_sum_factor = self.signed.copy(), 1.0
        return self.pairs

    def _find_reweighted_rows(self) -> np.ndarray:
        return np.flatnonzero(self.signed != self.pair_sum_values)

    def _search_larger_conjunctions(self, candidates: np.ndarray, best: BestConjunctions) -> None:
        """Search conjunctions that contain two or more of the candidates.

        Uses the sums of all pairs if that takes less time.
        """
        m, n = self.X.shape
        # the factor of 2 favours updating all pairs, which makes the next update cheaper
        if 2 * m * len(candidates) ** 2 < (len(self._find_reweighted_rows()) + PAIR_UPDATE_OVERHEAD_ROWS) * n**2:
            self._search_extensions((), candidates, best)
        else:
            self._extend_by_two(
                PartialConjunction((), np.arange(n), self.X, self.signed, *self.update_pair_sums()), best
            )

    def _find_allowed_pairs(self, candidates: np.ndarray) -> np.ndarray:
        """Return 1 for pairs i < j of candidates with different attributes, else 0."""
        return np.triu(self.attributes[candidates][:, None] != self.attributes[candidates], 1).astype(float)

    def _decay_and_add_products(self, sums: np.ndarray, fade: float, rows: np.ndarray, signed: np.ndarray) -> None:
        """Multiply the sums of indicator pairs by `fade`, and add the products of these rows block by block."""
        sums *= fade
        pairs, batches = self.workspace
        for first in range(0, len(rows), PRODUCT_BLOCK_ROWS):
            batch = rows[first : first + PRODUCT_BLOCK_ROWS]
            batch_rows, weighted = batches[:, : len(batch)]
            self.X.take(batch, axis=0, out=batch_rows, mode="clip")  # "clip" avoids another copy
            np.multiply(batch_rows, signed[first : first + PRODUCT_BLOCK_ROWS, None], out=weighted)
            sums += np.matmul(weighted.T, batch_rows, out=pairs)

    def _extend_by_two(self, part: PartialConjunction, best: BestConjunctions) -> None:
        """Extend a conjunction by two indicators and search its extensions."""
        first, candidates, *_, sums, masses = part
        is_complete = len(candidates) == self.X.shape[1]
        allowed = self.allowed_pairs if is_complete else self._find_allowed_pairs(candidates)
        half_correlations = np.subtract(sums, self.total / 2, out=self.workspace[0] if is_complete else None)
        np.abs(half_correlations, out=half_correlations)
        half_correlations *= allowed
        score = 2 * self.discount * float(half_correlations.max(initial=0.0))
        if score >= best.least:
            i, j = np.unravel_index(_find_first_near_max(half_correlations), half_correlations.shape)
            best.add_if_best((*first, int(candidates[i]), int(candidates[j])), score, 2 * sums[i, j] - self.total)
        if masses is None or self.discount == 0:
            return
        if len(first) + 3 == self.k:
            self._extend_by_three(part, allowed, best)
            return
        bound = self.discount * (masses + np.abs(sums - self.total)) * allowed
        for i in np.argsort(-bound.max(axis=1)):
            later = np.flatnonzero(bound[i] >= best.least)
            if len(later) > 1:
                self._search_extensions((*first, int(candidates[i])), candidates[later], best)

    def _extend_by_three(self, part: PartialConjunction, allowed: np.ndarray, best: BestConjunctions) -> None:
        """Extend a conjunction by three indicators."""

        assert part.absolute_pair_sums is not None
        equal = best.least * (1 - 2e-12) - 2e-15  # a later triple of equal score may have lower indices
        is_complete = len(part.candidates) == self.X.shape[1]
        columns = self.columns if is_complete else part.X.T.astype(np.uint8, order="C")
        gains = self.gains if is_complete else np.zeros((2, *allowed.shape))
        pairs = allowed, part.signed_pair_sums, part.absolute_pair_sums, gains, self.total
        triple, total = find_best_triple(part.X, columns, part.signed_weights, *pairs, equal / self.discount)
        if triple[0] >= 0:
            signed = 2 * total - self.total
            indicators = (*part.prefix, *(int(part.candidates[i]) for i in triple))
            best.add_if_best(indicators, self.discount * abs(signed), signed)

    def _search_extensions(self, prefix: tuple[int, ...], candidates: np.ndarray, best: BestConjunctions) -> None:
        """Search the conjunctions that extend `prefix` by two or more candidates."""
        rows = np.flatnonzero(self.X[:, prefix].all(axis=1))
        true, signed = self.X[rows[:, None], candidates], self.signed[rows]
        values = (signed, np.abs(signed))[: self.k - len(prefix) - 1]
        sums, *masses = ((true * d[:, None]).T @ true for d in values)
        self._extend_by_two(PartialConjunction(prefix, candidates, true, signed, sums, *masses), best)


class PartialConjunction(NamedTuple):
    """A conjunction of the indicators `prefix`, and candidates (n,) that may extend it.

    X (m, n) and `signed_weights` (m,) are restricted to the rows where `prefix` is true. `signed_pair_sums` and
    `absolute_pair_sums` (n, n) add `signed_weights`, and its absolute values, over the rows where both indicators of a
    pair are true.
    """

    prefix: tuple[int, ...]
    candidates: np.ndarray
    X: np.ndarray
    signed_weights: np.ndarray
    signed_pair_sums: np.ndarray
    absolute_pair_sums: np.ndarray | None = None


class BestConjunctions:
    """The best conjunctions found so far, including ties.

    Keeps all conjunctions of equal correlation (to rounding), as they may arrive in any order.
    """

    def __init__(self) -> None:
        self.largest, self.least = 0.0, 0.0
        self.known: list[tuple[float, Conjunction]] = []

    def add_if_best(self, indicators: tuple[int, ...], score: float, correlation: float) -> None:
        """Record a conjunction if its score equals or exceeds the best.

        The score is the absolute value of the discounted correlation, `correlation` the correlation itself.
        """
        if score >= self.least:
            self.known.append((score, Conjunction(indicators, 1 if correlation >= 0 else -1)))
            self.largest = max(self.largest, score)
            self.least = self.largest * (1 - 1e-12) - 1e-15

    def result(self) -> Conjunction:
        """Return the best conjunction. Fewer indicators break ties, then lower indices."""
        equal = [conjunction for score, conjunction in self.known if score >= self.least]
        return min(equal, key=lambda conjunction: (len(conjunction.indicators), conjunction.indicators))


def _find_first_near_max(values: np.ndarray) -> int:
    """Return the index of the first value that equals the maximum to within rounding."""
    return int(np.argmax(values >= values.max() * (1 - 1e-12)))


def get_voting_stages(stages: list[BoostingStage]) -> list[BoostingStage]:
    """Return the stages that vote: only the last if it makes no mistakes, else all."""
    return stages[-1:] if stages and stages[-1].error == 0.0 else stages


def compute_weighted_vote(stages: list[BoostingStage], X: np.ndarray) -> np.ndarray:
    """Return the weighted vote (m,) of the stages, whose sign is the prediction."""
    return sum((stage.weight * stage.hypothesis(X) for stage in get_voting_stages(stages)), np.zeros(len(X)))


def sum_conjunction_weights(stages: list[BoostingStage]) -> dict[Conjunction, float]:
    """Return each distinct conjunction with its total weight, sorted by decreasing weight.

    Both senses of a conjunction are combined.
    """
    total: dict[tuple[int, ...], float] = {}
    for stage in get_voting_stages(stages):
        indicators = stage.hypothesis.indicators
        total[indicators] = total.get(indicators, 0) + stage.hypothesis.sense * stage.weight
    ordered = sorted(total.items(), key=lambda item: -abs(item[1]))
    return {Conjunction(indicators, 1 if weight >= 0 else -1): abs(weight) for indicators, weight in ordered}


class ConceptTerm(NamedTuple):
    """A weighted conjunction that votes for one class if true, and for the other class if false.

    With sense 1 a true conjunction votes for `positive`, with sense -1 for `negative`. `names` lists the conditions of
    the indicators: a conjunction without names is always true. Weights are either all floats or all ints.
    """

    positive: str
    negative: str
    weight: float
    sense: int
    names: tuple[str, ...]

    @property
    def condition(self) -> str:
        """The conjunction as text."""
        return " and ".join(self.names) or "always"

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """Texts of a conjunction's class and weight, "if" or "unless", and its condition."""
        weight = str(self.weight) if isinstance(self.weight, int) else f"{self.weight:.3f}"
        if not self.names:
            return self.positive if self.sense > 0 else self.negative, weight, "", "always"
        return self.positive, weight, "if" if self.sense > 0 else "unless", self.condition


def format_concept(terms: Sequence[ConceptTerm]) -> str:
    """Format a concept as text with one term per line.

    >>> first = ConceptTerm("sick", "well", 3, 1, ("fever = high", "age > 60"))
    >>> print(format_concept([first, ConceptTerm("sick", "well", 1, -1, ())]))
    sick:  3  if  fever = high and age > 60
    well:  1  always
    """
    return "\n".join(
        f"{'  '.join(filter(None, (f'{label}:', *rest)))}" for label, *rest in (term.parts for term in terms)
    )


def format_concept_latex(terms: Sequence[ConceptTerm]) -> str:
    r"""Format a concept as a LaTeX `tabular` with four columns that needs no packages.

    >>> print(format_concept_latex([ConceptTerm("a_b", "c", 1.25, -1, ("cost < 5%",))]))
    \begin{tabular}{lrll}
    class & weight & & conjunction \\
    \hline
    a\_b & 1.250 & unless & cost $<$ 5\% \\
    \end{tabular}
    """
    rows = [" & ".join(map(escape_latex, term.parts)) + r" \\" for term in terms]
    head = [r"\begin{tabular}{lrll}", r"class & weight & & conjunction \\", r"\hline"]
    return "\n".join([*head, *rows, r"\end{tabular}"])


def escape_latex(text: str) -> str:
    r"""Escape the LaTeX special characters in a conjunction's text.

    Relations become symbols, and white space becomes single blanks.

    >>> print(escape_latex("R&D != 50_000$"))
    R\&D $\ne$ 50\_000\$
    """
    tokens = " ".join(text.split()).split(" ")
    return " ".join(
        LATEX_RELATIONS.get(token) or "".join(LATEX_ESCAPES.get(character, character) for character in token)
        for token in tokens
    )


def find_best_triple(
    X: np.ndarray,
    columns: np.ndarray,
    signed: np.ndarray,
    allowed: np.ndarray,
    sums: np.ndarray,
    masses: np.ndarray,
    gains: np.ndarray,
    total: float,
    threshold: float,
) -> tuple[tuple[int, int, int], float]:
    """Find the triple of indicators with the largest |2S - total| and return its indices and its S.

    Of equal values (to rounding) the first triple is returned.

    Parameters
    ----------
    X : array (m, n)
        Indicators 0 or 1.
    columns : array (n, m)
        The indicators as bytes, one indicator per row.
    signed : array (m,)
        The distribution times the labels.
    allowed : array (n, n)
        1 for the pairs i < j that may be joined, else 0.
    sums, masses : arrays (n, n)
        The sums of `signed`, and of its absolute values, over the rows where i and j are true.
    gains : array (2, n, n)
        Known distances from P and N that triples of the pairs i < j with a later indicator keep; updated.
    total : float
        s, the sum that a conjunction of no indicators has.
    threshold : float
        A triple must exceed this, by more than rounding.

    Returns
    -------
    indicators : tuple of three int
        All -1 if no triple exceeds the threshold.
    sum : float

    Examples
    --------
    >>> X = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> signed = np.array([0.5, -0.25, -0.25])
    >>> pairs = [(X * d[:, None]).T @ X for d in (signed, np.abs(signed))]
    >>> find_best_triple(X, X.T.astype(np.uint8, order="C"), signed, np.triu(np.ones((3, 3)), 1), *pairs,
    ...               np.zeros((2, 3, 3)), 0.0, 0.5)
    ((0, 1, 2), 0.5)
    """
    above = np.where(allowed > 0, masses + (sums - total), -np.inf)
    below = np.where(allowed > 0, masses - (sums - total), -np.inf)
    i, j, l, best_sum = search_triples(np.ascontiguousarray(X), columns, signed, above, below, gains, total, threshold)
    return (int(i), int(j), int(l)), float(best_sum)


@compile_loop("i8(u1[::1], i8[::1])")
def write_nonzero_indices(true, rows):  # type: ignore[no-untyped-def]
    """Write the indices of the rows where an indicator is 1 to `rows`, without branches, and return their number."""
    number = 0
    for x in range(len(true)):
        rows[number] = x
        number += true[x]
    return number


@compile_loop("void(f8[:,::1], i8[::1], f8[::1], i8, f8[::1])")
def sum_weighted_rows(X, rows, values, first, sums):  # type: ignore[no-untyped-def]
    """Sum rows of the indicators X weighted by `values`, four rows at a time.

    Parameters
    ----------
    X
        Matrix (m, n).
    rows, values
        Indices of the rows and their factors (r,).
    first
        First column to sum.
    sums
        Output: the sums (n,) for columns >= `first`.
    """
    sums[first:] = 0.0
    fours = len(rows) // 4 * 4
    for r in range(0, fours, 4):
        a, b, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        e, f, g, h = values[r], values[r + 1], values[r + 2], values[r + 3]
        for l in range(first, X.shape[1]):
            sums[l] += e * X[a, l] + f * X[b, l] + g * X[c, l] + h * X[d, l]
    for r in range(fours, len(rows)):
        value, x = values[r], rows[r]
        for l in range(first, X.shape[1]):
            sums[l] += value * X[x, l]


@compile_loop(
    "Tuple((i8, i8, i8, f8))(f8[:,::1], u1[:,::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8, f8)",
)
def search_triples(X, columns, signed, above, below, gains, total, threshold):  # type: ignore[no-untyped-def]
    """Find the triple of indicators with the largest |2S - s| and return its indices and its sum S.

    The indices are -1 if no triple exceeds the threshold.

    Parameters
    ----------
    X
        Indicators 0 or 1 (m, n).
    columns
        Their transpose as bytes (n, m).
    signed
        The distribution times the labels (m,).
    above, below
        Bounds of 2S - s and of s - 2S by pairs (n, n).
    gains
        Known distances of triples of these pairs from the bounds (2, n, n); updated.
    total
        The sum s of `signed`.
    threshold
        Value to exceed.
    """
    n, m = columns.shape
    best, best_i, best_j, best_l, best_sum = threshold, -1, -1, -1, 0.0
    rows, common_rows, values = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m)
    candidates, sums = np.empty(n, np.int64), np.empty(n)
    for i in range(n):
        num_true = -1  # the rows of i are listed only when a pair needs them
        for j in range(i + 1, n):
            min_score = best * (1 - 1e-12) - 1e-15
            can_exceed = above[i, j] - 2 * gains[0, i, j] > min_score
            can_fall_below = below[i, j] - 2 * gains[1, i, j] > min_score
            if not (can_exceed or can_fall_below):
                continue
            number = 0
            for l in range(j + 1, n):
                candidates[number] = l
                high = can_exceed and above[i, l] > min_score and above[j, l] > min_score
                number += high or (can_fall_below and below[i, l] > min_score and below[j, l] > min_score)
            if number == 0:
                continue
            if num_true < 0:
                num_true = write_nonzero_indices(columns[i], rows)
            num_common = 0
            for r in range(num_true):
                common_rows[num_common] = rows[r]
                num_common += columns[j, rows[r]]
            for r in range(num_common):
                values[r] = signed[common_rows[r]]
            max_sum, min_sum = (total + min_score) / 2, (total - min_score) / 2  # bounds for skipped triples
            if SELECTED_SUM_COST_RATIO * number > n - j:  # summing all triples also tightens their bounds most
                sum_weighted_rows(X, common_rows[:num_common], values, j + 1, sums)
                number, max_sum, min_sum = 0, -np.inf, np.inf
                for l in range(j + 1, n):
                    candidates[number] = l
                    number += above[i, l] > -np.inf and above[j, l] > -np.inf
            else:
                for o in range(number):
                    product = 0.0
                    for r in range(num_common):
                        product += values[r] * columns[candidates[o], common_rows[r]]
                    sums[candidates[o]] = product
            for o in range(number):
                value = sums[candidates[o]]
                max_sum, min_sum = max(max_sum, value), min(min_sum, value)
                if abs(2 * value - total) > best * (1 + 1e-12) + 1e-15:
                    best, best_i, best_j, best_l, best_sum = abs(2 * value - total), i, j, candidates[o], value
            gains[0, i, j] = max(gains[0, i, j], (above[i, j] + total) / 2 - max_sum)
            gains[1, i, j] = max(gains[1, i, j], (below[i, j] - total) / 2 + min_sum)
    return best_i, best_j, best_l, best_sum
