r"""Updates of margin-based learners, which add each example whose margin does not exceed theta.

.. math:: \mathbf w \leftarrow \mathbf w + s\,y\,\mathbf x \quad\text{if}\quad y\,\mathbf w\cdot\mathbf x \le \theta

The label is y, and the updates differ in the strength s. The constant feature of a bias is one component of x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


def perceptron_strength(loss: float, squared_length: float, aggressiveness: float) -> float:
    """Return the update strength of the perceptron rule, which is 1 for any loss."""
    return 1.0


def passive_aggressive_strength(loss: float, squared_length: float, aggressiveness: float) -> float:
    r"""Return the update strength of the passive-aggressive rule PA-I (Crammer et al. 2006).

    .. math:: s = \min\Bigl(C,\ \frac{\ell}{|\mathbf x|^2}\Bigr), \qquad
              \ell = \max(0,\ \theta - y\,\mathbf w\cdot\mathbf x),

    which solves :math:`\min_{\mathbf w'}\ \tfrac12|\mathbf w'-\mathbf w|^2 + C\,\ell(\mathbf w')`: the smallest change
    that removes the loss, unless the strength would exceed C.

    Parameters
    ----------
    loss : float
        The loss, not negative.
    squared_length : float
        Squared length of the example.
    aggressiveness : float
        The bound C.

    Returns
    -------
    float
        The strength s; 0 for an example of length 0, which no weights can change.

    Examples
    --------
    >>> passive_aggressive_strength(1.0, 4.0, 1.0), passive_aggressive_strength(1.0, 4.0, 0.1)
    (0.25, 0.1)
    """
    return min(aggressiveness, loss / squared_length) if squared_length > 0 else 0.0


class MarginUpdateRule(NamedTuple):
    """An update rule: its default margin threshold and the function for its strength."""

    theta: float
    strength: Callable[[float, float, float], float]


MARGIN_UPDATE_RULES = {
    "perceptron": MarginUpdateRule(0.0, perceptron_strength),
    "passive_aggressive": MarginUpdateRule(1.0, passive_aggressive_strength),
}
