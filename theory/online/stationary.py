r"""Stationary states of online learning, where a teacher that drifts or weights that decay balance what is learnt.

The rates of `theory.online.equations`, of :math:`\log l` and :math:`y = 1-R`, are sums of gains and losses that are
equal there:

.. math:: \frac{\langle fu\rangle}l + \frac{\langle f^2\rangle}{2l^2} - w = 0, \qquad
          -\sin^2\theta\,\frac Dl + \cos\theta\left(\frac{\langle f^2\rangle}{2l^2} + \delta\right) = 0 .

The logarithms log(gain/loss) are nearly linear in :math:`\log l` and :math:`\log y`, in which the state is a power of
:math:`\delta`; so a root solver that starts from the equations integrated for a short time finds it to all digits,
however slowly it would be reached. Its variables, :math:`\log(y/(2-y))` and :math:`\log(l^2/(L^2-l^2))` with the
longest start L of the rule or :math:`2\log l`, cannot leave the range of y and l. The state must be stable: the
eigenvalues of the Jacobian of the rates have negative real parts. If a rule scales with the length (the textbook
AdaTron), R alone is stationary.

For the perceptron without decay :math:`\langle fu\rangle` and D give :math:`l = \eta\theta/(\sqrt{2\pi}\,(1-R))`, so
:math:`(1-R)^2 = \delta R\theta` whatever its rate.
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
from statmech.numerics.gaussian import Array
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.results.dataset import arrays_of, blank, fill
from statmech.runtime.devices import double_precision
from statmech.scenarios.online import OnlineCell, Scenario
from statmech.schedules import Changes
from theory.online.averages import averages
from theory.online.rate_terms import rate_terms
from theory.online.students import Students
from theory.online.trajectories import solve_cells

if TYPE_CHECKING:
    import xarray as xr

TIMES = (20.0, 200.0, 2000.0)  # to which the equations are integrated, each if no state is found from the one before
BALANCED = 1e-8  # log(gain/loss) of a root; one that the solver only approaches has 1e-3 and more
LONGEST = 100.0  # of |log l|: beyond, gains and losses have become equal by vanishing
SMALLEST = 1e-300
VARIABLES = ("R", "length", "eps_g")


class State(NamedTuple):
    """A stationary state, or why there is none: then y is NaN, and log l, too, where it is not stationary."""

    log_length: float
    y: float
    absent: str = ""


class Setting(NamedTuple):
    """Arguments of one cell's rates besides rule and state."""

    parameters: dict[str, Array]
    flip: Array
    changes: Changes


Terms = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # the rates' terms and their slope at log l and log y


def stationary(scenario: Scenario) -> xr.Dataset:
    r"""The stationary states of a scenario: what its students tend to under drift and decay.

    The root of the two rates of :math:`\log l` and :math:`1-R` (`theory.stationary`), the one that the scenario's start
    leads to, not by integrating for long. NaN where there is none that is stable, as without drift and decay, or where
    a length grows or shrinks without bound; the attribute `absent` says which and why.

    Parameters
    ----------
    scenario
        Of online learning, with students that start alike, and without schedule. Times, K and N do not matter.

    Returns
    -------
    xarray.Dataset
        R, length and eps_g on the sweep axes.

    Raises
    ------
    ScenarioError
        For a schedule, students that start in different states, or inputs without equations.
    SolverError
        Naming a parameter combination that cannot be integrated.

    Examples
    --------
    >>> from statmech import Scenario
    >>> slow = stationary(Scenario(rule=["perceptron", "hebb"], drift=[0.001, 0.01], t=1))
    >>> slow.eps_g.sel(rule="perceptron").values.round(6)
    array([0.050387, 0.107451])
    >>> slow.attrs["absent"]
    'hebb (eta = 1, flip = 0, drift = 0.001) and 1 more: the length grows without bound'
    """
    _check(scenario)
    cells = list(scenario.cells())
    states = _states(cells)
    dataset = blank(scenario, seeds=None, title="statmech theory", source="stationary order-parameter equations")
    dataset = dataset.drop_vars([name for name in dataset.data_vars if name not in VARIABLES])
    dataset = dataset.isel(t=0, student=0, drop=True)
    arrays = arrays_of(dataset := dataset.copy(deep=True))
    for cell, state in zip(cells, states, strict=True):
        angle = angle_from_versine(np.float64(state.y))
        values = 1 - state.y, np.exp(state.log_length), angle / np.pi
        fill(arrays, cell.index, dict(zip(VARIABLES, map(np.asarray, values), strict=True)))
    return dataset.assign_attrs(_absent(cells, states))


