r"""Fluctuations and bias of order 1/N of an ensemble of equal students who learn online.

Two students' :math:`a_k = (\log l_k, \log\theta_k)` and the cosine :math:`c_{12}` of their parts across the teacher are
a closed chain, whatever the ensemble, with :math:`\dot a_k = F(a_k)` and :math:`\dot c_{12} = F_c(a_1, a_2, c_{12})`.
Its covariance and bias obey the equations of `theory.fluctuations`. In an ensemble that starts alike, students can be
exchanged, and 13 covariances are different, none of which depends on K:

.. math:: V_1 = \langle a_1a_1\rangle, \quad V_2 = \langle a_1a_2\rangle, \quad
          W_1 = \langle a_1c_{12}\rangle, \quad W_2 = \langle a_3c_{12}\rangle, \quad
          S_0 = \langle c_{12}^2\rangle, \quad S_1 = \langle c_{12}c_{13}\rangle, \quad
          S_2 = \langle c_{12}c_{34}\rangle.

With :math:`A = F'`, :math:`g = \partial F_c/\partial a_1 = \partial F_c/\partial a_2`,
:math:`h = \partial F_c/\partial c` and :math:`D` the covariances of one step (`theory.pair_noise`),

.. math::
    \dot V_1 &= AV_1 + V_1A^\mathsf{T} + D, \qquad \dot V_2 = AV_2 + V_2A^\mathsf{T} + D, \\
    \dot W_1 &= (A + h)W_1 + (V_1 + V_2)\,g + D, \qquad \dot W_2 = (A + h)W_2 + 2V_2\,g + D, \\
    \dot S_0 &= 2hS_0 + 4g\cdot W_1 + D, \quad \dot S_1 = 2hS_1 + 2g\cdot(W_1 + W_2) + D, \quad
    \dot S_2 = 2hS_2 + 4g\cdot W_2 + D, \\
    \dot m_c &= 2g\cdot m_a + hm_c + \tfrac12F_c'' : C + b_c
        - \tfrac12(2g\cdot F + hF_c + \partial_tF_c).

**A step with decay and drift.** Before the example, decay multiplies the weights by :math:`1 - \omega/N`, which makes
the example's :math:`\tau` larger by as much: :math:`b_c` gains :math:`\omega\,\eta\,\partial F_c/\partial\eta`. After
it, the teacher turns. Its random direction has the components :math:`\zeta_k` along the students' parts across it,
with :math:`\langle\zeta_1\zeta_2\rangle = c`, so

.. math:: \xi_{\theta_k} = \delta\cot\theta - \sqrt{2\delta}\,\zeta_k, \qquad
          \xi_{12} = 2\delta(1-c)\cot^2\theta - \sqrt{2\delta}\,(1-c)\cot\theta\,(\zeta_1 + \zeta_2),

and, the students' q being unchanged, :math:`b_c = \tfrac12\sum_{kj}\partial^2c/\partial R_k\partial R_j
\langle p_kp_j\rangle`, :math:`\langle p_kp_j\rangle = \delta^2\cos^2\theta + 2\delta\sin^2\theta\,c_{kj}`, and the
change of the drift by the example.

**Integration.** The covariances do not act on the order parameters, whose equations are solved first. The coefficients
of the linear equations are computed at the Gauss nodes of panels of t, where collocation solves them; panels whose
highest Legendre coefficient is not small are halved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.errors import ScenarioError, SolverError
from statmech.gaussian import Array, legendre
from statmech.order_parameters import angle_from_versine
from statmech.parameters import Family, family_of
from statmech.programs import kept
from statmech.rules import Rule
from statmech.scenarios.online import Cell
from theory import fluctuations, online, student_noise, trajectories
from theory.online import Changes, Students
from theory.pair_noise import Products, opposed_products, products

NODES = 12  # of a panel of t
BATCH = 32  # nodes whose coefficients are computed together
TINY = 1e-100  # of a standard deviation
TOLERANCE = 1e-7  # of a covariance, beside the variances of both
HALVINGS = 24
OPPOSED = 0.05  # of (1 + (n - 1) c)/(1 - c), which n students as opposed as possible make 0: their averages diverge
MOST_OPPOSED = (
    "students that start almost as opposed as they can be have no corrections of order 1/N of q, the weight mean and "
    "the vote: start them with a larger q, or leave out corrections"
)
ROUNDING = 1e-9  # of c: students that are less opposed are treated as independent
SIZE = 16


class PairFluctuations(NamedTuple):
    """N times the covariances and biases of equal students, arrays (T, ...): of a = (log l, log theta) and c.

    V1, V2 (T, 2, 2), W1, W2 (T, 2), S0, S1, S2 (T,), and the biases of a (T, 2) and c (T,).
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


