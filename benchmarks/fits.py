"""Fits at finite N: minimisation and message passing, compared with scikit-learn on the same data.

    python benchmarks/fits.py            # pins itself to one core
    python benchmarks/fits.py --tiny     # the same at toy size: tests that it runs, not how fast

The first table has fits of one data set, whose weights must agree; scikit-learn runs at its tightest tolerance that
converges. The second has whole runs of Bayes-optimal inference: drawing the data and message passing until it settles.
"""

from __future__ import annotations

import warnings

import numpy as np
import timing
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from simulate.kernels.least_risk import minimise_by_messages
from simulate.kernels.teacher_data import drawn
from simulate.minimisers.method import minimise
from simulate.scenarios import inference
from simulate.scenarios.risk import problem_of
from statmech import Inference, Risk

LAM, AGREE = 0.1, 1e-5  # of weights, relative
THEIRS = {
    "square": lambda: Ridge(alpha=LAM, fit_intercept=False),
    "logistic": lambda: LogisticRegression(C=1 / LAM, fit_intercept=False, tol=1e-10, max_iter=10_000),
    "hinge": lambda: LinearSVC(C=1 / LAM, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000),
}


def fits(N: int, repeats: int) -> None:
    """Seconds of a fit of P = 2 N examples with 10 % of flipped labels."""
    rows, largest = [], 0.0
    for name, theirs in THEIRS.items():
        cell = next(Risk(loss=name, alpha=2.0, flip=0.1, lam=LAM, N=N).cells())
        data = drawn(cell, 0, 0)
        problem, X = problem_of(cell, data, LAM), data.X / np.sqrt(N)
        calls = {
            "minimise": lambda problem=problem: minimise(problem),
            "messages": lambda d=data, c=cell: minimise_by_messages(d.X, d.y, c.loss, c.penalty, LAM),
            "scikit-learn": lambda X=X, y=data.y, make=theirs: make().fit(X, y),
        }
        took = timing.measure(calls, repeats, timing.clock())
        seconds = [took[call].seconds for call in calls]
        rows.append([name, *(1e3 * value for value in seconds), seconds[2] / seconds[0]])
        w = minimise(problem).w
        for other in (calls["messages"]().w, np.ravel(calls["scikit-learn"]().coef_)):
            largest = max(largest, float(np.linalg.norm(other - w) / np.linalg.norm(w)))
    header = ["", "minimise, ms", "message passing, ms", "scikit-learn, ms", "scikit-learn/minimise"]
    timing.table(f"a fit at N = {N}, P = {2 * N}, lambda = {LAM:g}", header, rows)
    print(f"\nLargest relative difference of weights: {largest:.1e} (must be below {AGREE:g})")
    if largest > AGREE:
        raise SystemExit("the fits disagree")


def inferences(N: int, repeats: int) -> None:
    """Seconds of a run of message passing, away from transitions."""
    cases = {
        "Gaussian, alpha 2": {"prior": "gauss", "alpha": 2.0},
        "Gaussian, flip 0.1, alpha 2": {"prior": "gauss", "alpha": 2.0, "flip": 0.1},
        "binary, alpha 1": {"prior": "binary", "alpha": 1.0},
        "binary, alpha 1.7": {"prior": "binary", "alpha": 1.7},
        "sparse, linear teacher, noise 0.01, alpha 0.45": {
            "prior": "sparse",
            "teacher": "linear",
            "noise": 0.01,
            "alpha": 0.45,
        },
    }
    scenarios = {name: Inference(N=N, steps=200, **given) for name, given in cases.items()}
    calls = {
        name: lambda s=scenario: inference.Simulator(s).simulate(next(s.cells()), 0)
        for name, scenario in scenarios.items()
    }
    took = timing.measure(calls, repeats, timing.clock())
    timing.table(f"inference at N = {N}, a run", ["", "s"], [[name, took[name].seconds] for name in calls])


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    print(timing.machine())
    warnings.simplefilter("ignore", ConvergenceWarning)
    fits(*((60, 1) if tiny else (500, 5)))
    inferences(*((100, 1) if tiny else (2000, 5)))


if __name__ == "__main__":
    main()
