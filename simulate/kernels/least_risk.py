r"""The weights of least empirical risk by message passing, a second solver beside those that descend.

In `simulate.kernels.message_passing`, with the proximal points p of the loss and w of the penalty,

.. math:: g = \frac{p - \omega}V, \quad p = \mathrm{argmin}_p\,\frac{(p-\omega)^2}{2V} + \ell(p), \qquad
          \mathbf w = \mathrm{argmin}_{\mathbf w}\,\tfrac s2|\mathbf w|^2 - \mathbf r\cdot\mathbf w + r(\mathbf w).

Fixed points are minima, whatever V and s are: there :math:`X\mathbf w/\sqrt N = \omega + V\mathbf g = p`, so that g is
minus the slope of the loss at the fields, and :math:`X^T\mathbf g/\sqrt N = \mathbf r - s\mathbf w` is the slope of the
penalty.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np

from simulate.kernels.message_passing import Estimate, Output, messages
from statmech.convex.losses import Loss
from statmech.convex.penalties import Penalty
from statmech.convex.prox import force, prox, response

DAMPED = 0.5  # fraction of the weights that is kept where steps without damping do not converge
LEAST = 1e-8  # variance of a weight and stiffness, above it; no minimum depends on them


class Minimised(NamedTuple):
    """Weights (N,), the steps that were made, and whether the last one has left them unchanged."""

    w: np.ndarray
    steps: int
    converged: bool


def minimise_by_messages(
    X: np.ndarray,
    y: np.ndarray,
    loss: Loss,
    penalty: Penalty,
    lam: float,
    steps: int = 2000,
    settled: float = 1e-11,
) -> Minimised:
    r"""The weights of least risk, :math:`\sum_\mu\ell(x_\mu) + r(\mathbf w)`, by message passing.

    For inputs of independent entries, first without damping, then with it. It may not converge where the penalty hardly
    decides between minima (l1 below N examples, the absolute loss, at small lam; hinge and l1), or for other inputs.

    Parameters
    ----------
    X : array (P, N)
        Inputs.
    y : array (P,)
        Outputs: labels of +-1 for a loss of stabilities.
    loss, penalty, lam
        What is minimised.
    steps : int
        The most steps, without damping and with it.
    settled : float
        Relative change of the weights in a step at which they have converged.

    Returns
    -------
    Minimised

    Examples
    --------
    >>> from statmech.convex.losses import Square
    >>> X, y = np.array([[1.0], [-2.0]]), np.array([1.0, 0.0])
    >>> minimise_by_messages(X, y, Square(), Penalty(), 1.0).w.round(6)         # X.y/(1 + X.X)
    array([0.166667])
    """
    made = 0
    for kept in (0.0, DAMPED):
        attempt = _attempt(
            X, _risk(loss, y), _shrunk(penalty, lam), _first_variance(penalty, lam), steps, settled, kept
        )
        made += attempt.steps
        if attempt.converged:
            break
    return attempt._replace(steps=made)


def _first_variance(penalty: Penalty, lam: float) -> float:
    """The variance of a weight under the penalty alone, where that is quadratic."""
    return 1 / max(float(penalty.parts(lam)[1]), LEAST) if penalty.share < 1 else 1.0


def _attempt(
    X: np.ndarray, output: Output, estimate: Estimate, V: float, steps: int, settled: float, kept: float
) -> Minimised:
    w, made, converged = np.zeros(X.shape[1]), 0, False
    with np.errstate(all="ignore"):  # where it diverges
        for new in islice(messages(X, output, estimate, w, V, kept=kept), steps):
            made += 1
            w, change = new, np.linalg.norm(new - w)
            converged = bool(change <= settled * np.linalg.norm(new))
            if converged or not np.isfinite(change):
                break
    return Minimised(w, made, converged)


def _risk(loss: Loss, y: np.ndarray) -> Output:
    """The output function of a loss of stabilities y h or of residuals y - h."""
    sign, shift = (y, 0.0) if loss.of == "stability" else (-1.0, y)

    def output(h: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray]:
        x = shift + sign * h
        p = prox(loss, x, V)
        return sign * force(loss, p, x, V), (1 - response(loss, p, V)) / V

    return output


def _shrunk(penalty: Penalty, lam: float) -> Estimate:
    """The weights of least :math:`sw^2/2 - rw` and penalty."""
    l1, l2 = penalty.parts(lam)

    def estimate(r: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
        stiffness = max(s + l2, LEAST)
        free = np.abs(r) > l1
        return np.where(free, r - l1 * np.sign(r), 0.0) / stiffness, np.maximum(free / stiffness, LEAST)

    return estimate
