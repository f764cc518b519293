r"""Fluctuations and biases of order 1/N for ensembles of equal students that learn online, and for their votes.

**Pairs.** Two students' :math:`a_k = (\log l_k, \log\theta_k)` and their transverse cosine :math:`c_{12}` form a closed
chain, whatever the ensemble, with :math:`\dot a_k = F(a_k)` and :math:`\dot c_{12} = F_c(a_1, a_2, c_{12})`. Its
covariance and bias obey the equations of `theory.online.student_fluctuations`. In an ensemble with equal starts,
students are exchangeable, and there are 13 different covariances, all independent of K:

.. math:: V_1 = \langle a_1a_1\rangle, \quad V_2 = \langle a_1a_2\rangle, \quad
          W_1 = \langle a_1c_{12}\rangle, \quad W_2 = \langle a_3c_{12}\rangle, \quad
          S_0 = \langle c_{12}^2\rangle, \quad S_1 = \langle c_{12}c_{13}\rangle, \quad
          S_2 = \langle c_{12}c_{34}\rangle.

With :math:`A = F'`, :math:`g = \partial F_c/\partial a_1 = \partial F_c/\partial a_2`,
:math:`h = \partial F_c/\partial c` and :math:`D` the covariances of one step (`theory.online.student_fluctuations`),

.. math::
    \dot V_1 &= AV_1 + V_1A^\mathsf{T} + D, \qquad \dot V_2 = AV_2 + V_2A^\mathsf{T} + D, \\
    \dot W_1 &= (A + h)W_1 + (V_1 + V_2)\,g + D, \qquad \dot W_2 = (A + h)W_2 + 2V_2\,g + D, \\
    \dot S_0 &= 2hS_0 + 4g\cdot W_1 + D, \quad \dot S_1 = 2hS_1 + 2g\cdot(W_1 + W_2) + D, \quad
    \dot S_2 = 2hS_2 + 4g\cdot W_2 + D, \\
    \dot m_c &= 2g\cdot m_a + hm_c + \tfrac12F_c'' : C + b_c
        - \tfrac12(2g\cdot F + hF_c + \partial_tF_c).

**A step with decay and drift.** Before the example, decay multiplies the weights by :math:`1 - \nu/N`, which increases
the example's :math:`\tau` by the inverse factor: :math:`b_c` gains :math:`\nu\,\eta\,\partial F_c/\partial\eta`. After
the example, the teacher turns in a random direction. Its projections on the students' perpendicular parts are
:math:`\zeta_k` with :math:`\langle\zeta_1\zeta_2\rangle = c`, so

.. math:: \xi_{\theta_k} = \delta\cot\theta - \sqrt{2\delta}\,\zeta_k, \qquad
          \xi_{12} = 2\delta(1-c)\cot^2\theta - \sqrt{2\delta}\,(1-c)\cot\theta\,(\zeta_1 + \zeta_2),

and, as q does not change, :math:`b_c = \tfrac12\sum_{kj}\partial^2c/\partial R_k\partial R_j
\langle p_kp_j\rangle`, :math:`\langle p_kp_j\rangle = \delta^2\cos^2\theta + 2\delta\sin^2\theta\,c_{kj}`, plus the
effect of the example on the drift.

**Integration.** The covariances do not act on the order parameters, so that the equations of the latter are solved
first (`theory.online.order_parameter_equations`). F and its derivatives are compiled, D and b use NumPy
(`theory.online.student_fluctuations`), and `theory.numerics.stiff_and_linear_equations` solves the linear equations.

**Ensemble means.** Standard deviations and biases at finite N for q, the weight mean and the vote of K students follow
from the 13 covariances and 3 biases, which hold for any K. The means over students and over pairs, :math:`\bar a` and
:math:`\bar c`, have the covariances

.. math:: \bar V = \frac{V_1 + (K-1)V_2}{K}, \quad \bar W = \frac{2W_1 + (K-2)W_2}{K}, \quad
          \bar S = \frac{2S_0 + 4(K-2)S_1 + (K-2)(K-3)S_2}{K(K-1)}.

**The vote** changes to first order with :math:`\bar\theta` and :math:`\bar c` alone, by the same amount as
:math:`\epsilon_g(\theta, c)` of equal students: its variance is :math:`\nabla\epsilon_g\cdot\operatorname{Cov}\cdot
\nabla\epsilon_g`. The bias would require second derivatives for unequal students, and is not computed.

**The weight mean** is a perceptron with the angle :math:`\pi\epsilon_g = \operatorname{atan2}(\sqrt\beta, \alpha)`,

.. math:: \alpha = \frac1K\sum_kl_k\cos\theta_k, \qquad
          \beta = \frac1{K^2}\sum_{kj}l_kl_j\sin\theta_k\sin\theta_j\,c_{kj},

whose mean to order 1/N follows from the means for one student and for one pair.

**q** of a student is the mean over the others, so that its variance contains the covariances between
:math:`\theta_1, \bar\theta_{k>1}` and :math:`\bar c_{1k}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import ScenarioError, SolverError
from statmech.kinds.online_learning import OnlineCell
from statmech.numerics.gaussian import Array
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.runtime.compiled_programs import cached_program
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.students.ensemble_vote import majority_vote_error
from statmech.students.rules import Rule
from statmech.students.student_geometry import angle_from_versine
from theory.numerics import stiff_and_linear_equations
from theory.online import order_parameter_equations
from theory.online.student_fluctuations import (
    UpdateProducts,
    compute_step_moments,
    compute_update_products,
    dot_last_axis,
)
from theory.online.student_fluctuations import make_initial_fluctuations as make_student_fluctuations
from theory.online.student_states import Students, make_initial_students

STATE_BATCH_SIZE = 32  # one compiled program serves any number of states
MIN_STANDARD_DEVIATION = 1e-100  # keeps error scales positive
MIN_COSINE_EIGENVALUE_RATIO = 0.05  # lower bound on (1 + (n - 1) c)/(1 - c), since averages diverge as it vanishes
OPPOSED_STUDENTS_MESSAGE = (
    "corrections of order 1/N to q, the weight mean and the vote are not supported for students that start almost as "
    "opposed as they can be: increase q in start, or remove corrections"
)
TRANSVERSE_COSINE_TOL = 1e-9  # students with a smaller |c| are treated as independent
FLUCTUATION_VECTOR_SIZE = 16
L1, T1, L2, T2, C, ETA = range(6)
VOTE_DIFFERENCE_STEP = 1e-2  # relative to the scale of the vote; errors of derivatives are of fourth order
CENTRAL_DIFFERENCE_STENCIL = np.array([-2, -1, 1, 2]), np.array([1, -8, 8, -1]) / 12


class PairFluctuations(NamedTuple):
    """N times the covariances and biases of a = (log l, log theta) and c for equal students at times (T,).

    V1 and V2 have the shape (T, 2, 2), W1, W2 and the bias of a (T, 2), and S0, S1, S2 and the bias of c (T,).
    """

    V1: Array
    V2: Array
    W1: Array
    W2: Array
    S0: Array
    S1: Array
    S2: Array
    bias: Array
    bias_c: Array


FLUCTUATION_INDICES = PairFluctuations(  # positions in the vector (..., 16)
    V1=np.array([[0, 1], [1, 2]]),
    V2=np.array([[3, 4], [4, 5]]),
    W1=np.array([6, 7]),
    W2=np.array([8, 9]),
    S0=10,
    S1=11,
    S2=12,
    bias=np.array([13, 14]),
    bias_c=15,
)


class CoordinatePairs(NamedTuple):
    """Values for pairs of coordinates of the rates F.

    The coordinates are log l and log theta of both students, c and log eta.
    """

    l1_l1: Any
    l1_theta1: Any
    theta1_theta1: Any
    l1_l2: Any
    l1_theta2: Any
    theta1_theta2: Any
    l1_c: Any
    theta1_c: Any
    c_c: Any
    eta_eta: Any


COORDINATE_PAIRS = CoordinatePairs(
    (L1, L1), (L1, T1), (T1, T1), (L1, L2), (L1, T2), (T1, T2), (L1, C), (T1, C), (C, C), (ETA, ETA)
)


@dataclass(frozen=True)
class PairEquations:
    """Static arguments of the compiled program: the rule, and whether it has closed forms."""

    rule: RealParameterFamily
    uses_closed_form: bool


class PairParameters(NamedTuple):
    """Parameters of the rates F: the parameters of the rule, the label noise, and the time dependence."""

    parameters: dict[str, Array]
    flip: Array
    changes: TimeDependence


class EqualStudentStates(NamedTuple):
    """Time, log l, log theta and c of equal students, as arrays (T,)."""

    t: np.ndarray
    log_length: np.ndarray
    log_theta: np.ndarray
    c: np.ndarray


class PairRates(NamedTuple):
    """Rates F of a (T, 2) and F_c of c12 (T,), with their derivatives.

    First derivatives are A = dF/da (T, 2, 2), g = dF_c/da1 (T, 2) and h = dF_c/dc (T,). `A_curvature` (T, 2, 2, 2) has
    the second derivatives of F with respect to a. The second derivatives of F_c are with respect to (a1, a1), (a1, a2),
    (a1, c) and (c, c). `F_eta` (T, 2) and `F_c_eta` (T,) are with respect to the logarithm of the learning rate, whose
    time derivative is `log_eta_rate` (T,). `b` (T, 2) is the second order of a.
    """

    F: np.ndarray
    F_c: np.ndarray
    A: np.ndarray
    A_curvature: np.ndarray
    g: np.ndarray
    h: np.ndarray
    F_c_a1_a1: np.ndarray
    F_c_a1_a2: np.ndarray
    F_c_a1_c: np.ndarray
    F_c_c_c: np.ndarray
    F_eta: np.ndarray
    F_c_eta: np.ndarray
    log_eta_rate: np.ndarray
    b: np.ndarray


def solve_pair_fluctuations(cell: OnlineCell, times: Iterable[float]) -> PairFluctuations:
    """Compute the covariances and biases of an ensemble of equal students at each time.

    Parameters
    ----------
    cell
        A parameter combination of an online scenario with equal starts of all students.
    times
        Increasing times.

    Returns
    -------
    PairFluctuations
        Arrays with a leading axis of times. They depend on K only through the initial q.

    Raises
    ------
    ScenarioError
        If the students start almost as opposed as they can be.
    SolverError
        If the coefficients change too fast.

    Examples
    --------
    >>> from statmech import Scenario
    >>> [cell] = Scenario(rule="hebb", K=2, t=[1], start={"R": 0.2}).cells()
    >>> solve_pair_fluctuations(cell, [0.0]).S0
    array([0.])
    """
    t = np.asarray(list(times), float)
    first = make_initial_students(cell).c[0]
    if (1 + (get_max_averaged_students(cell) - 1) * first) / (1 - min(first, 0.0)) < MIN_COSINE_EIGENVALUE_RATIO:
        raise ScenarioError([(("start",), OPPOSED_STUDENTS_MESSAGE)])
    if first > 1 - TRANSVERSE_COSINE_TOL:
        return _solve_identical_students(cell, t)
    try:
        with use_cpu_double_precision():
            return unpack_fluctuations(
                stiff_and_linear_equations.solve_linear_odes(
                    lambda t: _compute_linear_coefficients(cell, t),
                    make_initial_fluctuations(cell),
                    t,
                    _compute_fluctuation_scales,
                )
            )
    except SolverError as error:
        raise SolverError(f"cannot solve for the pair fluctuations of {cell.message_description}: {error}") from None


def _solve_identical_students(cell: OnlineCell, times: np.ndarray) -> PairFluctuations:
    """Compute the fluctuations of an ensemble whose students start identical and remain identical."""
    [(_, student)] = order_parameter_equations.solve_with_fluctuations([cell], times)
    V = student.covariance[..., [0, 1, 1, 2], 0].reshape(-1, 2, 2)
    zero_vectors, zeros = np.zeros((*times.shape, 2)), np.zeros(times.shape)
    return PairFluctuations(V, V, zero_vectors, zero_vectors, zeros, zeros, zeros, student.bias[..., 0], zeros)


def get_max_averaged_students(cell: OnlineCell) -> int:
    """Return the maximum number of different students in one average.

    The number is 4 for any K, but at most K for opposed students, since four opposed students need not exist.

    >>> from statmech import Scenario
    >>> scenarios = [Scenario(rule="hebb", K=[2, 9], t=[1], start=start) for start in ("drawn", {"R": 0.2})]
    >>> [[get_max_averaged_students(cell) for cell in scenario.cells()] for scenario in scenarios]
    [[4, 4], [2, 4]]
    """
    opposed = make_initial_students(cell).c[0] < -TRANSVERSE_COSINE_TOL
    return min(cell.K, 4) if opposed else 4


def make_initial_fluctuations(cell: OnlineCell) -> np.ndarray:
    """Return the initial covariances and biases of an ensemble as a vector (16,).

    Given students have no fluctuations. For randomly drawn students, c has the variance 1/N, and all other terms in c
    vanish to order 1/N.
    """
    x = np.zeros(FLUCTUATION_VECTOR_SIZE)
    if cell.start is None:
        student = make_student_fluctuations(np.asarray([np.pi / 2]), random=True)
        ll, lt, tt = student.covariance[:, 0]
        x[FLUCTUATION_INDICES.V1], x[FLUCTUATION_INDICES.bias], x[FLUCTUATION_INDICES.S0] = (
            [[ll, lt], [lt, tt]],
            student.bias[:, 0],
            1.0,
        )
    return x


def unpack_fluctuations(x: np.ndarray) -> PairFluctuations:
    """Unpack covariances and biases from vectors (..., 16)."""
    return PairFluctuations(*(x[..., index] for index in FLUCTUATION_INDICES))


def pack_fluctuations(fluctuations: PairFluctuations) -> np.ndarray:
    """Pack an ensemble's covariances and biases into vectors (T, 16), with symmetrised matrices."""
    x = np.empty((*np.shape(fluctuations.S0), FLUCTUATION_VECTOR_SIZE))
    for index, part in zip(
        FLUCTUATION_INDICES,
        fluctuations._replace(V1=_add_transpose(fluctuations.V1) / 2, V2=_add_transpose(fluctuations.V2) / 2),
        strict=True,
    ):
        x[..., index] = part
    return x


