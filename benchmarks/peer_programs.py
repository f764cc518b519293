"""Peers that are on no package index: what they are, how they are found, and the lines that run their side.

The Python lines leave their numbers in `theirs`. Lines and commands are written from the sources (November 2026). Of
those in `PEERS` only the lines of DMFT have been run, because the other peers were not installed.

Two published codes of protocols were run: TEACHER_STUDENT_DYNAMICS and OPTIMAL_LEARNING name the folders of
seblee97/teacher_student_dynamics, whose equations need g++ and Eigen (EIGEN names the folder of its headers), and of
francescomori/optimal_learning. PEER_PYTHON names a Python with torch, CasADi, matplotlib and tqdm, if this one has not.
It runs this file:

    python peer_programs.py two_tasks '{...}'    # with the folder of teacher_student_dynamics on PYTHONPATH
    python peer_programs.py best_rate '{...}'    # on dropout.ipynb of optimal_learning

The last line printed is the answer, in JSON. The runner of two tasks needs packages of its author that are on no index,
so its steps are written here around that network. The notebook's cells run unchanged, with other values between them:
all units are active, and the learning rate takes the place of the activation probability as the control.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Peer(NamedTuple):
    """What it is, and the module or the variable of the environment by which it is found."""

    what: str
    module: str = ""
    folder: str = ""

    @property
    def found(self) -> bool:
        return self.folder in os.environ if self.folder else find_spec(self.module) is not None

    def run(self, lines: str) -> object:
        """Execute Python lines and return `theirs`; of a command return nothing."""
        if self.folder:
            return _run_command(os.environ[self.folder], lines)
        names: dict[str, object] = {}
        exec(lines, names)
        return np.asarray(names["theirs"]) if "theirs" in names else None


def _run_command(folder: str, line: str) -> None:
    """Run a program in an empty folder, where it leaves its files."""
    name, *options = line.split()
    with tempfile.TemporaryDirectory() as empty:
        program = os.path.join(os.path.abspath(folder), name)
        subprocess.run([program, *options], cwd=empty, check=True, stdout=subprocess.DEVNULL)


PEERS = {
    "StatPhys-ML": Peer("replica and online theory with a PyTorch simulator; its folder installs by pip", "statphys"),
    "nn2pp": Peer("two-layer networks in C++, built by its Makefile in the folder NN2PP", folder="NN2PP"),
    "Tree-AMP": Peer(
        "message passing and state evolution on trees; as published for Python 3.8, so that a port is needed", "tramp"
    ),
    "DMFT": Peer(
        "dynamical mean-field theory of descent (SPOC-group/Rigorous-dynamical-mean-field-theory), on PYTHONPATH",
        "DMFT_iteration",
    ),
    "GCMProject": Peer("replica theory of ridge and logistic regression (lclarte's fork)", "GCMProject"),
}
PERCEPTRON = """from statphys.dataset import GaussianClassificationDataset
from statphys.loss import PerceptronLoss
from statphys.model import LinearClassifier
from statphys.simulation import OnlineSimulation, SimulationConfig
config = SimulationConfig.for_online(t_max=2.0, t_steps=2, n_seeds=1, lr=1.0, use_theory=False, verbose=False)
OnlineSimulation(config).run(GaussianClassificationDataset(d=1000), LinearClassifier, PerceptronLoss())"""
ONLINE = """import numpy as np
from statphys.theory.online import ODESolver
from statphys.theory.online.scenario.gaussian_linear_perceptron import GaussianLinearPerceptronEquations as Equations
equations = Equations(rho=1.0, lr=1.0)
solved = ODESolver(equations, ["m", "q"]).solve((0, 50), (0.0, 1.0), np.linspace(0, 50, 201)).order_params
theirs = [equations.generalization_error(y) for y in zip(solved["m"], solved["q"])]"""
REPLICA = """from statphys.theory.replica import SaddlePointSolver
from statphys.theory.replica.scenario.gaussian_linear_{name} import GaussianLinear{Name}Equations as Equations
equations = Equations(rho=1.0, reg_param=1.0)
solved = SaddlePointSolver(equations, ["m", "q"]).solve({alphas}).order_params
theirs = [equations.generalization_error(m, q) for m, q in zip(solved["m"], solved["q"])]"""
CURVE = """from tramp.experiments import run_state_evolution
from tramp.models import glm_state_evolution
models = [glm_state_evolution(alpha, prior_type="gaussian", output_type="sgn") for alpha in {alphas}]
theirs = [run_state_evolution(["x"], model, max_iter=200)[0]["v"] for model in models]"""
MESSAGES = """from tramp.experiments import BayesOptimalScenario
from tramp.models import glm_generative
model = glm_generative(N={N}, alpha=2, ensemble_type="gaussian", prior_type="gaussian", output_type="sgn")
BayesOptimalScenario(model).run_all("EP", max_iter=200)"""
COVARIATE = """import numpy as np
from GCMProject.state_evolution.algorithms.state_evolution import StateEvolution
from GCMProject.state_evolution.data_models.custom import Custom
from GCMProject.state_evolution.models.logistic_regression import LogisticRegression
cov = np.diag({omega})
ones = np.ones(len(cov))
data = Custom(teacher_teacher_cov=cov, student_student_cov=cov, teacher_student_cov=cov, teacher_weights=ones)
theirs = []
for alpha in {alphas}:
    model = LogisticRegression(sample_complexity=alpha, regularisation=0.1, data_model=data)
    state = StateEvolution(model=model, tolerance={tolerance})
    state.iterate()
    theirs.append(model.get_test_error(state.overlaps["self_overlap"][-1], state.overlaps["teacher_student"][-1]))"""
DESCENT = """import os
import tempfile
import numpy as np
import DMFT_iteration
import utils
class Alone:  # in place of MPI's communicator, of one process
    Get_rank, Get_size = lambda self: 0, lambda self: 1
    def Gather(self, sent, received, root):
        received[0] = sent
