r"""A kind of scenario outside the package: a linear perceptron that learns online by gradient descent.

The teacher's output is :math:`y = \mathbf B\cdot\mathbf x + \sigma\xi` with :math:`|\mathbf B|^2 = N`,
:math:`\mathbf x\sim N(0, I/N)` and noise :math:`\xi\sim N(0, 1)`. Each example is used once, for one step

.. math:: \mathbf J \leftarrow \mathbf J + \eta\,(y - \mathbf J\cdot\mathbf x)\,\mathbf x, \qquad \mathbf J(0) = 0.

Averaging over one example gives, for :math:`\rho = \mathbf B\cdot\mathbf J/N` and
:math:`E = |\mathbf B-\mathbf J|^2/N`,

.. math:: \dot\rho = \eta\,(1-\rho), \qquad \dot E = -\eta(2-\eta)\,E + \eta^2\sigma^2

at :math:`t = \text{steps}/N`. Their solutions are exponentials. The generalization error is
:math:`\epsilon_g = E/2`: half the mean squared difference of the two outputs without the noise.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from figures.explorer.pages import PAGES, Page
from statmech.keys import (
    PARAMETERS,
    SCENARIOS,
    AbstractScenario,
    DimensionAxis,
    NonnegativeAxis,
    Times,
    Variable,
    config_key,
    one_of,
    parameter,
)


@dataclass(frozen=True)
class Gradient:
    """Stochastic gradient descent on the squared error of the newest example."""

    equation: ClassVar = r"\mathbf J \leftarrow \mathbf J + \eta\,(y - \mathbf J\cdot\mathbf x)\,\mathbf x"
    eta: float = parameter(0.5, "learning rate", symbol=r"$\eta$", above=0, below=2)


ALGORITHMS = {"gradient": Gradient}


class LinearPerceptron(AbstractScenario):
    """Linear students that learn online from a linear teacher."""

    CHOICE: ClassVar = "algorithm"
    KINDS: ClassVar = ALGORITHMS
    AXES: ClassVar = ("algorithm", "N", PARAMETERS, "noise")
    TITLE: ClassVar = "linear perceptron"
    USUAL_X_KEY: ClassVar = "t"

    algorithm: one_of(ALGORITHMS, "an algorithm") = config_key(description="learning algorithm")
    N: DimensionAxis = config_key(100, description="input dimension", symbol="$N$")
    noise: NonnegativeAxis = config_key(
        0.0, description="standard deviation of the noise, on the teacher's output", symbol=r"$\sigma$"
    )
    t: Times = config_key(
        description="times (steps / N) at which order parameters are recorded", symbol="$t$", unit="steps / N"
    )

    @property
    def variables(self):
        return {
            "rho": Variable(("t",), "overlap B.J / N of teacher and student", r"$\rho$"),
            "eps_g": Variable(("t",), "generalization error", r"$\epsilon_g$"),
        }

    @property
    def recorded_coordinates(self):
        return {"t": np.asarray(self.t)}

    def simulate(self, cell, seed):
        """One run at finite N: the variables at the recorded times."""
        rng, N = self.make_generator(cell, seed), cell.N
        B = rng.standard_normal(N)
        B *= np.sqrt(N) / np.linalg.norm(B)
        J, done, rho, eps_g = np.zeros(N), 0, [], []
        for steps in np.rint(np.asarray(self.t) * N).astype(int):
            for x in rng.standard_normal((steps - done, N)) / np.sqrt(N):
                y = B @ x + cell.noise * rng.standard_normal()
                J += cell.algorithm.eta * (y - J @ x) * x
            done = steps
            rho.append(B @ J / N)
            eps_g.append((B - J) @ (B - J) / N / 2)
        return {"rho": rho, "eps_g": eps_g}

    def solve(self, cell):
        """The theory for N -> infinity at the recorded times."""
        eta, t = cell.algorithm.eta, np.asarray(self.t)
        left = eta * cell.noise**2 / (2 - eta)
        return {
            "rho": 1 - np.exp(-eta * t),
            "eps_g": (left + (1 - left) * np.exp(-eta * (2 - eta) * t)) / 2,
        }


SCENARIOS[LinearPerceptron.CHOICE] = LinearPerceptron
PAGES["algorithm"] = Page(start={"algorithm": ["gradient"], "N": 100, "t": 10, "seeds": 8})
