"""Boosting over conjunctions compared with loops over pairs, a matrix product per stage, and scikit-learn's AdaBoost.

    python benchmarks/boosting.py           # pins itself to one core; some minutes, nearly all for the last table
    python benchmarks/boosting.py --tiny    # the same at toy size: tests that it runs, not how fast

Data: nominal attributes of four values each, drawn uniformly; labels by a vote of nine conjunctions of 1 to 3 values,
one in ten flipped; the sizes of the paper's promoters (57 attributes, 106 examples), ten times as many examples, and
protein coding (15 attributes, 20,000 examples). The searches of a stage: `naive.best_pair_python` and
`naive.best_pair_numpy`, complete loops over all pairs; `naive.best_pair_product`, one matrix product over all rows, the
pairs gathered from it; ours, which keeps its sums from stage to stage. Ours is timed over many stages, including their
common work. All find the same pair. scikit-learn: AdaBoostClassifier of trees of depth k on the same indicators.
The last table shows which discount classifies best; with STATMECH_DATA set also on real data, at most 2,000 examples.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import NamedTuple

import naive
import numpy as np
import timing
from sklearn.model_selection import StratifiedKFold

from simulate.classification.conjunctions import (
    Conjunction,
    ConjunctionSearch,
    boost_conjunctions,
    compute_weighted_vote,
)
from simulate.classification.estimators.sparse_perceptron import SparsePerceptron
from statmech.inputs import data_sets

VALUES, TEACHER, FLIPPED = 4, 9, 0.1
DISCOUNTS, STAGES = (0.5, 0.7, 0.85, 1.0), (30, 100, 300)
REAL = ("votes", "promoters", "splice", "kr-vs-kp", "tic-tac-toe", "mushroom", "coding")


class Size(NamedTuple):
    data: list[tuple[int, int]]  # attributes, examples
    stages: int
    repeats: int
    product: int  # side of the matrices whose product is the machine's limit


FULL = Size([(57, 106), (57, 1000), (15, 20_000)], 30, 3, 1000)
TINY = Size([(4, 40)], 3, 1, 50)


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    attributes: np.ndarray


def draw(attributes: int, m: int) -> Data:
    rng = np.random.default_rng(0)
    values = rng.integers(0, VALUES, (m, attributes))
    X = (values[:, :, None] == np.arange(VALUES)).reshape(m, -1).astype(float)
    votes = np.zeros(m)
    for _ in range(TEACHER):
        chosen = rng.choice(attributes, rng.integers(1, 4), replace=False)
        h = Conjunction(tuple(int(a) * VALUES + int(rng.integers(VALUES)) for a in chosen), int(rng.choice([-1, 1])))
        votes += h(X)
    flips = np.where(rng.random(m) < FLIPPED, -1, 1)
    return Data(X, np.sign(votes).astype(int) * flips, np.repeat(np.arange(attributes), VALUES))


def boosted(data: Data, k: int, stages: int) -> list:
    return list(boost_conjunctions(data.X, data.y, data.attributes, k, stages, discount=1.0))


def search_rows(size: Size) -> list[list[object]]:
    rows = []
    for attributes, m in size.data:
        data = draw(attributes, m)
        signed = np.random.default_rng(1).dirichlet(np.ones(m)) * data.y
        loops = {
            "python": partial(naive.best_pair_python, data.X, signed, data.attributes),
            "numpy": partial(naive.best_pair_numpy, data.X, signed, data.attributes),
            "product": partial(naive.best_pair_product, data.X, signed, data.attributes),
        }
        ours = ConjunctionSearch(data.X, signed, data.attributes, 2, 1.0).best().indicators
        pairs_found = {call() for call in loops.values()} | ({ours} if len(ours) == 2 else set())
        assert len(pairs_found) == 1, pairs_found
        times = {name: timing.measure({name: call}, 1, time.process_time)[name].seconds for name, call in loops.items()}
        times["product"] = timing.measure({"": loops["product"]}, 9, time.process_time)[""].seconds
        ours = timing.measure({"": partial(boosted, data, 2, size.stages)}, size.repeats, time.process_time)[""].seconds
        ours /= len(boosted(data, 2, size.stages))
        pairs = int(np.triu(data.attributes[:, None] != data.attributes).sum())
        baselines = [1e3 * times[name] for name in ("python", "numpy", "product")]
        rows.append([len(data.attributes), m, pairs, *baselines, 1e3 * ours, *(t / 1e3 / ours for t in baselines)])
    return rows


def limit_rows(size: Size) -> list[list[object]]:
    """Rate of a stage's matrix product compared with the rate of large matrix products on this machine."""
    A = np.random.default_rng(0).standard_normal((size.product, size.product))
    limit = 2 * size.product**3 / timing.measure({"": lambda: A @ A}, 5, time.process_time)[""].seconds
    rows: list[list[object]] = []
    for attributes, m in size.data:
        data = draw(attributes, m)
        n = len(data.attributes)
        wrong = [np.sum(stage.hypothesis(data.X) != data.y) for stage in boosted(data, 2, size.stages)]
        seconds = timing.measure({"": partial(boosted, data, 2, size.stages)}, size.repeats, time.process_time)[
            ""
        ].seconds
        done = 2.0 * n**2 * (m + sum(wrong[:-1]))
        complete = 2.0 * n**2 * m * len(wrong)
        fraction = float(np.mean(wrong)) / m
        rows.append([n, m, f"{fraction:.0%}", done / seconds / 1e9, limit / 1e9, f"{done / seconds / limit:.0%}"])
        rows[-1].append(f"{complete / seconds / limit:.0%}")
    return rows


