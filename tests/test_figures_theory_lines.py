"""Lines of theory are smooth and end at the limits of an axis; points, bars and texts lie where a reader sees them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import figures
import theory
from figures import legends, overlay, panels
from figures.arrangement import arrange_results
from figures.curves import Curve
from figures.description import CurveStyle, DrawnCurve, FigureDescription, PanelDescription
from figures.matplotlib_drawing import draw_description
from figures.style import apply_style, get_curve_style
from figures.theory_lines import round_line
from statmech import Scenario, StoredExamples, run
from statmech.keys.figure_key import Composition

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def hebb():
    return run(Scenario(rule="hebb", N=20, t=[1, 5, 20], seeds=2))


def test_a_line_ends_where_it_crosses_the_limits(hebb):
    section = Composition(y="eps_g", limits={"y": [0.12, 0.25]}, log="x")
    [panel] = overlay.describe_figure({"": hebb}, section).panels
    line = panel.curves[0].curve.theory
    inside = line[np.isfinite(line)]
    assert inside[0] == pytest.approx(0.25)
    assert inside[-1] == pytest.approx(0.12)


@pytest.mark.parametrize("log", ["", "x", "xy"])
def test_a_coarse_line_is_rounded_through_its_own_points(log):
    x = np.geomspace(0.1, 10, 13)
    rounded = round_line(Curve("", x, theory_x=x, theory=1 / (1 + x**2)), log)
    kept = np.isin(rounded.theory_x.round(9), x.round(9))
    np.testing.assert_allclose(rounded.theory[kept], 1 / (1 + x**2))
    exact = 1 / (1 + rounded.theory_x**2)
    straight = np.interp(rounded.theory_x, x, 1 / (1 + x**2))
    assert np.abs(rounded.theory - exact).max() < 0.6 * np.abs(straight - exact).max()


@pytest.mark.parametrize(
    ("num_rates", "times", "num_points"), [(400, [0, 10], 15), (400, [*range(20)], 0), (600, [0, 10], 0)]
)
def test_a_large_sweep_has_lines_of_at_least_twelve_points_but_no_coarser_than_its_own(num_rates, times, num_points):
    line = theory.smooth(Scenario(rule="hebb", eta=np.linspace(0.5, 2, num_rates).tolist(), t=times), "t")
    assert (0 if line is None else line.sizes["t"]) == num_points
    if line is not None:
        rounded = round_line(Curve("", line.t.values, theory_x=line.t.values, theory=line.R.values[0, :, 0]), "")
        exact = theory.smooth(Scenario(rule="hebb", eta=0.5, t=times), "t").R.isel(student=0)
        np.testing.assert_allclose(rounded.theory, exact.interp(t=rounded.theory_x), atol=0.01)


def test_lines_stay_as_they_are_at_integers_at_infinities_and_between_gaps():
    epochs = np.arange(1.0, 20)
    assert round_line(Curve("", epochs, theory_x=epochs, theory=1 / epochs), "").theory_x is epochs
    smooth = round_line(Curve("", epochs, theory_x=epochs.astype(int), theory=1 / epochs), "x", "epochs")
    assert np.abs(smooth.theory - 1 / smooth.theory_x).max() < 0.02
    x = np.linspace(0, 2, 21)
    y = np.where(x == 1, np.inf, np.abs(x - 1))
    y[15] = np.nan
    rounded = round_line(Curve("", x, theory_x=x, theory=y), "")
    position = int(np.flatnonzero(np.isinf(rounded.theory))[0])
    assert rounded.theory_x[position - 1 : position + 2].tolist() == x[9:12].tolist()
    assert np.isnan(rounded.theory).sum() == 1


def test_filled_points_lie_above_the_hollow_ones_of_the_same_curve():
    curve = Curve("", np.arange(4.0), np.ones(4), np.full(4, 0.1))
    ax = Figure().subplots()
    panels.draw_curve(ax, curve, CurveStyle(get_curve_style(0), None, {}), "", np.array([True, False, True, True]))
    drawn = sorted(ax.lines, key=lambda line: line.get_zorder())  # as in the picture
    marked = [line for line in drawn if line.get_marker() == "o"]
    assert [line.get_markerfacecolor() for line in marked] == ["white", get_curve_style(0)["color"]]
    assert marked[-1].get_xdata().tolist() == [0, 2, 3]


def test_the_legend_fills_a_marker_only_if_most_points_are_filled():
    stored = run(StoredExamples(learner="minover", N=10, alpha=[1, 2], epochs=[1, 400], seeds=2))
    stored.simulation.converged[:] = stored.simulation.epochs > 1
    entries = legends.make_series_entries(arrange_results({"": stored}, Composition(y="eps_g", series="epochs")))
    assert [entry.style["markerfacecolor"] == entry.style["color"] for entry in entries] == [False, True]


@pytest.mark.parametrize("some_converged", [False, True])
def test_a_note_says_that_no_point_is_filled_instead_of_naming_hollow_points(some_converged):
    stored = run(StoredExamples(learner="minover", N=10, alpha=[1, 2], epochs=2, seeds=2))
    stored.simulation.converged[:] = some_converged & (stored.simulation.alpha > 1)
    notes = overlay.describe_figure({"": stored}, Composition(y="eps_g")).notes
    assert (legends.HOLLOW_POINTS_NOTE in notes) == some_converged
    assert (legends.ALL_HOLLOW_NOTE in notes) != some_converged


def test_markers_of_the_legend_are_as_large_as_the_nested_points():
    rules = run(Scenario(rule=["hebb", "adatron"], K=3, N=20, t=[1, 5], seeds=2))
    labels = {"eps_g": "one student", "eps_g_majority_vote": "vote"}
    figure = figures.compose(rules, Composition(y=labels, series="rule", nested=True))
    [ax] = figure.axes
    largest = {
        marker: max(line.get_markersize() for line in ax.lines if line.get_marker() == marker) for marker in "os"
    }
    handles = [handle for handle in figure.legends[0].legend_handles if hasattr(handle, "get_marker")]
    assert {
        handle.get_marker(): handle.get_markersize() for handle in handles if handle.get_marker() in "os"
    } == largest
    assert largest["o"] > largest["s"]


@pytest.mark.parametrize("count", [3, 4])
def test_points_of_up_to_four_curves_whose_bars_overlap_stand_side_by_side(count):
    results = run(StoredExamples(learner="minover", N=10, alpha=[1, 2], epochs=[*range(5, 5 + count)], seeds=3))
    runs = results.simulation
    equal_runs = runs.assign(eps_g=runs.eps_g.isel(epochs=0, drop=True) + 0 * runs.epochs)
    measured = replace(results, simulation=equal_runs, theory=None)
    [ax] = figures.compose(measured, Composition(y="eps_g", series="epochs")).axes
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    first_positions = [line.get_xdata()[0] for line in hollow]
    assert len(first_positions) == count
    gaps = np.diff(first_positions)
    np.testing.assert_allclose(gaps, gaps[0])
    assert gaps[0] > 0


def test_the_text_of_a_curved_guide_is_written_at_its_end(hebb):
    section = Composition(y="R", guides=[{"y": "R ** 2", "text": "the square"}])
    [ax] = figures.compose(hebb, section).axes
    [text] = [text for text in ax.texts if text.get_text() == "the square"]
    assert text.xy == pytest.approx((20, float(hebb.theory.R.sel(t=20).item()) ** 2), rel=1e-6)


def test_a_bar_that_ends_at_zero_does_not_extend_a_logarithmic_axis():
    mean = np.array([0.1, 0.02])
    curve = Curve("", np.array([1.0, 2.0]), mean, np.array([0.01, 0.02 * (1 - 1e-15)]))
    ax = Figure().subplots()
    ax.set_yscale("log")
    panels.draw_curve(ax, curve, CurveStyle(get_curve_style(0), None, {}), "y")
    assert ax.get_ylim()[0] > 1e-3


def test_legends_have_columns_of_nearly_equal_length():
    for count, columns in {5: 3, 6: 3, 7: 4, 9: 3}.items():
        figure = Figure(figsize=(6.75, 2), layout="constrained")
        keys = [panels.make_line_handle(f"label {number}") for number in range(count)]
        apply_style(panels.draw_legend_below)(figure, keys, 4)
        assert figure.legends[0]._ncols == columns


def test_a_line_that_another_hides_is_dashed_over_it_where_they_coincide():
    x = np.linspace(0, 1, 11)
    values = np.minimum(1.25 * x, 0.999), 1 - x, np.ones(11)  # the second line only crosses the first
    drawn = [
        DrawnCurve(Curve("", x, theory_x=x, theory=y), CurveStyle({}, {"color": colour, "linestyle": "-"}, {}))
        for y, colour in zip(values, ("C0", "C1", "C2"), strict=True)
    ]
    [ax] = draw_description(FigureDescription((PanelDescription("m", "x", "m", curves=tuple(drawn)),))).axes
    [dashed] = [line for line in ax.lines if line.is_dashed()]
    assert dashed.get_color() == "C0"
    assert np.isfinite(dashed.get_ydata()).tolist() == [False] * 8 + [True] * 3


def test_theory_at_a_few_integers_is_a_line_without_marks():
    students = run(Scenario(rule="hebb", N=20, K=[1, 3], t=1, seeds=2))
    [ax] = figures.compose(students, Composition(x="K", y="eps_g_weight_mean")).axes
    assert {line.get_marker() for line in ax.lines if line.get_linestyle() == "-"} == {"None"}
