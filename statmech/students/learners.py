"""Learners of stored examples: labels, parameters, and the theoretical curves to compare with.

**To add a learner** write one class here and one line in `LEARNERS`, and one file of its name in `simulate/learners/`
with `learn`. Config keys, datasets, tables and figures follow. The overlay also follows if the learner converges to a
curve of `theory.learning_curves`. A learner in a file of the user has a method `learn(batch, task)` instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from statmech.parameters.parameter_fields import parameter

STOP_RULE_MEANINGS = {
    "epochs": "all epochs are done",
    "stability-patience": "the smallest stability has not increased for P updates",
    "field-patience": "the smallest field w.xi S has been below its maximum for P updates",
}
STOP_REASONS = ("epochs", "stability-patience", "field-patience", "gap", "no-errors", "exact", "sampled", "no-solution")
GIBBS_SWEEPS_DESCRIPTION = "sweeps of the Markov chain through the version space"
MAX_GIBBS_SWEEPS, MAX_BAYES_VOTES = 10**9, 10**4  # larger values are typos: the excess error of n votes decays as 1/n
MIN_ADATRON_STEP = 1e-100  # the square must have full precision


@dataclass(frozen=True)
class Learner:
    """An algorithm that computes a student vector from P examples. Subclasses define `label` and `limit`."""

    label: ClassVar[str]  # shown in tables and legends
    cites: ClassVar[tuple[str, ...]] = ()  # bibliography keys of the papers
    equation: ClassVar[str] = ""  # LaTeX
    limit: ClassVar[str | None]  # name of a curve in `theory.learning_curves`, or None
    separable: ClassVar[bool] = False  # True: requires linearly separable examples

    @property
    def random_seed_parameters(self) -> dict[str, Any]:
        """The parameters that determine the random numbers of a run: all parameters."""
        return dict(vars(self))


@dataclass(frozen=True)
class HebbLearner(Learner):
    r"""The sum of all examples, :math:`\mathbf w = \frac1N\sum_\mu S^\mu\xi^\mu`."""

    label, limit = "Hebb", "hebb"
    equation = r"\mathbf w = \frac1N\sum_\mu S^\mu\xi^\mu"


@dataclass(frozen=True)
class RosenblattLearner(Learner):
    """Rosenblatt's perceptron: adds misclassified examples in turn until all examples are classified correctly."""

    label, limit = "perceptron", None
    cites = ("rosenblatt1958", "novikoff1962")
    equation = (
        r"\mathbf w \leftarrow \mathbf w + \tfrac1N S^\mu\xi^\mu \;\text{ where }\; S^\mu\,\mathbf w\cdot\xi^\mu \le 0"
    )


@dataclass(frozen=True)
class MinOverLearner(Learner):
    """MinOver (Krauth & Mezard 1987): adds the least stable example until the `stop` rule is satisfied."""

    label, limit = "MinOver", "max_stability"
    cites = ("krauth1987",)
    equation = (
        r"\mathbf w \leftarrow \mathbf w + \tfrac1N S^\mu\xi^\mu, \quad \mu = \arg\min_\nu S^\nu\,\mathbf w\cdot\xi^\nu"
    )
    within: float = parameter(  # not named `gap`, which is a stored variable
        0.01,
        "MinOver has converged when its stability is certified to be within this fraction of the largest",
        symbol=r"$\delta_\kappa$",
        above=0,
        below=1,
    )
    stop: str = parameter(
        "epochs", "when MinOver stops before its last epoch", choices=STOP_RULE_MEANINGS, noun="a stop rule"
    )

    @property
    def random_seed_parameters(self) -> dict[str, Any]:
        """All parameters except the stop rule, which does not affect the random numbers of a run."""
        return {name: value for name, value in vars(self).items() if name != "stop"}


@dataclass(frozen=True)
class AdaTronLearner(Learner):
    """Batch AdaTron (Anlauf & Biehl 1989): sets each embedding strength, kept at 0 or more, to give field 1."""

    label, limit = "AdaTron", "max_stability"
    cites = ("anlauf1989",)
    equation = (
        r"x^\mu \leftarrow \max\!\big(0,\; x^\mu + \omega\,(1 - S^\mu\,\mathbf w\cdot\xi^\mu)\,N/|\xi^\mu|^2\big)"
    )
    omega: float = parameter(
        1.0,
        "AdaTron's step, in units of the one that sets the field to 1",
        symbol=r"$\omega$",
        above=MIN_ADATRON_STEP,
        below=2,
    )
    tolerance: float = parameter(
        1e-6,
        "AdaTron stops when its stability is certified to be within this fraction of the largest",
        symbol=r"$\varepsilon$",
        above=0,
        below=1,
    )


@dataclass(frozen=True)
class PseudoInverseLearner(Learner):
    """The fixed point of Adaline: all fields equal to 1 if possible, otherwise a least-squares fit."""

    label, limit = "pseudo-inverse", "pseudo_inverse"
    equation = r"\mathbf w = \arg\min \sum_\mu (1 - S^\mu\,\mathbf w\cdot\xi^\mu)^2"


@dataclass(frozen=True)
class MaxStabilityLearner(Learner):
    """The perceptron of maximum stability, computed exactly."""

    label, limit, separable = "max. stability", "max_stability", True
    equation = r"\mathbf w = \arg\max\,\min_\mu S^\mu\,\mathbf w\cdot\xi^\mu/|\mathbf w|"


@dataclass(frozen=True)
class GibbsLearner(Learner):
    """A student drawn uniformly from the version space by a Markov chain."""

    label, limit, separable = "Gibbs", "gibbs", True
    cites = ("opper1991",)
    equation = r"\mathbf w \sim \text{uniform on } \{\mathbf w: S^\mu\,\mathbf w\cdot\xi^\mu > 0 \;\forall\mu\}"
    sweeps: int = parameter(4000, GIBBS_SWEEPS_DESCRIPTION, at_least=10, at_most=MAX_GIBBS_SWEEPS)


@dataclass(frozen=True)
class BayesLearner(GibbsLearner):
    """The majority vote of students drawn from the version space.

    R is the overlap of the centre of these students.
    """

    label, limit, separable = "Bayes", "bayes", True
    equation = r"\mathrm{sign}\,\langle \mathrm{sign}(\mathbf w\cdot\xi)\rangle, \quad \mathbf w \sim \text{Gibbs}"
    sweeps: int = parameter(20_000, GIBBS_SWEEPS_DESCRIPTION, at_least=10, at_most=MAX_GIBBS_SWEEPS)
    votes: int = parameter(
        201, "students of the version space that vote", symbol="$n$", at_least=1, at_most=MAX_BAYES_VOTES
    )


LEARNERS: dict[str, type[Learner]] = {
    "hebb": HebbLearner,
    "perceptron": RosenblattLearner,
    "minover": MinOverLearner,
    "adatron": AdaTronLearner,
    "pseudo_inverse": PseudoInverseLearner,
    "max_stability": MaxStabilityLearner,
    "gibbs": GibbsLearner,
    "bayes": BayesLearner,
}
