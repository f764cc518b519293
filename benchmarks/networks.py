"""Networks of two layers: the chain on the Gram matrix compared with a NumPy loop over weight vectors.

    python benchmarks/networks.py            # two minutes; pins itself to one core
    python benchmarks/networks.py --tiny     # the same at toy size: tests that it runs, not how fast
    python benchmarks/networks.py groups     # one table: numpy, parts or groups

The chain samples the distribution of the order parameters, without weights: its ratio to NumPy is one of algorithms.
The first table compares steps with those of NumPy and of three perceptrons; the second states what a step consists of:
random numbers alone, units whose g costs nothing, the error function alone; the third, how long a step takes with
inputs in d groups of equal variance, over a step with isotropic ones. All calls run alternately.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
import timing
from jax.scipy.special import erf as erf_of_jax
from scipy.special import erf

from simulate.online import gram_engine, grouped_gram_engine, networks, perceptrons, weight_vector_engine
from simulate.online.learning_steps import EngineTask
from statmech import Network, Scenario
from statmech.numerics.gaussian import scaled_erf_and_derivative
from statmech.numerics.random_numbers import draw_normals, make_key_data


class Size(NamedTuple):
    """How much work: steps are those of one seed in one call."""

    N: int
    units: list[int]
    steps: int
    vectors_steps: int
    naive_steps: int
    draws: int
    groups: list[int]
    kinds: int  # of networks with inputs in groups
    repeats: int


FULL = Size(
    N=10_000,
    units=[2, 4, 8],
    steps=4_992,
    vectors_steps=400,
    naive_steps=200,
    draws=4_096,
    groups=[1, 2, 5, 10],
    kinds=3,
    repeats=7,
)
TINY = Size(N=200, units=[2], steps=48, vectors_steps=16, naive_steps=10, draws=16, groups=[2], kinds=1, repeats=1)


def task(N: int, units: int, dtype: str = "float64", network: str = "erf", **given: object) -> EngineTask:
    """As many students as teacher units, drawn, at a rate at which they learn."""
    given = {"network": network, "M": units, "K": units, "N": N, "eta": 1 / units, "t": [1], **given}
    return networks.make_network_task(next(Network(**given).cells()), dtype)


def three_perceptrons(N: int) -> EngineTask:
    """The perceptron rule."""
    return perceptrons.make_perceptron_task(next(Scenario(rule="perceptron", K=3, N=N, t=[1]).cells()), "float64")


def simulation(engine: object, task: EngineTask, steps: int) -> timing.Call:
    """A call that simulates a batch, recorded once, at the end."""

    def run() -> None:
        with jax.enable_x64(True):
            jax.block_until_ready(engine.run(task, make_key_data(0), np.array([steps]))[:2])

    return run


def loop(N: int, units: int, steps: int) -> None:
    """What one would write with NumPy: one example after the other, on weight vectors."""
    rng = np.random.default_rng(0)
    B, J = rng.standard_normal((2, units, N))
    v, w, eta = np.ones(units), np.ones(units), 1 / units
    for _ in range(steps):
        x = rng.standard_normal(N) / np.sqrt(N)
        h = J @ x
        error = w @ erf((B @ x) / np.sqrt(2)) - v @ erf(h / np.sqrt(2))
        J += np.outer(eta * error * v * np.sqrt(2 / np.pi) * np.exp(-(h**2) / 2), x)


def chain_over_numpy(size: Size) -> None:
    """(a) Nanoseconds of a step and seed, over NumPy's, and over those of three perceptrons."""
    rows = []
    for units in size.units:
        made = {dtype: task(size.N, units, dtype) for dtype in ("float64", "float32")}
        calls = {dtype: simulation(gram_engine, made[dtype], size.steps) for dtype in made}
        calls["perceptrons"] = simulation(gram_engine, three_perceptrons(size.N), size.steps)
        calls["direct"] = simulation(weight_vector_engine, made["float64"], size.vectors_steps)
        calls["NumPy"] = partial(loop, size.N, units, size.naive_steps)
        took = timing.measure(calls, size.repeats, timing.clock())
        seeds = dict.fromkeys(made, gram_engine.batch(units)) | {"perceptrons": gram_engine.batch(3)}
        cost = {name: 1e9 * took[name].seconds / (size.steps * number) for name, number in seeds.items()}
        cost["direct"] = 1e9 * took["direct"].seconds / (size.vectors_steps * weight_vector_engine.batch(units))
        cost["NumPy"] = 1e9 * took["NumPy"].seconds / size.naive_steps
        ours = cost["float64"]
        ratios = [cost["NumPy"] / ours, cost["NumPy"] / cost["float32"], ours / cost["perceptrons"]]
        rows.append([units, ours, cost["float32"], cost["direct"], cost["NumPy"], *ratios])
    header = ["K = M", "float64, ns", "float32, ns", "direct, ns", "NumPy, ns", "NumPy/float64", "NumPy/float32"]
    title = f"(a) a step of networks of erf units, N = {size.N:,}"
    timing.table(title, [*header, "float64/three perceptrons"], rows)


