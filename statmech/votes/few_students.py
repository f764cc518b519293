r"""The exact majority-vote error of up to four students, by an integral over one angle.

One student has the error :math:`\theta/\pi`. Two students have the error of a random student, since a fair coin decides
a tie. Four have the error of a random triple: without one of four, a majority remains a majority and a tie becomes a
fair coin.

**Three students.** Three signs have the majority :math:`(s_1 + s_2 + s_3 - s_1 s_2 s_3)/2`, and with the
teacher's sign :math:`s_0`

.. math:: \epsilon_g = \tfrac12 - \tfrac14\Big[\sum_k \langle s_0 s_k\rangle
          - \langle s_0 s_1 s_2 s_3\rangle\Big], \qquad \langle s_i s_j\rangle = 1 - 2\theta_{ij}/\pi .

The mean of four signs has no closed form, but its derivatives do (Price's theorem): with the partial correlation of
the other two fields,
:math:`\partial\langle s_0 s_1 s_2 s_3\rangle/\partial\theta_{ij} = -(2/\pi)^2\arcsin\rho_{kl\cdot ij}`.
Turn the teacher from student 1, where :math:`\langle s_0 s_1 s_2 s_3\rangle = \langle s_2 s_3\rangle`, along the great
circle to its final direction. At the angle :math:`\psi` before this direction, student k = 2, 3 has a component
:math:`x_k` along the teacher's motion and a constant part :math:`\mathbf y_k` perpendicular to the circle:

.. math:: x_k = \sin\theta_k\,c_{1k}\cos\psi - \cos\theta_k\sin\psi, \quad
          \mathbf y_k\cdot\mathbf y_l = \sin\theta_k\sin\theta_l\,(c_{kl} - c_{1k}c_{1l}), \quad
          p_k = \sqrt{x_k^2 + \mathbf y_k^2},

with the cosines c of the students' parts perpendicular to the final direction. At :math:`\psi`
:math:`d\theta_{0k}/d\psi = -x_k/p_k`, and with the area :math:`Y = |\mathbf y_2\times\mathbf y_3|`

.. math:: \epsilon_g = \frac{\theta_1 + \theta_2 + \theta_3 - \theta_{23}}{2\pi}
          - \frac1{\pi^2}\Big[\theta_1 A_1
          + \int_0^{\theta_1}\Big(\frac{x_2}{p_2}A_2 + \frac{x_3}{p_3}A_3\Big)d\psi\Big],

.. math:: A_1 = \operatorname{atan2}(\mathbf y_2\cdot\mathbf y_3,\, Y), \qquad
          A_2 = \operatorname{atan2}(\mathbf y_2^2\,x_3 - \mathbf y_2\cdot\mathbf y_3\,x_2,\, p_2 Y), \quad
          A_3 \text{ with 2 and 3 exchanged}.

Every term is of the size of an angle to the teacher, so that nothing cancels as learning succeeds. Where students are
coplanar the arctangents become steps: panels are cut there and halved until they agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from statmech.numerics.gaussian import get_legendre_rule
from statmech.order_parameters import angle_between_students, angle_from_components

MAX_EXACT_STUDENTS = 4
NODES = 10  # per panel and per half panel
VOTE_PANEL_TOL = 1e-13  # relative to the length of the path
MAX_VOTE_PANEL_HALVINGS = 45
MAX_ENSEMBLES_PER_BLOCK = 2**13  # ensembles integrated together; each takes 4 KB
MAX_NARROW_STEP_WIDTH = 0.1  # relative to the path: panels are cut at narrower steps, which would fall between nodes
UNIT_COSINE_TOL = 1e-14
MIN_STUDENT_SHIFT = 1e-20  # relative to the largest angle; separates students that coincide


class TeacherPath(NamedTuple):
    """Parameters of the integrand, arrays (n,), for students sorted by their angles to the teacher."""

    end_angle: np.ndarray  # theta_1
    sin2: np.ndarray  # x_2 at psi = 0
    cos2: np.ndarray
    sin3: np.ndarray
    cos3: np.ndarray
    y22: np.ndarray
    y33: np.ndarray
    y23: np.ndarray
    area: np.ndarray


def few_student_vote_error(parallel: np.ndarray, perpendicular: np.ndarray) -> np.ndarray:
    """Return the error of the majority vote of up to four students.

    The error is 1e-12 of the largest angle to the teacher. It rises to 1e-7 of this angle if students coincide, or are
    coplanar with the teacher, within 1e-6.

    Parameters
    ----------
    parallel : array (..., K)
        The students' components parallel to the teacher, K <= 4.
    perpendicular : array (..., K, K)
        The Gram matrix of their components perpendicular to the teacher.

    Returns
    -------
    array (...)

    Examples
    --------
    Identical students vote like a single student, here at 45 degrees:

    >>> float(few_student_vote_error(np.ones(3), np.ones((3, 3))).round(12))
    0.25
    """
    K = parallel.shape[-1]
    if K <= 2:
        return np.mean(
            angle_from_components(np.sqrt(np.diagonal(perpendicular, axis1=-2, axis2=-1)), parallel) / np.pi, axis=-1
        )
    if K == 3:
        return _three_student_vote_error(parallel, perpendicular)
    triples = np.array([[k for k in range(4) if k != out] for out in range(4)])
    return _three_student_vote_error(
        parallel[..., triples], perpendicular[..., triples[:, :, None], triples[:, None, :]]
    ).mean(axis=-1)


def _three_student_vote_error(parallel: np.ndarray, perpendicular: np.ndarray) -> np.ndarray:
    """Return the vote errors (...) of ensembles of three students, computed in blocks."""
    errors = np.empty(parallel.shape[:-1])
    ensembles, components, products = errors.reshape(-1), parallel.reshape(-1, 3), perpendicular.reshape(-1, 3, 3)
    for first in range(0, len(ensembles), MAX_ENSEMBLES_PER_BLOCK):
        block = slice(first, first + MAX_ENSEMBLES_PER_BLOCK)
        theta, c = _sort_by_angle(components[block], products[block])
        path = _make_teacher_path(theta, c)
        theta_23 = angle_between_students(theta[:, 1], theta[:, 2], c[:, 1, 2])
        bend = path.end_angle * np.arctan2(path.y23, path.area) + _integrate_teacher_path(path)
        ensembles[block] = (theta.sum(axis=-1) - theta_23) / (2 * np.pi) - bend / np.pi**2
    return errors


def _sort_by_angle(parallel_part: np.ndarray, perpendicular: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return angles (n, 3) to the teacher, in increasing order, and cosines (n, 3, 3) of the perpendicular parts."""
    length = np.sqrt(np.diagonal(perpendicular, axis1=-2, axis2=-1))
    theta = angle_from_components(length, parallel_part)
    parallel = length == 0
    scale = np.where(parallel, 1.0, length)
    c = np.clip(perpendicular / scale[:, :, None] / scale[:, None, :], -1.0, 1.0)
    c = np.where(abs(c) > 1 - UNIT_COSINE_TOL, np.sign(c), c)  # a square root would amplify rounding errors to 1e-8
    order = np.argsort(theta, axis=-1, kind="stable")
    rows = np.arange(len(theta))[:, None]
    return theta[rows, order], c[rows[..., None], order[:, :, None], order[:, None, :]]


