r"""Theory of the online Attentive Perceptron for N -> infinity: learning, evaluated features and decision errors.

**Learning.** Early stopping is a learning rule with random modulation. Let u and v be the normalised fields of student
and teacher, R their correlation, :math:`\sigma=\operatorname{sgn} v` and :math:`\kappa=\sigma u`. With features in
random order, the partial fields (u(s), v(s)) of the first fraction s are Brownian motions of correlation R. The bridge
:math:`u(s) - s\,u(1)` is independent of both u(1) and v(1), since :math:`\mathrm{cov} = sR - sR = 0`. Given
:math:`\kappa` the partial sums :math:`W(s) = \sigma u(s)` are therefore a Brownian bridge from 0 to :math:`\kappa`, for
any teacher. By reflection it crosses a level that rises from :math:`\tau` to :math:`\tau + c` (c = 0 except for
`centred`) with probability :math:`e^{-2\tau(\tau+c-\kappa)}`. A fraction :math:`\rho` of the examples are probes, which
do not stop. An example is therefore learnt with probability

.. math:: p(\kappa) = \Theta(-\kappa)\left[1 - A\,e^{2\tau\kappa}\right], \qquad A = (1-\rho)\,e^{-2\tau(\tau+c)},

and :math:`f = \sigma g` with g = 1 or 0 has :math:`\langle f^2\rangle = \langle p\rangle`,
:math:`\langle fu\rangle = \langle p\kappa\rangle`. In polar coordinates of the two fields the errors are a wedge of
angle :math:`\theta=\arccos R`, :math:`\kappa = -r\sin\psi` with :math:`0<\psi<\theta`, so that with Mills' ratio
:math:`M(b) = \int_0^\infty e^{-r^2/2-br}dr` and :math:`b = a\sin\psi`

.. math:: \langle\Theta(-\kappa)e^{a\kappa}\rangle = \frac1\pi\int_0^\theta\left[1-bM(b)\right]d\psi, \qquad
          \langle\Theta(-\kappa)\kappa e^{a\kappa}\rangle
            = -\frac1\pi\int_0^\theta\sin\psi\left[(1+b^2)M(b)-b\right]d\psi,

which are accurate as R -> 1. The response is :math:`\sqrt{2/\pi}\int\varphi(z)\,p(z\sin\theta)\,dz`. As
error_rate -> 0, or if all examples are probes, this is the plain perceptron.

**Features.** Given u up to s, v(1) has mean R u(s) and variance :math:`1-R^2s`. So W reaches the level at time s, for
the first time, with the density of Brownian motion without drift times :math:`2\,P(v(1)>0)`,

.. math:: \frac{\tau}{\sqrt{2\pi s^3}}\,e^{-(\tau+cs)^2/2s}\;2\,\Phi\!\left(\frac{R\,(\tau+cs)}{\sqrt{1-R^2s}}\right).

**Margin statistics.** :math:`\tau` and c follow from the running mean and variance of the probes' margins, averaged
over `memory` probes, a time :math:`T = \mathrm{memory}/(\rho N)` in t:
:math:`T\dot{\hat m} = lm - \hat m` and :math:`T\dot{\hat V} = l^2(1-m^2) + (lm-\hat m)^2 - \hat V` with
:math:`m = R\sqrt{2/\pi}`. This is exact for large memory and N at given T; T -> 0 if N alone is large.

**Checks.** Comparing the sum with the level at intervals of a fraction h of the features has the effect of a level that
is :math:`\rho_c\sqrt h` higher, as in `theory.classification.random_walks.approximate_decision`. The steps are not
Gaussian: each feature adds :math:`J_jx_j`, a product of two normals, and a chunk of c features has the characteristic
function :math:`\phi_c(\lambda) = (1+\lambda^2/c)^{-c/2}`. By Spitzer's formula for symmetric steps

.. math:: \rho_c = -\frac1\pi\int_0^\infty\lambda^{-2}\,\ln\frac{2\,[1-\phi_c(\lambda)]}{\lambda^2}\,d\lambda,

0.818 for c = 1, 0.599 for c = 16, and Siegmund's 0.583 for c -> infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import erfcx, ndtr

from statmech.classification.attentive_perceptron import Attention, AttentionCell
from statmech.classification.stopping_boundaries import Boundary, compute_stopping_level, compute_total_level_rise
from statmech.errors import SolverError
from statmech.numerics.gaussian import (
    GAUSSIAN_CUTOFF,
    NODES,
    Array,
    get_legendre_rule,
    make_composite_rule,
    normal_density,
    one_minus_cos,
)
from statmech.students.rules import RuleAverages
from statmech.students.student_geometry import angle_from_versine
from theory.online.student_states import ATOL, VERSINE_ATOL, compute_rate_terms

ATTENTION_ODE_REL_TOL = 1e-9
# panels and nodes of the quadrature in `compute_evaluated_fraction`
EVALUATED_FRACTION_PANEL_EDGES = np.array([0.0, *8.0 ** np.arange(-4.0, 1), 3.0, np.inf])
EVALUATED_FRACTION_PANEL_NODES = 16  # for an accuracy of 1e-10
# the integrand of `compute_overshoot` is constant below and negligible above these frequencies
MIN_FREQUENCY = 1e-2
MAX_FREQUENCY = 1e8
SOURCE = "order-parameter equations, N -> infinity at given chunk / N and memory / N"
LINE_POINTS = 60  # style: ok


class StoppingLevel(NamedTuple):
    """A stopping level in units of the student's length: initial value, rise, and the fraction of probes."""

    tau: Array
    slope: Array
    probes: Array