def parts_of_a_step(size: Size) -> None:
    """(b) What K = M = 2 takes without its parts, and these parts alone."""
    numbers = 3 * 4 + 3 + 3 + 3  # of a block of three steps: on four axes, on those that it adds, and for its chis
    calls = {
        "erf": simulation(gram_engine, task(size.N, 2), size.steps),
        "erf, both layers, noise, decay": simulation(
            gram_engine, task(size.N, 2, eta_v=0.5, noise=0.1, decay=0.1), size.steps
        ),
        "linear": simulation(gram_engine, task(size.N, 2, network="linear"), size.steps),
        "its 7 random numbers": partial(drawn, (numbers, 64), size.draws // 16),
        "4 erf, XLA's": partial(applied, erf_of_jax, size.draws),
        "4 erf and 4 derivatives, one exponential": partial(applied, scaled_erf_and_derivative, size.draws),
    }
    steps = dict.fromkeys(calls, size.steps * 64) | dict.fromkeys(list(calls)[4:], size.draws * 64)
    steps["its 7 random numbers"] = size.draws // 16 * 32 * 3 * 64
    took = timing.measure(calls, size.repeats, timing.clock())
    whole = took["erf"].seconds / steps["erf"]
    rows = [[name, 1e9 * took[name].seconds / steps[name], took[name].seconds / steps[name] / whole] for name in calls]
    timing.table("(b) parts of a step at K = M = 2, float64", ["", "ns", "of a step"], rows)


def cost_of_groups(size: Size) -> None:
    """(c) A step with inputs in d groups of equal variance over an isotropic step, per step and seed."""
    rows = []
    every = {"erf": {}, "relu": {"network": "relu"}, "erf, both layers, noise": {"eta_v": 0.5, "noise": 0.1}}
    others = [(name, size.units[0]) for name in [*every][1 : size.kinds]]
    for name, units in [("erf", units) for units in size.units[:2]] + others:
        laws = {d: {"inputs": {"spectrum": [*range(1, d + 1)]}} for d in size.groups}
        calls = {0: simulation(gram_engine, task(size.N, units, **every[name]), size.steps)}
        for d, law in laws.items():
            calls[d] = simulation(grouped_gram_engine, task(size.N, units, **every[name], **law), size.steps)
        took = timing.measure(calls, size.repeats, timing.clock())
        first = 1e9 * took[0].seconds / (size.steps * gram_engine.batch(units))
        each = [1e9 * took[d].seconds / (size.steps * grouped_gram_engine.batch(units)) for d in laws]
        rows.append([units, name, first, *(cost / first for cost in each)])
    header = ["K = M", "units", "isotropic, ns", *(f"d = {d}, over it" for d in size.groups)]
    timing.table(f"(c) groups of equal variance, N = {size.N:,}, float64", header, rows)


@partial(jax.jit, static_argnums=1)
def some_normals(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return draw_normals(key, shape)


def drawn(shape: tuple[int, ...], calls: int) -> None:
    """Normals of 32 blocks of lanes at a time, as the engine draws them."""
    for _ in range(calls):
        jax.block_until_ready(some_normals(jax.random.key(0), (32, *shape)))


def applied(function: object, count: int) -> None:
    """A function of 4 x 64 fields, again and again."""
    with jax.enable_x64(True):
        jax.block_until_ready(many_values(function, jax.numpy.linspace(-2.0, 2.0, 256).reshape(4, 64), count))


@partial(jax.jit, static_argnums=(0, 2))
def many_values(function: object, x: jax.Array, count: int) -> jax.Array:
    def one(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        return x + 1e-3 * sum(jax.tree.leaves(function(x))), None

    return jax.lax.scan(one, x, None, count)[0]


SECTIONS = {"numpy": chain_over_numpy, "parts": parts_of_a_step, "groups": cost_of_groups}


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


if __name__ == "__main__":
    main()
