r"""Approximate message passing (AMP), which finds weights from outputs of their fields w.x/sqrt(N).

For inputs X (P, N) of independent entries of mean 0 and variance 1, with the mean V of the weights' variances,

.. math:: \omega &= \frac{X\mathbf w}{\sqrt N} - V\,\mathbf g, \qquad
          g_\mu = g(\omega_\mu, V), \qquad s = -\frac1N\sum_\mu\partial_\omega g(\omega_\mu, V), \\
          \mathbf r &= s\,\mathbf w + \frac{X^T\mathbf g}{\sqrt N}, \qquad
          w_i, v_i = \text{estimate}(r_i, s), \qquad V = \frac1N\sum_i v_i

(Rangan 2011, with scalar variances; the term :math:`V\mathbf g`, with g of the step before, is Onsager's). The output
function g and the estimate decide what is computed: the teacher's `score` and the prior's `posterior` give the
Bayes-optimal estimate; the proximal points of a loss and of a penalty give the minimum of the empirical risk
(`simulate.kernels.least_risk`). Undamped steps follow state evolution for such inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

Output = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]  # of omega and V: g, and minus its derivative
Estimate = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]  # of r and s: weights and their variances

SMALLEST = 1e-300  # length of weights that a change is divided by
RECOVERED = 1e-9  # variance below which weights that are atoms are known; later steps would divide rounding by 0


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
    """The weights (N,) after each step from `w` of variance V, the g (P,) that has led to them, and their change.

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
        Root mean square change of the weights in a step, relative to theirs, at which the steps end.
    kept : float
        Fraction of the weights that a step keeps (damping), which fixed points do not depend on.
    recovered : float
        Variance V below which the steps end.
    root : float
        What X is divided by: the root of N, or 1 where it has been divided already.

    Yields
    ------
    w, g, change : arrays (N,), (P,), float
        The weights, g, and their relative root mean square change. It ends where they are settled, or recovered.

    Examples
    --------
    Ridge regression, (y - h)^2/2 and |w|^2/2: N = 1 has w = X.y/(1 + X.X).

    >>> X, y = np.array([[1.0], [-2.0]]), np.array([1.0, 0.0])
    >>> steps = messages(X, lambda h, V: ((y - h) / (1 + V), np.full(2, 1 / (1 + V))),
    ...                  lambda r, s: (r / (s + 1), np.full(1, 1 / (s + 1))), np.zeros(1), 1.0, settled=1e-12)
    >>> len(list(steps)) < 100
    True
    """
    N, g = len(w), np.zeros(len(X))
    root = np.sqrt(N) if root is None else root
    while recovered < V:
        g, steepness = output(X @ w / root - V * g, V)
        s = max(float(np.sum(steepness)) / N, 0.0)  # few labels, of which some are flipped, may give less
        before = w
        w, variances = estimate(s * w + g @ X / root, s)
        w, V = kept * before + (1 - kept) * w if kept else w, float(np.mean(variances))
        change = float(np.linalg.norm(w - before)) / max(float(np.linalg.norm(w)), SMALLEST)
        yield w, g, change
        if change <= settled:
            return
