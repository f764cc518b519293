r"""Implicit bias: logistic regression of separable examples converges to the perceptron of maximum margin."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import entry, line_with_points
from figures.panels import GUIDE, dense, finish, guide, letters, page, panel, with_lines
from figures.style import look_of, points
from statmech.errors import ConfigError
from theory.stored_examples.learning_curves import curve_of

AXES = ()  # sweep axes that this figure shows
VALUES = {"loss": ("logistic",)}
CAPTION = (
    r"Descent of the logistic loss without a penalty, on examples that can be separated. (a) Generalization error "
    r"against the number of epochs $t$. (b) The same on a scale of $1/\ln t$. Dotted: the perceptron of maximum "
    r"margin, which the direction of the weights approaches as $t\to\infty$."
)
LATE = 20  # later errors are drawn against 1/ln t
TICKS = (
    {r"$\infty$": 0.0}
    | {f"$10^{{{power}}}$": 1 / (power * np.log(10)) for power in (10, 5, 3, 2)}
    | {"30": 1 / np.log(30)}
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error against epochs, and against the inverse of their logarithm."""
    if any(float(theory[name]) for name in ("flip", "noise") if name in theory) or "gain" in theory:
        raise ConfigError("the figure implicit_bias needs labels without noise: `teacher: sign`, `flip: 0`")
    lines, (figure, (early, late)) = dense(theory, "epochs"), page(2.9, 1, 2)
    results = with_lines(simulation, theory, lines)
    panel(early, results, "epochs", "eps_g", log="x")
    line, runs = (part.sel(epochs=part.epochs >= LATE) for part in (lines, simulation))
    late.plot(1 / np.log(line.epochs), line.eps_g, color=look_of(0)["color"])
    points(late, 1 / np.log(runs.epochs), runs.eps_g, 0)
    late.set(xlabel=r"$t$ (epochs), on a scale of $1/\ln t$", xlim=(0, None))
    late.set_xticks([*TICKS.values()], [*TICKS])
    margin = curve_of("max_stability", np.atleast_1d(theory.alpha.values), 0.0).theta[0] / np.pi
    guide(early, late, y=float(margin))
    early.set(xlabel="$t$ (epochs)")
    letters(early, late)
    return finish(
        figure,
        results,
        [line_with_points(0, "gradient descent"), entry("maximum margin", **GUIDE)],
        "loss",
        "alpha",
        "eta",
    )
