r"""Figure 4 of the MinOver assignment (experiment C): eps_g against alpha for several fractions of flipped labels.

Lines: maximum stability, which with flipped labels exists up to alpha_c(flip) only, where they end. Above it MinOver
has no solution: it cycles among examples that contradict each other. The assignment's claims at N = 20, with tmax = 100
in updates, as in its code (`statmech run minover_c`, 100 data sets), and in epochs, as in its text
(`statmech run minover_c updates= epochs=100`):

- "With at least 10 % of noise the vector of optimal stability cannot be found": true above alpha_c, which is 2.99 at
  10 %. Below it the vector exists; after 100 epochs 65 % of the runs are certified within 1 % of it at alpha = 0.5,
  even with random labels. 100 updates are enough for that at alpha = 0.1 only, with noise or without.
- "The predictions are mostly random guesses": no. At 10 % eps_g falls to 0.29 near alpha = 2, and then *rises* with
  more examples, to 0.38 at alpha = 10 (in epochs 0.29 near alpha = 3 and 0.39 at alpha = 10). Only 50 % of noise gives
  random guessing, eps_g = 0.5.

In one sentence the assignment flips only labels that are +1, with probability lambda; its equation flips either. For a
student without a threshold the one is the other at lambda/2: it sees the examples only as :math:`\mathbf z=S\xi`, and
for inputs as likely as their negatives :math:`\mathbf z` before the flip does not depend on the teacher's label, which
is +1 in half of the cases. The labels then have the mean -lambda, which only a threshold could notice. Read this way
the noise ends at lambda/2 = 1/4: alpha_c = 3.81 at lambda = 0.1, and at lambda = 0.5 eps_g is 0.44 at alpha = 10, not
1/2 (`statmech run minover_c flip="{linspace: [0, 0.25, 6]}"`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.panels import dense, finish, panel, with_lines
from figures.published.stored_examples.stored_runs import HOLLOW, at_end, recorded_dimension
from figures.style import PAGE
from theory import noisy_capacity

AXES = ("flip", "alpha")  # of the sweep, that this figure shows
END: dict[str, Any] = {"marker": "|", "markersize": 10, "markeredgewidth": 1.4, "linestyle": "none"}
CAPTION = (
    r"Generalization error of MinOver on $P=\alpha N$ stored examples, whose labels are flipped with probability "
    r"$p_f$, as last recorded. Lines, in the colours of the points: replica theory of maximum stability for "
    r"$N\to\infty$; with noise they end, at the vertical ticks, at the capacity $\alpha_c(p_f)$, above which no "
    r"perceptron classifies all examples correctly."
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw runs as last recorded, and lines up to alpha_c(flip), where a tick marks their end."""
    moment, figure = recorded_dimension(simulation), Figure(figsize=(PAGE, 3.4))
    lines, ax = at_end(dense(theory, "alpha")), figure.add_subplot()
    results = with_lines(at_end(simulation), at_end(theory), lines)
    keys = panel(ax, results, "alpha", "eps_g", "flip", filled=True)
    for key, flip in zip(keys, lines.flip.values, strict=True):
        line, end = lines.eps_g.sel(flip=flip).squeeze(), float(noisy_capacity(flip))
        if end < float(lines.alpha[-1]) and np.isfinite(line).any():
            ax.plot(end, line.values[np.isfinite(line)][-1], color=key.get_color(), zorder=6, **END)
    ax.set_ylim(bottom=0)
    keys.append(Line2D([], [], **END, color="0.3", label=r"capacity $\alpha_c(p_f)$"))
    stated = f"{results.either[moment].item():g} {moment}"
    return finish(figure, results, keys, columns=4, note=f"{stated}; {HOLLOW}")
