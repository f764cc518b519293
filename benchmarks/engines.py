"""The two engines compared with a plain NumPy loop, scikit-learn, and the speed of random numbers.

    python benchmarks/engines.py            # all tables, minutes; pins itself to one core
    python benchmarks/engines.py --tiny     # the same at toy size: tests that it runs, not how fast
    python benchmarks/engines.py gram limit # some tables (names: see SECTIONS)

All tables use the perceptron rule. The Gram engine samples the distribution of the order parameters, without weights:
its ratio to NumPy is one of algorithms, for the same distribution of R, q and l, not the same trajectory. The direct
engine holds all weights, as NumPy and scikit-learn do. Baselines (naive.py) and engines run alternately.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import naive
import numpy as np
import timing

import simulate
from simulate.online import gram_engine, grouped_gram_engine, perceptrons, weight_vector_engine
from statmech import Scenario
from statmech.inputs.input_distributions import Spectrum
from statmech.kinds.online_learning import OnlineCell
from statmech.numerics import random_numbers
from statmech.numerics.random_numbers import make_key_data

Call = timing.Call
GROUPED = 10  # students, at most, of the table of groups


class Size(NamedTuple):
    """How much work: steps are those of one seed in one call."""

    N: int
    gram_steps: dict[int, int]  # for each K: at most a second per call
    naive_steps: int
    dimensions: list[int]
    seeds: list[int]
    seeds_t: float
    vectors_students: list[int]
    vectors_steps: int
    vectors_dimensions: dict[int, int]  # with the steps at each
    small_N: int  # of the comparison with scikit-learn
    small_steps: int
    normals: list[int]
    groups: list[int]
    repeats: int


FULL = Size(
    N=10_000,
    gram_steps={1: 19_968, 3: 19_968, 10: 9_920, 30: 2_160, 100: 768},  # whole strides of blocks
    naive_steps=300,
    dimensions=[1_000, 10_000, 1_000_000, 1_000_000_000],
    seeds=[64, 256, 1024, 4096],
    seeds_t=10.0,
    vectors_students=[3, 10],
    vectors_steps=400,
    vectors_dimensions={10_000: 400, 100_000: 160, 1_000_000: 48},
    small_N=1000,
    small_steps=1_984,
    normals=[10_000, 100_000, 1_000_000],
    groups=[1, 2, 5, 10],
    repeats=5,
)
TINY = Size(
    N=200,
    gram_steps={3: 64},  # compiling more would be most of the time
    naive_steps=20,
    dimensions=[200, 1_000_000_000],
    seeds=[64],
    seeds_t=0.2,
    vectors_students=[3],
    vectors_steps=16,
    vectors_dimensions={200: 16},
    small_N=100,
    small_steps=16,
    normals=[1_000],
    groups=[2],
    repeats=1,
)


def gram_over_numpy(size: Size) -> None:
    """(a) Gram engine compared with NumPy, by the number of students."""
    rows = []
    for K, steps in size.gram_steps.items():
        batches = math.ceil(64 / gram_engine.batch(K))  # at least 64 seeds
        calls = {
            "gram": simulation(gram_engine, cell(size.N, K), steps, batches=batches),
            "numpy": partial(run_numpy, size.N, K, size.naive_steps),
        }
        took = timing.measure(calls, size.repeats, timing.clock())
        seeds = batches * gram_engine.batch(K)
        ours, theirs = took["gram"].seconds / (steps * seeds), took["numpy"].seconds / size.naive_steps
        rows.append([K, seeds, 1e9 * ours, 1e9 * theirs, theirs / ours, took["gram"].compile])
    header = ["K", "seeds", "Gram, ns/step-seed", "NumPy, ns/step-seed", "ratio", "compile, s"]
    timing.table(f"(a) Gram engine over NumPy, N = {size.N:,}, float64", header, rows)


def gram_by_dimension(size: Size) -> None:
    """(b) Cost of a Gram step at very different N."""
    steps = size.gram_steps[3]
    calls = {N: simulation(gram_engine, cell(N, 3), steps) for N in size.dimensions}
    took = timing.measure(calls, size.repeats, timing.clock())
    cost = {N: 1e9 * took[N].seconds / (steps * gram_engine.batch(3)) for N in size.dimensions}
    lowest = min(cost.values())
    rows = [[f"{N:,}", cost[N], f"+{100 * (cost[N] / lowest - 1):.0f} %"] for N in size.dimensions]
    timing.table("(b) Gram step by dimension, K = 3", ["N", "ns/step-seed", "over the lowest"], rows)


def gram_by_seeds(size: Size) -> None:
    """(c) `simulate.run` by the number of seeds, on one core and on two: wall time."""
    calls: dict[tuple[int, int], Call] = {}
    with process_on(timing.cores()[:2]) as pair:  # this process has one core only
        for seeds in size.seeds:
            work = partial(run_gram, size.N, seeds, size.seeds_t)
            calls[seeds, 1] = work
            if len(timing.cores()) > 1:
                calls[seeds, 2] = partial(result_of, pair, work)
        took = timing.measure(calls, min(size.repeats, 3), time.perf_counter)
    cost = {case: 1e9 * took[case].seconds / (case[0] * size.N * size.seeds_t) for case in calls}
    rows = []
    for seeds in size.seeds:
        one, two = cost[seeds, 1], cost.get((seeds, 2))
        rows.append([seeds, one, two or "no second core", one / two if two else "-"])
    title = f"(c) simulate.run by seeds, K = 3, N = {size.N:,}, t = {size.seeds_t:g}, wall time with the vote"
    timing.table(title, ["seeds", "1 core, ns/step-seed", "2 cores, ns/step-seed", "speed-up"], rows)


def vectors_over_numpy(size: Size) -> None:
    """(d) Direct engine compared with NumPy, in both precisions."""
    rows = []
    for K in size.vectors_students:
        calls = {
            "float64": simulation(weight_vector_engine, cell(size.N, K), size.vectors_steps, "float64"),
            "float32": simulation(weight_vector_engine, cell(size.N, K), size.vectors_steps, "float32"),
            "numpy": partial(run_numpy, size.N, K, size.naive_steps),
        }
        took = timing.measure(calls, size.repeats, timing.clock())
        theirs = took["numpy"].seconds / size.naive_steps
        for dtype in ("float64", "float32"):
            ours = took[dtype].seconds / (size.vectors_steps * weight_vector_engine.batch(K))
            rows.append([K, dtype, 1e6 * ours, 1e6 * theirs, theirs / ours, took[dtype].compile])
    header = ["K", "dtype", "direct, us/step-seed", "NumPy, us/step-seed", "ratio", "compile, s"]
    timing.table(f"(d) direct engine over NumPy, N = {size.N:,}", header, rows)


def vectors_by_dimension(size: Size) -> None:
    """(i) Direct engine by dimension, in both precisions: the table of a GPU."""
    rows = []
    for N, steps in size.vectors_dimensions.items():
        for K in size.vectors_students:
            calls = {
                dtype: simulation(weight_vector_engine, cell(N, K), steps, dtype) for dtype in ("float32", "float64")
            }
            took = timing.measure(calls, min(size.repeats, 3), timing.clock())
            rows.append(
                [f"{N:,}", K, *(1e6 * took[dtype].seconds / (steps * weight_vector_engine.batch(K)) for dtype in calls)]
            )
    timing.table("(i) direct engine, us/step-seed", ["N", "K", "float32", "float64"], rows)


def cost_of_changes(size: Size) -> None:
    """(g) A step with a drifting teacher, or with decay, over one without, in both engines."""
    rows = []
    changes: dict[str, dict[str, float]] = {"none": {}, "decay": {"decay": 0.1}, "drift": {"drift": 0.1}}
    for K, steps in size.gram_steps.items():
        calls = {name: simulation(gram_engine, cell(size.N, K, **given), steps) for name, given in changes.items()}
        rows.append(["Gram", K, *over_the_first(calls, size, steps * gram_engine.batch(K))])
    for K in size.vectors_students:
        steps = size.vectors_steps
        calls = {
            name: simulation(weight_vector_engine, cell(size.N, K, **given), steps) for name, given in changes.items()
        }
        rows.append(["direct", K, *over_the_first(calls, size, steps * weight_vector_engine.batch(K))])
    header = ["engine", "K", "ns/step-seed", "with decay", "with drift"]
    timing.table(f"(g) drift and decay, N = {size.N:,}, float64", header, rows)


def cost_of_groups(size: Size) -> None:
    """(h) A step with inputs in d groups of equal variance over an isotropic step."""
    rows = []
    for K, steps in ((K, steps) for K, steps in size.gram_steps.items() if K <= GROUPED):
        isotropic = {"isotropic": simulation(gram_engine, cell(size.N, K), steps)}
        grouped = {
            f"{d}": simulation(grouped_gram_engine, cell(size.N, K, inputs=Spectrum(tuple(range(1, d + 1)))), steps)
            for d in size.groups
        }
        took = timing.measure(isotropic | grouped, size.repeats, timing.clock())
        first, *others = (1e9 * took[name].seconds / steps for name in (*isotropic, *grouped))
        first = first / gram_engine.batch(K)
        rows.append([K, first, *(each / grouped_gram_engine.batch(K) / first for each in others)])
    header = ["K", "isotropic, ns/step-seed", *(f"d = {d}, over it" for d in size.groups)]
    timing.table(f"(h) groups of equal variance, N = {size.N:,}, float64", header, rows)


def over_the_first(calls: dict[str, Call], size: Size, steps: int) -> list[object]:
    """Nanoseconds per step of the first call, and the ratios of the others to it."""
    took = timing.measure(calls, size.repeats, timing.clock())
    first, *others = (took[name].seconds for name in calls)
    return [1e9 * first / steps, *(other / first for other in others)]


def single_over_sklearn(size: Size) -> None:
    """(e) One student compared with scikit-learn's partial_fit."""
    N, steps = size.small_N, size.small_steps
    check_baselines(N, min(steps, 200))
    calls = {
        "scikit-learn": partial(run_sklearn, N, steps),
        "NumPy": partial(run_numpy, N, 1, steps),
        "direct, float64": simulation(weight_vector_engine, cell(N, 1), steps, "float64"),
        "direct, float32": simulation(weight_vector_engine, cell(N, 1), steps, "float32"),
        "Gram, float64 (same distribution)": simulation(gram_engine, cell(N, 1), steps),
    }
    simulated = {name: steps for name in calls}
    simulated["direct, float64"] = simulated["direct, float32"] = steps * weight_vector_engine.batch(1)
    simulated["Gram, float64 (same distribution)"] = steps * gram_engine.batch(1)
    took = timing.measure(calls, size.repeats, timing.clock())
    cost = {name: 1e6 * took[name].seconds / simulated[name] for name in calls}
    rows = [[name, cost[name], cost["scikit-learn"] / cost[name]] for name in calls]
    timing.table(f"(e) one student, N = {N:,}", ["", "us/step-seed", "over scikit-learn"], rows)


