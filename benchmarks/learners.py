"""Learners of stored examples compared with the usual alternatives: a loop for MinOver, an SVM; the Markov chain.

    python benchmarks/learners.py           # pins itself to one core; 20 seconds
    python benchmarks/learners.py --tiny    # the same at toy size: tests that it runs, not how fast

MinOver: `naive.minover`, the loop and sort of the assignment's appendix, and the same with one matrix-vector product
and argmin per update, on one data set; ours on 64 data sets in parallel, Gram matrices computed beforehand. All find
the same student. The largest stability: ours (nonnegative least squares) and scikit-learn's LinearSVC without an
intercept, hinge loss at C = 10^4, tolerance 1e-3, each with its relative deviation from the optimum.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import naive
import numpy as np
import timing

from simulate.kinds.stored_examples import DataSet, draw_data_set, make_data_set_batch
from simulate.learners import max_stability, minover, version_space


class Size(NamedTuple):
    minover: list[tuple[int, int]]  # N, P
    lanes: int
    updates: int
    naive_updates: int
    svm: list[tuple[int, int]]
    chain: list[tuple[int, int]]
    sweeps: int
    repeats: int


FULL = Size(
    minover=[(20, 24), (20, 96), (20, 192), (100, 1024)],
    lanes=64,
    updates=20_000,
    naive_updates=300,
    svm=[(20, 40), (20, 200), (200, 400), (200, 1000)],
    chain=[(20, 96), (100, 192), (200, 1024)],
    sweeps=200,
    repeats=5,
)
TINY = Size([(10, 16)], 2, 100, 10, [(10, 16)], [(10, 16)], 4, 1)


def sets(N: int, P: int, lanes: int) -> list[DataSet]:
    return [draw_data_set(0, seed, N, P, 0.0) for seed in range(lanes)]


def minover_rows(size: Size) -> list[list[object]]:
    import jax

    rows = []
    for N, P in size.minover:
        lanes = max(1, min(size.lanes, 2**21 // P**2))
        data = sets(N, P, lanes)
        one = make_data_set_batch(data, P)
        until = np.full((lanes, 1), size.updates)
        gram, sizes = jax.device_put(one.gram), jax.device_put(one.sizes)
        calls = {
            "naive": lambda z=data[0].z: naive.minover(z, size.naive_updates),
            "numpy": lambda z=data[0].z: naive.minover_matvec(z, size.naive_updates),
            "ours": lambda g=gram, s=sizes, u=until: minover.learn_minover_batch("epochs", g, s, u)[
                0
            ].block_until_ready(),
        }
        check(data[0], one, size.naive_updates)
        times = timing.measure(calls, size.repeats, timing.clock())
        mine = times["ours"].seconds / size.updates / lanes
        theirs = [times[name].seconds / size.naive_updates for name in ("naive", "numpy")]
        ratios = [theirs[0] / mine, theirs[1] / mine]
        rows.append(
            [N, P, lanes, 1e9 * mine, 1e6 * theirs[0], ratios[0], 1e6 * theirs[1], ratios[1], times["ours"].compile]
        )
    return rows


def check(data: DataSet, one: object, updates: int) -> None:
    """All three find the same student."""
    strengths = np.asarray(
        minover.learn_minover_batch("epochs", one.gram[:1], one.sizes[:1], np.array([[updates]]))[0]
    )[0, 0]
    for w in (naive.minover(data.z, updates), naive.minover_matvec(data.z, updates)):
        np.testing.assert_allclose(strengths @ data.z / data.z.shape[1], w, rtol=1e-9, atol=1e-11)


def svm_rows(size: Size) -> list[list[object]]:
    from sklearn.svm import LinearSVC

    rows = []
    for N, P in size.svm:
        z = sets(N, P, 1)[0].z
        signs = np.where(np.arange(P) % 2, 1, -1)  # a classifier needs two classes: half of the examples change sign
        model = LinearSVC(fit_intercept=False, loss="hinge", C=1e4, tol=1e-3, max_iter=1_000_000)
        calls = {
            "ours": lambda z=z: max_stability.compute_max_stability_strengths(z),
            "svm": lambda z=z, s=signs, m=model: m.fit(z * s[:, None], s),
        }
        times = timing.measure(calls, size.repeats, timing.clock())
        x = max_stability.compute_max_stability_strengths(z)
        largest = np.linalg.norm(x @ z) / x.sum()
        missed = [1 - np.min(z @ w) / np.linalg.norm(w) / largest for w in (x @ z, model.coef_[0])]
        mine, theirs = times["ours"].seconds, times["svm"].seconds
        rows.append([N, P, 1e3 * mine, missed[0], 1e3 * theirs, missed[1], theirs / mine])
    return rows


def chain(sweeps: int, *arrays: np.ndarray) -> None:
    version_space.run_chains((0, 1, sweeps), *arrays)[0].block_until_ready()


def chain_rows(size: Size) -> list[list[object]]:
    rows = []
    for N, P in size.chain:
        lanes = max(1, min(size.lanes, 2**21 // P**2))
        data = sets(N, P, lanes)
        start = np.array([max_stability.compute_max_stability_strengths(one.z) @ one.z for one in data])
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        columns = np.array([one.z.T for one in data])
        keys = np.arange(2 * lanes, dtype=np.uint32).reshape(lanes, 2)
        call = partial(chain, size.sweeps, keys, columns, start)
        time = timing.measure({"chain": call}, size.repeats, timing.clock())["chain"]
        each = time.seconds / size.sweeps / lanes
        rows.append([N, P, lanes, 1e6 * each, 1e9 * each / N / P, time.compile])
    return rows


def main() -> None:
    size = TINY if timing.tiny(__doc__) else FULL
    timing.pin()
    import jax

    print(timing.machine())
    with jax.enable_x64(True):
        header = ["N", "P", "data sets", "ours, ns/update", "appendix, us", "ratio", "NumPy, us", "ratio", "compile, s"]
        timing.table("MinOver compared with plain Python and NumPy", header, minover_rows(size))
        header = ["N", "P", "ours, ms", "misses", "LinearSVC, ms", "misses", "ratio"]
        timing.table("The largest stability, one data set", header, svm_rows(size))
        header = ["N", "P", "data sets", "us/sweep", "ns/coordinate-example", "compile, s"]
        timing.table("The Markov chain in the version space", header, chain_rows(size))


if __name__ == "__main__":
    main()
