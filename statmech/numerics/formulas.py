"""Formulas in configs, such as `100 * (eps_g / theory.eps_g - 1)`, evaluated without `eval`.

A formula may contain numbers, names, `theory.NAME`, parentheses, the operators + - * / **, and the functions and the
constant in `FORMULA_FUNCTIONS` and `FORMULA_CONSTANTS`. Other expressions raise an error before anything is evaluated.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from statmech.errors import ConfigError

FORMULA_FUNCTIONS: dict[str, np.ufunc] = {
    name: getattr(np, name) for name in ("arccos", "cos", "sin", "exp", "log", "sqrt", "abs", "minimum", "maximum")
} | {"normal_cdf": ndtr, "normal_quantile": ndtri}
FORMULA_CONSTANTS = {"pi": np.pi}
THEORY_PREFIX = "theory"
MAX_FORMULA_LENGTH = 500  # letters
MAX_NUMBER = 1e300
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def find_formula_names(formula: str) -> tuple[list[str], list[str]]:
    """Return the names in a formula, and the names that it takes from theory.

    Raises
    ------
    ConfigError
        If the formula is not valid, or contains anything but arithmetic.

    Examples
    --------
    >>> find_formula_names("100 * (eps_g / theory.eps_g - 1)")
    (['eps_g'], ['eps_g'])
    >>> find_formula_names("eps_g.values")
    Traceback (most recent call last):
    statmech.errors.ConfigError: eps_g.values: only numbers, names, theory.NAME, + - * / **, and the functions \
arccos, cos, sin, exp, log, sqrt, abs, minimum, maximum, normal_cdf, normal_quantile are possible
    """
    own_names: list[str] = []
    of_theory: list[str] = []

    def collect(node: ast.expr) -> None:
        if isinstance(node, ast.Name):
            if node.id not in FORMULA_CONSTANTS:
                own_names.append(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == THEORY_PREFIX:
            of_theory.append(node.attr)
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            collect(node.left)
            collect(node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            collect(node.operand)
        elif isinstance(node, ast.Call) and _is_selection(node):
            collect(node.func)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id not in FORMULA_FUNCTIONS or len(node.args) != FORMULA_FUNCTIONS[node.func.id].nin:
                raise _make_refusal(formula)
            for argument in node.args:
                collect(argument)
        elif not _is_number(node):
            raise _make_refusal(formula)

    collect(_parse_formula(formula))
    return list(dict.fromkeys(own_names)), list(dict.fromkeys(of_theory))


def evaluate_formula(formula: str, values: Mapping[str, Any], theory: Mapping[str, Any]) -> Any:
    """Evaluate a formula.

    Parameters
    ----------
    formula
        A formula that `find_formula_names` accepts.
    values
        A number or an array for each of its names.
    theory
        A number or an array for each name after `theory.`.

    Returns
    -------
    A number, or an array of the common shape.

    Examples
    --------
    >>> evaluate_formula("100 * (eps_g / theory.eps_g - 1)", {"eps_g": 0.22}, {"eps_g": 0.2}).round(9)
    np.float64(10.0)
    """
    find_formula_names(formula)

    def compute(node: Any) -> Any:
        if isinstance(node, ast.Constant):
            return np.float64(node.value)  # type: ignore[arg-type]  # overflows to infinity, where a Python number would raise an error
        if isinstance(node, ast.Name):
            return FORMULA_CONSTANTS[node.id] if node.id in FORMULA_CONSTANTS else values[node.id]
        if isinstance(node, ast.Attribute):
            return theory[node.attr]
        if isinstance(node, ast.UnaryOp):
            return -compute(node.operand)
        if isinstance(node, ast.Call) and node.keywords:
            return _select_values(compute(node.func), node.keywords)
        if isinstance(node, ast.Call):
            return FORMULA_FUNCTIONS[node.func.id](*map(compute, node.args))  # type: ignore[attr-defined]
        return _OPERATORS[type(node.op)](compute(node.left), compute(node.right))

    with np.errstate(all="ignore"):
        return compute(_parse_formula(formula))


def find_formula_selections(formula: str) -> list[tuple[str, float | str]]:
    """Return the axes and values that a valid formula selects.

    >>> find_formula_selections("eps_g - eps_g(rule=bayes, t=10)")
    [('rule', 'bayes'), ('t', 10)]
    """
    calls = [node for node in ast.walk(_parse_formula(formula)) if isinstance(node, ast.Call)]
    return [(str(keyword.arg), _read_selected_value(keyword)) for call in calls for keyword in call.keywords]


def _is_selection(node: ast.Call) -> bool:
    """Return True for a variable at values of axes, such as `eps_g(t=10, rule=bayes)`."""
    is_function = isinstance(node.func, ast.Name) and node.func.id in {*FORMULA_FUNCTIONS, *FORMULA_CONSTANTS}
    is_possible = isinstance(node.func, ast.Name | ast.Attribute) and not (is_function or node.args)
    return is_possible and bool(node.keywords) and all(map(_is_selected_value, node.keywords))


def _is_selected_value(keyword: ast.keyword) -> bool:
    """Return True if a keyword has a number or a word as its value."""
    is_text = isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
    return keyword.arg is not None and (isinstance(keyword.value, ast.Name) or is_text or _is_number(keyword.value))


def _read_selected_value(keyword: ast.keyword) -> Any:
    return keyword.value.id if isinstance(keyword.value, ast.Name) else ast.literal_eval(keyword.value)


def _select_values(values: Any, keywords: list[ast.keyword]) -> Any:
    """Select one value on axes of an array with coordinates.

    Lines are interpolated at values between their points.
    """
    for keyword in keywords:
        axis, value = str(keyword.arg), _read_selected_value(keyword)
        if axis not in getattr(values, "coords", {}) or not values[axis].dims:
            continue
        [dim] = values[axis].dims
        matches = np.flatnonzero(values[axis].values == value)
        if value in ("first", "last") or matches.size:
            index = {"first": 0, "last": -1}.get(value, matches[0] if matches.size else 0)
            values = values.isel({dim: index}, drop=True)
        else:
            values = values.interp({axis: value}).drop_vars(axis)
    return values


def _parse_formula(formula: str) -> ast.expr:
    if len(formula) > MAX_FORMULA_LENGTH:
        raise ConfigError(f"the formula has {len(formula):,} letters, and at most {MAX_FORMULA_LENGTH} are possible")
    try:
        return ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ConfigError(f"{formula} is not a formula") from None


def _is_number(node: ast.expr) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= MAX_NUMBER


def _make_refusal(formula: str) -> ConfigError:
    return ConfigError(
        f"{formula}: only numbers, names, {THEORY_PREFIX}.NAME, + - * / **, and the functions "
        f"{', '.join(FORMULA_FUNCTIONS)} are possible"
    )
