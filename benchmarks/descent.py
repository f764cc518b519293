"""Gradient descent on stored examples: runs that draw inputs as far as they need them, beside a NumPy loop; theory.

    python benchmarks/descent.py           # pins itself to one core; three minutes, 1 GB
    python benchmarks/descent.py --tiny    # the same at toy size: tests that it runs, not how fast

Logistic regression on P = 2 N labels, one in ten flipped. The loop is what a user would write: it draws the inputs and
multiplies them by weights and slopes; with batches it reads only their rows. Both have the same distribution: the mean
errors of the first table's smallest N must agree within `AGREE` standard errors. Where the inputs exceed the machine's
memory, the loop's time is scaled from the largest N at which it ran, by N^2.

Of theory, the time and memory of the replicas of a cell with the samples that its error asks for (`peers.py` has
published code of dynamical mean-field theory beside it).
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import timing

from simulate.convex.descent_engines import run_deferred_descent, run_explicit_descent
from statmech import Descent
from statmech.kinds.gradient_descent import DescentCell
from theory.stored_examples import descent_dynamics

AGREE = 4.0
ETA, LAM, FLIP, ALPHA = 0.8, 0.02, 0.1, 2


def cell_of(N: int, epochs: int, batch: float = 1.0) -> DescentCell:
    """A run that records its last step."""
    given = {"flip": FLIP, "alpha": ALPHA, "eta": ETA, "lam": LAM, "start": {"length": 1}}
    return next(Descent(descent="gradient", loss="logistic", N=N, epochs=[epochs], batch=batch, **given).cells())


def loop(cell: DescentCell, rng: np.random.Generator) -> float:
    """The generalization error after the last step, as a user would compute it."""
    N, P = cell.N, cell.P
    teacher, X = rng.standard_normal(N), rng.standard_normal((P, N))
    y = np.sign(X @ teacher) * np.where(rng.random(P) < FLIP, -1, 1)
    w, batches = rng.standard_normal(N), round(1 / cell.batch)
    for _ in range(cell.steps[-1] // batches):
        order = rng.permutation(P) if batches > 1 else slice(None)
        for rows in np.array_split(order, batches) if batches > 1 else [order]:
            A, b = X[rows], y[rows]
            h = A @ w / np.sqrt(N)
            slope = -b / (1 + np.exp(b * h))
            w = w - ETA * (slope @ A / np.sqrt(N) + LAM / batches * w)
    return float(np.arccos(w @ teacher / np.linalg.norm(w) / np.linalg.norm(teacher)) / np.pi)


def beside_the_loop(title: str, cells: list[DescentCell], repeats: int) -> float:
    """Milliseconds of a run by both engines and by the loop; the loop's seconds at the last cell."""
    rows, seconds = [], 0.0
    for cell in cells:
        rng = np.random.default_rng(0)
        calls = {
            "deferred": lambda cell=cell, rng=rng: run_deferred_descent(cell, rng),
            "explicit": lambda cell=cell, rng=rng: run_explicit_descent(cell, rng),
            "NumPy": lambda cell=cell, rng=rng: loop(cell, rng),
        }
        took = {name: it.seconds for name, it in timing.measure(calls, repeats, timing.clock()).items()}
        seconds = took["NumPy"]
        rows.append([cell.N, *(1e3 * it for it in took.values()), *(seconds / it for it in [*took.values()][:2])])
    ours = ["deferred, ms", "explicit, ms", "NumPy loop, ms", "NumPy/deferred", "NumPy/explicit"]
    timing.table(title, ["N", *ours], rows)
    return seconds