class Problem(NamedTuple):
    """What the coefficients at a time depend on besides the state: the rule's parameters, label noise, what changes,
    and the most students whose averages are needed."""

    parameters: dict[str, Array]
    flip: Array
    changes: Changes
    most: Array


@dataclass(frozen=True)
class Equations:
    """Static arguments of the compiled coefficients: the rule, whether it has closed forms, whether students may be
    opposed (c < 0)."""

    rule: Family
    closed: bool
    opposed: bool


def unpacked(x: Array) -> PairFluctuations:
    """The covariances and biases from their vector (16, ...), or (..., 16) of NumPy."""
    V1, V2 = (x[..., [at, at + 1, at + 1, at + 2]].reshape(*x.shape[:-1], 2, 2) for at in (0, 3))
    S0, S1, S2, bias_c = (x[..., at] for at in (10, 11, 12, 15))
    return PairFluctuations(V1, V2, x[..., 6:8], x[..., 8:10], S0, S1, S2, x[..., 13:15], bias_c)


def solve(cell: Cell, times: Iterable[float]) -> PairFluctuations:
    """The fluctuations of a cell's equal students at each time."""
    t = np.asarray(list(times), float)
    first = online.initial(cell).c[0]
    if (1 + (most_students(cell) - 1) * first) / (1 - min(first, 0.0)) < OPPOSED:
        raise ScenarioError([(("start",), MOST_OPPOSED)])
    if first > 1 - ROUNDING:
        return _identical(cell, t)
    with jax.enable_x64(True):
        return unpacked(_integrate(cell, t))


def _identical(cell: Cell, times: np.ndarray) -> PairFluctuations:
    """The fluctuations of students that start, and so remain, identical."""
    [(_, one)] = trajectories.solve_corrected([cell], times)
    V = one.covariance[..., [0, 1, 1, 2], 0].reshape(-1, 2, 2)
    none, nothing = np.zeros((*times.shape, 2)), np.zeros(times.shape)
    return PairFluctuations(V, V, none, none, nothing, nothing, nothing, one.bias[..., 0], nothing)


def most_students(cell: Cell) -> int:
    """The most students whose averages are needed: 4 for any K, but for opposed ones, of whom four need not exist.

    >>> from statmech import Scenario
    >>> [[most_students(cell) for cell in Scenario(rule="hebb", K=[2, 9], t=[1], start=start).cells()]
    ...  for start in ("drawn", {"R": 0.2})]
    [[4, 4], [2, 4]]
    """
    opposed = online.initial(cell).c[0] < -ROUNDING
    return min(cell.K, 4) if opposed else 4


def start(cell: Cell) -> np.ndarray:
    """The covariances and biases at t = 0: none of given students; drawn ones are independent, and c has variance 1."""
    x = np.zeros(SIZE)
    if cell.start is None:
        one = fluctuations.initial(np.asarray([np.pi / 2]), drawn=True)
        x[:3], x[13:15], x[10] = one.covariance[:, 0], one.bias[:, 0], 1.0
    return x


def _integrate(cell: Cell, times: np.ndarray) -> np.ndarray:
    """The vector at each time (T, 16), on panels that are halved until all are accurate."""
    edges = np.expm1(np.linspace(0.0, np.log1p(times[-1]), 2 + int(2 * np.log1p(times[-1]))))
    slopes: dict[tuple[float, float], np.ndarray] = {}
    for _ in range(HALVINGS):
        panels = list(pairwise(edges))
        new = [panel for panel in panels if panel not in slopes]
        slopes |= dict(zip(new, _slopes(cell, new), strict=True))
        values, at_nodes = _propagated(start(cell), np.diff(edges), [slopes[panel] for panel in panels])
        rough = _rough(np.diff(edges), values, at_nodes)
        if not rough.any():
            return _at(times, edges, values, at_nodes)
        edges = np.sort(np.concatenate([edges, (edges[:-1] + edges[1:])[rough] / 2]))
    raise SolverError(f"the fluctuations of {cell.described} change too fast for their equations")