class AttentiveOrderParameters(NamedTuple):
    """Order parameters of attentive perceptrons: log l, y = 1 - R, and running mean and variance of margins.

    `work` and `errors` are integrals over t: the number of evaluated features over N, and of decision errors.
    """

    log_length: Array
    y: Array
    mean: Array
    variance: Array
    work: Array
    errors: Array


INITIAL_STUDENT_STATE = AttentiveOrderParameters(0.0, 1.0, 0.0, 1.0, 0.0, 0.0)


def compute_learning_averages(level: StoppingLevel, theta: Array) -> tuple[RuleAverages, Array]:
    r"""Compute the averages of the attentive learning rule and the fraction of decision errors.

    The learning probability is :math:`p(\kappa)`. For the integrals see the docstring of this module.

    Parameters
    ----------
    level : Watch
        The level in units of the student's length.
    theta : float or array
        Angle to the teacher.

    Returns
    -------
    averages : statmech.students.rules.RuleAverages
    errors : float or array
        Fraction of the examples that are misclassified and not learnt.

    Examples
    --------
    >>> averages, errors = compute_learning_averages(StoppingLevel(tau=1.0, slope=0.0, probes=0.05), np.pi / 2)
    >>> round(float(averages.ff + errors), 12)           # all mistakes are learnt or stopped
    0.5
    """
    x, weight = get_legendre_rule(NODES)
    a, psi = 2 * level.tau, np.multiply.outer(theta, x)
    stopping_factor = (1 - level.probes) * np.exp(-a * (level.tau + level.slope))
    sin = np.sin(psi)
    b = np.expand_dims(a, -1) * sin
    mills = np.sqrt(np.pi / 2) * erfcx(b / np.sqrt(2))
    errors = stopping_factor * theta / np.pi * ((1 - b * mills) @ weight)
    lost_fu = -stopping_factor * theta / np.pi * ((sin * ((1 + b**2) * mills - b)) @ weight)
    averages = RuleAverages(
        fu=-one_minus_cos(theta) / np.sqrt(2 * np.pi) - lost_fu,
        response=(1 - stopping_factor * erfcx(a * np.sin(theta) / np.sqrt(2))) / np.sqrt(2 * np.pi),
        ff=theta / np.pi - errors,
    )
    return averages, errors


