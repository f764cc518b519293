r"""Approximate message passing (AMP), which estimates weights from outputs of the fields w.x/sqrt(N).

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

OutputFunction = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]  # (omega, V) -> g, -dg/domega
EstimateFunction = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]  # (r, s) -> weights, variances

MIN_WEIGHT_NORM = 1e-300  # avoids division by 0 in relative changes
RECOVERED_VARIANCE_TOL = 1e-9  # discrete weights are then known: another step would divide rounding errors by 0


def iterate_messages(
    X: np.ndarray,
    output: OutputFunction,
    estimate: EstimateFunction,
    w: np.ndarray,
    V: float,
    change_tol: float = 0.0,
    damping: float = 0.0,
    variance_tol: float = RECOVERED_VARIANCE_TOL,
    input_scale: float | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Iterate from weights w of variance V, and yield weights (N,), g (P,) and change after each step.

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
    change_tol : float
        Root mean square change of the weights in a step, relative to the weights. The steps end below it.
    damping : float
        Fraction of the old weights in a step (damping). Fixed points do not depend on it.
    variance_tol : float
        Lowest variance V. The steps end below it.
    input_scale : float
        Divisor of X: the root of N, or 1 if X has already been divided.

    Yields
    ------
    w, g, change : arrays (N,), (P,), float
        The weights, g, and the relative root mean square change of the weights.

    Examples
    --------
    Ridge regression, (y - h)^2/2 and |w|^2/2: N = 1 has w = X.y/(1 + X.X).

    >>> X, y = np.array([[1.0], [-2.0]]), np.array([1.0, 0.0])
    >>> steps = iterate_messages(X, lambda h, V: ((y - h) / (1 + V), np.full(2, 1 / (1 + V))),
    ...                  lambda r, s: (r / (s + 1), np.full(1, 1 / (s + 1))), np.zeros(1), 1.0, 1e-12)
    >>> len(list(steps)) < 100
    True
    """
    N, g = len(w), np.zeros(len(X))
    input_scale = np.sqrt(N) if input_scale is None else input_scale
    while variance_tol < V:
        g, steepness = output(X @ w / input_scale - V * g, V)
        s = max(float(np.sum(steepness)) / N, 0.0)  # the sum may be negative with few examples or flipped labels
        before = w
        w, variances = estimate(s * w + g @ X / input_scale, s)
        w, V = damping * before + (1 - damping) * w if damping else w, float(np.mean(variances))
        change = float(np.linalg.norm(w - before)) / max(float(np.linalg.norm(w)), MIN_WEIGHT_NORM)
        yield w, g, change
        if change <= change_tol:
            return