def _check(scenario: Scenario) -> None:
    """Raise `ScenarioError` for a scenario whose states this module does not find."""
    if scenario.unsolved:
        raise ScenarioError([((), scenario.unsolved)])
    if any(cell.inputs.structured for cell in scenario.cells()):
        raise ScenarioError([(("inputs",), "stationary states are those of isotropic inputs")])
    if any(cell.schedule is not None for cell in scenario.cells()):
        raise ScenarioError([(("schedule",), "a learning rate that falls has no stationary state")])
    if not scenario.exchangeable:
        raise ScenarioError([(("start",), "stationary states are those of students that start alike")])


def _absent(cells: list[OnlineCell], states: list[State]) -> dict[str, str]:
    """Which cells have no stationary state, or no stationary length, reason by reason."""
    reasons: dict[str, list[str]] = {}
    for cell, state in zip(cells, states, strict=True):
        if state.absent:
            reasons.setdefault(state.absent, []).append(cell.described)
    counted = (f"{first}{f' and {len(more)} more' if more else ''}: {why}" for why, (first, *more) in reasons.items())
    return {"absent": text} if (text := "; ".join(counted)) else {}


def _states(cells: list[OnlineCell]) -> list[State]:
    """The state of each cell: found from the equations integrated to the first of `TIMES` from which there is one."""
    found: dict[int, State] = {}
    for time in TIMES:
        missing = [index for index in range(len(cells)) if index not in found or np.isnan(found[index].y)]
        alone = [replace(cells[index], K=1) for index in missing]  # no pairs, which take most of the time
        starts = solve_cells(alone, [time]) if alone else []
        with double_precision():
            found |= {at: _state(cells[at], start) for at, start in zip(missing, starts, strict=True)}
    return [found[index] for index in range(len(cells))]


