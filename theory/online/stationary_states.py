r"""Stationary states of online learning, where learning balances weight decay or the drift of the teacher.

In `theory.online.order_parameter_equations`, the rates of :math:`\log l` and :math:`y = 1-R` are sums of gains and
losses, which are equal in a stationary state:

.. math:: \frac{\langle fu\rangle}l + \frac{\langle f^2\rangle}{2l^2} - w = 0, \qquad
          -\sin^2\theta\,\frac Dl + \cos\theta\left(\frac{\langle f^2\rangle}{2l^2} + \delta\right) = 0 .

The logarithms log(gain/loss) are nearly linear in :math:`\log l` and :math:`\log y`, and the state is a power of
:math:`\delta`. So a root solver finds the state to all digits from a short integration of the equations, even if the
equations approach it slowly. Its variables, :math:`\log(y/(2-y))` and :math:`\log(l^2/(L^2-l^2))` with the maximum
initial length L of the rule or :math:`2\log l`, cannot leave the range of y and l. The state must be stable: the
eigenvalues of the Jacobian of the rates have negative real parts. If a rule scales with the length (the textbook
AdaTron), only R is stationary.

For the perceptron without decay :math:`\langle fu\rangle` and D give :math:`l = \eta\theta/(\sqrt{2\pi}\,(1-R))`, so
:math:`(1-R)^2 = \delta R\theta` for any learning rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import ScenarioError
from statmech.kinds.online_learning import OnlineCell
from statmech.kinds.online_perceptron import Scenario
from statmech.numerics.gaussian import Array
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.stores.dataset import fill_arrays, get_variable_arrays, make_empty_dataset
from statmech.students.rules import RuleAverages
from statmech.students.student_geometry import angle_from_versine
from theory.online.order_parameter_equations import compute_rule_averages, solve_cells
from theory.online.student_states import Students, compute_rate_terms

if TYPE_CHECKING:
    import xarray as xr

ROOT_SEARCH_START_TIMES = (20.0, 200.0, 2000.0)  # tried in order, until one leads to a state
LOG_BALANCE_TOL = 1e-8  # log(gain/loss) is at least 1e-3 where the solver does not converge
MAX_STATIONARY_LOG_LENGTH = 100.0  # beyond, gains and losses agree only because both vanish
MIN_BALANCE_TERM = 1e-300
STATIONARY_VARIABLES = ("R", "length", "eps_g")
# from (log l, log y) to rate terms and their Jacobian
RateTermsFunction = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class StationaryState(NamedTuple):
    """Stationary state, or the reason why there is no such state.

    Without a state y is NaN. log l is NaN if the length is not stationary.
    """

    log_length: float
    y: float
    absence_reason: str = ""


class RateArguments(NamedTuple):
    """Arguments of one cell's rates, apart from its rule and state."""

    parameters: dict[str, Array]
    flip: Array
    learning_probability: Array | None  # probability that a student learns an example; None if all learn it
    changes: TimeDependence


def stationary(scenario: Scenario) -> xr.Dataset:
    r"""Compute the stationary states of a scenario under drift and decay.

    A state is the root of the rates of :math:`\log l` and :math:`1-R` that the scenario's start approaches
    (`theory.online.stationary_states`), found without a long integration. Cells without a stable state have NaN, for
    example without drift and decay, or if a length grows or shrinks without bound. The attribute `absent` lists these
    cells with the reasons.

    Parameters
    ----------
    scenario
        A scenario of online learning with equal starts of all students, and without schedule. Times, K and N do not
        matter.

    Returns
    -------
    xarray.Dataset
        R, length and eps_g on the sweep axes.

    Raises
    ------
    ScenarioError
        For a schedule, students that start in different states, or inputs without equations.
    SolverError
        If a parameter combination, which the message names, cannot be integrated.

    Examples
    --------
    >>> from statmech import Scenario
    >>> slow = stationary(Scenario(rule=["perceptron", "hebb"], drift=[0.001, 0.01], t=1))
    >>> slow.eps_g.sel(rule="perceptron").values.round(6)
    array([0.050387, 0.107451])
    >>> slow.attrs["absent"]
    'hebb (eta = 1, flip = 0, drift = 0.001) and 1 more: the length grows without bound'
    """
    _check_supported(scenario)
    cells = list(scenario.cells())
    states = _find_states(cells)
    dataset = make_empty_dataset(
        scenario, seeds=None, title="statmech theory", source="stationary order-parameter equations"
    )
    dataset = dataset.drop_vars([name for name in dataset.data_vars if name not in STATIONARY_VARIABLES])
    dataset = dataset.isel(t=0, student=0, drop=True)
    arrays = get_variable_arrays(dataset := dataset.copy(deep=True))
    for cell, state in zip(cells, states, strict=True):
        angle = angle_from_versine(np.float64(state.y))
        values = 1 - state.y, np.exp(state.log_length), angle / np.pi
        fill_arrays(arrays, cell.index, dict(zip(STATIONARY_VARIABLES, map(np.asarray, values), strict=True)))
    return dataset.assign_attrs(_make_absent_attribute(cells, states))