def _compute_fluctuation_scales(x: np.ndarray) -> np.ndarray:
    """Compute the scale of each covariance and bias (..., 16) of an ensemble for relative errors.

    Scales follow from the variances of the two variables.
    """
    l, t, c = (
        np.sqrt(x[..., index]) + MIN_STANDARD_DEVIATION
        for index in (*np.diag(FLUCTUATION_INDICES.V1), FLUCTUATION_INDICES.S0)
    )
    students, pairs = [l * l, l * t, t * t], [l * c, t * c]
    biases = [np.maximum(l, l * l), np.maximum(t, t * t), np.maximum(c, c * c)]
    return np.stack([*students, *students, *pairs, *pairs, *[c * c] * 3, *biases], axis=-1)


def _compute_linear_coefficients(cell: OnlineCell, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the coefficients of the equation x' = M x + d of an ensemble's covariances and biases.

    Returns M (T, 16, 16) and d (T, 16).
    """
    states = _solve_states(cell, t)
    field = _compute_pair_rates(cell, states)
    rates = [
        pack_fluctuations(_compute_fluctuation_rates(field, unpack_fluctuations(x)))
        for x in np.eye(FLUCTUATION_VECTOR_SIZE)
    ]
    return np.stack(rates, axis=-1), pack_fluctuations(_compute_noise_terms(cell, states, field))


def _solve_states(cell: OnlineCell, t: np.ndarray) -> EqualStudentStates:
    """Solve for the states of an ensemble's students at increasing times (T,)."""
    batches = []
    for first in range(0, t.size, STATE_BATCH_SIZE):
        [students] = order_parameter_equations.solve_cells([cell], _pad_to_batch(t[first : first + STATE_BATCH_SIZE]))
        batches.append([np.asarray(part)[: t.size - first, 0] for part in students])
    log_length, y, c = (np.concatenate(part) for part in zip(*batches, strict=True))
    return EqualStudentStates(t, log_length, np.log(angle_from_versine(y)), c)


def _pad_to_batch(x: np.ndarray) -> np.ndarray:
    """Pad an array with its last value to the length `STATE_BATCH_SIZE`."""
    return np.pad(x, (0, STATE_BATCH_SIZE - x.size), mode="edge")


def _compute_pair_rates(cell: OnlineCell, states: EqualStudentStates) -> PairRates:
    """Compute the rates F of a pair of students and their derivatives at each state."""
    equations = PairEquations(get_real_parameter_family(cell.rule), cell.rule.has_closed_form)
    parameters = {name: np.asarray(getattr(cell.rule, name), float) for name in equations.rule.real_parameter_names}
    problem, batches = PairParameters(parameters, np.asarray(cell.flip, float), cell.time_dependence), []
    for first in range(0, states.t.size, STATE_BATCH_SIZE):
        batch = (_pad_to_batch(part[first : first + STATE_BATCH_SIZE]) for part in states)
        parts = _compute_rate_derivatives(equations, problem, *batch)
        batches.append([np.asarray(part)[..., : states.t.size - first] for part in parts])
    F, slopes, bends, log_eta_rate, b = (
        np.moveaxis(np.concatenate(part, axis=-1), -1, 0) for part in zip(*batches, strict=True)
    )
    slope, bend = (CoordinatePairs(*np.moveaxis(part, 1, 0)) for part in (slopes, bends))
    by_l, by_theta, by_c, by_eta = slope.l1_l1, slope.theta1_theta1, slope.c_c, slope.eta_eta  # first coordinate varies
    same_student = (bend.l1_l1, bend.l1_theta1, bend.theta1_theta1)
    two_students = (bend.l1_l2, bend.l1_theta2, bend.theta1_theta2)
    return PairRates(
        F=F[:, 0, :2],
        F_c=F[:, 0, 2],
        A=np.stack([by_l[:, :2], by_theta[:, :2]], axis=-1),
        A_curvature=np.stack([_make_symmetric_matrices(same_student, row) for row in (0, 1)], axis=1),
        g=np.stack([by_l[:, 2], by_theta[:, 2]], axis=-1),
        h=by_c[:, 2],
        F_c_a1_a1=_make_symmetric_matrices(same_student, 2),
        F_c_a1_a2=_make_symmetric_matrices(two_students, 2),
        F_c_a1_c=np.stack([bend.l1_c[:, 2], bend.theta1_c[:, 2]], axis=-1),
        F_c_c_c=bend.c_c[:, 2],
        F_eta=by_eta[:, :2],
        F_c_eta=by_eta[:, 2],
        log_eta_rate=log_eta_rate,
        b=b,
    )


def _make_symmetric_matrices(second: tuple[np.ndarray, ...], row: int) -> np.ndarray:
    """Make symmetric matrices (T, 2, 2) from the second derivatives ll, lt and tt."""
    ll, lt, tt = (derivative[:, row] for derivative in second)
    return np.moveaxis(np.array([[ll, lt], [lt, tt]]), -1, 0)


@cached_program
def _compute_rate_derivatives(
    equations: PairEquations, problem: PairParameters, t: Array, log_length: Array, log_theta: Array, c: Array
) -> tuple[Array, ...]:
    """Compute a pair's rates F of (log l, log theta, c12) with first and second derivatives at states (T,).

    Derivatives (10, 3, T) are along `COORDINATE_PAIRS`: first derivatives use the first coordinate of each pair.
    Also returns the time derivative of log eta (T,), and b for a (2, T).
    """

    def log_eta(t: Array) -> Array:
        return jnp.log(problem.changes.schedule.rate(problem.parameters["eta"], t))

    log_eta_now, log_eta_rate = jax.jvp(log_eta, (t,), (jnp.ones_like(t),))
    state = jnp.stack([log_length, log_theta, log_length, log_theta, c, log_eta_now])

    def field(state: Array) -> Array:
        rule = equations.rule(**{**problem.parameters, "eta": jnp.exp(state[ETA])})
        return _compute_two_student_rates(rule, equations.uses_closed_form, state[:ETA], problem)

    parts = _differentiate_along_pairs(field, state, equations.uses_closed_form)
    current_rule = equations.rule(**{**problem.parameters, "eta": jnp.exp(log_eta_now)})
    noise = compute_step_moments(current_rule, jnp.exp(log_theta), jnp.exp(log_length), problem.flip, problem.changes)
    return *parts, log_eta_rate, noise.second_order


def _differentiate_along_pairs(field: Callable[[Array], Array], state: Array, parallel: bool) -> tuple[Array, ...]:
    """Compute a pair's rates and their first and second derivatives along `COORDINATE_PAIRS`, at states (6, T).

    Derivatives have the shape (10, 3, T). One axis for pairs and states, instead of `jacfwd`, reduces the compile time
    to a third. Pairs are computed sequentially unless `parallel`, since quadrature for two students needs many nodes.
    """
    coordinates = zip(*COORDINATE_PAIRS, strict=True)
    first, second = (jnp.repeat(jnp.eye(6)[:, list(pair)], state.shape[1], axis=1) for pair in coordinates)

    def differentiate(x: Array, first: Array, second: Array) -> tuple[Array, Array, Array]:
        (F, slope), (_, bend) = jax.jvp(lambda x: jax.jvp(field, (x,), (first,)), (x,), (second,))
        return F, slope, bend

    arguments = jnp.tile(state, (1, len(COORDINATE_PAIRS))), first, second
    if parallel:
        results = differentiate(*arguments)
    else:
        sequential = jax.lax.map(
            lambda columns: differentiate(*(part[:, None] for part in columns)), tuple(part.T for part in arguments)
        )
        results = tuple(part[..., 0].T for part in sequential)
    return tuple(jnp.moveaxis(part.reshape(3, len(COORDINATE_PAIRS), -1), 1, 0) for part in results)


def _compute_two_student_rates(rule: Rule, closed: bool, state: Array, problem: PairParameters) -> Array:
    """Compute the rates (3, T) of the first student's (log l, log theta) and of c12, given two students (5, T)."""
    theta = jnp.exp(state[T1:C:2])
    students = Students(state[L1:C:2], 2 * jnp.sin(theta / 2) ** 2, state[C:])
    rates = order_parameter_equations.compute_rates(rule, closed, students, problem.flip, problem.changes)
    turn = order_parameter_equations.log_theta_rate_from_y_rate(rates.y, theta)
    return jnp.concatenate([rates.log_length[:1], turn[:1], rates.c])


def _compute_fluctuation_rates(rates: PairRates, x: PairFluctuations) -> PairFluctuations:
    """Compute the time derivatives of an ensemble's covariances and biases without the noise terms."""
    A, g, h = rates.A, rates.g, rates.h
    V1, V2 = (_add_transpose(A @ V) for V in (x.V1, x.V2))
    W1, W2 = (A @ W + h[:, None] * W for W in (x.W1, x.W2))
    bend = np.sum(rates.A_curvature * x.V1, axis=(-1, -2)) / 2
    bend_c = np.sum(rates.F_c_a1_a1 * x.V1 + rates.F_c_a1_a2 * x.V2, axis=(-1, -2)) + 2 * rates.F_c_a1_c @ x.W1
    return PairFluctuations(
        V1=V1,
        V2=V2,
        W1=W1 + g @ (x.V1 + x.V2),
        W2=W2 + 2 * g @ x.V2,
        S0=2 * h * x.S0 + 4 * g @ x.W1,
        S1=2 * h * x.S1 + 2 * g @ (x.W1 + x.W2),
        S2=2 * h * x.S2 + 4 * g @ x.W2,
        bias=A @ x.bias + bend,
        bias_c=2 * g @ x.bias + h * x.bias_c + bend_c + rates.F_c_c_c * x.S0 / 2,
    )


def _add_transpose(V: np.ndarray) -> np.ndarray:
    return V + np.swapaxes(V, -1, -2)


def _compute_noise_terms(cell: OnlineCell, states: EqualStudentStates, rates: PairRates) -> PairFluctuations:
    """Compute the inhomogeneous terms of an ensemble: the covariances D, and b corrected for discrete time."""
    theta, c, drift = np.exp(states.log_theta), states.c, cell.drift
    step = _average_update_products(cell, states)
    D = _compute_step_covariances(step, theta, c, drift)
    discrete = (dot_last_axis(rates.A, rates.F[:, None]) + rates.F_eta * rates.log_eta_rate[:, None]) / 2
    discrete_c = (2 * dot_last_axis(rates.g, rates.F) + rates.h * rates.F_c + rates.F_c_eta * rates.log_eta_rate) / 2
    b_c = step.second_order + cell.decay * rates.F_c_eta + _compute_drift_second_order(step.mean, theta, c, drift)
    return D._replace(bias=rates.b - discrete, bias_c=b_c - discrete_c)


def _average_update_products(cell: OnlineCell, states: EqualStudentStates) -> UpdateProducts:
    """Average products of updates over one example at each state of an ensemble."""
    averages, max_students = [], get_max_averaged_students(cell)
    for t, log_length, log_theta, c in zip(*states, strict=True):
        cosine = 0.0 if -TRANSVERSE_COSINE_TOL < c < 0 else c
        averages.append(
            compute_update_products(
                cell.get_rule_at(t), np.exp(log_theta), np.exp(log_length), cosine, cell.flip, max_students
            )
        )
    return UpdateProducts(*map(np.stack, zip(*averages, strict=True)))


def _compute_step_covariances(step: UpdateProducts, theta: np.ndarray, c: np.ndarray, drift: float) -> PairFluctuations:
    """Compute the covariances D of one step of an ensemble, including drift."""
    a, pair = step.mean[:, :2], step.mean[:, 2]
    turn = np.stack([np.zeros_like(theta), 1 / theta], axis=-1)  # derivative of a with respect to zeta
    pair_turn = (1 - c) / np.tan(theta)  # derivative of c12 with respect to zeta_1 + zeta_2
    outer, turned = 2 * drift * turn[:, :, None] * turn[:, None, :], 2 * drift * pair_turn[:, None] * turn
    means, paired, cosines = a[:, :, None] * a[:, None, :], a * pair[:, None], 2 * drift * pair_turn**2
    return PairFluctuations(
        V1=step.a1_a1 - means + outer,
        V2=step.a1_a2 - means + outer * c[:, None, None],
        W1=step.a1_c12 - paired + turned * (1 + c)[:, None],
        W2=step.a3_c12 - paired + turned * (2 * c)[:, None],
        S0=step.c12_c12 - pair**2 + cosines * 2 * (1 + c),
        S1=step.c12_c13 - pair**2 + cosines * (1 + 3 * c),
        S2=step.c12_c34 - pair**2 + cosines * 4 * c,
        bias=np.zeros_like(a),
        bias_c=np.zeros_like(c),
    )


def _compute_drift_second_order(mean: np.ndarray, theta: np.ndarray, c: np.ndarray, drift: float) -> np.ndarray:
    """Compute the contribution of drift to the second-order term b_c of a pair's cosine.

    The result contains the effect of an example on the drift rate, and the change of both R at fixed q.
    """
    sin, cos = np.sin(theta), np.cos(theta)
    by_theta, by_c = -4 * (1 - c) * cos / sin**3 * theta, -2 * cos**2 / sin**2  # from 2 (1 - c) cot^2
    same_student = (c * (sin**2 + 3 * cos**2) - 2 * cos**2) / sin**4  # second derivative of c with respect to R1
    two_students = (c * cos**2 - sin**2 - 2 * cos**2) / sin**4  # mixed derivative with respect to R1 and R2
    turns = [drift**2 * cos**2 + 2 * drift * sin**2 * shared for shared in (1.0, c)]
    return drift * (by_theta * mean[:, 1] + by_c * mean[:, 2]) + same_student * turns[0] + two_students * turns[1]


class MeanCovariances(NamedTuple):
    """N times the covariances of a and c averaged over students and pairs: V (T, 2, 2), W (T, 2) and S (T,)."""

    V: np.ndarray
    W: np.ndarray
    S: np.ndarray


def compute_ensemble_corrections(
    theta: np.ndarray, c: np.ndarray, K: int, N: int, fluctuations: PairFluctuations
) -> dict[str, np.ndarray]:
    r"""Compute standard deviations and biases at finite N for quantities of an ensemble, such as its vote.

    Standard deviations describe a single run.

    Parameters
    ----------
    theta, c : array (T,)
        The students' angle to the teacher, and their transverse cosine, for N -> infinity.
    K
        The number of students, at least 2.
    N
        The input dimension.
    fluctuations
        The fluctuations of the same cell, from `theory.online.ensemble_fluctuations.solve_pair_fluctuations`.

    Returns
    -------
    dict of arrays (T,)
        `q_std`, `q_bias`, `eps_g_weight_mean_std`, `eps_g_weight_mean_bias`, `eps_g_majority_vote_std`.
    """
    means = compute_mean_covariances(fluctuations, K)
    variance, bias = _compute_q_variance_and_bias(theta, c, K, fluctuations)
    mean_variance, mean_bias = _compute_weight_mean_moments(theta, c, K, fluctuations, means)
    return {
        "q_std": np.sqrt(variance / N),
        "q_bias": bias / N,
        "eps_g_weight_mean_std": np.sqrt(mean_variance / N),
        "eps_g_weight_mean_bias": mean_bias / N,
        "eps_g_majority_vote_std": np.sqrt(_compute_vote_variance(theta, c, K, means) / N),
    }


def compute_mean_covariances(fluctuations: PairFluctuations, K: int) -> MeanCovariances:
    """Compute the covariances of the mean a of K students and the mean c of all pairs."""
    S = 2 * fluctuations.S0 + 4 * (K - 2) * fluctuations.S1 + (K - 2) * (K - 3) * fluctuations.S2
    return MeanCovariances(
        V=(fluctuations.V1 + (K - 1) * fluctuations.V2) / K,
        W=(2 * fluctuations.W1 + (K - 2) * fluctuations.W2) / K,
        S=S / (K * (K - 1)),
    )


def _compute_q_variance_and_bias(
    theta: np.ndarray, c: np.ndarray, K: int, fluctuations: PairFluctuations
) -> tuple[np.ndarray, np.ndarray]:
    """Compute N times the variance and bias of the mean q of one student with the others."""
    sin, cos, num_others = np.sin(theta), np.cos(theta), K - 1
    q_theta, q_c = -theta * sin * cos * (1 - c), sin**2  # derivatives of q for log theta and c
    V1, V2 = fluctuations.V1[..., 1, 1], fluctuations.V2[..., 1, 1]
    W1, W2 = fluctuations.W1[..., 1], fluctuations.W2[..., 1]
    turns = V1 + 2 * V2 + (V1 + (num_others - 1) * V2) / num_others
    mixed = W1 + (W1 + (num_others - 1) * W2) / num_others
    cosines = (fluctuations.S0 + (num_others - 1) * fluctuations.S1) / num_others
    variance = q_theta**2 * turns + 2 * q_theta * q_c * mixed + q_c**2 * cosines
    bend = q_theta - theta**2 * (cos**2 + c * sin**2), theta**2 * (sin**2 + c * cos**2), theta * sin * cos
    first = 2 * q_theta * fluctuations.bias[..., 1] + q_c * fluctuations.bias_c
    return variance, first + bend[0] * V1 + bend[1] * V2 + 2 * bend[2] * W1


def _compute_weight_mean_moments(
    theta: np.ndarray, c: np.ndarray, K: int, fluctuations: PairFluctuations, means: MeanCovariances
) -> tuple[np.ndarray, np.ndarray]:
    """Compute N times the variance and bias of eps_g of the weight mean.

    Lengths are relative to the students' length.
    """
    x, y = np.cos(theta), np.sin(theta)
    dx, dy = np.stack([x, -theta * y], -1), np.stack([y, theta * x], -1)  # derivatives for (log l, log theta)
    ddx, ddy = (np.stack([d, np.stack([d[..., 1], d[..., 1] - theta**2 * z], -1)], -2) for d, z in ((dx, x), (dy, y)))
    mean_cosine = (1 + (K - 1) * c) / K
    alpha, beta = x, y**2 * mean_cosine
    d_beta, c_beta = 2 * y[..., None] * dy * mean_cosine[..., None], y**2 * (K - 1) / K
    outer = dy[..., :, None] * dy[..., None, :]
    single = 2 * y * dot_last_axis(dy, fluctuations.bias) + _trace_product(
        outer + y[..., None, None] * ddy, fluctuations.V1
    )
    pair = (
        c
        * (
            2 * y * dot_last_axis(dy, fluctuations.bias)
            + _trace_product(y[..., None, None] * ddy, fluctuations.V1)
            + _trace_product(outer, fluctuations.V2)
        )
        + y**2 * fluctuations.bias_c
        + 2 * y * dot_last_axis(dy, fluctuations.W1)
    )
    first = (
        dot_last_axis(dx, fluctuations.bias) + _trace_product(ddx, fluctuations.V1) / 2,
        (single + (K - 1) * pair) / K,
    )
    VB = np.einsum("...ij,...j->...i", means.V, d_beta) + means.W * c_beta[..., None]
    spread = dot_last_axis(dx, np.einsum("...ij,...j->...i", means.V, dx)), dot_last_axis(dx, VB)
    beta_variance = dot_last_axis(d_beta, VB) + c_beta * (dot_last_axis(d_beta, means.W) + c_beta * means.S)
    root, square = np.sqrt(beta), alpha**2 + beta
    T = -root / square, alpha / (2 * root * square)
    TT = (
        2 * alpha * root / square**2,
        (beta - alpha**2) / (2 * root * square**2),
        -alpha * (1 + 2 * beta / square) / (4 * root**3 * square),
    )
    variance = T[0] ** 2 * spread[0] + 2 * T[0] * T[1] * spread[1] + T[1] ** 2 * beta_variance
    curved = TT[0] * spread[0] + 2 * TT[1] * spread[1] + TT[2] * beta_variance
    return variance / np.pi**2, (T[0] * first[0] + T[1] * first[1] + curved / 2) / np.pi


def _compute_vote_variance(theta: np.ndarray, c: np.ndarray, K: int, means: MeanCovariances) -> np.ndarray:
    """Compute N times the variance of eps_g of the majority vote."""
    eps_theta, eps_c = compute_vote_gradient(theta, c, K)
    mixed = 2 * eps_theta * eps_c * means.W[..., 1]
    return eps_theta**2 * means.V[..., 1, 1] + mixed + eps_c**2 * means.S


def compute_vote_gradient(theta: np.ndarray, c: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate eps_g of the majority vote with respect to the fluctuating log theta and c.

    Derivatives are finite differences of exact values.
    """
    if K <= 2:  # the vote of up to two students has the error of one student
        return theta / np.pi, np.zeros_like(theta)
    step = VOTE_DIFFERENCE_STEP * np.minimum(1 - c, c + 1 / (K - 1))
    offsets, weights, size = *CENTRAL_DIFFERENCE_STENCIL, np.asarray(K)
    turned = majority_vote_error(theta * np.exp(VOTE_DIFFERENCE_STEP * offsets[:, None]), c, size)
    shared = majority_vote_error(theta, c + step * offsets[:, None], size)
    eps_c = np.divide(weights @ shared, step, out=np.zeros_like(step), where=step > 0)  # 0 for identical students
    return weights @ turned / VOTE_DIFFERENCE_STEP, eps_c


def _trace_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...ij->...", x, y)
