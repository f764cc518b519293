"""Boosting over conjunctions compared with loops over pairs, a matrix product per stage, and scikit-learn's AdaBoost.

    python benchmarks/boosting.py           # pins itself to one core; 20 seconds
    python benchmarks/boosting.py --tiny    # the same at toy size: tests that it runs, not how fast

Data: nominal attributes of four values each, drawn uniformly; labels by a vote of nine conjunctions of 1 to 3 values,
one in ten flipped; the sizes of the paper's promoters (57 attributes, 106 examples), ten times as many examples, and
protein coding (15 attributes, 20,000 examples). The searches of a stage: `naive.best_pair_python` and
`naive.best_pair_numpy`, complete loops over all pairs; `naive.best_pair_product`, one matrix product over all rows, the
pairs gathered from it; ours, which keeps its sums from stage to stage. Ours is timed over many stages, including their
common work. All find the same pair. scikit-learn: AdaBoostClassifier of trees of depth k on the same indicators.
"""

from __future__ import annotations

import time
from functools import partial
from typing import NamedTuple

import naive
import numpy as np
import timing

from simulate.kernels.conjunctions import Conjunction, Search, boost, output

VALUES, TEACHER, FLIPPED = 4, 9, 0.1


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
    return list(boost(data.X, data.y, data.attributes, k, stages, discount=1.0))


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
        ours = Search(data.X, signed, data.attributes, 2, 1.0).best().indicators
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
        search = Search(X, d * y, of, 2, 1.0)
        wrong = search.best()(X) != y
        error, up = d[wrong].sum(), y > 0
        calls = {
            "all rows": partial(_weighted, X, d * y),
            "halves": partial(_halves, X[up], X[~up], d[up], d[~up]),
            "float32": partial(_weighted, X.astype(np.float32), (d * y).astype(np.float32)),
            "wrong rows": partial(search.reweigh, d * y, wrong, error),
            "best": search.best,
        }
        times = timing.measure(calls, 9, time.process_time)
        rows.append([len(of), m, f"{np.mean(wrong):.0%}", *(1e3 * one.seconds for one in times.values())])
    return rows


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
            right = [np.mean(np.sign(output(hypotheses, data.X[rows])) == data.y[rows]) for rows in (slice(m), rest)]
            scores = [trees.score(data.X[half], data.y[half]) for half in (slice(m), rest)]
            rows.append([len(data.attributes), m, k, size.stages, 1e3 * ours, 1e3 * theirs, theirs / ours])
            rows[-1] += [f"{a:.1%} / {b:.1%}" for a, b in (right, scores)]
    return rows


def main() -> None:
    size = TINY if timing.tiny(__doc__) else FULL
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


if __name__ == "__main__":
    main()