def _make_teacher_path(theta: np.ndarray, c: np.ndarray) -> TeacherPath:
    """Return the parameters of the integrand from the angles to the teacher and the cosines of the students."""
    (sin1, sin2, sin3), (_, cos2, cos3) = np.sin(theta).T, np.cos(theta).T
    c12, c13, c23 = c[:, 0, 1], c[:, 0, 2], c[:, 1, 2]
    y22, y33 = (1 - c12) * (1 + c12), (1 - c13) * (1 + c13)
    bound = np.sqrt(y22 * y33)
    y23 = np.clip(c23 - c12 * c13, -bound, bound)
    area = (bound - y23) * (bound + y23)
    # shift each student in its own direction, so that identical students form a triangle with well-defined angles
    min_square = (MIN_STUDENT_SHIFT * np.maximum(sin1, np.maximum(sin2, sin3))) ** 2
    y22, y33, y23 = y22 * sin2**2, y33 * sin3**2, y23 * sin2 * sin3
    area = np.sqrt(area * (sin2 * sin3) ** 2 + min_square * (y22 + y33 + min_square))
    return TeacherPath(theta[:, 0], sin2 * c12, cos2, sin3 * c13, cos3, y22 + min_square, y33 + min_square, y23, area)


def _evaluate_vote_integrand(psi: np.ndarray, path: TeacherPath) -> np.ndarray:
    """Evaluate the integrand at angles (n, nodes), for parameters (n, 1)."""
    sin, cos = np.sin(psi), np.cos(psi)
    x2, x3 = path.sin2 * cos - path.cos2 * sin, path.sin3 * cos - path.cos3 * sin
    p2, p3 = np.sqrt(x2**2 + path.y22), np.sqrt(x3**2 + path.y33)
    a2 = np.arctan2(path.y22 * x3 - path.y23 * x2, p2 * path.area)
    a3 = np.arctan2(path.y33 * x2 - path.y23 * x3, p3 * path.area)
    return x2 / p2 * a2 + x3 / p3 * a3