def compute_evaluated_fraction(level: StoppingLevel, y: Array, spacing: Array = 0.0) -> Array:
    r"""Return the mean fraction of features that an attentive student evaluates, with probes and delayed checks.

    With :math:`s = \tau^2/x^2` the first-passage density is a piece of a Gaussian,

    .. math:: 1 - \int_\tau^\infty 2\varphi(x)\,(1-s)\,e^{-c\tau-c^2s/2}\,2\Phi(\cdot)\,dx .

    Parameters
    ----------
    level : Watch
        The level in units of the student's length.
    y : float or array
        :math:`1 - R`.
    spacing : float or array
        Spacing of the checks, as a fraction of the features.

    Returns
    -------
    float or array

    Examples
    --------
    >>> level = StoppingLevel(tau=np.array([1.0, 0.5]), slope=0.0, probes=np.array([0.05, 1.0]))
    >>> compute_evaluated_fraction(level, y=np.array([1.0, 0.3])).round(2)
    array([0.86, 1.  ])
    """
    tau, c, R, y, spacing = (np.expand_dims(value, -1) for value in (level.tau, level.slope, 1 - y, y, spacing))
    edges = np.add.outer(EVALUATED_FRACTION_PANEL_EDGES, level.tau)
    x, weight = make_composite_rule(np.minimum(edges, GAUSSIAN_CUTOFF), EVALUATED_FRACTION_PANEL_NODES)
    s = (tau / np.maximum(x, tau)) ** 2
    right = ndtr(R * (tau + c * s) / np.sqrt(np.maximum(1 - s + s * y * (2 - y), 1e-300)))
    stops = weight * 4 * normal_density(x) * np.exp(-c * tau - c**2 * s / 2) * right
    return 1 - (1 - level.probes) * np.sum(stops * (1 - s - spacing / 4), axis=-1)


@cache
def compute_overshoot(chunk: int) -> float:
    r"""Return the mean overshoot of an attentive student's sum over its level, in standard deviations of a step.

    A step is a sum of `chunk` products of two normals, and the overshoot :math:`\rho_c` follows from Spitzer's formula
    (see the docstring of this module).

    Parameters
    ----------
    chunk : int
        Number of features between two checks.

    Returns
    -------
    float

    Examples
    --------
    >>> round(compute_overshoot(1), 4), round(compute_overshoot(16), 4), round(compute_overshoot(10**6), 4)
    (0.8183, 0.5988, 0.5826)
    """
    log_frequency, weight = make_composite_rule(np.linspace(np.log(MIN_FREQUENCY), np.log(MAX_FREQUENCY), 25))
    frequency = np.exp(log_frequency)
    complement = -np.expm1(-chunk / 2 * np.log1p(frequency**2 / chunk))
    total = np.sum(weight * np.log(2 * complement / frequency**2) / frequency)
    return float(-(total - MIN_FREQUENCY * (3 + 6 / chunk) / 12) / np.pi)


class AttentionSettings(NamedTuple):
    """Parameters of several students, arrays (batch,), and their common boundary."""

    boundary: Boundary
    error_rate: Array
    probes: Array
    forgetting_rate: Array  # the rate 1/T of the margin statistics
    checkpoint_spacing: Array  # spacing of the checks, as a fraction of the features
    overshoot_rise: Array  # effective rise of the level due to the spacing of the checks


def collect_cell_settings(cells: Sequence[AttentionCell]) -> AttentionSettings:
    """Collect the parameters of attentive cells with the same boundary."""
    rows = [
        (
            cell.error_rate,
            cell.probes,
            cell.probes * cell.N / cell.memory,
            cell.chunk / cell.N,
            compute_overshoot(cell.chunk) * np.sqrt(cell.chunk / cell.N),
        )
        for cell in cells
    ]
    return AttentionSettings(cells[0].boundary, *np.array(rows).T)


def compute_stopping_levels(settings: AttentionSettings, state: AttentiveOrderParameters) -> StoppingLevel:
    """Compute the stopping levels of attentive students in these states, raised by the overshoot."""
    length = np.exp(state.log_length)
    mean, variance = state.mean / length, state.variance / length**2
    tau = compute_stopping_level(settings.boundary, settings.error_rate, mean, variance)
    return StoppingLevel(
        tau + settings.overshoot_rise, compute_total_level_rise(settings.boundary, mean), settings.probes
    )


