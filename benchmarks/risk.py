"""The minimum of a convex loss at 200 alphas: one call of theory compared with nested quadrature, point by point.

    python benchmarks/risk.py           # pins itself to one core
    python benchmarks/risk.py --tiny    # the same at toy size: tests that it runs, not how fast

What a user would write: SciPy's fsolve on the angle, the length and the susceptibility, whose averages are SciPy's quad
over the field of an example, with the proximal point found by brentq inside the integral (closed for the hinge, with
the integrals cut where it bends). It is timed at a few alphas, started from the solution at lambda = 10 times as large
(theory starts from Hebb's rule), and scaled to all. Both must give the same eps_g to 1e-6.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import timing
from naive import logistic_prox
from scipy.integrate import quad
from scipy.optimize import fsolve
from scipy.special import ndtr

import theory
from statmech.kinds.empirical_risk import Risk
from theory.convex.empirical_risk import solve_loss_minimum

AGREE = 1e-6
LAM, FLIP = 0.1, 0.1
Prox = Callable[[float, float], float]


def hinge(h: float, V: float) -> float:
    return min(max(h, 1.0), h + V) if h < 1 else h


LOSSES: dict[str, tuple[Prox, Callable[[float], list[float]]]] = {
    "logistic": (logistic_prox, lambda V: []),
    "hinge": (hinge, lambda V: [1 - V, 1.0]),
}


def averages(name: str, Q: float, cos: float, V: float) -> tuple[float, float, float]:
    """A, B and C; A by partial integration."""
    prox, kinks = LOSSES[name]
    sin = np.sqrt(1 - cos * cos)
    points = [point for point in kinks(V) if abs(point) < 9 * Q]

    def average(of: Callable[[float, float, float, float], float]) -> float:
        def integrand(h: float) -> float:
            z = h / Q
            gauss = 2 * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) / Q
            right = FLIP + (1 - 2 * FLIP) * ndtr(z * cos / sin)
            response = (1 - 2 * FLIP) * np.exp(-0.5 * (z * cos / sin) ** 2) / np.sqrt(2 * np.pi) / sin
            return of(gauss * right, gauss * response, h, prox(h, V) - h)

        return quad(integrand, -9 * Q, 9 * Q, points=points or None, epsabs=1e-9, epsrel=1e-8, limit=200)[0]

    B = average(lambda right, response, h, g: right * g * g)
    C = average(lambda right, response, h, g: response * g)
    G = average(lambda right, response, h, g: right * h * g)
    return (Q * cos * C - G) / Q**2, B, C


def scipy_error(name: str, alpha: float) -> float:
    """eps_g by fsolve, from lambda = 10 times as large."""
    x = np.array([0.0, 0.0, 0.0])
    for lam in (10 * LAM, LAM):

        def residual(x: np.ndarray, lam: float = lam) -> list[float]:
            tan, Q, V = np.exp(x)
            cos = 1 / np.hypot(1, tan)
            A, B, C = averages(name, Q, cos, V)
            return [Q * cos - alpha * C, Q**2 * (1 - cos**2) - alpha * B, lam * V + alpha * A - 1]

        x = fsolve(residual, x, xtol=1e-8)
    return float(np.arctan(np.exp(x[0])) / np.pi)


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    count, sample, repeats = (5, 1, 1) if tiny else (200, 4, 3)
    alphas = np.linspace(0.5, 6, count).round(2)  # P = alpha N is an integer
    picked = np.linspace(0, count - 1, sample).astype(int)
    print(timing.machine())
    largest = 0.0
    for name in LOSSES:
        sweep = partial(Risk, loss=name, alpha=alphas.tolist(), lam=LAM, N=100, seeds=2)
        others = (sweep(flip=FLIP + 1e-9 * k) for k in itertools.count(1))  # a best lambda is found once per process
        scenario = sweep(flip=FLIP)
        cell = next(iter(scenario.cells()))
        lam = np.full(count, LAM)
        calls = {
            "the minimum": lambda c=cell, lam=lam: solve_loss_minimum(
                c.loss, c.teacher, c.penalty, c.weights, alphas, lam
            ),
            "theory.solve, with the best lambda": lambda others=others: theory.solve(next(others)),
            "SciPy fsolve, quad, prox": lambda name=name: [scipy_error(name, alphas[k]) for k in picked],
        }
        took = timing.measure(calls, repeats, timing.clock())
        solved = dict.fromkeys(calls, count) | {"SciPy fsolve, quad, prox": sample}
        each = {name: 1e3 * took[name].seconds / solved[name] for name in calls}
        peer = each["SciPy fsolve, quad, prox"]
        rows = [[call, each[call], each[call] * count / 1e3, peer / each[call]] for call in calls]
        timing.table(
            f"{name}, {count} alphas from 0.5 to 6", ["", "ms per alpha", f"s for {count}", "over SciPy"], rows
        )
        ours = theory.solve(scenario).eps_g.squeeze().values.reshape(-1)[picked]
        theirs = [scipy_error(name, alphas[k]) for k in picked]
        largest = max(largest, float(np.max(np.abs(ours - theirs))))
    print(f"\nLargest difference of eps_g: {largest:.1e} (must be below {AGREE:g})")
    if largest > AGREE:
        raise SystemExit("theory and SciPy disagree")


if __name__ == "__main__":
    main()
