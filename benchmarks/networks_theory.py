"""The order-parameter equations of 1,000 networks: one call of theory compared with SciPy, one at a time.

    python benchmarks/networks_theory.py           # pins itself to one core
    python benchmarks/networks_theory.py --tiny    # the same at toy size: tests that it runs, not how fast

The networks have K = M = 2 erf units, learning rates from 0.5 to 2, and learn through the plateau, t = 0 .. 100 at 51
times. SciPy's DOP853 integrates the same equations, with the same averages vectorised over units in NumPy, to the same
tolerance; it is timed on a few of the networks and scaled to all. Both must give the same R, Q and v to 1e-8.
A second table has the time of one network by activation and number of units.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import timing
from scipy.integrate import solve_ivp

import theory
from statmech import Network
from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network import NetworkCell
from statmech.students.activations import Erf
from theory.networks.order_parameter_equations import ATOL, RTOL, pack_units, solve_cells

AGREE = 1e-8
TIMES = np.linspace(0.0, 100.0, 51)
ROWS, COLUMNS = np.triu_indices(4)
UPPER = np.triu_indices(2)


def scenario(eta: list[float] | float, name: str = "erf", K: int = 2, M: int = 2) -> Network:
    start = {"Q": 0.25, "R": (0.05 * np.eye(K, M)).tolist()}
    return Network(network=name, K=K, M=M, N=1000, eta=eta, start=start, t=TIMES.tolist())


def average(method: str, gram: np.ndarray, *units: np.ndarray) -> np.ndarray:
    at = np.stack(np.broadcast_arrays(*units))
    return getattr(Erf(), method)(gram[at[:, None], at[None, :]])


def network_rates(_: float, rows: np.ndarray, eta: float) -> np.ndarray:
    """Time derivatives of R, Q and v of two erf units each, without noise."""
    R, Q = rows[:4].reshape(2, 2), rows[np.array([[4, 5], [5, 6]])]
    gram, c = np.block([[Q, R], [R.T, np.eye(2)]]), np.array([-1.0, -1.0, 1.0, 1.0])
    fields, students = np.arange(4), np.arange(2)
    pull = average("I3", gram, students[:, None, None], fields[:, None], fields) @ c
    i, j = UPPER
    both = np.where(ROWS < COLUMNS, 2.0, 1.0) * c[ROWS] * c[COLUMNS]
    square = average("I4", gram, i[:, None], j[:, None], ROWS, COLUMNS) @ both
    dQ = eta * (pull[i, j] + pull[j, i]) + eta**2 * square
    return np.concatenate([eta * pull[:, 2:].ravel(), dQ, np.zeros(2)])


def dop853(cell: NetworkCell) -> np.ndarray:
    """The rows of R, Q and v, shape (C, T), of one network."""
    span, start = (TIMES[0], TIMES[-1]), pack_units(cell.units)
    return solve_ivp(network_rates, span, start, "DOP853", TIMES, args=(cell.eta,), rtol=RTOL, atol=ATOL).y


def largest_difference(cells: list[NetworkCell], picked: np.ndarray) -> float:
    solved = [
        np.stack([pack_units(StudentUnits(*at)) for at in zip(*units, strict=True)], axis=1)
        for units in solve_cells(cells, TIMES)
    ]
    return max(float(np.max(np.abs(solved[at] - dop853(cells[at])))) for at in picked)


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    count, sample, repeats = (1, 1, 1) if tiny else (1000, 10, 3)
    sweep = scenario(np.linspace(0.5, 2.0, count).tolist())
    cells = list(sweep.cells())
    picked = np.linspace(0, count - 1, sample).astype(int)
    calls = {
        "theory.networks.order_parameter_equations.solve_cells": lambda: solve_cells(cells, TIMES),
        "theory.solve": lambda: theory.solve(sweep),
        "SciPy DOP853": lambda: [dop853(cells[at]) for at in picked],
    }
    took = timing.measure(calls, repeats, timing.clock())
    solved = dict.fromkeys(calls, count) | {"SciPy DOP853": sample}
    each = {name: 1e3 * took[name].seconds / solved[name] for name in calls}
    peer = each["SciPy DOP853"]
    rows = [[name, each[name], each[name] * count, peer / each[name], took[name].compile] for name in calls]
    header = ["", "ms per network", f"ms for {count:,}", "over DOP853", "compile, s"]
    print(timing.machine())
    timing.table(f"{count:,} networks, t = 0 .. 100 at 51 times", header, rows)
    kinds = [("erf", 2, 2)] if tiny else [("erf", 2, 2), ("erf", 4, 4), ("relu", 2, 2), ("relu", 3, 2)]
    single = {f"{name}, K = {K}, M = {M}": list(scenario(0.5, name, K, M).cells()) for name, K, M in kinds}
    took = timing.measure(
        {name: partial(solve_cells, one, TIMES) for name, one in single.items()}, repeats, timing.clock()
    )
    rows = [[name, 1e3 * one.seconds, one.compile] for name, one in took.items()]
    timing.table("One network", ["", "ms", "compile, s"], rows)
    difference = largest_difference(cells, picked)
    print(f"\nLargest difference of R, Q or v: {difference:.1e} (must be below {AGREE:g})")
    print(f"Peak memory of this process: {timing.peak_memory():.0f} MiB")
    if difference > AGREE:
        raise SystemExit("theory and DOP853 disagree")


if __name__ == "__main__":
    main()
