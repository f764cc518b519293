r"""Learners that minimise one convex loss on random parts of the same examples: overlap of two learners, and bootstrap.

A learner of a fraction s of P = alpha N examples is a single learner at :math:`s\alpha`
(`theory.convex.empirical_risk`). Two learners whose parts are drawn independently have the same R and length. The parts
of their weights perpendicular to the teacher have a cosine c, and :math:`q = R^2 + (1-R^2)\,c`.

**Equation of c.** An example that both learn, with probability :math:`s^2`, gives both a force
:math:`(p-h)/V` of the same output. The fields h of the two learners are normal with the covariance
:math:`q_{12} = l^2q`, and independent given the teacher's field and their common part. As in the equation
:math:`l^2\sin^2\theta = s\alpha B` of one learner (`theory.convex.saddle_point`),

.. math:: l^2\sin^2\theta\;c = \alpha s^2B_{12}(c), \qquad B_{12} = \langle(p_1-h_1)(p_2-h_2)\rangle .

With the common part :math:`\sqrt{q_{12}}\,t` and :math:`\sigma^2 = l^2\sin^2\theta\,(1-c)`, for labels

.. math:: B_{12} &= \int 2\varphi(t)\,\mathrm{right}(t\cos\Theta, \sin^2\Theta)\,F(t)^2\,dt, \\
          F(t) &= \int (p-h)\,N(h; \sqrt{q_{12}}\,t, \sigma^2)\,dh, \qquad \tan\Theta = \sqrt c\,\tan\theta .

For the residuals of a linear teacher the common part has the variance :math:`s_\mathrm{r}^2 - \sigma^2`, and t is
normal. :math:`B_{12}` is a power series in c with nonnegative coefficients, so that the equation has one solution
c < 1 if s < 1. The learners of s = 1 are equal, c = 1. (Bellec & Koriyama 2024; Koriyama, Patil, Du, Tan &
Bellec 2024.)

**Bootstrap.** The number of times that an example is drawn has a Poisson distribution of mean 1. An example drawn n
times has the loss :math:`n\ell`, and is displaced as by :math:`\ell` at the susceptibility nV. So A, B and
C are sums over n with Poisson weights, and F is the sum of the F of each n: two learners draw an example independently.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, factorial

import numpy as np

from statmech.convex.losses import Loss, find_minimiser_interval
from statmech.convex.teachers import LabelTeacher, Teacher
from statmech.numerics.gaussian import make_composite_rule, normal_density
from statmech.numerics.root_finding import find_zeros
from theory.convex.empirical_risk import LearnerState, describe_state
from theory.convex.example_averages import (
    COARSE_GAUSSIAN_PANEL_EDGES,
    FINE_GAUSSIAN_PANEL_EDGES,
    ExampleAverages,
    average_label_training_loss,
    average_residual_training_loss,
    compute_label_densities,
    compute_residual_densities,
    convert_edges_to_p,
    is_piecewise_quadratic,
    make_field_nodes,
    make_label_panel_edges,
)
from theory.convex.saddle_point import ConvexEquations, PenaltyPoint, solve_saddle_point

MAX_DRAWS_OF_EXAMPLE = 16  # an example is drawn more often with probability 1e-15
POISSON_WEIGHTS = {n: exp(-1.0) / factorial(n) for n in range(1, MAX_DRAWS_OF_EXAMPLE + 1)}
SINGLE_DRAW_WEIGHTS = {1: 1.0}
NODES_PER_COMMON_FIELD_PANEL = 12
KINK_EDGE_OFFSETS = np.array([-5.0, -1.5, 0.0, 1.5, 5.0])  # in widths of the field that smooths the kink


@dataclass(frozen=True)
class BootstrapEquations(ConvexEquations):
    """Saddle-point equations of a learner of P draws with replacement from P examples."""

    def _compute_averages(self, x: np.ndarray) -> ExampleAverages:
        average = super()._compute_averages
        parts = [(weight, average(_multiply_susceptibility(x, n))) for n, weight in POISSON_WEIGHTS.items()]
        return ExampleAverages(
            np.sum([weight * part.values for weight, part in parts], axis=0),
            np.sum([weight * part.slopes for weight, part in parts], axis=0),
        )


def _multiply_susceptibility(x: np.ndarray, n: int) -> np.ndarray:
    """Return the unknowns x (k, batch) of a learner with n times the susceptibility, the last unknown."""
    return np.concatenate([x[:-1], x[-1:] + np.log(n)])


@dataclass(frozen=True)
class LearnerPair:
    """Two learners of one loss and susceptibility V, each with these probabilities of the draws of an example."""

    loss: Loss
    teacher: Teacher
    draw_weights: dict[int, float]
    V: float

    def average_displacements(self, theta: float, length: float, residual_variance: float, c: float) -> float:
        """Average the product of both learners' displacements p - h of an example, at a transverse cosine c.

        Parameters
        ----------
        theta, length
            Angle to the teacher, and length, of each learner.
        residual_variance
            Variance of a learner's residual for a linear teacher.
        c
            Cosine of the learners' parts perpendicular to the teacher.
        """
        width = length * np.sin(theta) * np.sqrt(1 - c)
        if isinstance(self.teacher, LabelTeacher):
            tan = np.array([np.sqrt(c) * np.tan(theta)])
            common = length * np.hypot(np.cos(theta), np.sqrt(c) * np.sin(theta))
            edges = make_label_panel_edges(FINE_GAUSSIAN_PANEL_EDGES, self.teacher, tan)[0]
        else:
            common, edges = np.sqrt(residual_variance - width**2), FINE_GAUSSIAN_PANEL_EDGES
        t, dt = make_composite_rule(self._add_loss_edges(edges, common, width), NODES_PER_COMMON_FIELD_PANEL)
        if isinstance(self.teacher, LabelTeacher):
            with np.errstate(divide="ignore"):  # c = 0
                density = compute_label_densities(self.teacher, np.log(tan), np.ones(1), t[None]).h_density[0]
        else:
            density = compute_residual_densities(np.ones(1), t[None]).h_density[0]
        displacement = self._smooth_displacement(common * t, width)
        return float(np.sum(dt * density * displacement**2))

    def _smooth_displacement(self, h: np.ndarray, width: float) -> np.ndarray:
        """Average the displacement p - h over normal fields with these means (n,) and one standard deviation."""
        ends, total = h[:, None] + width * COARSE_GAUSSIAN_PANEL_EDGES, np.zeros_like(h)
        for draws, weight in self.draw_weights.items():
            nodes = make_field_nodes(self.loss, np.ones_like(h), np.full_like(h, draws * self.V), ends)
            density = normal_density((nodes.h - h[nodes.panel_batch_index, None]) / width) / width
            total += weight * nodes.sum_terms_per_batch_element(density * nodes.h_weights * nodes.g)[0]
        return total

    def _add_loss_edges(self, edges: np.ndarray, common: float, width: float) -> np.ndarray:
        """Add the fields where the displacement changes its shape to the edges of t, with a margin around kinks."""
        fields = [edges * common]
        for draws in self.draw_weights:
            V = np.array([draws * self.V])
            kinks = np.array([*self.loss.kinks, *self.loss.bends])
            corners = np.concatenate([kinks + V * slope for slope in self.loss.one_sided_slopes(kinks)])
            fields.append((corners[np.isfinite(corners)][:, None] + width * KINK_EDGE_OFFSETS).ravel())
        if not is_piecewise_quadratic(self.loss):
            p = convert_edges_to_p(self.loss, np.array([self.V]), common * edges[[0, len(edges) // 2, -1]][None])[0]
            fields.append(p + self.V * self.loss.slope(p))
        return np.unique(np.clip(np.concatenate(fields) / common, edges[0], edges[-1]))


def solve_bootstrap_minimum(equations: ConvexEquations, alpha: np.ndarray, lam: np.ndarray) -> LearnerState:
    """Compute the state of a learner of P draws with replacement, for each alpha and lambda > 0 (batch,).

    Mean loss and training error are averages over the draws.

    Parameters
    ----------
    equations
        The equations of a learner of all examples, with an l2 penalty.
    alpha
        Examples per weight (batch,), which equals the number of draws per weight.
    lam
        Strength of the penalty (batch,).
    """
    bootstrap = BootstrapEquations(equations.loss, equations.teacher, equations.weight_equations)
    solution = solve_saddle_point(bootstrap, alpha, lam, 0.0)
    state = describe_state(bootstrap, solution, alpha, PenaltyPoint(np.log(lam), 0 * lam))
    if isinstance(equations.teacher, LabelTeacher):
        parts = [
            np.array(average_label_training_loss(equations.loss, equations.teacher, x, equations.loss))
            for x in (_multiply_susceptibility(solution.x, n) for n in POISSON_WEIGHTS)
        ]
    else:
        parts = [
            np.array(average_residual_training_loss(equations.loss, x, equations.loss))
            for x in (_multiply_susceptibility(solution.x, n) for n in POISSON_WEIGHTS)
        ]
    draws = [n * weight for n, weight in POISSON_WEIGHTS.items()]
    train_loss, eps_t = np.tensordot(draws, parts, axes=1)
    return state._replace(train_loss=train_loss, eps_t=eps_t if equations.teacher.labels else state.eps_t)


def compute_transverse_cosines(
    equations: ConvexEquations,
    state: LearnerState,
    alpha: np.ndarray,
    fraction: np.ndarray,
    is_bootstrap: bool = False,
) -> np.ndarray:
    """Compute the cosine c of the parts of two learners perpendicular to the teacher, for each state (batch,).

    Parameters
    ----------
    equations
        The equations of a learner of all examples, with an l2 penalty.
    state
        The state of one learner, at its own number of examples.
    alpha
        All examples per weight (batch,).
    fraction
        Part of the examples that each learner draws independently (batch,).
    is_bootstrap
        True for learners that draw P of P examples with replacement.
    """
    elements = zip(alpha, fraction, state.eps_g * np.pi, state.length, state.V, state.mse, strict=True)
    return np.array([_solve_transverse_cosine(equations, is_bootstrap, *map(float, values)) for values in elements])


def _solve_transverse_cosine(
    equations: ConvexEquations,
    is_bootstrap: bool,
    alpha: float,
    fraction: float,
    theta: float,
    length: float,
    V: float,
    mse: float,
) -> float:
    """Solve the equation of the transverse cosine for two learners of a fraction of the examples.

    Parameters
    ----------
    equations, is_bootstrap, alpha, fraction
        See `compute_transverse_cosines`.
    theta, length, V, mse
        Angle to the teacher, length, susceptibility and mean squared error of one learner.
    """
    if (fraction == 1 and not is_bootstrap) or theta == 0:
        return 1.0
    if not np.isfinite(length):
        return np.nan
    loss, teacher = equations.loss, equations.teacher
    if np.isinf(V):  # students fit all examples, which act as constraints
        limit_loss = find_minimiser_interval(loss)
        assert limit_loss is not None
        loss, V = limit_loss, 1.0
    bound = sum(POISSON_WEIGHTS.values()) if is_bootstrap else fraction  # by the inequality of Cauchy and Schwarz
    pair = LearnerPair(loss, teacher, POISSON_WEIGHTS if is_bootstrap else SINGLE_DRAW_WEIGHTS, V)
    scale = alpha * fraction**2 / (length * np.sin(theta)) ** 2

    def compute_excess(cosines: np.ndarray) -> np.ndarray:
        products = (pair.average_displacements(theta, length, mse + equations.noise**2, c) for c in cosines.ravel())
        return np.reshape([scale * product for product in products], cosines.shape) - cosines

    return float(find_zeros(compute_excess, 0.0, (1 + bound) / 2).x)