def compute_order_parameter_rates(
    settings: AttentionSettings, state: AttentiveOrderParameters
) -> AttentiveOrderParameters:
    """Compute the time derivatives of the states of attentive students."""
    level, length, R = compute_stopping_levels(settings, state), np.exp(state.log_length), 1 - state.y
    averages, errors = compute_learning_averages(level, angle_from_versine(state.y))
    log_length, y = map(sum, compute_rate_terms(averages, state.y, length, None))
    mean = length * R * np.sqrt(2 / np.pi)
    second = length**2 * (1 - R**2 * 2 / np.pi) + (mean - state.mean) ** 2
    return AttentiveOrderParameters(
        log_length,
        y,
        settings.forgetting_rate * (mean - state.mean),
        settings.forgetting_rate * (second - state.variance),
        work=compute_evaluated_fraction(level, state.y, settings.checkpoint_spacing),
        errors=errors,
    )


def solve_cells(cells: Sequence[AttentionCell], times: Sequence[float]) -> AttentiveOrderParameters:
    """Integrate the states (cells, T) of attentive students with a common boundary to each time.

    Initial weights are drawn from N(0, 1). All students share the step size, which the largest of their errors limits.
    Raises `SolverError`.

    >>> from statmech import Attention
    >>> cells = Attention(attention="brownian-bridge", error_rate=[0.05, 0.1], t=[5]).cells()
    >>> solve_cells(list(cells), [5.0]).y.round(3)
    array([[0.1...],
           [0.1...]])
    """
    settings, kinds = collect_cell_settings(cells), len(INITIAL_STUDENT_STATE)

    def field(_: float, y: np.ndarray) -> np.ndarray:
        state = AttentiveOrderParameters(*y.reshape(-1, kinds).T)
        return np.array(compute_order_parameter_rates(settings, state._replace(y=np.clip(state.y, 0.0, 2.0)))).T.ravel()

    atol = [ATOL, VERSINE_ATOL, ATOL, ATOL, ATOL, ATOL] * len(cells)
    span, band = (0.0, max(times[-1], 1e-12)), kinds - 1  # banded: students are independent
    start = np.tile(INITIAL_STUDENT_STATE, len(cells))
    solution = solve_ivp(
        field, span, start, "LSODA", times, rtol=ATTENTION_ODE_REL_TOL, atol=atol, lband=band, uband=band
    )
    if not solution.success:
        rates_named = ", ".join(f"{cell.error_rate:g}" for cell in cells[:5])
        equations = f"the order-parameter equations of {cells[0].name} (error_rate = {rates_named})"
        raise SolverError(f"{equations} stop before t = {times[-1]:g}: {solution.message}")
    return AttentiveOrderParameters(*np.moveaxis(solution.y.reshape(len(cells), kinds, -1), 1, 0))


def solve(scenario: Attention, cells: Sequence[AttentionCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell of attentive students.

    Cells with the same boundary are solved in parallel. The docstring of this module has the equations.
    """
    groups: dict[Boundary, list[AttentionCell]] = {}
    for cell in cells:
        groups.setdefault(cell.boundary, []).append(cell)
    variables: dict[tuple[int, ...], dict[str, np.ndarray]] = {}
    for members in groups.values():
        states = solve_cells(members, scenario.t)
        for index, cell in enumerate(members):
            state = AttentiveOrderParameters(*(values[index] for values in states))
            variables[cell.index] = compute_variables(state, np.asarray(scenario.t))
    return (variables[cell.index] for cell in cells)


def compute_variables(state: AttentiveOrderParameters, t: np.ndarray) -> dict[str, np.ndarray]:
    """Return the variables of a solved attentive student at each time.

    Rates are averaged since the previous time, or since the start for the first time, and NaN at t = 0.
    """
    span = np.diff(t, prepend=0.0)
    lasting = np.where(span > 0, span, np.nan)
    return {
        "R": 1 - state.y,
        "length": np.exp(state.log_length),
        "eps_g": angle_from_versine(state.y) / np.pi,
        "features": np.diff(state.work, prepend=0.0) / lasting,
        "decision_error": np.diff(state.errors, prepend=0.0) / lasting,
        "work": state.work,
    }
