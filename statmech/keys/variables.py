"""Descriptions of dataset variables, and the required members of every kind of scenario.

Each kind of scenario lists its own variables, and defines its keys as fields. Results are computed by its methods
`simulate` and `solve`. To simulate many seeds in one compiled call, define instead a `Simulator` and a function `solve`
in modules of the same name in `simulate.kinds` and `theory.kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

DIMS_AVERAGED_IN_FIGURES = ("student", "fold")  # figures show means over these dimensions
NETWORK_UNIT_DIMS = ("other", "teacher_unit", "other_teacher_unit")  # figures do not show the overlaps of single units
DIMS_HIDDEN_IN_FIGURES = (
    "seed",
    "row",
    "column",
    "vertical",
    "horizontal",
    "position",
    "partner",
    "example",
    *NETWORK_UNIT_DIMS,
    *DIMS_AVERAGED_IN_FIGURES,
)

STD_SUFFIX, BIAS_SUFFIX = "_std", "_bias"  # suffixes for the names of variables
STANDARD_ERROR_SUFFIX = "_error"  # suffix for the standard error of a theoretical value
LOCAL_FIELD_DESCRIPTIONS = {  # with unequal variances, cosines of fields differ from cosines of weights
    "R_field": ("cosine of a student's field and the teacher's", "$R_h$"),
    "q_field": ("cosine of two students' fields, mean over the other students", "$q_h$"),
    "length_field": ("standard deviation of a student's field", "$l_h$"),
}


@dataclass(frozen=True)
class Variable:
    """The description of a variable in the datasets of simulation and theory.

    Parameters
    ----------
    dims : the dimensions after the axes of the sweep and `seed`
    long_name : the meaning
    symbol : the short name for tables and plots
    missing : the value of missing entries
    in_theory : whether theory computes the variable as well
    attrs : further attributes in a dataset
    bound : for a bound instead of a value in theory, whether it lies "above" or "below" every run
    is_interval_mean : whether the variable is a mean between two recorded times
    reference_variables : theory variables to compare with, such as the error of the best student
    role : figures show results by default, but no details, diagnostics of the computation, or controls (functions of
        time that a student learns under)
    single_student_variable : for a variable of an ensemble, the equivalent variable of a single student
    """

    dims: tuple[str, ...]
    long_name: str
    symbol: str
    missing: Any = np.nan
    in_theory: bool = True
    attrs: dict[str, Any] = field(default_factory=dict)
    bound: Literal["", "above", "below"] = ""
    is_interval_mean: bool = False
    reference_variables: tuple[str, ...] = ()
    role: Literal["result", "detail", "diagnostic", "control"] = "result"
    single_student_variable: str = ""

    @property
    def dataset_attributes(self) -> dict[str, Any]:
        """Attributes that describe the variable in a dataset."""
        return {"long_name": self.long_name, "units": "1", **self.attrs}


def make_local_field_variables(dims: tuple[str, ...], *names: str) -> dict[str, Variable]:
    """Return variables of students' fields, by name, with these dimensions.

    >>> [(name, it.symbol) for name, it in make_local_field_variables((), "R_field").items()]
    [('R_field', '$R_h$')]
    """
    return {name: Variable(dims, *LOCAL_FIELD_DESCRIPTIONS[name], role="detail") for name in names}


def make_std_variable(name: str, variable: Variable) -> dict[str, Variable]:
    """Return the variable for the standard deviation over runs at finite N, keyed by name.

    >>> [(name, it.long_name) for name, it in make_std_variable("R", Variable(("t",), "cosine", "$R$")).items()]
    [('R_std', 'standard deviation of one run, to order 1/N: cosine')]
    """
    long_name, symbol = f"standard deviation of one run, to order 1/N: {variable.long_name}", f"{variable.symbol}, std"
    return {name + STD_SUFFIX: replace(variable, long_name=long_name, symbol=symbol)}


def make_bias_variable(name: str, variable: Variable) -> dict[str, Variable]:
    """Return the variable for the bias at finite N, the mean over runs minus the limit, keyed by name.

    >>> [(name, it.symbol) for name, it in make_bias_variable("R", Variable(("t",), "cosine", "$R$")).items()]
    [('R_bias', '$R$, bias')]
    """
    long_name, symbol = f"bias at finite N, to order 1/N: {variable.long_name}", f"{variable.symbol}, bias"
    return {name + BIAS_SUFFIX: replace(variable, long_name=long_name, symbol=symbol)}


def make_standard_error_variable(name: str, variable: Variable) -> dict[str, Variable]:
    """Return the variable for the standard error of a theoretical value, keyed by name.

    >>> [(name, it.symbol) for name, it in make_standard_error_variable("R", Variable(("t",), "cosine", "$R$")).items()]
    [('R_error', '$R$, error')]
    """
    long_name, symbol = f"standard error of theory: {variable.long_name}", f"{variable.symbol}, error"
    return {name + STANDARD_ERROR_SUFFIX: replace(variable, long_name=long_name, symbol=symbol)}


class ScenarioKind:
    """Base class with the required members of every kind of scenario."""

    CHOICE: ClassVar[str]  # key that selects the learning algorithm; also its name in messages
    KINDS: ClassVar[dict[str, type]]  # learning algorithms by name; their parameters become keys
    FURTHER_CLASS_CHOICES: ClassVar[dict[str, Mapping[str, type]]] = {}  # further keys that select a class
    AXES: ClassVar[tuple[str, ...]]  # possible axes, in the order of the dataset dimensions
    # AXES can list a parameter to fix its position; the dataset then contains it even at its default

    OPTIMISABLE_KEYS: ClassVar[tuple[str, ...]] = ()  # keys whose function of time can be optimised
    STEPWISE_TIME_FUNCTION_KEYS: ClassVar[tuple[str, ...]] = ()  # further keys that can change stepwise in time

    @classmethod
    def choices(cls) -> dict[str, Mapping[str, type]]:
        """Return the keys that select a class, each with its possible classes by name."""
        return {cls.CHOICE: cls.KINDS, **cls.FURTHER_CLASS_CHOICES}

    @property
    def variables(self) -> dict[str, Variable]:
        """Variables in datasets of this scenario, by name."""
        raise NotImplementedError

    simulate: ClassVar[Callable[..., dict[str, Any]] | None] = None  # simulate(cell, seed): variables of one run
    solve: ClassVar[Callable[..., dict[str, Any]] | None] = None  # solve(cell): predictions of theory


def list_standard_error_names(names: Iterable[Any]) -> list[str]:
    """List the names of standard errors whose theoretical values are present.

    >>> list_standard_error_names(["eps_g", "eps_g_error", "decision_error"])
    ['eps_g_error']
    """
    all_names = {str(name) for name in names}
    return sorted(
        name
        for name in all_names
        if name.endswith(STANDARD_ERROR_SUFFIX) and name.removesuffix(STANDARD_ERROR_SUFFIX) in all_names
    )
