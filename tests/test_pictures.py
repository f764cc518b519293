"""A machine finds what a referee would send back, and overlays show every axis of a sweep."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import figures
import statmech
import theory
from figures import captions, curves, panels
from figures.arrangement import choose_abscissa
from figures.curves import Curve
from figures.inspection import find_figure_faults
from figures.panels import CurveStyle, finish_figure, get_residual_strip
from figures.style import (
    COLUMN_WIDTH,
    DATA_OUTSIDE_AXES_GID,
    MAX_MARKERS_PER_CURVE,
    NO_LEGEND_GID,
    PAGE_WIDTH,
    apply_style,
    draw_theory_line,
    get_curve_style,
)
from statmech import Attention, Boosting, Inference, Risk, Scenario, Stopping, StoredExamples
from statmech.errors import ConfigError

pytestmark = pytest.mark.quick


@apply_style
def picture(spoil=lambda figure, ax: None):
    """A figure without faults, then spoilt."""
    figure = Figure(figsize=(COLUMN_WIDTH, 2.5))
    ax = figure.add_subplot()
    ax.plot([0, 1, 2], [0, 1, 4], color="C0", label="theory")
    ax.errorbar([0, 1, 2], [0.1, 1.1, 3.9], yerr=0.2, color="C1", linestyle="none", marker="o", label="simulation")
    figure.legend(loc="outside lower center")
    spoil(figure, ax)
    return figure


def jagged():
    """A parabola with one point off it."""
    x = np.linspace(0, 2, 61)
    return x, x**2 + 0.15 * (x == x[40])


def test_a_picture_without_faults_passes():
    assert find_figure_faults(picture()) == []


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda figure, ax: ax.set_ylim(0, 3), "lie outside"),
        (lambda figure, ax: ax.set_ylim(-0.2, 4.05), "of 18 points lie outside"),  # the end of one bar
        (lambda figure, ax: ax.legend(loc="center"), "a legend covers data"),  # a line runs through
        (lambda figure, ax: ax.plot([0, 1], [3, 3], color="C2"), "a line of colour #2ca02c is in no legend"),
        (lambda figure, ax: ax.set_title("small", fontsize=5.5), "text below 6 points: small"),
        (lambda figure, ax: figure.set_size_inches(10, 2), "width of 10 inches"),
        (lambda figure, ax: ax.set_ylabel("$\\epsilon_g/\n\\epsilon_p$"), r"raw TeX: $\epsilon_g/"),
        (lambda figure, ax: ax.set_ylabel(r"\alpha $x$"), "raw TeX"),
        (lambda figure, ax: ax.text(1, 3, "one") and ax.text(1.02, 3.02, "other"), "text over text: one and other"),
        (lambda figure, ax: figure.text(0.98, 0.5, "beyond the edge"), "text beyond the canvas"),
        (lambda figure, ax: ax.plot(*[np.linspace(0, 1, 21)] * 2, "o", color="C0"), "axes 1: 21 markers of one curve"),
        (lambda figure, ax: ax.plot(*jagged(), color="C0"), "axes 1: a line of colour #1f77b4 is jagged"),
    ],
)
def test_a_planted_fault_is_found(spoil, fault):
    found = find_figure_faults(picture(spoil))
    assert any(fault in sentence for sentence in found), found


@pytest.mark.slow
def test_guides_need_no_legend_and_an_arrow_may_say_what_lies_outside():
    assert find_figure_faults(picture(lambda figure, ax: ax.axhline(2, color="C3", gid=NO_LEGEND_GID))) == []

    def arrow(figure, ax):
        ax.set_ylim(0, 3)
        ax.annotate("1 above", (2, 3), gid=DATA_OUTSIDE_AXES_GID)

    assert find_figure_faults(picture(arrow)) == []


def test_smooth_lines_and_lines_with_a_corner_are_not_jagged():
    x = np.linspace(0, 2, 61)
    assert find_figure_faults(picture(lambda figure, ax: ax.plot(x, np.abs(x - 1) + 1, color="C0"))) == []
    assert find_figure_faults(picture(lambda figure, ax: ax.plot(x, 2 + np.sin(4 * x), color="C0"))) == []


def results(**keys):
    return statmech.run(Scenario(rule="hebb", **{"N": 50, "t": [0.5, 1, 2, 4, 8], "seeds": 3, **keys}))


def panel(figure, symbol):
    return next(ax for ax in figure.axes if ax.get_ylabel() == symbol)


def theory_lines(ax):
    """Lines that are denser than what was simulated."""
    return [line for line in ax.lines if len(line.get_xdata()) > 50]


@pytest.mark.slow
def test_a_sweep_of_two_axes_has_a_colour_per_eta_a_marker_per_N_and_one_line_per_eta():
    figure = figures.draw("overlay", results(eta=[0.5, 1, 2], N=[50, 100]))
    ax = panel(figure, "$R$")
    points = [line for line in ax.lines if line.get_marker() not in ("None", "", "_", "|")]
    assert len({(line.get_color(), line.get_marker()) for line in points}) == 6
    assert len(theory_lines(ax)) == 3
    assert ax.get_xscale() == "log"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [text for text in texts if "eta" in text or text.startswith("$N$")] == [
        r"$\eta$ = 0.5",
        r"$\eta$ = 1",
        r"$\eta$ = 2",
        "$N$ = 50",
        "$N$ = 100",
    ]
    assert find_figure_faults(figure) == []


def title_of(ax):
    """The title of a panel, without its letter."""
    return ax.get_title() or ax.get_title(loc="left").partition(" ")[2]


@pytest.mark.slow
def test_all_values_of_a_long_axis_are_drawn_and_a_third_axis_has_panels():
    long = figures.draw("overlay", results(eta=list(np.linspace(0.2, 2, 10)), seeds=2))
    assert len(theory_lines(panel(long, "$R$"))) == 10
    assert len({line.get_color() for line in theory_lines(panel(long, "$R$"))}) == 10
    three = figures.draw("overlay", results(eta=[0.5, 1], K=[1, 2], flip=[0, 0.1], seeds=2))
    assert [title_of(ax) for ax in three.axes[:3]] == ["$p_f$ = 0", "$p_f$ = 0.1", ""]
    assert find_figure_faults(three) == []


def test_a_sweep_of_many_axes_has_few_panels_and_its_title_counts_the_values():
    swept = results(K=[1, 2, 3], eta=[0.5, 1, 2], flip=[0, 0.1, 0.2, 0.3], drift=[0, 0.1, 0.2, 0.3], t=[1, 2], seeds=2)
    figure = figures.draw("overlay", swept)
    shown = [title_of(ax) for ax in figure.axes if ax.get_ylabel() == "$R$"]
    assert len(shown) == 12  # 36 before: the four values of flip are curves
    assert figure.get_suptitle().startswith(r"2 of 3 values of $\eta$, 2 of 4 values of $\delta$")


@pytest.mark.slow
def test_a_variable_has_no_panel_where_it_has_no_value():
    figure = figures.draw(
        "overlay", statmech.run(Scenario(rule=["hebb", "perceptron"], K=[1, 2], N=[20, 50], t=[1, 2], seeds=2))
    )
    titles = {symbol: [title_of(ax) for ax in figure.axes if ax.get_ylabel() == f"${symbol}$"] for symbol in "Rq"}
    assert titles == {"R": ["$K$ = 1", "$K$ = 2"], "q": ["$K$ = 2"]}


@pytest.mark.slow
def test_with_one_value_along_x_theory_has_a_dash():
    one = figures.draw("overlay", results(t=[5]))
    [dash] = [line for line in panel(one, "$R$").lines if line.get_marker() == "_" and line.get_linestyle() == "-"]
    np.testing.assert_allclose(dash.get_xydata(), [[5, theory.solve(results(t=[5]).scenario).R[0, 0]]])


DENSE = {
    "t": Scenario(rule="hebb", K=2, N=[50, 100], t=[0, 1, 5], seeds=2),
    "eta": Scenario(rule="perceptron", eta=[0.5, 2], t=5, seeds=2),
    "K": Scenario(rule="hebb", K=[1, 5], t=5, seeds=2),
    "alpha": StoredExamples(learner=["minover", "hebb"], N=20, alpha=[0.5, 5], epochs=[5, 10], seeds=2),
    "error_rate": Stopping(boundary="constant", error_rate=[0.01, 0.3], N=40, seeds=2),
    "P": Boosting(booster="adaboost", s=3, P=[20, 500], N=6, seeds=2),
}


@pytest.mark.parametrize(
    "axis", [pytest.param(it, marks=pytest.mark.slow) if it in ("eta", "K") else it for it in DENSE]
)
def test_dense_theory_is_the_theory_between_the_recorded_values(axis):
    scenario = DENSE[axis]
    coarse, dense = theory.solve(scenario), theory.smooth(scenario, axis)
    assert dense.sizes[axis] >= min(40, 5 if axis == "K" else 40)
    assert "N" not in dense.dims
    for name, values in coarse.data_vars.items():
        ends = values.isel({axis: [0, -1]})
        there = dense[name].isel({axis: [0, -1]})
        if "student" in there.dims:
            ends, there = ends.isel(student=0), there.isel(student=0)
        ends = ends.isel({dim: 0 for dim in ends.dims if dim not in there.dims})
        np.testing.assert_allclose(*np.broadcast_arrays(ends.values, there.values), rtol=1e-5, atol=1e-9)


def test_there_is_no_dense_theory_along_an_axis_that_theory_ignores_or_a_zipped_one():
    assert theory.smooth(DENSE["t"], "N") is None
    assert theory.smooth(DENSE["alpha"], "epochs") is None
    assert theory.smooth(Scenario(rule="hebb", t=[1, 2], zip={"eta": [1, 2], "flip": [0, 0.1]}), "eta") is None


@pytest.mark.slow
def test_unequal_students_have_no_dense_theory_and_are_drawn_at_the_recorded_times():
    start = {"length": [1, 2], "R": [0, 0.2], "q": [[1, 0], [0, 1]]}
    unequal = Scenario(rule="hebb", K=2, N=50, t=[1, 2, 4], start=start, seeds=2)
    assert theory.smooth(unequal, "t") is None
    drawn = figures.draw("overlay", statmech.run(unequal))
    assert max(len(line.get_xdata()) for ax in drawn.axes for line in ax.lines) == 3


def test_hundreds_of_parameter_combinations_have_no_dense_theory():
    many = Scenario(rule="hebb", t=[1, 2], eta=list(np.linspace(0.1, 2, 60)), flip=list(np.linspace(0, 0.4, 10)))
    assert theory.smooth(many, "t") is None


def test_means_between_recorded_times_have_no_dense_theory():
    scenario = Attention(attention="constant", error_rate=0.1, N=20, t=[0.5, 1], seeds=2)
    dense = theory.smooth(scenario, "t")
    assert "R" in dense
    assert "features" not in dense


@pytest.mark.slow
def test_a_caption_says_what_is_drawn_N_seeds_bars_and_the_command(tmp_path):
    drawn = statmech.run("ensemble", rule=["hebb"], K=[1, 2], N=100, t=[1, 2], seeds=4)
    text, latex = (file.read_text() for file in captions.write_caption(drawn, "ensemble", tmp_path / "ensemble"))
    assert "N = 100" in text
    assert "means over 4 independent runs" in text
    assert "standard errors" in text
    assert "`statmech run ensemble seeds=4 rule=hebb K=1,2 N=100 t=1,2`" in text
    assert r"$N\to\infty$" in latex
    assert r"\texttt{statmech run ensemble seeds=4" in latex
    assert "\\" not in text


def test_the_command_of_a_caption_makes_the_same_scenario():
    drawn = statmech.run("minover", N=10, alpha=[1, 2], epochs=[5], seeds=2)
    command, name, *overrides = captions.get_figure_command(drawn, "minover").removeprefix("statmech ").split(" ")
    assert (command, statmech.load(name, overrides)) == ("run", drawn.scenario)


def test_the_abscissa_of_an_overlay_is_an_axis_of_the_results():
    drawn = results(t=[5], eta=[0.5, 1, 2])
    assert choose_abscissa(drawn) == "eta"
    assert curves.choose_figure_layout(drawn, "eta").colour_axes == ()
    assert PAGE_WIDTH == 2 * COLUMN_WIDTH


@pytest.mark.slow
def test_a_curve_has_at_most_15_points_evenly_spaced_in_the_scale_of_its_axis_and_the_caption_says_so():
    whole = Curve("", np.arange(1, 62.0), np.arange(61.0), np.ones(61), np.arange(61.0))
    few = curves.thin_curve(whole, log=False)
    assert np.ptp(np.diff(few.x)) == 0
    assert few.x.size == few.mean.size == few.error.size == few.theory_at_x.size == 13
    ax = Figure().subplots()
    panels.draw_curve(ax, whole, CurveStyle(get_curve_style(0), None, {}), "", filled_mask=whole.x < 31)
    assert ax.lines[-1].get_xdata().tolist() == [1, 6, 11, 16, 21, 26]  # the full ones of those that are drawn
    uneven = curves.thin_curve(whole, log=True)
    assert uneven.x.size <= MAX_MARKERS_PER_CURVE
    assert {1, 61} <= {*uneven.x}
    assert (np.diff(np.log(uneven.x[3:])) < 0.45).all()
    drawn = results(t=np.linspace(1, 8, 40).tolist())
    assert "at most 20 points are drawn" in captions.make_caption(drawn, "overlay")
    assert "at most 20 points" not in captions.make_caption(results(), "overlay")


@pytest.mark.slow
def test_a_line_does_not_join_the_sides_of_a_first_order_transition():
    lines = theory.smooth(Inference(prior="binary", alpha=[1.3, 1.6], start=["uninformed", "informed"]), "alpha")
    [jump] = np.unique(theory.solve(Inference(prior="binary", alpha=[1.3])).alpha_alg)
    overlap = lines.m.sel(start="uninformed").isel(step=-1)
    assert np.isnan(overlap.sel(alpha=jump))
    assert float(overlap.where(overlap.alpha < jump).max()) < 0.9
    assert float(overlap.where(overlap.alpha > jump).min()) > 0.9
    assert np.isfinite(lines.m.sel(start="informed").isel(step=-1)).all()


def test_a_line_that_diverges_leaves_the_frame():
    peak = theory.smooth(Risk(loss="square", teacher="linear", lam=0, noise=0.5, alpha=[0.5, 2]), "alpha")
    assert np.isposinf(peak.mse.sel(alpha=1.0))
    ax = Figure().subplots()
    draw_theory_line(ax, peak.alpha.values, peak.mse.values.ravel(), color="C0")
    finite, beyond = ax.lines
    assert ax.get_ylim()[1] < 1.1 * np.nanmax(finite.get_ydata())
    assert beyond.get_ydata().max() > 100 * ax.get_ylim()[1]
    assert beyond.get_gid() == DATA_OUTSIDE_AXES_GID


def test_a_line_over_time_has_points_just_after_a_jump_of_the_rate():
    line = theory.smooth(Scenario(rule="hebb", t=[0, 10, 20], eta={"at": [0, 5], "is": [1, 0.1]}), "t")
    after = line.t.values[line.t.values >= 5]
    assert after[0] == 5
    assert np.diff(after[:5]).max() < 0.02


def test_a_line_has_points_around_the_threshold_of_separability():
    scenario = Risk(loss="logistic", teacher="logit", gain=5, lam=1e-4, alpha=[1, 8])
    alpha = theory.smooth(scenario, "alpha").alpha.values
    threshold = float(theory.solve(scenario).alpha_c.values.flat[0])
    assert np.diff(alpha[(alpha > 0.9 * threshold) & (alpha < threshold)]).max() < 0.011 * threshold


def test_a_line_through_geometrically_spaced_values_has_a_geometric_grid():
    steps = np.diff(np.log(theory.smooth(Scenario(rule="hebb", t=np.geomspace(0.1, 100, 7).tolist()), "t").t))
    np.testing.assert_allclose(steps, steps[0])


@pytest.mark.slow
def test_a_figure_for_a_paper_is_one_column_in_8_points_and_one_for_a_talk_is_large():
    swept = results(eta=[0.5, 1])
    column, talk = (statmech.draw(swept, figure="overlay", style=name) for name in ("pre", "talk"))
    assert find_figure_faults(column) == []
    assert column.axes[0].xaxis.label.get_fontname() == "STIXGeneral"
    assert column.axes[0].xaxis.label.get_fontsize() == 8
    assert talk.axes[0].xaxis.label.get_fontsize() == 15
    with pytest.raises(ConfigError, match="style"):
        statmech.draw(swept, style="prl")


def test_a_strip_of_residuals_holds_z_of_every_point():
    swept = results(t=[1, 2, 4])
    figure = statmech.draw(swept, figure="overlay", residuals=True)
    strip = get_residual_strip(panel(figure, "$R$"))
    [points] = [line for line in strip.lines if line.get_marker() == "o"]
    runs = swept.simulation.R.mean("student")
    z = (runs.mean("seed") - swept.theory.R.isel(student=0)) / (runs.std("seed", ddof=1) / np.sqrt(runs.sizes["seed"]))
    np.testing.assert_allclose(points.get_ydata(), z)
    assert strip.get_xscale() == panel(figure, "$R$").get_xscale()
    assert find_figure_faults(figure) == []


def test_every_figure_of_several_panels_has_letters_and_one_key():
    figure = figures.draw("overlay", results())
    assert [ax.get_title(loc="left") for ax in figure.axes[:2]] == ["(a)", "(b)"]
    plain = finish_figure(Figure(), results())
    assert plain.legends[0].get_title().get_text() == "points: simulation (mean, standard error); lines: theory"
