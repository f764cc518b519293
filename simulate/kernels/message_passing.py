r"""Approximate message passing (AMP): it estimates weights from outputs of their fields w.x/sqrt(N).

For inputs X (P, N) of independent entries of mean 0 and variance 1, with the mean V of the weights' variances,

.. math:: \omega &= \frac{X\mathbf w}{\sqrt N} - V\,\mathbf g, \qquad
          g_\mu = g(\omega_\mu, V), \qquad s = -\frac1N\sum_\mu\partial_\omega g(\omega_\mu, V), \\
          \mathbf r &= s\,\mathbf w + \frac{X^T\mathbf g}{\sqrt N}, \qquad
          w_i, v_i = \text{estimate}(r_i, s), \qquad V = \frac1N\sum_i v_i

(Rangan 2011, with scalar variances; the term :math:`V\mathbf g`, with g of the step before, is Onsager's). The output
function g and the estimate determine the result: the teacher's `score` and the prior's `posterior` give the
Bayes-optimal estimate; the proximal points of a loss and of a penalty give the minimum of the empirical risk
(`simulate.kernels.least_risk`). Undamped steps follow state evolution for such inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

Output = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]  # (omega, V) -> g, -dg/domega
Estimate = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]  # (r, s) -> weights, variances

SMALLEST = 1e-300  # avoids division by 0 in relative changes
RECOVERED = 1e-9  # discrete weights are then known, and later steps would divide rounding errors by 0


def messages(
    X: np.ndarray,
    output: Output,
    estimate: Estimate,
    w: np.ndarray,
    V: float,
    settled: float = 0.0,
    kept: float = 0.0,
    recovered: float = RECOVERED,
    root: float | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Yield the weights (N,) after each step from `w` of variance V, the g (P,) of the step, and the change.

    Parameters
    ----------
    X : array (P, N)
        Inputs.
    output, estimate
        The functions g and estimate.
    w : array (N,)
        Weights at the start.
    V : float
        Their mean variance.
    settled : float
        Root mean square change of the weights in a step, relative to the weights. The steps end below it.
    kept : float
        Fraction of the old weights in a step (damping). Fixed points do not depend on it.
    recovered : float
        Lowest variance V. The steps end below it.
    root : float
        Divisor of X: the root of N, or 1 if X has already been divided.

    Yields
    ------
    w, g, change : arrays (N,), (P,), float
        The weights, g, and the relative root mean square change of the weights.

    Examples
    --------
    Ridge regression, (y - h)^2/2 and |w|^2/2: N = 1 has w = X.y/(1 + X.X).

    >>> X, y = np.array([[1.0], [-2.0]]), np.array([1.0, 0.0])
    >>> steps = messages(X, lambda h, V: ((y - h) / (1 + V), np.full(2, 1 / (1 + V))),
    ...                  lambda r, s: (r / (s + 1), np.full(1, 1 / (s + 1))), np.zeros(1), 1.0, 1e-12)
    >>> len(list(steps)) < 100
    True
    """
    N, g = len(w), np.zeros(len(X))
    root = np.sqrt(N) if root is None else root
    while recovered < V:
        g, steepness = output(X @ w / root - V * g, V)
        s = max(float(np.sum(steepness)) / N, 0.0)  # few, partly flipped labels may give a negative sum
        before = w
        w, variances = estimate(s * w + g @ X / root, s)
        w, V = kept * before + (1 - kept) * w if kept else w, float(np.mean(variances))
        change = float(np.linalg.norm(w - before)) / max(float(np.linalg.norm(w)), SMALLEST)
        yield w, g, change
        if change <= settled:
            return
