r"""Implicit bias: logistic regression on separable examples converges to the perceptron of maximum margin."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.legends import make_curve_handle, make_line_handle
from figures.panels import (
    GUIDE_STYLE,
    add_panel_letters,
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    solve_dense_theory,
)
from figures.style import draw_seed_means, get_curve_style
from statmech.errors import ConfigError
from theory.stored_examples.learning_curves_and_bounds import solve_learner_curve

AXES = ()  # sweep axes that this figure shows
SUPPORTED_VALUES = {"loss": ("logistic",)}
CAPTION = (
    r"Gradient descent on the logistic loss without a penalty, for separable examples. (a) Generalization error "
    r"against the number of epochs $t$. (b) The same error on a scale of $1/\ln t$. Dotted: error of the perceptron of "
    r"maximum margin, which the direction of the weights approaches as $t\to\infty$."
)
MIN_LATE_EPOCHS = 20  # later errors are drawn against 1/ln t
INVERSE_LOG_TIME_TICKS = (
    {r"$\infty$": 0.0}
    | {f"$10^{{{power}}}$": 1 / (power * np.log(10)) for power in (10, 5, 3, 2)}
    | {"30": 1 / np.log(30)}
)


def draw(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the error against the number of epochs t and against 1/ln t."""
    if any(float(theory[name]) for name in ("flip", "noise") if name in theory) or "gain" in theory:
        raise ConfigError('the figure "implicit_bias" requires labels without noise: `teacher: sign`, `flip: 0`')
    lines, (figure, (early, late)) = solve_dense_theory(theory, "epochs"), make_figure(2.9, 1, 2)
    results = combine_with_lines(simulation, theory, lines)
    draw_panel(early, results, "epochs", "eps_g", log="x")
    line, runs = (part.sel(epochs=part.epochs >= MIN_LATE_EPOCHS) for part in (lines, simulation))
    late.plot(1 / np.log(line.epochs), line.eps_g, color=get_curve_style(0)["color"])
    draw_seed_means(late, 1 / np.log(runs.epochs), runs.eps_g, 0)
    late.set(xlabel=r"$t$ (epochs), on a scale of $1/\ln t$", xlim=(0, None))
    late.set_xticks([*INVERSE_LOG_TIME_TICKS.values()], [*INVERSE_LOG_TIME_TICKS])
    margin = solve_learner_curve("max_stability", np.atleast_1d(theory.alpha.values), 0.0).theta[0] / np.pi
    draw_guide(early, late, y=float(margin))
    early.set(xlabel="$t$ (epochs)")
    add_panel_letters(early, late)
    return add_title_and_legend(
        figure,
        results,
        [make_curve_handle(0, "gradient descent"), make_line_handle("maximum margin", **GUIDE_STYLE)],
        "loss",
        "alpha",
        "eta",
    )