def _state(cell: OnlineCell, start: Students) -> State:
    """The stationary state that the solver finds from these students."""
    from scipy.optimize import root

    terms, longest = partial(_terms_and_slope, *_setting(cell)), cell.rule.longest_start
    x = _variables(longest, start)
    free = _scales(terms, _logarithms(longest, x)[0])
    kept = np.array([not free, True])

    def balance(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state, scale = _logarithms(longest, np.concatenate([x[~kept], part]))
        value, slope = _balance(*terms(state))
        return value[kept], (slope * scale)[np.ix_(kept, kept)]

    with np.errstate(all="ignore"):
        solution = root(balance, x[kept], jac=True, method="hybr", options={"xtol": 1e-14})
        at, _ = _logarithms(longest, np.concatenate([x[~kept], solution.x]))
        reached = _is_state(at, balance(solution.x)[0], terms(at)[1].sum(axis=1)[np.ix_(kept, kept)])
    if not reached:
        return State(np.nan, np.nan, _reason(cell, terms(_logarithms(longest, x)[0])[0].sum(axis=1)))
    return State(np.nan if free else at[0], np.exp(at[1]), "R alone is stationary, not the length" if free else "")


def _variables(longest: float, start: Students) -> np.ndarray:
    """The variables of the solver, see `theory.stationary`, from students at one time."""
    log_length, y = start.log_length[0, 0], np.clip(start.y[0, 0], SMALLEST, 2 - 1e-15)
    short = -np.inf if np.isinf(longest) else 2 * min(log_length - np.log(longest), -1e-15)
    return np.array([2 * log_length if np.isinf(longest) else short - np.log(-np.expm1(short)), np.log(y / (2 - y))])


def _logarithms(longest: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log l and log y from the variables of the solver, and the derivative of each with respect to its variable."""
    log_y, scale_y = np.log(2) - np.logaddexp(0.0, -x[1]), 1 / (1 + np.exp(x[1]))
    if np.isinf(longest):
        return np.array([x[0] / 2, log_y]), np.array([0.5, scale_y])
    log_length = np.log(longest) - np.logaddexp(0.0, -x[0]) / 2
    return np.array([log_length, log_y]), np.array([0.5 / (1 + np.exp(x[0])), scale_y])


def _setting(cell: OnlineCell) -> tuple[Family, bool, Setting]:
    rule = family_of(cell.rule)
    parameters = {name: np.float64(getattr(cell.rule, name)) for name in rule.reals}
    return rule, cell.rule.has_closed_form, Setting(parameters, np.float64(cell.flip), cell.changing)


def _scales(terms: Terms, state: np.ndarray) -> bool:
    """True if the rates do not depend on the length."""
    one, other = (terms(state + np.array([shift, 0.0]))[0] for shift in (0.0, -0.5))
    return bool(np.allclose(one, other, rtol=1e-10, atol=0))


def _balance(terms: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log(gain/loss) of log l and of y, and their Jacobian, from the rates' terms (2, 3) and their slope (2, 3, 2)."""
    gains, losses = (np.maximum(sign * terms, 0.0).sum(axis=1) for sign in (1, -1))
    gain, loss = np.maximum(gains, SMALLEST), np.maximum(losses, SMALLEST)
    shares = np.where(terms > 0, 1 / gain[:, None], 1 / loss[:, None])  # of a loss, which is -term: both signs cancel
    return np.log(gain) - np.log(loss), np.einsum("rt, rtx -> rx", shares, slope)


def _is_state(state: np.ndarray, balance: np.ndarray, slope: np.ndarray) -> bool:
    """True if gains equal losses at a state that is inside all bounds and stable, by the Jacobian of the rates."""
    inside = np.all(np.isfinite(state)) and abs(state[0]) < LONGEST and np.log(SMALLEST) < state[1]
    if not inside or not np.all(np.abs(balance) < BALANCED) or not np.all(np.isfinite(slope)):
        return False
    return bool(np.all(np.linalg.eigvals(slope).real < 0))


def _reason(cell: OnlineCell, rates: np.ndarray) -> str:
    """Why no state was found, from the rates where the solver started."""
    if cell.drift == cell.decay == 0:
        return "without drift or decay no stable state was found"
    return f"the length {'grows' if rates[0] > 0 else 'shrinks'} without bound"


def _terms(rule: Family, closed: bool, setting: Setting, state: Array) -> Array:
    """The terms of the rates of log l and of log y, a matrix (2, 3), at log l and log y."""
    length, y = jnp.exp(state)
    single = averages(rule(**setting.parameters), closed, angle_from_versine(y), length, setting.flip)
    of_length, of_y = rate_terms(single, y, length, setting.changes)
    return jnp.stack([jnp.stack(of_length), jnp.stack(of_y) / y])


@partial(jax.jit, static_argnums=(0, 1))
def _compiled(rule: Family, closed: bool, setting: Setting, state: Array) -> tuple[Array, Array]:
    return _terms(rule, closed, setting, state), jax.jacfwd(_terms, argnums=3)(rule, closed, setting, state)


def _terms_and_slope(rule: Family, closed: bool, setting: Setting, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The terms of the rates (2, 3), and their derivatives with respect to log l and log y (2, 3, 2)."""
    terms, slope = _compiled(rule, closed, setting, state)
    return np.asarray(terms), np.asarray(slope)