parameters = utils.init_parameters()
given = {{"m_0": 0.2, "alpha": 3, "b": 1, "lambd": 0.5, "dt": 0.1, "T": 50, "n_samples": 20_000, "damping": 0.7}}
for name, value in given.items():
    parameters[name] = float(value)
with tempfile.TemporaryDirectory() as empty:
    before = os.getcwd()
    os.chdir(empty)  # where it writes each iteration
    os.mkdir("data")
    DMFT_iteration.init(parameters)
    for iteration in range({iterations}):
        DMFT_iteration.iterate(Alone(), iteration, parameters)
    theirs = utils.load_data(parameters, {iterations})["m"]
    os.chdir(before)"""
NETWORK = "nn2pp.exe -N 784 -M 2 -K 2 --lr 0.5 --uniform 1 --steps 100 --quiet"
NETWORK_ODE = "scmpp_ode.exe -M 2 -K 2 --lr 0.5 --uniform 1 --dt 0.01 --steps 100 --quiet"
TASKS, RATES = "TEACHER_STUDENT_DYNAMICS", "OPTIMAL_LEARNING"
START = {"Q": [[0.25, 0.02], [0.02, 0.16]], "R": [[0.1, 0.02], [0.03, 0.05]], "v": [[0.5, 0.3], [0.4, 0.2]]}
TEACHER_OVERLAPS = [[1.0, 0.5], [0.5, 1.0]]
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
NEVER, TIME_UNIT = 10**9, 1_000  # steps, and the dimension by which their equations count time
EQUATION_SETTINGS: dict[str, dict[str, Any]] = {
    "int": {"input_dimension": TIME_UNIT, "ode_log_frequency": TIME_UNIT}
    | {"stdout_frequency": NEVER, "debug_frequency": NEVER, "student_hidden": 2, "teacher_hidden": 1},
    "bool": dict.fromkeys(("multi_head", "train_head_layer", "train_hidden_layer"), 1),
    "float": dict.fromkeys(("hidden_learning_rate", "head_learning_rate"), 1),
    "it_float": dict.fromkeys(("noise_stds", "input_noise_stds"), "0,0"),
    "it_int": {"freeze_units": "0,0"},
}
BETWEEN = {  # values that replace the notebook's after a cell
    3: "Q0, R0 = 0.25 * np.eye(K), np.array([[0.1], [0.05]])",
    4: "alphaF, N_control = {last}, {segments}",
    6: "eta, r = r, 1",
    7: "eta, r = 1, eta",
    12: "avg_r = 1.0",
    13: "lbw = O0 + [0.0, *[-inf] * len(O0)] * N_control + [1]; ubw = O0 + [5.0, *[inf] * len(O0)] * N_control + [1]",
}


def call_program(name: str, **given: Any) -> dict[str, Any]:
    """The answer of a program below, run by PEER_PYTHON."""
    command = [os.environ.get("PEER_PYTHON", sys.executable), __file__, name, json.dumps(given)]
    environment = {**os.environ, "PYTHONPATH": os.environ.get(TASKS, "")}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def step_two_tasks(dimension: int, steps: int) -> float:
    """CPU seconds of a step of two tasks with their network."""
    given = {"N": dimension, "t": [steps / dimension], "seeds": 1, "tests": 1}
    return float(call_program("two_tasks", **START, T=TEACHER_OVERLAPS, **given)["seconds"])


def simulate_two_tasks(dimension: int, times: list[float]) -> np.ndarray:
    """The errors (6, T, tasks) of six runs of their network."""
    given = {"N": dimension, "t": times, "seeds": 6, "tests": 10_000}
    return np.array(call_program("two_tasks", **START, T=TEACHER_OVERLAPS, **given)["errors"])


def find_best_rate(**given: Any) -> float:
    """CPU seconds of the search for the best learning rate in the notebook, or of one iteration's derivatives."""
    notebook = os.path.join(os.environ[RATES], "dropout", "dropout.ipynb")
    answer = call_program("best_rate", notebook=notebook, **given)
    print(f"optimal_learning: {answer}", file=sys.stderr)
    return float(answer["seconds"])