def _check_supported(scenario: Scenario) -> None:
    """Raise `ScenarioError` for a scenario of online learning whose stationary states are not supported."""
    if scenario.unsolved:
        raise ScenarioError([((), scenario.unsolved)])
    if any(cell.inputs.has_unequal_variances for cell in scenario.cells()):
        raise ScenarioError([(("inputs",), "stationary states are supported for isotropic inputs only")])
    if any(cell.schedule is not None for cell in scenario.cells()):
        raise ScenarioError([(("schedule",), "a decreasing learning rate has no stationary state")])
    if not scenario.has_equal_starts:
        raise ScenarioError([(("start",), "stationary states are supported for students with equal starts only")])


def _make_absent_attribute(cells: list[OnlineCell], states: list[StationaryState]) -> dict[str, str]:
    """Return an attribute that lists cells without a stationary state or length, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for cell, state in zip(cells, states, strict=True):
        if state.absence_reason:
            reasons.setdefault(state.absence_reason, []).append(cell.message_description)
    counted = (f"{first}{f' and {len(more)} more' if more else ''}: {why}" for why, (first, *more) in reasons.items())
    return {"absent": text} if (text := "; ".join(counted)) else {}


def _find_states(cells: list[OnlineCell]) -> list[StationaryState]:
    """Find the stationary state of each cell's student, starting from a short integration of the equations.

    The `ROOT_SEARCH_START_TIMES` are tried in order until one leads to a state.
    """
    states: dict[int, StationaryState] = {}
    for time in ROOT_SEARCH_START_TIMES:
        missing = [index for index in range(len(cells)) if index not in states or np.isnan(states[index].y)]
        # without pairs, whose integration would take most of the time
        single_student_cells = [replace(cells[index], K=1) for index in missing]
        starts = solve_cells(single_student_cells, [time]) if single_student_cells else []
        with use_cpu_double_precision():
            states |= {index: _find_state(cells[index], start) for index, start in zip(missing, starts, strict=True)}
    return [states[index] for index in range(len(cells))]


def _find_state(cell: OnlineCell, start: Students) -> StationaryState:
    """Find the stationary state of a cell's student by a root solver that starts from given students."""
    from scipy.optimize import root

    terms, longest = partial(_get_numpy_terms_and_jacobian, *_make_rate_arguments(cell)), cell.rule.longest_start
    x = _make_solver_variables(longest, start)
    free = _is_length_invariant(terms, _convert_solver_variables(longest, x)[0])
    solved_for = np.array([not free, True])

    def balance(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state, scale = _convert_solver_variables(longest, np.concatenate([x[~solved_for], part]))
        value, slope = _compute_log_balance(*terms(state))
        return value[solved_for], (slope * scale)[np.ix_(solved_for, solved_for)]

    with np.errstate(all="ignore"):
        solution = root(balance, x[solved_for], jac=True, method="hybr", options={"xtol": 1e-14})
        logarithms, _ = _convert_solver_variables(longest, np.concatenate([x[~solved_for], solution.x]))
        is_stationary = _is_stationary_state(
            logarithms, balance(solution.x)[0], terms(logarithms)[1].sum(axis=1)[np.ix_(solved_for, solved_for)]
        )
    if not is_stationary:
        return StationaryState(
            np.nan, np.nan, _explain_absence(cell, terms(_convert_solver_variables(longest, x)[0])[0].sum(axis=1))
        )
    return StationaryState(
        np.nan if free else logarithms[0],
        np.exp(logarithms[1]),
        "R alone is stationary, not the length" if free else "",
    )


def _make_solver_variables(max_start_length: float, students: Students) -> np.ndarray:
    """Convert students at one time to the variables of the root solver for a stationary state.

    The module's docstring defines the variables.
    """
    log_length, y = students.log_length[0, 0], np.clip(students.y[0, 0], MIN_BALANCE_TERM, 2 - 1e-15)
    short = -np.inf if np.isinf(max_start_length) else 2 * min(log_length - np.log(max_start_length), -1e-15)
    return np.array(
        [2 * log_length if np.isinf(max_start_length) else short - np.log(-np.expm1(short)), np.log(y / (2 - y))]
    )


def _convert_solver_variables(max_start_length: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert the root solver's variables of a stationary state to log l and log y, and return their derivatives."""
    log_y, scale_y = np.log(2) - np.logaddexp(0.0, -x[1]), 1 / (1 + np.exp(x[1]))
    if np.isinf(max_start_length):
        return np.array([x[0] / 2, log_y]), np.array([0.5, scale_y])
    log_length = np.log(max_start_length) - np.logaddexp(0.0, -x[0]) / 2
    return np.array([log_length, log_y]), np.array([0.5 / (1 + np.exp(x[0])), scale_y])


def _make_rate_arguments(cell: OnlineCell) -> tuple[RealParameterFamily, bool, RateArguments]:
    rule = get_real_parameter_family(cell.rule)
    parameters = {name: np.float64(getattr(cell.rule, name)) for name in rule.real_parameter_names}
    learning_probability = None if cell.resample is None else np.float64(cell.learning_probability)
    arguments = RateArguments(parameters, np.float64(cell.flip), learning_probability, cell.time_dependence)
    return rule, cell.rule.has_closed_form, arguments


def _is_length_invariant(terms: RateTermsFunction, state: np.ndarray) -> bool:
    """Return True if the rates do not depend on the length."""
    terms_here, terms_shorter = (terms(state + np.array([shift, 0.0]))[0] for shift in (0.0, -0.5))
    return bool(np.allclose(terms_here, terms_shorter, rtol=1e-10, atol=0))


def _compute_log_balance(terms: np.ndarray, jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the balance log(gain/loss) of log l and of y, and its Jacobian.

    The arguments are the terms of the rates (2, 3) and their slope (2, 3, 2).
    """
    gains, losses = (np.maximum(sign * terms, 0.0).sum(axis=1) for sign in (1, -1))
    gain, loss = np.maximum(gains, MIN_BALANCE_TERM), np.maximum(losses, MIN_BALANCE_TERM)
    weights = np.where(terms > 0, 1 / gain[:, None], 1 / loss[:, None])  # losses are -terms: two minus signs cancel
    return np.log(gain) - np.log(loss), np.einsum("rt, rtx -> rx", weights, jacobian)


def _is_stationary_state(state: np.ndarray, balance: np.ndarray, jacobian: np.ndarray) -> bool:
    """Return True if gains equal losses at a stable state inside all bounds.

    Stability follows from the Jacobian of the rates.
    """
    inside = (
        np.all(np.isfinite(state)) and abs(state[0]) < MAX_STATIONARY_LOG_LENGTH and np.log(MIN_BALANCE_TERM) < state[1]
    )
    if not inside or not np.all(np.abs(balance) < LOG_BALANCE_TOL) or not np.all(np.isfinite(jacobian)):
        return False
    return bool(np.all(np.linalg.eigvals(jacobian).real < 0))


def _explain_absence(cell: OnlineCell, rates: np.ndarray) -> str:
    """Return the reason why no state was found, from the rates at the start of the root solver."""
    if cell.drift == cell.decay == 0:
        return "without drift or decay no stable state was found"
    return f"the length {'grows' if rates[0] > 0 else 'shrinks'} without bound"


def _compute_log_state_rate_terms(
    rule: RealParameterFamily, use_closed_forms: bool, setting: RateArguments, state: Array
) -> Array:
    """Return the gains and losses in the rates of log l and log y at a given state, as an array (2, 3)."""
    length, y = jnp.exp(state)
    single = compute_rule_averages(
        rule(**setting.parameters), use_closed_forms, angle_from_versine(y), length, setting.flip
    )
    if setting.learning_probability is not None:
        single = RuleAverages(*(setting.learning_probability * part for part in single))
    length_terms, y_terms = compute_rate_terms(single, y, length, setting.changes)
    return jnp.stack([jnp.stack(length_terms), jnp.stack(y_terms) / y])


@partial(jax.jit, static_argnums=(0, 1))
def _compute_terms_and_jacobian(
    rule: RealParameterFamily, use_closed_forms: bool, setting: RateArguments, state: Array
) -> tuple[Array, Array]:
    return _compute_log_state_rate_terms(rule, use_closed_forms, setting, state), jax.jacfwd(
        _compute_log_state_rate_terms, argnums=3
    )(rule, use_closed_forms, setting, state)


def _get_numpy_terms_and_jacobian(
    rule: RealParameterFamily, use_closed_forms: bool, setting: RateArguments, state: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the terms in the rates (2, 3) and their Jacobian (2, 3, 2), as NumPy arrays."""
    terms, slope = _compute_terms_and_jacobian(rule, use_closed_forms, setting, state)
    return np.asarray(terms), np.asarray(slope)
