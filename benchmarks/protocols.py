"""Several tasks and best learning rates, compared with what one would write with NumPy and SciPy.

    python benchmarks/protocols.py           # a minute; pins itself to one core
    python benchmarks/protocols.py --tiny    # the same at toy size: tests that it runs, not how fast

(a) A step of a network of two erf units that learns two tasks, each with a second layer of its own: the chain on the
Gram matrix, and a loop over weight vectors. (b) The gradient of a perceptron's final error with respect to its learning
rate on 100 segments: by one pass back through the integrator, and by differences of SciPy's LSODA on the hard-coded
equations, segment by segment. Both are called alternately; compiling is a column of its own.
"""

from __future__ import annotations

import os
from functools import partial

import jax
import numpy as np
import protocol_peers
import timing
from scipy.integrate import solve_ivp
from scipy.special import erf

from simulate.online import gram_engine, networks
from statmech import NetworkTasks, Scenario
from statmech.numerics.random_numbers import make_key_data
from statmech.parameters.schedules_and_controls import TimeSegments
from theory.control.control_gradients import compute_cost_and_gradient
from theory.control.controlled_equations import make_control_problem

LAST, R, STEP = 20.0, 0.1, 1e-4  # of (b): the last time, the start, and the relative step of differences


def loop(N: int, steps: int) -> None:
    """Two tasks in turn on weight vectors, one example after the other."""
    rng = np.random.default_rng(0)
    teachers, J = rng.standard_normal((2, N)), 0.5 * rng.standard_normal((2, N))
    V, eta = np.full((2, 2), 0.5), 1.0
    for step in range(steps):
        task, x = int(2 * step >= steps), rng.standard_normal(N) / np.sqrt(N)
        h = J @ x
        g = erf(h / np.sqrt(2))
        error = erf(teachers[task] @ x / np.sqrt(2)) - V[task] @ g
        J += np.outer(eta * error * V[task] * np.sqrt(2 / np.pi) * np.exp(-(h**2) / 2), x)
        V[task] += eta / N * error * g


def steps_of_two_tasks(N: int, steps: int, naive: int, repeats: int) -> None:
    """(a) Nanoseconds of a step and seed."""
    given = {"tasks": 2, "overlap": 0.5, "M": 1, "K": 2, "N": N, "eta_v": 1, "switch": 0.5, "t": [1]}
    [cell] = NetworkTasks(network="erf", **given).cells()
    task = networks.make_multitask_network_task(cell, "float64")

    def chain() -> None:
        with jax.enable_x64(True):
            jax.block_until_ready(gram_engine.run(task, make_key_data(0), np.array([steps]))[:2])

    took = timing.measure({"chain": chain, "NumPy": partial(loop, N, naive)}, repeats, timing.clock())
    ours, theirs = (
        1e9 * took[name].seconds / count for name, count in (("chain", steps * gram_engine.batch(2)), ("NumPy", naive))
    )
    title = f"(a) a step of two erf units and two tasks, N = {N:,}"
    row = [ours, theirs, theirs / ours, took["chain"].compile]
    header = ["chain, ns", "NumPy, ns", "NumPy/chain", "compile, s"]
    if protocol_peers.TASKS in os.environ:
        published = 1e9 * protocol_peers.seconds_of_step(N, naive)
        row, header = [*row, published, published / ours], [*header, "teacher_student_dynamics, ns", "over the chain"]
    timing.table(title, header, [row])


def angle_after(eta: np.ndarray, edges: np.ndarray) -> float:
    """The angle of a perceptron after learning at these rates, one on each segment, by LSODA in (R, l)."""
    state = [R, 1.0]
    for rate, begin, end in zip(eta, edges[:-1], edges[1:], strict=True):

        def rates(_: float, state: np.ndarray, rate: float = rate) -> list[float]:
            R, length = state
            a, F, D = rate / length, np.arccos(R) / np.pi, 1 / np.sqrt(2 * np.pi)
            return [a * (1 - R * R) * D - a * a * R * F / 2, rate * (a * F / 2 - (1 - R) * D)]

        state = solve_ivp(rates, (begin, end), state, method="LSODA", rtol=1e-9, atol=1e-11).y[:, -1]
    return float(np.arccos(state[0]))


def gradient_by_differences(eta: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The gradient of log eps_g by one more solution a segment."""
    cost = np.log(angle_after(eta, edges))
    return np.array([(np.log(angle_after(eta + STEP * one, edges)) - cost) / STEP for one in np.eye(eta.size)])


def gradients(segments: int, repeats: int) -> None:
    """(b) Milliseconds of a gradient."""
    edges, eta = np.linspace(0.0, LAST, segments + 1), np.linspace(4.0, 0.7, segments)
    [cell] = Scenario(rule="perceptron", t=[LAST], start={"R": R, "length": 1.0}).cells()
    problem = make_control_problem(cell, TimeSegments(tuple(edges)))
    calls = {
        "one pass back": lambda: compute_cost_and_gradient(problem, eta),
        "differences": lambda: gradient_by_differences(eta, edges),
    }
    took = timing.measure(calls, repeats, timing.clock())
    ours, theirs = (1e3 * took[name].seconds for name in calls)
    error = np.linalg.norm(compute_cost_and_gradient(problem, eta)[1] - gradient_by_differences(eta, edges))
    row = [ours, theirs, theirs / ours, took["one pass back"].compile, error]
    header = ["one pass back, ms", "differences of LSODA, ms", "ratio", "compile, s", "norm of the difference"]
    timing.table(f"(b) a gradient with respect to {segments} segments", header, [row])


def main() -> None:
    tiny = timing.tiny(__doc__ or "")
    timing.pin()
    print(timing.machine())
    steps_of_two_tasks(*((200, 48, 10, 1) if tiny else (10_000, 4_992, 400, 5)))
    gradients(*((3, 1) if tiny else (100, 3)))
    protocol_peers.tables(tiny)


if __name__ == "__main__":
    main()
