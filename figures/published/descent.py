"""Figures of gradient descent on separable examples: the implicit bias, and Rosenblatt's rule on all examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterMathtext
from scipy.interpolate import PchipInterpolator

from figures.panels import (
    GUIDE_STYLE,
    GUIDE_TEXT_STYLE,
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
from figures.style import THEORY_COLOUR, draw_seed_means, get_curve_style
from statmech.errors import ConfigError
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results.results import as_results
from theory import separability, solve
from theory.stored_examples.learning_curves_and_bounds import solve_learner_curve

MIN_LATE_EPOCHS = 20  # later errors are drawn against 1/ln t
MAX_PENALTY_PATH_EPOCHS, PENALTY_PATH_POINTS = 1e80, 30
PENALTY_PATH_STYLE: dict[str, Any] = {"color": THEORY_COLOUR, "linestyle": "--", "linewidth": 0.9}
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
    margin = float(solve_learner_curve("max_stability", np.atleast_1d(theory.alpha.values), 0.0).theta[0] / np.pi)
    late.plot(*_solve_penalised_minima(theory, margin), **PENALTY_PATH_STYLE)
    draw_guide(early, late, y=margin)
    early.set(xlabel="$t$ (epochs)")
    early.xaxis.set_major_formatter(LogFormatterMathtext())
    add_panel_letters(early, late)
    keys = [
        make_curve_handle(0, "gradient descent"),
        make_line_handle(r"minimum with penalty $1/(\eta t)$", **PENALTY_PATH_STYLE),
        make_line_handle("maximum margin", **GUIDE_STYLE),
    ]
    return add_title_and_legend(figure, results, keys, "loss", "alpha", "eta")


def _solve_penalised_minima(theory: xr.Dataset, margin_error: float) -> tuple[np.ndarray, np.ndarray]:
    """Return 1/ln t and the error of the minimum with the penalty 1/(eta t), to the limit of maximum margin."""
    inverse_log = np.linspace(1 / np.log(MIN_LATE_EPOCHS), 1 / np.log(MAX_PENALTY_PATH_EPOCHS), PENALTY_PATH_POINTS)
    keys = {name: theory[name].item() for name in ("loss", "teacher", "alpha")}
    lam = np.exp(-1 / inverse_log) / float(theory.eta)
    errors = solve(scenario_from({**keys, "lam": lam.tolist()})).eps_g.values.ravel()
    return np.append(inverse_log, 0.0), np.append(errors, margin_error)


implicit_bias = PublishedFigure(
    draw=draw_implicit_bias,
    supported_values={"loss": ("logistic",)},
    caption=(
        r"Gradient descent on the logistic loss without a penalty, for separable examples. (a) Generalization error "
        r"against the number of epochs $t$. (b) The same error on a scale of $1/\ln t$. Dotted: error of the "
        r"perceptron of maximum margin, which the direction of the weights approaches as $t\to\infty$. Dashed: "
        r"minimum of the loss with the penalty $\lambda=1/(\eta t)$ (theory), which descent follows."
    ),
)


SEPARATION_ERROR_THRESHOLD = 1e-2  # a lower training error counts as separation
SEPARATION_LINE_POINTS = 60
SEPARABLE_NOTE = (
    r"$p_f$: flipped fraction of the labels; $\alpha_c$: above it, no student separates the examples; "
    "epoch: step with all $P$ examples (between epochs, lines interpolate)"
)


def draw_batch_perceptron(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw the training error at one alpha and the epochs until separation, one colour per flip fraction."""
    last = float(theory.alpha[-1])
    parts, (figure, (error, time)) = [part.sel(alpha=last) for part in (simulation, theory)], make_figure(2.9, 1, 2)
    results = replace(as_results(*parts), lines=_interpolate_over_epochs(parts[1]))  # dense theory is too inaccurate
    keys = draw_panel(error, results, "epochs", "eps_t", "flip", log="xy", label=rf"$\epsilon_t$ at $\alpha={last:g}$")
    draw_guide(error, y=SEPARATION_ERROR_THRESHOLD)
    text_style = GUIDE_TEXT_STYLE | {"xycoords": error.get_yaxis_transform()}
    error.annotate("threshold of (b)", (0, SEPARATION_ERROR_THRESHOLD), (3, 3), **text_style)
    for index, flip in enumerate(theory.flip.values):
        line, runs = (find_separation_epochs(part.eps_t.sel(flip=flip)) for part in (theory, simulation))
        colour = get_curve_style(index)["color"]
        alphas, epochs = (values[np.isfinite(line)] for values in (theory.alpha.values, line.values))
        if alphas.size > 1:
            grid = np.linspace(alphas[0], alphas[-1], SEPARATION_LINE_POINTS)
            time.plot(grid, np.exp(PchipInterpolator(alphas, np.log(epochs))(grid)), color=colour)
        draw_seed_means(time, simulation.alpha, runs, index)
        draw_guide(time, x=float(separability("sign", flip=flip)), text=r"$\alpha_c$", color=colour)
    set_log_axes(time, "y")
    time.margins(x=0.1)  # room for the label of the last guide
    time.set(xlabel=r"$\alpha$ ($P$ / $N$)", ylabel=rf"epochs until $\epsilon_t={SEPARATION_ERROR_THRESHOLD:g}$")
    add_panel_letters(error, time)
    return add_title_and_legend(figure, results, keys, "loss", note=SEPARABLE_NOTE)


def _interpolate_over_epochs(theory: xr.Dataset) -> xr.Dataset:
    """Interpolate the training error of theory between the recorded epochs, in logarithms."""
    logs = np.log(theory.eps_t.transpose("epochs", ...).where(theory.eps_t > 0))
    grid = np.geomspace(theory.epochs.values[0], theory.epochs.values[-1], SEPARATION_LINE_POINTS)
    values = np.exp(PchipInterpolator(np.log(theory.epochs.values), logs.values)(np.log(grid)))
    return xr.Dataset({"eps_t": (logs.dims, values)}, {"flip": theory.flip, "epochs": grid})


batch_perceptron = PublishedFigure(
    draw=draw_batch_perceptron,
    axes=("flip", "alpha"),
    supported_values={"loss": ("perceptron",)},
    caption=(
        r"Rosenblatt's rule applied to all examples at once, which is gradient descent on the loss $\max(0,-yh)$. "
        r"(a) Training error against the number of epochs, at the largest $\alpha$; arrows at the foot: 0. (b) "
        r"Number of epochs until one example in a hundred is misclassified, if this takes longer than the first "
        r"recorded epochs; lines interpolate theory at the $\alpha$ of the simulation. Dotted, in the colour of the "
        r"flip fraction: $\alpha_c$, above which no student classifies all examples correctly."
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