def fraction_of_limit(size: Size) -> None:
    """(f) Normals per second used by the engines, compared with `statmech.numerics.random_numbers` alone."""
    steps = {"Gram": size.gram_steps[3], "direct, float32": size.vectors_steps}
    calls: dict[object, Call] = {
        (name, n): partial(draw, source, jax.random.key(0), n) for name, source in SOURCES.items() for n in size.normals
    }
    calls["Gram"] = simulation(gram_engine, cell(size.N, 3), steps["Gram"])
    calls["direct, float32"] = simulation(weight_vector_engine, cell(size.N, 3), steps["direct, float32"], "float32")
    took = timing.measure(calls, size.repeats, timing.clock())
    best = {name: max((n * DRAWS / took[name, n].seconds, n) for n in size.normals) for name in SOURCES}
    limit = best["statmech.numerics.random_numbers.draw_normals"][0]
    # a step's coordinates on the K + 1 basis vectors and the axes added by its block, and one for its chi
    needed = {"Gram": 3 + 1 + (gram_engine.choose_steps_per_block(3) - 1) / 2 + 1, "direct, float32": size.N}
    seeds = {"Gram": gram_engine.batch(3), "direct, float32": weight_vector_engine.batch(3)}
    rows = []
    for name, (rate, count) in best.items():
        rows.append([f"{name}, best at {count:,} per call", rate / 1e6, f"{100 * rate / limit:.0f} %"])
    for name, count in needed.items():
        rate = count * steps[name] * seeds[name] / took[name].seconds
        rows.append([f"{name}, K = 3", rate / 1e6, f"{100 * rate / limit:.0f} %"])
    timing.table(f"(f) float32 normals per second, N = {size.N:,}", ["", "millions/s", "of the limit"], rows)


