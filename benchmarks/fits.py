"""Fits at finite N: minimisation and message passing, compared with scikit-learn on the same data.

    python benchmarks/fits.py            # pins itself to one core
    python benchmarks/fits.py --tiny     # the same at toy size: tests that it runs, not how fast

The first table has fits of the same data, whose weights must agree; scikit-learn runs at its tightest tolerance that
converges. A distance of NaN says that message passing did not converge. The second has whole runs of Bayes-optimal
inference: drawing the data and message passing until it settles.
"""

from __future__ import annotations

import warnings

import numpy as np
import timing
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from simulate.convex.message_passing import minimise_by_message_passing
from simulate.convex.minimisation_and_separability import minimise
from simulate.convex.objective_and_certificates import GAP_TOL
from simulate.convex.training_data import draw_teacher_data
from simulate.kinds import bayes_inference
from simulate.kinds.empirical_risk import make_risk_problem
from statmech import Inference, Risk

AGREE = 1e-5  # of weights, relative
TIGHT = {"fit_intercept": False, "max_iter": 100_000}
THEIRS = {  # of lam and P, at the tightest tolerance that converges
    "square": lambda lam, P: Ridge(alpha=lam, fit_intercept=False),
    "logistic": lambda lam, P: LogisticRegression(C=1 / lam, tol=1e-10, **TIGHT),
    "hinge": lambda lam, P: LinearSVC(C=1 / lam, loss="hinge", tol=1e-8, **TIGHT),
    "lasso": lambda lam, P: Lasso(alpha=lam / P, tol=1e-12, **TIGHT),
    "elastic net": lambda lam, P: ElasticNet(alpha=lam / P, tol=1e-12, **TIGHT),
}
NOISY = {"flip": 0.1, "alpha": 2.0, "lam": 0.1}
LINEAR = {"loss": "square", "teacher": "linear", "noise": 0.5, "lam": 0.3}
SEPARABLE = {"flip": 0.0, "alpha": 1.0, "lam": 1e-3}


def cases(N: int) -> list[tuple[str, dict[str, object]]]:
    """Noisy examples, P = 2 N, linear teachers of lasso and elastic net, and labels that can be separated, P = N."""
    noisy = [(name, {"loss": name, **NOISY}) for name in ("square", "logistic", "hinge")]
    sparse = [(name, LINEAR | {"penalty": of}) for name, of in (("lasso", "l1"), ("elastic net", "elastic_net"))]
    separable = [(name, {"loss": name, **SEPARABLE}) for name in ("logistic", "hinge")]
    alphas = [(name, given | {"alpha": alpha}) for alpha in (2.0, 1.0) for name, given in sparse]
    return [(name, given | {"N": N}) for name, given in noisy + alphas + separable]


def fits(sizes: tuple[int, ...], repeats: int) -> None:
    """Milliseconds of a fit, the distances of the weights from ours, and our certificate."""
    rows = [_row(name, given, repeats) for N in sizes for name, given in cases(N)]
    ours = ["minimise, ms", "message passing, ms", "scikit-learn, ms", "minimise/scikit-learn"]
    header = ["loss", "N", "P", "lambda", *ours, "distance, messages", "distance, scikit-learn", "gap"]
    timing.table("a fit of the same data", header, rows)
    largest = max(float(row[-2]) for row in rows)
    print(f"\nLargest relative distance of scikit-learn's weights: {largest:.1e} (must be below {AGREE:g})")
    if largest > AGREE or max(float(row[-1]) for row in rows) > GAP_TOL:
        raise SystemExit("the fits disagree")


def _row(name: str, given: dict[str, object], repeats: int) -> list[object]:
    cell = next(Risk(**given).cells())
    data, lam = draw_teacher_data(cell, 0, 0), float(given["lam"])
    problem, X = make_risk_problem(cell, data, lam), data.X / np.sqrt(cell.N)
    calls = {
        "minimise": lambda: minimise(problem),
        "messages": lambda: minimise_by_message_passing(problem, max_steps=500),
        "scikit-learn": lambda: THEIRS[name](lam, cell.P).fit(X, data.y),
    }
    took = timing.measure(calls, repeats, timing.clock())
    seconds = [took[call].seconds for call in calls]
    found, messages = calls["minimise"](), calls["messages"]()
    others = [messages.w if messages.converged else np.nan * found.w, np.ravel(calls["scikit-learn"]().coef_)]
    distances = [float(np.linalg.norm(w - found.w) / np.linalg.norm(found.w)) for w in others]
    times = [*(1e3 * value for value in seconds), seconds[0] / seconds[2]]
    return [name, cell.N, cell.P, f"{lam:g}", *times, *(f"{value:.0e}" for value in (*distances, found.gap))]


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
        name: lambda s=scenario: bayes_inference.Simulator(s).simulate(next(s.cells()), 0)
        for name, scenario in scenarios.items()
    }
    took = timing.measure(calls, repeats, timing.clock())
    timing.table(f"inference at N = {N}, a run", ["", "s"], [[name, took[name].seconds] for name in calls])


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    print(timing.machine())
    warnings.simplefilter("ignore", ConvergenceWarning)
    fits(*(((60,), 1) if tiny else ((500, 1000), 5)))
    inferences(*((100, 1) if tiny else (2000, 5)))


if __name__ == "__main__":
    main()