def large(cells: list[DescentCell], at: int, seconds: float, repeats: int) -> None:
    """Runs whose inputs no machine holds: seconds and memory, and those that the loop would take."""
    rows = []
    for cell in cells:
        calls = {"run": lambda cell=cell: run_deferred_descent(cell, np.random.default_rng(0))}
        took = timing.measure(calls, repeats, timing.clock())["run"].seconds
        tracemalloc.start()
        calls["run"]()
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        scaled, inputs = seconds * (cell.N / at) ** 2, 8.0 * cell.P * cell.N
        rows.append([cell.N, took, held / 1e9, inputs / 1e9, scaled / took, inputs / held])
    ratios = ["inputs, GB", "the loop's time, scaled, over ours", "inputs over our memory"]
    timing.table(f"without inputs, {cells[0].steps[-1]} steps", ["N", "s", "GB", *ratios], rows)


def of_theory(cells: dict[str, DescentCell], repeats: int) -> None:
    """Seconds of the theory of a cell, its samples and largest errors, and the memory taken and stated."""
    rows = []
    for name, cell in cells.items():

        def solve(cell: DescentCell = cell) -> descent_dynamics.DescentCurves:
            descent_dynamics._get_cached_curves.cache_clear()
            return descent_dynamics.compute_descent_curves(cell)

        took = timing.measure({"solve": solve}, repeats, timing.clock())["solve"].seconds
        tracemalloc.start()
        found = solve()
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        directions = descent_dynamics.simulate_descent(cell, 0, found.samples_per_replica).num_directions
        stated = descent_dynamics.estimate_replica_bytes(cell, directions, found.samples_per_replica)
        errors = (np.nanmax(found.error[name]) for name in ("R", "eps_g"))
        rows.append(
            [
                name,
                found.samples_per_replica,
                directions,
                took,
                *(f"{it:.0e}" for it in errors),
                held / 1e6,
                stated / 1e6,
            ]
        )
    header = ["", "samples", "directions", "s", "error of R", "of eps_g", "MB", "MB stated"]
    timing.table("theory of a cell, 8 replicas", header, rows)


def solved(loss: str, epochs: int, **given: object) -> DescentCell:
    """A cell of theory that records its last step."""
    keys = {"flip": FLIP, "alpha": 3, "eta": 0.05, **given}
    return next(Descent(descent="gradient", loss=loss, epochs=[epochs], **keys).cells())


def agreement(cell: DescentCell, runs: int) -> None:
    """Compare the mean errors of runs by both engines with those of the loop."""
    seeds = [np.random.default_rng(seed) for seed in range(runs)]
    expected = np.array([loop(cell, rng) for rng in seeds])
    for run_descent in (run_deferred_descent, run_explicit_descent):
        found = np.array([run_descent(cell, rng)["eps_g"][-1] for rng in seeds])
        error = np.sqrt((found.var(ddof=1) + expected.var(ddof=1)) / runs)
        z = abs(found.mean() - expected.mean()) / error
        print(f"\n{run_descent.__name__} and the loop differ by {z:.1f} standard errors (must be below {AGREE:g})")
        if z > AGREE:
            raise SystemExit("the engine and the loop disagree")


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    sizes, largest = ((20, 40), (100,)) if tiny else ((100, 300, 1000, 3000), (10_000, 50_000, 200_000))
    epochs, few, runs, repeats = (3, 1, 20, 1) if tiny else (40, 10, 400, 5)
    print(timing.machine())
    agreement(cell_of(sizes[0], epochs), runs)
    seconds = beside_the_loop(f"{epochs} steps", [cell_of(N, epochs) for N in sizes], repeats)
    batched = [cell_of(N, few, 1 / 16) for N in sizes[-2:]]
    beside_the_loop(f"{few} epochs of batches of 1/16, {16 * few} steps", batched, repeats)
    large([cell_of(N, epochs) for N in largest], sizes[-1], seconds, 1 if tiny else 3)
    long, kinked = (4, 3) if tiny else (600, 300)
    cells = {
        f"square, linear teacher, {epochs} steps": solved("square", epochs, teacher="linear", flip=0),
        f"logistic, {epochs} steps": solved("logistic", epochs),
        f"logistic, {long} steps": solved("logistic", long),
        f"hinge, {kinked} steps": solved("hinge", kinked),
    }
    of_theory(cells, 1 if tiny else 3)


if __name__ == "__main__":
    main()
