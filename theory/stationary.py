r"""Stationary states of online learning, where a teacher that drifts or weights that decay balance what is learnt.

The rates of `theory.online`, of :math:`\log l` and :math:`y = 1-R`, are sums of gains and losses that are equal there:

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

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import ScenarioError
from statmech.gaussian import Array
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.results.dataset import arrays_of, blank, fill
from statmech.rules import Rule
from statmech.scenarios.online import Cell, Scenario
from theory.averages import averages
from theory.online import Changes, Students, changed, rates
from theory.trajectories import solve_cells

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
    """What the rates of one cell depend on besides the state."""

    parameters: dict[str, Array]
    flip: Array
    changes: Changes


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
    if any(cell.schedule is not None for cell in scenario.cells()):
        raise ScenarioError([(("schedule",), "a learning rate that falls has no stationary state")])
    if not scenario.exchangeable:
        raise ScenarioError([(("start",), "stationary states are those of students that start alike")])


def _absent(cells: list[Cell], states: list[State]) -> dict[str, str]:
    """Which cells have no stationary state, or no stationary length, reason by reason."""
    reasons: dict[str, list[str]] = {}
    for cell, state in zip(cells, states, strict=True):
        if state.absent:
            reasons.setdefault(state.absent, []).append(cell.described)
    counted = (f"{first}{f' and {len(more)} more' if more else ''}: {why}" for why, (first, *more) in reasons.items())
    return {"absent": text} if (text := "; ".join(counted)) else {}


def _states(cells: list[Cell]) -> list[State]:
    """The state of each cell: found from the equations integrated to the first of `TIMES` from which there is one."""
    found: dict[int, State] = {}
    for time in TIMES:
        missing = [index for index in range(len(cells)) if index not in found or np.isnan(found[index].y)]
        alone = [cells[index] for index in missing]
        starts = [students for students in solve_cells(alone, [time])] if alone else []
        with jax.enable_x64(True):
            found |= {at: _state(cells[at], start) for at, start in zip(missing, starts, strict=True)}
    return [found[index] for index in range(len(cells))]


def _state(cell: Cell, start: Students) -> State:
    """The stationary state that the solver finds from these students."""
    from scipy.optimize import root

    rule, setting = family_of(cell.rule), _setting(cell)
    closed, x = cell.rule.has_closed_form, _variables(cell.rule.longest_start, start)
    free = _scales(rule, closed, x, setting)
    kept = np.array([False, True]) if free else np.array([True, True])

    def balance(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = np.where(kept, 0.0, x)
        at[kept] = part
        value, slope = _balance_and_slope(rule, closed, at, setting)
        return np.asarray(value)[kept], np.asarray(slope)[np.ix_(kept, kept)]

    with np.errstate(all="ignore"):
        solution = root(balance, x[kept], jac=True, method="hybr", options={"xtol": 1e-14})
    at = x.copy()
    at[kept] = solution.x
    if not _is_state(rule, closed, at, setting, kept, balance(solution.x)[0]):
        return State(np.nan, np.nan, _reason(rule, closed, x, setting))
    log_length, log_y = np.asarray(_log_state(rule, at))
    return State(np.nan if free else log_length, np.exp(log_y), "R alone is stationary, not the length" if free else "")


def _variables(longest: float, start: Students) -> np.ndarray:
    """The variables of the solver, see `theory.stationary`, from students at one time."""
    log_length, y = start.log_length[0, 0], np.clip(start.y[0, 0], SMALLEST, 2 - 1e-15)
    short = -np.inf if np.isinf(longest) else 2 * min(log_length - np.log(longest), -1e-15)
    return np.array([2 * log_length if np.isinf(longest) else short - np.log(-np.expm1(short)), np.log(y / (2 - y))])


def _log_state(rule: Family, x: Array) -> Array:
    """log l and log y from the variables of the solver."""
    kind: type[Rule] = rule.kind
    longest = kind.longest_start
    log_length = x[0] / 2 if np.isinf(longest) else np.log(longest) - jnp.logaddexp(0.0, -x[0]) / 2
    return jnp.stack([log_length, np.log(2) - jnp.logaddexp(0.0, -x[1])])


def _setting(cell: Cell) -> Setting:
    parameters = {name: np.float64(getattr(cell.rule, name)) for name in family_of(cell.rule).reals}
    return Setting(parameters, np.float64(cell.flip), Changes(cell.drift, cell.decay, np.inf))


def _scales(rule: Family, closed: bool, x: np.ndarray, setting: Setting) -> bool:
    """True if the rates do not depend on the length."""
    one, other = (_compiled_terms(rule, closed, x + np.array([shift, 0.0]), setting) for shift in (0.0, 1.0))
    return bool(np.allclose(one, other, rtol=1e-10, atol=0))


def _is_state(
    rule: Family, closed: bool, x: np.ndarray, setting: Setting, kept: np.ndarray, balance: np.ndarray
) -> bool:
    """True if gains equal losses at a state that is inside all bounds and stable."""
    inside = np.all(np.isfinite(x)) and abs(x[0]) < LONGEST and np.log(SMALLEST) < x[1]
    if not inside or not np.all(np.abs(balance) < BALANCED):
        return False
    slope = np.asarray(_rates_and_slope(rule, closed, x, setting)[1])
    slope = np.linalg.solve(np.asarray(jax.jacfwd(_log_state, argnums=1)(rule, x)), slope)[np.ix_(kept, kept)]
    return bool(np.all(np.isfinite(slope)) and np.all(np.linalg.eigvals(slope).real < 0))


def _reason(rule: Family, closed: bool, x: np.ndarray, setting: Setting) -> str:
    """Why no state was found, from the rates where the solver started."""
    along, _ = np.asarray(_rates_and_slope(rule, closed, x, setting)[0])
    if setting.changes.drift == setting.changes.decay == 0:
        return "without drift or decay no stable state was found"
    return f"the length {'grows' if along > 0 else 'shrinks'} without bound"


def _terms(rule: Family, closed: bool, x: Array, setting: Setting) -> Array:
    """The terms of the two rates, of log l and of log y, as a matrix (2, 3)."""
    length, y = jnp.exp(_log_state(rule, x))
    theta = angle_from_versine(y)
    fu, response, ff = averages(rule(**setting.parameters), closed, theta, length, setting.flip)
    spread, (drift, decay, _) = ff / (2 * length**2), setting.changes
    turned = jnp.stack([-(2 - y) * response / length, (1 - y) * spread / y, (1 - y) * drift / y])
    return jnp.stack([jnp.stack([fu / length, spread, -decay * jnp.ones_like(y)]), turned])


def _balance(rule: Family, closed: bool, x: Array, setting: Setting) -> Array:
    """log(gain/loss) of log l and of y."""
    terms = _terms(rule, closed, x, setting)
    gain, loss = (jnp.sum(jnp.maximum(sign * terms, 0.0), axis=1) for sign in (1, -1))
    return jnp.log(jnp.maximum(gain, SMALLEST)) - jnp.log(jnp.maximum(loss, SMALLEST))


def _rates(rule: Family, closed: bool, x: Array, setting: Setting) -> Array:
    """The time derivatives of log l and log y, by `theory.online`."""
    log_length, log_y = _log_state(rule, x)
    students = Students(log_length[None], jnp.exp(log_y)[None], jnp.ones(1))
    plain = rates(rule(**setting.parameters), closed, students, setting.flip, paired=False)
    all_rates = changed(plain, students, setting.changes)
    return jnp.concatenate([all_rates.log_length, all_rates.y / students.y])


def _with_slope(function: Any) -> Any:
    """A function of the state and its Jacobian, compiled for each rule."""

    def both(rule: Family, closed: bool, x: Array, setting: Setting) -> tuple[Array, Array]:
        return function(rule, closed, x, setting), jax.jacfwd(function, argnums=2)(rule, closed, x, setting)

    return jax.jit(both, static_argnums=(0, 1))


_compiled_terms = jax.jit(_terms, static_argnums=(0, 1))
_balance_and_slope = _with_slope(_balance)
_rates_and_slope = _with_slope(_rates)
