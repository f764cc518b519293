"""Figures of gradient descent on separable examples: the implicit bias, and Rosenblatt's rule on all examples."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.panels import (
    GUIDE_STYLE,
    add_panel_letters,
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_curve_handle,
    make_figure,
    make_line_handle,
    set_log_axes,
    solve_dense_theory,
)
from figures.published_figure import PublishedFigure
from figures.style import draw_seed_means, get_curve_style
from statmech.errors import ConfigError
from statmech.results.results import as_results
from theory import separability
from theory.stored_examples.learning_curves_and_bounds import solve_learner_curve

MIN_LATE_EPOCHS = 20  # later errors are drawn against 1/ln t
INVERSE_LOG_TIME_TICKS = (
    {r"$\infty$": 0.0}
    | {f"$10^{{{power}}}$": 1 / (power * np.log(10)) for power in (10, 5, 3, 2)}
    | {"30": 1 / np.log(30)}
)


def draw_implicit_bias(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
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


implicit_bias = PublishedFigure(
    draw=draw_implicit_bias,
    supported_values={"loss": ("logistic",)},
    caption=(
        r"Gradient descent on the logistic loss without a penalty, for separable examples. (a) Generalization error "
        r"against the number of epochs $t$. (b) The same error on a scale of $1/\ln t$. Dotted: error of the "
        r"perceptron of maximum margin, which the direction of the weights approaches as $t\to\infty$."
    ),
)


SEPARATION_ERROR_THRESHOLD = 1e-2  # a lower training error counts as separation


def draw_batch_perceptron(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the training error at one alpha and the epochs until separation, one colour per flip fraction."""
    last = float(theory.alpha[-1])
    parts, (figure, (error, time)) = [part.sel(alpha=last) for part in (simulation, theory)], make_figure(2.9, 1, 2)
    results = as_results(*parts)  # dense theory lines are too inaccurate for such small errors
    keys = draw_panel(error, results, "epochs", "eps_t", "flip", log="xy", label=rf"$\epsilon_t$ at $\alpha={last:g}$")
    draw_guide(error, y=SEPARATION_ERROR_THRESHOLD)
    for index, flip in enumerate(theory.flip.values):
        line, runs = (find_separation_epochs(part.eps_t.sel(flip=flip)) for part in (theory, simulation))
        time.plot(theory.alpha, line, color=get_curve_style(index)["color"])
        draw_seed_means(time, simulation.alpha, runs, index)
        draw_guide(time, x=float(separability("sign", flip=flip)), color=get_curve_style(index)["color"])
    set_log_axes(time, "y")
    time.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel=rf"epochs until $\epsilon_t={SEPARATION_ERROR_THRESHOLD:g}$")
    add_panel_letters(error, time)
    return add_title_and_legend(figure, results, [*keys, make_line_handle(r"$\alpha_c$", **GUIDE_STYLE)], "loss")


batch_perceptron = PublishedFigure(
    draw=draw_batch_perceptron,
    axes=("flip", "alpha"),
    supported_values={"loss": ("perceptron",)},
    caption=(
        r"Rosenblatt's rule applied to all examples at once, which is gradient descent on the loss $\max(0,-yh)$. "
        r"(a) Training error against the number of epochs, at the largest $\alpha$; triangles at the foot: 0. (b) "
        r"Number of epochs until one example in a hundred is misclassified, if this takes longer than the first "
        r"recorded epochs; lines join theory at the $\alpha$ of the simulation. Dotted, in the colour of the flip "
        r"fraction: $\alpha_c$, above which no student classifies all examples correctly."
    ),
)


def find_separation_epochs(error: xr.DataArray) -> xr.DataArray:
    """Find the number of epochs until a training error falls below `SEPARATION_ERROR_THRESHOLD`.

    The result is interpolated logarithmically between recorded epochs, and NaN if there is no such epoch.
    """
    epochs = error.epochs.values

    def find_crossing(values: np.ndarray) -> float:
        below = np.flatnonzero(values < SEPARATION_ERROR_THRESHOLD)
        if not below.size or below[0] == 0:
            return np.nan
        ends = slice(below[0] - 1, below[0] + 1)
        logs = np.log(np.maximum(values[ends], SEPARATION_ERROR_THRESHOLD / 10))
        return float(np.exp(np.interp(-np.log(SEPARATION_ERROR_THRESHOLD), -logs, np.log(epochs[ends]))))

    return xr.apply_ufunc(find_crossing, error, input_core_dims=[["epochs"]], vectorize=True)
