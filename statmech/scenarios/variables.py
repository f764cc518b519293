"""Names, meanings and dimensions of a dataset's variables; each kind of scenario lists its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

AVERAGED = ("student", "fold")  # dimensions over which figures average
UNITS = ("other", "teacher_unit", "other_teacher_unit")  # of networks: overlaps of single pairs are not drawn
UNSHOWN = ("seed", "row", "column", "vertical", "horizontal", "position", "partner", "example", *UNITS, *AVERAGED)

STD, BIAS = "_std", "_bias"  # after the name of a variable, those of its standard deviation and its bias
ERROR = "_error"  # and that of the standard error of theory's own value


@dataclass(frozen=True)
class Variable:
    """A variable's axes after the sweep's own and `seed`, its long name, its short name for tables and plots, what
    stands where there is none, whether theory has it, too, attributes of its own, where theory has a bound and not a
    value, whether that lies "above" or "below" every run, whether it is a mean between two recorded times, which
    variables of theory are values that it is compared with, such as that of the best student, and its role: figures
    that name no variable show results, and neither details, nor diagnostics of the computation, nor controls, the
    functions of time that a student learns under. Of an ensemble, the variable that it equals where there is `alone`
    one student."""

    dims: tuple[str, ...]
    long_name: str
    symbol: str
    missing: Any = np.nan
    in_theory: bool = True
    attrs: dict[str, Any] = field(default_factory=dict)
    bound: Literal["", "above", "below"] = ""
    between: bool = False
    levels: tuple[str, ...] = ()
    role: Literal["result", "detail", "diagnostic", "control"] = "result"
    alone: str = ""

    @property
    def described(self) -> dict[str, Any]:
        """Its attributes in a dataset."""
        return {"long_name": self.long_name, "units": "1", **self.attrs}


FIELD = {  # of kinds whose inputs may vary more in some directions than in others, where fields are not as weights
    "R_field": ("cosine of a student's field and the teacher's", "$R_h$"),
    "q_field": ("cosine of two students' fields, mean over the other students", "$q_h$"),
    "length_field": ("standard deviation of a student's field", "$l_h$"),
}


def field_variables(dims: tuple[str, ...], *names: str) -> dict[str, Variable]:
    """The variables of `FIELD` with these names, along these dimensions.

    >>> [(name, it.symbol) for name, it in field_variables((), "R_field").items()]
    [('R_field', '$R_h$')]
    """
    return {name: Variable(dims, *FIELD[name], role="detail") for name in names}


def std_of(name: str, variable: Variable) -> dict[str, Variable]:
    """The standard deviation of one run at finite N, by its name.

    >>> [(name, it.long_name) for name, it in std_of("R", Variable(("t",), "cosine", "$R$")).items()]
    [('R_std', 'standard deviation of one run, to order 1/N: cosine')]
    """
    long_name, symbol = f"standard deviation of one run, to order 1/N: {variable.long_name}", f"{variable.symbol}, std"
    return {name + STD: replace(variable, long_name=long_name, symbol=symbol)}


def bias_of(name: str, variable: Variable) -> dict[str, Variable]:
    """The mean over runs at finite N less the limit's value, by its name.

    >>> [(name, it.symbol) for name, it in bias_of("R", Variable(("t",), "cosine", "$R$")).items()]
    [('R_bias', '$R$, bias')]
    """
    long_name, symbol = f"bias at finite N, to order 1/N: {variable.long_name}", f"{variable.symbol}, bias"
    return {name + BIAS: replace(variable, long_name=long_name, symbol=symbol)}


def error_of(name: str, variable: Variable) -> dict[str, Variable]:
    """The standard error of theory's own value, by its name.

    >>> [(name, it.symbol) for name, it in error_of("R", Variable(("t",), "cosine", "$R$")).items()]
    [('R_error', '$R$, error')]
    """
    long_name, symbol = f"standard error of theory: {variable.long_name}", f"{variable.symbol}, error"
    return {name + ERROR: replace(variable, long_name=long_name, symbol=symbol)}