def ways_rows(size: Size) -> list[list[object]]:
    """Other ways to compute the sums of all pairs over all rows, and over the misclassified rows of a first stage."""
    rows = []
    for attributes, m in size.data:
        X, y, of = draw(attributes, m)
        d = np.full(m, 1.0 / m)
        search = ConjunctionSearch(X, d * y, of, 2, 1.0)
        wrong = search.best()(X) != y
        error, up = d[wrong].sum(), y > 0
        calls = {
            "all rows": partial(_weighted, X, d * y),
            "halves": partial(_halves, X[up], X[~up], d[up], d[~up]),
            "float32": partial(_weighted, X.astype(np.float32), (d * y).astype(np.float32)),
            "wrong rows": partial(_updated, search, wrong, error),
            "best": search.best,
        }
        times = timing.measure(calls, 9, time.process_time)
        rows.append([len(of), m, f"{np.mean(wrong):.0%}", *(1e3 * one.seconds for one in times.values())])
    return rows


def _updated(search: ConjunctionSearch, wrong: np.ndarray, error: float) -> None:
    search.update_distribution(wrong, error)
    search.update_pair_sums()


def _weighted(X: np.ndarray, signed: np.ndarray) -> np.ndarray:
    return (X * signed[:, None]).T @ X


def _halves(up: np.ndarray, down: np.ndarray, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The rows of positive and of negative labels, each as A^T A, of which BLAS computes only one triangle."""
    A, B = up * np.sqrt(above)[:, None], down * np.sqrt(below)[:, None]
    return A.T @ A - B.T @ B


def sklearn_rows(size: Size) -> list[list[object]]:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    rows = []
    for attributes, m in size.data:
        data = draw(attributes, 2 * m)
        train, rest = Data(data.X[:m], data.y[:m], data.attributes), slice(m, None)
        for k in (1, 2, 3):
            trees = AdaBoostClassifier(DecisionTreeClassifier(max_depth=k, random_state=0), n_estimators=size.stages)
            calls = {
                "ours": partial(boosted, train, k, size.stages),
                "trees": partial(trees.fit, train.X, train.y),
            }
            times = timing.measure(calls, 1, time.process_time)
            hypotheses = boosted(train, k, size.stages)
            ours, theirs = times["ours"].seconds / len(hypotheses), times["trees"].seconds / len(trees.estimators_)
            right = [
                np.mean(np.sign(compute_weighted_vote(hypotheses, data.X[rows])) == data.y[rows])
                for rows in (slice(m), rest)
            ]
            scores = [trees.score(data.X[half], data.y[half]) for half in (slice(m), rest)]
            rows.append([len(data.attributes), m, k, size.stages, 1e3 * ours, 1e3 * theirs, theirs / ours])
            rows[-1] += [f"{a:.1%} / {b:.1%}" for a, b in (right, scores)]
    return rows


def decided(
    values: np.ndarray, voters: list[tuple[np.ndarray, np.ndarray, int]], rng: np.random.Generator
) -> np.ndarray:
    """Labels by a vote of conjunctions (columns, values, sense), one in ten of them flipped."""
    sums = sum(sense * np.where((values[:, of] == wanted).all(axis=1), 1, -1) for of, wanted, sense in voters)
    return np.where(np.asarray(sums) >= 0, 1, -1) * np.where(rng.random(len(values)) < FLIPPED, -1, 1)


def vote(attributes: int, m: int, orders: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """A vote of nine conjunctions of so many values."""
    rng, voters = np.random.default_rng(5), []
    values = rng.integers(0, VALUES, (m, attributes))
    for _ in range(TEACHER):
        of = rng.choice(attributes, rng.integers(*orders), replace=False)
        voters.append((of, rng.integers(0, VALUES, len(of)), int(rng.choice([-1, 1]))))
    return values, decided(values, voters, rng)


def bits(seed: int, attributes: int, majority: bool) -> tuple[np.ndarray, np.ndarray]:
    """The majority of nine bits, or of the parities of three pairs; one label in ten is flipped."""
    rng = np.random.default_rng(seed)
    b = rng.integers(0, 2, (1000, attributes))
    y = (2 * b[:, :9] - 1).sum(axis=1) > 0 if majority else (b[:, 0:6:2] ^ b[:, 1:6:2]).sum(axis=1) > 1
    return b, np.where(rng.random(1000) < FLIPPED, ~y, y)


def choices(tiny: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs and labels by name: generated, of scikit-learn, and those of STATMECH_DATA if it is set."""
    from sklearn.datasets import load_breast_cancer, load_digits

    drawn = {"majority of nine": bits(7, 50, True), "three parities": bits(6, 20, False)}
    drawn |= {"nine of 57, m = 106": vote(57, 106, (1, 4)), "nine pairs, m = 2,000": vote(60, 2000, (2, 3))}
    made = {name: (np.char.add("w", X.astype(str)).astype(object), y) for name, (X, y) in drawn.items()}
    if tiny:
        return {"nine of 57, m = 106": made["nine of 57, m = 106"]}
    cancer, digits = load_breast_cancer(), load_digits()
    made |= {"breast cancer": (cancer.data, cancer.target), "odd digits": (digits.data, digits.target % 2)}
    for name in REAL if "STATMECH_DATA" in os.environ else ():
        data = data_sets.get_cached_data_set(name)
        some = np.random.default_rng(0).permutation(len(data.y))[:2000]
        made[name] = data.X[some], data.y[some]
    return made


def discount_rows(tiny: bool) -> list[list[object]]:
    """Held-out accuracy in five folds (20 of fewer than 200 examples), for each discount and number of stages."""
    rows = []
    for name, (X, y) in choices(tiny).items():
        y = np.where(y == y[0], 1, -1)
        shuffles = range(4 if len(y) < 200 and not tiny else 1)
        cuts = [cut for seed in shuffles for cut in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)]
        for stages in (3,) if tiny else STAGES:
            rows.append([name, len(y), stages])
            for discount in DISCOUNTS:
                model, begun = SparsePerceptron(stages=stages, discount=discount), time.process_time()
                if X.dtype == object:
                    model.set_params(categories=[sorted(set(column) - {"?"}) for column in X.T])
                right = [model.fit(X[inside], y[inside]).score(X[outside], y[outside]) for inside, outside in cuts]
                milliseconds = 1e3 * (time.process_time() - begun) / len(cuts)
                error = np.std(right, ddof=1) / len(cuts) ** 0.5
                rows[-1].append(f"{np.mean(right):.3f} +- {error:.3f} ({milliseconds:.0f} ms)")
    return rows


