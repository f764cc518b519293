"""The attentive evaluation of margins against all of it, `X @ w`: in seconds, at the same accuracy.

    python benchmarks/attention.py           # pins itself to one core; under a minute
    python benchmarks/attention.py --tiny    # the same at toy size: that it runs, not how fast

Teacher and student of cosine 0.95, Gaussian examples that lie in memory. Prediction, two-sided as of an
`AttentivePerceptron`: delta is the largest of a list at which accuracies, on the same examples, agree within the
standard error of the full one. Features in their own order and, laid out beforehand, largest weights first. "pays
from": what a feature must cost, in ns, for the features saved to be worth the seconds lost. Learning: one
pass of the perceptron's kernel, and of the attentive one, over the same examples. Wall time.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
import timing

from simulate.kernels.partial_sums import Attentive, Walks, lessons, walks
from simulate.learners.perceptron import mistakes
from statmech.boundaries import looks, threshold

R = 0.95
DELTAS = (0.45, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


class Size(NamedTuple):
    predicted: list[tuple[int, int, tuple[int, ...]]]  # features, examples, features between looks
    learnt: list[tuple[int, int, int]]  # features, examples, chunk
    single: int  # examples one after the other
    repeats: int


FULL = Size([(784, 10_000, (16, 98)), (100_000, 500, (1000, 10_000))], [(784, 10_000, 16), (20_000, 1000, 400)], 50, 5)
TINY = Size([(20, 50, (5,))], [(20, 50, 5)], 3, 1)


class Task(NamedTuple):
    """Examples X (m, n) with a teacher's labels, and a student's weights."""

    X: np.ndarray
    labels: np.ndarray
    w: np.ndarray
    teacher: np.ndarray


def task(n: int, m: int) -> Task:
    rng = np.random.default_rng(0)
    teacher, other = rng.standard_normal((2, n)) / np.sqrt(n)
    X = rng.standard_normal((m, n))
    return Task(X, np.sign(X @ teacher), R * teacher + np.sqrt(1 - R**2) * other, teacher)


def ordered(given: Task) -> Task:
    """The same, largest weights first."""
    order = np.argsort(-np.abs(given.w))
    return Task(np.ascontiguousarray(given.X[:, order]), given.labels, given.w[order], given.teacher[order])


def level(given: Task, delta: float) -> float:
    return float(threshold("brownian-bridge", delta, 0.0, given.w @ given.w))


def predict(given: Task, chunk: int, tau: float, rows: slice = slice(None)) -> Walks:
    return walks(given.X[rows], given.w, looks(given.w.size, chunk), tau, two_sided=True)


def fitting(given: Task, chunk: int) -> tuple[float, float, float, Walks]:
    """delta, the full accuracy and its standard error, and the walks of that delta."""
    full = (np.sign(given.X @ given.w) == given.labels).mean()
    error = np.sqrt(full * (1 - full) / len(given.X))
    for delta in DELTAS:
        found = predict(given, chunk, level(given, delta))
        if abs(accuracy(given, found) - full) <= error:
            break
    return delta, float(full), float(error), found


def accuracy(given: Task, found: Walks) -> float:
    return float((np.sign(found.sums) == given.labels).mean())


def prediction_rows(size: Size) -> list[list[object]]:
    rows: list[list[object]] = []
    for n, m, chunks in size.predicted:
        drawn = task(n, m)
        for order, given in (("drawn", drawn), ("weight", ordered(drawn))):
            for chunk in chunks:
                delta, full, error, found = fitting(given, chunk)
                share = found.features.mean() / n
                told = [n, order, chunk, delta, f"{full:.4f} ± {error:.4f}", f"{accuracy(given, found):.4f}", share]
                for name, seconds in timed(given, chunk, level(given, delta), size).items():
                    each = [1e6 * part for part in seconds]
                    pays = 1e3 * (each[1] - each[0]) / n / (1 - share) if share < 1 else np.inf
                    rows.append([*told, name, *each, each[0] / each[1], max(pays, 0.0)])
    return rows


def timed(given: Task, chunk: int, tau: float, size: Size) -> dict[str, tuple[float, float]]:
    """Seconds an example of the full and the attentive evaluation: all examples at once, and one by one."""
    one_by_one = [slice(i, i + 1) for i in range(size.single)]
    calls = {
        "full, batch": lambda: given.X @ given.w,
        "batch": lambda: predict(given, chunk, tau),
        "full, single": lambda: [given.X[row] @ given.w for row in one_by_one],
        "single": lambda: [predict(given, chunk, tau, row) for row in one_by_one],
    }
    found = timing.measure(calls, size.repeats, time.perf_counter)
    count = {"batch": len(given.X), "single": size.single}
    return {name: (found[f"full, {name}"].seconds / m, found[name].seconds / m) for name, m in count.items()}


def learning_rows(size: Size) -> list[list[object]]:
    rows: list[list[object]] = []
    for n, m, chunk in size.learnt:
        given = task(n, m)
        z = given.X * given.labels[:, None]
        calls = {"perceptron": lambda z=z: plain(z), "attentive": lambda z=z, c=chunk: attentive(z, c)}
        found = timing.measure(calls, min(size.repeats, 3), time.perf_counter)
        for name, call in calls.items():
            w, features = call()
            cosine = w @ given.teacher / np.linalg.norm(w) / np.linalg.norm(given.teacher)
            rows.append([n, m, name, float(cosine), features / m / n, 1e6 * found[name].seconds / m])
    return rows


def plain(z: np.ndarray) -> tuple[np.ndarray, int]:
    w = np.zeros(z.shape[1])
    for _, after in mistakes(w, z):
        w = after
    return w, z.size


def attentive(z: np.ndarray, chunk: int) -> tuple[np.ndarray, int]:
    student, features = Attentive(np.zeros(z.shape[1]), "brownian-bridge", 0.1), 0
    probes = np.random.default_rng(0).random(len(z)) < 0.05
    for lesson in lessons(student, z, np.zeros(len(z)), probes, looks(z.shape[1], chunk)):
        features += lesson.features
        if lesson.mistaken:
            student.w = student.w + z[lesson.last]
        student.take(lesson.margins)
    return student.w, features


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="toy size")
    size = TINY if parser.parse_args().tiny else FULL
    timing.pin()
    print(timing.machine())
    header = [
        "n",
        "order",
        "chunk",
        "delta",
        "accuracy, full",
        "attentive",
        "features",
        "call",
        "full, us",
        "attentive, us",
    ]
    timing.table("prediction, an example", [*header, "ratio", "pays from, ns a feature"], prediction_rows(size))
    header = ["n", "examples", "learner", "R", "features", "us an example"]
    timing.table("learning, one pass", header, learning_rows(size))


if __name__ == "__main__":
    main()
