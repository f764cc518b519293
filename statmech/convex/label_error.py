r"""The probability that a student mispredicts a fresh noisy label, from its cosine with the teacher.

Student and teacher have normal fields h, u of cosine R, and the label y is +1 with probability p(u), where
p(-u) = 1 - p(u). By Price's theorem the derivative of an average with respect to R averages the second derivative,
:math:`\partial_R\langle(2p(u)-1)\,\mathrm{sgn}\,h\rangle = \langle 2p'(u)\,2\delta(h)\rangle`, and at h = 0 the
teacher's field has mean 0 and variance :math:`1-R^2`. With the teacher's `response` :math:`\chi` and R = sin t

.. math:: P(yh<0) = \frac12 - \sqrt{\frac2\pi}\int_0^{\arcsin R}\chi(0, \cos^2 t)\,\cos t\,dt .
"""

from __future__ import annotations

import numpy as np

from statmech.convex.teachers import LabelTeacher
from statmech.numerics.gaussian import make_panel_rules

NODES_PER_ANGLE_PANEL = 16  # per panel
ANGLE_PANEL_EDGES = np.pi / 2 - np.append(
    np.pi / 2 * 0.25 ** np.arange(14.0), 0.0
)  # finer where the response of a steep teacher rises


def label_error(teacher: LabelTeacher, R: np.ndarray | float) -> np.ndarray:
    r"""Return the probability that a student with cosine R mispredicts a fresh label of a teacher.

    .. math:: \epsilon_y = P(y h < 0)

    Parameters
    ----------
    teacher : LabelTeacher
        The dependence of labels on the teacher's field.
    R : array (...)
        Cosines of student and teacher, from -1 to 1.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> from statmech.convex.teachers import SignTeacher
    >>> round(float(label_error(SignTeacher(flip=0.1), 0.5)), 12)        # 0.1 + 0.8 arccos(0.5) / pi
    0.366666666667
    """
    angle = np.arcsin(np.clip(R, -1, 1))
    size = np.abs(angle)
    t, weight = make_panel_rules(
        np.minimum(ANGLE_PANEL_EDGES.reshape((-1,) + (1,) * size.ndim), size), NODES_PER_ANGLE_PANEL
    )
    cosine = np.cos(t)
    slope = teacher.mean_probability_slope(np.zeros_like(t), cosine**2) * cosine
    return 0.5 - np.sign(angle) * np.sqrt(2 / np.pi) * np.sum(weight * slope, axis=(0, -1))