def compile_equations(folder: Path) -> None:
    """Compile their equations of two tasks into a folder."""
    source = Path(os.environ[TASKS], "teacher_student_dynamics/ode/c_ode/vanilla/runner.cpp")
    eigen = os.environ.get("EIGEN", "/usr/include/eigen3")
    subprocess.run(["g++", "-O3", "-std=c++17", "-I", eigen, source, "-o", folder / "runner"], **QUIET)


def integrate_two_tasks(folder: Path, timestep: float, last: int) -> np.ndarray:
    """The errors (T, tasks) at t = 0, 1, ... of their equations, from the files that their program reads and writes."""
    R, (first, second) = np.array(START["R"]), np.array(START["v"])
    start: dict[str, Any] = {"Q": START["Q"], "R": R[:, :1], "U": R[:, 1:], "T": 1, "S": 1}
    start |= {"V": TEACHER_OVERLAPS[0][1], "h1": first, "h2": second}
    for name, matrix in {**start, "th1": 1, "th2": 1}.items():
        np.savetxt(folder / name, np.array(matrix).reshape(len(np.atleast_1d(matrix)), -1), delimiter=",")
    (folder / "start.txt").write_text("".join(f"{name},{folder / name}\n" for name in [*start, "th1", "th2"]))
    paths = {"order_parameter_paths": "start.txt", "stdout_path": "log.txt", "output_path": ""}
    steps = {"num_steps": (last + 1) * TIME_UNIT, "switch_step": last * TIME_UNIT // 2}
    own: dict[str, dict[str, Any]] = {"int": steps, "float": {"timestep": timestep}}
    files = ("str", {name: folder / path for name, path in paths.items()})
    lines = [
        f"{kind};{name};{value}\n"
        for kind, values in [*EQUATION_SETTINGS.items(), *own.items(), files]
        for name, value in values.items()
    ]
    (folder / "config.txt").write_text("".join(lines))
    subprocess.run([folder / "runner", folder / "config.txt"], **QUIET)
    return np.transpose([np.loadtxt(folder / f"log_csvs/generalisation_error_{task}.csv") for task in (0, 1)])


def two_tasks(given: dict[str, Any]) -> dict[str, Any]:
    """The errors (seeds, T, tasks) at recorded times, and seconds of a step."""
    import torch
    from teacher_student_dynamics.networks.multi_head_network import MultiHeadNetwork

    def network(J: np.ndarray, heads: list[list[float]], **more: bool) -> Any:
        made = MultiHeadNetwork(N, len(J), 1, len(heads), False, "scaled_erf", 1.0, **more)
        for layer, weights in zip([*made.layers, *made.heads], [J, *([head] for head in heads)], strict=True):
            layer.weight.data = torch.tensor(np.array(weights), dtype=torch.float32)
        return made

    torch.set_num_threads(1)
    inputs, mse, N = torch.distributions.Normal(0, 1), torch.nn.MSELoss(), given["N"]
    found, seconds, at = [], 0.0, [round(N * t) for t in given["t"]]
    gram = np.block([[np.array(given["T"]), np.transpose(given["R"])], [np.array(given["R"]), np.array(given["Q"])]])
    for seed in range(given["seeds"]):
        torch.manual_seed(seed)
        basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((N, len(gram))))
        weights = np.linalg.cholesky(gram) @ basis.T * np.sqrt(N)
        teachers = [network(weights[m : m + 1], [[1.0]], freeze=True) for m in (0, 1)]
        student = network(weights[2:], given["v"], train_hidden_layer=True, train_head_layer=True)
        hidden, heads = student.get_trainable_parameters()
        optimiser = torch.optim.SGD(hidden + [{**head, "lr": 1 / N} for head in heads], lr=1.0)
        tests, errors = inputs.sample((given["tests"], N)), []
        labels = [teacher.forward(tests) for teacher in teachers]
        for step in range(at[-1] + 1):
            if step in at:
                with torch.no_grad():
                    outputs = student.forward_all(tests)
                    errors.append([0.5 * mse(*pair).item() for pair in zip(outputs, labels, strict=True)])
            begin, task = time.process_time(), int(2 * step >= at[-1])
            if step in (0, at[-1] // 2):
                student.signal_boundary(new_head=task)
            x = inputs.sample((1, N))
            loss = 0.5 * mse(student.forward(x), teachers[task].forward(x))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            seconds += time.process_time() - begin
        found.append(errors)
    return {"errors": found, "seconds": seconds / (at[-1] + 1) / given["seeds"]}


def best_rate(given: dict[str, Any]) -> dict[str, Any]:
    """The optimum and its number of iterations, or only one iteration's derivatives, with seconds before and for it."""
    os.environ["MPLBACKEND"] = "agg"
    with open(given["notebook"]) as file:
        cells = ["".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for at, cell in enumerate(cells[:15]):
        exec(cell, names)
        exec(BETWEEN.get(at, "").format(**given), names)
    before, solver = time.process_time(), names["solver"]
    if given["whole"]:
        exec(cells[15], names)
        ended, error = solver.stats(), 2 * float(names["sol"]["f"])  # theirs is half of ours
        work = f"{ended['iter_count']} iterations: {ended['return_status']}"
    else:
        solver.get_function("nlp_jac_g")(names["w0"], [])
        solver.get_function("nlp_hess_l")(names["w0"], [], 1, np.ones(len(names["lbg"])))
        work, error = "derivatives of one iteration", np.nan
    return {"work": work, "error": error, "set_up": before, "seconds": time.process_time() - before}


if __name__ == "__main__":
    print(json.dumps({"two_tasks": two_tasks, "best_rate": best_rate}[sys.argv[1]](json.loads(sys.argv[2]))))
