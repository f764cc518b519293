"""The order-parameter equations of 1,000 scenarios: one call of theory compared with SciPy, one at a time.

    python benchmarks/equations.py           # pins itself to one core
    python benchmarks/equations.py --tiny    # the same at toy size: tests that it runs, not how fast

The scenarios are ensembles of the perceptron rule, learning rates from 0.5 to 2, t = 0 .. 50 at 201 times.
LSODA integrates (l, R, q) at rtol = atol = 1e-8 with the closed-form averages; theory integrates to rtol
1e-9, in variables without loss of precision near R = 1. Both must give the same l, R and q to 1e-6. LSODA is
timed on a few of the scenarios and scaled to all. `theory.solve` also computes the ensemble's errors and
returns a labelled dataset. A second table times the learning curves of stored examples, a third one student of inputs
of two variances up to t = 10,000, beside LSODA on equations that are written for this case.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import timing
from scipy.integrate import solve_ivp

import theory
from statmech import Scenario
from statmech.kinds.online_learning import OnlineCell
from theory.online.order_parameter_equations import solve_cells
from theory.online.student_states import Students

AGREE = 1e-6
TIMES = np.linspace(0.0, 50.0, 201)
MODES, LATE = (0.2, 1.8), np.geomspace(1.0, 1e4, 20)


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


def mode_rates(_: float, y: np.ndarray) -> list[float]:
    """Time derivatives of the teacher's share and the square across it, in each of the two modes (`MODES`)."""
    S, m, across, size = 0.0, 0.0, 0.0, 0.0
    for at, omega in enumerate(MODES):
        S, m = S + omega / 2, m + omega / 2 * y[at]
        across, size = across + omega * y[2 + at], size + y[at] ** 2 / 2 + y[2 + at]
    m /= S
    across += sum(omega / 2 * (y[at] - m) ** 2 for at, omega in enumerate(MODES))
    s, theta = math.sqrt(S * m * m + across), math.atan2(math.sqrt(across), math.sqrt(S) * m)
    versine = 2 * math.sin(theta / 2) ** 2
    D, fu, ff = 1 / math.sqrt(2 * math.pi * S), -versine / math.sqrt(2 * math.pi), theta / math.pi
    E = (fu - math.cos(theta) / math.sqrt(2 * math.pi)) / s
    return [omega * (D + E * y[at]) for at, omega in enumerate(MODES)] + [
        omega * (2 * E * y[2 + at] + ff / 2) for at, omega in enumerate(MODES)
    ]


def structured_peer() -> np.ndarray:
    """eps_g of one student at each of `LATE`."""
    y = solve_ivp(mode_rates, (0, LATE[-1]), [0, 0, 0.5, 0.5], "LSODA", LATE, rtol=1e-9, atol=1e-14).y
    omega = np.array(MODES)
    m = omega @ y[:2] / omega.sum()
    across = omega @ y[2:] + omega / 2 @ (y[:2] - m) ** 2
    return np.arctan2(np.sqrt(across), np.sqrt(omega.sum() / 2) * m) / np.pi


def structured(repeats: int) -> float:
    """Print the table of inputs of two variances; return the largest relative difference of eps_g."""
    given = Scenario(rule="perceptron", t=LATE, inputs={"spectrum": list(MODES)})

    def ours() -> np.ndarray:
        return theory.solve(given).eps_g.values.ravel()

    took = timing.measure({"theory.solve": ours, "SciPy LSODA": structured_peer}, repeats, timing.clock())
    peer = took["SciPy LSODA"].seconds
    rows = [[name, 1e3 * one.seconds, one.seconds / peer] for name, one in took.items()]
    timing.table(f"Two variances, t = 1 .. {LATE[-1]:,.0f} at {len(LATE)} times", ["", "ms", "over LSODA"], rows)
    return float(np.max(np.abs(structured_peer() / ours() - 1)))


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
        "theory.online.order_parameter_equations.solve_cells": lambda: solve_cells(cells, TIMES),
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
    difference = max(difference, structured(repeats))
    print(f"\nLargest difference of l, R, q or of eps_g, relative: {difference:.1e} (must be below {AGREE:g})")
    print(f"Peak memory of this process: {timing.peak_memory():.0f} MiB")
    if difference > AGREE:
        raise SystemExit("theory and LSODA disagree")


if __name__ == "__main__":
    main()
