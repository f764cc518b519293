"""Published codes of protocols beside ours: CPU time of the same work, and whether the numbers agree.

TEACHER_STUDENT_DYNAMICS and OPTIMAL_LEARNING name the folders of seblee97/teacher_student_dynamics, whose equations
need g++ and Eigen (EIGEN names the folder of its headers), and of francescomori/optimal_learning; PEER_PYTHON names a
Python with what `protocol_programs.py` needs, if this one has not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timing

from statmech import Network, NetworkTasks
from statmech.parameters.schedules_and_controls import TimeSegments
from theory.control.control_gradients import ControlBounds, compute_cost_and_gradient, minimise_control_cost
from theory.control.controlled_equations import make_control_problem
from theory.networks import several_tasks

TASKS, RATES = "TEACHER_STUDENT_DYNAMICS", "OPTIMAL_LEARNING"
START = {"Q": [[0.25, 0.02], [0.02, 0.16]], "R": [[0.1, 0.02], [0.03, 0.05]], "v": [[0.5, 0.3], [0.4, 0.2]]}
T = [[1.0, 0.5], [0.5, 1.0]]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
NEVER, N = 10**9, 1_000  # steps, and the dimension by which their equations count time
GIVEN = {  # of their equations
    "int": {"input_dimension": N, "ode_log_frequency": N, "stdout_frequency": NEVER, "debug_frequency": NEVER}
    | {"student_hidden": 2, "teacher_hidden": 1},
    "bool": dict.fromkeys(("multi_head", "train_head_layer", "train_hidden_layer"), 1),
    "float": dict.fromkeys(("hidden_learning_rate", "head_learning_rate"), 1),
    "it_float": dict.fromkeys(("noise_stds", "input_noise_stds"), "0,0"),
    "it_int": {"freeze_units": "0,0"},
}


def called(name: str, **given: Any) -> dict[str, Any]:
    """The answer of a function of `protocol_programs.py`."""
    command = [os.environ.get("PEER_PYTHON", sys.executable), "protocol_programs.py", name, json.dumps(given)]
    env = {**os.environ, "PYTHONPATH": os.environ.get(TASKS, "")}
    done = subprocess.run(command, cwd=Path(__file__).parent, env=env, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def seconds_of_step(dimension: int, steps: int) -> float:
    """CPU seconds of a step of two tasks with their network."""
    return float(called("two_tasks", **START, T=T, N=dimension, t=[steps / dimension], seeds=1, tests=1)["seconds"])


def solved(t: list[float]) -> np.ndarray:
    """The errors (T, tasks) of our equations."""
    given = {"network": "erf", "tasks": 2, "overlap": T[0][1], "M": 1, "K": 2, "eta_v": 1, "switch": t[-1] / 2}
    [cell] = NetworkTasks(**given, start=START, t=t).cells()
    return several_tasks.compute_task_errors(cell, several_tasks.solve_cells([cell], t)[0])


def euler(folder: Path, timestep: float, last: int) -> np.ndarray:
    """The errors (T, tasks) at t = 0, 1, ... of their equations, from the files that their program reads and writes."""
    R, (first, second) = np.array(START["R"]), np.array(START["v"])
    start = {"Q": START["Q"], "R": R[:, :1], "U": R[:, 1:], "T": 1, "S": 1, "V": T[0][1], "h1": first, "h2": second}
    for name, matrix in {**start, "th1": 1, "th2": 1}.items():
        np.savetxt(folder / name, np.array(matrix).reshape(len(np.atleast_1d(matrix)), -1), delimiter=",")
    (folder / "start.txt").write_text("".join(f"{name},{folder / name}\n" for name in [*start, "th1", "th2"]))
    paths = {"order_parameter_paths": "start.txt", "stdout_path": "log.txt", "output_path": ""}
    own = {"int": {"num_steps": (last + 1) * N, "switch_step": last * N // 2}, "float": {"timestep": timestep}}
    values = [*GIVEN.items(), *own.items(), ("str", {name: folder / path for name, path in paths.items()})]
    lines = [f"{kind};{name};{value}\n" for kind, some in values for name, value in some.items()]
    (folder / "config.txt").write_text("".join(lines))
    subprocess.run([folder / "runner", folder / "config.txt"], **QUIET)
    return np.transpose([np.loadtxt(folder / f"log_csvs/generalisation_error_{task}.csv") for task in (0, 1)])


def two_tasks(tiny: bool) -> None:
    """Equations of two tasks, and errors simulated with their network."""
    last, timesteps = (4, [0.1]) if tiny else (100, [1e-2, 1e-3])
    source = Path(os.environ[TASKS], "teacher_student_dynamics/ode/c_ode/vanilla/runner.cpp")
    with tempfile.TemporaryDirectory() as name:
        folder, t, rows = Path(name), [float(t) for t in range(last + 1)], []
        eigen = os.environ.get("EIGEN", "/usr/include/eigen3")
        subprocess.run(["g++", "-O3", "-std=c++17", "-I", eigen, source, "-o", folder / "runner"], **QUIET)
        calls = {step: partial(euler, folder, step, last) for step in timesteps}
        took = timing.measure({0.0: partial(solved, t), **calls}, 1 if tiny else 5, timing.cpu_seconds)
        for step, call in calls.items():
            theirs, ours = 1e3 * took[step].seconds, 1e3 * took[0.0].seconds
            rows.append([step, theirs, ours, theirs / ours, took[0.0].compile, np.max(np.abs(call() - solved(t)))])
    header = ["timestep", "teacher_student_dynamics, ms", "ours, ms", "ratio", "ours, compile, s", "largest difference"]
    timing.table(f"Equations of two tasks to t = {last}", header, rows)
    t = [0.0, 1.0, 2.0] if tiny else [0.0, 2.0, 5.0, 10.0, 11.0, 12.0, 15.0, 20.0]
    found = np.array(called("two_tasks", **START, T=T, N=100 if tiny else N, t=t, seeds=6, tests=10_000)["errors"])
    z = (np.mean(found, 0) - solved(t)) / (np.std(found, 0, ddof=1) / np.sqrt(len(found)))
    timing.table("Errors of 6 seeds with their network", ["numbers", "largest z"], [[z.size, float(np.max(np.abs(z)))]])


def best_rates(tiny: bool) -> None:
    """The best learning rate of the notebook's two units, from a start that tells them apart."""
    last, rows = 0.5 if tiny else 5.0, []
    [cell] = Network(network="erf", M=1, K=2, noise=0.2, t=[last], start={"Q": 0.25, "R": [[0.1], [0.05]]}).cells()
    notebook = os.path.join(os.environ[RATES], "dropout", "dropout.ipynb")
    for segments, whole in ((2, True), (3, False)) if tiny else ((10, True), (100, False)):
        problem, one = (
            make_control_problem(cell, TimeSegments(tuple(np.linspace(0, last, segments + 1)))),
            np.ones(segments),
        )
        search = partial(minimise_control_cost, problem, ControlBounds(0 * one, 5 * one), one[:1])
        calls = {"first": partial(compute_cost_and_gradient, problem, one), "search": search}
        took = timing.measure(calls, 1 if tiny else 3, timing.clock())
        theirs = called("best_rate", notebook=notebook, last=last, segments=segments, whole=whole)
        seconds = [theirs["set_up"], theirs["seconds"], took["search"].seconds]
        ratio, errors = seconds[1] / seconds[2], (theirs["error"], np.exp(search().cost))
        rows.append([segments, theirs["work"], *seconds, ratio, took["first"].compile, *map("{:.8f}".format, errors)])
    header = ["segments", "optimal_learning", "set-up, s", "CPU s", "our 5 searches, s", "ratio", "compile, s"]
    timing.table("Best learning rate of two units", [*header, "its error", "ours"], rows)


def tables(tiny: bool) -> None:
    """The tables of the peers that are found."""
    for name, print_tables in ((TASKS, two_tasks), (RATES, best_rates)):
        print_tables(tiny) if name in os.environ else print(f"\n{name} names no folder, so that its peer is not run.")