def _propagated(x: np.ndarray, h: np.ndarray, slopes: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The vector at the ends of all panels (P + 1, 16), and its slopes at their nodes (P, n, 16)."""
    weights, values, at_nodes = legendre(NODES)[1], [x], []
    for length, affine in zip(h, slopes, strict=True):
        at_nodes.append(affine @ np.append(x, 1.0))
        x = x + length * weights @ at_nodes[-1]
        values.append(x)
    return np.stack(values), np.stack(at_nodes)


def _rough(h: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Whether the last Legendre coefficient of the slopes in a panel is not small (P,)."""
    last = h[:, None] * abs(_series()[:, -1] @ slopes)
    return np.any(last > TOLERANCE * _scale(np.maximum(abs(values[1:]), abs(values[:-1]))), axis=-1)


def _scale(x: np.ndarray) -> np.ndarray:
    """The size beside which an error of each covariance and bias (.., 16) is measured."""
    l, t, c = (np.sqrt(x[..., at]) + TINY for at in (0, 2, 10))
    students, pairs = [l * l, l * t, t * t], [l * c, t * c]
    biases = [np.maximum(l, l * l), np.maximum(t, t * t), np.maximum(c, c * c)]
    return np.stack([*students, *students, *pairs, *pairs, *[c * c] * 3, *biases], axis=-1)


def _series() -> np.ndarray:
    """The matrix (n, n) that makes Legendre coefficients, along its second axis, of values at the nodes."""
    nodes, weights = legendre(NODES)
    return np.polynomial.legendre.legvander(2 * nodes - 1, NODES - 1) * weights[:, None] * (2 * np.arange(NODES) + 1)


def _to(s: np.ndarray) -> np.ndarray:
    """The weights (S, n) of values at the nodes of [0, 1] in the integrals from 0 to s (S,) of their interpolation."""
    integrals = np.polynomial.legendre.legint(np.eye(NODES), lbnd=-1, axis=0) / 2
    return np.polynomial.legendre.legval(2 * s - 1, integrals).T @ _series().T


def _at(times: np.ndarray, edges: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The vector at each time (T, 16), from the panel it lies in."""
    panel = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, len(slopes) - 1)
    h = np.diff(edges)[panel]
    weights = _to((times - edges[panel]) / h)
    return values[panel] + h[:, None] * np.einsum("tn,tna->ta", weights, slopes[panel])


def _slopes(cell: Cell, panels: list[tuple[float, float]]) -> list[np.ndarray]:
    """The slopes at the nodes of each panel, (n, 16, 17), that multiply the vector at its beginning, and 1."""
    begin, end = np.asarray(panels).T
    t, to = begin[:, None] + (end - begin)[:, None] * legendre(NODES)[0], _to(legendre(NODES)[0])
    M, d = _coefficients_of(cell, t)
    known = np.concatenate([M, d[..., None]], axis=-1).reshape(len(panels), -1, SIZE + 1)
    inside = np.einsum("p,piab,ij->piajb", end - begin, M, to).reshape(len(panels), NODES * SIZE, -1)
    return list(np.linalg.solve(np.eye(NODES * SIZE) - inside, known).reshape(len(panels), NODES, SIZE, SIZE + 1))


def _coefficients_of(cell: Cell, t: np.ndarray) -> tuple[np.ndarray, ...]:
    """M (P, n, 16, 16) and d (P, n, 16) of x' = M x + d at increasing times (P, n)."""
    every = t.reshape(-1)
    pieces = [_coefficients(cell, every[first : first + BATCH]) for first in range(0, t.size, BATCH)]
    return tuple(np.concatenate(part).reshape(*t.shape, *part[0].shape[1:]) for part in zip(*pieces, strict=True))


def _coefficients(cell: Cell, t: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same at up to `BATCH` increasing times."""
    filled = np.pad(t, (0, BATCH - t.size), mode="edge")
    [students] = trajectories.solve_cells([cell], filled)
    equations = Equations(family_of(cell.rule), cell.rule.has_closed_form, bool(np.any(students.c < -ROUNDING)))
    parameters = {name: np.asarray(getattr(cell.rule, name), float) for name in equations.rule.reals}
    changes = Changes(*(np.asarray(rate, float) for rate in (cell.drift, cell.decay, cell.t0)))
    problem = Problem(parameters, np.asarray(cell.flip, float), changes, np.asarray(float(most_students(cell))))
    with jax.enable_x64(True):
        M, d = _linear(equations, problem, filled, *(np.asarray(part)[:, 0] for part in students))
    return np.asarray(M)[: t.size], np.asarray(d)[: t.size]


@kept
def _linear(
    equations: Equations, problem: Problem, t: Array, log_length: Array, y: Array, c: Array
) -> tuple[Array, ...]:
    """M (T, 16, 16) and d (T, 16) of the linear equations x' = M x + d at states (T,)."""

    def one(at: tuple[Array, ...]) -> tuple[Array, Array]:
        rate = _rate(_at_state(equations, problem, *at))
        return jax.jacfwd(lambda x: (rate(x),) * 2, has_aux=True)(jnp.zeros(SIZE))

    return jax.lax.map(one, (t, log_length, jnp.log(angle_from_versine(y)), c), batch_size=8)


class _State(NamedTuple):
    """What the rates of the covariances depend on: F (5,) of a pair, its derivatives by the state and t (5, 6) and
    (5, 6, 6), and of one step the covariances D of two students and of pairs, and the second order of a and c."""

    F: Array
    slopes: Array
    curvature: Array
    D: PairFluctuations


def _at_state(equations: Equations, problem: Problem, t: Array, log_l: Array, log_theta: Array, c: Array) -> _State:
    flip, changes = problem.flip, problem.changes
    theta, length, now = jnp.exp(log_theta), jnp.exp(log_l), _rule(equations, problem, t)

    def field(state: Array) -> tuple[Array, Array]:
        rates = _field(_rule(equations, problem, state[5]), equations.closed, state[:5], flip, changes)
        return rates, rates

    def slopes(state: Array) -> tuple[Array, tuple[Array, Array]]:
        slopes, F = jax.jacfwd(field, has_aux=True)(state)
        return slopes, (slopes, F)

    pair = jnp.stack([log_l, log_theta, log_l, log_theta, c, t])
    curvature, (first, F) = jax.jacfwd(slopes, has_aux=True)(pair)
    single, step = (
        student_noise.noise(now, theta, length, flip, changes),
        _step(equations, problem, now, theta, length, c),
    )
    D = _centred(step, theta, c, changes.drift)
    ll, lt, tt = single.products
    second = step.second + _changed_second(now, equations.closed, step, pair[:5], flip, changes)
    V1 = jnp.stack([jnp.stack([ll, lt]), jnp.stack([lt, tt])]) - jnp.outer(F[:2], F[:2])
    return _State(F, first, curvature, D._replace(V1=V1, bias=single.second, bias_c=second))


def _step(equations: Equations, problem: Problem, rule: Rule, theta: Array, length: Array, c: Array) -> Products:
    """The averages over an example, without those of more students than are needed."""
    step = products(rule, theta, length, jnp.maximum(c, 0.0), problem.flip)
    if equations.opposed:
        opposed = opposed_products(rule, theta, length, jnp.minimum(c, -ROUNDING), problem.flip, problem.most)
        step = Products(*(jnp.where(c < -ROUNDING, x, y) for x, y in zip(opposed, step, strict=True)))
    three, four = problem.most > 2, problem.most > 3
    return step._replace(
        other=jnp.where(three, step.other, 0.0),
        sharing=jnp.where(three, step.sharing, 0.0),
        disjoint=jnp.where(four, step.disjoint, 0.0),
    )


def _rate(state: _State) -> Callable[[Array], Array]:
    """The time derivative of the vector x (16,) at a state."""
    F, slopes, curvature, D = state
    A, g, h = slopes[:2, :2], slopes[4, :2], slopes[4, 4]
    discrete = (slopes[:, :5] @ F + slopes[:, 5]) / 2

    def rate(x: Array) -> Array:
        V1, V2, W1, W2, S0, S1, S2, m, m_c = unpacked(x)
        C = jnp.block([[V1, V2, W1[:, None]], [V2, V1, W1[:, None]], [W1[None], W1[None], S0[None, None]]])
        bend = jnp.sum(curvature[:, :5, :5] * C, axis=(1, 2)) / 2 - discrete
        return jnp.concatenate(
            [
                _upper(A @ V1 + V1 @ A.T + D.V1),
                _upper(A @ V2 + V2 @ A.T + D.V2),
                A @ W1 + h * W1 + (V1 + V2) @ g + D.W1,
                A @ W2 + h * W2 + 2 * V2 @ g + D.W2,
                (2 * h * S0 + 4 * g @ W1 + D.S0)[None],
                (2 * h * S1 + 2 * g @ (W1 + W2) + D.S1)[None],
                (2 * h * S2 + 4 * g @ W2 + D.S2)[None],
                A @ m + bend[:2] + D.bias,
                (2 * g @ m + h * m_c + bend[4] + D.bias_c)[None],
            ]
        )

    return rate


def _upper(V: Array) -> Array:
    return jnp.stack([V[0, 0], (V[0, 1] + V[1, 0]) / 2, V[1, 1]])


def _rule(equations: Equations, problem: Problem, t: Array) -> Rule:
    """The rule with the learning rate of time t."""
    parameters = problem.parameters
    eta = parameters["eta"] / (1 + t / problem.changes.t0)
    return equations.rule(**{**parameters, "eta": eta})


def _field(rule: Rule, closed: bool, state: Array, flip: Array, changes: Changes) -> Array:
    """F of one student's (log l, log theta, c), or of two students' (log l1, log theta1, log l2, log theta2, c)."""
    students, scale = _students(state)
    return _flat(online.changed(online.rates(rule, closed, students, flip), students, changes), scale)


def _students(state: Array) -> tuple[Students, Array]:
    """Students at (log l, log theta, .., c), and the change of their y with log theta."""
    theta = jnp.exp(state[1:-1:2])
    return Students(state[0:-1:2], 2 * jnp.sin(theta / 2) ** 2, state[-1:]), jnp.sin(theta) * theta


def _flat(rates: Students, scale: Array) -> Array:
    turns = jnp.stack([rates.log_length, rates.y / scale], axis=-1)
    return jnp.concatenate([turns.reshape(-1), rates.c])


def _changed_second(rule: Rule, closed: bool, step: Products, pair: Array, flip: Array, changes: Changes) -> Array:
    """What decay and drift add to the second order of c."""
    none = jnp.zeros(())

    def of_rate(scale: Array) -> Array:
        students, _ = _students(pair)
        return online.rates(replace(rule, eta=scale * rule.eta), closed, students, flip).c[0]

    def of_drift(pair: Array) -> Array:
        students, _ = _students(pair)
        still = Students(*map(jnp.zeros_like, students))
        return online.changed(still, students, changes._replace(decay=none)).c[0]

    example = jnp.concatenate([step.mean[:2], step.mean[:2], step.mean[2:]])
    mixed = changes.decay * jax.jacfwd(of_rate)(1.0) + jax.jacfwd(of_drift)(pair) @ example
    return mixed + _drift_second(jnp.exp(pair[1]), pair[-1], changes.drift)


def _drift_second(theta: Array, c: Array, drift: Array) -> Array:
    """The drift's second order of c: of the change of both R at the same q."""
    sin, cos = jnp.sin(theta), jnp.cos(theta)
    q = cos**2 + c * sin**2

    def cosine(R: Array) -> Array:
        return (q - R[0] * R[1]) / jnp.sqrt(jnp.prod(1 - R**2))

    bend = jax.jacfwd(jax.jacfwd(cosine))(jnp.stack([cos, cos]))
    changes = drift**2 * cos**2 + 2 * drift * sin**2 * jnp.stack([jnp.stack([1.0, c]), jnp.stack([c, 1.0])])
    return jnp.sum(bend * changes) / 2


def _centred(step: Products, theta: Array, c: Array, drift: Array) -> PairFluctuations:
    """The covariances D of one step of students and pairs."""
    a, pair = step.mean[:2], step.mean[2]
    turn = jnp.stack([0.0, 1 / theta])  # of (log l, log theta) with the direction's component along a student
    both = (1 - c) / jnp.tan(theta)  # of c12
    noise = 2 * drift
    return PairFluctuations(
        V1=jnp.zeros((2, 2)),
        V2=step.students - jnp.outer(a, a) + noise * c * jnp.outer(turn, turn),
        W1=step.own - a * pair + noise * both * (1 + c) * turn,
        W2=step.other - a * pair + noise * both * 2 * c * turn,
        S0=step.same - pair**2 + noise * both**2 * 2 * (1 + c),
        S1=step.sharing - pair**2 + noise * both**2 * (1 + 3 * c),
        S2=step.disjoint - pair**2 + noise * both**2 * 4 * c,
        bias=jnp.zeros(2),
        bias_c=jnp.zeros(()),
    )