def _integrate_vote_panel(left: np.ndarray, width: np.ndarray, path: TeacherPath) -> np.ndarray:
    """Integrate over one panel (n,) of each path."""
    x, weight = get_legendre_rule(NODES)
    values = _evaluate_vote_integrand(
        left[:, None] + width[:, None] * x, TeacherPath(*(number[:, None] for number in path))
    )
    return width * (weight * values).sum(axis=-1)


def _integrate_teacher_path(path: TeacherPath) -> np.ndarray:
    """Integrate along each path, bisecting every panel whose integral differs from the sum over its halves."""
    edges = _compute_panel_edges(path)
    owner, panel = np.nonzero(np.diff(edges, axis=-1) > 0)
    left, width = edges[owner, panel], np.diff(edges, axis=-1)[owner, panel]
    total = np.zeros_like(path.end_angle)
    previous = _integrate_vote_panel(left, width, TeacherPath(*(number[owner] for number in path)))
    for _ in range(MAX_VOTE_PANEL_HALVINGS):
        if not owner.size:
            break
        owner, width = np.repeat(owner, 2), np.repeat(width / 2, 2)
        left = np.repeat(left, 2)
        left[1::2] += width[1::2]
        half = _integrate_vote_panel(left, width, TeacherPath(*(number[owner] for number in path)))
        halves = half[::2] + half[1::2]
        open_ = abs(halves - previous) > VOTE_PANEL_TOL * path.end_angle[owner[::2]]
        total += np.bincount(owner[::2][~open_], halves[~open_], len(total))
        open_ = np.repeat(open_, 2)
        owner, left, width, previous = owner[open_], left[open_], width[open_], half[open_]
    return total + np.bincount(owner, previous, len(total))


def _compute_panel_edges(path: TeacherPath) -> np.ndarray:
    """Return panel edges (n, 6), including the zeros of x_2, x_3 and the arctangents at narrow steps."""
    h2, h3 = np.sqrt(path.y22), np.sqrt(path.y33)
    s2, c2 = path.y22 * path.sin3 - path.y23 * path.sin2, path.y22 * path.cos3 - path.y23 * path.cos2
    s3, c3 = path.y33 * path.sin2 - path.y23 * path.sin3, path.y33 * path.cos2 - path.y23 * path.cos3
    sin, cos = np.stack([path.sin2, path.sin3, s2, s3]), np.stack([path.cos2, path.cos3, c2, c3])
    narrow = np.stack([h2, h3, h2 * path.area, h3 * path.area]) < MAX_NARROW_STEP_WIDTH * path.end_angle * np.hypot(
        sin, cos
    )
    zero = np.where(narrow, np.arctan2(sin, cos) % np.pi, 0.0)
    return np.sort(np.clip([*zero, np.zeros_like(path.end_angle), path.end_angle], 0.0, path.end_angle), axis=0).T
