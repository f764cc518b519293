"""The order-parameter equations of 1,000 scenarios: one call of theory compared with SciPy, one at a time.

    python benchmarks/equations.py           # pins itself to one core
    python benchmarks/equations.py --tiny    # the same at toy size: tests that it runs, not how fast

The scenarios are ensembles of the perceptron rule, learning rates from 0.5 to 2, t = 0 .. 50 at 201 times.
LSODA integrates (l, R, q) at rtol = atol = 1e-8 with the closed-form averages; theory integrates to rtol
1e-9, in variables without loss of precision near R = 1. Both must give the same l, R and q to 1e-6. LSODA is
timed on a few of the scenarios and scaled to all. `theory.solve` also computes the ensemble's errors and
returns a labelled dataset. A second table times the learning curves of stored examples.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import timing
from scipy.integrate import solve_ivp

import theory
from statmech import Scenario
from statmech.scenarios.online import OnlineCell
from theory.online.equations import Students
from theory.online.trajectories import solve_cells

AGREE = 1e-6
TIMES = np.linspace(0.0, 50.0, 201)


def perceptron_rates(_: float, y: np.ndarray, eta: float) -> list[float]:
    """Time derivatives of (l, R, q) of equal students, from the averages of Miyoshi, Hara & Okada."""
    length, R, q = y
    fu = eta * (R - 1) / np.sqrt(2 * np.pi)
    fv = -fu
    fu_other = eta * (R - q) / np.sqrt(2 * np.pi)  # average of one student's f times another's field
    ff = eta**2 * np.arccos(R) / np.pi
    ff_other = eta**2 * (2 * np.arccos(R) - np.arccos(q)) / (2 * np.pi)
    return [
        fu + ff / (2 * length),
        (fv - R * fu) / length - R * ff / (2 * length**2),
        2 * (fu_other - q * fu) / length + (ff_other - q * ff) / length**2,
    ]


def lsoda(eta: float) -> np.ndarray:
    """l, R and q, shape (3, T), of one scenario."""
    span = (TIMES[0], TIMES[-1])
    start = [1.0, 0.0, 0.0]
    return solve_ivp(perceptron_rates, span, start, "LSODA", TIMES, args=(eta,), rtol=1e-8, atol=1e-8).y


def scenario(count: int) -> Scenario:
    return Scenario(rule="perceptron", K=2, t=TIMES, eta=np.linspace(0.5, 2.0, count))


def views(students: Students) -> np.ndarray:
    """l, R and q, shape (3, T), of theory's state."""
    R = 1 - students.y[:, 0]
    q = R**2 + students.c[:, 0] * (1 - R**2)
    return np.array([np.exp(students.log_length[:, 0]), R, q])


def largest_difference(cells: list[OnlineCell], picked: np.ndarray) -> float:
    """The largest difference between the two solutions, over the picked scenarios and all times."""
    solved = solve_cells(cells, TIMES)
    return max(float(np.max(np.abs(views(solved[i]) - lsoda(cells[i].rule.eta)))) for i in picked)


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    count, sample, repeats = (10, 2, 1) if tiny else (1000, 20, 5)
    sweep = scenario(count)
    cells = list(sweep.cells())
    picked = np.linspace(0, count - 1, sample).astype(int)  # spread over the learning rates
    calls = {
        "theory.online.trajectories.solve_cells": lambda: solve_cells(cells, TIMES),
        "theory.solve": lambda: theory.solve(sweep),
        "SciPy LSODA": lambda: [lsoda(cells[i].rule.eta) for i in picked],
    }
    took = timing.measure(calls, repeats, timing.clock())
    solved = dict.fromkeys(calls, count) | {"SciPy LSODA": sample}
    each = {name: 1e3 * took[name].seconds / solved[name] for name in calls}
    peer = each["SciPy LSODA"]
    rows = [[name, each[name], each[name] * count, peer / each[name], took[name].compile] for name in calls]
    header = ["", "ms per scenario", f"ms for {count:,}", "over LSODA", "compile, s"]
    difference = largest_difference(cells, picked)
    print(timing.machine())
    timing.table(f"{count:,} scenarios, t = 0 .. 50 at 201 times", header, rows)
    points = 10 if tiny else 200
    alphas = np.geomspace(0.05, 50, points)
    curves = {f"flip = {flip:g}": partial(theory.learning_curves, alphas, flip) for flip in (0.0, 0.1)}
    took = timing.measure(curves, repeats, timing.clock())
    rows = [[name, 1e3 * one.seconds, 1e3 * one.first] for name, one in took.items()]
    timing.table(
        f"theory.learning_curves, all five curves at {points} values of alpha", ["", "ms", "the first call, ms"], rows
    )
    print(f"\nLargest difference of l, R or q: {difference:.1e} (must be below {AGREE:g})")
    print(f"Peak memory of this process: {timing.peak_memory():.0f} MiB")
    if difference > AGREE:
        raise SystemExit("theory and LSODA disagree")


if __name__ == "__main__":
    main()