SECTIONS = {
    "gram": gram_over_numpy,
    "dimension": gram_by_dimension,
    "seeds": gram_by_seeds,
    "vectors": vectors_over_numpy,
    "large": vectors_by_dimension,
    "sklearn": single_over_sklearn,
    "limit": fraction_of_limit,
    "changes": cost_of_changes,
    "groups": cost_of_groups,
}
Source = Callable[[jax.Array, tuple[int, ...]], jax.Array]
SOURCES: dict[str, Source] = {
    "statmech.numerics.random_numbers.draw_normals": random_numbers.draw_normals,
    "jax.random.normal": jax.random.normal,
}
DRAWS = 20  # of normals in one timed call: the clock of CPU time may tick in milliseconds


def cell(N: int, K: int, **given: Any) -> OnlineCell:
    """The perceptron rule at learning rate 1, random students."""
    return next(Scenario(rule="perceptron", K=K, N=N, t=[1.0], **given).cells())


def simulation(engine: ModuleType, cell: OnlineCell, steps: int, dtype: str = "float64", batches: int = 1) -> Call:
    """A call that simulates batches with an engine, recorded once, at the end."""

    task = perceptrons.make_perceptron_task(cell, dtype)

    def run() -> None:
        with jax.enable_x64(True):
            for batch in range(batches):
                jax.block_until_ready(engine.run(task, make_key_data(batch), np.array([steps])))

    return run


