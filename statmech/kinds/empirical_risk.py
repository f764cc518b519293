"""Scenarios of convex losses: loss, penalty, teacher and number of examples.

A config file with the key `loss` becomes a `Risk`, the input of `simulate.run` and `theory.solve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, StrictBool

from statmech.convex.losses import L1_FRACTIONS_BY_PENALTY, LOSSES
from statmech.convex.separability_thresholds import compute_minimum_existence_threshold
from statmech.errors import Problem
from statmech.inputs.input_distributions import Gaussian, Inputs, format_inputs_label, make_input_population
from statmech.keys.inputs_and_examples import (
    InputsAxis,
    compute_input_table_digests,
    find_input_dimension_problems,
    find_input_table_problems,
    make_inputs_field,
)
from statmech.keys.key_types import PARAMETERS, config_key
from statmech.keys.resampling import ResampleAxis, Resampling
from statmech.keys.sweep_grid import ensure_tuple
from statmech.keys.variables import Variable, make_local_field_variables
from statmech.kinds.convex_fit import (
    BAYES_ERROR_VARIABLES,
    BEST_PENALTY_KEYWORD,
    FIT_THEORY_VARIABLES,
    FIT_VARIABLES,
    MINIMISED_LOSS_FIELD,
    TEACHER_PARAMETER_KEYS,
    LamOrBestAxis,
    LossCell,
    LossFit,
    LossSetting,
    MinimisedLossAxis,
    PenalisedCell,
    estimate_fit_seconds,
    make_missing_minimum_problem,
    make_teacher,
)
from statmech.kinds.online_perceptron import ONLINE_VARIABLES, StudentCountAxis
from statmech.parameters.parameter_fields import ConfigKey

RISK_LOCAL_FIELD_VARIABLES = make_local_field_variables((), "R_field", "length_field")
UNEQUAL_VARIANCE_ERROR_EQUATION = (
    r"\epsilon_g = \tfrac1\pi\arccos R_h"  # replaces the last equation if inputs have unequal variances
)
BAYES_VARIABLES = {"R_bayes": Variable((), "cosine of the Bayes-optimal student", r"$R_\mathrm{Bayes}$")}
RISK_VARIABLES = {
    **FIT_VARIABLES,
    "eps_g": replace(FIT_VARIABLES["eps_g"], reference_variables=("eps_bayes",)),
}
ENSEMBLE_FIT_VARIABLES = {  # single-student variables are means over the students
    **{name: variable for name, variable in RISK_VARIABLES.items() if name != "separable"},
    **{name: replace(ONLINE_VARIABLES[name], dims=()) for name in ("q", "eps_g_majority_vote", "eps_g_weight_mean")},
}
BEST_PENALTY_ERROR_VARIABLES = {
    "eps_g_best_lam": Variable(
        (), "generalization error of one student of all examples at its best penalty", r"$\epsilon_g(\lambda^*)$"
    )
}
# fresh inputs, for the errors of random features (AMD EPYC, 25 November 2026)
FRESH_SECONDS_PER_FEATURE, FRESH_SECONDS_PER_LATENT = 2e-4, 1e-6


class Risk(LossFit):
    """Learners that minimise a convex loss of P = alpha N examples from a teacher.

    With `resample`, an ensemble of K students learns. Each minimises the loss of its own part of the examples.

    Any list is an axis of a sweep. Raises `ScenarioError` with one sentence per problem.

    >>> scenario = Risk(loss=["square", "hinge"], N=20, alpha=[1, 2], lam=0.1, seeds=10)
    >>> [(cell.name, cell.P) for cell in scenario.cells()]
    [('square', 20), ('square', 40), ('hinge', 20), ('hinge', 40)]
    """

    CHOICE: ClassVar = "loss"
    KINDS: ClassVar = LOSSES
    AXES: ClassVar = (
        *("loss", "penalty", "l1_ratio", "teacher", "flip", "noise", "gain", "weights", "rho", PARAMETERS),
        *("K", "resample", "N", "inputs", "lam", "alpha"),
    )
    OMITTED_DEFAULTS: ClassVar = {"K": 1, "resample": None, "inputs": Gaussian()}
    TITLE: ClassVar = "convex losses"
    CITES: ClassVar = ("aubin2020", "loureiro2021", "candes2020")
    SIMULATION_ONLY_KEYS: ClassVar = ("solver",)
    NON_KEY_COORDINATES: ClassVar = {
        **LossFit.NON_KEY_COORDINATES,
        "latent": ConfigKey("latent", "latent variables per feature", float, symbol="$D/N$"),
    }
    USUAL_X_KEY: ClassVar = "alpha"
    equations: ClassVar = (
        r"\mathbf w = \arg\min\sum_\mu\ell(x^\mu) + \lambda\,r(\mathbf w)",
        r"x = yh \text{ or } y-h, \quad h = \mathbf w\cdot\mathbf x/\sqrt{N}",
        r"\epsilon_g = \tfrac1\pi\arccos R",
    )

    loss: MinimisedLossAxis = MINIMISED_LOSS_FIELD
    lam: LamOrBestAxis = config_key(
        0.1,
        description="strength of the penalty; 0: the limit of a vanishing one, best: that of the smallest error",
        symbol=r"$\lambda$",
    )
    K: StudentCountAxis = config_key(1, description="number of students, in an ensemble with `resample`", symbol="$K$")
    resample: ResampleAxis | None = config_key(
        None,
        description="part of the examples that each student of an ensemble learns: {share: fraction} or bootstrap",
        symbol="fraction of examples",
    )
    inputs: InputsAxis = make_inputs_field()
    bayes: StrictBool = Field(
        default=False, description="also the Bayes-optimal student, at finite N by message passing"
    )
    solver: Literal["minimise", "amp"] = Field(
        default="minimise",
        description="solver of the simulation: `minimise` (to a certified minimum) or `amp` (message passing)",
    )

    def _find_problems(self) -> Iterator[Problem]:
        yield from super()._find_problems()
        input_problems = [*find_input_dimension_problems(self)]
        yield from input_problems or self._find_unequal_variance_problems()
        ensemble_problems = [*self._find_ensemble_problems()]
        yield from ensemble_problems
        if not input_problems and not ensemble_problems:
            yield from self._find_unbounded_losses()

    def find_input_file_problems(self) -> Iterator[Problem]:
        return find_input_table_problems(self)

    def data_digests(self) -> dict[str, str]:
        return compute_input_table_digests(self)

    def _find_unequal_variance_problems(self) -> Iterator[Problem]:
        """Find penalties and solvers of a risk that require inputs of equal variance."""
        if not (anisotropic := [inputs for inputs in ensure_tuple(self.inputs) if not inputs.isotropic]):
            return
        for penalty in ensure_tuple(self.penalty):
            if L1_FRACTIONS_BY_PENALTY[penalty] != 0:
                reason = "needs inputs whose covariance is a multiple of 1: a rotation of the inputs changes it"
                yield ("penalty",), f"penalty {penalty} {reason}"
                break
        if self.bayes:
            yield (
                ("bayes",),
                f"the Bayes-optimal student needs inputs of equal variance, not {format_inputs_label(anisotropic[0])}",
            )
        if self.solver == "amp":
            yield (
                ("solver",),
                f"message passing needs inputs of equal variance, not {format_inputs_label(anisotropic[0])}",
            )
        for inputs in anisotropic:
            if inputs.has_unpenalised_axes:
                yield ("inputs",), "ridge of a spectrum must be greater than 0 in all groups of a loss with a penalty"
                break

    def _find_ensemble_problems(self) -> Iterator[Problem]:
        """Find keys of an ensemble that lack their counterpart, and keys that an ensemble does not support."""
        max_students = max(ensure_tuple(self.K))
        if max_students > 1 and not self.has_ensembles:
            yield ("K",), f"{max_students} students that learn the same examples are equal: add resample"
        if max_students == 1 and self.has_ensembles:
            reason = "one student that learns a part of the examples is a student at a smaller alpha"
            yield ("K",), f"resample needs K of at least 2: {reason}"
        if not self.has_ensembles:
            return
        for penalty in ensure_tuple(self.penalty):
            if L1_FRACTIONS_BY_PENALTY[penalty] != 0:
                reason = "theory has no equation for the overlap of two students with an l1 norm"
                yield ("penalty",), f"penalty {penalty} is not supported with resample: {reason}"
                break
        for inputs in ensure_tuple(self.inputs):
            if not inputs.isotropic:
                yield ("inputs",), f"resample needs inputs of equal variance, not {format_inputs_label(inputs)}"
                break
        if BEST_PENALTY_KEYWORD in ensure_tuple(self.lam):
            yield ("lam",), "`best` minimises the error of one student, not of an ensemble: give numbers"
        yield from self._find_resampling_problems()

    def _find_resampling_problems(self) -> Iterator[Problem]:
        """Find ways of resampling that other keys do not support, and parts without an example."""
        if any(resampling.bootstrap for resampling in ensure_tuple(self.resample)):
            if 0 in ensure_tuple(self.lam):
                yield ("lam",), "must be greater than 0 with resample: bootstrap"
            if self.solver == "amp":
                yield ("solver",), "message passing needs independent examples, not those drawn by a bootstrap"
        for values in self.iterate_combinations("resample", "alpha", "N"):
            resampling, P = values["resample"], round(values["alpha"] * values["N"])
            if resampling.count_examples(P) < 1:
                yield ("resample",), f"a fraction {resampling.share:g} of P = {P} examples leaves no example"
                return

    def _find_unbounded_losses(self) -> Iterator[Problem]:
        """Find losses whose risk has no minimum at lam = 0 because the examples are separable."""
        for values in self._list_unpenalised_values():
            inputs = values.get("inputs", Gaussian())
            modes = (
                None if inputs.isotropic or inputs.from_file else inputs.modes(values.get("N", ensure_tuple(self.N)[0]))
            )
            mode_arguments = (modes.signal_fraction, modes.rank_fraction) if modes else ()
            min_alpha = compute_minimum_existence_threshold(
                self.make_component(values), make_teacher(values), *mode_arguments
            )
            learnt_fraction = values["resample"].share if self.has_ensembles else 1.0
            if values["alpha"] * learnt_fraction < min_alpha:
                yield make_missing_minimum_problem(values["loss"], min_alpha / learnt_fraction)
                return

    def _list_unpenalised_values(self) -> Iterator[dict[str, Any]]:
        """Yield the key values of a risk at lam = 0 and the smallest alpha, for each loss and teacher."""
        values_at_min_alpha: dict[Any, dict[str, Any]] = {}
        names = ("loss", "teacher", *TEACHER_PARAMETER_KEYS, *self.parameters, "lam", "alpha", "inputs", "resample")
        for values in self.iterate_combinations(*names) if 0 in ensure_tuple(self.lam) else ():
            kinds = self.make_component(values), make_teacher(values), values.get("inputs"), values.get("resample")
            if values["lam"] == 0 and values["alpha"] <= values_at_min_alpha.get(kinds, values)["alpha"]:
                values_at_min_alpha[kinds] = values
        yield from values_at_min_alpha.values()

    @property
    def displayed_equations(self) -> tuple[str, ...]:
        return (
            (*self.equations[:-1], UNEQUAL_VARIANCE_ERROR_EQUATION) if self.has_anisotropic_inputs else self.equations
        )

    @property
    def variables(self) -> dict[str, Variable]:
        if self.has_ensembles:
            return ENSEMBLE_FIT_VARIABLES | (BAYES_VARIABLES if self.bayes else {})
        return (
            RISK_VARIABLES
            | (RISK_LOCAL_FIELD_VARIABLES if self.has_anisotropic_inputs else {})
            | (BAYES_VARIABLES if self.bayes else {})
        )

    @property
    def has_ensembles(self) -> bool:
        """True if ensembles of students learn, each student from its own part of the examples."""
        return self.resample is not None

    @property
    def has_anisotropic_inputs(self) -> bool:
        """True if some inputs have unequal variances in different directions."""
        return not all(inputs.isotropic for inputs in ensure_tuple(self.inputs))

    @property
    def sized(self) -> bool:
        """True if the variances of some inputs depend on N."""
        return any(inputs.modes_depend_on_N for inputs in ensure_tuple(self.inputs))

    @property
    def theory_only_variables(self) -> dict[str, Variable]:
        variables = FIT_THEORY_VARIABLES | ({} if self.bayes else BAYES_VARIABLES) | BAYES_ERROR_VARIABLES
        if self.has_ensembles:
            del variables["lam_best"]
            return variables | BEST_PENALTY_ERROR_VARIABLES
        return variables

    @property
    def keys_ignored_by_theory(self) -> dict[str, Any]:
        return {} if self.sized else super().keys_ignored_by_theory

    @property
    def derived_coordinates(self) -> dict[str, Any]:
        return super().derived_coordinates | self._compute_latent_coordinates()

    def _compute_latent_coordinates(self) -> dict[str, Any]:
        """Return the number of latent variables per feature if a risk has an axis of random features."""
        axis_inputs = ensure_tuple(self.inputs)
        ratios = [getattr(inputs, "latent", None) for inputs in axis_inputs]
        if len(ratios) == 1 or None in ratios:
            return {}
        return {"latent": (("_".join(self._get_zip_group("inputs")),), np.array(ratios))}

    def _get_zip_group(self, name: str) -> tuple[str, ...]:
        """Return all keys in the zip group of a key, or the key alone."""
        return next((group for group in self.zipped if name in group), (name,))

    def estimate_run_seconds(self, cell: RiskCell) -> float:
        latent = cell.inputs.count_latent_variables(cell.N)
        measured = cell.N * (FRESH_SECONDS_PER_FEATURE + FRESH_SECONDS_PER_LATENT * latent) if latent else 0.0
        return measured + cell.K * estimate_fit_seconds(
            cell.loss, cell.num_learnt_examples, cell.N, bool(cell.penalty.share)
        )

    def cell(self, values: dict[str, Any], index: tuple[int, ...]) -> RiskCell:
        further = {name: values[name] for name in ("inputs", "K", "resample") if name in values}
        return RiskCell(**self.make_cell_values(values, index), **further)


@dataclass(frozen=True)
class RiskCell(LossCell, PenalisedCell):
    """One grid point: the loss, the penalty, the teacher, the inputs, the numbers of examples, and the students."""

    inputs: Inputs = field(default_factory=Gaussian)
    K: int = 1
    resample: Resampling | None = None

    @property
    def is_bootstrap(self) -> bool:
        """True if each student learns draws with replacement."""
        return self.resample is not None and self.resample.bootstrap

    @property
    def learnt_fraction(self) -> float:
        """Part of the examples that each student learns, before their number is rounded."""
        return self.resample.share if self.resample else 1.0

    @property
    def num_learnt_examples(self) -> int:
        """Number of examples that each student learns."""
        return self.resample.count_examples(self.P) if self.resample else self.P

    @property
    def loss_setting(self) -> LossSetting:
        return super().loss_setting._replace(inputs=make_input_population(self.inputs, self.N))

    @property
    def shared_setting(self) -> LossSetting:
        return self.loss_setting

    @property
    def sample_size(self) -> float:
        return self.alpha