def main() -> None:
    tiny = timing.tiny(__doc__)
    size = TINY if tiny else FULL
    timing.pin()
    print(timing.machine())
    header = ["indicators", "m", "pairs", "Python, ms", "NumPy per pair, ms", "product, ms", "ours, ms"]
    header += ["Python / ours", "NumPy / ours", "product / ours"]
    timing.table("One stage of boosting over conjunctions of at most two indicators", header, search_rows(size))
    header = ["indicators", "m", "wrong", "GFLOP/s", "limit", "of the limit", "had it summed all rows"]
    timing.table("Compared with the machine's matrix products", header, limit_rows(size))
    header = ["indicators", "m", "wrong", "all rows, ms", "two halves, ms", "float32, ms", "wrong rows, ms", "best, ms"]
    timing.table("Other ways to compute the sums of a first stage", header, ways_rows(size))
    header = ["indicators", "m", "k", "stages", "ours, ms/stage", "trees, ms/stage", "trees / ours"]
    header += ["ours right, train / test", "trees right, train / test"]
    timing.table(
        "scikit-learn's AdaBoost of trees of depth k, the same indicators, one run", header, sklearn_rows(size)
    )
    header = ["data", "m", "stages", *(f"discount {discount}" for discount in DISCOUNTS)]
    timing.table(
        "Held-out accuracy by discount, with its standard error and the time of a fit", header, discount_rows(tiny)
    )


if __name__ == "__main__":
    main()
