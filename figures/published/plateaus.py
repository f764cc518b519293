r"""Figures of the symmetric plateau of two student units, and of the runs that escape from it.

`plateau` shows single runs against the time since their escape, `escape` the distribution of escape times, and
`plateau_spread` the escape for inputs with two variances.

Escape times: the quantity

.. math:: u = \tfrac12(R_{11} + R_{22} - R_{12} - R_{21})

vanishes on the symmetric plateau. Its sign determines the assignment of student units to teacher units. A run escapes
when :math:`|u|` first reaches `ESCAPE_ASYMMETRY_THRESHOLD`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import erf

from figures.panels import (
    GUIDE_STYLE,
    add_title_and_legend,
    combine_with_lines,
    draw_guide,
    draw_panel,
    make_figure,
    make_line_handle,
    make_points_handle,
    modify_scenario,
    select_with_dense_theory,
    set_log_axes,
)
from figures.published_figure import PublishedFigure
from figures.style import CURVE_COLOURS, NO_LEGEND_GID, THEORY_COLOUR, draw_mean_points, get_curve_style
from statmech.errors import ConfigError
from statmech.inputs.input_distributions import Spectrum
from statmech.numerics.gaussian import normal_density
from statmech.stores.dataset import scenario_from_dataset
from theory import solve
from theory.networks import plateaus_and_critical_rate

ESCAPE_ASYMMETRY_THRESHOLD = 0.25  # value of |u| at the escape


def compute_overlap_asymmetry(dataset: xr.Dataset) -> xr.DataArray:
    """Compute the asymmetry u of the overlaps, which vanishes on the plateau."""
    R = dataset.R
    same = R.isel(student=0, teacher_unit=0) + R.isel(student=1, teacher_unit=1)
    crossed = R.isel(student=0, teacher_unit=1) + R.isel(student=1, teacher_unit=0)
    return (same - crossed) / 2


def find_escape_times(dataset: xr.Dataset) -> np.ndarray:
    """Find the escape time of each run (..., seed), by interpolation between recorded times.

    The time is NaN for a run that does not escape.
    """
    u = abs(compute_overlap_asymmetry(dataset)).transpose(..., "t").values
    t = dataset.t.values
    first_index = np.argmax(u >= ESCAPE_ASYMMETRY_THRESHOLD, axis=-1)  # 0 for runs that do not escape
    late, early = (np.take_along_axis(u, np.maximum(first_index - k, 0)[..., None], -1)[..., 0] for k in (0, 1))
    growing = (first_index > 0) & (early > 0)
    late, early = np.where(growing, late, 2.0), np.where(growing, early, 1.0)
    fraction = np.log(ESCAPE_ASYMMETRY_THRESHOLD / early) / np.log(late / early)  # u grows exponentially
    t_before = t[np.maximum(first_index - 1, 0)]
    return np.where(growing, t_before + fraction * (t[first_index] - t_before), np.nan)


def split_own_and_other_overlaps(dataset: xr.Dataset) -> xr.Dataset:
    """Return eps_g, the specialisation, and overlaps with own units and with other units.

    A student unit finally specialises on its own teacher unit.
    """
    R, Q, u = dataset.R, dataset.Q, compute_overlap_asymmetry(dataset)
    same = (R.isel(student=0, teacher_unit=0) + R.isel(student=1, teacher_unit=1)) / 2
    crossed = (R.isel(student=0, teacher_unit=1) + R.isel(student=1, teacher_unit=0)) / 2
    final = u.isel(t=-1)
    parts = {
        "eps_g": dataset.eps_g,
        "specialisation": dataset.specialisation,
        "R_own": xr.where(final > 0, same, crossed),
        "R_other": xr.where(final > 0, crossed, same),
        "Q_own": (Q.isel(student=0, other=0) + Q.isel(student=1, other=1)) / 2,
        "Q_other": Q.isel(student=0, other=1),
        "R": R,
    }
    return xr.Dataset(
        {
            name: part.drop_vars(("student", "teacher_unit", "other"), errors="ignore") if name != "R" else part
            for name, part in parts.items()
        }
    )


def align_runs_at_escape(dataset: xr.Dataset, times_since_escape: np.ndarray) -> xr.Dataset:
    """Interpolate escaping runs at times relative to their escape.

    Values are NaN at times that were not recorded.
    """
    from scipy.interpolate import CubicSpline  # imported late: an overlay of few times needs no splines

    times, t = find_escape_times(dataset), dataset.t.values
    if not np.isfinite(times).any():
        raise ConfigError(f"no run has left the plateau by t = {t[-1]:g}")
    runs = dataset.drop_vars("R").isel(seed=np.isfinite(times))
    run_times = times[np.isfinite(times)][:, None] + times_since_escape
    is_recorded = (t[0] <= run_times) & (run_times <= t[-1])
    variables = {}
    for name, values in runs.items():
        splines = [CubicSpline(t, run) for run in values.transpose("seed", "t").values]
        interpolated = np.stack([spline(spline_times) for spline, spline_times in zip(splines, run_times, strict=True)])
        variables[name] = (("seed", "since"), np.where(is_recorded, interpolated, np.nan))
    return xr.Dataset(variables, {"since": times_since_escape})


TIME_BEFORE_ESCAPE, TIME_AFTER_ESCAPE, ESCAPE_TIME_POINTS = 20.0, 50.0, 8
INITIAL_ASYMMETRY = 1e-4  # initial R_11 = R_22 of the lines
MAX_ESCAPE_TIME, ESCAPE_SEARCH_STEPS = 400.0, 200  # grid of the search for the escape of the lines
MAX_DRAWN_RUNS = 32
ESCAPE_NOTE = r"$t_\mathrm{esc}$: time when $|R_{11}+R_{22}-R_{12}-R_{21}|/2$ reaches 1/4"
STUDENT_TEACHER_OVERLAP_NOTE = "$R$: overlaps of student and teacher units"
OVERLAP_NOTE = STUDENT_TEACHER_OVERLAP_NOTE + r"; $Q$: of student units; $\rho$: mean cosine of partners"
TWO_UNITS_TITLE = "2 student and 2 teacher units"
PANEL_VARIABLES: dict[str, dict[str, str]] = {  # variables and legend labels, by axis label
    r"$\epsilon_g$": {"eps_g": ""},
    "overlap $R$": {"R_own": "own unit", "R_other": "other unit"},
    r"$Q$ and $\rho$": {"Q_own": "$Q_{kk}$", "Q_other": "$Q_{12}$", "specialisation": r"$\rho$"},
}


def draw_plateau(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw runs against t, and eps_g, R, Q and the specialisation against the time since the escape.

    From a symmetric start fluctuations end the plateau at a different time in each run, while the equations stay on the
    plateau. Runs are therefore drawn against the time since their escape, t - t_esc. On this scale the runs follow the
    equations from a slightly asymmetric start.
    """
    if (simulation.sizes["student"], simulation.sizes["teacher_unit"]) != (2, 2):
        raise ConfigError('the figure "plateau" requires K = 2 student units and M = 2 teacher units')
    figure, axes = make_figure(5.0, 2, 2)
    _draw_single_runs(axes[0, 0], simulation, theory)
    times_since_escape = np.linspace(-TIME_BEFORE_ESCAPE, TIME_AFTER_ESCAPE, ESCAPE_TIME_POINTS)
    runs = align_runs_at_escape(split_own_and_other_overlaps(simulation), times_since_escape)
    line = _solve_asymmetric_start(theory, np.linspace(-TIME_BEFORE_ESCAPE, TIME_AFTER_ESCAPE, 161))
    results = combine_with_lines(simulation, theory, line)
    results = replace(results, simulation=runs.rename(since="t"), theory=None)
    for ax, (label, names) in zip(axes.flat[1:], PANEL_VARIABLES.items(), strict=True):
        keys = draw_panel(ax, results, "t", names, label=label, log="y" if "eps_g" in names else "")
        ax.set_xlabel(r"$t-t_\mathrm{esc}$ (steps / $N$)")
        draw_guide(ax, x=0, text="escape", color="0.7")
        if len(keys) > 1:
            ax.legend(handles=keys, loc="best")
    return add_title_and_legend(figure, simulation, [], TWO_UNITS_TITLE, "eta", note=f"{ESCAPE_NOTE}; {OVERLAP_NOTE}")


