"""Peers that are on no package index: what they are, how they are found, and the lines that run their side.

The Python lines leave their numbers in `theirs`. Lines and commands are written from the peers' sources (November 2026)
but have not been run with this script, but those of DMFT: the other peers were not installed where it was written.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from importlib.util import find_spec
from typing import NamedTuple

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