def run_numpy(N: int, K: int, steps: int) -> None:
    rng = np.random.default_rng(0)
    naive.numpy_loop(rng, *initial(N, K), [steps / N])


def run_sklearn(N: int, steps: int) -> None:
    teacher, students = initial(N, 1)
    naive.sklearn_loop(np.random.default_rng(0), teacher, students[0], [steps / N])


@cache
def initial(N: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Initial weights, drawn in the first call, which no median includes: they cost as much as K + 1 steps."""
    return naive.begin(np.random.default_rng(1), N, K)


def check_baselines(N: int, steps: int) -> None:
    """The two baselines are the same model: the same examples give the same R."""
    teacher, students = initial(N, 1)
    times = [steps / 2 / N, steps / N]
    R, _, _ = naive.numpy_loop(np.random.default_rng(2), teacher, students, times)
    same = naive.sklearn_loop(np.random.default_rng(2), teacher, students[0], times)
    np.testing.assert_allclose(R[:, 0], same, atol=1e-10)


def draw(source: Source, key: jax.Array, count: int) -> None:
    for _ in range(DRAWS):
        jax.block_until_ready(drawn(source, key, count))


@partial(jax.jit, static_argnums=(0, 2))
def drawn(source: Source, key: jax.Array, count: int) -> jax.Array:
    return source(key, (count,)).astype(jnp.float32)


def process_on(cores: list[int]) -> ProcessPoolExecutor:
    """A process that may use these cores alone; newly started, so that JAX counts them itself."""
    return ProcessPoolExecutor(1, get_context("spawn"), os.sched_setaffinity, (0, cores))


def result_of(pool: ProcessPoolExecutor, work: Callable[[], None]) -> None:
    pool.submit(work).result()


def run_gram(N: int, seeds: int, t: float) -> None:
    simulate.run(Scenario(rule="perceptron", K=3, N=N, t=[t], seeds=seeds))


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--tiny", action="store_true", help="toy size")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; sections: {', '.join(SECTIONS)}")
    timing.pin()
    print(timing.machine())
    for name in arguments.sections or SECTIONS:
        SECTIONS[name](TINY if arguments.tiny else FULL)
    print(f"\nPeak memory of this process: {timing.peak_memory():.0f} MiB")


if __name__ == "__main__":
    main()
