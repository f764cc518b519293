"""Fits of estimators compared with scikit-learn's on the same data, in CPU seconds: a row for each.

    python benchmarks/everyday_fits.py           # pins itself to one core; 30 seconds
    python benchmarks/everyday_fits.py --tiny    # the same at toy size: tests that it runs, not how fast

MinOver and AdaTron with LinearSVC(loss="hinge", C=1e4, tol=1e-6), which all three miss the largest stability by the
stated fraction: the digits 3 and 8 (357 x 64), and examples of a teacher without those near its boundary (10,000 x 50).
"Another shape" has fewer examples each time.
"""

from __future__ import annotations

import time
import warnings
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import timing
from scipy.optimize import nnls
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from simulate.learners import AdaTron, MinOver

GAP = 0.1  # least stability of the teacher
REPEATS = 7


class Fit(NamedTuple):
    """CPU seconds: the first fit of this process, a later one, one of another shape, and the baseline's."""

    first: float
    again: float
    reshaped: float
    baseline: float


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    chosen = (y == 3) | (y == 8)
    return X[chosen], y[chosen]


def separable(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples of a teacher of stability GAP, and its labels."""
    rng = np.random.default_rng(0)
    teacher = rng.standard_normal(n)
    X = rng.standard_normal((2 * m, n))
    fields = X @ teacher / np.linalg.norm(teacher)
    chosen = np.flatnonzero(np.abs(fields) > GAP)[:m]
    return X[chosen], (fields[chosen] > 0).astype(int)


def machine() -> Any:
    """The baseline, converged: by default it ends after 1,000 iterations."""
    return LinearSVC(loss="hinge", C=1e4, tol=1e-6, max_iter=10**6)


def stability(model: Any, X: np.ndarray, y: np.ndarray, repeats: int = REPEATS) -> Fit:
    """The times of a model and of the baseline."""
    fewer = count(1)

    def reshaped() -> None:
        rows = slice(next(fewer), None)
        model.fit(X[rows], y[rows])

    calls = {"again": lambda: model.fit(X, y), "reshaped": reshaped, "baseline": lambda: machine().fit(X, y)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        times = timing.measure(calls, repeats, time.process_time)
    return Fit(times["again"].first, *(times[name].seconds for name in calls))


def missed(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The relative distance of a fit from the largest stability, by nonnegative least squares."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    z = np.where(y == y.max(), 1, -1)[:, None] * np.column_stack([X, np.ones(len(X))])
    goal = np.append(np.zeros(z.shape[1]), 1.0)
    x, _ = nnls(np.vstack([z.T, np.ones(len(z))]), goal, maxiter=100 * len(z))
    w = np.append(model.coef_[0], model.intercept_[0])
    return 1 - float(np.min(z @ w)) / float(np.linalg.norm(w)) * float(x.sum() / np.linalg.norm(x @ z))


def stability_rows(tiny: bool) -> list[list[object]]:
    rows: list[list[object]] = []
    for name, (X, y) in (("digits 3/8", digits()), ("a gap", separable(*(200, 5) if tiny else (10_000, 50)))):
        baseline = missed(machine(), X, y)
        for model in (MinOver(), AdaTron(), AdaTron(max_epochs=10**6)):
            if tiny:
                model.set_params(max_epochs=10)
            fit = stability(model, X, y, 1 if tiny else REPEATS)
            times = [1e3 * seconds for seconds in fit]
            rows.append([f"{name}, {X.shape[0]} x {X.shape[1]}", repr(model), *times, fit.again / fit.baseline])
            rows[-1] += [fit.reshaped / fit.baseline, missed(model, X, y), baseline]
    return rows


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    print(timing.machine())
    header = ["data", "estimator", "first, ms", "again, ms", "another shape, ms", "LinearSVC, ms", "again / LinearSVC"]
    header += ["another shape / LinearSVC", "misses", "LinearSVC misses"]
    timing.table("Fits compared with scikit-learn's LinearSVC", header, stability_rows(tiny))


if __name__ == "__main__":
    main()