plateau = PublishedFigure(
    draw=draw_plateau,
    caption=(
        r"Two units learn online from a two-unit teacher. (a) $\epsilon_g$ for single runs (thin) and from the "
        r"equations, whose solution stays on the plateau if it starts symmetrically. (b) to (d) Quantities against the "
        r"time since the escape of each run, when $|R_{11}+R_{22}-R_{12}-R_{21}|/2$ passes 1/4: (b) $\epsilon_g$; (c) "
        r"overlaps of student units with their own and with the other teacher unit; (d) overlaps of the student units, "
        r"and specialisation, the mean cosine of student and teacher units, each with its partner."
    ),
    points_caption="Points: means over runs; bars: standard errors of these means.",
    lines_caption=r"Lines: equations, $N\to\infty$, started $10^{-4}$ off the plateau.",
)


def _draw_single_runs(ax: Axes, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    """Draw eps_g of single runs and of the equations."""
    for run in simulation.eps_g.isel(seed=slice(MAX_DRAWN_RUNS)).transpose("seed", ...):
        ax.plot(run.t, run, color=CURVE_COLOURS[0], linewidth=0.4, alpha=0.5, gid=NO_LEGEND_GID)
    ax.plot(theory.t, theory.eps_g, color=THEORY_COLOUR, linestyle="--", label=r"symmetric start, $N\to\infty$")
    ax.plot(
        [],
        [],
        color=CURVE_COLOURS[0],
        linewidth=0.6,
        label=f"{min(MAX_DRAWN_RUNS, simulation.sizes['seed'])} single runs",
    )
    ax.set(xlabel="$t$ (steps / $N$)", ylabel=r"$\epsilon_g$")
    set_log_axes(ax, "y")
    ax.legend()


def _solve_asymmetric_start(theory: xr.Dataset, times_since_escape: np.ndarray) -> xr.Dataset:
    """Solve the equations from an asymmetric start, at times relative to the escape."""
    scenario = scenario_from_dataset(theory)
    start = scenario.make_start(2, 2).model_dump() | {"R": {"diagonal": INITIAL_ASYMMETRY}}

    def solve_at(t: np.ndarray) -> xr.Dataset:
        return split_own_and_other_overlaps(
            solve(modify_scenario(theory, start=start, t=t.tolist())).expand_dims("seed")
        )

    times = np.linspace(0, MAX_ESCAPE_TIME, ESCAPE_SEARCH_STEPS + 1)
    [coarse] = find_escape_times(solve_at(times))
    [escape] = find_escape_times(
        solve_at(coarse + np.linspace(-1, 1, ESCAPE_SEARCH_STEPS + 1) * MAX_ESCAPE_TIME / ESCAPE_SEARCH_STEPS)
    )  # fine search around the coarse escape time
    return solve_at(escape + times_since_escape).isel(seed=0).assign_coords(t=times_since_escape)


NUM_ESCAPE_TIME_BINS = 14
GROWTH_RATE_NOTE = (
    rf"{ESCAPE_NOTE}; $\Lambda$: growth rate; $N=100$ off the line: finite $N$; bins in (a) are shifted between $N$"
)


def draw_escape(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    r"""Draw the density of escape times and the fraction still on the plateau, one colour per N.

    Fluctuations give :math:`u = (R_{11}+R_{22}-R_{12}-R_{21})/2` a normal amplitude of order :math:`1/\sqrt N`, which
    grows as :math:`e^{\Lambda t}`. With a standard normal :math:`\xi` the escape time is therefore

    .. math:: t_\mathrm{esc} - \frac{\ln N}{2\Lambda} = -\frac{\ln|\xi|}{\Lambda} + c.
    """
    if (simulation.sizes["student"], simulation.sizes["teacher_unit"]) != (2, 2):
        raise ConfigError('the figure "escape" requires K = 2 student units and M = 2 teacher units')
    prediction, (figure, (left, right)) = (
        plateaus_and_critical_rate.escape(scenario_from_dataset(theory)),
        make_figure(3.0, 1, 2),
    )
    shifted = {int(N): _compute_shifted_escape_times(simulation.sel(N=N), prediction.rate) for N in simulation.N.values}
    edges = _compute_bin_edges(np.concatenate(list(shifted.values())))
    for index, times in enumerate(shifted.values()):
        offset = ((index + 0.5) / len(shifted) - 0.5) * (edges[1] - edges[0])  # separates the bars of different N
        _draw_histogram(left, times, edges + offset, index)
        _draw_fraction_on_plateau(right, times, edges, index)
    _draw_prediction(left, right, prediction, edges)
    for ax in (left, right):
        ax.set_xlabel(r"$t_\mathrm{esc}-\ln(N)/(2\Lambda)$")
    left.set(ylabel="density", ylim=(-0.02 * left.get_ylim()[1], None))  # room below bins of few runs
    right.set(ylabel="fraction on the plateau", ylim=(0, None))
    keys: list[Any] = [make_points_handle(f"$N$ = {N:,}", **get_curve_style(index)) for index, N in enumerate(shifted)]
    keys.append(make_line_handle(r"theory, $N\to\infty$ (nothing fitted)"))
    title_keys = ("$K$ = $M$ = 2", "eta", f"$\\Lambda$ = {prediction.rate:.4f}")
    return add_title_and_legend(figure, simulation, keys, *title_keys, columns=4, note=GROWTH_RATE_NOTE)


escape = PublishedFigure(
    draw=draw_escape,
    axes=("N",),
    caption=(
        r"Times at which runs leave the symmetric plateau ($|R_{11}+R_{22}-R_{12}-R_{21}|/2=1/4$), minus $\ln "
        r"N/(2\Lambda)$: (a) their density, in bins that are shifted between the $N$, and (b) the fraction of runs "
        "still on the plateau."
    ),
    points_caption="Points: simulation; bars: standard errors of counts.",
    lines_caption=(
        r"Line: $-\ln|\xi|/\Lambda+c$ with a standard normal $\xi$; the growth rate $\Lambda$ and the constant $c$ "
        r"follow from the equations and their fluctuations. Nothing is fitted."
    ),
)


def _compute_shifted_escape_times(runs: xr.Dataset, rate: float) -> np.ndarray:
    """Return escape times minus ln N/(2 rate), infinite for runs that do not escape."""
    times = find_escape_times(runs).ravel()
    return np.where(np.isnan(times), np.inf, times - np.log(float(runs.N)) / (2 * rate))


def _compute_bin_edges(times: np.ndarray) -> np.ndarray:
    finite = times[np.isfinite(times)]
    if not finite.size:
        raise ConfigError("no run has left the plateau by the last recorded time")
    low, high = (float(np.quantile(finite, q)) for q in (0.0, 0.995))
    return np.linspace(low, high, NUM_ESCAPE_TIME_BINS + 1)


def _draw_histogram(ax: Axes, times: np.ndarray, edges: np.ndarray, index: int) -> None:
    count, _ = np.histogram(times, edges)
    is_filled, scale = count > 0, times.size * np.diff(edges)
    centres = (edges[:-1] + edges[1:]) / 2
    draw_mean_points(ax, centres[is_filled], (count / scale)[is_filled], (np.sqrt(count) / scale)[is_filled], index)


def _draw_fraction_on_plateau(ax: Axes, times: np.ndarray, edges: np.ndarray, index: int) -> None:
    left = np.array([np.mean(times > edge) for edge in edges])
    draw_mean_points(ax, edges, left, np.sqrt(left * (1 - left) / times.size), index)


def _draw_prediction(density_axes: Axes, survival_axes: Axes, prediction: Any, edges: np.ndarray) -> None:
    t = np.linspace(edges[0], edges[-1], 300)
    xi = np.exp(-prediction.rate * (t - prediction.shift))
    density_axes.plot(t, 2 * normal_density(xi) * xi * prediction.rate, color=THEORY_COLOUR, zorder=1)
    survival_axes.plot(t, erf(xi / np.sqrt(2)), color=THEORY_COLOUR, zorder=1)


PLATEAU_GUIDE_STYLE: dict[str, Any] = GUIDE_STYLE | {"color": "0.3"}
SPREAD_LINE_POINTS, ESCAPE_LINE_TIMES = 41, 481
SPREAD_NOTE = r"$\Delta$: half of the inputs have variance $(1-\Delta)/N$, half $(1+\Delta)/N$"


def draw_plateau_spread(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Draw eps_g against t with one colour per spread, and the escape times against the spread.

    A run escapes when :math:`|R_{11}+R_{22}-R_{12}-R_{21}|/2` reaches 1/4.
    """
    spreads = _get_variance_spreads(theory)
    results, (figure, (error, escape)) = select_with_dense_theory(simulation, theory, "t"), make_figure(3.4, 1, 2)
    keys = draw_panel(error, results, "t", "eps_g", "inputs", log="y")
    for key, spread in zip(keys, spreads, strict=True):
        key.set_label(rf"$\Delta={spread:.2g}$")
    draw_guide(error, y=plateaus_and_critical_rate.plateau(2, 2, float(theory.eta)).eps_g, **PLATEAU_GUIDE_STYLE)
    _draw_escape_times(escape, simulation, spreads)
    _draw_predicted_escape_times(escape, theory, spreads)
    keys.append(make_line_handle(r"plateau at $\Delta=0$", **PLATEAU_GUIDE_STYLE))
    note = f"{SPREAD_NOTE}; escape: {ESCAPE_NOTE.partition('time ')[2]}; {STUDENT_TEACHER_OVERLAP_NOTE}"
    return add_title_and_legend(figure, results, keys, TWO_UNITS_TITLE, "eta", note=note)


plateau_spread = PublishedFigure(
    draw=draw_plateau_spread,
    axes=("inputs",),
    supported_values={"network": ("erf",)},
    caption=(
        r"Two erf units learn online from a two-unit teacher. Inputs have the variance $(1-\Delta)/N$ in half of the "
        r"directions and $(1+\Delta)/N$ in the other half. (a) $\epsilon_g$; dotted: the plateau for equal variances. "
        r"(b) Times at which runs leave the plateau, $|R_{11}+R_{22}-R_{12}-R_{21}|/2=1/4$."
    ),
)


def _get_variance_spreads(theory: xr.Dataset) -> list[float]:
    """Return the spread D of the variances for all inputs of the sweep.

    Raises `ConfigError` unless the variances are 1 - D and 1 + D in equal numbers of directions.
    """
    inputs = scenario_from_dataset(theory).inputs
    spectra = (
        [spectrum for spectrum in inputs if isinstance(spectrum, Spectrum)] if isinstance(inputs, tuple | list) else []
    )
    pairs = [
        spectrum.eigenvalues
        for spectrum in spectra
        if len(spectrum.eigenvalues) == 2 and spectrum == Spectrum(spectrum.eigenvalues)
    ]
    sizes = theory.sizes["student"], theory.sizes["teacher_unit"]
    if len(pairs) < 2 or len(pairs) < len(inputs) or not np.allclose(np.sum(pairs, axis=1), 2) or sizes != (2, 2):
        raise ConfigError(
            'the figure "plateau_spread" requires K = 2 student units, M = 2 teacher units and several spectra '
            "[1 - D, 1 + D]"
        )
    return [(high - low) / 2 for low, high in pairs]


def _draw_escape_times(ax: Axes, simulation: xr.Dataset, spreads: list[float]) -> None:
    """Draw mean escape times in the colours of the first panel, if all runs have escaped."""
    for index, (spread, times) in enumerate(
        zip(spreads, find_escape_times(simulation.transpose("inputs", ...)), strict=True)
    ):
        error = np.std(times, ddof=1) / np.sqrt(times.size) if times.size > 1 else 0.0
        draw_mean_points(ax, [spread], [np.mean(times)], [error], index)
    ax.set(xlabel=r"spread of the variances $\Delta$", ylabel=r"escape time (steps / $N$)")


def _draw_predicted_escape_times(ax: Axes, theory: xr.Dataset, spreads: list[float]) -> None:
    """Draw the escape times that the equations predict."""
    spread = np.linspace(min(spreads), max(spreads), SPREAD_LINE_POINTS)
    spectra = [{"spectrum": [1 - delta, 1 + delta]} for delta in spread]
    times = np.linspace(float(theory.t[0]), float(theory.t[-1]), ESCAPE_LINE_TIMES).tolist()
    line = solve(modify_scenario(theory, inputs=spectra, t=times))
    ax.plot(spread, find_escape_times(line), color=THEORY_COLOUR, zorder=1)
