"""Attentive compared with full evaluation of margins, `X @ w`: seconds at the same accuracy.

    python benchmarks/attention.py           # pins itself to one core; under a minute
    python benchmarks/attention.py --tiny    # the same at toy size: tests that it runs, not how fast

Teacher and student of cosine 0.95, Gaussian examples in memory. Prediction, two-sided as in `AttentivePerceptron`:
`error_rate` is the largest of a list for which the accuracies on the same examples agree within the standard error of
the full one. Features in their original order and, sorted beforehand, largest weights first. "pays
from": the cost of obtaining a feature, in ns, above which the saved features outweigh the lost time. Learning: one
pass of the perceptron's kernel, and of the attentive one, over the same examples. Wall time.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import timing

from simulate.classification.partial_sums import (
    AttentionState,
    StoppedSums,
    evaluate_margins_in_blocks,
    sum_rows_until_level,
)
from simulate.learners.perceptron_convergence import iterate_mistakes
from statmech.classification.stopping_boundaries import compute_stopping_level, get_check_positions

R = 0.95
DELTAS = (0.45, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


class Size(NamedTuple):
    predicted: list[tuple[int, int, tuple[int, ...]]]  # features, examples, features between looks
    learnt: list[tuple[int, int, int]]  # features, examples, chunk
    single: int  # examples evaluated one by one
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
    """The same task with the largest weights first."""
    order = np.argsort(-np.abs(given.w))
    return Task(np.ascontiguousarray(given.X[:, order]), given.labels, given.w[order], given.teacher[order])


def level(given: Task, error_rate: float) -> float:
    return float(compute_stopping_level("brownian-bridge", error_rate, 0.0, given.w @ given.w))


def predict(given: Task, chunk: int, tau: float, rows: slice = slice(None)) -> StoppedSums:
    return sum_rows_until_level(given.X[rows], given.w, get_check_positions(given.w.size, chunk), tau, two_sided=True)


def fitting(given: Task, chunk: int) -> tuple[float, float, float, StoppedSums]:
    """error_rate, the full accuracy and its standard error, and the walks of that error_rate."""
    full = (np.sign(given.X @ given.w) == given.labels).mean()
    error = np.sqrt(full * (1 - full) / len(given.X))
    for error_rate in DELTAS:
        result = predict(given, chunk, level(given, error_rate))
        if abs(accuracy(given, result) - full) <= error:
            break
    return error_rate, float(full), float(error), result


def accuracy(given: Task, result: StoppedSums) -> float:
    return float((np.sign(result.sums) == given.labels).mean())


def prediction_rows(size: Size) -> list[list[object]]:
    rows: list[list[object]] = []
    for n, m, chunks in size.predicted:
        drawn = task(n, m)
        for order, given in (("drawn", drawn), ("weight", ordered(drawn))):
            for chunk in chunks:
                error_rate, full, error, result = fitting(given, chunk)
                fraction = result.features.mean() / n
                labels = [
                    n,
                    order,
                    chunk,
                    error_rate,
                    f"{full:.4f} ± {error:.4f}",
                    f"{accuracy(given, result):.4f}",
                    fraction,
                ]
                for name, seconds in timed(given, chunk, level(given, error_rate), size).items():
                    each = [1e6 * one for one in seconds]
                    pays = 1e3 * (each[1] - each[0]) / n / (1 - fraction) if fraction < 1 else np.inf
                    rows.append([*labels, name, *each, each[0] / each[1], max(pays, 0.0)])
    return rows


def timed(given: Task, chunk: int, tau: float, size: Size) -> dict[str, tuple[float, float]]:
    """Seconds per example of the full and the attentive evaluation: all examples at once, and one by one."""
    one_by_one = [slice(i, i + 1) for i in range(size.single)]
    calls = {
        "full, batch": lambda: given.X @ given.w,
        "batch": lambda: predict(given, chunk, tau),
        "full, single": lambda: [given.X[row] @ given.w for row in one_by_one],
        "single": lambda: [predict(given, chunk, tau, row) for row in one_by_one],
    }
    times = timing.measure(calls, size.repeats, time.perf_counter)
    count = {"batch": len(given.X), "single": size.single}
    return {name: (times[f"full, {name}"].seconds / m, times[name].seconds / m) for name, m in count.items()}


def learning_rows(size: Size) -> list[list[object]]:
    rows: list[list[object]] = []
    for n, m, chunk in size.learnt:
        given = task(n, m)
        z = given.X * given.labels[:, None]
        calls = {"perceptron": lambda z=z: plain(z), "attentive": lambda z=z, c=chunk: attentive(z, c)}
        times = timing.measure(calls, min(size.repeats, 3), time.perf_counter)
        for name, call in calls.items():
            w, features = call()
            cosine = w @ given.teacher / np.linalg.norm(w) / np.linalg.norm(given.teacher)
            rows.append([n, m, name, float(cosine), features / m / n, 1e6 * times[name].seconds / m])
    return rows


def plain(z: np.ndarray) -> tuple[np.ndarray, int]:
    w = np.zeros(z.shape[1])
    for _, after in iterate_mistakes(w, z):
        w = after
    return w, z.size


def attentive(z: np.ndarray, chunk: int) -> tuple[np.ndarray, int]:
    student, features = AttentionState(np.zeros(z.shape[1]), "brownian-bridge", 0.1), 0
    probes = np.random.default_rng(0).random(len(z)) < 0.05
    for lesson in evaluate_margins_in_blocks(
        student, z, np.zeros(len(z)), probes, get_check_positions(z.shape[1], chunk)
    ):
        features += lesson.features
        if lesson.is_last_mistaken:
            student.w = student.w + z[lesson.last_index]
        student.update_margin_moments(lesson.probe_margins)
    return student.w, features


def main() -> None:
    size = TINY if timing.tiny(__doc__) else FULL
    timing.pin()
    print(timing.machine())
    header = [
        "n",
        "order",
        "chunk",
        "error_rate",
        "accuracy, full",
        "attentive",
        "features",
        "call",
        "full, us",
        "attentive, us",
    ]
    timing.table(
        "Attentive compared with full evaluation, at the same accuracy",
        [*header, "ratio", "pays from, ns per feature"],
        prediction_rows(size),
    )
    header = ["n", "examples", "learner", "R", "features", "us per example"]
    timing.table("Learning, one pass", header, learning_rows(size))


if __name__ == "__main__":
    main()
